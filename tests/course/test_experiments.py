"""Train and measure: what is chosen, decided, embedded and read, against what is known of the pictures."""

from __future__ import annotations

import pandas as pd
import pytest
import torch

from clutils import data
from clutils.course import experiments


def test_left_and_right_are_told_by_the_mask():
    scenes = data.load("scenes", "test", limit=50)
    for mask, found in zip(scenes.masks, experiments.on_the_right(scenes).tolist(), strict=True):
        columns = [x + 0.5 for y in range(32) for x in range(32) if mask[y, x]]
        assert found == int(sum(columns) / len(columns) > 16)


def test_a_probe_reads_what_is_there_and_guesses_what_is_not():
    train, test = data.load("scenes", limit=400), data.load("scenes", "test", limit=400)

    def tells_brightness_only(pictures):
        bright = pictures.images.float().mean(dim=(1, 2, 3))[:, None]
        noise = torch.randn(len(bright), 3, generator=torch.Generator().manual_seed(0))
        return torch.cat([bright, noise], dim=1)

    read = experiments.readable(tells_brightness_only, train, test)
    assert set(read) == set(experiments.QUESTIONS)
    assert read["bright"] > 0.95
    assert read["class"] < 0.2
    assert 0.4 < read["right"] < 0.6
    unmasked = data.ImageSet(train.images, train.labels, train.class_names, None, "without masks")
    assert set(experiments.readable(tells_brightness_only, unmasked, test)) == {"class", "bright"}


def test_embedded_views_are_unit_vectors_and_a_pictures_views_belong_together(monkeypatch):
    monkeypatch.setenv("CLUTILS_FAST", "1")
    train, test = data.load("scenes", limit=600), data.load("scenes", split="test", limit=80)
    z, labels = experiments.embedded_views(train, test, pictures=40, number=3)
    assert z.shape[:2] == (40, 3) and labels.tolist() == test.labels[:40].tolist()
    torch.testing.assert_close(z.norm(dim=2), torch.ones(40, 3))
    own = (z[:, 0] * z[:, 1]).sum(dim=1).mean()
    others = (z[:, 0] @ z[:, 1].T).mean()
    assert own > others


def test_the_temperature_is_chosen_by_validation_and_judged_by_test():
    rows = [
        ("A", 0.1, seed, validation, test) for seed, (validation, test) in enumerate([(0.5, 0.9), (0.6, 0.9)])
    ] + [("A", 0.5, 0, 0.7, 0.2), ("A", 0.5, 1, 0.7, 0.3), ("B", 0.5, 1, 0.1, 0.4), ("B", 0.5, 0, 0.1, 0.6)]
    runs = pd.DataFrame(rows, columns=["name", "temperature", "seed", "knn_validation", "knn"])
    assert experiments.chosen(runs) == {"A, τ = 0.5": [0.2, 0.3], "B, τ = 0.5": [0.6, 0.4]}


def test_only_what_does_not_overlap_is_decided():
    results = {"low": [0.1, 0.2, 0.1], "high": [0.5, 0.6, 0.7], "wide": [0.15, 0.9, 0.3]}
    assert experiments.decided(results) == [("high", "low")]
    with pytest.raises(ValueError, match=r"three seeds.*'wide': 2"):
        experiments.decided(results | {"wide": [0.15, 0.9]})

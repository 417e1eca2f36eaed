"""The family beside each other: kinship is what two independent measures of the gradients say."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch

from clutils import anatomy, example, experiments, figures, losses
from clutils.figures import family, style

CASES = example.random_similarities(30, 1, 12, torch.Generator().manual_seed(0))


def test_angle_and_difference_are_those_of_numpy():
    draw = np.random.default_rng(0)
    a, b = draw.normal(size=(2, 7, 5))
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    tensors = torch.tensor(a), torch.tensor(b)
    assert family.angle(*tensors) == pytest.approx(np.degrees(np.arccos(cosine)).max(), rel=1e-9)
    longer = np.maximum(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    assert family.difference(*tensors) == pytest.approx((np.linalg.norm(a - b, axis=1) / longer).max())
    assert family.angle(tensors[0], 3 * tensors[0]) < family.PARALLEL
    assert family.difference(tensors[0], 3 * tensors[0]) == pytest.approx(2 / 3)
    assert math.isnan(family.angle(tensors[0], 0 * tensors[0]))


def test_kin_are_found_and_strangers_are_not():
    members = {
        "NT-Xent": losses.NTXent(0.2),
        "decoupled": losses.Decoupled(0.2),
        "FlatNCE": losses.FlatNCE(0.2),
        "MACL, α = 0": losses.MACL(0.2, alpha=0.0),
        "dual": losses.DualTemperature(0.2),
        "SupCon": losses.SupCon(0.2),
        "another τ": losses.NTXent(0.21),
        "HCL": losses.HardNegative(0.2),
    }
    same, parallel = family.kin(family.gradients(members, *CASES))
    assert same == [["NT-Xent", "SupCon"], ["decoupled", "FlatNCE", "MACL, α = 0"]]
    assert parallel == [["NT-Xent", "decoupled", "FlatNCE", "MACL, α = 0", "dual", "SupCon"]]


def test_the_kinship_table_writes_what_was_measured():
    found = family.gradients(
        {"a": losses.NTXent(0.2), "b": losses.Decoupled(0.2), "c": losses.NTXent(0.5)}, *CASES
    )
    ax = family.kinship(found)
    texts = [text.get_text() for text in ax.texts]
    turned = f"{family.angle(found['a'], found['c']):.0f}°"
    assert texts == ["=", "∥", turned, "∥", "=", turned, turned, turned, "="]
    assert "a, b, c" in figures.alt(ax)


def test_each_portrait_holds_its_losss_forces():
    positives, negatives = (t[0] for t in CASES)
    members = {"NT-Xent": losses.NTXent(0.2), "HCL": losses.HardNegative(0.2)}
    figure = family.portraits(members, positives, negatives, beside="NT-Xent", columns=2)
    pull, push = anatomy.forces(members["HCL"], positives[None], negatives[None])
    own = [line for line in figure.axes[1].lines if line.get_color() == style.loss("HardNegative")["color"]]
    order = negatives.argsort()
    shown = torch.as_tensor(own[0].get_ydata())
    pushed = push[0][order] > 0
    torch.testing.assert_close(shown[pushed], push[0][order][pushed])
    assert own[1].get_ydata()[0] == pytest.approx(float(pull))
    assert len(own[2].get_ydata()) == int((push < 0).sum()) > 0


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

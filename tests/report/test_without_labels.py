"""Photographs without classes: what can be said of an encoder all the same, and what is left open."""

import json
import math
import re

import numpy as np
import pytest
import torch
from PIL import Image

from clutils import checkpoints, report
from clutils.report import GOOD, UNKNOWN
from tests.checkpoints.files import conv_state, reopened
from tests.commands.asked import run
from tests.explorers.test_photo_map import unpacked, within

COUNT = 24


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder, draw = tmp_path_factory.mktemp("some") / "photos", np.random.default_rng(0)
    folder.mkdir()
    for k in range(COUNT):
        small = Image.fromarray(draw.integers(0, 200, (4, 4, 3)).astype(np.uint8))
        small.resize((32, 32), Image.Resampling.BICUBIC).save(folder / f"{k:02}.png")
    return folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory, photos):
    folder = tmp_path_factory.mktemp("run")
    given = ("--encoder", "conv16", "--steps", 2, "--batch-size", 12, "--out", folder / "mine")
    assert run("train", "--data", f"folder:{photos}", *given) == 0
    return folder / "mine"


@pytest.fixture(scope="module")
def out(saved, photos, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    given = ("--out", folder / "a.html", "--out", folder / "a.json")
    assert run("check", saved, "--data", f"folder:{photos}", *given) == 0
    return folder


def test_all_images_are_measured_with_a_map_and_baselines_that_need_no_label(out):
    """A quarter was, the rest 'lent their labels', of which there are none; below 256 there was no map."""
    held = json.loads((out / "a.json").read_text())
    numbers = held["numbers"]
    assert (numbers["pictures"], numbers["gallery"]) == (COUNT, 0) and held["level"] != GOOD
    known = {"nearer_than", "fresh_nearer_than", "raw_nearer_than", "effective_rank", "kept_crop"}
    assert known <= numbers.keys() and "knn" not in numbers
    assert re.fullmatch(r"mine/checkpoint.pt on the folder some\d+/photos", held["title"])
    assert held["notes"][0].endswith("mine, checkpoint.pt was opened")
    assert held["notes"].count(report.UNLABELLED) == 1 and not any("few" in note for note in held["notes"])
    page = (out / "a.html").read_text()
    assert "<th>raw pixels</th>" in page and "<h2>Map</h2>" in page and "labelled neighbours" not in page
    assert "<td>views nearer than two images</td>" in page and f"{numbers['raw_nearer_than']:.1%}" in page
    assert f"All {COUNT} images, by t-SNE: the images have no labels." in page


def test_the_still_map_is_the_interactive_one_whose_command_is_on_the_page_and_after_training(
    saved, photos, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert run("train", "--resume", "--out", saved) == 0
    said, _, after = capsys.readouterr().out.partition("your images on a map: ")
    checks, after = said.partition("this encoder checked on your images: ")[2].split(), after.split()
    assert checks[3:5] == ["check", str(saved)] and run(*checks[3:]) == 0
    capsys.readouterr()
    assert after[:4] == ["python", "-m", "clutils", "map"] and "on a map: python" in (
        saved / "replay.html"
    ).read_text("utf-8")
    assert run(*after[3:]) == 0
    assert run("check", saved, "--data", f"folder:{photos}", "--seed", 3, "--out", "b.html") == 0
    command = capsys.readouterr().out.partition("on an interactive map: ")[2].split()
    assert command[3:] == ["map", str(saved), "--data", f"folder:{photos}", "--seed=3", "--out", "map.html"]
    assert " ".join(command) in (tmp_path / "b.html").read_text()
    assert run(*command[3:]) == 0
    for page, seed in ((saved / "map.html", 0), (tmp_path / "map.html", 3)):
        shown = within(page.read_text("utf-8"))
        assert [drawn["name"] for drawn in shown["maps"]] == ["raw pixels", "fresh weights", "this encoder"]
        assert shown["names"][7] == "07.png" and shown["labels"] == []
        drawn = shown["maps"][-1]
        places = unpacked(drawn["places"], np.uint16).reshape(COUNT, 2).astype(float)
        opened = checkpoints.open(saved / "checkpoint.pt")
        still = report.check(opened, f"folder:{photos}", mean="auto", seed=seed).examination
        at = still.tsne
        low, high = at.min(axis=0), at.max(axis=0)
        scaled = 65_535 * ((at - (low + high) / 2) / (high - low).max() + 0.5)
        assert np.abs(scaled - places).max() < 2


def test_a_competitions_test_split_without_labels_is_left_for_its_training_split_with_them(tmp_path):
    for place in ("train/a", "train/b", "test"):
        (tmp_path / place).mkdir(parents=True)
        for k in range(16):
            Image.new("RGB", (8, 8), (9 * k, len(place), 0)).save(tmp_path / place / f"{k}.png")
    gallery, judged = report.load(f"folder:{tmp_path}", 2000)
    assert len(gallery) == 24 and len(judged) == 8 and bool((judged.labels >= 0).all())


@pytest.mark.parametrize("bias", [None, -10.0])
def test_a_temperature_that_was_learned_beside_texts_is_read_and_not_judged(bias, photos, tmp_path):
    given = {"logit_scale": torch.tensor(math.log(1 / 0.07))}
    given |= {} if bias is None else {"logit_bias": torch.tensor([bias])}
    given["image_projection.weight"] = torch.randn(16, 128, generator=torch.Generator().manual_seed(0))
    tower = {f"image_encoder.{name}": value for name, value in conv_state().items()}
    opened = reopened(tower | given, tmp_path)
    assert opened.temperature == pytest.approx(0.07) and opened.bias == bias and not opened.dropped
    found = report.check(opened, f"folder:{photos}", quick=True)
    assert found.examination.found.share_of_negatives is None
    assert found.examination.unknown["share_of_negatives"].startswith("τ = 0.07 was learned beside texts")
    line = next(line for line in found.verdicts if line.name == "the space of the loss")
    assert line.level == UNKNOWN and "behind the head uniformity" in line.value and "texts" in line.says

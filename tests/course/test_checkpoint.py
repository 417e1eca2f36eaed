"""Notebook 13: exercises agree with the report and know wrong answers; three runs are as ill as said."""

import json
import math
import re
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import spearmanr

from clutils import checkpoints, data, losses, report, training
from clutils.course import checkpoint as lesson
from clutils.course import records
from clutils.course.checkpoint import exercises, limit
from clutils.report import preprocessing
from tests.course.answers import judged


def test_each_order_of_the_reports_but_one_is_wrong_and_named():
    right = [order for order in permutations("ABC") if lesson.where_to_look_first.check(list(order))]
    assert right == [("B", "C", "A")]
    for order in set(permutations("ABC")) - {("B", "C", "A")}:
        assert "This is" in lesson.where_to_look_first.check(order).message
    for other in ("BCA", ["B"], ["B", "C"], ["b", "c", "a", "d"]):
        assert not lesson.where_to_look_first.check(other)


def test_of_all_that_may_be_said_of_three_pages_one_is_right_and_each_slip_has_a_reason():
    every = list(product(exercises.WORDS, repeat=3))
    assert [list(words) for words in every if lesson.what_happened.check(list(words))] == [exercises.AILMENTS]
    for words in every:
        slips = sum(a != b for a, b in zip(words, exercises.AILMENTS, strict=True))
        if slips:
            assert "page" in lesson.what_happened.check(list(words)).message
    for other in ("collapse", ["collapse"], ["a", "b", "c"], [["colour"], "b", "c"]):
        assert "three of these words" in lesson.what_happened.check(other).message
    assert "nothing here yet" in lesson.what_happened.check([..., ..., ...]).message
    assert lesson.what_happened.check(("Color", "TEMPERATURE", "collapse"))


@pytest.mark.sweep  # seconds of training, which the notebook repeats
def test_the_three_runs_are_as_ill_as_the_exercise_says(tmp_path):
    """Which line gives each away, and is good or less ill on the two others."""
    seen = {}
    for letter, run in lesson.ill_runs(data.load("scenes", limit=2048)).items():
        run.save(tmp_path / f"{letter}.pt")
        opened = checkpoints.open(tmp_path / f"{letter}.pt")
        found = report.check(opened, report.load("scenes", 800), tsne=False)
        seen[letter] = {line.name: line for line in found.verdicts}, found.examination.found
        assert seen[letter][0]["input"].level == report.GOOD
    loss, collapse = "the space of the loss", "collapse"
    kept = {letter: facts.kept for letter, (_, facts) in seen.items()}
    assert min(kept["A"]["jitter"], kept["A"]["grey"]) < min(kept["B"]["jitter"], kept["B"]["grey"])
    assert seen["A"][0][loss].level != report.BROKEN and seen["A"][0][collapse].level != report.BROKEN
    assert seen["B"][0][loss].level == report.BROKEN and "τ = 5" in seen["B"][0][loss].value
    assert seen["B"][0][collapse].level != report.BROKEN
    assert seen["C"][0][loss].level == seen["C"][0][collapse].level == report.BROKEN


def _cells() -> dict[str, str]:
    notebook = json.loads((records.ROOT / "notebooks" / "13_checkpoint_check.ipynb").read_text("utf-8"))
    return {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}


@pytest.mark.sweep  # seconds of training; each diagnosis is tried in tests/report/test_diagnosis.py
def test_each_of_the_eight_encoders_has_the_diagnosis_that_the_notebook_promises(tmp_path, capsys):
    settings = {"steps": 80, "batch_size": 64, "learning_rate": 1e-2, "seed": 1}
    run = training.train(loss=losses.NTXent(0.2), data=data.load("scenes", limit=2048), **settings)
    run.save(tmp_path / "run.pt")
    known: dict = {}
    exec(_cells()["cell-001"], known)
    known |= {"folder": tmp_path, "opened": checkpoints.open(tmp_path / "run.pt")}
    exec(
        "\n".join(_cells()[name] for name in ("eight-encoders", "cell-020")),
        known | {"pictures": report.load("scenes", 800)},
    )
    said = [re.search(r"kNN \d+%\): ([\w -]+)", line) for line in capsys.readouterr().out.splitlines()]
    promised = ["Healthy", "Never trained", "Half-trained", "Fed wrongly", "Collapsed"]
    promised += ["Collapsed behind the head", "Too hot", "Half-trained"]  # 80 steps are too few for OTHER
    found = [each[1] for each in said if each]
    assert len(found) == 8 and all(map(str.startswith, found, promised)), found


def test_the_divergence_is_that_of_torch():
    draw = torch.Generator().manual_seed(0)
    m, v, m0, v0 = torch.rand(4, 6, generator=draw, dtype=torch.float64) + 0.1
    met, expected = (torch.distributions.Normal(a, b.sqrt()) for a, b in ((m, v), (m0, v0)))
    torch.testing.assert_close(
        preprocessing.divergence(m, v, m0, v0), torch.distributions.kl_divergence(met, expected)
    )


ANSWERS = {
    "lead": [
        lambda p, n: 1 - (1 - p.mean()) / (1 - n.mean()),
    ],
}
MISTAKES = {
    "lead": [
        lambda p, n: (p.mean() - n.mean()) / (1 - n.mean().abs()),
        lambda p, n: (p.mean() - n.abs().mean()) / (1 - n.abs().mean()),
    ],
}
test_an_exercise_takes_other_ways_and_no_mistake = judged(lesson, ANSWERS, MISTAKES)


def test_no_limit_of_one_line_is_free_of_mistakes_and_the_panel_counts_them():
    made = records.read("calibration")
    encoders = limit.gains(made)
    assert len(encoders) == 18
    assert limit.mistakes(encoders, 0.0) == (1, 4)  # VICReg on digits; one of scenes and three of CIFAR-10
    assert limit.mistakes(encoders, -0.2) == (0, 9)
    assert limit.mistakes(encoders, 0.055) == limit.mistakes(encoders, 0.08) == (3, 0)  # all of digits
    found = [limit.mistakes(encoders, at / 100) for at in range(-20, 61)]
    assert min(map(sum, found)) == 3
    panel = lesson.one_limit(made)
    panel.set(limit=0.03)
    assert "3 of 9 healthy" in panel.readout.value and "3 of 9 half-trained" in panel.readout.value


def test_what_the_lesson_says_of_numbers_without_labels_is_what_the_records_say(capsys):
    cells = _cells()
    known = {"made": records.read("calibration"), "json": json, "math": math, "pd": pd, "records": records}
    known |= {"np": np, "spearmanr": spearmanr}
    exec("\n".join(cells[name] for name in ("unlabelled-ranks", "unlabelled-recipes")), known)
    found, kinds = known["found"], list(known["kinds"])
    without = ("effective_rank", "uniformity", "alignment")
    sets = ("cifar", "digits", "scenes")
    with_zero = {(k, m): sum(found[k, m, i][1] <= 0 for i in sets) for k, m, _ in found}
    assert all(with_zero[kinds[0], measure] <= 1 for measure in without), "on most sets they agree"
    assert all(with_zero[kinds[1], measure] == 2 for measure in without)
    assert with_zero[kinds[1], "knn"] == 0
    rounded = [round(found[kinds[1], m, i][0], 2) for m in without for i in sets]
    assert (min(rounded), max(rounded)) == (-0.08, 0.79), "docs/check.md says so"
    of_cifar, of_digits = capsys.readouterr().out.split("cifar: probe")[1].split("digits: probe")
    assert of_cifar.count("not decided") == of_digits.count("not decided") == 6
    few = known["few"].set_index("made")
    assert few["alignment"].idxmin() == few["uniformity"].idxmax() == "no-crop"
    assert few["lidar"].idxmax() == few["probe"].idxmin() == "no-colour"

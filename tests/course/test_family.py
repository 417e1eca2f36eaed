"""Notebook 07: kinship is what two independent measures of gradients say; its comparison is repeatable."""

from __future__ import annotations

import math
import runpy

import numpy as np
import pytest
import torch

from clutils import anatomy, figures, losses
from clutils.course import experiments, records, toys
from clutils.course.family import figures as family
from clutils.figures import style

CASES = toys.random_similarities(30, 1, 12, torch.Generator().manual_seed(0))


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


# ---- the record of the comparison ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def comparison():
    return runpy.run_path(str(records.ROOT / "benchmarks" / "comparison.py"))


def test_the_shortest_recorded_run_of_the_comparison_comes_out_again(comparison):
    table = records.read("comparison")
    row = table.loc[table["steps"].idxmin()]
    assert row["steps"] <= 20, "a row short enough to be run again is missing"
    name, train, validation, test = comparison["pictures"]("scenes")
    assert (name, train.source) == (row["pictures"], row["source"])
    loss, views = comparison["build"](row["loss"], float(row["temperature"]))
    settings = {"seed": int(row["seed"]), "batch_size": int(row["batch_size"]), "precision": row["precision"]}
    _, found = experiments.with_loss(
        loss, train, validation, test, int(row["steps"]), extra_views=views, **settings
    )
    for column in ("loss", "temperature", "extra_views", "seed", "steps", "precision"):
        assert found[column] == row[column]
    for column, allowed in {"knn": 0.05, "knn_validation": 0.05, "final_loss": 0.15}.items():
        assert found[column] == pytest.approx(row[column], abs=allowed), column


def test_the_comparison_has_five_seeds_a_loss_at_two_temperatures_and_no_test_picture_chooses(comparison):
    table = records.read("comparison")
    full = table[table["steps"] > 20]
    assert set(full["pictures"]) == {"scenes", "4 classes of CIFAR-10"}
    for _, runs in full.groupby(["pictures", "loss", "extra_views", "temperature"]):
        assert runs["seed"].nunique() >= 5 and runs["steps"].nunique() == 1
    for _, runs in full.groupby(["pictures", "loss", "extra_views"]):
        assert runs["temperature"].nunique() >= 2
    assert full.groupby("pictures")["steps"].nunique().max() == 1, (
        "runs of different length in one comparison"
    )
    listed = {name.partition("+")[0] for name in comparison["LOSSES"]}
    assert set(full["loss"]) == listed
    _, train, validation, test = comparison["pictures"]("scenes")
    seen = {picture.numpy().tobytes() for picture in train.images}
    assert not seen & {picture.numpy().tobytes() for picture in validation.images}
    assert len(validation) == comparison["KEPT_APART"] and len(test) > 1000

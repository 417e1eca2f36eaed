"""Notebook 08: weights of a given number of negatives, the catalogue as divergences, maps, exercises."""

import math
import runpy

import numpy as np
import pytest
import torch

from clutils import anatomy, data, losses, maps, training
from clutils.course import one_idea as lesson
from clutils.course import records, toys
from clutils.course.one_idea import divergences, multiplier
from clutils.similarities import Pairs
from tests.course.answers import judged


def tables(anchors=6, K=25):
    return toys.random_similarities(anchors, 1, K, torch.Generator().manual_seed(3))


# ---- 1: how many negatives count ---------------------------------------------------------------------------


def test_no_weights_of_as_many_negatives_push_harder_ones_than_the_best():
    _, negatives = tables()
    q, tau = multiplier.best_weights(negatives, 7.0)
    torch.testing.assert_close(q, torch.softmax(negatives / tau[:, None], dim=1))
    torch.testing.assert_close(torch.special.entr(q).sum(dim=1).exp(), torch.full((6,), 7.0).double())
    dice = torch.Generator().manual_seed(4)
    for _ in range(50):  # other weights, brought to the same entropy by a power
        other = torch.rand(6, 25, generator=dice, dtype=torch.float64)
        power = lesson.temperature_for.answer(other.log(), 7.0)
        other = torch.softmax(other.log() / power[:, None], dim=1)
        assert bool(((other * negatives).sum(dim=1) < (q * negatives).sum(dim=1)).all())


def test_beside_the_best_leaves_out_who_pushes_nothing_and_a_softmax_is_the_best():
    positives, negatives = tables()
    push = anatomy.forces(losses.NTXent(0.3), positives, negatives)[1]
    found = lesson.beside_the_best(push, negatives)
    torch.testing.assert_close(found["temperature"], torch.full((6,), 0.3).double(), rtol=1e-5, atol=0)
    assert float(found["divergence"].abs().max()) < 1e-10
    push[2] = 0
    assert len(lesson.beside_the_best(push, negatives)["effective"]) == 5
    hard = anatomy.forces(losses.HardNegative(0.3), positives, negatives)[1]
    found = lesson.beside_the_best(hard, negatives)
    assert bool((found["divergence"] > 1e-6).all())
    missed = (found["best"] - found["similarity"]) / found["temperature"]
    torch.testing.assert_close(found["divergence"], missed, rtol=1e-5, atol=1e-8)


def test_the_panel_sets_the_number_and_says_the_temperatures():
    _, negatives = tables(30, 40)
    panel = lesson.choose_how_many({"one": negatives})
    panel.set(effective=12, anchor=5)
    robust = losses.Robust(math.log(40 / 12))
    robust.per_anchor(negatives[:, :1], negatives)
    tau = robust.effective_temperature
    assert f"τ from {float(tau.min()):.3f} to {float(tau.max()):.3f}" in panel.readout.value
    assert f"This anchor: τ = {float(tau[5]):.3f}" in panel.readout.value
    assert panel.error.value == ""


def test_short_runs_leave_states_of_the_samples_that_they_saw(monkeypatch):
    monkeypatch.setenv("CLUTILS_FAST", "1")
    monkeypatch.setattr(training, "FAST_STEPS", 2)
    scenes = data.load("scenes", limit=96)
    found = lesson.trained(steps=3, seeds=1, train=scenes, test=scenes.subset(slice(0, 40)))
    assert set(found) == {"decoupled", "robust", "SogCLR", "iSogCLR"}
    assert all(len(run["knn"]) == len(run["untrained"]) == 1 for run in found.values())
    assert len(lesson.seen(found["SogCLR"]["loss"], "log_average")) == 64
    assert len(lesson.seen(found["iSogCLR"]["loss"], "temperatures")) == 64


# ---- 2: one divergence -------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [losses.Decoupled(0.3), losses.Debiased(0.3, 0.1), losses.RINCE(0.3)])
def test_the_comparison_notices_a_loss_that_is_outside(loss):
    row = divergences.Row(loss, "softmax", divergences._plain)
    assert max(divergences.differences(row)) > 1e-3


def test_the_divergence_is_the_sum_over_candidates():
    s, n = toys.random_similarities(1, 2, 3, torch.Generator().manual_seed(0))
    row = divergences.Row(losses.SupCon(0.5), "", divergences._plain, 2)
    exponentials = [math.exp(x / 0.5) for x in [*s[0].tolist(), *n[0].tolist()]]
    expected = sum(0.5 * math.log(0.5 * sum(exponentials) / e) for e in exponentials[:2])
    assert float(lesson.divergence(row, s, n)) == pytest.approx(expected)


@pytest.mark.parametrize("make", [losses.Debiased, losses.HardNegative])
def test_the_debiased_loss_is_inside_with_few_negatives_alone(make):
    s, n = toys.random_similarities(50, 1, 40, torch.Generator().manual_seed(0))
    for K, sign in ((8, 1), (9, 0), (10, -1)):  # 1 - K τ⁺/(1 - τ⁺) at τ⁺ = 0.1
        at = s.clone().requires_grad_()
        value = make(1.0, 0.1).formula(Pairs(at, n[:, :K]))
        (slope,) = torch.autograd.grad(value.sum(), at)
        odds = 1 + slope[:, 0]  # q₊, by the pull (1 - q₊)/τ
        assert bool((odds.abs() < 1e-9).all()) if sign == 0 else bool((odds * sign > 0).all())


def test_every_loss_of_the_catalogue_is_inside_or_outside_with_a_reason_and_the_count_adds_up():
    rows, every, outside = lesson.inside(), set(losses.catalogue()), set(divergences.outside())
    always = {row.loss.name for row in rows if not row.says}
    assert always | outside == every and not always & outside and set(divergences.OUTSIDE) <= outside
    once = {row.loss.name for row in rows if row.says}
    assert once < set(divergences.OUTSIDE) <= every - always
    said = lesson.counted()
    assert said.startswith(f"{len(always)} of the {len(every)} ")
    at_none = len(set(divergences.OUTSIDE) - once)
    assert f"{len(once)} have it at some settings alone; {at_none} at none" in said


def test_the_table_has_a_line_a_loss_and_its_differences():
    page, worst = lesson.table()
    assert worst < 1e-10
    assert len(page.splitlines()) == 2 + len(lesson.inside()) + len(divergences.outside())


# ---- 3: maps -----------------------------------------------------------------------------------------------


def test_the_cauchy_loss_is_infonce_by_loops():
    z1, z2 = 2 * torch.randn(2, 4, 2, generator=torch.Generator().manual_seed(0))
    z, total = torch.cat([z1, z2]).double(), 0.0
    for i in range(8):
        q = [1 / (1 + float((z[i] - z[k]).square().sum())) for k in range(8)]
        other = (i + 4) % 8
        total -= math.log(q[other] / sum(q[k] for k in range(8) if k != i)) / 8
    assert float(lesson.CauchyInfoNCE()(z1, z2)) == pytest.approx(total, rel=1e-5)


def test_the_sum_of_q_leaves_out_a_point_itself():
    assert lesson.sum_of_q(np.array([[0.0, 0.0], [0.0, 2.0]])) == pytest.approx(2 / 5)


def test_the_spectrum_shows_the_map_at_its_place():
    z, _, labels = toys.classes_on_the_sphere(width=0.5, pictures=60, classes=3)
    found = {s: maps.neg_tsne(z.float(), s, epochs=30) for s in (0.0, 1.0)}
    panel = lesson.spectrum(z.float(), labels, found)
    panel.set(spectrum=1.0)
    assert (
        f"Σ q = {lesson.sum_of_q(found[1.0]) / 60:.1f} N" in panel.readout.value and panel.error.value == ""
    )


def test_a_learned_map_has_two_numbers_a_picture():
    scenes = data.load("scenes", limit=128)
    run = lesson.learned_map(2, scenes)
    run.finish(progress=False)
    assert run.project(scenes.subset(slice(0, 5))).shape == (5, 2)


def test_the_record_of_maps_has_a_row_a_map():
    rows = records.read("maps").set_index("map")
    assert {"t-SNE (scikit-learn)", "UMAP (umap-learn)", "Neg-t-SNE, spectrum 0"} <= set(rows.index)
    assert (rows["points"] == 2000).all() and (rows["seconds"] > 0).all()
    assert (rows["neighbour_share"] > 0.5).all(), "a map that does not show its classes"


# ---- exercises ---------------------------------------------------------------------------------------------


@pytest.mark.sweep  # seconds of training: a benchmark's numbers, made again
def test_the_shortest_recorded_row_of_the_long_tail_comes_out_again():
    script = runpy.run_path(str(records.ROOT / "benchmarks" / "long_tail.py"))
    rows = records.read(script["NAME"]).set_index(["arm", "seed"])
    assert set(rows.index) == {(arm, seed) for arm in script["ARMS"] for seed in script["SEEDS"]}
    again = script["arm"]("untrained", data.load("scenes"), data.load("scenes", "test", limit=1000), 0, 0)
    for name in ("knn_head", "knn_tail", "instance_distance"):
        assert again[name] == pytest.approx(rows.loc[("untrained", 0), name], abs=0.01), name
    classes = rows.xs("alike", level="arm")["source"]
    assert not classes.str.contains("long tail").any() and rows["source"].str.contains("long tail").any()


def by_robust(n, k):
    robust = losses.Robust(math.log(n.shape[1] / k))
    robust.per_anchor(n[:, :1], n)
    return robust.effective_temperature


def by_loops(y, pairs, drawn, c):
    total = 0.0
    for i, j, others in zip(*pairs, drawn, strict=True):
        q = 1 / (1 + ((y[i] - y[j]) ** 2).sum())
        total = total - (q / (q + c)).log()
        for k in others:
            q = 1 / (1 + ((y[i] - y[k]) ** 2).sum())
            total = total - (1 - q / (q + c)).log()
    return total


temperature_for, map_loss = lesson.temperature_for.answer, lesson.map_loss.answer
ANSWERS = {
    "temperature_for": [by_robust],
    "map_loss": [maps.negative_sampling, by_loops],
}
MISTAKES = {
    "map_loss": [
        lambda y, p, k, c: map_loss(y, p, k[:, :3], c),
        lambda y, p, k, c: by_loops(
            y, p, [[i for i in o if i != j] for j, o in zip(p[0], k, strict=True)], c
        ),
    ],
}

test_an_exercise_takes_other_ways_and_no_mistake = judged(lesson, ANSWERS, MISTAKES)

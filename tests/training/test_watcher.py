"""What is measured along a run: the run is as if unwatched, the numbers are right, and the price is kept."""

import math

import numpy as np
import pytest
import torch

from clutils import data, maps, measures
from clutils.training.watcher import CREDIT, SHARE, Watcher, aligned, evaluation_split, snapshot
from tests.runs import DIGITS, advance, small

SAMPLE, BANK, TEST = DIGITS.subset(slice(0, 40)), DIGITS.subset(slice(40, 80)), DIGITS.subset(slice(80, 100))


def test_a_look_measures_what_the_measures_say_of_the_run_s_own_features():
    run = advance(small(precision="float32"), 3)
    watcher = Watcher(SAMPLE, BANK, TEST)
    watcher.look(advance(small(precision="float32"), 1))  # of other weights: the copy must follow
    seen = watcher.look(run)
    expected = measures.knn_accuracy(
        run.embed(BANK), BANK.labels, run.embed(TEST), TEST.labels, k=measures.NEIGHBOURS
    )
    assert seen.step == 3 and seen.knn == pytest.approx(expected)
    assert seen.effective_rank == pytest.approx(measures.effective_rank(run.embed(SAMPLE)), rel=1e-5)
    assert watcher.ceiling == min(len(SAMPLE) - 1, run.embed(SAMPLE).shape[1]) == 39
    assert watcher.table["step"].tolist() == [1, 3] and list(watcher.table) == [
        "step",
        "knn",
        "effective_rank",
    ]
    # a map turned and mirrored at most: its distances are the principal components' own
    distances = [
        np.linalg.norm(at[:, None] - at[None], axis=-1)
        for at in (seen.positions, maps.pca(run.embed(SAMPLE)))
    ]
    assert distances[0] == pytest.approx(distances[1], abs=1e-4)


def test_a_sample_that_is_judged_too_is_embedded_once_and_gives_the_same():
    run = advance(small(precision="float32"), 2)
    assert Watcher(TEST, BANK, TEST).look(run).knn == Watcher(SAMPLE, BANK, TEST).look(run).knn


def test_the_raw_baseline_is_knn_of_the_pictures_around_grey():
    def grey(pictures):
        return pictures.images.flatten(1).double() / 255 - 0.5

    expected = measures.knn_accuracy(grey(BANK), BANK.labels, grey(TEST), TEST.labels, k=20)
    assert Watcher(SAMPLE, BANK, TEST).raw() == pytest.approx(expected)


def test_no_other_turn_brings_a_map_nearer_to_the_one_before():
    draw = np.random.default_rng(1)
    before, after = (draw.normal(size=(20, 2)) for _ in range(2))
    centred = [at - at.mean(axis=0) for at in (before, after)]
    found = np.square(aligned(after, before) - after.mean(axis=0) - centred[0]).sum()
    for angle in np.linspace(0, 2 * np.pi, 721):
        c, s = np.cos(angle), np.sin(angle)
        for turn in ([[c, s], [-s, c]], [[c, s], [s, -c]]):
            assert np.square(centred[1] @ turn - centred[0]).sum() >= found - 1e-6
    with pytest.raises(ValueError, match=r"positions is \(20, 2\) but before is \(19, 2\)"):
        aligned(after, before[1:])


def test_looks_and_drawing_wait_while_they_had_more_than_their_share():
    run, watcher = small(), Watcher(SAMPLE, BANK, TEST)
    run.rows = [{"seconds": 10.0}]
    run.steps_done = 50
    assert watcher.is_due(run) and watcher.has_budget(run)
    watcher.seconds_looking = watcher.seconds_total = 0.99 * SHARE / 2 * 10
    assert watcher.is_due(run)
    watcher.seconds_looking = watcher.seconds_total = 1.01 * SHARE / 2 * 10
    assert not watcher.is_due(run) and watcher.has_budget(run)  # the other half is the drawing's
    watcher.seconds_total += SHARE / 2 * 10 + CREDIT
    assert not watcher.has_budget(run)
    run.rows = [{"seconds": 100.0}]
    assert watcher.is_due(run) and watcher.has_budget(run)


def test_a_look_that_is_wanted_is_due_at_its_step_whatever_was_spent_and_is_counted():
    run, watcher = small(), Watcher(SAMPLE, BANK, TEST, every=50)
    run.rows = [{"seconds": 1.0}]
    watcher.seconds_total += 100.0
    watcher.request(12)
    run.steps_done = 11
    assert not watcher.is_due(run)
    run.steps_done = 13
    assert watcher.is_due(run)
    before = watcher.seconds_looking
    watcher.look(run)
    assert watcher.seconds_looking > before and not watcher.is_due(run)


def test_what_a_look_costs_is_booked_and_what_a_rest_costs_is_not():
    run, watcher = advance(small(), 1), Watcher(SAMPLE, BANK, TEST)
    watcher.look(run, free=True)
    assert watcher.seconds_total == watcher.seconds_looking == 0
    watcher.look(run)
    assert 0 < watcher.seconds_looking <= watcher.seconds_total and len(watcher.looks) == 1  # one look a step


def test_every_says_how_far_apart_looks_are_at_the_least():
    run, watcher = small(), Watcher(SAMPLE, every=3)
    while not run.done:
        run.step()
        run.rows[-1]["seconds"] = 1e6
        watcher.after_step(run)
    assert [look.step for look in watcher.looks] == [1, 4, 7, 10, 13, 16, 19]
    for wrong in (0, 2.5, "often"):
        with pytest.raises(ValueError, match="every is"):
            Watcher(SAMPLE, every=wrong)


def test_a_snapshot_is_of_its_step_however_far_the_run_has_gone_when_it_is_looked_at():
    run, watcher = advance(small(), 1), Watcher(SAMPLE, BANK, TEST)
    now, then = watcher.look(run), snapshot(run)
    watcher.look(advance(run, 2))
    before = watcher.looks
    again = watcher.look(then)
    assert again.step == now.step == 1 and (again.knn, again.effective_rank) == (now.knn, now.effective_rank)
    assert watcher.looks == [again, before[1]]  # by step, and the later of two at one


def test_without_labels_there_is_no_knn_and_the_rest_is_measured():
    blank = data.ImageSet(DIGITS.images, torch.full((100,), -1), (), None, "digits without labels")
    sample, bank, test = evaluation_split(blank)
    assert bank is None and test is None and len(sample) == 33
    watcher = Watcher(sample, bank, test)
    seen = watcher.look(advance(small(), 1))
    assert not watcher.measures_knn and math.isnan(seen.knn) and math.isnan(watcher.raw())
    assert seen.effective_rank > 1 and seen.positions.shape == (33, 2)


def test_a_named_set_is_judged_by_its_test_part_and_another_by_some_of_its_own_pictures():
    digits = data.load("digits")
    sample, bank, test = evaluation_split(digits, "digits")
    assert sample is test and len(test) == 445 and "test" in test.source and len(bank) == 902
    in_order = digits.subset(digits.labels.argsort())  # as a folder of folders is
    sample, bank, test = evaluation_split(in_order)
    assert sample is test and len(test) == 450 and len(bank) == 902
    assert len(test.labels.unique()) == len(bank.labels.unique()) == 10
    both = torch.cat([test.images, bank.images])
    assert len(both.unique(dim=0)) == len(in_order.images.unique(dim=0))  # each image once
    assert torch.equal(evaluation_split(in_order)[2].images, test.images)
    vectors = data.load("vectors:digits")
    sample, bank, test = evaluation_split(vectors, "vectors:digits")
    assert sample is test and len(test) == 445
    assert len(evaluation_split(vectors)[1]) == 902
    run = small(data=vectors)
    assert 0 < Watcher(sample, bank, test).look(run).knn < 1

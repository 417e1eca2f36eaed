"""Notebook 05: its mixes as a function of similarities; the paper's tables; its exercises."""

import math

import numpy as np
import pytest
import torch

from clutils import anatomy, losses
from clutils.course import forces, toys
from clutils.course import hard_negatives as lesson
from clutils.course.forces.mixes import FixedMixes
from clutils.similarities import Pairs
from tests.course.answers import Mistake, judged


def some_negatives(count=20, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return toys.random_similarities(1, 1, count, draw)[1][0]


# ---- mixes as a function of similarities -----------------------------------------------------------------


def test_fixed_mixes_are_hcl_with_mixes_among_the_negatives_and_lead_the_push_back_to_their_parents():
    positives, negatives = toys.random_similarities(3, 1, 9, torch.Generator().manual_seed(2))
    loss, leaf = FixedMixes(0.5, 0.05, 1.0, hardest=4, synthetic=6), negatives.clone().requires_grad_()
    everyone = torch.cat([leaf, loss.mixes(Pairs(positives, leaf))], dim=1)
    value = losses.HardNegative(0.5, 0.05, 1.0).per_anchor(positives, everyone)
    torch.testing.assert_close(loss.per_anchor(positives, negatives), value)
    (push,) = torch.autograd.grad(value.sum(), leaf)
    torch.testing.assert_close(anatomy.forces(loss, positives, negatives)[1], push)
    held = torch.cat([leaf, loss.mixes(Pairs(positives, negatives))], dim=1)  # no way back to the parents
    (own,) = torch.autograd.grad(losses.HardNegative(0.5, 0.05, 1.0).per_anchor(positives, held).sum(), leaf)
    assert (push.sum(dim=1) > own.sum(dim=1) + 0.1).all()


def test_fixed_mixes_are_the_same_at_every_call_and_never_harder_than_the_hardest():
    positives, negatives = toys.random_similarities(50, 1, 40, torch.Generator().manual_seed(3))
    loss = FixedMixes(0.2, 0.1, 1.0, hardest=8, synthetic=100)
    mixes = loss.mixes(Pairs(positives, negatives))
    assert mixes.shape == (50, 100)
    assert torch.equal(mixes, loss.mixes(Pairs(positives, negatives)))
    assert bool((mixes.amax(dim=1) <= negatives.amax(dim=1)).all())
    assert bool((mixes.amin(dim=1) >= negatives.sort(dim=1).values[:, -8]).all())
    none = FixedMixes(0.2, 0.1, 1.0, hardest=8, synthetic=0).per_anchor(positives, negatives)
    torch.testing.assert_close(none, losses.HardNegative(0.2, 0.1, 1.0).per_anchor(positives, negatives))


def test_fixed_mixes_refuse_what_they_cannot_know():
    positives, negatives = toys.three_points()
    with pytest.raises(ValueError, match="normalise is True"):
        FixedMixes(normalise=True)
    with pytest.raises(ValueError, match="hardest is 3, but there are only 2"):
        FixedMixes(hardest=3).per_anchor(positives, negatives)
    with pytest.raises(ValueError, match="mask"):
        FixedMixes(hardest=1).per_anchor(positives, negatives, None, torch.tensor([[True, False]]))


# ---- the panel -------------------------------------------------------------------------------------------


def test_the_panel_of_sscl_has_sliders_for_its_mixes_and_shows_what_they_do():
    panel = forces.explore(losses.SSCL(0.5, 0.0, 0.0, 32, 8), positive=0.5)
    panel.set(synthetic=256, hardest=16)
    positives, negatives = forces.one_anchor(0.5, 255, "gaussian", similarity=0.0, deviation=0.25)
    loss = FixedMixes(0.5, 0.0, 0.0, 16, 256)
    pull, push = anatomy.forces(loss, positives[None], negatives[None])
    lands = float((push * negatives).sum() / push.sum())
    said = panel.readout.value.replace("−", "-")
    assert f"SSCL: loss {float(loss.per_anchor(positives[None], negatives[None])):.3g}" in said
    assert f"pull {float(pull):.3g}, the average pushed negative has similarity {lands:.2f}" in said
    hardest = float(loss.mixes(Pairs(positives[None], negatives[None])).max())
    real = float(negatives.max())
    assert f"hardest mix lies at {hardest:.2f}, the hardest real negative at {real:.2f}" in said
    panel.set(synthetic=0)
    assert "mix" not in panel.readout.value.rpartition("SSCL: loss")[2]
    panel.set(synthetic=8, hardest=512, count=4)
    assert "(s = 4, k = 8)" in panel.readout.value, "no more parents than there are negatives"
    assert panel.error.value == ""


def test_the_panel_makes_mixes_of_real_tables_too():
    positives, negatives = toys.random_similarities(5, 1, 12, torch.Generator().manual_seed(4))
    panel = forces.explore(losses.SSCL(0.5, 0.1, 1.0, 32, 8), losses.HardNegative(), (positives, negatives))
    assert "(s = 12, k = 8)" in panel.readout.value
    before = panel.live.image.value
    panel.set(synthetic=512)
    assert panel.live.image.value != before


# ---- the paper's tables ----------------------------------------------------------------------------------


def test_the_tables_agree_where_the_paper_has_the_same_run_twice_and_with_its_text():
    assert (
        lesson.TABLE_4["SimCLR"] == lesson.TABLE_3["SimCLR"]
        and lesson.TABLE_4["SSCL"] == lesson.TABLE_3["SSCL"]
    )
    lead = lesson.TABLE_3["SSCL"][1] - lesson.TABLE_3["HCL"][1]
    assert lead == pytest.approx(1.3), "the text says 1.3 points on CIFAR-100"


# ---- exercises -------------------------------------------------------------------------------------------


def test_silent_from_is_where_the_losss_own_push_ends():
    negatives = 0.2 * some_negatives(30)[None] - 0.7
    s = float(lesson.silent_from.answer(negatives, 0.5, 0.2))
    assert -1 < s < 1
    for positive, silent in ((s - 1e-6, False), (s + 1e-6, True)):
        push = anatomy.forces(
            losses.Debiased(0.5, 0.2), torch.tensor([[positive]], dtype=torch.float64), negatives
        )[1]
        assert bool((push == 0).all()) is silent


def test_as_cold_as_splits_the_push_as_the_losses_do():
    for gap, t, beta in lesson.as_cold_as.cases():
        table = torch.tensor([[0.2 + gap, 0.2]], dtype=torch.float64)
        positives = torch.zeros(1, 1).double()
        warm = anatomy.forces(losses.HardNegative(t, 0.0, beta), positives, table)[1]
        cold = anatomy.forces(losses.NTXent(lesson.as_cold_as.answer(gap, t, beta)), positives, table)[1]
        torch.testing.assert_close(warm / warm.sum(), cold / cold.sum())


def by_sums(n, t, p):
    return t * ((n / t).exp().sum(1) / n.shape[1] / p - (1 / p - 1) * math.exp(-1 / t)).log()


def softmax(gap, t, b):
    return torch.softmax(torch.tensor([b * gap / t, 0.0], dtype=torch.float64), dim=0)


def by_tensors(gap, t, beta):
    return gap / torch.logit((1 + beta) * softmax(gap, t, 1 + beta) - beta * softmax(gap, t, beta))[0]


def with_loops(push, plain, false):
    ours, theirs = [], []
    for f, g, is_false in zip(push.clamp(min=0), plain, false, strict=True):
        if float(f.sum()) > 0:
            ours.append(float(f[is_false].sum() / f.sum()))
            theirs.append(float(g[is_false].sum() / g.sum()))
    return np.mean(ours) < np.mean(theirs) - 1e-9 if ours else False


def by_differences(push, plain, false):
    live = (push > 0).any(dim=1)
    apart = share(push, false) - share(plain, false)
    return live.any() and apart[live].mean() < -1e-9  # a tensor, not a bool


def share(push, chosen):
    pushed = push.clamp(min=0)
    return (pushed * chosen).sum(dim=1) / pushed.sum(dim=1)


silent_from, as_cold_as = lesson.silent_from.answer, lesson.as_cold_as.answer
ANSWERS = {
    "silent_from": [by_sums],
    "as_cold_as": [by_tensors],
    "spares_false_negatives": [with_loops, by_differences],
}
MISTAKES = {
    "silent_from": [
        lambda n, t, p: silent_from(n, t, p).clamp(min=-1 - t * math.log(p)),
    ],
    "spares_false_negatives": [
        lambda push, *rest: lesson.spares_false_negatives.answer(push.clamp_(min=0), *rest),
        Mistake(lambda push, plain, false: torch.tensor([True, False]), "True or False is asked for"),
        Mistake(lambda push, plain, false: "False", "True or False is asked for, got 'False'"),
    ],
}

test_an_exercise_takes_other_ways_and_no_mistake = judged(lesson, ANSWERS, MISTAKES)

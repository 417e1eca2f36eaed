"""Exercises of notebooks 09 and 10: they agree with the package and take other ways of writing an answer."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Normal

from clutils import noise
from clutils.course import pinda as lesson
from clutils.course.pinda import detectors
from clutils.course.pinda import experiments as noise_experiments


def test_the_package_samples_as_the_exercise_does():
    torch.manual_seed(0)
    made = noise.Generator("conv", 3, learned_mean=True)
    x = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    found = made(x, torch.Generator().manual_seed(5))
    drawn = torch.randn(x.shape, generator=torch.Generator().manual_seed(5))
    torch.testing.assert_close(lesson.sample.answer(found.mean, found.scale, drawn), found.sample)


def test_the_sample_may_be_written_in_place_but_not_drawn_anew():
    assert lesson.sample.check(lambda mean, scale, drawn: torch.addcmul(mean, drawn, scale))
    assert not lesson.sample.check(lambda mean, scale, drawn: torch.normal(mean, scale))


def test_the_entropy_is_that_of_the_gaussian_and_of_the_package():
    assert lesson.task_entropy.check(lambda loss: Normal(torch.zeros_like(loss), (loss / 2).exp()).entropy())
    assert lesson.task_entropy.check(noise_experiments.task_entropy)
    assert "γ as the variance" in repr(
        lesson.task_entropy.check(lambda loss: Normal(0.0 * loss, (-loss / 2).exp()).entropy())
    )


def test_spared_is_the_auroc_of_the_package_and_can_be_counted_pair_by_pair():
    def one_by_one(scale, mask):
        score = pairs = 0
        for a, on in zip(scale.flatten().tolist(), mask.flatten().tolist(), strict=True):
            for b, other in zip(scale.flatten().tolist(), mask.flatten().tolist(), strict=True):
                if on and not other:
                    pairs += 1
                    score += 1.0 if a > b else 0.5 if a == b else 0.0
        return score / pairs

    assert lesson.spared.check(one_by_one)
    assert lesson.spared.check(lambda scale, mask: detectors.auroc(scale[None], mask[None])[0])


def test_no_known_wrong_detector_is_right_on_a_map_that_could_be_met():
    """Each of them differs from the AUROC on the smooth map, or on the one with ties."""
    _, smooth, ties, _ = lesson.spared.cases()
    for wrong in lesson.spared.wrong:
        apart = [float(abs(wrong.answer(*c) - lesson.spared.answer(*c))) for c in (smooth, ties)]
        assert max(apart) > 0.02, wrong.name


def test_a_map_that_is_the_same_on_all_pictures_knows_none_of_them():
    """Such as the nearness to the centre: row by row the same AUROCs."""
    central = torch.rand(1, 7, generator=torch.Generator().manual_seed(2)).double().expand(7, 7)
    assert abs(float(lesson.above_shuffled.answer(central))) < 1e-12


def test_the_lead_on_the_own_pictures_can_be_counted_pair_by_pair():
    def one_by_one(scores):
        table, n = scores.tolist(), len(scores)
        own = sum(table[i][i] for i in range(n)) / n
        others = [table[i][j] for i in range(n) for j in range(n) if i != j]
        return own - sum(others) / len(others)

    assert lesson.above_shuffled.check(one_by_one)


@pytest.mark.parametrize("name", ["sample", "task_entropy", "spared", "above_shuffled"])
def test_a_constant_is_no_answer(name):
    assert not getattr(lesson, name).check(lambda *_: 0.5)
    assert not getattr(lesson, name).check(lambda *_: math.nan)

"""The exercises of notebook 08 agree with the package, and take other ways of writing the right answer."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Normal

from clutils import detectors, exercises, noise, noise_experiments


def test_the_package_samples_as_the_exercise_does():
    torch.manual_seed(0)
    made = noise.Generator("conv", 3, learned_mean=True)
    x = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    found = made(x, torch.Generator().manual_seed(5))
    drawn = torch.randn(x.shape, generator=torch.Generator().manual_seed(5))
    torch.testing.assert_close(exercises.sample.answer(found.mean, found.scale, drawn), found.sample)


def test_the_sample_may_be_written_in_place_but_not_drawn_anew():
    assert exercises.sample.check(lambda mean, scale, drawn: torch.addcmul(mean, drawn, scale))
    assert not exercises.sample.check(lambda mean, scale, drawn: torch.normal(mean, scale))


def test_the_entropy_is_that_of_the_gaussian_and_of_the_package():
    assert exercises.task_entropy.check(
        lambda loss: Normal(torch.zeros_like(loss), (loss / 2).exp()).entropy()
    )
    assert exercises.task_entropy.check(noise_experiments.task_entropy)
    assert "γ as the variance" in repr(
        exercises.task_entropy.check(lambda loss: Normal(0.0 * loss, (-loss / 2).exp()).entropy())
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

    assert exercises.spared.check(one_by_one)
    assert exercises.spared.check(lambda scale, mask: detectors.auroc(scale[None], mask[None])[0])


def test_no_known_wrong_detector_is_right_on_a_map_that_could_be_met():
    """Each of them differs from the AUROC on the smooth map, or on the one with ties."""
    _, smooth, ties, _ = exercises.spared.cases()
    for wrong in exercises.spared.wrong:
        apart = [float(abs(wrong.answer(*c) - exercises.spared.answer(*c))) for c in (smooth, ties)]
        assert max(apart) > 0.02, wrong.name


@pytest.mark.parametrize("name", ["sample", "task_entropy", "spared"])
def test_a_constant_is_no_answer(name):
    assert not getattr(exercises, name).check(lambda *_: 0.5)
    assert not getattr(exercises, name).check(lambda *_: math.nan)

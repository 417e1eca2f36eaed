"""Exercises of notebooks 09 and 10: they agree with the package and take other ways of writing an answer."""

from statistics import NormalDist

import torch
from torch.distributions import Normal

from clutils import noise
from clutils.course import pinda as lesson
from clutils.course.pinda import detectors
from tests.course.answers import Mistake, judged


def test_the_package_samples_as_the_exercise_does():
    torch.manual_seed(0)
    made = noise.NoiseGenerator("conv", 3, learned_mean=True)
    x = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    found = made(x, torch.Generator().manual_seed(5))
    drawn = torch.randn(x.shape, generator=torch.Generator().manual_seed(5))
    torch.testing.assert_close(lesson.sample.answer(found.mean, found.scale, drawn), found.sample)


def test_no_known_wrong_detector_is_right_on_a_map_that_could_be_met():
    """Each of them differs from the AUROC on the smooth map, or on the one with ties."""
    _, smooth, ties, _ = lesson.spared.cases()
    for wrong in lesson.spared.wrong:
        apart = [float(abs(wrong.answer(*c) - lesson.spared.answer(*c))) for c in (smooth, ties)]
        assert max(apart) > 0.02, wrong.name


def test_one_map_for_all_pictures_has_a_lead_around_0():
    central = torch.rand(1, 30, generator=torch.Generator().manual_seed(2)).double().expand(30, 30)
    low, high = lesson.mean_lead.answer(central)
    assert low < 0 < high


def trained(network, pictures, masks, new, target=lambda m: m.float(), steps=60, loss=None):
    loss = loss or torch.nn.functional.mse_loss
    optimiser = torch.optim.AdamW(network.parameters(), 0.02)
    for _ in range(steps):
        optimiser.zero_grad()
        loss(network(pictures)[:, 0], target(masks)).backward()
        optimiser.step()
    return network(new)[:, 0].detach()


def stepless(network, pictures, masks, new):
    torch.nn.functional.mse_loss(network(pictures)[:, 0], masks.float()).backward()
    return network(new)[:, 0].detach()


def interval(scores):
    table, n = scores.tolist(), len(scores)
    each = [table[i][i] - sum(table[i][j] for j in range(n) if j != i) / (n - 1) for i in range(n)]
    mean = sum(each) / n
    half = 1.96 * (sum((x - mean) ** 2 for x in each) / (n - 1) / n) ** 0.5
    return mean - half, mean + half


def with_the_tables_quantile(scores):
    own, n = scores.diagonal(), len(scores)
    lead = own - (scores.sum(dim=1) - own) / (n - 1)
    half = NormalDist().inv_cdf(0.975) * lead.std() / n**0.5
    return lead.mean() - half, lead.mean() + half


def counted(network, pictures, masks, new):
    """Told the masks, but not trained: how often the network's number at a pixel is one of an object's."""
    with torch.no_grad():
        known, asked, at = network(pictures)[:, 0], network(new)[:, 0], masks.bool()
    edges = torch.linspace(float(known.min()), float(known.max()) + 1e-6, 30)
    inside, outside = (torch.histogram(known[of], edges)[0] + 1 for of in (at, ~at))
    return (inside / outside)[(torch.bucketize(asked, edges) - 1).clamp(0, 28)]


def on_the_new_as_well(network, pictures, masks, new):
    trained(network, new[:8], masks, new)
    return trained(network, pictures, masks, new)


ANSWERS = {
    "sample": [lambda mean, scale, drawn: torch.addcmul(mean, drawn, scale)],
    "task_entropy": [lambda loss: Normal(torch.zeros_like(loss), (loss / 2).exp()).entropy()],
    "spared": [lambda scale, mask: detectors.auroc(scale[None], mask[None])[0]],
    "on_dead": [
        lambda scale, x: ((scale**2) * (x.std(0, keepdim=True) < 0.02)).sum() / (scale**2).sum(),
    ],
    "mean_lead": [interval, lambda scores: list(interval(scores)), with_the_tables_quantile],
    "positive_control": [
        trained,
        lambda *given: trained(*given).sigmoid(),
    ],
}
MISTAKES = {
    "sample": [
        Mistake(lambda mean, scale, drawn: mean + drawn.mul_(scale.detach()), "changes the drawn that"),
        Mistake(
            lambda mean, scale, drawn: torch.from_numpy((mean + drawn * scale).detach().numpy()), "detached"
        ),
        lambda mean, scale, drawn: mean + drawn * scale.abs().detach().requires_grad_(),
    ],
    "task_entropy": [lambda loss: lesson.task_entropy.answer(loss).clamp(min=0)],
    "on_dead": [
        lambda scale, x: lesson.on_dead.answer(scale, 0.8 * x),
        lambda scale, x: (scale[:, (x - x.mean(0)).abs().mean(0) < 0.02] ** 2).sum() / (scale**2).sum(),
    ],
    "mean_lead": [
        lambda scores: (max(interval(scores)[0], 0), interval(scores)[1]),
    ],
    "positive_control": [
        Mistake(stepless, "not told the masks"),
        Mistake(counted, "not told the masks"),
        Mistake(on_the_new_as_well, "trained on the new images as well"),
        Mistake(
            lambda network, pictures, masks, new: trained(network, pictures, masks.roll(1, 0), new),
            ("image's own mask", "higher on the background"),
        ),
        Mistake(
            lambda network, pictures, masks, new: trained(network, pictures, masks, pictures),
            "maps of the new images are asked for, (10, 16, 16)",
        ),
        Mistake(
            lambda network, pictures, masks, new: masks.repeat(2, 1, 1)[: len(new)].float(),
            "does not come from the network",
        ),
        Mistake(
            lambda *given: (
                trained(*given, loss=torch.nn.functional.binary_cross_entropy_with_logits) > 0
            ).float(),
            "return the network's numbers as they are",
        ),
    ],
}

test_an_exercise_takes_other_ways_and_no_mistake = judged(lesson, ANSWERS, MISTAKES)

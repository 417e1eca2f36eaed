"""Exercises of notebooks 09 and 10: they agree with the package and take other ways of writing an answer."""

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


def test_a_gradient_is_asked_for_and_not_only_numbers():
    def through_numpy(mean, scale, drawn):
        return torch.from_numpy((mean + drawn * scale).detach().numpy())

    def in_loops(mean, scale, drawn):
        return torch.stack([m + d * s for m, s, d in zip(mean, scale, drawn, strict=True)])

    assert "detached" in repr(lesson.sample.check(through_numpy))
    assert lesson.sample.check(in_loops)
    assert lesson.sample.check(lambda mean, scale, drawn: torch.stack([mean, drawn * scale]).sum(dim=0))
    for wrong in (
        lambda mean, scale, drawn: mean + drawn * scale.abs().detach().requires_grad_(),
        lambda mean, scale, drawn: mean - drawn * scale,
        lambda mean, scale, drawn: mean + torch.randn_like(drawn) * scale,
        lambda mean, scale, drawn: mean + drawn,
        lambda mean, scale, drawn: (mean + drawn * scale).clamp(-1, 1),
        lambda mean, scale, drawn: torch.no_grad()(lambda: mean + drawn * scale)(),
        lambda mean, scale, drawn: (mean + drawn * scale).sum(),
        lambda mean, scale, drawn: mean + drawn * scale.mean(),
    ):
        assert not lesson.sample.check(wrong)


def test_the_noise_on_dead_entries_can_be_counted_one_by_one_or_by_columns():
    def one_by_one(scale, x):
        on = total = 0.0
        for j in range(x.shape[1]):
            power = sum(float(s) ** 2 for s in scale[:, j])
            total += power
            on += power if x[:, j].var() ** 0.5 < 0.02 else 0.0
        return on / total

    assert lesson.on_dead.check(one_by_one)
    assert lesson.on_dead.check(
        lambda scale, x: ((scale**2) * (x.std(0, keepdim=True) < 0.02)).sum() / (scale**2).sum()
    )
    for wrong in (
        lambda scale, x: (scale[:, x.std(0) < 0.02] ** 2).sum(),
        lambda scale, x: (scale[:, x.amax(0) - x.amin(0) < 0.02] ** 2).sum() / (scale**2).sum(),
        lambda scale, x: (scale[:, x.std(0) < 0.5] ** 2).sum() / (scale**2).sum(),
        lambda scale, x: (scale[:, (x - x.mean(0)).abs().mean(0) < 0.02] ** 2).sum() / (scale**2).sum(),
        lambda scale, x: ((scale**2) / (scale**2).sum(1, keepdim=True))[:, x.std(0) < 0.02].sum(1).mean(),
    ):
        assert not lesson.on_dead.check(wrong)


def test_the_lead_and_its_interval_can_be_counted_pair_by_pair():
    def one_by_one(scores):
        table, n = scores.tolist(), len(scores)
        each = [table[i][i] - sum(table[i][j] for j in range(n) if j != i) / (n - 1) for i in range(n)]
        mean = sum(each) / n
        half = 1.96 * (sum((x - mean) ** 2 for x in each) / (n - 1) / n) ** 0.5
        return mean - half, mean + half

    assert lesson.mean_lead.check(one_by_one)
    assert lesson.mean_lead.check(lambda scores: list(one_by_one(scores)))
    for wrong in (
        lambda scores: tuple(reversed(one_by_one(scores))),
        lambda scores: sum(one_by_one(scores)) / 2,
        lambda scores: (max(one_by_one(scores)[0], 0), one_by_one(scores)[1]),
        lambda scores: tuple(scores.diagonal().quantile(torch.tensor([0.025, 0.975]).double())),
    ):
        assert not lesson.mean_lead.check(wrong)


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


def test_a_positive_control_may_be_trained_in_other_ways():
    assert lesson.positive_control.check(trained)
    assert lesson.positive_control.check(lambda *given: trained(*given).sigmoid())
    assert lesson.positive_control.check(
        lambda *given: trained(*given, steps=100, loss=torch.nn.functional.smooth_l1_loss)
    )


def test_what_is_no_positive_control_is_told_by_what_it_lacks():
    def stepless(network, pictures, masks, new):
        torch.nn.functional.mse_loss(network(pictures)[:, 0], masks.float()).backward()
        return network(new)[:, 0].detach()

    for answer, said in (
        (lambda network, pictures, masks, new: network(new)[:, 0].detach(), ("not told the masks",)),
        (stepless, ("not told the masks",)),
        (lambda network, pictures, masks, new: new[:, 0], ("does not come from the network",)),
        (lambda network, pictures, masks, new: (new[:, 0] - 0.5).abs(), ("not trained", "does not")),
        (
            lambda network, pictures, masks, new: trained(network, pictures, masks.roll(1, 0), new),
            ("picture's own mask", "higher on the background"),
        ),
        (lambda *given: trained(*given, target=lambda m: (~m).float()), ("higher on the background",)),
        (
            lambda network, pictures, masks, new: trained(network, pictures, masks, pictures),
            ("maps of the new pictures are asked for, (10, 16, 16)",),
        ),
        (
            lambda network, pictures, masks, new: masks.repeat(2, 1, 1)[: len(new)].float(),
            ("does not come from the network",),
        ),
        (lambda network, pictures, masks, new: torch.zeros(10, 16, 16), ("not trained",)),
        (lambda network, pictures, masks, new: None, ("nothing yet",)),
    ):
        found = lesson.positive_control.check(answer)
        assert not found and any(part in repr(found) for part in said), repr(found)

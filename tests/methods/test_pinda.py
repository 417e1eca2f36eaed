"""PiNDA's step: who gets noise, what is descended, and where the gradient goes."""

import copy
import math

import pytest
import torch
from torch import nn

from clutils import data, encoders, losses, methods, noise, training, views
from tests import runs
from tests.methods.steps import by_loops
from tests.runs import DIGITS, advance, past, same, weights

VECTORS = data.load("vectors:digits", limit=200)
STILL = views.Identity()


def step(method, images, augment=STILL, seed=0):
    return method(images, augment, torch.Generator().manual_seed(seed))


def pinda(**settings) -> methods.PiNDA:
    torch.manual_seed(0)
    return methods.PiNDA(encoders.build("conv16", channels=1), losses.NTXent(0.3), **settings).train()


def small(**settings) -> training.Run:
    return runs.small(**{"method": "pinda"} | settings)


# ---- the step ------------------------------------------------------------------------------------------


def test_without_augmentations_the_views_are_the_picture_with_noise_and_the_picture():
    method, images = pinda(penalty=2.0), DIGITS.images[:8]
    x = images.float() / 255
    total, z1, z2 = step(method, images, seed=3)
    sample = method.noise(x, torch.Generator().manual_seed(3)).sample
    z = method.head(method.encoder(torch.cat([x + sample, x])))
    torch.testing.assert_close(torch.cat([z1, z2]), z.detach(), rtol=1e-4, atol=1e-4)
    norms = [math.sqrt(sum(v * v for v in one.flatten().tolist())) for one in sample]
    loss, term = by_loops(losses.NTXent(0.3), z1, z2), 2.0 * len(norms) / sum(norms)
    assert total.item() == pytest.approx(loss + term, rel=1e-4)
    assert method.reported["loss"].item() == pytest.approx(loss, rel=1e-4)
    assert method.reported["penalty_term"].item() == pytest.approx(term, rel=1e-4)
    assert method.reported["noise"].item() == pytest.approx(sample.pow(2).mean().sqrt().item(), rel=1e-5)


def seen_views(method, images, augment, seed=0):
    seen = {}
    method.encoder.register_forward_pre_hook(lambda m, given: seen.update(x=given[0].detach().clone()))
    step(method, images, augment, seed)
    return seen["x"].chunk(2)


def darker(images, generator):
    return STILL(images) * 0.5


def test_noise_goes_on_the_whole_picture_or_on_the_view_and_view_two_is_always_augmented():
    x = DIGITS.images[:16].float() / 255
    for on, base in (("picture", x), ("view", 0.5 * x)):
        method = pinda(on=on)
        first, second = seen_views(method, DIGITS.images[:16], darker)
        torch.testing.assert_close(second, 0.5 * x)
        sample = method.noise(base, torch.Generator().manual_seed(0)).sample
        torch.testing.assert_close(first, base + sample)


def test_share_is_the_share_of_pictures_that_meet_noise_and_the_others_have_two_plain_views():
    images = DIGITS.images[:1].repeat(400, 1, 1, 1)
    first, second = seen_views(pinda(share=0.3, start=0.5), images, darker)
    noisy = (first - second).abs().amax(dim=(1, 2, 3)) > 1e-3
    assert 0.3 - 4 * math.sqrt(0.21 / 400) < noisy.double().mean() < 0.3 + 4 * math.sqrt(0.21 / 400)
    torch.testing.assert_close(first[~noisy], second[~noisy])


def test_the_gradient_in_a_weight_of_the_generator_is_that_of_finite_differences():
    method = pinda(penalty=1.0).double().eval()
    x = DIGITS.images[:6].double() / 255

    def exact(weight_shift: float) -> torch.Tensor:  # the package embeds in float32: here in float64
        raw = method.noise.network(x) + weight_shift
        scale = nn.functional.softplus(raw + math.log(math.expm1(method.noise.start)))
        draw = torch.randn(x.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
        sample = draw.double() * scale
        z1, z2 = method.head(method.encoder(torch.cat([x + sample, x]))).chunk(2)
        return method.loss(z1, z2) + noise.penalty(sample)

    h = 1e-5
    with torch.no_grad():
        slope = (exact(h) - exact(-h)).item() / (2 * h)
    single = copy.deepcopy(method).float().eval()
    total, *_ = step(single, DIGITS.images[:6])
    total.backward()
    assert single.noise.network[-1].bias.grad.sum().item() == pytest.approx(slope, rel=2e-3, abs=1e-5)


def test_the_generator_has_a_rate_of_its_own_and_no_weight_decay():
    run = small(weight_decay=0.5, method_settings={"noise_rate": 0.3})
    own = set(map(id, run.method.noise.parameters()))
    found = [(own >= set(map(id, group["params"])), group) for group in run.optimiser.param_groups]
    assert [(of_noise, group["weight_decay"], group["factor"]) for of_noise, group in found] == [
        (False, 0.5, 1.0),
        (True, 0.0, 0.3),
    ]


# ---- with other methods --------------------------------------------------------------------------------


BASES = [name for name in methods.PiNDA.bases if name not in ("simcl", "clae")]


@pytest.mark.parametrize("base", BASES)
def test_every_methods_step_takes_the_noisy_view_and_hands_its_gradient_to_the_generator(base):
    run = small(method_settings={"base": base})
    before = [p.clone() for p in run.method.noise.parameters()]
    advance(run, 3)
    assert run.history["noise"].gt(0).all()
    gradient = sum(p.grad.abs().sum() for p in run.method.noise.parameters())
    assert gradient > 0
    assert any(not torch.equal(a, b) for a, b in zip(before, run.method.noise.parameters(), strict=True))
    without = small(method_settings={"base": base, "penalty": 0.0})
    without.step()  # also without a penalty: the gradient then comes through the loss alone
    assert sum(p.grad.abs().sum() for p in without.method.noise.parameters()) > 0


FIRST = ("simclr", "moco", "byol")  # `make test-all` has the others, too


@pytest.mark.parametrize(
    "base", [*FIRST, *(pytest.param(b, marks=pytest.mark.sweep) for b in BASES if b not in FIRST)]
)
def test_a_run_goes_on_bit_for_bit_after_saving_generator_and_all(base, tmp_path):
    settings = {"base": base, "network": "unet", "learned_mean": True, "share": 0.75, "penalty": 0.5}
    run = advance(small(method_settings=settings), 3)
    run.save(tmp_path / "run.pt")
    again = training.resume(tmp_path / "run.pt", data=DIGITS)
    assert again.method.settings() == run.method.settings()
    for one in (run, again):
        advance(one, 3)
    assert same(weights(run), weights(again)) and past(run).equals(past(again))


def test_a_run_without_a_loss_takes_the_bases_own_at_its_settings():
    for settings in ({}, {"version": 1}):
        alone = training.Run(method="moco", data=DIGITS, batch_size=32, steps=1, method_settings=settings)
        noisy = small(method_settings={"base": "moco", "base_settings": settings})
        assert noisy.loss.temperature == alone.loss.temperature
        assert type(noisy.loss) is type(alone.loss)
    byol = small(method_settings={"base": "byol"}).loss
    assert isinstance(byol, losses.Regression)


def test_the_base_is_never_pinda_itself_and_the_error_lists_what_there_is():
    with pytest.raises(ValueError, match="PiNDA: base is 'pinda', but must be one of simclr"):
        small(method_settings={"base": "pinda"})
    with pytest.raises(ValueError, match="pinda has no setting 'sigma'; it has base"):
        small(method_settings={"sigma": 1})


def test_views_of_another_size_than_the_picture_are_refused_where_the_noise_needs_the_picture():
    run = small(augmentation=views.Augmentation(size=6, grayscale=0.0))
    with pytest.raises(ValueError, match=r"images are \(32, 1, 8, 8\) and views \(32, 1, 6, 6\)"):
        run.step()
    settings = {"on": "view", "network": "conv"}
    advance(small(augmentation=views.Augmentation(size=6, grayscale=0.0), method_settings=settings), 1)


# ---- vectors -------------------------------------------------------------------------------------------


def test_on_vectors_encoder_and_generator_are_three_layers_and_there_is_no_penalty():
    run = advance(small(data=VECTORS), 3)
    assert isinstance(run.encoder, encoders.MLP) and run.method.network == "mlp" and run.method.penalty == 0
    assert run.embed(VECTORS).shape == (200, 256)
    assert type(run.augmentation) is views.Identity
    with pytest.raises(ValueError, match=r"embed: the vectors are \(4, 10\), but the run's have 64 numbers"):
        run.embed(torch.rand(4, 10))


# ---- baselines -----------------------------------------------------------------------------------------


def test_random_noise_is_pinda_with_nothing_to_learn():
    run = small(method_settings={"network": "fixed", "start": 0.3})
    assert not list(run.method.noise.parameters()) and run.method.penalty == 0
    advance(run, 2)
    assert run.history["noise"].tolist() == pytest.approx([0.3, 0.3], rel=0.05)

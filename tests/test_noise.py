"""The generator of learned noise: what it draws, what stays positive, and where its gradients go."""

import math

import pytest
import torch
from torch import nn

from clutils import encoders, noise

IMAGE_NETWORKS = ("conv", "unet", "resnet18")


def made(network="conv", channels=3, seed=0, **settings) -> noise.NoiseGenerator:
    torch.manual_seed(seed)
    return noise.NoiseGenerator(network, channels, **settings)


def pictures(n=2, size=16, channels=3, seed=0) -> torch.Tensor:
    return torch.rand(n, channels, size, size, generator=torch.Generator().manual_seed(seed))


def drawn(generator, x, seed=0) -> noise.Noise:
    return generator(x, torch.Generator().manual_seed(seed))


# ---- shapes and randomness -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "shape"),
    [
        *((network, (c, s, s)) for network in IMAGE_NETWORKS for c in (1, 3) for s in (16, 32, 33)),
        ("mlp", (64,)),
    ],
)
def test_sample_scale_and_mean_have_the_inputs_shape(network, shape):
    x, generator = torch.rand(2, *shape), made(network, shape[0], learned_mean=True)
    found = drawn(generator, x)
    assert found.sample.shape == found.scale.shape == found.mean.shape == x.shape
    assert found.scale.dtype == torch.float32 and (found.scale > 0).all()
    if network == "mlp":
        widths = [layer.out_features for layer in generator.network if isinstance(layer, nn.Linear)]
        assert widths == [1024, 1024, 128]  # three layers, 1024 wide; scale and mean


def test_uint8_pictures_are_read_as_zero_to_one():
    generator, x = made(), torch.randint(0, 256, (2, 3, 8, 8), dtype=torch.uint8)
    torch.testing.assert_close(drawn(generator, x).sample, drawn(generator, x.float() / 255).sample)


def test_the_same_seed_draws_the_same_noise_and_another_another():
    generator, x = made(), pictures()
    assert torch.equal(drawn(generator, x, 1).sample, drawn(generator, x, 1).sample)
    assert not torch.equal(drawn(generator, x, 1).sample, drawn(generator, x, 2).sample)
    torch.manual_seed(5)
    first = generator(x).sample
    torch.manual_seed(5)
    assert torch.equal(first, generator(x).sample)  # without a generator: the global stream


# ---- the distributions ---------------------------------------------------------------------------------


def test_gaussian_noise_is_mean_plus_scale_times_a_standard_normal():
    generator, x = made(learned_mean=True), pictures(3, 8)
    found = drawn(generator, x, 4)
    standard = torch.randn(x.shape, generator=torch.Generator().manual_seed(4))
    torch.testing.assert_close(found.sample, found.mean + found.scale * standard)


def test_uniform_noise_is_equation_25_and_never_leaves_its_bounds():
    generator, x = made(distribution="uniform", start=0.3), pictures(3, 8)
    found = drawn(generator, x, 4)
    u = found.scale * math.sqrt(3)
    standard = torch.rand(x.shape, generator=torch.Generator().manual_seed(4))
    torch.testing.assert_close(found.sample, (2 * standard - 1) * u)
    assert (found.sample.abs() <= u).all() and (found.sample.abs() > 0.95 * u).any()


@pytest.mark.parametrize("positive", noise.NoiseGenerator.ranges["positive"].choices)
def test_the_scale_follows_its_formula_and_starts_at_start(positive):
    generator, x = made(positive=positive, start=0.25, highest=0.7), pictures()
    raw = generator.network(encoders.as_input(x)).double()
    expected = {
        "softplus": torch.log1p(torch.exp(raw + math.log(math.exp(0.25) - 1))),
        "exp": 0.25 * torch.exp(raw),
        "bounded": 0.7 / (1 + torch.exp(-(raw + math.log(0.25 / (0.7 - 0.25))))),
        "abs": torch.where(raw > -0.25, raw + 0.25, -0.25 - raw),
    }[positive]
    torch.testing.assert_close(drawn(generator, x).scale.double(), expected, rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        for parameter in generator.network[-1].parameters():
            parameter.zero_()
        torch.testing.assert_close(drawn(generator, x).scale, torch.full_like(x, 0.25))
        generator.network[-1].bias.fill_(30.0)  # however far the network goes
        assert (drawn(generator, x).scale.max() <= 0.7 + 1e-6) == (positive == "bounded")


def test_with_an_rms_every_picture_gets_that_much_noise_and_only_the_pattern_is_learned():
    generator, x = made(rms=0.1, start=0.5), pictures(4)
    found = drawn(generator, x)
    torch.testing.assert_close(found.sample.pow(2).mean(dim=(1, 2, 3)).sqrt(), torch.full((4,), 0.1))
    torch.testing.assert_close(found.scale.pow(2).mean(dim=(1, 2, 3)).sqrt(), torch.full((4,), 0.1))
    free = drawn(made(start=0.5), x)
    ratio = found.scale / free.scale
    torch.testing.assert_close(ratio, ratio.mean(dim=(1, 2, 3), keepdim=True).expand_as(ratio))


def test_fixed_noise_has_one_scale_everywhere_and_nothing_to_learn():
    generator = made("fixed", start=0.3)
    assert not list(generator.parameters())
    for x in (pictures(), torch.rand(4, 3)):
        found = drawn(generator, x)
        assert (found.scale == 0.3).all() and (found.mean == 0).all()
        standard = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
        torch.testing.assert_close(found.sample, 0.3 * standard)


@pytest.mark.parametrize(("network", "cell"), [("unet", 4), ("resnet18", 8)])
def test_without_skips_a_map_is_as_coarse_as_the_smallest_size_of_the_way_down(network, cell):
    """Between the centres of its cells a bilinear map is straight, so it bends less than one with skips."""
    smooth = torch.rand(2, 3, 64 // cell, 64 // cell, generator=torch.Generator().manual_seed(0))
    bent = {}
    for skips in (True, False):
        generator = made(network, skips=skips).eval()
        scale = drawn(generator, smooth.repeat_interleave(cell, 2).repeat_interleave(cell, 3)).scale.detach()
        second = scale[..., 2:] - 2 * scale[..., 1:-1] + scale[..., :-2]  # of a bilinear map: 0 within a cell
        bent[skips] = second.abs().mean() / scale.std()
        assert scale.shape == (2, 3, 64, 64)
    assert bent[False] < bent[True] / 2


# ---- gradients and the penalty -------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"distribution": "uniform"}, {"rms": 0.2}, {"positive": "exp"}])
@pytest.mark.parametrize("network", [*IMAGE_NETWORKS, "mlp"])
def test_every_weight_of_every_network_gets_a_gradient(network, settings):
    x = torch.rand(4, 3) if network == "mlp" else pictures(2)
    generator = made(network, 3, **settings)
    drawn(generator, x).sample.square().mul(torch.rand(x.shape)).sum().backward()
    without = [n for n, p in generator.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    # of rescaled noise a factor common to all entries, such as a bias, may drop out
    assert not [n for n in without if "rms" not in settings]


def test_the_penalty_is_one_over_the_mean_euclidean_norm():
    sample = torch.randn(5, 3, 4, 4, dtype=torch.float64, requires_grad=True)
    norms = [math.sqrt(sum(v * v for v in picture.flatten().tolist())) for picture in sample]
    found = noise.penalty(sample)
    assert found.item() == pytest.approx(5 / sum(norms), rel=1e-12)
    found.backward()
    assert ((sample.grad * sample).sum(dim=(1, 2, 3)) < 0).all()  # every image's noise is pushed outward


@pytest.mark.parametrize("network", IMAGE_NETWORKS)
@pytest.mark.parametrize("padding", ["reflect", "zeros"])
def test_zero_padding_lets_the_border_be_told_from_the_middle_and_reflection_does_not(network, padding):
    generator = made(network, padding=padding).eval()
    convolutions = (m for m in generator.modules() if isinstance(m, nn.Conv2d) and m.padding != (0, 0))
    assert {convolution.padding_mode for convolution in convolutions} == {padding}
    scale = drawn(generator, torch.full((1, 3, 16, 16), 0.5)).scale[0, 0]
    assert ((scale.max() - scale.min()) / scale.mean() < 1e-3) == (padding == "reflect")


# ---- bad input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"network": "vit"}, "network is 'vit', but must be one of conv, unet"),
        ({"skips": False}, "skips is False, but 'conv' has none; unet, resnet18 have"),
        ({"start": 0.0}, "start is 0.0, but must be a number above 0"),
        ({"positive": "bounded", "start": 2.0}, "start is 2.0, but must be below highest, 1.0"),
        ({"distribution": "uniform", "learned_mean": True}, "the uniform distribution has none"),
        ({"network": "fixed", "learned_mean": True}, "a fixed noise has none"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(settings, said):
    with pytest.raises(ValueError, match=said):
        noise.NoiseGenerator(**settings)


@pytest.mark.parametrize(
    ("name", "value"), [("distribution", "laplace"), ("positive", "relu"), ("rms", -1.0)]
)
def test_a_setting_that_is_changed_to_what_cannot_be_is_refused_at_the_next_call(name, value):
    generator = made()
    setattr(generator, name, value)
    with pytest.raises(ValueError, match=f"noise: {name} is {value!r}, but must be"):
        generator(torch.rand(2, 3, 8, 8))


def test_images_of_whole_numbers_are_refused_unless_they_are_uint8():
    with pytest.raises(ValueError, match=r"noise: x is torch\.int64"):
        made()(torch.zeros(2, 3, 8, 8, dtype=torch.int64))


@pytest.mark.parametrize("x", [torch.rand(2, 1, 8, 8), torch.rand(2, 3), torch.rand(3, 8, 8), [1, 2]])
def test_an_input_of_another_shape_is_refused_and_quoted(x):
    what = str(tuple(x.shape)) if isinstance(x, torch.Tensor) else "list"
    with pytest.raises(ValueError, match=r"noise: x is .*takes") as caught:
        made()(x)
    assert what in str(caught.value)


@pytest.mark.parametrize("network", IMAGE_NETWORKS)
def test_a_picture_too_small_for_the_network_is_refused_and_the_smallest_allowed_is_not(network):
    smallest = noise.SMALLEST[network]
    drawn(made(network), pictures(2, smallest))
    with pytest.raises(ValueError, match=f"at least {smallest} x {smallest} pixels"):
        drawn(made(network), pictures(2, smallest - 1))

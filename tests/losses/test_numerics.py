"""Nothing overflows: values and gradients are finite at the ends of all settings, in every type of number."""

import itertools
import math

import pytest
import torch

from clutils import anatomy, losses

LOSSES = [entry.cls for entry in losses.catalogue().values()]
OF_SIMILARITIES = [cls for cls in LOSSES if cls.level == "similarity"]
ON_VECTORS = [cls for cls in LOSSES if cls not in OF_SIMILARITIES]
ON_VECTORS += [losses.SSCL, losses.CLIP, losses.SogCLR, losses.ISogCLR]  # mixes, a learned scale, a state
TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
FEW = {  # of a batch of six
    **{"hardest": (1, 4), "synthetic": (0, 5), "query_mixed": (0, 4)},
    **{"directions": (1, 40), "knots": (2, 40)},
}


def corners(cls, without=()):
    """Every loss of this class at the ends of its settings, and at what stands beside their ranges."""
    ends = {name: (at.lowest, at.highest, *at.also) for name, at in cls.ranges.items() if name not in without}
    ends |= {name: (True, False) for name in ends if cls.ranges[name].switch}
    ends |= {name: (cls.ranges[name].lowest, 0.999999) for name in ends if cls.ranges[name].open_above}
    ends |= {name: few for name, few in FEW.items() if name in ends}
    for chosen in itertools.product(*ends.values()):
        try:
            yield cls(**dict(zip(ends, chosen, strict=True)))
        except ValueError:  # two ends that rule each other out
            continue


def finite(*tensors):
    return all(bool(each.isfinite().all()) for each in tensors)


@pytest.mark.parametrize("cls", OF_SIMILARITIES)
def test_values_and_gradients_are_finite_at_the_corners_of_the_settings(cls):
    """RINCE's gradient was infinite at a value of 7e20: of one positive at 0 and eight random negatives."""
    s = 2 * torch.rand(6, 67, generator=torch.Generator().manual_seed(0)) - 1
    beside_zero = torch.cat([torch.zeros(6, 3), s[:, 3:]], dim=1)
    worst = torch.cat([-torch.ones(6, 3), torch.ones(6, 64)], dim=1)
    tables = [s, beside_zero, s.sign(), worst, -worst, torch.ones_like(s), torch.zeros_like(s)]
    tables += [(2 * s).round() / 2, s.sign() * (1 - 1e-6 * s.abs()), 1e-30 * s]
    tables += [1.0078125 * s.sign()]  # as far beyond 1 as rounding carries a bfloat16
    mask = torch.ones(6, 12, dtype=torch.bool)
    mask[0, 1:] = mask[2, :-1] = False
    counts = [(1, 8, None, torch.float32), (1, 64, None, torch.float32)]
    counts += [(3, 12, mask, dtype) for dtype in TYPES]
    for loss, table, (P, K, kept, dtype) in itertools.product(
        corners(cls, without=cls.in_batches), tables, counts
    ):
        positives, negatives = (t.to(dtype, copy=True) for t in (table[:, 3 - P : 3], table[:, 3 : 3 + K]))
        values = loss.per_anchor(positives.requires_grad_(), negatives.requires_grad_(), None, kept)
        assert values.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        found = torch.autograd.grad(values.sum(), (positives, negatives))
        # gradients of float16 overflow by their type: 1/τ beyond 65,504
        assert finite(values) and (finite(*found) or dtype == torch.float16), (loss, K, dtype)


def gate(temperature):
    """W of an easy anchor: its positive at 1, ten negatives at -1."""
    return 1 / (1 + math.exp(2 / temperature) / 10)


EXACT = [  # a loss, its positive, ten negatives opposite to it, and value, pull and push there
    *((losses.MACL(t, alpha=0.0), 1, 1.0, 1 / t, 1 / t) for t in (0.01, 0.02, 0.05, 0.1)),
    *(
        (losses.DualTemperature(t, 10), 1, gate(10 * t), gate(10 * t) / t, gate(10 * t) / t)
        for t in (0.01, 0.02, 0.05)
    ),
    # no more is left than the clamp, log(1 + K e^(-2/τ)); and a cold hard case, (s- - s+)/τ + log(K/(1 - τ+))
    (losses.Debiased(0.05, 0.1), 1, gate(0.05), gate(0.05) / 0.05, 0.0),
    (losses.Debiased(1e-3, 0.1), -1, 2000 + math.log(10 / 0.9), 1000.0, 1000.0),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("loss", "positive", "value", "pull", "push"), EXACT, ids=repr)
def test_extremes_have_the_right_value_and_forces_where_the_published_form_is_nan(
    loss, positive, value, pull, push, dtype
):
    s, n = torch.full((1, 1), positive, dtype=dtype), torch.full((1, 10), -positive, dtype=dtype)
    if loss.temperature <= 0.05 and dtype == torch.float32 and not isinstance(loss, losses.Debiased):
        p = torch.softmax(torch.cat([s, n], dim=1) / loss.temperature, dim=1)[:, 0]
        assert torch.isnan(1 / (1 - p) * -torch.log(p)).all(), "the trap is gone from this arithmetic"
    assert loss.per_anchor(s, n).item() == pytest.approx(value, rel=1e-6, abs=0)
    cold = loss.temperature < 0.01  # the softmax of 1,000 in float32
    forces = [force.sum().item() for force in anatomy.forces(loss, s, n)]
    assert forces == pytest.approx([pull, push], rel=5e-5 if cold else 1e-5, abs=0)


@pytest.mark.parametrize("cls", ON_VECTORS)
def test_a_batch_has_finite_values_and_gradients_at_the_corners_of_the_settings(cls):
    first, second = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0))
    ramp = torch.arange(6)[:, None] + 0.5  # no feature is constant
    signs, alike = (first.sign(), second.sign()), first[:1].expand(6, 4)
    if cls is losses.BarlowTwins:
        signs, alike = (first.sign() + 3 * ramp, second.sign() - 3 * ramp), ramp.expand(6, 4)
    batches = (first, second), signs, (first, first), (first, -first), (alike, alike)
    for loss in corners(cls):
        given = {}
        if "index" in loss.accepts:  # the same samples in every batch, so that their averages move
            loss.allocate(6)
            given["index"] = torch.arange(6)
        for views, dtype in itertools.product(batches, TYPES):
            z1, z2 = (z.to(dtype, copy=True).requires_grad_() for z in views)
            value = loss(z1, z2, **given)
            assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
            found = torch.autograd.grad(value, (z1, z2))
            assert finite(value) and (finite(*found) or dtype == torch.float16), (loss, dtype)


EVERY = [
    (losses.MoCHi, {"hardest": 4, "synthetic": 5, "query_mixed": 4}),
    (losses.SSCL, {"hardest": 4, "synthetic": 5}),
    *((cls, {}) for cls in LOSSES if cls not in (losses.MoCHi, losses.SSCL)),
]


def step(cls, chosen, z1, z2, **options):
    """Value and gradients of a batch, each call with the same draws and a state that has seen nothing."""
    loss, given = cls(**chosen, **options), {}
    if hasattr(loss, "generator"):
        loss.generator = torch.Generator().manual_seed(0)
    if "index" in loss.accepts:
        loss.allocate(len(z1))
        given["index"] = torch.arange(len(z1))
    z1, z2 = (z.detach().clone().requires_grad_() for z in (z1, z2))
    value = loss(z1, z2, **given)
    value.backward()
    return value, z1.grad, z2.grad


@pytest.mark.parametrize(("cls", "chosen"), EVERY)
@pytest.mark.parametrize("batch", [16, 400])  # in one table, and in blocks
def test_forward_and_backward_within_autocast_are_those_outside_it(cls, chosen, batch):
    z1, z2 = torch.randn(2, batch, 8, generator=torch.Generator().manual_seed(0))
    outside = step(cls, chosen, z1, z2)
    with torch.autocast("cpu", torch.bfloat16):
        within = step(cls, chosen, z1, z2)
    assert torch.equal(within[0], outside[0])
    for a, b in zip(within[1:], outside[1:], strict=True):  # autocast multiplies matrices in bfloat16
        assert a.dtype == torch.float32
        assert float((a - b).abs().max()) <= 0.02 * float(b.abs().max())


@pytest.mark.parametrize(("cls", "chosen"), EVERY)
def test_vectors_of_any_finite_length_give_numbers_or_are_refused(cls, chosen):
    z1, z2 = torch.randn(2, 12, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    wide = (torch.float64, torch.float32, torch.bfloat16)
    for scale, dtype in itertools.product((1e-29, 1e-20, 1e5, 1e20, 1e37), wide):
        views = (scale * z1).to(dtype), (scale * z2).to(dtype)
        if not cls.normalised and scale > 1e5:
            with pytest.raises(
                ValueError, match=rf"^{cls.__name__}: z1 \(12, 8\): row 0 has an entry of .*e\+"
            ):
                step(cls, chosen, *views)
            step(cls, chosen, *views, check_inputs=False)
            continue
        for found in step(cls, chosen, *views):
            assert torch.isfinite(found).all(), (scale, dtype)


@pytest.mark.parametrize("cls", [cls for cls in LOSSES if not cls.normalised])
@pytest.mark.parametrize("each", [False, pytest.param(True, marks=pytest.mark.sweep)])  # all at once, or each
def test_the_longest_vectors_that_are_let_in_are_finite_at_the_ends_of_the_settings(each, cls):
    z1, z2 = 1e6 * torch.randn(2, 12, 4096, generator=torch.Generator().manual_seed(0)).clamp(-1, 1)
    ends = {name: (at.lowest, at.highest) for name, at in cls.ranges.items() if not (at.whole or at.switch)}
    lowest, highest = ({name: both[k] for name, both in ends.items()} for k in (0, 1))
    alone = [{name: end} for name, both in ends.items() for end in both]
    for chosen in alone if each else ({}, lowest, highest):
        for found in step(cls, chosen, z1, z2):
            assert torch.isfinite(found).all(), chosen

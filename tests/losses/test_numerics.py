"""Nothing overflows: values and gradients are finite for every input and setting in range.

An input is one batch of similarities, four anchors, with one choice of settings and of type. Hypothesis draws
the settings, and for each choice there is an input of every kind in every type, since drawing costs more than
computing: 25 choices of 5 kinds in 4 types a loss; and for the losses that need vectors 10 choices of 4 kinds
of batches in 4 types.
"""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clutils import losses

INPUTS = 200  # of each loss, at least
KINDS = ("uniform", "extremes", "a few values", "near the ends", "tiny")
LOSSES = [entry.cls for entry in losses.catalogue().values()]
OF_SIMILARITIES = [cls for cls in LOSSES if cls.level == "similarity"]
ON_VECTORS = [cls for cls in LOSSES if cls not in OF_SIMILARITIES]
ON_VECTORS += [losses.SSCL, losses.CLIP, losses.SogCLR, losses.ISogCLR]  # mixes, a learned scale, a state
POINTS = (0.0, 1e-300, 1e-6, 1e-3, 0.01, 0.05, 0.1, 1 / 3, 0.5, 0.7, 1.0, 3.0, 5.0, 100.0, 1e3, 0.999999)
FEW = {  # of a batch of three
    **{"hardest": st.integers(1, 4), "synthetic": st.just(5), "query_mixed": st.just(4)},
    **{"directions": st.integers(1, 40), "knots": st.integers(2, 40)},
}


def drawn_from(declared):
    """A setting in its declared range, its ends more often than by chance."""
    if declared.switch:
        return st.booleans()
    low, high = declared.lowest, declared.highest
    if declared.open_above:
        high = math.nextafter(high, low)
    points = [low, high, *declared.also, *(point for point in POINTS if low <= point <= high)]
    return st.one_of(st.sampled_from(points), st.floats(low, high))


def settings_of(cls):
    chosen = {name: FEW[name] if name in FEW else drawn_from(at) for name, at in cls.ranges.items()}
    if cls is losses.Triplet:  # which refuses both
        chosen["semi_hard"] = st.just(False)
    if cls is losses.ISogCLR:  # whose bounds stand in order
        chosen["highest"] = st.just(cls.ranges["highest"].highest)
    return st.fixed_dictionaries(chosen)


TYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def drawn(kind, shape, seed):
    """Similarities in [-1, 1]."""
    draw = torch.Generator().manual_seed(seed)
    s = 2 * torch.rand(shape, generator=draw, dtype=torch.float64) - 1
    return {
        "uniform": s,
        "extremes": s.sign(),
        "a few values": (2 * s).round() / 2,
        "near the ends": s.sign() * (1 - 1e-6 * s.abs()),
        "tiny": 1e-30 * s,
    }[kind]


@pytest.mark.parametrize("cls", OF_SIMILARITIES)
def test_values_and_gradients_are_finite_for_every_similarity_and_setting_in_range(cls):
    count = 0

    @settings(max_examples=10, deadline=None, derandomize=True)
    @given(
        seed=st.integers(0, 10**6),
        P=st.integers(1, 3),
        K=st.integers(1, 12),
        masked=st.booleans(),
        chosen=settings_of(cls),
    )
    def check(seed, P, K, masked, chosen):
        nonlocal count
        loss = cls(**chosen)
        mask = None
        if masked:
            mask = torch.ones(4, K, dtype=torch.bool)
            mask[0, 1:] = mask[2, :-1] = False
        for kind, dtype in itertools.product(KINDS, TYPES):
            count += 1
            s = drawn(kind, (4, P + K), seed).to(dtype)
            positives, negatives = s[:, :P].requires_grad_(), s[:, P:].requires_grad_()
            values = loss.per_anchor(positives, negatives, None, mask)
            assert values.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
            assert torch.isfinite(values).all(), (kind, dtype)
            if dtype == torch.float16:
                continue  # its gradients overflow by their type: 1/τ beyond 65,504
            for gradient in torch.autograd.grad(values.sum(), (positives, negatives)):
                assert torch.isfinite(gradient).all(), (kind, dtype)

    check()
    assert count >= INPUTS, f"only {count} inputs were drawn"


def corners(cls):
    """Every loss of this class at the ends of its settings, and at what stands beside their ranges."""
    ends = {name: (0, 1) if at.whole else (at.lowest, at.highest) for name, at in cls.ranges.items()}
    ends |= {name: (True, False) for name, at in cls.ranges.items() if at.switch}
    ends |= {name: (at.lowest, 0.999999) for name, at in cls.ranges.items() if at.open_above}
    for chosen in itertools.product(*ends.values()):
        try:
            yield cls(**dict(zip(ends, chosen, strict=True)))
        except ValueError:  # two ends that rule each other out
            continue


@pytest.mark.parametrize("cls", OF_SIMILARITIES)
def test_gradients_in_float32_are_finite_at_the_corners_of_the_settings(cls):
    """RINCE's was infinite at a value of 7e20: of one positive at 0 and eight random negatives."""
    s = 2 * torch.rand(6, 65, generator=torch.Generator().manual_seed(0)) - 1
    beside_zero = torch.cat([torch.zeros(6, 1), s[:, 1:]], dim=1)
    worst = torch.cat([-torch.ones(6, 1), torch.ones(6, 64)], dim=1)
    tables = s, beside_zero, s.sign(), worst, -worst, torch.ones_like(s), torch.zeros_like(s)
    at = list(corners(cls))
    assert len(at) >= 2 ** min(1, len(cls.ranges))
    for loss, table, K in itertools.product(at, tables, (8, 64)):
        positives, negatives = table[:, :1].clone(), table[:, 1 : K + 1].clone()
        values = loss.per_anchor(positives.requires_grad_(), negatives.requires_grad_())
        found = values, *torch.autograd.grad(values.sum(), (positives, negatives))
        assert all(bool(each.isfinite().all()) for each in found), (loss, K)


@pytest.mark.parametrize("cls", [cls for cls in ON_VECTORS if "index" not in cls.accepts])
def test_gradients_of_a_batch_in_float32_are_finite_at_the_corners_of_the_settings(cls):
    z1, z2 = torch.randn(2, 12, 8, generator=torch.Generator().manual_seed(0))
    for loss in corners(cls):
        for views in ((z1, z2), (z1, z1), (z1, -z1)):
            leaves = [z.clone().requires_grad_() for z in views]
            value = loss(*leaves)
            found = value, *torch.autograd.grad(value, leaves)
            assert all(bool(each.isfinite().all()) for each in found), loss


@pytest.mark.parametrize("cls", ON_VECTORS)
def test_losses_on_vectors_are_finite_for_every_batch_and_setting_in_range(cls):
    @settings(max_examples=10, deadline=None, derandomize=True)
    @given(
        seed=st.integers(0, 10**6),
        B=st.integers(3, 6),
        D=st.integers(2, 5),
        chosen=settings_of(cls),
    )
    def check(seed, B, D, chosen):
        draw = torch.Generator().manual_seed(seed)
        loss = cls(**chosen)
        if hasattr(loss, "generator"):
            loss.generator = draw
        given = {}
        if "index" in loss.accepts:  # the same samples in every batch, so that their averages move
            loss.allocate(B)
            given["index"] = torch.arange(B)
        first, second = torch.randn(2, B, D, generator=draw)
        ramp = torch.arange(B)[:, None] + 0.5  # no feature is constant
        batches = {
            "drawn": (first, second),
            "signs": (first.sign(), second.sign()),  # many ties, many opposite pairs
            "views alike": (first, first),
            "all alike": (first[:1].expand(B, D), first[:1].expand(B, D)),
        }
        if cls is losses.BarlowTwins:
            batches["signs"] = (first.sign() + 3 * ramp, second.sign() - 3 * ramp)
            batches["all alike"] = (ramp.expand(B, D), ramp.expand(B, D))  # every feature the same
        for (kind, views), dtype in itertools.product(batches.items(), TYPES):
            z1, z2 = (z.to(dtype).detach().clone().requires_grad_() for z in views)
            value = loss(z1, z2, **given)
            assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
            assert torch.isfinite(value), (kind, dtype)
            value.backward()
            if dtype != torch.float16:
                assert torch.isfinite(z1.grad).all() and torch.isfinite(z2.grad).all(), (kind, dtype)

    check()


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

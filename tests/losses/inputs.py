"""Inputs of the losses' tests, and comparisons."""

import pytest
import torch

from clutils import losses

CHOSEN = [
    *(losses.NTXent(0.3), losses.Decoupled(0.3), losses.FlatNCE(0.3), losses.SupCon(0.3), losses.CLIP(0.3)),
    *(losses.DualTemperature(0.3, 4.0), losses.DualTemperature(0.5, 0.5)),
    *(losses.MACL(0.3, 0.7, 0.2), losses.MACL(0.5, 0.0, 0.0)),
    *(losses.Debiased(0.3, 0.1), losses.Debiased(0.5, 0.4)),
    *(losses.HardNegative(0.3, 0.1, 2.0), losses.HardNegative(0.5, 0.4, 0.5)),
    *(losses.AttentionNCE(0.3, 0.5, 2.0), losses.AttentionNCE(0.3, 0.5, 2.0, detach_attention=False)),
    *(losses.PairMargin(1.3), losses.Triplet(0.4), losses.Triplet(0.4, batch_hard=True)),
    *(losses.BarlowTwins(0.1), losses.BarlowTwins(0.0), losses.Triplet(0.4, semi_hard=True)),
    *(losses.SigLIP(0.3, -2.0), losses.SigLIP(0.5, 1.0)),
    *(losses.ADNCE(0.3, 0.2, 0.4), losses.ADNCE(0.5, -0.5, 3)),
    *(losses.RINCE(0.3, 0.5, 0.1), losses.RINCE(0.5, 1.0, 0.9), losses.RINCE(0.5, 0.01, 0.01)),
    *(losses.AlphaCL(0.3, 1.0), losses.AlphaCL(0.5, 3.0), losses.Robust(0.5), losses.Robust(1.5)),
    *(losses.WeightedDecoupled(0.3, 0.5), losses.WeightedDecoupled(0.3, 5.0)),
    *(losses.SogCLR(0.3), losses.ISogCLR(0.4, temperature=0.3), losses.NNCLR(0.3), losses.CLIP(0.07)),
    *(losses.VICReg(), losses.VICReg(2.0, 30.0, 4.0, printed=True)),
]


def turned(cls):
    """A loss with each dial a quarter of its way from the default: one that ignores a setting differs."""
    given = {}
    for name, own in cls.ranges.items():
        if own.dial and isinstance(default := cls.defaults()[name], float):
            low, high = own.dial[:2]
            given[name] = default + 0.25 * ((high if high > default else low) - default)
    return cls(**given)


# with these, and so turned every loss that draws nothing and that has none of them
SETTINGS = CHOSEN + [
    turned(entry.cls)
    for entry in losses.catalogue().values()
    if entry.cls not in {type(loss) for loss in CHOSEN} and not hasattr(entry.cls(), "generator")
]


def one_each(cases):
    """Parameters of a test: one setting of each loss, and of each of its switches; the sweep has all."""
    seen, parameters = set(), []
    for loss in cases:
        switches = [value for value in vars(loss).values() if isinstance(value, bool)]
        kind = type(loss), *switches
        parameters.append(pytest.param(loss, id=repr(loss), marks=pytest.mark.sweep if kind in seen else ()))
        seen.add(kind)
    return parameters


def similarities(anchors, positives, negatives, seed=0, dtype=torch.float64):
    """Uniform in [-1, 1]: (anchors, positives), (anchors, negatives)."""
    draw = torch.Generator().manual_seed(seed)
    s = 2 * torch.rand(anchors, positives + negatives, generator=draw, dtype=dtype) - 1
    return s[:, :positives], s[:, positives:]


def embeddings(batch, dimension, seed=0, dtype=torch.float64):
    """Two views of nothing, (batch, dimension) each."""
    draw = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(batch, dimension, generator=draw, dtype=dtype) for _ in range(2))


def masks(*tables, seed=1):
    """Half of each table, the first column always."""
    draw = torch.Generator().manual_seed(seed)
    kept = [torch.rand(table.shape, generator=draw) < 0.5 for table in tables]
    for mask in kept:
        mask[:, 0] = True
    return kept


def next_draws(loss, anchors):
    """What a loss draws for so many anchors in its next call, in float64."""
    loss.generator = torch.Generator().manual_seed(0)
    drawn = loss.draw(anchors, torch.zeros(1, dtype=torch.float64))
    loss.generator.manual_seed(0)
    return drawn


def assert_same_gradients(value, expected, inputs):
    for a, b in zip(*(torch.autograd.grad(v.sum(), inputs) for v in (value, expected)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-12)


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-14)


def fails(call, *quoted):
    with pytest.raises(ValueError) as caught:
        call()
    for text in quoted:
        assert str(text) in str(caught.value), str(caught.value)

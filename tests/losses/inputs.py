"""What the losses' tests are fed with, and how they compare."""

import pytest
import torch


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


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-14)


def fails(call, *quoted):
    with pytest.raises(ValueError) as caught:
        call()
    for text in quoted:
        assert str(text) in str(caught.value), str(caught.value)

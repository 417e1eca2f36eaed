"""Fixtures of the losses' tests."""

import pytest
import torch

from clutils.losses import mixing


@pytest.fixture
def drawn(monkeypatch):
    """What was drawn, in order: (columns of negatives, coefficients), of batches in one block."""
    kept, draw, parents = [], mixing.draw, mixing.parents

    def record(*arguments):
        kept.append(draw(*arguments))
        return kept[-1]

    def named(columns, ranks):
        found = parents(columns, ranks)
        kept[:] = [(found, share) if torch.equal(which, ranks) else (which, share) for which, share in kept]
        return found

    monkeypatch.setattr(mixing, "draw", record)
    monkeypatch.setattr(mixing, "parents", named)
    return kept

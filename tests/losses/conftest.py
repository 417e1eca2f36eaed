"""Fixtures of the losses' tests."""

import pytest

from clutils.losses import mixing


@pytest.fixture
def drawn(monkeypatch):
    """Draws, in order: (columns of what was chosen from, coefficients), of batches in one block."""
    kept, draw, hardest = [], mixing.draw, mixing.hardest

    def record(*arguments):
        kept.append(draw(*arguments))
        return kept[-1]

    def named(*arguments):
        columns = hardest(*arguments)
        kept[:] = [(columns.gather(1, ranks), share) for ranks, share in kept]
        return columns

    monkeypatch.setattr(mixing, "draw", record)
    monkeypatch.setattr(mixing, "hardest", named)
    return kept

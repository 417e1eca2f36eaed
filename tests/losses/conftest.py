"""Fixtures of the losses' tests."""

import pytest

from clutils.losses import mixing


@pytest.fixture
def drawn(monkeypatch):
    """What `mixing.draw` gave, in order."""
    kept, draw = [], mixing.draw

    def record(*arguments):
        kept.append(draw(*arguments))
        return kept[-1]

    monkeypatch.setattr(mixing, "draw", record)
    return kept

"""What tests of figures and panels share."""

import pytest
from matplotlib.layout_engine import ConstrainedLayoutEngine


@pytest.fixture
def not_laid_out(monkeypatch):
    """Axes stay where they are: to lay them out is half of the time in which a figure is drawn."""
    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lambda self, figure: {})

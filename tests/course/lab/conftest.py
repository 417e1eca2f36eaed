"""Fixtures of the lab's tests."""

import pytest

from clutils.course.lab import panel as module
from clutils.course.live import LiveFigure


@pytest.fixture(autouse=True)
def settings(monkeypatch, tmp_path):
    """Whole runs, in a folder of their own; and none goes on after its test."""
    monkeypatch.delenv("CLUTILS_FAST", raising=False)
    monkeypatch.chdir(tmp_path)
    yield
    for _, panel in module._panels:
        if panel() is not None:
            panel().stop()
    module._panels.clear()


@pytest.fixture
def undrawn(request, monkeypatch):
    """A panel draws no image, and measures no untrained encoder before a start: most of a test's time.

    A test that looks at one of these asks for `drawn` or `untrained`.
    """
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(LiveFigure, "draw", lambda self: None)
    if "untrained" not in request.fixturenames:
        monkeypatch.setattr(module.Lab, "_untrained", lambda self: None)


@pytest.fixture
def drawn():
    """The panel draws its image as ever."""


@pytest.fixture
def untrained():
    """The panel opens with the untrained encoder's map as ever."""

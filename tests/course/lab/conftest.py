"""Fixtures of the lab's tests."""

import pytest

from clutils.course.lab import panel as module


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

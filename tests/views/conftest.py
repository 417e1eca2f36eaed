"""Fixtures of the views' tests."""

import pytest

from clutils import views


@pytest.fixture(params=["compiled", "batch formulas"])
def way(request, monkeypatch) -> str:
    """Both ways to a view on a CPU: without the first `Augmentation` takes the second, as on a GPU."""
    if request.param == "batch formulas":
        monkeypatch.setattr(views, "_compiled", lambda: None)
    return request.param

"""The course's style: roles, losses and series are distinguished without colour."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D

from clutils import losses
from clutils.figures import style


def test_roles_are_told_apart_in_grey_and_by_marker():
    def grey(color):
        return float(np.dot(to_rgb(color), (0.299, 0.587, 0.114)))

    roles = [style.role(name) for name in ("anchor", "positive", "negative")]
    greys = sorted(grey(look["color"]) for look in roles)
    assert min(np.diff(greys)) > 0.08
    assert len({look["marker"] for look in roles}) == 3


def test_losses_keep_their_looks_and_none_shares_another_ones(monkeypatch):
    # of the catalogue, and of the hundred after it and two of a reader's own
    everyone = [*losses.catalogue(), *(f"New{k}" for k in range(100))]
    monkeypatch.setattr(losses, "catalogue", lambda: dict.fromkeys(everyone))
    for key in ("color", "linestyle", "marker"):
        assert len({str(style.loss(name)[key]) for name in everyone}) == len(everyone), key
    own = [style.loss(name) for name in ("MyLoss", "MyOther")]
    assert own[0] == style.loss("MyLoss") and all(own[0][key] != own[1][key] for key in own[0])
    for look in own:
        Line2D([0, 1], [0, 1], **look)


@pytest.mark.parametrize("count", [1, 2, 6])
def test_a_series_is_known_by_colour_line_and_marker(count):
    for ordered in (True, False):
        looks = style.series(count, ordered)
        for key in ("color", "linestyle", "marker"):
            assert len({str(look[key]) for look in looks}) == count


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: style.role("query"), "no look for the role 'query'; there are anchor, positive, negative"),
        (lambda: style.series(0), "at least one series, got 0"),
    ],
)
def test_a_look_that_there_is_not_is_quoted(call, message):
    with pytest.raises(ValueError, match=message):
        call()

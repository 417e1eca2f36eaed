"""The course's style: roles, losses and series are distinguished without colour."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.text import Text

from clutils import figures, losses
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
    looks = style.series(count, ordered=False)
    for key in ("color", "linestyle", "marker"):
        assert len({str(look[key]) for look in looks}) == count


def test_steps_of_one_quantity_are_one_colours_shades_from_light_to_dark():
    looks = style.series(5)
    grey = [sum(to_rgb(look["color"])) for look in looks]
    assert all(a - b > 0.2 for a, b in pairwise(grey))
    assert all(to_rgb(look["color"])[2] == max(to_rgb(look["color"])) for look in looks), "not all are blue"


def test_a_temperature_has_one_colour_from_cold_blue_to_hot_orange():
    colours = [to_rgb(style.temperature(tau)) for tau in (0.02, 0.1, 0.5, 2.0)]
    assert all(a[0] < b[0] and a[2] > b[2] for a, b in pairwise(colours)), "redder and less blue, the hotter"
    assert (style.temperature(0.02), style.temperature(2.0)) == (style.BLUE.lower(), style.VERMILLION.lower())


def lines(ends, labels):
    """Lines from 0 to these heights, with their names."""
    _, ax = figures.new(5, 3)
    for end, label in zip(ends, labels, strict=True):
        ax.plot([0, 1], [0, end], label=label)
    ax.set_ylim(0, 1)
    style.name_lines(ax)
    return ax


def test_names_stand_where_their_lines_end_and_do_not_overlap():
    ax = lines([0.2, 0.9, 0.21], ["low", "high", "near\nlow"])
    ax.figure.canvas.draw()
    assert ax.get_legend() is None and [text.get_text() for text in ax.texts] == ["low", "high", "near\nlow"]
    boxes = [Text.get_window_extent(text) for text in ax.texts]  # without the leaders
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    assert all(box.x0 > ax.bbox.x1 - 0.06 * ax.bbox.width for box in boxes)
    middle = {text.get_text(): (box.y0 + box.y1) / 2 for text, box in zip(ax.texts, boxes, strict=True)}
    assert middle["high"] == pytest.approx(ax.transData.transform((1, 0.9))[1], abs=3)
    assert middle["low"] < middle["near\nlow"] < middle["high"]
    style.name_lines(ax)
    assert len(ax.texts) == 3, "the names were written twice"


def test_a_leader_ends_before_the_names_and_crosses_none():
    ax = lines([0.5, 0.505, 0.51, 0.9], [f"a name that is long, {k}" for k in range(4)])
    ax.figure.canvas.draw()
    names = min(Text.get_window_extent(text).x0 for text in ax.texts)
    leaders = [text.arrow_patch.get_window_extent() for text in ax.texts if text.arrow_patch is not None]
    assert len(leaders) >= 2 and all(leader.x1 < names + 1 for leader in leaders)


@pytest.mark.parametrize("ends", [[0.5, 0.5, 0.501], [0.9, *[0.1 + 0.001 * k for k in range(8)]]])
def test_lines_that_end_together_get_a_legend(ends):
    ax = lines(ends, [f"line {k}" for k in range(len(ends))])
    assert not ax.texts and len(ax.get_legend().get_texts()) == len(ends)


@pytest.mark.parametrize("color", [style.YELLOW, style.SKY, style.BLACK, style.series(5)[0]["color"]])
def test_letters_on_white_are_dark_enough_to_read(color):
    rgb = to_rgb(style.readable(color))
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    assert 1.05 / (np.dot(channels, [0.2126, 0.7152, 0.0722]) + 0.05) >= 4.5


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

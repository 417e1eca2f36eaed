"""A figure has its alt text, a sharp image in the page, and leaves pyplot alone."""

import base64
import html
import io
import re
import subprocess
import sys

import matplotlib.pyplot as plt
import pytest
from PIL import Image

from clutils import figures


def test_alt_text_of_a_figure_is_its_own_or_that_of_its_parts():
    figure, (left, right) = figures.new(6, 2, 1, 2)
    figures.describe(left, "A line.")
    figures.describe(right, "A  point\n that moves.")
    assert figures.alt(left) == figures.alt(figure) == "A line. A point that moves."
    figures.describe(figure, "Both.")
    assert figures.alt(right) == "Both."


def test_a_subfigures_axes_belong_to_the_whole_figure():
    figure, _ = figures.new(6, 2)
    figure.clear()
    left, _ = figure.subfigures(1, 2)
    ax = figures.describe(left.subplots(), "The left half.")
    assert figures.alt(ax) == figures.alt(figure) == "The left half."
    assert Image.open(io.BytesIO(figures.png(ax, scale=1))).size == (600, 200)


def test_show_puts_the_alt_text_and_a_sharp_picture_into_the_page(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, **_: shown.append(bundle))
    _, ax = figures.new(5, 2)
    figures.describe(ax, 'W < 1 & "K" grows.')
    figures.show(ax, caption="a < b")
    wanted = r'<img src="data:image/png;base64,([^"]+)" alt="([^"]+)" width="500"'
    data, alt = re.search(wanted, shown[0]["text/html"]).groups()
    assert html.unescape(alt) == 'W < 1 & "K" grows.'
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == (1000, 400)
    assert "a &lt; b" in shown[0]["text/html"]
    assert shown[0]["image/png"] == data and "image/svg+xml" not in shown[0]  # for what shows no HTML


def test_where_a_book_is_made_a_figure_comes_as_an_svg_too_unless_that_is_large(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, **_: shown.append(bundle))
    monkeypatch.setenv("CLUTILS_SVG", "1")
    _, ax = figures.new(3, 2)
    figures.show(figures.describe(ax, "Axes."))
    ax.scatter(range(20_000), range(20_000))
    figures.show(ax)
    assert shown[0]["image/svg+xml"].count("<svg") == 1 and "image/svg+xml" not in shown[1]


def test_show_refuses_a_figure_that_nobody_described():
    _, ax = figures.new()
    with pytest.raises(ValueError, match=r"no alt text; call figures\.describe"):
        figures.show(ax)


def test_show_closes_a_readers_pyplot_figure(monkeypatch):
    monkeypatch.setattr("IPython.display.display", lambda *_, **__: None)
    figure, ax = plt.subplots()
    figures.show(ax, caption="mine")
    assert not plt.fignum_exists(figure.number)


def test_an_empty_alt_text_is_quoted():
    with pytest.raises(ValueError, match="alt text is one sentence, got ' '"):
        figures.describe(figures.new()[1], " ")


def test_figures_load_no_widgets_and_nothing_loads_pyplot():
    code = (
        "import sys, clutils.figures.maps, clutils.figures.training\n"
        "assert 'ipywidgets' not in sys.modules\n"
        "import clutils.course.forces\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "import torch; assert 'sklearn' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

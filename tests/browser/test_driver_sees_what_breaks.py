"""Negative controls: each way of breaking that the driver is there to find, and a panel that is fine."""

import pytest

pytestmark = pytest.mark.browser

HEAD = "import ipywidgets as W\nfrom IPython.display import HTML, display"

CHART = """
from clutils import figures
from clutils.course import panels
def chart():
    figure, ax = figures.new(4, 2)
    (line,) = ax.plot([0, 1], [0, 0])
    ax.set_ylim(-1, 6)
    figures.describe(ax, "A line.")
    return figure, line
"""

WORKS = """
figure, moving = chart()
def update(height):
    moving.set_ydata([height, 0])
    return f"height {height}"
panels.panel(figure, update, height=panels.slider("h height", 0, 5, 5))
"""

DEAF = """
figure, line = chart()
panels.panel(figure, lambda depth: "as before", depth=panels.slider("d depth", 0, 5, 1))
"""

RAISES = """
figure, line = chart()
def fails(width):
    if width > 1:
        raise RuntimeError("in a panel")
panels.panel(figure, fails, width=panels.slider("w width", 0, 5, 1))
"""


PLAYER = """
figure, played = chart()
def frame(step):
    played.set_ydata([0, step])
    return f"frame {step}"
panels.player(figure, frame, 5, interval=50)
"""

BUTTON = """
import pathlib, time
def job():
    while not pathlib.Path("go_on").exists():
        time.sleep(0.05)
    return chart()[0]
panels.button("Draw it", job)
"""


ALT = "figures.show(chart()[0], caption='one line')"


@pytest.fixture(scope="module")
def panels(shared_lab, notebook_of):
    """A notebook of panels that work and of some that do not, run once."""
    shared_lab.open(notebook_of("panels.ipynb", CHART, WORKS, DEAF, RAISES, PLAYER, BUTTON, ALT))
    shared_lab.run_all()
    assert shared_lab.problems() == []
    return shared_lab


def test_player_plays_to_its_end_and_reset_goes_back(panels):
    lab, cell = panels, panels.cell(4)
    cell.locator(".widget-play button").first.click()
    cell.get_by_text("frame 4").wait_for()
    cell.get_by_role("button", name="reset").click()
    cell.get_by_text("frame 0").wait_for()
    assert lab.problems() == []


def test_button_says_that_it_works_until_the_picture_is_there(panels):
    lab, cell = panels, panels.cell(5)
    cell.get_by_role("button", name="Draw it").click()
    cell.get_by_text("working …").wait_for()
    assert cell.get_by_role("button", name="Draw it").is_disabled()
    (lab.server.root / "go_on").touch()
    cell.locator("figure img[alt='A line.']").wait_for()
    assert lab.problems() == []


def test_the_picture_of_show_has_its_alt_text_in_the_page(panels):
    picture = panels.cell(6).locator("figure img")
    assert picture.get_attribute("alt") == "A line."
    assert picture.evaluate("i => [i.naturalWidth, i.width]") == [800, 400]


def test_a_working_panel_moves_a_deaf_one_is_found_and_an_exception_is_seen(panels):
    lab = panels
    assert lab.live_cells() == [1, 2, 3, 4]
    assert lab.slider_changes_picture(lab.cell(1), "h height")  # it stands at its end, so this one goes down
    assert "height 4" in lab.cell(1).inner_text()
    assert not lab.slider_changes_picture(lab.cell(2), "d depth", timeout=1)
    assert lab.problems() == []
    assert not lab.slider_changes_picture(lab.cell(3), "w width", timeout=1)
    found = lab.problems()
    assert "cell 3: panel error: RuntimeError: in a panel" in found
    assert "kernel: RuntimeError: in a panel" in found


def test_each_way_of_breaking_is_found(lab, notebook_of):
    breaks = {
        # a widget whose class no front end has
        """class Missing(W.DOMWidget):
    _view_name = _model_name = __import__('traitlets').Unicode('NoSuchView').tag(sync=True)
    _view_module = _model_module = __import__('traitlets').Unicode('not-there').tag(sync=True)
    _view_module_version = _model_module_version = __import__('traitlets').Unicode('1.0.0').tag(sync=True)
Missing()""": "cell 1: error view",
        "w = W.IntSlider(); display(w); w.close()": "cell 2: ",
        "W.Image(value=b'not a png', format='png')": "cell 3: image does not decode",
        """def fails(t):
    raise ValueError('in interact')
W.interact(fails, t=(0, 3));""": "cell 4: error in Output widget",
        """s = W.IntSlider(description='watched')
def watch(change):
    raise RuntimeError('in an observe callback')
s.observe(watch, 'value')
s""": "kernel: RuntimeError: in an observe callback",
        """b = W.Button(description='press me')
def press(button):
    raise KeyError('in a click')
b.on_click(press)
b""": "kernel: KeyError: 'in a click'",
        "import sys; print('a warning', file=sys.stderr)": "cell 7: stderr: a warning",
        "HTML('<script>setTimeout(() => { throw Error(\"in page\") })</script>')": "pageerror: in page",
        "1 / 0": "cell 9: ZeroDivisionError",
        "print('after')": "cell 10: did not run",
    }
    lab.open(notebook_of("broken.ipynb", HEAD, *breaks))
    lab.run_all()
    lab.slider(lab.cell(5), "watched").focus()
    lab.page.keyboard.press("ArrowRight")
    lab.cell(6).get_by_role("button", name="press me").click()
    lab.page.wait_for_function("() => window.__kernel.some(t => t.includes('in a click'))", timeout=30_000)
    lab.wait_quiet()
    found = lab.problems()
    for expected in breaks.values():
        assert any(text.startswith(expected) for text in found), (expected, found)

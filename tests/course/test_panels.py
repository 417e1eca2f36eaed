"""Panels: every slider changes the image, errors are seen, and an image stays where no kernel runs."""

import base64
import re

import ipywidgets as W
import numpy as np
import pytest

from clutils import figures
from clutils.course import panels
from tests.course.drawn import exported


def make_panel(update=None, **inputs):
    figure, ax = figures.new(3, 2)
    figures.describe(ax, "A line.")
    (line,) = ax.plot([0, 1], [0, 0])
    ax.set_ylim(-5, 5)

    def default(height, tilt=0):
        line.set_ydata([height, height + tilt])
        return f"height {height}"

    inputs = inputs or {
        "height": panels.slider("h height", -4.0, 4.0, 1.0),
        "tilt": panels.slider("tilt", 0, 3, 0),
    }
    return panels.panel(figure, update or default, **inputs)


def test_a_slider_changes_picture_and_sentence():
    panel = make_panel()
    before, sentence = panel.live.image.value, panel.readout.value
    panel.inputs["height"].value = 2.0
    assert panel.live.image.value != before and panel.readout.value != sentence
    assert "height 2.0" in panel.readout.value and "A line." in panel.readout.value


def test_reset_goes_back_to_the_start_with_one_picture():
    calls = []
    panel = make_panel(lambda **values: calls.append(values) or "")
    panel.inputs["height"].value = 3.0
    panel.inputs["tilt"].value = 2
    panel.reset.click()
    assert panel.values() == {"height": 1.0, "tilt": 0}
    assert calls[-1] == {"height": 1.0, "tilt": 0} and len(calls) == 4


def test_an_error_in_update_is_shown_raised_and_gone_after_a_good_value():
    def update(height, tilt):
        if height > 2:
            raise RuntimeError("too <high>")
        return "fine"

    panel = make_panel(update)
    with pytest.raises(RuntimeError, match="too <high>"):
        panel.inputs["height"].value = 3.0
    assert "RuntimeError: too &lt;high&gt;" in panel.error.value and panel.error.layout.display == ""
    panel.inputs["height"].value = 1.5
    assert panel.error.value == "" and panel.error.layout.display == "none"


def test_where_no_kernel_runs_the_panel_is_its_picture_and_sentence():
    """nbconvert, as any front end without the widget's state, falls back on the HTML beside the widget."""
    panel = make_panel()
    panel.inputs["height"].value = 2.0
    page = exported(panel)
    assert 'alt="A line."' in page and "height 2.0" in page
    image = re.search(r'<img[^>]*alt="A line\."[^>]*>', page).group()
    picture = re.search(r'src="data:image/png;base64,([^"]+)"', image).group(1)
    assert base64.b64decode(picture) == panel.live.image.value


def test_what_update_says_is_text_and_no_markup():
    panel = make_panel(lambda height: "s < 1 & more", height=panels.slider("h", 0.0, 1.0, 0.5))
    assert "s &lt; 1 &amp; more" in panel.readout.value


def test_labels_get_the_room_that_the_longest_needs():
    panel = make_panel(
        lambda **_: "", a=panels.slider("a", 0, 1, 0), b=panels.slider("s⁺ positive similarity", 0, 1, 0)
    )
    widths = {widget.style.description_width for widget in panel.inputs.values()}
    assert len(widths) == 1 and float(widths.pop().removesuffix("ch")) > 0.85 * len("s⁺ positive similarity")


@pytest.mark.parametrize("number", [0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0])
def test_temperature_slider_reaches_the_numbers_one_talks_about(number):
    slider = panels.log_slider("τ temperature", 0.02, 20.0, 0.07)
    slider.value = number
    assert slider.value == number


def test_temperature_slider_moves_in_small_even_ratios():
    values = [value for _, value in panels.log_slider("τ", 0.02, 20.0, 0.5).options]
    ratios = np.divide(values[1:], values[:-1])
    assert values[0] == 0.02 and values[-1] == 20.0
    assert ratios.min() > 1.02 and ratios.max() < 1.12


def test_slider_of_whole_numbers_gives_whole_numbers():
    assert isinstance(panels.slider("K", 1, 9, 3), W.IntSlider)
    assert isinstance(panels.slider("s", -1.0, 1.0, 0.0), W.FloatSlider)
    assert panels.among("K", (1, 4), 201).value == 201


def test_menu_gives_what_the_name_stands_for():
    menu = panels.choose("negatives", {"all equal": "equal", "few": 3})
    menu.label = "few"
    assert menu.value == 3
    assert panels.choose("loss", ["NTXent", "MACL"], "MACL").value == "MACL"


def test_player_plays_each_frame_of_its_step_slider():
    figure, ax = figures.new(3, 2)
    figures.describe(ax, "A line.")
    seen = []
    panel = panels.player(figure, lambda step, v: seen.append((step, v)), 12, v=panels.slider("v", 0, 3, 1))
    (play,) = (child for child in panel.children[0].children if isinstance(child, W.Play))
    assert (play.min, play.max) == (panel.inputs["step"].min, panel.inputs["step"].max) == (0, 11)
    panel.inputs["step"].value = 11
    assert seen == [(0, 1), (11, 1)]


def test_button_says_that_it_works_and_then_shows_the_figure():
    during = []

    def job():
        during.append((start.disabled, "working" in status.value))
        return figures.describe(figures.new(3, 2)[1], "An empty chart.")

    box = panels.button("Map", job)
    (start, status), result = box.children[0].children, box.children[2]
    start.click()
    assert during == [(True, True)]
    assert not start.disabled and status.value == ""
    assert 'alt="An empty chart."' in result.value


def test_button_shows_and_raises_what_went_wrong_and_can_be_pressed_again(caplog):
    def job():
        raise ValueError("no network")

    box = panels.button("Fetch", job)
    start, error = box.children[0].children[0], box.children[1]
    start.click()  # ipywidgets catches what a click raises, and shows it in the kernel, or here logs it
    assert "ValueError: no network" in caplog.text
    assert "ValueError: no network" in error.value and error.layout.display == ""
    assert not start.disabled


def test_panel_refuses_a_figure_without_alt_text():
    with pytest.raises(ValueError, match="no alt text"):
        panels.panel(figures.new(3, 2)[0], lambda: "")


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: panels.slider("s", 0, 1, 2), "slider 's': value is 2, but it goes from 0 to 1"),
        (lambda: panels.log_slider("τ", 0.0, 1.0, 0.5), "low is 0.0, but a logarithmic axis"),
        (lambda: panels.choose("loss", []), "nothing to choose from"),
        (lambda: panels.player(None, None, 1), "1 frames are nothing to play"),
        (lambda: make_panel().set(width=3), "no input 'width'; there are height, tilt"),
    ],
)
def test_bad_input_is_quoted(call, message):
    with pytest.raises(ValueError, match=message):
        call()

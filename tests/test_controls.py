"""Controls: the picture is the one a full redraw would give, errors are seen, every slider does something."""

import base64
import io
import re
import subprocess
import sys
import threading

import ipywidgets as W
import nbformat
import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from nbconvert import HTMLExporter
from PIL import Image

from clutils import anatomy, controls, figures
from clutils.controls.live import encode_png


def pixels(widget):
    return np.asarray(Image.open(io.BytesIO(widget.value)))


def redrawn(live):
    """The same figure drawn from nothing, without the engine's stored background."""
    for artist in live.figure.findobj(lambda artist: artist.get_animated()):
        artist.set_animated(False)
    canvas = FigureCanvasAgg(live.figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]


@pytest.fixture
def wave():
    """A live figure with a line that is kept away from spines and legend."""
    figure, ax = figures.new(4, 3)
    x = np.linspace(0, 6, 60)
    (line,) = ax.plot(x, 0 * x)
    ax.set(xlim=(-1, 7), ylim=(-2, 2))
    figures.describe(ax, "A wave.")
    live = controls.LiveFigure(figure)

    def move(phase):
        line.set_ydata(np.sin(x + phase))
        live.draw()

    return live, ax, line, move


# the engine --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (64, 33), (200, 301)])
def test_png_holds_the_pixels_it_was_given(shape):
    rgba = np.random.default_rng(0).integers(0, 256, (*shape, 4), dtype=np.uint8)
    rgba[..., 3] = 255
    decoded = Image.open(io.BytesIO(encode_png(rgba)))
    assert decoded.mode == "RGB" and (np.asarray(decoded) == rgba[..., :3]).all()


def test_picture_of_moving_parts_is_that_of_a_full_redraw(wave):
    live, _, _, move = wave
    for phase in (0.0, 0.5, 1.0, 2.0):
        move(phase)
    assert (pixels(live.image) == redrawn(live)).all()


def test_what_stands_still_is_drawn_once(wave):
    live, _, _, move = wave
    move(0.0)
    move(0.1)  # here it turns out that the line moves
    drawn = live.backgrounds
    for phase in np.linspace(0, 3, 10):
        move(phase)
    assert live.backgrounds == drawn <= 2


@pytest.mark.parametrize(
    "change",
    [
        lambda live, ax: ax.set_ylim(-4, 4),
        lambda live, ax: ax.set_xlabel("angle"),
        lambda live, ax: ax.set_xticks([0, 3, 6]),
        lambda live, ax: ax.grid(False),
        lambda live, ax: ax.axvspan(1, 2, color="0.8", zorder=1),
        lambda live, ax: live.figure.set_size_inches(5, 2),
    ],
    ids=["limits", "label", "ticks", "grid", "new artist", "size"],
)
def test_background_follows_when_anything_else_changes(wave, change):
    live, ax, _, move = wave
    move(0.0)
    move(0.5)
    change(live, ax)
    move(1.0)
    assert (pixels(live.image) == redrawn(live)).all()


def test_a_removed_artist_leaves_the_picture(wave):
    live, _, line, move = wave
    move(0.0)
    move(0.5)
    before = pixels(live.image)
    line.remove()
    live.draw()
    assert (pixels(live.image) != before).any()
    assert (pixels(live.image) == redrawn(live)).all()


def test_a_second_artist_may_start_to_move_later(wave):
    live, ax, _, move = wave
    (point,) = ax.plot([3], [0], marker="o", linestyle="none")
    move(0.0)
    move(0.5)
    point.set_data([3], [1.2])
    move(0.6)
    drawn = live.backgrounds
    point.set_data([3], [-1.2])
    move(0.7)
    assert live.backgrounds == drawn
    assert (pixels(live.image) == redrawn(live)).all()


def test_picture_has_two_pixels_to_each_of_the_page(wave):
    live, _, _, move = wave
    move(0.0)
    assert pixels(live.image).shape == (600, 800, 3)
    assert live.image.layout.width == "400px"


def test_two_threads_do_not_draw_into_each_other(wave):
    live, _, line, _ = wave
    other = np.random.default_rng(0).random(60)

    def hammer(k):
        for step in range(8):
            with live.lock:
                line.set_ydata(other * k / 4 + step / 100)
                live.draw()

    threads = [threading.Thread(target=hammer, args=(k,)) for k in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (pixels(live.image) == redrawn(live)).all()


# panels ------------------------------------------------------------------------------------------------


def make_panel(update=None, **inputs):
    figure, ax = figures.new(3, 2)
    figures.describe(ax, "A line.")
    (line,) = ax.plot([0, 1], [0, 0])
    ax.set_ylim(-5, 5)

    def default(height, tilt=0):
        line.set_ydata([height, height + tilt])
        return f"height {height}"

    inputs = inputs or {
        "height": controls.slider("h height", -4.0, 4.0, 1.0),
        "tilt": controls.slider("tilt", 0, 3, 0),
    }
    return controls.panel(figure, update or default, **inputs)


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
    bundle = panel._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell("panel")]
    notebook.cells[0].outputs = [nbformat.v4.new_output("display_data", data=bundle)]
    page, _ = HTMLExporter().from_notebook_node(notebook)
    assert 'alt="A line."' in page and "height 2.0" in page
    image = re.search(r'<img[^>]*alt="A line\."[^>]*>', page).group()
    picture = re.search(r'src="data:image/png;base64,([^"]+)"', image).group(1)
    assert base64.b64decode(picture) == panel.live.image.value


def test_what_update_says_is_text_and_no_markup():
    panel = make_panel(lambda height: "s < 1 & more", height=controls.slider("h", 0.0, 1.0, 0.5))
    assert "s &lt; 1 &amp; more" in panel.readout.value


def test_labels_get_the_room_that_the_longest_needs():
    panel = make_panel(
        lambda **_: "", a=controls.slider("a", 0, 1, 0), b=controls.slider("s⁺ positive similarity", 0, 1, 0)
    )
    widths = {widget.style.description_width for widget in panel.inputs.values()}
    assert len(widths) == 1 and float(widths.pop().removesuffix("ch")) > 0.85 * len("s⁺ positive similarity")


@pytest.mark.parametrize("number", [0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0])
def test_temperature_slider_reaches_the_numbers_one_talks_about(number):
    slider = controls.log_slider("τ temperature", 0.02, 20.0, 0.07)
    slider.value = number
    assert slider.value == number


def test_temperature_slider_moves_in_small_even_ratios():
    values = [value for _, value in controls.log_slider("τ", 0.02, 20.0, 0.5).options]
    ratios = np.divide(values[1:], values[:-1])
    assert values[0] == 0.02 and values[-1] == 20.0
    assert ratios.min() > 1.02 and ratios.max() < 1.12


def test_slider_of_whole_numbers_gives_whole_numbers():
    assert isinstance(controls.slider("K", 1, 9, 3), W.IntSlider)
    assert isinstance(controls.slider("s", -1.0, 1.0, 0.0), W.FloatSlider)
    assert controls.counts("K", (1, 4), 201).value == 201


def test_menu_gives_what_the_name_stands_for():
    menu = controls.choose("negatives", {"all equal": "equal", "few": 3})
    menu.label = "few"
    assert menu.value == 3
    assert controls.choose("loss", ["NTXent", "MACL"], "MACL").value == "MACL"


def test_player_plays_each_frame_of_its_step_slider():
    figure, ax = figures.new(3, 2)
    figures.describe(ax, "A line.")
    seen = []
    panel = controls.player(
        figure, lambda step, v: seen.append((step, v)), 12, v=controls.slider("v", 0, 3, 1)
    )
    (play,) = (child for child in panel.children[0].children if isinstance(child, W.Play))
    assert (play.min, play.max) == (panel.inputs["step"].min, panel.inputs["step"].max) == (0, 11)
    panel.inputs["step"].value = 11
    assert seen == [(0, 1), (11, 1)]


def test_button_says_that_it_works_and_then_shows_the_figure():
    during = []

    def job():
        during.append((start.disabled, "working" in status.value))
        return figures.describe(figures.new(3, 2)[1], "An empty chart.")

    box = controls.button("Map", job)
    (start, status), result = box.children[0].children, box.children[2]
    start.click()
    assert during == [(True, True)]
    assert not start.disabled and status.value == ""
    assert 'alt="An empty chart."' in result.value


def test_button_shows_and_raises_what_went_wrong_and_can_be_pressed_again(caplog):
    def job():
        raise ValueError("no network")

    box = controls.button("Fetch", job)
    start, error = box.children[0].children[0], box.children[1]
    start.click()  # ipywidgets catches what a click raises, and shows it in the kernel, or here logs it
    assert "ValueError: no network" in caplog.text
    assert "ValueError: no network" in error.value and error.layout.display == ""
    assert not start.disabled


def test_panel_refuses_a_figure_without_alt_text():
    with pytest.raises(ValueError, match="no alt text"):
        controls.panel(figures.new(3, 2)[0], lambda: "")


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: controls.slider("s", 0, 1, 2), "slider 's': value is 2, but it goes from 0 to 1"),
        (lambda: controls.log_slider("τ", 0.0, 1.0, 0.5), "low is 0.0, but a logarithmic axis"),
        (lambda: controls.choose("loss", []), "nothing to choose from"),
        (lambda: controls.player(None, None, 1), "1 frames are nothing to play"),
        (lambda: make_panel().set(width=3), "no input 'width'; there are height, tilt"),
        (lambda: controls.gradient_scale(negatives="many"), "negatives is 'many', but must be one of equal"),
        (lambda: controls.gradient_scale(positive=2.0), "value is 2.0, but it goes from -1.0 to 1.0"),
    ],
)
def test_bad_input_is_quoted(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# the W explorer ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def explorer():
    return controls.gradient_scale(
        positive=0.5, temperature=0.2, count=201, negatives="few hard", similarity=-0.9
    )


@pytest.mark.parametrize("temperature", [0.05, 0.2, 0.3, 0.5, 2.0, 10.0])
def test_explorer_shows_the_counterexample_that_anatomy_computes(explorer, temperature):
    explorer.set(
        positive=0.5,
        count=201,
        negatives="few hard",
        similarity=-0.9,
        hard=0.9,
        number=1,
        temperature=temperature,
    )
    negatives = torch.tensor([[0.9] + [-0.9] * 200], dtype=torch.float64)
    W = float(anatomy.gradient_scale(torch.tensor([0.5], dtype=torch.float64), negatives, temperature))
    assert f"W = {W:.3f} at τ = {temperature:g} and K = 201" in explorer.readout.value
    assert "W is lowest, 0.846, at τ = 0.27" in explorer.readout.value


@pytest.mark.parametrize("negatives", ["equal", "gaussian", "few hard"])
def test_every_slider_the_explorer_shows_changes_the_picture(explorer, negatives):
    explorer.set(
        positive=0.3, temperature=0.3, count=48, negatives=negatives, similarity=-0.2, deviation=0.2, number=3
    )
    for name, widget in explorer.inputs.items():
        if name == "negatives" or widget.layout.display == "none":
            continue
        before, start = explorer.live.image.value, widget.value
        if isinstance(widget, W.SelectionSlider):
            widget.index += 1
        else:
            widget.value += widget.step
        assert explorer.live.image.value != before, name
        widget.value = start
        assert explorer.live.image.value == before, name


def test_explorer_puts_away_what_the_distribution_does_not_read(explorer):
    shown = {}
    for negatives in ("equal", "gaussian", "few hard"):
        explorer.set(negatives=negatives)
        hidden = {name for name, widget in explorer.inputs.items() if widget.layout.display == "none"}
        shown[negatives] = {"similarity", "deviation", "hard", "number"} - hidden
    assert shown == {
        "equal": {"similarity"},
        "gaussian": {"similarity", "deviation"},
        "few hard": {"similarity", "hard", "number"},
    }


def test_explorer_moves_without_drawing_axes_again(explorer):
    explorer.set(negatives="few hard")
    explorer.set(temperature=0.3)
    drawn = explorer.live.backgrounds
    for temperature in (0.1, 0.2, 0.5, 1.0):
        explorer.set(temperature=temperature, count=64)
    assert explorer.live.backgrounds == drawn


# arrows ------------------------------------------------------------------------------------------------


def test_figures_load_no_widgets_and_nothing_loads_pyplot():
    code = (
        "import sys, clutils.figures.gradient_scaling\n"
        "assert 'ipywidgets' not in sys.modules\n"
        "import clutils.controls\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "import torch; assert 'sklearn' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

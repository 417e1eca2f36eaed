"""Moving figures: the image is the one a full redraw would give, and what stands still is drawn once."""

import io
import threading

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from clutils import figures
from clutils.course import live
from clutils.course.live import encode_png


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
    shown = live.LiveFigure(figure)

    def move(phase):
        line.set_ydata(np.sin(x + phase))
        shown.draw()

    return shown, ax, line, move


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

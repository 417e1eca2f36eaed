"""Blitting: cache the static background of a figure, redraw only the artists that changed."""

import struct
import threading
import zlib
from collections.abc import Iterable, Iterator
from weakref import WeakSet

import ipywidgets as W
import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from clutils.figures import PIXELS_PER_INCH


class LiveFigure:
    """A figure, outside pyplot, and the image of it in the page (`.image`).

    Change its artists and call `draw()`. Nothing has to be declared: matplotlib marks whatever changed as
    stale, and an artist of the background found so is from then on drawn by itself, on top of it. When
    anything else changed (limits, ticks, labels, a new artist, the figure's size) the background is drawn
    again. What moves therefore lies on top of what stands still.

    Callbacks of widgets may run in a thread of their own (JupyterLab gives them a subshell), beside a cell
    that runs: hold `lock` around a change and its `draw()`.

    Args:
        figure: made without pyplot, as by `figures.new`. Its layout is settled once, at the first `draw()`.
        scale: image pixels to a pixel of the page; 2 is sharp on high-dpi screens.
    """

    def __init__(self, figure: Figure, scale: float = 2.0):
        self.figure, self.scale = figure, scale
        self.lock = threading.RLock()
        self.canvas = FigureCanvasAgg(figure)
        self.image = W.Image(format="png", layout=W.Layout(max_width="100%", height="auto", margin="2px 0px"))
        self.backgrounds = 0  # how often the background was drawn: slow when it grows with every move
        self._background = None
        self._still: WeakSet[Artist] = WeakSet()  # drawn into the background when last seen
        figure.set_dpi(PIXELS_PER_INCH * scale)

    def draw(self) -> None:
        """Bring the image in the page up to date."""
        with self.lock:
            for artist in self._artists():
                if artist.stale and artist in self._still:
                    artist.set_animated(True)  # from here on it no longer makes the figure stale
            if self._background is None or self.figure.stale:
                self._draw_background()
            else:
                self.canvas.restore_region(self._background)
            renderer = self.canvas.get_renderer()
            moving = [artist for artist in self._artists() if artist.get_animated()]
            for artist in sorted(moving, key=Artist.get_zorder):
                artist.draw(renderer)
            self.image.value = encode_png(np.asarray(self.canvas.buffer_rgba()))

    def _draw_background(self) -> None:
        self.canvas.draw()  # leaves out what is animated
        self.figure.set_layout_engine("none")  # settled by now; else the axes would creep as labels change
        self._background = self.canvas.copy_from_bbox(self.figure.bbox)
        self._still.update(artist for artist in self._artists() if not artist.get_animated())
        self.backgrounds += 1
        self.image.layout.width = f"{self.figure.get_figwidth() * PIXELS_PER_INCH:.0f}px"

    def _artists(self) -> Iterator[Artist]:
        """Artists that can be drawn alone: the leaves of flat axes, titles too, but no axis and no spine."""
        for ax in self.figure.axes:
            if ax.name != "3d":  # there the axes project every artist as they draw
                parts = (ax.patch, ax.xaxis, ax.yaxis, *ax.spines.values(), *ax.child_axes)
                frame = set(map(id, parts))
                yield from (artist for artist in ax.get_children() if id(artist) not in frame)
        yield from self.figure.texts


def beside_cells(*widgets: Iterable[W.Widget]) -> None:
    """Have what the reader does to these widgets answered while a cell runs, where the front end can.

    JupyterLab sends it to a subshell, but ipykernel (from 7.4 on) hands it to wherever the widget was last
    changed from: a button that a cell has changed would wait for the cells to end.
    """
    for widget in (widget for some in widgets for widget in some):
        if hasattr(widget.comm, "_reply_subshell_for"):
            widget.comm._reply_subshell_for = lambda data, asked_for: asked_for


def encode_png(rgba: np.ndarray) -> bytes:
    """An opaque image, uint8 (height, width, 4), as an RGB PNG: no filter, zlib's fastest level.

    Large even areas compress well without filters, and trying them is where Pillow's encoder spends two
    thirds of its time.
    """
    height, width, _ = rgba.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # each row starts with its filter: 0, none
    for channel in range(3):
        rows[:, 1 + channel :: 3] = rgba[..., channel]

    def chunk(tag: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits a channel, RGB
    body = zlib.compress(rows, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")

"""Figures: a function takes data (and an optional `ax`) and returns the Axes it drew on.

Here is what all of them share: a figure outside pyplot in the course's style (`new`), its alt text
(`describe`, `alt`), and its way into a notebook (`show`) or a file (`png`).
"""

import base64
import html
import importlib
import io
import os
import sys
from types import ModuleType
from typing import Any, TypeVar

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(f"figures need matplotlib, of the extra [course] ({error})") from error
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, FigureBase
from matplotlib.layout_engine import ConstrainedLayoutEngine

from clutils.figures import style

__all__ = ["alt", "axes_for", "describe", "new", "page", "png", "show", "style", "svg"]

KINDS = ("maps", "noise", "pictures", "training")  # figures.maps and so on load when they are first named
Drawn = TypeVar("Drawn", bound=Axes | FigureBase)
MARGIN = 0.06  # inches of white around what is drawn: on a dark page letters stand clear of the edge
MOST_SVG = 1_000_000  # letters: of thousands of points a PNG is smaller, and as sharp
PIXELS_PER_INCH = 100  # of the page; the image itself holds `scale` times as many


def __getattr__(name: str) -> ModuleType:
    if name in KINDS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def new(
    width: float = 9.0, height: float = 4.0, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, Any]:
    """A figure of width x height inches (100 pixels of the page each) in the course's style -> figure, axes.

    It is made without pyplot: nothing keeps it alive, and no thread but the caller's touches it.

    - rows, columns: a grid of axes; one Axes when both are 1, else an array as from `Figure.subplots`
    - options: handed on to `Figure.subplots`
    """
    with style.course():
        x, y = MARGIN / width, MARGIN / height
        inside = (x, y, 1 - 2 * x, 1 - 2 * y)
        figure = Figure((width, height), PIXELS_PER_INCH, layout=ConstrainedLayoutEngine(rect=inside))
        FigureCanvasAgg(figure)
        return figure, figure.subplots(rows, columns, **options)


def axes_for(ax: Axes | None, width: float = 6.5, height: float = 4.0) -> Axes:
    """The given Axes, or those of a new figure: the first line of every figure function."""
    return new(width, height)[1] if ax is None else ax


def describe(target: Drawn, text: str) -> Drawn:
    """Attach the alt text: one sentence that tells what the image shows to those who can't see it.

    On Axes it describes that part of the figure; on a figure it replaces what its parts say. Raises
    ValueError on an empty text.
    """
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"figures.describe: alt text is one sentence, got {text!r}")
    target.alt_text = " ".join(text.split())  # type: ignore[union-attr]
    return target


def alt(target: Axes | FigureBase) -> str:
    """The alt text of a figure: its own, or its axes' sentences in order; empty when nobody described it."""
    figure = _root(target)
    own = getattr(figure, "alt_text", "")
    return own or " ".join(filter(None, (getattr(ax, "alt_text", "") for ax in figure.axes)))


def png(target: Axes | FigureBase, scale: float = 2.0) -> bytes:
    """The figure as a PNG, `scale` image pixels to a pixel of the page (2: sharp on high-dpi screens)."""
    buffer = io.BytesIO()
    figure = _root(target)
    background, dpi = figure.get_facecolor(), PIXELS_PER_INCH * scale
    figure.savefig(buffer, format="png", dpi=dpi, facecolor=background, metadata={"Software": "clutils"})
    return buffer.getvalue()


def svg(target: Axes | FigureBase) -> str:
    """The figure as an SVG: letters are outlines, so that it looks the same on every machine."""
    buffer = io.StringIO()
    _root(target).savefig(buffer, format="svg", dpi=2 * PIXELS_PER_INCH, metadata={"Date": None})
    return buffer.getvalue()


def page(target: Axes | FigureBase, caption: str | None = None, picture: bytes | None = None) -> str:
    """The figure as HTML, its alt text in it; arguments and errors as in `show`.

    - picture: the figure's PNG, where it is already drawn
    """
    figure = _root(target)
    text = alt(figure) or caption
    if not text:
        raise ValueError("figures: this figure has no alt text; call figures.describe(ax, '...') first")
    data = base64.b64encode(picture or png(figure)).decode()
    width = round(figure.get_figwidth() * PIXELS_PER_INCH)
    image = (
        f'<img src="data:image/png;base64,{data}" alt="{html.escape(text)}" width="{width}" '
        'style="max-width: 100%; height: auto; background: white; border-radius: 6px">'
    )
    below = f'<figcaption style="max-width: {width}px">{html.escape(caption)}</figcaption>' if caption else ""
    return f'<figure style="margin: 0">{image}{below}</figure>'


def show(target: Axes | FigureBase, caption: str | None = None) -> None:
    """Display the figure in the notebook, with its alt text really in the page.

    JupyterLab and nbconvert drop the alt text of plain images, so the figure goes out as HTML with an
    `<img alt=...>`. A PNG stands beside it, for what shows no HTML: PDF by LaTeX, GitHub, some editors.

    - caption: one line under the image; it is also the alt text of a figure that nobody described

    Raises ValueError when there is neither.
    """
    from IPython.display import display

    figure = _root(target)
    picture = png(figure)
    shown = {"text/html": page(figure, caption, picture), "text/plain": alt(figure) or caption}
    if os.environ.get("CLUTILS_SVG") and len(drawn := svg(figure)) < MOST_SVG:  # for a book, which offers it
        shown["image/svg+xml"] = drawn
    display(shown | {"image/png": base64.b64encode(picture).decode()}, raw=True)
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:  # a figure that a reader made with pyplot would be shown a second time
        pyplot.close(figure)


def _root(target: Axes | FigureBase) -> Figure:
    """The figure that everything is part of, also from within subfigures."""
    return target.figure.figure  # of a subfigure, too

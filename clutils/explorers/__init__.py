"""Explorers: pages of one HTML file each, with code and data inside, that open with no network and no kernel.

    explorers.write("circle.html", "circle", {"temperature": 0.1})
    explorers.frame("W", loss="MACL")        # in a notebook's cell, a book or a slide

Their numbers are computed by JavaScript in the page, by the formulas of `clutils.losses`; values of the
package, computed when a page is made, stand beside in it, and the page compares.
"""

from clutils.explorers import photo_map
from clutils.explorers.controls import EXPLORERS, NAMES
from clutils.explorers.pages import (
    REPLAY,
    Frame,
    Replay,
    frame,
    module,
    page,
    qr_code,
    write,
)
from clutils.explorers.replay import of_run

__all__ = [
    "EXPLORERS",
    "NAMES",
    "REPLAY",
    "Frame",
    "Replay",
    "frame",
    "module",
    "of_run",
    "page",
    "photo_map",
    "qr_code",
    "write",
]

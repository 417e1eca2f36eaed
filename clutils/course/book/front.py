"""Front page of the course, for a reader who has installed nothing yet: one HTML file, which moves at once.

    python -m clutils.course.book.front [FILE]

Sixteen images under a loss, the map of a recorded run, and the explorers of `PARTS`.
"""

import argparse
import base64
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import clutils
from clutils import explorers, files
from clutils.explorers import controls, replay
from clutils.explorers.pages import embedded, template

HERE = resources.files("clutils.course.book")
OUT = Path("notebooks", "explorers", "index.html")
PIECE = re.compile(r"[^\n]*?(?:\n|\},|$)")

# a queue of random directions in a hundred dimensions
MOCO = {"temperature": 0.07, "count": 65_536, "shape": "gaussian", "similarity": 0, "spread": 0.1}


@dataclass(frozen=True)
class Part:
    """An explorer on the front page: its question, what to do, and settings that a button opens."""

    name: str
    title: str
    words: str
    settings: Mapping[str, Mapping[str, Any]]
    opens: Mapping[str, Any] = field(default_factory=dict)
    hide: str = "lead,share"


PARTS = (
    Part(
        "W",
        "How much of the gradient gets through?",
        "W is the factor that scales an anchor's gradient: 1 is all of it, 0 is nothing. It depends on the "
        "temperature τ, on the number of negatives K and on their similarities. Change one of them and "
        "watch W.",
        {
            "MoCo, before it has learned": MOCO | {"positive": 0},
            "MoCo, after": MOCO | {"positive": 0.9},
            "SimCLR at τ = 0.5, after": MOCO | {"positive": 0.9, "temperature": 0.5, "count": 510},
            "one false negative": {"temperature": 0.1, "positive": 0.9, "hard": 0.95, "similarity": 0},
        },
        {"beside": "none"},
    ),
    Part(
        "matrix",
        "Is my loss normal?",
        "Type the value of your loss, your batch and your queue. The ruler shows the loss at chance, the "
        "best reachable loss, and yours. Below it is a small batch: similarities, shares, W, gradient.",
        {
            "8.32 with a queue of 4,096": {"temperature": 0.1, "value": 8.32, "queue": 4096},
            "5.5 with a batch of 256 at τ = 0.5": {"temperature": 0.5, "value": 5.5, "batch_size": 256},
        },
        hide="lead,share,pairs,asks",
    ),
)


def page() -> str:
    """The front page, HTML."""
    pages = {part.name: explorers.page(part.name, {**part.opens, "hide": part.hide}) for part in PARTS}
    pieces: dict[str, int] = {}  # what several pages have in common stands there once
    for text in pages.values():
        for piece in PIECE.findall(text):
            pieces.setdefault(piece, len(pieces))
    made = {name: [pieces[piece] for piece in PIECE.findall(text)] for name, text in pages.items()}
    sprite = base64.b64encode((HERE / "front.webp").read_bytes()).decode()
    front = {
        "run": replay.recorded(),
        "sprite": f"data:image/webp;base64,{sprite}",
        "tile": 32,  # pixels of an image's side in front.webp
        "columns": 16,  # images in a row there
        "triplet": {control.name: control.default for control in controls.of_loss("Triplet")},
    }
    source = f"clutils {clutils.__version__}; its numbers are compared with the package's in each explorer."
    return template("front.html", "clutils.course.book").render(
        parts=PARTS,
        pages=embedded({"pieces": list(pieces), "pages": made}),
        front=embedded(front),
        script=explorers.module("front", HERE),
        source=source,
    )


def write(path: Path = OUT) -> None:
    """Write the front page into a file; OSError where that fails."""
    files.write_atomically(path, page())


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the course's front page.")
    parser.add_argument("file", nargs="?", type=Path, default=OUT, help="default: %(default)s")
    path = parser.parse_args().file
    try:
        write(path)
    except OSError as error:
        print(f"clutils: {error}", file=sys.stderr)
        return 1
    print(f"{path}: open it in a browser")
    return 0


if __name__ == "__main__":
    sys.exit(main())

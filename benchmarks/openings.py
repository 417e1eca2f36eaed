"""The image under each notebook's title: a figure of its own, taken from a run of it.

    python benchmarks/openings.py [FOLDER]

FOLDER has executed notebooks; without it they are run first, as for the book. Writes
notebooks/pictures/NN.png.
"""

import base64
import io
import re
import sys
from pathlib import Path

import nbformat
import torch
from PIL import Image

from clutils import data, figures, losses
from clutils.course import graphs, records
from clutils.course.book import running

OPENS = {  # notebook -> the cell whose figure says what it found, and which of the cell's figures
    "01": ("cell-063", 0),
    "02": ("cell-032", 0),
    "03": ("cell-031", 0),
    "05": ("colder-figure", 0),
    "06": ("5da132ef", 0),
    "07": ("1b54f496", 0),
    "08": ("one0f017", 0),
    "09": ("a08f0085", 0),
    "10": ("a08f0042", 0),
    "11": ("b0900036", 0),
    "15": ("sen00043", 0),
    "16": ("vec00009", 0),
    "17": ("pair0023", 0),
}  # 04, 13 and 14 are drawn below; 00 and 12 show images that README and docs/ show, too
WIDTH, HEIGHT, COLOURS = 880, 380, 128


def figure(notebook: nbformat.NotebookNode, cell: str, which: int) -> bytes:
    """The PNG of one figure, or panel, in a cell's outputs: from their HTML, which both have."""
    outputs = next(c.outputs for c in notebook.cells if c.id == cell)
    shown = "".join(o.get("data", {}).get("text/html", "") for o in outputs)
    return base64.b64decode(re.findall('src="data:image/png;base64,([^"]+)', shown)[which])


def small(png: bytes) -> Image.Image:
    """Image scaled to fit under a title, in few colours."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image.thumbnail((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
    # an octree keeps the colours of thin lines, which a cut by number of pixels mixes; but its white is 254
    few = image.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.putpalette([255 if part > 252 else part for part in few.getpalette()])
    return few


def diagnoses() -> bytes:
    """How often each diagnosis is right, of the recorded encoders that no rule had seen."""
    made = records.read("calibration")
    made = made[made["group"] == "fresh3"]
    shares = {name: own["right"].astype(float).tolist() for name, own in made.groupby("expected")}
    figure, ax = figures.new(8.8, 3.4)
    for row, (name, right) in enumerate(sorted(shares.items(), key=lambda item: sum(item[1]) / len(item[1]))):
        hits, misses = int(sum(right)), len(right) - int(sum(right))
        ax.barh(row, hits, color=figures.style.BLUE)
        ax.barh(row, misses, left=hits, color=figures.style.ORANGE, hatch="//")
        ax.text(len(right) + 0.1, row, f"{hits} of {len(right)} right", va="center")
        ax.text(-0.1, row, name, va="center", ha="right")
    ax.set(yticks=[], xlabel="encoders (hatched: not recognised)", xlim=(0, 11))
    return figures.png(figure)


def networks() -> bytes:
    """Three networks whose nodes' classes are known."""
    kept = {name: data.load(f"nodes:{name}") for name in ("karate", "florentine", "blocks")}
    return figures.png(graphs.networks(kept))


def adaptive_temperatures() -> bytes:
    """MACL's temperature against the alignment, a line for each α: what the loss does, and no run yet."""
    alignment = torch.linspace(0, 1, 101)
    figure, ax = figures.new(8.8, 3.4)
    for alpha in (0.0, 0.5, 1.0):
        tau = losses.MACL(0.1, alpha).temperature_at(alignment)
        colours = [figures.style.temperature(float(t)) for t in tau]
        ax.scatter(alignment, tau, s=14, color=colours, linewidths=0)
        ax.text(1.02, float(tau[-1]), f"α = {alpha:g}", va="center", fontsize=12)
    ax.set(xlabel="alignment A: mean similarity of the two views of an image", ylabel="temperature of MACL")
    ax.set(xlim=(-0.02, 1.15), ylim=(0.09, 0.21))
    ax.annotate("the views hardly agree:\ncolder", (0.02, 0.108), (0.02, 0.14), fontsize=11)
    ax.annotate("they agree:\nwarmer", (0.86, 0.198), (0.7, 0.188), fontsize=11)
    return figures.png(figure)


DRAWN = {"04": adaptive_temperatures, "13": diagnoses, "14": networks}


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0]) if arguments else running.executed()
    for path in running.sources(folder):
        if path.stem[:2] in OPENS and path.exists():
            png = figure(nbformat.read(path, 4), *OPENS[path.stem[:2]])
            file = running.NOTEBOOKS / "pictures" / f"{path.stem[:2]}.png"
            small(png).save(file, optimize=True)
            print(file.name, file.stat().st_size)
    for number, draw in DRAWN.items():
        small(draw()).save(running.NOTEBOOKS / "pictures" / f"{number}.png", optimize=True)


if __name__ == "__main__":
    main(sys.argv[1:])

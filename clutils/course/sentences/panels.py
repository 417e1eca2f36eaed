"""Panels of notebook 15: MACL's temperature under the sentence setting, and a search box."""

import html
from collections.abc import Callable

import ipywidgets as W
import torch
import torch.nn.functional as F
from torch import Tensor

from clutils import data, figures
from clutils.course.panels import Panel, below, panel, slider
from clutils.data.sentences import words
from clutils.figures import style

Embed = Callable[[data.SentenceSet], Tensor]
CELL = "vertical-align: top; width: 33%; padding: 0 1.2em .5em 0"  # of a table of sentences
COUNT = 5  # nearest sentences


def adaptive(A: Tensor, alpha: float, threshold: float) -> Tensor:
    """MACL's τ_a/τ0 without its floor, 1 + α (A - A0): eq. 7."""
    return 1 + alpha * (A - threshold)


def adaptive_temperature(seen: float) -> Panel:
    """Sliders for α and A0 over τ_a/τ0 against the alignment A; `seen`: A of a run, marked."""
    A = torch.linspace(-1, 1, 201)
    figure, ax = figures.new(8.6, 4.0)
    with style.course():
        (line,) = ax.plot(A, A, color=style.BLUE, linewidth=2)
        for y, dash, name in ((0.1, ":", "the floor, τ₀/10"), (1, "--", "τ₀")):
            ax.axhline(y, color=style.GREY, linestyle=dash)
            ax.annotate(name, (1, y), (6, 0), ("axes fraction", "data"), "offset points", va="center")
        (mark,) = ax.plot([], [], "o", color=style.VERMILLION, markersize=11)
        place = {"ha": "right", "va": "bottom"}  # above the line, which does not fall
        name = ax.text(0, 0, "", color=style.readable(style.VERMILLION), path_effects=style.halo(), **place)
        ax.set(xlabel="A, mean similarity of the positives", ylabel="τₐ / τ₀", xlim=(-1, 1))
    figures.describe(figure, "A line: τ_a over τ0 against A. Dashed: τ0, dotted: the floor. A dot: a run.")

    def update(alpha: float, threshold: float) -> str:
        ratio = adaptive(A, alpha, threshold)
        line.set_ydata(ratio)
        ax.set_ylim(min(-1.0, float(ratio.min()) - 0.2), max(3.0, float(ratio.max()) + 0.2))
        here = float(adaptive(torch.tensor(seen), alpha, threshold))
        mark.set_data([seen], [here])
        name.set(x=seen - 0.03, y=here + 0.08, text="a run's first batch")
        zero = "never 0" if alpha == 0 else f"0 at A = {threshold - 1 / alpha:.2f}"
        return (
            f"α = {alpha:g}, A₀ = {threshold:g}, without the floor: "
            f"τₐ = {here:.2f} τ₀ at the run's A = {seen:.2f}, "
            f"{float(adaptive(torch.tensor(1.0), alpha, threshold)):.2f} τ₀ at A = 1; it is {zero}"
        )

    return panel(
        figure,
        update,
        alpha=slider("α", 0.0, 3.0, 0.5, 0.1),
        threshold=slider("A₀ threshold", -1.0, 1.0, 0.0, 0.1),
    )


def search(train: data.SentenceSet, ways: dict[str, Embed], query: str) -> W.VBox:
    """A box for a sentence, and a table of the nearest ones, a column a way of embedding."""
    box = W.Text(query, description="search", continuous_update=False, layout=W.Layout(width="620px"))
    shown = W.HTML()
    kept = {name: F.normalize(embed(train), dim=1) for name, embed in ways.items()}

    def look(_: object = None) -> None:
        if not words(box.value):
            shown.value = below("type a sentence")
            return
        asked = data.sentence_set([box.value], length=train.tokens.shape[1])
        cosines = {name: kept[name] @ F.normalize(embed(asked), dim=1)[0] for name, embed in ways.items()}
        found = {name: own.argsort(descending=True)[:COUNT].tolist() for name, own in cosines.items()}
        lines = "".join(
            "<tr>" + "".join(f"<td style='{CELL}'>{_cell(train, row)}</td>" for row in rows) + "</tr>"
            for rows in zip(*found.values(), strict=True)
        )
        heads = ""
        for name, own in cosines.items():
            highest = float(own.max())
            said = f"cosine {highest:.2f}" if highest > 0 else "cosine 0, nothing is near"
            heads += f"<th>{html.escape(name)}<br>{said}</th>"
        shown.value = f"<table style='line-height: 1.3'><tr>{heads}</tr>{lines}</table>"

    box.observe(look, "value")
    look()
    return W.VBox([box, shown])


def _cell(of: data.SentenceSet, row: int) -> str:
    text = of.texts[row] if len(of.texts[row]) < 140 else of.texts[row][:139] + "…"
    name = of.class_names[of.labels[row]] if of.labels[row] >= 0 else "no label"
    return f"<b>{html.escape(name)}</b>: {html.escape(text)}"

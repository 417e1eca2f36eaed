"""Figures of notebook 14: graphs drawn, with what a view changed; smoothing by depth."""

from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from torch import Tensor

from clutils import figures, views
from clutils.course.panels import Panel, among, panel, slider
from clutils.data import GraphSet
from clutils.data.graphs import unpacked
from clutils.figures import style

SIZE = 36  # of a node, in points


def places(graph: Tensor) -> np.ndarray:
    """Places of the nodes of one graph (V, 1 + F + V) as drawn, the same for each of its views: (V, 2)."""
    nodes, _, adjacency = unpacked(graph)
    there = nodes.nonzero()[:, 0]
    found = nx.kamada_kawai_layout(nx.from_numpy_array(adjacency[there][:, there].numpy()))
    at = np.zeros((len(graph), 2))
    at[there.numpy()] = np.stack([found[number] for number in range(len(there))])
    return at


def beside_its_view(ax: Axes, graph: Tensor, view: Tensor, at: np.ndarray) -> str:
    """Draw a view over its graph: what went is pale and dashed or a cross, what came is thick; counts it."""
    (n0, a0, e0), (n1, a1, e1) = unpacked(graph), unpacked(view)
    counts = dict.fromkeys(("nodes dropped", "edges dropped", "edges added", "attributes masked"), 0)
    for a, b in ((e0 + e1).triu(1) > 0).nonzero().tolist():
        had, has = bool(e0[a, b]), bool(e1[a, b])
        look = {"color": style.BLACK, "linewidth": 1.2, "linestyle": "-"}
        if had and not has:
            look = {"color": style.VERMILLION, "linewidth": 1, "linestyle": ":"}
            counts["edges dropped"] += 1
        elif has and not had:
            look = {"color": style.BLUE, "linewidth": 2.4, "linestyle": "--"}
            counts["edges added"] += 1
        ax.plot(*at[[a, b]].T, zorder=1, **look)
    gone, masked = n0 & ~n1, n1 & (a0.abs().sum(dim=1) > 0) & (a1.abs().sum(dim=1) == 0)
    counts["nodes dropped"], counts["attributes masked"] = int(gone.sum()), int(masked.sum())
    for chosen, look in (
        (n1 & ~masked, {"color": style.BLACK}),
        (masked, {"facecolor": "white", "edgecolor": style.BLACK}),
        (gone, {"color": style.VERMILLION, "marker": "x"}),
    ):
        ax.scatter(*at[chosen.numpy()].T, s=SIZE, zorder=2, **look)
    bare(ax)
    return ", ".join(f"{number} {what}" for what, number in counts.items() if number) or "nothing changed"


def bare(ax: Axes) -> None:
    style.bare(ax)
    ax.margins(0.12)
    ax.set_aspect("equal", adjustable="datalim")


def views_panel(seen: GraphSet) -> Panel:
    """GraphCL's four under sliders, all of those above 0 in turn, on the first four graphs."""
    figure, axes = figures.new(9.6, 3.3, 1, 4)
    with style.course():
        figure.legend(handles=_marks(), loc="outside lower center", ncols=5, fontsize=9.5)
    chosen, labels = seen.graphs[:4], seen.labels[:4]
    at = [places(graph) for graph in chosen]

    def update(
        drop_nodes: float, perturb_edges: float, mask_attributes: float, subgraph: float, draw: int
    ) -> str:
        augment = views.GraphAugmentation(
            drop_nodes, perturb_edges, mask_attributes, subgraph, one_each=False
        )
        found = augment(chosen, torch.Generator().manual_seed(draw))
        phrases = []
        with style.course():
            for ax, graph, view, where, label in zip(axes, chosen, found, at, labels, strict=True):
                ax.clear()
                said = beside_its_view(ax, graph, view, where)
                ax.set_title(seen.class_names[label], fontsize=10)
                phrases.append(f"{seen.class_names[label]}: {said}")
        figures.describe(
            figure,
            "Four graphs and a view of each: crosses are dropped nodes, dotted lines dropped edges, "
            "dashed ones added, open circles nodes whose attributes are masked.",
        )
        return "; ".join(phrases)

    names = ("drop nodes", "perturb edges", "mask attributes", "subgraph")
    sliders = {
        name.replace(" ", "_"): slider(name, 0.0, 0.8, 0.2 if not at_ else 0.0, 0.1)
        for at_, name in enumerate(names)
    }
    return panel(figure, update, **sliders, draw=among("draw", range(8), 0))


def _marks() -> list[Line2D]:
    """Legend handles for what `beside_its_view` draws."""
    node: dict[str, Any] = {"linestyle": "none", "markersize": 6}
    open_circle = node | {"markerfacecolor": "white"}
    return [
        Line2D([], [], marker="o", color=style.BLACK, label="node", **node),
        Line2D([], [], marker="x", color=style.VERMILLION, label="node dropped", **node),
        Line2D([], [], marker="o", color=style.BLACK, label="attributes masked", **open_circle),
        Line2D([], [], color=style.VERMILLION, linewidth=1, linestyle=":", label="edge dropped"),
        Line2D([], [], color=style.BLUE, linewidth=2.4, linestyle="--", label="edge added"),
    ]


@style.in_course_style
def networks(sets: Mapping[str, GraphSet]) -> Axes:
    """Networks side by side, nodes coloured and marked by class, the classes named below each."""
    _, axes = figures.new(9.6, 3.8, 1, len(sets))
    for ax, (name, found) in zip(np.atleast_1d(axes), sets.items(), strict=True):
        at, (_, _, adjacency) = places(found.graphs[0]), unpacked(found.graphs[0])
        for a, b in adjacency.triu(1).nonzero().tolist():
            ax.plot(*at[[a, b]].T, color="0.75", linewidth=0.7, linestyle="-", zorder=1)
        for label, looks in enumerate(style.series(len(found.class_names), ordered=False)):
            own = at[(found.labels == label).numpy()]
            name_of = found.class_names[label]
            ax.scatter(*own.T, s=SIZE, color=looks["color"], marker=looks["marker"], zorder=2, label=name_of)
        bare(ax)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, fontsize=9)
        ax.set_title(name)
    return figures.describe(
        axes if isinstance(axes, Axes) else axes[0],
        f"Networks: {', '.join(sets)}; a mark and colour a class.",
    )


def smoothing(found: Mapping[str, Mapping[str, Sequence[float]]], chance: float) -> Panel:
    """Similarity of nodes and accuracy of neighbours against depth, with a slider that reads them off."""
    figure, (left, middle, right) = figures.new(10.4, 3.6, 1, 3)
    marks = []
    with style.course():
        for (name, rows), looks in zip(found.items(), style.series(len(found), ordered=False), strict=True):
            for ax, what in ((left, "similarity"), (middle, "by distance"), (right, "by cosine")):
                ax.plot(rows[what], color=looks["color"], linestyle=looks["linestyle"], label=name)
                marks.append((ax.plot([], [], "o", color=looks["color"])[0], rows[what]))
        left.set(xlabel="layers", title="mean cosine of two nodes", ylim=(-0.1, 1.05))
        for ax, what in ((middle, "distance"), (right, "cosine")):
            ax.axhline(chance, color="0.5", linewidth=1, label="chance")
            ax.set(xlabel="layers", title=f"nearest by {what} has the class", ylim=(0, 1.05))
        figure.legend(*right.get_legend_handles_labels(), loc="outside upper center", ncols=len(found) + 1)
    figures.describe(
        figure,
        "Left: the mean similarity of two nodes by depth. Then how often the nearest node has the class, "
        "by distance and by cosine.",
    )

    def update(layers: int) -> str:
        for mark, values in marks:
            mark.set_data([layers], [values[layers]])
        phrases = [
            f"{name}: similarity {rows['similarity'][layers]:.3f}, of the class by distance "
            f"{rows['by distance'][layers]:.2f}, by cosine {rows['by cosine'][layers]:.2f}"
            for name, rows in found.items()
        ]
        return f"{layers} layers: {'; '.join(phrases)}"

    return panel(figure, update, layers=slider("layers", 0, len(marks[0][1]) - 1, 2))

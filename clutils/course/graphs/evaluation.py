"""Graph embeddings judged as the papers do it, beside counts that learn nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from clutils import encoders, training
from clutils.data import GraphSet
from clutils.data.graphs import unpacked


def ten_folds(features: Tensor | np.ndarray, labels: Tensor, seed: int = 0) -> float:
    """Accuracy of logistic regression on frozen features (N, D), standardised: the mean over ten folds.

    With C = 1, so that nothing is chosen by the folds that judge; the papers choose C, and often the epoch,
    by them, which flatters.
    """
    x, y = np.asarray(features, dtype=np.float64), labels.numpy()
    folds = StratifiedKFold(10, shuffle=True, random_state=seed).split(x, y)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    return float(np.mean([model.fit(x[train], y[train]).score(x[test], y[test]) for train, test in folds]))


def degree_counts(graphs: Tensor) -> np.ndarray:
    """How many nodes of each degree, and of each attribute, a graph has: (N, columns)."""
    nodes, attributes, adjacency = unpacked(graphs)
    degrees = nn.functional.one_hot(adjacency.sum(dim=2).long()) * nodes[..., None]
    return torch.cat([degrees.sum(dim=1), attributes.sum(dim=1)], dim=1).numpy()


def wl_colours(graphs: Tensor, rounds: int = 3) -> list[Counter]:
    """Weisfeiler & Leman's colours of every graph: how many nodes have each, of every round.

    A node's colour is its attributes' at first; then, each round, its own and the multiset of its
    neighbours', given a new number.
    """
    nodes, attributes, adjacency = (part.numpy() for part in unpacked(graphs))
    known: dict[Any, int] = {}
    counted: list[Counter] = []
    for present, own, tied in zip(nodes, attributes, adjacency, strict=True):
        at = np.flatnonzero(present)
        neighbours = [np.flatnonzero(tied[v]) for v in range(len(tied))]
        colour = {v: known.setdefault(("first", own[v].tobytes()), len(known)) for v in at}
        counts = Counter(colour.values())
        for _ in range(rounds):
            seen = {v: (colour[v], tuple(sorted(colour[u] for u in neighbours[v]))) for v in at}
            colour = {v: known.setdefault(signature, len(known)) for v, signature in seen.items()}
            counts.update(colour.values())
        counted.append(counts)
    return counted


def wl_counts(graphs: Tensor, rounds: int = 3, most: int = 200) -> np.ndarray:
    """The same as a table, (N, columns): the colours that most graphs have, as in the WL subtree kernel."""
    counted = wl_colours(graphs, rounds)
    often = Counter(colour for counts in counted for colour in counts)
    columns = {colour: at for at, (colour, _) in enumerate(often.most_common(most))}
    table = np.zeros((len(counted), len(columns)))
    for row, counts in zip(table, counted, strict=True):
        for colour, number in counts.items():
            if colour in columns:
                row[columns[colour]] = number
    return table


def compare(
    seen: GraphSet, learned: dict[str, dict[str, Any]], seeds: Sequence[int] = range(5), **settings: Any
) -> pd.DataFrame:
    """Ten-fold accuracy of counts, of fresh weights and of what was learned: mean and spread over seeds.

    - learned: name -> settings of the run (method, loss); settings: of every run
    - a seed draws folds, weights and views; of counts, the folds alone

    Columns: mean, spread (standard deviation over seeds), seeds. With CLUTILS_FAST=1 two seeds, short runs.
    """
    seeds = list(seeds)[:2] if training.fast() else list(seeds)
    found: dict[str, list[float]] = {}
    fixed = {"degrees counted": degree_counts(seen.graphs), "WL colours counted": wl_counts(seen.graphs)}
    for seed in seeds:
        for name, table in fixed.items():
            found.setdefault(name, []).append(ten_folds(table, seen.labels, seed))
        for name, own in {"fresh weights": None, **learned}.items():
            given = {"threads": 1} | settings | (own or {"method": "graphcl"})  # two take longer
            run = training.Run(data=seen, seed=seed, **given)
            if own is not None:
                training.shorten(run)
                run.finish(progress=False)
            z = encoders.embed(run.encoder, seen.graphs)
            found.setdefault(name, []).append(ten_folds(z, seen.labels, seed))
    rows = {
        name: {"mean": np.mean(values), "spread": np.std(values, ddof=1), "seeds": len(values)}
        for name, values in found.items()
    }
    return pd.DataFrame(rows).T


def half_of_each_class(labels: Tensor, seed: int = 0) -> Tensor:
    """(N,) bool: a random half of each class, for a probe; the other half is judged."""
    draw, chosen = torch.Generator().manual_seed(seed), torch.zeros(len(labels), dtype=torch.bool)
    for label in labels.unique():
        own = torch.nonzero(labels == label)[:, 0]
        chosen[own[torch.randperm(len(own), generator=draw)[: len(own) // 2]]] = True
    return chosen


def told(table: pd.DataFrame) -> str:
    """The best row that was learned against each of the three that were not: above, below, or not apart.

    Apart means by more than twice the spread of the difference over seeds.
    """
    best = table.iloc[3:]["mean"].idxmax()
    lines = []
    for name in table.index[:3]:
        difference = table.loc[best, "mean"] - table.loc[name, "mean"]
        noise = 2 * (table.loc[best, "spread"] ** 2 + table.loc[name, "spread"] ** 2) ** 0.5
        where = "above" if difference > noise else "below" if difference < -noise else "not apart from"
        lines.append(
            f"{best} is {where} {name}: {difference:+.3f}, twice the spread over seeds is {noise:.3f}"
        )
    return "\n".join(lines)

"""Evaluation of graph embeddings as the papers do it, beside counts that learn nothing."""

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from clutils import encoders, losses, training
from clutils.course import evidence
from clutils.data import GraphSet
from clutils.data.graphs import unpacked
from clutils.settings import one_of

FRESH, CONTROL = "fresh weights", "a control: with labels"
SETTLED = f"{FRESH}, statistics settled"
JUDGES = ("logistic regression", "SVC")


def ten_folds(
    features: Tensor | np.ndarray, labels: Tensor, seed: int = 0, judge: str = "logistic regression"
) -> float:
    """Accuracy of a judge on frozen features (N, D): the mean over ten folds. Neither of `JUDGES` looks at
    the fold that judges.

    - "logistic regression": on standardised features, with C = 1: nothing is chosen
    - "SVC": as GraphCL's code (evaluate_embedding.py of unsupervised_TU): an RBF kernel on the features as
      they are, C chosen from 1e-3 to 1e3 by five folds inside each training fold
    """
    one_of("ten_folds", "judge", judge, JUDGES)
    x, y = np.asarray(features, dtype=np.float64), labels.numpy()
    folds = StratifiedKFold(10, shuffle=True, random_state=seed).split(x, y)
    model: Any = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    if judge == "SVC":
        model = GridSearchCV(SVC(), {"C": [10.0**power for power in range(-3, 4)]}, cv=5)
    with threadpool_limits(1):  # on so few rows threads wait for each other: two take ten times as long
        scores = [model.fit(x[train], y[train]).score(x[test], y[test]) for train, test in folds]
    return float(np.mean(scores))


def atom_counts(graphs: Tensor) -> np.ndarray:
    """Number of nodes of each attribute in a graph: (N, F)."""
    return unpacked(graphs)[1].sum(dim=1).numpy()


def degree_counts(graphs: Tensor) -> np.ndarray:
    """Number of nodes of each degree, and of each attribute, in a graph: (N, columns)."""
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
    """Table of `wl_colours`, (N, columns): the colours that most graphs have, as in the WL subtree kernel."""
    counted = wl_colours(graphs, rounds)
    often = Counter(colour for counts in counted for colour in counts)
    kept = [colour for colour, _ in often.most_common(most)]
    return np.array([[counts[colour] for colour in kept] for counts in counted], dtype=float)


PLAIN = ("degrees counted", "WL colours counted", FRESH, SETTLED)  # what no step made
LEARNED: dict[str, dict[str, Any]] = {
    CONTROL: {"method": "supcon"},
    "GraphCL, decoupled": {"method": "graphcl"},
    "GraphCL, NT-Xent": {"method": "graphcl", "loss": losses.NTXent(0.2)},
    "GraphCL, MACL": {"method": "graphcl", "loss": losses.MACL(0.2)},
    "SimGRACE": {"method": "simgrace"},
}


def compare(
    seen: GraphSet,
    learned: dict[str, dict[str, Any]] | None = None,
    seeds: Sequence[int] = range(5),
    **settings: Any,
) -> pd.DataFrame:
    """Ten-fold accuracy of counts, of fresh weights and of what was learned: features, seed, accuracy.

    Fresh weights twice: as they are, and after their batch normalisations have seen these graphs; no weight
    moves in that. Every trained encoder is evaluated in the second way, too.

    - learned: name -> settings of the run (method, loss), `LEARNED` where none are given; the first of those
      is the control, which learns with the labels that it is tested on. settings: of every run
    - a seed draws folds, weights and views; of counts, the folds alone

    With CLUTILS_FAST=1 two seeds, short runs.
    """
    seeds = list(seeds)[:2] if training.fast() else list(seeds)
    fixed = {"degrees counted": degree_counts(seen.graphs), "WL colours counted": wl_counts(seen.graphs)}
    rows = []
    for seed in seeds:
        for name, counted in fixed.items():
            rows.append((name, seed, ten_folds(counted, seen.labels, seed)))
        for name, own in {FRESH: None, **(LEARNED if learned is None else learned)}.items():
            given = settings | copy.deepcopy(own or {"method": "graphcl"})
            run = training.Run(data=seen, seed=seed, **given)
            if own is not None:
                training.shorten(run)
                run.finish(progress=False)
            even = encoders.settled(run.encoder, seen.graphs)
            judged = {FRESH: run.encoder, SETTLED: even} if own is None else {name: even}
            for called, encoder in judged.items():
                z = encoders.embed(encoder, seen.graphs)
                rows.append((called, seed, ten_folds(z, seen.labels, seed)))
    return pd.DataFrame(rows, columns=["features", "seed", "accuracy"])


def by_both_judges(seen: GraphSet, seed: int, **settings: Any) -> list[dict[str, Any]]:
    """Rows (features, judge, seed, accuracy): atoms and degrees counted, a fresh GIN, the same by GraphCL.

    - settings: of GraphCL's run
    """
    run = training.Run(method="graphcl", data=seen, seed=seed, **settings)
    fresh = encoders.embed(run.encoder, seen.graphs)
    even = encoders.embed(encoders.settled(run.encoder, seen.graphs), seen.graphs)
    training.shorten(run)
    run.finish(progress=False)
    found: dict[str, Any] = {
        "atoms counted": atom_counts(seen.graphs),
        "degrees and atoms counted": degree_counts(seen.graphs),
        FRESH: fresh,
        SETTLED: even,
        f"GraphCL, {run.steps_done} steps": run.embed(seen),
    }
    return [
        {"features": name, "judge": judge, "seed": seed, "accuracy": ten_folds(z, seen.labels, seed, judge)}
        for name, z in found.items()
        for judge in JUDGES
    ]


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean, spread (standard deviation over seeds) and seeds of `compare`'s rows, by kind of features."""
    by_name = rows.groupby("features", sort=False)["accuracy"]
    return by_name.agg(mean="mean", spread="std", seeds="count")


def summary(rows: pd.DataFrame) -> str:
    """Every row that was learned minus each of what was not, seed by seed, a line each.

    Not learned are fresh weights, those with settled statistics, and of the two counts the better one.
    """
    seeds = rows.pivot(index="seed", columns="features", values="accuracy")
    lines, counted = [], max(PLAIN[:2], key=lambda name: seeds[name].mean())
    learned = [name for name in dict.fromkeys(rows["features"]) if name not in PLAIN]
    for other in (FRESH, SETTLED, counted):
        for name in [SETTLED, *learned] if other == FRESH else learned:
            gap = evidence.paired(seeds[name].tolist(), seeds[other].tolist())
            lines.append(f"{name} minus {other}: {100 * gap.mean:+.1f} ± {100 * gap.half:.1f}, {gap.verdict}")
    return "\n".join(lines)


# ---- nodes, without a weight and with ----------------------------------------------------------------------


def propagated(network: GraphSet, rounds: int = 2) -> Tensor:
    r"""$S^kX$, GCN's propagation of the attributes and nothing learned (SGC, Wu et al. 2019): (V, F)."""
    _, attributes, adjacency = (part[0] for part in unpacked(network.graphs))
    S, h = encoders.graphs.propagation(adjacency[None])[0], attributes
    for _ in range(rounds):
        h = S @ h
    return h


def eigenvectors(network: GraphSet, count: int) -> Tensor:
    """The eigenvectors of GCN's propagation with the largest eigenvalues: (V, count). No attribute counts."""
    S = encoders.graphs.propagation(unpacked(network.graphs)[2].double())[0]
    if len(S) < 1000:
        return torch.linalg.eigh(S).eigenvectors[:, -count:].float()
    from scipy.sparse import csr_matrix
    from scipy.sparse.linalg import eigsh

    first = np.ones(len(S))  # else it starts at random
    return torch.from_numpy(eigsh(csr_matrix(S.numpy()), count, v0=first)[1]).float()


def with_even_rows(network: GraphSet) -> GraphSet:
    """Copy of a network, each node's attributes divided by their sum, as in GCN, DGI and GRACE."""
    graphs, V = network.graphs.clone(), network.graphs.shape[1]
    graphs[..., 1:-V] /= graphs[..., 1:-V].sum(dim=-1, keepdim=True).clamp(min=1e-12)
    return replace(network, graphs=graphs, source=f"{network.source}; attributes divided by their row's sum")


STRENGTHS = tuple(10.0**power for power in range(-3, 4))  # C, of which a validation part chooses


def on_public_parts(z: Tensor, parts: dict[str, GraphSet]) -> dict[str, float]:
    """Logistic regression on the public training nodes; C chosen on the validation part.

    Features are divided by one number, their deviation over all nodes: 140 nodes know too little of each
    column's own.

    - z: (V, D), a row a node of the network; parts: "public-train", "public-val" and "public-test" of it

    Gives C, and the accuracy on the validation part and, looked at once, on the test part.
    """
    rows = {name: of.graphs[0, :, 0] > 0 for name, of in parts.items()}
    z = (z - z.mean(dim=0)) / z.std()
    x = {name: np.asarray(z[own], np.float64) for name, own in rows.items()}
    y = {name: of.labels.numpy() for name, of in parts.items()}
    fitted = {}
    for C in STRENGTHS:
        fitted[C] = LogisticRegression(C=C, max_iter=500).fit(x["public-train"], y["public-train"])
    scores = {C: model.score(x["public-val"], y["public-val"]) for C, model in fitted.items()}
    best = max(scores, key=lambda C: (scores[C], -C))
    return {
        "C": best,
        "validation": scores[best],
        "test": float(fitted[best].score(x["public-test"], y["public-test"])),
    }

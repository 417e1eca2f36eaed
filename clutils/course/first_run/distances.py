"""Distances between classes, in truth and on a map; and maps of data whose structure is known."""

from collections.abc import Mapping
from textwrap import fill

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from clutils.figures import describe, new, style
from clutils.figures.maps import Points
from clutils.similarities import normalise


def class_distances(z: Tensor, positions: np.ndarray, labels: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """How far apart the centres of two classes are, for each pair of classes: in truth, and on a map.

    - z: (N, D) embeddings, of which unit vectors are taken; positions: (N, 2), their map; labels: (N,)

    Both are divided by their own mean. Raises ValueError with fewer than three classes: two distances have
    nothing to be compared with.
    """
    classes = [c for c in torch.as_tensor(labels).unique().tolist() if c >= 0]
    if len(classes) < 3:
        raise ValueError(f"class_distances: {len(classes)} classes, but at least 3 are needed")
    found = []
    for points in (normalise(torch.as_tensor(z), "z", "class_distances"), torch.as_tensor(positions)):
        centres = torch.stack([points[torch.as_tensor(labels) == c].double().mean(dim=0) for c in classes])
        apart = torch.pdist(centres)
        found.append((apart / apart.mean()).numpy())
    return found[0], found[1]


def rank_correlation(truth: np.ndarray, seen: np.ndarray) -> float:
    """Spearman's: 1 where the map keeps the order of the distances, 0 where it knows nothing of it."""
    from scipy.stats import spearmanr

    return float(spearmanr(truth, seen).statistic)


@style.in_course_style
def worlds(
    truths: Mapping[str, np.ndarray], drawn: Mapping[str, np.ndarray], labels: Mapping[str, Tensor]
) -> Figure:
    """Small worlds above, and their maps below: a column for each world.

    - truths: name -> a faithful image of the data (N, 2), such as its first two principal components
    - drawn: name -> the map (N, 2); labels: name -> (N,)
    """
    figure, axes = new(3.2 * len(truths), 6.7, 2, len(truths), squeeze=False)
    for j, name in enumerate(truths):
        for i, positions in enumerate((truths[name], drawn[name])):
            Points(axes[i, j], labels[name], size=11, names=False).update(positions)
        axes[0, j].set_title(style.literal(fill(name, 30)), loc="center")
    axes[0, 0].set_ylabel("the data (PCA)")
    axes[1, 0].set_ylabel("the map (t-SNE)")
    return describe(
        figure,
        f"{len(truths)} data sets ({'; '.join(truths)}): above their principal components, below their t-SNE "
        "maps.",
    )

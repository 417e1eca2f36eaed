"""One name, four numbers: RankMe and LiDAR as the papers and public code compute them.

Sources were read but where a name below says otherwise: stable-pretraining's callbacks `rankme.py` (in one
version centred, in another not, ε = 1e-5) and `lidar.py`; other public code on GitHub, where it is called by
the same name. LiDAR's paper is read through that code.
"""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from clutils import measures


def _rank(values: Tensor, epsilon: float = 0.0) -> float:
    shares = values / values.sum() + epsilon
    return torch.special.entr(shares).sum().exp().item()


def _singular(z: Tensor, centred: bool) -> Tensor:
    z = z.double()
    return torch.linalg.svdvals(z - z.mean(dim=0) if centred else z)


RANKME: dict[str, Callable[[Tensor], float]] = {
    "the paper: σ of the rows as they are, ε = 1e-7": measures.rankme,
    "stable-pretraining, one version: as they are, ε = 1e-5": lambda z: measures.rankme(z, 1e-5),
    "stable-pretraining, another: centred, ε = 1e-5": lambda z: _rank(_singular(z, True), 1e-5),
    "public code: centred and squared, λ = σ²": lambda z: _rank(_singular(z, True).square()),
    "public code: entropy over log D, in [0, 1]": lambda z: (
        math.log(_rank(_singular(z, False))) / math.log(z.shape[1])
    ),
}


def lidar(views: Tensor, delta: float, epsilon: float, inside: bool = False) -> float:
    """LiDAR with unbiased covariances, over N - 1 and N (V - 1); views (N, V, D).

    inside: ε is added to each eigenvalue before they are divided by their sum, and not to the shares
    """
    views = views.double()
    count, each, wide = views.shape
    means = views.mean(dim=1)
    around = (views - means[:, None]).flatten(0, 1)
    within = around.T @ around / (count * (each - 1)) + delta * torch.eye(wide, dtype=torch.float64)
    scatter, directions = torch.linalg.eigh(within)
    between = (means - means.mean(dim=0)) @ directions / scatter.sqrt() / math.sqrt(count - 1)
    values = torch.linalg.eigvalsh(between.T @ between).clamp(min=0)
    return _rank(values + epsilon) if inside else _rank(values, epsilon)


def queued(views: Tensor) -> Tensor:
    """The same embeddings as a queue without the images' numbers has them: each 'class' mixes images."""
    count, each, wide = views.shape
    return views.transpose(0, 1).reshape(count, each, wide)


LIDAR: dict[str, Callable[[Tensor], float]] = {
    "means over N and N V, δ = 1e-4, ε = 1e-7": measures.lidar,
    "public code: over N - 1 and N (V - 1), δ = ε = 1e-6": lambda v: lidar(v, 1e-6, 1e-6),
    "stable-pretraining: the same, δ = 1e-4, (λ + ε)/Σ(λ + ε)": lambda v: lidar(v, 1e-4, 1e-8, inside=True),
    "the same, of a queue that mixes images": lambda v: lidar(queued(v), 1e-4, 1e-8, inside=True),
}


def ledger(ways: Mapping[str, Callable[[Tensor], float]], given: Tensor) -> str:
    """A line for each way: the number, and who computes it so."""
    return "\n".join(f"{way(given):8.2f}   {who}" for who, way in ways.items())

"""Gradients of several losses on the same similarities, and the angle between two: exercise 2's measure."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from clutils import anatomy
from clutils.losses import Loss

PARALLEL = 1e-4  # degrees below which two directions are one; arccos near 1 knows no less in float64


def gradients(family: Mapping[str, Loss], positives: Tensor, negatives: Tensor) -> dict[str, Tensor]:
    """name -> minus the gradient of each anchor's loss by its similarities, (A, P + K): pull, then -push.

    positives (A, P), negatives (A, K), float64.
    """
    found = {}
    for name, loss in family.items():
        pull, push = anatomy.forces(loss, positives, negatives)
        found[name] = torch.cat([pull, -push], dim=1)
    return found


def difference(a: Tensor, b: Tensor) -> float:
    """Largest difference of two gradients (A, n), relative to the longer of both, over the anchors."""
    longer = torch.maximum(a.norm(dim=1), b.norm(dim=1)).clamp(min=1e-300)
    return float(((a - b).norm(dim=1) / longer).max())


def angles(a: Tensor, b: Tensor) -> Tensor:
    """Angle between two gradients (A, n), in degrees, for each anchor that has both."""
    both = (a.norm(dim=1) > 0) & (b.norm(dim=1) > 0)
    u, v = (torch.nn.functional.normalize(x[both], dim=1) for x in (a, b))
    # 2 asin(|u - v| / 2) is exact where the angle is small, and arccos is not
    return (2 * ((u - v).norm(dim=1) / 2).clamp(max=1).asin()).rad2deg()


def angle(a: Tensor, b: Tensor) -> float:
    """Largest of `angles`; NaN where no anchor has both."""
    found = angles(a, b)
    return float(found.max()) if len(found) else math.nan

"""Points that move on the circle or sphere under a loss alone: no images, no encoder, milliseconds."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils import anatomy
from clutils.losses.base import Loss


@dataclass(frozen=True)
class Trajectory:
    """Where N pairs of points were after each of T steps.

    - z1, z2: (T + 1, N, D), unit vectors; frame 0 is the start
    - loss: (T + 1,), the loss at each frame
    - labels: (N,) or None
    """

    z1: Tensor
    z2: Tensor
    loss: Tensor
    labels: Tensor | None = None

    def __len__(self) -> int:
        return len(self.loss)


def start(
    pairs: int = 12, dimension: int = 2, spread: float = 0.5, arc: float = 2 * math.pi, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Two views of `pairs` images as unit vectors, (pairs, dimension) each, float64.

    - spread: how far each view lies from its image, in radians (standard deviation along each tangent)
    - arc: on the circle, the images lie within this angle (radians) around the top; all of it by default.
      In more dimensions a smaller arc draws them towards the pole of the last axis.

    Raises ValueError unless dimension is 2 or more and pairs 1 or more.
    """
    if pairs < 1 or dimension < 2:
        raise ValueError(f"sphere.start: needs pairs >= 1 and dimension >= 2, got {pairs} and {dimension}")
    draw = torch.Generator().manual_seed(seed)
    if dimension == 2:
        angle = arc * (torch.rand(pairs, generator=draw, dtype=torch.float64) - 0.5) + math.pi / 2
        centres = torch.stack([angle.cos(), angle.sin()], dim=1)
    else:
        centres = F.normalize(torch.randn(pairs, dimension, generator=draw, dtype=torch.float64), dim=1)
        centres[:, -1] += 2 * max(0.0, 1 - arc / (2 * math.pi))  # a smaller arc draws them to the pole
        centres = F.normalize(centres, dim=1)
    views = [
        F.normalize(
            centres + spread * torch.randn(pairs, dimension, generator=draw, dtype=torch.float64), dim=1
        )
        for _ in range(2)
    ]
    return views[0], views[1]


def move(
    loss: Loss,
    z1: Tensor,
    z2: Tensor,
    steps: int = 100,
    learning_rate: float = 0.05,
    labels: Tensor | None = None,
    longest_step: float = 0.2,
) -> Trajectory:
    """Gradient descent of the points themselves, each step brought back to the sphere.

    - z1, z2: (N, D), two views; labels: (N,), for losses that take them
    - learning_rate: times the gradient of 2N times the mean loss, so that it does not shrink with N
    - longest_step: no point moves farther than this in a step (radians, about): a low temperature makes
      forces of 1/τ, which would otherwise throw points across the sphere

    Raises ValueError as the loss does.
    """
    if steps < 0 or learning_rate <= 0:
        raise ValueError(f"sphere.move: needs steps >= 0 and learning_rate > 0, got {steps}, {learning_rate}")
    extra = {} if labels is None else {"labels": labels}
    points = torch.stack([F.normalize(z1.detach(), dim=1), F.normalize(z2.detach(), dim=1)])
    frames, losses = [points], []
    for step in range(steps + 1):
        here = points.clone().requires_grad_()
        with torch.enable_grad():
            value = loss(here[0], here[1], **extra)
            (gradient,) = torch.autograd.grad(value * points.shape[1] * 2, here)
        losses.append(value.detach())
        if step == steps:
            break
        stride = -learning_rate * gradient
        length = stride.norm(dim=-1, keepdim=True)
        stride = stride * (longest_step / length.clamp(min=longest_step))
        points = F.normalize(points + stride, dim=-1)
        frames.append(points)
    path = torch.stack(frames)  # (steps + 1, 2, N, D)
    return Trajectory(path[:, 0], path[:, 1], torch.stack(losses), labels)


def forces(loss: Loss, z1: Tensor, z2: Tensor, labels: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Pull and push on each point, as tangent vectors, (2, N, D) each.

    Index 0 holds the points of z1 (N, D), 1 those of z2. The pull is the part of the force that comes through
    positives, the push the part through negatives, both summed over all anchors that a point takes part in;
    pull + push is minus the gradient of 2N times the mean loss, which is what `move` follows: where each pair
    is taken one way, its N anchors count twice.

    Raises ValueError as the loss does.
    """
    here = torch.stack([F.normalize(z1.detach(), dim=1), F.normalize(z2.detach(), dim=1)]).requires_grad_()
    with torch.enable_grad():
        loss.only_similarities()
        pairs = loss.compare(here[0], here[1], labels=labels)
        masks = pairs.positive_mask, pairs.negative_mask
        pull, push = anatomy.forces(loss, pairs.positives, pairs.negatives, *masks)
        # the normalisation inside `compare` leaves only what is tangent to the sphere
        times = 2 * len(z1) / len(pull)
        (drawn,) = torch.autograd.grad(times * (pull * pairs.positives).sum(), here, retain_graph=True)
        (driven,) = torch.autograd.grad(-times * (push * pairs.negatives).sum(), here)
    return drawn, driven


def gaps(z: Tensor) -> Tensor:
    """Angles between neighbours on the circle, in degrees, (N,): z (N, 2); they sum to 360.

    The first is that from the point with the smallest angle in (-180°, 180°] to the next.
    Raises ValueError unless the points are in the plane.
    """
    if z.ndim != 2 or z.shape[1] != 2 or len(z) < 1:
        raise ValueError(
            f"sphere.gaps: z is {tuple(z.shape)}, but neighbours exist on the circle only: (N, 2)"
        )
    angles = torch.atan2(z[:, 1], z[:, 0]).sort().values
    return torch.diff(angles, append=angles[:1] + 2 * math.pi).rad2deg()

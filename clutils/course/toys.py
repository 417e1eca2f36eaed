"""The small hand-written cases that the notebooks derive everything on first."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def three_points() -> tuple[Tensor, Tensor]:
    """An anchor, its positive at similarity 0.8, and two negatives at 0.3 and -0.5: (1, 1) and (1, 2)."""
    return torch.tensor([[0.8]], dtype=torch.float64), torch.tensor([[0.3, -0.5]], dtype=torch.float64)


def one_hard_negative(easy: int = 200) -> tuple[Tensor, Tensor]:
    """s+ = 0.5, one negative at 0.9 and `easy` at -0.9: (1, 1) and (1, 1 + easy).

    W is not monotone in τ here: the counter-example to MACL's proposition 2.
    """
    negatives = torch.full((1, 1 + easy), -0.9, dtype=torch.float64)
    negatives[0, 0] = 0.9
    return torch.tensor([[0.5]], dtype=torch.float64), negatives


def random_similarities(
    anchors: int, positives: int, negatives: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Similarities uniform in [-1, 1], float64: (anchors, positives) and (anchors, negatives)."""
    shape = (anchors, positives + negatives)
    s = 2 * torch.rand(*shape, generator=generator, dtype=torch.float64) - 1
    return s[:, :positives], s[:, positives:]


def classes_on_the_circle(
    classes: int = 4, pictures: int = 4, width: float = 0.15, spread: float = 0.1, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Two views of a few images of each class, all around the circle: z1, z2 (N, 2), labels (N,).

    Images of a class lie near each other, and are false negatives: a loss without labels does not know it.

    - width: how far an image lies from the middle of its class; spread: how far a view from its image
      (standard deviations, about in radians)
    """
    draw = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes).repeat_interleave(pictures)
    angle = labels.double() * 2 * math.pi / classes
    middle = torch.stack([angle.cos(), angle.sin()], dim=1)

    def near(points: Tensor, deviation: float) -> Tensor:
        noise = torch.randn(points.shape, generator=draw, dtype=torch.float64)
        return F.normalize(points + deviation * noise, dim=1)

    own = near(middle, width)
    return near(own, spread), near(own, spread), labels


def classes_on_the_sphere(
    width: float = 1.5, classes: int = 10, pictures: int = 256
) -> tuple[Tensor, Tensor, Tensor]:
    """Two views of a batch whose classes are clouds on the sphere: z1, z2 (N, 128), labels (N,), float64.

    As many images of each class as fit evenly. No encoder is in it, so what is measured on it is the same
    everywhere and always.

    - width: how far an image lies from the middle of its class, against 1, the distance of the middle from
      the origin; 100 leaves nothing of the classes. For a view and its image it is 0.6
    """
    draw, dimension, spread = torch.Generator().manual_seed(0), 128, 0.6
    labels = torch.arange(pictures) % classes
    middle = F.normalize(torch.randn(classes, dimension, generator=draw, dtype=torch.float64), dim=1)

    def near(points: Tensor, deviation: float) -> Tensor:
        noise = torch.randn(points.shape, generator=draw, dtype=torch.float64) / dimension**0.5
        return F.normalize(points + deviation * noise, dim=1)

    own = near(middle[labels], width)
    return near(own, spread), near(own, spread), labels

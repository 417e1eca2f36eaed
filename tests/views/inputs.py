"""Images and parameters that the tests of views share."""

import numpy as np
import torch

from clutils import views
from clutils.views import Parameters


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pictures(n: int, height: int, width: int, channels: int = 3, seed: int = 0) -> torch.Tensor:
    """Float noise; in front what breaks colour formulas: gray, black, white, primaries, equal channels."""
    images = torch.rand(n, channels, height, width, generator=seeded(seed))
    special = [
        torch.full_like(images[0], 0.3),
        torch.zeros_like(images[0]),
        torch.ones_like(images[0]),
        (images[0] > 0.5).float(),
        (images[0] * 3).round() / 3,
        images[0] * 1e-6,
    ]
    images[: len(special)] = torch.stack(special)[:n]
    return images


def random_boxes(n: int, height: int, width: int, seed: int = 0) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    tall, wide = rng.integers(1, height + 1, n), rng.integers(1, width + 1, n)
    top, left = rng.integers(0, height - tall + 1), rng.integers(0, width - wide + 1)
    return torch.from_numpy(np.stack([top, left, tall, wide], axis=1))


def one_by_one(function, images, *parameters) -> torch.Tensor:
    return torch.stack([function(image, *p) for image, *p in zip(images, *parameters, strict=True)])


def parameters(images: torch.Tensor, **drawn: torch.Tensor) -> Parameters:
    """Parameters that change nothing, but for those that are given."""
    n, _, height, width = images.shape
    unchanged = {
        "boxes": torch.tensor([0, 0, height, width]).repeat(n, 1),
        "flipped": torch.zeros(n, dtype=torch.bool),
        "factors": torch.tensor(views.NEUTRAL).repeat(n, 1),
        "order": torch.arange(4),
        "grayscaled": torch.zeros(n, dtype=torch.bool),
        "sigma": torch.zeros(n),
    }
    return Parameters(**unchanged | drawn)

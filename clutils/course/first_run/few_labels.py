"""Label efficiency: a probe on features learned without labels, and the same encoder trained with them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clutils import encoders, views
from clutils.data import ImageSet
from clutils.training import optimisers


def supervised(
    train: ImageSet,
    test: ImageSet,
    steps: int,
    looks: Sequence[int],
    batch_size: int = 128,
    learning_rate: float = 3e-3,
    seed: int = 0,
) -> list[Tensor]:
    """conv16 and a linear layer, trained with cross-entropy on the labels of `train` -> whom it gets right.

    The supervised reference of a contrastive run: the same encoder, augmentation (SimCLR's) and schedule
    (a short rise, then a cosine), one view of each image.

    - looks: steps after which `test` is evaluated: (N,) bools for each of them
    """
    torch.manual_seed(seed)
    dice = torch.Generator().manual_seed(seed)
    augment = views.Augmentation(size=train.images.shape[-1])
    encoder = encoders.build("conv16", channels=train.images.shape[1])
    network = nn.Sequential(encoder, nn.Linear(encoder.features, len(train.class_names)))
    optimiser = optimisers.AdamW(network.parameters(), lr=learning_rate)
    rising, found = max(1, steps // 20), []
    for step in range(1, steps + 1):
        network.train()
        rows = torch.randint(len(train), (batch_size,), generator=dice)
        logits = network(encoders.as_input(augment(train.images[rows], dice)))
        loss = F.cross_entropy(logits, train.labels[rows])
        optimiser.zero_grad()
        loss.backward()
        rise = min(1.0, step / rising)
        optimiser.param_groups[0]["lr"] = learning_rate * rise * (1 + math.cos(math.pi * step / steps)) / 2
        optimiser.step()
        if step in looks:
            found.append(encoders.embed(network, test.images).argmax(dim=1) == test.labels)
    return found

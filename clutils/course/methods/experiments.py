"""Experiments of notebook 11: one function each, run live in small and recorded at full length."""

import copy
from typing import NamedTuple

import torch
from torch import Tensor

from clutils import similarities, training
from clutils.data import ImageSet


class KeyAges(NamedTuple):
    """How stale MoCo's keys are.

    - by_age: (A,) mean cosine of an image's keys of a steps ago and of today, for ages a of 0 to A - 1
    - others: mean cosine of today's keys of different images: an old key as far off says nothing of its own
    """

    by_age: Tensor
    others: float


def key_ages(
    momentum: float,
    train: ImageSet,
    steps: int = 60,
    batch_size: int = 128,
    pictures: int = 128,
    seed: int = 0,
    queue_size: int = 4096,
) -> KeyAges:
    """How stale MoCo's keys are, at ages of 0 to `steps` steps.

    After each step the key encoder of that moment makes keys of the same `pictures` views; those of age a are
    compared with the last ones. It is in training mode, as in a step: the views are one batch. The run is
    stopped half-way, where the learning rate is still high: at its end the weights hardly move any more.
    """
    run = training.Run(
        method="moco",
        data=train,
        steps=2 * steps,
        batch_size=batch_size,
        seed=seed,
        method_settings={"momentum": momentum, "queue_size": queue_size},
    )
    views = run.augmentation(run.images[:pictures], generator=torch.Generator().manual_seed(seed))

    @torch.no_grad()
    def keys() -> Tensor:
        encoder = copy.deepcopy(run.method.target_encoder).train()  # a copy: it learns batch statistics
        return similarities.normalise(run.method.target_head(run.method.features_of(views, encoder)))

    made = [keys()]
    for _ in range(steps):
        run.step()
        made.append(keys())
    today = made[-1]
    by_age = torch.stack([(old * today).sum(dim=1).mean() for old in reversed(made)])
    count = len(today)
    others = (today.sum(dim=0).square().sum() - count) / (count * (count - 1))
    return KeyAges(by_age.cpu(), others.item())

"""Short runs of the losses that choose how many negatives count, or remember what a small batch lacks."""

from __future__ import annotations

import torch

from clutils import data, losses, training
from clutils.course import experiments
from clutils.losses import Loss

ARMS = {
    "decoupled": lambda: losses.Decoupled(0.1),
    "robust": lambda: losses.Robust(1.0),
    "SogCLR": lambda: losses.SogCLR(0.1),
    "iSogCLR": lambda: losses.ISogCLR(0.3),
}


def trained(steps: int, seeds: int, train: data.ImageSet, test: data.ImageSet) -> dict[str, dict]:
    """Each of `ARMS` in SimCLR with batches of 32 -> name -> its kNN and its loss.

    - knn, untrained: (seeds,) kNN accuracy on the test pictures; loss: the last seed's, with its state
    - uniformity: the last seed's, of its first training batch and of its last
    """
    found = {}
    for name, make in ARMS.items():
        before, after = [], []
        for seed in range(seeds):
            loss = make()
            run = training.Run(loss=loss, data=train, steps=steps, batch_size=32, seed=seed)
            training.shorten(run)
            before.append(experiments.accuracy(run.embed, train, test))
            run.finish(progress=False)
            after.append(experiments.accuracy(run.embed, train, test))
        kept = {"untrained": torch.tensor(before), "knn": torch.tensor(after), "loss": loss}
        found[name] = kept | {"uniformity": run.history["uniformity"].iloc[[0, -1]].tolist()}
    return found


def seen(loss: Loss, state: str) -> torch.Tensor:
    """A state per sample, of the samples that a run has seen: `log_average` or `temperatures`."""
    return getattr(loss, state)[loss.log_average.isfinite()]

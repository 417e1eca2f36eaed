"""Short runs of the losses that choose how many negatives count, or remember what a small batch lacks."""

import torch

from clutils import data, losses, training
from clutils.course import experiments
from clutils.losses import Loss
from clutils.similarities import Pairs, normalise, two_views

ARMS = {
    "decoupled": lambda: losses.Decoupled(0.1),
    "robust": lambda: losses.Robust(1.0),
    "SogCLR": lambda: losses.SogCLR(0.1),
    "iSogCLR": lambda: losses.ISogCLR(0.3),
}


def trained(steps: int, seeds: int, train: data.ImageSet, test: data.ImageSet) -> dict[str, dict]:
    """Runs of `ARMS` in SimCLR with batches of 32 -> name -> its kNN and its loss.

    - knn, untrained: (seeds,) kNN accuracy on the test images; loss: the last seed's, with its state
    - uniformity: the last seed's, of its first training batch and of its last
    """
    found, before = {}, {}
    for name, make in ARMS.items():
        after = []
        for seed in range(seeds):
            loss = make()
            run = training.Run(loss=loss, data=train, steps=steps, batch_size=32, seed=seed)
            training.shorten(run)
            if seed not in before:  # every arm starts from the same weights
                before[seed] = experiments.accuracy(run.embed, train, test)
            run.finish(progress=False)
            after.append(experiments.accuracy(run.embed, train, test))
        untrained = torch.tensor([before[seed] for seed in range(seeds)])
        kept = {"untrained": untrained, "knn": torch.tensor(after), "loss": loss}
        found[name] = kept | {"uniformity": run.history["uniformity"].iloc[[0, -1]].tolist()}
    return found


def seen(loss: Loss, state: str) -> torch.Tensor:
    """A state per sample, of the samples that a run has seen: `log_average` or `temperatures`."""
    return getattr(loss, state)[loss.log_average.isfinite()]


def first_similarities(pictures: data.ImageSet, batch_size: int) -> Pairs:
    """Similarities in the first step of a new SimCLR: one encoder for both views, in training."""
    run, seen = training.Run(data=pictures, batch_size=batch_size, steps=1, precision="float32"), []
    run.loss.register_forward_pre_hook(lambda loss, given: seen.extend(given))
    run.step()
    z1, z2 = (normalise(z.detach().double(), "z", "first_similarities") for z in seen[:2])
    return two_views(z1, z2, "other view")

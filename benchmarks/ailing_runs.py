"""Four short runs of which three are ill: their curves are the puzzle at the end of notebook 03.

    python benchmarks/ailing_runs.py             prints how each of them ends
    python benchmarks/ailing_runs.py --record    and writes benchmarks/records/ailing_runs.csv

All of them train on generated scenes, and log NT-Xent's value, whatever they descend.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn

from clutils import data, losses, training
from clutils.course import experiments, records

NAME = "ailing_runs"
STEPS, BATCH, SEED = 80, 64, 0


class PullOnly(nn.Module):
    """NT-Xent's value, but the gradient of the positives alone: nothing pushes the negatives away."""

    def __init__(self) -> None:
        super().__init__()
        self.nt_xent = losses.NTXent(0.2)

    def forward(self, z1: Tensor, z2: Tensor) -> Tensor:
        pull = -torch.nn.functional.cosine_similarity(z1, z2).mean()
        return self.nt_xent(z1, z2).detach() + pull - pull.detach()


def runs() -> dict[str, training.Run]:
    """Runs by what ails them, not yet trained."""
    scenes = data.load("scenes", limit=2048)
    options = {"data": scenes, "encoder": "conv16", "steps": STEPS, "batch_size": BATCH, "seed": SEED}
    return {
        "views of different pictures are paired": training.Run(augmentation=experiments.mispaired, **options),
        "nothing": training.Run(**options),
        "τ = 10": training.Run(loss=losses.NTXent(10.0), **options),
        "no negatives in the gradient": training.Run(loss=PullOnly(), **options),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    test = data.load("scenes", split="test")
    for letter, (ailment, run) in zip("ABCD", runs().items(), strict=True):
        run.finish(progress=False)
        last, knn = run.rows[-1], round(experiments.accuracy(run.embed, run.data, test), 4)
        names = ("loss", "alignment", "uniformity")
        print(letter, ailment, *(f"{name} {last[name]:.3f}" for name in names), f"knn {knn}", flush=True)
        if options.record:
            curves = {name: " ".join(f"{row[name]:.4g}" for row in run.rows) for name in names}
            command = "python benchmarks/ailing_runs.py --record"
            settings = {"steps": STEPS, "batch_size": BATCH, "seed": SEED, "source": run.data.source}
            row = {"command": command, "run": letter, "ailment": ailment} | settings | {"knn": knn}
            records.append(NAME, row | curves)


if __name__ == "__main__":
    main()

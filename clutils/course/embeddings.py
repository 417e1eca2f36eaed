"""Embeddings of a trained encoder, as notebooks use them: made once, kept in `embeddings.npz`.

    python -m clutils.course.embeddings          makes the file again: some minutes on a CPU

NT-Xent at τ = 0.2 on generated scenes (ours to ship), conv16, batches of 128, 3,000 steps; kept after 300 of
them and after all: six views each of the first 128 test images, after the head, in half precision.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from clutils import data, losses, similarities, training
from clutils.settings import within

FILE = Path(__file__).with_name("embeddings.npz")
STEPS, PICTURES, VIEWS = (300, 3000), 128, 6
TEMPERATURE = 0.2


class Embeddings(NamedTuple):
    """What a loss sees of a trained encoder.

    - z: (N, V, D), unit rows: V views each of N images
    - labels: (N,)
    """

    z: Tensor
    labels: Tensor


def load(steps: int = 3000, pictures: int = PICTURES, views: int = 2) -> Embeddings:
    """The first `pictures`, `views` of each, of the encoder after so many steps, float32.

    Raises ValueError on steps that are not kept, or on more images or views than there are.
    """
    if steps not in STEPS:
        raise ValueError(f"embeddings: steps is {steps}, but kept are {' and '.join(map(str, STEPS))}")
    for name, asked, most in (("pictures", pictures, PICTURES), ("views", views, VIEWS)):
        within("embeddings", name, asked, 1, most, whole=True)
    with np.load(FILE) as kept:
        z = torch.from_numpy(kept[f"steps_{steps}"][:pictures, :views]).float()
        labels = torch.from_numpy(kept["labels"][:pictures]).long()
    return Embeddings(similarities.normalise(z.flatten(0, 1)).view_as(z), labels)


def make(steps: tuple[int, ...] = STEPS, path: Path = FILE) -> None:
    """Train the encoder and write the file."""
    train, test = data.load("scenes"), data.load("scenes", "test")
    some = test.subset(slice(0, PICTURES))
    run = training.Run(
        loss=losses.NTXent(TEMPERATURE),
        data=train,
        steps=max(steps),
        batch_size=128,
        learning_rate=5e-3,
        seed=0,
        precision="float32",
    )
    kept = {"labels": some.labels.numpy().astype(np.uint8)}
    for step in steps:
        while run.steps_done < step:
            run.step()
        draw = torch.Generator().manual_seed(0)
        seen = [run.project(run.augmentation(some.images, generator=draw)) for _ in range(VIEWS)]
        z = torch.stack([similarities.normalise(view) for view in seen], dim=1)
        kept[f"steps_{step}"] = z.cpu().numpy().astype(np.float16)
    np.savez_compressed(path, **kept)


if __name__ == "__main__":
    make()

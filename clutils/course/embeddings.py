"""Embeddings of a trained encoder, as notebooks use them: made once, kept in `embeddings.npz`.

    python -m clutils.course.embeddings          makes the file again: some minutes on a CPU

NT-Xent on generated scenes (ours to ship), conv16, batches of 128, 3,000 steps, once at τ = 0.2 and once at
0.5; kept after 300 steps and after all: six views each of the first 128 test images, after the head, in half
precision. A claim about a temperature is asked of the encoder that was trained at it.
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
TEMPERATURES = (0.2, 0.5)


class Embeddings(NamedTuple):
    """Embeddings of a trained encoder, as a loss sees them.

    - z: (N, V, D), unit rows: V views each of N images
    - labels: (N,)
    """

    z: Tensor
    labels: Tensor


def load(steps: int = 3000, pictures: int = PICTURES, views: int = 2, temperature: float = 0.2) -> Embeddings:
    """First `pictures` images, `views` of each, under the encoder after so many steps, float32.

    - temperature: at which the encoder was trained

    Raises ValueError on steps or a temperature that are not kept, or on more images or views than there are.
    """
    for name, asked, kept in (("steps", steps, STEPS), ("temperature", temperature, TEMPERATURES)):
        if asked not in kept:
            raise ValueError(f"embeddings: {name} is {asked}, but kept are {' and '.join(map(str, kept))}")
    for name, asked, most in (("pictures", pictures, PICTURES), ("views", views, VIEWS)):
        within("embeddings", name, asked, 1, most, whole=True)
    with np.load(FILE) as stored:
        z = torch.from_numpy(stored[_key(temperature, steps)][:pictures, :views]).float()
        labels = torch.from_numpy(stored["labels"][:pictures]).long()
    return Embeddings(similarities.normalise(z.flatten(0, 1)).view_as(z), labels)


def _key(temperature: float, steps: int) -> str:
    return f"tau_{temperature}_steps_{steps}"


def make(steps: tuple[int, ...] = STEPS, path: Path = FILE) -> None:
    """Train the encoders and write the file."""
    train, test = data.load("scenes"), data.load("scenes", "test")
    some = test.subset(slice(0, PICTURES))
    kept = {"labels": some.labels.numpy().astype(np.uint8)}
    for temperature in TEMPERATURES:
        run = training.Run(
            loss=losses.NTXent(temperature),
            data=train,
            steps=max(steps),
            batch_size=128,
            learning_rate=5e-3,
            seed=0,
            precision="float32",
        )
        for step in steps:
            while run.steps_done < step:
                run.step()
            draw = torch.Generator().manual_seed(0)
            seen = [run.project(run.augmentation(some.images, generator=draw)) for _ in range(VIEWS)]
            z = torch.stack([similarities.normalise(view) for view in seen], dim=1)
            kept[_key(temperature, step)] = z.cpu().numpy().astype(np.float16)
    np.savez_compressed(path, **kept)


if __name__ == "__main__":
    make()

"""Noise maps: what PiNDA's generator makes of some images, taken along a run and kept in a file.

recorder = noise_maps.NoiseRecorder(images, every=30)
training.train(method="pinda", ..., callbacks=[recorder])
recorder.maps.save("maps.npz")                 # the maps as they were learned, step by step
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from clutils import encoders, files, noise
from clutils.data import ImageSet

if TYPE_CHECKING:
    from clutils.training.run import Run

FILE = "noise_maps.npz"  # in a run's folder
MOST = 2**30  # bytes of it, unpacked
WATCHED, MOMENTS = 8, 20  # how many images are in it, and how many times along the run


@dataclass
class NoiseMaps:
    """The noise of the same N images at T moments of a run.

    steps     (T,) how many steps the run had done
    pictures  (N, C, H, W) uint8, on the CPU as all of this
    scale     (T, N, C, H, W) float: standard deviation of ε, in units of the image (1: black to white)
    mean      (T, N, C, H, W) float: its mean, 0 where none is learned
    """

    steps: list[int]
    pictures: Tensor
    scale: Tensor
    mean: Tensor

    def save(self, path: str | Path) -> None:
        """Write an .npz file, in half precision; one already there is replaced at once and whole, or kept."""
        half = {name: getattr(self, name).half().numpy() for name in ("scale", "mean")}
        known: dict[str, Any] = {"steps": np.array(self.steps), "pictures": self.pictures.numpy()}
        files.write_atomically(path, partial(np.savez_compressed, **known, **half))


def load(path: str | Path) -> NoiseMaps:
    """Read a file of `NoiseMaps.save`.

    Raises FileNotFoundError where there is no file, ValueError on any other file.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"noise_maps.load: there is no file {path}")
    try:
        kept = files.arrays(path, MOST)
        parts = {name: kept[name] for name in ("steps", "pictures", "scale", "mean")}
    except (ValueError, KeyError, OSError) as error:
        raise ValueError(f"noise_maps.load: {path} holds no maps of a run: {error}") from error
    scale, mean = (torch.from_numpy(parts[name]).float() for name in ("scale", "mean"))
    return NoiseMaps(parts["steps"].tolist(), torch.from_numpy(parts["pictures"]), scale, mean)


def of(
    generator: noise.NoiseGenerator, pictures: Tensor | ImageSet, batch_size: int = 128
) -> tuple[Tensor, Tensor]:
    """Scale and mean of the noise for each image: (N, C, H, W) -> two of (N, C, H, W) float32 on the CPU.

    The generator is afterwards in the mode it was in; nothing is drawn that the caller could notice.
    """
    images: Any = getattr(pictures, "images", pictures)
    parameter = next(generator.parameters(), images)
    draw = torch.Generator()
    with encoders.evaluating(generator), torch.no_grad():
        drawn = [generator(part.to(parameter.device), draw) for part in images.split(batch_size)]
    return torch.cat([one.scale.cpu() for one in drawn]), torch.cat([one.mean.cpu() for one in drawn])


class NoiseRecorder:
    """A callback that keeps the noise maps of some images, after every `every` steps and after the last.

    - pictures: (N, C, H, W) uint8, or an ImageSet
    """

    def __init__(self, pictures: Tensor | ImageSet, every: int) -> None:
        images: Any = getattr(pictures, "images", pictures)
        self.pictures: Tensor = images.cpu()
        self.every = every
        self.taken: dict[int, tuple[Tensor, Tensor]] = {}

    def after_step(self, run: Run) -> None:
        if run.steps_done % self.every == 0 or run.done:
            self.take(run)

    def take(self, run: Run) -> None:
        """The maps as they are now."""
        generator: Any = run.method.noise
        self.taken[run.steps_done] = of(generator, self.pictures)

    def write(self, run: Run, folder: Path) -> None:
        """Write noise_maps.npz: for `training.save_run`."""
        self.maps.save(folder / FILE)

    @property
    def maps(self) -> NoiseMaps:
        steps = sorted(self.taken)
        scale, mean = (torch.stack([self.taken[step][i] for step in steps]) for i in (0, 1))
        return NoiseMaps(steps, self.pictures, scale, mean)


def watching(run: Run, folder: str | Path) -> NoiseRecorder | None:
    """A recorder of the first 8 images, twenty times along a run of PiNDA on images; None for other runs.

    - folder: a run that was resumed goes on with the maps of its file in there
    """
    if not hasattr(run.method, "noise") or run.images.ndim != 4:
        return None
    recorder = NoiseRecorder(run.images[:WATCHED], every=math.ceil(run.steps / MOMENTS))
    if run.steps_done and (Path(folder) / FILE).is_file():
        kept = load(Path(folder) / FILE)
        for step, *maps in zip(kept.steps, kept.scale, kept.mean, strict=True):
            if step <= run.steps_done:
                recorder.taken[step] = tuple(maps)
    else:
        recorder.take(run)
    return recorder

"""Maps of the learned noise: what a generator makes of some pictures, saved along a run, and measured.

watch = Watch(pictures, every=30)
training.train(method="pinda", ..., on_step=watch)
watch.maps.save("maps.npz")                    # the maps as they were learned, step by step
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from clutils import encoders, files, noise
from clutils.course.pinda import detectors
from clutils.data import ImageSet

if TYPE_CHECKING:
    import pandas as pd

    from clutils.training import Run

BAND = 1 / 16  # of the picture's side: how far the outline reaches, to either side


@dataclass
class Maps:
    """The noise of the same N pictures at T moments of a run.

    steps     (T,) how many steps the run had done
    pictures  (N, C, H, W) uint8, on the CPU as all of this
    scale     (T, N, C, H, W) float: standard deviation of ε, in units of the picture (1: black to white)
    mean      (T, N, C, H, W) float: its mean, 0 where none is learned
    """

    steps: list[int]
    pictures: Tensor
    scale: Tensor
    mean: Tensor

    def save(self, path: str | Path) -> None:
        """Write an .npz file, in half precision; one already there is replaced at once and whole, or kept."""
        half = {name: getattr(self, name).half().numpy() for name in ("scale", "mean")}
        known = {"steps": np.array(self.steps), "pictures": self.pictures.numpy()}
        files.write_atomically(path, partial(np.savez_compressed, **known, **half))


def load(path: str | Path) -> Maps:
    """What `Maps.save` wrote. Raises FileNotFoundError where there is no file, ValueError on any other."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"maps.load: there is no file {path}")
    try:
        with np.load(path, allow_pickle=False) as file:
            parts = {name: file[name] for name in ("steps", "pictures", "scale", "mean")}
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"maps.load: {path} holds no maps of a run: {error}") from error
    scale, mean = (torch.from_numpy(parts[name]).float() for name in ("scale", "mean"))
    return Maps(parts["steps"].tolist(), torch.from_numpy(parts["pictures"]), scale, mean)


def of(
    generator: noise.NoiseGenerator, pictures: Tensor | ImageSet, batch_size: int = 128
) -> tuple[Tensor, Tensor]:
    """Scale and mean of the noise for each picture: (N, C, H, W) -> two of (N, C, H, W) float32 on the CPU.

    The generator is afterwards in the mode it was in; nothing is drawn that the caller could notice.
    """
    pictures = getattr(pictures, "images", pictures)
    parameter = next(generator.parameters(), pictures)
    draw = torch.Generator()
    with encoders.evaluating(generator), torch.no_grad():
        drawn = [generator(part.to(parameter.device), draw) for part in pictures.split(batch_size)]
    return tuple(torch.cat([getattr(one, name).cpu() for one in drawn]) for name in ("scale", "mean"))


class Watch:
    """Called with a run after each of its steps, keeps the maps of some pictures: before its first step that
    it sees, after every `every` steps, and after the last.

    - pictures: (N, C, H, W) uint8, or an ImageSet
    """

    def __init__(self, pictures: Tensor | ImageSet, every: int) -> None:
        self.pictures = getattr(pictures, "images", pictures).cpu()
        self.every = every
        self.taken: dict[int, tuple[Tensor, Tensor]] = {}

    def __call__(self, run: Run) -> None:
        if run.steps_done % self.every == 0 or run.done:
            self.take(run)

    def take(self, run: Run) -> None:
        """The maps as they are now."""
        self.taken[run.steps_done] = of(run.method.noise, self.pictures)

    def go_on(self, maps: Maps, steps_done: int | None = None) -> None:
        """Keep what was taken before, as from a file of the same run; steps_done: nothing after this step."""
        for step, scale, mean in zip(maps.steps, maps.scale, maps.mean, strict=True):
            if steps_done is None or step <= steps_done:
                self.taken[step] = scale, mean

    @property
    def maps(self) -> Maps:
        steps = sorted(self.taken)
        scale, mean = (torch.stack([self.taken[step][i] for step in steps]) for i in (0, 1))
        return Maps(steps, self.pictures, scale, mean)


# ---- what the maps show ------------------------------------------------------------------------------------


def indifference(encoder: nn.Module, pictures: Tensor, seed: int = 0, batch_size: int = 128) -> Tensor:
    """Where an encoder does not notice noise: -log of its sensitivity at each pixel.

    (N, C, H, W) -> (N, H, W). The sensitivity is the mean square of what the direction of the features gains
    from a small change of the pixel, summed over channels: of the squared Jacobian's column norms, estimated
    with 8 random projections of the normalised features (Hutchinson). Where noise is to cost little loss, it
    belongs there: to first order, noise of scale σ_p moves the features by Σ_p σ_p² · sensitivity_p.
    """
    generator, device = torch.Generator().manual_seed(seed), next(encoder.parameters()).device
    found = []
    for part in pictures.split(batch_size):
        x = encoders.as_input(part.to(device)).detach().requires_grad_()
        with encoders.evaluating(encoder):
            z = nn.functional.normalize(encoder(x).float(), dim=1)
        total = torch.zeros_like(x[:, 0])
        for _ in range(8):
            direction = torch.randn(z.shape, generator=generator).to(device)
            (slope,) = torch.autograd.grad((z * direction).sum(), x, retain_graph=True)
            total += slope.pow(2).sum(dim=1)
        found.append(-(total / 8 + 1e-12).log().cpu())
    return torch.cat(found)


def detector_maps(pictures: ImageSet) -> dict[str, Tensor]:
    """The baselines of the measurement: name -> (N, H, W), higher where the detector sees an object."""
    n, _, height, width = pictures.images.shape
    return {
        "edge magnitude": detectors.edge_magnitude(pictures.images),
        "local variance": detectors.local_variance(pictures.images, max(3, height // 10) | 1),
        "centre prior": detectors.centre_prior(n, height, width),
    }


def measure(maps: Mapping[str, Tensor], masks: Tensor) -> pd.DataFrame:
    """How well maps (N, H, W) find the object, and its outline: a row a map.

    object, outline: mean over the pictures of the AUROC per picture (0.5: no better than chance; below:
    more on the rest), against the mask and against a band around its edge; `_low`, `_high`: 95 % bootstrap
    interval of that mean over pictures.
    """
    import pandas as pd

    band = detectors.boundary_band(masks, max(1, round(BAND * masks.shape[-1])))
    rows = []
    for name, values in maps.items():
        row: dict[str, object] = {"map": name}
        for what, against in (("object", masks), ("outline", band)):
            each = detectors.auroc(values, against)
            row[what] = each.mean().item()
            row[f"{what}_low"], row[f"{what}_high"] = detectors.bootstrap_interval(each)
        rows.append(row)
    return pd.DataFrame(rows)

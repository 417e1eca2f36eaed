"""Maps of the learned noise (`training.noise_maps`), measured beside maps that cost nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from clutils import data, encoders, measures
from clutils.course.pinda import detectors
from clutils.data import ImageSet

if TYPE_CHECKING:
    import pandas as pd

BAND = 1 / 16  # of the image's side: how far the outline reaches, to either side


def indifference(encoder: nn.Module, pictures: Tensor, seed: int = 0, batch_size: int = 128) -> Tensor:
    """Indifference of an encoder to noise: -log of its sensitivity at each pixel.

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
    """Baselines of the measurement: name -> (N, H, W), higher where the detector sees an object."""
    n, _, height, width = pictures.images.shape
    return {
        "edge magnitude": detectors.edge_magnitude(pictures.images),
        "local variance": detectors.local_variance(pictures.images, max(3, height // 10) | 1),
        "centre prior": detectors.centre_prior(n, height, width),
    }


def stl10_images(names: Sequence[str], numbers: Sequence[int]) -> Tensor | None:
    """Images of STL-10's test part, uint8 (N, 3, 96, 96); None where STL-10 has not been downloaded.

    - names: each image's class; numbers: its place, from 0 or from 1, whichever gives these classes
    """
    try:
        stl10 = data.load("stl10", "test", download=False)
    except (ValueError, FileNotFoundError):
        return None
    wanted, places = [stl10.class_names.index(name) for name in names], torch.as_tensor(numbers)
    for first in (0, 1):
        if stl10.labels[places - first].tolist() == wanted:
            return stl10.images[places - first].clone()
    return None


def outline_band(masks: Tensor) -> Tensor:
    """Pixels near the object's outline, bool (N, H, W): within a sixteenth of the image's side."""
    return detectors.boundary_band(masks, max(1, round(BAND * masks.shape[-1])))


def measure(maps: Mapping[str, Tensor], masks: Tensor) -> pd.DataFrame:
    """AUROC of maps (N, H, W) against the object, and against its outline: a row a map.

    object, outline: mean over the images of the AUROC per image (0.5: no better than chance; below:
    more on the rest), against the mask and against a band around its edge; `_low`, `_high`: 95 % bootstrap
    interval of that mean over images.
    """
    import pandas as pd

    band = outline_band(masks)
    rows = []
    for name, values in maps.items():
        row: dict[str, object] = {"map": name}
        for what, against in (("object", masks), ("outline", band)):
            each = detectors.auroc(values, against)
            row[what] = each.mean().item()
            row[f"{what}_low"], row[f"{what}_high"] = measures.bootstrap(each)
        rows.append(row)
    return pd.DataFrame(rows)

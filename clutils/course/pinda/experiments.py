"""PiNDA's experiments, as notebooks 09 and 10 repeat them in small and `benchmarks/pinda.py` records them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional as F

from clutils import encoders, noise, training
from clutils.course.pinda import detectors
from clutils.course.pinda.maps import detector_maps, indifference, measure, outline_band
from clutils.data import ImageSet
from clutils.training import noise_maps, optimisers

if TYPE_CHECKING:
    import pandas

TEMPERATURE = 0.1  # the paper's, on all its data


def compared(
    run: training.Run,
    test: ImageSet,
    before: torch.Tensor | None = None,
    controls: Mapping[str, torch.Tensor] | None = None,
) -> dict[str, torch.Tensor]:
    """Maps of a run beside what they have to beat: name -> (N, H, W), higher = taken for the object.

    - before: (N, C, H, W), the scale of the untrained generator
    - controls: name -> (N, H, W), as from `positive_controls`

    The scale as it was learned (mean over channels), untrained, and given to other images; where the
    encoder, with its head, is indifferent to noise; and the maps that cost nothing.
    """
    scale = noise_maps.of(run.method.noise, test)[0].mean(dim=1)
    found = {"scale, trained": scale}
    if before is not None:
        found["scale, untrained"] = before.mean(dim=1)
    found["scale, given to other images"] = detectors.shuffled(scale, torch.Generator().manual_seed(0))
    seen = torch.nn.Sequential(run.method.encoder, run.method.head)
    found["encoder's indifference"] = indifference(seen, test.images)
    found |= detector_maps(test)
    return found | dict(controls or {})


ANSWERS = {"object": "trained with the masks", "outline": "trained with the outline"}  # question -> map


def positive_controls(train: ImageSet, test: ImageSet, **settings: Any) -> dict[str, torch.Tensor]:
    """Maps (N, H, W) of two networks trained with the answer, one for each question: name -> its map."""
    return {name: supervised_maps(train, test, target, **settings) for target, name in ANSWERS.items()}


def supervised_maps(
    train: ImageSet,
    test: ImageSet,
    target: str = "object",
    network: str = "conv",
    skips: bool = True,
    steps: int = 200,
    batch_size: int = 32,
    seed: int = 0,
) -> torch.Tensor:
    """Positive control of the map test: the generator's network, trained with masks -> maps (N, H, W).

    It is trained on `train` by binary cross-entropy, and its maps are those of `test`: what so many steps
    find with this architecture, no upper bound. Where these are at chance, a map of PiNDA's at chance says
    nothing.

    With CLUTILS_FAST=1 it takes 10 steps.

    - target: what it is trained to find: "object", the masks, or "outline", the band along their outlines,
      which is what the column of that name is scored on

    Raises ValueError where `train` has no masks, and on another target.
    """
    if train.masks is None:
        raise ValueError("supervised_maps: the images to train on have no masks")
    if target not in ANSWERS:
        raise ValueError(f"supervised_maps: target is {target!r}, but must be one of {', '.join(ANSWERS)}")
    answer = train.masks
    if target == "outline":
        flat = train.masks.flatten(1)
        train = train.subset(flat.any(dim=1) & ~flat.all(dim=1))  # the others have no outline
        answer = outline_band(train.masks)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = noise.NoiseGenerator(network, train.images.shape[1], skips=skips).network
    dice = torch.Generator().manual_seed(seed)
    optimiser = optimisers.AdamW(net.parameters(), 5e-3, weight_decay=0)  # so it is Adam
    for _ in range(training.fewer(steps)):
        some = torch.randint(len(train), (batch_size,), generator=dice)
        logits = net(encoders.as_input(train.images[some])).mean(dim=1)
        optimiser.zero_grad()
        F.binary_cross_entropy_with_logits(logits, answer[some].float()).backward()
        optimiser.step()
    with torch.no_grad():
        parts = test.images.split(batch_size)
        return torch.cat([net.eval()(encoders.as_input(part)).mean(dim=1) for part in parts])


def measured(maps: Mapping[str, torch.Tensor], test: ImageSet) -> pandas.DataFrame:
    """`maps.measure` on those images that have both object and background."""
    flat = test.masks.flatten(1)
    both = flat.any(dim=1) & ~flat.all(dim=1)
    return measure({name: each[both] for name, each in maps.items()}, test.masks[both])

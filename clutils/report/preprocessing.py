"""Input normalisation and ResNet stem, chosen by the batch-norm statistics that training left.

A batch normalisation keeps mean and variance of what it was trained on. Where images of the same kind give
others, they are normalised in another way, or the network was put together in another way.
"""

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from clutils import checkpoints, encoders, views
from clutils.checkpoints import Opened
from clutils.data import ImageSet
from clutils.report.prepared import Prepared, Unfit, batch_size

VIEWED = 128  # images that are looked at
MET = 32  # images, at least, whose statistics are compared with those that a layer remembers
DECIDED = 64  # of them, by which a stem is decided
CLEARLY = 2.0  # how much nearer one way must be than the next to be taken
NEAR = 0.15  # nats within which images arrive as in training
ALIKE = 0.05  # nats that two ways to feed must differ by: healthy encoders are so far from training
SETTLED = 30  # batches after which a batch normalisation has forgotten its start
KEPT = 0.9  # share of what it remembers that a batch normalisation keeps from batch to batch, as PyTorch's do
NORMALISATIONS = {  # name -> (mean, std) by which images in [0, 1] are usually shifted and scaled
    "none": ((0.0,), (1.0,)),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    "half": ((0.5,), (0.5,)),
    "bytes": ((0.0,), (1 / 255,)),
}

Moments = tuple[Tensor, Tensor]  # mean and variance, a value a channel
Shift = tuple[Sequence[float], Sequence[float]]  # the mean that is subtracted, the std that divides


def fitted(
    opened: Opened,
    images: ImageSet,
    mean: Any = None,
    std: Sequence[float] | None = None,
    size: int | None = None,
) -> tuple[Opened, Shift, str]:
    """The encoder with stem and side decided, how images are shifted and scaled, and a sentence on that.

    - images: of the kind that it was trained on, of which the first are looked at
    - mean, std: numbers, None where none is given, or "auto" as the mean: `best_normalisation`, and the
      sentence says what it chose
    - size: side that images are resized to, None = as they are

    Raises Unfit where the network takes another size alone.
    """
    if size is not None and opened.side not in (None, size):
        only = f"takes images of {opened.side} x {opened.side} only"
        raise Unfit(f"size is {size}, but {opened.arch} {only}", "size")
    seen, said = torch.cat(views.pair(images.images[:VIEWED], 0)), ""
    opened = with_decided_stem(replace(opened, side=size or opened.side), seen)
    if mean == "auto":
        chosen, said = best_normalisation(opened, seen)
        mean, std = chosen or (None, None)
    return opened, (mean or (0.0,), std or (1.0,)), said


def best_normalisation(
    opened: Opened, seen: Tensor
) -> tuple[tuple[tuple[float, ...], tuple[float, ...]] | None, str]:
    """The usual (mean, std) that fits what the encoder remembers best, and a sentence on the choice.

    seen: images (N, C, H, W) as its training saw them, views. The nearest where none fits; None where nothing
    tells.
    """
    unknown: dict[str, str] = {}
    numbers = first_layer(Prepared(opened.encoder, opened.channels, opened.side), seen, unknown)
    found = numbers.get("input_gaps", {})
    gaps = {name: gap for name, gap in found.items() if math.isfinite(gap)}
    if found and not gaps:  # of weights that are far too large
        unknown["input_gap"] = "what its first layer gives is not finite"
    if not gaps:
        said = f"the normalisation of its images is unknown: {unknown['input_gap']}"
        return None, f"{said}; the images are fed as they are"
    best, *equal = closest(gaps)
    beside = ", ".join(f"{n} {gaps[n]:.2f}" for n in sorted(gaps, key=lambda n: gaps[n]) if n != best)
    if gaps[best] > NEAR:
        said = f"no usual normalisation fits (nats: {best} {gaps[best]:.2f}, {beside})"
        return NORMALISATIONS[best], f"{said}; the nearest is used"
    near = f"; {' and '.join(equal)} too close to choose between" if equal else ""
    said = f"normalisation {best} was chosen: {gaps[best]:.2f} nats away ({beside}{near})"
    return NORMALISATIONS[best], said


def closest(gaps: Mapping[str, float]) -> list[str]:
    """The normalisation that fits best, and those that differ from it by less than `ALIKE`."""
    names = sorted(gaps, key=lambda name: gaps[name])
    return [name for name in names if gaps[name] - gaps[names[0]] < ALIKE]


def with_decided_stem(opened: Opened, seen: Tensor) -> Opened:
    """Padding and max-pool that the file does not tell, decided by what its batch normalisations remember.

    seen: as above. Each way is tried with each usual normalisation, at the first batch normalisation behind
    it. One that is twice as near as the other is taken; else the usual one stays, and the notes say so.
    """
    for setting, behind, ways in (("padding", "bn1", (1, 2)), ("maxpool", "layer1.0.bn1", (False, True))):
        if opened.backbone is None or setting not in opened.backbone.assumed:
            continue
        tried = {way: checkpoints.with_stem(opened, **{setting: way}) for way in ways}
        gaps = {}
        for way, stem in tried.items():
            prepared = Prepared(stem.encoder, stem.channels, stem.side)
            found = first_layer(prepared, seen[:DECIDED], {}, behind)
            gaps[way] = min(found.get("input_gaps", {"none": 0.0}).values())  # 0 of both ways decides nothing
        best, other = sorted(ways, key=lambda way: gaps[way])
        if gaps[best] * CLEARLY < gaps[other]:
            opened = tried[best]
            opened.notes.append(
                f"{setting} of its stem is {best}, by what its batch normalisations remember: "
                f"{gaps[best]:.3f} nats away, {gaps[other]:.3f} with {other}"
            )
    return opened


def first_layer(
    prepared: Prepared, seen: Tensor, unknown: dict[str, str], behind: str = ""
) -> dict[str, Any]:
    """How far what reaches the first batch normalisation is from what it remembers of its training.

    input_gap: the divergence of two normal distributions, mean over channels, in nats; input_gaps: the same
    for each usual normalisation; batches_seen: by its count, or else, where that is far nearer, by what is
    left of its start; statistics: as in `Examination`. behind: of a part of the encoder, by its name.
    """
    part = prepared.encoder.get_submodule(behind)
    layers = [m for m in part.modules() if isinstance(m, nn.BatchNorm2d)]
    first = layers[0] if layers else None
    if first is None or first.running_mean is None or first.running_var is None:
        unknown["input_gap"] = "the encoder has no batch normalisation with running statistics of its images"
        return {}
    counted = max(int(m.num_batches_tracked or 0) for m in layers)
    fresh = counted == 0 and not first.running_mean.any() and bool((first.running_var == 1).all())
    moved = any(m.bias is not None and bool(m.bias.any()) for m in layers)
    if fresh or not bool((first.running_var > 1e-10).any()):
        unknown["input_gap"] = "its batch normalisations hold no statistics of images (" + (
            "folded into the weights, or not loaded)" if fresh and moved else "it has never seen an image)"
        )
        return {"never_trained": fresh and not moved}
    net, takes, side = prepared.encoder, prepared.channels, prepared.side
    ways = {name: way for name, way in NORMALISATIONS.items() if len(way[0]) in (1, takes)}
    each = {name: met(Prepared(net, takes, side, *way), first, seen) for name, way in ways.items()}
    stored = first.running_mean.double(), first.running_var.double()
    remembered, batches = _without_start(stored, counted, each)
    fed = met(prepared, first, seen)
    own = {"in the file": stored, "in training": remembered, "as fed": fed}
    found: dict[str, Any] = {"batches_seen": batches, "input_gap": gap(fed, remembered)}
    found["statistics"] = {name: (mean.cpu(), var.cpu()) for name, (mean, var) in (own | each).items()}
    return found | {"input_gaps": {name: gap(one, remembered) for name, one in each.items()}}


def _without_start(stored: Moments, counted: int, met: Mapping[str, Moments]) -> tuple[Moments, int]:
    """Statistics of its training without their start (mean 0, variance 1), and how many batches were seen.

    Of the start 0.9^n is left after n batches. A file without a count may have one that makes it fit.
    """
    (mean, var), tried = stored, {0: stored}
    for n in [counted] if counted else range(1, SETTLED):
        left = KEPT**n
        if bool((var > left - 1e-6).all()):
            tried[n] = mean / (1 - left), (var - left).clamp(min=0) / (1 - left)
    gaps = {n: min(gap(one, remembered) for one in met.values()) for n, remembered in tried.items()}
    best = min(gaps, key=lambda n: gaps[n])
    if not counted and gaps[best] > min(gaps[0] / CLEARLY, gaps[0] - ALIKE):
        best = 0
    return tried[best], counted or best


def met(prepared: Prepared, layer: nn.Module, seen: Tensor) -> Moments:
    """Mean and variance, by channel, of what reaches the layer of the first images: `MET` or more."""
    found: list[tuple[int, Tensor, Tensor]] = []

    class Enough(Exception):
        pass

    def catch(module: nn.Module, given: tuple[Tensor, ...]) -> None:
        values = given[0].detach().float().transpose(0, 1).flatten(1).double()
        found.append((values.shape[1], values.mean(dim=1), values.var(dim=1)))
        raise Enough

    size = batch_size(prepared, seen)
    handle = layer.register_forward_pre_hook(catch)
    try:
        for part in seen[:VIEWED][: max(MET, size)].split(size):
            with contextlib.suppress(Enough):
                encoders.embed(prepared, part, size)
    finally:
        handle.remove()
    counts, means, variances = zip(*found, strict=True)
    n, of_each = torch.tensor(counts).double()[:, None], torch.stack(means)
    mean = (n * of_each).sum(dim=0) / n.sum()  # of all parts together
    squares = (n - 1) * torch.stack(variances) + n * (of_each - mean).square()
    return mean, squares.sum(dim=0) / (n.sum() - 1)


def gap(met: Moments, remembered: Moments) -> float:
    """The divergence of what is met from what is remembered, mean over channels, in nats."""
    (mean, var), (old_mean, old_var) = met, (x.double() for x in remembered)
    return divergence(mean, var + 1e-12, old_mean, old_var + 1e-12).mean().item()


def divergence(mean: Tensor, var: Tensor, old_mean: Tensor, old_var: Tensor) -> Tensor:
    """KL, in nats and elementwise, of N(mean, var), which is met, from N(old_mean, old_var), expected."""
    return ((old_var / var).log() + (var + (mean - old_mean).square()) / old_var - 1) / 2

"""What is measured: an encoder on labelled pictures, all numbers by `measures`, `anatomy` and `maps`.

Gallery pictures lend their labels, judged pictures are asked about. No number here is a verdict: those are in
`verdicts`.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from clutils import anatomy, encoders, maps, measures, similarities, views
from clutils.checkpoints import Opened
from clutils.data import ImageSet
from clutils.report import neighbours
from clutils.report.prepared import Prepared, demand_side, embed, finite

NEIGHBOURS = 20
VIEWED = 256  # judged pictures of which views are made: a batch of that size
MAPPED = 500  # judged pictures on a map
COMPARED = (1500, 500)  # gallery and judged pictures for the untrained encoder, which costs as much again
PROBED = 1500  # gallery pictures whose labels a linear probe is told
LEFT_OUT = 2000  # gallery pictures of which each is asked about by the others
NOISED = 8  # pictures whose learned noise is shown
SEEDS = (0, 1)  # of the maps
NORMALISATIONS = {  # (mean, std) by which pictures in [0, 1] are usually shifted and scaled
    "none": ((0.0,), (1.0,)),
    "ImageNet's": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "CIFAR-10's": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    "0.5 and 0.5": ((0.5,), (0.5,)),
    "0 to 255": ((0.0,), (1 / 255,)),
}
CHANGES: dict[str, dict[str, Any]] = {  # each augmentation alone, at the strength that SimCLR trains with
    "crop": {"crop_scale": (0.2, 1.0)},
    "flip": {"flip": 1.0},
    "jitter": {"jitter": (0.4, 0.4, 0.4, 0.1), "jitter_prob": 1.0},
    "grey": {"grayscale": 1.0},
    "blur": {"blur": 1.0},
}


@dataclass
class Examination:
    """All that was measured.

    - numbers: name -> value, plain, as JSON takes it; unknown: name -> why it was not measured
    - the rest: what the pictures of the report are drawn from
    """

    title: str
    facts: dict[str, str]
    numbers: dict[str, float]
    unknown: dict[str, str]
    judged: ImageSet
    z: Tensor
    values: Tensor
    views: tuple[Tensor, Tensor]
    raw: Tensor
    predicted: Tensor | None = None
    robustness: dict[str, float] = field(default_factory=dict)
    spectrum: Tensor | None = None
    untrained_spectrum: Tensor | None = None
    maps: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    pull: Tensor | None = None
    hardness: tuple[Tensor, Tensor] | None = None
    noise: tuple[Tensor, Tensor, Tensor, Tensor] | None = None


def examine(
    opened: Opened,
    gallery: ImageSet,
    judged: ImageSet,
    temperature: float | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    size: int | None = None,
    layer: str = "encoder",
    map_names: Sequence[str] = ("t-SNE", "UMAP"),
    seed: int = 0,
    on_stage: Callable[[str], object] = lambda name: None,
    on_hint: Callable[[str], object] = lambda text: None,
) -> Examination:
    """Measure an encoder.

    - gallery, judged: pictures with labels, or without (-1), which leaves out what needs them
    - temperature: τ of its training, where the file does not say it
    - mean, std: how pictures in [0, 1] are shifted and scaled for it; size: their width for it
    - layer: where features are read: "encoder", "head" or the name of a module within the encoder
    - map_names: of "t-SNE" and "UMAP", those that are drawn
    - on_stage: called with the name of each stage as it begins; on_hint: with what the first batch tells of
      the time that all will take

    The same arguments give the same numbers. Raises ValueError on what does not fit together, and where a
    feature of a picture is not finite.
    """
    side = demand_side(opened, size) or opened.side
    shift = mean or (0.0,), std or (1.0,)
    prepared = Prepared(opened.encoder, opened.channels, side, *shift, layer, opened.head)
    numbers: dict[str, float] = {"pictures": len(judged), "gallery": len(gallery)}
    unknown: dict[str, str] = {}
    numbers["weights_zero"] = _zero(opened.encoder)
    numbers["plain_normalisations"] = float(_plain(opened.encoder))
    on_stage("features")
    on_hint(_cost(prepared, judged, len(judged) + len(gallery), opened.backbone is not None))
    z, gallery_z = finite(prepared, judged), finite(prepared, gallery)
    some = judged.subset(slice(0, VIEWED))
    on_stage("views")
    seen = _views(some, seed)
    z1, z2 = (embed(prepared, view) for view in seen)
    found = Examination(
        "", {}, numbers, unknown, judged, z, z.norm(dim=1), (z1, z2), measures.raw_inputs(judged)
    )
    numbers |= _input(opened, prepared, torch.cat(seen), unknown)
    numbers |= _shape(z, found)
    numbers |= _contrast(z1, z2)
    if numbers["spread"] > 0 and not numbers["zero_norms"]:
        numbers["uniformity"] = measures.uniformity(z)
    on_stage("classes")
    fresh = _untrained(opened, side, shift, layer, seed)
    tau = temperature or opened.temperature
    if fresh is not None and (numbers.get("never_trained") or numbers["plain_normalisations"]):
        numbers |= _as_made(opened, fresh, layer, some, seen, tau, seed)
    _classes(found, gallery, gallery_z, fresh, on_stage)
    on_stage("robustness")
    found.robustness = _robustness(prepared, some, z[:VIEWED], seed)
    numbers |= {f"kept_{name}": kept for name, kept in found.robustness.items()}
    numbers |= {f"usual_{name}": float(name in _usual(some)) for name in found.robustness}
    _training(found, opened, prepared, seen, some, tau)
    if "temperature" in numbers and opened.temperature not in (None, tau):
        numbers["temperature_in_file"] = opened.temperature
    if opened.generator is not None:
        found.noise = _noise(opened, some, seed)
    for name in map_names:
        on_stage(name)
        _map(found, name)
    return found


# ---- the pictures as they come in --------------------------------------------------------------------------


def _cost(prepared: Prepared, pictures: ImageSet, count: int, fresh: bool) -> str:
    """About how long embedding `count` pictures takes, by one batch, in words; and all that is embedded."""
    side = prepared.side or max(pictures.images.shape[-2:])
    batch = pictures.images[: max(2, min(64, 64 * 32 * 32 // side**2))]
    embed(prepared, batch[:2])  # the first call of all is slower than the others
    began = time.perf_counter()
    embed(prepared, batch)
    one = (time.perf_counter() - began) / len(batch)
    others = (2 + len(CHANGES)) * min(VIEWED, len(pictures)) + fresh * sum(COMPARED)
    return f"about {one * count:.0f} s for {count:,} pictures, and {one * others:.0f} s for their views" + (
        " and for fresh weights" if fresh else ""
    )


def _zero(encoder: nn.Module) -> float:
    """Of the weights of convolutions and linear layers, the share that is 0 in every place."""
    kinds = nn.Conv2d | nn.Linear
    weights = [m.weight for m in encoder.modules() if isinstance(m, kinds) and m.weight.ndim > 1]
    return sum(not w.any() for w in weights) / len(weights) if weights else 0.0


def _plain(encoder: nn.Module) -> bool:
    """Gains all 1 and biases all 0, of layers or groups, where nothing remembers its pictures: as made."""
    modules = list(encoder.modules())
    if any(isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d) for m in modules):
        return False
    norms = [m for m in modules if isinstance(m, nn.LayerNorm | nn.GroupNorm) and m.weight is not None]
    gains = all(bool((m.weight == 1).all()) for m in norms)
    return bool(norms) and gains and all(m.bias is None or not m.bias.any() for m in norms)


def _views(pictures: ImageSet, seed: int) -> tuple[Tensor, Tensor]:
    """Two random views of each picture, as the training of most methods has them."""
    draw = torch.Generator().manual_seed(seed)
    augment = views.suiting(pictures.images)
    return augment(pictures.images, generator=draw), augment(pictures.images, generator=draw)


def _input(opened: Opened, prepared: Prepared, seen: Tensor, unknown: dict[str, str]) -> dict[str, float]:
    """How far what reaches the first batch normalisation is from what it remembers of its training.

    input_gap: the divergence of two normal distributions, mean over channels, in nats; and the same for each
    usual way to normalise, of which the smallest is named as `fits`.
    """
    first = next((m for m in opened.encoder.modules() if isinstance(m, nn.BatchNorm2d)), None)
    if first is None or first.running_mean is None:
        unknown["input_gap"] = "the encoder has no batch normalisation that remembers its pictures"
        return {}
    counters = [m.num_batches_tracked for m in opened.encoder.modules() if isinstance(m, nn.BatchNorm2d)]
    counted = max((int(c) for c in counters if c is not None), default=0)
    fresh = counted == 0 and bool((first.running_mean == 0).all() and (first.running_var == 1).all())
    if fresh:
        unknown["input_gap"] = "its batch normalisation has never seen a picture"
        return {"never_trained": 1.0}
    if not bool((first.running_var > 1e-10).any()):
        unknown["input_gap"] = (
            "its first batch normalisation remembers pictures that do not vary: there were none"
        )
        return {"never_trained": 0.0}
    remembered = first.running_mean, first.running_var
    gaps = {"as fed": _gap(prepared, first, seen, remembered)}
    for name, (mean, std) in NORMALISATIONS.items():
        if len(mean) in (1, prepared.channels):
            other = Prepared(opened.encoder, prepared.channels, prepared.side, mean, std)
            gaps[name] = _gap(other, first, seen, remembered)
    found = {"never_trained": 0.0, "batches_seen": counted, "input_gap": gaps.pop("as fed")}
    return found | {f"input_gap_{name}": gap for name, gap in gaps.items()}


def _gap(prepared: Prepared, layer: nn.Module, seen: Tensor, remembered: tuple[Tensor, Tensor]) -> float:
    caught: list[Tensor] = []

    class Enough(Exception):
        pass

    def catch(module: nn.Module, given: tuple[Tensor, ...]) -> None:
        caught.append(given[0].detach().float())
        raise Enough

    handle = layer.register_forward_pre_hook(catch)
    try:
        embed(prepared, seen[:VIEWED])
    except Enough:
        pass
    finally:
        handle.remove()
    values = caught[0].transpose(0, 1).flatten(1).double()
    mean, var = values.mean(dim=1), values.var(dim=1) + 1e-12
    old_mean, old_var = (x.double() for x in remembered)
    return divergence(mean, var, old_mean, old_var + 1e-12).mean().item()


def divergence(mean: Tensor, var: Tensor, old_mean: Tensor, old_var: Tensor) -> Tensor:
    """KL, in nats and elementwise, of N(mean, var), which is met, from N(old_mean, old_var), expected."""
    return ((old_var / var).log() + (var + (mean - old_mean).square()) / old_var - 1) / 2


# ---- geometry ----------------------------------------------------------------------------------------------


def _shape(z: Tensor, found: Examination) -> dict[str, float]:
    """Norms, spread, dimensions in use and units that never move."""
    centred = (z - z.mean(dim=0)).double()
    size = z.double().square().sum(dim=1).mean().sqrt()
    spread = (centred.square().sum(dim=1).mean().sqrt() / size).item() if size > 0 else 0.0
    spread = 0.0 if spread < 1e-6 else spread  # below what float32 tells apart
    deviation = centred.std(dim=0)
    norms = z.norm(dim=1)
    numbers = {
        "dimensions": z.shape[1],
        "spread": spread,
        "dead": (deviation <= 1e-6 * deviation.max().clamp(min=1e-12)).double().mean().item(),
        "norm": norms.mean().item(),
        "norm_varies": (norms.std() / norms.mean().clamp(min=1e-12)).item(),
        "zero_norms": int((norms == 0).sum()),
    }
    if spread > 0:
        found.spectrum = torch.linalg.svdvals(centred)
        shares = found.spectrum.square() / found.spectrum.square().sum()
        numbers["effective_rank"] = measures.effective_rank(z)
        numbers["first_direction"] = shares[0].item()
    return numbers


def _contrast(z1: Tensor, z2: Tensor) -> dict[str, float]:
    """Positives against negatives: alignment, mean similarities, how often a view finds its other half."""
    z1, z2 = (nn.functional.normalize(z, dim=1) for z in (z1, z2))
    pairs = similarities.two_views(z1, z2)
    positive, negative = pairs.positives[:, 0], pairs.negatives
    hardest = negative.amax(dim=1)
    tie = (positive == hardest).double() / 2
    return {
        "alignment": 2 - 2 * positive.mean().item(),
        "positive_similarity": positive.mean().item(),
        "negative_similarity": negative.mean().item(),
        "finds_itself": ((positive > hardest).double() + tie).mean().item(),
        "views": len(z1),
    }


def _usual(pictures: ImageSet) -> tuple[str, ...]:
    """Those of `CHANGES` that training on such pictures usually has: digits, say, are not mirrored."""
    usual = views.suiting(pictures.images)
    has = {
        "crop": usual.crop_scale[0] < 1,
        "flip": usual.flip > 0,
        "jitter": usual.jitter_prob > 0,
        "grey": usual.grayscale > 0,
        "blur": usual.blur > 0,
    }
    return tuple(name for name, given in has.items() if given)


def _robustness(prepared: Prepared, pictures: ImageSet, z: Tensor, seed: int) -> dict[str, float]:
    """For each augmentation alone: 1 = the picture stays where it is, 0 = it is as far as another one.

    (s - s̄) / (1 - s̄), s the similarity of a picture to itself after the change, s̄ that of two pictures.
    z: the features of the pictures as they are.
    """
    own = nn.functional.normalize(z, dim=1)
    table = own @ own.T
    other = (table.sum() - table.trace()).item() / (len(own) * (len(own) - 1))
    found = {}
    for name, settings in CHANGES.items():
        if pictures.images.shape[1] == 1 and name == "grey":
            continue
        plain = {"crop_scale": (1.0, 1.0), "flip": 0.0, "jitter_prob": 0.0, "grayscale": 0.0, "blur": 0.0}
        change = views.Augmentation(size=min(pictures.images.shape[-2:]), **(plain | settings))
        changed = change(pictures.images, generator=torch.Generator().manual_seed(seed))
        s = (own * nn.functional.normalize(embed(prepared, changed), dim=1)).sum(dim=1).mean().item()
        found[name] = (s - other) / max(1 - other, 1e-6)
    return found


# ---- classes -----------------------------------------------------------------------------------------------


def _untrained(opened: Opened, side: int | None, shift: tuple, layer: str, seed: int) -> Prepared | None:
    """The same network with fresh weights, its batch statistics still to be learned; None for a module."""
    if opened.backbone is None:
        return None
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        encoder = opened.backbone.build()
    where = layer if layer not in ("encoder", "head") else "encoder"
    return Prepared(encoder.eval(), opened.channels, side, *shift, where)


def _as_made(
    opened: Opened,
    fresh: Prepared,
    layer: str,
    pictures: ImageSet,
    seen: tuple[Tensor, Tensor],
    temperature: float | None,
    seed: int,
) -> dict[str, float]:
    """fresh_NAME -> number: geometry, and the space of the loss, of the network as it is made."""
    head = copy.deepcopy(opened.head)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        for module in head.modules() if head is not None else ():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()
    if layer == "head":
        mean, std = fresh.mean.flatten().tolist(), fresh.std.flatten().tolist()
        fresh = Prepared(fresh.encoder, fresh.channels, fresh.side, mean, std, layer, head)
    z = embed(fresh, pictures.images)
    z1, z2 = (embed(fresh, view) for view in seen)
    made = Examination("", {}, {}, {}, pictures, z, z.norm(dim=1), (z1, z2), z)
    made.numbers |= _shape(z, made) | _contrast(z1, z2)
    made.numbers |= {f"kept_{name}": kept for name, kept in _robustness(fresh, pictures, z, seed).items()}
    _training(made, replace(opened, head=head), fresh, seen, pictures, temperature)
    return {f"fresh_{name}": value for name, value in made.numbers.items()}


def _classes(
    found: Examination,
    gallery: ImageSet,
    gallery_z: Tensor,
    fresh: Prepared | None,
    on_stage: Callable[[str], object],
) -> None:
    """kNN and probe of the encoder, of raw pixels and of fresh weights; tolerance; who is taken for whom."""
    judged, numbers = found.judged, found.numbers
    known = bool((judged.labels >= 0).all() and (gallery.labels >= 0).all())
    if not known or len(judged.labels.unique()) < 2:
        found.unknown["knn"] = "the pictures have no labels of two classes or more"
        return
    y, gallery_y = judged.labels, gallery.labels
    k = min(NEIGHBOURS, len(gallery))
    numbers["chance"] = (y.bincount().max() / len(y)).item()
    numbers["knn_error"] = 0.5 / math.sqrt(len(y))
    if numbers["spread"] == 0 or bool((found.z.norm(dim=1) == 0).any() or (gallery_z.norm(dim=1) == 0).any()):
        found.unknown["knn"] = "pictures have one and the same embedding, or one of length 0"
        return
    found.predicted = neighbours.predicted(gallery_z, gallery_y, found.z, k)
    numbers["knn"] = (found.predicted == y).double().mean().item()
    numbers["knn_relabelled"] = neighbours.relabelled(y, found.predicted, len(judged.class_names))
    pixels = measures.raw_inputs(gallery)
    numbers["knn_raw"] = measures.knn_accuracy(pixels, gallery_y, found.raw, y, k=k)
    numbers |= neighbours.left_out(gallery_z[:LEFT_OUT], gallery_y[:LEFT_OUT], k)
    on_stage("linear probes")
    told = slice(0, PROBED)
    if len(gallery_y[told].unique()) < 2:
        found.unknown["probe"] = "the gallery's first pictures have one class alone"
    else:
        numbers["probe"] = measures.linear_probe(gallery_z[told], gallery_y[told], found.z, y)
        first, second = neighbours.principal(pixels[told], found.raw)
        numbers["probe_raw"] = measures.linear_probe(first, gallery_y[told], second, y)
    numbers["tolerance"] = measures.tolerance(found.z, y)
    on_stage("an untrained encoder")
    if fresh is None:
        found.unknown["knn_untrained"] = "of a module handed over, no untrained one can be built"
        return
    many, few = gallery.subset(slice(0, COMPARED[0])), judged.subset(slice(0, COMPARED[1]))
    _learn_statistics(fresh, many.images)
    first, second = embed(fresh, many.images), embed(fresh, few.images)
    least = min(k, len(many))
    numbers["knn_untrained"] = measures.knn_accuracy(first, many.labels, second, few.labels, k=least)
    numbers["knn_beside_untrained"] = measures.knn_accuracy(
        gallery_z[: len(many)], many.labels, found.z[: len(few)], few.labels, k=least
    )
    numbers["compared"] = len(few)
    if "probe" in numbers:
        numbers["probe_untrained"] = measures.linear_probe(first, many.labels, second, few.labels)
    found.untrained_spectrum = torch.linalg.svdvals((second - second.mean(dim=0)).double())


def _learn_statistics(fresh: Prepared, images: Tensor) -> None:
    """Let an untrained encoder's batch normalisations see pictures: without, it would lose for that alone."""
    fresh.train()
    with torch.no_grad():
        for batch in images[:512].split(256):
            fresh(batch.float() / 255)
    fresh.eval()


# ---- the training that it comes from -----------------------------------------------------------------------


def _training(
    found: Examination,
    opened: Opened,
    prepared: Prepared,
    seen: tuple[Tensor, Tensor],
    pictures: ImageSet,
    temperature: float | None,
) -> None:
    """W and the hardness weights, in the space of the loss and at its τ; else why they can't be known."""
    if temperature is not None and not 0 < temperature < math.inf:
        raise ValueError(f"temperature is {temperature!r}, but must be above 0")
    without = ""
    if opened.untempered:
        without = (
            f"{opened.untempered} trains without a temperature: W, and which negatives are pushed, can't be "
            "asked of it"
        )
    if opened.head is None:
        why = "the file has no projection head (or none that could be rebuilt)"
        found.unknown |= {"W": without or why, "head_uniformity": why}
        return
    z1, z2 = _after_head(found, opened, prepared, seen)
    if bool((z1.norm(dim=1) == 0).any() or (z2.norm(dim=1) == 0).any()):
        why = "the head maps pictures to vectors of length 0"
        found.unknown |= {"W": without or why, "head_uniformity": why}
        return
    z1, z2 = similarities.normalise(z1), similarities.normalise(z2)
    pairs = similarities.two_views(z1, z2)
    found.numbers["head_alignment"] = 2 - 2 * pairs.positives.mean().item()
    found.numbers["head_uniformity"] = measures.uniformity(torch.cat([z1, z2]))
    if without or temperature is None:
        found.unknown["W"] = without or "the file does not say τ: --temperature does"
        return
    found.pull = anatomy.gradient_scale(pairs.positives, pairs.negatives, temperature)
    weights = anatomy.hardness_weights(pairs.negatives, temperature)
    found.hardness = pairs.negatives.flatten(), weights.flatten()
    effective = anatomy.effective_negatives(pairs.negatives, temperature)
    found.numbers |= {
        "temperature": float(temperature),
        "W": found.pull.mean().item(),
        "negatives": pairs.negatives.shape[1],
        "share_of_negatives": (effective / pairs.negatives.shape[1]).mean().item(),
    }
    if bool((pictures.labels >= 0).all()):
        on_classmates = anatomy.push_on_classmates(z1, z2, pictures.labels, temperature)
        found.numbers["push_on_classmates"] = on_classmates.mean().item()


def _after_head(
    found: Examination, opened: Opened, prepared: Prepared, seen: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Two views behind the head; the encoder runs again only where its last features are not there yet."""
    if prepared.layer == "head":
        return found.views
    if prepared.layer == "encoder":
        first, second = (encoders.embed(opened.head, view) for view in found.views)
        return first, second
    mean, std = prepared.mean.flatten().tolist(), prepared.std.flatten().tolist()
    whole = Prepared(opened.encoder, opened.channels, prepared.side, mean, std, "head", opened.head)
    first, second = (embed(whole, view) for view in seen)
    return first, second


def _noise(opened: Opened, pictures: ImageSet, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
    """Some pictures, and the scale, a sample and the mean of the noise that was learned for each."""
    images = pictures.images[:NOISED]
    if images.shape[1] != opened.channels:
        return None
    with torch.no_grad():
        drawn = opened.generator(images.float() / 255, generator=torch.Generator().manual_seed(seed))
    return images, drawn.scale.cpu(), drawn.sample.cpu(), drawn.mean.cpu()


def _map(found: Examination, name: str) -> None:
    """A map of the judged pictures from two seeds, and how far each is to be trusted."""
    z = found.z[:MAPPED]
    if found.numbers["spread"] == 0 or bool((z.norm(dim=1) == 0).any()) or len(z) < 64:
        found.unknown[name] = "too few pictures, or all at one place"
        return
    labels = found.judged.labels[:MAPPED]
    for seed in SEEDS:
        at = maps.tsne(z, init="random", seed=seed) if name == "t-SNE" else maps.umap(z, seed=seed)
        found.maps[name, seed] = at
        found.numbers[f"trustworthiness_{name}_{seed}"] = maps.trustworthiness(z, at)
        if bool((labels >= 0).all()):
            found.numbers[f"neighbour_share_{name}_{seed}"] = maps.neighbour_share(at, labels)

"""Examination of an encoder on labelled images, all numbers by `measures`, `anatomy` and `maps`.

Gallery pictures lend their labels, judged pictures are asked about. No number here is a verdict: those are in
`verdicts`.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from clutils import anatomy, encoders, maps, measures, similarities, views
from clutils.checkpoints import Opened
from clutils.data import ImageSet
from clutils.measures import PROBED
from clutils.report import feeding, layers, neighbours, standard
from clutils.report.examined import MAPPED, Examination
from clutils.report.feeding import VIEWED
from clutils.report.prepared import Prepared, batch, demand_finite, demand_side, embed, finite

COMPARED = (PROBED, 500)  # gallery and judged pictures for fresh weights, which cost as much again
LEARNED = 256  # pictures that fresh batch normalisations see
TOGETHER = 1e-3  # of 1 - the mean cosine: below, pictures lie at one place
CHANGED = 128  # pictures whose places under each change alone are looked at
LENT = 400  # gallery pictures that a quick look takes
LEFT_OUT = 2000  # gallery pictures of which each is asked about by the others
QUICK = "a quick look stops before it"
NOISED = 8  # pictures whose learned noise is shown
SEEDS = (0, 1, 2)  # of the maps
# change -> its setting in `views.Augmentation`, which else has SimCLR's strengths: without it, and with
CHANGES: dict[str, tuple[str, Any, Any]] = {
    "crop": ("crop_scale", (1.0, 1.0), (0.2, 1.0)),
    "flip": ("flip", 0.0, 1.0),
    "jitter": ("jitter_prob", 0.0, 1.0),
    "grey": ("grayscale", 0.0, 1.0),
    "blur": ("blur", 0.0, 1.0),
}

Shift = tuple[Sequence[float], Sequence[float]]  # the mean that is taken off, the std that divides


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
    quick: bool = False,
    on_stage: Callable[[str], object] = lambda name: None,
    on_hint: Callable[[str], object] = lambda text: None,
) -> Examination:
    """Measure an encoder.

    - gallery, judged: pictures with labels, or without (-1), which leaves out what needs them
    - temperature: τ of its training, where the file does not say it
    - mean, std: how pictures in [0, 1] are shifted and scaled for it; size: their width for it
    - layer: where features are read: "encoder", "head" or the name of a module within the encoder
    - map_names: of "t-SNE" and "UMAP", those that are drawn
    - quick: what the first screen shows, and no more: 400 gallery pictures, one map, no probes
    - on_stage: called with the name of each stage as it begins; on_hint: with what the first batch tells of
      the time that all will take

    The same arguments give the same numbers. Raises ValueError on what does not fit together, and where a
    feature of a picture is not finite.
    """
    side = demand_side(opened, size) or opened.side
    shift = mean or (0.0,), std or (1.0,)
    prepared = Prepared(opened.encoder, opened.channels, side, *shift, layer, opened.head)
    fresh = _untrained(opened, side, shift, layer, seed)
    gallery = covering(gallery, judged, quick)
    on_stage("features")
    some = judged.subset(slice(0, VIEWED))
    cost = partial(_cost, judged=len(judged), gallery=len(gallery), fresh=fresh is not None, quick=quick)
    with layers.reading(prepared.encoder, 0 if quick else len(judged) + PROBED) as caught:
        z = finite(prepared, judged, lambda one: on_hint(cost(one)))
        gallery_z = finite(prepared, gallery)
    on_stage("views")
    seen = views.pair(some.images, seed)  # as the training of most methods has them
    z1, z2 = (embed(prepared, view) for view in seen)
    demand_finite(torch.cat([z1, z2]))
    found = Examination(judged, z, (z1, z2), measures.raw_inputs(judged), quick=quick)
    numbers = found.numbers
    numbers |= {"pictures": len(judged), "gallery": len(gallery), "weights_zero": _zero(opened.encoder)}
    numbers["plain_normalisations"] = float(_plain(opened.encoder))
    numbers |= _stated(opened, some)
    numbers |= feeding.first_layer(opened, prepared, torch.cat(seen), found.unknown)
    numbers |= _shape(z, found)
    numbers |= _contrast(z1, z2)
    if found.has_directions:
        numbers["uniformity"] = measures.uniformity(z)
    on_stage("fresh weights")
    tau = temperature or opened.temperature
    if fresh is not None and (numbers.get("never_trained") or numbers["plain_normalisations"]):
        numbers |= _as_made(opened, fresh, layer, some, seen, tau, seed)
    if fresh is not None:
        _learn_statistics(fresh, gallery.images)
        first, second = (embed(fresh, view[:CHANGED]) for view in seen)
        found.fresh_views = first, second
    on_stage("classes")
    _classes(found, gallery, gallery_z)
    _training(found, opened, prepared, seen, some, tau)
    if "temperature" in numbers and opened.temperature not in (None, tau):
        numbers["temperature_in_file"] = opened.temperature
    if opened.generator is not None:
        found.noise = _noise(opened, some, seed)
    if quick:
        found.unknown |= dict.fromkeys(("probe", "knn_untrained", "kept"), QUICK)
        map_names = map_names[:1]
    else:
        on_stage("probes")
        _probes(found, gallery, gallery_z, fresh)
        standard.measure(found, gallery, gallery_z)
        lent = gallery.labels if found.predicted is not None else None
        output = torch.cat([z, gallery_z[:PROBED]]) if layer == "encoder" else None
        k = int(numbers.get("neighbours", 1))
        found.layers = layers.measure(caught, judged.labels, lent, output, k)
        on_stage("robustness")
        few = judged.subset(slice(0, CHANGED))
        kept = _robustness(prepared, few, z[:CHANGED], seed)
        if not kept:
            found.unknown["kept"] = (
                "pictures lie too close together: how far a change moves one can't be told"
            )
        usual = _uses(vars(views.suiting(some.images))).items()
        numbers |= kept | {f"usual_{name}": float(used) for name, used in usual if f"kept_{name}" in kept}
    for name in map_names:
        on_stage(name)
        _map(found, name, SEEDS[:1] if quick else SEEDS)
    return found


def covering(gallery: ImageSet, judged: ImageSet, quick: bool = False) -> ImageSet:
    """The gallery with an image of each class that is asked about ahead, where its first 400 lack one.

    Numbers by few labels take the first of them. A quick look takes 400, or one of each class.
    """
    asked = judged.labels.unique()
    asked = asked[torch.isin(asked, gallery.labels)]
    if not torch.isin(asked, gallery.labels[:LENT]).all():
        order = gallery.labels.argsort(stable=True)
        ordered = gallery.labels[order]
        begins = torch.ones_like(ordered, dtype=torch.bool)
        begins[1:] = ordered[1:] != ordered[:-1]
        first = order[begins & torch.isin(ordered, asked)].sort().values
        others = torch.ones(len(gallery), dtype=torch.bool)
        others[first] = False
        gallery = gallery.subset(torch.cat([first, others.nonzero()[:, 0]]))
    return gallery.subset(slice(0, max(LENT, len(asked)))) if quick else gallery


# ---- the pictures as they come in --------------------------------------------------------------------------


def _cost(one: float, judged: int, gallery: int, fresh: bool, quick: bool) -> str:
    """What all passes through a network take, in words; one: seconds for an image."""
    views = 2 * min(VIEWED, judged) + fresh * (min(LEARNED, gallery) + 2 * min(CHANGED, judged))
    if not quick:
        views += len(CHANGES) * min(CHANGED, judged)
        views += fresh * (min(COMPARED[0], gallery) + min(COMPARED[1], judged))
    asked = judged + gallery
    said = f"about {one * (asked + views):.0f} s for {asked:,} pictures and {views:,} views of them"
    return f"{said}, by fresh weights too; then probes, maps, the page"


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
        found.spectrum = measures.spectrum(z)
        shares = found.spectrum.square() / found.spectrum.square().sum()
        numbers["effective_rank"] = measures.effective_rank(z, found.spectrum)
        numbers["first_direction"] = shares[0].item()
        numbers["directions_to_95"] = int((shares.cumsum(dim=0) < 0.95).sum()) + 1
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
        "nearer_than": (positive[:, None] > negative).double().mean().item(),
        "views": len(z1),
    }


def _uses(settings: Mapping[str, Any]) -> dict[str, bool]:
    """Change -> whether an augmentation of these settings has it."""
    least = {change: np.min(settings[name]) for change, (name, *_) in CHANGES.items() if name in settings}
    return {change: bool(low < 1 if change == "crop" else low > 0) for change, low in least.items()}


def _stated(opened: Opened, pictures: ImageSet) -> dict[str, float]:
    """What the file says of its training that causes ask for: stop_gradient, and trained_CHANGE.

    Of the changes, those that training on such pictures usually has: digits, say, are not mirrored.
    """
    found, augmentation = {}, opened.settings.get("augmentation")
    if isinstance(stops := opened.settings.get("stop_gradient"), bool):
        found["stop_gradient"] = float(stops)
    usual = _uses(vars(views.suiting(pictures.images)))
    stated = _uses(augmentation) if isinstance(augmentation, Mapping) else {}
    return found | {f"trained_{name}": float(stated[name]) for name in stated if usual[name]}


def _robustness(prepared: Prepared, pictures: ImageSet, z: Tensor, seed: int) -> dict[str, float]:
    """kept_CHANGE, by each augmentation alone: 1 = the picture stays where it is, 0 = as far as another one.

    (s - s̄) / (1 - s̄), s the similarity of a picture to itself after the change, s̄ that of two pictures.
    z: the features of the pictures as they are. Empty where those nearly coincide, so that it is 0 by 0.
    """
    own = nn.functional.normalize(z, dim=1)
    table = own @ own.T
    other = (table.sum() - table.trace()).item() / (len(own) * (len(own) - 1))
    found: dict[str, float] = {}
    if 1 - other < TOGETHER:
        return found
    unchanged = {setting: without for setting, without, _ in CHANGES.values()}
    for name, (setting, _, alone) in CHANGES.items():
        if pictures.images.shape[1] == 1 and name == "grey":
            continue
        settings = unchanged | {setting: alone}
        change = views.Augmentation(size=min(pictures.images.shape[-2:]), **settings)
        changed = change(pictures.images, generator=torch.Generator().manual_seed(seed))
        s = (own * nn.functional.normalize(embed(prepared, changed), dim=1)).sum(dim=1).mean().item()
        found[f"kept_{name}"] = (s - other) / max(1 - other, 1e-6)
    return found


# ---- classes -----------------------------------------------------------------------------------------------


def _untrained(opened: Opened, side: int | None, shift: Shift, layer: str, seed: int) -> Prepared | None:
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
            getattr(module, "reset_parameters", lambda: None)()
    if layer == "head" and head is not None:
        fresh = fresh.behind(head)
    z = embed(fresh, pictures.images)
    z1, z2 = (embed(fresh, view) for view in seen)
    made = Examination(pictures, z, (z1, z2), z)
    made.numbers |= _shape(z, made) | _contrast(z1, z2)
    few = pictures.subset(slice(0, CHANGED))
    made.numbers |= _robustness(fresh, few, z[:CHANGED], seed)
    _training(made, replace(opened, head=head), fresh, seen, pictures, temperature)
    return {f"fresh_{name}": value for name, value in made.numbers.items()}


def _classes(found: Examination, gallery: ImageSet, gallery_z: Tensor) -> None:
    """kNN of the encoder and of raw pixels; tolerance; who is taken for whom."""
    judged, numbers = found.judged, found.numbers
    known = bool((judged.labels >= 0).all() and (gallery.labels >= 0).all())
    if not known or len(judged.labels.unique()) < 2:
        found.unknown["knn"] = "the pictures have no labels of two classes or more"
        return
    y, gallery_y = judged.labels, gallery.labels
    if not torch.isin(y, gallery_y).any():
        found.unknown["knn"] = "no test image is of a class that a labelled image has"
        return
    k = measures.neighbours_for(gallery_y, y)
    numbers["neighbours"] = k
    numbers["chance"] = (y.bincount().max() / len(y)).item()
    numbers["knn_error"] = 0.5 / math.sqrt(len(y))
    if not found.has_directions or bool((gallery_z.norm(dim=1) == 0).any()):
        found.unknown["knn"] = "pictures have one and the same embedding, or one of length 0"
        return
    found.predicted = neighbours.predicted(gallery_z, gallery_y, found.z, k)
    found.each["knn"] = (found.predicted == y).double()
    numbers["knn"] = found.each["knn"].mean().item()
    numbers["knn_relabelled"] = neighbours.relabelled(y, found.predicted, len(judged.class_names))
    numbers["exchanged"] = neighbours.exchanged(y, found.predicted)
    numbers["knn_raw"] = measures.knn_accuracy(measures.raw_inputs(gallery), gallery_y, found.raw, y, k=k)
    numbers |= neighbours.left_out(gallery_z[:LEFT_OUT], gallery_y[:LEFT_OUT], k, y)
    numbers["copies"] = neighbours.copies(judged.images, gallery.images)
    if len(y.unique()) < len(y):
        numbers["tolerance"] = measures.tolerance(found.z, y)
    else:
        found.unknown["tolerance"] = "no two test images are of one class"


def _probes(found: Examination, gallery: ImageSet, gallery_z: Tensor, fresh: Prepared | None) -> None:
    """Linear probes of raw pixels and of fresh weights, and the kNN of these."""
    if found.predicted is None:
        return
    numbers, y, many = found.numbers, found.judged.labels, gallery.subset(slice(0, PROBED))
    if len(many.labels.unique()) < 2:
        found.unknown["probe"] = "the gallery's first pictures have one class alone"
    else:
        first, second = neighbours.principal(measures.raw_inputs(many), found.raw)
        numbers["probe_raw"] = measures.linear_probe(first, many.labels, second, y)
    if fresh is None:
        found.unknown["knn_untrained"] = "of a module handed over, no untrained one can be built"
        return
    few = found.judged.subset(slice(0, COMPARED[1]))
    first, second = embed(fresh, many.images), embed(fresh, few.images)
    k = min(int(numbers["neighbours"]), len(many))
    numbers["knn_untrained"] = measures.knn_accuracy(first, many.labels, second, few.labels, k=k)
    numbers["knn_beside_untrained"] = measures.knn_accuracy(
        gallery_z[: len(many)], many.labels, found.z[: len(few)], few.labels, k=k
    )
    numbers["compared"], numbers["gallery_compared"] = len(few), len(many)
    if "probe_raw" in numbers:
        numbers["probe_untrained"] = measures.linear_probe(first, many.labels, second, few.labels)


def _learn_statistics(fresh: Prepared, images: Tensor) -> None:
    """Let fresh batch normalisations see pictures: without, they would lose for that alone.

    By the mean over all batches: an exponential moving average would still be mostly its start after four.
    """
    parts = images[:LEARNED].split(2 * batch(fresh, images))
    update_bn((part.float() / 255 for part in parts), fresh)
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
    without, why = "", ""
    if opened.untempered:
        without = f"{opened.untempered} trains without a temperature: W, and which negatives are pushed, "
        without += "can't be asked of it"
    if opened.head is None:
        why = "the file has no projection head (or none that could be rebuilt)"
    else:
        z1, z2 = _after_head(found, opened.head, prepared, seen)
        norms = torch.cat([z1, z2]).norm(dim=1)
        if not norms.isfinite().all():
            why = "the head maps images to vectors that are not finite, or too long to measure"
        elif bool((norms == 0).any()):
            why = "the head maps images to vectors of length 0"
    if why:
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
        share = anatomy.push_on_false_negatives(z1, z2, pictures.labels, temperature)
        found.numbers["push_on_false_negatives"] = share.mean().item()


def _after_head(
    found: Examination, head: nn.Module, prepared: Prepared, seen: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Two views behind the head; the encoder runs again only where its last features are not there yet."""
    if prepared.layer == "head":
        return found.views
    if prepared.layer == "encoder":
        first, second = (encoders.embed(head, view) for view in found.views)
    else:
        first, second = (embed(prepared.behind(head), view) for view in seen)
    return first, second


def _noise(opened: Opened, pictures: ImageSet, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
    """Some pictures, and the scale, a sample and the mean of the noise that was learned for each."""
    images = pictures.images[:NOISED]
    if images.shape[1] != opened.channels or opened.generator is None:
        return None
    with torch.no_grad():
        drawn = opened.generator(images.float() / 255, generator=torch.Generator().manual_seed(seed))
    return images, drawn.scale.cpu(), drawn.sample.cpu(), drawn.mean.cpu()


def _map(found: Examination, name: str, seeds: Sequence[int]) -> None:
    """A map of the judged pictures from each seed, and how far each is to be trusted."""
    z = found.z[:MAPPED]
    if found.numbers["spread"] == 0 or bool((z.norm(dim=1) == 0).any()) or len(z) < 64:
        found.unknown[name] = "too few pictures, or all at one place"
        return
    labels, k = found.judged.labels[:MAPPED], min(10, (len(z) - 1) // 2)
    for seed in seeds:
        at = maps.tsne(z, init="random", seed=seed) if name == "t-SNE" else maps.umap(z, seed=seed)
        found.maps[name, seed] = at
        found.kept[name, seed] = maps.neighbours_kept(z, at, k)
        measured = {
            "trustworthiness": maps.trustworthiness(z, at, k),
            "continuity": maps.continuity(z, at, k),
            "recall": found.kept[name, seed].mean().item(),
            "distances": maps.distances_kept(z, at),
        }
        found.numbers |= {f"{what}_{name}_{seed}": value for what, value in measured.items()}
        if bool((labels >= 0).all()):
            found.numbers[f"neighbour_share_{name}_{seed}"] = maps.neighbour_share(at, labels)

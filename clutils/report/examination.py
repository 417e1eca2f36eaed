"""Examination of an encoder on labelled images, all numbers by `measures`, `anatomy` and `maps`.

The gallery has the labelled neighbours, test images are asked about. No number here is a verdict: those are
in `diagnosis`.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from clutils import anatomy, encoders, maps, measures, similarities, views
from clutils.checkpoints import Opened
from clutils.data import ImageSet
from clutils.report import preprocessing, standard
from clutils.report.facts import Examination, Facts, Row
from clutils.report.prepared import Prepared, Unfit, embed
from clutils.report.preprocessing import VIEWED, Shift
from clutils.training import streams

COMPARED = (500, 500)  # labelled images and test images of the table, at most: fresh weights see them twice
LEARNED = 128  # images by which fresh batch statistics settle
FEWEST = 20  # images of a map
PROBE_DIRECTIONS = 128  # principal directions of raw pixels that a probe is given: of all, it takes minutes
TOGETHER = 1e-3  # of 1 - the mean cosine: below, images lie at one place
THUMBNAIL, COPIED = 16, 0.3  # pixels a side, and share of the usual nearest distance below which is a copy
SAMPLED = 1000  # labelled images whose own nearest are looked at for what is usual
CHANGED = 128  # images whose places under each change alone are looked at
# change -> its setting in `views.Augmentation`, which else has SimCLR's strengths: without it, and with
CHANGES: dict[str, tuple[str, Any, Any]] = {
    "crop": ("crop_scale", (1.0, 1.0), (0.2, 1.0)),
    "flip": ("flip", 0.0, 1.0),
    "jitter": ("jitter_prob", 0.0, 1.0),
    "grey": ("grayscale", 0.0, 1.0),
    "blur": ("blur", 0.0, 1.0),
}

Pair = tuple[Tensor, Tensor]


def examine(
    opened: Opened,
    gallery: ImageSet,
    judged: ImageSet,
    shift: Shift,
    temperature: float | None = None,
    tsne: bool = True,
    numbers: Sequence[str] = (),
    seed: int = 0,
    quick: bool = False,
    on_stage: Callable[[str], object] = lambda name: None,
) -> Examination:
    """Measure an encoder.

    - opened, shift: as `preprocessing.fitted` gives them
    - gallery, judged: labelled images, which may be none, and test images; labels of -1 leave out what needs
      them
    - temperature: τ of its training, where the file does not say it
    - tsne: the map is by t-SNE, which takes a second; else, of few images, and in a quick look, by PCA
    - numbers: further ones of `measures.BY_NAME`
    - quick: what the first screen shows, and no more, of at most 500 labelled images
    - on_stage: called with the name of each stage as it begins

    The same arguments give the same numbers, and a quick look those of a full one for what both measure.
    Raises ValueError on what does not fit together, and where a feature of an image is not finite.
    """
    prepared = Prepared(opened.encoder, opened.channels, opened.side, *shift)
    fresh = untrained(opened, shift, seed)
    lent, gallery = gallery, covering(gallery, judged, quick)
    unknown: dict[str, str] = {}
    on_stage("features")
    z = embed(prepared, judged.images)
    gallery_z = embed(prepared, gallery.images) if len(gallery) else z[:0]
    on_stage("views")
    seen = views.pair(judged.images[:VIEWED], seed)  # as the training of most methods has them
    z1, z2 = (embed(prepared, view) for view in seen)
    spectrum, shape = _shape(z)
    n: dict[str, Any] = {"pictures": len(judged), "gallery": len(lent)} | shape | _contrast(z1, z2)
    n["pixels"] = min(judged.images.shape[-2:])
    n["plain_normalisations"] = _plain(opened.encoder)
    n |= preprocessing.first_layer(prepared, torch.cat(seen), unknown)
    statistics = n.pop("statistics", {})
    head_views = _head(opened, (z1, z2), unknown)
    if head_views is not None:
        n["head_alignment"] = measures.alignment(*head_views)
        n["head_uniformity"] = measures.uniformity(torch.cat(head_views))
    n |= _loss(opened, head_views, (z1, z2), temperature, unknown) | {"of_texts": opened.learned_scale}
    on_stage("classes and fresh weights")
    some = gallery if len(gallery) else judged
    fresh += [way.settled(some.images[:LEARNED]) for way in fresh if _has_statistics(way)]
    raw = measures.raw_inputs(judged)
    found = Examination(judged, z, (z1, z2), raw, Facts(**n), gallery, gallery_z, unknown, quick)
    found.spectrum, found.head_views, found.statistics = spectrum, head_views, statistics
    if found.has_directions:
        n["uniformity"] = measures.uniformity(z)
    if _labelled(found):
        n |= _classes(found, lent.images) | _table(found, fresh)
    if fresh:
        found.fresh_views = embed(fresh[0], seen[0]), embed(fresh[0], seen[1])
        n["fresh_nearer_than"] = _contrast(*found.fresh_views)["nearer_than"]
    n["raw_nearer_than"] = _contrast(*(view.flatten(1) - 0.5 for view in seen))["nearer_than"]
    found.found = Facts(**n)
    if quick:
        unknown["kept"] = "a quick check does not measure it"
    else:
        on_stage("probes")
        n["others"] = standard.measure(found, numbers)
        on_stage("robustness")
        n["kept"] = _robustness(prepared, judged.subset(slice(0, CHANGED)), z[:CHANGED], seed)
        if not n["kept"]:
            unknown["kept"] = "images lie too close together to measure how far a change moves them"
        if tsne and found.has_directions and found.mapped >= FEWEST:
            on_stage("t-SNE")
            found.tsne = maps.tsne(z[: found.mapped], seed=seed)
    found.found = Facts(**n)
    return found


def covering(gallery: ImageSet, judged: ImageSet, quick: bool = False) -> ImageSet:
    """The gallery with an image of each class that is asked about ahead, where its first 500 lack one.

    The table and numbers by few labels take the first of them. A quick look takes 500, or one of each class.
    """
    asked = judged.labels.unique()
    asked = asked[torch.isin(asked, gallery.labels)]
    if not torch.isin(asked, gallery.labels[: COMPARED[0]]).all():
        labels = gallery.labels.tolist()
        ahead = dict.fromkeys(sorted(labels.index(c) for c in asked.tolist()))
        gallery = gallery.subset([*ahead, *(k for k in range(len(labels)) if k not in ahead)])
    return gallery.subset(slice(0, max(COMPARED[0], len(asked)))) if quick else gallery


# ---- the images as they come in ----------------------------------------------------------------------------


def _plain(encoder: nn.Module) -> bool:
    """Gains all 1 and biases all 0, of layers or groups, where nothing remembers its images: as made."""
    modules = list(encoder.modules())
    if any(isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d) for m in modules):
        return False
    norms = [m for m in modules if isinstance(m, nn.LayerNorm | nn.GroupNorm) and m.weight is not None]
    return bool(norms) and all((m.weight == 1).all() and (m.bias is None or not m.bias.any()) for m in norms)


# ---- geometry ----------------------------------------------------------------------------------------------


def _shape(z: Tensor) -> tuple[Tensor | None, dict[str, float]]:
    """The spectrum; norms, spread, dimensions in use and features that never move."""
    centred = (z - z.mean(dim=0)).double()
    size = z.double().square().sum(dim=1).mean().sqrt()
    spread = (centred.square().sum(dim=1).mean().sqrt() / size).item() if size > 0 else 0.0
    spread = 0.0 if spread < 1e-6 else spread  # below what float32 resolves
    deviation = centred.std(dim=0)
    norms = z.norm(dim=1)
    numbers = {
        "dimensions": z.shape[1],
        "spread": spread,
        "dead": (deviation <= 1e-6 * deviation.max().clamp(min=1e-12)).double().mean().item(),
        "norm_varies": (norms.std() / norms.mean().clamp(min=1e-12)).item(),
        "zero_norms": int((norms == 0).sum()),
    }
    if not spread:
        return None, numbers
    spectrum = measures.spectrum(z)
    shares = spectrum.square() / spectrum.square().sum()
    numbers["effective_rank"] = measures.effective_rank(z, spectrum)
    numbers["first_direction"] = shares[0].item()
    return spectrum, numbers


def _contrast(z1: Tensor, z2: Tensor) -> dict[str, float]:
    """Positives against negatives: alignment, mean similarities, how often a view finds its other half."""
    z1, z2 = (nn.functional.normalize(z, dim=1) for z in (z1, z2))
    pairs = similarities.two_views(z1, z2)
    positive, negative = pairs.positives[:, 0], pairs.negatives
    hardest = negative.amax(dim=1)
    tie = (positive == hardest).double() / 2
    return {
        "positive_similarity": positive.mean().item(),
        "negative_similarity": negative.mean().item(),
        "finds_itself": ((positive > hardest).double() + tie).mean().item(),
        "nearer_than": (positive[:, None] > negative).double().mean().item(),
    }


def _robustness(prepared: Prepared, images: ImageSet, z: Tensor, seed: int) -> dict[str, float]:
    """Change -> kept, by each augmentation alone: 1 = an image stays where it is, 0 = as far as another one.

    (s - s̄) / (1 - s̄), s the similarity of an image to itself after the change, s̄ that of two images.
    z: the features of the images as they are. Empty where those nearly coincide, so that it is 0 by 0.
    """
    own = nn.functional.normalize(z, dim=1)
    table = own @ own.T
    other = (table.sum() - table.trace()).item() / (len(own) * (len(own) - 1))
    found: dict[str, float] = {}
    if 1 - other < TOGETHER:
        return found
    unchanged = {setting: without for setting, without, _ in CHANGES.values()}
    for name, (setting, _, alone) in CHANGES.items():
        if images.images.shape[1] == 1 and name == "grey":
            continue
        settings = unchanged | {setting: alone}
        change = views.Augmentation(size=min(images.images.shape[-2:]), **settings)
        changed = change(images.images, generator=torch.Generator().manual_seed(seed))
        s = (own * nn.functional.normalize(embed(prepared, changed), dim=1)).sum(dim=1).mean().item()
        found[name] = (s - other) / (1 - other)
    return found


# ---- classes -----------------------------------------------------------------------------------------------


def untrained(opened: Opened, shift: Shift, seed: int) -> list[Prepared]:
    """The same network with fresh weights, as it is made; empty for a module that can't be built again.

    It computes in bfloat16 where the processor has instructions for it, three times as fast: what rounding
    changes is far below what another draw of the weights does.
    """
    with streams.Drawing(seed):
        encoder = opened.backbone.build() if opened.backbone is not None else _reset(opened.encoder)
    if encoder is None:
        return []
    made = Prepared(encoder.eval(), opened.channels, opened.side, *shift)
    single = encoders.computes_in(encoder) == torch.float32  # an encoder in half precision keeps its own
    made.in_bfloat16 = single and encoders.computes_bfloat16(made.mean.device.type)
    return [made]


def _has_statistics(net: nn.Module) -> bool:
    return any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in net.modules())


def _reset(module: nn.Module) -> nn.Module | None:
    """A copy of which every layer has drawn its weights again; None where one can't."""
    device = next((weight.device for weight in module.parameters()), torch.device("cpu"))
    made = copy.deepcopy(module).cpu()  # where the generator is, so that a GPU draws the same weights
    for part in made.modules():
        if hasattr(part, "reset_parameters"):
            cast(Any, part).reset_parameters()
        elif any(True for _ in part.parameters(recurse=False)):
            return None
    return made.to(device)


def _labelled(found: Examination) -> bool:
    """True where there are labels to ask about and directions to compare; else `unknown` says why."""
    y, known = found.judged.labels, found.gallery.labels
    why = ""
    if not bool((y >= 0).all() and (known >= 0).all()) or len(y.unique()) < 2:
        why = "labels are missing, or of one class" if (y >= 0).any() else "the images have no labels"
    elif not torch.isin(y, known).any():
        why = "no test image is of a class that a labelled image has"
    elif not found.has_directions or bool((found.gallery_z.norm(dim=1) == 0).any()):
        why = "images have one and the same embedding, or one of length 0"
    if why:
        found.unknown["knn"] = why
    return not why


def _classes(found: Examination, lent: Tensor) -> dict[str, float]:
    """kNN by labelled images, and the share of test images that are among all `lent`."""
    y, gallery = found.judged.labels, found.gallery
    k = measures.neighbours_for(gallery.labels, y)
    seen = measures.Features(found.z, y, found.gallery_z, gallery.labels, neighbours=k)
    found.each["knn"] = cast(Tensor, measures.BY_NAME["knn"].measure(seen))
    return {
        "neighbours": k,
        "chance": (y.bincount().max() / len(y)).item(),
        "knn": found.each["knn"].mean().item(),
        "copies": copies(found.judged.images, lent).double().mean().item(),
    }


def copies(judged: Tensor, lent: Tensor) -> Tensor:
    """True for each image (N, C, H, W) that is among others (M, C, H, W): the same, or nearly so.

    Nearly: its thumbnail, without its mean and scale, is nearer to one of theirs than `COPIED` of the usual
    nearest, as it is after saving it again, scaling or brightening. Tried on digits, scenes and CIFAR-10's
    images: no two of 2,000 were that near, and 9 in 10 of such changes were found on photographs.
    """
    there = {one.numpy().tobytes() for one in lent}
    same = torch.tensor([one.numpy().tobytes() in there for one in judged])
    side = min(THUMBNAIL, *judged.shape[-2:])

    def thumbnails(images: Tensor) -> Tensor:
        parts = [
            nn.functional.interpolate(part.float(), (side, side), mode="area") for part in images.split(512)
        ]
        rows = torch.cat(parts).flatten(2)
        return nn.functional.normalize((rows - rows.mean(dim=2, keepdim=True)).flatten(1), dim=1)

    own, theirs = thumbnails(judged), thumbnails(lent)
    nearest = torch.cat([(part @ theirs.T).amax(dim=1) for part in own.split(512)])
    among = (theirs[:SAMPLED] @ theirs.T).fill_diagonal_(-1).amax(dim=1)
    distances, usual = ((2 - 2 * s).clamp(min=0).sqrt() for s in (nearest, among))
    usual_nearest = max(distances.median(), usual.median())  # half of either may be copies
    return same | ((distances < COPIED * usual_nearest) & own.any(dim=1))


def principal(gallery: Tensor, judged: Tensor) -> tuple[Tensor, Tensor]:
    """Rows (N, D) and (M, D) in the first principal directions of the former: at most PROBE_DIRECTIONS."""
    mean = gallery.mean(dim=0)
    gallery, judged = gallery - mean, judged - mean
    if gallery.shape[1] <= PROBE_DIRECTIONS:
        return gallery, judged
    gram = (gallery @ gallery.T).double()  # (N, N): there are more pixels than rows
    values, vectors = torch.linalg.eigh(gram)
    kept = values > 1e-9 * values.max().clamp(min=1e-12)
    values, vectors = values[kept][-PROBE_DIRECTIONS:], vectors[:, kept][:, -PROBE_DIRECTIONS:]
    axes = gallery.T @ (vectors / values.sqrt()).float()  # (D, directions)
    return gallery @ axes, judged @ axes


def _table(found: Examination, fresh: Sequence[Prepared]) -> dict[str, Any]:
    """kNN and probe of the encoder, of raw pixels and of fresh weights, all by the same images.

    Fresh weights' are the better of two: as made, and with batch statistics that have settled.
    """
    many, few = found.gallery.subset(slice(0, COMPARED[0])), found.judged.subset(slice(0, COMPARED[1]))
    if len(many.labels.unique()) < 2:
        found.unknown["table"] = "the first labelled images have one class alone"
        return {}
    usual = measures.neighbours_for(many.labels, few.labels)

    def knn(first: Tensor, second: Tensor) -> float:
        k = min(usual, int(first.any(dim=1).sum()))  # a row of zeros has no neighbours
        return measures.knn_accuracy(first, many.labels, second, few.labels, k=k) if k else 0.0

    def probe(first: Tensor, second: Tensor) -> float:
        return measures.linear_probe(first, many.labels, second, few.labels)

    own = found.gallery_z[: len(many)], found.z[: len(few)]
    raw = measures.raw_inputs(many), found.raw[: len(few)]
    numbers: dict[str, Any] = {"compared": len(few)}
    numbers["own"] = Row(knn(*own), probe(*own))
    numbers["raw"] = Row(knn(*raw), probe(*principal(*raw)))  # of all pixels a probe takes minutes
    if not fresh:
        found.unknown["untrained"] = "of this module no untrained one can be built"
        return numbers
    rows = [(embed(way, many.images), embed(way, few.images)) for way in fresh]
    numbers["untrained"] = Row(max(knn(*row) for row in rows), max(probe(*row) for row in rows))
    return numbers


# ---- the training that it comes from -----------------------------------------------------------------------


def _head(opened: Opened, own: Pair, unknown: dict[str, str]) -> Pair | None:
    """Two views after the head; None, with a reason, where there is none or its vectors mean nothing."""
    if opened.head is None:
        left = ", ".join(opened.unexpected[:3]) + ", ..." * (len(opened.unexpected) > 3)
        why = f"; left out: {left}" if left else ""
        unknown["head_uniformity"] = f"there is no projection head (or none that could be rebuilt){why}"
        return None
    try:
        z1, z2 = (encoders.embed(opened.head, view) for view in own)
    except RuntimeError as error:
        takes = f"does not take the encoder's {own[0].shape[1]} features"
        raise Unfit(f"the head, a {type(opened.head).__name__}, {takes}: {error}", "head") from error
    norms = torch.cat([z1, z2]).norm(dim=1)
    if not norms.any():  # all at one place
        return similarities.normalise(torch.ones_like(z1)), similarities.normalise(torch.ones_like(z2))
    if not bool((norms.isfinite() & (norms > 0)).all()):
        unknown["head_uniformity"] = "the head maps images to vectors that are not finite, or of length 0"
        return None
    return similarities.normalise(z1), similarities.normalise(z2)


def _loss(
    opened: Opened, head: Pair | None, own: Pair, given: float | None, unknown: dict[str, str]
) -> dict[str, float]:
    """The share of the negatives that share the push, after the head and at its τ; else why none is known.

    given: τ, where the file does not say it.
    """
    tau = opened.temperature or given
    if opened.untempered:
        why = f"{opened.untempered} trains without a temperature"
    elif opened.learned_scale:
        why = f"τ = {tau:.3g} was learned beside texts, which are not here"
    elif head is None:
        why = unknown["head_uniformity"]
    elif tau is None:
        why = "the file does not say τ: --temperature does"
    else:
        negatives = similarities.two_views(*head).negatives
        numbers = {"temperature": float(tau), "negatives": negatives.shape[1]}
        numbers["share_of_negatives"] = _share(negatives, tau)
        if all(bool(z.norm(dim=1).all()) for z in own):
            first, second = map(similarities.normalise, own)
            numbers["share_before_head"] = _share(similarities.two_views(first, second).negatives, tau)
        return numbers
    unknown["share_of_negatives"] = why
    return {}


def _share(negatives: Tensor, tau: float) -> float:
    return (anatomy.effective_negatives(negatives, tau) / negatives.shape[1]).mean().item()

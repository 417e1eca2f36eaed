"""From numbers to words: for each thing measured what is expected, how this encoder does, and what causes it.

Every threshold stands in this file, with its reason. They were set on encoders trained on generated scenes
and on digits with seeds 0 to 2, well ones and ill ones, and are tested on others (`tests/test_report.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

GOOD, LOOK, BROKEN, UNKNOWN = "good", "worth a look", "broken", "not known"
LEVELS = (UNKNOWN, GOOD, LOOK, BROKEN)  # from least to worst
EASY = 0.9  # kNN accuracy from which on a lead over raw pixels or an untrained encoder is no longer to be had


@dataclass(frozen=True)
class Verdict:
    """One line of the report.

    - name: what was looked at; level: good, worth a look, broken or not known
    - value, expected: what was measured and what is usual here, in words
    - says: what that means; causes: what usually causes it, likeliest first; empty where all is well
    """

    name: str
    level: str
    value: str
    expected: str
    says: str
    causes: tuple[str, ...] = ()


def judge(numbers: Mapping[str, float], unknown: Mapping[str, str], layer: str = "encoder") -> list[Verdict]:
    """A verdict on each thing that could be measured, and a line for each that could not."""
    found = [
        rule(numbers, unknown, layer)
        for rule in (
            _input,
            _trained,
            _spread,
            _dimensions,
            _units,
            _norms,
            _views,
            _loss_space,
            _temperature,
            _classes,
        )
    ]
    return [*found, _names(numbers, unknown), _robust(numbers), *_maps(numbers, unknown)]


def worst(verdicts: list[Verdict]) -> str:
    """The level that the whole report opens with."""
    return max((v.level for v in verdicts), key=LEVELS.index)


# ---- one function a line -----------------------------------------------------------------------------------


def _input(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """Well encoders, fed as they were trained: below 0.05. ImageNet's normalisation too many: above 1."""
    name, expected = "what it is fed", "0 to 0.15 nats from what its first batch normalisation remembers"
    if "input_gap" not in n:
        return _not_known(name, expected, unknown.get("input_gap", ""))
    gap = n["input_gap"]
    level = _between(gap, 0.15, 0.6)
    others = {k.removeprefix("input_gap_"): v for k, v in n.items() if k.startswith("input_gap_")}
    best = min(others, key=others.get) if others else ""
    says, causes = "Pictures arrive as they did in training.", ()
    if level != GOOD:
        says = "Pictures arrive shifted or scaled otherwise than in training."
        causes = ("another mean and std than in training (--mean, --std)", "colour channels in another order")
        causes += ("pictures of another kind than those it learned from",)
        causes += ("saved after a few steps, before its batch statistics had settled",)
        if others and others[best] < 0.5 * gap:
            says += f" Normalisation {best!r} would fit better ({others[best]:.2f} nats)."
    return Verdict(name, level, f"{gap:.2f} nats away", expected, says, causes if level != GOOD else ())


def _trained(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """A difference counts from two standard errors on."""
    name, expected = "against untrained", "kNN above that of the same network with fresh weights"
    if n.get("never_trained"):
        return Verdict(
            name,
            BROKEN,
            "its batch normalisations have seen no picture",
            expected,
            "These are the weights of a network that was never trained.",
            ("saved before the first step", "weights did not load into the network that was saved"),
        )
    if "knn_untrained" not in n:
        return _not_known(name, expected, unknown.get("knn_untrained") or unknown.get("knn", ""))
    own, fresh = n["knn_beside_untrained"], n["knn_untrained"]
    error = 2 * math.sqrt(max(own * (1 - own) + fresh * (1 - fresh), 1e-4) / n["compared"])
    value = f"{own:.0%}, untrained {fresh:.0%} (differences from {error:.0%} on count)"
    if own > fresh + error or own >= EASY:
        says = "It has learned something that these labels show."
        if own <= fresh + error:
            says = "Both tell these classes apart: the pictures are too easy to show what was learned."
        return Verdict(name, GOOD, value, expected, says)
    causes = (
        "too few steps, or a learning rate far off",
        "weights that did not load",
        "a temperature far off",
    )
    causes += ("what it learned is not what these labels ask about",)
    if own < fresh - error:
        return Verdict(name, BROKEN, value, expected, "Training made it worse than fresh weights.", causes)
    return Verdict(name, LOOK, value, expected, "On these labels it is no better than fresh weights.", causes)


def _spread(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """Well encoders: 0.5 to 0.95 of an embedding's length is its own; a collapsed one keeps a hundredth."""
    spread = n["spread"]
    expected = "above 0.15" + (
        ", after a head nearer to 1" if layer == "head" else " (features after a ReLU)"
    )
    level = GOOD if spread >= 0.15 else LOOK if spread >= 0.05 else BROKEN
    says, causes = "Different pictures have different embeddings.", ()
    if level != GOOD:
        says = "Embeddings are nearly one and the same: collapse."
        causes = ("nothing pushes apart (no negatives, no stop-gradient, no variance term)",)
        causes += ("a learning rate so high that weights ran away", "weights that did not load")
    return Verdict("spread", level, f"{spread:.3f} of the length differs", expected, says, causes)


def _dimensions(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """Well encoders of 128 features: an effective rank of 25 to 49, first direction below 40 %."""
    name, expected = (
        "dimensions in use",
        "effective rank above 8, no direction with over 60 % of the variance",
    )
    if "effective_rank" not in n:
        return Verdict(name, BROKEN, "none", expected, "No dimension is in use.", ("collapse: see spread",))
    rank, first = n["effective_rank"], n["first_direction"]
    level = BROKEN if rank < 3 or first > 0.9 else LOOK if rank < 8 or first > 0.6 else GOOD
    value = f"effective rank {rank:.1f} of {int(n['dimensions'])}; first direction {first:.0%}"
    says, causes = "The representation uses its dimensions.", ()
    if level != GOOD:
        says = "Dimensional collapse: a few directions carry everything."
        causes = (
            "negatives too few or too weak (temperature too high)",
            "augmentation stronger than the signal",
        )
        causes += (
            "a head without hidden layer, or features read after it",
            "a shortcut: one property decides",
        )
    return Verdict(name, level, value, expected, says, causes)


def _units(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """Well encoders here have none; a quarter is what ReLU networks lose under a high learning rate."""
    dead = n["dead"]
    level = _between(dead, 0.25, 0.5)
    says, causes = "Units react to pictures.", ()
    if level != GOOD:
        says = "Many units never move, whatever the picture."
        causes = ("a learning rate too high: ReLUs that died", "weight decay on normalisations", "collapse")
    return Verdict("dead units", level, f"{dead:.0%} of {int(n['dimensions'])}", "below 25 %", says, causes)


def _norms(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """Lengths vary by 15 to 45 % in well encoders. A length of 0 has no direction to be compared by."""
    zero, varies = int(n["zero_norms"]), n["norm_varies"]
    level = BROKEN if zero else _between(varies, 1.0, math.inf)
    says, causes = "Lengths are of one order.", ()
    if level != GOOD:
        says = "Some embeddings have length 0." if zero else "Lengths differ by far more than usual."
        causes = ("blank or broken pictures", "dead units", "a normalisation layer in training mode")
    value = f"{n['norm']:.2f} on average, ± {varies:.0%}" + (f", {zero} of length 0" if zero else "")
    return Verdict("length", level, value, "varies by less than 100 %, none is 0", says, causes)


def lead(n: Mapping[str, float]) -> float:
    """How far positives lead: (s+ - s-) / (1 - s-), means. 1: the views of a picture coincide; 0: chance."""
    return (n["positive_similarity"] - n["negative_similarity"]) / max(1 - n["negative_similarity"], 1e-6)


def _views(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """Well encoders: a lead of 0.5 to 0.8, a view finds its other half among 510 in 10 to 23 %."""
    expected = f"lead above 0.4, finds itself above 8 % among {int(n['views'])} pictures, at SimCLR's crops"
    level, ahead = LOOK, lead(n)
    if n["spread"] < 0.05:
        level, says = BROKEN, "All pictures lie at one place: a lead there means little."
    elif ahead >= 0.4 and n["finds_itself"] >= 0.08:
        level, says = GOOD, "Two views of a picture lie nearer to each other than to other pictures."
    elif ahead >= 0.1 and n["finds_itself"] >= 2 / n["views"]:
        says = "Two views of a picture are nearer than most other pictures, but seldom the nearest."
    else:
        level, says = BROKEN, "Two views of a picture are no nearer than those of two pictures."
    causes = (
        "pairs that do not belong together",
        "too few steps",
        "trained with weaker augmentation than this",
    )
    value = f"lead {ahead:.2f}; alignment {n['alignment']:.2f}; finds itself {n['finds_itself']:.0%}"
    return Verdict("views of a picture", level, value, expected, says, causes if level != GOOD else ())


def _loss_space(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """After the head, well runs have a uniformity of -1.7 to -3.0; a head that collapsed has nearly 0."""
    name, expected = "the space of the loss", "uniformity below -1.2 after the head (floor -4)"
    if "head_uniformity" not in n:
        return _not_known(name, expected, unknown.get("head_uniformity", ""))
    value = f"uniformity {n['head_uniformity']:.2f}, alignment {n['head_alignment']:.2f}"
    level = _between(n["head_uniformity"], -1.2, -0.5)
    if level == GOOD:
        return Verdict(name, level, value, expected, "After the head, pictures are spread over the sphere.")
    says = "After the head, all pictures lie in one corner: what the loss sees has collapsed."
    if level == LOOK:
        says = "After the head, pictures are crowded: the loss has little to tell them apart by."
    causes = ("pairs that do not belong together", "nothing pushes apart", "a temperature far too low")
    causes += ("encoder and head that do not belong together, or a layer that did not load",)
    causes += ("pictures fed in another way than in training",)
    return Verdict(name, level, value, expected, says, causes)


def _temperature(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """Of the negatives the push is shared by 18 to 75 % in well runs at τ from 0.1 to 0.5.

    At τ = 0.005 training breaks down, and in what is left all similarities are alike, so that many share the
    push again: there τ itself speaks. Published methods train at 0.05 to 1.
    """
    name, expected = "temperature", "5 to 90 % of the negatives share the push; τ from 0.05 to 1"
    if "share_of_negatives" not in n:
        return _not_known(name, expected, unknown.get("W", ""))
    share, tau = n["share_of_negatives"], n["temperature"]
    value = f"τ = {tau:g}: {share:.1%} of {int(n['negatives'])} negatives share the push; W = {n['W']:.2f}"
    if share > 0.9 and tau > 0.02:
        level = BROKEN if share > 0.97 else LOOK
        says = "Too hot for these similarities: hard and easy negatives are pushed alike."
        causes = ("a temperature far above 0.5", "similarities all alike, as after a collapse: see above")
    elif share < 0.05 or tau <= 0.02:
        level = BROKEN if share < 0.01 or tau <= 0.02 else LOOK
        says = "Too cold: the hardest negatives take the whole push, among them pictures of the same kind."
        causes = ("a temperature far below 0.05", "duplicates among the pictures")
    else:
        level, says, causes = GOOD, "The push is shared by many negatives, the harder ones more.", ()
    return Verdict(name, level, value, expected, says, causes)


def _classes(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """Above raw pixels by two standard errors; chance is within three of the largest class's share."""
    name, expected = "classes", "kNN above raw pixels and far above chance"
    if "knn" not in n:
        return _not_known(name, expected, unknown.get("knn", ""))
    knn, raw, chance, error = n["knn"], n["knn_raw"], n["chance"], n["knn_error"]
    value = f"kNN {knn:.0%}, raw pixels {raw:.0%}, chance {chance:.0%}; linear probe {n['probe']:.0%}"
    if knn <= chance + 3 * error and n["probe"] <= chance + 3 * error:
        if _collapsed(n):
            says = "At chance: this representation holds too little to tell classes by."
            return Verdict(name, BROKEN, value, expected, says, ("collapse: see spread and dimensions",))
        if max(raw, n.get("knn_untrained", 0.0)) <= chance + 3 * error:
            says = "At chance, and so are raw pixels: labels and pictures seem not to belong together."
            causes = ("labels in another order than the pictures", "labels that pictures do not show")
            causes += (f"too few judged pictures ({int(n['pictures'])}) to see a small lead",)
            return Verdict(name, BROKEN, value, expected, says, causes)
        says = "At chance, though raw pixels are not: the encoder lost what tells the classes apart."
        causes = ("collapse", "weights that did not load", "pictures fed in another way than in training")
        return Verdict(name, BROKEN, value, expected, says, causes)
    if knn > raw + 2 * error or knn >= EASY:
        return Verdict(name, GOOD, value, expected, "Neighbours share a class more often than in raw pixels.")
    says = "No better than raw pixels on these labels."
    causes = ("trained too briefly", "augmentation removes what these labels ask about (colour, place)")
    causes += ("pictures fed in another way than in training",)
    return Verdict(name, LOOK, value, expected, says, causes)


def _collapsed(n: Mapping[str, float]) -> bool:
    return n["spread"] < 0.05 or n["effective_rank"] < 3 or n["first_direction"] > 0.9


def _names(n: Mapping[str, float], unknown: Mapping[str, str]) -> Verdict:
    """Renaming classes gains a few per cent by chance where accuracy is low; mixed-up names gain more."""
    name, expected = "class names", "no renaming of classes that gains over 20 points"
    if "knn" not in n:
        return _not_known(name, expected, unknown.get("knn", ""))
    gain = n["knn_relabelled"] - n["knn"]
    value = f"{n['knn']:.0%}; {n['knn_relabelled']:.0%} under the best renaming"
    certain = n["chance"] + max(0.25, 6 * n["knn_error"])  # few pictures always leave something to rename
    if gain <= max(0.2, 4 * n["knn_error"]) or n["knn_relabelled"] < certain:
        return Verdict(name, GOOD, value, expected, "Gallery and judged pictures number their classes alike.")
    causes = ("class numbers in another order in the two splits", "a split with other classes")
    return Verdict(name, BROKEN, value, expected, "Classes are told apart, under wrong names.", causes)


def _robust(n: Mapping[str, float]) -> Verdict:
    """Well encoders keep 0.7 to 0.9 under a crop and under jitter; grey takes what rests on colour."""
    kept = {name.removeprefix("kept_"): value for name, value in n.items() if name.startswith("kept_")}
    expected = "above 0.55 for crop and jitter (1 = stays where it is, 0 = as far as another picture)"
    value = ", ".join(f"{name} {kept[name]:.2f}" for name in kept)
    low = [name for name in ("crop", "jitter") if kept.get(name, 1.0) < 0.55]
    if not low:
        return Verdict("robustness", GOOD, value, expected, "A changed picture stays near its place.")
    says = f"Under {' and '.join(low)} a picture moves nearly as far as another picture is."
    causes = ("trained without that augmentation", "trained too briefly")
    return Verdict("robustness", LOOK, value, expected, says, causes)


def _maps(n: Mapping[str, float], unknown: Mapping[str, str]) -> list[Verdict]:
    """A map at 0.9 keeps nearly all neighbours; below it is a picture of something else."""
    found = []
    for name in ("t-SNE", "UMAP"):
        values = [v for k, v in n.items() if k.startswith(f"trustworthiness_{name}")]
        expected = "trustworthiness above 0.85 for both seeds"
        if values:
            level = GOOD if min(values) >= 0.85 else LOOK
            says = "Neighbours on the map are neighbours in truth; distances and sizes are not."
            if level == LOOK:
                says = "The map shows neighbours that are none."
            value = " and ".join(f"{v:.2f}" for v in values)
            causes = () if level == GOOD else ("few pictures", "an embedding that no plane can hold")
            found.append(Verdict(f"map ({name})", level, value, expected, says, causes))
        elif name in unknown:
            found.append(_not_known(f"map ({name})", expected, unknown[name]))
    return found


def _between(value: float, look: float, broken: float) -> str:
    return GOOD if value <= look else LOOK if value <= broken else BROKEN


def _not_known(name: str, expected: str, why: str) -> Verdict:
    return Verdict(name, UNKNOWN, "not measured", expected, why or "not measured")

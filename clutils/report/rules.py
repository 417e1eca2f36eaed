"""Rules of the report, a function each: the expected range, this encoder's value, and usual causes.

Every threshold stands in this file, with its reason. They were set on encoders trained on generated scenes
and on digits with seeds 0 to 2, healthy ones and broken ones, and are tested on others (`tests/report`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

GOOD, LOOK, BROKEN, UNKNOWN = "good", "worth a look", "broken", "not known"
HEALTHY = 0.1  # of the way from chance to 1: healthy encoders' kNN is beyond, with 150 labels already
FRESH = "These look like the weights of a network that was never trained."
FRESH_CAUSES = ("saved before the first step", "weights did not load into the network that was saved")
INPUT, TRAINED = "what it is fed", "against untrained"
ASKED = 200  # judged pictures below which labels are never blamed
LABELLED = 50  # gallery pictures of the largest class below which right labels may leave neighbours at chance
SETTLED = 30  # batches after which a batch normalisation's memory (momentum 0.1) has forgotten its start
CROWDED = -1.2  # a uniformity above which pictures are crowded in the space of the loss
# standard deviation of fresh weights' accuracy from seed to seed: 0.02 to 0.03 (six of conv16, scenes)
DRAWS = 0.03
CONSTANT = 0.01  # a spread below which features are a constant
APART = "Two views of a picture lie hardly nearer to each other than to other pictures."
OTHER_KIND = "pictures of another kind than it was trained on"
OTHER_WAY = "pictures fed in another way than in training"
COPIES = 0.01  # share of judged pictures that may be in the gallery, too
EXCHANGED = 3.5  # standard errors by which two classes are found in each other's place rather than their own
CLASSES, OF_CLASSES = "classes", "kNN or probe above raw pixels and fresh weights, and far above chance"
EASY = 0.9  # kNN accuracy from which on a lead over raw pixels or an untrained encoder is no longer to be had


@dataclass(frozen=True)
class Verdict:
    """One verdict of the report.

    - name: what was looked at; level: good, worth a look, broken or not known
    - value, expected: what was measured and what is usual here, in words
    - says: what that means; causes: what usually causes it, likeliest first; empty where all is well
    - remark: what the level rests on, where it does not stand for itself: "on these pictures", "follows from
      'against untrained'"
    - opens: how the whole report's sentence begins where pictures do not arrive as in training
    - mean: the normalisation that would mend that, where a usual one does (`--mean`)
    """

    name: str
    level: str
    value: str
    expected: str
    says: str
    causes: tuple[str, ...] = ()
    remark: str = ""
    opens: str = ""
    mean: str = ""

    @property
    def said(self) -> str:
        """The level with what it rests on."""
        return f"{self.level} ({self.remark})" if self.remark else self.level


# ---- one function a rule -----------------------------------------------------------------------------------


def input_statistics(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """Healthy encoders with matching normalisation: below 0.05 nats; ImageNet's applied twice: above 1.

    Healthy encoders of scenes on digits, and the other way round: 0.25 to 0.55. So between 0.6 and 5 it is
    broken only where a usual normalisation mends it; below, such a one is a probable cause.
    """
    name, expected = INPUT, "0 to 0.15 nats from what its first batch normalisation remembers"
    if "input_gap" not in n:
        return _not_known(name, expected, unknown.get("input_gap", ""))
    gap = n["input_gap"]
    others = {k.removeprefix("input_gap_"): v for k, v in n.items() if k.startswith("input_gap_")}
    best = min(others, key=lambda k: others[k]) if others else ""
    unsettled = 0 < n.get("batches_seen", 0) < SETTLED
    mended = bool(others) and others[best] <= min(0.15, gap / 4)
    level = _between(gap, 0.15, 0.6 if mended else math.inf if unsettled else 5.0)
    value = f"{gap:.2f} nats away (statistics of the first layer; 0 = as in training)"
    if level == GOOD:
        says = "Pictures arrive with values as in training (size and order of colours can't be told so)."
        return Verdict(name, level, value, expected, says)
    causes: tuple[str, ...] = (
        "another mean and std than in training (--mean, --std)",
        "colour channels in another order, or another size",
    )
    causes = (*causes, OTHER_KIND) if mended else (OTHER_KIND, *causes)
    wrongly = "Fed wrongly: fix this first" if gap >= 0.6 else "Perhaps fed wrongly: look again"
    nearer = f"ed with --mean {best} it would be {others[best]:.2f} nats" if best else ""
    nearer = nearer if best and others[best] < 0.5 * gap else ""
    says, until = "Pictures arrive with other values than in training.", "Until that is known"
    opens = f"Pictures arrive otherwise than in training ({gap:.2f} nats away): "
    opens += f"other ones, or fed in another way{f' (f{nearer})' if nearer else ''}."
    if unsettled:
        seen = int(n["batches_seen"])
        says = f"Its batch statistics are of {seen} batch{'es' * (seen != 1)}: they had not settled."
        causes = ("saved after a few steps, before its batch statistics had settled", *causes)
    elif mended:
        says = f"{wrongly}, with --mean {best} (mean={best!r} in Python)."
        opens, until = f"{wrongly}, with --mean {best} ({gap:.2f} nats away).", "Until then"
    elif level == BROKEN:
        opens, until = f"{wrongly} ({gap:.2f} nats away).", "Until then"
    says += f" F{nearer}." if nearer else ""
    opens, mean = f"{opens} {until}", best if mended and not unsettled else ""
    return Verdict(name, level, value, expected, says, causes, opens=opens, mean=mean)


def trained(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """A difference counts from two standard errors on; healthy encoders lead by 0.15 to 0.3 on scenes."""
    name, expected = TRAINED, "kNN or probe above that of the same network with fresh weights"
    if n.get("weights_zero") == 1:
        says = "There is nothing in this file but zeros, so no picture can have gone into it."
        causes: tuple[str, ...] = (
            "weights that were made and never filled",
            "a checkpoint written by another process than 0",
        )
        return Verdict(name, BROKEN, "all its weights are 0", expected, says, causes)
    if n.get("never_trained"):
        return Verdict(
            name,
            BROKEN,
            "its batch normalisations have seen no picture",
            expected,
            FRESH,
            FRESH_CAUSES,
        )
    if looks_fresh(n):
        value = "its layer normalisations are as they were made: gains 1, biases 0"
        return Verdict(name, BROKEN, value, expected, FRESH, FRESH_CAUSES)
    if "knn_untrained" not in n:
        return _not_known(name, expected, unknown.get("knn_untrained") or unknown.get("knn", ""))
    own, fresh = n["knn_beside_untrained"], n["knn_untrained"]
    error, (by_knn, by_probe) = _doubt(n), _leads(n)
    value = f"kNN {own:.0%}, untrained {fresh:.0%} (less than {100 * error:.0f} points apart may be luck"
    value += f"; {int(n['gallery_compared'])} labels)" if "gallery_compared" in n else ")"
    if "probe_untrained" in n:
        value += f"; probe {n['probe']:.0%}, untrained {n['probe_untrained']:.0%}"
    if n.get("weights_zero", 0) > 0:
        says = f"{n['weights_zero']:.0%} of its convolutions and linear layers are 0 throughout."
        return Verdict(name, LOOK, value, expected, says, ("weights that were made and never filled",))
    easy = own >= EASY and interval(own, n["compared"])[0] > n.get("chance", 0.0)
    if not by_knn and not by_probe and n.get("chance", 0.0) >= EASY - 0.1:
        says = f"One class has {n['chance']:.0%} of the pictures: these labels can't tell."
        return Verdict(name, UNKNOWN, value, expected, says)
    if by_knn or easy:
        says = "It has learned something that these labels show."
        if by_knn and not by_probe and "probe_untrained" in n:
            lead, limit = 100 * (n["probe"] - n["probe_untrained"]), 100 * _probe_limit(n)
            says = "It has learned something that these labels show, by kNN; "
            says += (
                f"the probe's lead of {lead:.0f} points is not certain by itself ({limit:.0f} are needed)."
            )
            if lead <= 0:
                says = "It has learned something that these labels show, by kNN; not by the probe."
        if not by_knn:
            says = "Both tell these classes apart: the pictures are too easy to show what was learned."
        return Verdict(name, GOOD, value, expected, says)
    causes = (
        "too few steps, or a learning rate far off",
        "weights that did not load",
        "a temperature far off",
        "what it learned is not what these labels ask about",
    )
    causes = _without_tau(causes, unknown)
    if own >= fresh - error and by_probe:
        says = "The probe is above that of fresh weights; kNN is not."
        return Verdict(name, GOOD, value, expected, says)
    if own >= fresh - error and (error > 0.15 or _may_lead(n)):
        says = f"{int(n['compared'])} pictures and one draw of fresh weights can't make a lead certain."
        return Verdict(name, UNKNOWN, value, expected, says)
    if own < fresh - error and n.get("probe", 0.0) > n.get("probe_untrained", 1.0):
        says = "Below fresh weights by kNN, and not by the probe."
        return Verdict(name, LOOK, value, expected, says, causes)
    if own < fresh - error:
        return Verdict(name, BROKEN, value, expected, "Training made it worse than fresh weights.", causes)
    return Verdict(
        name, LOOK, value, expected, "On these labels it is not clearly better than fresh weights.", causes
    )


def looks_fresh(n: Mapping[str, float]) -> bool:
    """Normalisations as they were made; those of layers may have been kept so, where classes were learned."""
    return bool(n.get("never_trained") or (n.get("plain_normalisations") and not any(_leads(n))))


def _doubt(n: Mapping[str, float]) -> float:
    """Two standard errors of the difference between this encoder's kNN accuracy and that of fresh weights."""
    return _two_errors(n["knn_beside_untrained"], n["knn_untrained"], n["compared"])


def _two_errors(one: float, other: float, count: float) -> float:
    """Of the pictures, and of fresh weights: other draws of them have other accuracies."""
    return 2 * math.sqrt(max(one * (1 - one) + other * (1 - other), 1e-4) / count + DRAWS**2)


def _leads(n: Mapping[str, float]) -> tuple[bool, bool]:
    """Whether it is above fresh weights by more than luck: (by kNN, by the probe).

    By two standard errors, and by three for the probe: a second chance, beside one draw of fresh weights.
    """
    if "knn_untrained" not in n:
        return False, False
    by_knn = n["knn_beside_untrained"] > n["knn_untrained"] + _doubt(n)
    by_probe = "probe_untrained" in n and n["probe"] > n["probe_untrained"] + _probe_limit(n)
    return by_knn, by_probe


def _probe_limit(n: Mapping[str, float]) -> float:
    """Three standard errors of the difference between its probe's accuracy and that of fresh weights."""
    return 1.5 * _two_errors(n["probe"], n["probe_untrained"], n["compared"])


def _may_lead(n: Mapping[str, float]) -> bool:
    """Whether it is above fresh weights by one standard error, which is too little to be certain."""
    leads = []
    for own, fresh in (("knn_beside_untrained", "knn_untrained"), ("probe", "probe_untrained")):
        if own in n and fresh in n:
            leads.append((n[own] - n[fresh]) / _two_errors(n[own], n[fresh], n["compared"]))
    return max(leads, default=0.0) > 0.5


def _without_tau(causes: tuple[str, ...], unknown: Mapping[str, str]) -> tuple[str, ...]:
    """A loss that has no temperature had no wrong one."""
    untempered = "without a temperature" in unknown.get("W", "")
    return tuple(cause for cause in causes if not (untempered and cause.startswith("a temperature")))


def spread(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """Healthy encoders: 0.5 to 0.95 of an embedding's length is its own; after a collapse, 0.01."""
    spread = n["spread"]
    expected = "above 0.15" + (
        ", after a head nearer to 1" if layer == "head" else " (features after a ReLU)"
    )
    level = GOOD if spread >= 0.15 else LOOK if spread >= 0.05 else BROKEN
    causes: tuple[str, ...] = ()
    says = "Different pictures have different embeddings."
    if level != GOOD:
        says = "Embeddings are nearly one and the same: collapse."
        if _centred_is_well(n):
            says = "All features share a constant far above what differs; centred, they tell pictures apart."
        causes = ("nothing pushes apart (no negatives, no stop-gradient, no variance term)",)
        causes += ("a learning rate so high that weights ran away", "weights that did not load")
        if _centred_is_well(n):
            level, causes = LOOK, ("a bias or a layer that did not load, or an offset: subtract the mean",)
    elif n.get("first_direction", 0) > 0.8:
        level, causes = LOOK, ("collapse onto a line: see dimensions in use",)
        says = f"Pictures differ, but {n['first_direction']:.0%} of that is along one direction."
    return Verdict("spread", level, f"{spread:.3f} of the length differs", expected, says, causes)


def _centred_is_well(n: Mapping[str, float]) -> bool:
    """A constant that all features share makes them alike, and is no collapse, unless it drowns the rest."""
    apart = n["finds_itself"] >= 0.08 and lead(n) >= 0.4
    in_use = n.get("effective_rank", 0) >= 8 and n.get("first_direction", 1) <= 0.6
    return apart and in_use and n["spread"] >= CONSTANT


def dimensions(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """Healthy encoders of 128 features: an effective rank of 25 to 49, first direction below 40 %."""
    name, expected = (
        "dimensions in use",
        "effective rank above 8, no direction with over 60 % of the variance",
    )
    if "effective_rank" not in n:
        return Verdict(name, BROKEN, "none", expected, "No dimension is in use.", ("collapse: see spread",))
    rank, first = n["effective_rank"], n["first_direction"]
    level = BROKEN if rank < 3 or first > 0.9 else LOOK if rank < 8 or first > 0.6 else GOOD
    wide, count = int(n["dimensions"]), int(n["pictures"])
    value = (
        f"effective rank {rank:.1f} of at most {min(wide, count - 1)} ({wide} features, {count} pictures); "
    )
    value += f"first direction {first:.0%}"
    causes: tuple[str, ...] = ()
    says = "The representation uses its dimensions."
    if level != GOOD:
        says = "Dimensional collapse: a few directions carry everything."
        if rank >= 8 and first <= 0.9:
            says = f"One direction carries {first:.0%} of the variance; the rest is spread over many."
        causes = (
            "nothing pushes apart, or pairs that do not belong together",
            "augmentation stronger than the signal",
        )
        causes += (
            "a head too narrow, or without hidden layer",
            "a shortcut: one property decides",
        )
    return Verdict(name, level, value, expected, says, causes)


def units(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """Healthy encoders here have none; a quarter is what ReLU networks lose under a high learning rate."""
    dead = n["dead"]
    level = _between(dead, 0.25, 0.5)
    causes: tuple[str, ...] = ()
    says = "Units react to pictures."
    if level != GOOD:
        says = "Many units never move, whatever the picture."
        causes = ("a learning rate too high: ReLUs that died", "weight decay on normalisations", "collapse")
    return Verdict("dead units", level, f"{dead:.0%} of {int(n['dimensions'])}", "below 25 %", says, causes)


def norms(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """Lengths vary by 15 to 45 % in healthy encoders. A length of 0 has no direction to be compared by."""
    zero, varies = int(n["zero_norms"]), n["norm_varies"]
    level = BROKEN if zero else _between(varies, 1.0, math.inf)
    causes: tuple[str, ...] = ()
    says = "None is 0, and they vary by less than the limit."
    if level != GOOD:
        says = "Some embeddings have length 0." if zero else "Lengths differ by far more than usual."
        causes = ("blank or broken pictures", "dead units", "a normalisation layer in training mode")
    value = f"{n['norm']:.2f} on average, ± {varies:.0%}" + (f", {zero} of length 0" if zero else "")
    return Verdict("length", level, value, "varies by less than 100 %, none is 0", says, causes)


def lead(n: Mapping[str, float]) -> float:
    """How far positives lead: (s+ - s-) / (1 - s-), means. 1: the views of a picture coincide; 0: chance."""
    return (n["positive_similarity"] - n["negative_similarity"]) / max(1 - n["negative_similarity"], 1e-6)


def two_views(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """Healthy encoders: a lead of 0.5 to 0.8, a view finds its other half among 510 in 10 to 23 %."""
    expected = f"lead above 0.4, finds itself above 8 % among {int(n['views'])} pictures, at SimCLR's crops"
    level, ahead = LOOK, lead(n)
    if n["spread"] < 0.05 and not _centred_is_well(n):
        level, says = BROKEN, "All pictures lie at one place: a lead there means little."
    elif ahead >= 0.4 and n["finds_itself"] >= 0.08:
        level, says = GOOD, "Two views of a picture lie nearer to each other than to other pictures."
    elif ahead >= 0.1 and n["finds_itself"] >= 2 / n["views"]:
        says = "Two views of a picture lie nearer to each other than to other pictures, by less than usual."
        says = APART if n.get("nearer_than", 1.0) < 0.6 else says
    else:
        level, says = BROKEN, APART
    causes: tuple[str, ...] = (
        "pairs that do not belong together",
        "too few steps",
        "trained with weaker augmentation than this (without colour, above all)",
        "a temperature far too high",
    )
    causes = _without_tau(causes, unknown)
    value = f"lead {ahead:.2f}; alignment {n['alignment']:.2f}; finds itself {n['finds_itself']:.0%}"
    if "nearer_than" in n:
        value += f", nearer than {n['nearer_than']:.0%} of the others (a half by chance)"
    return Verdict("views of a picture", level, value, expected, says, causes if level != GOOD else ())


def loss_space(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """After the head, healthy runs have a uniformity of -1.7 to -3.0; a head that collapsed has nearly 0."""
    name, expected = "the space of the loss", f"uniformity below {CROWDED} after the head (floor -4)"
    if "head_uniformity" not in n:
        return _not_known(name, expected, unknown.get("head_uniformity", ""))
    value = f"uniformity {n['head_uniformity']:.2f}, alignment {n['head_alignment']:.2f}"
    level = _between(n["head_uniformity"], CROWDED, -0.5)
    if level == GOOD:
        return Verdict(name, level, value, expected, "After the head, pictures are spread over the sphere.")
    says = "After the head, all pictures lie in one corner: what the loss sees has collapsed."
    if level == LOOK:
        says = "After the head, pictures are crowded: the loss has little to tell them apart by."
    causes = (
        "too few steps",
        "pairs that do not belong together",
        "nothing pushes apart",
        "a temperature far too low",
        "encoder and head that do not belong together, or a layer that did not load",
        OTHER_WAY,
    )
    return Verdict(name, level, value, expected, says, _without_tau(causes, unknown))


def temperature(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """Of the negatives the push is shared by 18 to 75 % in healthy runs at τ from 0.1 to 0.5.

    At τ = 0.005 training breaks down, and in what is left all similarities are alike, so that many share the
    push again: there τ itself speaks. Published methods train at 0.05 to 1.
    """
    name, expected = "temperature", "5 to 90 % of the negatives share the push; τ from 0.05 to 1"
    if "share_of_negatives" not in n:
        return _not_known(name, expected, unknown.get("W", ""))
    share, tau = n["share_of_negatives"], n["temperature"]
    stored = n.get("temperature_in_file", tau)
    given = f" (given; the file says {stored:g})" if stored != tau else ""
    value = (
        f"τ = {tau:g}{given}: {share:.1%} of {int(n['negatives'])} negatives share NT-Xent's push; "
        f"W = {n['W']:.2f}"
    )
    causes: tuple[str, ...] = ()
    if share > 0.9 and tau > 0.02:
        level = BROKEN if share > 0.97 else LOOK
        says = "Too hot for these similarities: hard and easy negatives are pushed alike."
        causes = ("a temperature far above 0.5", "similarities all alike, as after a collapse: see above")
    elif share < 0.05 or tau <= 0.02:
        level = BROKEN if share < 0.01 or tau <= 0.02 else LOOK
        says = "Too cold: the hardest negatives take the whole push, among them pictures of the same kind."
        causes = ("a temperature far below 0.05", "duplicates among the pictures")
    else:
        level, says = GOOD, "The push is shared by many negatives, the harder ones more."
    if given and level == BROKEN:  # it is not what this encoder was trained at
        level = LOOK
    return Verdict(name, level, value, expected, says, causes)


def classes(n: Mapping[str, float], unknown: Mapping[str, str], layer: str) -> Verdict:
    """Above raw pixels and fresh weights; and what holds among gallery pictures holds for the judged, too."""
    if "knn" not in n:
        return _not_known(CLASSES, OF_CLASSES, unknown.get("knn", ""))
    v = _beside_raw(n)
    if n.get("copies", 0.0) > COPIES:
        says = f"{n['copies']:.0%} of the judged pictures are among those that lend their labels: "
        says += "these accuracies are too high."
        return replace(v, level=LOOK, says=says, causes=("the same pictures in both splits",))
    if v.level == BROKEN or not (_renamed(n) or _judged_differ(n)):
        return v
    if _renamed(n):
        return replace(
            v, level=UNKNOWN, says="Not to be judged under wrong names: see class names.", causes=()
        )
    says = f"Gallery pictures find their own class ({_among(n):.0%}), the judged far less"
    causes = (
        "labels of the judged part that are wrong, or two of its classes exchanged",
        "trained on the gallery's labels; or frames of one scene in it",
        "judged pictures of another kind than the gallery's",
    )
    return replace(v, level=LOOK, says=f"{says} ({n['knn']:.0%}).", causes=causes)


def _among(n: Mapping[str, float]) -> float:
    """kNN accuracy within the gallery; each class weighs as it does among the judged, where that is known."""
    return n.get("knn_gallery_alike", n.get("knn_gallery", 0.0))


def _judged_differ(n: Mapping[str, float]) -> bool:
    """Whether kNN of the judged is below that within the gallery, by more than luck and by a seventh.

    In 143 encoders of the calibration, with right labels, at most 2.4 standard errors below.
    """
    own, count = n["knn"], n["pictures"]
    among = _among(n)
    if "gallery_error" in n:
        error = math.sqrt(max(own * (1 - own), 1e-4) / count + n["gallery_error"] ** 2)
    else:  # of classes of one size
        asked = n.get("asked_gallery", 1.0)
        share = (own * count + among * asked) / (count + asked)
        error = math.sqrt(max(share * (1 - share), 1e-4) * (1 / count + 1 / asked))
    return count >= ASKED and among - own > max(4 * error, among / 7)


def _beside_raw(n: Mapping[str, float]) -> Verdict:
    """Above raw pixels by two standard errors, in kNN or in the probe, and so above fresh weights."""
    name, expected = CLASSES, OF_CLASSES
    knn, raw, chance, error = n["knn"], n["knn_raw"], n["chance"], n["knn_error"]
    probe, probe_raw = n.get("probe", 0.0), n.get("probe_raw", 1.0)
    value = f"kNN {knn:.0%}, raw pixels {raw:.0%}, chance {chance:.0%}"
    if "probe" in n:
        value += f"; linear probe {probe:.0%}, raw pixels {probe_raw:.0%}"
    if max(interval(knn, n["pictures"])[0], interval(probe, n["pictures"])[0]) <= chance:
        level, says, causes = _at_chance(n)
        return Verdict(name, level, value, expected, says, causes)
    if knn > raw + 2 * error or knn >= EASY:
        says = "Neighbours share a class more often than in raw pixels."
        if knn <= raw:
            says = (
                "Neighbours share a class, though no more often than in raw pixels: these classes are easy."
            )
        return _beside_fresh(Verdict(name, GOOD, value, expected, says), n)
    if probe > probe_raw + 2 * error:
        says = "A probe tells classes apart better than in raw pixels."
        return _beside_fresh(Verdict(name, GOOD, value, expected, says), n)
    if knn > raw and 2 * error > 0.1:
        says = f"A lead over raw pixels that {int(n['pictures'])} judged pictures can't make certain."
        return Verdict(name, UNKNOWN, value, expected, says)
    causes = ("trained too briefly", "augmentation removes what these labels ask about (colour, place)")
    return Verdict(
        name,
        LOOK,
        value,
        expected,
        "Not clearly better than raw pixels on these labels.",
        (*causes, OTHER_WAY),
    )


def _beside_fresh(v: Verdict, n: Mapping[str, float]) -> Verdict:
    """Good by raw pixels is no merit of the training where fresh weights of that network do as well."""
    if n.get("never_trained"):  # fresh weights may well be above others whose batch statistics were learned
        return replace(v, level=LOOK, says="Above raw pixels, as fresh weights may be.", causes=FRESH_CAUSES)
    if "knn_untrained" not in n or any(_leads(n)) or n["knn_beside_untrained"] >= EASY:
        return v
    own, fresh, error = n["knn_beside_untrained"], n["knn_untrained"], _doubt(n)
    by_knn = n["knn"] - n["knn_raw"] > 2 * n["knn_error"]
    by_probe = n.get("probe", 0.0) - n.get("probe_raw", 1.0) > 2 * n["knn_error"]
    above = "Above raw pixels" + (" (by the probe)" if by_probe and not by_knn else "")
    above = above if by_knn or by_probe else ""
    if own >= fresh - error and (error > 0.15 or _may_lead(n)):
        says = above or "Not above raw pixels"
        says += f"; whether above fresh weights, {int(n['compared'])} pictures can't tell."
        return replace(v, level=UNKNOWN, says=says)
    says = f"{above}, but" if above else "Not above raw pixels, and"
    says += " not clearly better than the same network with fresh weights."
    causes = ("trained too briefly", "what it learned is not what these labels ask about", OTHER_WAY)
    return replace(v, level=LOOK, says=says, causes=causes)


def _at_chance(n: Mapping[str, float]) -> tuple[str, str, tuple[str, ...]]:
    """Chance is within what the accuracy may truly be: level, what it means, causes.

    Labels are blamed only by `ASKED` judged pictures or more, where what healthy encoders show (`HEALTHY`) is
    outside, of the judged pictures and of the gallery's among themselves, and where raw pixels and fresh
    weights leave no sign, at 95 %, that labels and pictures belong together.
    """
    count, chance = int(n["pictures"]), n["chance"]
    highest = interval(n["knn"], count)[1]
    if _collapsed(n):
        says = "At chance: this representation holds too little to tell classes by."
        return BROKEN, says, ("collapse: see spread and dimensions",)
    raw = interval(n["knn_raw"], count)[0]
    fresh = interval(n["knn_untrained"], n["compared"])[0] if "knn_untrained" in n else 0.0
    if max(raw, fresh) > chance and highest < max(n["knn_raw"], n.get("knn_untrained", 0.0)):
        says = (
            "At chance, though raw pixels or fresh weights are not: the encoder lost what tells them apart."
        )
        return BROKEN, says, ("collapse", "weights that did not load", OTHER_WAY)
    seen: dict[str, float] = {"knn_raw": count, "probe_raw": count}
    seen |= {f"{how}_untrained": n["compared"] for how in ("knn", "probe") if "compared" in n}
    signs = any(interval(n[key], asked, 0.9)[0] > chance for key, asked in seen.items() if key in n)
    enough = count >= ASKED and n["chance_gallery"] * n["gallery"] >= LABELLED and not signs
    among = interval(n["knn_gallery"], n["asked_gallery"])
    apart = interval(n["knn_gallery"], n["asked_gallery"], 0.9)[0] > n["chance_gallery"]
    order = "labels in another order than the pictures"
    if enough and highest < among[0] and among[0] > n["chance_gallery"]:
        says = (
            "At chance, though gallery pictures tell each other's classes: the judged are labelled otherwise."
        )
        return BROKEN, says, (order, "class numbers in another order in the two splits")
    healthy = chance + HEALTHY * (1 - chance)
    if enough and not apart and max(highest, among[1]) < healthy:
        says = "At chance, and so are raw pixels: labels and pictures seem not to belong together."
        return BROKEN, says, (order, "labels that pictures do not show")
    lowest = max(interval(n["knn"], count)[0], 0)
    says = f"{count} judged pictures are too few to say: kNN may truly be {lowest:.0%} or {highest:.0%}."
    return UNKNOWN, says, ()


def _collapsed(n: Mapping[str, float]) -> bool:
    return n["spread"] < 0.05 or n["effective_rank"] < 3 or n["first_direction"] > 0.9


def names(n: Mapping[str, float], unknown: Mapping[str, str]) -> Verdict:
    """Renaming classes gains a few per cent by chance where accuracy is low; mixed-up names gain more."""
    name, expected = "class names", "no renaming of classes that gains over 20 points"
    if "knn" not in n:
        return _not_known(name, expected, unknown.get("knn", ""))
    value = f"{n['knn']:.0%}; {n['knn_relabelled']:.0%} under the best renaming"
    exchanged = n.get("exchanged", 0.0) > EXCHANGED
    if not _renamed(n) and not exchanged:
        if interval(n["knn"], n["pictures"])[0] <= n["chance"]:
            says = "Where classes are not told apart, no name is right or wrong."
            return Verdict(name, UNKNOWN, value, expected, says)
        says = "No renaming gains over 20 points, and no two classes stand clearly in each other's place "
        says += "(of classes that are alike, an exchange may not show)."
        return Verdict(name, GOOD, value, expected, says)
    if exchanged and not _renamed(n):
        says = "Two classes stand in each other's place: see who is taken for whom."
        return Verdict(
            name, LOOK, value, expected, says, ("the numbers of two classes exchanged in a split",)
        )
    causes = ("class numbers in another order in the two splits", "a split with other classes")
    return Verdict(name, BROKEN, value, expected, "Classes are told apart, but under wrong names.", causes)


def _renamed(n: Mapping[str, float]) -> bool:
    """Whether other names bring back what few pictures by luck do not, or most of what the gallery has more.

    Two exchanged classes of ten cost a fifth of the accuracy, which a renaming brings back.
    """
    gain = n["knn_relabelled"] - n["knn"]
    if _judged_differ(n) and gain > 2 / 3 * (_among(n) - n["knn"]):
        return True
    certain = n["chance"] + max(0.25, 6 * n["knn_error"])  # few pictures always leave something to rename
    return gain > max(0.2, 4 * n["knn_error"]) and n["knn_relabelled"] >= certain


def robust(n: Mapping[str, float], unknown: Mapping[str, str]) -> Verdict:
    """Healthy encoders keep 0.7 to 0.9 under a crop or jitter, 0.2 to 0.6 in grey: scenes have colours.

    Judged is what training on such pictures usually has, by the one that is kept least.
    """
    measured = {name.removeprefix("kept_"): value for name, value in n.items() if name.startswith("kept_")}
    expected = "above 0.55, in grey above 0.15"
    if not measured:
        return _not_known("robustness", expected, unknown.get("kept", ""))
    value = ", ".join(f"{name} {measured[name]:.2f}" for name in measured)
    value += " (1 = stays where it is, 0 = as far away as another picture)"
    judged = kept(n)
    beside = [name for name in measured if name not in judged]
    also = f" Not judged, as training seldom has it on such pictures: {', '.join(beside)}." if beside else ""
    low = sorted((name for name in judged if judged[name] < least_kept(name)), key=lambda name: judged[name])
    if not low:
        least = min(judged, key=lambda name: judged[name])
        says = f"A changed picture stays nearer than another picture, least near under {least} "
        says += f"({judged[least]:.2f})."
        return Verdict("robustness", GOOD, value, expected, says + also)
    named = ", ".join(f"{name} ({judged[name]:.2f})" for name in low)
    says = f"Under {named} a picture keeps less of its place than usual."
    causes: tuple[str, ...] = ("trained without that augmentation", "trained too briefly")
    if "grey" in low:
        causes = ("it tells pictures apart by colour above all: a shortcut", *causes)
    return Verdict("robustness", LOOK, value, expected, says + also, causes)


def kept(n: Mapping[str, float]) -> dict[str, float]:
    """Change -> how far a picture keeps its place under it, of those that training on such pictures has."""
    named = {name.removeprefix("kept_"): value for name, value in n.items() if name.startswith("kept_")}
    return {name: value for name, value in named.items() if n.get(f"usual_{name}", 1.0)}


def least_kept(change: str) -> float:
    """What a healthy encoder keeps at least: in grey less, for scenes have colours."""
    return 0.15 if change == "grey" else 0.55


def maps(n: Mapping[str, float], unknown: Mapping[str, str]) -> list[Verdict]:
    """A map at 0.9 keeps nearly all neighbours, both ways; below it is a picture of something else."""
    found = []
    for name in ("t-SNE", "UMAP"):
        kept = {
            what: [v for k, v in n.items() if k.startswith(f"{what}_{name}_")]
            for what in ("trustworthiness", "continuity", "recall", "distances")
        }
        expected = "trustworthiness and continuity above 0.85, whatever the seed"
        if kept["trustworthiness"]:
            least = min(kept["trustworthiness"] + kept["continuity"])
            level = GOOD if least >= 0.85 else LOOK
            says = "Neighbours on the map are neighbours in truth; distances and sizes are not."
            if level == LOOK:
                says = "The map shows neighbours that are none, or tears neighbours apart."
            called = {"recall": "kNN recall", "distances": "correlation of distances"}
            value = ", ".join(f"{called.get(what, what)} {_ends(v)}" for what, v in kept.items() if v)
            causes: tuple[str, ...] = (
                () if level == GOOD else ("few pictures", "an embedding that no plane can hold")
            )
            found.append(Verdict(f"map ({name})", level, value, expected, says, causes))
        elif name in unknown:
            found.append(_not_known(f"map ({name})", expected, unknown[name]))
    return found


def _ends(values: Sequence[float]) -> str:
    low, high = (f"{end(values):.2f}" for end in (min, max))
    return low if low == high else f"{low} to {high}"


def _between(value: float, look: float, broken: float) -> str:
    return GOOD if value <= look else LOOK if value <= broken else BROKEN


def _not_known(name: str, expected: str, why: str) -> Verdict:
    return Verdict(name, UNKNOWN, "not measured", expected, why or "not measured")


def interval(share: float, count: float, confidence: float = 0.99) -> tuple[float, float]:
    """Where a share that was seen `count` times may truly lie (Wilson's interval)."""
    from scipy.stats import binomtest

    found = binomtest(round(share * count), round(count)).proportion_ci(confidence, method="wilson")
    return found.low, found.high

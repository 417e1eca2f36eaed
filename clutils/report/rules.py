"""Rules of the report, a function each: the expected range, this encoder's value, and usual causes.

Every threshold stands in this file, with its reason. They were set on encoders trained on generated scenes
and on digits with seeds 0 to 2, healthy ones and broken ones, and are tested on others (`tests/report`).
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from clutils.checkpoints.layouts import with_prefix

GOOD, LOOK, BROKEN, UNKNOWN = "good", "worth a look", "broken", "not known"
HEALTHY = 0.1  # of the way from chance to 1: healthy encoders' kNN is beyond, with 150 labels already
FRESH = "These look like the weights of a network that was never trained."
FRESH_CAUSES = ("saved before the first step", "weights did not load into the network that was saved")
INPUT, TRAINED, CLASSES = "what it is fed", "against untrained", "classes"
ASKED = 200  # judged pictures below which labels are never blamed
LABELLED = 50  # gallery pictures of the largest class below which right labels may leave neighbours at chance
SETTLED = 30  # batches after which a batch normalisation's memory (momentum 0.1) has forgotten its start
CROWDED = -1.2  # a uniformity above which pictures are crowded in the space of the loss
# standard deviation of fresh weights' accuracy from seed to seed: 0.02 to 0.03 (six of conv16, scenes)
DRAWS = 0.03
CONSTANT = 0.01  # a spread below which features are a constant
APART = "Two views of a picture lie hardly nearer to each other than to other pictures."
WEAKER = "trained with weaker augmentation than this (without colour, above all)"
OTHER_KIND = "pictures of another kind than it was trained on"
OTHER_WAY = "pictures fed in another way than in training"
STATED = ", as the file says"  # behind a cause: such ones come first
TOLD_APART = 0.05  # nats that two ways to feed must differ by: healthy encoders are so far from training
COPIES = 0.01  # share of judged pictures that may be in the gallery, too
EXCHANGED = 3.5  # standard errors by which two classes are found in each other's place rather than their own
EASY = 0.9  # kNN accuracy from which on a lead over raw pixels or an untrained encoder is no longer to be had

Numbers = Mapping[str, float]


@dataclass(frozen=True)
class Verdict:
    """One verdict of the report; a rule gives it without name and expected range, which `rule` adds.

    - name: what was looked at; level: good, worth a look, broken or not known
    - value, expected: what was measured and what is usual here, in words
    - says: what that means; causes: what usually causes it, likeliest first; empty where all is well
    - remark: what the level rests on, where it does not stand for itself: "on these pictures", "follows from
      'against untrained'"
    - opens: how the whole report's sentence begins where pictures do not arrive as in training
    - mean: the normalisation that would mend that, where a usual one does (`--mean`)
    """

    name: str = field(default="", kw_only=True)
    level: str
    value: str
    expected: str = field(default="", kw_only=True)
    says: str
    causes: tuple[str, ...] = ()
    remark: str = field(default="", kw_only=True)
    opens: str = ""
    mean: str = ""

    @property
    def said(self) -> str:
        """The level with what it rests on."""
        return f"{self.level} ({self.remark})" if self.remark else self.level


def rule(
    name: str, expected: str, *why: str, after_head: str = ""
) -> Callable[[Callable[[Numbers], Verdict | None]], Callable[..., Verdict]]:
    """Decorator of a rule, numbers -> what it finds, None = not known: numbers, unknown, layer -> `Verdict`.

    - expected: filled in from the numbers; after_head: instead of it, where features are read there
    - why: names in `unknown`; the first reason there is says why it is not known
    """

    def of(judge: Callable[[Numbers], Verdict | None]) -> Callable[..., Verdict]:
        @functools.wraps(judge)
        def judged(n: Numbers, unknown: Mapping[str, str], layer: str = "encoder") -> Verdict:
            usual = (after_head if after_head and layer == "head" else expected).format_map(n)
            found = judge(n)
            if found is None:
                reason = next((unknown[key] for key in why if unknown.get(key)), "not measured")
                return Verdict(UNKNOWN, "not measured", reason, name=name, expected=usual)
            causes, no_stop = list(found.causes), f"nothing pushes apart: no stop-gradient{STATED}"
            if "without a temperature" in unknown.get("W", ""):  # then none was wrong
                causes = [cause for cause in causes if not cause.startswith("a temperature")]
            if n.get("stop_gradient") == 0:
                causes = [no_stop if cause.startswith("nothing pushes") else cause for cause in causes]
            causes.sort(key=lambda cause: not cause.endswith(STATED))
            return replace(found, name=name, expected=usual, causes=tuple(causes))

        return judged

    return of


# ---- one function a rule -----------------------------------------------------------------------------------


@rule(INPUT, "0 to 0.15 nats from what its first batch normalisation remembers", "input_gap")
def input_statistics(n: Numbers) -> Verdict | None:
    """Healthy encoders with matching normalisation: below 0.05 nats; ImageNet's applied twice: above 1.

    Healthy encoders of scenes on digits, and the other way round: 0.25 to 0.55. So between 0.6 and 5 it is
    broken only where a usual normalisation mends it; below, such a one is a probable cause.
    """
    if "input_gap" not in n:
        return None
    gap = n["input_gap"]
    others = with_prefix("input_gap_", n)
    best, *equal = alike(others) or [""]
    unsettled = 0 < n.get("batches_seen", 0) < SETTLED
    mended = bool(others) and others[best] <= min(0.15, gap / 4)
    level = _between(gap, 0.15, 0.6 if mended else math.inf if unsettled else 5.0)
    away = f"{gap:,.{2 if gap < 10 else 0}f} nats away"
    value = f"{away} (statistics of the first layer; 0 = as in training)"
    if level == GOOD:
        says = "Pictures arrive with values as in training (size and order of colours can't be told so)."
        return Verdict(level, value, says)
    causes: tuple[str, ...] = (
        "another mean and std than in training (--mean, --std)",
        "colour channels in another order, or another size",
    )
    causes = causes[:1] if mended else (OTHER_KIND, *causes)
    wrongly = "Fed wrongly: fix this first" if gap >= 0.6 else "Perhaps fed wrongly: look again"
    nearer = bool(best) and others[best] < 0.5 * gap
    either = " or ".join([best, *equal])
    reached = " and ".join(f"{others[name]:.2f}" for name in (best, *equal) if name)
    near = ": too near to tell" if equal else ""
    fed = f"ed with --mean {either} it would be {reached} nats{near}" if nearer else ""
    says, until = "Pictures arrive with other values than in training.", "Until that is known"
    opens = f"Pictures arrive otherwise than in training ({away}): "
    opens += f"other ones, or fed in another way{f' (f{fed})' if nearer else ''}."
    if unsettled:
        seen = int(n["batches_seen"])
        says = f"Its batch statistics are of {seen} batch{'es' * (seen != 1)}: they had not settled."
        causes = ("saved after a few steps, before its batch statistics had settled", *causes)
    elif mended:
        says = f"{wrongly}, with --mean {either} (mean={best!r} in Python)."
        opens = f"{wrongly}, with --mean {either} (now {away} from training, with it {reached}{near})."
        until = "Until then"
    elif level == BROKEN:
        opens, until = f"{wrongly} ({away}).", "Until then"
    says += f" F{fed}." if nearer else ""
    return Verdict(level, value, says, causes, f"{opens} {until}", best if mended and not unsettled else "")


def alike(gaps: Mapping[str, float]) -> list[str]:
    """The normalisation that fits best, and those that can't be told from it, by `TOLD_APART`."""
    names = sorted(gaps, key=lambda name: gaps[name])
    return [name for name in names if gaps[name] - gaps[names[0]] < TOLD_APART]


@rule(TRAINED, "kNN or probe above that of the same network with fresh weights", "knn_untrained", "knn")
def trained(n: Numbers) -> Verdict | None:
    """A difference counts from two standard errors on; healthy encoders lead by 0.15 to 0.3 on scenes."""
    unfilled = "weights that were made and never filled"
    if n.get("weights_zero") == 1:
        says = "There is nothing in this file but zeros, so no picture can have gone into it."
        causes: tuple[str, ...] = (unfilled, "a checkpoint written by another process than 0")
        return Verdict(BROKEN, "all its weights are 0", says, causes)
    if looks_fresh(n):
        value = "its layer normalisations are as they were made: gains 1, biases 0"
        if n.get("never_trained"):
            value = "its batch normalisations have seen no picture"
        return Verdict(BROKEN, value, FRESH, FRESH_CAUSES)
    if "knn_untrained" not in n:
        return None
    own, fresh = n["knn_beside_untrained"], n["knn_untrained"]
    error, (by_knn, by_probe) = 2 * _error(n), _leads(n)
    value = f"kNN {own:.0%}, untrained {fresh:.0%} (less than {100 * error:.0f} points apart may be luck"
    value += f"; {int(n['gallery_compared'])} labels)" if "gallery_compared" in n else ")"
    if "probe_untrained" in n:
        value += f"; probe {n['probe']:.0%}, untrained {n['probe_untrained']:.0%}"
    if n.get("weights_zero", 0) > 0:
        says = f"{n['weights_zero']:.0%} of its convolutions and linear layers are 0 throughout."
        return Verdict(LOOK, value, says, (unfilled,))
    easy = own >= EASY and interval(own, n["compared"])[0] > n.get("chance", 0.0)
    if not by_knn and not by_probe and n.get("chance", 0.0) >= EASY - 0.1:
        says = f"One class has {n['chance']:.0%} of the pictures: these labels can't tell."
        return Verdict(UNKNOWN, value, says)
    if by_knn or easy:
        says = "It has learned something that these labels show."
        if not by_knn:
            says = "Both tell these classes apart: the pictures are too easy to show what was learned."
        elif not by_probe and "probe_untrained" in n:
            ahead = 100 * (n["probe"] - n["probe_untrained"])
            limit = 300 * _error(n, "probe", "probe_untrained")
            says = "It has learned something that these labels show, by kNN; not by the probe."
            if ahead > 0:
                says = f"{says.partition(';')[0]}; the probe's lead of {ahead:.0f} points is not certain by "
                says += f"itself ({limit:.0f} are needed)."
        return Verdict(GOOD, value, says)
    causes = (
        "too few steps, or a learning rate far off",
        "weights that did not load",
        "a temperature far off",
        "what it learned is not what these labels ask about",
    )
    if own < fresh - error:
        if n.get("probe", 0.0) > n.get("probe_untrained", 1.0):
            return Verdict(LOOK, value, "Below fresh weights by kNN, and not by the probe.", causes)
        return Verdict(BROKEN, value, "Training made it worse than fresh weights.", causes)
    if by_probe:
        return Verdict(GOOD, value, "The probe is above that of fresh weights; kNN is not.")
    if error > 0.15 or any(_leads(n, 1, 1)):
        says = f"{int(n['compared'])} pictures and one draw of fresh weights can't make a lead certain."
        return Verdict(UNKNOWN, value, says)
    return Verdict(LOOK, value, "On these labels it is not clearly better than fresh weights.", causes)


def looks_fresh(n: Numbers) -> bool:
    """Normalisations as they were made; those of layers may have been kept so, where classes were learned."""
    return bool(n.get("never_trained") or (n.get("plain_normalisations") and not any(_leads(n))))


def _error(n: Numbers, own: str = "knn_beside_untrained", fresh: str = "knn_untrained") -> float:
    """Standard error of the difference to fresh weights: of the pictures, and of the weights, drawn once."""
    variance = sum(n[key] * (1 - n[key]) for key in (own, fresh))
    return math.sqrt(max(variance, 1e-4) / n["compared"] + DRAWS**2)


def _leads(n: Numbers, knn: float = 2, probe: float = 3) -> tuple[bool, bool]:
    """Whether it is above fresh weights by so many standard errors: (by kNN, by the probe).

    Two are more than luck, and three for the probe: a second chance, beside one draw of fresh weights.
    """
    if "knn_untrained" not in n:
        return False, False
    by_knn = n["knn_beside_untrained"] > n["knn_untrained"] + knn * _error(n)
    if "probe_untrained" not in n:
        return by_knn, False
    return by_knn, n["probe"] > n["probe_untrained"] + probe * _error(n, "probe", "probe_untrained")


@rule("spread", "above 0.15 (features after a ReLU)", after_head="above 0.15, after a head nearer to 1")
def spread(n: Numbers) -> Verdict:
    """Healthy encoders: 0.5 to 0.95 of an embedding's length is its own; after a collapse, 0.01."""
    value, first = f"{n['spread']:.3f} of the length differs", n.get("first_direction", 0)
    if n["spread"] < 0.15 and _centred_is_well(n):
        says = "All features share a constant far above what differs; centred, they tell pictures apart."
        causes: tuple[str, ...] = ("a bias or a layer that did not load, or an offset: subtract the mean",)
        return Verdict(LOOK, value, says, causes)
    if n["spread"] < 0.15:
        causes = (
            "nothing pushes apart (no negatives, no stop-gradient, no variance term)",
            "a learning rate so high that weights ran away",
            "weights that did not load",
        )
        level = LOOK if n["spread"] >= 0.05 else BROKEN
        return Verdict(level, value, "Embeddings are nearly one and the same: collapse.", causes)
    if first > 0.8:
        says = f"Pictures differ, but {first:.0%} of that is along one direction."
        return Verdict(LOOK, value, says, ("collapse onto a line: see dimensions in use",))
    return Verdict(GOOD, value, "Different pictures have different embeddings.")


def _centred_is_well(n: Numbers) -> bool:
    """A constant that all features share makes them alike, and is no collapse, unless it drowns the rest."""
    apart = n["finds_itself"] >= 0.08 and lead(n) >= 0.4
    in_use = n.get("effective_rank", 0) >= 8 and n.get("first_direction", 1) <= 0.6
    return apart and in_use and n["spread"] >= CONSTANT


@rule("dimensions in use", "effective rank above 8, no direction with over 60 % of the variance")
def dimensions(n: Numbers) -> Verdict:
    """Healthy encoders of 128 features: an effective rank of 25 to 49, first direction below 40 %."""
    if "effective_rank" not in n:
        return Verdict(BROKEN, "none", "No dimension is in use.", ("collapse: see spread",))
    rank, first = n["effective_rank"], n["first_direction"]
    wide, count = int(n["dimensions"]), int(n["pictures"])
    value = f"effective rank {rank:.1f} of at most {min(wide, count - 1)} ({wide} features, {count} "
    value += f"pictures); first direction {first:.0%}"
    if rank >= 8 and first <= 0.6:
        return Verdict(GOOD, value, "The representation uses its dimensions.")
    says = "Dimensional collapse: a few directions carry everything."
    if rank >= 8 and first <= 0.9:
        most, says = n.get("directions_to_95", math.inf), f"One direction carries {first:.0%} of the variance"
        says += "." if most == math.inf else f", and {most:.0f} carry 95 % or more."
        says = f"Dimensional collapse: {says[0].lower()}{says[1:]}" if most <= 3 else says
    causes = (
        "nothing pushes apart (no negatives, no stop-gradient, no variance term)",
        "pairs that do not belong together",
        "augmentation stronger than the signal",
        "a head too narrow, or without hidden layer",
        "a shortcut: one property decides",
    )
    return Verdict(BROKEN if rank < 3 or first > 0.9 else LOOK, value, says, causes)


@rule("dead units", "below 25 %")
def units(n: Numbers) -> Verdict:
    """Healthy encoders here have none; a quarter is what ReLU networks lose under a high learning rate."""
    level, value = _between(n["dead"], 0.25, 0.5), f"{n['dead']:.0%} of {int(n['dimensions'])}"
    if level == GOOD:
        return Verdict(level, value, "Units react to pictures.")
    causes = ("a learning rate too high: ReLUs that died", "weight decay on normalisations", "collapse")
    return Verdict(level, value, "Many units never move, whatever the picture.", causes)


@rule("length", "varies by less than 100 %, none is 0")
def norms(n: Numbers) -> Verdict:
    """Lengths vary by 15 to 45 % in healthy encoders. A length of 0 has no direction to be compared by."""
    zero, varies = int(n["zero_norms"]), n["norm_varies"]
    level = BROKEN if zero else _between(varies, 1.0, math.inf)
    value = f"{n['norm']:.2f} on average, ± {varies:.0%}" + (f", {zero} of length 0" if zero else "")
    if level == GOOD:
        return Verdict(level, value, "None is 0, and they vary by less than the limit.")
    says = "Some embeddings have length 0." if zero else "Lengths differ by far more than usual."
    causes = ("blank or broken pictures", "dead units", "a normalisation layer in training mode")
    return Verdict(level, value, says, causes)


def lead(n: Numbers) -> float:
    """How far positives lead: (s+ - s-) / (1 - s-), means. 1: the views of a picture coincide; 0: chance."""
    return (n["positive_similarity"] - n["negative_similarity"]) / max(1 - n["negative_similarity"], 1e-6)


@rule(
    "views of a picture",
    "lead above 0.4, finds itself above 8 % among {views:.0f} pictures, at SimCLR's crops",
)
def two_views(n: Numbers) -> Verdict:
    """Healthy encoders: a lead of 0.5 to 0.8, a view finds its other half among 510 in 10 to 23 %."""
    ahead = lead(n)
    value = f"lead {ahead:.2f}; alignment {n['alignment']:.2f}; finds itself {n['finds_itself']:.0%}"
    if "nearer_than" in n:
        value += f", nearer than {n['nearer_than']:.0%} of the others (a half by chance)"
    says = "Two views of a picture lie nearer to each other than to other pictures"
    level, itself, apart = BROKEN, n["finds_itself"], n.get("nearer_than", 1.0) < 0.6
    if n["spread"] < 0.05 and not _centred_is_well(n):
        says = "All pictures lie at one place: a lead there means little."
    elif ahead >= 0.4 and itself >= 0.08:
        return Verdict(GOOD, value, f"{says}.")
    elif ahead < 0.1 or apart:
        level, says = LOOK if ahead >= 0.1 and itself >= 2 / n["views"] else BROKEN, APART
    else:
        low = " and ".join(["'lead'"] * (ahead < 0.4) + ["'finds itself'"] * (itself < 0.08))
        level, says = LOOK, f"{says}, but by {low} less than usual"
        luck = ahead >= 0.4 and interval(itself, n["views"])[1] >= 0.08
        says += f", which {n['views']:.0f} pictures may give by luck." if luck else "."
    causes = (
        "pairs that do not belong together",
        "too few steps",
        *_trained_without(n, ("crop", "flip", "jitter", "grey"), WEAKER),
        "a temperature far too high",
    )
    return Verdict(level, value, says, causes)


def _trained_without(n: Numbers, changes: Sequence[str], otherwise: str) -> tuple[str, ...]:
    """A cause: which of these changes the file says training lacked; `otherwise` where it says nothing."""
    stated = {name: n[f"trained_{name}"] for name in changes if f"trained_{name}" in n}
    lacked = " and ".join(name for name, used in stated.items() if not used)
    if stated:
        return (f"trained without {lacked}{STATED}",) if lacked else ()
    return (otherwise,)


@rule("the space of the loss", f"uniformity below {CROWDED} after the head (floor -4)", "head_uniformity")
def loss_space(n: Numbers) -> Verdict | None:
    """After the head, healthy runs have a uniformity of -1.7 to -3.0; a head that collapsed has nearly 0."""
    if "head_uniformity" not in n:
        return None
    value = f"uniformity {round(n['head_uniformity'], 2) + 0.0:.2f} (t = 2, of {2 * n['views']:.0f} views), "
    value += f"alignment {n['head_alignment']:.2f}"
    level = _between(n["head_uniformity"], CROWDED, -0.5)
    if level == GOOD:
        return Verdict(level, value, "After the head, pictures are spread over the sphere.")
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
    return Verdict(level, value, says, causes)


@rule("temperature", "5 to 90 % of the negatives share the push; τ from 0.05 to 1", "W")
def temperature(n: Numbers) -> Verdict | None:
    """Of the negatives the push is shared by 18 to 75 % in healthy runs at τ from 0.1 to 0.5.

    At τ = 0.005 training breaks down, and in what is left all similarities are alike, so that many share the
    push again: there τ itself speaks. Published methods train at 0.05 to 1.
    """
    if "share_of_negatives" not in n:
        return None
    share, tau = n["share_of_negatives"], n["temperature"]
    stored = n.get("temperature_in_file", tau)
    given = f" (given; the file says {stored:g})" if stored != tau else ""
    value = f"τ = {tau:g}{given}: {share:.1%} of {int(n['negatives'])} negatives share NT-Xent's push; "
    value += f"W = {n['W']:.2f}"
    if share > 0.9 and tau > 0.02:
        level = BROKEN if share > 0.97 else LOOK
        says = "Too hot for these similarities: hard and easy negatives are pushed alike."
        causes = ("a temperature far above 0.5", "similarities all alike, as after a collapse: see above")
    elif share < 0.05 or tau <= 0.02:
        level = BROKEN if share < 0.01 or tau <= 0.02 else LOOK
        says = "Too cold: the hardest negatives take the whole push, among them pictures of the same kind."
        causes = ("a temperature far below 0.05", "duplicates among the pictures")
    else:
        return Verdict(GOOD, value, "The push is shared by many negatives, the harder ones more.")
    return Verdict(LOOK if given else level, value, says, causes)  # given: not what it was trained at


@rule(CLASSES, "kNN or probe above raw pixels and fresh weights, and far above chance", "knn")
def classes(n: Numbers) -> Verdict | None:
    """Above raw pixels and fresh weights; and what holds among gallery pictures holds for the judged, too."""
    if "knn" not in n:
        return None
    found = _beside_raw(n)
    if n.get("copies", 0.0) > COPIES:
        says = f"{n['copies']:.0%} of the judged pictures are among those that lend their labels: "
        says += "these accuracies are too high."
        return Verdict(LOOK, found.value, says, ("the same pictures in both splits",))
    if found.level == BROKEN or not (_renamed(n) or _judged_differ(n)):
        return found
    if _renamed(n):
        return Verdict(UNKNOWN, found.value, "Not to be judged under wrong names: see class names.")
    says = f"Gallery pictures find their own class ({_among(n):.0%}), the judged far less"
    causes = (
        "labels of the judged part that are wrong, or two of its classes exchanged",
        "trained on the gallery's labels; or frames of one scene in it",
        "judged pictures of another kind than the gallery's",
    )
    return Verdict(LOOK, found.value, f"{says} ({n['knn']:.0%}).", causes)


def _among(n: Numbers) -> float:
    """kNN accuracy within the gallery; each class weighs as it does among the judged, where that is known."""
    return n.get("knn_gallery_alike", n.get("knn_gallery", 0.0))


def _judged_differ(n: Numbers) -> bool:
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


def _beside_raw(n: Numbers) -> Verdict:
    """Above raw pixels by two standard errors, in kNN or in the probe, and so above fresh weights."""
    knn, raw, chance, error = n["knn"], n["knn_raw"], n["chance"], n["knn_error"]
    probe, probe_raw = n.get("probe", 0.0), n.get("probe_raw", 1.0)
    value = f"kNN {knn:.0%}, raw pixels {raw:.0%}, chance {chance:.0%}"
    if "probe" in n:
        value += f"; linear probe {probe:.0%}, raw pixels {probe_raw:.0%}"
    if max(interval(knn, n["pictures"])[0], interval(probe, n["pictures"])[0]) <= chance:
        return _at_chance(n, value)
    if knn > raw + 2 * error or knn >= EASY:
        says = "Neighbours share a class more often than in raw pixels."
        if knn <= raw + 2 * error:
            says = "Neighbours share a class, though not clearly more often than in raw pixels: these "
            says += "classes are easy."
        return _beside_fresh(value, says, n)
    if probe > probe_raw + 2 * error:
        return _beside_fresh(value, "A probe tells classes apart better than in raw pixels.", n)
    if knn > raw and knn - raw + 2 * error > 0.1:  # it may well be a large one
        says = f"A lead over raw pixels that {int(n['pictures'])} judged pictures can't make certain."
        return Verdict(UNKNOWN, value, says)
    removed = "augmentation removes what these labels ask about (colour, place)"
    causes = ("trained too briefly", removed, OTHER_WAY)
    says = "Not clearly better than raw pixels on these labels."
    if knn < raw - 2 * error:
        by = "" if probe < probe_raw else " by kNN, and not by the probe"
        says = f"Below raw pixels on these labels{by}."
    return Verdict(LOOK, value, says, causes)


def _beside_fresh(value: str, says: str, n: Numbers) -> Verdict:
    """Good by raw pixels is no merit of the training where fresh weights of that network do as well."""
    if n.get("never_trained"):  # fresh weights may well be above others whose batch statistics were learned
        return Verdict(LOOK, value, "Above raw pixels, as fresh weights may be.", FRESH_CAUSES)
    if "knn_untrained" not in n or any(_leads(n)) or n["knn_beside_untrained"] >= EASY:
        return Verdict(GOOD, value, says)
    own, fresh, error = n["knn_beside_untrained"], n["knn_untrained"], 2 * _error(n)
    by_knn = n["knn"] - n["knn_raw"] > 2 * n["knn_error"]
    by_probe = n.get("probe", 0.0) - n.get("probe_raw", 1.0) > 2 * n["knn_error"]
    above = "Above raw pixels" + (" (by the probe)" if by_probe and not by_knn else "")
    above = above if by_knn or by_probe else ""
    if own >= fresh - error and (error > 0.15 or any(_leads(n, 1, 1))):
        says = above or "Not above raw pixels"
        says += f"; whether above fresh weights, {int(n['compared'])} pictures can't tell."
        return Verdict(UNKNOWN, value, says)
    says = f"{above}, but" if above else "Not above raw pixels, and"
    says += " not clearly better than the same network with fresh weights."
    causes = ("trained too briefly", "what it learned is not what these labels ask about", OTHER_WAY)
    return Verdict(LOOK, value, says, causes)


def _at_chance(n: Numbers, value: str) -> Verdict:
    """Chance is within what the accuracy may truly be.

    Labels are blamed only by `ASKED` judged pictures or more, where what healthy encoders show (`HEALTHY`) is
    outside, of the judged pictures and of the gallery's among themselves, and where raw pixels and fresh
    weights leave no sign, at 95 %, that labels and pictures belong together.
    """
    count, chance = int(n["pictures"]), n["chance"]
    lowest, highest = interval(n["knn"], count)
    if n["spread"] < 0.05 or n["effective_rank"] < 3 or n["first_direction"] > 0.9:
        says = "At chance: this representation holds too little to tell classes by."
        return Verdict(BROKEN, value, says, ("collapse: see spread and dimensions",))
    # by luck one of several accuracies is often above chance: so at 99.9 %
    raw = interval(n["knn_raw"], count, 0.999)[0]
    fresh = interval(n["knn_untrained"], n["compared"], 0.999)[0] if "knn_untrained" in n else 0.0
    if max(raw, fresh) > chance and highest < max(n["knn_raw"], n.get("knn_untrained", 0.0)):
        says = (
            "At chance, though raw pixels or fresh weights are not: the encoder lost what tells them apart."
        )
        return Verdict(BROKEN, value, says, ("collapse", "weights that did not load", OTHER_WAY))
    seen: dict[str, float] = {"knn_raw": count, "probe_raw": count}
    seen |= {f"{how}_untrained": n["compared"] for how in ("knn", "probe") if "compared" in n}
    signs = any(interval(n[key], asked, 0.9)[0] > chance for key, asked in seen.items() if key in n)
    enough = count >= ASKED and n["chance_gallery"] * n["gallery"] >= LABELLED and not signs
    among = interval(n["knn_gallery"], n["asked_gallery"])
    apart = interval(n["knn_gallery"], n["asked_gallery"], 0.9)[0] > n["chance_gallery"]
    order = "labels in another order than the pictures"
    if enough and highest < among[0] and among[0] > n["chance_gallery"]:
        says = "At chance, though gallery pictures tell each other's classes: "
        says += "the judged are labelled otherwise."
        return Verdict(BROKEN, value, says, (order, "class numbers in another order in the two splits"))
    healthy = chance + HEALTHY * (1 - chance)
    if enough and not apart and max(highest, among[1]) < healthy:
        says = "At chance, and so are raw pixels: labels and pictures seem not to belong together."
        return Verdict(BROKEN, value, says, (order, "labels that pictures do not show"))
    says = f"{count} judged pictures are too few to say: kNN may truly be {lowest:.0%} or {highest:.0%}."
    return Verdict(UNKNOWN, value, says)


@rule("class names", "no renaming of classes that gains over 20 points", "knn")
def names(n: Numbers) -> Verdict | None:
    """Renaming classes gains a few per cent by chance where accuracy is low; mixed-up names gain more."""
    if "knn" not in n:
        return None
    value = f"{n['knn']:.0%}; {n['knn_relabelled']:.0%} under the best renaming"
    if _renamed(n):
        causes: tuple[str, ...] = (
            "class numbers in another order in the two splits",
            "a split with other classes",
        )
        return Verdict(BROKEN, value, "Classes are told apart, but under wrong names.", causes)
    if n.get("exchanged", 0.0) > EXCHANGED:
        says = "Two classes stand in each other's place: see who is taken for whom."
        return Verdict(LOOK, value, says, ("the numbers of two classes exchanged in a split",))
    if interval(n["knn"], n["pictures"])[0] <= n["chance"]:
        return Verdict(UNKNOWN, value, "Where classes are not told apart, no name is right or wrong.")
    gain = n["knn_relabelled"] - n["knn"]
    if gain > 0.2:
        says = (
            f"A renaming gains {100 * gain:.0f} points, which {int(n['pictures'])} pictures may give by luck."
        )
        return Verdict(UNKNOWN, value, says)
    says = "No renaming gains over 20 points, and no two classes stand clearly in each other's place "
    return Verdict(GOOD, value, says + "(of classes that are alike, an exchange may not show).")


def _renamed(n: Numbers) -> bool:
    """Whether other names bring back what few pictures by luck do not, or most of what the gallery has more.

    Two exchanged classes of ten cost a fifth of the accuracy, which a renaming brings back.
    """
    gain = n["knn_relabelled"] - n["knn"]
    if _judged_differ(n) and gain > 2 / 3 * (_among(n) - n["knn"]):
        return True
    certain = n["chance"] + max(0.25, 6 * n["knn_error"])  # few pictures always leave something to rename
    return gain > max(0.2, 4 * n["knn_error"]) and n["knn_relabelled"] >= certain


@rule("robustness", "above 0.55, in grey above 0.15", "kept")
def robust(n: Numbers) -> Verdict | None:
    """Healthy encoders keep 0.7 to 0.9 under a crop or jitter, 0.2 to 0.6 in grey: scenes have colours.

    Judged is what training on such pictures usually has, by the one that is kept least.
    """
    measured = with_prefix("kept_", n)
    if not measured:
        return None
    value = ", ".join(f"{name} {share:.2f}" for name, share in measured.items())
    value += " (1 = stays where it is, 0 = as far away as another picture)"
    judged = kept(n)
    beside = [name for name in measured if name not in judged]
    also = f" Not judged, as training seldom has it on such pictures: {', '.join(beside)}." if beside else ""
    low = sorted((name for name in judged if judged[name] < least_kept(name)), key=lambda name: judged[name])
    if not low:
        least = min(judged, key=lambda name: judged[name])
        says = (
            f"Under {' and '.join(judged)} a changed picture stays nearer than another, least under {least} "
        )
        return Verdict(GOOD, value, f"{says}({judged[least]:.2f}).{also}")
    named = ", ".join(f"{name} ({judged[name]:.2f})" for name in low)
    causes = (*_trained_without(n, low, "trained without that augmentation"), "trained too briefly")
    if "grey" in low:
        causes = ("it tells pictures apart by colour above all: a shortcut", *causes)
    return Verdict(LOOK, value, f"Under {named} a picture keeps less of its place than usual.{also}", causes)


def kept(n: Numbers) -> dict[str, float]:
    """Change -> how far a picture keeps its place under it, of those that training on such pictures has."""
    return {name: value for name, value in with_prefix("kept_", n).items() if n.get(f"usual_{name}", 1.0)}


def least_kept(change: str) -> float:
    """What a healthy encoder keeps at least: in grey less, for scenes have colours."""
    return 0.15 if change == "grey" else 0.55


def maps(n: Numbers, unknown: Mapping[str, str]) -> list[Verdict]:
    """Verdicts on the maps that were asked for."""
    expected = "trustworthiness and continuity above 0.85, whatever the seed"
    asked = [name for name in ("t-SNE", "UMAP") if name in unknown or f"trustworthiness_{name}_0" in n]
    return [
        rule(f"map ({name})", expected, name)(functools.partial(_map, name))(n, unknown) for name in asked
    ]


def _map(name: str, n: Numbers) -> Verdict | None:
    """A map at 0.9 keeps nearly all neighbours, both ways; below it is a picture of something else."""
    called = {"recall": "kNN recall", "distances": "correlation of distances"}
    kinds = ("trustworthiness", "continuity", "recall", "distances")
    measured = {what: list(with_prefix(f"{what}_{name}_", n).values()) for what in kinds}
    if not measured["trustworthiness"]:
        return None
    value = ", ".join(f"{called.get(what, what)} {_ends(v)}" for what, v in measured.items() if v)
    if min(measured["trustworthiness"] + measured["continuity"]) >= 0.85:
        return Verdict(
            GOOD, value, "Neighbours on the map are neighbours in truth; distances and sizes are not."
        )
    says = "The map shows neighbours that are none, or tears neighbours apart."
    return Verdict(LOOK, value, says, ("few pictures", "an embedding that no plane can hold"))


GEOMETRY = (spread, dimensions, units, norms, two_views)
LOSS = (loss_space, temperature)
LINES = (input_statistics, trained, *GEOMETRY, *LOSS, classes, names, robust)


def _ends(values: Sequence[float]) -> str:
    low, high = (f"{end(values):.2f}" for end in (min, max))
    return low if low == high else f"{low} to {high}"


def _between(value: float, look: float, broken: float) -> str:
    return GOOD if value <= look else LOOK if value <= broken else BROKEN


def interval(share: float, count: float, confidence: float = 0.99) -> tuple[float, float]:
    """Where a share that was seen `count` times may truly lie (Wilson's interval)."""
    from scipy.stats import binomtest

    found = binomtest(round(share * count), round(count)).proportion_ci(confidence, method="wilson")
    return found.low, found.high

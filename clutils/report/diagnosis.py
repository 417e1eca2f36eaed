"""One diagnosis of an encoder, in a sentence with the numbers it rests on, and at most six lines beside it.

A rule is a function of the facts. `RULES` are asked in the order of causes: an encoder that was never
trained, or is fed wrongly, shows all else, too. Limits were set on encoders made for it, and tried on others
(`benchmarks/calibration.py`).
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from clutils.report import preprocessing
from clutils.report.facts import Facts, Row
from clutils.report.preprocessing import SETTLED

GOOD, LOOK, BROKEN, UNKNOWN = "good", "worth a look", "broken", "not known"
LEVELS = (UNKNOWN, GOOD, LOOK, BROKEN)  # from least to worst
NEVER, FED, COLLAPSED = "never trained", "fed wrongly", "collapsed"
BEHIND, HALF, TEMPERATURE = "collapsed behind the head", "half-trained", "too cold or too hot"
OTHER, HEALTHY, OPEN = "learned but not these classes", "healthy", "not known"
NEXT = {
    NEVER: "Check the last checkpoint of the run, and that all weights were loaded.",
    FED: "Give images of the kind that it was trained on, or your own --mean and --std.",
    COLLAPSED: "Let the loss push images apart (negatives, stop-gradient or variance term), and train again.",
    BEHIND: "Check that head and encoder are of one run; if so, let the loss push images apart.",
    HALF: "Train longer, or with another learning rate; compare the new file with this one (check A B).",
    TEMPERATURE: "Train again with τ between 0.05 and 0.5.",
    OTHER: "Check the labels; then train without the augmentation that hides what they describe.",
    HEALTHY: "Compare it with another run on the same images (python -m clutils check A B).",
    OPEN: "Give more images with labels, or compare it with another file (python -m clutils check A B).",
}
HAS_NEGATIVES = "Its loss has negatives: check its labels and positives, and try a lower learning rate."
MISLABELLED = "Correct the labels, and run the check again."
BARELY = "Train longer, or with views that keep what these classes differ in; else raw pixels do as well."
NEXT_OF_LINE = {  # where a line alone is worth a look, by its name
    "input": NEXT[FED],
    "classes": "Give labels that describe the images, and test images that are not among the labelled ones.",
    "the space of the loss": "Train longer; if it stays, try a lower τ, or more negatives.",
    "collapse": "Normalise the features before you use them, and compare a later checkpoint (check A B).",
    "views of an image": "Train longer, or with weaker augmentations.",
}
NAMES = (NEVER, FED, COLLAPSED, BEHIND, HALF, TEMPERATURE, OTHER, HEALTHY)

PIXELS = 8  # shorter side of the test images below which a view's crop leaves nothing to tell images by
FEWEST = 20  # test images below which only a constant, or how images are fed, is certain
DRAWS = 0.03  # standard deviation of fresh weights' accuracy from seed to seed: 0.02 to 0.03 (conv16, scenes)
CERTAIN = 2.0  # standard errors from which on a difference counts
EASY = 0.9  # accuracy from which on a lead over raw pixels or fresh weights is no longer to be had
MENDED, FAR = 0.6, 5.0  # nats: fed wrongly where a usual normalisation mends it, and without one
EARLY = 80  # batches before which a run has hardly begun, unless it learned its views; 100 when held out
LEARNED = 0.37  # share of fresh weights' errors, a view farther than another image, that are left
BETWEEN = 0.6  # the same, above which views were not learned
CONSTANT, NARROW = 0.05, 0.15  # spread: below, embeddings are one and the same, or nearly so
RANK, FIRST = 3.0, 0.9  # effective rank below, or share of the first direction above, which nothing is left
FEW_RANKS, MUCH = 8.0, 0.6  # the same, from where a look is worth it
ONE_POINT, CROWDED = -0.25, -1.2  # uniformity after the head: above, a collapse, or crowded
COLD, COOL, WARM, HOT = 0.01, 0.02, 0.9, 0.97  # share of the negatives that share the push
SHARED = "6% to 85%"  # the same in healthy runs, by the record
BEFORE = 0.05  # the same by the encoder's features, below which a cold τ explains a collapse behind the head
LEAD, HARDLY = 0.1, 0.6  # lead of an image's views, and how often they are nearer than others
COPIES = 0.01  # share of test images that may be among the labelled
ASKED, LABELLED = 200, 50  # test images, and labelled ones of the largest class, to blame labels by


@dataclass(frozen=True)
class Diagnosis:
    """Diagnosis of an encoder.

    - name: one of `NAMES`, or "not known"; level: good, worth a look, broken or not known
    - says: one sentence, with the numbers it rests on
    - advice: what to do next, where the usual advice of its name does not fit the cause
    - mean: the normalisation that mends it (`--mean`)
    - labels: the labels do not fit, and the encoder may be well
    """

    name: str
    level: str
    says: str
    advice: str = ""
    mean: str = ""
    labels: bool = False

    @property
    def badge(self) -> str:
        """The level in words; where the input or the labels may be at fault, that."""
        if self.name == FED:
            return "check the input"
        return "check the labels" if self.labels or self.name == OTHER else self.level

    @property
    def next(self) -> str:
        """Next step, in a sentence."""
        return self.advice or NEXT[self.name]


@dataclass(frozen=True)
class Line:
    """One thing that was measured: its level, its numbers in words, and a sentence where it is not good."""

    name: str
    level: str
    value: str
    says: str = ""


# ---- one function a diagnosis ------------------------------------------------------------------------------


def never_trained(f: Facts) -> Diagnosis | None:
    """Batch normalisations without a batch, or layer normalisations as they are made.

    Layer normalisations may have been kept so, where classes were learned.
    """
    if f.never_trained:
        why = "its batch-norm layers have counted 0 batches, and store mean 0 and variance 1"
    elif f.plain_normalisations and not beats_fresh_weights(f):
        why = "all gains of its layer normalisations are 1 and all biases 0"
    else:
        return None
    return Diagnosis(NEVER, BROKEN, f"Never trained: {why}.")


def fed_wrongly(f: Facts) -> Diagnosis | None:
    """Healthy encoders are within 0.05 nats of their training; those of scenes on digits at 0.25 to 0.55."""
    if f.input_gap is None or f.input_gap <= preprocessing.NEAR or not f.spread:
        return None
    best, *equal = preprocessing.closest(f.input_gaps) or [""]
    nearest = f.input_gaps.get(best, math.inf)
    mended = nearest <= min(preprocessing.NEAR, f.input_gap / 4)
    away = f"{f.input_gap:,.{2 if f.input_gap < 10 else 0}f} nats"
    if mended:
        either = " or ".join([best, *equal])
        says = f"Fed wrongly: its input statistics are {away} from those in training, and {nearest:.2f} "
        says += f"with --mean {either}; so the other numbers here mean little."
        level = BROKEN if f.input_gap > MENDED else LOOK
        return Diagnosis(FED, level, says, f"Run the check again with --mean {best}.", best)
    if f.batches_seen is not None and 0 < f.batches_seen < _settled(f):
        return None  # its statistics had not settled: see `hardly_begun` and `half_trained`
    near = f", and {nearest:.2f} with the nearest usual normalisation, {best}" if best else ""
    says = "Fed wrongly, or with images of another kind: its input statistics are "
    says += f"{away} from those in training{near}."
    return Diagnosis(FED, BROKEN if f.input_gap > FAR or collapsed(f) else LOOK, says)


def _settled(f: Facts) -> int:
    """Batches after which statistics are those of the images: more where views show that weights move."""
    return SETTLED if learned_views(f) or f.fresh_nearer_than is None else EARLY


def hardly_begun(f: Facts, batches: int = SETTLED) -> Diagnosis | None:
    """Few batches; what is nearly one point after so few, or crowded, may still open up.

    Where something was learned, few batches alone are no fault: averaging weights starts the count again.
    """
    seen = f.batches_seen
    if seen is None or not 0 < seen < batches:
        return None
    ill = seen < SETTLED and (collapsed(f) or temperature(f) or behind_the_head(f))
    if (learned_views(f) or beats_fresh_weights(f)) and not ill:
        return None
    says = f"Half-trained: its batch normalisations have seen {seen} batches{_beside(f)}."
    return Diagnosis(HALF, LOOK, says)


def collapsed(f: Facts) -> Diagnosis | None:
    """Found healthy on record: 0.6 to 0.81 of an embedding's length is its own; a rank of 28 to 62 of 128."""
    rank, first = f.effective_rank or 0.0, f.first_direction or 1.0
    if f.spread < CONSTANT and not _centred_is_well(f):
        says = f"Collapsed: {f.spread:.1%} of an embedding's length differs between images (0: all are one "
        says += f"point), in {rank:.1f} of {f.dimensions} dimensions."
    elif rank < RANK <= _most(f) / 2:
        says = f"Collapsed onto a few directions: the effective rank is {rank:.1f} of {_most(f)}, and the "
        says += f"first direction has {first:.0%} of the variance."
    elif first > FIRST:
        says = f"Collapsed onto a line: one direction has {first:.0%} of the variance; in healthy "
        says += "encoders the first direction has 20% to 45%."
    else:
        return None
    says += " Behind the head all images are one point." if one_point(f) else ""
    return Diagnosis(COLLAPSED, BROKEN, says, HAS_NEGATIVES if f.negatives else "")


def _centred_is_well(f: Facts) -> bool:
    """A constant that all features share makes them alike, and is no collapse, unless it drowns the rest."""
    apart = f.finds_itself >= 0.08 and f.lead >= 0.4 and f.spread >= 0.01
    return apart and (f.effective_rank or 0) >= FEW_RANKS and (f.first_direction or 1) <= MUCH


def temperature(f: Facts) -> Diagnosis | None:
    """By the share of the negatives that have the push between them: `SHARED` in healthy runs.

    Where what the loss sees has collapsed, all similarities are alike and that share says nothing; then the
    share that it would be by the encoder's own features tells a cold τ from other causes.
    """
    if f.share_of_negatives is None or f.temperature is None:
        return None
    share, before, tau = f.share_of_negatives, f.share_before_head, f"τ = {f.temperature:g}"
    asked = f"of its {f.negatives} negatives"
    if one_point(f):
        if before is None or before >= BEFORE:
            return None
        says = f"Too cold: at {tau} only {before:.1%} {asked} receive the push (by the similarities before "
        says += "the head), and behind the head all images are one point."
        return Diagnosis(TEMPERATURE, BROKEN, says)
    if share < COOL:
        says = f"Too cold: at {tau} the hardest {share:.1%} {asked} receive the whole push, and images of "
        says += "the same kind are among them."
        return Diagnosis(TEMPERATURE, BROKEN if share < COLD else LOOK, says)
    if share > WARM:
        says = f"Too hot: at {tau}, {share:.1%} {asked} share the push, the far ones as much as the near "
        says += "ones."
        return Diagnosis(TEMPERATURE, BROKEN if share > HOT else LOOK, says)
    return None


def behind_the_head(f: Facts) -> Diagnosis | None:
    """After the head, healthy runs have a uniformity of -2.1 to -3.5; a collapsed head nearly 0.

    A queue at its beginning has -0.4 to -0.8: crowded, and no collapse.
    """
    if not one_point(f):
        return None
    before = "" if f.uniformity is None else f", before it {f.uniformity:z.2f}"
    says = f"Collapsed behind the head: uniformity behind it is {f.head_uniformity:z.2f} (0: all are "
    says += f"one point, -4: evenly spread){before}."
    if f.effective_rank is not None and f.effective_rank < FEW_RANKS:
        says += f" The features before it have few directions, too: effective rank {f.effective_rank:.1f} "
        says += f"of {_most(f)}."
    return Diagnosis(BEHIND, BROKEN, says)


def half_trained(f: Facts) -> Diagnosis | None:
    """Few batches, or three measures agree: views were not learned, and neither kNN nor probe is above.

    Where views are between, both must be below. Where the measures disagree, nothing is said.
    """
    if begun := hardly_begun(f, _settled(f)):
        if (f.batches_seen or 0) < SETTLED or (f.input_gap or 0.0) <= preprocessing.NEAR:
            return begun
        other = " Or these images are of another kind than those that it was trained on."
        return replace(begun, says=begun.says + other, advice=f"{NEXT[FED]} If these are, train longer.")
    by = z_scores(f)
    if by is None or f.own is None or f.untrained is None or learned_views(f) or _labels_wrong(f):
        return None
    few = min(by) > -CERTAIN and _error(f.own.knn, f.untrained.knn, f) * CERTAIN > 0.15
    if few or max(by) > (1 if error_ratio(f) > BETWEEN else 0) or (min(by) >= 0 and f.own.knn >= EASY):
        return None  # it may be a lead, or nothing is left to learn of these classes
    return Diagnosis(HALF, LOOK, f"Half-trained: {_than_fresh(f)}.")


def other_classes(f: Facts) -> Diagnosis | None:
    """Views were learned, and neither kNN nor probe is above fresh weights."""
    by = z_scores(f)
    if by is None or not learned_views(f) or max(by) > 0 or _easy(f) or _labels_wrong(f):
        return None
    level = BROKEN if min(by) <= -CERTAIN else LOOK
    return Diagnosis(OTHER, level, f"Learned, but not these classes: {_than_fresh(f)}.")


def healthy(f: Facts) -> Diagnosis | None:
    by = z_scores(f)
    if by is None or f.own is None or f.untrained is None or f.raw is None:
        return None
    by_luck = interval(max(f.own), f.compared or 1)[0] <= (f.chance or 0.0)  # its accuracy
    if beats_fresh_weights(f) or (learned_views(f) and min(by) >= 0 and max(by) >= 1 and not by_luck):
        at, name = (1, "probe") if by[1] > by[0] and by[0] < CERTAIN else (0, "kNN")  # one along a series
        barely = _barely_above_pixels(f)
        says = "Learned, but hardly more than raw pixels show" if barely else "Healthy"
        says += f": its {name} accuracy is {f.own[at]:.0%}, that of fresh weights "
        says += f"{f.untrained[at]:.0%}, that of raw pixels {f.raw[at]:.0%}"
        if f.raw[at] >= f.own[at] and not barely:
            says += ", which is no lower: these classes are easy"
        if not beats_fresh_weights(f):
            says += ". The lead may be luck, but two views of an image are nearer than two images in "
            says += _share_of_cases(f)
        if barely:
            return Diagnosis(OPEN, LOOK, f"{says}.", BARELY)
        return Diagnosis(HEALTHY, GOOD, f"{says}.")
    if _easy(f):
        says = f"Healthy: kNN {f.own.knn:.0%}, fresh weights {f.untrained.knn:.0%}; these classes are "
        return Diagnosis(HEALTHY, GOOD, says + "too easy to show more.")
    return None


RULES: tuple[Callable[[Facts], Diagnosis | None], ...]
RULES = never_trained, fed_wrongly, hardly_begun, collapsed, temperature, behind_the_head
RULES += other_classes, half_trained, healthy


def diagnose(f: Facts) -> Diagnosis:
    """The first rule that has something to say; else what is not known, or the first line worth a look."""
    found = next((d for rule in RULES if (d := rule(f)) is not None), None)
    if why := undecided(f):
        return Diagnosis(OPEN, UNKNOWN, f"Not known: {why}.")
    loud = [line for line in lines(f, {}) if line.level in (LOOK, BROKEN)]
    if (found is None or found.level == GOOD or found.name == OPEN) and loud:
        worst = max(loud, key=lambda line: LEVELS.index(line.level))
        if found is not None and found.name == OPEN and worst.level == LOOK:
            return found
        beside = f" {found.says}" if found is not None and worst.level == LOOK else ""
        numbers = "" if re.search(r"\d", worst.says) else f" ({worst.value}.)"
        says = f"{worst.says}{numbers}{beside}"
        wrong = worst.name == "classes" and _labels_wrong(f)
        name = HEALTHY if beside else OPEN
        advice = MISLABELLED if wrong else NEXT_OF_LINE[worst.name]
        return Diagnosis(name, worst.level, says, advice, labels=wrong)
    if found is not None:
        return found
    if f.own is None:
        why = f"{_views_beside(f)}What it knows of classes can't be measured with these labels."
        return Diagnosis(OPEN, UNKNOWN, f"No fault was found. {why}")
    why = "no fresh weights of this network can be made for comparison" if f.untrained is None else ""
    why = why or f"these accuracies do not decide whether it learned the classes: {_than_fresh(f)}"
    return Diagnosis(OPEN, UNKNOWN, f"No fault was found, but {why}.")


def undecided(f: Facts) -> str:
    """The reason why these images allow no diagnosis; "" where they do.

    Of few images, an input that another normalisation mends and features that are one point are certain.
    """
    if f.pixels is not None and f.pixels < PIXELS:
        return f"images of {f.pixels} pixels a side are too small for a diagnosis (at least {PIXELS})"
    fed, one = fed_wrongly(f), f.spread < 0.01 and collapsed(f) is not None
    certain = one or (fed is not None and (fed.mean or fed.level == BROKEN))
    if f.pictures < FEWEST and not certain:
        return f"{f.pictures} test images are too few for a diagnosis (at least {FEWEST})"
    return ""


# ---- beside fresh weights ----------------------------------------------------------------------------------


def _error(own: float, fresh: float, f: Facts) -> float:
    """Standard error of a difference to fresh weights: of the images, and of the weights, drawn once."""
    variance = own * (1 - own) + fresh * (1 - fresh)
    return math.sqrt(max(variance, 1e-4) / (f.compared or 1) + DRAWS**2)


def z_scores(f: Facts) -> tuple[float, float] | None:
    """By how many standard errors (kNN, probe) are above those of fresh weights; None = not known."""
    if f.own is None or f.untrained is None:
        return None
    pairs = zip(f.own, f.untrained, strict=True)
    knn, probe = ((own - fresh) / _error(own, fresh, f) for own, fresh in pairs)
    return knn, probe


def beats_fresh_weights(f: Facts) -> bool:
    """True where kNN or probe is above fresh weights by more than luck, and the other not as far below."""
    by = z_scores(f)
    return by is not None and max(by) >= CERTAIN and min(by) > -CERTAIN


def error_ratio(f: Facts) -> float:
    """Share of fresh weights' errors that are left: how often a view is farther than another image."""
    errors = 1 - (f.fresh_nearer_than or 0.0)
    return (1 - f.nearer_than) / errors if errors else 1.0


def learned_views(f: Facts) -> bool:
    """True where a view is far more often nearest to its other view than by fresh weights.

    Healthy runs leave 0.1 to 0.35 of fresh weights' errors, half-trained ones nearly always 0.4 and more.
    """
    return f.fresh_nearer_than is not None and error_ratio(f) < LEARNED


def _easy(f: Facts) -> bool:
    by = z_scores(f)
    if by is None or f.own is None or f.untrained is None or (f.chance or 0) >= EASY:
        return False
    return learned_views(f) and max(f.own.knn, f.untrained.knn) >= EASY and min(by) > -CERTAIN


def _barely_above_pixels(f: Facts) -> bool:
    """True where neither kNN nor probe is above raw pixels by more than luck, and those left room for it."""
    if f.own is None or f.raw is None or max(f.raw) >= EASY:
        return False
    pairs = zip(f.own, f.raw, strict=True)
    return all(own - raw < CERTAIN * _error(own, raw, f) for own, raw in pairs)


def margin(own: Row, fresh: Row, f: Facts) -> int:
    """Whole points of a difference to fresh weights up to which it does not count."""
    return math.ceil(100 * CERTAIN * max(_error(*pair, f) for pair in zip(own, fresh, strict=True)))


def _than_fresh(f: Facts) -> str:
    """'probe 24 % against 41 % with fresh weights, kNN ...', the wider gap first, with what luck may give."""
    by, own, fresh = z_scores(f), f.own, f.untrained
    assert by is not None and own is not None and fresh is not None
    said = [f"probe {own.probe:.0%} against {fresh.probe:.0%}", f"kNN {own.knn:.0%} against {fresh.knn:.0%}"]
    said = said if abs(by[1]) >= abs(by[0]) else said[::-1]
    return f"{said[0]} with fresh weights, {said[1]} (up to {margin(own, fresh, f)} points may be luck)"


def _views_beside(f: Facts) -> str:
    """Sentence on views, which need no labels, beside fresh weights; or ""."""
    if f.fresh_nearer_than is None:
        return ""
    little = "It learned less than healthy runs do"
    little = little if f.nearer_than > f.fresh_nearer_than else "It is not better than fresh weights"
    said = "It learned its views" if learned_views(f) else little
    return f"{said}: two views of an image are nearer than two images in {_share_of_cases(f)}. "


def _share_of_cases(f: Facts) -> str:
    return f"{f.nearer_than:.1%} of cases, with fresh weights in {f.fresh_nearer_than:.1%}"


def _beside(f: Facts) -> str:
    if f.own is None and f.fresh_nearer_than is not None:
        return f", and two views of an image are nearer than two images in {_share_of_cases(f)}"
    if f.own is None or f.untrained is None:
        return ""
    return f", and its probe is at {f.own.probe:.0%} against {f.untrained.probe:.0%} with fresh weights"


def _labels_wrong(f: Facts) -> bool:
    """All rows at chance, though images enough were asked."""
    rows = [row for row in (f.own, f.raw, f.untrained) if row is not None]
    if f.chance is None or f.pictures < ASKED or f.chance * f.gallery < LABELLED or len(rows) < 2:
        return False
    highest = max(value for row in rows for value in row)
    tries = sum(map(len, rows))  # the highest of so many is above chance by luck more often than one is
    return interval(highest, f.compared or 1, 1 - 0.05 / tries)[0] <= f.chance


# ---- one function a line -----------------------------------------------------------------------------------

Told = tuple[str, str, str]  # level, numbers in words, and a sentence where it is not good


def lines(f: Facts, unknown: Mapping[str, str]) -> list[Line]:
    """Six: the input, the classes, the space of the loss, collapse, views, robustness."""
    told: dict[str, tuple[Told | None, str]] = {
        "input": (fed(f), "input_gap"),
        "classes": (classes(f), "knn"),
        "the space of the loss": (loss_space(f), "head_uniformity"),
        "collapse": (geometry(f), ""),
        "views of an image": (two_views(f), ""),
        "robustness": (robustness(f), "kept"),
    }
    if begun := hardly_begun(f):  # what has collapsed so early may still open up
        for name in ("the space of the loss", "collapse"):
            found, key = told[name]
            if found is not None and found[0] == BROKEN:
                says = f"{found[2]} After so few batches that decides nothing."
                told[name] = (begun.level, found[1], says), key
    listed = [
        Line(name, *(found or (UNKNOWN, unknown.get(key, "not measured"), "")))
        for name, (found, key) in told.items()
    ]
    return [replace(line, level=UNKNOWN, says="") for line in listed] if undecided(f) else listed


def fed(f: Facts) -> Told | None:
    if f.input_gap is None:
        return None
    value = f"{f.input_gap:,.2f} nats from the statistics in training (up to {preprocessing.NEAR} is near)"
    if found := fed_wrongly(f):
        return found.level, value, "Fed wrongly."
    if f.batches_seen is not None and 0 < f.batches_seen < _settled(f) and f.input_gap > preprocessing.NEAR:
        why = "too few to settle" + (", or of images of another kind" if f.batches_seen >= SETTLED else "")
        return LOOK, value, f"Its statistics come from {f.batches_seen} batches: {why}."
    return GOOD, value, ""


def classes(f: Facts) -> Told | None:
    """The table in words; labels that are wrong or copied where that fires."""
    if f.own is None or f.raw is None:
        return None
    rows = {"": f.own, ", fresh weights": f.untrained, ", raw pixels": f.raw}
    knn, probe = ("".join(f"{who} {row[k]:.0%}" for who, row in rows.items() if row) for k in (0, 1))
    value = f"kNN{knn}; probe{probe}; chance {f.chance:.0%}"
    if f.untrained is not None:
        value += f"; up to {margin(f.own, f.untrained, f)} points beside fresh weights may be luck"
    if (f.copies or 0) > COPIES:
        says = f"{f.copies:.0%} of the test images are among the labelled ones, the same or nearly so (saved "
        says += "again, scaled or brightened): accuracies are too high."
        return LOOK, value, says
    if _labels_wrong(f):
        says = f"All at chance ({f.chance:.0%}) or below: labels and images do not seem to belong together."
        return LOOK, value, says
    if found := other_classes(f) or half_trained(f):
        where = "Below" if max(z_scores(f) or (0.0,)) <= -CERTAIN else "Not above"
        return found.level, value, f"{where} fresh weights by more than luck."
    if (found := healthy(f)) and found.level == LOOK:
        return LOOK, value, "Hardly above raw pixels."
    return GOOD if beats_fresh_weights(f) or _easy(f) else UNKNOWN, value, ""


def loss_space(f: Facts) -> Told | None:
    if f.head_uniformity is None:
        return None
    value = f"behind the head uniformity {f.head_uniformity:z.2f} (0: one point, -4: evenly spread), "
    value += f"alignment {f.head_alignment:.2f}"
    if f.share_of_negatives is not None and not one_point(f):
        value += f"; τ = {f.temperature:g}: {f.share_of_negatives:.1%} of {f.negatives} negatives "
        value += f"share the push (healthy: {SHARED})"
    if f.of_texts:
        return UNKNOWN, value, "Its negatives were texts, so no healthy range is known for images."
    if found := temperature(f) or behind_the_head(f):
        return found.level, value, f"{found.says.partition(':')[0]}."
    if f.head_uniformity > CROWDED:
        return LOOK, value, "Images are crowded: the loss has little to compare."
    return GOOD, value, ""


def geometry(f: Facts) -> Told:
    """Spread and one rank; dead features and lengths where they fire."""
    spread = f"{f.spread:.0%}" if f.spread >= 0.01 else f"{f.spread:.2%}"
    value = f"{spread} of an embedding's length differs between images (0%: all alike); "
    rank = f"effective rank {f.effective_rank:.1f} of {_most(f)}" if f.effective_rank is not None else ""
    value += rank or "no effective rank"
    found = [(GOOD, "")]
    if ill := collapsed(f):
        found.append((ill.level, f"{ill.says.partition(':')[0]}."))
    elif f.spread < NARROW:
        found.append((LOOK, "A constant in some features is far larger than the differences of images."))
    elif (f.effective_rank or 0) < min(FEW_RANKS, _most(f) / 2):
        found.append((LOOK, "Few directions are in use."))
    elif (f.first_direction or 1) > MUCH:
        found.append((LOOK, f"One direction has {f.first_direction:.0%} of the variance."))
    if f.zero_norms:
        found.append((BROKEN, f"{f.zero_norms} embeddings have length 0."))
    elif f.norm_varies > 1:
        found.append((LOOK, f"Lengths vary by {f.norm_varies:.0%} of their mean."))
    if f.dead > 0.25:
        said = f"{f.dead:.0%} of {f.dimensions} features have the same value for all images."
        found.append((BROKEN if f.dead > 0.5 else LOOK, said))
    level = max((level for level, _ in found), key=LEVELS.index)
    return level, value, " ".join(said for _, said in found if said)


def two_views(f: Facts) -> Told:
    value = f"lead over two images {f.lead:.2f} (1: the two views coincide, 0: no lead); "
    value += f"the other view is the nearest for {f.finds_itself:.0%} of views"
    if f.spread >= CONSTANT and (f.lead < LEAD or f.nearer_than < HARDLY):
        return LOOK, value, "Two views of one image are hardly nearer than two different images."
    return GOOD if f.spread else UNKNOWN, value, ""


def robustness(f: Facts) -> Told | None:
    if not f.kept:
        return None
    said = ", ".join(f"{name} {share:.2f}" for name, share in f.kept.items())
    return GOOD, f"kept under {said} (1: unchanged, 0: as far as another image)", ""


def interval(share: float, count: float, confidence: float = 0.99) -> tuple[float, float]:
    """Where a share that was seen `count` times may truly lie (Wilson's interval)."""
    from scipy.stats import binomtest

    found = binomtest(round(share * count), round(count)).proportion_ci(confidence, method="wilson")
    return found.low, found.high


def one_point(f: Facts) -> bool:
    """True where all images are nearly one point behind the head, by the uniformity there."""
    return f.head_uniformity is not None and f.head_uniformity > ONE_POINT


def _most(f: Facts) -> int:
    return min(f.dimensions, f.pictures - 1)

"""One diagnosis from typed facts: each of the eight, what it rests on, and what is never blamed."""

import dataclasses
import json
import math

import pytest

from clutils import report
from clutils.course import records
from clutils.report import BROKEN, GOOD, LOOK, UNKNOWN, diagnosis
from clutils.report.diagnosis import BEHIND, COLLAPSED, FED, HALF, HEALTHY, NEVER, OPEN, OTHER, TEMPERATURE
from clutils.report.facts import Facts, Row
from tests.report import ailing
from tests.report.ailing import SHUFFLES, checked

WELL = Facts(
    **{"pictures": 500, "gallery": 1500, "dimensions": 128, "spread": 0.8, "dead": 0.0},
    **{"norm_varies": 0.3, "zero_norms": 0, "positive_similarity": 0.8},
    **{"negative_similarity": 0.4, "finds_itself": 0.2, "nearer_than": 0.95, "fresh_nearer_than": 0.73},
    **{"batches_seen": 500, "input_gap": 0.01, "input_gaps": {"none": 0.01, "imagenet": 3.0, "half": 2.0}},
    **{"effective_rank": 35.0, "first_direction": 0.3, "uniformity": -1.8},
    **{"head_alignment": 0.5, "head_uniformity": -2.6, "temperature": 0.2},
    **{"negatives": 510, "share_of_negatives": 0.4, "share_before_head": 0.5, "neighbours": 20},
    **{"chance": 0.1, "knn": 0.6, "copies": 0.0, "compared": 500},
    **{"own": Row(0.6, 0.65), "untrained": Row(0.3, 0.42), "raw": Row(0.25, 0.3)},
    kept={"crop": 0.8, "grey": 0.3},
)
ONE_POINT = {"head_uniformity": -0.02}
CHANCE = Row(0.1, 0.11)
STILL = {"nearer_than": 0.75}  # views are hardly nearer than by fresh weights
UNLABELLED = {"own": None, "untrained": None, "raw": None}
YOUNG = {"batches_seen": 40, "fresh_nearer_than": 0.94, "input_gap": 0.28, "input_gaps": {"none": 0.28}}


def gaps(now, half):
    """The input's gap as it is fed, and with --mean half."""
    return {"input_gap": now, "input_gaps": {"none": now, "half": half}}


SAID = [  # what is changed, the diagnosis, its level, and words with the numbers that it rests on
    ({}, HEALTHY, GOOD, "Healthy: its kNN accuracy is 60%, that of fresh weights 30%."),
    ({"untrained": Row(0.59, 0.5)}, HEALTHY, GOOD, "its probe accuracy is 65%, that of fresh weights 50%."),
    # learned, and of no use beside raw pixels, unless these leave no room
    ({"raw": Row(0.58, 0.63)}, OPEN, LOOK, "hardly more than raw pixels show: its kNN .* 60%.* 58%"),
    ({"raw": Row(0.95, 0.96)}, HEALTHY, GOOD, "raw pixels 95%, which is no lower: these classes are easy"),
    ({"raw": Row(0.58, 0.3)}, HEALTHY, GOOD, "Healthy: its kNN"),
    ({"raw": Row(0.58, 0.63), "first_direction": 0.7}, OPEN, LOOK, "Learned, but hardly more than raw"),
    ({"never_trained": True, "batches_seen": None}, NEVER, BROKEN, "counted 0 batches"),
    ({"plain_normalisations": True, "untrained": Row(0.6, 0.65)}, NEVER, BROKEN, "gains of its layer"),
    ({"plain_normalisations": True}, HEALTHY, GOOD, ""),  # kept as made, though classes were learned
    (gaps(3.0, 0.02), FED, BROKEN, "3.00 nats .* 0.02 with --mean half"),
    (gaps(0.3, 0.02), FED, LOOK, "0.02 with --mean half"),
    (gaps(0.4, 2.0), FED, LOOK, "images of another kind: .* 0.40"),
    (gaps(9.0, 8.0), FED, BROKEN, "9.00 nats .* 8.00"),
    # and collapsed, which the sentence's level must not hide from --fail-on
    (gaps(0.4, 2.0) | {"effective_rank": 1.4}, FED, BROKEN, "images of another kind"),
    ({"spread": 0.004, "finds_itself": 0.01, "effective_rank": 2.0}, COLLAPSED, BROKEN, "0.4% .* 2.0 of 128"),
    ({"effective_rank": 1.4}, COLLAPSED, BROKEN, "effective rank is 1.4 of 128"),
    ({"first_direction": 0.95}, COLLAPSED, BROKEN, "one direction has 95% .* 20% to 45%"),
    (ONE_POINT, BEHIND, BROKEN, "uniformity behind it is -0.02 .* before it -1.80"),
    (ONE_POINT | {"effective_rank": 6.0}, BEHIND, BROKEN, "few directions, too: effective rank 6.0 of 128"),
    ({"share_of_negatives": 0.99}, TEMPERATURE, BROKEN, "Too hot: at τ = 0.2, 99.0% of its 510 negatives"),
    ({"share_of_negatives": 0.93}, TEMPERATURE, LOOK, "Too hot"),
    ({"share_of_negatives": 0.004}, TEMPERATURE, BROKEN, "Too cold: at τ = 0.2 the hardest 0.4%"),
    # after a collapse the share says nothing: by the encoder's own features, and never by τ alone
    (
        ONE_POINT | {"share_of_negatives": 0.53, "share_before_head": 0.016},
        TEMPERATURE,
        BROKEN,
        "Too cold: .* 1.6%",
    ),
    (ONE_POINT | {"share_of_negatives": 1.0, "temperature": 0.01}, BEHIND, BROKEN, ""),
    (ONE_POINT | {"share_of_negatives": None, "temperature": None}, BEHIND, BROKEN, ""),  # a loss without τ
    ({"temperature": 0.01}, HEALTHY, GOOD, ""),
    (STILL | {"untrained": Row(0.58, 0.66)}, HALF, LOOK, "kNN 60% against 58% with fresh weights, probe 65%"),
    (STILL | YOUNG | {"batches_seen": 12, "untrained": Row(0.6, 0.65)}, HALF, LOOK, "have seen 12 batches"),
    # though it is above fresh weights, or its views are: after ten batches one point is no collapse
    *(
        ({"batches_seen": 10} | ill, HALF, LOOK, "have seen 10 batches, and its probe is at 65% against 42%")
        for ill in (ONE_POINT, {"effective_rank": 1.4}, {"spread": 0.004, "finds_itself": 0.01})
    ),
    ({"batches_seen": 10, "share_of_negatives": 0.99}, HALF, LOOK, "have seen 10 batches"),
    ({"batches_seen": 10}, HEALTHY, GOOD, ""),  # averaged weights, whose statistics were counted anew
    ({"own": Row(0.18, 0.24), "untrained": Row(0.28, 0.41)}, OTHER, BROKEN, "24% against 41% with fresh"),
    ({"own": Row(0.95, 0.95), "untrained": Row(0.94, 0.96)}, HEALTHY, GOOD, "too easy to show more"),
    # views that were learned tell "not these classes" from "not yet", and few batches without them are early
    ({"untrained": Row(0.62, 0.67)}, OTHER, LOOK, "probe 65% against 67% with fresh"),
    ({"untrained": Row(0.54, 0.62)}, HEALTHY, GOOD, "two images in 95.0% of cases, with .* 73.0%"),
    ({"batches_seen": 60}, HEALTHY, GOOD, ""),
    # neither views nor classes: VICReg after 450 steps was called 'other classes', broken
    (
        {"nearer_than": 0.8, "own": Row(0.1, 0.13), "untrained": Row(0.24, 0.42)},
        HALF,
        LOOK,
        "probe 13% against 42%",
    ),
    # too easy for a lead, where fresh weights alone find the classes; not if its views were not learned
    ({"own": Row(0.88, 0.92), "untrained": Row(0.91, 0.94)}, HEALTHY, GOOD, "too easy"),
    ({"own": Row(0.9, 0.9), "untrained": Row(0.91, 0.92), "nearer_than": 0.7}, HALF, LOOK, ""),
    (STILL | {"head_uniformity": -0.4, "untrained": Row(0.58, 0.66)}, HALF, LOOK, ""),  # an early queue
    (STILL | {"batches_seen": 60, "untrained": Row(0.55, 0.6)}, HALF, LOOK, "have seen 60 batches"),
    (STILL | {"batches_seen": 60, "untrained": Row(0.8, 0.9)}, HALF, LOOK, "65% against 90%"),
    # measures that disagree convict nobody: few batches beside classes, kNN beside the probe, views between
    (STILL | {"batches_seen": 60}, HEALTHY, GOOD, ""),
    (STILL | {"untrained": Row(0.52, 0.62)}, OPEN, UNKNOWN, "do not decide"),
    (STILL | {"own": Row(0.4, 0.52), "untrained": Row(0.52, 0.45)}, OPEN, UNKNOWN, "kNN 40% against 52%"),
    ({"own": Row(0.4, 0.6), "untrained": Row(0.52, 0.45)}, OPEN, UNKNOWN, "kNN 40% against 52%"),
    ({"nearer_than": 0.87, "untrained": Row(0.58, 0.66)}, OPEN, UNKNOWN, "do not decide"),
    ({"nearer_than": 0.87, "untrained": Row(0.62, 0.66)}, HALF, LOOK, ""),
    ({"share_of_negatives": 0.05}, HEALTHY, GOOD, ""),  # a healthy MACL run
    (STILL | {"untrained": Row(0.53, 0.6)}, OPEN, UNKNOWN, "do not decide whether .*: kNN 60% against 53%"),
    (
        UNLABELLED | {"fresh_nearer_than": None},
        OPEN,
        UNKNOWN,
        "found. What it knows of classes can't be measured",
    ),
    ({"untrained": None}, OPEN, UNKNOWN, "no fresh weights"),
    # without labels: what two views show beside fresh weights
    (UNLABELLED, OPEN, UNKNOWN, "It learned its views: .* 95.0% of cases, with .* 73.0%. What it knows"),
    (UNLABELLED | {"fresh_nearer_than": 0.9}, OPEN, UNKNOWN, "It learned less than healthy runs do"),
    (UNLABELLED | {"fresh_nearer_than": 0.96}, OPEN, UNKNOWN, "It is not better than fresh weights"),
    (UNLABELLED | YOUNG, HALF, LOOK, "have seen 40 batches, and two .* 95.0% .* 94.0%"),  # not fed wrongly
    (  # few images, and many standard errors below
        {"nearer_than": 0.8, "fresh_nearer_than": 0.78, "pictures": 40, "compared": 40}
        | {"own": Row(0.2, 0.25), "untrained": Row(0.9, 0.92), "raw": Row(0.8, 0.85)}
        | {"knn": 0.2},
        HALF,
        LOOK,
        "kNN 20% against 90% with fresh weights",
    ),
    (  # nothing is left to learn of these classes
        {"nearer_than": 0.8, "fresh_nearer_than": 0.78, "own": Row(0.99, 0.99)}
        | {"untrained": Row(0.95, 0.97), "knn": 0.99},
        OPEN,
        UNKNOWN,
        "do not decide",
    ),
    (  # views were learned and a lead may be luck; at chance it shows nothing of these classes
        {"pictures": 100, "compared": 100, "knn": 0.12, "own": Row(0.12, 0.14)}
        | {"untrained": Row(0.08, 0.08), "raw": CHANCE},
        OPEN,
        UNKNOWN,
        "do not decide",
    ),
    ({"pictures": 12}, OPEN, UNKNOWN, "12 test images are too few"),
    ({"pictures": 12, "spread": 0.0, "finds_itself": 0.5}, COLLAPSED, BROKEN, "0.0%"),
    ({"pixels": 8}, HEALTHY, GOOD, "its kNN accuracy is 60%"),
    ({"pixels": 7}, OPEN, UNKNOWN, "images of 7 pixels a side are too small .*at least 8"),
    ({"pixels": 3, "spread": 0.0}, OPEN, UNKNOWN, "images of 3 pixels"),  # one point, for want of pixels
    (gaps(9.0, 0.02) | {"pixels": 1}, OPEN, UNKNOWN, "images of 1 pixels"),
]


@pytest.mark.parametrize("of", SAID, ids=lambda of: f"{of[1]}: {of[0]}"[:60])
def test_one_sentence_with_the_numbers_it_rests_on(of):
    import re

    change, name, level, words = of
    found = diagnosis.diagnose(dataclasses.replace(WELL, **change))
    assert (found.name, found.level) == (name, level), found
    assert re.search(words, found.says) and found.says[0].isupper() and found.says.endswith(".")
    assert len(re.findall(r"\d[\d.,]*", found.says)) >= (2 if name not in (OPEN, NEVER) else 0)


EARLY = STILL | YOUNG | {"batches_seen": 12, "untrained": Row(0.6, 0.65)}


@pytest.mark.parametrize(
    "change", [change for change, *_ in SAID] + [EARLY | ONE_POINT, EARLY | {"effective_rank": 1.4}]
)
def test_no_line_is_worse_than_the_verdict(change):
    f = dataclasses.replace(WELL, **change)
    verdict, levels = diagnosis.diagnose(f), [line.level for line in diagnosis.lines(f, {})]
    if diagnosis.undecided(f):
        assert set(levels) == {diagnosis.UNKNOWN}, levels  # no cross under 'not known'
    elif verdict.name != FED:  # else the others mean little
        allowed = {diagnosis.UNKNOWN, GOOD, verdict.level} | ({LOOK} if verdict.level == BROKEN else set())
        assert set(levels) <= allowed, (verdict, levels)


def test_a_badge_blames_the_input_or_the_labels_where_they_are_at_fault_and_a_line_says_what_to_do_next():
    said = {}
    for change in (
        {},
        gaps(3.0, 0.02),
        gaps(9.0, 8.0),
        {"own": CHANCE, "raw": CHANCE, "untrained": CHANCE},
        {"own": Row(0.18, 0.24), "untrained": Row(0.28, 0.41)},
        {"effective_rank": 1.4},
    ):
        found = diagnosis.diagnose(dataclasses.replace(WELL, **change))
        said[found.badge, found.next.partition(",")[0]] = found.level
    assert list(said) == [
        (GOOD, "Compare it with another run on the same images (python -m clutils check A B)."),
        ("check the input", "Run the check again with --mean half."),
        ("check the input", "Give images of the kind that it was trained on"),
        ("check the labels", "Correct the labels"),
        (
            "check the labels",
            "Check the labels; then train without the augmentation that hides what they describe.",
        ),
        (BROKEN, "Its loss has negatives: check its labels and positives"),
    ]
    without = diagnosis.diagnose(dataclasses.replace(WELL, effective_rank=1.4, negatives=None))
    assert without.next.startswith("Let the loss push images apart (negatives")
    lines = {line.name for line in diagnosis.lines(WELL, {})}
    assert {*diagnosis.NEXT_OF_LINE, "robustness"} == lines  # which is never ill
    assert set(diagnosis.NEXT) == {*diagnosis.NAMES, OPEN}


def test_a_badge_is_green_only_where_it_is_known_that_something_was_learned():
    """Half of a run was green, with 'whether it learned anything' among what could not be judged."""
    for own in (None, Row(0.31, 0.43), Row(0.35, 0.46)):
        assert diagnosis.diagnose(dataclasses.replace(WELL, own=own, **STILL)).level != GOOD


@pytest.mark.parametrize(
    ("change", "line", "level", "words"),
    [
        ({"copies": 0.2}, "classes", LOOK, "20% of the test images are among the labelled"),
        ({"own": CHANCE, "raw": CHANCE, "untrained": CHANCE}, "classes", LOOK, "belong together"),
        ({"dead": 0.6}, "collapse", BROKEN, "60% of 128 features have the same value"),
        ({"norm_varies": 1.4}, "collapse", LOOK, "Lengths vary by 140%"),
        ({"zero_norms": 3}, "collapse", BROKEN, "3 embeddings have length 0"),
        ({"first_direction": 0.7}, "collapse", LOOK, "One direction has 70%"),
        ({"head_uniformity": -0.9}, "the space of the loss", LOOK, "crowded"),
        ({"nearer_than": 0.5}, "views of an image", LOOK, "hardly nearer"),
    ],
)
def test_what_seldom_fires_is_said_where_it_does_and_is_the_sentence_where_nothing_ails_more(
    change, line, level, words
):
    facts = dataclasses.replace(WELL, **change)
    found = {each.name: each for each in diagnosis.lines(facts, {})}
    assert found[line].level == level and words in found[line].says
    whole = diagnosis.diagnose(facts)
    assert whole.level in (LOOK, BROKEN) and (words in whole.says or whole.name == HALF)


def test_six_lines_and_a_green_one_has_no_sentence():
    found = diagnosis.lines(WELL, {})
    assert len(found) == 6 and {line.level for line in found} == {GOOD}
    assert all(line.value and not line.says for line in found)
    none = dataclasses.replace(WELL, head_uniformity=None, kept={}, own=None, input_gap=None)
    why = {"head_uniformity": "there is no projection head", "kept": "a quick check does not measure it"}
    levels = {line.name: (line.level, line.value) for line in diagnosis.lines(none, why)}
    assert levels["the space of the loss"] == (UNKNOWN, "there is no projection head")
    assert levels["classes"] == (UNKNOWN, "not measured")


def test_facts_are_flat_in_json_by_the_names_they_had():
    flat = dataclasses.replace(WELL, others={"rankme": 3.0}).flat()
    assert flat["knn_untrained"] == 0.3 and flat["probe_raw"] == 0.3 and flat["kept_crop"] == 0.8
    assert flat["input_gap_imagenet"] == 3.0 and flat["rankme"] == 3.0 and flat["knn_beside_untrained"] == 0.6
    assert "head_uniformity" not in dataclasses.replace(WELL, head_uniformity=None).flat()
    assert all(isinstance(value, int | float) and math.isfinite(value) for value in flat.values())


# ---- of encoders that were made so -------------------------------------------------------------------------

MADE = {
    "healthy": HEALTHY,
    "untrained": NEVER,
    "collapsed": COLLAPSED,
    "nearly collapsed": COLLAPSED,
    "a layer forgotten": BEHIND,
    "too hot": TEMPERATURE,
    "too cold": TEMPERATURE,
    "normalised, and should not be": FED,
    "not normalised, and should be": FED,
    "0 to 255": FED,
}


@pytest.mark.parametrize("name", MADE)
def test_what_was_done_to_an_encoder_is_its_diagnosis(name):
    found = checked(name)
    assert (found.diagnosis.name, found.level) == (MADE[name], GOOD if name == "healthy" else BROKEN)


def test_the_right_normalisation_is_named_and_taken_where_none_is_asked_for():
    assert checked("not normalised, and should be").diagnosis.mean == "half"
    assert checked("normalised, and should not be").diagnosis.mean == "none"
    case = ailing.cases()["not normalised, and should be"]()
    found = report.check(case.opened, (case.gallery, case.judged), mean="auto", quick=True)
    assert found.diagnosis.name != FED and any("normalisation half was chosen" in n for n in found.notes)


def test_shuffled_labels_are_not_blamed_on_the_encoder():
    for n in range(SHUFFLES):
        found = checked(f"labels shuffled, {n}")
        assert found.diagnosis.name in (OPEN, HALF) and found.level != BROKEN, found.diagnosis.says
    said = [line.says for n in range(SHUFFLES) for line in checked(f"labels shuffled, {n}").verdicts]
    assert any("do not seem to belong together" in one for one in said)


def test_what_is_called_usual_of_healthy_encoders_holds_for_all_on_record():
    table = records.read("calibration")
    numbers = [json.loads(text) for text in table["numbers"][table["found"] == HEALTHY]]
    first = [of["first_direction"] for of in numbers]
    shares = [of["share_of_negatives"] for of in numbers if "share_of_negatives" in of]
    assert len(first) > 40 and 0.20 < min(first) < max(first) < 0.45  # "20% to 45%"
    low, high = (int(part.rstrip("%")) / 100 for part in diagnosis.SHARED.split(" to "))
    assert low - 0.005 < min(shares) < low + 0.005 and high - 0.005 < max(shares) < high + 0.005

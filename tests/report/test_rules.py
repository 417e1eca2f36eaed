"""The lines of a report: what each rests on, and what none of them blames."""

import dataclasses
import math
import re

import pytest
import torch
from torch import nn

from clutils import checkpoints, report
from clutils.report import BROKEN, GOOD, LOOK, UNKNOWN, Unfit, neighbours, rules, verdicts
from tests.report import ailing
from tests.report.ailing import SEED, checked, checks
from tests.report.pages import Page

# ---- what a line rests on ----------------------------------------------------------------------------------


def lines(found: report.Report) -> dict[str, report.Verdict]:
    return {v.name: v for v in found.verdicts}


def levels(n: dict[str, float], unknown: dict[str, str] | None = None) -> dict[str, report.Verdict]:
    return {v.name: v for v in verdicts.judge(n, unknown or {})}


def healthy(**changes: float) -> dict[str, float]:
    return dict(checked("healthy").examination.numbers) | changes


@pytest.mark.parametrize("few", [20, 40, 125])
def test_right_labels_are_not_blamed_however_few_pictures_there_are(few):
    case = ailing.cases(SEED)["healthy"]()
    found = checks("healthy", (case.gallery.subset(slice(0, 3 * few)), case.judged.subset(slice(0, few))))
    assert found.level == GOOD, found.verdicts
    n = dict(found.examination.numbers)
    asked = ("knn", "probe", "knn_raw", "knn_untrained", "knn_relabelled")
    by_luck = dict.fromkeys(asked, n["chance"])
    for knn, gallery in ((n["chance"], 0.3), (n["chance"], 0.2), (0.0, 0.1), (0.0, n["chance"])):
        judged = levels(n | by_luck | {"knn": knn, "knn_gallery": gallery})["classes"]
        assert judged.level == UNKNOWN and "too few to say" in judged.says and not judged.causes


def classes_at_chance(**changes: float) -> report.Verdict:
    """Of a well encoder's numbers, those that labels decide at chance, but for `changes`."""
    n = healthy(pictures=300)
    asked = ("knn", "probe", "knn_raw", "probe_raw", "knn_untrained", "probe_untrained")
    n |= dict.fromkeys(asked, n["chance"]) | {"knn_gallery": n["chance_gallery"]}
    return levels(n | changes)["classes"]


def test_labels_are_blamed_only_where_nothing_shows_that_they_belong_to_the_pictures():
    assert "belong together" in classes_at_chance().says
    assert classes_at_chance(pictures=199).level == UNKNOWN
    chance = checked("healthy").examination.numbers["chance"]
    for sign in ("knn_raw", "probe_raw", "knn_untrained", "probe_untrained"):
        for knn in (chance, 0.0):  # a worse encoder is no sign against the labels
            blamed = classes_at_chance(**{sign: chance + 0.06, "knn": knn})
            assert "belong together" not in blamed.says and "labels" not in " ".join(blamed.causes)
    assert "belong together" not in classes_at_chance(gallery=300).says  # few of each class to be neighbours
    assert "labelled otherwise" in classes_at_chance(knn_gallery=0.4).says
    assert "labelled otherwise" not in classes_at_chance(knn_gallery=0.4, pictures=150).says


def test_labels_that_are_wrong_in_the_judged_part_alone_show_beside_the_gallery():
    case = ailing.cases(SEED)["healthy, digits"]()
    y = case.judged.labels

    def said(labels: torch.Tensor) -> tuple[report.Verdict, report.Verdict]:
        judged = dataclasses.replace(case.judged, labels=labels)
        found = lines(checks("healthy, digits", (case.gallery, judged), quick=True))
        return found["classes"], found["class names"]

    for v in said(y):
        assert v.level == GOOD
    exchanged = torch.tensor([1, 0, *range(2, 10)])[y]
    of_classes, names = said(exchanged)
    assert (of_classes.level, names.level) == (UNKNOWN, BROKEN)
    draw = torch.Generator().manual_seed(0)
    drawn = torch.randint(10, y.shape, generator=draw)
    of_classes, names = said(torch.where(torch.rand(y.shape, generator=draw) < 0.4, drawn, y))
    assert (of_classes.level, names.level) == (LOOK, GOOD)
    assert "labels of the judged part" in of_classes.causes[0]


def test_a_gallery_of_unequal_classes_is_no_sign_against_the_judged():
    case = ailing.cases(SEED)["healthy, digits"]()
    y = case.gallery.labels
    kept = torch.cat([(y == label).nonzero()[: 130 // (1 + label), 0] for label in range(10)])
    few = case.gallery.subset(kept[torch.randperm(len(kept), generator=torch.Generator().manual_seed(0))])
    found = checks("healthy, digits", (few, case.judged), quick=True)
    n = found.examination.numbers
    assert n["knn_gallery"] > n["knn_gallery_alike"] and "Gallery" not in lines(found)["classes"].says
    unequal = n | {"knn": 0.36, "knn_relabelled": 0.37, "knn_gallery": 0.64}
    for alike, blamed in ((0.37, False), (0.64, True)):
        says = rules.classes(unequal | {"knn_gallery_alike": alike}, {}, "encoder").says
        assert ("Gallery pictures" in says) == blamed


def test_asking_the_gallery_leaves_the_asked_picture_out_and_weighs_classes_as_the_judged():
    draw = torch.Generator().manual_seed(1)
    z, y, judged = (
        torch.randn(50, 4, generator=draw),
        torch.tensor([0] * 40 + [1] * 10),
        torch.tensor([0, 1, 1, 1]),
    )
    found = neighbours.left_out(z, y, 5, judged)
    right = []
    for i in range(50):
        rest = [j for j in range(50) if j != i]
        right.append(float(neighbours.predicted(z[rest], y[rest], z[i : i + 1], 5)) == y[i])
    assert found["knn_gallery"] == pytest.approx(sum(right) / 50)
    assert found["knn_gallery_alike"] == pytest.approx(
        0.25 * sum(right[:40]) / 40 + 0.75 * sum(right[40:]) / 10
    )


def test_judged_pictures_that_lend_their_own_labels_are_told():
    case = ailing.cases(SEED)["healthy, digits"]()
    inside = case.gallery.subset(slice(0, 300))
    found = lines(checks("healthy, digits", (case.gallery, inside), quick=True))
    assert found["classes"].level == LOOK and "100% of the judged pictures" in found["classes"].says


def test_normalisations_folded_into_the_weights_are_no_fresh_network():
    def fold(encoder: nn.Module) -> None:
        for layer in encoder.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.weight /= (layer.running_var + layer.eps).sqrt()
                layer.bias -= layer.running_mean * layer.weight
                layer.running_mean.zero_()
                layer.running_var.fill_(1)
                layer.num_batches_tracked.zero_()

    case = ailing.cases(SEED)["healthy, digits"]()
    folded = ailing.changed(case.opened, fold)
    found = report.check(folded, (case.gallery, case.judged), map_names=(), quick=True)
    assert "folded" in found.examination.unknown["input_gap"]
    assert lines(found)["against untrained"].level != BROKEN and lines(found)["classes"].level == GOOD


def test_two_classes_in_each_others_place_are_found_and_no_others():
    draw = torch.Generator().manual_seed(2)
    y = torch.arange(10).repeat(30)
    predicted = torch.where(
        torch.rand(300, generator=draw) < 0.4, y, torch.randint(10, (300,), generator=draw)
    )
    assert neighbours.exchanged(y, predicted) == 0
    assert neighbours.exchanged(y, torch.zeros_like(y)) == 0  # all pictures taken for one class
    other = torch.tensor([1, 0, *range(2, 10)])[y]
    table = {(a, b): int(((other == a) & (predicted == b)).sum()) for a in (0, 1) for b in (0, 1)}
    leads = table[0, 1] - table[0, 0], table[1, 0] - table[1, 1]
    by_hand = sum(leads) / sum(table.values()) ** 0.5
    assert min(leads) > 0 and neighbours.exchanged(other, predicted) == pytest.approx(by_hand)
    assert rules.names(healthy(exchanged=3.4), {}).level == GOOD
    assert rules.names(healthy(exchanged=by_hand), {}).level == LOOK


def test_pictures_of_another_kind_are_not_blamed_on_the_training():
    coloured = []
    for digits in ailing.pictures("digits"):
        images = digits.images.repeat_interleave(4, 2).repeat_interleave(4, 3).expand(-1, 3, -1, -1)
        coloured.append(dataclasses.replace(digits, images=images.contiguous()))
    found = checks("healthy", tuple(coloured))
    assert found.level == LOOK
    for v in found.verdicts:
        if v.name != "what it is fed" and v.level != UNKNOWN:
            assert v.remark == "on these pictures"
        if v.causes:
            assert v.causes[0] == "pictures of another kind than it was trained on"
    assert found.summary_text.startswith("Pictures arrive otherwise than in training (")
    assert "(on these pictures)" in found.html() and "(on these pictures)" in str(found)


def test_what_follows_from_never_trained_is_no_red_of_its_own():
    red = [v.name for v in checked("untrained").verdicts if v.level == BROKEN]
    assert red == ["against untrained"]
    rests = [v for v in checked("untrained").verdicts if v.level == LOOK]
    assert rests and {v.remark for v in rests} == {"follows from 'against untrained'"}
    assert re.fullmatch(
        r"Broken: against untrained\. \d lines more follow.*", checked("untrained").summary_text
    )


FOLLOWS = "follows from 'against untrained'"
EASY = {"knn": 0.92, "knn_raw": 0.99, "probe": 0.96, "probe_raw": 0.96, "knn_beside_untrained": 0.92}
BELOW = {"knn": 0.91, "knn_beside_untrained": 0.89, "knn_raw": 0.98, "knn_untrained": 0.9}
BELOW |= {"probe": 0.9, "probe_raw": 0.94, "probe_untrained": 0.9}
ONE_CLASS = dict.fromkeys(("knn", "knn_beside_untrained", "knn_untrained", "probe", "chance"), 0.95)
ONE_CLASS |= {"probe_untrained": 0.95}
FEW_FIND = {
    "finds_itself": 0.003,
    "positive_similarity": 0.5,
    "negative_similarity": 0.1,
    "nearer_than": 0.73,
}
COLLAPSE = {"spread": 0.0, "dead": 1.0, "effective_rank": 1.0, "first_direction": 1.0}
GAP = {"input_gap": 1.0, "input_gap_none": 1.0}
CHANGED = [  # of whom, what is changed, the line, its level, and words of what it says or rests on
    ("collapsed", GAP, "what it is fed", LOOK, ""),
    ("collapsed", GAP, "spread", BROKEN, ""),
    # a constant is no fresh network; dead units are one, where fresh weights have them
    *(("untrained", COLLAPSE, line, BROKEN, "") for line in ("spread", "dead units", "dimensions in use")),
    ("untrained", {"dead": 0.7, "fresh_dead": 0.0}, "dead units", BROKEN, ""),
    ("untrained", {"dead": 0.7, "fresh_dead": 0.6}, "dead units", LOOK, FOLLOWS),
    # a constant that all features share is no collapse, unless it drowns the rest
    ("healthy", {"spread": 0.02}, "spread", LOOK, "share a constant"),
    ("healthy", {"spread": 0.02}, "views of a picture", GOOD, ""),
    ("healthy", {"spread": 0.02, "finds_itself": 0.01}, "spread", BROKEN, "collapse"),
    ("healthy", {"first_direction": 0.77, "directions_to_95": 2}, "dimensions in use", LOOK, "2 carry 95 %"),
    # classes are good only above fresh weights, too
    ("healthy", {}, "classes", GOOD, "Neighbours share a class more often"),
    (
        "healthy",
        {"knn_untrained": 1.0, "probe_untrained": 1.0},
        "classes",
        LOOK,
        "not clearly better than the",
    ),
    ("healthy", {"never_trained": 1.0}, "classes", LOOK, "as fresh weights may be"),
    ("healthy", EASY | {"knn_untrained": 0.5}, "classes", GOOD, "not clearly more often than in raw pixels"),
    ("healthy", BELOW, "classes", LOOK, "^Not above raw pixels, and not clearly better than"),
    ("labels shuffled", {}, "class names", UNKNOWN, "no name is right or wrong"),
    ("healthy", {"probe_untrained": 1.0}, "against untrained", GOOD, "not by the probe"),
    ("healthy", ONE_CLASS, "against untrained", UNKNOWN, "One class has 95% of the pictures"),
    # layer normalisations that were kept as they were made, though classes were learned
    ("healthy", {"plain_normalisations": 1.0}, "against untrained", GOOD, ""),
    ("healthy", {"kept_grey": 0.04}, "robustness", LOOK, r"grey \(0.04\)"),
    # a view that seldom finds itself is no fault by itself, and few pictures may show it by luck
    (
        "healthy",
        FEW_FIND | {"views": 50},
        "views of a picture",
        LOOK,
        "by 'finds itself' .* 50 pictures .* luck",
    ),
    (
        "healthy",
        FEW_FIND | {"views": 500},
        "views of a picture",
        LOOK,
        "by 'finds itself' less than usual\\. $",
    ),
    ("healthy", FEW_FIND | {"nearer_than": 0.5}, "views of a picture", BROKEN, "hardly nearer"),
    (
        "healthy",
        {"positive_similarity": 0.0, "negative_similarity": 0.0},
        "views of a picture",
        BROKEN,
        "hardly",
    ),
    ("healthy, digits", {}, "robustness", GOOD, "flip"),  # digits are never mirrored
]


@pytest.mark.parametrize("of", CHANGED, ids=lambda of: f"{of[0]}: {of[2]} {of[3]}")
def test_a_line_says_what_its_numbers_say(of):
    name, change, line, level, words = of
    found = levels(checked(name).examination.numbers | change)[line]
    assert found.level == level and re.search(words, f"{found.says} {found.remark}")
    assert name == "collapsed" or found.remark == (FOLLOWS if words == FOLLOWS else "")


NO_STOP = "nothing pushes apart: no stop-gradient, as the file says"
GREY = "trained without grey, as the file says"
CAUSES = [  # what the file states, what is changed, the line, its causes' beginning; or a cause that goes
    ({"stop_gradient": 0.0}, {"effective_rank": 5.0}, "dimensions in use", (NO_STOP, "pairs"), ""),
    ({"stop_gradient": 0.0}, {"head_uniformity": -0.1}, "the space of the loss", (NO_STOP, "too few"), ""),
    ({"stop_gradient": 1.0}, {"head_uniformity": -0.1}, "the space of the loss", ("too few steps",), NO_STOP),
    ({"trained_grey": 0.0}, {"kept_grey": 0.04}, "robustness", (GREY, "it tells pictures apart by"), ""),
    ({"trained_grey": 1.0}, {"kept_grey": 0.04}, "robustness", ("it tells",), "trained without that"),
    ({"trained_grey": 0.0}, {"finds_itself": 0.05}, "views of a picture", (GREY,), "trained with weaker"),
    ({"trained_grey": 1.0}, {"finds_itself": 0.05}, "views of a picture", ("pairs",), "trained with weaker"),
    ({}, {"finds_itself": 0.05}, "views of a picture", ("pairs", "too few steps", "trained with weaker"), ""),
]


@pytest.mark.parametrize("of", CAUSES, ids=lambda of: f"{of[0]}: {of[2]}")
def test_what_a_file_states_stands_first_among_the_causes_and_what_it_rules_out_is_none(of):
    stated, change, line, first, gone = of
    causes = levels(healthy(**stated, **change))[line].causes
    assert all(cause.startswith(begin) for cause, begin in zip(causes, first, strict=False))
    assert not gone or not any(cause.startswith(gone) for cause in causes)


def test_what_a_file_states_of_its_training_is_read_from_its_settings():
    case = ailing.cases(SEED)["healthy"]()
    drawn_by = {"crop_scale": (0.2, 1.0), "flip": 0.5, "jitter_prob": 0.8, "grayscale": 0.0, "blur": 0.0}
    case.opened.settings = {"stop_gradient": False, "augmentation": drawn_by}
    found = report.check(case.opened, (case.gallery, case.judged), map_names=(), quick=True)
    stated = {"crop": 1, "flip": 1, "jitter": 1, "grey": 0}  # and no blur, which is seldom there
    assert found.examination.numbers.items() >= {f"trained_{k}": v for k, v in stated.items()}.items()
    assert "trained_blur" not in found.examination.numbers and found.examination.numbers["stop_gradient"] == 0
    assert "crop_scale (0.2, 1.0), flip 0.5" in found.examination.facts["its augmentation"]


def test_a_summary_that_is_worth_a_look_has_a_collapse_with_its_numbers_and_says_that_the_head_is_missing():
    n = healthy(effective_rank=5.8, first_direction=0.79)
    n |= {"knn_untrained": n["knn_beside_untrained"], "probe_untrained": n["probe"]}
    headless = {name: n[name] for name in n if not name.startswith("head_")}
    found = [*levels(headless, {"head_uniformity": "the file has no projection head"}).values()]
    assert verdicts.summary(found).startswith(
        "Worth a look: against untrained, dimensions in use, classes. Dimensional collapse: a few directions "
        "carry everything (effective rank 5.8 of at most 128; first direction 79%). Whether the space of the "
        "loss has collapsed can't be told: the file has no projection head. "
    )
    said = verdicts.summary([*levels(n | {"effective_rank": 30.0, "first_direction": 0.2}).values()])
    assert said.startswith(
        "Worth a look: against untrained, classes. On these labels it is not clearly better"
    )
    assert "(kNN " in said and "can't be told" not in said


def test_two_normalisations_that_fit_about_equally_are_both_named():
    n = healthy()
    gaps = {name: 1.11 for name in n if name.startswith("input_gap")} | {"input_gap_imagenet": 0.04}
    for other, named in ((0.08, "imagenet or cifar10"), (0.11, "imagenet")):
        found = levels(n | gaps | {"input_gap_cifar10": other})
        fed = found["what it is fed"]
        assert fed.says.startswith(f"Fed wrongly: fix this first, with --mean {named} (")
        assert ("0.04 and 0.08 nats: too near to tell" in fed.says) == (other == 0.08)
        assert fed.causes == ("another mean and std than in training (--mean, --std)",)  # which mends it
        assert f"with --mean {named} (now 1.11 nats" in verdicts.summary([*found.values()])


def test_statistics_that_have_not_settled_are_not_blamed_on_the_pictures():
    n = healthy(batches_seen=2)
    n |= {name: 1.4 for name in n if name.startswith("input_gap")}
    assert levels(n)["what it is fed"].causes[0].startswith("saved after a few steps")
    others = [v for v in levels(n).values() if v.name != "what it is fed" and v.level != UNKNOWN]
    assert {v.remark for v in others} == {"with batch statistics that had not settled"}
    worse = levels(n | {"knn_beside_untrained": 0.05, "probe": 0.05})["against untrained"]
    assert worse.level == LOOK and worse.causes[0].startswith("batch statistics that had not settled")
    assert "otherwise" not in verdicts.summary([*levels(n).values()])


def test_a_usual_normalisation_that_mends_a_small_gap_is_named_before_pictures_of_another_kind():
    n = healthy()
    gaps = {name: 0.55 for name in n if name.startswith("input_gap")}
    found = levels(n | gaps | {"input_gap_half": 0.11})
    fed = found["what it is fed"]
    assert fed.level == LOOK and fed.says.startswith("Perhaps fed wrongly: look again, with --mean half ")
    assert verdicts.summary([*found.values()]).startswith(
        "Perhaps fed wrongly: look again, with --mean half (now 0.55 nats away from training, "
        "with it 0.11). Until then"
    )
    unlike = levels(n | gaps | {"input_gap_half": 0.2})  # nothing mends it
    assert verdicts.summary([*unlike.values()]).startswith(
        "Pictures arrive otherwise than in training (0.55 nats away): other ones, or fed in another way "
        "(fed with --mean half it would be 0.20 nats). Until that is known all else holds"
    )


def test_what_few_pictures_may_show_by_luck_is_not_known():
    few = healthy(pictures=20, knn=0.3, knn_relabelled=0.55, knn_error=0.1, knn_raw=0.2, chance=0.1)
    named = levels(few)["class names"]
    assert named.level == UNKNOWN and "gains 25 points, which 20 pictures may give by luck" in named.says
    alike = dict.fromkeys(("knn", "knn_gallery", "knn_gallery_alike", "knn_relabelled"), 0.33)
    some = healthy(pictures=100, knn_raw=0.23, knn_error=0.06, probe=0.3, probe_raw=0.3, **alike)
    assert levels(some)["classes"].level == UNKNOWN  # a lead of ten points may be a true one
    many = levels(some | {"pictures": 2000, "knn_raw": 0.32, "knn_error": 0.012})["classes"]
    assert many.level == LOOK and many.says.startswith("Not clearly better than raw pixels")
    below = some | {"pictures": 2000, "knn_raw": 0.4, "probe_raw": 0.4, "knn_error": 0.012}
    for probe, by in ((0.3, ""), (0.41, " by kNN, and not by the probe")):
        worse = levels(below | {"probe": probe})["classes"]
        assert worse.level == LOOK and worse.says == f"Below raw pixels on these labels{by}."
    shuffled = classes_at_chance(pictures=200, compared=200, knn_untrained=0.16)
    assert "the encoder lost" not in shuffled.says  # one of several accuracies is above chance by luck


def test_a_loss_without_a_temperature_had_no_wrong_one():
    n = healthy(head_uniformity=-0.1, head_alignment=0.1)
    n |= {"positive_similarity": 0.2, "negative_similarity": 0.2, "finds_itself": 0.01}
    for unknown, named in (({}, True), ({"W": "BYOL trains without a temperature: W, and"}, False)):
        found = levels(n, unknown)
        for line in ("the space of the loss", "views of a picture"):
            assert any(cause.startswith("a temperature") for cause in found[line].causes) is named


def test_a_lead_of_the_probe_counts_from_three_standard_errors_on():
    n = healthy(compared=250, knn_beside_untrained=0.2, knn_untrained=0.2, probe_untrained=0.22)
    assert levels(n | {"probe": 0.25})["against untrained"].level == LOOK  # within one standard error
    for probe, level in ((0.34, UNKNOWN), (0.40, GOOD)):
        of_pictures = (probe * (1 - probe) + 0.22 * 0.78) / 250
        assert (probe - 0.22 > 3 * math.sqrt(of_pictures + 0.03**2)) == (level == GOOD)
        assert levels(n | {"probe": probe})["against untrained"].level == level


def layered(plain: bool) -> nn.Module:
    """A network without batch normalisation, as it is made, or with one gain that has moved."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(3, 16, 4, 4), nn.GELU(), nn.Flatten(), nn.Linear(1024, 32))
        net.append(nn.LayerNorm(32))
    if not plain:
        net[-1].weight.data[3] = 0.99
    return net


@pytest.mark.parametrize("plain", [True, False])
def test_fresh_weights_without_batch_normalisation_are_told_by_layer_normalisations(plain):
    some = tuple(p.subset(slice(0, 120)) for p in ailing.pictures("scenes"))
    found = report.check(checkpoints.open(layered(plain).eval()), some, map_names=())
    said = lines(found)["against untrained"]
    assert (said.level == BROKEN and said.says == rules.FRESH) == plain
    assert "gains 1, biases 0" in said.value or not plain


def test_a_temperature_beside_the_files_own_is_said_and_is_no_red():
    line = lines(checks(temperature=0.005))["temperature"]
    assert line.level == LOOK and "τ = 0.005 (given; the file says 0.2)" in line.value
    assert "given" not in lines(checks(temperature=0.2))["temperature"].value


def test_a_side_that_does_not_fit_is_refused_before_anything_is_resized():
    case = ailing.cases(SEED)["healthy"]()
    for size in (7, 1025):
        with pytest.raises(Unfit, match=f"size is {size}, but must be from 8 to 1024"):
            checks(size=size)
    fixed = dataclasses.replace(case.opened, side=224)
    with pytest.raises(Unfit, match="takes pictures of 224 x 224 alone"):
        report.check(fixed, (case.gallery, case.judged), map_names=(), size=64)


def test_few_pictures_have_one_note_and_many_have_none():
    case = ailing.cases(SEED)["healthy"]()
    few = case.gallery.subset(slice(0, 150)), case.judged.subset(slice(0, 50))
    notes = checks("healthy", few).notes
    assert [note for note in notes if "few" in note] == [
        "200 pictures are few: below about 400, what is said of classes is uncertain"
    ]
    assert not any("few" in note for note in checked("healthy").notes)


def test_a_file_of_zeros_is_no_file_fed_as_in_training():
    def zeros(encoder):
        for value in encoder.state_dict().values():
            value.zero_()

    case = ailing.cases(SEED)["healthy"]()
    found = report.check(ailing.changed(case.opened, zeros), (case.gallery, case.judged), map_names=())
    assert lines(found)["what it is fed"].level == UNKNOWN
    assert lines(found)["against untrained"].value == "all its weights are 0" and found.level == BROKEN
    Page(found.html())


def test_an_inner_layer_has_no_range():
    judged = {v.name: v for v in verdicts.judge(healthy(), {}, "normalisations.1")}
    for name in verdicts.GEOMETRY:
        assert judged[name].level == UNKNOWN and "range not known" in judged[name].expected
    assert judged["classes"].level == GOOD


def test_the_highest_rank_there_could_be_stands_beside_the_rank():
    case = ailing.cases(SEED)["healthy"]()
    few = checks("healthy", (case.gallery, case.judged.subset(slice(0, 40))))
    assert "of at most 39 (128 features, 40 pictures)" in lines(few)["dimensions in use"].value
    assert "of at most 128" in lines(checked("healthy"))["dimensions in use"].value


def test_a_method_without_temperature_is_not_advised_to_give_one():
    case = ailing.cases(SEED)["healthy"]()
    case.opened.temperature, case.opened.settings = None, {"method": "byol"}
    found = report.check(case.opened, (case.gallery, case.judged), map_names=(), temperature=0.2)
    says = lines(found)["temperature"].says
    assert "BYOL trains without a temperature" in says and "--temperature" not in says
    (note,) = found.notes
    assert note.startswith("the τ that was given, 0.2, is not used: BYOL trains without a temperature")


def test_a_temperature_that_is_given_counts_where_the_layout_is_one_of_many():
    case = ailing.cases(SEED)["healthy"]()
    case.opened.temperature, case.opened.origin = None, "names of many (solo-learn, VICReg)"
    found = report.check(case.opened, (case.gallery, case.judged), map_names=(), quick=True, temperature=0.2)
    assert "τ = 0.2: " in lines(found)["temperature"].value and not any("τ" in note for note in found.notes)
    assert "τ not in the file" in found.examination.facts["encoder"]


def test_baselines_have_a_probe_beside_them():
    n = checked("healthy").examination.numbers
    assert n["probe"] > n["probe_raw"] + 0.1 and n["probe"] > n["probe_untrained"]


def test_the_probe_of_raw_pixels_sees_their_principal_directions():
    draw = torch.Generator().manual_seed(0)
    drawn_by, judged = torch.randn(40, 300, generator=draw), torch.randn(7, 300, generator=draw)
    first, second = neighbours.principal(drawn_by, judged)
    mean = drawn_by.mean(dim=0)
    axes = torch.linalg.svd((drawn_by - mean).double(), full_matrices=False)[2][:39]
    for found, rows in ((first, drawn_by), (second, judged)):
        expected = (rows - mean).double() @ axes.T
        assert torch.allclose(found.double() @ found.double().T, expected @ expected.T, atol=1e-2)


def test_colours_are_averaged_where_that_is_asked():
    found = checks("healthy, digits", ailing.pictures("scenes"), grey=True)
    images = ailing.pictures("scenes")[1].images.double().mean(dim=1, keepdim=True).round()
    assert torch.equal(found.examination.judged.images.double(), images)
    assert "colours averaged" in found.examination.facts["pictures"]

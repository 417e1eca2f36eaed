"""A check: every ailment shows its symptom, well encoders pass, and the page is whole and needs nothing."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from functools import cache
from html.parser import HTMLParser

import pytest
import torch
from torch import nn

from clutils import __main__ as command_line
from clutils import checkpoints, figures, report
from clutils.report import BROKEN, GOOD, LOOK, UNKNOWN, Unfit, examination, neighbours, verdicts
from clutils.report import lines as rules
from tests import ailing

SEED = 11  # no threshold was set on it, nor on the next five: those saw 0, 1 and 2
OTHERS = {"well, τ = 0.5": 12, "too hot": 13, "too cold": 14, "nothing pushed": 15, "mispaired": 16}


@cache
def checked(name: str) -> report.Report:
    case = ailing.cases(OTHERS.get(name, SEED))[name]()
    return report.check(case.opened, (case.gallery, case.judged), map_names=(), **case.options)


# ---- the verdicts ------------------------------------------------------------------------------------------

WELL = [
    "well",
    "well, τ = 0.5",
    "well, digits",
    "well, by ImageNet's normalisation",
    "well, the head",
]
ILL = {  # what ails it -> the lines that must say so, and how loudly
    "collapsed": {"spread": BROKEN, "dimensions in use": BROKEN, "dead units": BROKEN},
    "nearly collapsed": {"spread": BROKEN, "the space of the loss": BROKEN},
    "nothing pushed": {"the space of the loss": BROKEN, "dimensions in use": BROKEN},
    "one dimension": {"dimensions in use": BROKEN},
    "few units": {"dead units": BROKEN},
    "untrained": {"against untrained": BROKEN},
    "a layer forgotten": {"the space of the loss": BROKEN},
    "too hot": {"temperature": BROKEN},
    "too cold": {"temperature": BROKEN},
    "mispaired": {"the space of the loss": BROKEN, "views of a picture": LOOK},
    "normalised, and should not be": {"what it is fed": BROKEN},
    "not normalised, and should be": {"what it is fed": BROKEN},
    "0 to 255": {"what it is fed": BROKEN},
    "labels shuffled": {"classes": BROKEN},
    "labels of the gallery renamed": {"class names": BROKEN},
}


@pytest.mark.parametrize("name", WELL)
def test_a_well_encoder_passes_every_line(name):
    faults = [v for v in checked(name).verdicts if v.level not in (GOOD, UNKNOWN)]
    assert faults == []
    assert checked(name).level == GOOD


@pytest.mark.parametrize("name", ILL)
def test_each_ailment_shows_its_symptom(name):
    for line, expected in ILL[name].items():
        found = next(v for v in checked(name).verdicts if v.name == line)
        assert found.level == expected, found
        assert found.causes
    assert checked(name).level == BROKEN


def test_at_least_twelve_ailments_are_told_from_one_another():
    """No two of them have the same set of lines that are not good: the page points somewhere."""
    pictures = {
        name: frozenset((v.name, v.level) for v in checked(name).verdicts if v.level != GOOD) for name in ILL
    }
    assert len(set(pictures.values())) >= 12


def test_a_wrong_normalisation_is_named_by_the_right_one():
    says = next(
        v.says for v in checked("not normalised, and should be").verdicts if v.name == "what it is fed"
    )
    assert "ImageNet's" in says
    says = next(
        v.says for v in checked("normalised, and should not be").verdicts if v.name == "what it is fed"
    )
    assert "'none'" in says


def test_shuffled_labels_are_blamed_on_the_labels_and_not_on_the_encoder():
    found = {v.name: v for v in checked("labels shuffled").verdicts}
    assert "labels and pictures seem not to belong together" in found["classes"].says
    assert found["spread"].level == found["views of a picture"].level == GOOD


def test_each_level_can_be_reached_by_each_line_that_has_it():
    """A threshold that no value crosses would be no threshold."""
    n = dict(checked("well").examination.numbers)
    sweeps = {
        "what it is fed": ("input_gap", (0.01, 0.3, 2.0)),
        "spread": ("spread", (0.5, 0.1, 0.01)),
        "dimensions in use": ("effective_rank", (30.0, 5.0, 1.5)),
        "dead units": ("dead", (0.0, 0.3, 0.9)),
        "the space of the loss": ("head_uniformity", (-2.0, -0.8, -0.1)),
        "temperature": ("share_of_negatives", (0.4, 0.93, 0.99)),
    }
    for line, (key, values) in sweeps.items():
        levels = []
        for value in values:
            found = verdicts.judge(n | {key: value}, {})
            levels.append(next(v.level for v in found if v.name == line))
        assert levels == [GOOD, LOOK, BROKEN], line


# ---- what is measured --------------------------------------------------------------------------------------


def test_the_same_check_twice_gives_the_same_numbers():
    case = ailing.cases(SEED)["well, digits"]()
    again = report.check(case.opened, (case.gallery, case.judged), map_names=())
    assert again.examination.numbers == checked("well, digits").examination.numbers


def test_the_class_vote_is_that_of_the_measures():
    numbers = checked("well").examination.numbers
    case = ailing.cases(SEED)["well"]()
    run = ailing.trained("scenes", 0.2, SEED)
    from clutils import measures

    z, judged = run.embed(case.gallery), run.embed(case.judged)
    expected = measures.knn_accuracy(z, case.gallery.labels, judged, case.judged.labels, k=20)
    assert numbers["knn"] == pytest.approx(expected, abs=1e-9)
    assert numbers["effective_rank"] == pytest.approx(measures.effective_rank(judged), rel=1e-5)


def test_renaming_finds_the_best_of_all_permutations():
    from itertools import permutations

    draw = torch.Generator().manual_seed(0)
    y, predicted = torch.randint(4, (2, 60), generator=draw)
    best = max(
        sum(int(p[int(b)] == int(a)) for a, b in zip(y, predicted, strict=True))
        for p in permutations(range(4))
    )
    assert neighbours.relabelled(y, predicted, 4) == pytest.approx(best / 60)


def test_the_gap_of_what_it_is_fed_is_the_divergence_of_two_normal_distributions():
    """A network whose first normalisation remembers exactly, and then twice the deviation."""
    net = nn.Sequential(nn.Conv2d(3, 2, 1, bias=False), nn.BatchNorm2d(2), nn.AdaptiveAvgPool2d(1))
    seen = torch.rand(64, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        out = net[0](seen).transpose(0, 1).flatten(1).double()
    mean, var = out.mean(dim=1), out.var(dim=1)
    prepared = examination.Prepared(net)
    assert examination._gap(prepared, net[1], seen, (mean, var)) == pytest.approx(0, abs=1e-6)
    assert examination._gap(prepared, net[1], seen, (mean, 4 * var)) == pytest.approx(
        (torch.tensor(4.0).log() + 0.25 - 1).item() / 2, rel=1e-4
    )
    shifted = examination._gap(prepared, net[1], seen, (mean + var.sqrt(), var))
    assert shifted == pytest.approx(0.5, rel=1e-4)


def test_what_can_not_be_known_is_said_and_not_guessed():
    case = ailing.cases(SEED)["well"]()
    case.opened.temperature = None
    found = {v.name: v for v in report.check(case.opened, (case.gallery, case.judged), map_names=()).verdicts}
    assert found["temperature"].level == UNKNOWN and "--temperature" in found["temperature"].says
    assert found["the space of the loss"].level == GOOD
    case.opened.head = None
    found = {v.name: v for v in report.check(case.opened, (case.gallery, case.judged), map_names=()).verdicts}
    assert "no projection head" in found["temperature"].says


def test_pictures_without_labels_are_measured_without_classes():
    gallery, judged = ailing.pictures("scenes")
    nameless = [
        type(p)(p.images, torch.full_like(p.labels, -1), (), None, p.source) for p in (gallery, judged)
    ]
    found = report.check(ailing.cases(SEED)["well"]().opened, tuple(nameless), map_names=())
    assert "knn" not in found.examination.numbers and found.level == GOOD
    assert "no labels" in next(v.says for v in found.verdicts if v.name == "classes")


def test_a_layer_within_can_be_asked_and_one_that_is_not_there_is_refused():
    case = ailing.cases(SEED)["well"]()
    found = report.check(case.opened, (case.gallery, case.judged), map_names=(), layer="normalisations.1")
    assert found.examination.numbers["dimensions"] == 32
    with pytest.raises(
        ValueError, match="layer is 'nope', but must be encoder, head or a module: convolutions"
    ):
        report.check(case.opened, (case.gallery, case.judged), map_names=(), layer="nope")


def test_grey_pictures_reach_an_encoder_of_three_channels_and_any_size_is_made_to_fit():
    prepared = examination.Prepared(nn.Flatten(), channels=3, side=4)
    assert prepared(torch.rand(2, 1, 8, 8)).shape == (2, 48)
    with pytest.raises(Unfit, match="pictures have 3 channels, but the encoder takes 1: --grey"):
        examination.Prepared(nn.Flatten(), channels=1)(torch.rand(2, 3, 8, 8))
    with pytest.raises(ValueError, match="std must be above 0"):
        examination.Prepared(nn.Flatten(), std=(0.0,))


# ---- what a line rests on ----------------------------------------------------------------------------------


def lines(found: report.Report) -> dict[str, report.Verdict]:
    return {v.name: v for v in found.verdicts}


@pytest.mark.parametrize("few", [20, 40, 125])
def test_right_labels_are_not_blamed_however_few_pictures_there_are(few):
    case = ailing.cases(SEED)["well"]()
    some = case.gallery.subset(slice(0, 3 * few)), case.judged.subset(slice(0, few))
    found = report.check(case.opened, some, map_names=())
    assert found.level == GOOD, found.verdicts
    n = dict(found.examination.numbers)
    by_luck = {"knn": n["chance"], "probe": n["chance"], "knn_raw": n["chance"], "knn_untrained": n["chance"]}
    for knn, gallery in ((n["chance"], 0.3), (n["chance"], 0.2), (0.0, 0.1), (0.0, n["chance"])):
        luck = by_luck | {"knn": knn, "knn_gallery": gallery}
        judged = {v.name: v for v in verdicts.judge(n | luck, {})}["classes"]
        assert judged.level == UNKNOWN and "too few to say" in judged.says and not judged.causes


def classes_at_chance(**changes: float) -> report.Verdict:
    """Of a well encoder's numbers, those that labels decide at chance, but for `changes`."""
    n = dict(checked("well").examination.numbers) | {"pictures": 300}
    asked = ("knn", "probe", "knn_raw", "probe_raw", "knn_untrained", "probe_untrained")
    n |= dict.fromkeys(asked, n["chance"]) | {"knn_gallery": n["chance_gallery"]}
    return {v.name: v for v in verdicts.judge(n | changes, {})}["classes"]


def test_labels_are_blamed_only_where_nothing_shows_that_they_belong_to_the_pictures():
    assert "belong together" in classes_at_chance().says
    assert classes_at_chance(pictures=199).level == UNKNOWN
    chance = checked("well").examination.numbers["chance"]
    for sign in ("knn_raw", "probe_raw", "knn_untrained", "probe_untrained"):
        for knn in (chance, 0.0):  # a worse encoder is no sign against the labels
            blamed = classes_at_chance(**{sign: chance + 0.06, "knn": knn})
            assert "belong together" not in blamed.says and "labels" not in " ".join(blamed.causes)
    assert "belong together" not in classes_at_chance(gallery=300).says  # few of each class to be neighbours
    assert "labelled otherwise" in classes_at_chance(knn_gallery=0.4).says
    assert "labelled otherwise" not in classes_at_chance(knn_gallery=0.4, pictures=150).says


def test_the_interval_of_a_share_is_wilsons():
    """Both ends solve |share - p| = z sqrt(p (1 - p) / n)."""
    for share, count in ((0.0, 20), (0.1, 125), (0.5, 1000)):
        for p in rules._interval(share, count):
            assert abs(share - p) == pytest.approx(2.576 * math.sqrt(max(p * (1 - p), 0) / count), abs=1e-6)


def test_asking_the_gallery_leaves_the_asked_picture_out():
    draw = torch.Generator().manual_seed(0)
    z, y = torch.randn(60, 5, generator=draw), torch.randint(3, (60,), generator=draw)
    right = 0
    for i in range(60):
        rest = [j for j in range(60) if j != i]
        right += int(neighbours.predicted(z[rest], y[rest], z[i : i + 1], 7)) == int(y[i])
    assert neighbours.left_out(z, y, 7)["knn_gallery"] == pytest.approx(right / 60)


def test_pictures_of_another_kind_are_not_blamed_on_the_training():
    case = ailing.cases(SEED)["well"]()
    coloured = []
    for digits in ailing.pictures("digits"):
        images = digits.images.repeat_interleave(4, 2).repeat_interleave(4, 3).expand(-1, 3, -1, -1)
        coloured.append(dataclasses.replace(digits, images=images.contiguous()))
    found = report.check(case.opened, tuple(coloured), map_names=())
    assert found.level == LOOK
    for v in found.verdicts:
        if v.name != "what it is fed" and v.level != UNKNOWN:
            assert v.remark == "on these pictures"
        if v.causes:
            assert v.causes[0] == "pictures of another kind than it was trained on"
    assert "unlike those that it was trained on" in found.summary_text
    assert "(on these pictures)" in found.html() and "(on these pictures)" in str(found)


def test_a_constant_is_broken_on_whatever_pictures():
    n = dict(checked("collapsed").examination.numbers) | {"input_gap": 1.0, "input_gap_none": 1.0}
    judged = {v.name: v for v in verdicts.judge(n, {})}
    assert judged["what it is fed"].level == LOOK and judged["spread"].level == BROKEN


def test_what_follows_from_never_trained_is_no_red_of_its_own():
    red = [v.name for v in checked("untrained").verdicts if v.level == BROKEN]
    assert red == ["against untrained"]
    rests = [v for v in checked("untrained").verdicts if v.level == LOOK]
    assert rests and {v.remark for v in rests} == {"follows from 'against untrained'"}
    assert re.fullmatch(
        r"Broken: against untrained\. \d lines more follow.*", checked("untrained").summary_text
    )


def levels(n: dict[str, float]) -> dict[str, report.Verdict]:
    return {v.name: v for v in verdicts.judge(n, {})}


def test_a_collapse_does_not_follow_from_never_trained():
    """Fresh weights of that shape spread their pictures: a constant has another cause."""
    n = dict(checked("untrained").examination.numbers)
    assert n["fresh_spread"] > rules.CONSTANT and n["fresh_effective_rank"] > 1
    fallen = levels(n | {"spread": 0.0, "dead": 1.0, "effective_rank": 1.0, "first_direction": 1.0})
    for name in ("spread", "dead units", "dimensions in use"):
        assert fallen[name].level == BROKEN and not fallen[name].remark
    alone = levels(n | {"dead": 0.7, "fresh_dead": 0.0})["dead units"]  # fresh weights have no dead units
    assert alone.level == BROKEN and not alone.remark
    both = levels(n | {"dead": 0.7, "fresh_dead": 0.6})["dead units"]
    assert both.level == LOOK and both.remark == "follows from 'against untrained'"


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
    learned = dict(checked("well").examination.numbers) | {"plain_normalisations": 1.0}
    assert levels(learned)["against untrained"].level == GOOD  # it was frozen, and classes were learned


def test_a_temperature_beside_the_files_own_is_said_and_is_no_red():
    case = ailing.cases(SEED)["well"]()
    found = report.check(case.opened, (case.gallery, case.judged), map_names=(), temperature=0.005)
    line = lines(found)["temperature"]
    assert line.level == LOOK and "τ = 0.005 (given; the file says 0.2)" in line.value
    same = report.check(case.opened, (case.gallery, case.judged), map_names=(), temperature=0.2)
    assert "given" not in lines(same)["temperature"].value


def test_classes_are_good_only_where_they_are_above_fresh_weights_too():
    n = dict(checked("well").examination.numbers)
    assert levels(n)["classes"].level == GOOD
    as_fresh = n | {"knn_untrained": n["knn_beside_untrained"], "probe_untrained": n["probe"]}
    assert levels(as_fresh)["classes"].level == LOOK
    never = levels(n | {"never_trained": 1.0})["classes"]  # whatever it is above, it is fresh weights itself
    assert never.level == LOOK and "as fresh weights may be" in never.says
    assert "not clearly better than the same network with fresh weights" in levels(as_fresh)["classes"].says


def test_a_lead_by_knn_alone_is_said_to_be_that():
    n = dict(checked("well").examination.numbers)
    assert "not by the probe" not in levels(n)["against untrained"].says
    alone = levels(n | {"probe_untrained": n["probe"] + 0.02})["against untrained"]
    assert alone.level == GOOD and alone.says.endswith("by kNN; not by the probe.")


def test_a_side_that_does_not_fit_is_refused_before_anything_is_resized():
    case = ailing.cases(SEED)["well"]()
    for size in (7, 1025):
        with pytest.raises(Unfit, match=f"size is {size}, but must be from 8 to 1024"):
            report.check(case.opened, (case.gallery, case.judged), map_names=(), size=size)
    fixed = dataclasses.replace(case.opened, side=224)
    with pytest.raises(Unfit, match="takes pictures of 224 x 224 alone"):
        report.check(fixed, (case.gallery, case.judged), map_names=(), size=64)


def test_few_pictures_have_one_note_and_many_have_none():
    case = ailing.cases(SEED)["well"]()
    few = case.gallery.subset(slice(0, 150)), case.judged.subset(slice(0, 50))
    notes = report.check(case.opened, few, map_names=()).notes
    assert [note for note in notes if "few" in note] == [
        "200 pictures are few: below about 400, what is said of classes is uncertain"
    ]
    assert not any("few" in note for note in checked("well").notes)


def test_words_on_the_terminal_have_their_scale():
    said = str(checked("well"))
    assert "(statistics of the first layer; 0 = as in training)" in said
    assert "(1 = stays where it is, 0 = as far away as another picture)" in said
    assert "points apart may be luck" in said and "on count" not in said


def test_a_file_of_zeros_is_no_file_fed_as_in_training():
    def zeros(encoder):
        for value in encoder.state_dict().values():
            value.zero_()

    case = ailing.cases(SEED)["well"]()
    found = report.check(ailing.changed(case.opened, zeros), (case.gallery, case.judged), map_names=())
    assert lines(found)["what it is fed"].level == UNKNOWN
    assert lines(found)["against untrained"].value == "all its weights are 0" and found.level == BROKEN
    Page(found.html())


def test_robustness_is_as_good_as_the_worst_that_training_has():
    n = dict(checked("well").examination.numbers)
    judged = {v.name: v for v in verdicts.judge(n | {"kept_grey": 0.04}, {})}["robustness"]
    assert judged.level == LOOK and "grey (0.04)" in judged.says and "colour" in judged.causes[0]
    assert lines(checked("well, digits"))["robustness"].level == GOOD  # digits are never mirrored
    assert "flip" in lines(checked("well, digits"))["robustness"].says


def test_an_inner_layer_has_no_range():
    n = dict(checked("well").examination.numbers)
    judged = {v.name: v for v in verdicts.judge(n, {}, "normalisations.1")}
    for name in verdicts.GEOMETRY:
        assert judged[name].level == UNKNOWN and "range not known" in judged[name].expected
    assert judged["classes"].level == GOOD


def test_classes_at_chance_have_no_good_names():
    assert lines(checked("labels shuffled"))["class names"].level == UNKNOWN


def test_the_highest_rank_there_could_be_stands_beside_the_rank():
    case = ailing.cases(SEED)["well"]()
    few = report.check(case.opened, (case.gallery, case.judged.subset(slice(0, 40))), map_names=())
    assert "of at most 39 (128 features, 40 pictures)" in lines(few)["dimensions in use"].value
    assert "of at most 128" in lines(checked("well"))["dimensions in use"].value


def test_a_method_without_temperature_is_not_advised_to_give_one():
    case = ailing.cases(SEED)["well"]()
    case.opened.temperature, case.opened.settings = None, {"method": "byol"}
    found = report.check(case.opened, (case.gallery, case.judged), map_names=(), temperature=0.2)
    says = lines(found)["temperature"].says
    assert "BYOL trains without a temperature" in says and "--temperature" not in says


def test_statistics_that_have_not_settled_are_not_blamed_on_the_pictures():
    n = dict(checked("well").examination.numbers)
    n |= {name: 1.4 for name in n if name.startswith("input_gap")} | {"batches_seen": 2}
    judged = verdicts.judge(n, {})
    fed = next(v for v in judged if v.name == "what it is fed")
    assert fed.causes[0].startswith("saved after a few steps") and not any(v.remark for v in judged)


def test_baselines_have_a_probe_beside_them():
    n = checked("well").examination.numbers
    assert n["probe"] > n["probe_raw"] + 0.1 and n["probe"] > n["probe_untrained"]
    assert "probe, raw pixels 0." in figures.alt(checked("well").figures()["Classes"])


def test_the_probe_of_raw_pixels_sees_their_principal_directions():
    draw = torch.Generator().manual_seed(0)
    told, judged = torch.randn(40, 300, generator=draw), torch.randn(7, 300, generator=draw)
    first, second = neighbours.principal(told, judged)
    mean = told.mean(dim=0)
    axes = torch.linalg.svd((told - mean).double(), full_matrices=False)[2][:39]
    for found, rows in ((first, told), (second, judged)):
        expected = (rows - mean).double() @ axes.T
        assert torch.allclose(found.double() @ found.double().T, expected @ expected.T, atol=1e-2)


def test_colours_are_averaged_where_that_is_asked():
    case = ailing.cases(SEED)["well, digits"]()
    found = report.check(case.opened, ailing.pictures("scenes"), map_names=(), grey=True)
    images = ailing.pictures("scenes")[1].images.double().mean(dim=1, keepdim=True).round()
    assert torch.equal(found.examination.judged.images.double(), images)
    assert "colours averaged" in found.examination.facts["pictures"]


# ---- the page ----------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Everything that a page would load, its pictures without alt text, and its unclosed tags."""

    VOID = ("meta", "img", "br", "link", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads, self.mute, self.open = [], 0, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.loads += [
            v for k, v in given.items() if k in ("src", "href", "data") and not v.startswith("data:")
        ]
        self.mute += tag == "img" and len(given.get("alt", "")) < 20
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def whole() -> report.Report:
    case = ailing.cases(SEED)["well, digits"]()
    return report.check(case.opened, (case.gallery, case.judged), map_names=("t-SNE",))


def test_the_page_is_one_file_that_loads_nothing_and_says_every_verdict(whole):
    text = whole.html()
    page = Page(text)
    assert page.loads == [] and page.mute == 0 and page.open == []
    assert "url(" not in text and "@import" not in text and "prefers-color-scheme: dark" in text
    assert "default-src 'none'" in text and "width=device-width" in text and "@media print" in text
    assert text.count("<img") == len(whole.figures()) >= 9
    for v in whole.verdicts:
        assert v.says.replace("'", "&#x27;") in text
    assert whole.summary_text in text and "<details><summary>What the words mean" in text
    for seed in examination.SEEDS:
        assert f"trustworthiness_t-SNE_{seed}" in whole.examination.numbers


def test_the_json_holds_every_number_and_is_the_same_in_the_page(whole):
    data = json.loads(whole.json())
    assert data["numbers"]["knn"] == whole.examination.numbers["knn"]
    assert {v["name"] for v in data["verdicts"]} == {v.name for v in whole.verdicts}
    held = re.search(r'<script type="application/json" id="numbers">(.*?)</script>', whole.html(), re.DOTALL)
    assert json.loads(held[1]) == data


def test_a_collapsed_encoder_still_gets_its_page():
    found = checked("collapsed")
    assert Page(found.html()).mute == 0
    json.loads(found.json())


@pytest.mark.parametrize("norms", [torch.full((50,), 11.3), torch.zeros(50), torch.linspace(1, 2, 50)])
def test_lengths_can_be_drawn_though_they_are_all_equal(norms):
    from clutils.figures import report as drawn

    ax = drawn.lengths(norms[:, None] * nn.functional.normalize(torch.ones(50, 8), dim=1))
    assert sum(bar.get_height() for bar in ax.patches) == 50  # none is left out
    left, right = ax.patches[0].get_x(), ax.patches[-1].get_x() + ax.patches[-1].get_width()
    assert right - left >= 0.0199 * norms.mean() and right > left


def test_a_figure_that_fails_is_a_line_on_the_page_and_no_loss(whole, monkeypatch):
    def fails(*given):
        raise RuntimeError("bins <of> no $width")

    monkeypatch.setattr(report.drawn, "lengths", fails)
    monkeypatch.setattr(report.drawn, "spectrum", lambda values: torch.zeros(2))  # it is no figure
    text = whole.html()
    assert "Lengths could not be drawn: RuntimeError: bins &lt;of&gt; no $width" in text
    assert "Dimensions in use could not be drawn" in text
    assert Page(text).mute == 0 and "Who is taken for whom" in text


def test_the_summary_says_what_is_expected_and_the_likely_cause_of_what_is_broken():
    found = checked("nearly collapsed")
    texts = [text.get_text().replace("\n", " ") for text in found.summary().axes[0].texts]
    for v in found.verdicts:
        assert v.expected in texts
        assert (f"likely cause: {v.causes[0]}" in texts) == (v.level == BROKEN) if v.causes else True
    assert sum("judged pictures, beside what encoders show that are well" in text for text in texts) == 1


def test_names_from_a_file_can_not_write_into_the_page(whole):
    evil = "</script><script>alert(1)</script><b onclick=x>"
    whole.examination.facts["file"] = evil
    text = whole.html()
    assert "<script>alert" not in text and "<b onclick" not in text
    whole.examination.facts["file"] = "a"


@pytest.mark.parametrize(
    ("suffix", "start"), [(".html", b"<!DOCTYPE"), (".json", b"{"), (".pdf", b"%PDF"), (".png", b"\x89PNG")]
)
def test_each_kind_of_file_is_written(whole, suffix, start, tmp_path):
    assert whole.write(tmp_path / "new" / f"a{suffix}").read_bytes().startswith(start)
    with pytest.raises(ValueError, match=r"must end in \.html"):
        whole.write(tmp_path / "a.txt")


# ---- the command -------------------------------------------------------------------------------------------


def command(*arguments: object) -> int:
    try:
        return command_line.main(["check", *map(str, arguments)])
    except SystemExit as exit:
        return exit.code


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.pt"
    ailing.trained("digits", 0.2, SEED).save(path)
    return path


def test_the_command_writes_what_is_asked_for(file, tmp_path, capsys):
    out = tmp_path / "a.html", tmp_path / "a.json"
    given = ("--data", "digits", "--pictures", 1200, "--maps", "none")
    assert command(file, *given, "--out", out[0], "--out", out[1]) == 0
    said = capsys.readouterr()
    first = said.out.splitlines()[0]
    assert first == "1,200 pictures, of which 300 are judged (the others lend their labels)"
    assert "run.pt on" in said.out and "✓ spread" in said.out and "no pictures were named" not in said.out
    stages = re.findall(r"^\[ *\d+ s\] (\d) of 7: ", said.err, re.MULTILINE)
    assert stages == list("234567")  # a log shows where it is, though nobody watches
    assert re.search(r"^\[ *\d+ s\] about \d+ s for 1,200 pictures", said.err, re.MULTILINE)
    assert json.loads(out[1].read_text())["level"] in (GOOD, LOOK)


def test_two_files_come_side_by_side(file, tmp_path, capsys):
    assert (
        command(
            file, file, "--data", "digits", "--pictures", 400, "--maps", "none", "--out", tmp_path / "b.html"
        )
        == 0
    )
    text = (tmp_path / "b.html").read_text()
    named = "/".join(file.parts[-2:])  # files of one name are told apart by their folders
    assert Page(text).loads == [] and f"A: {named}" in text and f"B: {named}" in text
    cells = re.findall(
        r'<td data-of="([AB])">', text
    )  # which file a cell is of, where they stand in a column
    assert cells.count("A") == cells.count("B") >= 10
    assert text.count("Expected: ") >= 20 and "Expected ranges hold" in text


def test_the_folder_of_a_run_stands_for_the_checkpoint_in_it(file, tmp_path, capsys):
    given = ("--data", "digits", "--pictures", 80, "--maps", "none", "--out", tmp_path / "a.json")
    (tmp_path / "mine").mkdir()
    assert command(tmp_path / "mine", *given) == 1
    assert "mine is a folder, but a checkpoint is a file" in capsys.readouterr().err
    (tmp_path / "mine" / "checkpoint.pt").write_bytes(file.read_bytes())
    assert command(tmp_path / "mine", *given) == 0
    said = capsys.readouterr().out
    assert "mine/checkpoint.pt on" in said and "mine, checkpoint.pt was opened" in said


def test_two_files_have_one_json_with_both_by_name(file, tmp_path):
    out = tmp_path / "both.json"
    assert command(file, file, "--data", "digits", "--pictures", 400, "--maps", "none", "--out", out) == 0
    held = json.loads(out.read_text())
    assert list(held) == [str(file), f"{file} (2)"]
    assert held[str(file)]["numbers"] == held[f"{file} (2)"]["numbers"]


def test_fail_on_tells_scripts_by_the_exit_code(file, tmp_path, capsys):
    given = ("--data", "digits", "--pictures", 400, "--maps", "none", "--out", tmp_path / "a.json")
    spoilt = (*given, "--mean", "0.5", "--std", "0.01")
    assert command(file, *given, "--fail-on", "broken") == 0
    assert command(file, *spoilt) == 0
    assert command(file, *spoilt, "--fail-on", "broken") == command(file, *spoilt, "--fail-on", "look") == 3


def test_pictures_that_nobody_named_are_said_to_be_generated(file, tmp_path, capsys):
    out = tmp_path / "a.html"
    given = ("--pictures", 120, "--maps", "none", "--grey", "--out", out)
    assert command(file, *given) == 0
    assert "no pictures were named (--data)" in capsys.readouterr().out
    assert "No pictures were named (--data)" in out.read_text()


def test_a_layer_that_is_not_there_is_bad_usage_and_says_which_there_are(file, capsys):
    assert command(file, "--data", "digits", "--pictures", 400, "--layer", "nope") == 2
    assert re.fullmatch(r"clutils: .+'nope'.+convolutions, .+\n", capsys.readouterr().err)


def test_a_file_that_is_no_picture_is_named_though_it_lies_in_the_test_split(file, tmp_path, capsys):
    from PIL import Image

    for split in ("train", "test"):
        for kind in "ab":
            (tmp_path / split / kind).mkdir(parents=True)
            for k in range(40):
                Image.new("RGB", (8, 8), (6 * k, 0, 0)).save(tmp_path / split / kind / f"{k}.png")
    (tmp_path / "test" / "b" / "7.png").write_text("no picture")
    assert command(file, "--data", f"folder:{tmp_path}") == 1
    said = capsys.readouterr().err
    assert "b/7.png (no picture is in it" in said and "repair them or take them away" in said


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nothing.pt"], 1, "there is no file"),
        (["."], 1, "is a folder"),
        (["x", "y", "z"], 2, "not 3"),
        ([], 2, "FILE"),
        (["x", "--out", "a.txt"], 2, "must end in"),
        (["x", "--mean", "1,2"], 2, "not one number, or three"),
        (["x", "--std", "0"], 2, "--std: 0 must be above 0"),
        (["x", "--size", "7"], 2, "--size: 7 is not a whole number from 8 to 1024"),
        (["x", "--size", "1025"], 2, "--size: 1025 is not a whole number from 8 to 1024"),
        (["x", "--out", "nowhere/at/a.html"], 2, "can't be written: there is no folder nowhere/at"),
        (["x", "--arch", "resnet"], 2, "--arch: arch is 'resnet'; there are conv16"),
        (["x", "--arch", "resnet18-odd"], 2, "option 'odd'; there are maxpool"),
        (["x", "--out", "tests/ailing.py/a.html"], 2, "--out tests/ailing.py/a.html can't be written"),
        (["x", "y", "--out", "a.png"], 2, "are an .html page or .json"),
        (["x", "--fail-on", "good"], 2, "--fail-on"),
        (["x", "--temperature", "-1"], 2, "above 0"),
        (["x", "--pictures", "1"], 1, "at least 80 pictures are needed, but only 1 asked for"),
        (["x", "--data", "nope"], 1, "no data called 'nope'"),
    ],
)
def test_a_mistake_is_one_line(arguments, code, said, capsys):
    given = arguments if "--data" in arguments else [*arguments, "--data", "digits"]
    assert command(*given) == code
    text = capsys.readouterr().err
    assert re.fullmatch(r"clutils: .+\n", text) and said in text


def test_a_hostile_file_is_one_line_and_exit_code_1(tmp_path, capsys):
    import os

    class Runs:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'sung'}",)

    torch.save({"state_dict": Runs()}, tmp_path / "evil.pt")
    assert command(tmp_path / "evil.pt", "--data", "digits") == 1
    assert re.fullmatch(r"clutils: .+harmless names.+\n", capsys.readouterr().err)
    assert not (tmp_path / "sung").exists()


def test_a_module_of_ones_own_is_checked_without_an_untrained_twin():
    run = ailing.trained("digits", 0.2, SEED)
    opened = checkpoints.open(run.method.encoder)
    found = report.check(opened, ailing.pictures("digits"), map_names=())
    assert next(v.level for v in found.verdicts if v.name == "against untrained") == UNKNOWN


def test_the_noise_that_a_run_learned_is_on_its_page():
    from clutils import data, training

    digits = data.load("digits", limit=128)
    run = training.Run("pinda", data=digits, steps=2, batch_size=32)
    run.step()
    opened = ailing.opened(run)
    opened.generator = run.method.noise.eval()
    found = report.check(opened, (digits, digits.subset(slice(0, 100))), map_names=())
    assert "The noise that it learned" in found.figures()
    assert "The noise that it learned" not in checked("well").figures()


def test_easy_classes_are_not_called_better_than_raw_pixels_where_they_are_not():
    n = {"knn": 0.92, "knn_raw": 0.99, "chance": 0.1, "knn_error": 0.02, "pictures": 200}
    n |= {
        "compared": 200,
        "knn_untrained": 0.9,
        "knn_beside_untrained": 0.92,
        "knn_gallery": 0.92,
        "probe": 0.96,
        "probe_raw": 0.96,
        "probe_untrained": 0.9,
    }
    said = rules.classes(n, {}, "the encoder's output").says
    assert "no more often than in raw pixels" in said
    better = rules.classes(n | {"knn_raw": 0.5, "knn_untrained": 0.5}, {}, "the encoder's output").says
    assert "more often than in raw pixels" in better and "no more often" not in better

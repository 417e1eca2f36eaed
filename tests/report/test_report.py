"""A check: every ailment shows its symptom, well encoders pass, and every number can be trusted."""

import pytest
import torch
from torch import nn

from clutils import checkpoints, data, figures, report
from clutils.report import BROKEN, GOOD, LOOK, UNKNOWN, Unfit, examination, feeding, neighbours, verdicts
from tests.report import ailing
from tests.report.ailing import SEED, SHUFFLES, checked, checks, level

# ---- the verdicts ------------------------------------------------------------------------------------------


HEALTHY = [
    "healthy",
    "healthy, τ = 0.5",
    "healthy, digits",
    "healthy, by ImageNet's normalisation",
    "healthy, the head",
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


def lines(name: str) -> dict[str, report.Verdict]:
    return {v.name: v for v in checked(name).verdicts}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_well_encoder_passes_every_line(name):
    faults = [v for v in checked(name).verdicts if v.level not in (GOOD, UNKNOWN)]
    assert faults == []
    assert checked(name).level == GOOD


@pytest.mark.parametrize("name", ILL)
def test_each_ailment_shows_its_symptom(name):
    for line, expected in ILL[name].items():
        found = lines(name)[line]
        assert found.level == expected and found.causes, found
    assert checked(name).level == BROKEN


def test_at_least_twelve_ailments_are_told_from_one_another():
    """No two of them have the same set of lines that are not good: the page points somewhere."""
    pictures = {
        name: frozenset((v.name, v.level) for v in checked(name).verdicts if v.level != GOOD) for name in ILL
    }
    assert len(set(pictures.values())) >= 12


def test_a_wrong_normalisation_is_named_by_the_right_one():
    assert "--mean imagenet" in lines("not normalised, and should be")["what it is fed"].says
    assert "'none'" in lines("normalised, and should not be")["what it is fed"].says


def test_shuffled_labels_are_blamed_on_the_labels_and_not_on_the_encoder():
    found = lines("labels shuffled")
    assert "labels and pictures seem not to belong together" in found["classes"].says
    assert found["spread"].level == found["views of a picture"].level == GOOD
    every = [checked(f"labels shuffled, {n}") for n in range(SHUFFLES)]
    levels = [level(of, "classes") for of in every]
    assert set(levels) <= {BROKEN, UNKNOWN} and levels.count(BROKEN) > 1, levels
    assert not any("encoder lost" in v.says for of in every for v in of.verdicts)


def test_each_level_can_be_reached_by_each_line_that_has_it():
    """A threshold that no value crosses would be no threshold."""
    n = dict(checked("healthy").examination.numbers)
    sweeps = {
        "what it is fed": ("input_gap", (0.01, 0.3, 2.0)),
        "spread": ("spread", (0.5, 0.1, 0.005)),
        "dimensions in use": ("effective_rank", (30.0, 5.0, 1.5)),
        "dead units": ("dead", (0.0, 0.3, 0.9)),
        "the space of the loss": ("head_uniformity", (-2.0, -0.8, -0.1)),
        "temperature": ("share_of_negatives", (0.4, 0.93, 0.99)),
    }
    for line, (key, values) in sweeps.items():
        found = [{v.name: v.level for v in verdicts.judge(n | {key: value}, {})} for value in values]
        assert [levels[line] for levels in found] == [GOOD, LOOK, BROKEN], line


# ---- what is measured --------------------------------------------------------------------------------------


def test_the_same_check_twice_gives_the_same_numbers():
    again = checks("healthy, digits")
    assert again.examination.numbers == checked("healthy, digits").examination.numbers


def test_the_class_vote_is_that_of_the_measures():
    numbers = checked("healthy").examination.numbers
    case = ailing.cases(SEED)["healthy"]()
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
    orders = ([p[int(b)] for b in predicted] for p in permutations(range(4)))
    best = max(sum(a == int(b) for a, b in zip(order, y, strict=True)) for order in orders)
    assert neighbours.relabelled(y, predicted, 4) == pytest.approx(best / 60)


def test_the_gap_of_what_it_is_fed_is_the_divergence_of_two_normal_distributions():
    """A network whose first normalisation remembers exactly, and then twice the deviation."""
    net = nn.Sequential(nn.Conv2d(3, 2, 1, bias=False), nn.BatchNorm2d(2), nn.AdaptiveAvgPool2d(1))
    seen = torch.rand(64, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        out = net[0](seen).transpose(0, 1).flatten(1).double()
    mean, var = out.mean(dim=1), out.var(dim=1)
    prepared = examination.Prepared(net)
    stretched = (torch.tensor(4.0).log() + 0.25 - 1).item() / 2
    for remembered, expected in (
        ((mean, var), 0.0),
        ((mean, 4 * var), stretched),
        ((mean + var.sqrt(), var), 0.5),
    ):
        found = feeding.gap(prepared, net[1], seen, remembered)
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)


def judged(opened: checkpoints.Opened) -> dict[str, report.Verdict]:
    found = report.check(opened, ailing.pictures("scenes"), map_names=())
    return {v.name: v for v in found.verdicts}


def test_what_can_not_be_known_is_said_and_not_guessed():
    case = ailing.cases(SEED)["healthy"]()
    case.opened.temperature = None
    found = judged(case.opened)
    assert found["temperature"].level == UNKNOWN and "--temperature" in found["temperature"].says
    assert found["the space of the loss"].level == GOOD
    case.opened.head = None
    assert "no projection head" in judged(case.opened)["temperature"].says


def test_pictures_without_labels_are_measured_without_classes():
    found = checks("healthy", tuple(map(ailing.nameless, ailing.pictures("scenes"))))
    assert "knn" not in found.examination.numbers and found.level == GOOD
    assert "no labels" in next(v.says for v in found.verdicts if v.name == "classes")
    said = figures.alt(found.screen())
    assert "No labels of two classes" in said and "do they belong together?" in said


@pytest.mark.parametrize("name", ["vectors:digits", "graphs:motifs", "nodes:karate", "sentences:topics"])
def test_samples_that_are_no_pictures_are_refused_in_one_line(name):
    for given in (name, (data.load(name, limit=20),) * 2):
        with pytest.raises(ValueError, match=r"report\.check: data is .*, but must be pictures") as error:
            report.check(nn.Flatten(), given)
        assert "\n" not in str(error.value)


def test_a_layer_within_can_be_asked_and_one_that_is_not_there_is_refused():
    assert checks(layer="normalisations.1").examination.numbers["dimensions"] == 32
    said = "layer is 'nope', but must be encoder, head or a module: convolutions"
    with pytest.raises(ValueError, match=said):
        checks(layer="nope")


def test_grey_pictures_reach_an_encoder_of_three_channels_and_any_size_is_made_to_fit():
    prepared = examination.Prepared(nn.Flatten(), channels=3, side=4)
    assert prepared(torch.rand(2, 1, 8, 8)).shape == (2, 48)
    with pytest.raises(Unfit, match="pictures have 3 channels, but the encoder takes 1: --grey"):
        examination.Prepared(nn.Flatten(), channels=1)(torch.rand(2, 3, 8, 8))
    with pytest.raises(ValueError, match="std must be above 0"):
        examination.Prepared(nn.Flatten(), std=(0.0,))


def test_a_module_of_ones_own_is_checked_without_an_untrained_twin():
    run = ailing.trained("digits", 0.2, SEED)
    opened = checkpoints.open(run.method.encoder)
    found = report.check(opened, ailing.pictures("digits"), map_names=())
    assert next(v.level for v in found.verdicts if v.name == "against untrained") == UNKNOWN

"""A check of any folder: many classes, few images of each, few images in all."""

import json

import pytest
import torch

from clutils import data, measures, report
from clutils.training import Watcher
from tests.commands.asked import run
from tests.report import ailing
from tests.report.pages import folder


def loaded(path, limit=2000):
    gallery, judged = report.load(f"folder:{path}", limit)
    return gallery, judged, set(gallery.labels.tolist()), set(judged.labels.tolist())


@pytest.mark.parametrize(
    "sizes", [[2] * 30, [4] * 30, [3] * 25, [60, 60, *[1] * 30], [5, 2, 9, 1, 2, 17], [40, 40], [8] * 10]
)
def test_a_quarter_is_judged_whatever_the_class_sizes_and_each_has_a_labelled_image(sizes, tmp_path):
    gallery, judged, lent, asked = loaded(folder(tmp_path, sizes))
    several = sum(size for size in sizes if size > 1)
    assert len(judged) == several // 4 and len(gallery) + len(judged) == sum(sizes)
    assert asked <= lent


def test_a_test_split_of_other_classes_is_split_itself(tmp_path):
    folder(tmp_path / "train", [8] * 5)
    folder(tmp_path / "test", [8] * 5, first=5)
    gallery, judged, lent, asked = loaded(tmp_path)
    assert (len(gallery), len(judged)) == (30, 10) and asked == lent == {5, 6, 7, 8, 9}


def test_the_vote_is_of_no_more_images_than_a_class_has():
    train, test = torch.arange(40) // 2, torch.arange(20)
    assert measures.neighbours_for(train, test) == 2
    assert measures.neighbours_for(torch.arange(400) % 10, test % 10) == 20
    assert measures.neighbours_for(train, test + 20) == 1


def test_a_quick_look_keeps_a_labelled_image_of_each_class_that_is_asked_about():
    labels, names = torch.arange(2000) % 1000, tuple(map(str, range(1000)))
    gallery = data.ImageSet(torch.zeros(2000, 1, 2, 2, dtype=torch.uint8), labels, names, None, "made here")
    judged = gallery.subset(slice(100, 1000))
    quick = report.covering(gallery, judged, True)
    assert len(quick) == 900 and set(quick.labels.tolist()) == set(judged.labels.tolist())
    known = report.covering(gallery, gallery.subset(slice(0, 300)), True)
    assert torch.equal(known.labels, labels[:500])  # where the first 500 have them all, those


def test_rows_sorted_by_class_give_the_numbers_of_mixed_rows():
    """The table, the views and the map take the first rows: kNN was 21 % for 33 %."""
    opened, (gallery, test) = ailing.opened(ailing.untrained("digits")), report.load("digits", 1400)
    by_class = tuple(part.subset(part.labels.argsort(stable=True)) for part in (gallery, test))
    found = [report.check(opened, both, quick=True) for both in ((gallery, test), by_class)]
    mixed, ordered = (one.examination.found for one in found)
    assert ordered.own.knn == pytest.approx(mixed.own.knn, abs=0.05)
    assert ordered.raw.knn == pytest.approx(mixed.raw.knn, abs=0.05)
    first = found[1].examination.judged.labels[:20]
    assert sorted(first.tolist()) == sorted(2 * [*range(10)])
    looks = [Watcher(both, numbers=("probe",)).look(opened.encoder) for both in ((gallery, test), by_class)]
    assert looks[1].numbers["probe"] == pytest.approx(looks[0].numbers["probe"], abs=0.05)
    assert looks[1].knn == pytest.approx(found[1].examination.found.knn, abs=0.05)  # which is the gallery


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.pt"
    ailing.untrained("scenes").save(path)
    return path


@pytest.mark.parametrize(
    ("sizes", "known", "said"),
    [
        ([2] * 60, {"knn", "probe"}, {}),
        ([1] * 80, set(), {"knn": "no test image is of a class that a labelled image has"}),
        ([10, 10], {"knn"}, {}),
        ([16], set(), {"knn": "labels are missing, or of one class"}),
    ],
)
def test_any_folder_has_a_page_and_what_is_not_measured_has_its_reason(
    sizes, known, said, checkpoint, tmp_path
):
    folder(tmp_path / "images", sizes)
    out = tmp_path / "a.html", tmp_path / "a.json"
    given = ("--data", f"folder:{tmp_path / 'images'}", "--out", out[0], "--out", out[1])
    given += () if "probe" in known else ("--quick",)
    assert run("check", checkpoint, *given) == 0
    held = json.loads(out[1].read_text())
    assert known <= held["numbers"].keys()
    assert said.items() <= held["not_measured"].items() and not said.keys() & held["numbers"].keys()
    if held["numbers"]["pictures"] < 20:
        assert held["level"] == report.UNKNOWN and "too few for a diagnosis" in held["summary"]


def test_a_right_vote_counts_though_each_class_has_one_or_two_labelled_images(checkpoint, tmp_path):
    """By 20 neighbours the classes with two would outvote those with one: 1 % where 75 % is right."""
    folder(tmp_path, [2] * 60)
    opened = ailing.opened(ailing.untrained("scenes"))
    found = report.check(opened, f"folder:{tmp_path}", quick=True)
    assert found.examination.numbers["knn_raw"] > 0.6


@pytest.mark.parametrize("large", [1e38, 1e20])
def test_weights_so_large_that_squares_overflow_are_refused_and_not_called_spread(large, tmp_path):
    """They were judged: 'spread: inf of the length differs', good."""
    opened = ailing.opened(ailing.untrained("scenes"))

    def enlarge(encoder):
        encoder.normalisations[-1].weight.fill_(large)

    with pytest.raises(ValueError, match="NaN, infinite, or so large"):
        report.check(ailing.changed(opened, enlarge), ailing.pictures("scenes"), quick=True)
    opened.head[-1].weight.data.fill_(large)
    found = report.check(opened, ailing.pictures("scenes"), quick=True).examination
    assert "not finite" in found.unknown["share_of_negatives"] and found.found.head_uniformity is None

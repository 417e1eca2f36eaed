"""First screen, standard numbers and two encoders compared: what is shown is what was measured."""

import dataclasses
import hashlib
import io
import json

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from clutils import encoders, figures, measures, report
from clutils.figures import png
from clutils.report import examination, rules, screen, standard
from clutils.report.prepared import Prepared
from tests.report import ailing
from tests.report.ailing import SEED


@pytest.fixture(scope="module")
def case() -> ailing.Case:
    return ailing.cases(SEED)["healthy, digits"]()


@pytest.fixture(scope="module")
def few(case) -> tuple:
    return case.gallery.subset(slice(0, 300)), case.judged.subset(slice(0, 100))


@pytest.fixture(scope="module")
def whole(case, few) -> report.Report:
    return report.check(case.opened, few, map_names=())


@pytest.fixture(scope="module")
def quick(case, few) -> report.Report:
    return report.check(case.opened, few, map_names=(), quick=True)


def test_the_screen_has_the_sentence_and_four_read_pictures_in_1280_by_800(quick):
    figure = quick.screen()
    assert Image.open(io.BytesIO(png(figure, scale=1))).size == (1280, 800)
    texts = [text.get_text().replace("\n", " ") for text in figure.texts]
    assert quick.summary_text in texts and set(screen.PANELS) <= set(texts)
    assert len(figure.axes) == 4
    assert f"{1 - quick.examination.numbers['knn']:.0%}: neighbours vote" in figures.alt(figure)
    assert quick._repr_html_().count("<img") == 1


def test_no_sentence_of_the_screen_leaves_it(quick, whole):
    for figure in (quick.screen(), whole.screen()):
        figure.draw_without_rendering()
        for text in figure.texts:
            (x0, y0), (x1, y1) = text.get_window_extent().get_points()
            assert x0 >= 0 and x1 <= 1280 and y0 >= 0 and y1 <= 800, text.get_text()


def test_a_quick_look_is_the_whole_one_stopped_early(quick, whole):
    few_numbers, numbers = quick.examination.numbers, whole.examination.numbers
    assert set(few_numbers) < set(numbers) and "probe" not in few_numbers
    assert {name: numbers[name] for name in few_numbers} == pytest.approx(few_numbers, rel=1e-5)
    unknown = {v.name for v in quick.verdicts if "a quick look" in v.says}
    assert unknown == {"against untrained", "robustness"}
    assert quick.html().count("<img") == len(screen.PANELS) < whole.html().count("<img")
    assert quick.examination.layers == [] and "Layer by layer" not in quick.html()


def test_a_network_under_training_is_looked_at_and_left_as_it_was(case, few, quick):
    net = ailing.trained("digits", 0.2, SEED).method.encoder.train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    found = report.check(net, few, map_names=(), quick=True)
    assert net.training and all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert found.examination.numbers["knn"] == quick.examination.numbers["knn"]


def test_misplaced_pictures_are_those_whose_neighbours_vote_otherwise(whole):
    ax, _ = screen.class_map(whole.examination)
    crosses = sum(len(c.get_offsets()) for c in ax.collections if c.get_zorder() == 4)
    wrong = whole.examination.predicted != whole.examination.judged.labels
    assert crosses == int(wrong.sum()) > 0


def test_fresh_weights_stand_beside_where_they_can_be_made(whole, case, few):
    assert "fresh weights" in screen.spectra(whole.examination)[1]
    alone = dataclasses.replace(whole.examination, fresh_views=None)
    for panel in (screen.similarity, screen.spectra):
        assert "fresh" not in panel(alone)[1]


def test_a_constant_is_a_screen_of_sentences(case, few):
    ill = ailing.changed(case.opened, ailing.collapse)
    found = report.check(ill, few, map_names=(), quick=True)
    said = figures.alt(found.screen())
    for words in ("there is no map", "No dimension is in use", "All similarities are near 1"):
        assert words in said


# ---- the numbers -------------------------------------------------------------------------------------------


def test_each_number_is_that_of_the_measures_with_the_settings_beside_it(whole, few):
    found, n = whole.examination, whole.examination.numbers
    z, y = found.z, found.judged.labels
    gallery = few[0]
    shown = {number.name: number for number in standard.numbers(found)}
    assert n["rankme"] == measures.rankme(z) and "not centred, ε = 1e-07" in shown["RankMe"].how
    assert n["alpha_req"] == pytest.approx(measures.alpha_req(z), rel=1e-9)
    assert n["lidar"] == measures.lidar(torch.stack(found.views, dim=1))
    prepared = Prepared(ailing.cases(SEED)["healthy, digits"]().opened.encoder, 1)
    gallery_z = examination.embed(prepared, gallery.images)
    for k in (10, 20, 100, 200):
        expected = measures.knn_accuracy(gallery_z, gallery.labels, z, y, k=k, temperature=0.07)
        assert n[f"knn_dino_{k}"] == pytest.approx(expected, abs=1e-6)
        assert f"k = {k}, T = 0.07" in shown[f"kNN, DINO's, k = {k}"].how
    precision = measures.average_precision(gallery_z, gallery.labels, z, y).mean().item()
    assert n["map"] == pytest.approx(precision, abs=1e-6)
    low, high = shown["kNN"].interval
    assert low <= n["knn"] <= high and (low, high) == measures.bootstrap(found.each["knn"])
    text = whole.html().replace("&#39;", "'")
    assert all(number.name in text and number.misleads in text and number.how for number in shown.values())


def test_the_page_says_where_it_comes_from(tmp_path, few):
    ailing.trained("digits", 0.2, SEED).save(tmp_path / "run.pt")
    found = report.check(tmp_path / "run.pt", few, map_names=(), quick=True, command="what was typed")
    facts = found.examination.facts
    assert facts["SHA-256"] == hashlib.sha256((tmp_path / "run.pt").read_bytes()).hexdigest()
    assert facts["command"] == "what was typed" and torch.__version__ in facts["made with"]
    assert "temperature 0.2" in facts["its settings"] and str(tmp_path) not in found.title
    assert facts["command"] in found.html()


# ---- two encoders ------------------------------------------------------------------------------------------


def test_an_encoder_beside_itself_differs_in_nothing(whole):
    e = whole.examination
    alike = standard.likeness(e, e)
    assert alike["cka"] == pytest.approx(1, abs=1e-9) and alike["overlap"] == 1
    assert all(d.a == d.b and not d.certain and d.how for d in standard.differences(e, e))
    assert standard.which_is_better(standard.differences(e, e)).startswith("On no share of these pictures")


def test_a_difference_is_paired_by_picture_and_the_better_one_is_named(whole):
    e = whole.examination
    worse = dataclasses.replace(e, numbers=dict(e.numbers), each=dict(e.each))
    worse.each["knn"] = e.each["knn"] * (torch.arange(len(e.z)) >= 40)
    worse.numbers["knn"] = worse.each["knn"].mean().item()
    found = {d.name: d for d in standard.differences(e, worse)}
    assert found["kNN"].certain and found["kNN"].interval[1] < 0 and found["RankMe"].interval is None
    assert standard.which_is_better(list(found.values())).startswith("A is better at kNN (by ")
    beside = report.beside(whole, dataclasses.replace(whole, examination=worse))
    assert "A is better at kNN" in beside and "linear CKA 1" in beside
    held = json.loads(report.beside_json(whole, dataclasses.replace(whole, examination=worse)))["beside"]
    (knn,) = (each for each in held["differences"] if each["name"] == "kNN")
    assert (
        knn["interval"][1] < 0
        and held["likeness"]["cka"] == pytest.approx(1)
        and "A is better at kNN" in held["says"]
    )


def test_nothing_is_better_before_both_are_fed_as_in_training(whole):
    ill = [dataclasses.replace(v, mean="half") if v.name == rules.INPUT else v for v in whole.verdicts]
    beside = report.beside(whole, dataclasses.replace(whole, verdicts=ill))
    assert f"A: {whole.level}. B: {whole.level}. B may be fed wrongly" in beside
    assert "may be fed wrongly" not in report.beside(whole, whole)


def test_other_pictures_can_not_be_compared(whole):
    other = dataclasses.replace(whole.examination, judged=whole.examination.judged.subset(slice(0, 50)))
    with pytest.raises(ValueError, match="A judged 100 pictures and B 50, but both must judge the same"):
        standard.likeness(whole.examination, other)


def test_photographs_on_the_page_are_never_inverted(whole):
    shown = report._panels(whole.examination)
    assert 'class="plot"' not in shown["Nearest neighbours"][0]
    assert all('class="plot"' in shown[name][0] for name in screen.PANELS if name != "Nearest neighbours")
    assert np.isfinite(whole.examination.numbers["lidar"])


def test_fresh_batch_statistics_are_those_of_the_pictures(few):
    gallery, _ = few
    fresh = Prepared(encoders.build("conv16", 1), 1)
    examination._learn_statistics(fresh, gallery.images)
    assert not fresh.training
    layer = next(m for m in fresh.modules() if isinstance(m, nn.BatchNorm2d))
    met = []
    handle = layer.register_forward_pre_hook(lambda module, given: met.append(given[0]))
    with torch.no_grad():
        for part in gallery.images[: examination.LEARNED].split(64):
            fresh(part.float() / 255)
    handle.remove()
    torch.testing.assert_close(layer.running_mean, torch.cat(met).mean(dim=(0, 2, 3)), rtol=1e-3, atol=1e-5)

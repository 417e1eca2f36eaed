"""First screen, numbers and two encoders compared: what is shown is what was measured."""

import dataclasses
import hashlib
import io
import json

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from clutils import checkpoints, data, encoders, figures, losses, measures, report, training, views
from clutils.figures import png
from clutils.report import BROKEN, UNKNOWN, Unfit, examination, page, preprocessing, screen, standard
from clutils.report.diagnosis import BEHIND, FED, HALF, Diagnosis
from clutils.report.facts import Row
from clutils.report.prepared import Prepared
from tests.report import ailing


@pytest.fixture(scope="module")
def quick(case, few) -> report.Report:
    return report.check(case.opened, few, quick=True)


# ---- what is seen first ------------------------------------------------------------------------------------


def test_the_screen_has_the_sentence_the_table_and_four_read_panels_in_1280_by_800(quick):
    figure = quick.screen()
    assert Image.open(io.BytesIO(png(figure, scale=1))).size == (1280, 800)
    texts = [text.get_text().replace("\n", " ") for text in figure.texts]
    assert quick.diagnosis.says in texts and set(screen.PANELS) <= set(texts)
    own = quick.examination.found.own
    assert {"this encoder", "fresh weights", "raw pixels", f"{own.knn:.0%}", f"{own.probe:.0%}"} <= set(texts)
    assert f"({1 - quick.examination.numbers['knn']:.0%}): kNN by " in figures.alt(figure)
    assert quick._repr_html_().count("<img") == 1
    figure.draw_without_rendering()
    for text in figure.texts:
        (x0, y0), (x1, y1) = text.get_window_extent().get_points()
        assert x0 >= 0 and x1 <= 1280 and y0 >= 0 and y1 <= 800, text.get_text()


def test_a_long_sentence_runs_into_nothing(quick):
    long = "Half-trained: probe 32% against 41% with fresh weights, kNN 23% against 28% "
    long += "(less than 11 points may be luck)."
    found = Diagnosis(HALF, UNKNOWN, f"{long} {long[:90]}")
    figure = screen.screen(quick.examination, "a/checkpoint.pt on 200 images", found)
    figure.draw_without_rendering()
    boxes = {text.get_text(): text.get_window_extent() for text in figure.texts}
    for start in ("Half-trained", "Train longer"):
        (sentence,) = [text for text in boxes if text.startswith(start)]
        assert [
            text for text, box in boxes.items() if text != sentence and box.overlaps(boxes[sentence])
        ] == []


def test_a_quick_look_is_the_whole_one_stopped_early_with_the_same_diagnosis(quick, whole):
    """Quick said 'worth a look' of five of five encoders that the whole page called good."""
    few_numbers, numbers = quick.examination.numbers, whole.examination.numbers
    assert set(few_numbers) < set(numbers) and {"map", "kept_crop"} <= set(numbers) - set(few_numbers)
    assert {name: numbers[name] for name in few_numbers} == pytest.approx(few_numbers, rel=1e-5)
    assert quick.diagnosis == whole.diagnosis
    assert [v for v in quick.verdicts if v.name != "robustness"] == whole.verdicts[:-1]
    assert quick.html().count("<img") == len(screen.PANELS)


def test_a_network_under_training_is_looked_at_and_left_as_it_was(few, quick):
    net = ailing.trained().method.encoder.train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    found = report.check(net, few, quick=True)
    assert net.training and all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert found.examination.numbers["knn"] == quick.examination.numbers["knn"]
    assert found.examination.found.untrained is not None  # its layers can draw their weights again


def test_with_its_head_a_module_shows_a_collapse_behind_it(few):
    """What the encoder's own space hides: without `head=` the same module is not known to be ill."""
    net = ailing.trained().method.encoder
    head = nn.Sequential(nn.Linear(128, 16), nn.BatchNorm1d(16)).train()
    nn.init.zeros_(head[0].weight)
    found = report.check(net, few, quick=True, head=head)
    assert (found.diagnosis.name, found.level) == (BEHIND, BROKEN) and head.training
    assert "behind it all similarities are nearly 1" in screen.similarity(found.examination)[1]
    assert report.check(net, few, quick=True).diagnosis.name != BEHIND


def test_both_spaces_are_drawn_where_there_is_a_head(quick):
    ax, _ = screen.similarity(quick.examination)
    assert [inset.get_title(loc="left") for inset in ax.child_axes] == [
        "before the head",
        "behind the head, what the loss sees",
    ]
    alone = dataclasses.replace(quick.examination, head_views=None)
    assert len(screen.similarity(alone)[0].child_axes) == 1


def test_neighbours_stand_beside_those_by_raw_pixels(quick):
    ax, reading = screen.near_pictures(quick.examination)
    assert len(ax.images) == 3 and "raw pixels" in reading  # a sheet of queries, and one of each space's
    assert {"this encoder", "raw pixels"} <= {text.get_text() for text in ax.texts}


def test_misplaced_images_are_those_whose_neighbours_vote_otherwise(whole):
    ax, _ = screen.class_map(whole.examination)
    rings = sum(len(c.get_offsets()) for c in ax.collections if c.get_zorder() == 4)
    assert rings == int((whole.examination.each["knn"] == 0).sum()) > 0


def test_a_constant_is_a_screen_of_sentences(case, few):
    ill = ailing.changed(case.opened, ailing.collapse)
    found = report.check(ill, few, quick=True)
    said = figures.alt(found.screen())
    for words in ("there is no map", "No dimension is in use", "all similarities are near 1"):
        assert words in said


# ---- the numbers -------------------------------------------------------------------------------------------


def test_fresh_weights_are_the_better_of_as_made_and_with_settled_statistics(case, few):
    """Settled statistics alone made the baseline too low in 10 of 11 networks on CIFAR-10."""
    gallery, judged = few
    found = report.check(case.opened, few, quick=True).examination.found
    torch.manual_seed(0)
    fresh = Prepared(case.opened.backbone.build().eval(), 1)
    fresh.in_bfloat16 = encoders.computes_bfloat16("cpu")
    rows = []
    for net in (fresh, fresh.settled(gallery.images[: examination.LEARNED])):
        z, gallery_z = (examination.embed(net, some.images) for some in (judged, gallery))
        given = gallery_z, gallery.labels, z, judged.labels
        k = measures.neighbours_for(gallery.labels, judged.labels)
        rows.append(Row(measures.knn_accuracy(*given, k=k), measures.linear_probe(*given)))
    assert rows[0] != rows[1]
    assert found.untrained == Row(*(max(pair) for pair in zip(*rows, strict=True)))


def test_each_number_is_that_of_the_measures_with_the_settings_beside_it(whole, few):
    found, n = whole.examination, whole.examination.numbers
    z, y, gallery = found.z, found.judged.labels, few[0]
    assert n["rankme"] == measures.rankme(z)
    assert n["lidar"] == measures.lidar(torch.stack(found.views, dim=1))
    prepared = Prepared(ailing.cases()["healthy"]().opened.encoder, 1)
    gallery_z = examination.embed(prepared, gallery.images)
    expected = measures.knn_accuracy(gallery_z, gallery.labels, z, y, k=20, temperature=0.07)
    assert n["knn_dino_20"] == pytest.approx(expected, abs=1e-6)
    assert not {"knn_dino_200", "alpha_req", "nesum"} & set(n)  # unless they are asked for by name
    precision = measures.average_precision(gallery_z, gallery.labels, z, y).mean().item()
    assert n["map"] == pytest.approx(precision, abs=1e-6)
    low, high = standard.intervals(found)["knn"]
    assert low <= n["knn"] <= high and (low, high) == measures.bootstrap(found.each["knn"])
    text = whole.html().replace("&#39;", "'")
    known = [measures.BY_NAME[key] for key in standard.measured(found)]
    assert len(known) == 8 and all(one.label in text and one.settings in text for one in known)


def test_the_gap_of_what_it_is_fed_is_the_divergence_of_two_normal_distributions():
    """A network whose first normalisation remembers exactly, and then twice the deviation."""
    net = nn.Sequential(nn.Conv2d(3, 2, 1, bias=False), nn.BatchNorm2d(2), nn.AdaptiveAvgPool2d(1))
    seen = torch.rand(64, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        out = net[0](seen).transpose(0, 1).flatten(1).double()
    mean, var = out.mean(dim=1), out.var(dim=1)
    stretched = (torch.tensor(4.0).log() + 0.25 - 1).item() / 2
    for remembered, expected in (
        ((mean, var), 0.0),
        ((mean, 4 * var), stretched),
        ((mean + var.sqrt(), var), 0.5),
    ):
        found = preprocessing.gap(preprocessing.met(Prepared(net), net[1], seen), remembered)
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_a_method_without_temperature_is_not_judged_by_one_that_its_settings_hold(few):
    """SimSiam and VICReg runs were red for a `tau` among their arguments."""
    case = ailing.cases()["healthy"]()
    case.opened.origin, case.opened.settings = "names of many", {"method": "vicreg", "tau": 9.0}
    case.opened.temperature = 9.0
    found = report.check(case.opened, few, quick=True, temperature=5.0)
    assert found.examination.found.share_of_negatives is None and "τ =" not in str(found)
    assert any("is not used: VICReg trains without a temperature" in note for note in found.notes)


@pytest.mark.parametrize("name", ["vectors:digits", "graphs:motifs", "nodes:karate", "sentences:topics"])
def test_samples_that_are_no_pictures_are_refused_in_one_line(name):
    for given in (name, (data.load(name, limit=20),) * 2):
        with pytest.raises(ValueError, match=r"report\.check: data is .*, but must be images") as error:
            report.check(nn.Flatten(), given)
        assert "\n" not in str(error.value)


def test_what_does_not_fit_is_refused_and_says_what_would(case, few):
    with pytest.raises(Unfit, match="images have 3 channels, but the encoder takes 1: images here are"):
        Prepared(nn.Flatten(), channels=1)(torch.rand(2, 3, 8, 8))
    with pytest.raises(Unfit, match="mean has 3 numbers, but the encoder takes 1 channels"):
        report.check(case.opened, few, mean=(0.1, 0.2, 0.3))
    fixed = dataclasses.replace(case.opened, side=224)
    with pytest.raises(Unfit, match="takes images of 224 x 224 only"):
        report.check(fixed, few, tsne=False, size=64)


def test_the_probe_of_raw_pixels_sees_their_principal_directions():
    draw = torch.Generator().manual_seed(0)
    drawn_by, judged = torch.randn(40, 300, generator=draw), torch.randn(7, 300, generator=draw)
    first, second = examination.principal(drawn_by, judged)
    mean = drawn_by.mean(dim=0)
    axes = torch.linalg.svd((drawn_by - mean).double(), full_matrices=False)[2][:39]
    for found, rows in ((first, drawn_by), (second, judged)):
        expected = (rows - mean).double() @ axes.T
        assert torch.allclose(found.double() @ found.double().T, expected @ expected.T, atol=1e-2)


def test_normalisations_folded_into_the_weights_are_no_fresh_network(case, few):
    def fold(encoder: nn.Module) -> None:
        for layer in encoder.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.weight /= (layer.running_var + layer.eps).sqrt()
                layer.bias -= layer.running_mean * layer.weight
                layer.running_mean.zero_()
                layer.running_var.fill_(1)
                layer.num_batches_tracked.zero_()

    found = report.check(ailing.changed(case.opened, fold), few, quick=True)
    assert "folded" in found.examination.unknown["input_gap"]
    assert found.diagnosis.name != "never trained"


@pytest.mark.parametrize("plain", [True, False])
def test_fresh_weights_without_batch_normalisation_are_known_by_layer_normalisations(plain):
    some = tuple(p.subset(slice(0, 120)) for p in ailing.pictures("scenes"))
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 16, 4, 4), nn.GELU(), nn.Flatten(), nn.Linear(1024, 32), nn.LayerNorm(32)
    )
    if not plain:
        net[-1].weight.data[3] = 0.99
    found = report.check(checkpoints.open(net.eval()), some, quick=True)
    assert (found.diagnosis.name == "never trained") == plain


# ---- two encoders ------------------------------------------------------------------------------------------


def test_an_encoder_beside_itself_differs_in_nothing(whole):
    e = whole.examination
    found = standard.differences(e, e)
    assert all(d.a == d.b and not d.certain for d in found)
    assert "one encoder twice" in standard.better([whole, whole], found)
    said = standard.better([whole, whole], [dataclasses.replace(found[0], b=found[0].a + 0.01), *found[1:]])
    assert "On no share of these images" in said and "twice" not in said


def test_a_difference_is_paired_by_image_and_the_better_one_is_named_on_the_page_and_in_text(whole):
    e = whole.examination
    worse = dataclasses.replace(e, each=dict(e.each))
    worse.each["knn"] = e.each["knn"] * (torch.arange(len(e.z)) >= 40)
    worse.found = dataclasses.replace(e.found, knn=worse.each["knn"].mean().item())
    found = {d.name: d for d in standard.differences(e, worse)}
    assert found["kNN"].certain and found["kNN"].interval[1] < 0 and found["RankMe"].interval is None
    other = dataclasses.replace(whole, examination=worse)
    beside, text = page.page([whole, other]), report.compared(whole, other)
    for said in (beside, text):
        assert "A is better at kNN (by " in said
    assert "B minus A" in text and "(certain)" in text
    held = json.loads(report.as_json([whole, other]))["beside"]
    (knn,) = (each for each in held["differences"] if each["name"] == "kNN")
    assert knn["interval"][1] < 0


def test_nothing_is_better_before_both_are_fed_as_in_training(whole):
    ill = dataclasses.replace(whole, diagnosis=dataclasses.replace(whole.diagnosis, name=FED))
    assert "B may be fed wrongly" in standard.better([whole, ill], [])
    said = standard.better([whole, whole], [])
    assert said.endswith("No number could be measured for both.") and "may be fed wrongly" not in said


def test_other_images_can_not_be_compared(whole):
    other = dataclasses.replace(whole.examination, judged=whole.examination.judged.subset(slice(0, 50)))
    with pytest.raises(ValueError, match="evaluated on 100 images and B on 50, but both need the same"):
        standard.differences(whole.examination, other)


def test_the_page_says_where_it_comes_from(tmp_path, few):
    ailing.trained().save(tmp_path / "run.pt")
    found = report.check(tmp_path / "run.pt", few, quick=True, command="what was typed")
    facts = found.examination.facts
    assert facts["SHA-256"] == hashlib.sha256((tmp_path / "run.pt").read_bytes()).hexdigest()
    assert facts["command"] == "what was typed" and torch.__version__ in facts["made with"]
    assert str(tmp_path) not in found.title
    assert facts["command"] in found.html() and encoders.unseen(encoders.build("conv16"))


def test_photographs_on_the_page_are_never_inverted(whole):
    axes = {name: panel(whole.examination)[0] for name, panel in screen.PANELS.items()}
    shown = {name: page.plot(ax.figure) for name, ax in axes.items()}
    assert 'class="plot"' not in shown["Nearest neighbours"]
    assert all('class="plot"' in html for name, html in shown.items() if name != "Nearest neighbours")


def test_a_head_whose_vectors_have_no_length_has_collapsed(case, few):
    head = nn.Linear(128, 8)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    found = report.check(case.opened, few, quick=True, head=head)
    assert found.diagnosis.name == BEHIND and found.level == BROKEN
    assert "uniformity behind it is 0.00" in found.diagnosis.says


@pytest.mark.parametrize(("name", "least", "most"), [("too hot", 0.1, 0.13), ("too cold", 0.97, 1.001)])
def test_a_temperature_at_fault_is_drawn_as_the_push_by_rank(name, least, most):
    found = ailing.checked(name)
    assert "Push on the negatives" in found.html() and "Spectrum" not in screen.panels(
        found.examination, found.diagnosis
    )
    ax, reading = screen.push(found.examination)
    own, usual = (line.get_ydata() for line in ax.lines)
    K = found.examination.found.negatives
    assert len(own) == K and own[-1] == pytest.approx(1, abs=1e-5) and (np.diff(own) >= 0).all()
    assert least <= own[K // 10 - 1] <= most and f"receives {own[K // 10 - 1]:.0%} of the push" in reading
    assert own[K // 10 - 1] != usual[K // 10 - 1]


LAYER = "First batch normalisation"


def _last(found: report.Report) -> str:
    return [*screen.panels(found.examination, found.diagnosis)][-1]


@pytest.mark.parametrize(
    "name", ["normalised, and should not be", "not normalised, and should be", "0 to 255"]
)
def test_how_images_are_fed_is_drawn_channel_by_channel(name):
    found, encoder = ailing.checked(name), ailing.cases()[name]().opened.encoder
    assert _last(found) == LAYER and f"<h2>{LAYER}</h2>" in found.html()
    ax, reading = screen.statistics(found.examination)
    stored, fed, mended = (line.get_ydata() for line in ax.lines)
    assert np.allclose(stored, encoder.normalisations[0].running_mean.sort().values, atol=1e-3)
    assert abs(mended - stored).max() < 0.4 * abs(fed - stored).max()
    assert f"with --mean {found.diagnosis.mean}, 0." in reading and "e+" not in reading


def test_what_is_drawn_as_fed_is_what_the_layer_is_given():
    found, encoder = ailing.checked("0 to 255").examination, ailing.opened(ailing.trained()).encoder
    seen = torch.cat(views.pair(found.judged.subset(slice(0, preprocessing.VIEWED)).images, 0))
    given = []
    encoder.normalisations[0].register_forward_hook(lambda layer, takes, gives: given.append(takes[0]))
    encoder(seen[: preprocessing.VIEWED] * 255)
    fed = [line.get_ydata() for line in screen.statistics(found)[0].lines][1]
    order = encoder.normalisations[0].running_mean.argsort()
    assert np.allclose(fed, given[0].detach().mean((0, 2, 3))[order], rtol=1e-3, atol=0.05)


def test_statistics_after_few_batches_are_drawn_nearer_to_their_start():
    given = {"steps": 4, "batch_size": 128, "seed": 3, "precision": "float32"}
    run = training.Run(data=ailing.pictures()[0], loss=losses.NTXent(0.2), **given).finish(progress=False)
    found = report.check(ailing.opened(run), ailing.pictures(), quick=True)
    assert found.diagnosis.name == HALF and _last(found) == LAYER
    ax, reading = screen.statistics(found.examination)
    assert reading == "After 4 batches, 66% of what the file stores is its start: mean 0, variance 1."
    stored, fed = (line.get_ydata() for line in ax.lines)
    assert np.corrcoef(stored, fed)[0, 1] > 0.9 and 0.2 < np.polyfit(fed, stored, 1)[0] < 0.5


@pytest.mark.parametrize("name", ["healthy", "labels shuffled, 0", "collapsed"])
def test_where_images_are_fed_as_in_training_the_spectrum_is_drawn(name):
    found = ailing.checked(name)
    assert found.examination.statistics and _last(found) == "Spectrum"


def test_without_batch_normalisation_no_place_is_kept_for_its_statistics(few):
    found = report.check(nn.Sequential(nn.Flatten(), nn.Linear(192, 16)), few, quick=True)
    assert _last(found) == "Spectrum" and not found.examination.statistics
    assert screen.panels(found.examination, dataclasses.replace(found.diagnosis, name=FED)) is screen.PANELS

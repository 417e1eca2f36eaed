"""Notebook 11: diagrams show what a method has and does, exercises agree with the package, records repeat."""

import copy
import json
import math
import runpy
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from torch.nn import functional as F

from clutils import data, encoders, figures, losses, methods, training
from clutils.course import claims, evidence, records
from clutils.course import methods as lesson
from clutils.course.methods import experiments, panels
from clutils.course.methods import figures as draw
from tests.course.answers import Mistake, judged

EVERY = [*draw.NAMES, *draw.FURTHER]


def built(name: str, **settings) -> methods.Method:
    kind = methods.catalogue()[name].cls
    torch.manual_seed(0)
    return kind(encoders.build("conv16"), kind.default_loss(), **settings)


def boxes(ax) -> list[str]:
    return [p.get_gid() for p in ax.patches if isinstance(p, FancyBboxPatch) and p.get_gid()]


def arrows(ax) -> list[str]:
    return [p.get_gid() for p in ax.patches if isinstance(p, FancyArrowPatch)]


def stops(ax) -> int:
    return sum(line.get_gid() == "stop" for line in ax.get_lines())


# ---- the diagrams ------------------------------------------------------------------------------------------


# whether a gradient flows into the second of what is compared, and how many comparisons a step has
STEPS = dict.fromkeys(("simclr", "supcon", "barlowtwins", "vicreg", "lejepa"), (True, 1))
STEPS |= dict.fromkeys(("nnclr", "simco", "dacl", "sdmp", "modals"), (True, 1))
STEPS |= dict.fromkeys(("moco", "npid"), (False, 1))
STEPS |= dict.fromkeys(("byol", "simsiam", "mocov3", "swav", "dino"), (False, 2))


@pytest.mark.parametrize("name", STEPS)
def test_a_diagram_has_the_methods_parts_and_the_gradient_that_a_step_has(name):
    """The gradient is asked of a step, when the other branch's output is cut off."""
    method, (second, calls) = built(name), STEPS[name]
    parts = {child for child, _ in method.named_children()}
    parts |= {part for part in ("queue", "bank", "vectors", "target_vectors") if hasattr(method, part)}
    parts |= {"labels"} if method.uses_labels else set()
    ax = draw.diagram(name)
    assert set(boxes(ax)) == parts
    assert draw.flow(method).gradient == ((True, second),) * calls
    assert (stops(ax) == 0) == second or name == "nnclr"  # whose queue stops it as well
    said = " ".join(text.get_text() for text in ax.texts)
    assert ("swapped" in said) == (calls == 2) and ("view 2" in said) == (name != "npid")
    followed = any(child.startswith("target_") for child in parts)
    assert followed == (not all(p.requires_grad for p in method.parameters()))
    assert ("same\nweights" in said) == (not followed and name != "npid")
    if name in EVERY:
        assert arrows(ax).count("follows") == (2 if followed else 0)
        extra = 1 if name in ("moco", "supcon") else 0  # the queue's arrow, the labels'
        assert arrows(ax).count("no gradient") == extra + (0 if second else 3)
    else:
        assert ("codes" in said) == (name == "swav") and ("target\nprototypes" in said) == (name == "dino")
        assert {text.get_fontsize() for text in ax.texts} <= {9.0, 10.0}  # no label smaller than the rest


def test_without_stop_gradient_simsiams_diagram_has_no_stop():
    method = built("simsiam", stop_gradient=False)
    assert stops(draw.diagram(method)) == 0
    assert "no gradient" not in arrows(draw.diagram(method))


def test_a_diagram_says_the_methods_own_settings():
    ax = draw.diagram(built("moco", queue_size=512, momentum=0.9))
    said = " ".join(text.get_text() for text in ax.texts)
    assert "512 keys" in said and "m = 0.9" in said
    assert "512" in figures.alt(ax)


def test_further_views_are_drawn_and_said():
    method = built("lejepa")
    assert "more views" not in figures.alt(draw.diagram(method))
    method.extra_views = 2
    ax = draw.diagram(method)
    assert "2 more views go the same way" in figures.alt(ax) and stops(ax) == 0
    assert any("2 more views" in text.get_text() for text in ax.texts)


def test_the_overview_says_of_every_method_what_its_step_does():
    whole = draw.overview()
    assert sorted(whole["year"]) == sorted(of.year for of in methods.catalogue("pictures").values())
    assert list(whole.index[:5]) == list(draw.NAMES.values()) and whole["section"].is_monotonic_increasing
    assert whole.loc["NPID", ["second embedding from", "besides"]].tolist() == ["a bank", "bank"]
    assert whole.loc[["SwAV", "NNCLR"], "besides"].tolist() == ["prototypes", "queue"]
    table = draw.overview(EVERY)
    assert set(table.index[table["predictor"] == "yes"]) == {"BYOL", "SimSiam", "MoCo v3"}
    assert set(table.index[table["comparisons a step"] == 2]) == {"BYOL", "SimSiam", "MoCo v3"}
    copies = table["second embedding from"] == "a copy that follows"
    assert set(table.index[copies]) == {"MoCo", "BYOL", "MoCo v3"}
    without = table["gradient into it"] == "no"
    assert set(table.index[without]) == {"MoCo", "BYOL", "SimSiam", "MoCo v3"}
    assert table["besides"].to_dict() | {"MoCo": "nothing", "SupCon": "nothing"} == dict.fromkeys(
        table.index, "nothing"
    )
    assert table.loc[["MoCo", "SupCon"], "besides"].tolist() == ["queue", "labels"]


def test_drawing_a_method_leaves_it_as_it_was():
    method = built("moco").eval()
    before = copy.deepcopy(method.state_dict())
    draw.diagram(method)
    assert not method.training and method.entering is None
    assert "compare" not in vars(method)
    for name, value in method.state_dict().items():
        assert torch.equal(value, before[name]), name


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: draw.diagram("swap"), "swap"),
        (lambda: lesson.explore_key_ages({0.5: AGES[0.5]}, 32, momentum=0.3), r"0\.3.*0\.5"),
    ],
)
def test_what_there_is_not_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()


# ---- figures of numbers ------------------------------------------------------------------------------------


ALONE = (("crop", "crop", 0.2), ("blur", "blur", 0.3))
ROWS = pd.DataFrame(
    [
        {"first": a, "second": b, "seed": seed, "knn": knn + 0.02 * seed}
        for seed in (0, 1)
        for a, b, knn in (("none", "none", 0.9), *ALONE, ("crop", "blur", 0.5))
    ]
)


def test_the_heatmap_shows_the_means_mirrored_and_leaves_out_the_plain_picture():
    figure = draw.composition(ROWS)
    ours, paper = figure.axes[:2]
    shown = {text.get_gid(): text.get_text() for text in ours.texts}
    assert shown == {"crop, crop": "21", "crop, blur": "51", "blur, crop": "51", "blur, blur": "31"}
    assert "crop with blur, 51 %" in figures.alt(figure)
    np.testing.assert_array_equal(paper.images[0].get_array(), list(draw.SIMCLR_FIGURE_5.values()))


def test_simclrs_table_is_as_its_own_averages_say():
    """The paper prints each row's mean in a last column, copied here apart from the rest."""
    averages = [39.2, 29.4, 25.7, 18.8, 15.5, 14.5, 13.8]
    found = np.mean(list(draw.SIMCLR_FIGURE_5.values()), axis=1)
    np.testing.assert_allclose(found, averages, atol=0.06)  # of rounded entries


CURVES = pd.DataFrame(
    {"contender": ["BYOL"] * 2 + ["SimCLR"] * 2, "step": [0, 300] * 2}
    | {"mean": [0.3, 0.6, 0.3, 0.8], "min": [0.2, 0.5, 0.2, 0.7], "max": [0.4, 0.9, 0.4, 0.85]}
)


def test_along_draws_the_means_as_lines_and_the_range_of_the_seeds_as_bands():
    ax = draw.along(CURVES)
    lines = {line.get_label(): list(line.get_ydata()) for line in ax.get_lines()}
    assert lines == {"BYOL": [30, 60], "SimCLR": [30, 80]}
    heights = sorted(float(band.get_paths()[0].vertices[:, 1].max()) for band in ax.collections)
    assert heights == [85, 90]
    assert "BYOL 30 % at 0, 60 % at 300" in figures.alt(ax)
    assert [line.get_label() for line in draw.along(CURVES, ["SimCLR"]).get_lines()] == ["SimCLR"]


def test_a_spread_is_mean_and_range():
    assert draw.spread([1.0, 2.0, 6.0], " %") == "3.0 % (1.0 to 6.0)"


# ---- how old keys grow -------------------------------------------------------------------------------------


SCENES = data.load("scenes", limit=64)


AGES = {
    0.5: experiments.KeyAges(torch.tensor([1.0, 0.8, 0.6]), 0.25),
    0.99: experiments.KeyAges(torch.tensor([1.0, 0.99, 0.97]), -0.04),
}


def test_the_panel_of_ages_says_what_was_measured():
    panel = lesson.explore_key_ages(AGES, batch_size=128, momentum=0.5, queue_size=256)
    assert "2 steps old" in panel.readout.value
    assert "0.60 (keys of different images: 0.25)" in panel.readout.value
    assert "25.0%" in panel.readout.value
    panel.set(momentum=0.99, queue_size=1024)
    assert "8 steps old, more than the 2 steps" in panel.readout.value
    assert list(panel.live.figure.axes[1].get_lines()[-2].get_ydata()) == [-0.04, -0.04]
    heights = [bar.get_height() for bar in panel.live.figure.axes[0].patches]
    np.testing.assert_allclose(heights, [0.01, 0.01 * 0.99, 0.01 * 0.99**2])


def test_ridge_and_end_are_the_roots_of_step_8_and_move_with_the_rates_that_move_them():
    for decay in panels.DECAYS:
        root = math.sqrt(1 - 5 * decay)  # of p (1 - 1.25 p) = η
        expected = (1 - root) / 2.5, ((1 + root) / 2.5) ** 2
        for target_rate in panels.FOLLOWS.values():
            found = experiments.ridge_and_end(decay=decay, target_rate=target_rate)
            assert found == pytest.approx(expected, abs=5e-4), (decay, target_rate)
        fast = {"decay": decay, "predictor_rate": 10.0}
        assert experiments.ridge_and_end(**fast, decay_follows_rate=True) == pytest.approx(expected, abs=5e-4)
        assert experiments.ridge_and_end(**fast)[0] < 0.5 * expected[0]
    assert math.isnan(experiments.ridge_and_end(decay=0.21)[0]), "above η = 1/(4 · 1.25) nothing grows"
    for start, helps in ((0.1, True), (0.4, False)):  # off the line p = w a slow target goes either way
        slow, usual = (experiments.ridge_and_end(start, target_rate=rate)[0] for rate in (0.1, np.inf))
        assert (slow < usual - 0.01) == helps and (slow > usual + 0.01) != helps


def test_the_panel_of_rates_says_what_they_do_to_the_ridge():
    panel = lesson.explore_rates()
    assert "The ridge is 0.200, the same as before, and w² ends at 0.360" in panel.readout.value
    panel.set(predictor_rate=10.0)
    assert "the same as before" in panel.readout.value
    panel.set(decay_follows_rate=False)
    assert "The ridge is 0.078, lower than before, and w² ends at 0.036" in panel.readout.value
    panel.set(decay=0.19, predictor_rate=1.0, target_rate=0.1)
    assert "The ridge is 0.311, higher than before" in panel.readout.value


# ---- what a step keeps -------------------------------------------------------------------------------------


def kept(**settings) -> int:
    run = training.Run(data=SCENES, steps=1, precision="float32", **settings)
    return SCRIPT["kept_for_backward"](run)


def test_what_is_kept_for_backward_is_counted_once_and_grows_with_the_batch():
    counted = [kept(batch_size=size) for size in (16, 32)]
    assert 1.8 < counted[1] / counted[0] < 2.3
    first_layer = 2 * 16 * 16 * 32 * 32 * 4  # two views of 16, 16 channels of 32x32, float32
    assert counted[0] > first_layer


def test_a_branch_without_gradient_keeps_nothing():
    """MoCo's keys take no gradient: about half of what SimCLR's two views keep, the queue aside."""
    two = kept(method="simclr", batch_size=32)
    one = kept(method="moco", batch_size=32, method_settings={"queue_size": 32})
    assert 0.4 < one / two < 0.6


def test_of_method_tells_what_the_encoder_learned():
    run, row = SCRIPT["of_method"]("byol", SCENES, SCENES, steps=2, batch_size=32, seed=1)
    assert row["steps"] == run.steps_done == 2 and row["method"] == "byol"
    assert row["knn"] == SCRIPT["experiments"].accuracy(run.embed, SCENES, SCENES)
    assert 0 <= row["knn_untrained"] <= 1 and row["effective_rank"] >= 1
    assert isinstance(run.loss, losses.Regression)


# ---- the exercises ------------------------------------------------------------------------------------


def sine_squared(target, online, step, steps, base):
    return torch.lerp(target, online, (1 - base) * (1 - math.sin(math.pi * step / (2 * steps)) ** 2))


def scheduled(m):
    """Another schedule m(share of the steps, base)."""

    def answer(target, online, step, steps, base):
        own = m(step / steps, base)
        return own * target + (1 - own) * online

    return answer


def of_the_package(queries, keys, queue, temperature):
    keys = keys.detach()
    return losses.NTXent(temperature)(queries, keys, queue=queue), torch.cat([queue, keys])[-len(queue) :]


def with_no_grad(p1, p2, z1, z2):
    with torch.no_grad():
        z1, z2 = F.normalize(z1, dim=1), F.normalize(z2, dim=1)
    p1, p2 = F.normalize(p1, dim=1), F.normalize(p2, dim=1)
    return -((p1 * z2).sum(dim=1) + (p2 * z1).sum(dim=1)).mean() / 2


def made_wrong(loss=lambda x: x, after=lambda x: x, keys=lambda k: k.detach(), queries=lambda q: q):
    """The right step with something done to what goes in or comes out."""

    def step(q, k, queue, t):
        value, rows = lesson.moco_step.answer(queries(q), keys(k), queue, t)
        return loss(value), after(rows)

    return step


# ---- the records --------------------------------------------------------------------------------------


SCRIPT = runpy.run_path(str(records.ROOT / "benchmarks" / "methods.py"))


def test_every_two_augmentations_were_run_once_a_seed():
    full = records.read("methods_composition").query("steps == 300").fillna("none")
    wanted = {("none", "none"), *combinations_with_replacement(SCRIPT["ALONE"], 2)}
    for _, own in full.groupby("seed"):
        assert sorted(zip(own["first"], own["second"], strict=True)) == sorted(wanted)


def test_a_composition_holds_what_it_names_and_nothing_else():
    composed = SCRIPT["composed"]
    assert composed("crop", "blur").crop_scale == (0.2, 1.0) and composed("crop", "blur").blur == 0.5
    assert composed("crop", "blur").jitter == (0.0, 0.0, 0.0, 0.0) and composed("crop", "blur").flip == 0.0
    assert composed("colour", "grayscale").jitter[0] == 0.4
    assert composed("colour", "grayscale").crop_scale == (1.0, 1.0)
    pictures = data.load("scenes", limit=8).images
    torch.testing.assert_close(composed("none", "none")(pictures), pictures.float() / 255)


def test_every_method_of_the_notebook_has_its_cost_and_simclr_is_the_measure():
    table = records.read("methods_cost").set_index("method")
    assert set(table.index) == set(SCRIPT["METHODS"]["cost"])
    assert table.loc["simclr", "processor_ratio"] == 1.0
    assert table.loc["moco", "parameters_and_buffers"] > 4096 * 128 + table.loc["moco", "parameters_trained"]


def the_lectures_verdicts(monkeypatch) -> dict[str, claims.Claim]:
    """Verdicts of 11's cells on BYOL against SimCLR, by their words."""
    notebook = json.loads((records.ROOT / "notebooks" / "11_methods.ipynb").read_text("utf-8"))
    cells = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}
    named = ("b0900002", "b0900044", "gained11a", "b0900046", "batches11c", "b0900053", "b0900227")
    found, known = {}, {}
    monkeypatch.setattr(
        claims, "test", lambda paper, words, *evidence, **verdict: found.update({words: verdict})
    )
    monkeypatch.setattr(figures, "show", lambda *_: None)
    exec("\n".join(cells[name] for name in (*named, "fewer11e", "b0900058")), known)
    return found


def test_the_lectures_sentences_get_the_verdicts_on_record(monkeypatch):
    kept = [json.loads(file.read_text("utf-8")) for file in claims.RECORDED.glob("the-lecture-byol-*.json")]
    of_runs = {entry["claim"]: entry for entry in kept if entry["evidence"] == "runs here"}
    for words, found in the_lectures_verdicts(monkeypatch).items():
        entry = of_runs.pop(words)
        assert (found["shown_by"], found["control"]) == (entry["shown_by"], entry["control"])
        when = f"holds when {found.get('when')}" if found.get("holds_when") else claims.UNDECIDED
        assert entry["verdict"] == ("holds" if found["always"] else when)
    assert not of_runs, "a sentence of the lecture's table has no verdict"


@pytest.mark.parametrize("subject", ["methods", "batch", "augmentations"])
def test_what_is_compared_while_it_still_learns_is_not_decided(subject, tmp_path, monkeypatch):
    rows = records.read(evidence.RECORD)
    before = (rows["subject"] == subject) & rows["contender"].str.startswith("BYOL")
    rows.loc[rows["contender"].str.startswith("BYOL") & (rows["step"] > 0), "knn"] -= 0.1
    rows.loc[before & rows["step"].between(1, rows["steps"] - 1), "knn"] = 0.1
    rows.to_csv(tmp_path / f"{evidence.RECORD}.csv", index=False)
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    found = the_lectures_verdicts(monkeypatch)
    (augmentations,) = (
        found[words]["always"] for words in found if words.endswith("choice of augmentations")
    )
    (sixteen,) = (found[words]["always"] for words in found if words.endswith("robust to the batch size"))
    assert (augmentations is None) == (subject != "batch")
    assert (sixteen is None) == (subject != "augmentations")


ANSWERS = {
    "follow": [sine_squared],
    "moco_step": [of_the_package],
    "simsiam_loss": [with_no_grad],
}
MISTAKES = {
    "follow": [
        scheduled(lambda x, base: base + (1 - base) * (3 * x**2 - 2 * x**3)),  # smooth step
    ],
    "simsiam_loss": [
        Mistake(
            lambda p1, p2, z1, z2: 3 * lesson.simsiam_loss.answer(p1, p2, z1, z2),
            "right: gradient by z1, gradient by z2.",
        ),
    ],
    "moco_step": [
        Mistake(made_wrong(loss=lambda x: 2 * x), "the loss and the gradient by the queries differ"),
        Mistake(lambda q, k, queue, t: made_wrong()(q, k, queue, t)[0], "two things are asked for"),
        Mistake(lambda q, k, queue, t: (q @ k.T, queue), "shape (3, 3)"),
        Mistake(lambda q, k, queue, t: (1.0, queue), "both are to be tensors; it returned 1.0 and"),
        Mistake(
            lambda q, k, queue, t: (
                made_wrong()(q, k, queue, t)[0],
                queue.copy_(torch.cat([queue, k])[-len(queue) :].detach()),
            ),
            "changes the queue that it was given",
        ),
        Mistake(lambda q, k, queue, t: 1 / 0, "raised ZeroDivisionError"),
        Mistake(lambda q, k, queue, t: None, "returned nothing yet"),
    ],
}
test_an_exercise_takes_other_ways_and_no_mistake = judged(lesson, ANSWERS, MISTAKES)

"""Notebook 07: angles of gradients are NumPy's, its formulas autograd's; its comparison is repeatable."""

import dataclasses
import json
import math
import runpy

import numpy as np
import pandas as pd
import pytest
import torch

from clutils import data, figures, losses, similarities, training
from clutils.course import evidence, records, toys
from clutils.course import family as lesson
from clutils.course.family import angles as family
from clutils.course.family import table
from tests.course.answers import judged

CASES = toys.random_similarities(30, 1, 12, torch.Generator().manual_seed(0))


def test_angle_and_difference_are_those_of_numpy():
    draw = np.random.default_rng(0)
    a, b = draw.normal(size=(2, 7, 5))
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    tensors = torch.tensor(a), torch.tensor(b)
    assert family.angle(*tensors) == pytest.approx(np.degrees(np.arccos(cosine)).max(), rel=1e-9)
    longer = np.maximum(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    assert family.difference(*tensors) == pytest.approx((np.linalg.norm(a - b, axis=1) / longer).max())
    assert family.angle(tensors[0], 3 * tensors[0]) < family.PARALLEL
    assert family.difference(tensors[0], 3 * tensors[0]) == pytest.approx(2 / 3)
    assert family.angles(*tensors).tolist() == pytest.approx(np.degrees(np.arccos(cosine)))
    assert math.isnan(family.angle(tensors[0], 0 * tensors[0]))


# ---- the family on one page ------------------------------------------------------------------------------


def test_the_page_has_every_loss_and_every_formula_is_autograds():
    page, worst = lesson.one_page(seed=7)
    unwritten = set(losses.catalogue()) - {row.loss.name for row in table.rows()}
    assert len(page.splitlines()) == 2 + len(table.rows()) + len(unwritten) and worst < 1e-12
    assert page.count("no closed form here") == len(unwritten)
    known = table.quantities(losses.NTXent(), *CASES)
    assert not {name for name in table.TEX if name not in known}, "a name without a value"


@pytest.mark.parametrize("column", ["value", "pull", "push"])
@pytest.mark.parametrize("row", table.rows(), ids=lambda row: f"{row.loss.name} {row.says}".strip())
def test_a_wrong_formula_on_the_page_is_found(row, column):
    wrong = dataclasses.replace(row, **{column: f"{getattr(row, column)} + 0.01"})
    assert table.difference(wrong, *table._cases(row, 0)) > 1e-3


def test_a_formula_is_typeset_from_the_string_that_is_evaluated():
    assert table.tex("S * p / ((1 - prior) * t * Z)") == r"S \, \hat p_j/((1 - \tau^+) \, \tau \, Z)"


# ---- the record of the comparison ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def comparison():
    return runpy.run_path(str(records.ROOT / "benchmarks" / "comparison.py"))


@pytest.mark.sweep  # seconds of training: a benchmark's numbers, made again
def test_the_shortest_recorded_run_of_the_comparison_comes_out_again(comparison):
    table = records.read("comparison")
    row = table.loc[table["steps"].idxmin()]
    assert row["steps"] <= 20, "a row short enough to be run again is missing"
    name, train, validation, test = comparison["pictures"]("scenes")
    assert (name, train.source) == (row["pictures"], row["source"])
    loss, views = comparison["build"](row["loss"], float(row["temperature"]))
    settings = {"seed": int(row["seed"]), "batch_size": int(row["batch_size"]), "precision": row["precision"]}
    _, found = comparison["with_loss"](
        loss, train, validation, test, steps=int(row["steps"]), extra_views=views, **settings
    )
    for column in ("loss", "temperature", "extra_views", "seed", "steps", "precision"):
        assert found[column] == row[column]
    for column, allowed in {"knn": 0.05, "knn_validation": 0.05, "final_loss": 0.15}.items():
        assert found[column] == pytest.approx(row[column], abs=allowed), column


def test_the_comparison_has_five_seeds_a_loss_at_two_temperatures_and_no_test_picture_chooses(comparison):
    table = records.read("comparison")
    full = table[table["steps"] > 20]
    assert set(full["pictures"]) == {"scenes", "4 classes of CIFAR-10"}
    for _, runs in full.groupby(["pictures", "loss", "extra_views", "temperature"]):
        assert runs["seed"].nunique() >= 5 and runs["steps"].nunique() == 1
    for _, runs in full.groupby(["pictures", "loss", "extra_views"]):
        assert runs["temperature"].nunique() >= 2
    assert full.groupby("pictures")["steps"].nunique().max() == 1, (
        "runs of different length in one comparison"
    )
    listed = {name.partition("+")[0] for name in comparison["LOSSES"]}
    assert set(full["loss"]) == listed
    _, train, validation, test = comparison["pictures"]("scenes")
    seen = {picture.numpy().tobytes() for picture in train.images}
    assert not seen & {picture.numpy().tobytes() for picture in validation.images}
    assert len(validation) == comparison["KEPT_APART"] and len(test) > 1000


# ---- the tuned comparison on real images -----------------------------------------------------------


@pytest.fixture
def tuned_runs(monkeypatch, tmp_path):
    """Writes a record of made-up paired runs: name -> (what it adds to a seed's kNN, how many seeds)."""
    monkeypatch.setattr(records, "FOLDER", tmp_path)

    def write(contenders, rises=0.0, tried=(0.1, 0.2, 0.5), control=-0.2, controls=3, fixed=0.14):
        rows = []
        contenders |= {evidence.MISPAIRED: (control, controls)} if control else {}
        for name, (lead, seeds) in contenders.items():
            base = {"subject": "real_losses", "contender": name, "knn_validation": 0.5, "temperature": 0.14}
            best = {"learning_rate": 0.01, "loss": ["NTXent", {"temperature": 0.2}]}
            for value in tried:
                given = best | {"loss": ["NTXent", {"temperature": value}]}
                if name == evidence.FIXED:  # so many rates, the middle one best, at one temperature
                    at_one = ["NTXent", {"temperature": fixed}]
                    best, given = (one | {"loss": at_one} for one in (best, {"learning_rate": value / 20}))
                look = {"stage": "grid", "seed": 0, "step": 400, "steps": 400, "knn": 0.4}
                look |= {"knn_validation": 0.5 - abs(value - 0.2)}
                rows.append(base | look | {"settings": json.dumps(given)})
            if name == evidence.MISPAIRED:
                best |= {"augmentation": "mispaired"}
            base["settings"] = json.dumps(best)
            for seed in range(seeds):
                for step, below in ((0, 0.3), (500, 0.1), (1000, rises), (1500, 0.0)):
                    own = {"stage": "seeds", "seed": seed, "step": step, "steps": 1500}
                    knn = 0.5 + 0.02 * (seed % 3) + lead * (1 + 0.1 * (seed % 2)) - below
                    rows.append(base | own | {"knn": knn})
        pd.DataFrame(rows).to_csv(tmp_path / "evidence_real_losses.csv", index=False)

    return write


@pytest.mark.parametrize("of_the_grid", [False, True])
def test_without_finished_runs_the_tuned_comparison_says_so_in_every_line(tuned_runs, of_the_grid):
    if of_the_grid:
        tuned_runs({"NT-Xent": (0, 0)}, control=None)
    *lines, by_itself, attention = lesson.tuned()
    assert len(lines) == 8 and all(line.endswith(": no finished runs on record yet") for line in lines)
    assert "no finished pair" in by_itself and "no finished pair" in attention
    holds, shown_by, control = lesson.promise("MACL")
    assert holds is None and "not decided here" in shown_by and "not decided here" in control
    assert "not decided here" in figures.alt(lesson.tuned_figure())


@pytest.mark.parametrize(
    ("lead", "seeds", "rises", "said", "holds"),
    [
        (0.05, 1, 0, "one pair of runs, which has no interval: not decided here", None),
        (0.05, 2, 0, "fewer than 3 seeds, so not decided here", None),
        (0.05, 8, 0, "8 paired seeds: +5.3 points (95 % interval", True),
        (-0.05, 8, 0, "-5.2 points", None),  # runs refute nothing
        (0.0, 8, 0, "not decided", None),
        (0.05, 8, 0.1, "still learning, so not decided here", None),
    ],
)
def test_the_words_and_the_verdict_follow_the_seeds_on_record(tuned_runs, lead, seeds, rises, said, holds):
    tuned_runs({"NT-Xent": (0, 8), "MACL": (lead, seeds)}, rises)
    found = lesson.promise("MACL")
    assert said in found.shown_by and found.holds is holds
    if seeds == 8 and holds:
        assert "not decided" not in found.shown_by and "these seeds detect" in found.shown_by
    assert found.shown_by in lesson.tuned() and said in figures.alt(lesson.tuned_figure())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"control": None}, "no finished pair"),
        ({"control": 0.05}, "NT-Xent, views of different images minus NT-Xent, 3 paired seeds"),
        ({"controls": 2}, "2 paired seeds of 3 planned: -21.0 points"),
        ({"tried": (0.2, 0.5)}, "MACL's best temperature lies at the edge of its grid"),
    ],
)
def test_without_a_control_that_lost_or_at_the_edge_of_the_grid_nothing_holds(tuned_runs, changed, said):
    tuned_runs({"NT-Xent": (0, 8), "MACL": (0.05, 8)}, **changed)
    found = lesson.promise("MACL")
    assert found.holds is None and said in found.shown_by + found.control


def test_runs_at_settings_that_the_grid_no_longer_chooses_do_not_count(tuned_runs):
    tuned_runs({"NT-Xent": (0, 8), "MACL": (0.05, 8)})
    path = records.FOLDER / "evidence_real_losses.csv"
    table = pd.read_csv(path)
    better = table[(table["stage"] == "grid") & (table["contender"] == "MACL")].iloc[-1:].copy()
    better["knn_validation"] = 0.9
    pd.concat([table, better]).to_csv(path, index=False)
    assert lesson.gaps("MACL") == {} and len(lesson.gaps("NT-Xent")) == 8


def test_a_run_at_an_earlier_choice_beside_that_of_the_present_one_is_left_out(tuned_runs):
    tuned_runs({"NT-Xent": (0, 8), "MACL": (0.05, 8)})
    before, path = lesson.promise("MACL"), records.FOLDER / "evidence_real_losses.csv"
    table = pd.read_csv(path)
    earlier = table[
        (table["contender"] == "MACL") & (table["stage"] == "seeds") & (table["seed"] == 0)
    ].copy()
    earlier["settings"] = earlier["settings"].str.replace('"temperature": 0.2', '"temperature": 0.1')
    earlier["knn"] += 0.2
    pd.concat([earlier, table]).to_csv(path, index=False)
    assert before.holds and lesson.promise("MACL") == before and len(lesson.tuned()) == 12


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, ""),
        ({"fixed": 0.2}, "is not at the temperature at which MACL's chosen run ends"),
        ({"tried": (0.1, 0.2)}, "NT-Xent at MACL's temperature's best learning rate lies at the edge"),
    ],
)
def test_the_fixed_temperature_must_be_macls_and_its_rate_no_edge(tuned_runs, changed, said):
    tuned_runs({"MACL": (0.05, 8), evidence.FIXED: (0, 8), "NT-Xent": (0, 3)}, **changed)
    found = lesson.promise("MACL", evidence.FIXED)
    assert said in found.shown_by and found.holds is (None if said else True)


def test_attention_is_compared_with_what_sees_as_many_views(tuned_runs):
    views = {evidence.VIEWS: (0.08, 3), evidence.FLAT: (0.05, 3), evidence.ATTENTION: (0.05, 3)}
    tuned_runs({"NT-Xent": (0, 8)} | views)
    found = lesson.promise("AttentionNCE")
    assert "AttentionNCE minus NT-Xent, four further views, 3 paired seeds: -3.1" in found.shown_by
    assert found.holds is None and "AttentionNCE minus AttentionNCE, flat, 3" in lesson.tuned()[-1]
    assert "of as many views" in lesson.tuned_figure().axes[1].get_xlabel()


def test_ntxent_with_further_views_is_the_mean_of_a_loss_a_view():
    z1, z2, further = torch.randn(5, 8), torch.randn(5, 8), torch.randn(5, 4, 8)
    given = {"loss": ["NTXentOfViews", {"temperature": 0.2}]}
    found = evidence.run_arguments(given)["loss"](z1, z2, extra_views=further)
    pairs = similarities.two_views(*map(similarities.normalise, (z1, z2)))
    one = [
        losses.NTXent(0.2).per_anchor(
            torch.nn.functional.cosine_similarity(torch.cat([z1, z2]), view.repeat(2, 1))[:, None],
            pairs.negatives,
        )
        for view in further.unbind(dim=1)
    ]
    assert torch.allclose(found, torch.stack(one).mean())


def test_only_seeds_that_both_finished_are_paired(tuned_runs):
    tuned_runs({"NT-Xent": (0, 3), "MACL": (0.05, 8)})
    assert "MACL minus NT-Xent, 3 paired seeds of 8 planned: +5.2 points" in lesson.promise("MACL").shown_by
    assert "3 paired seeds: -20.7 points" in lesson.promise("MACL").control
    assert evidence.temperature_at_the_end("real_losses", "MACL") == 0.14
    with pytest.raises(ValueError, match="no run of 'HCL' in 'real_losses' with seed 0"):
        evidence.temperature_at_the_end("real_losses", "HCL")


def test_a_seed_gives_every_loss_the_same_first_weights_and_images():
    scenes, firsts = data.load("scenes", limit=128), []
    for loss in (losses.NTXent(0.2), losses.MACL(0.1), losses.HardNegative(0.5)):
        seen = []
        run = training.Run(data=scenes, steps=2, batch_size=32, loss=loss, seed=3, threads=1)
        weights = torch.cat([p.detach().flatten() for p in run.method.parameters()])
        forward = run.method.forward
        run.method.forward = lambda images, *rest, f=forward, s=seen: (
            s.append(images.clone()) or f(images, *rest)
        )
        used = [evidence.mean_temperature(run)["temperature"]]
        run.finish(progress=False)
        firsts.append((weights, torch.cat(seen)))
        used.append(evidence.mean_temperature(run)["temperature"])
        assert used[0] == loss.temperature and (used[1] != used[0]) == isinstance(loss, losses.MACL)
    for weights, images in firsts[1:]:
        assert torch.equal(weights, firsts[0][0]) and torch.equal(images, firsts[0][1])


ANSWERS = {
    "shares_of_the_push": [
        lambda push: torch.nan_to_num(push.clamp(min=0) / push.clamp(min=0).sum(1, keepdim=True)),
    ],
    "two_controls": [
        (losses.NTXent(0.201), losses.FlatNCE(0.2)),
        [losses.NTXent(0.1995), losses.DualTemperature(0.2)],
    ],
    "inside_the_spread": [
        lambda first, second: first.min() <= second.max() and second.min() <= first.max(),
        lambda first, second: min(first) <= max(second) and min(second) <= max(first),
    ],
}
MISTAKES = {
    "shares_of_the_push": [
        lambda push: lesson.shares_of_the_push.answer(push) * (push.sum(dim=1, keepdim=True) > 0),
    ],
    "two_controls": [
        (losses.NTXent(0.201), losses.BarlowTwins()),
        (losses.NTXent, losses.Decoupled),
    ],
    "inside_the_spread": [
        lambda first, second: bool(first.min() < second.max() and second.min() <= first.max()),
        lambda a, b: bool(b.min() <= a.median() <= b.max() or a.min() <= b.median() <= a.max()),
    ],
}
test_an_exercise_takes_other_ways_and_no_mistake = judged(lesson, ANSWERS, MISTAKES)

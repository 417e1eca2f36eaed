"""What runs can carry: choosing, the learning phase, the power of the seeds; against known answers."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from clutils import data, losses, training
from clutils.course import embeddings, evidence, records


def rows(contender, seed, values, stage="seeds", settings="{}", subject="x"):
    steps = max(values)
    head = {"subject": subject, "stage": stage, "contender": contender, "settings": settings, "seed": seed}
    return [
        head | {"steps": steps, "step": step, "knn": value, "knn_validation": value}
        for step, value in values.items()
    ]


@pytest.fixture
def recorded(monkeypatch, tmp_path):
    """Keeps rows as if they were on record."""
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    kept = []

    def keep(more):
        kept.extend(more)
        pd.DataFrame(kept).to_csv(tmp_path / "evidence.csv", index=False)

    return keep


def test_the_best_of_the_grid_on_validation_pictures_is_chosen(recorded):
    for rate, value in ((0.1, 0.5), (0.2, 0.7), (0.3, 0.6)):
        settings = json.dumps({"learning_rate": rate})
        recorded(rows("a", 0, {10: value}, "grid", settings))
        recorded(rows("b", 0, {10: 1 - value}, "grid", settings))
    recorded(rows("a", 0, {10: 0.9}, "grid", "{}", subject="y"))
    assert evidence.chosen("x", "a") == {"learning_rate": 0.2}
    assert evidence.chosen("x", "b") == {"learning_rate": 0.1}
    with pytest.raises(ValueError, match="'c' in 'x'"):
        evidence.chosen("x", "c")


def test_a_contender_has_learned_when_its_last_third_adds_less_than_its_seeds_differ(recorded):
    for seed, (end, before) in enumerate(((0.88, 0.87), (0.90, 0.91), (0.92, 0.91))):
        recorded(rows("still rising", seed, {0: 0.1, 1000: 0.5, 2000: end - 0.05, 3000: end}))
        recorded(rows("flat", seed, {0: 0.1, 1000: 0.5, 2000: before, 3000: end}))
        recorded(rows("certain", seed, {0: 0.1, 1000: 0.5, 2000: end - 0.01, 3000: end}))  # in every seed
        recorded(rows("certain and small", seed, {0: 0.1, 2000: end - 0.004, 3000: end}))
        recorded(rows("falling", seed, {0: 0.1, 1000: 0.99, 2000: end + 0.05, 3000: end}))
    learned = {name: evidence.has_learned("x", name) for name in evidence.results("x")}
    assert [name for name, past in learned.items() if not past] == ["still rising", "certain", "falling"]
    assert evidence.learning_phase("x", "falling") == evidence.FALLING
    assert evidence.results("x")["flat"] == [0.88, 0.90, 0.92]
    curve = evidence.curves("x").query("contender == 'flat' and step == 2000").iloc[0]
    assert (curve["min"], curve["max"], curve["count"]) == (0.87, 0.91, 3)


@pytest.mark.parametrize(
    ("ceiling", "said"),
    [
        ((0.998, 0.998, 0.9985), "at the ceiling"),
        ((0.98, 0.98, 0.98), "at the ceiling"),  # above it
        ((1.002, 1.002, 1.002), evidence.LEARNING),  # 0.5 ± 0.12 below
        ((0.998, 0.99, 1.0), evidence.LEARNING),  # a ceiling not known so well
    ],
)
def test_who_is_at_the_ceiling_has_nothing_left_to_learn_there(recorded, ceiling, said):
    for seed, end in enumerate((0.9965, 0.997, 0.9975)):
        recorded(rows("rising", seed, {0: 0.1, 2000: end - 0.002, 3000: end}))
        recorded(rows("flat", seed, {0: 0.1, 2000: end, 3000: end}))
    assert evidence.learning_phase("x", "rising") == evidence.LEARNING and not evidence.has_learned(
        "x", "rising"
    )
    for seed, value in enumerate(ceiling):
        recorded(rows("SupCon, told the classes", seed, {0: 0.1, 3000: value}, subject="methods"))
    assert evidence.learning_phase("x", "rising") == said
    assert evidence.has_learned("x", "rising") is (said != evidence.LEARNING)
    assert evidence.has_learned("x", "rising", "flat") is (said != evidence.LEARNING)
    assert not evidence.has_learned("x", "flat", "not on record")
    assert evidence.learning_phase("x", "flat") == "past its learning phase"


def test_only_contenders_with_seeds_enough_are_read_and_nothing_on_record_reads_as_nothing(recorded):
    assert evidence.results("x") == {} and evidence.curves("x").empty
    recorded(rows("BYOL", 9, {3000: 0.9}, "grid"))
    for seed in (2, 0, 1):
        recorded(rows("BYOL", seed, {0: 0.3 + seed / 100, 3000: 0.4 + seed / 100}))
    for seed in (0, 1):
        recorded(rows("MoCo", seed, {0: 0.3, 3000: 0.5}))
    recorded(rows("MoCo", 2, {0: 0.3, 1000: 0.4})[:1])  # a third run that is not finished
    assert evidence.results("x") == {"BYOL": pytest.approx([0.4, 0.41, 0.42])}
    assert evidence.results("x", step=0) == {"BYOL": pytest.approx([0.3, 0.31, 0.32])}
    assert set(evidence.results("x", least=2)) == {"BYOL", "MoCo"}
    assert set(evidence.curves("x")["contender"]) == {"BYOL"}
    assert evidence.results("y") == {}
    with pytest.raises(ValueError, match="fewer than three seeds of 'MoCo'"):
        evidence.has_learned("x", "MoCo")


def test_the_interval_is_welchs_and_the_power_is_what_drawing_says():
    draw = np.random.default_rng(0)
    a, b = draw.normal(0.9, 0.02, 5), draw.normal(0.85, 0.01, 5)
    found = evidence.difference(a, b)
    own = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    assert (found.low, found.high) == pytest.approx((own.low, own.high), rel=1e-12)
    # a difference as large as is said to be detectable is found in about 80 of 100 draws
    spread = 0.02
    typical = evidence.difference(*(spread * stats.zscore([-2, -1, 0, 1, 2], ddof=1) for _ in range(2)))
    runs = draw.normal(0, spread, (4000, 2, 5)) + np.array([[[typical.detectable], [0.0]]])
    p = stats.ttest_ind(runs[:, 0], runs[:, 1], axis=1, equal_var=False).pvalue
    assert 0.74 < (p < 0.05).mean() < 0.86


def test_what_is_inside_the_spread_is_called_so_and_two_seeds_are_too_few():
    close = evidence.difference([0.8, 0.82, 0.84], [0.79, 0.81, 0.85])
    assert not close.decided and "not decided" in str(close)
    assert evidence.difference([0.8, 0.81, 0.82], [0.5, 0.51, 0.52]).decided
    assert evidence.difference([0.5] * 3, [0.4] * 3).decided
    with pytest.raises(ValueError, match="got 2 and 3"):
        evidence.difference([0.1, 0.2], [0.1, 0.2, 0.3])


def test_a_run_is_looked_at_along_the_way():
    train = data.load("scenes", limit=128)
    few = data.load("scenes", "test", limit=40)
    settings = {"loss": losses.Debiased(0.05, 0.5), "learning_rate": 5e-3, "seed": 0}
    untrained, later = evidence.train_and_evaluate(settings, train, few, few, 3, (0, 3), batch_size=64)
    assert (untrained["step"], later["step"]) == (0, 3)
    assert np.isnan(untrained["loss"]) and later["loss"] > 0 and later["seconds"] > untrained["seconds"] == 0
    assert untrained["knn"] == untrained["knn_validation"] and 0 <= untrained["silent"] <= 1
    without = evidence.train_and_evaluate(
        settings | {"loss": losses.NTXent(0.5)}, train, few, few, 1, (1,), 64
    )
    assert without[0]["silent"] == 0


def test_in_parts_a_picture_meets_the_others_of_its_part_alone_and_the_gradient_is_their_mean():
    train = data.load("scenes", limit=64)

    def gradient(run, part=slice(None)):
        run.method.zero_grad()
        value, z1, z2 = run.method(
            run.images[part], run.augmentation, torch.Generator().manual_seed(0), None, None
        )
        value.backward()
        return value, z1, z2, torch.cat([p.grad.flatten() for p in run.method.parameters()])

    settings = {"data": train, "batch_size": 64, "steps": 1, "augmentation": "none", "seed": 0}
    run = training.Run(**settings)
    evidence.in_parts(run, 16)
    value, z1, z2, found = gradient(run)
    assert len(z1) == len(z2) == 64
    alone = []
    for start in range(0, 64, 16):
        alone.append(gradient(training.Run(**settings), slice(start, start + 16)))
    assert value.item() == pytest.approx(sum(a[0].item() for a in alone) / 4, rel=1e-5)
    assert torch.allclose(z1, torch.cat([a[1] for a in alone]), atol=1e-5)
    assert torch.allclose(found, sum(a[3] for a in alone) / 4, atol=1e-4)
    assert not torch.allclose(z1, gradient(training.Run(**settings))[1], atol=1e-2)


def test_the_kept_embeddings_are_unit_rows_of_an_encoder_that_learned():
    z, labels = embeddings.load(3000, pictures=100, views=3)
    assert z.shape == (100, 3, 128) and labels.shape == (100,)
    assert (z.norm(dim=2) - 1).abs().max() < 1e-6
    assert torch.equal(labels, data.load("scenes", "test").labels[:100])
    nearest = (z[:, 0] @ z[:, 1].T).argmax(dim=1)
    assert (nearest == torch.arange(100)).float().mean() > 0.5
    early, _ = embeddings.load(300, pictures=100, views=3)
    warm, same = embeddings.load(3000, pictures=100, views=3, temperature=0.5)
    assert not torch.allclose(early, z) and not torch.allclose(warm, z) and torch.equal(same, labels)
    for bad, said in (
        ({"steps": 5}, "steps is 5"),
        ({"temperature": 0.3}, "temperature is 0.3, but kept are 0.2 and 0.5"),
        ({"pictures": 1000}, "1000"),
        ({"views": 0}, "views is 0"),
    ):
        with pytest.raises(ValueError, match=said):
            embeddings.load(**bad)

"""The set with a planted truth: what is planted, equal amounts, runs that do not disturb each other."""

import pandas
import pytest
import torch

from clutils.course.experiments import accuracy
from clutils.course.pinda import planted
from clutils.course.pinda.planted import PLACE, Case

ALL = [Case(arm, 0.0 if arm == "none" else 0.3, 0) for arm in planted.ARMS]


def pixels(pictures):
    return pictures.images.flatten(1).float() / 255


def test_the_shortcut_says_nothing_of_the_class_and_hides_it_and_the_rest_says_all():
    train, test = planted.make(1000), planted.make(400, 1)
    inside, outside = PLACE.flatten(), ~PLACE.flatten()
    assert set(pixels(train)[:, inside].unique().tolist()) == {0.0, 1.0}
    assert (train.masks == PLACE).all() and len(pixels(train)[:, inside].unique(dim=0)) > 950
    chance = 1 / len(planted.CLASSES)
    assert accuracy(lambda some: pixels(some)[:, outside], train, test) > 0.99
    assert accuracy(lambda some: pixels(some)[:, inside], train, test) == pytest.approx(chance, abs=0.08)
    assert torch.equal(planted.make(50).images, planted.make(50).images)


def test_every_arm_adds_the_asked_amount_to_every_picture_and_the_oracle_only_where_it_was_told():
    runs = planted.Runs(ALL, planted.make(64))
    x, normal = torch.rand(len(ALL), 5, 64), torch.randn(len(ALL), 5, 64)
    noise = dict(zip(planted.ARMS, runs.noise(x, normal), strict=True))
    assert (noise.pop("none") == 0).all()
    for arm, each in noise.items():
        torch.testing.assert_close(each.pow(2).mean(dim=1).sqrt(), torch.full((5,), 0.3), msg=arm)
    assert (noise["oracle"][:, ~PLACE.flatten()] == 0).all()


def test_a_dealt_map_is_another_pictures_of_the_same_run():
    runs = planted.Runs([Case("dealt", 1.0, 0), Case("dealt", 1.0, 1)], planted.make(64))
    x, ones = torch.rand(2, 5, 64), torch.ones(2, 5, 64)
    scale = runs.scale(x) / runs.scale(x).pow(2).mean(dim=2, keepdim=True).sqrt()
    torch.testing.assert_close(runs.noise(x, ones), scale.roll(1, dims=1))


def test_a_run_does_not_depend_on_the_runs_beside_it():
    train, test = planted.make(200), planted.make(50, 1)
    alone, many = planted.Runs(ALL[3:4], train), planted.Runs([*ALL, Case("learned", 1.0, 7)], train)
    for runs in (alone, many):
        for _ in range(3):
            runs.step()
    one, beside = alone.look(test)[0], many.look(test)[3]
    assert one.pop("place") == pytest.approx(beside.pop("place"), rel=1e-3)
    assert one.pop("loss") == pytest.approx(beside.pop("loss"), rel=1e-3)
    assert one.pop("noise") == pytest.approx(beside.pop("noise"), rel=1e-5)
    assert one["knn"] == pytest.approx(beside["knn"], abs=0.05)


def test_another_amount_than_asked_is_no_comparison_and_an_unknown_arm_is_refused():
    row = {"arm": "dealt", "seed": 3, "step": 100, "amount": 0.3, "noise": 0.19}
    with pytest.raises(ValueError, match=r"dealt, seed 3: noise of 0\.1900 at step 100, not 0\.3"):
        planted.of_equal_amount(pandas.DataFrame([row]))
    planted.of_equal_amount(pandas.DataFrame([row | {"noise": 0.30001}, row | {"amount": 0.0, "noise": 0.0}]))
    with pytest.raises(ValueError, match="arm is 'best'; there are none, uniform, oracle"):
        planted.Runs([Case("best", 0.1, 0)], planted.make(64))


def test_the_oracle_wins_so_that_the_set_is_a_test_and_the_learned_noise_leaves_the_shortcut():
    train, *judged = planted.sets()
    runs = planted.Runs([case._replace(amount=1.0 * (case.arm != "none")) for case in ALL], train)
    while runs.steps_done < 100:
        runs.step()
    found = {row["arm"]: row for row in runs.look(*judged)}
    planted.of_equal_amount(pandas.DataFrame(found.values()))
    for other in ("none", "uniform", "learned", "dealt"):
        assert found["oracle"]["knn"] > found[other]["knn"] + 0.03
    assert found["learned"]["place"] < 0.15 < 0.35 < found["adversarial"]["place"]


def test_every_arm_has_the_amount_that_did_best_on_validation_pictures():
    rows = [("oracle", 0.25, 0.9, 0.7), ("oracle", 1.0, 0.8, 0.99), ("none", 0.0, 0.5, 0.5)]
    table = pandas.DataFrame(rows, columns=["arm", "amount", "knn_validation", "knn"]).assign(step=120)
    early = table.assign(step=40, knn_validation=table["amount"])
    assert planted.chosen(pandas.concat([early, table])) == {"none": 0.0, "oracle": 0.25}

"""How often the report's lines are wrong: counts, intervals, limits, and the page's foot."""

import html
import json
from types import SimpleNamespace

import numpy as np
import pytest

from clutils.course import records
from clutils.report import UNKNOWN, calibration
from tests.report.ailing import checked


@pytest.fixture(scope="module")
def table():
    return records.read("calibration")


@pytest.fixture(scope="module")
def rows(table):
    return calibration.readings(table)


def test_what_pages_show_is_what_the_record_gives_with_the_rules_as_they_stand(rows):
    found = calibration.read()
    assert found == json.loads(json.dumps(calibration.outcome(rows)))
    assert found["encoders"] >= 60 and {"scenes", "photographs"} == set(found["pictures"])
    assert set(found["lines"]) == {calibration.WHOLE, *calibration.MEANT}


def test_an_encoder_counts_by_its_training_and_a_line_by_what_it_is_there_for(rows, table):
    """Loops over the record, against the counts."""
    for line, ailments in calibration.MEANT.items():
        fine = false = ill = missed = 0
        for row in rows:
            level = row.levels[line]
            if level == UNKNOWN:
                continue
            if row.ailment == "":
                fine, false = fine + 1, false + (level != "good")
            elif row.ailment in ailments and row.harmed:
                ill, missed = ill + 1, missed + (level == "good")
        assert calibration.outcome(rows)["lines"][line] == [fine, false, ill, missed]
    assert set(table["ailment"].dropna()) == {name for names in calibration.MEANT.values() for name in names}


def test_who_took_harm_lost_a_quarter_of_what_the_same_method_gains(rows, table):
    numbers = table["numbers"].map(json.loads)
    table = table.assign(own=numbers.str["knn"], fresh=numbers.str["knn_untrained"])
    healthy = table[table["ailment"].isna()]
    unharmed = {}
    for row, (_, one) in zip(rows, table.iterrows(), strict=True):
        if not row.ailment:
            assert row.harmed is None
            continue
        same = healthy[(healthy["contender"] == one["contender"]) & (healthy["pictures"] == one["pictures"])]
        same = same[
            same["steps"] == (same["steps"].max() if row.ailment == "stopped early" else one["steps"])
        ]
        usual, own = same["knn"].mean(), one["knn"]
        if row.ailment == "read after the head":
            usual, own = same[same["seed"] == one["seed"]]["own"].item(), one["own"]
        lost = (usual - own) / (usual - same["fresh"].mean())
        by_construction = row.ailment in ("fed wrongly", "classes renamed", "labels shuffled")
        assert row.harmed is (by_construction or bool(lost >= 0.25)), (row.method, row.ailment)
        if not row.harmed:
            unharmed[row.ailment] = unharmed.get(row.ailment, 0) + 1
    found = calibration.read()
    assert found["unharmed"] == unharmed
    misread = ("read after the head", "fed wrongly", "classes renamed", "labels shuffled")
    trained = [row for row in rows if row.ailment not in misread]
    assert found["encoders"] == len(trained) and found["healthy_steps"][1] == table["steps"].max()
    fine, ill = ([row for row in trained if row.harmed is kind] for kind in (None, True))
    false, missed = sum(row.worst != "good" for row in fine), sum(row.worst == "good" for row in ill)
    assert found["lines"][calibration.WHOLE] == [len(fine), false, len(ill), missed]
    neither = [row for row in trained if row.harmed is False]
    sounds, broken = (
        sum(row.worst != "good" for row in neither),
        sum(row.worst == "broken" for row in neither),
    )
    assert found["neither"] == [len(neither), sounds, broken]


@pytest.mark.parametrize("line", calibration.MARGINS)
def test_a_margin_below_one_is_where_the_line_sounds(rows, line):
    judged = [row for row in rows if row.levels[line] != UNKNOWN]
    assert len(judged) > 40
    for row in judged:
        sounds = row.levels[line] in calibration.SOUNDS
        assert (calibration.MARGINS[line](row.numbers) < 1) is sounds, (row.method, row.ailment)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_limit_has_the_fewest_wrong(seed):
    draw = np.random.default_rng(seed)
    at, ill = draw.normal(1, 1, 30), draw.random(30) < 0.4
    limit = calibration.best_limit(at, ill)

    def wrong(limit: float) -> float:
        false = sum(a < limit and not i for a, i in zip(at, ill, strict=True)) / sum(~ill)
        return false + sum(a >= limit and i for a, i in zip(at, ill, strict=True)) / sum(ill)

    assert wrong(limit) <= min(wrong(one) for one in np.linspace(-3, 5, 4001)) + 1e-9


def test_a_method_is_judged_by_a_limit_that_its_own_encoders_did_not_set():
    given = ("a", 2.0, ""), ("a", 3.0, ""), ("a", 0.5, "x"), ("b", 9.0, ""), ("b", 7.0, "x")
    rows = [SimpleNamespace(method=m, numbers={"at": at}, ailment=ailment) for m, at, ailment in given]
    # by b, below 8 is ill: a's healthy ones are false alarms; by a, below 1 or so: b's ill one is missed
    assert calibration._left_out(rows, lambda n: n["at"]) == [2, 1]
    rows[4].numbers["at"] = 0.4
    assert calibration._left_out(rows, lambda n: n["at"]) == [0, 0]
    equal = np.array([0.2, 5.0, 7.0]), np.array([True, False, False])
    assert calibration.best_limit(*equal) == 1.0


def test_the_foot_of_a_page_says_it_and_marks_lines_that_are_not_calibrated():
    page = " ".join(html.unescape(checked("healthy").html()).split())
    found = calibration.read()
    assert f"tried on {found['encoders']} encoders" in page
    for first, *others in calibration.table(found):
        assert f"<tr><th>{first}</th>" + "".join(f"<td>{cell}</td>" for cell in others) + "</tr>" in page
    marked = [line for line in calibration.MEANT if found["lines"][line][2] < calibration.ENOUGH]
    assert "length" in marked
    expected = {v.name: v.expected for v in checked("healthy").verdicts}
    assert f"{expected['length']} (uncalibrated)" in page
    assert f"{expected['views of a picture']} (uncalibrated)" not in page

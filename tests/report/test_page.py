"""The page of a report is whole and needs nothing; its JSON and words say the same."""

import json
import math
import runpy
from dataclasses import fields

import pytest

from clutils.course import records
from clutils.report import diagnosis
from clutils.report.facts import NAMED, Facts, Row
from clutils.report.page import TRUST
from tests.report.ailing import checked
from tests.report.pages import Page


@pytest.fixture(scope="module")
def text(whole) -> str:
    return whole.html()


def test_the_page_is_one_file_that_loads_nothing_and_says_every_line_once(whole, text):
    page = Page(text)
    assert page.loads == [] and page.mute == 0 and page.open == []
    assert "url(" not in text and "@import" not in text and "prefers-color-scheme: dark" in text
    assert "default-src 'none'" in text and "width=device-width" in text and "@media print" in text
    assert text.count("<img") == 4
    for line in whole.verdicts:
        assert text.count(line.value.replace("'", "&#39;")) == 1 and line.says in text
    assert text.count(whole.diagnosis.says) == 1 and "<details><summary>What the words mean" in text
    assert whole.examination.tsne is not None and "By t-SNE. Ringed" in text


def test_the_json_holds_every_number_and_line(whole):
    data = json.loads(whole.json())
    assert data["numbers"]["knn"] == whole.examination.numbers["knn"]
    assert {v["name"] for v in data["verdicts"]} == {v.name for v in whole.verdicts}


def test_the_foot_of_a_page_says_what_the_record_of_encoders_made_once_gives(text):
    table = records.read("calibration")
    groups = {name: own.to_dict("records") for name, own in table.groupby("group")}
    summary = runpy.run_path(str(records.ROOT / "benchmarks" / "calibration.py"))["summary"]
    fresh = groups.pop("fresh3")
    found = summary(fresh, sum(map(len, groups.values())))
    assert found == json.loads(TRUST.read_text()) and found["encoders"] == 40 <= found["tuned"]
    kinds = {row["expected"] for row in groups["tune"]}
    for images in ("scenes", "digits", "cifar"):
        assert {row["expected"] for row in fresh if row["images"] == images} == kinds
    guide = (records.ROOT / "docs" / "check.md").read_text("utf-8")
    assert f"The third 40: {found['right']} diagnoses were right" in guide
    page = " ".join(text.split())
    assert f"right: {found['right']} of {found['encoders']} encoders" in page and found["says"] in page


# what rules say now that were changed after these were judged: (group, images, how it was made)
CHANGED = {
    ("test", "scenes", "healthy-moco"): (diagnosis.HALF, diagnosis.LOOK),
    ("test", "digits", "half-60"): (diagnosis.HALF, diagnosis.LOOK),
    ("fresh", "scenes", "healthy-vicreg"): (diagnosis.HALF, diagnosis.LOOK),
    ("fresh", "digits", "healthy-warm"): (diagnosis.HEALTHY, diagnosis.GOOD),
    ("fresh2", "cifar", "healthy-moco"): (diagnosis.OPEN, diagnosis.UNKNOWN),
}


def test_the_rules_say_of_every_recorded_encoder_what_they_said_when_it_was_judged_but_where_they_changed():
    for row in records.read("calibration").to_dict("records"):
        found = diagnosis.diagnose(recorded(json.loads(row["numbers"])))
        was = row["found"], row["level"]
        now = CHANGED.get((row["group"], row["images"], row["made"]), was)
        assert (found.name, found.level) == now, (row["group"], row["made"])


def recorded(flat):
    """Facts from the names that they have in JSON."""
    given = {each.name: flat[each.name] for each in fields(Facts) if each.name in flat}
    for name in ("own", "untrained", "raw"):
        keys = [NAMED[name].format(how) for how in Row._fields]
        if keys[1] in flat:
            given[name] = Row(*(flat.get(key, math.nan) for key in keys))
    given["input_gaps"] = {k.removeprefix("input_gap_"): v for k, v in flat.items() if "input_gap_" in k}
    return Facts(**given)


def test_a_collapsed_encoder_still_gets_its_page():
    found = checked("collapsed")
    assert Page(found.html()).mute == 0
    json.loads(found.json())


def test_names_from_a_file_can_not_write_into_the_page(whole):
    evil = "</script><script>alert(1)</script><b onclick=x>"
    whole.examination.facts["file"] = evil
    text = whole.html()
    assert "<script>alert" not in text and "<b onclick" not in text
    whole.examination.facts["file"] = "a"


@pytest.mark.parametrize(
    ("suffix", "start"),
    [(".html", b"<!DOCTYPE"), (".json", b"{"), (".png", b"\x89PNG")],
)
def test_each_kind_of_file_is_written(whole, suffix, start, tmp_path):
    assert whole.write(tmp_path / "new" / f"a{suffix}").read_bytes().startswith(start)
    with pytest.raises(ValueError, match=r"must end in \.html"):
        whole.write(tmp_path / "a.txt")

"""The page of a report is whole and needs nothing; its JSON and words say the same."""

import json
import re

import pytest
import torch
from torch import nn

from clutils import data, report, training
from clutils.report import BROKEN, examination
from tests.report import ailing
from tests.report.ailing import SEED, checked
from tests.report.pages import Page


@pytest.fixture(scope="module")
def whole() -> report.Report:
    case = ailing.cases(SEED)["healthy, digits"]()
    return report.check(case.opened, (case.gallery, case.judged), map_names=("t-SNE",))


def test_the_page_is_one_file_that_loads_nothing_and_says_every_verdict(whole):
    text = whole.html()
    page = Page(text)
    assert page.loads == [] and page.mute == 0 and page.open == []
    assert "url(" not in text and "@import" not in text and "prefers-color-scheme: dark" in text
    assert "default-src 'none'" in text and "width=device-width" in text and "@media print" in text
    assert text.count("<img") == 4 + len(whole.figures()) >= 11 and "could not be drawn" not in text
    assert "can be trusted, point by point" in text
    for v in whole.verdicts:
        assert v.says.replace("'", "&#39;") in text
    assert whole.summary_text in text and "<details><summary>What the words mean" in text
    for seed in examination.SEEDS:
        assert f"trustworthiness_t-SNE_{seed}" in whole.examination.numbers


def test_the_json_holds_every_number_and_is_the_same_in_the_page(whole):
    data = json.loads(whole.json())
    assert data["numbers"]["knn"] == whole.examination.numbers["knn"]
    assert {v["name"] for v in data["verdicts"]} == {v.name for v in whole.verdicts}
    held = re.search(r'<script type="application/json" id="numbers">(.*?)</script>', whole.html(), re.DOTALL)
    assert json.loads(held[1]) == data


def test_a_collapsed_encoder_still_gets_its_page():
    found = checked("collapsed")
    assert Page(found.html()).mute == 0
    json.loads(found.json())


@pytest.mark.parametrize("norms", [torch.full((50,), 11.3), torch.zeros(50), torch.linspace(1, 2, 50)])
def test_lengths_can_be_drawn_though_they_are_all_equal(norms):
    ax = report.drawn.lengths(norms[:, None] * nn.functional.normalize(torch.ones(50, 8), dim=1))
    assert sum(bar.get_height() for bar in ax.patches) == 50  # none is left out
    left, right = ax.patches[0].get_x(), ax.patches[-1].get_x() + ax.patches[-1].get_width()
    assert right - left >= 0.0199 * norms.mean() and right > left


def test_a_figure_that_fails_is_a_line_on_the_page_and_no_loss(whole, monkeypatch):
    def fails(*given):
        raise RuntimeError("bins <of> no $width")

    monkeypatch.setattr(report.drawn, "lengths", fails)
    monkeypatch.setattr(report.drawn, "robustness", lambda values: torch.zeros(2))  # it is no figure
    monkeypatch.setitem(report.screen.PANELS, "Spectrum", fails)
    text = whole.html()
    assert "Lengths could not be drawn: RuntimeError: bins &lt;of&gt; no $width" in text
    assert "What a change leaves could not be drawn" in text
    assert "Spectrum could not be drawn: RuntimeError" in text
    assert Page(text).mute == 0 and "Who is taken for whom" in text


def test_the_summary_says_what_is_expected_and_the_likely_cause_of_what_is_broken():
    found = checked("nearly collapsed")
    texts = [text.get_text().replace("\n", " ") for text in found.summary().axes[0].texts]
    for v in found.verdicts:
        assert v.expected in texts
        assert (f"likely cause: {v.causes[0]}" in texts) == (v.level == BROKEN) if v.causes else True
    assert sum("judged pictures, beside what encoders show that are well" in text for text in texts) == 1


def test_names_from_a_file_can_not_write_into_the_page(whole):
    evil = "</script><script>alert(1)</script><b onclick=x>"
    whole.examination.facts["file"] = evil
    text = whole.html()
    assert "<script>alert" not in text and "<b onclick" not in text
    whole.examination.facts["file"] = "a"


@pytest.mark.parametrize(
    ("suffix", "start"), [(".html", b"<!DOCTYPE"), (".json", b"{"), (".pdf", b"%PDF"), (".png", b"\x89PNG")]
)
def test_each_kind_of_file_is_written(whole, suffix, start, tmp_path):
    assert whole.write(tmp_path / "new" / f"a{suffix}").read_bytes().startswith(start)
    with pytest.raises(ValueError, match=r"must end in \.html"):
        whole.write(tmp_path / "a.txt")


def test_the_noise_that_a_run_learned_is_on_its_page():
    digits = data.load("digits", limit=128)
    run = training.Run("pinda", data=digits, steps=2, batch_size=32)
    run.step()
    opened = ailing.opened(run)
    opened.generator = run.method.noise.eval()
    found = report.check(opened, (digits, digits.subset(slice(0, 100))), map_names=())
    assert "The noise that it learned" in found.figures()
    assert "The noise that it learned" not in checked("healthy").figures()

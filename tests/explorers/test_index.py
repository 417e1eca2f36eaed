"""The page of all explorers, which opens before anything is installed: notebooks/explorers/index.html."""

import json
import re

import pytest

from clutils import explorers
from clutils.explorers import controls

INSIDE = "document.querySelector('iframe[data-page={}]').contentDocument.getElementById('explorer')?.explorer"


def without_last_digits(text: str) -> str:
    """Numbers to nine digits: what the package computes differs in its last ones between machines."""
    return re.sub(r"-?\d+\.\d+(?:e-?\d+)?", lambda found: f"{float(found[0]):.8e}", text)


def test_the_committed_page_is_what_make_explorers_writes(root):
    committed = (root / "notebooks" / "explorers" / "index.html").read_text("utf-8")
    assert without_last_digits(committed) == without_last_digits(explorers.index()), "run make explorers"
    assert len(committed.encode()) < 350_000 and not re.search(r"<link|\bsrc=|@import|\bfetch\(", committed)


@pytest.mark.parametrize("part", controls.INDEX, ids=lambda part: part.name)
def test_every_button_opens_settings_that_the_page_knows(part):
    for label, settings in part.settings.items():
        assert controls.settings(part.name, {**part.opens, **settings}), label


@pytest.fixture
def index(root, opening):
    with opening(
        "index", path=root / "notebooks/explorers/index.html", reduced_motion="no-preference"
    ) as found:
        for part in controls.INDEX:
            found.until(f"Boolean({INSIDE.format(part.name)})")
        yield found


def test_the_circle_moves_before_anything_is_touched_and_nothing_else_does(index):
    index.until(f"Number({INSIDE.format('circle')}.state.step) > 3")
    assert index.page.evaluate(f"{INSIDE.format('run')}.link()") == {}
    assert index.page.evaluate(f"{INSIDE.format('W')}.link()") == {}


def test_a_button_sets_its_explorer_and_says_that_it_is_pressed(index):
    for part in controls.INDEX:
        for label, settings in part.settings.items():
            button = index.page.get_by_role("button", name=label, exact=True)
            button.click()
            state = json.loads(index.page.evaluate(f"JSON.stringify({INSIDE.format(part.name)}.state)"))
            assert {name: state[name] for name in settings} == settings
            assert button.get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_cut_or_scrolled_inside(index, width):
    index.page.set_viewport_size({"width": width, "height": 740})
    index.page.wait_for_timeout(600)
    assert index.page.evaluate("document.documentElement.scrollWidth") <= width
    for frame in index.page.frames[1:]:
        inner = frame.evaluate("[document.documentElement.scrollHeight, innerHeight]")
        assert inner[0] <= inner[1] + 2

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
    assert len(committed.encode()) < 380_000 and not re.search(r"<link|\bsrc=|@import|\bfetch\(", committed)


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


@pytest.mark.parametrize("size", [(1366, 768), (360, 740)])
def test_after_a_press_the_figure_that_changes_is_on_the_screen(index, size):
    index.page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    for part in controls.INDEX[: 1 if size[0] < 400 else None]:  # on a phone the circle, which is tallest
        for label in list(part.settings)[:1]:
            button = index.page.get_by_role("button", name=label, exact=True)
            button.evaluate("(one) => one.scrollIntoView({ block: 'end' })")  # what stands below is not seen
            button.evaluate("(one) => one.click()")
            index.until(
                f"(() => {{ const app = {INSIDE.format(part.name)}, frame = document.querySelector("
                f"'iframe[data-page={part.name}]'), top = frame.getBoundingClientRect().top,"
                " box = app.stage.firstElementChild.getBoundingClientRect();"
                " return top + box.top > -2 && top + box.bottom < innerHeight + 2; })()"
            )


FOCUSED = """() => { // what has the focus, in a frame too, and how it looks; it is marked as visited
    let at = document.activeElement, place = "page";
    while (at.contentDocument) [place, at] = [at.dataset.page, at.contentDocument.activeElement];
    if (at.tagName === "BODY") return null;
    at.visited = true;
    const look = at.ownerDocument.defaultView.getComputedStyle(at);
    return { place, name: at.className?.baseVal ?? at.className, says: at.textContent.trim(),
      seen: look.outlineStyle !== "none" && parseFloat(look.outlineWidth) >= 2 }; }"""
LEFT = """() => [document, ...[...document.querySelectorAll("iframe")].map((frame) => frame.contentDocument)]
    .flatMap((page) => [...page.querySelectorAll("button, input, select, summary, [tabindex='0']")])
    .filter((one) => one.checkVisibility() && !one.disabled && !one.visited)
    .map((one) => one.outerHTML.slice(0, 90))"""


def test_by_keyboard_alone_every_control_is_reached_in_order_with_a_visible_focus(index):
    places = []
    for _ in range(150):
        index.page.keyboard.press("Tab")
        at = index.page.evaluate(FOCUSED)
        if at is None:
            break
        assert at["seen"], f"no outline: {at}"
        if [at["place"]] != places[-1:]:
            places.append(at["place"])
    assert index.page.evaluate(LEFT) == []
    first, *others = controls.INDEX  # the circle stands above its words and buttons, other explorers below
    order = [
        "page",
        first.name,
        *(name for part in others for name in ("page" * bool(part.settings), part.name)),
    ]
    assert places == list(filter(None, order))


def test_by_keyboard_the_circle_is_skipped_and_stopped_a_button_pressed_and_a_slider_moved(index):
    page = index.page
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED)["says"] == "Skip the moving circle"
    page.keyboard.press("Enter")
    labels = list(controls.INDEX[0].settings)
    for key, label in (("Enter", labels[0]), ("Space", labels[1])):
        page.keyboard.press("Tab")
        assert page.evaluate(FOCUSED)["says"] == label
        page.keyboard.press(key)
        assert page.get_by_role("button", name=label, exact=True).get_attribute("aria-pressed") == "true"
    circle, W = (page.frame_locator(f"iframe[data-page={name}]") for name in ("circle", "W"))
    page.wait_for_timeout(600)  # what would have begun by itself does not, once something was pressed
    assert not page.evaluate(f"{INSIDE.format('circle')}.playing")
    circle.locator(".buttons button").first.focus()
    page.keyboard.press("Space")
    index.until(f"{INSIDE.format('circle')}.state.step > 3")
    page.keyboard.press("Space")
    stands = page.evaluate(f"{INSIDE.format('circle')}.state.step")
    page.wait_for_timeout(300)
    assert page.evaluate(f"{INSIDE.format('circle')}.state.step") == stands
    W.locator("input[type=range]").first.focus()
    slider = page.evaluate(f"JSON.stringify({INSIDE.format('W')}.state)")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(f"JSON.stringify({INSIDE.format('W')}.state)") != slider


def test_with_reduced_motion_nothing_moves_by_itself(root, opening):
    with opening("index", path=root / "notebooks/explorers/index.html") as found:
        found.until(f"Boolean({INSIDE.format('circle')})")
        found.page.wait_for_timeout(900)
        assert not found.page.evaluate(f"Boolean({INSIDE.format('circle')}.playing)")


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_cut_or_scrolled_inside(index, width):
    index.page.set_viewport_size({"width": width, "height": 740})
    index.page.wait_for_timeout(600)
    assert index.page.evaluate("document.documentElement.scrollWidth") <= width
    for frame in index.page.frames[1:]:
        inner = frame.evaluate("[document.documentElement.scrollHeight, innerHeight]")
        assert inner[0] <= inner[1] + 2

"""The front page, which opens before anything is installed: notebooks/explorers/index.html."""

import base64
import io
import json
import math
import re

import pytest
import torch
from PIL import Image
from playwright.sync_api import expect

from clutils import losses
from clutils.course import sphere
from clutils.course.book import front
from clutils.explorers import replay
from clutils.figures import style
from tests.explorers.conftest import Opened

INSIDE = "document.querySelector('iframe[data-page={}]').contentDocument.getElementById('explorer')?.explorer"


def without_last_digits(text: str) -> str:
    """Numbers to nine digits: what the package computes differs in its last ones between machines."""
    return re.sub(r"-?\d+\.\d+(?:e-?\d+)?", lambda found: f"{float(found[0]):.8e}", text)


def test_the_committed_page_is_what_make_explorers_writes():
    committed = front.OUT.resolve().read_text("utf-8")
    assert without_last_digits(committed) == without_last_digits(front.page()), "run make explorers"
    assert len(committed.encode()) < 380_000 and not re.search(r"<link|\bsrc=|@import|\bfetch\(", committed)


@pytest.fixture
def index(chromium):
    with Opened(chromium, front.OUT.resolve(), reduced_motion="no-preference") as found:
        for part in front.PARTS:
            found.until(f"Boolean({INSIDE.format(part.name)})")
        yield found


def test_the_hero_moves_before_anything_is_touched_and_nothing_else_does(index):
    index.until("hero.step > 3")
    assert index.page.evaluate(f"{INSIDE.format('matrix')}.link()") == {}
    assert index.page.evaluate(f"{INSIDE.format('W')}.link()") == {}
    assert not index.page.evaluate("map.begun")


def test_a_button_sets_its_explorer_and_says_that_it_is_pressed(index):
    for part in front.PARTS:
        for label, settings in part.settings.items():
            button = index.page.get_by_role("button", name=label, exact=True)
            assert button.locator("canvas").count() == 1, "a preset is a picture"
            button.click()
            state, wanted = f"{INSIDE.format(part.name)}.state", json.dumps(settings)
            moving = "value" if part.name == "matrix" else "temperature"
            index.until(f"{state}.{moving} !== {settings[moving]}")  # it runs, and ends where it said
            index.until(f"Object.entries({wanted}).every(([name, value]) => {state}[name] === value)")
            assert button.get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("size", [(1366, 768), (360, 740)])
def test_after_a_press_the_figure_that_changes_is_on_the_screen(index, size):
    index.page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    for part in front.PARTS:
        for label in list(part.settings)[:1]:
            button = index.page.get_by_role("button", name=label, exact=True)
            button.evaluate("(one) => one.scrollIntoView({ block: 'end' })")  # what stands below is not seen
            button.evaluate("(one) => one.click()")
            index.until(
                f"(() => {{ const app = {INSIDE.format(part.name)}, frame = document.querySelector("
                f"'iframe[data-page={part.name}]'), top = frame.getBoundingClientRect().top,"
                " box = (app.early?.parentElement ?? app.stage.firstElementChild).getBoundingClientRect();"
                " return top + box.top > -2 && top + box.bottom < innerHeight + 2; })()"
            )


@pytest.mark.parametrize("size", [(1366, 768), (390, 844)])
def test_whether_a_loss_is_normal_is_answered_in_the_view_of_the_fields(index, size):
    index.page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    index.page.get_by_role("button", name="8.32 with a queue of 4,096", exact=True).click()
    inside = index.page.frame_locator("iframe[data-page=matrix]")
    expect(inside.locator(".verdict")).to_contain_text("Is 8.32 normal? It is at chance", timeout=20_000)
    index.page.locator("#matrix-title").evaluate("(title) => title.scrollIntoView()")
    parts = [inside.locator(one) for one in (".ruler select", ".verdict", ".ruler svg")]
    parts += [inside.get_by_label(label) for label in ("your loss", "your batch, B", "your queue, if any")]
    for part in parts:
        box = part.bounding_box()
        assert box["y"] > 0 and box["y"] + box["height"] < size[1]


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
    assert places == ["page", *(name for part in front.PARTS for name in (part.name, "page"))][:-1]


def test_by_keyboard_the_circles_are_skipped_and_stopped_a_button_pressed_and_a_slider_moved(index):
    page = index.page
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED)["says"] == "Skip the moving circles"
    page.keyboard.press("Tab")
    tau = page.evaluate("hero.lanes[0].tau")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("hero.lanes[0].tau") > tau
    for key in ("Enter", "Space"):
        page.keyboard.press("Tab")
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    page.locator("#play").focus()
    page.keyboard.press("Space")
    stands = page.evaluate("hero.step")
    page.wait_for_timeout(300)
    assert page.evaluate("[hero.playing, hero.step]") == [False, stands]
    page.frame_locator("iframe[data-page=W]").locator("input[type=range]").first.focus()
    slider = page.evaluate(f"JSON.stringify({INSIDE.format('W')}.state)")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(f"JSON.stringify({INSIDE.format('W')}.state)") != slider


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_cut_or_scrolled_inside(index, width):
    index.page.set_viewport_size({"width": width, "height": 740})
    index.page.wait_for_timeout(600)
    assert index.page.evaluate("document.documentElement.scrollWidth") <= width
    for frame in index.page.frames[1:]:
        inner = frame.evaluate("[document.documentElement.scrollHeight, innerHeight]")
        assert inner[0] <= inner[1] + 2


# ---- sixteen images on two circles ------------------------------------------------------------------------

SETTLED = "hero.lanes.every((of) => of.path.length > 300) && !hero.playing && hero.step === 300"


def asked(page, label: str, notch: int | None, step: int) -> dict:
    """What the hero says at a step, and the angles that it draws."""
    script = """([label, notch, step]) => {
        document.querySelector(`[data-label="${label}"]`).click();
        const tau = document.getElementById("tau");
        if (notch !== null) { tau.value = notch; tau.dispatchEvent(new Event("input")); }
        hero.show(step);
        return new Promise(requestAnimationFrame).then(() => new Promise(requestAnimationFrame)).then(() => ({
            said: document.getElementById("story").textContent,
            score: document.getElementById("score").textContent,
            angles: hero.lanes.map((of) => [...of.path[step]]), first: [...hero.lanes[0].path[0]],
            tau: hero.lanes.map((of) => of.tau) })); }"""
    return page.evaluate(script, [label, notch, step])


def standing(angles: list[float]) -> list[bool]:
    """Whether each of the four classes is a run of neighbours that stands off from others."""
    turn = torch.tensor(angles[:16], dtype=torch.float64) % (2 * math.pi)
    order = turn.argsort()
    gaps = (turn[order].roll(-1) - turn[order]) % (2 * math.pi)
    found = []
    for of in range(4):
        (places,) = torch.where(order % 4 == of)
        starts = [int(k) for k in places if order[k - 1] % 4 != of]
        inside = [(starts[0] + j) % 16 for j in range(3)]
        outside = min(gaps[starts[0] - 1], gaps[(starts[0] + 3) % 16])
        found.append(len(starts) == 1 and bool(outside > 1.5 * gaps[inside].max()))
    return found


def test_the_heros_sentence_is_true_of_the_angles(index):
    cases = [("Four classes", notch, step) for notch in (0, 8, 32, 40) for step in (60, 300)]
    cases += [
        ("All in one place", 8, 150),
        ("All in one place", 20, 300),
        ("Triplet loss", 8, 300),
    ]
    for label, notch, step in cases:
        found = asked(index.page, label, notch, step)
        alike, clauses = found["said"].split(" loss ")[0].count("alike"), found["said"].split("; ")
        assert len(clauses) == (1 if alike or "Both circles" in found["said"] else 2), found["said"]
        before = sum(standing(found["first"]))
        for clause, angles in zip(clauses, found["angles"], strict=False):
            now = sum(standing(angles))
            assert ("no gap sets a class apart any more" in clause) == (before > 0 and now == 0), clause
            some = re.search("spread out .* of the classes", clause)
            assert (some is not None) == (0 < now < before), clause
            assert ("keeps" in clause) == (now == before > 0), clause
            turns = torch.tensor(angles[:16], dtype=torch.float64) % (2 * math.pi)
            around = turns.sort().values
            widest = (around.roll(-1) - around).remainder(2 * math.pi).max()
            assert ("evenly" in clause) == bool(widest < 1.75 * 2 * math.pi / 16) or "set" in clause, clause
        for tau in found["tau"]:
            word = "triplet" if tau is None else "cold" if tau < 0.15 else "mild" if tau < 0.6 else "hot"
            assert f"{word} loss" in found["said"] or found["said"].startswith("On the left"), found


def test_the_heros_points_move_as_the_package_moves_them(index):
    found = asked(index.page, "Four classes", 20, 40)
    points = torch.tensor(found["first"], dtype=torch.float64)
    z = torch.stack([points.cos(), points.sin()], dim=1)
    path = sphere.move(losses.NTXent(found["tau"][0]), z[:16], z[16:], 40, 0.1 * found["tau"][0])
    here = torch.tensor(found["angles"][0], dtype=torch.float64)
    assert torch.allclose(
        torch.cat([path.z1[-1], path.z2[-1]]), torch.stack([here.cos(), here.sin()], dim=1), atol=1e-6
    )


def test_the_score_is_of_even_times_together_and_no_temperature_reaches_all(index):
    scores = {notch: int(asked(index.page, "Four classes", notch, 300)["score"]) for notch in range(0, 41, 4)}
    assert scores[0] <= 5 and max(scores.values()) == scores[36] and 40 < scores[36] < 100, scores
    assert index.page.inner_text("#best").startswith(f"your best: {scores[36]} at τ")
    assert not re.search(r"\b1\d\d %|\b[2-9]\d\d %", index.page.inner_text(".turn"))


def test_the_hero_stops_off_the_screen_and_at_its_end_and_goes_on_when_it_is_seen(index):
    index.until("hero.step > 3")
    index.page.evaluate("document.getElementById('course-title').scrollIntoView()")
    index.page.wait_for_timeout(400)
    frames, step = index.page.evaluate("[hero.film.frames, hero.step]")
    index.page.wait_for_timeout(500)
    assert index.page.evaluate("[hero.film.frames, hero.step]") == [frames, step] and step < 300
    index.page.evaluate("scrollTo(0, 0)")
    index.until(f"hero.step > {step}")
    index.page.evaluate("hero.show(300)")
    index.until(SETTLED)
    index.page.wait_for_timeout(300)
    frames = index.page.evaluate("hero.film.frames")
    index.page.wait_for_timeout(300)
    assert index.page.evaluate("hero.film.frames") == frames


def test_with_reduced_motion_hero_map_and_thumbnails_stand_at_their_ends(chromium):
    with Opened(chromium, front.OUT.resolve()) as found:
        found.until(SETTLED)
        assert "no gap sets a class apart any more" in found.page.inner_text("#story")
        found.page.evaluate("document.getElementById('starts').scrollIntoView()")
        found.until("thumbs.every(({ of }) => of.path.length > 300)")
        found.page.evaluate("document.getElementById('map').scrollIntoView()")
        found.until("map.step === 300 && !map.playing")
        found.page.wait_for_timeout(300)
        frames = "thumbs.map(({ film }) => film.frames).join() + map.film.frames + ' ' + hero.film.frames"
        before = found.page.evaluate(frames)
        found.page.wait_for_timeout(400)
        assert found.page.evaluate(frames) == before


def test_the_two_circles_are_beside_each_other_and_on_the_first_screen_of_a_phone(index):
    index.page.set_viewport_size({"width": 360, "height": 740})
    index.until("document.getElementById('circles').clientWidth < 360 && hero.film.width < 360")
    box = index.page.locator("#circles").bounding_box()
    story = index.page.locator("#story").bounding_box()
    assert box["y"] + box["height"] < 500 and story["y"] + story["height"] < 740
    assert index.page.evaluate("getComputedStyle(document.querySelector('h1')).fontSize") >= "20px"


# ---- the map of a run --------------------------------------------------------------------------------------


def test_the_maps_sentence_counts_neighbours_on_the_map_that_is_seen(index):
    run = replay.recorded()
    bits = torch.tensor(list(base64.b64decode(run["positions"])), dtype=torch.uint8)
    bits = (bits[:, None] >> torch.arange(7, -1, -1)) & 1
    numbers = bits.flatten()[: run["points"] * len(run["looks"]) * 20].view(-1, 10).double()
    at = (numbers @ (2.0 ** torch.arange(9, -1, -1, dtype=torch.float64))).view(-1, run["points"], 2)
    labels = torch.tensor(run["labels"])
    index.page.evaluate("document.getElementById('map').scrollIntoView()")
    index.until("map.begun")
    for k in (0, len(run["looks"]) - 1):
        index.page.evaluate(f"map.show({run['looks'][k]})")
        index.until(f"document.getElementById('map-at').textContent === 'step {run['looks'][k]}'")
        near = (torch.cdist(at[k], at[k]) + 9999 * torch.eye(len(labels))).argsort(dim=1)[:, :10]
        same = float((labels[near] == labels[:, None]).double().sum(1).mean())
        said = index.page.inner_text("#map-story")
        (counted,) = re.findall(r"(\d+(?:\.\d+)?) (?:are of its class|of the ten)", said)
        assert abs(float(counted) - same) < 0.15, (said, same)


def test_an_image_of_the_map_is_named_when_it_is_pointed_at(index):
    index.page.evaluate("document.getElementById('map').scrollIntoView({ block: 'center' })")
    index.until("map.begun && map.film.stamps")
    index.page.evaluate("map.show(300)")
    index.page.wait_for_timeout(300)
    box = index.page.locator("#map").bounding_box()
    x, y = index.page.evaluate("map.at(7)")
    index.page.mouse.move(box["x"] + x, box["y"] + y)
    index.until("map.hover >= 0")
    run = replay.recorded()
    kind = run["class_names"][run["labels"][index.page.evaluate("map.hover")]]
    index.until(f"document.getElementById('map-image').textContent.startsWith('{kind}')")


def test_the_small_images_are_those_of_the_run_and_sixteen_with_a_view_of_each():
    sheet = Image.open(io.BytesIO((front.HERE / "front.webp").read_bytes()))
    assert sheet.width == 16 * 32 and sheet.height // 32 * 16 >= replay.recorded()["points"] + 32


def test_readmes_first_picture_is_the_hero_in_motion_with_the_pages_link_under_it(root):
    readme = (root / "README.md").read_text("utf-8")
    alt, path, under = re.search(r"!\[([^]]*)]\(([^)]*)\)\n\n(.*)", readme).groups()
    assert "circles" in alt and "](notebooks/explorers/index.html)" in under
    with Image.open(root / path) as picture:
        assert picture.n_frames > 30
    assert (root / path).stat().st_size < 800_000


def test_a_temperature_has_one_colour_in_figures_and_on_the_pages(index):
    for tau in (0.02, 0.05, 0.2, 0.7, 2.0):
        index.page.evaluate(
            "(tau) => { const t = document.getElementById('tau'); t.value = "
            "Math.round(40 * Math.log(tau / 0.02) / Math.log(100)); t.dispatchEvent(new Event('input')); }",
            tau,
        )
        tau = index.page.evaluate("hero.lanes[0].tau")
        shown = index.page.evaluate("document.documentElement.style.getPropertyValue('--warmth')")
        wanted = [int(style.temperature(tau)[k : k + 2], 16) for k in (1, 3, 5)]
        assert all(abs(int(a) - b) <= 3 for a, b in zip(re.findall(r"\d+", shown), wanted, strict=True)), tau


def test_W_is_never_said_to_be_1_or_all_where_it_is_less(index):
    for label, settings in front.PARTS[0].settings.items():
        index.page.get_by_role("button", name=label, exact=True).click()
        app = INSIDE.format("W")
        index.until(f"{app}.state.positive === {settings['positive']}")
        index.page.wait_for_timeout(100)
        said = index.page.frame_locator("iframe[data-page=W]").locator(".says").inner_text()
        assert not re.search(r"W = 1\b(?!\.)|\b100 %|lowest, 1\b(?!\.)", said), said

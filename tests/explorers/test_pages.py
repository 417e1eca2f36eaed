"""The pages: small, alone, shareable by a link, usable by keyboard, finger, phone, printer and any eye."""

import base64
import contextlib
import itertools
import math
import re
import sys
import types
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from playwright.sync_api import expect

from clutils import anatomy, explorers, losses
from clutils.explorers import controls, still
from clutils.figures import style
from tests.explorers.conftest import APP

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True}
WIDE = "document.documentElement.scrollWidth"


def other(control: controls.Control):
    """A value that it does not open on."""
    if control.kind == "menu":
        return next(key for key in reversed(control.options) if key not in (control.default, "none"))
    if control.kind == "switch":
        return not control.default
    if control.within.choices:
        return control.within.choices[3]
    low, high = (control.within.dial or (control.within.lowest, control.within.highest))[:2]
    middle = (low + high) / 2
    return round(middle) + 1 if control.within.whole else round(0.9 * middle + 0.1 * high, 2)


@pytest.mark.parametrize("name", explorers.NAMES)
def test_a_page_is_small_and_asks_for_nothing(written, name):
    text = (written / f"{name}.html").read_text("utf-8")
    code = re.sub(r'(<script id="data"[^>]*>).*?(</script>)', r"\1\2", text, count=1, flags=re.DOTALL)
    assert 10_000 < len(code.encode()) <= 58_000
    assert set(re.findall(r"https?://[^\"' )]+", code)) <= {"http://www.w3.org/2000/svg"}
    assert (
        not re.search(r"<link|src=|@import|\bfetch\(|XMLHttpRequest", code) and "default-src 'none'" in code
    )


@pytest.mark.parametrize("name", explorers.NAMES)
def test_a_page_says_its_point_with_no_touch_and_fits_a_phone(opening, name):
    with opening(name, **PHONE) as page:
        assert re.search(r"\d", page.page.text_content(".says"))
        assert page.page.evaluate(WIDE) <= 360
        assert page.page.locator("svg").first.bounding_box()["width"] > 300
    with opening(name, reduced_motion="no-preference") as page:
        before = page.page.text_content(".says")
        page.until(f"document.querySelector('.says').textContent !== {before!r}")


@pytest.mark.parametrize("name", ["W", "circle", "matrix"])
def test_every_control_lives_in_the_link_and_comes_back_from_it(opening, kept, name):
    explorer = explorers.EXPLORERS[name]
    wanted = {c.name: other(c) for c in explorer.controls if c.kind != "text"}
    for menu in ("loss", "beside"):
        if menu in wanted:
            wanted[menu] = "AttentionNCE"
            prefix = "" if menu == "loss" else "beside_"
            wanted |= {f"{prefix}{c.name}": other(c) for c in controls.of_loss("AttentionNCE")}
    texts = {
        "W": {"drawn": "0z" * 20},
        "circle": {"at": "a0b" * 2 * wanted.get("pictures", 0), "step": "7"},
        "matrix": {"row": "3"},
    }
    with opening(name) as page:
        for key, value in {**wanted, **texts[name]}.items():
            page.ask("(app, [key, value]) => app.set(key, value)", [key, value])
        hash, state = page.settled(), page.state()
    assert all(state[key] == value for key, value in {**wanted, **texts[name]}.items()), state
    with opening(name, hash) as page:
        assert page.state() == state
        assert page.settled() == hash
        assert len(page.ask("(app) => Object.keys(app.link())")) >= len(wanted)


def test_a_link_that_was_typed_wrongly_opens_the_page_all_the_same(opening, kept):
    with opening("W", "#loss=Magic&temperature=-3&count=900000000&positive=up&hide=,,&nothing=1") as page:
        state = page.state()
    assert state["loss"] == "NTXent" and state["count"] == 65_536 and state["positive"] == 0.5
    assert state["temperature"] == 1e-6


@pytest.mark.parametrize(("count", "found"), [(255, False), (16, False), (48, True), (64, True)])
def test_the_number_that_opens_the_gate_by_half_is_told_to_who_has_found_it(opening, count, found):
    at = f"#shape=equal&positive=1&similarity=-1&temperature=0.5&count={count}"
    with opening("W", at) as page:
        assert ("W = ½" in page.page.text_content(".says")) is found


@pytest.mark.parametrize(
    ("name", "hash"),
    [
        *(("circle", f"#step={step}") for step in ("-5", "1.5", "NaN", "0x10", "999999")),
        *(("circle", f"#at={letter * 96}") for letter in "!éZ"),
        *(("matrix", f"#row={row}") for row in ("-1", "1.5", "x")),
        *(("run", f"#{given}") for given in ("frame=-5", "frame=x", "only=%3Cb%3E")),
        ("W", "#shape=drawn&drawn=%21%21"),
    ],
)
def test_a_place_in_the_link_that_can_not_be_is_left_out(opening, name, hash):
    with opening(name, hash) as page:  # which holds the page to no error, a NaN in a path among them
        assert page.page.text_content(".says").strip()
        for svg in page.page.locator("svg").all():
            assert "NaN" not in svg.inner_html()


@pytest.mark.parametrize("seed", [48, 59, 99])
def test_the_axis_of_forces_reaches_over_the_largest_whatever_its_first_digits(opening, seed):
    loss = "NTXent" if seed == 59 else "CLIP"  # the largest is 9.5 to 10 times a power of ten
    with opening("matrix", f"#loss={loss}&seed={seed}") as page:
        assert all("NaN" not in svg.inner_html() for svg in page.page.locator("svg").all())


def test_a_teacher_leaves_controls_out(opening, tmp_path):
    with opening("circle", "#hide=rate,seed,share") as page:
        names = page.ask("(app) => Object.keys(app.inputs)")
        assert "temperature" in names and not {"rate", "seed"} & set(names)
        assert page.page.locator(".share").count() == 0
    explorers.write(tmp_path / "cut.html", "circle", {"hide": "rate", "temperature": 0.3, "loss": "MACL"})
    with opening("circle", path=tmp_path / "cut.html") as page:
        assert page.state()["temperature"] == 0.3
        assert "rate" not in page.ask("(app) => Object.keys(app.inputs)")
        assert page.settled() == ""
        page.page.click("summary")
        page.page.click(".hide label:has-text('images') input")
        assert page.settled() == "#hide=rate,pictures"
        assert page.page.input_value(".copy input").endswith("cut.html#hide=rate,pictures")


def test_a_page_without_its_buttons_plays_all_the_same(opening):
    with opening("circle", "#hide=buttons&step=1") as page:
        page.ask("(app) => app.play(true)")
        page.until(f"Number({APP}.state.step) > 3")
    with opening("run", "#hide=buttons") as page:
        page.ask("(app) => app.go(5)")
        page.until("document.querySelector('.says').textContent.includes('step 5 of')")


def test_in_a_frame_the_state_is_a_data_attribute_and_the_frame_is_as_high_as_the_page(opening, tmp_path):
    frame = explorers.frame("W", temperature=0.2)
    assert frame._repr_html_() == str(frame) and frame.title in str(frame)
    (tmp_path / "book.html").write_text(f"<body id=explorer>{frame}", "utf-8")
    with opening("W", path=tmp_path / "book.html") as page:
        inside = page.page.frame_locator("iframe")
        inside.locator(".says").wait_for()
        assert "0.2" in inside.locator("output").first.text_content()
        slider = inside.locator("input[name=temperature]")
        slider.focus()
        slider.press("ArrowRight")
        page.until("document.querySelector('iframe').dataset.state.includes('temperature=0.20')")
        assert page.page.url.endswith("book.html")
        inside.locator("summary").click()
        state = page.page.get_attribute("iframe", "data-state")
        link = inside.locator(".copy input")
        expect(link).to_have_value(f"W.html#{state}", timeout=20_000)
        slider.press("ArrowRight")  # while the box is open, the link follows
        expect(link).not_to_have_value(f"W.html#{state}", timeout=20_000)
        for theme, colour in {"dark": "rgb(25, 29, 38)", "light": "rgb(255, 255, 255)"}.items():
            page.page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
            expect(inside.locator("body")).to_have_css("background-color", colour, timeout=20_000)
        high = inside.locator("#explorer").bounding_box()["height"]
        page.until(f"Math.abs(document.querySelector('iframe').offsetHeight - {high}) < 12")


def test_keys_move_a_slider_a_point_and_a_row(kept, opening):
    with opening("circle", "#step=0") as page:
        page.page.focus(".stage svg")
        page.page.keyboard.press("ArrowUp")
        before = page.ask("(app) => [...app.lanes[0].angles(app)]")
        page.page.keyboard.press("ArrowLeft")
        after = page.ask("(app) => [...app.lanes[0].angles(app)]")
        moved = [
            k
            for k, (a, b) in enumerate(zip(before, after, strict=True))
            if abs(((a - b) + 3.2) % 6.2831853 - 3.2) > 1e-3
        ]
        assert len(moved) == 1 and page.state()["at"]
    with opening("matrix") as page:
        page.page.focus(".stage svg")
        page.page.keyboard.press("ArrowDown")
        assert page.state()["row"] == "1"
        page.until("document.querySelector('.says').textContent.includes('Anchor 2a')")
    with opening("W", "#shape=drawn&drawn=0") as page:
        page.page.locator(".stage svg[tabindex]").focus()
        page.page.keyboard.press("ArrowRight")
        before = [int(bar, 36) for bar in page.state()["drawn"]]
        for key in ("ArrowUp", "ArrowUp", "ArrowLeft", "ArrowUp", "ArrowDown"):
            page.page.keyboard.press(key)
        after = [int(bar, 36) for bar in page.state()["drawn"]]
        changed = [(k, b - a) for k, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
        assert changed == [(len(after) // 2 + 1, 10)]


def test_a_finger_drags_a_point_and_draws_the_negatives(opening):
    with opening("circle", "#step=0", **PHONE) as page:
        box = page.page.locator(".stage svg").first.bounding_box()
        x, y = page.ask(
            "(app) => [0, 1].map((k) => [170, 152][k] + 124 * [Math.cos, (t) => -Math.sin(t)][k]"
            "(app.lanes[0].angles(app)[0]))"
        )
        k = box["width"] / 340
        page.page.mouse.move(box["x"] + k * x, box["y"] + k * y)
        page.page.mouse.down()
        page.page.mouse.move(box["x"] + k * 170, box["y"] + k * 30)
        page.page.mouse.up()
        assert len(page.state()["at"]) == 96
        top = page.ask(
            "(app) => Math.min(...[...app.lanes[0].angles(app)].map((t) => Math.abs(t - Math.PI / 2)))"
        )
        assert top < 0.02
        touched = page.page.evaluate("getComputedStyle(document.querySelector('.stage svg')).touchAction")
        assert touched == "pan-y pinch-zoom"
    with opening("W") as page:
        box = page.page.locator(".stage svg").nth(2).bounding_box()
        page.page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.3 * box["height"])
        page.page.mouse.down()
        page.page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.2 * box["height"], steps=6)
        page.page.mouse.up()
        state = page.state()
        assert state["shape"] == "drawn" and sum(c != "0" for c in state["drawn"]) >= 5


def finger(page, x, y, dx, dy):
    """A finger's swipe over the page, in ten moves."""
    session = page.context.new_cdp_session(page)
    send = lambda kind, points: session.send(  # noqa: E731
        "Input.dispatchTouchEvent", {"type": kind, "touchPoints": points}
    )
    send("touchStart", [{"x": x, "y": y}])
    for k in range(1, 11):
        send("touchMove", [{"x": x + dx * k / 10, "y": y + dy * k / 10}])
        page.wait_for_timeout(16)
    send("touchEnd", [])
    page.wait_for_timeout(300)


def test_a_finger_that_goes_up_scrolls_the_page_and_one_that_goes_sideways_drags(opening):
    with opening("W", "#temperature=0.3", **PHONE) as page:
        before, where = page.state(), page.page.locator(".stage svg").first.bounding_box()
        x, y = where["x"] + where["width"] / 2, where["y"] + where["height"] / 2
        finger(page.page, x, y, 0, -150)
        assert page.page.evaluate("scrollY") > 80 and page.state() == before
        page.page.evaluate("scrollTo(0, 0)")
        finger(page.page, x, y, 60, 4)
        assert page.page.evaluate("scrollY") == 0
        assert page.state()["temperature"] != before["temperature"]
        slider = page.page.locator("input[name=temperature]").bounding_box()
        before = page.state()
        finger(page.page, slider["x"] + 10, slider["y"] + 10, 2, -90)
        assert page.state() == before


@pytest.mark.parametrize("name", explorers.NAMES)
def test_dark_is_dark_and_paper_has_the_picture_and_its_sentence(opening, name):
    with opening(name, color_scheme="dark") as page:
        channels = page.page.evaluate(
            "getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)"
        )
        assert max(channels) < 60
        page.page.emulate_media(media="print")
        shown = page.page.evaluate(
            "['.controls', '.says', '.stage svg'].map((x) => document.querySelector(x).offsetParent"
            " !== null || document.querySelector(x).getBoundingClientRect().height > 0)"
        )
        assert shown == [False, True, True]
        white = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert white == "rgb(255, 255, 255)"


def test_reduced_motion_stands_still_at_the_end_of_the_way(opening):
    with opening("circle") as page:
        assert page.ask("(app) => [app.still, Boolean(app.playing)]") == [True, False]
        assert page.page.text_content(".says").startswith("Step 300,")


def luminance(channels: list[int]) -> float:
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in channels)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_lines_stand_out_and_two_lines_differ_without_colour(opening, scheme):
    with opening("W", color_scheme=scheme) as page:
        colours = """(names) => names.map((name) => {
            const box = document.createElement("i");
            box.style.color = `var(--${name})`;
            document.getElementById("explorer").append(box);
            return getComputedStyle(box).color.match(/[0-9]+/g).map(Number); })"""
        names = ["paper", "ink", "soft", "blue", "red", "green", "purple", "orange", "sky", "olive"]
        paper, ink, soft, *lines = map(luminance, page.page.evaluate(colours, names))
        dash = page.page.evaluate(
            "['one', 'two'].map((x) => getComputedStyle(document.querySelector('.' + x)).strokeDasharray)"
        )

    def contrast(a: float, b: float) -> float:
        return (max(a, b) + 0.05) / (min(a, b) + 0.05)

    assert contrast(paper, ink) > 10 and contrast(paper, soft) > 4.5
    assert min(contrast(paper, line) for line in lines) > 3  # WCAG 1.4.11
    assert dash[0] == "none" and dash[1] != "none"


def test_a_line_has_the_colour_of_its_temperature(opening):
    stroke = "getComputedStyle(%s).stroke.match(/[0-9.]+/g).map(Number)"
    with opening("circle", "#temperature=0.05&beside_temperature=1&step=3") as page:
        for lane, tau in enumerate((0.05, 1.0)):
            for line in (f"app.lanes[{lane}].ring", f"app.charts[0].lines[{lane}]"):
                found = page.ask(f"(app) => {stroke % line}")
                assert found == pytest.approx(to_rgb(style.temperature(tau)), abs=0.003)
        assert page.ask(f"(app) => {stroke % 'app.lanes[0].pull'}") == [0, 114, 178], (
            "a role keeps its colour"
        )
    with opening("W", "#temperature=0.05") as page:
        assert page.ask(f"(app) => {stroke % 'app.many.one'}") == pytest.approx(
            to_rgb(style.temperature(0.05)), abs=0.003
        )


def test_each_class_of_points_has_a_shape_of_its_own(opening):
    with opening("circle", "#pictures=16&classes=8&step=0&beside=none") as page:
        drawn = page.ask("""(app) => app.lanes[0].points.filter((p, k) => k % 2).map((p) =>
            p.getAttribute("d").split("M")[1].match(/[0-9.-]+/g).map(Number))""")
    outlines = [[[x - of[0], y - of[1]] for x, y in zip(of[::2], of[1::2], strict=False)] for of in drawn]
    for one, other in itertools.combinations(outlines, 2):  # in pixels; what is drawn is rounded to a tenth
        assert len(one) != len(other) or np.abs(np.subtract(one, other)).max() > 1


def test_a_code_stands_where_the_pages_are_hosted_and_links_lead_there(opening, tmp_path):
    pytest.importorskip("segno")
    text = explorers.page("matrix", {"pictures": 4}, base_url="https://course.example/explorers/")
    (tmp_path / "hosted.html").write_text(text, "utf-8")
    with opening("matrix", path=tmp_path / "hosted.html") as page:
        page.page.click("summary")
        assert page.page.locator(".qr svg").bounding_box()["width"] > 100
        hosted = "https://course.example/explorers/matrix.html"  # which opens as that page was made
        assert page.page.input_value(".copy input") == f"{hosted}#pictures=4"
        page.ask("(app) => app.set('pictures', 5)")
        page.page.click("text=copy link")
        assert page.page.input_value(".copy input").endswith("matrix.html#pictures=5")
    assert "svg" not in explorers.page("matrix").split('"qr":')[1][:8]


@pytest.mark.parametrize("name", ["W", "circle", "matrix"])
def test_a_frames_link_and_a_made_pages_code_open_the_plain_page_as_it_stands(
    opening, tmp_path, monkeypatch, name
):
    made = {
        "W": {"loss": "MACL", "temperature": 0.2, "beside": "NTXent", "beside_temperature": 0.1},
        "circle": {"loss": "Debiased", "class_prior": 0.2, "pictures": 6},
        "matrix": {"loss": "HardNegative", "pictures": 4},
    }[name] | {"hide": explorers.EXPLORERS[name].controls[-1].name}
    coded = []
    monkeypatch.setitem(
        sys.modules, "segno", types.SimpleNamespace(make=lambda link, micro: coded.append(link))
    )
    with contextlib.suppress(AttributeError):  # of what was made of it
        explorers.page(name, made, base_url="https://course.example")
    (tmp_path / "book.html").write_text(f"<body id=explorer>{explorers.frame(name, **made)}", "utf-8")
    with opening(name, path=tmp_path / "book.html") as page:
        inside = page.page.frame_locator("iframe")
        inside.locator("summary").click()
        parts = [re.escape(part) for part in coded[0].split("#")[1].split("&")]
        said = re.compile(rf"#(?:(?:{'|'.join(parts)})(?:&|$)){{{len(parts)}}}$")
        expect(inside.locator(".copy input")).to_have_value(said, timeout=20_000)  # once nothing moves
    with opening(name, f"#{coded[0].split('#')[1]}") as page:
        state, hidden = page.ask("(app) => [app.state, [...app.hidden].join()]")
        assert {key: state[key] for key in made if key != "hide"} | {"hide": hidden} == made


def test_an_address_that_is_none_is_refused():
    with pytest.raises(ValueError, match="base_url is 'javascript:alert"):
        explorers.page("W", base_url="javascript:alert(1)")


def test_without_segno_a_code_asks_for_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "segno", None)
    with pytest.raises(ImportError, match="pip install segno"):
        explorers.page("W", base_url="https://course.example")


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("sphere", {}, "name is 'sphere', but must be one of W, circle, matrix, run"),
        ("W", {"loss": "VICregs"}, "explorers W: loss is 'VICregs', but must be one of PairMargin"),
        ("W", {"loss": "VICReg"}, "explorers W: loss is 'VICReg', which is left out: works on variances"),
        ("W", {"temperature": -1}, "explorers W: temperature is -1, but must be a number from"),
        ("W", {"loss": "Robust", "temperature": 0.1}, "there is no setting temperature"),
        ("circle", {"loss": "SSCL"}, "loss is 'SSCL', which is left out: draws new numbers at each step"),
        ("circle", {"pictures": 2.5}, "pictures is 2.5, but must be a whole number from 2 to 64"),
        ("circle", {"hide": "speed"}, "hide is 'speed', but must be one of loss"),
        ("circle", {"by_labels": 1}, "by_labels is 1, but must be True or False"),
        ("W", {"count": 3.7}, "count is 3.7, but must be one of 1, 2"),
    ],
)
def test_what_can_not_be_is_said_in_one_line(name, settings, said):
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        explorers.page(name, settings)
    assert "\n" not in str(error.value)


def test_a_loss_without_a_temperature_opens(opening, tmp_path):
    explorers.write(tmp_path / "a.html", "W", {"loss": "Robust", "beside": "Triplet", "beside_margin": 0.5})
    with opening("W", path=tmp_path / "a.html") as page:
        assert page.state()["beside_margin"] == 0.5 and "K_eff" in page.page.text_content(".says")


@pytest.mark.parametrize("name", ["Triplet", "PairMargin", "SigLIP", "DualTemperature"])
def test_how_W_moves_is_said_of_a_loss_whose_pull_is_W_alone(opening, name):
    with opening("W", f"#loss={name}") as page:
        said = page.page.text_content(".says")
        assert "K_eff" in said and "along τ" not in said
        page.ask("(app) => app.set('loss', 'NTXent')")
        page.until("document.querySelector('.says').textContent.includes('along τ')")


def test_a_page_says_the_pulls_of_both_losses_and_how_many_negatives_are_drawn_in(opening):
    loss = losses.HardNegative(0.5, class_prior=0.1, beta=1.0)
    shaped = {"positive": 0.8, "count": 255, "shape": "equal", "similarity": 0.0}
    s, n = torch.tensor([[0.8]]).double(), torch.zeros(1, 255).double()
    pulls = [float(anatomy.forces(each, s, n)[0]) for each in (loss, losses.NTXent(0.5))]
    given = {"loss": "HardNegative", "class_prior": 0.1, "beside": "NTXent", "beside_temperature": 0.5}
    with opening("W", f"#{urlencode(given | shaped)}") as page:
        said = page.page.text_content(".says")
        assert all(f"pulls with {pull:.3g}" in said or f"= {pull:.3g}" in said for pull in pulls), (
            said,
            pulls,
        )
        assert "drawn in" not in said
        page.ask("(app) => { app.set('shape', 'gaussian'); app.set('beta', 2); }")
        page.until("/[0-9]+ are drawn in/.test(document.querySelector('.says').textContent)")
        page.until("document.querySelector('.says').textContent.includes('pulls with')")


CHARTS = "[...document.querySelectorAll('.stage svg')].map((chart) => chart.getAttribute('aria-label'))"


@pytest.mark.parametrize(("name", "turned"), [("W", ["positive", 0.1]), ("circle", ["step", "9"])])
def test_every_chart_says_in_words_what_it_shows_now(opening, name, turned):
    with opening(name, "#step=0" if name == "circle" else "") as page:
        before = page.page.evaluate(CHARTS)
        page.ask("(app, [key, value]) => app.set(key, value)", turned)
        page.ask("(app) => app.draw()")
        after = page.page.evaluate(CHARTS)
    assert len(before) >= 3 and all(re.search(r"[0-9]", said) for said in before)
    assert all(a != b for a, b in zip(before, after, strict=True))


def test_where_no_script_runs_a_frames_still_stands_there_with_its_alt_text(chromium, tmp_path):
    frame = explorers.frame("circle", temperature=0.2, pictures=8, beside="none")
    image = '<div class="still"><figure style="margin: 0"><img src="data:image/png;base64,'
    assert image in str(frame) and f'alt="{frame.alt}"' in str(frame) and "8 images" in frame.alt
    assert frame._repr_png_().startswith(b"\x89PNG") and repr(frame).endswith(frame.alt)
    assert base64.b64encode(frame.picture).decode() in str(frame)
    (tmp_path / "book.html").write_text(f"<!doctype html><body>{frame}", "utf-8")
    for runs in (True, False):
        page = chromium.new_page(java_script_enabled=runs)
        page.goto((tmp_path / "book.html").as_uri())
        shown = page.locator(".still img")
        shown.wait_for(state="hidden" if runs else "visible")
        assert (page.locator("iframe").bounding_box()["height"] > 300) is runs
        page.close()
    assert not str(explorers.frame("matrix")).count('class="still"')


@pytest.mark.parametrize(
    "given", [{}, {"classes": 1, "pictures": 5, "seed": 7}, {"at": "a0b" * 4, "pictures": 2}]
)
def test_the_still_of_the_circle_has_the_points_where_the_page_has_them(opening, given):
    with opening("circle", f"#step=0&{urlencode(given)}") as page:
        there = page.ask("(app) => [...app.lanes[0].angles(app)]")
    state = {control.name: control.default for control in controls.CIRCLE} | given
    assert still.angles(state) == pytest.approx(there, abs=1e-9)


@pytest.mark.parametrize("shape", [*controls.SHAPES])
def test_the_still_of_W_has_the_negatives_of_the_page(opening, shape):
    given = {"shape": shape, "count": 48, "drawn": "0" * 10 + "az" * 5 + "0" * 20}
    with opening("W", f"#{urlencode(given)}") as page:
        n, m = page.ask("(app) => { const { n, m } = app.ask('loss'); return [n, m]; }")
    state = {control.name: control.default for control in controls.W} | given
    mean = sum(x * k for x, k in zip(n, m, strict=True)) / sum(m)
    found = still.negatives(state)
    assert len(found) == sum(m) and math.isclose(float(found.mean()), mean, abs_tol=0.02)


@pytest.mark.parametrize("name", explorers.NAMES)
def test_in_a_frame_nothing_plays_by_itself_for_the_text_around_it_asks_first(opening, tmp_path, name):
    (tmp_path / "book.html").write_text(f"<body>{explorers.frame(name)}", "utf-8")
    with opening(name, path=tmp_path / "book.html", reduced_motion="no-preference") as page:
        said = page.page.frame_locator("iframe").locator(".says").first
        before = said.text_content()
        page.page.wait_for_timeout(1000)
        assert said.text_content() == before


def test_a_gaussian_from_the_menu_is_that_of_random_directions_and_one_from_a_link_is_as_the_link_says(
    opening,
):
    with opening("W") as page:
        assert page.ask(
            "(app) => { app.set('shape', 'gaussian'); return [app.state.similarity, app.state.spread]; }"
        ) == [0, 0.1]
    with opening("W", "#shape=gaussian&similarity=0.4&spread=0.3") as page:
        assert page.ask("(app) => [app.state.similarity, app.state.spread]") == [0.4, 0.3]

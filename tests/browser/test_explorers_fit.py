"""How much room an explorer takes inside a notebook, a book and on a phone: measured in the browser."""

import pytest

from clutils import explorers

pytestmark = pytest.mark.browser

CELL, COLUMN, PHONE, SCREEN = 919, 672, 390, 600  # pixels: of JupyterLab's cell, the book's column, and high
AS_IN_NOTEBOOKS = "arc,scatter,classes,proportional,by_labels,seed"
OPENED = {
    "W": ("W", {}),
    "W, equal": ("W", {"beside": "none", "positive": 1.0, "shape": "equal", "similarity": -1.0}),
    "W, many settings": ("W", {"loss": "HardNegative", "beside": "AttentionNCE"}),
    "circle": ("circle", {}),
    "circle, alone": ("circle", {"beside": "none", "pictures": 8}),
    "circle, many settings": ("circle", {"loss": "MACL", "beside": "NTXent", "hide": AS_IN_NOTEBOOKS}),
}
BOXES = """() => { const inside = document.querySelector("iframe").contentDocument;
    const box = (what) => inside.querySelector(what).getBoundingClientRect();
    const [first, says, controls] = [".stage svg", ".says", ".controls"].map(box);
    const sizes = [...inside.querySelectorAll(".stage svg text")].map((text) => {
        const { a, b } = text.getScreenCTM(); // a label may be turned
        return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b); });
    return { high: controls.bottom - inside.querySelector(".explorer").getBoundingClientRect().top,
      order: [first.bottom, says.top, says.bottom, controls.top], smallest: Math.min(...sizes),
      wide: inside.documentElement.scrollWidth }; }"""


@pytest.fixture(scope="module")
def page(chromium):
    """One page for all."""
    found = chromium.new_page()
    yield found
    found.close()


def measured(page, folder, of, settings):
    """Each width of a frame, with its boxes; nothing leaves it, and no text is too small."""
    (folder / "cell.html").write_text(
        f"<!doctype html><body style='margin: 0'>{explorers.frame(of, **settings)}", "utf-8"
    )
    for wide in (CELL, COLUMN, PHONE):
        page.set_viewport_size({"width": wide, "height": 900})
        page.goto((folder / "cell.html").as_uri())
        page.frame_locator("iframe").locator(".says").wait_for()
        page.wait_for_timeout(300)  # the charts take the width that they got
        found = page.evaluate(BOXES)
        assert found["wide"] <= wide
        assert found["smallest"] > 10.5, f"{wide}: text of {found['smallest']:.1f} pixels"
        yield wide, found


@pytest.mark.parametrize("settings", [{}, {"pairs": "trained", "loss": "CLIP"}], ids=["views", "captions"])
def test_four_charts_in_a_frame_keep_their_text_readable(page, tmp_path, settings):
    assert [wide for wide, _ in measured(page, tmp_path, "matrix", settings)] == [CELL, COLUMN, PHONE]


@pytest.mark.parametrize("name", OPENED)
def test_charts_sentence_and_controls_fit_one_screen_and_its_text_stays_readable(page, tmp_path, name):
    for wide, found in measured(page, tmp_path, *OPENED[name]):
        chart, says, said, controls = found["order"]
        assert chart <= says + 1 and said <= controls + 1, f"{wide}: not chart, sentence, controls: {found}"
        if wide != PHONE:
            assert found["high"] <= SCREEN, f"{wide}: {found['high']:.0f} pixels high"


STARTS = """() => {
    const inside = document.querySelector("iframe").contentDocument;
    return [...inside.querySelectorAll("svg")].filter((root) => root.querySelector(".there")).map((root) => {
        const [, x, y] = root.querySelector(".line.one").getAttribute("d").match(/^M([\\d.]+) ([\\d.]+)/);
        const at = root.querySelector(".there").getBBox();
        return [x - at.x - at.width / 2, y - at.y - at.height / 2]; }); }"""


def test_in_a_frame_the_curves_of_a_run_begin_where_their_points_stand(page, tmp_path):
    (tmp_path / "cell.html").write_text(f"<!doctype html>{explorers.frame('run')}", "utf-8")
    page.set_viewport_size({"width": CELL, "height": 900})
    page.goto((tmp_path / "cell.html").as_uri())
    page.frame_locator("iframe").locator(".says").wait_for()
    page.wait_for_timeout(300)
    apart = page.evaluate(STARTS)
    assert len(apart) == 6
    assert all(abs(x) < 1 and abs(y) < 1 for x, y in apart), apart

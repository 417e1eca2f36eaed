"""The training lab in a real JupyterLab: one panel in one page, through all that a reader does to it."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from jupyterlab_driver import NOTEBOOK, Notebook, picture_bytes
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

PANEL = """
import os
from clutils import training
from clutils.course import lab as lesson
os.environ["CLUTILS_FAST"] = "0"  # long enough to be turned and stopped by hand
lab = lesson.training_lab(data="digits", steps=100_000, batch_size=32, folder="kept_by_the_test")
lab
"""
SECOND = """
other = lesson.training_lab(data="digits", steps=100_000, batch_size=32, folder="kept_by_the_test")
other
"""
CELL, SCREEN = 919, 600  # pixels: a JupyterLab cell on a laptop, and how high its window shows a notebook
ROOM = """cell => {
    const panel = cell.querySelector(".jp-Cell-outputArea .widget-vbox");
    const { width, height } = panel.getBoundingClientRect();
    const bar = (how) => how === "auto" || how === "scroll";
    const scrolls = [...panel.querySelectorAll("*"), panel].filter((part) => {
        const { overflowX, overflowY } = getComputedStyle(part);
        return bar(overflowX) && part.scrollWidth > part.clientWidth + 1
            || bar(overflowY) && part.scrollHeight > part.clientHeight + 1; });
    return { wide: width, high: height, scrolls: scrolls.map((part) => part.className) }; }"""
WAITS = "ended = lab.wait(100)\nprint(ended, lab.background.status)"
INTERRUPTED = "try:\n    lab.wait(100)\nexcept KeyboardInterrupt:\n    print('interrupted')"
COMPARED = "comparison = lesson.compare_runs(lab, folder='kept_by_the_test')\ncomparison"
SLOWER = """
import time
step = training.Run.step
pause = lambda run: time.sleep(0.1 if run.steps > 100 else 0)  # the page needs the processor, too
training.Run.step = lambda run: pause(run) or step(run)
"""
CELLS = (PANEL, SECOND, WAITS, COMPARED, SLOWER, "")
FIRST, OTHER, WAITING, TABLE, PAUSE, SCRATCH = range(len(CELLS))


class Page:
    """The notebook of the panel, and what a reader does in it."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook, self.page = notebook, notebook.page
        self.situations: list[str] = []
        self.meant: list[str] = []  # what looks wrong on the page, and was meant so

    @contextmanager
    def situation(self, name: str) -> Iterator[None]:
        """One thing that must work: named where it fails, and nothing may be wrong on the page after it."""
        self.situations.append(name)
        try:
            yield
            assert self.problems() == []
        except BaseException as error:
            error.add_note(f"situation {len(self.situations)}: {name}")
            raise

    def problems(self) -> list[str]:
        """What went wrong, but for the lines in which a panel says what its reader can mend."""
        meant = ("panel error", "did not run", *self.meant)
        return [text for text in self.notebook.problems() if not any(words in text for words in meant)]

    def run(self, index: int, source: str | None = None, wait: bool = True) -> str:
        """Run a cell, with this source if one is given -> what it printed."""
        call = self.page.evaluate(
            "([i, text]) => {" + NOTEBOOK + "nb.deselectAll(); nb.activeCellIndex = i;"
            " if (text !== null) nb.widgets[i].model.sharedModel.setSource(text);"
            " window.__cells = window.__cells || [];"  # each call its own: an earlier one may still run
            " const call = window.__cells.push(false) - 1;"
            " window.jupyterapp.commands.execute('notebook:run-cell')"
            ".finally(() => { window.__cells[call] = true; }); return call; }",
            [index, source],
        )
        if not wait:
            return ""
        replied = "call => window.__cells[call]"  # its reply and its outputs came
        self.page.wait_for_function(replied, arg=call, timeout=120_000)
        if index != SCRATCH:  # panels are drawn after that
            self.notebook.wait_quiet(120)
        outputs = self.notebook.cells()[index]["outputs"]
        return "".join("".join(output.get("text", "")) for output in outputs)

    def python(self, source: str) -> str:
        return self.run(SCRATCH, source).strip()

    def cell(self, index: int = FIRST):
        return self.notebook.cell(index)

    def button(self, label: str, cell: int = FIRST):
        return self.cell(cell).locator(".jupyter-button").filter(has_text=label).first

    def press(self, label: str, cell: int = FIRST, clicks: int = 1) -> None:
        expect(self.button(label, cell)).to_be_enabled(timeout=60_000)
        self.button(label, cell).click(click_count=clicks)

    def are(self, free: str, locked: str) -> None:
        """Wait until one button can be pressed and another can't."""
        expect(self.button(free)).to_be_enabled(timeout=60_000)
        expect(self.button(locked)).to_be_disabled(timeout=60_000)

    def says(self, words: str, cell: int = FIRST) -> None:
        """Wait until the panel says this of its run."""
        said = self.cell(cell).locator("[role=status]").filter(has_text=re.compile(words))
        said.first.wait_for(state="visible", timeout=60_000)

    def warns(self, words: str, cell: int = FIRST) -> None:
        """Wait until the panel says in its line of errors that this is wrong."""
        said = self.cell(cell).locator(".clutils-panel-error:visible").filter(has_text=re.compile(words))
        said.first.wait_for(timeout=60_000)

    def quiet(self, cell: int = FIRST) -> None:
        """Wait until the panel says of nothing that it is wrong."""
        line = self.cell(cell).locator(".clutils-panel-error:visible")
        line.first.wait_for(state="hidden", timeout=60_000)

    def choose(self, menu: str, value: str) -> None:
        row = self.cell().locator(".widget-dropdown").filter(has_text=re.compile(f"^{menu}"))
        row.locator("select").select_option(value)

    def type(self, label: str, text: str) -> None:
        row = self.cell().locator(".widget-text").filter(has_text=re.compile(f"^{label}"))
        row.locator("input").fill(text)
        row.locator("input").press("Enter")
        row.locator("input").blur()

    def turn(self, label: str, keys: str = "ArrowRight") -> None:
        handle = self.notebook.slider(self.cell(), label)
        before = handle.get_attribute("aria-valuetext")
        handle.focus()
        self.page.keyboard.press(keys)
        assert handle.get_attribute("aria-valuetext") != before

    def other_picture(self, source: str) -> None:
        """Wait until the panel's image is not that one any more."""
        self.page.wait_for_function(
            "([cell, s]) => { const i = cell.querySelector('img.widget-image');"
            " return i && i.src !== s && i.complete && i.naturalWidth > 0; }",
            arg=[self.cell().element_handle(), source],
            timeout=60_000,
        )


def test_the_panel_does_all_that_a_reader_does_to_it_and_nothing_breaks(lab, notebook_of):
    page = Page(lab)
    lab.open(notebook_of("lab.ipynb", *CELLS))
    lab.wait_quiet()
    lab.page.evaluate("() => { window.__kernel = []; }")  # what a kernel grumbles before widgets are there
    page.run(FIRST)
    page.run(PAUSE)

    with page.situation("a panel stands in the page, and its output has a still image for an export"):
        (output,) = lab.cells()[FIRST]["outputs"]
        assert "<img" in "".join(output["data"]["text/html"])
        source, empty = lab.picture(page.cell()).get_attribute("src"), picture_bytes(lab.picture(page.cell()))
    with page.situation("the panel fits a laptop's window and a projector's, with no scroll bar"):
        narrow = f".jp-OutputArea-output {{ max-width: {CELL}px !important }}"
        as_wide = lab.page.add_style_tag(content=narrow)
        usual = lab.page.viewport_size
        for window in ({"width": 1366, "height": 768}, {"width": 1280, "height": 720}):
            lab.page.set_viewport_size(window)
            for loss in ("★ MACL", "the method's own"):
                page.choose("loss", loss)
                dial = lab.slider(page.cell(), "α")
                dial.wait_for(state="visible" if "MACL" in loss else "hidden", timeout=60_000)
                found = page.cell().evaluate(ROOM)
                assert found["wide"] <= CELL and found["high"] <= SCREEN, (window, loss, found)
                assert not found["scrolls"], (window, loss, found)
        lab.page.set_viewport_size(usual)
        as_wide.evaluate("tag => tag.remove()")
    with page.situation("a double click on start is one start, and the charts fill"):
        page.press("start", clicks=2)
        page.says("images/s")
        for _ in range(60):  # the first image after the start may be of the untrained encoder still
            page.other_picture(source)
            source = lab.picture(page.cell()).get_attribute("src")
            if picture_bytes(lab.picture(page.cell())) != empty:
                break
        assert picture_bytes(lab.picture(page.cell())) != empty
        page.quiet()
    with page.situation("menus are locked while it trains"):
        page.are(free="stop", locked="start")
        expect(page.cell().locator("select:enabled")).to_have_count(0, timeout=60_000)
    with page.situation("a key on the dial of τ acts within a step or two, and the image follows"):
        source = lab.picture(page.cell()).get_attribute("src")
        page.turn("temperature")
        page.says("τ 0.22")
        page.other_picture(source)
        turned = json.loads(page.python("import json; print(json.dumps(lab.current.changes))"))
        assert turned[-1][1:] == ["temperature", 0.22]
    with page.situation("a dial that is turned fast ends where the hand left it"):
        for _ in range(5):
            page.turn("temperature")
        page.says("τ 0.33")
    with page.situation("two panels in a notebook: the other's start is refused in a line"):
        page.run(OTHER)
        page.press("start", OTHER)
        page.warns("a run is training already", OTHER)
        page.says("images/s")
    with page.situation("a checkpoint is kept while it trains"):
        page.press("keep checkpoint")
        page.says("Kept in")
    with page.situation("t-SNE is drawn beside the run"):
        page.press("draw t-SNE")
        page.cell().locator("img[alt*='t-SNE'], figure img").first.wait_for(timeout=120_000)
        page.says("images/s")
    with page.situation("stop ends it after a step, and what was learned is there"):
        page.press("stop")
        page.says("stopped")
        page.are(free="continue", locked="stop")
    with page.situation("continue goes on with the dials as they now stand"):
        steps, before = page.python("print(lab.run.steps_done, lab.run.loss.temperature)").split()
        page.turn("temperature")
        page.press("continue")
        page.says("images/s")
        after = page.python("print(lab.run.loss.temperature, len(lab.runs))").split()
        assert float(after[0]) > float(before) and after[1] == "1" and int(steps) > 0
    with page.situation("slider and stop button act while a cell waits for the run"):
        page.run(WAITING, wait=False)
        page.turn("temperature", "ArrowLeft")
        page.says("τ 0.33")
        page.press("stop")
        page.says("stopped")
        lab.wait_quiet()
        assert "True step" in "".join(lab.cells()[WAITING]["outputs"][0]["text"])
    with page.situation("an interrupted kernel ends the cell that waits, and not the run"):
        page.press("continue")
        page.says("images/s")
        page.run(WAITING, INTERRUPTED, wait=False)
        lab.page.wait_for_function(
            "i => {" + NOTEBOOK + "return nb.widgets[i].model.executionState === 'running'; }", arg=WAITING
        )
        lab.page.wait_for_timeout(300)
        lab.page.evaluate("() => {" + NOTEBOOK + "return s.session.kernel.interrupt(); }")
        lab.wait_quiet()
        assert "interrupted" in "".join(lab.cells()[WAITING]["outputs"][0]["text"])
        said = page.python("print(lab.background.running, lab.wait(0), lab.background.status)")
        assert said.startswith("True False step"), (said, lab.problems())
        page.press("stop")
        page.says("stopped")
    with page.situation("another method and loss, while a run stands, bring their dials"):
        for menu, name, dial in (("method", "★ moco", "momentum"), ("loss", "★ MACL", "α")):
            page.choose(menu, name)
            lab.slider(page.cell(), dial).wait_for(state="visible", timeout=60_000)  # as a reader would
    with page.situation("what is chosen trains: MoCo with MACL, whose τ moves by itself"):
        page.press("start")
        page.says("images/s")
        page.quiet()
    with page.situation("a cell that is run again stops its run, keeps what was trained, and says so"):
        page.run(FIRST)
        page.says("the run that trained here was stopped at step")
        assert page.python("print(len(lab.runs), lab.background)") == "2 None"
    with page.situation("other data: vectors, trained to the end of a short run"):
        page.choose("data", "★ vectors:digits")
        page.type("steps", "30")
        page.press("start")
        page.says("Step 30 of 30, done")
        page.are(free="start", locked="continue")
    with page.situation("reset puts the menus back"):
        chosen = page.python("lab.reset(); print(lab.menus['data'].value, lab.menus['steps'].value)")
        assert chosen == "digits 100000"
    with page.situation("kept and trained runs are compared"):
        page.run(TABLE)
        picked = "comparison.choose(*list(comparison.runs)[:3]); print(len(comparison.runs))"
        assert page.python(picked) == "4"
        compared = page.cell(TABLE)
        compared.locator("img[alt^='Curves of 3 runs']").wait_for()
        compared.locator("img[alt^='Maps of']").wait_for()
        compared.locator("table tbody tr").nth(1).wait_for()
    with page.situation("a closed panel leaves nothing training, and the other one can start"):
        page.press("start")
        page.says("images/s")
        page.meant.append(f"cell {FIRST}: hidden output")
        page.python("lab.close()")
        page.press("start", OTHER)
        page.says("images/s", OTHER)
        page.quiet(OTHER)

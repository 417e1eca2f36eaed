"""The training lab in a real JupyterLab: start, turn τ while it trains, stop, compare, and nothing breaks."""

import json

import pytest
from jupyterlab_driver import NOTEBOOK, picture_bytes

pytestmark = pytest.mark.browser

MADE = """
import os
from clutils.course import lab as lesson
os.environ["CLUTILS_FAST"] = "0"  # long enough to be turned and stopped by hand
lab = lesson.training_lab(data="digits", steps=5000, batch_size=64, folder="kept_by_the_test")
lab
"""
COMPARED = "comparison = lesson.compare_runs(lab, folder='kept_by_the_test')\ncomparison"
WAITS = "lab.start()\nended = lab.wait(100)\nprint(ended, lab.background.status)"
SAID = """
import json
history = lab.run.history
print(json.dumps({
    "steps": len(history), "temperatures": history["temperature"].drop_duplicates().tolist(),
    "first": int(history.query("temperature != 0.2")["step"].min()), "changes": lab.runs[0].changes,
    "runs": len(lab.runs), "picked": len(comparison.chosen), "looks": len(lab.runs[0].measured),
}))
"""


def run_cell(lab, index: int) -> None:
    lab.page.evaluate("i => {" + NOTEBOOK + "nb.deselectAll(); nb.activeCellIndex = i; }", index)
    lab.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")
    lab.wait_quiet(120)


def press(lab, cell, label: str) -> None:
    button = cell.locator(".jupyter-button").filter(has_text=label).first
    button.wait_for(state="visible")
    lab.page.wait_for_function("b => !b.disabled", arg=button.element_handle(), timeout=30_000)
    button.click()


def wait_for_status(lab, cell, words: str) -> None:
    said = cell.locator("[role=status]").filter(has_text=words)
    said.first.wait_for(state="visible", timeout=60_000)


def other_picture(lab, cell, source: str) -> None:
    """Wait until the picture is not that one any more."""
    lab.page.wait_for_function(
        "([cell, s]) => { const i = cell.querySelector('img.widget-image');"
        " return i && i.src !== s && i.complete && i.naturalWidth > 0; }",
        arg=[cell.element_handle(), source],
        timeout=60_000,
    )


def test_slider_and_stop_button_act_while_a_cell_waits_for_the_run(lab, notebook_of):
    made = MADE.replace("steps=5000", "steps=100_000")
    lab.open(notebook_of("waits.ipynb", made, WAITS))
    lab.wait_quiet()
    lab.page.evaluate("() => { window.__kernel = []; }")
    run_cell(lab, 0)
    lab.page.evaluate("i => {" + NOTEBOOK + "nb.deselectAll(); nb.activeCellIndex = i; }", 1)
    lab.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-cell'); }")
    cell = lab.cell(0)
    wait_for_status(lab, cell, "images/s")
    lab.slider(cell, "temperature").focus()
    lab.page.keyboard.press("ArrowRight")
    wait_for_status(lab, cell, "τ 0.22")
    press(lab, cell, "stop")
    wait_for_status(lab, cell, "stopped")
    lab.wait_quiet()
    (said,) = [output["text"] for output in lab.cells()[1]["outputs"]]
    assert "".join(said).startswith("True step ") and "of 100,000, stopped" in "".join(said)
    assert lab.problems() == []


def test_a_run_is_started_turned_stopped_and_compared(lab, notebook_of):
    lab.open(notebook_of("lab.ipynb", MADE, COMPARED, SAID))
    lab.wait_quiet()
    lab.page.evaluate("() => { window.__kernel = []; }")  # what a kernel grumbles before widgets are there
    run_cell(lab, 0)
    cell = lab.cell(0)
    picture = lab.picture(cell)
    empty, source = picture_bytes(picture), picture.get_attribute("src")
    press(lab, cell, "start")
    wait_for_status(lab, cell, "images/s")
    other_picture(lab, cell, source)
    source = lab.picture(cell).get_attribute("src")
    handle = lab.slider(cell, "temperature")
    before = handle.get_attribute("aria-valuetext")
    handle.focus()
    for _ in range(3):
        lab.page.keyboard.press("ArrowRight")
    assert handle.get_attribute("aria-valuetext") != before
    other_picture(lab, cell, source)
    press(lab, cell, "stop")
    wait_for_status(lab, cell, "stopped")
    assert picture_bytes(lab.picture(cell)) != empty
    assert cell.locator(".clutils-panel-error:visible").count() == 0
    press(lab, cell, "keep checkpoint")
    wait_for_status(lab, cell, "Kept in")

    run_cell(lab, 1)
    run_cell(lab, 2)
    said = json.loads("".join(lab.cells()[2]["outputs"][0]["text"]))
    assert 0 < said["steps"] < 5000 and said["runs"] == 1 and said["picked"] == 2 and said["looks"] >= 2
    assert said["temperatures"][0] == 0.2 and said["temperatures"][-1] > 0.2
    assert said["changes"][0][:2] == [said["first"], "temperature"]
    compared = lab.cell(1)
    assert compared.locator("img[alt^='Curves of 2 runs']").count() == 1
    assert compared.locator("img[alt^='Maps of']").count() == 1
    assert compared.locator("table tbody tr").count() == 1
    assert lab.problems() == []

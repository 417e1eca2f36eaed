"""The notebooks in a real JupyterLab and a real browser: they run, sliders move images, nothing breaks."""

import nbformat
import pytest
from jupyterlab_driver import NOTEBOOK

from clutils.course.book import stage

pytestmark = pytest.mark.browser

MANY_MINUTES = 900  # a hang should end; how long a notebook takes is measured in benchmarks/


def test_every_panel_of_the_notebook_answers_its_slider_and_nothing_breaks(lab):
    """Of one with a panel and an explorer; all run from a clean kernel in tests/course/test_notebooks.py."""
    name = "01_from_siamese_nets_to_infonce.ipynb"
    lab.open(name)
    lab.unfold()
    lab.run_all(MANY_MINUTES)
    assert lab.problems() == []
    live = lab.live_cells()
    assert live, f"{name} shows no slider over a live image"
    for index in live:
        assert lab.slider_changes_picture(lab.cell(index)), f"cell {index}: its slider changes nothing"
    assert lab.problems() == []


HERE = "() => {" + NOTEBOOK + " return [nb.activeCell.model.id, nb.widgets.filter(c => c.isHidden).length]; }"


def test_shift_enter_walks_the_open_cells_and_a_menu_entry_closes_the_asides_again(lab):
    name = "02_temperature_and_gradient_scaling.ipynb"
    cells = nbformat.read(lab.server.root / name, 4).cells
    shown = {cell.id for cell in stage.standing_open(nbformat.NotebookNode(cells=cells))}
    shown |= {cell.id for cell in cells if cell.metadata.get(stage.FOLDED)}
    nested = {c.id for c in cells if c.metadata.get(stage.FOLDED) and c.source.startswith("####")}
    path = [cell.id for cell in cells if cell.id in shown - nested]
    lab.open(name)
    lab.wait_quiet()
    lab.page.evaluate("() => {" + NOTEBOOK + " nb.activeCellIndex = 0; nb.mode = 'command'; nb.activate(); }")
    hidden = lab.page.evaluate(HERE)[1]
    for expected in path[1:25]:
        lab.page.keyboard.press("Shift+Enter")
        lab.page.wait_for_function(
            "id => {" + NOTEBOOK + " return nb.activeCell.model.id === id; }", arg=expected
        )
    assert lab.page.evaluate(HERE) == [path[24], hidden], "a fold was opened on the way"
    lab.unfold()
    lab.page.get_by_role("menuitem", name="View").click()
    lab.page.get_by_text("Close the Asides").click()
    lab.page.wait_for_function(
        "n => {" + NOTEBOOK + " return nb.widgets.filter(c => c.isHidden).length === n; }", arg=hidden
    )


def test_escape_leaves_an_explorer_and_shift_enter_goes_on(lab, notebook_of):
    name = notebook_of("explorer.ipynb", "from clutils import explorers\nexplorers.frame('W')", "1 + 1")
    lab.open(name)
    lab.run_all()
    lab.page.evaluate("() => {" + NOTEBOOK + " nb.activeCellIndex = 0; nb.mode = 'command'; nb.activate(); }")
    lab.page.locator("iframe.explorer").scroll_into_view_if_needed()
    lab.page.frame_locator("iframe.explorer").locator("input[type=range]").first.focus()
    assert lab.page.evaluate("document.activeElement.tagName") == "IFRAME"
    lab.page.keyboard.press("Escape")
    lab.page.keyboard.press("Shift+Enter")
    lab.page.wait_for_function("() => {" + NOTEBOOK + " return nb.activeCellIndex === 1; }", timeout=10_000)
    lab.wait_quiet()
    assert lab.problems() == []


PANEL = """from clutils import figures
from clutils.course import panels
figure, ax = figures.new(5, 2)
(line,) = ax.plot([0, 1], [0, 1])
figures.describe(ax, "A line.")
panels.panel(figure, lambda a: line.set_ydata([0, a]), a=panels.slider("a", 0.0, 1.0, 0.5))"""
SAYS = (
    "() => {"
    + NOTEBOOK
    + " return getComputedStyle(nb.widgets[0].node.querySelector("
    + ("'.jp-OutputArea-output.jupyter-widgets'), '::after').content; }")
)


def test_a_panel_saved_by_a_kernel_that_has_ended_says_what_to_run(lab, notebook_of):
    name = notebook_of("yesterday.ipynb", PANEL)
    lab.open(name)
    lab.run_all()
    assert lab.problems() == []
    lab.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    lab.page.evaluate("() => {" + NOTEBOOK + " return s.shutdown(); }")
    lab.open(name)
    lab.page.locator(".jp-OutputArea-output.jupyter-widgets").wait_for()
    assert "Run All Above Selected Cell" in lab.page.evaluate(SAYS)
    assert any("model not found" in problem for problem in lab.widget_problems()), "the driver misses it"
    lab.run_all()
    assert lab.widget_problems() == []
    assert lab.page.locator(".jp-OutputArea-output.jupyter-widgets").count() == 0

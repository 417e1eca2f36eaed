"""The notebooks in a real JupyterLab and a real browser: they run, sliders move pictures, nothing breaks."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

MANY_MINUTES = 900  # a hang should end; how long a notebook takes is measured in benchmarks/


@pytest.mark.parametrize("name", ["02_temperature_and_gradient_scaling.ipynb", "03_first_run.ipynb"])
def test_every_panel_of_the_notebook_answers_its_slider_and_nothing_breaks(lab, root: Path, name: str):
    if not (root / "notebooks" / name).exists():
        # a course that has its first page must have these
        missing = pytest.fail if (root / "notebooks" / "00_start_here.ipynb").exists() else pytest.skip
        missing(f"no notebooks/{name}")
    lab.open(name)
    lab.run_all(MANY_MINUTES)
    assert lab.problems() == []
    live = lab.live_cells()
    assert live, f"{name} shows no slider over a live picture"
    for index in live:
        assert lab.slider_changes_picture(lab.cell(index)), f"cell {index}: its slider changes nothing"
    assert lab.problems() == []

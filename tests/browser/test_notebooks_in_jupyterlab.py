"""The notebooks in a real JupyterLab and a real browser: they run, sliders move images, nothing breaks."""

import pytest

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

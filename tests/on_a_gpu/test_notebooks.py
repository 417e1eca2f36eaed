"""Every cell of the notebooks on the pretend GPU, with the CPU's recipes: a GPU's would take hours.

In the sweep alone: `make test` runs each notebook once, on the CPU.
"""

from pathlib import Path

import nbformat
import pytest

from tests.course.test_notebooks import NOTEBOOKS, ROOT, execute, isolated  # noqa: F401  (a fixture)

ON_A_GPU = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.on_a_gpu.pretend_cuda import pretend_cuda
_gpu = pretend_cuda()
_gpu.__enter__()
from clutils import encoders, training
from clutils.course import recipes
assert training.device().type == "cuda"
recipes._both = lambda name, both=recipes._both: both(name)[:1] * 2
encoders.half_precision = lambda device: None
"""


@pytest.mark.notebook
@pytest.mark.sweep
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_on_a_gpu(path: Path, isolated: None):  # noqa: F811
    assert execute(nbformat.read(path, as_version=4), path.parent, ON_A_GPU) == []

"""Make the README's images again: real cells of real runs, photographed in JupyterLab.

python tests/browser/readme_pictures.py [NAME ...]
"""

import sys
import tempfile
from pathlib import Path

from jupyterlab_driver import Notebook, Server, browser

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
# image -> notebook, a line of the cell whose output it shows, the part of that output
PICTURES = {
    "explorer": ("02_temperature_and_gradient_scaling.ipynb", 'explorers.frame("W"', ".jp-OutputArea"),
    "training_lab": ("12_training_lab.ipynb", "lab = lesson.training_lab(", ".jp-OutputArea"),
    "my_map": ("00_start_here.ipynb", "lesson.picture_map(after, mine.images),", "img"),
}


def take(name: str, chromium) -> Path:
    """Run the notebook, find the cell, photograph its output."""
    notebook_name, line, part = PICTURES[name]
    with tempfile.TemporaryDirectory() as work:
        server = Server(NOTEBOOKS, Path(work), windowing="none", dark=False, environment={})
        try:
            page = chromium.new_page(viewport={"width": 1200, "height": 1400})
            notebook = Notebook(page, server)
            notebook.open(notebook_name)
            notebook.run_all(1200)
            notebook.unfold()
            problems = notebook.problems()
            if problems:
                raise SystemExit(f"{notebook_name} has problems: {problems}")
            found = [cell["index"] for cell in notebook.cells() if line in cell["source"]]
            if len(found) != 1:
                raise SystemExit(f"{notebook_name}: {len(found)} cells hold {line!r}")
            element = notebook.cell(found[0]).locator(f".jp-Cell-outputWrapper {part}").first
            element.scroll_into_view_if_needed()
            page.wait_for_timeout(500)
            path = NOTEBOOKS / "pictures" / f"{name}.png"
            path.parent.mkdir(exist_ok=True)
            element.screenshot(path=path)
            return path
        finally:
            server.close()


if __name__ == "__main__":
    with browser() as opened:
        for wanted in sys.argv[1:] or PICTURES:
            print(take(wanted, opened))

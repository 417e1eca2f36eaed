"""Make the README's images again: real cells of real runs, photographed in JupyterLab.

python tests/browser/readme_pictures.py [NAME ...]
"""

import sys
from pathlib import Path

from jupyterlab_driver import browser, ran

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
    with ran(NOTEBOOKS / notebook_name, chromium, 1200, 1400, 1200, {}) as notebook:
        problems = notebook.problems()
        if problems:
            raise SystemExit(f"{notebook_name} has problems: {problems}")
        found = [cell["index"] for cell in notebook.cells() if line in cell["source"]]
        if len(found) != 1:
            raise SystemExit(f"{notebook_name}: {len(found)} cells hold {line!r}")
        element = notebook.cell(found[0]).locator(f".jp-Cell-outputWrapper {part}").first
        element.scroll_into_view_if_needed()
        notebook.page.wait_for_timeout(500)
        path = NOTEBOOKS / "pictures" / f"{name}.png"
        element.screenshot(path=path)
        return path


if __name__ == "__main__":
    with browser() as opened:
        for wanted in sys.argv[1:] or PICTURES:
            print(take(wanted, opened))

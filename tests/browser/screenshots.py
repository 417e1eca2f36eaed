"""Run a notebook in a real JupyterLab and save what a reader sees, top to bottom, with all asides open.

    python tests/browser/screenshots.py notebooks/04_macl.ipynb /tmp/shots [--theme both] [--fast]

Writes OUTDIR/<notebook>-light-01.png, -light-02.png, ... (one viewport each, with a little overlap) and
prints the run time, the slow cells and everything that went wrong; the exit code is 1 when something did.
"""

import argparse
import sys
from pathlib import Path

from jupyterlab_driver import NOTEBOOK, Notebook, browser, ran

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
SCROLLER = "document.querySelector('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer')"


def wear(page, theme: str) -> None:
    """Change JupyterLab's theme, and wait until the page shows it."""
    page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
    page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=theme, timeout=60_000)


def shoot(notebook: Notebook, out: Path, stem: str) -> list[Path]:
    """Scroll the notebook in viewport-high pieces and save each; every cell is in one of them."""
    page = notebook.page
    page.evaluate("() => {" + NOTEBOOK + "nb.deselectAll(); nb.activeCellIndex = 0; }")
    page.add_style_tag(content=".jp-cell-toolbar { display: none !important; }")
    box = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer").bounding_box()
    step = int(box["height"]) - 60
    saved, top = [], 0
    while True:
        # images that decode late change the height, so it is asked for each time
        height = page.evaluate(f"t => {{ {SCROLLER}.scrollTop = t; return {SCROLLER}.scrollHeight; }}", top)
        page.wait_for_function("() => [...document.images].every(i => i.complete)", timeout=60_000)
        page.wait_for_timeout(250)  # MathJax and lazy widgets paint after they come into view
        saved.append(out / f"{stem}-{len(saved) + 1:02d}.png")
        page.screenshot(path=saved[-1], clip=box)
        if top + box["height"] >= height - 1:
            return saved
        top += step


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebook", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--width", type=int, default=1200)
    parser.add_argument("--height", type=int, default=1400, help="of one piece")
    parser.add_argument("--theme", choices=[*THEMES, "both"], default="light", help="both: of one run")
    parser.add_argument("--fast", action="store_true", help="CLUTILS_FAST=1: training is shortened")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for the whole run")
    options = parser.parse_args(arguments)
    if not options.notebook.is_file():
        parser.error(f"no notebook at {options.notebook}")
    options.out.mkdir(parents=True, exist_ok=True)
    fast = {"CLUTILS_FAST": "1"} if options.fast else {}
    size = options.width, options.height
    with browser() as chromium, ran(options.notebook, chromium, *size, options.timeout, fast) as notebook:
        problems, cells, saved = notebook.problems(), notebook.cells(), []
        page = notebook.page
        page.evaluate("() => document.querySelectorAll('details').forEach(d => { d.open = true; })")
        for theme in THEMES if options.theme == "both" else [options.theme]:
            wear(page, THEMES[theme])
            saved += shoot(notebook, options.out, f"{options.notebook.stem}-{theme}")
    seconds = sum(cell["seconds"] or 0 for cell in cells)
    print(f"{options.notebook.name}: {len(cells)} cells ran in {seconds:.1f} s (kernel already started)")
    for cell in sorted(cells, key=lambda c: -(c["seconds"] or 0))[:8]:
        if cell["seconds"] and cell["seconds"] >= 1:
            first = next(iter(cell["source"].strip().splitlines()), "")
            print(f"  cell {cell['index']}: {cell['seconds']:.1f} s  {first[:80]}")
    print(f"{len(saved)} images: {saved[0]} to {saved[-1].name}")
    for problem in problems:
        print(f"PROBLEM {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""From a slider to a new picture: `forces.explore` against `interact` redrawing the same charts.

python benchmarks/sliders.py [--repeats N] [--drags N] [--kernel-only] [--json FILE]

Three measures, ours and theirs in turn in one run, so that whatever else the machine does meets both:

- in the kernel: how long the slider's callback takes, from the new value to the picture handed to the page
- key to picture: in a headless Chromium, from a key press on the slider to the new picture, decoded
- a fast drag across the slider: how many pictures were shown on the way, how long after the mouse button came
  up the last one changed, and whether it is the picture of the last value

Theirs is `ipywidgets.interactive` with a pyplot figure and the inline backend, at one picture pixel to a
pixel of the page; ours draws four times as many (scale 2). Trust the ratios (medians of the pairs' own).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import torch
from nbclient import NotebookClient

from clutils import anatomy, losses
from clutils.course import forces, records
from clutils.course.forces import figures as forces_figures

HERE = Path(__file__).resolve().parent
PLACE = {"similarity": -0.9, "hard": 0.9, "number": 1, "deviation": 0.25}
ANCHOR = {"positive": 0.5, "count": 255, "shape": "few hard", **PLACE}
KERNEL = f"""import sys
sys.path.insert(0, {str(HERE)!r})
import sliders, ipywidgets as W
from clutils import losses
from clutils.course import forces, panels"""
OURS = """ours = forces.explore(losses.Decoupled(0.1), "NTXent", **sliders.ANCHOR)
ours"""
THEIRS = """%matplotlib inline
theirs = W.interactive(sliders.plain, temperature=panels.log_slider("τ temperature", 0.01, 5.0, 0.1))
theirs"""
TIMES = "sliders.report(ours.inputs['temperature'], theirs.children[0], {repeats})"
WAYS = ("clutils", "interact")
Drag = dict[str, Any]  # pictures: how many were shown; lag: in ms; last: is it the last value's picture?


def plain(temperature: float) -> None:
    """The panel's three charts as anyone would write them for `interact`: all of them drawn at each move."""
    import matplotlib.pyplot as plt

    compared = {"Decoupled": losses.Decoupled(temperature), "NT-Xent": losses.NTXent(temperature)}
    positives, negatives = forces.one_anchor(**ANCHOR)
    _, (who, how, each) = plt.subplots(1, 3, figsize=(10.6, 4.0), dpi=100)
    forces_figures.push_frame(who)
    edges = forces_figures.BINS.numpy()
    number = forces.figures.shares(negatives, torch.ones_like(negatives))
    who.stairs(number.numpy(), edges, fill=True, label="the negatives")
    for name, loss in compared.items():
        pull, push = (force[0] for force in anatomy.forces(loss, positives[None], negatives[None]))
        who.stairs(forces.figures.shares(negatives, push).numpy(), edges, label=name)
        how.plot(forces.figures.SWEEP, forces.pulls(loss, positives, negatives), label=name)
        how.plot(positives, pull, "^")
        order = negatives.argsort()
        each.plot(negatives[order], push[order], label=name)
        each.plot(positives, pull, "^")
    each.set(xlim=(-1.05, 1.05), ylim=forces.figures.FORCE, yscale="log")
    for ax, title in ((who, "who is pushed"), (how, "pull on the positive"), (each, "force on each pair")):
        ax.set_title(title)
        ax.legend()
    plt.show()


def report(ours: Any, theirs: Any, repeats: int) -> None:
    """Called in the kernel: time both sliders' callbacks in turn, print milliseconds as JSON."""
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for k in range(repeats + 3):  # three to warm up
        for way, slider in zip(WAYS, (ours, theirs), strict=True):
            began = time.perf_counter()
            slider.index = 5 + 7 * k % (len(slider.options) - 10)
            found[way].append(1e3 * (time.perf_counter() - began))
    print("milliseconds", json.dumps({way: times[3:] for way, times in found.items()}))


def notebook(*cells: str) -> nbformat.NotebookNode:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    made.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    return made


def in_kernel(repeats: int) -> dict[str, list[float]]:
    """Milliseconds of each callback, in a kernel without a page."""
    ran = NotebookClient(notebook(KERNEL, OURS, THEIRS, TIMES.format(repeats=repeats)), timeout=600).execute()
    texts = "".join(output.get("text", "") for output in ran.cells[-1].outputs)
    return json.loads(texts.split("milliseconds ", 1)[1].splitlines()[0])


# In the page: note each new picture of a cell, once the browser has decoded it.
WATCH = """cell => { cell.__shown = []; let last = null, busy = false;
  const look = async () => { const picture = cell.querySelector('img');
    if (!busy && picture && picture.src !== last && picture.complete && picture.naturalWidth) {
      busy = true; last = picture.src; await picture.decode().catch(() => {});
      cell.__shown.push(performance.now()); busy = false; }
    requestAnimationFrame(look); };
  for (const kind of ['keydown', 'pointermove', 'pointerup'])
    document.addEventListener(kind, () => { cell.__input = performance.now(); }, true);
  look(); }"""
PICTURE = """async cell => { const picture = cell.querySelector('img'); await picture.decode();
  return [...new Uint8Array(await (await fetch(picture.src)).arrayBuffer())]; }"""


def in_browser(repeats: int, drags: int) -> tuple[dict[str, list[float]], dict[str, list[Drag]]]:
    """Key to picture in milliseconds, and what fast drags end in, for both ways."""
    sys.path.insert(0, str(HERE.parent / "tests" / "browser"))
    from jupyterlab_driver import Notebook, Server, browser

    keys: dict[str, list[float]] = {way: [] for way in WAYS}
    dragged: dict[str, list[Drag]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as work, browser() as chromium:
        folder = Path(work) / "here"
        folder.mkdir()
        nbformat.write(notebook(KERNEL, OURS, THEIRS), folder / "sliders.ipynb")
        server = Server(folder, Path(work))
        try:
            page = chromium.new_page(viewport={"width": 1400, "height": 1400})
            lab = Notebook(page, server)
            lab.open("sliders.ipynb")
            lab.run_all(300)
            if lab.problems():
                raise RuntimeError("\n".join(lab.problems()))
            cells = {way: lab.cell(k + 1) for k, way in enumerate(WAYS)}
            for cell in cells.values():
                cell.evaluate(WATCH)
            for k in range(repeats):
                for way, cell in cells.items():  # ten steps up, ten down: away from the slider's ends
                    keys[way].append(_press(lab, cell, "ArrowLeft" if k // 10 % 2 else "ArrowRight"))
            for _ in range(drags):
                for way, cell in cells.items():
                    dragged[way].append(_drag(lab, cell))
        finally:
            server.close()
    return keys, dragged


def _press(lab: Any, cell: Any, key: str) -> float:
    """Milliseconds from a key press on the cell's temperature slider to its new picture."""
    handle = lab.slider(cell, "τ temperature")
    handle.focus()
    lab.page.wait_for_timeout(200)
    shown = cell.evaluate("cell => cell.__shown.length")
    lab.page.keyboard.press(key)
    element = cell.element_handle()
    lab.page.wait_for_function("([c, n]) => c.__shown.length > n", arg=[element, shown], timeout=20_000)
    waited = cell.evaluate("(cell, n) => cell.__shown[n] - cell.__input", shown)
    lab.wait_quiet()
    return waited


def _drag(lab: Any, cell: Any, seconds: float = 0.6, steps: int = 40) -> Drag:
    """Pull the temperature slider from a tenth to nine tenths of its track; see what the picture shows."""
    mouse, handle = lab.page.mouse, lab.slider(cell, "τ temperature")
    handle.scroll_into_view_if_needed()
    track = handle.locator("xpath=ancestor::*[contains(@class, 'noUi-target')]").bounding_box()
    knob = handle.bounding_box()
    y = knob["y"] + knob["height"] / 2
    mouse.move(knob["x"] + knob["width"] / 2, y)
    mouse.down()
    mouse.move(track["x"] + 0.1 * track["width"], y)
    lab.wait_quiet()
    shown = cell.evaluate("cell => cell.__shown.length")
    for k in range(steps):
        mouse.move(track["x"] + track["width"] * (0.1 + 0.8 * (k + 1) / steps), y)
        time.sleep(seconds / steps)
    mouse.up()
    lab.wait_quiet(quiet=1.0)
    lag = cell.evaluate("cell => cell.__shown.at(-1) - cell.__input")
    pictures = cell.evaluate("cell => cell.__shown.length") - shown
    last = bytes(cell.evaluate(PICTURE))
    for key in ("ArrowRight", "ArrowLeft"):  # away and back: the picture of this very value
        _press(lab, cell, key)
    return {
        "pictures": pictures,
        "lag": max(lag, 0.0),
        "last": last == bytes(cell.evaluate(PICTURE)),
    }


def summary(times: dict[str, Sequence[float]]) -> dict[str, float]:
    """Median and 95 % quantile of each way, and the median of the pairs' ratios."""
    row: dict[str, float] = {}
    for way in WAYS:
        row[f"{way}_median_ms"] = round(statistics.median(times[way]), 1)
        row[f"{way}_95_percent_ms"] = round(statistics.quantiles(times[way], n=20)[-1], 1)
    ratios = [theirs / ours for ours, theirs in zip(times["clutils"], times["interact"], strict=True)]
    return row | {"ratio": round(statistics.median(ratios), 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--drags", type=int, default=5)
    parser.add_argument("--kernel-only", action="store_true", help="without a browser")
    parser.add_argument("--json", type=Path, help="write the tables there, with machine and versions")
    options = parser.parse_args()
    rows = {"in the kernel": summary(in_kernel(options.repeats))}
    drags: dict[str, list[Drag]] = {}
    if not options.kernel_only:
        keys, drags = in_browser(options.repeats, options.drags)
        rows["key to picture"] = summary(keys)
    print(f"{'milliseconds':<16}{'clutils median, 95 %':>24}{'interact median, 95 %':>24}{'ratio':>8}")
    for name, row in rows.items():
        cells = [f"{row[f'{way}_median_ms']:.0f}, {row[f'{way}_95_percent_ms']:.0f}" for way in WAYS]
        print(f"{name:<16}{cells[0]:>24}{cells[1]:>24}{row['ratio']:>8}")
    for way, found in drags.items():
        lags = ", ".join(f"{drag['lag']:.0f}" for drag in found)
        shown = statistics.median(drag["pictures"] for drag in found)
        right = sum(drag["last"] for drag in found)
        print(
            f"fast drag, {way}: {shown:.0f} pictures on the way, the last {lags} ms after the last input, "
            f"right in {right} of {len(found)}"
        )
    if options.json:
        table = {"rows": rows, "drags": drags, "repeats": options.repeats}
        options.json.write_text(json.dumps(table | records.provenance(), indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Training curves that fill while a run trains, as one image that stays where no kernel runs."""

import time
from collections.abc import Callable, Mapping

from IPython.display import display

from clutils import figures, training
from clutils.course.first_run.progress import Progress
from clutils.settings import within
from clutils.training import Run

LOOK = "accuracy"  # the name under which what is measured stands in a run's looks, and in its history
PAUSE = 3.0  # seconds between two images: drawing one takes less than a tenth of that


def watch(
    run: Run,
    accuracy: Callable[[Run], float],
    every: int = 50,
    baselines: Mapping[str, float] | None = None,
    floor: float | None = None,
) -> dict[int, float]:
    """Train a run to its end, and show how it goes; returns what was measured of it, step -> accuracy.

    - accuracy: called before the first step, after every so many, and at the end
    - baselines: name -> accuracy to compare with; floor: a loss that cannot be fallen below

    The stop button ends the training and keeps what was learned; `watch` called again goes on with the same
    run. What was measured belongs to the run (`run.looks`), so a second call returns the first one's too.
    With CLUTILS_FAST=1 in the environment the run is shortened, and says so.
    """
    within("watch", "every", every, 1, whole=True)
    if shorter := training.shorten(run):
        print(shorter)
    picture = Progress(run.steps, run.method.chance(run.settings.batch_size), floor, baselines)

    def measure() -> dict[int, float]:
        if LOOK not in run.looks.get(run.steps_done, {}):
            run.looks.setdefault(run.steps_done, {})[LOOK] = accuracy(run)
        return {step: seen[LOOK] for step, seen in run.looks.items() if LOOK in seen}

    measured = measure()
    shown = display(_bundle(picture, run, measured), raw=True, display_id=True)
    last = time.monotonic()

    def on_step(run: Run) -> None:
        nonlocal last, measured
        if run.steps_done % every == 0:
            measured = measure()
        elif time.monotonic() - last < PAUSE:
            return
        shown.update(_bundle(picture, run, measured), raw=True)
        last = time.monotonic()

    run.finish([on_step], progress=False)
    measured = measure()
    figure = picture.update(run.rows, measured, _status(run))
    shown.update({"text/html": figures.page(figure), "text/plain": figures.alt(figure)}, raw=True)
    return measured


def _bundle(picture: Progress, run: Run, measured: Mapping[int, float]) -> dict[str, str]:
    """The image in passing: at single resolution, which is drawn in a third of the time."""
    figure = picture.update(run.rows, measured, f"{_status(run)}; the stop button keeps what was learned")
    page = figures.page(figure, picture=figures.png(figure, scale=1.0))
    return {"text/html": page, "text/plain": figures.alt(figure)}


def _status(run: Run) -> str:
    seconds = run.rows[-1]["seconds"] if run.rows else 0.0
    return f"step {run.steps_done} of {run.steps}, {seconds:.0f} s of training"

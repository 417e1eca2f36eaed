"""The lab's drawing thread: draws a run while it trains, and says how far it is."""

import atexit
import contextlib
import html
import math
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import ipywidgets as W
import torch

from clutils import data as datasets
from clutils import figures, maps
from clutils.course.lab.figures import LabFigure
from clutils.course.lab.runs import LabRun
from clutils.course.live import LiveFigure
from clutils.course.panels import MUTED, ErrorLine, below, hidden
from clutils.figures.maps import embedding_map
from clutils.training.watcher import snapshot

PAUSE = 0.3  # seconds between two looks at how far the run is: at most three images a second
SCALE = 1.5  # image pixels to a pixel of the page: sharp enough, and drawn in half the time of 2
LOOK = (  # white on a dark page too; larger on a larger screen, as long as it can be seen whole
    "<style>.clutils-lab-picture { background: white; border-radius: 6px; "
    "max-width: clamp(700px, calc((100vh - 440px) * 2.26), 1500px); } "
    ".clutils-lab-picture img { width: 100% !important; }</style>"
)
# the line above the charts: as high with two lines of words as with one, so that the charts stay in place
LINE = "height: 46px; overflow: hidden; display: flex; align-items: center; gap: 16px; line-height: 1.3"
LARGE = "font-size: 24px; font-weight: 600; white-space: nowrap; font-variant-numeric: tabular-nums"
BAR = "display: block; width: 100%; height: 8px; accent-color: var(--jp-brand-color1, #0072B2)"
RAW = {"pictures": "raw pixels", "sentences": "bag of words"}  # what features without learning are called
PACE = 5.0  # seconds over which the images a second are counted


class Screen:
    """Widgets that show a run: how it goes, what went wrong, its charts, and a map below them.

    - error, status, picture, alt, tsne: the widgets, in the order of the page
    - charts: what is drawn, and `live` its image in the page
    """

    def __init__(self, charts: LabFigure) -> None:
        self.error = ErrorLine()
        self.status, self.alt, self.tsne = W.HTML(), W.HTML(), W.HTML()
        self.picture = W.Box(layout=W.Layout(width="98%", padding="8px"))
        self.picture.add_class("clutils-lab-picture")
        self._look = W.HTML(LOOK, layout=W.Layout(display="none"))
        self.show(charts)

    def show(self, charts: LabFigure) -> None:
        """These from now on; a map of what was shown before goes."""
        self.charts, self.live = charts, LiveFigure(charts.figure, SCALE)
        self.live.draw()
        self.picture.children = (self.live.image, self._look)
        self.tsne.value = ""

    def draw(self, record: LabRun) -> None:
        """Bring the charts and their words up to date."""
        with self.live.lock:
            measured = record.watcher.table.to_dict("records")
            self.charts.update(list(record.run.rows), measured, record.watcher.positions, record.changes)
            self.live.draw()
        self.alt.value = hidden(figures.alt(self.charts.figure))

    def draw_tsne(self, record: LabRun) -> None:
        """t-SNE of the run's sample as it is now; what goes wrong is said, not raised."""
        try:
            self.tsne.value = below("Drawing t-SNE …", MUTED, role="status")
            seen, pictures = record.background.call(snapshot).result(), record.watcher.pictures
            features = seen.embed(pictures.inputs)
            found = maps.tsne(features)
            title = f"t-SNE of {len(features)} {record.run.kind}, step {seen.step:,}"
            self.tsne.value = figures.page(embedding_map(found, pictures.labels, pictures.class_names, title))
        except Exception as error:
            self.tsne.value = ""
            self.complain(error)

    def say(self, text: str, record: LabRun | None = None) -> None:
        """How it goes, in a line of fixed height; of a run its kNN accuracy and how far it is, too."""
        self.status.value = _status(text, record)

    def complain(self, error: BaseException) -> None:
        """Say in one line what went wrong; of what the reader can mend not what kind of error it is."""
        kind = "" if isinstance(error, ValueError | datasets.Unavailable) else f"{type(error).__name__}: "
        self.error.say(kind + " ".join(str(error).split()))

    @contextlib.contextmanager
    def complaining(self) -> Iterator[None]:
        """Say what goes wrong in the block, and raise it."""
        try:
            yield
        except Exception as error:
            self.complain(error)
            raise


class Following:
    """A run that trains, drawn in a thread of its own, within its share of the time.

    - ended: called when the last image is there
    """

    def __init__(self, record: LabRun, screen: Screen, ended: Callable[[], object]) -> None:
        self.record, self.screen, self._ended = record, screen, ended
        self._threads = torch.get_num_threads()  # asked here: in the thread it would be a step's
        self._pace: list[tuple[float, int]] = []  # (seconds, steps done) of the last looks
        self._drawn = len(record.watcher.looks)  # how many of its looks have been drawn
        self._thread = threading.Thread(target=self._follow, name="clutils lab", daemon=True)
        self._over = threading.Event()

    def start(self) -> None:
        self._thread.start()

    def wait(self, timeout: float | None = None) -> bool:
        """True once the last image is there, after at most `timeout` seconds."""
        return self._over.wait(timeout)

    def finish(self) -> None:
        """Wait until the last image of a run that has ended is there."""
        if self._thread is not threading.current_thread() and not self.record.background.running:
            self._thread.join()

    # ---- the thread ------------------------------------------------------------------------------------

    def _leave(self) -> None:
        """The interpreter ends, and torch does not survive that in a thread."""
        self.record.background.stop()
        self._thread.join()

    def _follow(self) -> None:
        record, background = self.record, self.record.background
        torch.set_num_threads(1)  # of this thread: the run has the others
        atexit.register(self._leave)
        try:
            try:
                self._watch()
            except Exception as error:
                if error is not background.error:  # which a look that waited for the run gets, too
                    raise
            background.stop()  # its thread has ended, or is about to
            self.screen.draw(record)
            if background.error is not None:
                self.screen.complain(background.error)
            how = background.status
            self.screen.say(f"{how[:1].upper()}{how[1:]}. {_numbers(record)}", record)
        except Exception as error:  # an image that can't be drawn must not leave a panel that seems to train
            background.stop()
            self.screen.complain(error)
        finally:
            atexit.unregister(self._leave)
            torch.set_num_threads(self._threads)
            self._ended()
            self._over.set()

    def _watch(self) -> None:
        """Say how far it is and draw, until the run ends; its watcher measures it after its steps."""
        run, background, watcher = self.record.run, self.record.background, self.record.watcher
        self._pace.append((time.perf_counter(), run.steps_done))
        while background.running:
            time.sleep(PAUSE)
            began, looks = time.perf_counter(), len(watcher.looks)
            self.screen.say(self._progress(), self.record)
            if looks > self._drawn or watcher.has_budget(run):
                self._drawn = looks
                self.screen.draw(self.record)
            watcher.seconds_total += time.perf_counter() - began

    def _progress(self) -> str:
        """The step, the images a second and the time left."""
        run, pace, now = self.record.run, self._pace, time.perf_counter()
        pace.append((now, run.steps_done))
        while len(pace) > 2 and now - pace[0][0] > PACE:
            pace.pop(0)
        (since, before), (now, steps) = pace[0], pace[-1]
        each = (now - since) / (steps - before) if steps > before else math.nan
        parts = [f"Step {run.steps_done:,} of {run.steps:,}"]
        if math.isfinite(each):
            left = (run.steps - run.steps_done) * each
            parts += [
                f"{run.settings.batch_size / each:,.0f} images/s",
                f"{timedelta(seconds=round(left))} left",
            ]
        return f"{', '.join(parts)}. {_numbers(self.record)}"


def first_charts(record: LabRun) -> LabFigure:
    """The charts of a run at rest, before its first step, with what an untrained encoder is worth."""
    run, watcher = record.run, record.watcher
    seen, raw = watcher.look(run, free=True), watcher.raw()
    number = len(watcher.pictures)
    charts = LabFigure(
        run.steps,
        run.method.chance(run.settings.batch_size),
        watcher.ceiling,
        {"untrained": seen.knn, RAW.get(run.kind.name, f"raw {run.kind.name}"): raw},
        watcher.pictures.labels,
        watcher.pictures.class_names,
        watcher.measures_knn,
        f"PCA of {number} {'test ' if 'split test' in watcher.pictures.source else ''}images",
    )
    charts.update((), watcher.table.to_dict("records"), watcher.positions)
    return charts


# ---- words -------------------------------------------------------------------------------------------------


def _numbers(record: LabRun) -> str:
    run, parts = record.run, []
    if run.rows:
        row = run.rows[-1]
        chance = "" if math.isnan(row["chance"]) else f" (chance {row['chance']:.3f})"
        parts.append(f"Loss {row['loss']:.3f}{chance}")
        now = row.get("effective_temperature", row.get("temperature"))
        parts += [] if now is None else [f"τ {now:.3g}"]
    if not record.watcher.measures_knn:
        parts.append("no kNN, which needs labels of two classes")
    parts += [record.equal_views] if record.equal_views else []
    return f"{'; '.join(parts)}." if parts else ""


def _status(text: str, record: LabRun | None) -> str:
    """The line above the charts: the last kNN accuracy, large; the text; a bar of the steps done."""
    large, bar, tip = "", "", ""
    if record is not None:
        looks, run = record.watcher.looks, record.run
        if looks and not math.isnan(looks[-1].knn):
            large = f'<span style="{LARGE}">kNN {looks[-1].knn:.2f}</span>'
        bar = f'<progress value="{run.steps_done / run.steps:.3f}" style="{BAR}"></progress>'
        tip = f"data: {record.source}"
    words = f'<span style="flex: 1; min-width: 0">{html.escape(text)}{bar}</span>'
    return f'<div role="status" title="{html.escape(tip)}" style="{LINE}">{large}{words}</div>'

"""Runs set side by side: those of this session and those in folders, the command line's too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ipywidgets as W

from clutils import figures
from clutils.course.lab.figures import MOST_MAPS, compared_curves, compared_maps, cut, words_of
from clutils.course.lab.panel import Lab, LabRun
from clutils.course.panels import MUTED, ErrorLine, below
from clutils.training import comparison, saved
from clutils.training.saved import Comparable, SavedRun

MOST = 6  # runs whose curves can be distinguished
ROWS, MOST_ROWS = 8, 24  # of the list that are in view: fewer of fewer runs, more where a picked one is lower
LONGEST = 120  # letters of a setting
NAMES = {
    "temperature": "τ at the end",
    "knn": "kNN",
    "effective_rank": "effective rank",
    "uniformity": "uniformity",
}
STYLE = (  # names and paths may break anywhere
    "<style>.clutils-compared :is(td, th) { padding: 2px 14px 2px 0 } "
    ".clutils-compared td { text-align: left; vertical-align: top; overflow-wrap: anywhere; "
    "min-width: 6ch; font-size: 13px; font-variant-numeric: tabular-nums } "
    ".clutils-compared td:first-child { min-width: 16ch }</style>"
)


class Comparison(W.VBox):
    """Curves over each other, maps side by side and a table, of the runs that are picked from a list.

    - lab_or_runs: a lab, whose stopped and finished runs are listed, or such runs; None = saved ones alone
    - folder: where saved runs lie, at any depth: the lab's, and those of `python -m clutils train --out`
    - runs: name -> run, all that can be picked, newest first; chosen: the names that are

    The table has a row a run, and a column for each setting in which two of them differ.
    """

    def __init__(
        self,
        lab_or_runs: Lab | Sequence[LabRun | SavedRun] | None = None,
        folder: str | Path = "my_runs",
    ) -> None:
        self.given, self.folder = lab_or_runs, Path(folder)
        self.runs: dict[str, Comparable] = {}
        self.pick = W.SelectMultiple(rows=ROWS, description="runs", layout=W.Layout(width="560px"))
        self.pick.style.description_width = "5ch"
        self.refresh_button = W.Button(
            description="refresh",
            icon="refresh",
            tooltip="Look again for runs",
            layout=W.Layout(width="auto"),
        )
        self.notes, self.table = W.HTML(), W.HTML()
        self.curves, self.maps = W.HTML(), W.HTML()
        self.error = ErrorLine()
        hint = f"Several with Ctrl or Shift, at most {MOST}."
        self.pick.observe(lambda _: self.show(), "value")
        self.refresh_button.on_click(lambda _: self.refresh())
        self.refresh()
        beside = W.VBox([self.refresh_button, W.HTML(below(hint, MUTED))])
        super().__init__(
            [W.HBox([self.pick, beside]), self.notes, self.error, self.table, self.curves, self.maps]
        )

    @property
    def chosen(self) -> tuple[str, ...]:
        return self.pick.value

    def choose(self, *names: str) -> Comparison:
        """Pick these runs. Raises ValueError on a name that there is not."""
        for name in names:
            if name not in self.runs:
                raise ValueError(f"compare_runs: no run {name!r}; there are {', '.join(self.runs) or 'none'}")
        self._place(names)
        return self

    def refresh(self) -> None:
        """Look again for runs, of the session and in the folder; what was picked stays so.

        At first the two newest are picked.
        """
        before = self.pick.value if self.runs else None
        runs, damaged = self._found()
        self.runs = runs
        self.pick.options = list(runs)
        picked = tuple(runs)[:2] if before is None else tuple(name for name in before if name in runs)
        said = [below(problem, MUTED) for problem in damaged]
        if not runs:
            said.append(below(f"There is no run yet, nor one in {self.folder}.", MUTED))
        self.notes.value = "".join(said)
        self._place(picked)
        self.show()

    def show(self) -> None:
        """Draw what is picked."""
        self.error.say()
        as_made = reversed(self.runs.items())
        chosen = [run for name, run in as_made if name in self.chosen]
        try:
            if len(chosen) > MOST:
                raise ValueError(
                    f"{len(chosen)} runs are picked, but curves of more than {MOST} can't be distinguished"
                )
            self._draw([run for run in chosen if len(run.history)])
        except ValueError as error:
            self.error.say(str(error))

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """The widget, and beside it what it shows as it stands, for an export where no kernel runs."""
        shown = (self.notes, self.error, self.table, self.curves, self.maps)
        still = "".join(widget.value for widget in shown)
        return {**super()._repr_mimebundle_(**options), "text/html": still}

    def _place(self, names: Sequence[str]) -> None:
        """Pick these, in a list high enough that they are in view."""
        order = list(self.runs)
        least = min(ROWS, max(3, len(order)))
        self.pick.rows = min(MOST_ROWS, max([least, *(order.index(name) + 1 for name in names)]))
        self.pick.value = tuple(names)

    def _draw(self, runs: Sequence[Comparable]) -> None:
        self.table.value = _table(runs) if runs else ""
        self.curves.value = figures.page(compared_curves(runs)) if runs else ""
        mapped = [run for run in runs if run.map is not None][-MOST_MAPS:]
        self.maps.value = figures.page(compared_maps(mapped)) if mapped else ""

    def _found(self) -> tuple[dict[str, Comparable], list[str]]:
        given = self.given.runs if isinstance(self.given, Lab) else (self.given or ())
        found = [(run, comparison.problem(run)) for run in saved.listed(self.folder)]
        runs: dict[str, Comparable] = {}
        for run in [*(run for run, problem in found if problem is None), *given]:
            name, number = run.name, 2
            while name in runs:
                name, number = f"{run.name} ({number})", number + 1
            runs[name] = run
        # turned round after they are numbered: a new run renames no older one
        return dict(reversed(runs.items())), [
            f"{run.name} can't be read: {problem}" for run, problem in found if problem
        ]


compare_runs = Comparison


def _table(runs: Sequence[Comparable]) -> str:
    """`comparison.table` as HTML, its settings in the panel's words."""
    found = comparison.table(runs).replace({"turned": {"": "–"}})
    found = found.map(lambda value: cut(value, LONGEST) if isinstance(value, str) else value)
    found = found.rename(columns=lambda name: NAMES.get(name) or words_of(name))
    forms = {NAMES["knn"]: "{:.3f}".format, NAMES["effective_rank"]: "{:.1f}".format}
    forms |= {NAMES["uniformity"]: "{:.2f}".format, NAMES["temperature"]: "{:.3g}".format}
    look: dict[str, Any] = {"border": 0, "classes": "clutils-compared", "justify": "left", "na_rep": "–"}
    table = found.to_html(index=False, formatters=forms, float_format="{:.6g}".format, **look)
    return f"{STYLE}{table}"

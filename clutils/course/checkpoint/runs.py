"""Runs of notebook 13 that their training made ill, and a report's lines as text."""

import textwrap
from typing import Any

from clutils import losses, training, views
from clutils.data import ImageSet
from clutils.report import GOOD, Report

COLOURS_KEPT = views.Augmentation(grayscale=0.0, jitter=(0.0, 0.0, 0.0, 0.0), flip=0.0)  # crops alone
WAYS: tuple[dict[str, Any], ...] = (
    {"loss": losses.NTXent(0.2), "augmentation": COLOURS_KEPT},
    {"loss": losses.NTXent(5.0)},
    {"loss": losses.Regression()},
)


def ill_runs(pictures: ImageSet, steps: int = 60) -> dict[str, training.Run]:
    """Three runs of some seconds each, by letter; what is wrong with them, exercise 3 asks."""
    settings = {"data": pictures, "steps": steps, "batch_size": 64, "learning_rate": 1e-2, "seed": 2}
    return {
        letter: training.Run(**settings, **way).finish(progress=False)
        for letter, way in zip("ABC", WAYS, strict=True)
    }


def summary(found: Report) -> str:
    """A report's lines that are not good, with their values, and the names of those that are."""
    lines = [
        textwrap.fill(f"  {v.said}: {v.name}: {v.value}. {v.says}", 100, subsequent_indent="    ")
        for v in found.verdicts
        if v.level != GOOD
    ]
    fine = "  good: " + ", ".join(v.name for v in found.verdicts if v.level == GOOD)
    return "\n".join([*lines, textwrap.fill(fine, 100, subsequent_indent="    ")])

"""The inputs by which a reader shapes an anchor's negatives, the same in every panel that has them."""

from __future__ import annotations

from collections.abc import Mapping

import ipywidgets as W

from clutils.course.panels import slider

DISTRIBUTIONS = {
    "all equal": "equal",
    "spread as a Gaussian": "gaussian",
    "a few hard, many easy": "few hard",
}
# the inputs that a distribution reads, and what they are called there; the others are put away
READS = {
    "equal": {"similarity": "s⁻ of all"},
    "gaussian": {"similarity": "s⁻ mean", "deviation": "s⁻ spread"},
    "few hard": {"similarity": "s⁻ of the easy", "hard": "s⁻ of the hard", "number": "number of hard"},
}


def places(similarity: float, deviation: float, hard: float, number: int) -> dict[str, W.Widget]:
    """A slider for each number that some distribution reads, at these values."""
    return {
        "similarity": slider("s⁻", -1.0, 1.0, float(similarity), 0.01),
        "deviation": slider("s⁻ spread", 0.02, 0.6, deviation, 0.01),
        "hard": slider("s⁻ of the hard", -1.0, 1.0, float(hard), 0.01),
        "number": slider("number of hard", 1, 20, number),
    }


def show_what_is_read(inputs: Mapping[str, W.Widget], distribution: str) -> None:
    """Show the inputs that this distribution reads, under its names for them, and put the others away."""
    for name in ("similarity", "deviation", "hard", "number"):
        inputs[name].layout.display = "" if name in READS[distribution] else "none"
        inputs[name].description = READS[distribution].get(name, "")

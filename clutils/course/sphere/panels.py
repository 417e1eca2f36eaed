"""Points that move on the circle under a loss of choice, and the push on an anchor's negatives."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from clutils import explorers, losses
from clutils.course.panels import Panel, panel, slider
from clutils.course.sphere import descent
from clutils.course.sphere import figures as drawn
from clutils.explorers import still
from clutils.explorers.pages import Frame
from clutils.losses import Loss

SPREAD, ARC, RATE = 0.2, 2.0, 0.1  # of the start, in radians; of a step
TURN = 2 * math.pi
NEAREST = 0.95  # beyond it the pair loss's ∂d/∂s, 1/d, outgrows the image


def circle(loss: str = "NTXent", pictures: int = 5, beside: str = "none", **settings: Any) -> Frame:
    """The explorer of points on a circle, opened on the points of `start(pictures, spread=0.2, arc=2.0)`.

    Its steps are those of `move`. What would move the start, or its steps, is left out of its controls.

    - loss, beside: names in the catalogue; both start at one temperature
    - settings: of the page, as in `explorers.frame`, which raises ValueError on what can't be
    """
    both = descent.start(pictures, 2, spread=SPREAD, arc=ARC, seed=0)
    turns = [math.atan2(y, x) / TURN % 1 for view in both for x, y in view.tolist()]
    places = [np.base_repr(int(turn * still.DIGITS), 36).lower().zfill(3) for turn in turns]
    start: dict[str, Any] = {
        "at": "".join(places),
        "arc": round(ARC / TURN, 2),
        "scatter": SPREAD,
        "classes": 8,
    }
    steps = {"rate": RATE, "proportional": False, "hide": "arc,scatter,classes,proportional,by_labels,seed"}
    known = losses.catalogue().get(beside)
    if "temperature" in settings and known and "temperature" in known.cls.ranges:
        start["beside_temperature"] = settings["temperature"]
    asked = {"loss": loss, "beside": beside, "pictures": pictures}
    return explorers.frame("circle", **(asked | start | steps | settings))


def explore_pushes(compared: Sequence[Loss], positive: float, negatives: Tensor) -> Panel:
    """The push on each negative of one anchor under several losses at once, while one negative moves.

    - compared: losses of level "similarity", side by side
    - positive: s+; negatives: (K,) similarities; the first is the one that moves, from -0.95 to 0.95

    Raises ValueError unless there is a negative beside the one that moves.
    """
    if negatives.ndim != 1 or len(negatives) < 2:
        raise ValueError(f"pushes: negatives is {tuple(negatives.shape)}, but must be (K,), K of 2 or more")
    picture = drawn.PushStems(compared, positive, negatives, NEAREST)

    def update(moving: float) -> str:
        others = zip(picture.losses, picture.update(moving), strict=True)
        said = "; ".join(
            f"{drawn.name_of(loss)}: {now:.3f} (at first {then:.3f})" for loss, (then, now) in others
        )
        return f"Push on the {len(negatives) - 1} negatives that stay where they are. {said}."

    start = slider("s⁻ of one negative", -NEAREST, NEAREST, float(negatives[0]), 0.01)
    return panel(picture.figure, update, moving=start)

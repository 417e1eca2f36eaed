"""Points that move on the circle under a loss of choice, and the push on an anchor's negatives."""

import math
from typing import Any

import numpy as np

from clutils import explorers, losses
from clutils.course.sphere import descent
from clutils.explorers import still
from clutils.explorers.pages import Frame

SPREAD, ARC, RATE = 0.2, 2.0, 0.1  # of the start, in radians; of a step
TURN = 2 * math.pi
NEAREST = 0.95  # beyond it the pair loss's ∂d/∂s, 1/d, outgrows the image


def circle(
    loss: str = "NTXent", pictures: int = 5, beside: str = "none", menus: bool = True, **settings: Any
) -> Frame:
    """The explorer of points on a circle, opened on the points of `start(pictures, spread=0.2, arc=2.0)`.

    Its steps are those of `move`. What would move the start, or its steps, is left out of its controls.

    - loss, beside: names in the catalogue; both start at one temperature
    - menus: False leaves the loss's own settings and the number of images, and nothing else
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
    steps: dict[str, Any] = {
        "rate": RATE,
        "proportional": False,
        "hide": "arc,scatter,classes,proportional,by_labels,seed",
    }
    if not menus:
        steps["hide"] = f"{steps['hide']},loss,beside,rate,forces,lead"
    known = losses.catalogue().get(beside)
    if "temperature" in settings and known and "temperature" in known.cls.ranges:
        start["beside_temperature"] = settings["temperature"]
    asked = {"loss": loss, "beside": beside, "pictures": pictures}
    return explorers.frame("circle", **(asked | start | steps | settings))

"""Three ill runs of notebook 13, made in seconds."""

from typing import Any

from clutils import losses, training, views
from clutils.data import ImageSet

COLOURS_KEPT = views.Augmentation(grayscale=0.0, jitter=(0.0, 0.0, 0.0, 0.0), flip=0.0)  # crops alone
WAYS: tuple[dict[str, Any], ...] = (
    {"loss": losses.NTXent(0.2), "augmentation": COLOURS_KEPT},
    {"loss": losses.NTXent(5.0)},
    {"loss": losses.Regression()},
)


def ill_runs(pictures: ImageSet, steps: int = 40) -> dict[str, training.Run]:
    """Three runs of some seconds each, by letter; what is wrong with them, exercise 3 asks.

    With CLUTILS_FAST=1 they are shortened.
    """
    settings = {
        "data": pictures,
        "steps": training.fewer(steps),
        "batch_size": 64,
        "learning_rate": 1e-2,
        "seed": 2,
    }
    return {
        letter: training.Run(**settings, **way).finish(progress=False)
        for letter, way in zip("ABC", WAYS, strict=True)
    }

"""What a notebook trains: one recipe for a CPU, one for a GPU, and how long each takes where that is known.

    recipe = recipes.here("first-run")                    the one for this machine
    training.train(data=train, loss=loss, **recipe.settings())
    print(recipes.describe("first-run"))                  both, with their times

A GPU recipe is larger, and asks for the same thing. With CLUTILS_FAST=1 either stops after 10 steps.
"""

from dataclasses import dataclass, replace
from typing import Any

from clutils import training


@dataclass(frozen=True)
class Recipe:
    """Settings of one training, and the time it takes.

    - learning_rate: None = what suits the encoder
    - seconds: of training, from the measured time of a step; None = not run yet
    - on: what that time was measured on
    """

    encoder: str
    steps: int
    batch_size: int
    learning_rate: float | None = None
    seconds: float | None = None
    on: str = ""

    def settings(self) -> dict[str, Any]:
        """As `training.train` and `training.Run` take them."""
        names = ("encoder", "steps", "batch_size", "learning_rate")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        """'conv16, 300 steps of 128, about 18 s on 2 cores'."""
        size = f"{self.encoder}, {self.steps:,} steps of {self.batch_size}"
        if self.seconds is None:
            return f"{size} (not timed yet)"
        time = f"{self.seconds:.0f} s" if self.seconds < 100 else f"{self.seconds / 60:.0f} min"
        return f"{size}, about {time} on {self.on}"


CORES = "2 cores"
LESSONS = {  # name -> for a CPU, for a GPU
    "start": (Recipe("conv16", 120, 96, None, 9, CORES), Recipe("resnet18", 1000, 256)),
    "temperature": (Recipe("conv16", 12, 256, 5e-3, 2, CORES), Recipe("conv16", 300, 256, 5e-3)),
    "first-run": (Recipe("conv16", 150, 96, 1e-2, 7, CORES), Recipe("resnet18", 2000, 256, 1e-3)),
    "pinda": (Recipe("conv16", 40, 64, None, 4, CORES), Recipe("resnet18", 2000, 256)),
    "methods": (Recipe("conv16", 34, 128, None, 3, CORES), Recipe("conv16", 600, 128)),
    "lab": (Recipe("conv16", 100, 128, None, 6, CORES), Recipe("resnet18", 2000, 512, 1e-3)),
    "checkpoint": (Recipe("conv16", 80, 64, 1e-2, 3, CORES), Recipe("resnet18", 400, 256, 1e-3)),
}


def here(name: str) -> Recipe:
    """The recipe called `name` for what is here, a GPU or only a CPU; shortened where CLUTILS_FAST=1 asks so.

    Raises ValueError, listing what there is, on another name.
    """
    chosen = _both(name)[training.device().type == "cuda"]
    if not training.fast() or chosen.steps <= training.FAST_STEPS:
        return chosen
    share = training.FAST_STEPS / chosen.steps
    seconds = None if chosen.seconds is None else chosen.seconds * share
    return replace(chosen, steps=training.FAST_STEPS, seconds=seconds)


def describe(name: str) -> str:
    """Both recipes called `name` with their times, and which of them this machine takes: two lines.

    Raises ValueError, listing what there is, on another name.
    """
    cpu, gpu = _both(name)
    kind = "GPU" if training.device().type == "cuda" else "CPU"
    chosen, whole = here(name), (cpu, gpu)[kind == "GPU"]
    short = f"; CLUTILS_FAST=1: {chosen.steps} steps instead of {whole.steps:,}" if chosen != whole else ""
    return f"CPU recipe: {cpu}.\nGPU recipe: {gpu}. (This machine: {kind}{short}.)"


def _both(name: str) -> tuple[Recipe, Recipe]:
    if name not in LESSONS:
        raise ValueError(f"recipes: no recipe is called {name!r}; there are {', '.join(LESSONS)}")
    return LESSONS[name]

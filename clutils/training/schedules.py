"""Schedules: a live setting of a run, as the loss's temperature, that is a function of the step."""

import math
from dataclasses import dataclass

from clutils.settings import check, setting


@dataclass(frozen=True)
class Cosine:
    r"""A value that falls from `highest` to `lowest` and rises again, once in `period` steps.

    $$\tau(t) = \tau_- + (\tau_+ - \tau_-)\,\frac{1 + \cos(2\pi t / T)}{2}$$

    - lowest, highest: τ- and τ+, in units of the setting; period: T, in steps

    As `run.schedules["temperature"] = Cosine(0.1, 1.0, period=400)`. For data with a long tail: a cold loss
    parts instances, a warm one groups, and the schedule goes back and forth between the two. The authors'
    code counts t in epochs, and takes 0.1, 1 and 400 of 2,000 epochs for CIFAR-10 with a tail.

    Kukleva et al. 2023, "Temperature schedules for self-supervised contrastive methods on long-tail data"
    (arXiv 2303.13664), the cosine schedule as the authors' code has it (Annusha/temperature_schedules).
    Raises ValueError, quoting what came in, on what is no number, a period below 1, or lowest above highest.
    """

    lowest: float = setting(open_below=True, about="value at the end of a period")
    highest: float = setting(open_below=True, about="value at its begin")
    period: int = setting(1, whole=True, about="steps")

    def __post_init__(self) -> None:
        check("Cosine", self)
        if self.lowest > self.highest:
            raise ValueError(f"Cosine: lowest is {self.lowest}, but must be at most highest, {self.highest}")

    def __call__(self, step: int) -> float:
        """The value of the step that comes after so many."""
        if step % self.period == 0:
            return self.highest
        return (
            self.lowest + (self.highest - self.lowest) * (1 + math.cos(2 * math.pi * step / self.period)) / 2
        )

"""Notebook 02, temperature and gradient scaling."""

from clutils.course.temperature.exercises import EXERCISES
from clutils.course.temperature.figures import (
    by_temperature,
    circle,
    cold_limit,
    effective_negatives,
    gate,
    shares_of_pull,
    sweep,
)
from clutils.course.temperature.panels import dilemma
from clutils.course.temperature.recorded import judged_sweep, recorded_sweep, sweep_table

pull, negatives_to_open, hot_limit = EXERCISES

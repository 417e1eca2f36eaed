"""Notebook 02, temperature and gradient scaling."""

from clutils.course.temperature.exercises import EXERCISES
from clutils.course.temperature.figures import (
    brake,
    by_temperature,
    circle,
    cold_limit,
    effective_negatives,
    pulls,
    turn,
    weighed_negative,
)
from clutils.course.temperature.panels import dilemma

pull, negatives_to_release, counter_example = EXERCISES

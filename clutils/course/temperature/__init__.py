"""Notebook 02, temperature and gradient scaling."""

from clutils.course.temperature.exercises import EXERCISES
from clutils.course.temperature.figures import circle, effective_negatives
from clutils.course.temperature.panels import dilemma

pull, negatives_to_open, hot_limit = EXERCISES

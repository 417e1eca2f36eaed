"""Notebook 12, the training lab: its panel, and the comparison of runs."""

from clutils.course.lab.comparing import Comparison, compare_runs
from clutils.course.lab.exercises import EXERCISES, GOING_ON, collapsed_run, spread
from clutils.course.lab.panel import Lab, LabRun, training_lab
from clutils.course.temperature.figures import by_temperature

rescue, too_hot, turned = EXERCISES

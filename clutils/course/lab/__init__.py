"""Notebook 12, the training lab: its panel, and the comparison of runs."""

from clutils.course.lab.comparing import Comparison, compare_runs
from clutils.course.lab.exercises import EXERCISES
from clutils.course.lab.panel import Lab, LabRun, training_lab

rescue, too_hot, turned = EXERCISES

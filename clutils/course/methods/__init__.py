"""Notebook 11, the methods: what one step of each does."""

from clutils.course.methods import experiments
from clutils.course.methods.exercises import EXERCISES
from clutils.course.methods.figures import (
    NAMES,
    collapse,
    compared,
    composition,
    diagram,
    key_ages,
    learning_rates,
    share_of_comparing,
    spread,
)
from clutils.course.methods.panels import explore_key_ages

follow, moco_step, simsiam_loss = EXERCISES

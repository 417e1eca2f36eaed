"""Notebook 11, the methods: what one step of each does."""

from clutils.course.methods import experiments
from clutils.course.methods.exercises import EXERCISES
from clutils.course.methods.figures import (
    FURTHER,
    NAMES,
    SIMCLR_FIGURE_5,
    along,
    composition,
    diagram,
    overview,
    spread,
)
from clutils.course.methods.panels import explore_key_ages, explore_rates

moco_step, follow, simsiam_loss = EXERCISES

"""Notebook 07, the family: all losses side by side."""

from clutils.course.family.angles import PARALLEL, angle, gradients
from clutils.course.family.exercises import EXERCISES
from clutils.course.family.table import one_page
from clutils.course.family.tuned import gaps, promise, tuned, tuned_figure

shares_of_the_push, two_controls, inside_the_spread = EXERCISES

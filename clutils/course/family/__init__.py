"""Notebook 07, the family: all losses side by side."""

from clutils.course.family.exercises import EXERCISES
from clutils.course.family.figures import PARALLEL, angle, gradients, kin, kinship, portraits

shares_of_the_push, same_as_decoupled, inside_the_spread = EXERCISES

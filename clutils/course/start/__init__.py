"""Notebook 00, start here."""

from clutils.course.start.exercises import EXERCISES
from clutils.course.start.figures import journey, picture_map

cosine, what_tau_changes = EXERCISES

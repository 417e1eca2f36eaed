"""Notebook 05, hard negatives: debiased, HCL, MoCHi, SSCL."""

from clutils.course.hard_negatives.exercises import EXERCISES
from clutils.course.hard_negatives.tables import DATA_SETS, TABLE_3, TABLE_4

silent_from, as_cold_as, spares_false_negatives = EXERCISES

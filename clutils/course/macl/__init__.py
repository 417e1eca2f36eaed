"""Notebook 04, MACL."""

from clutils.course.macl.exercises import EXERCISES
from clutils.course.macl.tables import TABLE_6, TABLE_7, TABLE_8, TABLE_B3

counter_example, adaptive_temperature, macl_loss = EXERCISES

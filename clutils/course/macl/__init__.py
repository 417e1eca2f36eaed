"""Notebook 04, MACL."""

from clutils.course.macl.exercises import EXERCISES
from clutils.course.macl.figures import (
    MEASURES,
    TABLE_6,
    TABLE_7,
    TABLE_8,
    against_alignment,
    key_to_penalties,
    lead,
    penalties,
    penalties_of,
    reruns,
    table_8,
    table_b3,
    turn,
)

counter_example, adaptive_temperature, macl_loss = EXERCISES

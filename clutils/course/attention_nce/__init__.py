"""Notebook 06, AttentionNCE, and what labels add."""

from clutils.course.attention_nce.exercises import EXERCISES
from clutils.course.attention_nce.tables import DATA_SETS, SETTINGS, TABLE_1, TABLE_1_GAINS, TABLE_3, TABLE_4

gain_by_parts, attention_row, both_sides, mines_hard_positives = EXERCISES

"""Notebook 06, AttentionNCE, and what labels add."""

from clutils.course.attention_nce.exercises import EXERCISES
from clutils.course.attention_nce.figures import (
    DATA_SETS,
    FIGURE_5,
    SETTINGS,
    TABLE_1,
    TABLE_1_GAINS,
    TABLE_3,
    against_infonce,
    attention,
    chain,
    grid,
    narrow_range,
    published_ablations,
    published_accuracies,
    published_scales,
    pulls_of_classmates,
    raised,
    weights,
)

attention_row, attention_push, both_sides = EXERCISES

"""Notebook 06, AttentionNCE, and what labels add."""

from clutils.course.attention_nce.exercises import EXERCISES
from clutils.course.attention_nce.figures import (
    DATA_SETS,
    SETTINGS,
    TABLE_1,
    TABLE_1_GAINS,
    TABLE_3,
    against_infonce,
    along_d_neg,
    attention,
    inside_or_outside,
    published_ablations,
    published_accuracies,
    pulls_by_similarity,
    weights,
)

attention_row, both_sides, mines_hard_positives = EXERCISES

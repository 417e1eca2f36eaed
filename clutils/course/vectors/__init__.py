"""Notebook 16, vectors: views where no augmentation is known, and columns that have units."""

from clutils.course.vectors.exercises import EXERCISES
from clutils.course.vectors.experiments import (
    CONTROL,
    FEW,
    FEW_RECORD,
    MADE,
    NOTHING,
    SETS,
    WAYS,
    accuracy,
    against,
    both_parts,
    by_one_column,
    differences,
    few_labels_table,
    judged,
    made_table,
    nothing_learned,
    points,
    recorded,
    records_of_few_labels,
    run_of,
    table,
    train_one,
    with_few_labels,
)
from clutils.course.vectors.panels import correlation, kept_correlation, mixup, one_sigma, raw

corrupt, strength_for = EXERCISES

"""Notebook 16, vectors: views where no augmentation is known, and columns that have units."""

from clutils.course.vectors.exercises import EXERCISES
from clutils.course.vectors.experiments import (
    CONTROL,
    FEW,
    FEW_RECORD,
    MADE,
    NOTHING,
    WAYS,
    accuracy,
    against,
    both_parts,
    by_one_column,
    differences,
    judged,
    nothing_learned,
    points,
    recorded,
    run_of,
    table,
    train_one,
)
from clutils.course.vectors.panels import kept_correlation, one_sigma

corrupt, strength_for = EXERCISES

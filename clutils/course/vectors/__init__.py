"""Notebook 16, vectors: views where no augmentation is known, and columns that have units."""

from clutils.course.vectors.exercises import EXERCISES
from clutils.course.vectors.experiments import (
    CONTROL,
    NOTHING,
    SETS,
    WAYS,
    accuracy,
    against,
    differences,
    nothing_learned,
    points,
    recorded,
    run_of,
    table,
    train_one,
)
from clutils.course.vectors.panels import correlation, kept_correlation, mixup, one_sigma, raw

corrupt, strength_for = EXERCISES

"""Notebook 05, hard negatives: debiased, HCL, MoCHi, SSCL."""

from clutils.course.forces.mixes import FixedMixes
from clutils.course.hard_negatives.exercises import EXERCISES
from clutils.course.hard_negatives.figures import (
    DATA_SETS,
    TABLE_3,
    TABLE_4,
    colder,
    harder_than_parents,
    on_the_circle,
    pull_under_priors,
    push_under_betas,
    reported,
    with_more_mixes,
)

silent_from, as_cold_as, spares_false_negatives = EXERCISES

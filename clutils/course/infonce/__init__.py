"""Notebook 01, from siamese nets to InfoNCE."""

from clutils.course.infonce.bound import explore_bound, told
from clutils.course.infonce.exercises import EXERCISES

nt_xent, negatives_of_an_anchor, mined_push = EXERCISES

"""Notebook 01, from siamese nets to InfoNCE."""

from clutils.course.infonce.exercises import EXERCISES

nt_xent_row, negatives_of_an_anchor, triplet_row = EXERCISES

"""Notebook 13, is this checkpoint healthy?"""

from clutils.course.checkpoint.exercises import EXERCISES

lead, where_to_look_first = EXERCISES

"""Notebook 13, is this checkpoint healthy?"""

from clutils.course.checkpoint.exercises import EXERCISES, REPORTS
from clutils.course.checkpoint.limit import one_limit
from clutils.course.checkpoint.runs import ill_runs

lead, where_to_look_first, what_happened = EXERCISES

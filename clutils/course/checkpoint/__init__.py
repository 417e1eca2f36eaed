"""Notebook 13, is this checkpoint healthy?"""

from clutils.course.checkpoint.exercises import EXERCISES, REPORTS
from clutils.course.checkpoint.names import LIDAR, RANKME, ledger
from clutils.course.checkpoint.runs import ill_runs, summary
from clutils.course.checkpoint.trust import margins

lead, where_to_look_first, what_happened = EXERCISES

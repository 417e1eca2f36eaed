"""Notebook 03, a first run."""

from clutils.course.first_run.exercises import EXERCISES
from clutils.course.first_run.maps import map_settings, umap_beside
from clutils.course.first_run.views import view_strength
from clutils.course.first_run.watching import watch

chance_level, knn_vote, flat_but_not_collapsed = EXERCISES

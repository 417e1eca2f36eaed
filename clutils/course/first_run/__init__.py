"""Notebook 03, a first run."""

from clutils.course.first_run.exercises import EXERCISES
from clutils.course.first_run.few_labels import label_efficiency, supervised, told
from clutils.course.first_run.maps import map_settings, umap_beside
from clutils.course.first_run.views import view_strength
from clutils.course.first_run.watching import watch

verdict, knn_vote, ailments = EXERCISES

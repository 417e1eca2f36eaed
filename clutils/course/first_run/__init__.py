"""Notebook 03, a first run."""

from clutils.course.experiments import labelled
from clutils.course.first_run.distances import (
    class_distances,
    rank_correlation,
    worlds,
)
from clutils.course.first_run.exercises import EXERCISES
from clutils.course.first_run.few_labels import supervised
from clutils.course.first_run.panels import map_settings, umap_beside, view_strength
from clutils.course.first_run.watching import watch
from clutils.course.similarity_table import similarity_table

verdict, knn_vote, ailments = EXERCISES

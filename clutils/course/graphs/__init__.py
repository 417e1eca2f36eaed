"""Notebook 14, graphs."""

from clutils.course.graphs.evaluation import (
    LEARNED,
    PLAIN,
    by_both_judges,
    compare,
    degree_counts,
    eigenvectors,
    on_public_parts,
    propagated,
    summary,
    table,
    ten_folds,
    with_even_rows,
    wl_colours,
)
from clutils.course.graphs.exercises import EXERCISES
from clutils.course.graphs.figures import networks, smoothing, views_panel

propagate, other_view_loss = EXERCISES

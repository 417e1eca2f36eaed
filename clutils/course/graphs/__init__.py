"""Notebook 14, graphs."""

from clutils.course.graphs.evaluation import (
    LEARNED,
    PLAIN,
    by_both_judges,
    compare,
    degree_counts,
    depths,
    eigenvectors,
    half_of_each_class,
    judged_twice,
    on_public_parts,
    propagated,
    summary,
    table,
    ten_folds,
    with_even_rows,
    wl_colours,
)
from clutils.course.graphs.exact import after_one_edge, changed_by_one_edge, gaps, told_apart
from clutils.course.graphs.exercises import EXERCISES
from clutils.course.graphs.figures import beside, networks, smoothing, views_panel

propagate, other_view_loss = EXERCISES

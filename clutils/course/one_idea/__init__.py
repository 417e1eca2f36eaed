"""Notebook 08, one idea: temperature as a multiplier, losses as one divergence, maps as losses."""

from clutils.course.one_idea.divergences import (
    counted,
    differences,
    divergence,
    few,
    inside,
    off_the_line,
    table,
)
from clutils.course.one_idea.exercises import EXERCISES
from clutils.course.one_idea.limit import by_class
from clutils.course.one_idea.multiplier import beside_the_best, choose_how_many
from clutils.course.one_idea.neighbours import CauchyInfoNCE, cauchy, learned_map, spectrum, sum_of_q
from clutils.course.one_idea.training_runs import first_similarities, seen, trained

temperature_for, map_loss, few_points = EXERCISES

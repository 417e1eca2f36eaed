"""Points that move on a sphere under a loss: their descent, figures and panels."""

from clutils.course.sphere.descent import forces, gaps, move, start
from clutils.course.sphere.figures import (
    anchor_and_others,
    comparisons,
    evenly,
    frames,
    key_to_points,
    key_to_roles,
    name_of,
    points,
)
from clutils.course.sphere.panels import circle

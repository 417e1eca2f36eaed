"""Pull, push and W of a loss, drawn against what they depend on, and under sliders."""

from clutils.course.forces.figures import Beside, beside, pulls
from clutils.course.forces.panels import explore, one_anchor

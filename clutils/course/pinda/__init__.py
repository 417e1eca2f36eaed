"""Notebooks 09 and 10, PiNDA: its derivation and collapse; its maps and what they are worth."""

from clutils.course.pinda import detectors, experiments, maps
from clutils.course.pinda.exercises import EXERCISES
from clutils.course.pinda.figures import collapse, found
from clutils.course.pinda.maps import stl10_images
from clutils.course.pinda.panels import auxiliary_gaussian, noise_maps
from clutils.figures.training import curves

sample, task_entropy, on_dead, spared, mean_lead, positive_control = EXERCISES

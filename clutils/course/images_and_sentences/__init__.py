"""Notebook 17, images and sentences: CLIP and SigLIP on scenes with captions."""

from clutils.course.images_and_sentences.exercises import EXERCISES
from clutils.course.images_and_sentences.experiments import LEFT_OUT, MAPS, RECORD, start, train
from clutils.course.images_and_sentences.panels import gap_against_temperature, matrix

symmetric, start_bias, recall_at = EXERCISES

"""Notebook 15, sentences: dropout as the view, a small transformer from scratch, what words are worth."""

from clutils.course import records
from clutils.course.sentences.exercises import EXERCISES
from clutils.course.sentences.experiments import (
    NEIGHBOURS,
    RECORD,
    VIEWS,
    WAYS,
    accuracy,
    counted,
    differences,
    run_of,
    table,
    tf_idf,
    trained,
    word_means,
    worth,
)
from clutils.course.sentences.panels import adaptive_temperature, search

TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STSB", "SICKR")
MACL_TABLE_3 = records.of_paper(__file__, "table_3")
REPRODUCED = records.of_paper(__file__, "table_b5")["SimCSE reproduced"]  # by MACL's authors, elsewhere
MACL_SETTINGS = records.of_paper(__file__, "settings")  # of what -> α, A0

pooled, floor_at = EXERCISES

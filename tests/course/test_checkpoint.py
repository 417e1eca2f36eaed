"""Notebook 13: the lead that a reader works out is the one that a report tells."""

from __future__ import annotations

from clutils.course import checkpoint as lesson
from clutils.report import lines


def test_the_report_passes_the_exercise_on_the_lead():
    def told(positives, negatives):
        return lines.lead({"positive_similarity": positives.mean(), "negative_similarity": negatives.mean()})

    assert lesson.lead.check(told)

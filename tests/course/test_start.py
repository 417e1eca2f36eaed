"""Notebook 00: one image's way through the course, and a map of images."""

import numpy as np
import pytest
import torch

from clutils import figures
from clutils.course import start as lesson
from tests.course.answers import judged


def test_the_journey_shows_each_encoders_similarities_as_they_are_and_its_loss():
    dice = torch.Generator().manual_seed(0)
    pairs = {name: tuple(torch.randn(2, 3, 5, generator=dice)) for name in ("untrained", "trained")}
    pictures = torch.rand(2, 3, 8, 8, generator=dice)
    figure = lesson.journey(
        pictures[0], pictures, pairs["trained"][0][:2], pairs, {"untrained": 1.25, "trained": 0.5}
    )
    for ax, both, loss in zip(figure.axes[3:5], pairs.values(), ("1.25", "0.50"), strict=True):
        z = torch.nn.functional.normalize(torch.cat(both), dim=1)
        np.testing.assert_allclose(ax.images[0].get_array(), (z @ z.T).numpy(), rtol=1e-5, atol=1e-6)
        assert loss in ax.get_title(loc="left") + ax.get_title()
    assert "untrained 1.25, trained 0.50" in figures.alt(figure)


def test_a_map_of_pictures_has_each_where_the_map_puts_it_and_the_second_axis_up():
    points = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0]])
    pictures = torch.stack([torch.full((3, 8, 8), v, dtype=torch.uint8) for v in (0, 60, 120)])
    ax = lesson.picture_map(points, pictures, pixels=100, thumbnail=10)
    canvas = np.asarray(ax.images[0].get_array())
    assert canvas.shape == (100, 100, 3)
    for (row, column), value in {(95, 5): 0, (95, 95): 60, (5, 5): 120, (50, 50): 255}.items():
        np.testing.assert_allclose(canvas[row, column], value / 255, atol=1e-6)
    assert figures.alt(ax).startswith("3 small images")
    with pytest.raises(ValueError, match=r"points is \(2, 2\), but 3 images"):
        lesson.picture_map(points[:2], pictures)


# ---- the exercises ------------------------------------------------------------------------------------

ANSWERS = {
    "what_tau_changes": [["No", "YES"]],
    "cosine": [
        lambda a, b: (a / a.norm()) @ (b / b.norm()),
    ],
}
MISTAKES = {
    "what_tau_changes": [
        *(("yes", "no"), ("yes", "yes"), ("no", "no"), "no, yes", ("no",), (False, True), "", 0.1, None),
    ],
}


test_an_exercise_takes_other_ways_and_no_mistake = judged(lesson, ANSWERS, MISTAKES)

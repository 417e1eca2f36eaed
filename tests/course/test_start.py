"""Notebook 00: one picture's way through the course, and a map of pictures."""

import numpy as np
import pytest
import torch

from clutils import figures
from clutils.course import start as lesson


def test_the_journey_shows_a_batchs_similarities_as_they_are():
    z = torch.nn.functional.normalize(torch.randn(6, 5, generator=torch.Generator().manual_seed(0)), dim=1)
    pictures = torch.rand(2, 3, 8, 8)
    figure = lesson.journey(pictures[0], pictures, z[:2], z @ z.T, 1.25)
    (table,) = figure.axes[3].images
    np.testing.assert_allclose(table.get_array(), (z @ z.T).numpy())
    assert "1.25" in [text.get_text() for text in figure.axes[4].texts]


def test_a_map_of_pictures_has_each_where_the_map_puts_it_and_the_second_axis_up():
    points = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0]])
    pictures = torch.stack([torch.full((3, 8, 8), v, dtype=torch.uint8) for v in (0, 60, 120)])
    ax = lesson.picture_map(points, pictures, pixels=100, thumbnail=10)
    canvas = np.asarray(ax.images[0].get_array())
    assert canvas.shape == (100, 100, 3)
    for (row, column), value in {(95, 5): 0, (95, 95): 60, (5, 5): 120, (50, 50): 255}.items():
        np.testing.assert_allclose(canvas[row, column], value / 255, atol=1e-6)
    assert figures.alt(ax).startswith("3 small pictures")
    with pytest.raises(ValueError, match=r"points is \(2, 2\), but 3 pictures"):
        lesson.picture_map(points[:2], pictures)

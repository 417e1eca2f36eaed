"""The course's toy similarities and clouds are what their names say."""

import torch

from clutils import measures, similarities
from clutils.course import toys


def test_classes_on_the_circle_lie_near_their_own_and_apart_from_others():
    z1, z2, labels = toys.classes_on_the_circle()
    assert labels.bincount().tolist() == [4, 4, 4, 4]
    torch.testing.assert_close(z1.norm(dim=1), torch.ones(16, dtype=torch.float64))
    assert measures.tolerance(z1, labels) > 0.9 > measures.tolerance(z1, labels.flip(0) * 0)
    assert (z1 * z2).sum(dim=1).min() > 0.9
    assert not torch.equal(z1, toys.classes_on_the_circle(seed=1)[0])


def test_classes_on_the_sphere_are_nearer_the_narrower_they_are():
    nearness = []
    for width in (0.5, 1.5, 100.0):
        z1, z2, labels = toys.classes_on_the_sphere(width=width, pictures=60)
        assert z1.shape == z2.shape == (60, 128) and labels.bincount().tolist() == [6] * 10
        torch.testing.assert_close(z1.norm(dim=1), torch.ones(60).double())
        table, same = similarities.two_views(z1, z2).negatives, similarities.false_negatives(labels)
        nearness.append(float(table[same].mean() - table[~same].mean()))
    assert nearness[0] > nearness[1] > 0.1 and abs(nearness[2]) < 0.02

"""Points that move under a loss alone."""

from __future__ import annotations

import math

import pytest
import torch

from clutils import losses, sphere


@pytest.mark.parametrize("dimension", [2, 3, 16])
def test_points_stay_on_the_sphere_and_the_start_is_seeded(dimension):
    z1, z2 = sphere.start(9, dimension, seed=4)
    assert z1.shape == z2.shape == (9, dimension)
    path = sphere.move(losses.NTXent(0.2), z1, z2, steps=15)
    assert path.z1.shape == (16, 9, dimension)
    assert len(path) == 16
    for z in (path.z1, path.z2):
        torch.testing.assert_close(z.norm(dim=-1), torch.ones(16, 9, dtype=torch.float64))
    assert torch.equal(path.z1[0], torch.nn.functional.normalize(z1, dim=1))
    again = sphere.start(9, dimension, seed=4)
    assert torch.equal(z1, again[0])
    assert not torch.equal(z1, sphere.start(9, dimension, seed=5)[0])


def test_one_step_is_the_gradient_on_the_tangent_plane():
    """Against the closed form for NT-Xent on two pictures, worked out by finite differences of the angle."""
    z1, z2 = sphere.start(2, 2, seed=1)
    loss, rate, h = losses.NTXent(0.5), 1e-3, 1e-6

    def turned(i, by):
        angle = math.atan2(float(z1[i, 1]), float(z1[i, 0])) + by
        moved = z1.clone()
        moved[i] = torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64)
        return moved

    path = sphere.move(loss, z1, z2, steps=1, learning_rate=rate)
    for i in range(2):
        slope = float(loss(turned(i, h), z2) - loss(turned(i, -h), z2)) / (2 * h) * 2 * 2
        before, after = (math.atan2(float(p[i, 1]), float(p[i, 0])) for p in (path.z1[0], path.z1[1]))
        assert math.remainder(after - before, 2 * math.pi) == pytest.approx(-rate * slope, rel=1e-3)


def test_nt_xent_joins_the_pairs_and_spreads_the_pictures():
    path = sphere.move(losses.NTXent(0.2), *sphere.start(8, 2, arc=1.0, seed=0), steps=400)
    assert path.loss[-1] < path.loss[0]
    together = (path.z1 * path.z2).sum(-1).mean(-1)
    assert together[-1] > 0.99
    angles = torch.atan2(path.z1[-1, :, 1], path.z1[-1, :, 0]).sort().values
    gaps = torch.diff(torch.cat([angles, angles[:1] + 2 * math.pi]))
    assert gaps.max() < 2.0 * 2 * math.pi / 8, (
        "pictures drawn within one radian must end all round the circle"
    )


def test_a_cold_loss_does_not_throw_points_across_the_sphere():
    z1, z2 = sphere.start(6, 2, spread=1.0, seed=0)
    path = sphere.move(losses.Decoupled(0.001), z1, z2, steps=3, learning_rate=10.0, longest_step=0.2)
    moved = (path.z1[1:] * path.z1[:-1]).sum(-1).clamp(-1, 1).acos()
    assert moved.max() <= 0.2 + 1e-6
    assert moved.max() > 0.15


def test_labels_bring_a_class_together():
    z1, z2 = sphere.start(9, 3, spread=0.3, seed=2)
    labels = torch.arange(9) % 3
    path = sphere.move(losses.Triplet(1.0), z1, z2, steps=300, labels=labels)
    z = path.z1[-1]
    same = labels[:, None] == labels[None]
    s = z @ z.T
    before = path.z1[0] @ path.z1[0].T
    assert s[same].mean() > before[same].mean() + 0.3
    assert s[same].mean() > s[~same].mean() + 0.5


def test_bad_arguments_are_quoted():
    with pytest.raises(ValueError, match="pairs >= 1 and dimension >= 2, got 0 and 2"):
        sphere.start(0)
    with pytest.raises(ValueError, match="dimension >= 2, got 4 and 1"):
        sphere.start(4, 1)
    z1, z2 = sphere.start(4)
    with pytest.raises(ValueError, match="learning_rate"):
        sphere.move(losses.NTXent(), z1, z2, learning_rate=0.0)
    with pytest.raises(ValueError, match="batch of 1"):
        sphere.move(losses.NTXent(), z1[:1], z2[:1])

"""Points that move under a loss alone, and what the figures and panels draw of them."""

import json
import math
import re

import matplotlib.colors
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.patches import Rectangle
from matplotlib.quiver import Quiver

from clutils import figures, losses, similarities
from clutils.course import sphere
from clutils.course.sphere import descent
from clutils.course.sphere import figures as draw

# ---- the descent --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [2, 3, 16])
def test_points_stay_on_the_sphere_and_the_start_is_seeded(dimension):
    z1, z2 = descent.start(9, dimension, seed=4)
    assert z1.shape == z2.shape == (9, dimension)
    path = descent.move(losses.NTXent(0.2), z1, z2, steps=15)
    assert path.z1.shape == (16, 9, dimension)
    assert len(path) == 16
    for z in (path.z1, path.z2):
        torch.testing.assert_close(z.norm(dim=-1), torch.ones(16, 9, dtype=torch.float64))
    assert torch.equal(path.z1[0], torch.nn.functional.normalize(z1, dim=1))
    again = descent.start(9, dimension, seed=4)
    assert torch.equal(z1, again[0])
    assert not torch.equal(z1, descent.start(9, dimension, seed=5)[0])


def test_one_step_is_the_gradient_on_the_tangent_plane():
    """Against the closed form for NT-Xent on two images, worked out by finite differences of the angle."""
    z1, z2 = descent.start(2, 2, seed=1)
    loss, rate, h = losses.NTXent(0.5), 1e-3, 1e-6

    def turned(i, by):
        angle = math.atan2(float(z1[i, 1]), float(z1[i, 0])) + by
        moved = z1.clone()
        moved[i] = torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64)
        return moved

    path = descent.move(loss, z1, z2, steps=1, learning_rate=rate)
    for i in range(2):
        slope = float(loss(turned(i, h), z2) - loss(turned(i, -h), z2)) / (2 * h) * 2 * 2
        before, after = (math.atan2(float(p[i, 1]), float(p[i, 0])) for p in (path.z1[0], path.z1[1]))
        assert math.remainder(after - before, 2 * math.pi) == pytest.approx(-rate * slope, rel=1e-3)


def test_a_cold_loss_does_not_throw_points_across_the_sphere():
    z1, z2 = descent.start(6, 2, spread=1.0, seed=0)
    path = descent.move(losses.Decoupled(0.001), z1, z2, steps=3, learning_rate=10.0, longest_step=0.2)
    moved = (path.z1[1:] * path.z1[:-1]).sum(-1).clamp(-1, 1).acos()
    assert moved.max() <= 0.2 + 1e-6
    assert moved.max() > 0.15


THREE = [losses.PairMargin(1.6), losses.Triplet(2.0), losses.NTXent(0.2)]


def views(pictures=4, dimension=2, seed=0):
    return descent.start(pictures, dimension, spread=0.3, arc=2.0, seed=seed)


# ---- the physics ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [2, 3, 8])
@pytest.mark.parametrize(
    ("loss", "labels"),
    [
        *((loss, None) for loss in (*THREE, losses.Decoupled(0.3))),
        (losses.PairMargin(1.5), torch.arange(5) % 2),
    ],
)
def test_pull_and_push_add_up_to_minus_the_gradient(loss, labels, dimension):
    z1, z2 = views(5, dimension)
    here = torch.stack([z1, z2]).requires_grad_()
    given = {} if labels is None else {"labels": labels}
    (gradient,) = torch.autograd.grad(10 * loss(here[0], here[1], **given), here)
    pull, push = descent.forces(loss, z1, z2, labels)
    torch.testing.assert_close(pull + push, -gradient)
    for force in (pull, push):
        along = (force * torch.stack([z1, z2])).sum(dim=-1)
        torch.testing.assert_close(along, torch.zeros_like(along), atol=1e-12, rtol=0)


def test_a_pull_points_to_the_partner_and_a_push_away_from_the_nearest_picture():
    z1 = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    z2 = torch.tensor([[math.cos(0.2), -math.sin(0.2)], [math.sin(0.1), math.cos(0.1)]], dtype=torch.float64)
    pull, push = descent.forces(losses.NTXent(0.2), z1, z2)
    assert (pull[0, 0] @ z2[0]) > 0
    assert (pull[1, 0] @ z1[0]) > 0
    assert (push[0, 0] @ z1[1]) < 0


def test_gaps_go_once_round_the_circle():
    angles = torch.tensor([170.0, -170.0, 10.0, 50.0], dtype=torch.float64).deg2rad()
    z = torch.stack([angles.cos(), angles.sin()], dim=1)
    found = descent.gaps(z).sort().values
    torch.testing.assert_close(found, torch.tensor([20.0, 40.0, 120.0, 180.0], dtype=torch.float64))
    assert descent.gaps(z[:1]).tolist() == [360.0]


# ---- still figures -------------------------------------------------------------------------------------


def test_the_anchor_and_the_others_stand_where_they_are():
    cosines = torch.tensor([1.0, 0.8, 0.3, -0.5], dtype=torch.float64)
    points = torch.stack([cosines, (1 - cosines**2).sqrt()], dim=1)
    ax = draw.anchor_and_others(points)
    assert isinstance(ax, Axes)
    drawn = {tuple(np.round(line.get_xydata()[0], 12)) for line in ax.lines if len(line.get_xdata()) == 1}
    assert drawn == {tuple(np.round(point.numpy(), 12)) for point in points}
    texts = " ".join(text.get_text() for text in ax.texts)
    assert all(f"s = {s}" in texts for s in ("0.80", "0.30", "−0.50"))
    assert "0.80" in figures.alt(ax)


def test_the_table_colours_by_role_and_writes_the_similarities():
    B = 3
    z1, z2 = views(B)
    z = torch.cat([z1, z2])
    picture = torch.arange(B).repeat(2)
    roles = torch.where(picture[:, None] == picture[None], 1, -1).fill_diagonal_(0)
    names = list("abcdef")
    ax = draw.comparisons(roles, z @ z.T, names, names, title="batch")
    cells = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert len(cells) == 36
    for cell in cells:
        j, i = (round(v + 0.5) for v in cell.get_xy())
        assert cell.get_facecolor() == matplotlib.colors.to_rgba(draw.CELLS[int(roles[i, j])])
    written = {(t.get_position()[1], t.get_position()[0]): t.get_text() for t in ax.texts}
    assert len(written) == 30
    for (i, j), text in written.items():
        assert float(text.replace("−", "-")) == pytest.approx(float(z[i] @ z[j]), abs=0.051)
        assert text != "−0.0"
    assert "positives: 1, negatives: 4" in figures.alt(ax)
    # the rule that the table shows is the one the losses use
    pairs = similarities.two_views(z1, z2)
    for i in range(2 * B):
        by_hand = (z @ z[i])[roles[i] == -1].sort().values
        torch.testing.assert_close(pairs.negatives[i].sort().values, by_hand)


@pytest.mark.parametrize("dimension", [2, 3])
def test_points_and_arrows_are_where_they_belong(dimension):
    z1, z2 = views(5, dimension)
    pull, push = descent.forces(losses.NTXent(0.3), z1, z2)
    ax = draw.points(z1, z2, pull, push, text="hello")
    discs, rings = (c for c in ax.collections if isinstance(c, PathCollection))
    arrows = [c for c in ax.collections if isinstance(c, Quiver)]
    for dots, z in ((discs, z1), (rings, z2)):
        place = np.asarray(dots.get_offsets())
        if dimension == 2:
            np.testing.assert_allclose(place, z)
        else:
            np.testing.assert_allclose(place[:, 0], z[:, 0])
            assert (np.linalg.norm(place, axis=1) <= 1 + 1e-9).all()
    if dimension == 2:
        strongest = float(max(pull.norm(dim=-1).max(), push.norm(dim=-1).max()))
        for arrow, force in zip(arrows, (pull, push), strict=True):
            shown = np.stack([arrow.U, arrow.V], axis=1)
            np.testing.assert_allclose(shown, force.reshape(-1, 2) * draw.LONGEST / strongest, atol=1e-9)
    assert "5 images" in figures.alt(ax)
    assert "hello" in figures.alt(ax)


def test_what_lies_behind_the_sphere_is_pale_and_what_lies_before_is_not():
    front, behind = torch.tensor([[0.0, -1.0, 0.0]]), torch.tensor([[0.0, 1.0, 0.0]])
    ax = draw.points(torch.cat([front, behind]), torch.cat([front, behind]))
    discs = next(c for c in ax.collections if isinstance(c, PathCollection))
    assert discs.get_facecolors()[:, 3].tolist() == pytest.approx([1.0, draw.BEHIND])


def test_an_arrow_is_never_longer_than_the_longest():
    z1, z2 = views()
    ax = figures.new()[1]
    points = draw.Points(ax, 4)
    pull, push = (100 * force for force in descent.forces(losses.NTXent(0.1), z1, z2))
    points.update(z1, z2, pull, push, strongest=1.0)
    for arrow in points.arrows:
        assert np.hypot(arrow.U, arrow.V).max() <= draw.LONGEST + 1e-9


def test_frames_are_the_steps_asked_for():
    z1, z2 = views()
    paths = [descent.move(loss, z1, z2, steps=6) for loss in THREE]
    figure = draw.frames(THREE, paths, at=(0, 2, 6))
    axes = np.array(figure.axes).reshape(3, 3)
    for row, path in zip(axes, paths, strict=True):
        for ax, t in zip(row, (0, 2, 6), strict=True):
            discs = next(c for c in ax.collections if isinstance(c, PathCollection))
            np.testing.assert_allclose(discs.get_offsets(), path.z1[t])
            assert f"loss {float(path.loss[t]):.3f}" in ax.texts[0].get_text()
    assert "step 6" in figures.alt(figure)


def test_a_loss_is_called_by_its_name_and_settings():
    assert draw.name_of(losses.PairMargin(1.0)) == "pair loss, m = 1"
    assert draw.name_of(losses.Triplet(0.2)) == "triplet loss, m = 0.2"
    assert draw.name_of(losses.NTXent(0.05)) == "NT-Xent, τ = 0.05"


# ---- panels --------------------------------------------------------------------------------------------


def test_the_circle_opens_on_the_points_and_the_steps_of_the_notebooks():
    frame = sphere.circle("MACL", pictures=5, beside="NTXent", temperature=0.3)
    given = json.loads(re.search(r'"defaults":(\{[^}]*\})', frame.inside)[1])
    z1, z2 = sphere.start(5, 2, spread=0.2, arc=2.0, seed=0)
    angles = 2 * np.pi * np.array([int(given["at"][3 * a : 3 * a + 3], 36) / 36**3 for a in range(10)])
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    np.testing.assert_allclose(points, np.concatenate([z1.numpy(), z2.numpy()]), atol=2 * np.pi / 36**3)
    assert (given["rate"], given["proportional"]) == (0.1, False)
    assert (given["temperature"], given["beside_temperature"]) == (0.3, 0.3)


def test_without_menus_the_circle_has_the_losss_settings_and_the_number_of_images_alone():
    given = json.loads(re.search(r'"defaults":(\{[^}]*\})', sphere.circle(menus=False).inside)[1])
    hidden = set(given["hide"].split(","))
    assert {"loss", "beside", "rate", "seed", "classes"} <= hidden and not {
        "pictures",
        "temperature",
    } & hidden


# ---- errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: descent.start(0), "pairs >= 1 and dimension >= 2, got 0 and 2"),
        (lambda: descent.start(4, 1), "dimension >= 2, got 4 and 1"),
        (lambda: descent.move(losses.NTXent(), *views(), learning_rate=0.0), "learning_rate"),
        (lambda: descent.move(losses.NTXent(), *views(1)), "batch of 1"),
        (lambda: descent.gaps(torch.eye(3)), r"\(3, 3\)"),
        (
            lambda: draw.comparisons(torch.zeros(2, 2), torch.zeros(2, 2), list("abc"), list("ab")),
            r"roles is \(2, 2\).*3 rows and 2 columns",
        ),
        (lambda: draw.points(*views(4, 5)), r"\(4, 5\)"),
        (
            lambda: draw.frames(THREE[:1], [descent.move(THREE[0], *views(), steps=6)], at=(0, 7)),
            "step 7 was asked for, but a path ends at step 6",
        ),
        (lambda: sphere.circle("SogCLR"), r"loss is 'SogCLR', which is left out: keeps a state"),
        (lambda: sphere.circle("NTXent", margin=3.0), "no setting margin"),
    ],
)
def test_bad_input_is_quoted(call, message):
    with pytest.raises(ValueError, match=message):
        call()

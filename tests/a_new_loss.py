"""What a loss that is new to the catalogue does everywhere: `test_contributing.py` runs it on a copy.

NEW_LOSS=NAME python -m pytest tests/a_new_loss.py
"""

import os

import pytest
import torch
from matplotlib.lines import Line2D

from clutils import anatomy, explorers, figures, losses
from clutils.course import family, forces, one_idea, sphere, toys
from clutils.course.lab import training_lab
from clutils.figures import style
from tests.commands.asked import run
from tests.course.test_forces import moved

NAME = os.environ.get("NEW_LOSS") or pytest.exit(
    "name it: NEW_LOSS=NAME python -m pytest tests/a_new_loss.py"
)
TITLE = style.title(NAME)


def test_it_has_a_value_a_ruler_and_a_run():
    loss = getattr(losses, NAME)()
    marks = anatomy.ruler(loss, 64)
    assert marks.best < marks.chance == pytest.approx(loss.chance(126)) and "learning" in marks.says(
        0.5 * (marks.best + marks.chance)
    )


def test_the_command_line_knows_it_and_its_settings(capsys):
    ranges = getattr(losses, NAME).ranges
    given = [f"{name}={own.dial[0]}" for name, own in ranges.items() if own.dial]
    assert run("ruler", "--loss", NAME, *(part for of in given for part in ("--set", of))) == 0
    said = capsys.readouterr().out
    assert f"{NAME}(" in said and all(name in said for name in ranges)


def test_the_training_lab_has_a_dial_for_each_of_its_settings():
    lab = training_lab(data="digits", loss=NAME, steps=4, batch_size=16)
    assert set(losses.catalogue()[NAME].cls.ranges) <= set(lab.sliders)


def test_forces_explore_has_a_slider_for_each_and_compares_it():
    loss = getattr(losses, NAME)()
    panel = forces.explore(loss, positive=0.5, similarity=0.2)
    panel.set()
    for name in loss.ranges:
        assert moved(panel, f"loss_{name}" if f"loss_{name}" in panel.inputs else name), (
            f"does formula read {name}?"
        )
    assert f"{TITLE}: loss" in forces.explore("NTXent", NAME).readout.value


def test_points_move_under_it_on_the_circle():
    loss = getattr(losses, NAME)()
    path = sphere.move(loss, *sphere.start(3, 2, spread=0.2, arc=2.0, seed=0), steps=30)
    assert path.loss[-1] < path.loss[0]
    assert TITLE in figures.alt(sphere.frames([loss], [path], at=[0, 30]))


def test_its_look_is_its_own():
    look = style.loss(NAME)
    Line2D([0, 1], [0, 1], **look)
    others = [style.loss(name) for name in losses.catalogue() if name != NAME]
    assert all(str(look[key]) not in {str(other[key]) for other in others} for key in look)


def test_the_family_shows_it_by_autograd_and_says_so():
    page, worst = family.one_page()
    (row,) = [line for line in page.splitlines() if line.startswith(f"| {TITLE} |")]
    assert row.count("by autograd") == 2 and "$" in row and worst < 1e-9
    members = {"NT-Xent": losses.NTXent(0.2), TITLE: getattr(losses, NAME)()}
    positives, negatives = toys.random_similarities(5, 1, 12, torch.Generator().manual_seed(0))
    assert all(of.isfinite().all() for of in family.gradients(members, positives, negatives).values())


def test_one_idea_says_that_nobody_has_looked():
    page, _ = one_idea.table()
    unseen = page.count(" not looked at")  # this one, and a contributor's own
    assert f"| {TITLE} | outside | not looked at" in page and f"{unseen} not looked at" in one_idea.counted()


@pytest.mark.parametrize("page", ["W", "circle", "matrix"])
def test_the_explorers_leave_it_out_with_a_sentence(page):
    assert f"{TITLE} has no formula in JavaScript yet" in explorers.page(page)
    with pytest.raises(ValueError, match=f"loss is '{NAME}', which is left out: has no formula"):
        explorers.page(page, {"loss": NAME})

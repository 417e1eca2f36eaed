"""Two losses beside each other: the picture shows what `anatomy` computes, for every loss and slider."""

from __future__ import annotations

import math
import re

import pytest
import torch

from clutils import anatomy, controls, figures, losses, similarities
from clutils.figures import forces

SIMILARITY = [name for name, entry in losses.catalogue().items() if entry.level == "similarity"]


def crowd(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return torch.tensor([0.7, 0.3], dtype=torch.float64), torch.rand(30, generator=draw).double() * 1.6 - 0.8


def test_shares_are_the_histogram_of_the_push():
    s, push = torch.tensor([-1.0, -0.31, 0.32, 0.33, 1.0]), torch.tensor([1.0, 2.0, 3.0, 5.0, 9.0])
    found = forces.shares(s, push)
    for low, expected in [(-1.0, 1), (-0.35, 2), (0.3, 8), (0.95, 9)]:
        assert float(found[round((low + 1) / 0.05)]) == pytest.approx(expected / 20)
    assert float(found.sum()) == pytest.approx(1)
    assert float(forces.shares(s, torch.zeros(5)).sum()) == 0


@pytest.mark.parametrize("name", SIMILARITY)
def test_the_curve_passes_through_the_pull_at_the_anchors_own_place(name):
    positives, negatives = crowd()
    loss = getattr(losses, name)()
    here = anatomy.forces(loss, positives[None], negatives[None])[0].sum()
    along = torch.tensor([-0.6, float(positives.mean()), 0.9], dtype=torch.float64)  # others beside it
    curve = forces.pulls(loss, positives, negatives, along)
    assert float(curve[1]) == pytest.approx(float(here), rel=1e-9)


def test_the_pull_along_the_sweep_is_the_closed_form():
    negatives = crowd()[1]
    curve = forces.pulls(losses.NTXent(0.2), torch.tensor([0.1]).double(), negatives)
    total = torch.exp(negatives / 0.2).sum()
    expected = total / (total + torch.exp(forces.SWEEP / 0.2)) / 0.2
    torch.testing.assert_close(curve, expected)


@pytest.mark.parametrize("name", SIMILARITY)
def test_the_picture_holds_each_force(name):
    positives, negatives = crowd()
    loss = getattr(losses, name)()
    picture = forces.Beside(several=True)
    said = picture.update((losses.NTXent(0.5), loss), positives, negatives)
    pull, push = (f[0] for f in anatomy.forces(loss, positives[None], negatives[None]))
    side = picture.sides[1]
    s, shown = side.push.get_data()
    order = negatives.argsort()
    torch.testing.assert_close(torch.as_tensor(s), negatives[order])
    pushed = push[order] > 0
    torch.testing.assert_close(torch.as_tensor(shown)[pushed], push[order][pushed])
    assert torch.isnan(torch.as_tensor(shown)[~pushed]).all()
    assert len(side.drawn_in.get_xdata()) == int((push < 0).sum())
    assert side.here.get_ydata()[0] == pytest.approx(float(pull.sum()))
    assert forces.title_of(loss) in said and "NT-Xent: loss" in said
    assert forces.title_of(loss) in figures.alt(picture.figure)
    low, high = picture.how.get_ylim()
    assert low <= float(pull.sum()) <= high


@pytest.mark.parametrize("name", SIMILARITY)
def test_every_slider_shown_changes_the_picture(name):
    panel = controls.forces(name, views=2 if name == "AttentionNCE" else 1, positive=0.5, similarity=0.2)
    unmoved = {"alignment_threshold", "alpha"}  # with A = A₀ or α = 0 they act not at all: set off below
    if name == "MACL":
        panel.set(alpha=0.7, alignment_threshold=0.2)
    if name in ("Triplet", "PairMargin"):
        panel.set(margin=1.0)
    for key, widget in panel.inputs.items():
        if widget.layout.display == "none" or key in {"shape", "detach_attention", *unmoved}:
            continue
        before, picture = panel.readout.value, panel.live.image.value
        if hasattr(widget, "options"):
            values = [option[1] for option in widget.options]
            at = values.index(widget.value)
            panel.set(**{key: values[max(at - 3, 0)] if at else values[3]})
        else:
            high = widget.value + 0.5 * (widget.max - widget.value)
            panel.set(**{key: type(widget.value)(high)})
        changed = panel.live.image.value != picture or panel.readout.value != before
        assert changed or name in ("PairMargin", "Triplet"), key


def test_the_temperature_is_turned_for_both():
    panel = controls.forces("MACL")
    panel.set(temperature=0.5, alpha=0.0)
    said = panel.readout.value
    ntxent = losses.NTXent(0.5)
    positives, negatives = controls.one_anchor(0.6, 255, "gaussian", similarity=0.0, deviation=0.25)
    pull, _ = anatomy.forces(ntxent, positives[None], negatives[None])
    assert f"pull {float(pull):.3g}" in said


def test_real_tables_are_walked_from_easy_to_hard():
    draw = torch.Generator().manual_seed(1)
    z1, z2 = (torch.nn.functional.normalize(torch.randn(6, 4, generator=draw), dim=1) for _ in range(2))
    pairs = similarities.two_views(z1, z2)
    panel = controls.forces("NTXent", "Decoupled", (pairs.positives, pairs.negatives))
    assert panel.inputs["anchor"].max == 12
    gap = (pairs.negatives.amax(dim=1) - pairs.positives[:, 0]).double()
    for anchor, row in ((1, int(gap.argmin())), (12, int(gap.argmax()))):
        panel.set(anchor=anchor)
        value = losses.NTXent().per_anchor(pairs.positives[row : row + 1], pairs.negatives[row : row + 1])
        assert f"NT-Xent: loss {float(value):.3g}" in panel.readout.value.replace("−", "-")


def test_the_family_compares_any_two():
    panel = controls.family("NTXent", "NTXent", temperature=0.3)
    texts = panel.readout.value
    for name in ("HardNegative", "SupCon", "Triplet"):
        panel.set(second=name)
        assert panel.readout.value != texts
        texts = panel.readout.value


def test_shaped_negatives_have_the_mean_and_spread_that_the_sliders_say():
    _, negatives = controls.one_anchor(0.5, 510, "gaussian", similarity=0.1, deviation=0.2)
    assert float(negatives.mean()) == pytest.approx(0.1, abs=1e-3)
    assert float(negatives.std()) == pytest.approx(0.2, rel=0.02)
    _, negatives = controls.one_anchor(0.5, 8, "few hard", similarity=-0.5, hard=0.9, number=3)
    assert negatives.tolist() == [0.9] * 3 + [-0.5] * 5
    positives, _ = controls.one_anchor(0.6, 8, "equal", views=3, spread=0.3, similarity=0.0)
    assert positives.tolist() == pytest.approx([0.3, 0.6, 0.9])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: controls.forces("Nothing"), "'Nothing'"),
        (lambda: controls.forces("BarlowTwins"), "BarlowTwins"),
        (lambda: controls.family("CLIP"), "'CLIP'"),
        (lambda: controls.forces(positive=2.0), "2.0"),
        (lambda: controls.one_anchor(0.5, 5, "odd", similarity=0.0), "'odd'"),
        (lambda: forces.beside([losses.NTXent()], *crowd()), "two losses"),
    ],
)
def test_bad_input_is_quoted(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_loss_that_pushes_nothing_says_so():
    positives, negatives = torch.tensor([0.99]).double(), torch.full((5,), -0.9).double()
    picture = forces.Beside()
    said = picture.update((losses.NTXent(0.5), losses.Triplet(0.2)), positives, negatives)
    assert "pushes nothing" in said
    assert not math.isnan(picture.ceiling[1])


@pytest.mark.parametrize("names", [("NTXent", "MACL"), ("MACL", "NTXent")])
def test_macl_gets_the_batchs_alignment_on_either_side(names):
    draw = torch.Generator().manual_seed(1)
    z1, z2 = (torch.nn.functional.normalize(torch.randn(6, 4, generator=draw), dim=1) for _ in range(2))
    pairs = similarities.two_views(z1, z2)
    panel = controls.forces(*names, (pairs.positives, pairs.negatives))
    macl = losses.MACL(getattr(losses, names[0])().temperature)
    pulls = anatomy.forces(macl, pairs.positives.double(), pairs.negatives.double())[0]
    assert (pulls == pulls[0]).all()  # 1/τ_a at the batch's alignment, the same for every anchor
    assert "MACL: loss" in panel.readout.value
    for anchor in (1, 7, 12):
        panel.set(anchor=anchor)
        (said,) = re.findall(r"MACL: loss [^,]*, pull ([0-9.]+)", panel.readout.value)
        assert float(said) == pytest.approx(float(pulls[0]), rel=5e-3)

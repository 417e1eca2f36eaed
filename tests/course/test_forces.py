"""Pull, push and W, drawn and under sliders: they are what `anatomy` computes, and everyone can read them."""

import math
import re

import ipywidgets as W
import pytest
import torch

from clutils import anatomy, figures, losses, similarities
from clutils.course import forces
from clutils.course.forces import figures as drawn
from clutils.figures import style
from clutils.settings import setting

pytestmark = pytest.mark.usefixtures("not_laid_out")
SIMILARITY = [name for name, entry in losses.catalogue().items() if entry.level == "similarity"]


def distribution(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return torch.tensor([0.7, 0.3], dtype=torch.float64), torch.rand(30, generator=draw).double() * 1.6 - 0.8


# ---- two losses beside each other ---------------------------------------------------------------------


def test_shares_are_the_histogram_of_the_push():
    s, push = torch.tensor([-1.0, -0.31, 0.32, 0.33, 1.0]), torch.tensor([1.0, 2.0, 3.0, 5.0, 9.0])
    found = drawn.shares(s, push)
    for low, expected in [(-1.0, 1), (-0.35, 2), (0.3, 8), (0.95, 9)]:
        assert float(found[round((low + 1) / 0.05)]) == pytest.approx(expected / 20)
    assert float(found.sum()) == pytest.approx(1)
    assert float(drawn.shares(s, torch.zeros(5)).sum()) == 0


@pytest.mark.parametrize("name", SIMILARITY)
def test_the_curve_passes_through_the_pull_at_the_anchors_own_place(name):
    positives, negatives = distribution()
    loss = getattr(losses, name)()
    here = anatomy.forces(loss, positives[None], negatives[None])[0].sum()
    along = torch.tensor([-0.6, float(positives.mean()), 0.9], dtype=torch.float64)  # others beside it
    curve = forces.pulls(loss, positives, negatives, along)
    assert float(curve[1]) == pytest.approx(float(here), rel=1e-9)


@pytest.mark.parametrize("name", SIMILARITY)
def test_the_picture_holds_each_force(name):
    positives, negatives = distribution()
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
    assert style.title(name) in said and "NT-Xent: loss" in said
    assert style.title(name) in figures.alt(picture.figure)
    low, high = picture.how.get_ylim()
    assert low <= float(pull.sum()) <= high


def moved(panel, key):
    """Set an input elsewhere: whether the image or the sentence is another one."""
    widget, before = panel.inputs[key], (panel.live.image.value, panel.readout.value)
    if isinstance(widget, W.SelectionSlider):
        values = [option[1] for option in widget.options]
        at = values.index(widget.value)
        panel.set(**{key: values[at - 3]})
    elif isinstance(widget, W.Checkbox):
        panel.set(**{key: not widget.value})
    else:
        panel.set(**{key: type(widget.value)(widget.value + 0.5 * (widget.max - widget.value))})
    return (panel.live.image.value, panel.readout.value) != before


@pytest.mark.parametrize("name", SIMILARITY)
@pytest.mark.usefixtures("not_laid_out")
def test_every_hyperparameter_has_a_slider_labelled_by_its_symbol_that_turns_it(name):
    cls = losses.catalogue()[name].cls
    # what would hide it: a hinge that is shut, α where A = A₀, A₀ where α = 0
    given = {"PairMargin": {"margin": 0.5}, "MACL": {"alignment_threshold": 0.2, "alpha": 0.7}}.get(name, {})
    loss = cls(**given)
    several = name in ("AttentionNCE", "WeightedDecoupled")  # which weigh positives against one another
    panel = forces.explore(loss, views=1 + several, positive=0.5, similarity=0.2)
    panel.set()  # drawn twice, so that what changes from here on is what was moved
    for own, declared in cls.ranges.items():
        key = f"loss_{own}" if f"loss_{own}" in panel.inputs else own
        assert panel.inputs[key].description.startswith(declared.symbol or own.replace("_", " "))
        shown = panel.inputs[key].value
        if (name, own) == ("SSCL", "normalise"):
            with pytest.raises(ValueError, match="SSCL: normalise is True, but it acts on vectors"):
                moved(panel, key)
            assert "here are only similarities" in panel.error.value
            continue
        changed = moved(panel, key)
        if own in cls.in_batches and name != "SSCL":
            assert own.replace("_", " ") in panel.readout.value.partition("in a batch alone")[2]
        else:
            assert changed, own
        panel.set(**{key: shown})
    assert all(getattr(loss, own) == getattr(cls(**given), own) for own in cls.ranges)  # the reader's stays


def test_no_slider_leaves_a_trace_in_the_second_loss_or_in_the_reader_s():
    mine = losses.MACL(0.1)
    panel = forces.explore("NTXent", beside="SSCL")
    panel.set(count=255)
    before = panel.readout.value
    panel.set(count=1)
    panel.set(count=255)
    assert panel.readout.value == before
    forces.explore(losses.NTXent(0.5), mine).set(temperature=0.02)
    assert mine.temperature == 0.1

    class Keeping(losses.NTXent):  # a tensor of its last call, which has no deep copy
        def formula(self, pairs):
            self.last = pairs.negatives.exp()
            return super().formula(pairs)

    keeping, z = Keeping(0.5), torch.randn(4, 8, requires_grad=True)
    keeping(z, z)
    forces.explore(keeping).set(temperature=0.02)
    assert keeping.temperature == 0.5


@pytest.mark.parametrize("name", ["MACL", "SSCL"])
def test_every_input_of_the_anchor_changes_the_picture(name):
    panel = forces.explore(name)
    panel.set()
    for key, widget in panel.inputs.items():
        if key in losses.catalogue()[name].cls.ranges or key == "shape" or widget.layout.display == "none":
            continue
        assert moved(panel, key), key


def test_a_value_outside_a_dial_lengthens_its_slider_and_a_loss_of_ones_own_has_some_too():
    panel = forces.explore(losses.AlphaCL(0.3, 9.0))
    assert panel.inputs["alpha"].value == panel.inputs["alpha"].max == 9 and panel.inputs["alpha"].min == 0.5
    assert forces.explore(losses.NTXent(77.0)).inputs["temperature"].value == 77
    assert forces.explore(losses.ADNCE(deviation=math.inf)).inputs["loss_deviation"].label == "∞"
    macl = losses.MACL()
    panel = forces.explore(macl)
    assert panel.inputs["minimum_temperature"].value == "none" and macl.minimum_temperature is None
    panel.set(minimum_temperature=0.05)
    panel.reset.click()
    assert panel.inputs["minimum_temperature"].value == "none"

    class Own(losses.NTXent):
        power: float = setting(0, default=2.0)  # which declares no dial
        most: int = setting(1, 8, "M", whole=True, default=3)

    panel = forces.explore(Own(0.3))
    assert [panel.inputs[key].max for key in ("power", "most")] == [20, 8]
    assert type(panel.inputs["most"].value) is int and "Own: loss" in panel.readout.value


def test_the_temperature_is_turned_for_both():
    panel = forces.explore("MACL")
    panel.set(temperature=0.5, alpha=0.0)
    said = panel.readout.value
    ntxent = losses.NTXent(0.5)
    positives, negatives = forces.one_anchor(0.6, 255, "gaussian", similarity=0.0, deviation=0.25)
    pull, _ = anatomy.forces(ntxent, positives[None], negatives[None])
    assert f"pull {float(pull):.3g}" in said


def test_the_anchors_inputs_are_those_that_its_distribution_reads():
    panel = forces.explore("NTXent")
    for shape, read in {
        "equal": {"similarity"},
        "gaussian": {"similarity", "deviation"},
        "few hard": {"similarity", "hard", "number"},
    }.items():
        panel.set(shape=shape)
        shown = {name for name, widget in panel.inputs.items() if widget.layout.display != "none"}
        assert shown & {"similarity", "deviation", "hard", "number"} == read


def test_real_tables_are_walked_from_easy_to_hard():
    draw = torch.Generator().manual_seed(1)
    z1, z2 = (torch.nn.functional.normalize(torch.randn(6, 4, generator=draw), dim=1) for _ in range(2))
    pairs = similarities.two_views(z1, z2)
    panel = forces.explore("NTXent", "Decoupled", (pairs.positives, pairs.negatives))
    assert panel.inputs["anchor"].max == 12
    gap = (pairs.negatives.amax(dim=1) - pairs.positives[:, 0]).double()
    for anchor, row in ((1, int(gap.argmin())), (12, int(gap.argmax()))):
        panel.set(anchor=anchor)
        value = losses.NTXent().per_anchor(pairs.positives[row : row + 1], pairs.negatives[row : row + 1])
        assert f"NT-Xent: loss {float(value):.3g}" in panel.readout.value.replace("−", "-")


def test_shaped_negatives_have_the_mean_and_spread_that_the_sliders_say():
    _, negatives = forces.one_anchor(0.5, 510, "gaussian", similarity=0.1, deviation=0.2)
    assert float(negatives.mean()) == pytest.approx(0.1, abs=1e-3)
    assert float(negatives.std()) == pytest.approx(0.2, rel=0.02)
    _, negatives = forces.one_anchor(0.5, 8, "few hard", similarity=-0.5, hard=0.9, number=3)
    assert negatives.tolist() == [0.9] * 3 + [-0.5] * 5
    positives, _ = forces.one_anchor(0.6, 8, "equal", views=3, spread=0.3, similarity=0.0)
    assert positives.tolist() == pytest.approx([0.3, 0.6, 0.9])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: forces.explore("Nothing"), "'Nothing'"),
        (lambda: forces.explore("BarlowTwins"), "BarlowTwins"),
        (lambda: forces.explore(positive=2.0), "2.0"),
        (lambda: forces.one_anchor(0.5, 5, "odd", similarity=0.0), "'odd'"),
        (lambda: forces.beside([losses.NTXent()], *distribution()), "two losses"),
    ],
)
def test_a_question_that_can_not_be_is_quoted(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_slider_that_changes_nothing_can_be_left_out_and_its_setting_stays():
    tables = torch.rand(4, 1).double(), torch.rand(4, 9).double()
    panel = forces.explore(losses.MACL(0.1), similarities=tables, without=("minimum_temperature",))
    assert "minimum_temperature" not in panel.inputs and {"temperature", "alpha"} <= set(panel.inputs)
    panel.set(alpha=1.0)
    assert panel.error.value == ""


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
    panel = forces.explore(*names, (pairs.positives, pairs.negatives))
    macl = losses.MACL(getattr(losses, names[0])().temperature)
    pulls = anatomy.forces(macl, pairs.positives.double(), pairs.negatives.double())[0]
    assert (pulls == pulls[0]).all()  # 1/τ_a at the batch's alignment, the same for every anchor
    assert "MACL: loss" in panel.readout.value
    for anchor in (1, 7, 12):
        panel.set(anchor=anchor)
        (said,) = re.findall(r"MACL: loss [^,]*, pull ([0-9.]+)", panel.readout.value)
        assert float(said) == pytest.approx(float(pulls[0]), rel=5e-3)

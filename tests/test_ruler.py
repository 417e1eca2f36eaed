"""The ruler: its marks against closed forms and plain loops, and questions that were asked in public."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
import torch

from clutils import anatomy, losses
from clutils.anatomy import Ruler
from tests.losses.inputs import fails

LOSSES = [entry.cls for entry in losses.catalogue().values()]
OF_SIMILARITIES = [kind for kind in LOSSES if kind.level == "similarity"]


# Values that published code prints on another scale: where, loss, batch, queue, value, who prints it so.
SCALED = [
    ("SupContrast #3, #83", losses.SupCon(0.1), 256, None, 8.909, "SupContrast prints it, times τ/0.07"),
    ("SupContrast #42", losses.SupCon(0.1), 64, None, 6.92, "SupContrast prints it, times τ/0.07"),
    ("mmselfsup #644", losses.NTXent(1.0), 4096, None, 33.27, "MoCo v3 prints it, times 2τ and summed"),
    ("one direction of MoCo v3", losses.NTXent(0.2), 4096, None, 3.327, "MoCo v3 prints it, times 2τ:"),
    (
        "a sum of both directions",
        losses.NTXent(0.2),
        256,
        None,
        11.09,
        "sum of two directions, over the batch",
    ),
]


@pytest.mark.parametrize(("where", "loss", "batch", "queue", "value", "who"), SCALED)
def test_a_value_on_another_scale_is_chance_there_and_the_scale_is_named(
    where, loss, batch, queue, value, who
):
    said = anatomy.ruler(loss, batch, queue).says(value)
    assert f"chance as {who}" in said or f"chance as the {who}" in said, (where, said)
    for other in (value * 1.03, value * 0.97):
        assert "chance as" not in anatomy.ruler(loss, batch, queue).says(round(other, 3))


def test_labels_keep_the_scale_and_a_loss_without_that_chance_has_none():
    assert "SupContrast prints it" in anatomy.ruler(losses.SupCon(0.1), 256, classes=10).says(8.909)
    assert anatomy.ruler(losses.Triplet(), 16).scaled == {}
    assert anatomy.ruler(losses.NTXent(0.07), 16).scaled.keys().isdisjoint({anatomy.SCALES[0][0]})


def test_a_value_is_read_as_rounded_as_it_was_typed():
    marks = anatomy.ruler(losses.NTXent(100.0), 2)  # floor log(1 + 2 e^-0.02) = 1.0854
    assert "below the floor" not in marks.says(round(marks.floor, 3) - 0.0)
    assert "below the floor" in marks.says(round(marks.floor - 0.02, 2))


@pytest.mark.parametrize(("name", "value", "count"), [("DINO", "8.3177", "4096"), ("swav", "8.0064", "3000")])
def test_a_loss_over_prototypes_is_answered_by_their_number(name, value, count, capsys):
    from clutils.__main__ import main

    assert main(["ruler", "--loss", name, "--value", value]) == 2
    said = capsys.readouterr().err
    assert "logarithm of the number of its prototypes" in said and f"log {count}" in said


def test_the_page_of_questions_quotes_the_ruler_as_it_answers(capsys):
    from clutils.__main__ import main

    text = (Path(__file__).parents[1] / "docs" / "answered.md").read_text("utf-8")
    blocks = re.findall(r"```\npython -m clutils (ruler [^\n]+)\n(.+?)\n```", text, re.DOTALL)
    assert len(blocks) >= 8
    for command, quoted in blocks:
        assert main(command.split()) == 0
        assert quoted in capsys.readouterr().out, command


@pytest.mark.parametrize("temperature", [0.05, 0.5, 2.0])
@pytest.mark.parametrize(("batch", "queue"), [(2, None), (32, None), (32, 4096)])
def test_nt_xents_marks_are_their_closed_forms(temperature, batch, queue):
    K, n = (2 * batch - 2, batch) if queue is None else (queue, queue + 1)
    marks = anatomy.ruler(losses.NTXent(temperature), batch, queue)
    gap = 1 + 1 / (n - 1)
    assert (marks.K, marks.n) == (K, n)
    assert marks.chance == pytest.approx(math.log(K + 1), rel=1e-12)
    assert marks.collapsed == pytest.approx(math.log(K + 1), rel=1e-12)
    assert marks.best == pytest.approx(math.log1p(K * math.exp(-gap / temperature)), rel=1e-12)
    assert marks.floor == pytest.approx(math.log1p(K * math.exp(-2 / temperature)), rel=1e-12)
    assert pytest.approx(K / (K + 1), rel=1e-12) == marks.at_chance.W
    assert marks.at_chance.pull == pytest.approx(K / (K + 1) / temperature, rel=1e-12)
    assert marks.at_chance.K_eff == pytest.approx(K, rel=1e-12)


def test_other_losses_marks_are_their_closed_forms():
    decoupled = anatomy.ruler(losses.Decoupled(0.1), 16)
    assert decoupled.chance == pytest.approx(math.log(30), rel=1e-12)
    assert decoupled.best == pytest.approx(math.log(30) - (1 + 1 / 15) / 0.1, rel=1e-12)
    assert decoupled.trained.pull == pytest.approx(10, rel=1e-12)
    siglip = anatomy.ruler(losses.SigLIP(0.1, -10), 16)
    pair = [math.log1p(math.exp(10)), math.log1p(math.exp(-10))]
    assert siglip.chance == pytest.approx(pair[0] + 15 * pair[1], rel=1e-12)
    assert anatomy.ruler(losses.Regression(), 16).chance == pytest.approx(2, rel=1e-12)
    for printed, collapsed in ((False, 25 * 0.99), (True, 2 * 25 * 0.99)):
        marks = anatomy.ruler(losses.VICReg(printed=printed), 16)
        assert marks.collapsed == pytest.approx(collapsed, rel=1e-9)
        assert "that of a collapsed encoder" in marks.says(collapsed + 0.03)
        assert "as the paper prints" in anatomy.ruler(losses.VICReg(), 16).says(49.53)
    assert anatomy.ruler(losses.NNCLR(0.1), 16).chance == pytest.approx(math.log(16), rel=1e-12)


def test_w_is_that_of_a_loss_whose_pull_is_ntxents_alone():
    gated = {
        kind.__name__
        for kind in OF_SIMILARITIES
        if (marks := anatomy.ruler(kind(), 64)).at_chance.W is not None and marks.trained.W is not None
    }
    assert gated == {"NTXent", "SupCon", "CLIP"}
    for other in (losses.SigLIP(), losses.Robust(), losses.SogCLR(), losses.ADNCE(), losses.Debiased()):
        marks = anatomy.ruler(other, 64)
        assert marks.at_chance.W is None and marks.trained.W is None, marks.loss
    assert anatomy.ruler(losses.DualTemperature(0.1, 1.0), 64).trained.W is not None  # which is InfoNCE


def test_the_trained_state_is_counted_in_a_loop():
    marks = anatomy.ruler(losses.NTXent(0.2), 8, positive=0.7, spread=0.3)
    normal = torch.distributions.Normal(0.0, 0.3)
    negatives = [float(normal.icdf(torch.tensor((j + 0.5) / 14, dtype=torch.float64))) for j in range(14)]
    weights = [math.exp(min(1, max(-1, s)) / 0.2) for s in negatives]
    total = sum(weights)
    W = total / (total + math.exp(0.7 / 0.2))
    assert marks.trained.value == pytest.approx(-math.log(1 - W), rel=1e-6)
    assert pytest.approx(W, rel=1e-6) == marks.trained.W
    entropy = -sum(w / total * math.log(w / total) for w in weights)
    assert marks.trained.K_eff == pytest.approx(math.exp(entropy), rel=1e-6)


@pytest.mark.parametrize(
    "kind", [kind for kind in OF_SIMILARITIES if kind is not losses.SSCL], ids=lambda kind: kind.__name__
)  # SSCL adds mixes of its negatives to a batch
def test_marks_are_the_losses_value_at_such_embeddings(kind):
    """The same from a batch of vectors: orthogonal, all equal, the corners of a simplex."""

    def loss():
        made = kind()
        made.allocate(6)
        return made

    marks = anatomy.ruler(loss(), 6)
    apart, simplex = torch.eye(12, dtype=torch.float64), torch.eye(6, dtype=torch.float64) - 1 / 6
    alike = torch.ones_like(apart)
    views = [(apart[:6], apart[6:]), (alike[:6], alike[6:]), (simplex, simplex)]
    given = {"index": torch.arange(6)} if "index" in kind.accepts else {}
    values = [float(loss()(z1, z2, **given)) for z1, z2 in views]
    assert values[0] == pytest.approx(marks.chance, abs=1e-9)
    assert values[1] == pytest.approx(marks.collapsed, abs=1e-9)
    if kind is losses.AlphaCL:
        assert marks.best is None and "no measure of progress" in marks.says(values[2])
    else:
        assert values[2] == pytest.approx(marks.best, abs=1e-9)


def test_a_loss_without_a_bound_is_given_none_and_the_reason():
    """What the marks would have been is beaten by vectors that can be built; all other losses have them."""
    apart = torch.eye(8, dtype=torch.float64)
    simplex = apart - 1 / 8
    for loss, better in (
        (losses.AlphaCL(), apart),  # at right angles
        (losses.Spectral(), 3 * apart),  # three times as long
        (losses.NPair(), 5 * simplex),
    ):
        marks = anatomy.ruler(loss, 8)
        unit = torch.nn.functional.normalize(simplex, dim=1)
        at_unit_length = min(loss(z, z).item() for z in (unit, apart if loss.name != "AlphaCL" else unit))
        assert loss(better, better).item() < at_unit_length - 0.1
        assert marks.best is None and marks.floor is None and marks.unbounded
        assert f"has no bound: {marks.unbounded}" in marks.says(-1.9)
    assert {kind.__name__ for kind in LOSSES if kind.unbounded} == {"AlphaCL", "Spectral", "NPair"}
    beaten = anatomy.ruler(losses.ADNCE(2.7, -0.24, 0.18), 200, spread=0.5)
    assert beaten.best is beaten.floor is None and "trained state" in beaten.unbounded


def test_each_verdict_has_its_place_on_the_scale():
    marks = anatomy.ruler(losses.NTXent(0.5), 64)
    way = marks.chance - marks.best
    for learned, verdict in (
        (-0.1, "above chance"),
        (-0.01, "at chance"),
        (0.0, "at chance"),
        (0.5, "learning: 50% of the way"),
        (0.99, "at the best reachable"),
        (1.0, "at the best reachable"),
        (1.0005, "at the best reachable"),
        (1.002, "below the best reachable: "),
    ):
        assert f" is {verdict}" in marks.says(marks.chance - learned * way)
    assert marks.says(marks.floor + 1e-9).endswith("another K, setting or scale.")  # as is proven for InfoNCE
    assert "another arrangement" in anatomy.ruler(losses.NTXent(0.5), 64, 64).says(marks.floor + 0.1)
    assert " is below the best reachable: " in marks.says(marks.floor) and marks.floor < marks.best
    assert " is below the floor: " in marks.says(marks.floor - 0.01)
    assert "A collapsed encoder gives the same value" in marks.says(marks.chance)
    assert "A collapsed encoder gives the same value" in anatomy.ruler(losses.Regression(), 64).says(0.0)
    assert "no measure of progress" in anatomy.ruler(losses.FlatNCE(0.1), 64).says(1.0)


@pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.__name__)
def test_every_loss_of_the_catalogue_gives_what_can_be_computed(kind):
    few = {losses.MoCHi: {"hardest": 10, "synthetic": 5, "query_mixed": 3}, losses.SSCL: {"hardest": 10}}
    loss = kind(**few.get(kind, {}))
    before = torch.get_rng_state()
    marks = anatomy.ruler(loss, 16)
    assert isinstance(marks, Ruler) and marks == anatomy.ruler(loss, 16)
    assert torch.equal(before, torch.get_rng_state())
    assert (marks.trained is not None) == (kind.level == "similarity")
    assert (marks.chance is None) == (kind.__name__ in ("BarlowTwins", "VICReg", "SIGReg"))
    assert marks.says(0.3).endswith(".") and "None" not in marks.says(0.3)


def test_what_can_not_be_measured_is_quoted():
    fails(lambda: anatomy.ruler(torch.nn.MSELoss()), "ruler: loss is MSELoss()", "catalogue")
    fails(lambda: anatomy.ruler(losses.NTXent(0.1), 1), "batch_size is 1")
    fails(lambda: anatomy.ruler(losses.NTXent(0.1), 16, 0), "queue is 0")
    fails(lambda: anatomy.ruler(losses.CLIP(0.1), 16, 64), "queue is 64, but CLIP takes none")
    fails(lambda: anatomy.ruler(losses.NTXent(0.1), 16, positive=1.5), "positive is 1.5")
    fails(lambda: anatomy.ruler(losses.NTXent(0.1), 16, spread=-1), "spread is -1")
    fails(lambda: anatomy.ruler(losses.NPair(), 5000), "batch_size is 5000", "4096")
    fails(lambda: anatomy.ruler(losses.NTXent(0.1)).says(math.inf), "value is inf")


def test_with_labels_the_best_is_a_point_a_class_and_not_that_of_pairs():
    """SupCon at B = 128, τ = 0.1 and ten classes: 3.203, where the ruler without labels says 0.0106."""
    marks = anatomy.ruler(losses.SupCon(0.1), 128, classes=10)
    y = torch.arange(128) % 10
    sizes = 2 * y.bincount()
    by_hand = 0.0
    for size in sizes.tolist():
        positives, negatives = size - 1, 256 - size
        by_hand += size / 256 * math.log(positives + negatives * math.exp(-(1 + 1 / 9) / 0.1))
    assert marks.best == pytest.approx(by_hand, rel=1e-9) and marks.best == pytest.approx(3.203, abs=1e-3)
    assert marks.chance == pytest.approx(math.log(255)) == marks.collapsed
    assert "learning: 96% of the way" in marks.says(3.3) and "at the best reachable" in marks.says(3.21)
    assert "below the floor" in marks.says(marks.floor - 0.01) and marks.floor <= marks.best
    fails(lambda: anatomy.ruler(losses.NTXent(0.1), 128, classes=10), "classes is 10, but NTXent takes no")
    fails(lambda: anatomy.ruler(losses.SupCon(0.1), 128, 64, classes=10), "of a queue no labels are known")
    fails(lambda: anatomy.ruler(losses.SupCon(0.1), 128, classes=65), "classes is 65")


def test_a_curve_is_drawn_over_the_known_runs_and_its_loss_is_a_share_of_the_way(tmp_path, capsys):
    from clutils.__main__ import main
    from clutils.figures import known_runs

    known = known_runs.read()
    assert known["run"].nunique() == 4 and {"loss", *known_runs.PANELS, "what"} <= set(known.columns)
    for name, least in (("knn", 0.05), ("learned", 0.2)):  # each of them did learn
        ends = known.groupby("run")[name].agg(["first", "last"])
        few = ends.index[ends["last"] <= ends["first"] + least]
        assert list(few) == (["moco-cifar10"] if name == "knn" else []), "a run's result decides on no run"
    curve, out = tmp_path / "history.csv", tmp_path / "curve.png"
    marks = anatomy.ruler(losses.NTXent(0.5), 64)
    curve.write_text(f"step,loss,head_uniformity\n0,{marks.chance},-0.1\n40,{marks.best},-2.5\n")
    given = ["ruler", "--set", "temperature=0.5", "--batch-size", "64", "--curve", str(curve)]
    assert main([*given, "--out", str(out)]) == 0 and out.read_bytes()[:4] == b"\x89PNG"
    said = capsys.readouterr().out
    assert "from chance to the best: 1 at step 40; " in said and ": -2.5 at step 40" in said
    curve.write_text("epoch,loss\n0,1\n")
    fails(lambda: known_runs.own_curve(curve, 1.0, 0.0), "needs a column step", "it has epoch, loss")


def test_a_formula_that_gives_nan_is_named_and_not_read_as_the_floor():
    class Lost(losses.NTXent):
        def formula(self, pairs):
            return super().formula(pairs) * math.nan

    fails(lambda: anatomy.ruler(Lost(0.1), 64), "ruler: Lost", "is nan at all similarities 0", "K = 126")

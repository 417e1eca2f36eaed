"""Every loss against plain loops, against autograd's closed form, at its limits, and against bad input."""

from __future__ import annotations

import math

import pytest
import torch

from clutils import anatomy, losses, sphere
from tests.losses import oracles
from tests.losses.inputs import close, embeddings, fails, masks, similarities

DIFFERENCES = [losses.NTXent, losses.Decoupled, losses.FlatNCE, losses.MACL, losses.DualTemperature]
FAMILY = [
    *DIFFERENCES,
    *(losses.Debiased, losses.HardNegative, losses.SSCL, losses.AttentionNCE, losses.SupCon),
]
SUPERVISED = [losses.PairMargin, losses.Triplet, losses.SupCon, losses.AttentionNCE]
ALL = [*FAMILY, losses.PairMargin, losses.Triplet]
OTHER_LEVELS = [losses.MoCHi, losses.CLIP, losses.BarlowTwins, losses.Regression]
EVERY = [*ALL, *OTHER_LEVELS]


def made(cls):
    """With defaults, but for draws that a small batch can serve."""
    if cls is losses.SSCL:
        return cls(hardest=3, synthetic=2)
    if cls is losses.MoCHi:
        return cls(hardest=3, synthetic=4, query_mixed=2)
    return cls()


def oracle(loss, positives, negatives, alignment):
    """The value of one anchor by oracles.py."""
    if isinstance(loss, losses.NTXent):
        return oracles.nt_xent(positives, negatives, loss.temperature)
    if isinstance(loss, losses.Decoupled):
        return oracles.decoupled(positives, negatives, loss.temperature)
    if isinstance(loss, losses.FlatNCE):
        return oracles.flatnce(positives, negatives, loss.temperature)
    if isinstance(loss, losses.MACL):
        return oracles.macl(
            positives, negatives, loss.temperature, loss.alpha, loss.alignment_threshold, alignment
        )
    if isinstance(loss, losses.PairMargin):
        return oracles.pair_margin(positives, negatives, loss.margin)
    if isinstance(loss, losses.Debiased):
        return oracles.debiased(positives, negatives, loss.temperature, loss.class_prior)
    if isinstance(loss, losses.HardNegative | losses.SSCL):
        return oracles.hard_negative(positives, negatives, loss.temperature, loss.class_prior, loss.beta)
    if isinstance(loss, losses.AttentionNCE):
        return oracles.attention_nce(positives, negatives, loss.temperature, loss.d_pos, loss.d_neg)
    if isinstance(loss, losses.SupCon):
        return oracles.supcon(positives, negatives, loss.temperature)
    if isinstance(loss, losses.DualTemperature):
        return oracles.dual_temperature(positives, negatives, loss.temperature, loss.ratio)
    by = oracles.triplet_batch_hard if loss.batch_hard else oracles.triplet
    return by(positives, negatives, loss.margin)


SETTINGS = [
    losses.NTXent(0.5),
    losses.NTXent(0.07),
    losses.Decoupled(0.1),
    losses.FlatNCE(0.2),
    losses.MACL(0.1, 0.5, 0.0),
    losses.MACL(0.3, 1.0, 0.6),
    losses.MACL(0.2, 2.0, 0.8),
    losses.DualTemperature(0.1, 10),
    losses.DualTemperature(0.5, 0.3),
    losses.Debiased(0.5, 0.1),
    losses.Debiased(0.2, 0.5),
    losses.HardNegative(0.5, 0.1, 1.0),
    losses.HardNegative(0.3, 0.0, 0.4),
    losses.SSCL(0.4, 0.2, 0.5, synthetic=0),
    losses.AttentionNCE(0.5, 1.0, 1.0),
    losses.AttentionNCE(0.3, 2.0, 0.5, detach_attention=False),
    losses.SupCon(0.1),
    losses.SupCon(0.5),
    losses.PairMargin(1.0),
    losses.PairMargin(1.7),
    losses.Triplet(0.2),
    losses.Triplet(1.5),
    losses.Triplet(0.4, batch_hard=True),
]


@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
@pytest.mark.parametrize(("P", "K"), [(1, 1), (1, 30), (4, 7)])
def test_per_anchor_is_the_papers_formula_in_plain_loops(loss, P, K):
    positives, negatives = similarities(20, P, K)
    alignment = sum(positives.flatten().tolist()) / positives.numel()
    expected = [
        oracle(loss, p, n, alignment) for p, n in zip(positives.tolist(), negatives.tolist(), strict=True)
    ]
    torch.testing.assert_close(
        loss.per_anchor(positives, negatives),
        torch.tensor(expected, dtype=torch.float64),
        rtol=1e-10,
        atol=1e-10,
    )


@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
def test_masked_entries_count_for_nothing_whatever_they_hold(loss):
    positives, negatives = similarities(30, 5, 9)
    keep_p, keep_n = masks(positives, negatives)
    counted = positives[keep_p]
    alignment = float(counted.mean())
    expected = [
        oracle(loss, positives[i][keep_p[i]].tolist(), negatives[i][keep_n[i]].tolist(), alignment)
        for i in range(30)
    ]
    values = loss.per_anchor(positives, negatives, keep_p, keep_n)
    torch.testing.assert_close(values, torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=1e-10)
    pull, push = anatomy.forces(loss, positives, negatives, keep_p, keep_n)
    assert (pull[~keep_p] == 0).all()
    assert (push[~keep_n] == 0).all()
    poisoned = positives.masked_fill(~keep_p, torch.nan), negatives.masked_fill(~keep_n, torch.nan)
    torch.testing.assert_close(loss.per_anchor(*poisoned, keep_p, keep_n), values)
    for force, clean in zip(anatomy.forces(loss, *poisoned, keep_p, keep_n), (pull, push), strict=True):
        assert torch.equal(force, clean)


@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
def test_a_batch_compares_whom_the_paper_compares(loss):
    z1, z2 = embeddings(6, 5)
    rows = oracles.rows_of_a_batch(z1.tolist(), z2.tolist(), other_view=loss.against == "other view")
    alignment = sum(p[0] for p, _ in rows) / len(rows)
    expected = sum(oracle(loss, p, n, alignment) for p, n in rows) / len(rows)
    assert float(loss(z1, z2)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
def test_with_a_queue_only_q_is_an_anchor_and_the_queue_gives_all_negatives(loss):
    q, k = embeddings(4, 5)
    queue = embeddings(9, 5, seed=7)[0].requires_grad_()
    q.requires_grad_()
    rows = oracles.rows_of_a_queue(q.tolist(), k.tolist(), queue.tolist())
    alignment = sum(p[0] for p, _ in rows) / len(rows)
    value = loss(q, k, queue=queue)
    expected = sum(oracle(loss, p, n, alignment) for p, n in rows) / len(rows)
    assert value.item() == pytest.approx(expected, rel=1e-10)
    value.backward()
    assert queue.grad is None
    assert q.grad.abs().sum() > 0


@pytest.mark.parametrize(
    "loss",
    [
        *(losses.PairMargin(1.2), losses.Triplet(0.5), losses.Triplet(0.5, True)),
        *(losses.SupCon(0.2), losses.AttentionNCE(0.4, 0.5, 2.0)),
    ],
    ids=repr,
)
def test_labels_make_positives_of_every_picture_of_the_class(loss):
    z1, z2 = embeddings(7, 4)
    labels = [0, 1, 0, 2, 1, 0, 2]
    rows = oracles.rows_of_a_batch(z1.tolist(), z2.tolist(), labels)
    expected = sum(oracle(loss, p, n, 0.0) for p, n in rows) / len(rows)
    assert float(loss(z1, z2, labels=torch.tensor(labels))) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("temperature", [0.02, 0.1, 0.5, 2.0, 20.0])
def test_forces_are_the_closed_forms(temperature):
    positives, negatives = similarities(50, 1, 40)
    e_plus = torch.exp((positives - 1) / temperature)
    e_minus = torch.exp((negatives - 1) / temperature)
    shares = e_minus / e_minus.sum(dim=1, keepdim=True)
    W = e_minus.sum(dim=1, keepdim=True) / (e_plus + e_minus.sum(dim=1, keepdim=True))

    pull, push = anatomy.forces(losses.NTXent(temperature), positives, negatives)
    close(pull, W / temperature)
    close(push, W / temperature * shares)
    close(anatomy.gradient_scale(positives, negatives, temperature), W[:, 0])
    close(anatomy.hardness_weights(negatives, temperature), shares)

    for loss in (losses.Decoupled(temperature), losses.FlatNCE(temperature), losses.MACL(temperature, 0.0)):
        pull, push = anatomy.forces(loss, positives, negatives)
        close(pull, torch.full_like(pull, 1 / temperature))
        close(push, shares / temperature)


def test_macls_forces_are_the_decoupled_ones_at_its_own_temperature():
    positives, negatives = similarities(50, 1, 40)
    macl = losses.MACL(0.2, 0.7, 0.3)
    forces = anatomy.forces(macl, positives, negatives)
    tau = 0.2 * (1 + 0.7 * (float(positives.mean()) - 0.3))
    for ours, theirs in zip(forces, anatomy.forces(losses.Decoupled(tau), positives, negatives), strict=True):
        close(ours, theirs)


@pytest.mark.parametrize("loss", [cls() for cls in (*DIFFERENCES, losses.SupCon)], ids=repr)
def test_pushes_sum_to_the_pull_since_only_differences_matter(loss):
    positives, negatives = similarities(50, 3, 40)
    pull, push = anatomy.forces(loss, positives, negatives)
    close(push.sum(dim=1), pull.sum(dim=1))


def test_pair_and_triplet_forces_are_the_closed_forms():
    positives, negatives = similarities(40, 1, 25)
    pull, push = anatomy.forces(losses.PairMargin(1.4), positives, negatives)
    distance = (2 - 2 * negatives).sqrt()
    close(pull, torch.full_like(pull, 2.0))
    close(push, 2 * (1.4 - distance).clamp(min=0) / distance / 25)
    pull, push = anatomy.forces(losses.Triplet(0.6), positives, negatives)
    active = (0.6 + 2 * negatives - 2 * positives > 0).double()
    close(push, 2 * active / 25)
    close(pull[:, 0], 2 * active.sum(dim=1) / 25)


@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
def test_gradients_of_the_embeddings_agree_with_finite_differences(loss):
    stops = losses.FlatNCE | losses.MACL | losses.DualTemperature | losses.AttentionNCE
    if isinstance(loss, stops) and getattr(loss, "detach_attention", True):
        pytest.skip("stop-gradients: the gradient is not that of the value, by design")
    z1, z2 = embeddings(4, 3)
    z1.requires_grad_()
    z2.requires_grad_()
    assert torch.autograd.gradcheck(loss, (z1, z2), eps=1e-6, atol=1e-6)


# ---- limits and numerics -----------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.01, 0.02, 0.05, 0.1])
def test_macl_stays_exact_where_the_papers_pseudocode_is_nan(temperature):
    positives, negatives = torch.ones(1, 1), -torch.ones(1, 10)
    p = torch.softmax(torch.cat([positives, negatives], 1) / temperature, 1)[:, 0]
    if temperature <= 0.05:
        assert torch.isnan(1 / (1 - p) * -torch.log(p)).all(), "the trap is gone from this arithmetic"
    macl = losses.MACL(temperature, alpha=0.0)
    pull, push = anatomy.forces(macl, positives, negatives)
    assert float(macl.per_anchor(positives, negatives)) == pytest.approx(1.0, rel=1e-5)
    assert float(pull) == pytest.approx(1 / temperature, rel=1e-5)
    assert float(push.sum()) == pytest.approx(1 / temperature, rel=1e-5)


def test_macl_floors_its_temperature_and_counts_how_often():
    macl = losses.MACL(0.1, alpha=1.0, alignment_threshold=0.5)
    for alignment, expected in [(1.0, 0.15), (-0.3, 0.02), (-0.5, 0.01), (-1.0, 0.01)]:
        macl.per_anchor(*similarities(3, 1, 5), alignment=alignment)
        assert float(macl.adaptive_temperature) == pytest.approx(expected)
    assert macl.calls == 4
    assert int(macl.floored) == 2
    macl.minimum_temperature = 0.05
    macl.per_anchor(*similarities(3, 1, 5), alignment=-1.0)
    assert float(macl.adaptive_temperature) == pytest.approx(0.05)


def test_macls_alignment_is_the_mean_positive_and_gets_no_gradient():
    positives, negatives = similarities(12, 1, 5)
    macl = losses.MACL(0.1, 0.8, 0.1)
    given = macl.per_anchor(positives, negatives, alignment=float(positives.mean()))
    torch.testing.assert_close(macl.per_anchor(positives, negatives), given)
    other = macl.per_anchor(positives, negatives, alignment=-0.5)
    assert (other - given).abs().max() > 0.1
    # one anchor's pull must not reach another through the temperature
    positives = positives.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(macl.per_anchor(positives, negatives)[0], positives)
    assert (gradient[1:] == 0).all()


def test_flatnce_shows_one_for_ever():
    values = losses.FlatNCE(0.05).per_anchor(*similarities(9, 1, 5))
    assert (values == 1).all()


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("K", [1, 10, 510])
def test_chance_is_per_anchor_at_zero_similarity(cls, K):
    loss = cls()
    zeros = torch.zeros(1, K, dtype=torch.float64)
    assert loss.chance(K) == pytest.approx(float(loss.per_anchor(zeros[:, :1], zeros)), rel=1e-12)
    if cls is losses.NTXent:
        assert loss.chance(K) == pytest.approx(math.log(K + 1))


def test_asking_for_chance_does_not_count_as_a_step_of_macl():
    macl = losses.MACL()
    macl.chance(10)
    assert macl.calls == 0
    assert macl.adaptive_temperature is None


@pytest.mark.parametrize("cls", [cls for cls in EVERY if not hasattr(made(cls), "generator")])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_embeddings_of_any_type_and_length_give_a_float32_loss_and_finite_gradients(cls, dtype, size):
    z1, z2 = (z.mul(size).to(dtype).requires_grad_() for z in embeddings(8, 16))
    value = cls()(z1, z2)
    assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert value.shape == ()
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(z1.grad).all()
    reference = cls()(*(z.detach().double() for z in (z1, z2)))
    assert value.item() == pytest.approx(reference.item(), rel=1e-5)


def test_autocast_does_not_reach_into_the_loss():
    z1, z2 = embeddings(32, 64, dtype=torch.float32)
    plain = losses.NTXent(0.05)(z1, z2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(losses.NTXent(0.05)(z1, z2), plain)


@pytest.mark.parametrize("cls", [cls for cls in EVERY if cls is not losses.BarlowTwins])
def test_the_length_of_an_embedding_does_not_matter(cls):
    z1, z2 = embeddings(6, 8)
    lengths = torch.logspace(-3, 3, 6, dtype=torch.float64)[:, None]
    torch.manual_seed(0)
    plain = made(cls)(z1, z2)
    torch.manual_seed(0)
    torch.testing.assert_close(made(cls)(z1 * lengths, z2 / lengths), plain)


# ---- bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", EVERY)
def test_bad_embeddings_are_named(cls):
    loss, name = made(cls), cls.__name__
    z1, z2 = embeddings(8, 4)
    fails(lambda: loss(z1, z2[:7]), name, "(8, 4)", "(7, 4)")
    fails(lambda: loss(z1[:1], z2[:1]), name, "batch of 1", "(1, 4)")
    fails(lambda: loss(z1[0], z2[0]), name, "(4,)")
    fails(lambda: loss(z1.long(), z2.long()), name, "int64")
    zero = z1.clone()
    zero[3] = 0
    fails(lambda: loss(z2, zero), name, "z2", "row 3", "zero vector")
    for bad in (torch.nan, torch.inf, -torch.inf):
        broken = z1.clone()
        broken[5, 2] = bad
        fails(lambda z=broken: loss(z, z2), name, "z1", "row 5", "NaN or infinity")
    if "queue" in loss.takes:
        fails(lambda: loss(z1, z2, queue=z1[:0]), name, "queue", "(0, 4)")
        fails(lambda: loss(z1, z2, queue=z1[:, :3]), name, "queue", "(8, 3)")
        fails(lambda: loss(z1, z2, queue=zero), name, "queue", "row 3", "zero vector")
    else:
        fails(lambda: loss(z1, z2, queue=z1), name, "does not take queue", "it takes nothing")
    if "extra_views" not in loss.takes:
        fails(lambda: loss(z1, z2, extra_views=z1[:, None]), name, "does not take extra_views")


@pytest.mark.parametrize("cls", [cls for cls in FAMILY if cls not in SUPERVISED])
def test_labels_are_refused_where_the_method_has_no_supervised_form(cls):
    z1, z2 = embeddings(8, 4)
    fails(lambda: cls()(z1, z2, labels=torch.arange(8)), cls.__name__, "labels", "queue")


@pytest.mark.parametrize("cls", SUPERVISED)
def test_bad_labels_are_named(cls):
    z1, z2 = embeddings(8, 4)
    if cls is not losses.SupCon:  # where an anchor without negatives is legal
        fails(lambda: cls()(z1, z2, labels=torch.zeros(8, dtype=torch.long)), "every label is 0")
    fails(lambda: cls()(z1, z2, labels=torch.arange(8), queue=z1), "labels and queue", cls.__name__)
    fails(lambda: cls()(z1, z2, labels=torch.arange(7)), "(7,)", "(8,)")
    fails(lambda: cls()(z1, z2, labels=torch.rand(8)), "float32")


@pytest.mark.parametrize("cls", ALL)
def test_bad_similarities_are_named(cls):
    loss, name = cls(), cls.__name__
    positives, negatives = similarities(4, 1, 6)
    fails(lambda: loss.per_anchor(positives[:3], negatives), name, "(3, 1)", "(4, 6)")
    fails(lambda: loss.per_anchor(positives[:, 0], negatives), name, "positives", "(4,)")
    fails(lambda: loss.per_anchor(positives, negatives[:, :0]), name, "negatives", "(4, 0)")
    fails(lambda: loss.per_anchor(positives, negatives * 3), name, "negatives", "between -1 and 1")
    fails(lambda: loss.per_anchor(positives * torch.nan, negatives), name, "positives", "nan")
    mask = torch.ones(4, 6, dtype=torch.bool)
    mask[2] = False
    if loss.needs_negatives:
        fails(lambda: loss.per_anchor(positives, negatives, None, mask), name, "anchor 2", "negatives")
    fails(lambda: loss.per_anchor(positives, negatives, mask[:, :1]), name, "anchor 2", "positives")
    fails(lambda: loss.per_anchor(positives, negatives, None, mask[:3]), name, "(3, 6)")
    fails(lambda: loss.per_anchor(positives, negatives, mask[:, :1].float()), name, "float32")


@pytest.mark.parametrize("cls", [*FAMILY, losses.MoCHi, losses.CLIP])
@pytest.mark.parametrize("temperature", [0.0, -0.1, math.nan, math.inf, 1e-9, "0.1", None, True])
def test_a_temperature_out_of_range_is_quoted_also_when_set_later(cls, temperature):
    fails(lambda: cls(temperature=temperature), cls.__name__, "temperature", repr(temperature))
    loss = cls()
    loss.temperature = temperature
    fails(lambda: loss(*embeddings(4, 3)), cls.__name__, "temperature", repr(temperature))
    fails(lambda: loss.per_anchor(*similarities(4, 1, 3)), cls.__name__, "temperature")


def test_other_settings_out_of_range_are_quoted():
    fails(lambda: losses.MACL(alpha=-0.1), "MACL", "alpha", "-0.1")
    fails(lambda: losses.MACL(alignment_threshold=1.5), "MACL", "alignment_threshold", "1.5")
    fails(lambda: losses.MACL(minimum_temperature=0.0), "MACL", "minimum_temperature", "0.0")
    for cls in (losses.Debiased, losses.HardNegative, losses.SSCL):
        for prior in (-0.01, 1.0, 1.5, math.nan, "0.1"):
            fails(
                lambda c=cls, p=prior: c(class_prior=p), cls.__name__, "class_prior", repr(prior), "below 1"
            )
        cls(class_prior=0.999)
    for cls in (losses.HardNegative, losses.SSCL):
        fails(lambda c=cls: c(beta=-0.1), cls.__name__, "beta", "-0.1")
    for cls in (losses.SSCL, losses.MoCHi):
        fails(lambda c=cls: c(hardest=0), cls.__name__, "hardest", "0", "from 1")
        fails(lambda c=cls: c(hardest=2.0), cls.__name__, "hardest", "2.0")
        fails(lambda c=cls: c(synthetic=-1), cls.__name__, "synthetic", "-1", "from 0")
    fails(lambda: losses.MoCHi(query_mixed=-2), "MoCHi", "query_mixed", "-2")
    for scale in ("d_pos", "d_neg"):
        for value in (0.0, -1.0, 1e-9, -math.inf, math.nan):
            fails(lambda s=scale, v=value: losses.AttentionNCE(**{s: v}), "AttentionNCE", scale, repr(value))
    fails(lambda: losses.DualTemperature(ratio=0), "DualTemperature", "ratio", "0")
    fails(lambda: losses.BarlowTwins(off_diagonal=-1), "BarlowTwins", "off_diagonal", "-1")
    fails(lambda: losses.PairMargin(margin=2.5), "PairMargin", "margin", "2.5")
    fails(lambda: losses.Triplet(margin=-1), "Triplet", "margin", "-1")
    fails(lambda: losses.NTXent().chance(0), "NTXent", "0")


def test_value_checks_can_be_switched_off():
    z1, z2 = embeddings(4, 3)
    z1[0] = torch.nan
    assert torch.isnan(losses.NTXent(check_inputs=False)(z1, z2))


# ---- the catalogue ---------------------------------------------------------------------------------------


def test_the_catalogue_holds_every_loss_of_the_package():
    listed = losses.catalogue()
    exported = {name for name in losses.__all__ if isinstance(getattr(losses, name), type)}
    assert set(listed) == exported - {"Loss", "Entry"}
    for name, entry in listed.items():
        loss = entry.loss()
        assert type(loss).__name__ == name
        assert entry.level == loss.level
        assert entry.paper
        assert entry.equation
        assert "default" in loss.__doc__.lower(), f"{name}: where do its defaults come from?"


def test_hyperparameters_are_plain_attributes_and_shown():
    assert repr(losses.MACL(0.2, 0.3, 0.1)) == (
        "MACL(temperature=0.2, alpha=0.3, alignment_threshold=0.1, minimum_temperature=None)"
    )
    assert losses.Triplet.hyperparameters() == ("margin", "batch_hard")


def test_forces_refuse_a_loss_that_is_no_function_of_similarities():
    class Features(losses.Loss):
        level = "feature"

        def per_anchor(self, *args, **kwargs):
            raise ValueError("Features: works on vectors, not on similarities")

    fails(lambda: anatomy.forces(Features(), *similarities(2, 1, 3)), "Features")


@pytest.mark.parametrize("cls", OTHER_LEVELS)
def test_what_is_no_function_of_similarities_says_so_and_why(cls):
    loss, name = made(cls), cls.__name__
    assert loss.level in ("feature", "batch")
    fails(lambda: loss.per_anchor(*similarities(4, 1, 6)), name, loss.level, loss.works_on)
    fails(lambda: anatomy.forces(loss, *similarities(4, 1, 6)), name, loss.level)
    fails(lambda: sphere.forces(loss, *embeddings(6, 2)), name, loss.level)
    fails(lambda: loss.chance(0), name, "0")
    assert (loss.chance(510) is None) == (cls is not losses.CLIP)


def test_a_triplet_batch_with_labels_holds_no_table_of_all_triples():
    z1, z2 = embeddings(300, 16, dtype=torch.float32)
    labels = torch.arange(300) % 10
    z1.requires_grad_()
    with torch.profiler.profile(profile_memory=True) as profiled:
        losses.Triplet(0.3)(z1, z2, labels=labels).backward()
    largest = max(event.self_cpu_memory_usage for event in profiled.events())
    assert largest < 50 * (600 * 600 * 4), "more than some tables of all pairs"


@pytest.mark.parametrize("cls", ALL)
def test_a_loss_works_where_no_gradient_is_recorded(cls):
    z1, z2 = embeddings(40, 6)
    expected = float(cls()(z1, z2)) if cls is not losses.SSCL else None
    with torch.inference_mode():
        value = cls()(z1.clone(), z2.clone())
        pull, _ = anatomy.forces(cls(), *(t.clone() for t in similarities(4, 1, 40)))
    assert torch.isfinite(value) and torch.isfinite(pull).all()
    if expected is not None:
        assert float(value) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("cls", ALL)
def test_what_is_no_tensor_or_of_another_type_is_named(cls):
    z1, z2 = embeddings(8, 4)
    fails(lambda: cls()(z1.numpy(), z2), cls.__name__, "z1", "ndarray")
    fails(lambda: cls().per_anchor([[0.1]], z1), cls.__name__, "positives", "list")
    if "queue" in cls.takes:
        fails(lambda: cls()(z1, z2, queue=[1.0]), cls.__name__, "queue", "list")
        fails(lambda: cls()(z1, z2, queue=z1.float()), cls.__name__, "float64", "float32")
        fails(lambda: cls()(z1, z2, queue=z1.long()), cls.__name__, "queue", "int64")
    if "labels" in cls.takes:
        fails(lambda: cls()(z1, z2, labels=[0] * 8), cls.__name__, "labels", "list")
    fails(lambda: cls().chance(10**9), cls.__name__, "1000000000")


@pytest.mark.parametrize("alignment", [math.nan, 5.0, torch.zeros(3)])
def test_an_alignment_that_is_none_is_quoted(alignment):
    fails(lambda: losses.MACL().per_anchor(*similarities(4, 1, 6), alignment=alignment), "MACL", "alignment")


def test_the_shares_of_a_temperature_of_zero_are_refused():
    fails(lambda: anatomy.hardness_weights(torch.zeros(1, 3), 0.0), "hardness_weights", "0")
    fails(lambda: anatomy.effective_negatives(torch.zeros(1, 3), -1.0), "-1")

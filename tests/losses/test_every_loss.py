"""Rules for every loss: chance level, types, what is refused, and that the catalogue knows it."""

import ast
import inspect
import math
import textwrap

import pytest
import torch

from clutils import anatomy, losses, methods
from clutils.course.sphere import descent
from clutils.losses.entries import check_declared
from clutils.settings import setting
from tests.losses.beside_loops import a_batch, a_queue, each_way, with_labels
from tests.losses.inputs import (
    SETTINGS,
    assert_same_gradients,
    close,
    embeddings,
    fails,
    one_each,
    similarities,
)

EVERY = [entry.cls for entry in losses.catalogue().values()]
ALL = [cls for cls in EVERY if cls.level == "similarity"]
OTHER_LEVELS = [cls for cls in EVERY if cls not in ALL]
NOT_NORMALISED = [cls for cls in EVERY if not cls.normalised]
SUPERVISED = [cls for cls in EVERY if "labels" in cls.accepts]
PER_SAMPLE = [cls for cls in EVERY if "index" in cls.accepts]


def numbered(loss, given, named):
    return given, {"index": torch.arange(len(given[0])), **named}


def made(cls):
    """With defaults, but for draws that a small batch can serve; told its samples' numbers where it asks."""
    if cls in PER_SAMPLE:
        loss = cls()
        loss.allocate(64)
        loss.register_forward_pre_hook(numbered, with_kwargs=True)
        return loss
    if cls is losses.SSCL:
        return cls(hardest=3, synthetic=2)
    if cls is losses.MoCHi:
        return cls(hardest=3, synthetic=4, query_mixed=2)
    return cls()


@pytest.mark.parametrize("cls", [cls for cls in EVERY if "queue" in cls.accepts])
def test_one_query_beside_a_queue_has_the_value_of_two_copies_of_it(cls):
    mixes = {"synthetic", "query_mixed"} & set(cls.ranges)  # each anchor draws its own: here none
    loss = cls(**{"hardest": 3} if mixes else {}, **dict.fromkeys(mixes, 0))
    query, key = (z.requires_grad_() for z in embeddings(1, 4))
    queue = embeddings(20, 4, seed=3)[0]
    if cls is losses.NNCLR:
        fails(lambda: loss(query, key, queue=queue), "NNCLR: a batch of 1 is too small", "other images")
        return
    value = loss(query, key, queue=queue)
    twice = loss(query.expand(2, -1), key.expand(2, -1), queue=queue)
    close(value, twice)
    gradients = (torch.autograd.grad(each, (query, key)) for each in (value, twice))
    for a, b in zip(*gradients, strict=True):
        close(a, b)


# ---- the paper's equation beside each ----------------------------------------------------------------------


def test_every_loss_has_its_papers_equation_in_at_most_eight_literal_lines():
    for cls in EVERY:
        (function,) = ast.parse(textwrap.dedent(inspect.getsource(cls.as_written))).body
        lines = [line for part in function.body[1:] for line in ast.unparse(part).splitlines()]
        assert ast.get_docstring(function) and len(lines) <= 8, cls


@pytest.mark.parametrize("P", [1, 3])
@pytest.mark.parametrize("loss", one_each(SETTINGS))
def test_value_and_gradient_are_those_of_the_equation_as_written(loss, P):
    """Losses that draw are in their own files: there it needs the mixes, or directions, that were drawn."""
    takes = inspect.signature(loss.as_written).parameters
    on_vectors = "z1" in takes
    # as vectors, some features lack VICReg's variance, others do not
    vectors = [z * torch.tensor([0.1, 0.5, 1.0, 3.0]) for z in embeddings(9, 4)]
    s, n = similarities(60, P, 12)
    s[0], n[0] = -0.6, torch.linspace(-0.999, -0.98, 12)  # an anchor that a debiased estimate's clamp catches
    inputs = [t.requires_grad_() for t in (vectors if on_vectors else (s, n))]
    settings = {name: getattr(loss, name) for name in takes if hasattr(loss, name)}
    for given in ({}, {"queue": 3 * embeddings(15, 4, seed=5)[0]}) if "queue" in takes else ({},):
        ours = loss(*inputs, **given) if on_vectors else loss.per_anchor(*inputs)
        written = loss.as_written(*inputs, **settings, **given)
        close(written, ours)
        assert_same_gradients(written, ours, inputs)


WRITTEN = [loss for loss in SETTINGS if "positives" in inspect.signature(loss.as_written).parameters]


@pytest.mark.parametrize("loss", one_each(WRITTEN))
@each_way
def test_who_is_compared_is_whom_loops_find_and_what_is_masked_counts_for_nothing(loss, compared):
    if {a_queue: "queue" in loss.accepts, a_batch: "index" not in loss.accepts}.get(compared, True):
        compared(loss)  # a batch of samples that have a past is in their own files


@pytest.mark.parametrize("loss", one_each(loss for loss in WRITTEN if "labels" in loss.accepts))
def test_labels_make_positives_of_every_picture_of_the_class(loss):
    with_labels(loss)


# ---- limits and numerics -----------------------------------------------------------------------------------


LIMITS = [  # a loss, and what it is there
    *((losses.ADNCE(0.3, 0.7, flat), losses.NTXent(0.3)) for flat in (1e9, math.inf)),
    *((losses.WeightedDecoupled(0.3, flat), losses.Decoupled(0.3)) for flat in (1e12, math.inf)),
    (losses.Debiased(0.3, 0.0), losses.NTXent(0.3)),
    (losses.HardNegative(0.3, 0.2, 0.0), losses.Debiased(0.3, 0.2)),
    (losses.HardNegative(0.3, 0.0, 0.0), losses.NTXent(0.3)),
    (losses.DualTemperature(0.3, 1.0), losses.NTXent(0.3)),
    (losses.CLIP(0.2), losses.NTXent(0.2)),
    *((losses.RINCE(0.3, q, 1.0), losses.NTXent(0.3)) for q in (0.0, 1e-300, 2e-12)),
    (losses.SSCL(0.4, 0.2, 0.5, synthetic=0), losses.HardNegative(0.4, 0.2, 0.5)),
]


@pytest.mark.parametrize("P", [1, 3])
@pytest.mark.parametrize(("loss", "limit"), LIMITS, ids=repr)
def test_in_the_limit_value_and_forces_are_those_of_a_simpler_loss(loss, limit, P):
    tables = similarities(60, P, 20)
    close(loss.per_anchor(*tables), limit.per_anchor(*tables))
    for ours, theirs in zip(anatomy.forces(loss, *tables), anatomy.forces(limit, *tables), strict=True):
        close(ours, theirs)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("K", [1, 10, 510])
def test_chance_is_per_anchor_at_zero_similarity(cls, K):
    loss = cls()
    zeros = torch.zeros(1, K, dtype=torch.float64)
    assert loss.chance(K) == pytest.approx(float(loss.per_anchor(zeros[:, :1], zeros)), rel=1e-12)
    if cls is losses.NTXent:
        assert loss.chance(K) == pytest.approx(math.log(K + 1))


@pytest.mark.parametrize("cls", [cls for cls in EVERY if not hasattr(made(cls), "generator")])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_embeddings_of_any_type_and_length_give_a_float32_loss_and_finite_gradients(cls, dtype, size):
    if dtype == torch.float16 and size == 1e4 and cls in (losses.Spectral, losses.VICReg):
        pytest.skip("of fourth powers of lengths: a gradient near 1e12 is beyond float16")
    z1, z2 = (z.mul(size).to(dtype).requires_grad_() for z in embeddings(8, 16))
    value = made(cls)(z1, z2)
    assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert value.shape == ()
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(z1.grad).all()
    reference = made(cls)(*(z.detach().double() for z in (z1, z2)))
    assert value.item() == pytest.approx(reference.item(), rel=1e-5)


@pytest.mark.parametrize("cls", [cls for cls in EVERY if cls is not losses.BarlowTwins])
def test_the_length_of_an_embedding_matters_only_where_the_paper_does_not_normalise(cls):
    z1, z2 = embeddings(6, 8)
    lengths = torch.logspace(-3, 3, 6, dtype=torch.float64)[:, None]
    if cls in NOT_NORMALISED:
        lengths = torch.full_like(lengths, 2.0)
    values = []
    for views in ((z1, z2), (z1 * lengths, z2 * lengths if cls in NOT_NORMALISED else z2 / lengths)):
        torch.manual_seed(0)
        values.append(made(cls)(*views))
    if cls in NOT_NORMALISED:
        assert abs(float(values[1] - values[0])) > 0.01
    else:
        torch.testing.assert_close(values[1], values[0])


# ---- bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", EVERY)
def test_bad_embeddings_are_named(cls):
    loss, name = made(cls), cls.__name__
    z1, z2 = embeddings(8, 4)
    fails(lambda: loss(z1, z2[:7]), name, "(8, 4)", "(7, 4)")
    fails(lambda: loss(z1[:1], z2[:1]), name, "batch of 1", "(1, 4)")
    fails(lambda: loss(z1[0], z2[0]), name, "(4,)")
    fails(lambda: loss(z1.long(), z2.long()), name, "int64")
    fails(lambda: cls()(None, z2), f"{name}: z1 is None, but must be a torch.Tensor")
    fails(lambda: loss(z1, None), f"{name}: z2 is None, but must be a torch.Tensor")
    zero = z1.clone()
    zero[3] = 0
    fails(lambda: loss(z2, zero), name, "z2", "row 3", "zero vector")
    for bad in (torch.nan, torch.inf, -torch.inf):
        broken = z1.clone()
        broken[5, 2] = bad
        fails(lambda z=broken: loss(z, z2), name, "z1", "row 5", "NaN or infinity")
    if "queue" in loss.accepts:
        fails(lambda: loss(z1, z2, queue=z1[:0]), name, "queue", "(0, 4)")
        fails(lambda: loss(z1, z2, queue=z1[:, :3]), name, "queue", "(8, 3)")
        fails(lambda: loss(z1, z2, queue=zero), name, "queue", "row 3", "zero vector")
    takes = ", ".join(sorted(loss.accepts)) or "nothing"
    for argument in {"queue", "labels", "extra_views", "index"} - loss.accepts:
        fails(lambda a=argument: loss(z1, z2, **{a: z1}), name, f"does not take {argument}", f"takes {takes}")


@pytest.mark.parametrize("cls", [cls for cls in EVERY if "queue" in cls.accepts])
def test_a_queue_gets_no_gradient(cls):
    z1, z2, queue = (z.requires_grad_() for z in (*embeddings(8, 4), embeddings(20, 4, seed=1)[0]))
    made(cls)(z1, z2, queue=queue).backward()
    assert queue.grad is None and z1.grad.any()


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
    fails(lambda: loss.per_anchor(positives, None), f"{name}: negatives is None")
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


@pytest.mark.parametrize("cls", [cls for cls in EVERY if cls.ranges])
def test_a_setting_out_of_range_is_quoted_also_when_set_later(cls):
    loss = made(cls)
    for name in cls.ranges:
        right = getattr(loss, name)
        setattr(loss, name, math.nan)
        fails(lambda: loss(*embeddings(4, 3)), cls.__name__, name, "nan")
        fails(lambda: loss.per_anchor(*similarities(4, 1, 3)), cls.__name__, name, "nan")
        setattr(loss, name, right)


def test_two_ways_of_mining_at_once_and_no_negatives_are_refused():
    losses.Debiased(class_prior=0.999)
    fails(lambda: losses.Triplet(batch_hard=True, semi_hard=True), "Triplet", "batch_hard and semi_hard")
    fails(lambda: losses.NTXent().chance(0), "NTXent", "0")


@pytest.mark.parametrize("cls", [losses.SSCL, losses.MoCHi])
def test_more_hard_ones_asked_for_than_there_are_is_an_error_that_names_both(cls):
    loss = cls(hardest=15, synthetic=3)
    fails(lambda: loss(*embeddings(8, 4)), cls.__name__, "hardest is 15", "14 negatives")
    fails(lambda: loss(*embeddings(8, 4), queue=embeddings(3, 4)[0]), cls.__name__, "15", "3 negatives")
    cls(hardest=14, synthetic=3)(*embeddings(8, 4))


@pytest.mark.parametrize("cls", [losses.SSCL, losses.MoCHi, losses.SIGReg])
def test_draws_are_new_at_each_call_and_repeat_with_the_generator(cls):
    loss, views, values = made(cls), embeddings(8, 4), []
    assert loss(*views) != loss(*views)
    for _ in range(2):
        loss.generator = torch.Generator().manual_seed(5)
        before = torch.get_rng_state()
        values.append(float(loss(*views)))
        assert torch.equal(before, torch.get_rng_state())
    assert values[0] == values[1]


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
        loss = entry.cls()
        assert type(loss).__name__ == name
        assert entry.level == loss.level
        assert entry.paper
        assert entry.equation
        assert not loss.ranges or "default" in loss.__doc__.lower(), f"{name}: whose defaults?"


def test_methods_have_the_same_kind_of_catalogue():
    for name, entry in methods.catalogue().items():
        assert isinstance(entry, losses.Entry) and entry.cls.__name__.lower() == name
        assert entry.paper and entry.year >= 2018


def test_hyperparameters_are_plain_attributes_and_shown():
    assert repr(losses.MACL(0.2, 0.3, 0.1)) == (
        "MACL(temperature=0.2, alpha=0.3, alignment_threshold=0.1, minimum_temperature=None)"
    )
    assert losses.Triplet.hyperparameters() == ("margin", "batch_hard", "semi_hard")


@pytest.mark.parametrize("cls", OTHER_LEVELS)
def test_what_is_no_function_of_similarities_says_so_and_why(cls):
    loss, name = made(cls), cls.__name__
    assert loss.level in ("feature", "batch")
    fails(lambda: loss.per_anchor(*similarities(4, 1, 6)), name, loss.level, loss.input_note)
    fails(lambda: anatomy.forces(loss, *similarities(4, 1, 6)), name, loss.level)
    fails(lambda: descent.forces(loss, *embeddings(6, 2)), name, loss.level)
    fails(lambda: loss.chance(0), name, "0")
    assert loss.chance(510) is None


@pytest.mark.parametrize("cls", ALL)
def test_a_loss_works_where_no_gradient_is_recorded(cls):
    z1, z2 = embeddings(40, 6)
    expected = float(made(cls)(z1, z2)) if cls is not losses.SSCL else None
    with torch.inference_mode():
        value = made(cls)(z1.clone(), z2.clone())
        pull, _ = anatomy.forces(cls(), *(t.clone() for t in similarities(4, 1, 40)))
    assert torch.isfinite(value) and torch.isfinite(pull).all()
    if expected is not None:
        assert float(value) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("cls", ALL)
def test_what_is_no_tensor_or_of_another_type_is_named(cls):
    z1, z2 = embeddings(8, 4)
    fails(lambda: made(cls)(z1.numpy(), z2), cls.__name__, "z1", "ndarray")
    fails(lambda: cls().per_anchor([[0.1]], z1), cls.__name__, "positives", "list")
    if "queue" in cls.accepts:
        fails(lambda: cls()(z1, z2, queue=[1.0]), cls.__name__, "queue", "list")
        fails(lambda: cls()(z1, z2, queue=z1.float()), cls.__name__, "float64", "float32")
        fails(lambda: cls()(z1, z2, queue=z1.long()), cls.__name__, "queue", "int64")
    if "labels" in cls.accepts:
        fails(lambda: cls()(z1, z2, labels=[0] * 8), cls.__name__, "labels", "list")
    fails(lambda: cls().chance(10**9), cls.__name__, "1000000000")


def of_the_package(name="Fresh", **body):
    """A loss as a newcomer's file would make it, with this in its body, or without what is None here."""
    whole = {"__module__": "clutils.losses.fresh", "__doc__": "$$x$$", "paper": "None", "year": 2026}
    whole |= {"equation": "1", "as_written": staticmethod(len), "formula": lambda self, pairs: pairs} | body
    return type(losses.Loss)(name, (losses.Loss,), {k: v for k, v in whole.items() if v is not None})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"paper": None, "as_written": None}, "clutils.losses.fresh.Fresh has no paper, as_written"),
        ({"formula": None}, "clutils.losses.fresh.Fresh has no formula: CONTRIBUTING.md shows"),
        ({"__doc__": "No formula."}, "Fresh has no docstring with its formula"),
        ({"p": 2.0, "__annotations__": {"p": float}}, r"Fresh\.p is no setting: declare it"),
        ({"__annotations__": {"p": "float"}}, r"Fresh\.p is no setting"),
        ({"name": "NTXent"}, r"called NTXent, one in clutils\.losses\.nt_xent and .*fresh\.NTXent"),
        ({"p": setting(0, 1), "__annotations__": {"p": float}}, r"Fresh\.p needs a default"),
        (
            {"level": setting(0, 1, default=1.0), "__annotations__": {"level": float}},
            r"Fresh\.level is taken",
        ),
        (
            {"training": setting(0, 1, default=1.0), "__annotations__": {"training": float}},
            "training is taken",
        ),
        ({"comparison": "both view"}, r"Fresh\.comparison has 'both view', of both views, features, one way"),
        ({"accepts": frozenset({"queue", "label"})}, r"Fresh\.accepts has 'label', of extra_views, index"),
        ({"level": "similarities"}, r"Fresh\.level has 'similarities', of batch, feature, similarity"),
    ],
)
def test_a_loss_that_lacks_what_the_package_reads_is_refused_by_name(body, words):
    check_declared(EVERY)
    with pytest.raises(TypeError, match=words):
        check_declared([*EVERY, of_the_package(**body)])


def test_a_formula_that_gives_no_value_per_anchor_is_refused():
    class Wide(losses.NTXent):
        def formula(self, pairs):
            return torch.zeros(pairs.positives.shape)

    z1, z2 = embeddings(4, 8)
    for call in (lambda: Wide()(z1, z2), lambda: Wide().per_anchor(*similarities(5, 3, 7))):
        with pytest.raises(TypeError, match=r"Wide\.formula gave \(\d, \d\), not one value per anchor"):
            call()


# ---- torch.func and torch.compile --------------------------------------------------------------------------


def seeded(cls):
    """Made, with a state that has seen nothing, and the same draws at each call of ten images."""
    torch.manual_seed(0)
    loss = made(cls)
    drawn = loss.draw(20, torch.zeros(1, dtype=torch.float64))
    loss.draw = lambda anchors, like: drawn  # compiled code leaves out a draw that nobody reads
    torch.manual_seed(0)
    return loss


@pytest.mark.parametrize("cls", EVERY)
def test_torch_func_finds_the_same_gradient_and_the_loss_works_afterwards(cls):
    z1, z2 = embeddings(10, 6)
    (expected,) = torch.autograd.grad(seeded(cls)(a := z1.clone().requires_grad_(), z2), a)
    loss = seeded(cls)
    torch.testing.assert_close(torch.func.grad(lambda z: loss(z, z2))(z1), expected)
    assert loss(z1, z2).isfinite()


def test_where_no_values_can_be_looked_at_a_loss_says_how_to_do_without_and_does():
    z1, z2 = (z.unflatten(0, (3, 4)) for z in embeddings(12, 6))
    with pytest.raises(ValueError, match=r"can be checked under .*vmap: a loss with check_inputs=False"):
        torch.vmap(losses.NTXent())(z1, z2)
    unchecked = losses.NTXent(check_inputs=False)
    torch.testing.assert_close(torch.vmap(unchecked)(z1, z2), torch.stack([*map(unchecked, z1, z2)]))
    with pytest.raises(ValueError, match="no values can be checked on the meta device"):
        losses.NTXent()(z1[0].to("meta"), z2[0].to("meta"))
    assert unchecked(z1[0].to("meta"), z2[0].to("meta")).is_meta


@pytest.mark.parametrize("cls", EVERY)
def test_torch_compile_finds_the_same_gradient_without_a_graph_break(cls):
    z1, z2 = embeddings(10, 6)
    (expected,) = torch.autograd.grad(seeded(cls)(a := z1.clone().requires_grad_(), z2), a)
    torch._dynamo.reset()
    loss = seeded(cls)
    given = {"index": torch.arange(10)} if cls in PER_SAMPLE else {}
    compiled = torch.compile(
        lambda *views: loss.forward(*views, **given), backend="aot_eager", fullgraph=True
    )
    (found,) = torch.autograd.grad(compiled(a, z2), a)
    torch.testing.assert_close(found, expected)


def test_a_compiled_loss_still_refuses_a_zero_vector():
    torch._dynamo.reset()
    z1, z2 = embeddings(10, 6)
    z1[3] = 0
    with pytest.raises(RuntimeError, match="NTXent: z1 has a row that is zero, too large, or not finite"):
        torch.compile(losses.NTXent(), backend="aot_eager")(z1, z2)


@pytest.mark.parametrize("cls", [cls for cls in EVERY if "temperature" in cls.ranges])
def test_a_parameter_as_temperature_is_refused_by_one_sentence_that_names_what_learns_it(cls):
    learned = torch.nn.Parameter(torch.tensor(0.1))
    words = (
        rf"^{cls.__name__}: temperature is a Parameter, but must be a number .*CLIP\(learned_scale=True\)$"
    )
    for give in (lambda: cls(temperature=learned), lambda: setattr(cls(), "temperature", learned)):
        with pytest.raises(ValueError, match=words):
            give()

"""What holds for every method: repeatable, resumable, whole after a failed step, choosy about its loss."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

from clutils import data, losses, methods, training, views
from clutils.encoders import Transformer
from clutils.losses.entries import check_declared
from clutils.settings import setting
from tests.methods.steps import (
    VECTORS,
    Fixed,
    apart,
    built,
    in_loops,
    joined,
    moved,
    predictions_and_targets,
    slopes_of_views,
    views_of,
)
from tests.runs import DIGITS, GRAPHS, NETWORK, NoChance, advance, past, same, samples_for, small, weights

EVERY = list(methods.catalogue())
OF_PICTURES = list(methods.catalogue("pictures"))
# so small that twenty batches of 32 go round it
SETTINGS = {name: {"queue_size": 80} for name in ("moco", "nnclr")}


def short(method: str, **settings) -> training.Run:
    given = {"data": samples_for(method), "method_settings": SETTINGS.get(method)}
    return small(method=method, **given | settings)


@pytest.mark.parametrize(("method", "further"), [*((method, 0) for method in EVERY), ("lejepa", 2)])
def test_a_run_saved_on_the_way_goes_on_to_the_bit_and_another_seed_is_another_run(method, further, tmp_path):
    """Which is the same seed's run to the bit, too."""
    straight = advance(short(method, extra_views=further), 4)  # MoCo's queue is full after two
    advance(short(method, extra_views=further), 2).save(tmp_path / "run.pt")
    torch.manual_seed(99)  # nothing of the process's own may matter
    resumed = training.resume(tmp_path / "run.pt", data=samples_for(method))
    assert resumed.configuration == straight.configuration
    advance(resumed, 2)
    assert same(weights(straight), weights(resumed)) and past(straight).equals(past(resumed))
    other = short(method, extra_views=further, seed=4)
    other.method.load_state_dict(short(method, extra_views=further).method.state_dict())  # draws differ, too
    assert not past(advance(other, 1)).equals(past(straight)[:1])


# of each way to keep something from step to step, one; `make test-all` has the others
WAYS = ("simclr", "moco", "byol", "dino", "pinda", "grace")


@pytest.mark.parametrize(
    "method", [pytest.param(m, marks=[] if m in WAYS else pytest.mark.sweep) for m in EVERY]
)
def test_a_step_whose_loss_is_not_finite_leaves_everything_as_it_was(method):
    run = advance(short(method), 2)
    before, forward = weights(run), run.method.forward

    def broken(*batch):
        loss, z1, z2 = forward(*batch)
        return loss * math.nan, z1, z2

    run.method.forward = broken
    with pytest.raises(ValueError, match="step 3 was not taken"):
        run.step()
    assert same(weights(run), before)
    del run.method.forward
    assert same(weights(advance(run, 1)), weights(advance(short(method), 3)))


@pytest.mark.parametrize("method", sorted(set(EVERY) - set(OF_PICTURES)))
@pytest.mark.parametrize("seen", [GRAPHS, NETWORK], ids=["graphs", "nodes"])
def test_graphs_and_nodes_train_and_the_loss_falls(method, seen):
    kind = "nodes" if seen.of_nodes else "graphs"
    if kind not in methods.catalogue()[method].cls.sample_kinds:
        pytest.skip(f"{method} takes no {kind}")
    run = advance(short(method, data=seen, steps=40), 40)
    assert run.history.loss[-5:].mean() < 0.98 * run.history.loss[:5].mean()
    assert run.embed(seen).shape == (len(seen), run.encoder.features)
    assert run.project(seen).shape == (len(seen), run.method.out)
    assert run.settings.batch_size == (len(seen) if seen.of_nodes else 32)


@pytest.mark.parametrize(
    ("pictures", "method"),
    [
        *(("vectors", method) for method in OF_PICTURES),
        *(("digits", method) for method in ("simclr", "byol", "pinda")),  # the sweep has the others
        *(
            pytest.param("digits", method, marks=pytest.mark.sweep)
            for method in OF_PICTURES
            if method not in ("simclr", "byol", "pinda")
        ),
    ],
)
def test_pictures_and_vectors_train_and_the_loss_falls(method, pictures):
    seen = DIGITS if pictures == "digits" else data.load("vectors:digits", limit=100)
    if method == "moco":
        pytest.skip("100 digits are their own negatives in the queue: test_moco.py trains on all of them")
    if method == "dino":
        pytest.skip("its target moves along: test_dino.py looks at its answers, not its loss")
    run = advance(short(method, data=seen, steps=24), 24)
    begun = run.history.loss[5:10].mean()  # by then a small queue is full: its random keys were easy
    assert run.history.loss[-5:].mean() < 0.98 * begun, (
        f"{method}: a queue of 80 in SETTINGS, or a skip here?"
    )
    assert run.embed(seen).shape == (100, run.encoder.features)
    assert run.project(seen).shape == (100, getattr(run.method, "out", 128))


# ---- a step beside its paper's equation ------------------------------------------------------------------

LABELS = [0, 0, 1, 2, 2, 2, 1, 1, 0]


def on_two(equation, embed=joined):
    """An equation of both views' embeddings, which a step compares."""
    return lambda method, views: (equation(*(z := embed(method, views))), *z)


def both_ways(equation, factor=1.0):
    """Of each view's prediction and the other's target."""

    def expected(method, views):
        (p1, p2), (t1, t2) = predictions_and_targets(method, views)
        return factor * (equation(p1, t2) + equation(p2, t1)), p1, t2

    return expected


def of_lejepa(method, views):
    z = torch.stack(joined(method, views))  # (V, B, D)
    drawn = normalize(torch.randn(4, 5, generator=torch.Generator().manual_seed(3)).double(), dim=0)
    gaussian = sum(losses.SIGReg.as_written(one, one, 1.0, 17, drawn) for one in z) / len(z)
    return 0.7 * ((z - z.mean(dim=0)) ** 2).mean() + 0.3 * gaussian, z[0], z[1]


def of_modals(method, views):
    moved = torch.cat([h + 0.5 * (h - h.mean(dim=0).detach()) for h in map(method.encoder, views)])
    z1, z2 = method.head(moved).chunk(2)
    return in_loops(losses.NTXent(0.3), z1, z2), z1, z2


def of_simcl(method, views):
    features = method.encoder(torch.cat(views))
    noise = torch.randn(features.shape, generator=torch.Generator().manual_seed(0))
    z1, z2 = method.head(features + 2.0 * normalize(noise, dim=1)).chunk(2)  # each row its own
    return in_loops(losses.NTXent(0.3), z1, z2), z1, z2


def of_nnclr(method, views):
    z1, z2 = joined(method, views)
    return losses.NNCLR.as_written(z1, z2, 0.3, method.queue), z1, z2


DUAL, TAU = losses.DualTemperature(0.2, 5.0), 0.3
STEPS = {  # method: loss, settings, views, and the equation
    "barlowtwins": (
        losses.BarlowTwins(0.02),
        {},
        2,
        on_two(lambda *z: losses.BarlowTwins.as_written(*z, 0.02), apart),
    ),
    "vicreg": (
        losses.VICReg(25.0, 10.0, 2.0),
        {},
        2,
        on_two(lambda *z: losses.VICReg.as_written(*z, 25.0, 10.0, 2.0, printed=False), apart),
    ),
    "byol": (losses.Regression(), {}, 2, both_ways(losses.Regression.as_written)),
    "mocov3": (
        losses.NTXent(TAU),
        {},
        2,
        both_ways(lambda q, k: in_loops(losses.NTXent(TAU), q, k, one_way=True), factor=2 * TAU),
    ),
    "simco": (
        DUAL,
        {},
        2,
        on_two(
            lambda a, b: (in_loops(DUAL, a, b, one_way=True) + in_loops(DUAL, b, a, one_way=True)) / 2,
            apart,
        ),
    ),
    "supcon": (
        losses.SupCon(0.3),
        {},
        2,
        on_two(lambda *z: in_loops(losses.SupCon(0.3), *z, labels=LABELS)),
    ),
    "lejepa": (losses.SIGReg(0.3, directions=5), {"out": 4}, 4, of_lejepa),
    "modals": (losses.NTXent(0.3), {"operation": "extrapolate", "strength": 0.5}, 2, of_modals),
    "simcl": (losses.NTXent(0.3), {"strength": 2.0}, 2, of_simcl),
    "nnclr": (losses.NNCLR(0.3), {"queue_size": 20}, 2, of_nnclr),
}


IN_FILES = (  # whose steps are compared with equations in files of their own
    *("simclr", "moco", "simsiam", "npid", "swav", "dino", "clae", "dacl", "sdmp", "pinda"),
    *("dgi", "bgrl", "grace", "graphcl", "simgrace", "mvgrl"),
)


def test_every_method_has_a_step_beside_its_equation():
    lacking = set(EVERY) - {*STEPS, *IN_FILES}
    assert not lacking, f"{', '.join(sorted(lacking))}: a row in STEPS, or a file of its own and IN_FILES"


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_its_papers_equation_on_what_the_networks_make_of_the_views(name):
    loss, settings, number, equation = STEPS[name]
    method = built(methods.catalogue()[name].cls, copy.deepcopy(loss), **settings)
    views = views_of(VECTORS[:9], number)
    if name == "lejepa":
        method.extra_views, method.loss.generator = number - 2, torch.Generator().manual_seed(3)
    moved(getattr(method, "target_encoder", nn.Identity()).parameters())
    draw, labels = torch.Generator().manual_seed(0), torch.tensor(LABELS)
    expected = equation(method, views)  # before the step, which must leave a target where it is
    found = method(VECTORS[:9], Fixed(*views), draw, labels)
    for ours, papers in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, torch.as_tensor(papers, dtype=torch.float64), rtol=1e-8, atol=1e-10)
    assert not found[1].requires_grad and not found[2].requires_grad
    learned = [*method.encoder.parameters(), *method.head.parameters()]
    slopes = [
        torch.autograd.grad(value, learned, materialize_grads=True) for value in (found[0], expected[0])
    ]
    for ours, papers in zip(*slopes, strict=True):
        torch.testing.assert_close(ours, papers, rtol=1e-7, atol=1e-10)
    assert any(slope.any() for slope in slopes[0])
    if name == "nnclr":  # its queue takes the second view's
        torch.testing.assert_close(method.entering, normalize(found[2], dim=1))


@pytest.mark.parametrize("method", EVERY)
def test_only_what_the_optimiser_holds_takes_gradients_and_it_holds_each_weight_once(method):
    run = advance(short(method), 1)
    held = [weight for group in run.optimiser.param_groups for weight in group["params"]]
    assert len({id(weight) for weight in held}) == len(held)
    assert {id(weight) for weight in held} == {id(p) for p in run.method.parameters() if p.requires_grad}
    assert all(weight.grad is not None for weight in held)


@pytest.mark.parametrize("method", EVERY)
def test_live_settings_turn_between_steps_are_in_the_history_and_come_back_from_a_file(method, tmp_path):
    run = advance(short(method), 1)
    for name in run.method.live:
        value = getattr(run.method, name)
        setattr(run.method, name, not value if isinstance(value, bool) else value / 2)
    row = run.step()
    assert all(row[name] == getattr(run.method, name) for name in run.method.live)
    run.save(tmp_path / "run.pt")
    found = training.resume(tmp_path / "run.pt", data=samples_for(method))
    assert found.method.settings() == run.method.settings()
    for name in run.method.live:
        value = getattr(run.method, name)
        setattr(run.method, name, -1)
        with pytest.raises(ValueError, match=f"step 3 was not taken.*: {name} is -1, but must be"):
            run.step()
        setattr(run.method, name, value)
    assert len(run.rows) == 2


VIEWS = {"npid": 1, "lejepa": 4}  # that a step asks for, where it is not two


@pytest.mark.parametrize("method", sorted(set(OF_PICTURES) - {"pinda"}))
def test_the_gradient_reaches_each_view_but_a_momentum_encoders_and_a_constant_one(method):
    made = built(methods.catalogue()[method].cls)
    made.allocate(9)
    if method == "lejepa":
        made.extra_views = 2
    reached = [bool(slope.abs().sum() > 0) for slope in slopes_of_views(made)]
    expected = {"moco": [True, False], "clae": [False, True]}  # keys; and what a signed step made
    number = VIEWS.get(method, 2)
    assert len(reached) == number, (
        f"{method} asks for {len(reached)} views: if that is right, add it to VIEWS"
    )
    assert reached == expected.get(method, [True] * number), (
        f"{method}: if it is right that a view gets no gradient, add it to `expected`"
    )


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("Fresh", {"paper": None}, "fresh.Fresh has no paper, year: CONTRIBUTING.md"),
        ("Fresh", {"year": 2026, "__doc__": None}, "fresh.Fresh has no docstring$"),
        (
            "Fresh",
            {"year": 2026, "p": 2.0, "__annotations__": {"p": float}},
            r"Fresh\.p is no setting: declare",
        ),
        ("Dino", {"year": 2026}, r"called Dino, one in clutils\.methods\.dino and .*fresh\.Dino: rename one"),
        ("Fresh", {"p": setting(0, 1), "__annotations__": {"p": float}}, r"Fresh\.p needs a default"),
    ],
)
def test_a_method_that_lacks_what_the_package_reads_is_refused_by_name(name, body, words):
    whole = {"__module__": "clutils.methods.fresh", "__doc__": "Some.", "paper": "None"} | body
    with pytest.raises(TypeError, match=words):
        fresh = type(methods.Method)(name, (methods.Method,), whole)
        check_declared([*methods.CLASSES, fresh], ("paper", "year"), formula=False)


@pytest.mark.parametrize(
    ("gives", "words"),
    [
        (lambda z: (z.sum(dim=1), z, z), r"gave \(8,\), \(8, 128\), \(8, 128\), not a scalar loss"),
        (lambda z: (0.5, z, z), r"gave 0\.5, \(8, 128\), \(8, 128\), not"),
        (lambda z: (z.sum(), None, None), r"gave \(\), None, None, not"),
        (lambda z: z.sum(), r"gave \(\), not"),
    ],
)
def test_an_objective_that_gives_no_scalar_loss_is_refused_by_name(gives, words):
    class Wrong(methods.SimCLR):
        def objective(self, given):
            return gives(super().objective(given)[1])

    method = Wrong(small().encoder, losses.NTXent())
    images = data.load("digits", limit=8).images.float() / 255
    with pytest.raises(TypeError, match=rf"Wrong\.objective {words}"):
        method(images, views.Identity(), torch.Generator())


@pytest.mark.parametrize("method", ["simclr", "supcon", "moco"])
def test_the_head_is_as_wide_inside_as_asked_or_as_the_features_and_resumes_so(method, tmp_path):
    def linear(run):
        return [(m.in_features, m.out_features) for m in run.method.head if isinstance(m, nn.Linear)]

    assert linear(small(method=method)) == [(128, 128), (128, 128)]
    run = small(method=method, method_settings={"hidden": 200, "out": 64})
    assert linear(run) == [(128, 200), (200, 64)]
    run.save(tmp_path / "run.pt")
    assert linear(training.resume(tmp_path / "run.pt", data=DIGITS)) == [(128, 200), (200, 64)]


@pytest.mark.parametrize("kind", [methods.BarlowTwins, methods.VICReg])
def test_a_projector_of_three_layers_is_as_wide_within_as_outside_where_nothing_is_said(kind):
    kinds = [type(part) for part in built(kind, out=6).head]
    assert kinds == [nn.Linear, nn.BatchNorm1d, nn.ReLU] * 2 + [nn.Linear]
    for settings, widths in (
        ({}, [(16, 6), (6, 6), (6, 6)]),
        ({"hidden": 20}, [(16, 20), (20, 20), (20, 6)]),
    ):
        linear = [part for part in built(kind, out=6, **settings).head if isinstance(part, nn.Linear)]
        assert [(part.in_features, part.out_features) for part in linear] == widths


def test_where_there_is_no_hidden_layer_to_widen_it_is_refused():
    with pytest.raises(ValueError, match="hidden is 64, but the head of version 1 is linear"):
        small(method="moco", method_settings={"hidden": 64, "version": 1})
    with pytest.raises(ValueError, match="byol has no setting 'hidden'; it has out"):
        small(method="byol", method_settings={"hidden": 64})


@pytest.mark.parametrize(
    ("method", "wrong", "fitting"),
    [
        ("moco", losses.CLIP(), "MoCo needs a loss that takes a queue, which CLIP does not: there are Pair"),
        ("moco", NoChance(), "which NoChance does not"),
        (
            "supcon",
            losses.NTXent(),
            "SupCon needs a loss that takes labels, which NTXent does not: there",
        ),
        ("supcon", NoChance(), "PairMargin, Triplet, SupCon, AttentionNCE"),
        ("byol", losses.NTXent(), "BYOL needs a loss that compares the two views.*: there is Regression"),
        ("simsiam", losses.BarlowTwins(), "SimSiam needs .* which BarlowTwins does not: there is Regression"),
        ("nnclr", losses.NTXent(), "takes its positives from a queue, which NTXent .*: there is NNCLR"),
        ("swav", losses.BarlowTwins(), "function of an anchor's similarities, which BarlowTwins does not"),
        ("sdmp", losses.BarlowTwins(), "function of an anchor's similarities, which BarlowTwins does not"),
        *(
            ("mocov3", loss, "MoCoV3 needs a loss that has a temperature and works on cosines alone")
            for loss in (
                losses.Triplet(),
                losses.NPair(),
                losses.VICReg(),
                losses.SSCL(),
                losses.SogCLR(),
                NoChance(),
            )
        ),
    ],
)
def test_a_loss_that_does_not_fit_is_refused_with_those_that_do_at_the_start_and_later(
    method, wrong, fitting
):
    with pytest.raises(ValueError, match=fitting):
        small(method=method, loss=wrong)
    run = small(method=method)
    loss = run.loss
    with pytest.raises(ValueError, match=fitting):
        run.loss = wrong
    assert run.loss is loss


EACH_OTHERS = [  # every loss by one method, every method by its default loss; the sweep has all pairs
    pytest.param(method, marks=() if method in ("simclr", "moco", "supcon", "byol") else pytest.mark.sweep)
    for method in EVERY
]


@pytest.mark.parametrize("method", EACH_OTHERS)
def test_every_loss_of_the_catalogue_that_is_said_to_fit_trains(method):
    settings = {"SSCL": {"hardest": 8, "synthetic": 4}}
    settings["MoCHi"] = {"hardest": 8, "synthetic": 4, "query_mixed": 2}
    kind = methods.catalogue()[method].cls
    for name, entry in losses.catalogue().items():
        if kind.fits(entry.cls):
            row = short(method, loss=entry.cls(**settings.get(name, {}))).step()
            assert math.isfinite(row["loss"]), name


@pytest.mark.parametrize("method", ["byol", "simsiam"])
def test_a_loss_of_ones_own_between_two_views_fits_where_nothing_is_pushed_apart(method):
    assert small(method=method, loss=NoChance()).step()["loss"] > 0


@pytest.mark.parametrize("method", ["moco", "byol", "simsiam", "supcon", "clae", "dacl", "modals", "simcl"])
def test_extra_views_are_refused_by_methods_of_two(method):
    with pytest.raises(ValueError, match=f"extra_views is 2, but {method} compares two views alone"):
        small(method=method, extra_views=2)


@pytest.mark.parametrize("method", ["byol", "simsiam"])
def test_a_bar_shows_no_chance_level_where_there_is_none(method, capsys):
    run = training.train(method=method, data=DIGITS, batch_size=32, steps=1)
    said = capsys.readouterr().out
    assert math.isnan(run.rows[0]["chance"])
    assert f"loss {run.rows[0]['loss']:.3f}" in said and "chance" not in said


# ---- other kinds of samples --------------------------------------------------------------------------------

SENTENCES = data.load("sentences:topics", limit=80)


def of_sentences(method: str, **settings) -> training.Run:
    torch.manual_seed(0)
    encoder = Transformer(SENTENCES.tokens.shape[1], width=16, heads=2)
    return short(method, data=SENTENCES, encoder=encoder, **settings)


@pytest.mark.parametrize("method", EVERY)
def test_sentences_train_by_methods_that_add_nothing_to_numbers_and_others_refuse_them(method):
    if "sentences" not in methods.catalogue()[method].cls.sample_kinds:
        with pytest.raises(
            ValueError, match=f"method is '{method}', which works on .*, but the data are sentences: choose "
        ):
            of_sentences(method)
        return
    run = of_sentences(method)
    before = weights(run)
    assert math.isfinite(advance(run, 2).rows[-1]["loss"]) and not same(weights(run), before)
    assert run.embed(SENTENCES).shape == (80, 16)
    assert torch.equal(run.embed(SENTENCES), run.embed(SENTENCES)), "dropout while embedding"


def test_what_adds_to_numbers_takes_no_sentences():
    refusing = set(EVERY) - set(methods.catalogue("sentences"))
    assert refusing >= {"pinda", "clae", "dacl", "sdmp"}


def test_dropouts_masks_follow_from_the_seed_and_come_back_with_a_saved_run(tmp_path):
    def run() -> training.Run:
        return small(data=SENTENCES, steps=4, batch_size=16)

    straight = advance(run(), 3)
    advance(run(), 1).save(tmp_path / "run.pt")
    torch.manual_seed(99)
    resumed = training.resume(tmp_path / "run.pt", data=SENTENCES)
    assert resumed.augmentation == views.named("dropout", SENTENCES.tokens)
    state = torch.get_rng_state()
    assert same(weights(straight), weights(advance(resumed, 2)))
    assert torch.equal(torch.get_rng_state(), state), "a step drew from the global stream"
    assert straight.history["alignment"].min() > 0, "both views had one mask"
    copy.deepcopy(straight.encoder)  # as the watcher does: no generator is left in it


@pytest.mark.parametrize(
    ("seen", "settings", "message"),
    [
        (
            "graphs:motifs",
            {},
            "'simclr', the default, which works on images and vectors and sentences, but",
        ),
        (
            "nodes:karate",
            {"method": "pinda"},
            "which works on images and vectors, but the data are nodes: choose grace",
        ),
        ("digits", {"method": "graphcl"}, "which works on graphs, but the data are images: choose simclr"),
        ("nodes:karate", {"method": "graphcl"}, "which works on graphs, but the data are nodes"),
        ("vectors:digits", {"method": "grace"}, "which works on nodes, but the data are vectors"),
        ("graphs:motifs", {"method": "graphcl", "encoder": "conv16"}, "one for graphs .*: gin, gcn$"),
        ("nodes:karate", {"method": "grace", "encoder": "gin"}, "one for nodes .*: gcn-nodes, gcn-prelu$"),
        ("sentences:topics", {"encoder": "conv16"}, "one for sentences .*: transformer"),
        ("sentences:topics", {"encoder": "mlp"}, "encoder is 'mlp', but must be one for sentences"),
        ("digits", {"encoder": "transformer"}, "one for images"),
        (
            "vectors:digits",
            {"augmentation": "crop"},
            "augmentation is 'crop', but must be one for vectors",
        ),
    ],
)
def test_what_is_of_another_kind_is_refused_in_one_line(seen, settings, message):
    with pytest.raises(ValueError, match=message) as answer:
        training.Run(data=data.load(seen, limit=34), **{"batch_size": 16, **settings})
    assert "\n" not in str(answer.value)


def test_a_small_set_is_one_batch_where_no_size_is_asked_for():
    wine = data.load("vectors:wine")
    run = training.Run(data=wine, augmentation="corruption", steps=1)
    assert run.batch_size == len(wine) == run.settings.batch_size
    assert training.Run(data=data.load("vectors:digits"), steps=1).batch_size == 256


@pytest.mark.parametrize("method", ["simclr", "byol", "pinda", "modals", "npid", "supcon"])
def test_vectors_are_changed_by_corruption_or_by_the_method_itself_and_equal_views_are_said(method, capsys):
    vectors = data.load("vectors:wine")
    run = short(method, data=vectors, steps=1)
    assert type(run.augmentation).__name__ == ("Identity" if run.method.varies else "Corruption")
    run.finish(progress=False)
    assert "equal" not in capsys.readouterr().out
    own = run.method.varies or run.method.uses_labels
    assert own or run.history.alignment[0] > 1e-3
    short(method, data=vectors, steps=1, augmentation="none").finish(progress=False)
    said = capsys.readouterr().out
    expected = "the two views of each sample are equal, so alignment is 0 and samples are only pushed apart"
    assert (f"{expected}; augmentations for vectors: corruption, noise, masking\n" in said) != own


def test_equal_views_are_said_of_pictures_and_not_where_dropout_makes_them_differ(capsys):
    training.train(data=DIGITS, augmentation="none", steps=2, batch_size=32, progress=False)
    assert capsys.readouterr().out.count("views of each sample are equal") == 1
    training.train(data=data.load("sentences:topics", limit=64), steps=1, batch_size=32, progress=False)
    training.train(data=DIGITS, steps=1, batch_size=32, progress=False)
    assert "equal" not in capsys.readouterr().out


def test_a_set_of_one_sample_many_times_is_trained_and_told(capsys):
    one = DIGITS.images[:1]
    for count, told in ((40, True), (40, False)):
        same = (
            one.repeat(count, 1, 1, 1) if told else torch.cat([one.repeat(39, 1, 1, 1), DIGITS.images[1:2]])
        )
        training.train(
            data=data.ImageSet(same, torch.full((40,), -1), (), None, "forty"),
            steps=2,
            batch_size=8,
            progress=False,
        )
        assert (
            "all 40 images are the same, so only their views can differ" in capsys.readouterr().out
        ) == told

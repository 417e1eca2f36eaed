"""Settings: what is refused, what the docs say and where a slider goes are one declaration."""

import copy
import doctest
import inspect
import math
import pickle

import numpy as np
import pytest
import torch

from clutils import encoders, losses, maps, measures, methods, noise, training, views
from clutils.settings import Setting, check, setting
from tests.losses.inputs import fails

LOSSES = [entry.cls for entry in losses.catalogue().values()]
KINDS = [*LOSSES, *(entry.cls for entry in methods.catalogue().values())]
DECLARED = [
    pytest.param(kind, name, declared, id=f"{kind.__name__}-{name}")
    for kind in KINDS
    for name, declared in kind.ranges.items()
]
NUMBERS = [given for given in DECLARED if not given.values[2].choices]
WORDS = [given for given in DECLARED if given.values[2].choices]


def of_vectors(kind, **settings):
    return kind(encoders.build("mlp", channels=8), kind.default_loss(), **settings)


def made(kind, **settings):
    return kind(**settings) if issubclass(kind, losses.Loss) else of_vectors(kind, **settings)


def ends(declared):
    """The ends of a range, moved in where it is open; ∞ is none."""
    if declared.switch:
        return [False, True]
    low, high = declared.lowest, declared.highest
    if declared.open_below:
        low = math.nextafter(low, math.inf)
    if declared.open_above:
        high = math.nextafter(high, -math.inf)
    return [low] if high == math.inf else [low, high]


def outside(declared):
    """The numbers next to the range, where it ends."""
    if declared.switch:
        return [0, 1]
    low, high, whole = declared.lowest, declared.highest, declared.whole
    below = low if declared.open_below else low - 1 if whole else math.nextafter(low, -math.inf)
    above = high if declared.open_above else high + 1 if whole else math.nextafter(high, math.inf)
    return [below, above]


@pytest.mark.parametrize("kind", KINDS)
def test_every_setting_but_those_of_another_method_says_what_it_may_be(kind):
    names = kind.hyperparameters() if issubclass(kind, losses.Loss) else kind.setting_names()
    assert sorted([*kind.ranges, *{"base", "base_settings"}.intersection(names)]) == sorted(names)
    assert issubclass(kind, losses.Loss) or all(name in names for name in kind.live)


def put(module, name, value):
    """Whatever it is, also what is fixed when a method is made."""
    if isinstance(module, losses.Loss):
        setattr(module, name, value)
    else:
        vars(module)[name] = value


@pytest.mark.parametrize(("kind", "name", "declared"), NUMBERS)
def test_both_ends_of_a_range_are_taken_and_what_lies_beyond_is_quoted(kind, name, declared):
    settings = kind.check_hyperparameters if issubclass(kind, losses.Loss) else kind.check_settings
    object_ = made(kind)
    other_end = {"lowest": "highest", "highest": "lowest"}.get(name)  # where one must not pass the other
    for value in (*ends(declared), *declared.also):
        for each in filter(None, (name, other_end)):
            put(object_, each, value)
        settings(object_)
    others = ["no"] if declared.switch else [True, *([2.0] if declared.whole else [])]
    for value in (*outside(declared), math.nan, -math.inf, "1", *others):
        put(object_, name, value)
        fails(lambda: settings(object_), f"{kind.__name__}: {name} is {value!r}, but must be {declared}")
    fails(lambda: made(kind, **{name: outside(declared)[0]}), name, repr(outside(declared)[0]))
    for value in {None, math.inf}.difference(declared.also):
        put(object_, name, value)
        fails(lambda: settings(object_), f"{kind.__name__}: {name} is {value!r}")


@pytest.mark.parametrize(("kind", "name", "declared"), WORDS)
def test_every_choice_is_taken_and_another_word_is_quoted(kind, name, declared):
    one = made(kind)
    for value in (*declared.choices, *declared.also):
        put(one, name, value)
        one.check_settings()
    put(one, name, "nothing")
    fails(one.check_settings, f"{kind.__name__}: {name} is 'nothing', but must be {declared}")


@pytest.mark.parametrize(("kind", "name", "declared"), DECLARED)
def test_the_docs_list_range_symbol_and_help_where_they_are_declared(kind, name, declared):
    symbol = f" ({declared.symbol})" if declared.symbol else ""
    assert declared.about, f"{kind.__name__}: {name} has no line of help: setting(..., about=...)"
    assert f"- {name}{symbol}: {declared}; {declared.about}" in kind.__doc__.split("Ranges:")[1].splitlines()


@pytest.mark.parametrize(("kind", "name", "declared"), NUMBERS)
def test_what_can_be_turned_has_a_dial(kind, name, declared):
    assert declared.dial or declared.switch or not (issubclass(kind, losses.Loss) or name in kind.live)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"dial": (0, 20, "even")}, r"from 0 to 20 \(even\), the range is a number above 0 and at most 20"),
        ({"dial": (1, 21, "log")}, r"from 1 to 21 \(log\)"),
        ({"dial": (3, 1, "even")}, r"from 3 to 1"),
        ({"dial": (1, 2, "logarithmic")}, "last part is 'logarithmic', but must be one of even, log"),
        ({"lowest": -1, "dial": (0, 20, "log")}, r"from 0 to 20 \(log\).*log starts above 0"),
        ({"dial": (1, 2)}, "expected 3, got 2"),
        ({"lowest": 21}, "the range goes from 21 to 20"),
    ],
)
def test_a_dial_outside_its_range_or_that_moves_in_no_known_way_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        Setting(**{"lowest": 0, "highest": 20, "open_below": True} | given)


def test_a_default_outside_its_own_range_is_refused_where_it_is_declared():
    with pytest.raises(ValueError, match=r"the default is 1000\.0, but must be a number from 0 to 100"):
        setting(0, 100, default=1000.0)


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (Setting(1e-6, 1e6), "a number from 1e-06 to 1e+06"),
        (Setting(0, 1, open_above=True), "a number from 0 to below 1"),
        (Setting(0), "a number from 0 on"),
        (Setting(0, open_below=True, also=(None,)), "a number above 0, or None"),
        (Setting(0, 1, open_below=True), "a number above 0 and at most 1"),
        (Setting(1e-6, 1e12, also=(math.inf,)), "a number from 1e-06 to 1e+12, or inf"),
        (Setting(1, whole=True), "a whole number from 1 on"),
        (Setting(1, 2, whole=True), "a whole number from 1 to 2"),
        (Setting(choices=("conv", "mlp"), also=(None,)), "one of conv, mlp, None"),
        (
            Setting(0, 1, entries=("low", "high"), rising=True),
            "(low, high), each a number from 0 to 1, rising",
        ),
    ],
)
def test_a_range_in_words(declared, words):
    assert str(declared) == words


def test_a_loss_of_one_s_own_declares_checks_and_documents_the_same_way():
    class Own(losses.NTXent):
        """One line."""

        power: int = setting(0, 3, "p", default=2)

    assert (
        str(inspect.signature(Own))
        == "(temperature: float = 0.5, power: int = 2, *, check_inputs: bool = True)"
    )
    assert (Own.power, Own().power, Own(power=3).power) == (2, 2, 3)
    own = Own()
    own.power = 4
    fails(own.check_hyperparameters, "Own: power is 4, but must be a number from 0 to 3")
    fails(lambda: check("here", own), "here: power is 4")
    with pytest.raises(TypeError, match="Own: got an unexpected keyword argument 'powers'"):
        Own(powers=2)
    assert Own.__doc__.endswith(
        "- temperature (τ): a number from 1e-06 to 1e+06; similarities are divided by it\n"
        "- power (p): a number from 0 to 3"
    )


def test_what_a_subclass_sets_to_a_plain_value_is_an_argument_no_longer():
    class Cold(losses.MACL):
        temperature = 0.05

    assert Cold.hyperparameters() == ("alpha", "alignment_threshold", "minimum_temperature")
    assert (Cold(1.0).temperature, Cold(1.0).alpha) == (0.05, 1.0) and "temperature" not in Cold.ranges
    assert losses.MACL.hyperparameters()[0] == "temperature"


def test_a_tuple_s_entries_are_checked_each_and_in_their_order():
    scale = Setting(0, 1, open_below=True, entries=("smallest", "largest"), rising=True)
    assert scale.allows((0.2, 1)) and scale.allows([0.2, 0.2])  # a file has a list
    for wrong in ((0.2,), (0.2, 1.5), (0, 1), (0.9, 0.2), 0.5, "ab", None):
        fails(
            lambda wrong=wrong: scale.check("here", "scale", wrong), f"here: scale is {wrong!r}, but must be"
        )


def test_a_word_that_is_near_a_choice_is_said():
    wrong = (
        "noise: network is 'con', but must be one of conv, unet, resnet18, mlp, fixed; did you mean 'conv'?"
    )
    fails(lambda: noise.NoiseGenerator("con"), wrong)


def test_numpy_s_numbers_are_taken_and_become_python_s_own():
    loss = losses.NTXent(np.float32(0.25))
    assert loss.temperature == 0.25 and type(loss.temperature) is float
    assert type(losses.SSCL(hardest=np.int64(4)).hardest) is int
    fails(
        lambda: losses.NTXent(np.float32(-1)), "NTXent: temperature is np.float32(-1.0), but must be a number"
    )
    fails(lambda: losses.SSCL(hardest=np.bool_(True)), "SSCL: hardest is")


# ---- what a reader sees of them ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_in_every_docstring_runs_and_gives_a_finite_loss(kind):
    lines = [example.source for example in doctest.DocTestParser().get_examples(kind.__doc__)]
    assert len(lines) >= 2
    known = {"losses": losses, "torch": torch, "training": training, "math": math}
    for line in lines:
        exec(line, known)
        if line.startswith("loss(z1"):
            assert torch.isfinite(eval(line, known))
    if "run" in known:
        assert type(known["run"].method) is kind and np.isfinite(known["run"].history["loss"]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_shows_the_formula_the_present_settings_and_the_source(kind):
    one = made(kind)
    shown = one._repr_markdown_()
    assert shown.startswith(f"**{kind.__name__}**")
    assert kind.paper in shown and str(kind.year) in shown
    assert ("$$" in kind.__doc__) == ("$$" in shown)
    assert issubclass(kind, methods.Method) or kind.__doc__.split("$$")[1] in shown
    for name, declared in kind.ranges.items():
        put(one, name, ends(declared)[0])
        assert f"`{name}` = {ends(declared)[0]!r}" in one._repr_markdown_()


@pytest.mark.parametrize(
    ("of", "name", "meant"),
    [
        *((loss, "temprature", "temperature") for loss in (losses.MACL(), copy.deepcopy(losses.MACL()))),
        (pickle.loads(pickle.dumps(losses.MACL())), "temprature", "temperature"),
        (made(methods.MoCo), "momentun", "momentum"),
        (views.Augmentation(), "crop_scal", "crop_scale"),
        (views.named("corruption", torch.zeros(4, 2)), "rat", "rate"),
        (views.named("deletion", torch.zeros(4, 2, dtype=torch.int64)), "rte", "rate"),
        (noise.NoiseGenerator(), "startt", "start"),
    ],
)
def test_a_misspelt_setting_is_refused_when_it_is_set(of, name, meant):
    with pytest.raises(
        AttributeError, match=f"{type(of).__name__} has no setting '{name}'; did you mean '{meant}'"
    ):
        setattr(of, name, 0.5)
    assert not hasattr(of, name)


def test_what_is_fixed_when_a_method_is_made_is_not_set_later():
    method = made(methods.MoCo)
    with pytest.raises(AttributeError, match=r"MoCo: queue_size is fixed when a method is made; .* momentum"):
        method.queue_size = 512
    with pytest.raises(AttributeError, match="BYOL: hidden is fixed"):  # of every method, no argument of BYOL
        made(methods.BYOL).hidden = 7
    method.momentum = 0.9
    assert method.momentum == 0.9


def test_a_method_on_another_one_s_step_hands_on_the_loss_that_it_is_given():
    method, loss = made(methods.PiNDA, network="mlp"), losses.NTXent(0.3)
    method.loss = loss
    assert method.loss is loss and method.method.loss is loss and "loss" not in method._modules


def test_what_a_module_of_one_s_own_sets_in_its_init_and_what_torch_sets_is_taken():
    class Own(losses.NTXent):
        """One line."""

        calls = 0

        def __init__(self, power: float) -> None:
            super().__init__()
            self.power = power

    own = Own(2.0)
    own.calls, own.power = own.calls + 1, 3.0
    own.scale, own.head, own._kept = torch.nn.Parameter(torch.ones(2)), torch.nn.Linear(2, 2), "mine"
    own.register_buffer("seen", torch.zeros(2))
    own.seen = torch.ones(2)
    assert sorted(own.state_dict()) == ["head.bias", "head.weight", "scale", "seen"]
    assert (own.calls, own.power, str(inspect.signature(Own))) == (1, 3.0, "(power: float) -> None")
    with pytest.raises(AttributeError, match="Own has no setting 'powr'"):
        own.powr = 1.0


@pytest.mark.parametrize(
    "drawn",
    [
        lambda seed: maps.tsne(torch.eye(8), seed=seed),
        lambda seed: maps.umap(torch.eye(8), neighbours=3, seed=seed),
        lambda seed: maps.neg_tsne(torch.eye(8), neighbours=3, seed=seed),
        lambda seed: views.pair(torch.zeros(2, 3, 8, 8), seed),
        lambda seed: measures.bootstrap(torch.rand(9), seed=seed),
    ],
)
def test_a_seed_that_is_no_whole_number_is_quoted(drawn):
    for seed in (0.5, "1", None, 2**70):
        with pytest.raises(ValueError, match=rf"seed is {seed!r}, but must be a whole number"):
            drawn(seed)


@pytest.mark.parametrize(
    ("make", "given", "words"),
    [
        (encoders.ConvNet, (3, 10**7), "ConvNet: width 10,000,000"),
        (encoders.build, ("mlp", 10**10), "MLP: layers of 10,000,000,000, 1,024 and 256 numbers"),
        (encoders.ProjectionHead, (128, 10**9, 128), "ProjectionHead: hidden 1,000,000,000 and out 128"),
        (methods.SimCLR, {"out": 10**12}, "ProjectionHead: hidden 256 and out 1,000,000,000,000"),
        (methods.SimCLR, {"hidden": 10**12}, "ProjectionHead: hidden 1,000,000,000,000 and out 128"),
        (methods.MoCo, {"queue_size": 10**12}, "MoCo: a queue of 1,000,000,000,000 keys would take 512,"),
        (methods.NNCLR, {"queue_size": 10**12}, "NNCLR: a queue of 1,000,000,000,000 keys"),
        (
            views.Augmentation(10**6),
            (torch.zeros(2, 3, 8, 8),),
            "Augmentation: 2 views of 1,000,000 pixels a side would take 24,000 GB",
        ),
    ],
)
def test_what_the_memory_does_not_hold_is_refused_before_it_is_allocated(make, given, words):
    with pytest.raises(ValueError, match=r" would take [\d,]+ GB, and this machine has [\d,]+ GB") as said:
        of_vectors(make, **given) if isinstance(given, dict) else make(*given)
    assert str(said.value).startswith(words)

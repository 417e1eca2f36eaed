"""The settings of a run: what suits is filled in, what does not fit is refused and quoted."""

import re

import pytest
import torch

from clutils import data, training
from tests.runs import small


def test_rate_and_decay_not_given_are_those_that_suit_the_optimiser():
    adamw, sgd = small(), small(optimiser="sgd")
    assert (adamw.learning_rate, adamw.settings.weight_decay) == (5e-3, 1e-4)
    assert (sgd.learning_rate, sgd.settings.weight_decay) == (0.03 * 32 / 256, 5e-4)
    assert {group["weight_decay"] for group in sgd.optimiser.param_groups} == {5e-4}
    assert small(weight_decay=0.0).optimiser.param_groups[0]["weight_decay"] == 0.0


def vectors(**settings) -> training.Run:
    return small(data=data.load("vectors:digits", limit=100), precision="float32", **settings)


def test_without_a_compiler_compile_is_refused_before_anything_starts(monkeypatch):
    def broken(function):
        raise RuntimeError("No working C++ compiler found\nand much more")

    monkeypatch.setattr(torch, "compile", broken)
    with pytest.raises(ValueError, match=r"compile does not work here: No working C\+\+ compiler found \("):
        vectors(compile=True)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"batch_size": 101}, "batch_size is 101, but the data has only 100 pictures"),
        ({"batch_size": 1}, "batch_size is 1, but must be a whole number from 2 on"),
        ({"steps": 0}, "steps is 0"),
        ({"epochs": 1.5}, "epochs is 1.5"),
        ({"seed": -1}, "seed is -1"),
        ({"method": "moco3"}, "method is 'moco3', but must be one of simclr"),
        ({"encoder": "vgg"}, "no encoder is called 'vgg'"),
        ({"data": torch.zeros(40, 3, 8, 8)}, r"data is \(40, 3, 8, 8\) torch.float32, but pictures must be"),
        ({"data": None}, "data is None, but must be a name"),
        ({"data": "cats"}, "no data called 'cats'"),
        ({"device": "abacus"}, "device is 'abacus', which this machine does not have"),
        ({"optimiser": "lars"}, "optimiser is 'lars', but must be one of adamw, sgd"),
        ({"weight_decay": -0.1}, "weight_decay is -0.1, but must be a number from 0 on"),
        ({"precision": "float16"}, "precision is 'float16', but must be one of float32, bfloat16"),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit_are_refused_and_quoted(settings, message):
    with pytest.raises(ValueError, match=message):
        small(**settings)


@pytest.mark.parametrize("settings", [{"loss": "NTXent"}, {"learning_rate": -1.0}, {"learning_rate": "fast"}])
def test_what_is_no_loss_and_no_rate_is_quoted_before_anything_starts(settings):
    pictures = torch.zeros(8, 3, 16, 16, dtype=torch.uint8)
    (value,) = settings.values()
    with pytest.raises(ValueError, match=re.escape(repr(value))):
        training.Run(data=pictures, batch_size=4, **settings)


@pytest.mark.parametrize(("encoder", "data"), [("conv16", "vectors:digits"), ("mlp", "digits")])
def test_an_encoder_that_takes_no_such_data_is_refused_in_a_line(encoder, data):
    with pytest.raises(ValueError, match=rf"encoder is '{encoder}' and data \(\d+, .*'mlp' takes vectors"):
        training.Run(data=data, encoder=encoder, steps=1)

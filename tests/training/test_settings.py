"""The settings of a run: what suits is filled in, what does not fit is refused and quoted."""

import dataclasses
import inspect
import math
import re

import numpy as np
import pytest
import torch

from clutils import data, losses, training, views
from clutils.settings import ranges_of
from clutils.training import Settings, migrations
from clutils.training.settings import from_plain
from tests.runs import advance, same, small, weights


def test_rate_and_decay_not_given_are_those_that_suit_the_optimiser():
    adamw, sgd = small(), small(optimiser="sgd")
    assert (adamw.learning_rate, adamw.settings.weight_decay) == (5e-3, 1e-4)
    assert (sgd.learning_rate, sgd.settings.weight_decay) == (0.03 * 32 / 256, 5e-4)
    for run, decay in ((adamw, 1e-4), (sgd, 5e-4)):
        assert {group["weight_decay"] for group in run.optimiser.param_groups} == {decay}
    assert small(weight_decay=0.0).optimiser.param_groups[0]["weight_decay"] == 0.0


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"batch_size": 101}, "batch_size is 101, but the data has only 100 images"),
        ({"method": data.load("digits", limit=4)}, r"method is a data set; .* as in Run\(data=...\)"),
        ({"method": "moco3"}, "method is 'moco3', but must be one of simclr.*did you mean 'mocov3'"),
        ({"encoder": "vgg"}, "no encoder is called 'vgg'"),
        ({"data": torch.zeros(40, 3, 8, 8)}, r"data is \(40, .*, but images must be torch.uint8"),
        ({"data": None}, "data is None, but must be a name"),
        ({"data": "cats"}, "no data called 'cats'"),
        ({"device": "abacus"}, "device is 'abacus', but must be one of cpu, cuda"),
        ({"device": "meta"}, "device is 'meta', but must be"),
        ({"device": "cuda:77"}, "device is 'cuda:77', which this machine does not have"),
        ({"precision": "float8"}, "precision is 'float8', but must be one of float32, bfloat16, float16"),
        ({"loss": "NTXent"}, "loss is 'NTXent'"),
        ({"method": ["simclr"]}, r"method is \['simclr'\], but must be one of simclr"),
        ({"method_settings": 5}, "method_settings is 5, but must name settings and values"),
        ({"augmentation": 5}, "augmentation is 5, but must be a name or a function"),
        ({"encoder": 5}, "encoder is 5, but must be a name or a module"),
        ({"method": "pinda", "method_settings": {"base": [1]}}, r"base is \[1\], but must be one of simclr"),
        (
            {"method": "pinda", "method_settings": {"base_settings": {"size": 3}}},
            "simclr has no setting 'size'; it has out",
        ),
        ({"method": "pinda", "method_settings": {"base_settings": 3}}, "base_settings is 3, but must name"),
        ({"data": np.zeros((300, 3))}, r"data is of type ndarray, \(300, 3\), but must be a name"),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit_are_refused_and_quoted(settings, message):
    with pytest.raises(ValueError, match=message):
        small(**settings)


@pytest.mark.parametrize(("encoder", "data"), [("conv16", "vectors:digits"), ("mlp", "digits")])
def test_an_encoder_that_takes_no_such_data_is_refused_in_a_line(encoder, data):
    with pytest.raises(ValueError, match=rf"encoder is '{encoder}', but must be one for (vectors|images)"):
        training.Run(data=data, encoder=encoder, steps=1)


class NTXent(torch.nn.Module):
    """A reader's own, with a name that the catalogue has too."""

    def forward(self, z1, z2):
        return (z1 - z2).pow(2).mean()


class MACL(losses.MACL):
    """The package's with another formula."""

    def formula(self, pairs, **of_the_batch):
        return 2 * super().formula(pairs, **of_the_batch)


@pytest.mark.parametrize("own", [NTXent, MACL])
def test_a_loss_of_ones_own_is_not_taken_for_the_package_s_of_that_name(own, tmp_path):
    digits = data.load("digits", limit=64)
    run = advance(small(data=digits, loss=own(), steps=4), 2)
    assert run.configuration["loss"] is None
    run.save(tmp_path / "run.pt")
    with pytest.raises(ValueError, match=r"with loss given as an object: resume\(path, loss=\.\.\.\)"):
        training.resume(tmp_path / "run.pt", data=digits)
    assert type(training.resume(tmp_path / "run.pt", data=digits, loss=own()).loss) is own


def test_numpy_s_numbers_are_read_again_from_a_checkpoint(tmp_path):
    digits = data.load("digits", limit=64)
    run = small(data=digits, learning_rate=np.float64(0.004), weight_decay=np.float64(1e-3), steps=4)
    for temperature in np.linspace(0.1, 0.3, 2):  # as a slider's loop has it
        run.loss.temperature = temperature
        run.step()
    run.learning_rate = np.float64(0.002)
    run.save(tmp_path / "run.pt")
    again = training.resume(tmp_path / "run.pt", data=digits)
    assert again.loss.temperature == 0.3 and again.learning_rate == 0.002
    assert again.history["temperature"].tolist() == [0.1, 0.3]


def test_every_number_among_the_settings_has_a_range_and_keeps_to_it():
    given = inspect.signature(Settings).parameters
    numbers = {name for name, of in given.items() if of.annotation.startswith(("int", "float"))}
    declared = ranges_of(Settings)
    assert len(numbers) == 8
    for name in numbers:
        for value in (declared[name].lowest - 1, math.nan, "3", True):
            said = re.escape(f"training: {name} is {value!r}, but must be {declared[name]}")
            with pytest.raises(ValueError, match=said):
                Settings(**{name: value})


def test_every_setting_is_in_the_signature_and_the_docstring():
    for made in (training.Run, training.train):
        for entry in dataclasses.fields(Settings):
            assert entry.name in inspect.signature(made).parameters and f"- {entry.name}: " in made.__doc__
        assert "{settings}" not in made.__doc__


def test_settings_that_were_a_truth_value_before_ranges_were_declared_are_read_as_numbers():
    old = Settings("pinda", method_settings={"penalty": 1.0}).plain()
    old["method_settings"] = {"penalty": False, "highest": None, "learned_mean": True}
    read = from_plain(
        migrations.of_settings(old | {"data": "digits", "loss": None, "augmentation": None, "encoder": None})
    )
    assert read["method_settings"] == {"penalty": 0, "highest": None, "learned_mean": True}
    assert training.Run(**read | {"data": data.load("digits", limit=300)}).method.penalty == 0


def test_what_is_no_setting_is_said_with_those_that_there_are():
    with pytest.raises(
        TypeError, match=r"there is no setting 'momentum'.* Known: method, .*method_settings={'mom"
    ):
        training.Run("moco", momentum=0.9)


@pytest.mark.parametrize("steps", [2.5, 0, "3", True, None])
def test_a_run_s_steps_are_checked_where_they_are_set(steps):
    run = small()
    with pytest.raises(ValueError, match=f"steps is {steps!r}, but must be a whole number from 1 on"):
        run.steps = steps
    assert run.steps == 20


def test_a_run_s_augmentation_may_be_set_by_name():
    run = small()
    run.augmentation = "none"
    assert run.augmentation == views.named("none", run.images)
    with pytest.raises(ValueError, match="augmentation is 5, but must be a name or a function"):
        run.augmentation = 5


def test_method_settings_are_the_run_s_own():
    given = {"queue_size": 64}
    settings = Settings("moco", method_settings=given)
    given["queue_size"] = -1
    assert settings.method_settings == {"queue_size": 64}


def test_a_small_step_has_one_thread_and_any_other_as_many_as_torch():
    torch.set_num_threads(2)

    def threads(images, batch_size, encoder="conv16", **settings):
        return training.Run(data=images, batch_size=batch_size, encoder=encoder, **settings).settings.threads

    digits, scenes = data.load("digits", limit=512), data.load("scenes", limit=96)
    assert (
        threads(digits, 256)
        == threads(scenes, 8)
        == threads("graphs:motifs", 64, "gin", method="graphcl")
        == 1
    )
    assert threads(digits, 512) == threads(scenes, 96) == threads(digits, 8, "resnet18") == 2
    assert threads(digits, 8, threads=2) == 2


def test_a_resumed_run_takes_up_its_threads_and_goes_on_bit_for_bit(tmp_path):
    torch.set_num_threads(2)
    run = small(steps=4, threads=2)
    assert run.settings.threads == 2 == run.configuration["threads"]
    advance(run, 2)
    run.save(tmp_path / "run.pt")
    torch.set_num_threads(1)  # another machine, or a busier one
    again = training.resume(tmp_path / "run.pt", data=run.data)
    assert again.settings.threads == 2
    assert same(weights(advance(again, 2)), weights(advance(run, 2))) and torch.get_num_threads() == 1

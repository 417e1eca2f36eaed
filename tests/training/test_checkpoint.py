"""A run saved and read again goes on to the bit; what is no whole checkpoint is refused in a line."""

import copy
import dataclasses
import io
import zipfile

import pytest
import torch

from clutils import data, encoders, losses, training, views
from tests.runs import DIGITS, NoChance, advance, past, same, small, weights

GIVEN = [
    {},
    {"optimiser": "sgd", "weight_decay": 0.02},
    {"schedules": {"temperature": training.Cosine(0.1, 1.0, period=5)}},
    {"loss": losses.MACL(temperature=0.15, alpha=0.3)},
    {"loss": losses.SSCL(hardest=8, synthetic=4)},  # draws
    {"loss": losses.SIGReg(directions=16)},  # draws
    {"loss": losses.SogCLR()},  # keeps a state per sample
    {"loss": losses.ISogCLR()},
    {"loss": losses.AttentionNCE(), "extra_views": 2},
    {"loss": losses.CLIP(0.07, learned_scale=True)},
]


@pytest.mark.parametrize("given", GIVEN, ids=repr)
def test_four_steps_saved_and_three_more_are_seven_steps_to_the_bit(given, tmp_path):
    def run() -> training.Run:
        settings = copy.deepcopy(given)
        schedules = settings.pop("schedules", {})
        made = small(**settings)
        made.schedules |= schedules
        return made

    stream = torch.get_rng_state()
    straight, half = advance(run(), 7), advance(run(), 4)
    assert torch.equal(torch.get_rng_state(), stream)
    half.save(tmp_path / "run.pt")
    torch.manual_seed(99)  # nothing of the process's own may matter
    resumed = training.resume(tmp_path / "run.pt", data=DIGITS)
    assert resumed.steps_done == 4 and len(resumed.history) == 4 and resumed.schedules == half.schedules
    advance(resumed, 3)
    assert same(weights(straight), weights(resumed)) and past(straight).equals(past(resumed))
    states = [run.optimiser.state_dict()["state"] for run in (straight, resumed)]
    assert all(same(states[0][i], states[1][i]) for i in states[0])
    assert type(resumed.loss) is type(straight.loss) and repr(resumed.loss) == repr(straight.loss)
    kept = dict(resumed.loss.named_buffers())
    assert same(kept, dict(straight.loss.named_buffers()))
    assert all(torch.isfinite(state).any() for state in kept.values())


def test_a_run_by_names_resumes_with_all_that_was_changed_and_nothing_given(tmp_path):
    run = advance(
        training.Run(data="digits", batch_size=32, steps=4, seed=2, augmentation=views.Augmentation(8)), 1
    )
    run.loss.temperature, run.learning_rate, run.steps = 0.7, 2e-3, 9
    run.save(tmp_path / "deep" / "run.pt")
    resumed = training.resume(tmp_path / "deep" / "run.pt")
    assert resumed.configuration == run.configuration
    assert (resumed.loss.temperature, resumed.learning_rate, resumed.steps) == (0.7, 2e-3, 9)
    assert resumed.augmentation == views.Augmentation(8)
    assert same(weights(advance(resumed, 1)), weights(advance(run, 1)))


def test_a_checkpoint_from_before_there_was_a_choice_of_optimiser_goes_on_with_adamw(tmp_path):
    run = advance(small(), 2)
    run.save(tmp_path / "run.pt")
    state = torch.load(tmp_path / "run.pt", weights_only=True)
    for name in ("optimiser", "weight_decay", "compile"):
        del state["configuration"][name]
    torch.save(state, tmp_path / "old.pt")
    resumed = training.resume(tmp_path / "old.pt", data=DIGITS)
    assert resumed.configuration == run.configuration
    assert same(weights(advance(resumed, 2)), weights(advance(run, 2)))


def test_what_was_given_as_an_object_must_be_given_again(tmp_path):
    own = encoders.build("conv16", channels=1)
    run = small(encoder=own, loss=NoChance(), augmentation=lambda images, generator: images / 255)
    advance(run, 1).save(tmp_path / "run.pt")
    again = {
        "data": DIGITS,
        "encoder": encoders.build("conv16", channels=1),
        "loss": NoChance(),
        "augmentation": run.augmentation,
    }
    for missing in again:
        with pytest.raises(
            ValueError, match=rf"was trained with {missing} given as an object: resume\(path, {missing}="
        ):
            training.resume(tmp_path / "run.pt", **{**again, missing: None})
    resumed = training.resume(tmp_path / "run.pt", **again)
    assert same(weights(advance(resumed, 1)), weights(advance(run, 1)))


def test_another_encoder_is_refused(tmp_path):
    advance(small(), 1).save(tmp_path / "run.pt")
    with pytest.raises(ValueError, match="do not fit its encoder"):
        training.resume(tmp_path / "run.pt", data=DIGITS, encoder=encoders.build("conv32", channels=1))


CATS = data.ImageSet(DIGITS.images[:40], torch.arange(40) % 2, ("cat", "dog"), None, "forty")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"images": torch.where(torch.arange(40)[:, None, None, None] == 39, 7, CATS.images).byte()},
            "images",
        ),
        ({"images": CATS.images.flip(3)}, "images"),
        ({"labels": (torch.arange(40) == 39).long()}, "labels"),
        ({"class_names": ("cat", "fox")}, "class names"),
        ({"labels": torch.zeros(40).long(), "class_names": ("a", "b")}, "labels and class names"),
    ],
)
@pytest.mark.parametrize("method", ["simclr", "supcon"])
def test_one_other_picture_label_or_class_name_is_refused(tmp_path, changed, said, method):
    advance(small(data=CATS, batch_size=8, method=method), 1).save(tmp_path / "run.pt")
    other = dataclasses.replace(CATS, **changed)
    with pytest.raises(
        ValueError, match=rf"resume: the {said} now given, \(40, 1, 8, 8\), are not those that "
    ):
        training.resume(tmp_path / "run.pt", data=other)
    if method == "simclr":  # which needs no labels
        training.resume(tmp_path / "run.pt", data=CATS.images).step()
    again = training.resume(tmp_path / "run.pt", data=dataclasses.replace(CATS, source="moved"))
    again.step()
    again.save(tmp_path / "again.pt")
    with pytest.raises(ValueError, match=said):
        training.resume(tmp_path / "again.pt", data=other)


def test_every_row_is_in_the_fingerprint_however_many_there_are(monkeypatch):
    monkeypatch.setattr(training.checkpoint, "BLOCK", 7)
    rows = torch.arange(600, dtype=torch.uint8).reshape(100, 1, 2, 3)
    found = {training.checkpoint._checksum(rows)}
    for row in range(100):
        other = rows.clone()
        other[row, 0, 1, 2] += 1
        found.add(training.checkpoint._checksum(other))
    assert len(found) == 101
    monkeypatch.setattr(training.checkpoint, "BLOCK", 1000)
    assert training.checkpoint._checksum(rows) in found


def test_a_file_from_before_the_fingerprint_had_a_version_is_judged_as_it_was_then(tmp_path):
    advance(small(data=CATS, batch_size=8), 1).save(tmp_path / "run.pt")
    state = torch.load(tmp_path / "run.pt", weights_only=True)
    del state["fingerprint"]
    torch.save(state, tmp_path / "old.pt")
    renamed = dataclasses.replace(CATS, class_names=("a", "b"))
    assert training.resume(tmp_path / "old.pt", data=renamed).steps_done == 1
    with pytest.raises(ValueError, match="the images now given"):
        training.resume(tmp_path / "old.pt", data=CATS.images.flip(0))


def test_a_damaged_or_foreign_file_is_one_clear_line(tmp_path):
    good = tmp_path / "run.pt"
    advance(small(), 1).save(good)
    whole = good.read_bytes()
    foreign = io.BytesIO()
    torch.save({"state_dict": {}}, foreign)
    with zipfile.ZipFile(tmp_path / "plain.zip", "w") as archive:
        archive.writestr("a.txt", "no checkpoint")
    middle = bytearray(whole)
    middle[len(whole) // 2] ^= 0xFF
    cases = [whole[:n] for n in (0, 1, 100, len(whole) // 2, len(whole) - 1)]
    cases += [b"step,loss\n1,6.2\n", foreign.getvalue(), (tmp_path / "plain.zip").read_bytes(), bytes(middle)]
    for number, content in enumerate(cases):
        bad = tmp_path / f"bad{number}.pt"
        bad.write_bytes(content)
        with pytest.raises(
            ValueError, match=rf"^resume: .*{bad.name} is (damaged|not a checkpoint)"
        ) as caught:
            training.resume(bad, data=DIGITS)
        assert "\n" not in str(caught.value)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        training.resume(tmp_path / "absent.pt")


def of_configuration(name, value):
    return lambda state: state["configuration"].update({name: value})


@pytest.mark.parametrize(
    "change",
    [
        *(lambda state, name=name: state.pop(name) for name in tuple(training.checkpoint.PARTS)[:6]),
        *(lambda state, name=name: state.update({name: "x"}) for name in training.checkpoint.PARTS),
        lambda state: state.update(history=["x"]),
        lambda state: state["fingerprint"].pop("labels"),
        lambda state: state.update(schedules={"temperature": {"lowest": 0.1}}),
        lambda state: state["optimiser"].pop("param_groups"),
        lambda state: [own.update(exp_avg=torch.ones(3)) for own in state["optimiser"]["state"].values()],
        of_configuration("method", "bogus"),
        of_configuration("method", []),
        of_configuration("loss", {"name": "Bogus", "settings": {}}),
        of_configuration("loss", {"name": "NTXent", "settings": {"bogus": 1}}),
        of_configuration("loss", 5),
        of_configuration("augmentation", 5),
        of_configuration("method_settings", "x"),
    ],
)
def test_a_file_whose_parts_are_no_run_s_is_one_clear_line(tmp_path, change):
    advance(small(), 1).save(tmp_path / "run.pt")
    state = torch.load(tmp_path / "run.pt", weights_only=True)
    change(state)
    torch.save(state, tmp_path / "run.pt")
    with pytest.raises(ValueError, match=r"run\.pt") as caught:
        advance(training.resume(tmp_path / "run.pt", data=DIGITS), 1)
    assert "\n" not in str(caught.value)


def test_a_file_that_would_take_forever_to_read_is_refused(tmp_path):
    key = b"K\x01" + b"".join(b"q" + bytes([k]) + b"h" + bytes([k]) + b"\x86" for k in range(60))
    with zipfile.ZipFile(tmp_path / "run.pt", "w") as archive:  # 2^60 values to hash, in 300 bytes
        archive.writestr("archive/data.pkl", b"\x80\x02}" + key + b"K\x01s.")
        archive.writestr("archive/version", "3\n")
    with pytest.raises(ValueError, match=r"resume: .* is damaged, .*: has keys that take long to hash"):
        training.resume(tmp_path / "run.pt")

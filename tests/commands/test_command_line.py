"""The command line: what it writes, how a stopped run goes on to the bit, one clear line for each mistake."""

import csv
import dataclasses
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from clutils import __main__ as command_line
from clutils import data, explorers, losses, training
from clutils.commands import doctor
from clutils.commands import train as train_module
from tests import runs
from tests.commands.asked import complaint, run

ROOT = Path(__file__).resolve().parents[2]
SHORT = ("--data", "digits", "--batch-size", "32", "--steps", "6", "--device", "cpu")
TRAIN = ["train", "--out", "x"]


def history(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "history.csv")


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return runs.weights(training.resume(folder))


def stop_at(monkeypatch: pytest.MonkeyPatch, step: int, error: BaseException) -> None:
    """Raise the error in the place of this step of any run."""
    real = training.Run.step

    def step_or_stop(self: training.Run) -> dict[str, float]:
        if self.steps_done + 1 == step:
            raise error
        return real(self)

    monkeypatch.setattr(training.Run, "step", step_or_stop)


# ---- usage -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["", "lab", "train", "check", "map", "ruler", "data", "doctor", "book"])
def test_each_command_explains_itself(capsys, command):
    assert run(*command.split(), "--help") == 0
    assert "usage: python -m clutils" in capsys.readouterr().out


def test_the_help_on_training_lists_the_names_that_it_takes(capsys):
    run("train", "--help")
    said = capsys.readouterr().out
    for name in (*losses.catalogue(), "simclr", "digits", "folder:PATH", "conv16"):
        assert name in said


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "COMMAND"),
        (["fly"], "'ruler', 'data', 'doctor', 'book', 'slides', 'site'"),
        (["train"], "--out"),
        ([*TRAIN, "--bogus"], "--bogus"),
        ([*TRAIN, "--lr", "0.1"], "did you mean --learning-rate?"),
        ([*TRAIN, "--tau", "0.1"], "did you mean --set temperature=...?"),
        (["ruler", "macl"], "unknown arguments macl (see"),
        (["ruler", "--temprature", "1"], "did you mean --set temperature=...?"),
        (["ruler", "--set", "temperature=0.1", "alpha=2"], "unknown arguments alpha=2 (see"),
        (["ruler", "--set", "temperature=nan"], "temperature is nan"),
        (["ruler", "--set", "tau=0.1"], "NTXent has no setting tau; did you mean 'temperature'?"),
        ([*TRAIN, "--loss", "MACL", "--set", "α=1"], "MACL has no setting α; did you mean 'alpha'?"),
        ([*TRAIN, "--method", "pinda", "--method-set", "λ=1"], "did you mean 'penalty'?"),
        ([*TRAIN, "--set", "lr=0.1"], "NTXent has no setting lr; did you mean --learning-rate?"),
        ([*TRAIN, "--queue", "4096"], "did you mean --method moco --method-set queue_size=...?"),
        ([*TRAIN, "--steps", "many"], "'many'"),
        ([*TRAIN, "--steps", "3", "--epochs", "3"], "not allowed with"),
        ([*TRAIN, "--checkpoint-every", "0"], "whole number from 1"),
        ([*TRAIN, "--loss", "Nope"], "NTXent, Regression, SupCon"),
        ([*TRAIN, "--loss", "MACL", "--set", "tau=1"], "temperature, alpha"),
        ([*TRAIN, "--set", "temperature"], "--set temperature=0.5"),
        ([*TRAIN, "--set", "temperature=-1"], "temperature is -1"),
        ([*TRAIN, "--loss", "AttentionNCE", "--set", "d_neg=wide"], "--set d_neg=1.0"),
        ([*TRAIN, "--method", "smclr"], "did you mean 'simclr'?"),
        ([*TRAIN, "--method", "moco", "--method-set", "size=9"], "queue_size, momentum"),
        ([*TRAIN, "--method", "moco", "--method-set", "momentum"], "--method-set momentum=0.99"),
        ([*TRAIN, "--data", "digits", "--augmentation", "cut"], "simclr, digits, crop"),
        ([*TRAIN, "--schedule", "heat=0.1:1:9", *SHORT], "--schedule heat=0.1:1:9: may be of"),
        ([*TRAIN, "--schedule", "temperature=0.1:1", *SHORT], "as in temperature=0.1:1:400"),
        ([*TRAIN, "--schedule", "temperature=1:0.1:9", *SHORT], "lowest is 1.0"),
        ([*TRAIN, "--schedule", "temperature=1e-9:1:9", *SHORT], "NTXent: temperature is 1e-09"),
        ([*TRAIN, "--schedule", "learning_rate=0:1:9", *SHORT], "learning_rate is 0.0, but must"),
        (
            [*TRAIN, "--loss", "SSCL", "--schedule", "hardest=8:16:9", *SHORT],
            "may be of temperature, class_prior, beta, learning_rate",
        ),
        ([*TRAIN, "--look", "knn", "--look-every", "0", *SHORT], "whole number from 1"),
        (
            ["train", "--data", "folder:nowhere", "--look", "nope", "--out", "x"],
            "--look: training: the metric is 'nope'",
        ),
        ([*TRAIN, "--data", "vectors:digits", "--look", "lidar"], "--look: 'lidar' needs views of images"),
        ([*TRAIN, "--data", "digit"], "did you mean 'digits'"),
        ([*TRAIN, "--data", "digits", "--batch-size", "5000"], "5000"),
        *((["train", *SHORT, "--out", out], "--out: ") for out in ("", " ")),
        (["data", "digit"], "did you mean 'digits'"),
        (["data", "digits", "--split", "nope"], "train, test"),
        (["doctor", "please"], "please"),
        (["ruler", "--loss", "NTXnet"], "did you mean 'NTXent'?"),
        (["ruler", "--loss", "InfoNCE"], "there is no loss of this name; did you mean 'NTXent'?"),
        (["ruler", "--curve", "nowhere.csv"], "--curve nowhere.csv: there is no such file"),
        (["ruler", "--set", "temperature=warm"], "'warm' is a word, but temperature needs a value, as in"),
        (["ruler", "--set", "temperature=0"], "temperature is 0"),
        (["ruler", "--value", "five"], "'five'"),
        (["ruler", "--value", "nan"], "value is nan"),
    ],
)
def test_bad_usage_is_code_2_and_a_line_that_says_what_there_is(
    capsys, monkeypatch, tmp_path, arguments, named
):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    assert named in complaint(capsys)
    assert not list(tmp_path.iterdir())


def test_looks_leave_the_run_as_it_is_and_a_stopped_one_has_them_all(capsys, monkeypatch, tmp_path):
    look = ("--look", "rankme,knn,few", "--look-every", "2")
    assert run("train", *SHORT, "--out", tmp_path / "unseen") == 0
    assert run("train", *SHORT, "--out", tmp_path / "seen", *look) == 0
    assert runs.same(weights(tmp_path / "seen"), weights(tmp_path / "unseen"))
    seen = history(tmp_path / "seen")
    assert seen["step"].tolist() == [0, 1, 2, 3, 4, 5, 6]
    for name in ("rankme", "knn", "few"):
        assert seen["step"][seen[name].notna()].tolist() == [0, 2, 4, 6], name
    with monkeypatch.context() as patch:
        stop_at(patch, 4, KeyboardInterrupt())
        capsys.readouterr()
        assert run("train", *SHORT, "--out", tmp_path / "stopped", *look) == 130
    assert "--resume" in complaint(capsys)
    assert len(history(tmp_path / "stopped")) == 4  # with what was seen as it began
    assert history(tmp_path / "stopped")["rankme"].notna().sum() == 2
    assert run("train", "--resume", "--out", tmp_path / "stopped", *look) == 0
    again = history(tmp_path / "stopped")
    assert again.drop(columns="seconds").equals(seen.drop(columns="seconds"))  # in each digit
    assert runs.same(weights(tmp_path / "seen"), weights(tmp_path / "stopped"))
    found = training.resume(tmp_path / "stopped" / "checkpoint.pt").history
    assert found["rankme"].dropna().tolist() == pytest.approx(seen["rankme"].dropna().tolist(), rel=1e-12)


def test_looks_at_the_beginning_and_the_end_are_the_usual_ones(tmp_path):
    assert run("train", *SHORT, "--out", tmp_path / "x", "--look-every", "100") == 0
    seen = history(tmp_path / "x")
    assert seen["step"][seen["rankme"].notna() & seen["knn"].notna()].tolist() == [0, 6]


def test_what_is_not_there_is_code_1(capsys, tmp_path):
    nowhere = tmp_path / "nowhere"
    assert run("train", "--data", f"folder:{nowhere}", "--out", tmp_path / "run") == 1
    assert str(nowhere) in complaint(capsys)
    assert run("train", "--resume", "--out", nowhere) == 1
    assert str(nowhere / "checkpoint.pt") in complaint(capsys) and not nowhere.exists()


def test_exit_codes_leave_the_process():
    resumed = ["train", "--resume", "--out", "nowhere"]
    for arguments, code in ((["fly"], 2), (["doctor", "--help"], 0), (resumed, 1)):
        done = subprocess.run([sys.executable, "-m", "clutils", *arguments], cwd=ROOT, capture_output=True)
        assert done.returncode == code


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_console_that_is_not_utf_8_and_python_without_docstrings_work(encoding):
    command = [sys.executable, "-OO", "-m", "clutils", "ruler", "--loss", "MACL", "--value", "3"]
    done = subprocess.run(command, env=os.environ | {"PYTHONIOENCODING": encoding}, capture_output=True)
    assert done.returncode == 0 and b"trained" in done.stdout and done.stderr == b""


def test_an_option_whose_value_is_two_dashes_is_refused_in_a_line(capsys, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    monkeypatch.setenv("RANK", "abc")
    assert run("check", "x.pt", "--arch=--", "--data", "digits") == 2
    assert "--arch=--: -- is no value" in complaint(capsys)


def test_a_reader_that_stops_reading_gets_no_traceback():
    command = f'"{sys.executable}" -m clutils data digits | head -n 1'
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.startswith("digits: ") and done.stderr == ""


# ---- train -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short MACL run."""
    folder = tmp_path_factory.mktemp("run") / "macl"
    macl = ("--loss", "MACL", "--set", "temperature=0.1", "--set", "alpha=0.25")
    assert run("train", *macl, *SHORT, "--out", folder) == 0
    return folder


def test_a_run_leaves_its_weights_its_history_and_its_settings(finished):
    tables = ["checkpoint.pt", "config.json", "history.csv", "map.npz", "measured.csv", "replay.html"]
    assert sorted(p.name for p in finished.iterdir()) == tables
    assert '"looks":[0,' in (finished / "replay.html").read_text("utf-8")  # it was seen as it began
    rows = history(finished)
    assert rows["step"].tolist() == [1, 2, 3, 4, 5, 6]
    assert (rows["alpha"] == 0.25).all() and (rows["temperature"] == 0.1).all()
    config = json.loads((finished / "config.json").read_text())
    assert config["loss"]["name"] == "MACL" and config["loss"]["settings"]["alpha"] == 0.25
    asked = {"method": "simclr", "data": "digits", "encoder": "conv16", "batch_size": 32, "device": "cpu"}
    assert config | asked | {"steps": 6, "seed": 0} == config
    assert "handwritten digits" in config["data_source"]
    assert {"date", "machine", "cores", "python", "versions", "commit"} <= set(config)


def test_a_run_that_breaks_keeps_what_it_had_learned(capsys, monkeypatch, tmp_path):
    stop_at(monkeypatch, 4, ValueError("the loss is nan"))
    assert run("train", *SHORT, "--out", tmp_path) == 1
    assert "the loss is nan" in complaint(capsys)
    assert len(history(tmp_path)) == 3
    assert training.resume(tmp_path / "checkpoint.pt").steps_done == 3


@pytest.mark.parametrize("steps", [2, 3])
def test_a_step_that_breaks_the_weights_is_noticed_even_if_it_is_the_last(capsys, tmp_path, steps):
    given = ("--data", "digits", "--batch-size", 16, "--device", "cpu", "--learning-rate", 1e10)
    assert run("train", *given, "--steps", steps, "--out", tmp_path) == 1
    said = complaint(capsys)
    assert "weights are not finite after step 2 (with learning_rate = 10000000000.0" in said
    assert "are kept" not in said and len(history(tmp_path)) == 2
    assert not (tmp_path / "checkpoint.pt").exists()


def test_the_command_only_composes():
    source = Path(train_module.__file__).read_text("utf-8")
    assert len(source.splitlines()) <= 190 and "course" not in source


def test_checkpoints_come_as_often_as_asked(monkeypatch, tmp_path):
    saved = []
    monkeypatch.setattr(training.Run, "save", lambda self, path: saved.append(self.steps_done))
    assert run("train", *SHORT, "--checkpoint-every", 2, "--out", tmp_path / "often") == 0
    assert saved[:3] == [2, 4, 6]
    saved.clear()
    assert run("train", *SHORT, "--out", tmp_path / "once") == 0
    assert saved == [6]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (SHORT, "--resume"),
        (("--resume", "--device", "nowhere"), "--device: training: device is 'nowhere'"),
        (("--resume", "--steps", "2"), "steps behind it already, more than the 2 asked for"),
        (("--resume", "--loss", "NTXent"), "was trained with"),
        (("--resume", "--set", "alpha=0.5"), "was trained with"),
        (("--resume", "--seed", "1"), "was trained with"),
        (("--resume", "--data", "scenes"), "was trained with"),
        (("--resume", "--batch-size", "64"), "was trained with"),
        (("--resume", "--learning-rate", "0.1"), "was trained with"),
        (("--resume", "--encoder", "conv32"), "was trained with"),
        (("--resume", "--method", "moco"), "was trained with"),
        (("--resume", "--precision", "float16"), "was trained with --precision"),
    ],
)
def test_a_run_is_not_written_over_and_does_not_go_on_with_other_settings(capsys, finished, arguments, said):
    before = (finished / "checkpoint.pt").read_bytes()
    assert run("train", *arguments, "--out", finished) == 2
    assert said in complaint(capsys)
    assert (finished / "checkpoint.pt").read_bytes() == before


def test_a_run_that_is_made_longer_says_what_the_learning_rate_does(capsys, tmp_path):
    assert run("train", *SHORT, "--out", tmp_path) == 0
    capsys.readouterr()
    for file in set(tmp_path.iterdir()) - {tmp_path / "checkpoint.pt"}:
        file.unlink()
    assert run("train", "--resume", "--set", "temperature=0.2", "--steps", 12, "--out", tmp_path) == 0
    rates = history(tmp_path)["learning_rate"]
    assert history(tmp_path)["step"].tolist() == list(range(1, 13))
    said = f"the learning rate rises from {rates[5]:.3g} to {rates[6]:.3g}: its schedule now spans 12 steps"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("where", ["look", "write", "replay"])
def test_an_interrupt_behind_the_last_step_says_what_is_missing_and_resume_writes_it(
    capsys, tmp_path, monkeypatch, where
):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if where == "replay":
            patch.setattr(explorers.Replay, "write", interrupt)
        else:
            look = training.Watcher.look
            late = lambda self, run, **how: interrupt() if run.done else look(self, run, **how)  # noqa: E731
            patch.setattr(training.Watcher, where, late if where == "look" else interrupt)
        assert run("train", *SHORT, "--out", tmp_path) == 130
    missing = "replay.html" if where == "replay" else "measured.csv, map.npz"
    said = complaint(capsys)
    assert f"stopped at step 6 of 6, which is kept, before {missing} could be written" in said
    assert training.resume(tmp_path).done
    assert run("train", "--resume", "--out", tmp_path) == 0
    assert {"measured.csv", "map.npz", "replay.html"} < {path.name for path in tmp_path.iterdir()}


@pytest.mark.skipif(os.name == "nt" or sys.platform == "darwin", reason="names of bytes are Linux's")
def test_a_class_folder_whose_name_is_no_utf_8_does_not_end_a_run(tmp_path, monkeypatch):
    for name in (b"bad\xff", b"good"):
        folder = os.fsencode(tmp_path / "own") + b"/" + name
        os.makedirs(folder)
        for number in range(12):
            image = np.random.default_rng(number).integers(0, 255, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(image).save(folder + b"/%d.png" % number)
    out = os.fsencode(tmp_path) + b"/out\xff"
    given = ["--data", f"folder:{tmp_path / 'own'}", "--batch-size", "8", "--steps", "2", "--device", "cpu"]
    strict = io.TextIOWrapper(io.BytesIO(), "utf-8", "strict")  # as a process has it
    monkeypatch.setattr(sys, "stdout", strict)
    assert run("train", *given, "--out", os.fsdecode(out)) == 0
    assert run("train", *given, "--out", os.fsdecode(out), "--resume", "--steps", 3) == 0
    strict.flush()
    printed = strict.buffer.getvalue()
    assert printed.count(b"checkpoint.pt, history.csv") == 2 and rb"out\udcff" in printed
    assert '"bad' in (Path(os.fsdecode(out)) / "replay.html").read_text("utf-8")


# ---- data --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("digits", "images    1,352, uint8 (N, C, H, W) = (1352, 1, 8, 8), channels: 1\n"),
        ("nodes:karate", "34, float32 (1, V, 1 + F + V) = (1, 34, 69), attributes of a node: 34"),
        ("graphs:motifs", "graphs    600, float32"),
        ("sentences:topics", ", 24), words: 24"),  # their number goes with Python's version
        ("vectors:wine", "vectors   133, float32 (N, D) = (133, 13), numbers: 13"),
    ],
)
def test_a_set_is_described(capsys, name, said):
    assert run("data", name) == 0
    printed = capsys.readouterr().out
    counts = re.findall(r"^label +(\d+) +([\d,]+) ", printed, re.MULTILINE)
    whole = data.load(name)
    assert said in printed and ("masks" in printed) == (name == "digits")  # of images alone
    assert [int(count.replace(",", "")) for _, count in counts] == whole.labels.bincount().tolist()
    assert [int(label) for label, _ in counts] == [*range(len(counts))]


def test_without_a_name_the_sets_are_listed_and_half_a_download_with_what_goes_on(
    capsys, monkeypatch, tmp_path
):
    monkeypatch.setenv("CLUTILS_DATA", str(tmp_path))
    (tmp_path / "cifar-10-python.tar.gz.part").write_bytes(bytes(3_000_000))
    assert run("data") == 0
    said = capsys.readouterr().out
    assert all(f"\n{name} " in f"\n{said}" for name in data.NAMES)
    assert re.search(
        r"^cifar10 +3 MB in .*, incomplete: python -m clutils data cifar10 goes on$", said, re.MULTILINE
    )


def test_the_ruler_prints_marks_and_answers_in_a_sentence(capsys):
    given = ["--set", "temperature=0.1", "--batch-size", "128", "--value", "5.0"]
    assert run("ruler", "--loss", "NTXent", *given) == 0
    said = capsys.readouterr().out
    assert "254 negatives" in said and "5.541" in said
    assert "A loss of 5 is learning: 10% of the way from chance, log 255 = 5.541" in said
    assert run("ruler", "--loss", "BarlowTwins", "--value", "5") == 0
    said = capsys.readouterr().out
    assert "can't be said" in said and "none   a constant feature has no correlation" in said
    assert "all similarities are 0" not in said
    assert run("ruler", "--loss", "SigLIP") == 0
    assert "W is none: the pull of SigLIP is not NT-Xent's" in capsys.readouterr().out
    assert run("ruler", "--queue", 65536) == 0
    assert "65,536 negatives" in capsys.readouterr().out


def test_a_run_whose_first_step_fails_leaves_the_folder_free(capsys, tmp_path):
    options = ("--data", "digits", "--batch-size", "16", "--steps", "1", "--out", str(tmp_path / "run"))
    assert run("train", "--loss", "MoCHi", *options) == 1  # its hardest 1,024 are more than a batch has
    assert "1024" in capsys.readouterr().err
    assert not (tmp_path / "run" / "checkpoint.pt").exists()
    settings = [f"--set={name}" for name in ("hardest=8", "synthetic=4", "query_mixed=2")]
    assert run("train", "--loss", "MoCHi", *settings, *options) == 0
    assert (tmp_path / "run" / "checkpoint.pt").exists()


def test_every_setting_of_a_run_has_its_option():
    known = {field.name for field in dataclasses.fields(training.Settings)} - {"method_settings"}
    options = vars(command_line._parser().parse_args(TRAIN))
    assert known | {"set", "method_set"} <= set(options)


@pytest.mark.parametrize(
    ("asked", "kept", "others"),
    [
        (
            ("--precision", "float32", "--optimiser", "sgd", "--weight-decay", "0.002", "--no-compile"),
            {"precision": "float32", "optimiser": "sgd", "weight_decay": 0.002, "compile": False},
            (("--precision", "bfloat16"), ("--optimiser", "adamw"), ("--weight-decay", "0.1")),
        ),
        (
            ("--schedule", "temperature=0.1:0.5:4"),
            {"schedules": {"temperature": {"lowest": 0.1, "highest": 0.5, "period": 4}}},
            (("--schedule", "temperature=0.1:0.5:5"),),
        ),
        (
            ("--method", "moco", "--method-set", "queue_size=64", "--augmentation", "digits"),
            {"method": "moco", "method_settings": {"queue_size": 64, "momentum": 0.99}},
            (("--method-set", "queue_size=128"), ("--augmentation", "crop")),
        ),
    ],
)
def test_settings_are_written_down_and_a_run_goes_on_with_them_and_with_no_others(
    capsys, tmp_path, asked, kept, others
):
    assert run("train", "--out", tmp_path, *SHORT, *asked) == 0
    header = capsys.readouterr().out.splitlines()[0]
    assert re.fullmatch(r"\w+ with NTXent\(temperature=.*digits.*, on cpu in \w+: step 0 of 6", header)
    config = json.loads((tmp_path / "config.json").read_text())
    for name, value in kept.items():
        own = config[name]
        assert own == value if name != "method_settings" else value.items() <= own.items()
    assert run("train", "--resume", "--out", tmp_path, *asked, "--steps", 8) == 0
    assert history(tmp_path)["step"].tolist() == list(range(1, 9))
    if "--schedule" in asked:
        tau = history(tmp_path)["temperature"]
        assert tau[:7].tolist() == pytest.approx([0.5, 0.3, 0.1, 0.3, 0.5, 0.3, 0.1])
    capsys.readouterr()
    for other in others:
        assert run("train", "--resume", "--out", tmp_path, *other) == 2
        assert "was trained with" in complaint(capsys)


VECTORS, PINDA = ("--data", "vectors:digits"), ("--method", "pinda", "--method-set", "base=moco")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--data", "digits", "--loss", "AttentionNCE", "--set", "d_neg=inf"), "d_neg=inf"),
        (("--data", "digits", "--loss", "AttentionNCE", "--set", "detach_attention=false"), "=False"),
        ((*VECTORS, "--method", "byol", "--augmentation", "none"), "step 1 of 1: loss"),  # with no chance
        ((*VECTORS, "--method", "supcon", "--set", "temperature=0.3"), "SupCon(temperature=0.3)"),
        ((*VECTORS, *PINDA), "pinda"),
        (("--data", "nodes:karate", "--method", "dgi", "--set", "temperature=0.5"), "=0.5, bias=0.0)"),
    ],
)
def test_settings_are_those_of_the_loss_or_of_the_methods_own_and_words_are_values(
    capsys, tmp_path, asked, said
):
    assert run("train", *asked, "--batch-size", 16, "--steps", 1, "--out", tmp_path) == 0
    printed = capsys.readouterr().out
    assert said in printed and ("(chance" in printed) == ("byol" not in asked)
    config = json.loads((tmp_path / "config.json").read_text())
    assert ("base", "moco") in config["method_settings"].items() or asked[2:] != PINDA


def test_a_folder_of_pictures_may_lie_elsewhere_when_its_run_goes_on(tmp_path, capsys):
    draw = np.random.default_rng(0)
    for number in range(40):
        file = tmp_path / "old" / "train" / ("a", "b")[number % 2] / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draw.integers(0, 255, (16, 16, 3), dtype=np.uint8)).save(file)
    first = ("--data", f"folder:{tmp_path / 'old'}", "--batch-size", 16, "--steps", 2, "--device", "cpu")
    assert run("train", *first, "--out", tmp_path / "run") == 0
    (tmp_path / "old").rename(tmp_path / "new")
    again = ("train", "--resume", "--steps", 4, "--out", tmp_path / "run")
    assert run(*again, "--data", f"folder:{tmp_path / 'new'}") == 0
    assert len(history(tmp_path / "run")) == 4
    next((tmp_path / "new" / "train" / "a").glob("*.png")).unlink()
    capsys.readouterr()
    assert run(*again, "--data", f"folder:{tmp_path / 'new'}") != 0
    assert "are not those" in complaint(capsys)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM to catch")
def test_a_second_train_into_its_folder_is_refused_and_a_request_to_terminate_keeps_what_was_learned(
    capsys, tmp_path
):
    """Also where Ctrl-C is ignored, as in the background. What SIGKILL leaves: tests/training/kills.py."""
    command = [sys.executable, "-m", "clutils", "train", *SHORT, "--steps", "100000"]
    process = subprocess.Popen(
        [*command, "--checkpoint-every", "3", "--out", str(tmp_path / "run")],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    try:
        end = time.monotonic() + 120
        while not (tmp_path / "run" / "history.csv").exists():
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.1)
        for again in (SHORT, ("--resume",)):
            assert run("train", *again, "--out", tmp_path / "run") == 2
            assert complaint(capsys).startswith("clutils: --out: another process is writing into")
        process.terminate()
        assert process.wait(60) == 130 and "--resume goes on from here" in process.communicate()[1]
    finally:
        process.kill()
    steps = training.resume(tmp_path / "run" / "checkpoint.pt").steps_done
    assert len(history(tmp_path / "run")) == steps
    assert run("train", "--resume", "--steps", steps + 3, "--out", tmp_path / "run") == 0
    assert not list((tmp_path / "run").glob(".*"))


@pytest.mark.parametrize(
    "error",
    [KeyError("a"), csv.Error("too large"), EOFError("ends"), MemoryError("8 GB"), RuntimeError("no kernel")],
)
def test_whatever_a_command_raises_is_one_line(monkeypatch, capsys, error):
    def command(options):
        raise error

    monkeypatch.setattr(doctor, "doctor", command)
    assert run("doctor") == 1
    assert str(error) in complaint(capsys)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_behind_stdout_is_one_line():
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "clutils", "doctor"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ended.returncode == 1 and ended.stderr == "clutils: [Errno 28] No space left on device\n"


def test_supcon_without_labels_is_said_to_be_nt_xent(capsys, tmp_path):
    """Its loss was NT-Xent's to the last digit, and no word said why."""
    assert run("train", *SHORT, "--loss", "SupCon", "--out", tmp_path / "plain") == 0
    assert "so SupCon is NT-Xent here: --method supcon" in capsys.readouterr().out
    assert run("train", *SHORT, "--method", "supcon", "--out", tmp_path / "labels") == 0
    assert "NT-Xent here" not in capsys.readouterr().out

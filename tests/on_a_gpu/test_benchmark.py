"""What waits for a GPU can be cut at any time, and goes on where it stopped."""

import argparse
import json
import math
import sys

import pytest
import torch

from clutils import data, training
from clutils.course import records


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.syspath_prepend(str(records.ROOT / "benchmarks"))
    import gpu

    return gpu


@pytest.fixture
def task(gpu, tmp_path):
    """(minutes) -> a task on digits, its folder always the same."""
    train, test = data.load("digits", limit=256), data.load("digits", "test", limit=50)

    def make(minutes=600.0):
        options = argparse.Namespace(
            out=tmp_path,
            minutes=minutes,
            encoder="conv16",
            seeds=(0,),
            steps=3,
            seconds=0.1,
            notebooks=("none",),
        )
        options.record, options.seconds, options.notebooks = False, 0.1, ("none",)
        return gpu.Task(options, train, test)

    return make


def test_what_has_a_line_is_left_out_and_a_cut_loses_nothing(gpu, task, tmp_path):
    done = []

    def units():
        for number in range(3):
            yield {"unit": number, "seed": 0}, lambda number=number: done.append(number) or {"found": number}

    with pytest.raises(gpu.OutOfTime):
        task(minutes=-1.0).go("some", units())
    assert done == []
    task().go("some", units())
    task().go("some", units())
    assert done == [0, 1, 2]
    lines = [json.loads(line) for line in (tmp_path / "some.jsonl").read_text().splitlines()]
    assert [line["found"] for line in lines] == done and all("machine" in line for line in lines)


def test_a_failure_has_a_line_and_is_tried_again_and_the_others_go_on(gpu, task, tmp_path):
    broken = True

    def first():
        if broken:
            raise RuntimeError("no compiler")
        return {"found": 1}

    def units():
        yield {"unit": "first"}, first
        yield {"unit": "second"}, lambda: {"found": 2, "errors": ["a cell"] if broken else []}

    assert not task().go("some", units())
    broken = False
    assert task().go("some", units())
    lines = [json.loads(line) for line in (tmp_path / "some.jsonl").read_text().splitlines()]
    assert [line.get("error") for line in lines] == ["RuntimeError: no compiler", None, None, None]
    assert [line.get("found") for line in lines] == [None, 2, 1, 2]


def test_the_end_of_the_minutes_within_a_unit_is_no_failure_and_a_half_line_is_no_end(gpu, task, tmp_path):
    def units():
        def cut():
            raise gpu.OutOfTime

        yield {"unit": 1}, dict
        yield {"unit": 2}, cut

    with pytest.raises(gpu.OutOfTime):
        task().go("some", units())
    file = tmp_path / "some.jsonl"
    file.write_text(file.read_text() + '{"unit": 2, "cut in')
    done = []
    again = iter([({"unit": 1}, dict), ({"unit": 2}, lambda: done.append(2) or {})])
    assert task().go("some", again) and done == [2]
    assert [line["unit"] for line in gpu._lines(file)] == [1, 2]


def test_a_notebook_tells_its_errors_and_a_signal_ends_it(gpu, tmp_path, monkeypatch):
    cells = [
        "from clutils import training\nrun = training.Run(data='digits', batch_size=32, steps=2)",
        "1 / 0",
    ]
    path = tmp_path / "x.ipynb"

    def write(last):
        code = [{"cell_type": "code", "source": [source]} for source in (*cells, last)]
        path.write_text(json.dumps({"cells": code}))

    write("print('well')")
    assert gpu.errors_of(path)["errors"] == ["code cell 1: ZeroDivisionError: division by zero"]
    write("import gpu\ndef cut(run): gpu.stop()\nrun.finish(cut, progress=False)")
    with pytest.raises(KeyboardInterrupt):
        gpu.errors_of(path)
    gpu.STOPPED.clear()


@pytest.mark.sweep  # test_training.py turns the dials of the lab
def test_the_lab_turns_its_dials_and_a_broken_run_is_an_error(gpu, task, monkeypatch):
    *_, (key, turned) = gpu.tour(task())
    found = turned()
    assert key == {"lab": "dials turned"} and found["turned"] == 4 and "error" not in found

    def broken(run):
        raise RuntimeError("CUDA error")

    monkeypatch.setattr(training.Run, "step", broken)
    assert "CUDA error" in turned()["error"]


def test_other_pictures_or_another_encoder_are_other_work(gpu, task):
    done = []

    def units():
        yield {"unit": 1}, lambda: done.append(1) or {}

    task().go("some", units())
    other = task()
    other.common = other.common | {"encoder": "conv32"}
    other.go("some", units())
    assert done == [1, 1]


@pytest.mark.parametrize("how", ["the minutes", "an interrupt"])
def test_a_run_that_was_cut_goes_on_from_its_checkpoint(gpu, task, tmp_path, how, monkeypatch):
    def begin():
        return training.Run(data=task().train, batch_size=64, steps=3, seed=1)

    def interrupted():
        run = begin()
        steps = iter([run.step])
        monkeypatch.setattr(run, "step", lambda: next(steps, _interrupt)())
        return run

    def _interrupt():
        raise KeyboardInterrupt

    late, first = (task(minutes=-1.0), begin) if how == "the minutes" else (task(), interrupted)
    with pytest.raises((gpu.OutOfTime, KeyboardInterrupt)):
        late.trained({"run": 1}, first)
    (kept_file,) = tmp_path.glob("*.pt")
    assert training.resume(kept_file, data=task().train).steps_done == 1
    again = task()
    cut, whole = (
        again.trained({"run": 1}, lambda: pytest.fail("it begins anew")),
        begin().finish(progress=False),
    )
    assert cut.steps_done == 3 and again.resumed and kept_file.exists(), "kept until its line is written"
    kept, expected = cut.method.state_dict(), whole.method.state_dict()
    assert all(torch.equal(kept[name], expected[name]) for name in expected)


@pytest.mark.parametrize(
    "name",
    [
        *("tour", "profile", "tries"),
        *(pytest.param(name, marks=pytest.mark.sweep) for name in ("recipes", "pinda", "macl")),
    ],
)
def test_the_first_of_each_task_runs(gpu, task, name, tmp_path, monkeypatch):
    monkeypatch.setitem(
        gpu.cookbook.RECIPES, "gpu-3min", gpu.cookbook.RECIPES["cpu-1min"] | {"batch_size": 64}
    )
    key, do = next(gpu.TASKS[name](task()))
    found = do()
    assert key and found
    numbers = [value for value in found.values() if isinstance(value, float)]
    assert numbers and all(0 <= value < math.inf for value in numbers)  # 0: kNN after three steps
    assert name != "profile" or "conv" in (tmp_path / "profile.txt").read_text()


def test_a_folder_is_no_cifar_by_its_name(gpu):
    train, test = data.load("digits", limit=20), data.load("digits", "test", limit=20)
    assert gpu.cookbook.named("folder:somewhere", train, test) == "folder:PATH"
    assert train.source == "20 of a folder of pictures"  # as recorded


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--source", "nonsense", "--encoder", "conv16"], "nonsense"),
        ([], "torch sees no GPU"),
        (["--encoder", "resnet99"], "resnet99"),
        (["--steps", "0"], "is 0"),
    ],
)
def test_a_mistake_is_said_in_a_line(gpu, arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gpu.py", "tour", "--out", str(tmp_path), *arguments])
    with pytest.raises(SystemExit) as stopped:
        gpu.main()
    assert stopped.value.code == 2 and said in capsys.readouterr().err

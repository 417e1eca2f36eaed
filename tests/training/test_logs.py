"""Logs in TensorBoard's and Weights & Biases' formats, with stand-ins and, where installed, the real ones."""

import importlib.util
import math
import sys
import types

import pytest

from clutils.training import logs
from tests.runs import advance, small


class StandIn(list):
    """Writes down every call, as (name, arguments, options)."""

    def __getattr__(self, name):
        return lambda *given, **options: self.append((name, given, options)) or self


@pytest.mark.parametrize("kind", logs.KINDS)
def test_what_is_not_installed_is_asked_for_in_a_line(monkeypatch, kind):
    monkeypatch.setitem(sys.modules, logs.KINDS[kind], None)
    with pytest.raises(ValueError, match=rf"{kind} is not installed \(.*\): pip install {kind}"):
        logs.demand(kind)
    with pytest.raises(ValueError, match="log is 'csv', but must be one of tensorboard, wandb"):
        logs.demand("csv")


def test_tensorboard_gets_each_finite_number_and_purges_what_is_done_again(monkeypatch, tmp_path):
    calls = StandIn()
    module = types.SimpleNamespace(SummaryWriter=calls.SummaryWriter)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    run = advance(small(), 2)
    log = logs.open("tensorboard", run, tmp_path)
    log.write(3, {"step": 3, "loss": 1.5, "rankme": math.nan, "seconds": 2.0, "stop": True})
    log.close()
    assert calls[0] == ("SummaryWriter", (str(tmp_path),), {"purge_step": 3})
    assert [call[1] for call in calls if call[0] == "add_scalar"] == [("loss", 1.5, 3), ("stop", 1.0, 3)]
    assert calls[-1][0] == "close"


def test_wandb_stays_offline_unless_told_and_gets_a_step_at_a_time(monkeypatch, tmp_path):
    monkeypatch.delenv("WANDB_MODE", raising=False)
    calls = StandIn()
    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=calls.init))
    run = small()
    log = logs.open("wandb", run, tmp_path / "mine")
    log.write(0, {"rankme": 3.0})
    log.close()
    name, _, options = calls[0]
    assert name == "init" and options["mode"] == "offline" and options["name"] == "mine"
    assert options["config"]["method"] == "simclr" and options["dir"] == str(tmp_path / "mine")
    assert calls[1:] == [("log", ({"rankme": 3.0},), {"step": 0}), ("finish", (), {})]
    monkeypatch.setenv("WANDB_MODE", "online")
    logs.open("wandb", run, tmp_path / "mine")
    assert calls[-1][2]["mode"] == "online"


@pytest.mark.skipif(importlib.util.find_spec("tensorboard") is None, reason="tensorboard is not installed")
def test_tensorboard_itself_reads_what_was_written(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = logs.open("tensorboard", small(), tmp_path)
    log.write(4, {"loss": 1.5})
    log.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(4, 1.5)]


@pytest.mark.skipif(importlib.util.find_spec("wandb") is None, reason="wandb is not installed")
def test_wandb_itself_writes_offline(monkeypatch, tmp_path):
    monkeypatch.delenv("WANDB_MODE", raising=False)
    log = logs.open("wandb", small(), tmp_path)
    log.write(1, {"loss": 1.5})
    log.close()
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))

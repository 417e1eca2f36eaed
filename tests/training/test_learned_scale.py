"""CLIP's learned scale in a run: learned, not decayed, in the history, and in a checkpoint to the bit."""

from __future__ import annotations

import math

import torch

from clutils import losses, training
from tests.runs import advance, same, small, weights


def learning(**settings):
    return small(loss=losses.CLIP(0.07, learned_scale=True), **settings)


def test_the_scale_is_learned_without_weight_decay_and_the_history_shows_it():
    run = learning(weight_decay=0.5, learning_rate=0.05)
    own = [group for group in run.optimiser.param_groups if group["weight_decay"] == 0]
    assert [[id(p) for p in group["params"]] for group in own] == [[id(run.loss.log_scale)]]
    others = {id(p) for group in run.optimiser.param_groups for p in group["params"]}
    assert others == {id(p) for p in run.method.parameters()}
    advance(run, 6)
    shown = run.history["effective_temperature"].tolist()
    assert shown[0] == torch.exp(-torch.tensor(math.log(1 / 0.07))).item() and len(set(shown)) == 6
    assert set(run.history["temperature"]) == {0.07}  # where it starts


def test_a_loss_that_comes_later_is_learned_and_one_that_goes_is_not(tmp_path):
    run = advance(small(loss=losses.CLIP(0.07)), 2)
    run.loss = losses.CLIP(0.1, learned_scale=True)
    advance(run, 2)
    assert run.loss.log_scale.item() != torch.tensor(-math.log(0.1)).item()
    run.save(tmp_path / "run.pt")
    again = training.resume(tmp_path / "run.pt", data=run.data)
    assert same(weights(advance(run, 2)), weights(advance(again, 2)))
    gone = run.loss.log_scale
    run.loss = losses.NTXent(0.2)
    assert all(gone is not p for group in run.optimiser.param_groups for p in group["params"])
    assert gone not in run.optimiser.state
    advance(run, 1)


def test_the_switch_may_be_turned_between_two_steps(tmp_path):
    run = advance(small(loss=losses.CLIP(0.07)), 1)
    run.loss.learned_scale = True
    advance(run, 3)
    assert run.loss.log_scale.item() != torch.tensor(-math.log(0.07)).item()
    run.save(tmp_path / "run.pt")
    again = training.resume(tmp_path / "run.pt", data=run.data)
    assert same(weights(advance(run, 2)), weights(advance(again, 2)))
    run.loss.learned_scale = False
    advance(run, 2)
    assert not any(group.get("of_loss") for group in run.optimiser.param_groups)

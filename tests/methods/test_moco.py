"""MoCo: a queue first in, first out, keys that enter after the loss, an encoder of keys that only follows."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

from clutils import encoders, losses, methods, training
from tests.losses import oracles
from tests.methods.steps import VECTORS, Fixed, built, views_of
from tests.runs import small


def method(**settings) -> methods.MoCo:
    return built(methods.MoCo, losses.NTXent(temperature=0.3), out=8, **settings)


def views(number: int) -> list[torch.Tensor]:
    """Of the batch of a step with this number."""
    return views_of(VECTORS[number * 7 :][:7], 2, number)


def step(moco: methods.MoCo, number: int) -> tuple[float, torch.Tensor]:
    """A step of plain descent on a batch of its own; the loss and the keys it made."""
    loss, queries, keys = moco(VECTORS[:7], Fixed(*views(number)), torch.Generator())
    assert not queries.requires_grad and not keys.requires_grad
    moco.zero_grad()
    loss.backward()
    with torch.no_grad():
        for group in moco.parameter_groups():
            for weight in group["params"]:
                weight -= 0.05 * weight.grad
    moco.after_step()
    return loss.item(), keys


def test_the_queue_is_first_in_first_out_round_its_end():
    moco = method(queue_size=17)  # no multiple of the batch
    expected = list(moco.queue.clone())
    place = 0
    for number in range(6):
        _, keys = step(moco, number)
        for key in keys:
            expected[place % 17] = key / key.norm()
            place += 1
        torch.testing.assert_close(moco.queue, torch.stack(expected), rtol=0, atol=1e-6)
        assert int(moco.next_place) == place % 17
    assert place > 2 * 17


def test_the_queue_starts_with_unit_vectors_of_the_runs_own_stream():
    own = {"queue_size": 64}
    settings = {"method": "moco", "data": "vectors:digits", "batch_size": 8, "method_settings": own}
    first, again, other = (training.Run(**settings, seed=seed) for seed in (0, 0, 1))
    queue = first.method.queue
    torch.testing.assert_close(queue.norm(dim=1), torch.ones(64))
    assert torch.equal(queue, again.method.queue)
    assert not torch.equal(queue, other.method.queue)
    assert (queue @ queue.T).fill_diagonal_(0).abs().max() < 0.6  # spread out, not one point


def test_the_loss_is_against_the_queue_as_it_was_before_the_steps_own_keys():
    moco = method(queue_size=20)
    for number in range(4):
        before, query_side = moco.queue.clone(), copy.deepcopy((moco.encoder, moco.head))
        key_side = copy.deepcopy((moco.target_encoder, moco.target_head))
        first, second = views(number)
        with torch.no_grad():
            queries, keys = query_side[1](query_side[0](first)), key_side[1](key_side[0](second))
        rows = oracles.rows_of_a_queue(queries.tolist(), keys.tolist(), before.tolist())
        loss, _ = step(moco, number)
        assert loss == pytest.approx(oracles.written(losses.NTXent(0.3), rows).mean().item(), rel=1e-10)


def test_a_step_keeps_no_copy_of_the_queue_and_state_dict_holds_all_of_it():
    moco = method(queue_size=16)
    assert not {id(moco.queue), id(moco.next_place)} & {id(b) for b in moco.changing_buffers()}
    with_normalisation = methods.MoCo(encoders.build("conv16", channels=1), losses.NTXent(), queue_size=16)
    running = [n for n, _ in with_normalisation.named_buffers() if "running_mean" in n]
    assert len(running) == 2 * 4 and len(with_normalisation.changing_buffers()) == 3 * 2 * 4
    state = moco.state_dict()
    assert {"queue", "next_place"} < state.keys()
    assert any(name.startswith("target_encoder.") for name in state)


def test_version_1_has_a_linear_head_and_its_own_temperature():
    kinds = [type(module) for module in method(version=2).head]
    assert kinds == [nn.Linear, nn.ReLU, nn.Linear]
    assert isinstance(method(version=1).head, nn.Linear)
    assert [type(module) for module in built(methods.SimCo).head] == kinds
    temperatures = [methods.MoCo.default_loss(version=version).temperature for version in (1, 2)]
    assert temperatures == [0.07, 0.2]


def test_chance_is_that_of_the_queue_whatever_the_batch():
    assert method(queue_size=100).chance(7) == pytest.approx(math.log(101))


def test_once_the_queue_is_full_of_real_keys_the_loss_falls():
    settings = {"queue_size": 512}
    run = training.Run(method="moco", data="digits", batch_size=128, steps=50, method_settings=settings)
    losses_of = run.finish(progress=False).history.loss
    assert losses_of[0] < losses_of[5:10].mean()  # random keys are easier to tell apart than real ones
    assert losses_of[-5:].mean() < 0.98 * losses_of[5:10].mean()


@pytest.mark.parametrize("name", ["moco", "nnclr"])
def test_a_batch_that_does_not_fit_into_the_queue_is_refused_before_the_first_step(name):
    own = {"queue_size": 16}
    said = "a batch of 17 does not fit into a queue of 16: a smaller batch, or queue_size 17 at least"
    for method, given in ((name, own), ("pinda", {"base": name, "base_settings": own})):
        with pytest.raises(ValueError, match=said):
            training.Run(method=method, data="digits", batch_size=17, steps=1, method_settings=given)
    with pytest.raises(ValueError, match=said):
        built(methods.catalogue()[name].cls, queue_size=16)(VECTORS[:17], Fixed(), torch.Generator())


@pytest.mark.parametrize("size", [4096, 64])
def test_a_queue_larger_than_the_data_is_said_with_one_that_suits(capsys, size):
    small(method="moco", method_settings={"queue_size": size}, steps=1).finish(progress=False)
    said = (
        "queue of 4,096 keys holds each of the 100 images 41.0 times, as negatives of itself: queue_size 64"
    )
    assert (said in capsys.readouterr().out) == (size == 4096)

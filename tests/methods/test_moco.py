"""MoCo: a queue first in, first out, keys that enter after the loss, an encoder of keys that only follows."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

from clutils import data, encoders, losses, methods, training
from tests.losses.inputs import fails

VECTORS = data.load("vectors:digits", limit=96)


def noisy(vectors, generator):
    return vectors + torch.rand(vectors.shape, generator=generator)


def method(loss: nn.Module | None = None, **settings) -> methods.MoCo:
    torch.manual_seed(0)
    loss = losses.NTXent(temperature=0.3) if loss is None else loss
    return methods.MoCo(encoders.MLP(64, 32, 16), loss, out=8, **settings).train()


def step(moco: methods.MoCo, number: int, batch: int = 7, rate: float = 0.05) -> tuple[float, torch.Tensor]:
    """A step of plain descent on a batch of its own; the loss and the keys it made."""
    generator = torch.Generator().manual_seed(number)
    images = VECTORS.vectors[number * batch : (number + 1) * batch]
    loss, _, keys = moco(images, noisy, generator)
    moco.zero_grad()
    loss.backward()
    with torch.no_grad():
        for group in moco.parameter_groups():
            for weight in group["params"]:
                weight -= rate * weight.grad
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
    settings = {"method": "moco", "data": VECTORS, "batch_size": 8, "method_settings": {"queue_size": 64}}
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
        images = VECTORS.vectors[number * 7 : (number + 1) * 7]
        generator = torch.Generator().manual_seed(number)
        first, second = noisy(torch.cat([images, images]), generator).chunk(2)
        with torch.no_grad():
            queries = normalize(query_side[1](query_side[0](first)), dim=1).double()
            keys = normalize(key_side[1](key_side[0](second)), dim=1).double()
        total = 0.0
        for q, k in zip(queries, keys, strict=True):
            positive = math.exp(float(q @ k) / 0.3)
            negatives = sum(math.exp(float(q @ n) / 0.3) for n in before.double())
            total -= math.log(positive / (positive + negatives)) / 7
        loss, _ = step(moco, number)
        assert loss == pytest.approx(total, abs=1e-5)


def test_the_keys_network_follows_the_momentum_equation():
    moco = method(queue_size=16, momentum=0.9).double()
    targets = [*moco.target_encoder.parameters(), *moco.target_head.parameters()]
    online = [*moco.encoder.parameters(), *moco.head.parameters()]
    draw = torch.Generator().manual_seed(1)
    expected = [target.detach().clone() for target in targets]
    for momentum in (0.9, 0.999, 0.0, 1.0, 0.5):
        moco.momentum = momentum
        with torch.no_grad():
            for weight in online:
                weight += torch.randn(weight.shape, generator=draw, dtype=torch.float64)
        moco.entering = torch.zeros(4, 8, dtype=torch.float64)
        moco.after_step()
        for e, w in zip(expected, online, strict=True):
            flat, weight = e.view(-1), w.detach().reshape(-1)
            for i in range(len(flat)):
                flat[i] = momentum * float(flat[i]) + (1 - momentum) * float(weight[i])
        for target, e in zip(targets, expected, strict=True):
            torch.testing.assert_close(target.detach(), e, rtol=0, atol=1e-7)


def test_the_keys_network_starts_as_the_queries_and_then_lags_behind():
    moco = method(queue_size=16, momentum=0.9)
    assert all(map(torch.equal, moco.encoder.parameters(), moco.target_encoder.parameters()))
    start = [p.detach().clone() for p in moco.encoder.parameters()]
    step(moco, 0)
    for begun, weight, target in zip(
        start, moco.encoder.parameters(), moco.target_encoder.parameters(), strict=True
    ):
        torch.testing.assert_close(target - begun, 0.1 * (weight.detach() - begun), rtol=1e-3, atol=1e-7)


def test_no_gradient_reaches_keys_queue_or_their_network():
    moco = method(queue_size=16)
    frozen = [*moco.target_encoder.parameters(), *moco.target_head.parameters(), moco.queue]
    loss, queries, keys = moco(VECTORS.vectors[:7], noisy, torch.Generator().manual_seed(0))
    loss.backward()
    assert not any(tensor.requires_grad or tensor.grad is not None for tensor in frozen)
    assert not queries.requires_grad and not keys.requires_grad
    moved = {id(p) for group in moco.parameter_groups() for p in group["params"]}
    assert moved == {id(p) for module in (moco.encoder, moco.head) for p in module.parameters()}


def test_the_first_view_is_the_query_and_its_gradient_reaches_what_made_it():
    shifts = [torch.zeros(64, requires_grad=True) for _ in range(2)]

    class Learned:
        """Views with a shift each, as a learned noise would be."""

        def several_views(self, images, generator, number):
            return [images + shift for shift in shifts]

    method(queue_size=16)(VECTORS.vectors[:7], Learned(), torch.Generator())[0].backward()
    assert shifts[0].grad.abs().sum() > 0 and shifts[1].grad is None


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
    temperatures = [methods.MoCo.default_loss(version=version).temperature for version in (1, 2)]
    assert temperatures == [0.07, 0.2]


def test_chance_is_that_of_the_queue_whatever_the_batch():
    assert method(queue_size=100).chance(7) == pytest.approx(math.log(101))


@pytest.mark.parametrize(
    "loss", [losses.MACL(), losses.SSCL(beta=0.2, class_prior=0.0, hardest=1024, synthetic=1024)]
)
def test_macl_and_sscl_descend_against_the_queue(loss):
    moco = method(loss, queue_size=2048)
    values = [step(moco, number, rate=0.01)[0] for number in range(3)]
    assert all(map(math.isfinite, values))
    assert loss.compare(*torch.randn(2, 7, 8), queue=moco.queue).negatives.shape[1] in (2048, 2048 + 1024)


def test_settings_that_can_not_be_are_quoted():
    fails(lambda: method(queue_size=0), "queue_size is 0", "whole number from 1")
    fails(lambda: method(momentum=1.5), "momentum is 1.5", "from 0 to 1")
    fails(lambda: method(version=3), "version is 3", "1 or 2")
    moco = method(queue_size=16)
    fails(lambda: step(moco, 0, batch=17), "batch of 17", "queue of 16", "queue_size 17 at least")
    step(moco, 0, batch=16)
    moco.momentum = -0.1
    fails(lambda: step(moco, 1), "momentum is -0.1")


def test_once_the_queue_is_full_of_real_keys_the_loss_falls():
    settings = {"queue_size": 512}
    run = training.Run(method="moco", data="digits", batch_size=128, steps=50, method_settings=settings)
    losses_of = run.finish(progress=False).history.loss
    assert losses_of[0] < losses_of[5:10].mean()  # random keys are easier to tell apart than real ones
    assert losses_of[-5:].mean() < 0.98 * losses_of[5:10].mean()


@pytest.mark.parametrize("settings", [("moco", {}), ("pinda", {"base": "moco"})], ids=["moco", "pinda on it"])
def test_a_batch_that_does_not_fit_into_the_queue_is_refused_before_the_first_step(settings):
    name, given = settings
    own = {"queue_size": 16}
    given = given | {"base_settings": own} if name == "pinda" else own
    with pytest.raises(ValueError, match="a batch of 17 does not fit into a queue of 16"):
        training.Run(method=name, data="digits", batch_size=17, steps=1, method_settings=given)

"""A batch in blocks of anchors: the whole table's value and gradient, without the table."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from clutils import losses, similarities
from clutils.course import records
from clutils.losses import base
from tests.losses.inputs import SETTINGS, embeddings, fails, one_each

LOSSES = [losses.NTXent, losses.Decoupled]
WHOLE = 10**9  # anchors at a time: more than any batch here has
EVERY = [
    # the others are of a whole batch by what they are, or by the state that they keep of each sample
    *(loss for loss in SETTINGS if loss.level != "batch" and "index" not in loss.accepts),
    *(losses.SSCL(0.3, hardest=4, synthetic=5), losses.SSCL(0.3, hardest=4, synthetic=5, normalise=True)),
    *(losses.MoCHi(0.3, hardest=4, synthetic=5, query_mixed=3), losses.Robust(0.0)),
]


def views(*shape, **drawn):
    return tuple(z.requires_grad_() for z in embeddings(*shape, **drawn))


def compared(loss):
    """Arguments beside two views of 11 images: name -> arguments."""
    further = {"two views": {}}
    further["queue"] = {"queue": views(7, 6, seed=3)[0].detach()}
    further["labels"] = {"labels": torch.arange(11) % 4}
    further["extra_views"] = {"extra_views": torch.stack(views(11, 6, seed=5), dim=1).detach()}
    return {name: given for name, given in further.items() if set(given) <= loss.accepts}


CASES = [
    pytest.param(*case.values, name, id=f"{case.id}-{name}", marks=case.marks)
    for case in one_each(EVERY)
    for name in compared(*case.values)
]


def by_blocks(loss, block_size, dtype=torch.float64, name="two views", **autograd):
    """Value and gradients of a batch, with the same draws whatever the blocks."""
    inputs = [z.detach().to(dtype).requires_grad_() for z in views(11, 6)]
    given = {key: t.to(dtype) if t.is_floating_point() else t for key, t in compared(loss)[name].items()}
    inputs += [t.requires_grad_() for key, t in given.items() if key == "extra_views"]
    loss.block_size = block_size
    if hasattr(loss, "generator"):
        loss.generator = torch.Generator().manual_seed(0)
    value = loss(*inputs[:2], **given)
    once = torch.autograd.grad(value, inputs, **autograd)
    loss.block_size = None
    return [value, *once], inputs


@pytest.mark.parametrize(("loss", "name"), CASES)
@pytest.mark.parametrize("block_size", [pytest.param(1, marks=pytest.mark.sweep), 6, WHOLE])
def test_every_loss_in_blocks_is_its_formula_on_who_is_compared(loss, name, block_size):
    """By plain autograd over the whole tables: `compare`, then `formula`; a second derivative too."""
    blocks, inputs = by_blocks(loss, block_size, name=name, create_graph=True)
    given = compared(loss)[name] | ({"extra_views": inputs[2]} if len(inputs) > 2 else {})
    if hasattr(loss, "generator"):
        loss.generator = torch.Generator().manual_seed(0)
    pairs = loss.compare(*inputs[:2], **given)
    value = loss.formula(pairs).mean()
    plain = [value, *torch.autograd.grad(value, inputs, create_graph=True)]
    assert_same(blocks, plain, 1e-11)
    twice = [torch.autograd.grad(sum(g.square().sum() for g in each[1:]), inputs) for each in (blocks, plain)]
    assert_same(*twice, 1e-9)
    narrow = by_blocks(loss, block_size, torch.float32, name)[0]
    assert_same(narrow, by_blocks(loss, WHOLE, torch.float32, name)[0], 1e-5)
    if not hasattr(loss, "generator"):  # which draws other numbers in float32
        assert_same([t.double() for t in narrow], plain, 1e-5)


def test_a_temperature_set_between_two_calls_is_that_of_the_next_and_of_no_gradient_before():
    z1, z2 = views(9, 4)
    loss = losses.NTXent(0.2)
    loss.block_size = 4
    value = loss(z1, z2)
    loss.temperature = 0.7
    once = torch.autograd.grad(value, (z1, z2), create_graph=True)
    assert_same(once, value_and_gradient(losses.NTXent(0.2), z1, z2, WHOLE)[1:], 1e-12)
    assert_same([loss(z1, z2)], [losses.NTXent(0.7)(z1, z2)], 1e-12)


def test_macl_counts_a_call_once_and_shows_the_temperature_of_the_whole_batch():
    z1, z2 = views(20, 4)
    loss = losses.MACL(0.1, 0.9, 0.2)
    loss.block_size = 6
    loss(z1, z2)
    mean = float(torch.nn.functional.cosine_similarity(z1, z2).detach().mean())
    assert loss.calls == 1
    assert float(loss.adaptive_temperature) == pytest.approx(0.1 * (1 + 0.9 * (mean - 0.2)))


@pytest.mark.parametrize("queue", [None, views(7, 4, seed=3)[0].detach()])
@pytest.mark.parametrize("block_size", [1, 6, 100])
def test_robust_shows_the_temperatures_of_all_anchors_in_the_order_of_the_batch(queue, block_size):
    z1, z2 = views(20, 4)
    loss = losses.Robust(0.5)
    loss.block_size = block_size
    loss(z1, z2, queue=queue)
    table = losses.Robust(0.5)
    table.formula(table.compare(z1, z2, queue=queue))
    assert loss.effective_temperature.shape == (40 if queue is None else 20,)
    torch.testing.assert_close(loss.effective_temperature, table.effective_temperature, rtol=1e-9, atol=0)
    assert len(set(loss.effective_temperature.tolist())) > 15  # so that an order is seen


def test_a_gradient_of_the_gradient_leaves_the_temperatures_of_the_last_call():
    z1, z2 = views(9, 4)
    loss = losses.Robust(0.5)
    loss.block_size = 4
    value = loss(z1, z2)
    loss(*views(5, 4, seed=1))
    kept = loss.effective_temperature
    torch.autograd.grad(value, (z1, z2), create_graph=True)
    assert loss.effective_temperature is kept and len(kept) == 10


@pytest.mark.parametrize("kind", [losses.SogCLR, losses.ISogCLR])
def test_a_state_per_sample_moves_once_a_call_whatever_the_block_size(kind):
    z1, z2 = views(11, 4)
    found = []
    for block_size in (2, None):
        loss = kind(temperature=0.3)
        loss.allocate(11)
        loss.block_size = block_size
        values = [loss(z1, z2, index=torch.arange(11).flip(0)).item() for _ in range(3)]
        found.append([values, *(state.tolist() for state in loss.buffers())])
    assert found[0] == found[1]


def value_and_gradient(loss, z1, z2, block_size):
    loss.block_size = block_size
    value = loss(z1, z2)
    return value.detach(), *torch.autograd.grad(value, (z1, z2))


def assert_same(found, expected, tolerance):
    """Each tensor to a tolerance relative to the expected one's largest entry."""
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        a, b = a.detach(), b.detach()
        assert float((a - b).abs().max()) <= tolerance * max(float(b.abs().max()), 1e-30)


@pytest.mark.parametrize("Loss", LOSSES)
def test_a_large_batch_is_taken_in_blocks_by_default_and_is_exact(Loss, monkeypatch):
    monkeypatch.setattr(base, "WHOLE", 2**18)
    monkeypatch.setattr(base, "PART", 2**16)
    z1, z2 = views(300, 16, dtype=torch.float32)
    with Largest() as largest:
        blocks = value_and_gradient(Loss(), z1, z2, None)
    assert_same(blocks, value_and_gradient(Loss(), z1, z2, WHOLE), 1e-5)
    assert largest.numbers <= 2**16 < 600**2 / 2


class Largest(TorchDispatchMode):
    """The most numbers that any one tensor made under it holds."""

    numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else [made]:
            if isinstance(tensor, torch.Tensor):
                self.numbers = max(self.numbers, tensor.numel())
        return made


@pytest.mark.parametrize("loss", one_each(EVERY))
def test_no_tensor_is_larger_than_a_block_forward_or_backward(loss):
    z1, z2 = views(128, 4, dtype=torch.float32)
    held = {}
    for block_size in (16, WHOLE):
        with Largest() as largest:
            value_and_gradient(loss, z1, z2, block_size)
        held[block_size] = largest.numbers
    loss.block_size = None
    columns = 254 + 10  # mixes among them, and a column of zeros where sums are taken
    assert held[16] <= 16 * columns
    # what the whole table takes, so that the counter is seen to count; each way may have its own, and so
    # may what a loss mixes
    ways = 2 if loss.comparison == "other view" else 1
    anchors = len(loss.compare(z1, z2).positives)
    assert ways * held[WHOLE] >= anchors * similarities.count(128, loss.comparison)


@pytest.mark.parametrize("block_size", [0, -3, 2.5, True, "all", torch.tensor(0)])
def test_a_block_size_that_is_none_is_refused_by_name(block_size):
    loss = losses.NTXent(0.1)
    loss(*views(4, 3))  # which has checked what was set by then
    loss.block_size = block_size
    fails(lambda: loss(*views(4, 3)), f"NTXent: block_size is {block_size!r}, but must be a whole number")


def test_the_record_shows_plain_tensors_near_plain_lines_and_faster_than_other_libraries():
    table = records.read("loss_speed").groupby(["loss", "beside", "batch_size"], as_index=False).last()
    of_others = table[table["beside"].str.contains("lightly|metric")]
    assert {64, 256, 1024} <= set(of_others["batch_size"]) and (of_others["time_ratio"] < 1).all()
    nt_xent = table.query("loss == 'NTXent' and beside == 'plain lines'")
    assert (nt_xent.query("batch_size < 128")["time_ratio"] <= 1.9).all()
    assert (nt_xent.query("128 <= batch_size <= 1024")["time_ratio"] <= 1.5).all()
    ready = table[table["beside"] == "ready-made tables"]
    assert len(ready) >= 10 and (ready.query("batch_size >= 128")["time_ratio"] <= 1.15).all()


def test_what_a_formula_draws_is_the_same_when_a_block_is_computed_again(monkeypatch):
    weights = []

    def drawing(self, pairs):
        weights.append(torch.rand(len(pairs.positives), 1, dtype=pairs.positives.dtype))
        return (weights[-1] * pairs.positives).mean(dim=1)

    monkeypatch.setattr(losses.NTXent, "formula", drawing)
    loss, z = losses.NTXent(0.5), torch.randn(12, 5, requires_grad=True)
    loss.block_size = 8
    value = loss(z, z.detach().flip(1))
    first = list(weights)
    value.backward()
    again = weights[len(first) :]
    assert len(first) == len(again) == 3
    assert all(any(torch.equal(one, other) for other in again) for one in first)

"""The block-wise form of a loss: the whole table's value and gradient, without the table."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from clutils import losses
from clutils.course import records
from tests.losses import oracles

LOSSES = [losses.NTXent, losses.Decoupled]
ORACLES = {losses.NTXent: oracles.nt_xent, losses.Decoupled: oracles.decoupled}


def views(batch, dimension, seed=0, dtype=torch.float64):
    draw = torch.Generator().manual_seed(seed)
    return tuple(
        torch.randn(batch, dimension, generator=draw, dtype=dtype).requires_grad_() for _ in range(2)
    )


def value_and_gradient(loss, z1, z2, block_size):
    loss.block_size = block_size
    value = loss(z1, z2)
    return value.detach(), *torch.autograd.grad(value, (z1, z2))


def assert_same(found, expected, tolerance):
    """Each tensor to a tolerance relative to the expected one's largest entry."""
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        assert float((a - b).abs().max()) <= tolerance * max(float(b.abs().max()), 1e-30)


def same_as_whole(loss, z1, z2, block_size, tolerance):
    blocks = value_and_gradient(loss, z1, z2, block_size)
    assert_same(blocks, value_and_gradient(loss, z1, z2, None), tolerance)
    return blocks


@pytest.mark.parametrize("Loss", LOSSES)
@pytest.mark.parametrize("block_size", [1, 5, 12, 100])
def test_the_value_is_the_papers_in_plain_loops(Loss, block_size):
    z1, z2 = views(6, 5)
    rows = oracles.rows_of_a_batch(z1.tolist(), z2.tolist())
    expected = sum(ORACLES[Loss](p, n, 0.3) for p, n in rows) / len(rows)
    loss = Loss(0.3)
    loss.block_size = block_size
    assert loss(z1, z2).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("Loss", LOSSES)
@pytest.mark.parametrize("block_size", [1, 5, 12])
def test_the_gradient_is_that_of_plain_loops_by_finite_differences(Loss, block_size):
    z1, z2 = views(6, 3)
    loss = Loss(0.3)
    _, found, _ = value_and_gradient(loss, z1, z2, block_size)

    def oracle(a):
        rows = oracles.rows_of_a_batch(a.tolist(), z2.tolist())
        return sum(ORACLES[Loss](p, n, 0.3) for p, n in rows) / len(rows)

    for i in range(6):
        for d in range(3):
            step = torch.zeros_like(z1.detach())
            step[i, d] = 1e-5
            slope = (oracle(z1.detach() + step) - oracle(z1.detach() - step)) / 2e-5
            assert float(found[i, d]) == pytest.approx(slope, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("Loss", LOSSES)
@given(
    batch=st.integers(2, 20),
    dimension=st.integers(1, 12),
    block_size=st.integers(1, 50),
    temperature=st.floats(-6, 6).map(lambda power: 10.0**power),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=150, deadline=None)
def test_blocks_of_any_size_are_the_whole_table_in_float64(
    Loss, batch, dimension, block_size, temperature, seed
):
    """In one dimension, or when very cold, gradients vanish: then what rounding leaves is compared."""
    z1, z2 = views(batch, dimension, seed)
    whole = value_and_gradient(Loss(temperature), z1, z2, None)
    blocks = value_and_gradient(Loss(temperature), z1, z2, block_size)
    # logits are as large as 1/τ, and a gradient as large as 1/(τ |z|): rounding is relative to those
    shortest = min(float(z.detach().norm(dim=1).min()) for z in (z1, z2))
    assert abs(blocks[0] - whole[0]) <= 1e-12 * max(1.0, 1 / temperature)
    for a, b in zip(blocks[1:], whole[1:], strict=True):
        assert float((a - b).abs().max()) <= 1e-12 * max(1.0, 1 / temperature) / temperature / shortest


@pytest.mark.parametrize("Loss", LOSSES)
@pytest.mark.parametrize("temperature", [0.05, 0.1, 0.5, 2.0])
def test_blocks_are_the_whole_table_to_1e_12_in_float64_and_1e_5_in_float32(Loss, temperature):
    z1, z2 = views(150, 32)
    exact = same_as_whole(Loss(temperature), z1, z2, 64, 1e-12)
    z1, z2 = (z.detach().float().requires_grad_() for z in (z1, z2))
    single = same_as_whole(Loss(temperature), z1, z2, 64, 1e-5)
    assert_same([t.double() for t in single], exact, 1e-5)


@pytest.mark.parametrize("Loss", LOSSES)
def test_the_default_is_blocks_and_a_batch_of_more_than_one_block_is_exact(Loss):
    assert Loss().block_size == 512
    z1, z2 = views(600, 16, dtype=torch.float32)
    same_as_whole(Loss(), z1, z2, Loss.block_size, 1e-5)


@pytest.mark.parametrize("Loss", LOSSES)
@pytest.mark.parametrize("temperature", [1e-6, 1e-3, 0.05, 1.0, 1e6])
@pytest.mark.parametrize("angle", ["same views", "opposite views", "random"])
def test_every_temperature_gives_finite_values_and_gradients_in_float32(Loss, temperature, angle):
    z1, z2 = views(9, 4, dtype=torch.float32)
    if angle != "random":
        z2 = (z1.detach() * (1 if angle == "same views" else -1)).requires_grad_()
    for found in value_and_gradient(Loss(temperature), z1, z2, 4):
        assert found.isfinite().all()


def test_an_easy_batch_keeps_its_value_and_a_pull_that_float32_would_round_away():
    """c is about -40 for each anchor, where 1 - p+ is 0 in float32: the loss is W itself, not 0."""
    z1 = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    z2 = z1.clone()
    z1.requires_grad_()
    loss = losses.NTXent(0.05)
    loss.block_size = 1
    value = loss(z1, z2)
    assert value.item() == pytest.approx(2 * math.exp(-40.0), rel=1e-5)
    hard = torch.tensor([[1.0, 0.1], [-1.0, 0.0]], requires_grad=True)
    blocks = value_and_gradient(loss, hard, z2.requires_grad_(), 1)
    whole = value_and_gradient(
        loss, hard.detach().double().requires_grad_(), z2.detach().double().requires_grad_(), None
    )
    assert float(blocks[1].abs().max()) > 0
    assert_same([t.double() for t in blocks], whole, 1e-4)  # logits of 40 carry an error of 4e-6 into e^c


@pytest.mark.parametrize("Loss", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_widened_and_its_gradient_comes_back_in_its_own_type(Loss, dtype):
    z1, z2 = (z.detach().to(dtype).requires_grad_() for z in views(20, 8))
    wide = [z.detach().float().requires_grad_() for z in (z1, z2)]
    loss = Loss(0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss(z1, z2)
    value.backward()
    expected = value_and_gradient(loss, *wide, None)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value.detach(), expected[0])
    torch.testing.assert_close(z1.grad, expected[1].to(dtype), rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("Loss", LOSSES)
def test_one_view_alone_may_ask_for_a_gradient_and_a_factor_scales_it(Loss):
    z1, z2 = views(10, 4)
    loss = Loss(0.2)
    _, first, second = value_and_gradient(loss, z1, z2, 3)
    (alone,) = torch.autograd.grad(3 * loss(z1.detach(), z2), z2)
    torch.testing.assert_close(alone, 3 * second)
    (alone,) = torch.autograd.grad(loss(z1, z2.detach()), z1)
    torch.testing.assert_close(alone, first)
    with torch.no_grad():
        assert not loss(z1, z2).requires_grad


@pytest.mark.parametrize("Loss", LOSSES)
def test_a_second_derivative_is_the_whole_tables(Loss):
    z1, z2 = views(5, 3)
    found = {}
    for block_size in (4, None):
        loss = Loss(0.2)
        loss.block_size = block_size
        once = torch.autograd.grad(2 * loss(z1, z2), (z1, z2), create_graph=True)
        twice = torch.autograd.grad(sum(g.square().sum() for g in once), (z1, z2))
        found[block_size] = [t.detach() for t in (*once, *twice)]
    assert_same(found[4], found[None], 1e-12)


@pytest.mark.parametrize("Loss", LOSSES)
def test_the_same_batch_gives_the_same_bits(Loss):
    z1, z2 = views(300, 64, dtype=torch.float32)
    first, second = (value_and_gradient(Loss(0.1), z1, z2, 128) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b)


class Largest(TorchDispatchMode):
    """The most numbers that any one tensor made under it holds."""

    numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else [made]:
            if isinstance(tensor, torch.Tensor):
                self.numbers = max(self.numbers, tensor.numel())
        return made


@pytest.mark.parametrize("Loss", LOSSES)
def test_no_tensor_is_larger_than_a_block_forward_or_backward(Loss):
    z1, z2 = views(256, 4, dtype=torch.float32)
    held = {}
    for block_size in (32, None):
        with Largest() as largest:
            value_and_gradient(Loss(0.1), z1, z2, block_size)
        held[block_size] = largest.numbers
    assert held[32] == 32 * 512
    assert held[None] >= 512 * 510  # what the whole table takes, so that the counter is seen to count


@pytest.mark.parametrize("Loss", LOSSES)
@pytest.mark.parametrize(
    ("z1", "z2", "message"),
    [
        (torch.ones(1, 3), torch.ones(1, 3), r"a batch of 1"),
        (torch.ones(4, 3), torch.ones(3, 3), r"z1 is \(4, 3\) but z2 is \(3, 3\)"),
        (torch.zeros(4, 3), torch.ones(4, 3), r"z1 \(4, 3\): row 0 is a zero vector"),
        (torch.ones(4, 3), torch.full((4, 3), torch.nan), r"z2 \(4, 3\): row 0 holds NaN"),
    ],
)
def test_bad_input_is_refused_in_the_same_words_as_without_blocks(Loss, z1, z2, message):
    said = []
    for block_size in (7, None):
        loss = Loss(0.1)
        loss.block_size = block_size
        with pytest.raises(ValueError, match=message) as error:
            loss(z1, z2)
        said.append(str(error.value))
    assert said[0] == said[1]


@pytest.mark.parametrize("block_size", [0, -3, 2.5, True, "all"])
def test_a_block_size_that_is_none_is_refused_by_name(block_size):
    loss = losses.NTXent(0.1)
    loss.block_size = block_size
    with pytest.raises(
        ValueError, match=rf"NTXent: block_size is {block_size!r}, but must be a whole number"
    ):
        loss(*views(4, 3))


def test_a_loss_without_a_block_wise_form_says_so():
    loss = losses.MACL()
    loss.block_size = 8
    with pytest.raises(ValueError, match="MACL has no block-wise form: block_size is 8"):
        loss(*views(4, 3))


def test_a_subclass_with_its_own_formula_is_computed_by_that_formula():
    class Doubled(losses.NTXent):
        def formula(self, pairs):
            return 2 * super().formula(pairs)

    z1, z2 = views(4, 3)
    assert Doubled(0.2)(z1, z2).item() == pytest.approx(2 * losses.NTXent(0.2)(z1, z2).item(), rel=1e-12)


def test_a_queue_is_compared_by_the_formula_alone():
    q, k = views(5, 4)
    queue = views(7, 4, seed=9)[0].detach()
    loss = losses.NTXent(0.2)
    rows = oracles.rows_of_a_queue(q.tolist(), k.tolist(), queue.tolist())
    expected = sum(oracles.nt_xent(p, n, 0.2) for p, n in rows) / len(rows)
    assert loss(q, k, queue=queue).item() == pytest.approx(expected, rel=1e-10)


def recorded(part):
    """The last recorded row of each comparison of benchmarks/losses.py."""
    table = records.read("loss_speed").query(f"part == '{part}'")
    return table.groupby(["loss", "beside", "batch_size"]).tail(1)


def test_the_record_shows_both_losses_beside_lightlys_no_slower_and_no_larger_at_any_size():
    table = recorded("lightly")
    assert set(zip(table["loss"], table["batch_size"], strict=True)) == {
        (loss, batch) for loss in ("NTXent", "Decoupled") for batch in (256, 1024, 4096)
    }
    assert (table["time_ratio"] <= 1).all()
    assert (table.query("batch_size >= 1024")["time_ratio"] <= 0.75).all()
    assert (table["memory_ratio"] <= 1).all()


def test_the_record_shows_an_eighth_of_the_whole_tables_memory_at_8192_pairs():
    table = recorded("blocks").query("batch_size == 8192")
    assert set(table["loss"]) == {"NTXent", "Decoupled"}
    assert (table["memory_ratio"] <= 1 / 8).all()

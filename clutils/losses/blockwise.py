"""A batch's mean loss in blocks of anchors, so that the whole table of similarities never exists.

An anchor's loss is a function of its own row of the table. A block of rows is made, its values and their
gradient are taken, and it is gone before the next: memory grows with B instead of B², and no row is made
twice. A table that is small is one block.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from clutils.similarities import Batch, Everyone

NUMBERS, FEWEST = 2**19, 256  # of a block's table, for the cache; anchors, to keep the matrix products busy
ON_A_GPU = 2**24  # where few and large operations are quickest


def mean(loss: Any, batch: Batch) -> Tensor:
    """Mean of `loss.formula` over a batch's anchors, a scalar: `loss.block_size` of them at a time.

    The gradient is found along with the value, where one is asked for. A derivative of the gradient
    (create_graph=True) is right too, but takes the whole table.
    """
    pictures, everyone = len(batch.z1), batch.everyone
    views = loss.anchor_views(batch.queue)
    columns = len(everyone.z if batch.queue is None else batch.queue)
    size = loss.block_size or max(FEWEST, (ON_A_GPU if batch.z1.is_cuda else NUMBERS) // columns)
    known = loss.of_the_batch((batch.z1 * batch.z2).sum(dim=1))
    temperatures: list[Tensor] = []

    def total(of: Any, block: slice, given: Sequence[Any]) -> Tensor:
        z1, z2, extra_views, *shared = given
        drawn = tuple(d.unflatten(0, (views, pictures))[:, block].flatten(0, 1) for d in batch.drawn)
        part = replace(batch, z1=z1, z2=z2, extra_views=extra_views, drawn=drawn, everyone=Everyone(*shared))
        pairs = of.pair_up(replace(part, pictures=batch.pictures[block]))
        values = of.formula(replace(pairs, once=of is loss), **known)
        if of is loss and loss.own_temperatures:
            temperatures.append(loss.effective_temperature.unflatten(0, (views, -1)))
        return values.sum()

    tensors = batch.z1, batch.z2, batch.extra_views, everyone.rest, everyone.ends, everyone.z
    value = _Blockwise.apply(loss, total, max(1, size // views), *tensors) / (views * pictures)
    if temperatures:  # those of view 1 first, as in one table
        loss.effective_temperature = torch.cat(temperatures, dim=1).flatten()
    return value


class _Blockwise(torch.autograd.Function):
    """Σ of `total` over blocks of pictures: of three tensors a block has its rows, of others all."""

    @staticmethod
    def forward(ctx: Any, loss: Any, total: Callable[..., Tensor], size: int, *tensors: Any) -> Tensor:
        wanted = [n for n, needed in enumerate(ctx.needs_input_grad[3:]) if needed]
        leaves: list[Any] = [None if t is None else t.detach() for t in tensors]
        value: Tensor = tensors[0].new_zeros(())
        rows: list[list[Tensor]] = [[], [], []]
        gradients: list[Any] = [None] * len(tensors)
        for start in range(0, len(tensors[0]), size):
            block = slice(start, start + size)
            given: list[Any] = [None if t is None else t[block] for t in leaves[:3]] + leaves[3:]
            for n in wanted:
                given[n].requires_grad_()
            with torch.set_grad_enabled(bool(wanted)):
                part = total(loss, block, given)
            value += part.detach()
            if not part.requires_grad:
                continue
            slopes = torch.autograd.grad(part, [given[n] for n in wanted], allow_unused=True)
            for n, slope in zip(wanted, slopes, strict=True):
                if n < 3:
                    rows[n].append(slope)
                else:
                    gradients[n] = slope if gradients[n] is None else gradients[n].add_(slope)
        gradients[:3] = [torch.cat(found) if found else None for found in rows]
        ctx.total, ctx.gradients = total, gradients
        ctx.loss = copy.copy(loss)  # with the hyper-parameters of now, for a gradient of the gradient
        ctx.save_for_backward(*tensors)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gradients = list(ctx.gradients)
        if torch.is_grad_enabled():  # create_graph=True: the kept numbers know nothing of what made them
            # by names of their own, since some of them are made from others
            tensors: list[Any] = [None if t is None else t.view_as(t) for t in ctx.saved_tensors]
            used = [n for n, gradient in enumerate(gradients) if gradient is not None]
            value = ctx.total(ctx.loss, slice(None), tensors)
            found = torch.autograd.grad(value, [tensors[n] for n in used], create_graph=True)
            for n, gradient in zip(used, found, strict=True):
                gradients[n] = gradient
        return None, None, None, *(None if g is None else upstream * g for g in gradients)

"""A batch's mean loss in blocks of anchors, so that the whole table of similarities never exists.

An anchor's loss is a function of its own row of the table. So a block of rows is made, its values and their
gradient are taken, and it is gone before the next: memory grows with B instead of B², no row is made twice,
and a block stays in the processor's cache. A table that is small is one block.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from clutils.similarities import Batch, Everyone

NUMBERS, FEWEST = 2**19, 256  # of a block's table, for the cache; anchors, to keep the matrix products busy
ON_A_GPU = 2**24  # where few and large operations are quickest
Sum = Callable[..., Tensor]


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
    results: dict[str, list[Tensor]] = {name: [] for name in loss.per_anchor_results}

    def total(of: Any, block: slice, own: tuple[Any, ...], shared: tuple[Tensor, ...]) -> Tensor:
        z1, z2, extra_views = own
        drawn = tuple(d.unflatten(0, (views, pictures))[:, block].flatten(0, 1) for d in batch.drawn)
        part = replace(batch, z1=z1, z2=z2, extra_views=extra_views, drawn=drawn, everyone=Everyone(*shared))
        part = replace(part, pictures=batch.pictures[block])
        pairs = of.pair_up(part)
        values = of.formula(replace(pairs, once=of is loss), **known)
        if of is loss:
            for name, parts in results.items():
                parts.append(getattr(of, name).unflatten(0, (views, -1)))
        return values.sum()

    tensors = batch.z1, batch.z2, batch.extra_views, everyone.rest, everyone.ends, everyone.z
    value = _Blockwise.apply(loss, total, max(1, size // views), *tensors) / (views * pictures)
    for name, parts in results.items():
        setattr(loss, name, torch.cat(parts, dim=1).flatten())  # those of view 1 first, as in one table
    return value


class _Blockwise(torch.autograd.Function):
    """Σ of `total` over blocks of pictures: of three tensors a block has its rows, of others all."""

    @staticmethod
    def forward(ctx: Any, loss: Any, total: Sum, size: int, *tensors: Any) -> Tensor:
        wanted = ctx.needs_input_grad[3:]
        shared = [t.detach().requires_grad_(w) for t, w in zip(tensors[3:], wanted[3:], strict=True)]
        value: Tensor = tensors[0].new_zeros(())
        of_own: list[list[Tensor]] = [[], [], []]
        gradients: list[Any] = [None] * len(tensors)
        for start in range(0, len(tensors[0]), size):
            block = slice(start, start + size)
            own: list[Any] = [
                None if t is None else t[block].detach().requires_grad_(w)
                for t, w in zip(tensors[:3], wanted[:3], strict=True)
            ]
            with torch.set_grad_enabled(any(wanted)):
                part = total(loss, block, tuple(own), tuple(shared))
            value += part.detach()
            if not part.requires_grad:
                continue
            asked = [n for n, w in enumerate(wanted) if w]
            leaves = [(own + shared)[n] for n in asked]
            for n, found in zip(asked, torch.autograd.grad(part, leaves, allow_unused=True), strict=True):
                if n < 3:
                    of_own[n].append(found)
                else:
                    gradients[n] = found if gradients[n] is None else gradients[n].add_(found)
        gradients[:3] = [torch.cat(found) if found else None for found in of_own]
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
            value = ctx.total(ctx.loss, slice(None), tuple(tensors[:3]), tuple(tensors[3:]))
            found = torch.autograd.grad(value, [tensors[n] for n in used], create_graph=True)
            for n, gradient in zip(used, found, strict=True):
                gradients[n] = gradient
        return None, None, None, *(None if g is None else upstream * g for g in gradients)

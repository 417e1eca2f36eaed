"""A large batch's mean loss in blocks of images, so that the whole table of similarities never exists.

An anchor's loss is a function of its own row of the table. A block of rows is made, its values and their
gradient are taken, and it is gone before the next: memory grows with B instead of B².
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from clutils import similarities
from clutils.similarities import Batch, Side, joined

NUMBERS, FEWEST = 2**18, 256  # of a block's table, for the cache; anchors, to keep the matrix products busy
ON_A_GPU = 2**24  # where few and large operations are quickest


@dataclass(frozen=True)
class Block(Batch):
    """Some images of a batch, from number `start` on, against the keys of `everyone` in it.

    everyone: (2B, D), or (B, D) of each view.
    """

    everyone: Sequence[Tensor] = ()
    start: int = 0
    once: bool = False

    @property
    def keys(self) -> Tensor:
        return joined(self.everyone)

    @property
    def keys_of_views(self) -> Sequence[Tensor]:
        return self.everyone if len(self.everyone) == 2 else self.keys.chunk(2)

    def crossed(self, both_ways: bool) -> list[Side]:
        of_block = zip((self.first, self.second), reversed(self.keys_of_views), strict=True)
        return [Side(z, keys, start=self.start) for z, keys in of_block][: 1 + both_ways]


def images(loss: Any, batch: Batch) -> int:
    """How many images' anchors are computed at a time, at least one: `loss.block_size`, or what suits."""
    count, queue = len(batch.first), None if batch.queue is None else len(batch.queue)
    columns = similarities.count(count, loss.against, queue)
    numbers = ON_A_GPU if batch.first.is_cuda else NUMBERS
    anchors = loss.block_size or max(FEWEST, numbers // columns)
    one_each = queue is not None or loss.against == "one way"
    both_ways = loss.against == "other view" and queue is None
    if both_ways and loss.block_size is None and count**2 <= 4 * numbers:
        return count  # all of them: their one table serves both ways, and is made once
    return anchors if one_each else max(1, anchors // 2)


def mean(loss: Any, batch: Batch, size: int) -> Tensor:
    """Mean of `loss.formula` over a batch's anchors, a scalar: those of `size` images at a time.

    The gradient is found along with the value, where one is asked for. A derivative of the gradient
    (create_graph=True) is right too, but takes the whole table.
    """
    count = len(batch.first)
    known = loss.of_the_batch(batch.own_views)
    temperatures, anchors = [], []
    everyone = (batch.z,) if loss.against == "both views" else (batch.first, batch.second)

    def total(of: Any, rows: slice, given: Sequence[Any]) -> Tensor:
        (first, second, extra_views), keys = given[:3], given[3 : 3 + len(everyone)]
        drawn = tuple(d.unflatten(0, (-1, count))[:, rows].flatten(0, 1) for d in batch.drawn)
        further = batch.labels, extra_views, batch.queue, drawn
        pairs = of.pair_up(Block(first, second, *further, keys, rows.start or 0, once=of is loss))
        values = of.formula(pairs, **dict(zip(known, given[3 + len(everyone) :], strict=True)))
        if of is loss:
            anchors.append(len(values))
            own = loss.effective_temperature
            if own is not None and own.ndim:
                temperatures.append(own.unflatten(0, (-1, len(first))))
        return values.sum()

    tensors = batch.first, batch.second, batch.extra_views, *everyone, *known.values()
    value = _Blockwise.apply(loss, total, size, *tensors) / sum(anchors)
    if temperatures:  # those of view 1 first, as in one table
        loss.effective_temperature = torch.cat(temperatures, dim=1).flatten()
    return value


class _Blockwise(torch.autograd.Function):
    """Σ of `total` over blocks of images: of three tensors a block has its rows, of others all."""

    @staticmethod
    def forward(ctx: Any, loss: Any, total: Any, size: int, *tensors: Any) -> Tensor:
        wanted = [n for n, needed in enumerate(ctx.needs_input_grad[3:]) if needed]
        leaves: list[Any] = [None if t is None else t.detach() for t in tensors]
        value: Tensor = tensors[0].new_zeros(())
        rows: list[list[Tensor]] = [[], [], []]
        gradients: list[Any] = [None] * len(tensors)
        for start in range(0, len(tensors[0]), size):
            block = slice(start, start + size)
            given: list[Any] = [None if t is None else t[block] for t in leaves[:3]] + leaves[3:]
            for n in wanted:
                given[n] = given[n].detach().requires_grad_()
            with torch.set_grad_enabled(bool(wanted)):
                part = total(loss, block, given)
            value += part.detach()
            if not part.requires_grad:
                continue
            slopes = torch.autograd.grad(part, [given[n] for n in wanted], allow_unused=True)
            for n, slope in zip(wanted, slopes, strict=True):
                if slope is None:
                    continue
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

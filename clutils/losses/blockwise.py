"""A batch's mean loss in blocks of anchors, so that the (2B, 2B) table of similarities never exists.

A loss that depends on similarities only through its anchors' contrasts c_i = log Σ_j exp(s-_j/τ) - s+/τ
needs each row of the table once, since its gradient is known in closed form as soon as c_i is:

$$\\ell_i = f(c_i), \\qquad \\frac{\\partial \\ell_i}{\\partial s^-_j} = \\frac{f'(c_i)}{\\tau}\\,\\hat p_j,
\\qquad \\frac{\\partial \\ell_i}{\\partial s^+} = -\\frac{f'(c_i)}{\\tau}$$

with f' = W for InfoNCE and 1 for the decoupled loss. So value and gradient are taken in one pass, a block of
rows at a time: memory grows with B instead of B², no row is computed twice, and a block stays in the
processor's cache, which makes it the faster way as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Contrasted = Callable[[Tensor], Tensor]


def mean(z1: Tensor, z2: Tensor, temperature: float, of_contrast: Contrasted, block_size: int) -> Tensor:
    """Mean of f(c) over both views as anchors, each against the 2B - 2 views of other pictures: a scalar.

    - z1, z2: unit vectors (B, D) of two views, B at least 2, float32 or float64
    - of_contrast: f, contrasts (b, 1) -> values (b, 1), each value a function of its own contrast alone
    - block_size: anchors in a block; a block takes 2B · block_size numbers

    The gradient is found along with the value, whenever z1 or z2 asks for one. A derivative of the gradient
    (create_graph=True) is right too, but takes the whole table.
    """
    return _Blockwise.apply(torch.cat([z1, z2]), temperature, of_contrast, block_size)


class _Blockwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, temperature: float, of_contrast: Contrasted, block_size: int) -> Tensor:
        views, wanted = len(z), ctx.needs_input_grad[0]
        partner = z.roll(views // 2, dims=0)  # each view's own other view
        positives = (z * partner).sum(dim=1, keepdim=True) / temperature
        over_temperature = z / temperature
        block = z.new_empty(min(block_size, views), views)
        values, slopes, gradient = [], [], torch.zeros_like(z)
        for start in range(0, views, block_size):
            rows = slice(start, start + block_size)
            logits = torch.mm(z[rows], over_temperature.T, out=block[: len(z[rows])])
            _leave_out_itself_and_its_positive(logits, start)
            largest = logits.amax(dim=1, keepdim=True)
            weights = logits.sub_(largest).exp_()  # p̂ up to each row's total; in place, as the block is big
            total = weights.sum(dim=1, keepdim=True)
            c = largest + total.log() - positives[rows]
            if not wanted:
                values.append(of_contrast(c))
            else:
                value, slope = _value_and_slope(of_contrast, c)
                values.append(value)
                # a similarity pushes both its ends: the anchor, by its row, and the negatives, by the columns
                share = slope / total
                slopes.append(slope)
                gradient[rows].addcmul_(share, weights @ z)
                gradient.addmm_(weights.T, share * z[rows])
        if wanted:
            slope = torch.cat(slopes)
            pulls = slope + slope.roll(views // 2, dims=0)  # as an anchor, and as its partner's positive
            gradient.addcmul_(pulls, partner, value=-1).div_(temperature * views)
            ctx.save_for_backward(z, gradient)
            ctx.settings = temperature, of_contrast
        return torch.cat(values).mean()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None, None]:
        z, gradient = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True: the kept numbers know nothing of how z made them
            (gradient,) = torch.autograd.grad(_whole_table(z, *ctx.settings), z, create_graph=True)
        return upstream * gradient, None, None, None


def _whole_table(z: Tensor, temperature: float, of_contrast: Contrasted) -> Tensor:
    """The same mean by plain autograd."""
    logits = z @ z.T / temperature
    positives = (z * z.roll(len(z) // 2, dims=0)).sum(dim=1, keepdim=True) / temperature
    _leave_out_itself_and_its_positive(logits, 0)
    return of_contrast(logits.logsumexp(dim=1, keepdim=True) - positives).mean()


def _leave_out_itself_and_its_positive(logits: Tensor, start: int) -> None:
    """Set to -inf what is no negative in these rows of the table, (b, 2B), the first of them row `start`."""
    views = logits.shape[1]
    anchors = torch.arange(start, start + len(logits), device=logits.device)
    columns = torch.stack([anchors, (anchors + views // 2) % views], dim=1)
    logits.scatter_(1, columns, -torch.inf)


def _value_and_slope(of_contrast: Contrasted, c: Tensor) -> tuple[Tensor, Tensor]:
    """f(c) and f'(c): the slope by autograd, so that a loss states its f once."""
    with torch.enable_grad():
        c = c.detach().requires_grad_()
        values = of_contrast(c)
        (slope,) = torch.autograd.grad(values.sum(), c)
    return values.detach(), slope

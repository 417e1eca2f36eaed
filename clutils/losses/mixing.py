"""Synthetic negatives: mixes of an anchor's hardest ones. SSCL and MoCHi are made from it."""

import torch
from torch import Tensor

SHORTEST_MIX = 1e-12  # squared length: a mix of two opposite vectors has no direction


def hardest(negatives: Tensor, count: int, who: str, of: int | None = None) -> Tensor:
    """Columns of each anchor's `count` most similar negatives, (A, count), the hardest first.

    - of: how many of the columns are negatives, where others are -inf; None: all

    Raises ValueError where there are fewer negatives than that.
    """
    if count > (of := of or negatives.shape[1]):
        raise ValueError(
            f"{who}: hardest is {count}, but there are only {of} negatives: a larger batch "
            f"or queue, or a smaller `hardest`"
        )
    return negatives.detach().topk(count, dim=1).indices


def draw(
    columns: Tensor, number: int, generator: torch.Generator | None, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """`number` of each anchor's columns (A, s), with replacement, and as many coefficients from U(0, 1).

    -> (A, number) each; drawn on the generator's device.
    """
    device = columns.device if generator is None else generator.device
    shape = (len(columns), number)
    which = torch.randint(columns.shape[1], shape, generator=generator, device=device)
    coefficient = torch.rand(shape, generator=generator, device=device, dtype=dtype)
    return columns.gather(1, which.to(columns.device)), coefficient.to(columns.device)


def length(a: Tensor, mutual: Tensor) -> Tensor:
    """|a u + (1-a) v| of unit vectors u and v of similarity `mutual`."""
    return (a**2 + (1 - a) ** 2 + 2 * a * (1 - a) * mutual).clamp(min=SHORTEST_MIX).sqrt()

"""Moving averages per sample, as `SogCLR` and `ISogCLR` keep them: of the mean of e^{s-/τ} over negatives."""

import math
from typing import Any

import torch
from torch import Tensor

from clutils.losses.base import counted, log_sum, mean_over_positives, transformed
from clutils.similarities import Pairs, holds


def of_samples(loss: Any, state: Tensor, like: Tensor) -> Tensor:
    """The state of each anchor's sample, (A,); ValueError where a sample of the batch has no place in it."""
    beyond = f"{loss.name}: index has a number beyond the {len(state)} samples that there is room for"
    if loss.check_inputs and not holds((loss.samples < len(state)).all(), beyond):
        raise ValueError(
            f"{loss.name}: index has the number {int(loss.samples.max())}, but there is room for "
            f"{len(state)} samples, numbered from 0: loss.allocate(samples) first"
        )
    return state[loss.samples].to(like).repeat(2)


def keep(loss: Any, state: Tensor, found: Tensor) -> None:
    """Write the state of the batch's samples, (B,); NaN is no past. Under `torch.func` it stays as it is."""
    if not transformed():
        past = state[loss.samples]
        state[loss.samples] = torch.where(found.isnan(), past, found.to(past))


def values(loss: Any, pairs: Pairs, temperature: float | Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The losses, (A,), and of each anchor log u and g/u, (A,): `loss.log_average` is read, and moved.

    - temperature: one number, or each anchor's, (A,)
    """
    of_each = temperature[:, None] if isinstance(temperature, Tensor) else temperature
    log_g = log_sum(pairs, of_each)[:, 0] - counted(pairs).log().flatten()
    log_u = log_g.detach()
    if loss.samples is not None:
        past = of_samples(loss, loss.log_average, log_u)
        stays = math.log1p(-loss.rate) if loss.rate < 1 else -math.inf
        moved = torch.logaddexp(past + stays, log_u + math.log(loss.rate))
        log_u = torch.where(past.isinf(), log_u, moved)
        keep(loss, loss.log_average, log_u.view(2, -1).logsumexp(dim=0) - math.log(2))
    share = (log_g.detach() - log_u).exp()
    weighed = temperature * (log_u + share * (log_g - log_g.detach()))
    return weighed - mean_over_positives(pairs.positives, pairs), log_u, share

"""Exponential moving average (EMA) of a network: MoCo's momentum encoder, BYOL's target."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from torch import nn
from torch.optim.swa_utils import get_ema_multi_avg_fn


def follower(module: nn.Module) -> nn.Module:
    """A copy that starts where `module` stands and takes no gradient."""
    return copy.deepcopy(module).requires_grad_(False)


def follow(followers: Iterable[nn.Module], leaders: Iterable[nn.Module], momentum: float) -> None:
    r"""$$\theta' \leftarrow m\,\theta' + (1 - m)\,\theta$$ for every weight, in one fused call.

    - followers, leaders: modules of the same build, in the same order

    Buffers are left alone: the follower's batch normalisation keeps statistics of its own.
    """
    targets = [weight for module in followers for weight in module.parameters()]
    weights = [weight for module in leaders for weight in module.parameters()]
    get_ema_multi_avg_fn(momentum)(targets, weights, None)  # the number of steps, which it does not use

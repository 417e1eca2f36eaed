"""Exponential moving average (EMA) of encoder and head: MoCo's momentum encoder, BYOL's target."""

import copy
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from clutils.methods.base import Method


class Followed(Method):
    """A method with a target: copies of encoder and head that follow after a step, without a gradient."""

    followed: tuple[str, ...] = ("encoder", "head")  # each with its copy, `target_encoder` and so on
    momentum: float  # m: each method declares its own default
    target_encoder: nn.Module
    target_head: nn.Module

    def start_target(self) -> None:
        """Copies that start where encoder and head stand."""
        for name in self.followed:
            setattr(self, f"target_{name}", copy.deepcopy(getattr(self, name)).requires_grad_(False))

    @torch.no_grad()
    def target(self, view: Tensor) -> Tensor:
        """Target network's embedding of a view: (B, out)."""
        return self.target_head(self.features_of(view, self.target_encoder))

    def after_step(self) -> None:
        """The target follows."""
        targets, leaders = ([getattr(self, by + name) for name in self.followed] for by in ("target_", ""))
        follow(targets, leaders, self.momentum)


def follow(followers: Iterable[nn.Module], leaders: Iterable[nn.Module], momentum: float) -> None:
    r"""$$\theta' \leftarrow m\,\theta' + (1 - m)\,\theta$$ for every weight, in one fused call.

    Both are modules of the same build, in the same order. Buffers are left alone: the follower's batch
    normalisation keeps statistics of its own.
    """
    targets = [weight for module in followers for weight in module.parameters()]
    weights = [weight for module in leaders for weight in module.parameters()]
    get_ema_multi_avg_fn(momentum)(targets, weights, None)  # the number of steps, which it does not use

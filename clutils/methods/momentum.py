"""Exponential moving average (EMA) of encoder and head: MoCo's momentum encoder, BYOL's target."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from clutils.methods.base import Method


class Followed(Method):
    r"""A method with a target: copies of encoder and head, which follow both after each step.

    $$\theta' \leftarrow m\,\theta' + (1 - m)\,\theta$$ for every weight. No gradient reaches them. Buffers
    are left alone: the target is in training mode, and its batch normalisation keeps statistics of its own.
    """

    momentum: float  # m: each method declares its own default
    target_encoder: nn.Module
    target_head: nn.Module

    def start_target(self) -> None:
        """Copies that start where encoder and head stand."""
        self.target_encoder, self.target_head = (
            copy.deepcopy(network).requires_grad_(False) for network in (self.encoder, self.head)
        )

    @torch.no_grad()
    def target(self, view: Tensor) -> Tensor:
        """What the target makes of a view: (B, out)."""
        return self.target_head(self.features_of(view, self.target_encoder))

    def after_step(self) -> None:
        """The target follows, in one fused call."""
        targets = [*self.target_encoder.parameters(), *self.target_head.parameters()]
        weights = [*self.encoder.parameters(), *self.head.parameters()]
        get_ema_multi_avg_fn(self.momentum)(targets, weights, None)  # the number of steps, unused

"""Views of sentences (N, L), word numbers with 0 for padding: dropout, deletion, another order."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Dropout:
    """The sentence itself: both views are equal, and dropout in the encoder, which trains, tells them apart.

    Gao, Yao & Chen 2021, "SimCSE: simple contrastive learning of sentence embeddings" (arXiv 2104.08821),
    section 3. `encoders.Transformer` has the dropout, drawn anew for every row of a batch.
    """

    def __call__(self, tokens: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """tokens (N, L) int64 -> the same. Raises ValueError on anything else."""
        _check("Dropout", tokens)
        return tokens


@dataclass
class Deletion:
    """Some words are left out, each with the same probability; at least one stays.

    - rate: that probability. Default 0.2
    """

    rate: float = 0.2

    def __call__(self, tokens: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """tokens (N, L) int64 -> (N, L), moved together, 0 behind. Raises ValueError on anything else."""
        _check("Deletion", tokens)
        if not 0 <= self.rate <= 1:
            raise ValueError(f"Deletion: rate is {self.rate!r}, but must be a probability, 0 to 1")
        drawn = _uniform(tokens, generator)
        kept = (tokens > 0) & (drawn >= self.rate)
        luckiest = drawn.masked_fill(tokens == 0, -1).argmax(dim=1, keepdim=True)
        kept.scatter_(1, luckiest, tokens.gather(1, luckiest) > 0)
        order = (~kept).byte().argsort(dim=1, stable=True)
        return (tokens * kept).gather(1, order)


@dataclass
class Reordering:
    """Words change places with those nearby: sorted by their place plus a draw from U(0, reach).

    - reach: in words; a word moves by fewer places than that, at 1 and below by none. Default 4
    """

    reach: float = 4.0

    def __call__(self, tokens: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """tokens (N, L) int64 -> (N, L), 0 behind as before. Raises ValueError on anything else."""
        _check("Reordering", tokens)
        if not 0 <= self.reach < torch.inf:
            raise ValueError(f"Reordering: reach is {self.reach!r}, but must be a number of words from 0 on")
        place = torch.arange(tokens.shape[1], device=tokens.device) + self.reach * _uniform(tokens, generator)
        return tokens.gather(1, place.masked_fill(tokens == 0, torch.inf).argsort(dim=1, stable=True))


def _uniform(tokens: Tensor, generator: torch.Generator | None) -> Tensor:
    there = "cpu" if generator is None else generator.device
    return torch.rand(tokens.shape, generator=generator, device=there).to(tokens.device)


def _check(name: str, tokens: Tensor) -> None:
    if not isinstance(tokens, Tensor) or tokens.ndim != 2 or tokens.dtype != torch.int64:
        what = (tuple(tokens.shape), tokens.dtype) if isinstance(tokens, Tensor) else type(tokens).__name__
        raise ValueError(f"{name}: tokens is {what}, but must be sentences, int64 (N, L)")

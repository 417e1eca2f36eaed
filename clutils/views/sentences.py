"""Views of sentences (N, L), word numbers with 0 for padding: dropout, deletion, another order."""

from dataclasses import dataclass

import torch
from torch import Tensor

from clutils.settings import OnlyFields, setting
from clutils.views.checks import checked, drawn


@dataclass
class Dropout(OnlyFields):
    """The sentence itself: both views are equal, and dropout in the encoder, which trains, makes them differ.

    Gao, Yao & Chen 2021, "SimCSE: simple contrastive learning of sentence embeddings" (arXiv 2104.08821),
    section 3. `encoders.Transformer` has the dropout, drawn again for every row of a batch.
    """

    kind = "sentences"

    def __call__(self, tokens: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """tokens (N, L) int64 -> the same. Raises ValueError on anything else."""
        return checked(self, tokens)


@dataclass
class Deletion(OnlyFields):
    """Some words are left out, each with the same probability; at least one stays.

    - rate: that probability. Default 0.2
    """

    kind = "sentences"
    rate: float = setting(0, 1, default=0.2, about="probability of deleting a word")

    def __call__(self, tokens: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """tokens (N, L) int64 -> (N, L), moved together, 0 behind. Raises ValueError on anything else."""
        u = drawn(checked(self, tokens).shape, tokens, generator)
        kept = (tokens > 0) & (u >= self.rate)
        luckiest = u.masked_fill(tokens == 0, -1).argmax(dim=1, keepdim=True)
        kept.scatter_(1, luckiest, tokens.gather(1, luckiest) > 0)
        order = (~kept).byte().argsort(dim=1, stable=True)
        return (tokens * kept).gather(1, order)


@dataclass
class Reordering(OnlyFields):
    """Words change places with those nearby: sorted by their place plus a draw from U(0, reach).

    - reach: in words; a word moves by fewer places than that, at 1 and below by none. Default 4
    """

    kind = "sentences"
    reach: float = setting(0, default=4.0, about="places that a word may move")

    def __call__(self, tokens: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """tokens (N, L) int64 -> (N, L), 0 behind as before. Raises ValueError on anything else."""
        u = drawn(checked(self, tokens).shape, tokens, generator)
        place = torch.arange(tokens.shape[1], device=tokens.device) + self.reach * u
        return tokens.gather(1, place.masked_fill(tokens == 0, torch.inf).argsort(dim=1, stable=True))

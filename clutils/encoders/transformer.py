"""A small transformer for sentences, and a dropout whose random numbers a run can seed."""

import torch
from torch import Tensor, nn

from clutils.data.sentences import BUCKETS
from clutils.settings import within


class Dropout(nn.Module):
    """`nn.Dropout`, with an optional generator of its own: torch's draws from the global stream alone.

    - p: the probability that a number becomes 0; the others are divided by 1 - p
    - generator: None = torch's global stream. `training.Run` sets it for a step and takes it away after, so
      that a resumed run has the masks that the unbroken one would have had
    """

    def __init__(self, p: float = 0.1) -> None:
        super().__init__()
        within("Dropout", "p", p, 0, 1, open_above=True)
        self.p = p
        self.generator: torch.Generator | None = None

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        there = x.device if self.generator is None else self.generator.device
        kept = torch.rand(x.shape, generator=self.generator, device=there).to(x.device) >= self.p
        return x * kept / (1 - self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Attention(nn.Module):
    """Self-attention of several heads, softmax(QKᵀ/√d) V, dropout on its weights: (N, L, width) -> same."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.to_qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        N, L, width = x.shape
        q, k, v = self.to_qkv(x).view(N, L, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(2, 3) * (width // self.heads) ** -0.5  # (N, heads, L, L)
        weights = scores.float().masked_fill(padding[:, None, None], -1e9).softmax(dim=-1).to(v.dtype)
        return self.out((self.dropout(weights) @ v).transpose(1, 2).reshape(N, L, width))


class Block(nn.Module):
    """Attention, then two linear layers, each behind a layer norm and beside a shortcut (pre-norm)."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout)
        self.between = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        x = x + self.dropout(self.attention(self.first(x), padding))
        return x + self.dropout(self.between(self.second(x)))


class Transformer(nn.Module):
    """Sentences (N, L), word numbers with 0 for padding -> (N, width): the mean over a sentence's words.

    Vaswani et al. 2017 with pre-norm blocks and learned places, without decoder; trained from scratch. A
    sentence without words gives zeros.

    - length: the most words of a sentence
    - width, heads, layers, dropout: 128, 4, 2 and 0.1, the dropout of BERT and SimCSE. Dropout acts behind
      the embedding, on the attention's weights, and behind each half of a block
    """

    def __init__(
        self, length: int, width: int = 128, heads: int = 4, layers: int = 2, dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.features = width
        self.words, self.places = nn.Embedding(BUCKETS, width, padding_idx=0), nn.Embedding(length, width)
        nn.init.normal_(self.places.weight, std=0.1)
        self.dropout = Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.last = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        padding = tokens == 0
        x = self.dropout(self.words(tokens) + self.places.weight[: tokens.shape[1]])
        for block in self.blocks:
            x = block(x, padding)
        x = self.last(x).masked_fill(padding[..., None], 0)
        return x.sum(dim=1) / (~padding).sum(dim=1, keepdim=True).clamp(min=1)

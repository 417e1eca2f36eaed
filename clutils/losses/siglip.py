"""SigLIP: a sigmoid for each pair on its own, in place of a softmax over all of them."""

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils.losses.base import TEMPERATURE, Loss, masked, mean_over_positives, softplus
from clutils.settings import setting
from clutils.similarities import Pairs


class SigLIP(Loss):
    r"""The sigmoid loss of language-image pre-training: is this pair a match? asked of every pair by itself.

    $$\ell = -\log \sigma(s^+/\tau + b) - \sum_j \log \sigma(-s^-_j/\tau - b)$$

    Pull σ(-s+/τ - b)/τ, push_j σ(s-_j/τ + b)/τ: what an anchor's other negatives are, and how many, changes
    nothing about a pair's force. W, which couples them in InfoNCE, has become one sigmoid a pair.

    The negatives are summed, not averaged: the paper's 1/|B| in front of a sum over all B² pairs. With a mean
    over the B² pairs in its place each force is B times smaller, and the same learning rate another one.
    A pair of bias and temperature that suits one sum suits no other. An image of B - 1 negatives starts
    near B - 1 times log(1 + e^b): b < 0 keeps that small, where b = 0 gives log 2 for each of them.

    - temperature, bias: defaults 0.1 and -10, where the paper's learned t' = log 10 and b begin. Both stay
      plain numbers here, and the paper learns them.

    The sign of b is that of algorithm 1 and of the trainer. The equation printed in section 3.2 has
    e^{z(-t x·y + b)}, in which b has the other sign; the paper's b = -10 fits algorithm 1 alone.

    Zhai et al. 2023, "Sigmoid loss for language image pre-training" (arXiv 2303.15343), the equation of
    section 3.2 as in the authors' trainer (big_vision, siglip.py); where t' and b begin as in OpenCLIP.
    """

    comparison = "one way"  # each pair once: the other way they are the same
    paper, year, equation = "SigLIP (Zhai et al.)", 2023, "section 3.2"
    temperature: float = setting(TEMPERATURE, default=0.1)
    bias: float = setting(-1e6, 1e6, "b", dial=(-20, 10, "even"), default=-10.0, about="added to each logit")

    @staticmethod
    def as_written(positives: Tensor, negatives: Tensor, temperature: float, bias: float) -> Tensor:
        """The sum over an anchor's pairs, literally: (A, P), (A, K) -> (A,)."""
        match, no_match = positives / temperature + bias, negatives / temperature + bias
        return -torch.log(1 / (1 + torch.exp(-match))).mean(dim=1) - F.logsigmoid(-no_match).sum(dim=1)

    def formula(self, pairs: Pairs) -> Tensor:
        match = softplus(-pairs.positives / self.temperature - self.bias)
        # softplus(s/τ + b), its table in two passes
        shifted = pairs.negatives + self.bias * self.temperature
        no_match = F.softplus(shifted, beta=1 / self.temperature, threshold=50)
        summed = masked(no_match, pairs.negative_mask, 0.0).sum(dim=1)
        return mean_over_positives(match, pairs) + summed / self.temperature

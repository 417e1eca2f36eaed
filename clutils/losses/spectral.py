"""The spectral contrastive loss: inner products squared, and no temperature."""

from torch import Tensor

from clutils.losses.base import Loss, mean_over_positives
from clutils.similarities import Pairs


class Spectral(Loss):
    r"""Contrastive learning as the factorisation of a matrix, on vectors that are not normalised.

    $$\ell = -\frac2B\sum_i \langle z^1_i, z^2_i\rangle
             + \frac1{B(B-1)}\sum_{i \ne j} \langle z^1_i, z^2_j\rangle^2$$

    Over a whole population it is ‖A - FFᵀ‖² up to a constant, where A is the normalised adjacency matrix of
    the graph whose edges are augmentations and F has a (scaled) row for each view: at its minimum the
    features span A's first eigenvectors, as in spectral clustering. Pull 2, push 2 s-_j/K, on inner products
    s: negatives are driven to a right angle, not apart, and one beyond 90° is drawn back. The lengths
    are free: on unit vectors it would be another loss. The population's loss bounds them, since its second
    sum has i = j too. A batch's estimate does not: vectors of length r at right angles have -2r².

    The authors' code therefore shortens every vector longer than √μ to that length (μ = 1 by default there)
    and divides the loss by μ; not done here.

    HaoChen et al. 2021, "Provable guarantees for self-supervised deep learning with spectral contrastive
    loss" (arXiv 2106.04156), its population loss, estimated in a batch as in the authors' code.
    """

    level = "feature"
    input_note = "inner products of vectors that are not normalised"
    comparison = "one way"  # each pair once: the other way they are the same
    normalised = False
    unbounded = "it works on vectors of any length, and longer ones lower it without end"
    accepts = frozenset()
    paper, year, equation = "Spectral (HaoChen et al.)", 2021, "L(f)"

    @staticmethod
    def as_written(z1: Tensor, z2: Tensor) -> Tensor:
        """The batch's estimate, literally: (B, D), (B, D) -> scalar."""
        B, products = len(z1), z1 @ z2.T
        squares = products**2
        return -2 * products.diagonal().mean() + (squares.sum() - squares.diagonal().sum()) / (B * (B - 1))

    def formula(self, pairs: Pairs) -> Tensor:
        squares = (pairs.negatives * pairs.negatives).sum(dim=1)  # of `square` the gradient takes longer
        return squares / pairs.negatives.shape[1] - 2 * mean_over_positives(pairs.positives, pairs)

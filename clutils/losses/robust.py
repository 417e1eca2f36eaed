"""The robust contrastive loss: how many negatives count is chosen, and each anchor's temperature follows."""

import torch
from torch import Tensor

from clutils.losses.base import Loss, counted, masked, mean_over_positives
from clutils.settings import setting
from clutils.similarities import Pairs

FLATTEST, SHARPEST = 1e-8, 1e12  # 1/τ, in units of 1 over the spread of an anchor's negatives
STEPS = {torch.float32: 34, torch.float64: 60}  # halvings: the interval shrinks to the type's rounding


class Robust(Loss):
    r"""The worst case over a Kullback-Leibler ball of weights on the negatives, both views as anchors.

    $$\ell = \max_{q:\, \mathrm{KL}(q\,\|\,u) \le \rho} \sum_j q_j s^-_j - s^+
           = \min_{\tau > 0} \Bigl[\tau \log \frac1K \sum_j e^{s^-_j/\tau} + \tau\rho\Bigr] - s^+$$

    with u = 1/K. The best weights are the softmax at the minimising τ, so that τ is no choice but the
    multiplier of the ball; K_eff = e^{H(q)} = K e^{-ρ} negatives share the push, for every anchor alike.
    Pull 1, push q_j: by the envelope theorem nothing flows through τ. It is `Decoupled`'s gradient at each
    anchor's own τ, times that τ; NT-Xent has the positive in its sum as well, and W on both forces.

    ρ = 0 is the mean of the negatives, τ infinite. The ball binds for ρ below log(K/number of the hardest,
    which may tie); from there on q is uniform on those and τ = 0. In float32 log K - H(q) rounds at about
    1e-6: below ρ = 1e-4 τ is rough (3 % off at 1e-5), and the value right to 1e-3.

    - radius (ρ): default 1, which leaves 1/e of the negatives; LibAUC recommends 0.1 to 0.5 for images, and
      keeps τ between 0.05 and 0.7 beside it. Here nothing else bounds τ, found in the batch by bisection.

    After a call `effective_temperature` has each anchor's τ, (A,).

    Qiu et al. 2023, "Not all semantics are created equal" (arXiv 2305.11965), the objective RGCL as the
    authors' library has it (LibAUC, libauc/losses/contrastive.py); the dual is the classical one.
    """

    paper, year, equation = "RGCL (Qiu et al.)", 2023, "RGCL, in a batch"
    radius: float = setting(
        0, 100, "ρ", dial=(0, 6, "even"), default=1.0, about="KL radius of the worst case over negatives"
    )

    @staticmethod
    def as_written(positives: Tensor, negatives: Tensor, radius: float) -> Tensor:
        """The dual, literally, at the τ where the ball is filled: (A, P), (A, K) -> (A,)."""
        low, high = (torch.full_like(negatives[:, :1], bound) for bound in (1e-4, 1e4))
        for _ in range(100):
            tau = (low * high).sqrt()
            q = torch.softmax(negatives.detach() / tau, dim=1)
            full = torch.special.xlogy(q, q * q.shape[1]).sum(dim=1, keepdim=True) > radius
            low, high = torch.where(full, tau, low), torch.where(full, high, tau)
        bound = tau * (torch.exp(negatives / tau).mean(dim=1, keepdim=True).log() + radius)
        return (bound - positives).mean(dim=1)

    def formula(self, pairs: Pairs) -> Tensor:
        q, temperature = self.worst_case(pairs)
        self.effective_temperature = temperature[:, 0]
        return (q * pairs.negatives).sum(dim=1) - mean_over_positives(pairs.positives, pairs)

    @torch.no_grad()
    def worst_case(self, pairs: Pairs) -> tuple[Tensor, Tensor]:
        """The weights q, (A, K), and the τ that fills the ball, (A, 1)."""
        s, mask = pairs.negatives, pairs.negative_mask
        if self.radius == 0:
            return masked(torch.ones_like(s), mask, 0.0) / counted(pairs), torch.full_like(
                s[:, :1], torch.inf
            )
        below = s - masked(s, mask, -torch.inf).amax(dim=1, keepdim=True)
        spread = -masked(below, mask, 0.0).amin(dim=1, keepdim=True)
        scaled = masked(below / torch.where(spread > 0, spread, 1.0), mask, -torch.inf)
        low, high = (torch.full_like(spread, bound).log() for bound in (FLATTEST, SHARPEST))
        for _ in range(STEPS[s.dtype]):
            middle = (low + high) / 2
            q = torch.softmax(middle.exp() * scaled, dim=1)
            full = counted(pairs).log() - torch.special.entr(q).sum(dim=1, keepdim=True) > self.radius
            low, high = torch.where(full, low, middle), torch.where(full, middle, high)
        binds = (spread > 0) & (low < torch.full_like(low, SHARPEST).log() - 1)
        return torch.softmax(low.exp() * scaled, dim=1), torch.where(binds, spread / low.exp(), 0.0)

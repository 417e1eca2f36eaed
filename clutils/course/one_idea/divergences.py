"""Catalogue as one divergence, E_i KL(p(·|i) ‖ q(·|i)): p and q of each loss, or why it is outside."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from clutils import losses
from clutils.course import toys
from clutils.figures import style
from clutils.similarities import Pairs

Weigh = Callable[[losses.Loss, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Row:
    """A loss inside: p uniform over an anchor's positives, q a softmax over its candidates.

    No weight in q depends on the positive's similarity; in some rows the negatives' depend on their own.

    - q: in words; logits: (loss, s (A, P), n (A, K)) -> (A, P + K), log q up to a constant of the anchor
    - pairs: whether each pair is asked for itself, so that p and q are over match and no match
    - says: the setting of this row, of a loss that is not inside at every one
    """

    loss: losses.Loss
    q: str
    logits: Weigh
    positives: int = 1
    pairs: bool = False
    says: str = ""

    @property
    def name(self) -> str:
        """Name in the literature, with its setting."""
        return style.title(self.loss.name) + self.says


def _plain(loss: losses.Loss, s: Tensor, n: Tensor) -> Tensor:
    return torch.cat([s, n], dim=1) / getattr(loss, "temperature", 1.0)


def _attended(loss: losses.Loss, s: Tensor, n: Tensor) -> Tensor:
    return _plain(loss, s, n.shape[1] * torch.softmax(n.detach() / loss.d_neg, dim=1) * n)


def _hard(loss: losses.Loss, s: Tensor, n: Tensor) -> Tensor:
    w = torch.softmax(loss.beta * n / loss.temperature, dim=1) * n.shape[1]  # the gradient goes through them
    return _plain(loss, s, n + loss.temperature * w.log())


def _middling(loss: losses.Loss, s: Tensor, n: Tensor) -> Tensor:
    log_w = -(((n.detach() - loss.mean) / loss.deviation) ** 2) / 2
    log_w = log_w - log_w.logsumexp(dim=1, keepdim=True) + torch.tensor(float(n.shape[1])).to(n).log()
    return _plain(loss, s, n + loss.temperature * log_w)


def _sigmoid(loss: losses.Loss, s: Tensor, n: Tensor) -> Tensor:
    return _plain(loss, s, n) + loss.bias


def inside(t: float = 0.3) -> list[Row]:
    """Losses that are such a divergence, each at temperature t: at every setting, then at some."""
    info, over = "softmax of s/τ over all candidates", "the same, "
    hard = "softmax, each negative times a weight of all s⁻ with gradient"
    return [
        Row(losses.NTXent(t), info, _plain),
        Row(losses.CLIP(t), over + "over a row or a column of the table", _plain),
        Row(losses.MoCHi(t), over + "mixes among the candidates", _plain),
        Row(losses.NNCLR(t), over + "a neighbour in the anchor's place", _plain),
        Row(losses.NPair(), "softmax of inner products", _plain),
        Row(losses.SupCon(t), info, _plain, 3),
        Row(losses.ADNCE(t), "softmax, each negative times a weight of its s without gradient", _middling),
        Row(losses.SigLIP(t, -1.0), "σ(s/τ + b), of match or no match, pair by pair", _sigmoid, 1, True),
        Row(
            losses.AttentionNCE(t),
            "softmax, each s⁻ by a weight of all s⁻ without gradient",
            _attended,
            says=", one positive",
        ),
        Row(losses.HardNegative(t, 0.0, 1.0), hard, _hard, says=", τ⁺ = 0"),
        Row(losses.SSCL(t, class_prior=0.0), hard + ", on mixes", _hard, says=", τ⁺ = 0"),
        Row(losses.Debiased(t, 0.0), info, _plain, says=", τ⁺ = 0"),
        Row(losses.RINCE(t, q=0.0), info, _plain, says=", q = 0"),
        Row(losses.DualTemperature(t, 1.0), info, _plain, says=", m = 1"),
    ]


def counted() -> str:
    """Count of the catalogue's losses that are such a divergence, in a sentence."""
    rows, every = inside(), losses.catalogue()
    always = [row for row in rows if not row.says]
    one = sum(row.logits is _plain and row.positives == 1 for row in always)
    known = {row.loss.name for row in rows} | set(OUTSIDE)
    rest = f"{len(known) - len(rows)} at none"
    rest += f"; {len(every) - len(known)} not looked at" if len(every) > len(known) else ""
    return (
        f"{len(always)} of the {len(every)} losses of the catalogue have the form at every setting, {one} of "
        f"them one formula with other candidates, and {sum(row.pairs for row in rows)} pair by pair, without "
        f"a softmax; {len(rows) - len(always)} have it at some settings alone; {rest}"
    )


# what is outside, or outside at some settings -> why no q of this form exists; see `outside`
OUTSIDE = {
    "Decoupled": "p sits on the positive, which its denominator leaves out: in this form q = 0, KL ∞",
    "WeightedDecoupled": "as Decoupled",
    "SogCLR": "as Decoupled; and its denominator comes from the sample's past",
    "ISogCLR": "as SogCLR",
    "Robust": "as Decoupled: its KL bounds the weights on the negatives, and is not what is minimised",
    "FlatNCE": "its value is constant; its gradient is Decoupled's",
    "MACL": "KL of the softmax at τ_a, but divided by W anchor by anchor: no mean of divergences",
    "DualTemperature": "where m is not 1: KL of the softmax, but each anchor's times W_mτ/W: no mean of "
    "divergences",
    "AttentionNCE": "with several positives their weights depend on the positives' similarities",
    "AlphaCL": "a weighted sum of differences: no logarithm, no sum over candidates",
    "Debiased": "where τ⁺ > 0: N τ⁺/(1 - τ⁺) positives are subtracted from the denominator, and from "
    "N = (1 - τ⁺)/τ⁺ negatives on the positive's weight there is 0 or negative, and so would be its q; with "
    "fewer it is inside where no clamp acts",
    "HardNegative": "where τ⁺ > 0, as Debiased",
    "SSCL": "where τ⁺ > 0, as Debiased",
    "RINCE": "where q > 0: a power in place of the logarithm",
    "TemperatureFree": "a softmax of 2 artanh(s): as a weight on e^(s/τ), the positive's depends on its s",
    "PairMargin": "a hinge on distances: no distribution over candidates",
    "Triplet": "a hinge on differences: no distribution over candidates",
    "Spectral": "squares of similarities: a matrix to approximate, not a distribution",
    "Regression": "no candidates beside the positive",
    "BarlowTwins": "compares features, not images",
    "VICReg": "statistics of each view; no candidates",
    "SIGReg": "compares the whole cloud with a Gaussian",
}


def outside() -> dict[str, str]:
    """Losses that are outside, at some settings at least -> why; a new one is "not looked at"."""
    always = {row.loss.name for row in inside() if not row.says}
    unseen = (name for name in losses.catalogue() if name not in always | set(OUTSIDE))
    return OUTSIDE | dict.fromkeys(unseen, "not looked at: whether such a q exists is open")


def divergence(row: Row, s: Tensor, n: Tensor) -> Tensor:
    """Σ_j p_j log(p_j/q_j) of each anchor, (A,); s (A, P), n (A, K)."""
    logits = row.logits(row.loss, s, n)
    positives = logits.shape[1] - n.shape[1]
    if row.pairs:  # p is (1, 0) or (0, 1), so that KL is -log q of what is true
        signed = torch.cat([logits[:, :positives], -logits[:, positives:]], dim=1)
        return -torch.nn.functional.logsigmoid(signed).sum(dim=1)
    p = torch.zeros_like(logits[0])
    p[:positives] = 1 / positives
    log_q = torch.log_softmax(logits, dim=1)
    return (torch.special.xlogy(p, p) - p * log_q).sum(dim=1)


def few(prior: float, negatives: int) -> Row:
    """Debiased loss as a divergence with few negatives, N τ⁺ < 1 - τ⁺, for anchors without a clamp.

    E⁺ + Ng has weight w₊ = 1 - N τ⁺/(1 - τ⁺) on E⁺ and 1/(1 - τ⁺) on each negative's.
    """
    own, other = torch.tensor(
        [1 - negatives * prior / (1 - prior), 1 / (1 - prior)], dtype=torch.float64
    ).log()

    def logits(loss: losses.Loss, s: Tensor, n: Tensor) -> Tensor:
        return torch.cat([s + own, n + other], dim=1)

    return Row(losses.Debiased(1.0, prior), "softmax, the positive times w₊", logits)


def differences(row: Row, seed: int = 0, negatives: int = 20) -> tuple[float, float]:
    """Largest difference between a loss and its divergence, on 50 anchors: of values, of gradients.

    Relative to the larger of 1 and the loss's own; of the values up to a constant, their mean difference.
    """
    s, n = toys.random_similarities(50, row.positives, negatives, torch.Generator().manual_seed(seed))
    s, n = s.requires_grad_(), n.requires_grad_()
    ours, theirs = divergence(row, s, n), row.loss.formula(Pairs(s, n))
    apart = (theirs - ours).detach()
    values = (apart - apart.mean()).abs() / theirs.detach().abs().clamp(min=1)
    pairs = zip(
        torch.autograd.grad(ours.sum(), (s, n)), torch.autograd.grad(theirs.sum(), (s, n)), strict=True
    )
    gradients = max(float(((a - b).abs() / b.abs().clamp(min=1)).max()) for a, b in pairs)
    return float(values.max()), gradients


def off_the_line(within: bool = False) -> dict[str, tuple[float, float]]:
    """Losses of one positive beside what the form implies: name -> how far from it, and the line's slope.

    With p on the positive and q a softmax of similarities and weights free of the positive's, ℓ is -log q₊ up
    to a constant and the pull is (1 - q₊)/τ: against e^-ℓ it lies on a line that falls from 1/τ. How far: the
    largest distance from the best line, on 50 anchors, over the largest pull. A slope of 0 or below: a q₊ of
    0 or below, which no softmax has.

    - within: the rows of `inside` in place of those outside
    """
    if within:
        rows = (row for row in inside() if row.positives == 1 and not row.pairs)
        asked = {row.name: row.loss for row in rows}
    else:
        kinds = (losses.Decoupled, losses.MACL, losses.DualTemperature, losses.AlphaCL, losses.Debiased)
        kinds += (losses.HardNegative, losses.SSCL, losses.RINCE, losses.Triplet, losses.PairMargin)
        kinds += (losses.Spectral, losses.Robust, losses.FlatNCE, losses.TemperatureFree)
        asked = {style.title(kind.__name__): kind() for kind in kinds}
    s, n = toys.random_similarities(50, 1, 20, torch.Generator().manual_seed(0))
    found = {}
    for name, loss in asked.items():
        positives = s.clone().requires_grad_()
        value = loss.formula(Pairs(positives, n))
        (slope,) = torch.autograd.grad(value.sum(), positives)
        pull, odds = -slope[:, 0], (value.detach().min() - value.detach()).exp()
        columns = torch.stack([torch.ones_like(odds), -odds], dim=1)
        line = torch.linalg.lstsq(columns, pull[:, None], driver="gelsd").solution
        if float(odds.max() - odds.min()) < 1e-9:  # a loss of one value: no line to be seen, but that pull
            line = torch.stack([pull.mean(), pull.new_zeros(())])[:, None]
        apart = (columns @ line)[:, 0] - pull
        largest = float(pull.abs().max())
        found[name] = float(apart.abs().max()) / largest, float(line[1, 0]) / largest
    return found


def table() -> tuple[str, float]:
    """Catalogue in Markdown, and the largest difference of the rows inside."""
    lines = ["| loss | p | q | value | gradient |", "|---|---|---|---|---|"]
    worst = 0.0
    for row in inside():
        value, gradient = differences(row)
        worst = max(worst, value, gradient)
        p = "on the positive" if row.positives == 1 else "uniform over the positives"
        p = "match for the positive, none for the others" if row.pairs else p
        lines.append(f"| {row.name} | {p} | {row.q} | {value:.0e} | {gradient:.0e} |")
    lines += [f"| {style.title(name)} | outside | {why} | | |" for name, why in outside().items()]
    return "\n".join(lines), worst

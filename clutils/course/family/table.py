"""The family on one page: value, pull and push of every loss, each formula checked against autograd.

A formula is written once, as an expression: `one_page` evaluates it, compares, and typesets the same string.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from clutils import losses
from clutils.figures import style
from clutils.losses import vicreg
from clutils.losses.base import softplus
from clutils.similarities import Pairs

TEX = {
    **{"s": "s^+", "n": "s^-_j", "t": r"\tau", "p": r"\hat p_j", "W_m": r"W_{m\tau}"},
    **{"E_plus": "E^+", "N_g": "N_g", "prior": r"\tau^+", "beta": r"\beta", "lam": r"\lambda"},
    **{"q_hard": r"q^{(1+\beta)}_j", "q_weight": r"q^{(\beta)}_j", "s_i": "s^+_i", "a": r"\alpha_i"},
    **{"b": r"\beta_j", "c_bar": r"\bar c", "W_bar": r"\bar W", "s_bar": r"\bar s"},
    **{"p_bar": r"\bar p_j", "d_pos": r"d_{pos}", "d_neg": r"d_{neg}", "h": r"\bar h", "d": "d_j"},
    **{"active": r"\mathbb 1_j", "C_ff": "C_{ff}", "C_fg": "C_{fg}", "mean": r"\operatorname{mean}"},
    **{"bias": "b", "sigma": r"\sigma", "q": "q", "w": "w_i", "importance": r"\alpha_j", "q_star": "q^*_j"},
    **{"c_w": r"\tilde c", "W_w": r"\tilde W", "p_w": r"\tilde p_j", "log_K": r"\log K", "radius": r"\rho"},
    **{"mu": r"\mu", "nu": r"\nu", "eps": r"\varepsilon", "S_f": "S_f", "lacks": r"\mathbb 1_f", "D": "D"},
    **{"odds": "o_j", "odds_plus": "o^+", "W_o": "W_o", "p_o": r"\hat p^o_j"},
    **{"T_m": "T_m", "dT": r"T_m'(x_j)", "M": "M"},
    **{name: rf"\mathrm{{{name}}}" for name in ("softplus", "relu")},
    **{"log": r"\log", "sum": r"\textstyle\sum"},
}
PRIOR = "((1 - prior) * t * Z)"


@dataclass(frozen=True)
class Row:
    """A loss and its formulas: of one anchor's value, the pull on a positive, the push on a negative.

    - says: beside its name; positives: how many its anchors have; clamped: whether its clamp acts (None: it
      has none)
    """

    loss: losses.Loss
    value: str
    pull: str
    push: str
    says: str = ""
    positives: int = 1
    clamped: bool | None = None


def rows(temperature: float = 0.3) -> list[Row]:
    """Every loss of the catalogue, those of one gradient together."""
    t = temperature
    info, debiased = ("softplus(c)", "W / t", "W * p / t"), (f"S / {PRIOR}", f"S * p / {PRIOR}")
    hard = f"S * ((1 + beta) * q_hard - beta * q_weight) / {PRIOR}"
    silent = ("log(Z / E_plus)", "N_g / (t * Z)", "0")
    supcon, barlow = "mean(log(sum(E)) - s_i / t)", "(1 - C_ff)**2 + lam * sum(C_fg**2)"
    made = [
        Row(losses.NTXent(t), *info),
        Row(losses.CLIP(t), *info, "each row and column of its table"),
        Row(losses.MoCHi(t), *info, "over real negatives and mixes"),
        Row(losses.NNCLR(t), *info, "an anchor's neighbour in its place"),
        Row(losses.NPair(), "softplus(c)", "W", "W * p", r"on inner products, $\tau = 1$"),
        Row(losses.SupCon(t), supcon, "(1 / P - q_i) / t", "q_j / t", "$P$ positives", 3),
        Row(losses.Decoupled(t), "c", "1 / t", "p / t"),
        Row(losses.FlatNCE(t), "1", "1 / t", "p / t"),
        Row(losses.MACL(t), "softplus(c) / W", "1 / t", "p / t", r"all at $\tau_a$"),
        Row(losses.DualTemperature(t), "W_m * softplus(c) / W", "W_m / t", "W_m * p / t"),
    ]
    for loss, push, says in (
        (losses.Debiased(t), debiased[1], ""),
        (losses.HardNegative(t), hard, ""),
        (losses.SSCL(t), hard, "over real negatives and mixes"),
    ):
        made.append(Row(loss, "log(Z / E_plus)", debiased[0], push, says, clamped=False))
    made += [
        *(Row(loss(t), *silent, "clamped", 1, True) for loss in (losses.Debiased, losses.HardNegative)),
        Row(losses.AttentionNCE(t), "softplus(c_bar)", "a * W_bar / t", "b * p_bar * W_bar / t", "", 3),
        Row(
            losses.AttentionNCE(t, detach_attention=False),
            "softplus(c_bar)",
            "a * (1 + (s_i - s_bar) / d_pos) * W_bar / t",
            "b * (p_bar * (1 + n / d_neg) - h / d_neg) * W_bar / t",
            "attention not detached",
            3,
        ),
        Row(losses.PairMargin(), "2 - 2 * s + mean(relu(m - d)**2)", "2", "2 * relu(m - d) / (K * d)"),
        Row(losses.Triplet(0.6), "mean(relu(m + 2 * n - 2 * s))", "2 * mean(active)", "2 * active / K"),
        Row(losses.Regression(), "2 - 2 * s", "2", "0"),
        Row(losses.Spectral(), "mean(n**2) - 2 * s", "2", "2 * n / K", "on inner products"),
        Row(losses.WeightedDecoupled(t), "c + (1 - w) * s / t", "w / t", "p / t"),
        Row(losses.SogCLR(t), "t * (c - log_K)", "1", "p", "its average at rest"),
        Row(losses.ISogCLR(0.5, temperature=t), "t * (c - log_K + radius)", "1", "p", "the same"),
        Row(
            losses.TemperatureFree(),
            "log(1 + sum(odds) / odds_plus)",
            "2 * W_o / (1 - s**2)",
            "2 * W_o * p_o / (1 - n**2)",
        ),
        Row(losses.Robust(0.5), "sum(q_star * n) - s", "1", "q_star"),
        Row(losses.AlphaCL(t, 2.0), "sum(importance * (n - s))", "sum(importance)", "importance"),
        Row(losses.ADNCE(t), "softplus(c_w)", "W_w / t", "W_w * p_w / t"),
        Row(
            losses.RINCE(t, 0.5, 0.1),
            "((lam * sum(E))**q - E_plus**q) / q",
            "(E_plus**q - (lam * sum(E))**q * q_i) / t",
            "(lam * sum(E))**q * q_j / t",
        ),
        Row(
            losses.SigLIP(t, -1.0),
            "softplus(-s / t - bias) + sum(softplus(n / t + bias))",
            "sigma(-s / t - bias) / t",
            "sigma(n / t + bias) / t",
        ),
        Row(
            losses.VICReg(printed=True),
            "(mu * relu(1 - (S_f**2 + eps)**0.5) + nu * sum(C_fg**2)) / D",
            "mu * lacks * S_f / (S_f**2 + eps)**0.5 / D",
            "2 * nu * C_fg / D",
            "each feature $f$ of one view",
        ),
        Row(
            losses.SIGReg(0.5),
            "((1 - lam) * s**2 + lam * T_m) / M",
            "-2 * (1 - lam) * s / M",
            "lam * dT / M",
            "half a difference $s^+$, projections $x_j$ of one view",
        ),
        Row(losses.BarlowTwins(0.1), barlow, "2 * (1 - C_ff)", "2 * lam * C_fg", "each feature $f$"),
    ]
    return made


def one_page(seed: int = 0) -> tuple[str, float]:
    """Table in Markdown, and the largest difference between its formulas and autograd.

    A loss of the catalogue without a row in `rows` has its docstring's formula, and forces by autograd alone.
    """
    worst = 0.0
    lines = ["| loss | value $\\ell$ | pull | push on each | checked to |", "|---|---|---|---|---|"]
    for row in rows():
        gap = difference(row, *_cases(row, seed))
        worst = max(worst, gap)
        said = f"{style.title(row.loss.name)}{f', {row.says}' if row.says else ''}"
        formulas = " | ".join(f"${tex(formula)}$" for formula in (row.value, row.pull, row.push))
        lines.append(f"| {said} | {formulas} | {gap:.0e} |")
    written = {row.loss.name for row in rows()}
    for name in (name for name in losses.catalogue() if name not in written):
        formula = re.search(r"\$\$(.*?)\$\$", getattr(losses, name).__doc__ or "", re.DOTALL)
        value = f"${' '.join(formula[1].split())}$" if formula else "see its docstring"
        lines.append(f"| {style.title(name)} | {value} | by autograd | by autograd | no closed form here |")
    return "\n".join(lines), worst


def difference(row: Row, s: Tensor, n: Tensor) -> float:
    """Largest |formula - autograd|/max(1, |autograd|) of a row's three: similarities (A, P), (A, K)."""
    s, n = s.clone().requires_grad_(), n.clone().requires_grad_()
    values = _values(row.loss, s, n)
    found = torch.autograd.grad(values.sum(), (s, n), allow_unused=True, materialize_grads=True)
    known = quantities(row.loss, s.detach(), n.detach())
    value, pull, push = (_evaluated(formula, known) for formula in (row.value, row.pull, row.push))
    value = value.expand(len(s), 1)[:, 0]
    if values.ndim == 0:  # over all anchors
        value = value.sum()
    sides = ((value, values.detach()), (pull, -found[0]), (push, found[1]))
    return max(float(((a - b).abs() / b.abs().clamp(min=1)).max()) for a, b in sides)


def tex(formula: str) -> str:
    """Expression as TeX: names from `TEX`, products without a sign."""

    def symbol(found: re.Match[str]) -> str:
        written = TEX.get(found[1], found[1])
        if not found[2]:
            return written
        # what has an index takes a power in braces alone, what has a sign above it in brackets
        return f"({written})**" if "^" in written else f"{{{written}}}**"

    text = re.sub(r"([A-Za-z_]+)(\*\*)?", symbol, formula)
    text = re.sub(r"\*\*([\d.]+)", r"^{\1}", text).replace("**", "^")
    return text.replace(" * ", r" \, ").replace(" / ", "/")


def quantities(loss: losses.Loss, s: Tensor, n: Tensor) -> dict[str, Any]:
    """Quantities that the formulas name, of anchors with similarities s (A, P) and n (A, K)."""
    t = getattr(loss, "temperature", 1.0)
    if isinstance(loss, losses.MACL):
        t = float(loss.temperature_at(s.mean()))
    K, P, m = n.shape[1], s.shape[1], getattr(loss, "margin", 0.0)
    prior, beta, ratio = (getattr(loss, name, 0.0) for name in ("class_prior", "beta", "ratio"))
    E_plus, E = (s / t).exp(), (n / t).exp()
    c, p = E.sum(1, keepdim=True).log() - s / t, torch.softmax(n / t, 1)
    hot = (n / (ratio * t)).logsumexp(1, keepdim=True) - s / (ratio * t) if ratio else c
    q_hard, q_weight = (torch.softmax(b * n / t, 1) for b in (1 + beta, beta))
    S = K * (E ** (1 + beta)).sum(1, keepdim=True) / (E**beta).sum(1, keepdim=True)
    N_g = ((S - K * prior * E_plus) / (1 - prior)).clamp(min=K * math.exp(-1 / t))
    q = torch.softmax(torch.cat([s, n], 1) / t, 1)
    d_pos, d_neg = (getattr(loss, name, 1.0) for name in ("d_pos", "d_neg"))
    a, b = torch.softmax(s / d_pos, 1), K * torch.softmax(n / d_neg, 1)
    s_bar, p_bar = (a * s).sum(1, keepdim=True), torch.softmax(b * n / t, 1)
    c_bar = (b * n / t).logsumexp(1, keepdim=True) - s_bar / t
    q_star = loss.worst_case(Pairs(s, n))[0] if isinstance(loss, losses.Robust) else p
    exponent = loss.alpha if isinstance(loss, losses.AlphaCL) else 1.0
    density = -(((n - getattr(loss, "mean", 0.0)) / getattr(loss, "deviation", 1.0)) ** 2) / 2
    logits = n / t + density - density.logsumexp(1, keepdim=True) + math.log(K)
    c_w, lam = logits.logsumexp(1, keepdim=True) - s / t, getattr(loss, "off_diagonal", 0.0)
    odds_plus, odds = (1 + s) / (1 - s), (1 + n) / (1 - n)
    statistic, slope = _epps_pulley(n)
    return {
        **{"q": getattr(loss, "q", 1.0), "w": 2 - len(s) * torch.softmax(s / getattr(loss, "sigma", 1.0), 0)},
        **{
            "importance": (-((1 - n) ** exponent) / t).exp(),
            "q_star": q_star,
            "bias": getattr(loss, "bias", 0),
        },
        **{"odds_plus": odds_plus, "odds": odds, "p_o": odds / odds.sum(1, keepdim=True)},
        **{"W_o": odds.sum(1, keepdim=True) / (odds_plus + odds.sum(1, keepdim=True))},
        **{"c_w": c_w, "W_w": c_w.sigmoid(), "p_w": torch.softmax(logits, 1), "log_K": math.log(K)},
        **{"mu": getattr(loss, "variance", 0.0), "nu": getattr(loss, "covariance", 0.0), "eps": vicreg.ADDED},
        **{"S_f": s, "lacks": (s**2 + vicreg.ADDED < 1).double(), "D": len(s), "M": len(s)},
        **{"T_m": statistic, "dT": slope, "radius": getattr(loss, "radius", 0.0), "sigma": torch.sigmoid},
        **{"s": s, "s_i": s, "n": n, "t": t, "K": K, "P": P, "m": m, "c": c, "W": c.sigmoid(), "p": p},
        **{"W_m": hot.sigmoid(), "E_plus": E_plus, "S": S, "N_g": N_g, "Z": E_plus + N_g, "prior": prior},
        **{"beta": beta, "q_hard": q_hard, "q_weight": q_weight, "q_i": q[:, :P], "q_j": q[:, P:]},
        **{"E": torch.cat([E_plus, E], 1), "a": a, "b": b, "s_bar": s_bar, "p_bar": p_bar, "c_bar": c_bar},
        **{"W_bar": c_bar.sigmoid(), "d_pos": d_pos, "d_neg": d_neg, "d": (2 - 2 * n).sqrt()},
        **{"h": (p_bar * b * n).sum(1, keepdim=True) / K, "active": (m + 2 * n > 2 * s[:, :1]).double()},
        **{"C_ff": s, "C_fg": n, "lam": getattr(loss, "weight", lam)},
        **{"softplus": softplus, "log": torch.log, "relu": torch.relu},
        **{name: _along_a_row(name) for name in ("mean", "sum")},
    }


def _epps_pulley(x: Tensor, knots: int = 17) -> tuple[Tensor, Tensor]:
    """SIGReg's statistic of each row of x (M, B), (M, 1), and its slope along each entry, (M, B)."""
    t = torch.linspace(0, 3, knots, dtype=x.dtype)
    phi, weights = (-t.square() / 2).exp(), torch.full_like(t, 2 * 3 / (knots - 1))
    weights[[0, -1]] /= 2
    cos, sin = ((function(x[..., None] * t)) for function in (torch.cos, torch.sin))  # (M, B, knots)
    real, imaginary = cos.mean(1, keepdim=True) - phi, sin.mean(1, keepdim=True)
    value = x.shape[1] * ((real**2 + imaginary**2) * phi * weights).sum(-1)
    return value, (2 * (imaginary * cos - real * sin) * t * phi * weights).sum(-1)


def _along_a_row(name: str) -> Any:
    return lambda table: getattr(table, name)(dim=1, keepdim=True)


def _evaluated(formula: str, known: dict[str, Any]) -> Tensor:
    return torch.as_tensor(eval(formula, {"__builtins__": {}}, known), dtype=torch.float64)


def _values(loss: losses.Loss, s: Tensor, n: Tensor) -> Tensor:
    """Loss of each anchor; of those of another level by what their formula takes."""
    if loss.level == "similarity":
        return loss.per_anchor(s, n)
    if loss.level == "feature":
        return loss.formula(Pairs(s, n))
    if isinstance(loss, losses.SIGReg):  # an anchor is a direction here, its negatives a view's projections
        return loss.formula((s, n.T[None]))
    if isinstance(loss, losses.Regression):
        return loss.formula(s[:, 0])
    others = ~torch.eye(len(s), dtype=torch.bool)  # a row of correlations, or covariances, for each feature
    if isinstance(loss, losses.VICReg):
        lacking, shared = vicreg.moments(torch.diag(s[:, 0] ** 2).masked_scatter(others, n))
        return loss.variance * lacking + loss.covariance * shared
    return loss.formula(torch.diag(s[:, 0]).masked_scatter(others, n))


def _cases(row: Row, seed: int, K: int = 39) -> tuple[Tensor, Tensor]:
    """K + 1 anchors, uniform in [-1, 1]; with a clamp those where it acts, or those where it does not."""
    dice = torch.Generator().manual_seed(seed)
    s, n = (2 * torch.rand(20 * K, k, generator=dice, dtype=torch.float64) - 1 for k in (row.positives, K))
    n = torch.where(s[:, :1] > 0.5, n / 2 - 0.5, n)  # some anchors whose negatives are all far
    if row.clamped is not None:
        known = quantities(row.loss, s, n)
        chosen = (known["N_g"] <= K * math.exp(-1 / known["t"]))[:, 0] == row.clamped
        s, n = s[chosen], n[chosen]
    return s[: K + 1], n[: K + 1]

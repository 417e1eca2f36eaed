"""Number of negatives that count: the temperature that it asks for, and where each loss's push lies beside
the best weights of that number."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from clutils import figures
from clutils.course.one_idea.exercises import temperature_for
from clutils.course.panels import Panel, among, choose, panel
from clutils.figures import style


def best_weights(negatives: Tensor, effective: Tensor | float) -> tuple[Tensor, Tensor]:
    """Weights of the highest mean similarity among those of `effective` negatives: q (A, K), τ (A,).

    - negatives: (A, K); effective: e^H(q), one number or each anchor's own, (A,)
    """
    each = torch.as_tensor(effective, dtype=negatives.dtype).expand(len(negatives))[:, None]
    temperature = temperature_for(negatives, each)
    return torch.softmax(negatives / temperature[:, None], dim=1), temperature


def beside_the_best(push: Tensor, negatives: Tensor) -> dict[str, Tensor]:
    """A push beside the best weights of as many negatives, for each anchor that pushes: name -> (A,).

    - push, negatives: (A, K); what is drawn in counts for nothing; drawn: its share of all |push|
    - effective: e^H of its shares; similarity: what it pushes, in the mean; best: the most that so many can
      have; temperature: of the best; divergence: KL(shares ‖ best), in nats
    """
    pushing = (push > 0).any(dim=1)
    drawn = -push[pushing].clamp(max=0).sum(dim=1) / push[pushing].abs().sum(dim=1)
    push, s = push[pushing].clamp(min=0), negatives[pushing]
    share = push / push.sum(dim=1, keepdim=True)
    effective = torch.special.entr(share).sum(dim=1).exp()
    q, temperature = best_weights(s, effective)
    divergence = (torch.special.xlogy(share, share) - torch.special.xlogy(share, q)).sum(dim=1)
    return {
        "effective": effective,
        "similarity": (share * s).sum(dim=1),
        "best": (q * s).sum(dim=1),
        "temperature": temperature,
        "divergence": divergence,
        "drawn": drawn,
    }


def choose_how_many(tables: Mapping[str, Tensor]) -> Panel:
    """Slider over K_eff: the τ that it sets for each anchor, and the weights of one of them.

    - tables: name -> negatives (A, K)
    """
    figure, (left, right) = figures.new(10.2, 3.8, 1, 2)
    with style.course():
        K = next(iter(tables.values())).shape[1]
        (dots,) = left.plot([], [], "o", color=style.BLUE, markersize=5, label="an anchor")
        (ring,) = left.plot([], [], "o", color=style.VERMILLION, markersize=11, label="the one at the right")
        (rule,) = left.plot([], [], color=style.GREY, linestyle="--", label="Gaussian: σ/√(2ρ)")
        left.set(xlabel="spread σ of its negatives", ylabel="temperature τ", xlim=(0, None), ylim=(0, None))
        above = {"loc": "lower left", "bbox_to_anchor": (-0.05, 1.0), "fontsize": 9, "handlelength": 1.6}
        left.legend(ncols=3, columnspacing=1.0, handletextpad=0.4, **above)
        (stems,) = right.plot([], [], "o", color=style.VERMILLION, markersize=4)
        right.axhline(1 / K, color=style.GREY, linestyle=(0, (4, 3)))
        right.text(-0.98, 1.15 / K, "1/K, all alike")
        right.set(xlabel="similarity of a negative", ylabel="its weight q", xlim=(-1, 1))
        right.set_yscale("log")
        right.set_ylim(1e-6, 1.3)
    figures.describe(
        figure,
        "Left: each anchor's temperature against the spread of its negatives' similarities, at one effective "
        "number of negatives for all. Right: one anchor's weights against similarity, on a logarithmic axis.",
    )

    def update(encoder: str, effective: float, anchor: int) -> str:
        s = tables[encoder]
        q, t = best_weights(s, effective)
        spread = s.std(dim=1, correction=0)
        dots.set_data(spread, t)
        ring.set_data([spread[anchor]], [t[anchor]])
        edge = float(spread.max()) * 1.1
        radius = math.log(s.shape[1] / effective)
        rule.set_data([0, edge], [0, edge / math.sqrt(2 * radius)])
        left.set(xlim=(0, edge), ylim=(0, 1.15 * max(float(t.max()), edge / math.sqrt(2 * radius))))
        stems.set_data(s[anchor], q[anchor])
        return (
            f"K_eff = {effective:g} of {s.shape[1]}, ρ = {radius:.2f}: τ from {float(t.min()):.3f} to "
            f"{float(t.max()):.3f}, median {float(t.median()):.3f}. This anchor: τ = {float(t[anchor]):.3f}, "
            f"spread {float(spread[anchor]):.2f}, hardest negative {float(q[anchor].max()):.1%} of the push."
        )

    counts = [x for x in (2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 160, 200, 230, 250) if x < K]
    return panel(
        figure,
        update,
        encoder=choose("encoder", list(tables)),
        effective=among("K_eff negatives that count", counts, 30),
        anchor=among("anchor", range(0, 24), 0),
    )

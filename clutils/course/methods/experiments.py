"""Experiments of notebook 11: the ages of MoCo's keys, and the linear theory of two networks."""

from typing import Any, NamedTuple

import numpy as np
from torch import Tensor


class KeyAges(NamedTuple):
    """Staleness of MoCo's keys.

    - by_age: (A,) mean cosine of an image's keys of a steps ago and of today, for ages a of 0 to A - 1
    - others: mean cosine of today's keys of different images: an old key as far off says nothing of its own
    """

    by_age: Tensor
    others: float


# ---- the linear theory of two networks, with rates of their own --------------------------------------------


def linear_theory(
    p: np.ndarray,
    w: np.ndarray,
    decay: float = 0.15,
    predictor_rate: float = 1.0,
    target_rate: float = np.inf,
    decay_follows_rate: bool = False,
    noise: float = 0.25,
    time: float = 400.0,
    step: float = 0.1,
) -> np.ndarray:
    r"""End value of w² in step 8's equations from starts p, w (N,), the target at w: (N,), by Euler's method.

    $$\dot p = a\,w\,[w_t - (1+\sigma^2)\,p\,w] - b\,\eta\,p, \qquad
      \dot w = p\,[w_t - (1+\sigma^2)\,p\,w] - \eta\,w, \qquad \dot w_t = r\,(w - w_t)$$

    - decay (η); predictor_rate (a); target_rate (r): infinite = the target is the online network
    - decay_follows_rate: b = a, as AdamW has it, whose decay is multiplied by a group's rate; else b = 1
    - noise: σ², of a view
    """
    p, w = (np.array(start, dtype=float) for start in (p, w))
    of_target, follows = w.copy(), 1 - np.exp(-target_rate * step)
    b = predictor_rate if decay_follows_rate else 1.0
    for _ in range(round(time / step)):
        force = of_target - (1 + noise) * p * w
        p, w = (
            p + step * (predictor_rate * w * force - b * decay * p),
            w + step * (p * force - decay * w),
        )
        of_target = of_target + follows * (w - of_target)
    return w**2


def ridge_and_end(start_of_p: float | None = None, **rates: Any) -> tuple[float, float]:
    """The least start w from which an embedding does not collapse, and the w² it reaches; NaN, 0 = none does.

    - start_of_p: where the predictor starts; None = at w
    - rates: of `linear_theory`

    The start is right to 0.0003: the middle of two neighbours on a grid.
    """
    step = 1 / 2000
    starts = np.arange(1, 2001) * step
    of_p = starts if start_of_p is None else np.full_like(starts, start_of_p)
    ends = linear_theory(of_p, starts, **rates)
    alive = ends > 0.02
    if not alive.any():
        return float("nan"), 0.0
    return float(starts[alive.argmax()]) - step / 2, float(ends[-1])

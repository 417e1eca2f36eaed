"""Experiments of notebook 11: one function each, run live in small and recorded at full length."""

import copy
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from clutils import similarities, training
from clutils.data import ImageSet


class KeyAges(NamedTuple):
    """How stale MoCo's keys are.

    - by_age: (A,) mean cosine of an image's keys of a steps ago and of today, for ages a of 0 to A - 1
    - others: mean cosine of today's keys of different images: an old key as far off says nothing of its own
    """

    by_age: Tensor
    others: float


def key_ages(
    momentum: float,
    train: ImageSet,
    steps: int = 60,
    batch_size: int = 128,
    pictures: int = 128,
    seed: int = 0,
    queue_size: int = 4096,
) -> KeyAges:
    """How stale MoCo's keys are, at ages of 0 to `steps` steps.

    After each step the key encoder of that moment makes keys of the same `pictures` views; those of age a are
    compared with the last ones. It is in training mode, as in a step: the views are one batch. The run is
    stopped half-way, where the learning rate is still high: at its end the weights hardly move any more.
    """
    run = training.Run(
        method="moco",
        data=train,
        steps=2 * steps,
        batch_size=batch_size,
        seed=seed,
        method_settings={"momentum": momentum, "queue_size": queue_size},
    )
    views = run.augmentation(run.images[:pictures], generator=torch.Generator().manual_seed(seed))

    @torch.no_grad()
    def keys() -> Tensor:
        encoder = copy.deepcopy(run.method.target_encoder).train()  # a copy: it learns batch statistics
        return similarities.normalise(run.method.target_head(run.method.features_of(views, encoder)))

    made = [keys()]
    for _ in range(steps):
        run.step()
        made.append(keys())
    today = made[-1]
    by_age = torch.stack([(old * today).sum(dim=1).mean() for old in reversed(made)])
    count = len(today)
    others = (today.sum(dim=0).square().sum() - count) / (count * (count - 1))
    return KeyAges(by_age.cpu(), others.item())


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
    r"""Where w² of step 8's equations ends from starts p, w (N,), the target at w: (N,), by Euler's method.

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

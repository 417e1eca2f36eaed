"""Exercises of notebook 12: a collapsed run brought back, a τ that is too hot, and what a history tells."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from statistics import fmean, median, pstdev
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import normalize

from clutils import data, losses, training
from clutils.course.exercise import Lacks, Nothing, something, written

if TYPE_CHECKING:
    import pandas as pd

exercise = written(__file__)

# ---- 1: a collapsed run --------------------------------------------------------------------------

FALLEN, GOING_ON = 40, 80  # steps after which the run has collapsed, and steps that it is then given
COLD = 0.05  # a τ at which NT-Xent gets that far, from seed 0
PARTED = 0.15  # spread of directions that counts as brought back: the collapsed run's is some 0.02


def collapsed_run(seed: int = 0) -> training.Run:
    """SimCLR's step with a loss of positives alone, on 600 digits: after 40 steps all lie on one point.

    It is trained once in a process; every call returns a copy.
    """
    return copy.deepcopy(_collapsed(seed))


@functools.cache
def _collapsed(seed: int) -> training.Run:
    run = training.Run(
        loss=losses.Regression(),
        data=data.load("digits", limit=600),
        batch_size=64,
        steps=FALLEN + 3 * GOING_ON // 2,
        learning_rate=5e-3,
        seed=seed,
        precision="float32",
    )
    while run.steps_done < FALLEN:
        run.step()
    return run


def spread(run: training.Run) -> float:
    """How far the directions of the run's embeddings lie apart: 0 on one point, about 1 at random."""
    z = normalize(run.project(run.data), dim=1)
    return float(z.std(dim=0).mean()) * z.shape[1] ** 0.5


def rescue(run: training.Run) -> None:
    run.loss = losses.NTXent(temperature=0.05)


ALONE, TOO_WARM = "the positives alone, still", "a push from negatives that is too small"
ANEW, TRAINED = "another run", "a rescue that trains by itself"


def _trains(run: training.Run) -> None:
    run.loss = losses.NTXent(temperature=0.5)
    run.step()


def _settings(run: training.Run) -> dict[str, Any]:
    """Settings of a run, and how much its optimiser remembers."""
    warmth = getattr(run.loss, "temperature", None)  # of a loss that has none, where a reader set one
    return run.configuration | {"temperature": warmth, "remembered": len(run.optimiser.state)}


def _judge_rescue(answer: Callable[[training.Run], object]) -> str | None:
    run = collapsed_run()
    fallen = spread(run)
    settings, before = _settings(run), copy.deepcopy(run.method.state_dict())
    returned = answer(run)
    after = run.method.state_dict()
    same = {name: name in after and torch.equal(before[name], after[name]) for name in before}
    if run.steps_done != FALLEN:
        return TRAINED
    if returned is None and _settings(run) == settings and all(same.values()):
        raise Nothing("your function returned nothing, and changed no setting, weight or memory of the run.")
    if returned is not None and returned is not run:
        return ANEW if isinstance(returned, training.Run) else f"it returned {returned!r}, not a run"
    if not all(kept for name, kept in same.items() if name.startswith(("encoder.", "head."))):
        return "encoder or head have other weights now: a fresh start is no rescue"
    run.steps = max(run.steps, run.steps_done + GOING_ON)
    for _ in range(GOING_ON):
        run.step()
    reached = spread(run)
    if reached >= PARTED:
        return None
    if isinstance(run.loss, losses.Regression):
        return ALONE
    if hasattr(run.loss, "temperature") and run.loss.temperature > COLD:
        return TOO_WARM
    return (
        f"after {GOING_ON} further steps the directions are {reached:.3f} apart, after {fallen:.3f} when it "
        f"was handed to you; wanted is {PARTED}"
    )


RESCUE = exercise(
    name="rescue",
    answer=rescue,
    wrong={
        ALONE: lambda run: setattr(run, "learning_rate", 0.02),
        TOO_WARM: lambda run: setattr(run, "loss", losses.NTXent(temperature=1.0)),
        ANEW: lambda run: collapsed_run(),
        TRAINED: _trains,
    },
    judge=_judge_rescue,
)


# ---- 2: too hot ----------------------------------------------------------------------------------


def too_hot(accuracies: dict[float, Sequence[float]]) -> float:
    best = max(accuracies, key=lambda t: sum(accuracies[t]) / len(accuracies[t]))
    worse = [t for t in accuracies if t > best and max(accuracies[t]) < min(accuracies[best])]
    return min(worse)


def _lowest(
    by: Callable[[Sequence[float]], float] = fmean,
    worse: Callable[[Sequence[float], Sequence[float]], bool] = lambda own, best: max(own) < min(best),
    colder: bool = False,
    pick: Callable[[list[float]], float] = min,
) -> Callable[[dict[float, Sequence[float]]], float]:
    """The right answer, except the given part: what a τ is best by, which are worse, where, which of them."""

    def answer(accuracies: dict[float, Sequence[float]]) -> float:
        best = max(accuracies, key=lambda t: by(accuracies[t]))
        above = [t for t in accuracies if colder or t > best]
        return pick([t for t in above if worse(accuracies[t], accuracies[best])])

    return answer


def _tables() -> list[tuple[Any, ...]]:
    tables = [
        {0.05: (0.60, 0.64), 0.2: (0.80, 0.84), 0.5: (0.78, 0.82), 1.0: (0.70, 0.74), 2.0: (0.5, 0.6)},
        # the best seed misleads
        {0.1: (0.50, 0.95), 0.3: (0.80, 0.81), 0.6: (0.78, 0.79), 0.9: (0.4, 0.45)},
        {2.0: (0.30, 0.31), 0.1: (0.70, 0.72), 0.7: (0.71, 0.60), 1.5: (0.69, 0.5)},
        {0.1: (0.50, 0.90, 0.91), 1.0: (0.6, 0.6, 0.6), 5.0: (0.4, 0.4, 0.4), 0.02: (0.1, 0.1, 0.2)},
        # so does the median
        {0.1: (0.3, 0.8, 0.82), 0.3: (0.75, 0.76, 0.79), 0.6: (0.7, 0.73, 0.74), 2.0: (0.1, 0.2, 0.25)},
        {0.1: (0.80, 0.84), 0.4: (0.75, 0.80), 0.7: (0.70, 0.79), 1.5: (0.6, 0.7)},  # a tie
        # the worst seed misleads
        {0.1: (0.85, 0.60), 0.3: (0.70, 0.70), 1.0: (0.65, 0.62), 2.0: (0.5, 0.55)},
        {0.02: (0.80, 0.84), 0.05: (0.70, 0.75), 0.3: (0.6, 0.6), 1.0: (0.5, 0.5)},
        {0.3: (0.80, 0.84), 2.0: (0.30, 0.31), 0.05: (0.40, 0.45), 0.8: (0.50, 0.55)},  # in no order
        # one that is worse, below one that is not
        {0.1: (0.80, 0.84), 0.4: (0.70, 0.72), 0.8: (0.79, 0.83), 2.0: (0.3, 0.4)},
        # error bars that do not overlap, and seeds that do; the hottest within the spread of the best
        {0.1: (0.80, 0.84, 0.82), 0.4: (0.801, 0.70, 0.70), 1.0: (0.6, 0.6, 0.6), 2.0: (0.81, 0.83, 0.79)},
        {0.2: (0.80, 0.84, 0.82), 0.5: (0.70, 0.72, 0.71), 5.0: (0.805, 0.81, 0.80), 0.05: (0.5, 0.1, 0.6)},
        # seeds of different number: a sum is no mean
        {0.1: (0.80, 0.84, 0.82), 0.3: (0.86, 0.87), 1.0: (0.81, 0.83), 2.0: (0.4, 0.5)},
    ]
    return [(table,) for table in tables]


TOO_HOT = exercise(
    name="too_hot",
    answer=too_hot,
    wrong={
        "a comparison of means alone": _lowest(worse=lambda own, best: fmean(own) < fmean(best)),
        "the best τ taken by its best seed": _lowest(by=max),
        "the best τ taken by the median": _lowest(by=median),
        "the τ with the lowest accuracy": lambda accuracies: min(
            accuracies, key=lambda t: fmean(accuracies[t])
        ),
        "a τ that is too cold": _lowest(colder=True),
        "a tie counted as worse": _lowest(worse=lambda own, best: max(own) <= min(best)),
        "the hottest one that is worse": _lowest(pick=max),
        "error bars that do not overlap": _lowest(
            worse=lambda own, best: fmean(own) + pstdev(own) < fmean(best) - pstdev(best)
        ),
    },
    cases=_tables,
    by_hand=(
        {
            2.0: (0.35, 0.37),  # in no order
            0.02: (0.30, 0.32),
            0.05: (0.20, 0.21),
            0.1: (0.74, 0.90),  # a wide range
            0.3: (0.78, 0.80),  # a tie
            0.6: (0.70, 0.72),
            1.0: (0.50, 0.95),  # one lucky seed
            1.5: (0.40, 0.42),
        },
    ),
)


# ---- 3: what a history tells ---------------------------------------------------------------------


def turned(history: pd.DataFrame) -> list[tuple[int, float]]:
    before = history["temperature"].shift()
    changed = history[(history["temperature"] != before) & before.notna()]
    return [(int(step), float(t)) for step, t in zip(changed["step"], changed["temperature"], strict=True)]


def _with_start(history: pd.DataFrame) -> list[tuple[int, float]]:
    changed = history[history["temperature"] != history["temperature"].shift()]
    return [(int(step), float(t)) for step, t in zip(changed["step"], changed["temperature"], strict=True)]


def _row_numbers(history: pd.DataFrame) -> list[tuple[int, float]]:
    rows = {int(step): row for row, step in enumerate(history["step"])}
    return [(rows[step], temperature) for step, temperature in turned(history)]


def _old_values(history: pd.DataFrame) -> list[tuple[int, float]]:
    temperatures = [float(history["temperature"].iloc[0]), *(t for _, t in turned(history))]
    return [(step, temperatures[k]) for k, (step, _) in enumerate(turned(history))]


def _histories() -> list[tuple[Any, ...]]:
    import pandas as pd

    courses = (
        (1, [0.2] * 4 + [2.0] * 3 + [0.2] * 2),
        (31, [0.1, 0.1, 0.5, 0.05, 0.05]),  # of a run that was resumed, say
        (1, [0.3] * 5),
        (1, [0.3, 0.3, 0.299, 0.299]),  # a small turn is one, too
    )
    return [
        (pd.DataFrame({"step": range(first, first + len(t)), "temperature": t, "loss": 1.0}),)
        for first, t in courses
    ]


def _turns_found(answer: Callable[[pd.DataFrame], Any], history: pd.DataFrame) -> dict[str, Any]:
    """The list of (step, new τ) that it makes of a history, under a name that says which history it was."""
    returned = something(answer(history.copy()))
    try:
        found = [(step, float(temperature)) for step, temperature in returned]
        if any(step % 1 for step, _ in found):
            raise ValueError("a step is a whole number")
    except (TypeError, ValueError):
        raise Lacks(f"it returned {returned!r}, but a list of (step, new τ) is asked for") from None
    course = list(zip(history["step"].tolist(), history["temperature"].tolist(), strict=True))
    return {f"what it makes of (step, τ) = {course}": found}


TURNED = exercise(
    name="turned",
    answer=turned,
    wrong={
        "the start counted as a turn": _with_start,
        "the step before the turn": lambda history: [(step - 1, t) for step, t in turned(history)],
        "row numbers in place of steps": _row_numbers,
        "the old values": _old_values,
    },
    cases=_histories,
    observe=_turns_found,
)


EXERCISES = [RESCUE, TOO_HOT, TURNED]

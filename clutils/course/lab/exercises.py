"""Exercises of notebook 12: a collapsed run brought back, a τ that is too hot, and what a history tells."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import normalize

from clutils import data, losses, training
from clutils.course.exercise import Exercise, Wrong

if TYPE_CHECKING:
    import pandas as pd

# ---- 1: a collapsed run --------------------------------------------------------------------------

FALLEN, GOING_ON = 40, 100  # steps after which the run has collapsed, and steps that it is then given
COLD = 0.05  # a τ at which NT-Xent gets that far
PARTED = 0.15  # spread of directions that counts as brought back: the collapsed run's is some 0.02


def collapsed_run(seed: int = 0) -> training.Run:
    """SimCLR's step with a loss of positives alone, on 600 digits: after 40 steps all lie on one point."""
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


ALONE = Wrong(
    "the positives alone, still",
    lambda run: setattr(run, "learning_rate", 0.02),
    "nothing in this loss minds that all pictures lie on one point, at whatever learning rate: its value "
    "there is 0.",
)
TOO_WARM = Wrong(
    "a push from negatives that is too small",
    lambda run: setattr(run, "loss", losses.NTXent(temperature=1.0)),
    "within the clump its gradient is small, the smaller the warmer τ, and AdamW measures each step by the "
    "gradients that it remembers, which were large. Make it larger, or make the optimiser forget.",
)
ANEW = Wrong(
    "another run",
    lambda run: collapsed_run(),
    "the task is this run, with the weights that it has. (Starting anew is what one does in earnest, from "
    "a checkpoint of before the collapse.)",
)


def _trains(run: training.Run) -> None:
    run.loss = losses.NTXent(temperature=0.5)
    run.step()


TRAINED = Wrong(
    "a rescue that trains by itself",
    _trains,
    "set something about the run and leave the steps to the check: how many a rescue takes is the question.",
)


def _settings(run: training.Run) -> dict[str, Any]:
    """What may be set about a run, and how much its optimiser remembers."""
    warmth = getattr(run.loss, "temperature", None)  # of a loss that has none, where a reader set one
    return run.configuration | {"temperature": warmth, "remembered": len(run.optimiser.state)}


def _judge_rescue(answer: Callable[[training.Run], object]) -> str | None:
    run = collapsed_run()
    fallen = spread(run)
    settings, before = _settings(run), copy.deepcopy(run.method.state_dict())
    try:
        returned = answer(run)
        after = run.method.state_dict()
        same = {name: torch.equal(before[name], after[name]) for name in before if name in after}
        if run.steps_done != FALLEN:
            return TRAINED.name
        if returned is None and _settings(run) == settings and all(same.values()):
            return "your function returned nothing, and changed nothing about the run"
        if returned is not None and returned is not run:
            return ANEW.name if isinstance(returned, training.Run) else f"it returned {returned!r}, not a run"
        if not all(kept for name, kept in same.items() if name.startswith(("encoder.", "head."))):
            return "encoder or head have other weights now: a fresh start is no rescue"
        run.steps = max(run.steps, run.steps_done + GOING_ON)
        for _ in range(GOING_ON):
            run.step()
    except Exception as error:  # whatever a reader's own code brings about is an answer to report on
        return f"the run ended with {type(error).__name__}: {error}"
    reached = spread(run)
    if reached >= PARTED:
        return None
    if isinstance(run.loss, losses.Regression):
        return ALONE.name
    if hasattr(run.loss, "temperature") and run.loss.temperature > COLD:
        return TOO_WARM.name
    return (
        f"after {GOING_ON} further steps the directions are {reached:.2f} apart, after {fallen:.2f} when it "
        f"was handed to you; wanted is {PARTED}"
    )


RESCUE = Exercise(
    name="rescue",
    question="rescue(run): change something about the collapsed run, so that in 100 steps it parts again.",
    answer=rescue,
    hints=[
        "Which term of the loss would ever part two different pictures? `run.loss` may be changed.",
        "A loss with negatives is needed. Its gradient within the clump is small beside those that AdamW "
        "remembers: a colder τ makes it larger; or has `run.optimiser` a memory that can be cleared?",
    ],
    wrong=[ALONE, TOO_WARM, ANEW, TRAINED],
    judge=_judge_rescue,
)


# ---- 2: too hot ----------------------------------------------------------------------------------


def too_hot(accuracies: dict[float, Sequence[float]]) -> float:
    best = max(accuracies, key=lambda t: sum(accuracies[t]) / len(accuracies[t]))
    worse = [t for t in accuracies if t > best and max(accuracies[t]) < min(accuracies[best])]
    return min(worse)


def _with_ties(accuracies: dict[float, Sequence[float]]) -> float:
    best = max(accuracies, key=lambda t: sum(accuracies[t]) / len(accuracies[t]))
    return min(t for t in accuracies if t > best and max(accuracies[t]) <= min(accuracies[best]))


def _means_alone(accuracies: dict[float, Sequence[float]]) -> float:
    mean = {t: sum(values) / len(values) for t, values in accuracies.items()}
    best = max(mean, key=mean.get)
    return min(t for t in mean if t > best and mean[t] < mean[best])


def _best_seed(accuracies: dict[float, Sequence[float]]) -> float:
    best = max(accuracies, key=lambda t: max(accuracies[t]))
    return min(t for t in accuracies if t > best and max(accuracies[t]) < min(accuracies[best]))


def _by_median(accuracies: dict[float, Sequence[float]]) -> float:
    best = max(accuracies, key=lambda t: median(accuracies[t]))
    return min(t for t in accuracies if t > best and max(accuracies[t]) < min(accuracies[best]))


def _the_worst(accuracies: dict[float, Sequence[float]]) -> float:
    return min(accuracies, key=lambda t: sum(accuracies[t]) / len(accuracies[t]))


def _cold_as_well(accuracies: dict[float, Sequence[float]]) -> float:
    best = max(accuracies, key=lambda t: sum(accuracies[t]) / len(accuracies[t]))
    worse = [t for t in accuracies if max(accuracies[t]) < min(accuracies[best])]
    return min(worse)


def _the_hottest(accuracies: dict[float, Sequence[float]]) -> float:
    best = max(accuracies, key=lambda t: sum(accuracies[t]) / len(accuracies[t]))
    worse = [t for t in accuracies if t > best and max(accuracies[t]) < min(accuracies[best])]
    return max(worse)


def _tables() -> list[tuple[Any, ...]]:
    return [
        ({0.05: (0.60, 0.64), 0.2: (0.80, 0.84), 0.5: (0.78, 0.82), 1.0: (0.70, 0.74), 2.0: (0.5, 0.6)},),
        (
            {0.1: (0.50, 0.95), 0.3: (0.80, 0.81), 0.6: (0.78, 0.79), 0.9: (0.4, 0.45)},
        ),  # the best seed misleads
        ({2.0: (0.30, 0.31), 0.1: (0.70, 0.72), 0.7: (0.71, 0.60), 1.5: (0.69, 0.5)},),
        ({0.1: (0.50, 0.90, 0.91), 1.0: (0.6, 0.6, 0.6), 5.0: (0.4, 0.4, 0.4), 0.02: (0.1, 0.1, 0.2)},),
        (
            {0.1: (0.3, 0.8, 0.82), 0.3: (0.75, 0.76, 0.79), 0.6: (0.7, 0.73, 0.74), 2.0: (0.1, 0.2, 0.25)},
        ),  # so does the median
        ({0.1: (0.80, 0.84), 0.4: (0.75, 0.80), 0.7: (0.70, 0.79), 1.5: (0.6, 0.7)},),  # a tie
        (
            {0.1: (0.85, 0.60), 0.3: (0.70, 0.70), 1.0: (0.65, 0.62), 2.0: (0.5, 0.55)},
        ),  # the worst seed misleads
        ({0.02: (0.80, 0.84), 0.05: (0.70, 0.75), 0.3: (0.6, 0.6), 1.0: (0.5, 0.5)},),
    ]


TOO_HOT = Exercise(
    name="too_hot",
    question="too_hot({τ: accuracies of its seeds}): the lowest τ above the best one at which every seed is "
    "worse (a tie is not) than every seed of the best, which is the one with the highest mean. There is one.",
    answer=too_hot,
    hints=[
        "First the best τ, by the mean of its seeds. Then only those that are hotter.",
        "Too hot is what lies outside the spread: its best seed below the best τ's worst seed.",
    ],
    wrong=[
        Wrong(
            "a comparison of means alone",
            _means_alone,
            "two means always differ. Compare the best seed of one with the worst of the other.",
        ),
        Wrong(
            "the best τ taken by its best seed",
            _best_seed,
            "one lucky seed does not make a τ the best: take the highest mean.",
        ),
        Wrong(
            "the best τ taken by the median",
            _by_median,
            "a fair measure too, and another one: asked is the highest mean.",
        ),
        Wrong(
            "the τ with the lowest accuracy",
            _the_worst,
            "that may be too cold, or far hotter than the first one that is too hot.",
        ),
        Wrong(
            "a τ that is too cold",
            _cold_as_well,
            "it is worse beyond the spread, but lies below the best τ: look above it only.",
        ),
        Wrong(
            "a tie counted as worse",
            _with_ties,
            "its best seed must lie below the worst seed of the best: equal is within the spread.",
        ),
        Wrong("the hottest one that is worse", _the_hottest, "asked is where it begins: the lowest of them."),
    ],
    cases=_tables,
)


# ---- 3: what a history tells ---------------------------------------------------------------------


def turned(history: pd.DataFrame) -> list[tuple[int, float]]:
    before = history["temperature"].shift()
    changed = history[(history["temperature"] != before) & before.notna()]
    return [(int(step), float(t)) for step, t in zip(changed["step"], changed["temperature"], strict=True)]


def _with_start(history: pd.DataFrame) -> list[tuple[int, float]]:
    changed = history[history["temperature"] != history["temperature"].shift()]
    return [(int(step), float(t)) for step, t in zip(changed["step"], changed["temperature"], strict=True)]


def _step_before(history: pd.DataFrame) -> list[tuple[int, float]]:
    return [(step - 1, temperature) for step, temperature in turned(history)]


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
    )
    return [
        (pd.DataFrame({"step": range(first, first + len(t)), "temperature": t, "loss": 1.0}),)
        for first, t in courses
    ]


def _same_turns(given: Any) -> list[tuple[int, float]] | None:
    try:
        pairs = [(int(step), float(temperature)) for step, temperature in given]
        return pairs if all(k == step for (k, _), (step, _) in zip(pairs, given, strict=True)) else None
    except (TypeError, ValueError):
        return None


def _judge_turned(answer: Callable[[pd.DataFrame], Any]) -> str | None:
    cases = _histories()
    given = []
    for (history,) in cases:
        try:
            returned = answer(history.copy())
        except Exception as error:  # a reader's own code
            return f"your code raised {type(error).__name__}: {error}"
        if returned is None:
            return "your function returned nothing yet"
        given.append(_same_turns(returned))
        if given[-1] is None:
            return f"it returned {returned!r}, but a list of (step, new τ) is asked for"
    if given == [turned(history) for (history,) in cases]:
        return None
    for wrong in TURNED.wrong:
        if given == [wrong.answer(history) for (history,) in cases]:
            return wrong.name
    number = next(k for k, (history,) in enumerate(cases) if given[k] != turned(history))
    (history,) = cases[number]
    course = list(zip(history["step"], history["temperature"], strict=True))
    return f"of (step, τ) = {course} it makes {given[number]}"


TURNED = Exercise(
    name="turned",
    question="turned(history): [(step, new τ), ...] for each step that was the first with another τ.",
    answer=turned,
    hints=[
        "`history['temperature'].shift()` is the column, moved down by one row.",
        "The first row has none before it: nobody turned anything there. Steps stand in a column.",
    ],
    wrong=[
        Wrong("the start counted as a turn", _with_start, "before the first row there was no other τ."),
        Wrong(
            "the step before the turn",
            _step_before,
            "that one was still made with the old τ: a change takes effect at the next step, and is listed "
            "with it.",
        ),
        Wrong(
            "row numbers in place of steps", _row_numbers, "rows count from 0, and a history may start late."
        ),
        Wrong("the old values", _old_values, "asked is the τ that each turn brought."),
    ],
    judge=_judge_turned,
)


EXERCISES = [RESCUE, TOO_HOT, TURNED]

"""Comparisons of runs: chosen settings, the learning phase, the power of the seeds.

`benchmarks/evidence.py` makes the runs, `train_and_evaluate` one after the other; the rest reads them.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from clutils import anatomy, losses, measures, similarities, training
from clutils.course import records
from clutils.course.experiments import NEIGHBOURS, NTXentOfViews, mispaired
from clutils.data import ImageSet, VectorSet
from clutils.views import Augment, Augmentation

if TYPE_CHECKING:
    import pandas

RECORD = "evidence"
APART = {"real_images": "evidence_real_images", "real_losses": "evidence_real_losses"}  # further columns
PLAIN, ADAPTIVE, HARD = "NT-Xent", "MACL", "HCL"  # contenders of "real_losses"
FIXED, MISPAIRED = "NT-Xent at MACL's temperature", "NT-Xent, views of different images"
VIEWS, FLAT, ATTENTION = "NT-Xent, four further views", "AttentionNCE, flat", "AttentionNCE"
NEAR = 0.005  # of a ceiling: half a point
CEILING = ("methods", "SupCon, told the classes")  # of all subjects but those of APART, which have their own
SETTLED, LEARNING, FALLING = "past its learning phase", "still learning", "still falling"
POWER = 0.8  # with which a difference that the seeds can detect is detected


def train_and_evaluate(
    settings: Mapping[str, Any],
    train: ImageSet | VectorSet,
    validation: ImageSet | VectorSet,
    test: ImageSet | VectorSet,
    steps: int,
    looks: Sequence[int],
    batch_size: int = 128,
    also: Callable[[training.Run], Mapping[str, float]] | None = None,
) -> list[dict[str, Any]]:
    """Train one run and look at it after each of `looks` steps (0 = untrained): a row a look.

    - settings: of `training.Run`, except data, steps and batch size; and one of its own, `at_a_time`: see
      `in_parts`
    - knn_validation, knn: accuracy (k = 20) on images to choose by and on those to judge by; the training
      images vote
    - effective_rank: of the test images' features
    - uniformity, tolerance: of the test images after the head
    - silent: share of the anchors of a batch whose loss pushes no negative; NaN where there are none
    - loss, noise: means since the look before (at most the last 100 steps), NaN at step 0 and where there is
      none; seconds: spent in steps so far
    - also: measures more of the run at each look; its values are added to the row
    """
    settings = dict(settings)
    at_a_time = settings.pop("at_a_time", batch_size)
    run = training.Run(data=train, steps=steps, batch_size=batch_size, **settings)
    if at_a_time < batch_size:
        in_parts(run, at_a_time)
    rows = []
    for look in looks:
        while run.steps_done < look:
            run.step()
        z, projected = run.embed(train), run.project(test)
        asked = {
            "knn_validation": (run.embed(validation), validation.labels),
            "knn": (run.embed(test), test.labels),
        }
        since = run.history.tail(min(100, max(1, run.steps_done // 3))) if run.steps_done else None
        rows.append(
            {
                "step": look,
                **{
                    name: measures.knn_accuracy(z, train.labels, *of, k=NEIGHBOURS)
                    for name, of in asked.items()
                },
                "effective_rank": measures.effective_rank(asked["knn"][0]),
                "uniformity": measures.uniformity(projected),
                "tolerance": measures.tolerance(projected, test.labels),
                "silent": _silent(run, train),
                "loss": math.nan if since is None else float(since["loss"].mean()),
                "noise": float(since["noise"].mean()) if since is not None and "noise" in since else math.nan,
                "learning_rate": run.learning_rate,
                "batch_size": batch_size,
                "precision": run.settings.precision,
                "threads": run.settings.threads,
                "seconds": run.rows[-1]["seconds"] if run.rows else 0.0,
                **(also(run) if also else {}),
            }
        )
    return rows


def in_parts(run: training.Run, size: int) -> None:
    """From now on a step's batch goes through network and loss in parts of `size`; its loss is their mean.

    So an image meets the others of its part alone, in the loss and in batch normalisation, while the updates
    and the images that each sees stay as many: gradient accumulation, on purpose.
    """
    whole = run.method.forward

    def forward(images: Tensor, augment: Augment, generator: torch.Generator, *of_each: Any) -> Any:
        parts = [
            whole(images[at], augment, generator, *(None if x is None else x[at] for x in of_each))
            for at in (slice(start, start + size) for start in range(0, len(images), size))
        ]
        values, z1, z2 = zip(*parts, strict=True)
        return torch.stack(values).mean(), torch.cat(z1), torch.cat(z2)

    run.method.forward = forward


def _silent(run: training.Run, train: ImageSet | VectorSet) -> float:
    """Share of a batch's anchors that push no negative; of losses on similarities, with two views."""
    if not hasattr(run.loss, "per_anchor") or not isinstance(train, ImageSet):
        return math.nan
    draw = torch.Generator().manual_seed(run.settings.seed)
    batch = train.images[: run.settings.batch_size]
    z1, z2 = (similarities.normalise(run.project(run.augmentation(batch, generator=draw))) for _ in range(2))
    pairs = similarities.two_views(z1, z2)
    try:
        _, push = anatomy.forces(run.loss, pairs.positives.double(), pairs.negatives.double())
    except (ValueError, TypeError, NotImplementedError):
        return math.nan
    return (push.abs().sum(dim=1) == 0).double().mean().item()


def mean_temperature(run: training.Run) -> dict[str, float]:
    """Temperature that a run's loss used, mean of the last 100 steps at most; before the first step its own.

    Of a loss that sets its temperature itself (MACL) the one it used, else the one it was given.
    """
    history = run.history.tail(100)
    used = history.get("effective_temperature")
    return {"temperature": float(run.loss.temperature if used is None else used.mean())}


# ---- reading the record ------------------------------------------------------------------------------------


def record_of(subject: str) -> str:
    """Name of the record in `benchmarks/records/` that holds a subject's runs."""
    return APART.get(subject, RECORD)


def chosen(subject: str, contender: str) -> dict[str, Any]:
    """Settings that did best on validation images among the grid's runs on record.

    Raises ValueError where there are none.
    """
    grid = records.read(record_of(subject)).query("stage == 'grid'")
    own = grid[(grid["subject"] == subject) & (grid["contender"] == contender)]
    if own.empty:
        raise ValueError(f"evidence: no grid runs of {contender!r} in {subject!r} are on record")
    return json.loads(own.loc[own["knn_validation"].idxmax(), "settings"])


def at_best(subject: str, contender: str, runs: pandas.DataFrame, **also: Any) -> pandas.DataFrame:
    """Rows of a contender's runs at the settings that its grid chose and `also`; none without a grid."""
    try:
        best = chosen(subject, contender) | also
    except (ValueError, FileNotFoundError):
        return runs[:0]
    return runs.loc[[json.loads(settings) == best for settings in runs["settings"]]]


def temperature_at_the_end(subject: str, contender: str, seed: int = 0) -> float:
    """Temperature that a recorded run at the chosen settings ended at, to three places.

    Raises ValueError where that run is not on record.
    """
    table = records.read(record_of(subject)).query("stage == 'seeds' and step == steps")
    own = table[(table["subject"] == subject) & (table["contender"] == contender) & (table["seed"] == seed)]
    own = at_best(subject, contender, own)
    if own.empty:
        raise ValueError(f"evidence: no run of {contender!r} in {subject!r} with seed {seed} is on record")
    return round(float(own["temperature"].iloc[0]), 3)


def run_arguments(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as JSON has them -> those of `training.Run`."""
    given = dict(settings)
    if "loss" in given:
        name, own = given["loss"]
        kind = NTXentOfViews if name == NTXentOfViews.__name__ else getattr(losses, name)
        given["loss"] = kind.stored({k: float(v) if v == "inf" else v for k, v in own.items()})
    if given.get("augmentation") == "mispaired":
        given["augmentation"] = mispaired
    elif "augmentation" in given:
        given["augmentation"] = Augmentation(**given["augmentation"])
    return given


def finished(subject: str, least: int = 3) -> pandas.DataFrame:
    """Finished runs of a subject: a row a look, by seed; contenders with fewer than `least` seeds left out.

    So no rows where nothing is on record yet, and none of a contender whose runs are still being made.
    """
    import pandas

    try:
        table = records.read(record_of(subject))
    except FileNotFoundError:
        return pandas.DataFrame(columns=["contender", "seed", "step", "steps"])
    table = table[(table["subject"] == subject) & (table["stage"] == "seeds")]
    ended = table[table["step"] == table["steps"]].groupby("contender")["seed"].nunique()
    return table[table["contender"].isin(ended.index[ended >= least])].sort_values("seed", kind="stable")


def curves(subject: str, column: str = "knn") -> pandas.DataFrame:
    """Finished runs of a subject: contender, step, and the mean, lowest, highest and number of seeds."""
    runs = finished(subject).reindex(columns=["contender", "step", column])
    by_look = runs.groupby(["contender", "step"], sort=False)[column]
    return by_look.agg(["mean", "min", "max", "count"]).reset_index()


def results(
    subject: str, column: str = "knn", step: int | None = None, least: int = 3
) -> dict[str, list[float]]:
    """contender -> a value a seed, in the order of the seeds; {} where nothing is on record yet.

    - step: how many steps the runs had done, 0 being untrained; None = at their end
    - least: contenders with fewer seeds are left out
    """
    runs = finished(subject, least)
    runs = runs[runs["step"] == (runs["steps"] if step is None else step)]
    return {name: rows[column].tolist() for name, rows in runs.groupby("contender", sort=False)}


def learning_phase(subject: str, contender: str) -> str:
    """'at the ceiling', or what `trend` says: `SETTLED`, `LEARNING` or `FALLING`.

    At the ceiling: by the interval less than `NEAR` is missing to what was told the classes (`CEILING`);
    there the seeds hardly differ, and a gain of a few images in thousands is no learning phase. Raises
    ValueError where fewer than three seeds are on record.
    """
    runs = finished(subject)
    by_step = runs[runs["contender"] == contender].pivot(index="seed", columns="step", values="knn")
    if by_step.empty:
        raise ValueError(f"evidence: fewer than three seeds of {contender!r} in {subject!r} are on record")
    said = trend(by_step)
    ceiling = results(subject if subject in APART else CEILING[0]).get(CEILING[1])
    ends = by_step[by_step.columns.max()].tolist()
    if said != SETTLED and ceiling and difference(ends, ceiling).low > -NEAR:
        return "at the ceiling"
    return said


def trend(by_step: pandas.DataFrame) -> str:
    """Trend of runs over the last third of the steps, a row a seed and a column a step.

    `SETTLED` where it changes the mean by less than the seeds' standard deviation at the end, and not, by the
    interval over the seeds, certainly by `NEAR` or more; else `LEARNING` or `FALLING`.
    """
    end = by_step.columns.max()
    before = max(step for step in by_step.columns if step <= 2 * end / 3)
    gained = (by_step[end] - by_step[before]).tolist()
    mean = statistics.fmean(gained)
    certain = paired(gained, [0.0] * len(gained)).decided and abs(mean) >= NEAR
    if abs(mean) < by_step[end].std() and not certain:
        return SETTLED
    return LEARNING if mean > 0 else FALLING


def has_learned(subject: str, *contenders: str) -> bool:
    """True where none is still learning or falling; ValueError as `learning_phase` of one alone."""
    if len(contenders) > 1 and not set(contenders) <= set(results(subject)):
        return False
    return all(learning_phase(subject, contender) not in (LEARNING, FALLING) for contender in contenders)


# ---- two contenders ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """a minus b: the means' difference, its interval, and what these seeds could have detected.

    - low, high: 95 % interval by Student's t, or Welch's
    - detectable: the difference that as many seeds with this spread show in 80 % of the cases, to be read
      before a run; one that was found may be smaller, and is decided where its interval leaves 0 out
    """

    mean: float
    low: float
    high: float
    detectable: float

    @property
    def half(self) -> float:
        """Half the interval."""
        return (self.high - self.low) / 2

    @property
    def verdict(self) -> str:
        """ "above" or "below" where the interval leaves 0 out, else "not apart"."""
        return ("above" if self.mean > 0 else "below") if self.decided else "not apart"

    @property
    def decided(self) -> bool:
        """True where the interval leaves 0 out."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        mean, low, high, detectable = (100 * x for x in (self.mean, self.low, self.high, self.detectable))
        said = "" if self.decided else ", not decided"
        return (
            f"{mean:+.1f} points (95 % interval {low:+.1f} to {high:+.1f}{said}; these seeds detect "
            f"{detectable:.1f} points)"
        )


def difference(a: Sequence[float], b: Sequence[float]) -> Difference:
    """Welch's interval of mean(a) - mean(b), and the power of so many seeds.

    Raises ValueError on fewer than three values of one: a spread of two says little.
    """
    if min(len(a), len(b)) < 3:
        raise ValueError(f"difference: needs three seeds or more of each, got {len(a)} and {len(b)}")
    own = [statistics.variance(values) / len(values) for values in (a, b)]
    shares = sum(v**2 / (len(x) - 1) for v, x in zip(own, (a, b), strict=True))
    freedom = sum(own) ** 2 / shares if shares else 1.0
    return _interval(statistics.fmean(a) - statistics.fmean(b), math.sqrt(sum(own)), freedom)


def paired(a: Sequence[float], b: Sequence[float]) -> Difference:
    """Student's interval of the mean of a - b, seed by seed, where a seed draws the same for both.

    With five seeds it is 2.8 standard errors each way, with three 4.3, with two 12.7. Raises ValueError on
    one pair, or on lengths that differ.
    """
    if len(a) != len(b) or len(a) < 2:
        raise ValueError(f"paired: needs two seeds or more, the same of each, got {len(a)} and {len(b)}")
    gaps = [x - y for x, y in zip(a, b, strict=True)]
    return _interval(statistics.fmean(gaps), statistics.stdev(gaps) / math.sqrt(len(gaps)), len(gaps) - 1)


def _interval(mean: float, error: float, freedom: float) -> Difference:
    from scipy import stats

    half = float(stats.t.ppf(0.975, freedom)) * error
    return Difference(mean, mean - half, mean + half, half + float(stats.t.ppf(POWER, freedom)) * error)

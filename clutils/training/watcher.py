"""Periodic evaluation during training, limited to 8 % of its time: effective rank, kNN accuracy, a PCA map.

watcher = watching(run, "scenes")
run.finish([watcher])                  # it looks while it has had less than its share of the time
watcher.table                          # step, knn, effective_rank

In a loop of one's own, on any encoder:

watcher = Watcher((gallery, judged), numbers=("rankme", "knn", "probe"), every=100)
watcher(encoder, step, head)           # looks every 100 steps, behind `loss.backward()`
"""

from __future__ import annotations

import contextlib
import copy
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from clutils import data, encoders, maps, measures, views
from clutils.data import GraphSet, ImageSet, SentenceSet, VectorSet
from clutils.data.sets import SampleSet
from clutils.measures import BY_NAME
from clutils.methods.base import autocast
from clutils.settings import one_of, within
from clutils.training import saved

if TYPE_CHECKING:
    import pandas as pd

    from clutils.training.run import Run

BANK, TEST = 1000, 500
VIEWED = 256  # images of which LiDAR sees two views, and by which fresh statistics settle
SHARE = 0.08  # of the training's seconds that watching and drawing may take
SOON = 10  # steps after a setting was turned, at which what it did is looked at
CREDIT = 0.15  # seconds that it may have before there was any training, so that the first chart is early


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A copy of a run's encoder as it was at a step, to be used while the run trains on.

    - half: what its encoder is computed in, None = float32
    """

    step: int
    encoder: nn.Module
    half: torch.dtype | None = None

    def embed(self, inputs: Tensor) -> Tensor:
        """Features before the head, in the run's precision: (N, D) float32."""
        with autocast(next(self.encoder.parameters(), inputs).device, self.half):
            return encoders.embed(self.encoder, inputs)


def snapshot(run: Run) -> Snapshot:
    """Copy of a run's encoder at its present step, for another thread or to keep; taken between two steps."""
    encoder = copy.deepcopy(run.encoder).requires_grad_(False)
    return Snapshot(run.steps_done, encoder, run.method.half_type)


@dataclass(frozen=True, eq=False)
class Look:
    """Measurements at one step.

    - knn: accuracy in [0, 1], NaN where it was not or could not be measured
    - effective_rank: of the sample's features; 0 where all of them are equal
    - positions: (N, 2), the map of the sample
    - seconds: what it cost
    - numbers: those that the watcher was asked for, NaN where they could not be measured; in a loop of one's
      own gradient_norm, where there are gradients, and head_uniformity, where a head was given
    """

    step: int
    knn: float
    effective_rank: float
    positions: np.ndarray
    seconds: float
    numbers: Mapping[str, float] = field(default_factory=dict)


class Watcher:
    """Effective rank, kNN accuracy and a map of a fixed sample of images, at some steps of a run.

    - pictures: the sample of the map and of the effective rank; or the labelled images and the test images
      as a pair, as `report.check` takes them
    - bank, test: labelled images that vote, and test images; without a bank no kNN; test None = the sample
    - every: steps from a look to the next at the least; None = as often as the time allows
    - numbers: names of `measures.BY_NAME` that a look measures besides, as `check` does
    - folder: where a run that it is a callback of gets measured.csv and map.npz at its end; None = nowhere

    As a callback (`run.finish([watcher])`) it looks before the first step, within its share of the time, and
    after the last step. With numbers and `every` it measures those every so many steps and at both ends,
    whatever that takes; they are then columns of the run's history.

    All but `head_uniformity` is measured by the encoder's features, before the head. A look computes on a
    copy of the weights: the run is to the bit what it would be unwatched. Of an encoder that has seen no
    image yet, accuracies are the better of two, as it was made and with settled batch statistics, as `check`
    has them. Raises ValueError on a number that there is not, or that the
    images can't give: some need labels, LiDAR images.
    """

    def __init__(
        self,
        pictures: SampleSet | tuple[SampleSet, SampleSet],
        bank: SampleSet | None = None,
        test: SampleSet | None = None,
        every: int | None = None,
        numbers: Iterable[str] = (),
        folder: str | Path | None = None,
    ) -> None:
        if isinstance(pictures, tuple):
            bank, pictures = pictures
        pictures, bank = pictures.mixed(), None if bank is None else bank.mixed()
        test = pictures if test is None else test.mixed()
        within("Watcher", "every", every, 1, whole=True, also=(None,))
        self.pictures, self.every, self.folder = pictures, every, folder
        self.measures_knn = _labelled(bank, test)
        self._votes = (test, bank) if bank is not None and self.measures_knn else None  # test images, voters
        self.seconds_looking = 0.0  # of all looks beside a run that trains
        self.seconds_total = 0.0  # those, and what a caller adds that draws
        self.ceiling: int | None = None  # of the effective rank, min(N - 1, D); None before the first look
        self.numbers = demand_known(numbers)
        for name in self.numbers:
            needs, least = BY_NAME[name].needs, BY_NAME[name].least
            if needs == "labels" and self._votes is None:
                raise ValueError(f"{name!r} needs labels of two classes or more, which there are not")
            if self._votes is not None and least > len(self._votes[1]):
                lent = len(self._votes[1])
                raise ValueError(f"{name!r} needs {least} labelled images, but there are {lent}")
            if needs == "views" and not isinstance(pictures, ImageSet):
                raise ValueError(f"{name!r} needs views of images, but these are none")
        self._views: Tensor | None = None  # two of each image, once they are asked for
        self._looks: dict[int, Look] = {}  # by step; several threads may look at once
        self._wanted: int | None = None  # the step of the next look, whatever it costs

    @property
    def looks(self) -> list[Look]:
        """In order of their steps; of several at one step the last."""
        return [self._looks[step] for step in sorted(self._looks)]

    # ---- when ------------------------------------------------------------------------------------------

    def has_budget(self, run: Run) -> bool:
        """True while watching has had less than its share of the time that the run has trained for."""
        return self.seconds_total < SHARE * _trained(run) + CREDIT

    def is_due(self, run: Run, every: int = 1) -> bool:
        """True where a look was requested, or `every` steps have passed and half of the share is left."""
        since = run.steps_done - (self.looks[-1].step if self._looks else -math.inf)
        affordable = self.seconds_looking < SHARE / 2 * _trained(run) and self.has_budget(run)
        requested = self._wanted is not None and run.steps_done >= self._wanted
        return requested or (since >= every and affordable)

    def request(self, step: int) -> None:
        """Have the run looked at when it is at this step or beyond, also where the share is used up."""
        self._wanted = step

    # ---- as a callback ---------------------------------------------------------------------------------

    def before_run(self, run: Run) -> None:
        if not run.done and not self._has_seen(run):
            first = bool(self.numbers) and not run.steps_done
            self._record(run) if first and self.every else self.look(run, free=first, few=not first)

    def after_step(self, run: Run) -> None:
        if self.numbers and self.every:
            if run.done or run.steps_done % self.every == 0:
                self._record(run)
            elif self.is_due(run):
                self.look(run, few=True)
        elif self.is_due(run, self.every or 1):
            self.look(run)

    def after_run(self, run: Run) -> None:
        if not run.steps_done:
            return
        if not self._has_seen(run):
            self.look(run, free=True, few=bool(self.every))
        if self.folder is not None:
            self.write(run, Path(self.folder), last=True)

    def _has_seen(self, run: Run) -> bool:
        return bool(self._looks) and self.looks[-1].step == run.steps_done

    def _record(self, run: Run) -> None:
        """Look at it, and put the numbers into its history."""
        run.looks[run.steps_done] = dict(self.look(run, free=True).numbers)

    # ---- what ------------------------------------------------------------------------------------------

    def __call__(self, encoder: nn.Module, step: int, head: nn.Module | None = None) -> Look | None:
        """In a loop of one's own: look where `every` steps have passed since the last time, and at first.

        - encoder: images in [0, 1] -> (N, D), as in nn.Sequential(normalise, encoder); it stays as it is
        - step: counted on over the epochs; ValueError where it is before the last look
        - head: (N, D) -> (N, E), what the loss sees: its uniformity shows a collapse that the features hide
        """
        since = step - (self.looks[-1].step if self._looks else -math.inf)
        if since < 0:
            raise ValueError(f"Watcher: step is {step}, but the last look was at {step - since}: count on")
        return self.look(encoder, step=step, head=head) if since >= (self.every or 1) else None

    def look(
        self,
        run: Run | Snapshot | nn.Module,
        free: bool = False,
        step: int = 0,
        few: bool = False,
        head: nn.Module | None = None,
    ) -> Look:
        """Measure now; the look is added to `looks`, in the place of one at the same step.

        - run: one at rest; of one that trains meanwhile a `snapshot`; an encoder of one's own, at this step
        - free: does not count against the share; few: without `numbers`; head: as of a call
        """
        began = time.perf_counter()
        if isinstance(run, nn.Module):
            seen = Snapshot(step, run)
        else:
            seen = run if isinstance(run, Snapshot) else snapshot(run)
        z = seen.embed(self.pictures.inputs)
        self.ceiling = min(z.shape[0] - 1, z.shape[1])
        asked = () if few else self.numbers
        sample = measures.Features(z, views=self._of_views(seen, asked))
        judged = [self._judged(lambda of: z if of is self.pictures else seen.embed(of.inputs))]
        if judged[0] is not None and encoders.unseen(seen.encoder):
            settled = replace(seen, encoder=encoders.settled(seen.encoder, self.pictures.inputs[:VIEWED]))
            judged.append(self._judged(lambda of: settled.embed(of.inputs)))
        knn, rank = _best("knn", judged), measured("effective_rank", sample)
        found = {name: _best(name, judged if BY_NAME[name].needs == "labels" else [sample]) for name in asked}
        if isinstance(run, nn.Module):
            found |= _of_a_loop(run, z, head)
        look = Look(
            seen.step,
            knn,
            0.0 if math.isnan(rank) else rank,  # all rows are equal: no dimension is in use
            self._map(z),
            time.perf_counter() - began,
            found,
        )
        self._looks[look.step] = look
        if self._wanted is not None and seen.step >= self._wanted:
            self._wanted = None
        if not free:
            self.seconds_looking += look.seconds
            self.seconds_total += look.seconds
        return look

    def raw(self) -> float:
        """kNN accuracy of the images themselves, grey as the origin: what learning nothing is worth."""
        return measured("knn", self._judged(measures.raw_inputs))

    @property
    def positions(self) -> np.ndarray | None:
        """The last map, (N, 2)."""
        return self.looks[-1].positions if self._looks else None

    @property
    def map(self) -> saved.Map | None:
        """The last map, with the classes of its images."""
        if not self._looks:
            return None
        last, of = self.looks[-1], self.pictures
        return saved.Map(last.positions, of.labels.cpu().numpy(), of.class_names, last.step)

    @property
    def table(self) -> pd.DataFrame:
        """step, knn and effective_rank of each look, and the other numbers that were asked for."""
        measured = [*self.numbers, *(name for look in self.looks for name in look.numbers)]
        asked = [name for name in dict.fromkeys(measured) if name not in saved.COLUMNS]
        return saved.table_of([{**look.numbers, **vars(look)} for look in self.looks], asked)

    # ---- into a folder ---------------------------------------------------------------------------------

    def write(self, run: Run, folder: Path, last: bool = False) -> None:
        """Write all looks, and one at the run as it is now: measured.csv and map.npz, for `save_run`.

        - last: only the look at the run as it is now, without its further numbers
        """
        if not self._has_seen(run):
            self.look(run, free=True)
        assert self.map is not None  # it has just looked
        table = self.table[[*saved.COLUMNS]][-1:] if last else self.table
        saved.add_evaluations(folder, table, self.map)

    # ---- inside ----------------------------------------------------------------------------------------

    def _judged(self, features: Callable[[SampleSet], Tensor]) -> measures.Features | None:
        """The test images and the bank by their features; None where there are no labels."""
        if self._votes is None:
            return None
        (z, gallery_z), (test, bank) = map(features, self._votes), self._votes
        return measures.Features(z, test.labels.to(z.device), gallery_z, bank.labels.to(z.device))

    def _of_views(self, seen: Snapshot, asked: Iterable[str]) -> Tensor | None:
        """Features of two views of the first images, (N, 2, D); None where no number needs them."""
        if not any(BY_NAME[name].needs == "views" for name in asked):
            return None
        if self._views is None:
            self._views = torch.stack(views.pair(self.pictures.inputs[:VIEWED]))
        return torch.stack([seen.embed(view) for view in self._views], dim=1)

    def _map(self, features: Tensor) -> np.ndarray:
        try:
            positions = maps.pca(features)
        except ValueError:  # as above
            return np.zeros((len(features), 2), dtype=np.float32)
        return positions if self.positions is None else aligned(positions, self.positions)


def aligned(positions: np.ndarray, before: np.ndarray) -> np.ndarray:
    """A map turned and mirrored, not scaled, to lie as near as it can to an earlier one of the same images.

    Both (N, 2); the turn is the orthogonal one of Procrustes, Q = UVᵀ from the singular vectors of XᵀY
    (Schönemann 1966). An isometry, so neighbourhoods are unchanged.
    """
    if positions.shape != before.shape or positions.ndim != 2:
        raise ValueError(f"aligned: positions is {positions.shape} but before is {before.shape}")
    centre = positions.mean(axis=0, dtype=np.float64)
    moved, target = positions - centre, before - before.mean(axis=0, dtype=np.float64)
    left, _, right = np.linalg.svd(moved.T @ target)
    return (moved @ left @ right + centre).astype(np.float32)


def evaluation_split(
    pictures: SampleSet, name: str | None = None
) -> tuple[SampleSet, SampleSet | None, SampleSet | None]:
    """The sample that a run on these images is watched by, and for kNN the bank and the test images.

    - name: of the set, as `data.load` knows it: then its test part is the test images and the sample. Without
      a name or such a part, some of the images themselves are, drawn at random but always the same:
      in order they may be a class alone.

    The bank is None where the images have no labels.
    """
    test: SampleSet | None = None
    third = len(pictures) // 3
    if name is not None:
        with contextlib.suppress(ValueError, data.Unavailable):  # a folder without one
            test = data.load(name, "test", limit=TEST, download=False)
    if test is None or type(test) is not type(pictures):
        order = torch.randperm(len(pictures), generator=torch.Generator().manual_seed(0))
        test, others = pictures.subset(order[:third][:TEST]), order[third:]
    else:
        others = torch.arange(len(pictures) - third)
    bank = pictures.subset(others[:BANK])
    return (test, bank, test) if _labelled(bank, test) else (test, None, None)


def watching(run: Run, name: str | None = None, **settings: Any) -> Watcher:
    """The watcher of a run. name: of its set, as `data.load` knows it; settings: of `Watcher`."""
    return Watcher(*evaluation_split(_as_set(run), name), **settings)


def _as_set(run: Run) -> SampleSet:
    """The run's images as a set; a bare tensor has no labels."""
    if not isinstance(run.data, Tensor):
        return run.data
    name = run.kind.name
    none, own = torch.full((run.batch_size if name == "nodes" else len(run.data),), -1), f"your own {name}"
    if name == "pictures":
        return ImageSet(run.data, none, (), None, own)
    if name == "sentences":
        return SentenceSet(run.data, none, (), ("",) * len(none), own)
    return (VectorSet if name == "vectors" else GraphSet)(run.data, none, (), own)


def _labelled(bank: SampleSet | None, test: SampleSet | None) -> bool:
    """True where both parts have labels throughout, of more than one class."""
    if bank is None or test is None or not len(bank) or not len(test):
        return False
    whole = bool((bank.labels >= 0).all()) and bool((test.labels >= 0).all())
    return whole and len(bank.labels.unique()) > 1


def demand_known(numbers: Iterable[str]) -> tuple[str, ...]:
    """These names, each once. Raises ValueError, listing those of `measures.BY_NAME`, on another."""
    names = tuple(dict.fromkeys([numbers] if isinstance(numbers, str) else numbers))
    for name in names:
        one_of("training", "the metric", name, BY_NAME)
    return names


def measured(name: str, features: measures.Features | None) -> float:
    """The number; NaN where there are no such features, or a collapsed encoder's do not have it."""
    try:
        return math.nan if features is None else measures.by_name(name, features)
    except ValueError:  # a dead encoder: all rows are equal, or vectors of length 0 have no direction
        return math.nan


def _best(name: str, features: Iterable[measures.Features | None]) -> float:
    """The highest that was measured, NaN where none was."""
    found = [value for each in features if not math.isnan(value := measured(name, each))]
    return max(found, default=math.nan)


def _of_a_loop(encoder: nn.Module, z: Tensor, head: nn.Module | None) -> dict[str, float]:
    """gradient_norm of encoder and head, where they have gradients; head_uniformity, of features z (N, D)."""
    found, parts = {}, [encoder] if head is None else [encoder, head]
    weights = {id(p): p for part in parts for p in part.parameters()}
    gradients = [p.grad for p in weights.values() if p.grad is not None]
    if gradients:
        found["gradient_norm"] = nn.utils.get_total_norm(gradients).item()
    if head is not None:
        device = next(head.parameters(), z).device
        with torch.no_grad(), encoders.evaluating(head):
            seen = head(z.to(device))
        found["head_uniformity"] = math.nan  # of vectors of length 0, or not finite
        with contextlib.suppress(ValueError):
            found["head_uniformity"] = measures.uniformity(seen)
    return found


def _trained(run: Run) -> float:
    return run.rows[-1]["seconds"] if run.rows else 0.0

"""What is measured along a run while it trains, at a price that is kept small.

watcher = Watcher(*parts(run.data, "scenes"))
if watcher.due(run):                   # not while watching has had more than its share of the time
    watcher.look(run, background.lock)
watcher.table                          # step, knn, effective_rank
watcher.positions                      # a map of the sample, which does not flip from look to look

Nothing here draws or knows of widgets.
"""

from __future__ import annotations

import copy
import math
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from clutils import data, encoders, maps, measures
from clutils.data import ImageSet, VectorSet
from clutils.methods.base import half_precision
from clutils.training import saved

if TYPE_CHECKING:
    import pandas as pd

    from clutils.training.run import Run

SAMPLE, BANK, TEST = 500, 1000, 500
NEIGHBOURS = 20
SHARE = 0.08  # of the training's seconds that watching may have had when it takes more
SOON = 10  # steps after a setting was turned, at which what it did is looked at
CREDIT = 0.15  # seconds that it may have before there was any training, so that there is a picture early

Pictures = ImageSet | VectorSet


@dataclass(frozen=True, eq=False)
class Look:
    """What was seen at one step.

    - knn: accuracy in [0, 1], NaN where it was not or could not be measured
    - effective_rank: of the sample's features; 0 where all of them are equal
    - positions: (N, 2), the map of the sample
    - seconds: what it cost
    """

    step: int
    knn: float
    effective_rank: float
    positions: np.ndarray
    seconds: float


class Watcher:
    """Effective rank, kNN accuracy and a map of a fixed sample of pictures, at some steps of a run.

    - pictures: the sample of the map and of the effective rank
    - bank, test: labelled pictures, whose features vote and are judged; None = no kNN
    - every: steps from a look to the next at the least; None = as often as the share allows
    - share: of the training's seconds that watching (`look`, and what `spend` is told of) may take

    All is measured by the encoder's features, before the head. A look copies the weights, which is all that
    it needs the run for (`lock`), and computes on the copy: the run is to the bit what it would be unwatched.
    """

    def __init__(
        self,
        pictures: Pictures,
        bank: Pictures | None = None,
        test: Pictures | None = None,
        every: int | None = None,
        share: float = SHARE,
    ) -> None:
        if every is not None and (not isinstance(every, int) or every < 1):
            raise ValueError(f"Watcher: every is {every!r}, but must be a whole number from 1 on, or None")
        if not 0 < share <= 1:
            raise ValueError(f"Watcher: share is {share!r}, but must be above 0 and at most 1")
        self.pictures, self.every, self.share = pictures, every, share
        self.bank, self.test = (bank, test) if _labelled(bank, test) else (None, None)
        self.looks: list[Look] = []
        self.looked = 0.0  # seconds, of all looks beside a run that trains
        self.spent = 0.0  # those, and what `spend` was told of
        self._wanted: int | None = None  # the step of the next look, whatever it costs
        self._copy: nn.Module | None = None
        self._copying = threading.Lock()  # a map or a look may be asked for while a look is under way

    # ---- when ------------------------------------------------------------------------------------------

    def room(self, run: Run) -> bool:
        """Whether watching has had less than its share of the time that the run has trained for."""
        return self.spent < self.share * _trained(run) + CREDIT

    def due(self, run: Run) -> bool:
        """Whether to look now: `every` steps after the last time, and not beyond half of the share.

        The other half is the drawing's, of which there is more, and each much cheaper.
        """
        since = run.steps_done - (self.looks[-1].step if self.looks else -math.inf)
        affordable = self.looked < self.share / 2 * _trained(run) and self.room(run)
        return self.wanted(run) or (since >= (self.every or 1) and affordable)

    def want(self, step: int) -> None:
        """Have the run looked at when it is at this step or beyond, also where the share is used up."""
        self._wanted = step

    def wanted(self, run: Run) -> bool:
        """Whether a look that was wanted is due."""
        return self._wanted is not None and run.steps_done >= self._wanted

    def spend(self, seconds: float) -> None:
        """Seconds by the clock that something else took, such as drawing what was seen.

        Not processor time: a thread that draws has Python's lock, and where other programs take its core
        from it, the run waits for it all the same.
        """
        self.spent += seconds

    # ---- what ------------------------------------------------------------------------------------------

    def look(self, run: Run, lock: AbstractContextManager | None = None, free: bool = False) -> Look:
        """Measure now; the look is added to `looks`, in the place of one at the same step.

        - lock: held while the weights are copied; of a run that trains meanwhile, its `Background.lock`
        - free: does not count against the share, as of a run that is at rest
        """
        began = time.perf_counter()
        with self._copying:
            with lock or nullcontext():
                step, encoder = run.steps_done, self._copied(run)

            def embed(part: Pictures) -> Tensor:
                with _half(run):
                    return encoders.embed(encoder, part.inputs)

            features = embed(self.pictures)
            knn = self._accuracy(embed, features)
            rank, positions = _rank(features), self._map(features)
            found = Look(step, knn, rank, positions, time.perf_counter() - began)
            self.looks = [look for look in self.looks if look.step != step] + [found]
        if self._wanted is not None and step >= self._wanted:
            self._wanted = None
        if not free:
            self.looked += found.seconds
            self.spend(found.seconds)
        return found

    def features(self, run: Run, lock: AbstractContextManager | None = None) -> tuple[int, Tensor]:
        """The step that the run is at, and what its encoder makes of the sample, (N, D): as in `look`."""
        with self._copying, _half(run):
            with lock or nullcontext():
                step, encoder = run.steps_done, self._copied(run)
            return step, encoders.embed(encoder, self.pictures.inputs)

    def raw(self) -> float:
        """kNN accuracy of the pictures themselves, grey as the origin: what learning nothing is worth."""
        return self._accuracy(measures.raw_inputs, None)

    @property
    def ceiling(self) -> int | None:
        """What the effective rank can't exceed, min(N - 1, D); None before the first look."""
        if self._copy is None:
            return None
        return min(len(self.pictures) - 1, self._copy.features)

    @property
    def measures_knn(self) -> bool:
        return self.bank is not None

    @property
    def positions(self) -> np.ndarray | None:
        """The last map, (N, 2)."""
        return self.looks[-1].positions if self.looks else None

    @property
    def table(self) -> pd.DataFrame:
        """step, knn and effective_rank of each look."""
        return saved.table_of([vars(look) for look in self.looks])

    # ---- inside ----------------------------------------------------------------------------------------

    def _copied(self, run: Run) -> nn.Module:
        if self._copy is None:
            self._copy = copy.deepcopy(run.encoder).requires_grad_(False)
        else:
            self._copy.load_state_dict(run.encoder.state_dict())
        return self._copy

    def _accuracy(self, embed: Callable[[Pictures], Tensor], sample: Tensor | None) -> float:
        if self.bank is None:
            return math.nan
        test = sample if sample is not None and self.test is self.pictures else embed(self.test)
        bank = embed(self.bank)
        try:
            return measures.knn_accuracy(
                bank, self.bank.labels, test, self.test.labels, k=min(NEIGHBOURS, len(bank))
            )
        except ValueError:  # a dead encoder: zero vectors have no direction to be near in
            return math.nan

    def _map(self, features: Tensor) -> np.ndarray:
        try:
            positions = maps.pca(features)
        except ValueError:  # as above
            return np.zeros((len(features), 2), dtype=np.float32)
        return positions if self.positions is None else aligned(positions, self.positions)


def aligned(positions: np.ndarray, before: np.ndarray) -> np.ndarray:
    """A map turned and mirrored, not scaled, to lie as near as it can to an earlier one of the same pictures.

    Both (N, 2); the turn is the orthogonal one of Procrustes, Q = UVᵀ from the singular vectors of XᵀY
    (Schönemann 1966). What lies near what stays as it was, for distances do.
    """
    if positions.shape != before.shape or positions.ndim != 2:
        raise ValueError(f"aligned: positions is {positions.shape} but before is {before.shape}")
    centre = positions.mean(axis=0, dtype=np.float64)
    moved, target = positions - centre, before - before.mean(axis=0, dtype=np.float64)
    left, _, right = np.linalg.svd(moved.T @ target)
    return (moved @ left @ right + centre).astype(np.float32)


def parts(pictures: Pictures, name: str | None = None) -> tuple[Pictures, Pictures | None, Pictures | None]:
    """What a run on these pictures is watched by: the sample, and for kNN the bank and what is judged.

    - name: of the set, as `data.load` knows it: then its test part is judged, and is the sample too. Without
      one, or where it has no such part, the last of the pictures themselves are.

    The bank is None where the pictures have no labels.
    """
    test = _test_part(name)
    if test is None or type(test) is not type(pictures):
        number = min(TEST, len(pictures) // 3)
        test = pictures.subset(slice(len(pictures) - number, len(pictures)))
    bank = pictures.subset(slice(0, min(BANK, len(pictures) - (len(pictures) // 3))))
    return (test, bank, test) if _labelled(bank, test) else (test, None, None)


def watching(run: Run, name: str | None = None, **settings: Any) -> Watcher:
    """The watcher of a run. name: of its set, as `data.load` knows it; settings: of `Watcher`."""
    return Watcher(*parts(_as_set(run), name), **settings)


def _as_set(run: Run) -> Pictures:
    """The run's pictures as a set; a bare tensor has no labels."""
    if not isinstance(run.data, Tensor):
        return run.data
    none = torch.full((len(run.data),), -1)
    if run.data.ndim == 2:
        return VectorSet(run.data, none, (), "your own vectors")
    return ImageSet(run.data, none, (), None, "your own pictures")


def _test_part(name: str | None) -> Pictures | None:
    if name is None:
        return None
    try:
        return data.load(name, "test", limit=TEST, download=False)
    except (ValueError, data.Unavailable):  # a folder without one
        return None


def _labelled(bank: Pictures | None, test: Pictures | None) -> bool:
    """Whether both parts have labels throughout, of more than one class."""
    if bank is None or test is None or not len(bank) or not len(test):
        return False
    whole = bool((bank.labels >= 0).all()) and bool((test.labels >= 0).all())
    return whole and len(bank.labels.unique()) > 1


def _rank(features: Tensor) -> float:
    try:
        return measures.effective_rank(features)
    except ValueError:  # all rows are equal: no dimension is in use
        return 0.0


def _trained(run: Run) -> float:
    return run.rows[-1]["seconds"] if run.rows else 0.0


def _half(run: Run) -> AbstractContextManager:
    """The precision that the run's encoder is computed in."""
    return half_precision(run.device, run.method.half)

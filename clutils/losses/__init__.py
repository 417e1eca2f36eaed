"""The losses, one file a paper. `catalogue()` lists them."""

from __future__ import annotations

from dataclasses import dataclass

from clutils.losses.attention_nce import AttentionNCE
from clutils.losses.barlow_twins import BarlowTwins
from clutils.losses.base import Loss
from clutils.losses.clip import CLIP
from clutils.losses.debiased import Debiased
from clutils.losses.decoupled import Decoupled
from clutils.losses.dual_temperature import DualTemperature
from clutils.losses.flatnce import FlatNCE
from clutils.losses.hard_negative import HardNegative
from clutils.losses.macl import MACL
from clutils.losses.mochi import MoCHi
from clutils.losses.nt_xent import NTXent
from clutils.losses.pair import PairMargin
from clutils.losses.regression import Regression
from clutils.losses.sscl import SSCL
from clutils.losses.supcon import SupCon
from clutils.losses.triplet import Triplet

__all__ = [
    "CLIP",
    "MACL",
    "SSCL",
    "AttentionNCE",
    "BarlowTwins",
    "Debiased",
    "Decoupled",
    "DualTemperature",
    "Entry",
    "FlatNCE",
    "HardNegative",
    "Loss",
    "MoCHi",
    "NTXent",
    "PairMargin",
    "Regression",
    "SupCon",
    "Triplet",
    "catalogue",
]


@dataclass(frozen=True)
class Entry:
    """One line of the catalogue."""

    loss: type[Loss]
    paper: str
    year: int
    equation: str
    level: str
    compares: str
    takes: tuple[str, ...]


def catalogue() -> dict[str, Entry]:
    """name -> class, paper, year, equation, level, which pairs it compares, what it takes beside two views.

    Oldest first. Menus, tables and the README are made from it.
    """
    classes = (
        *(PairMargin, Triplet),
        *(NTXent, SupCon, Regression, Debiased, MoCHi),
        *(HardNegative, CLIP, BarlowTwins, FlatNCE),
        *(Decoupled, DualTemperature),
        *(MACL, SSCL, AttentionNCE),
    )
    compares = {
        "both views": "both views as anchors, against the 2B - 2 views of other pictures",
        "other view": "both views as anchors, against the B - 1 other pictures of the opposite view",
        "own view": "the two views of each picture, and nothing else",
        "features": "each feature of one view with every feature of the other, over the batch",
    }
    return {
        c.__name__: Entry(
            c,
            c.paper,
            c.year,
            c.equation,
            c.level,
            compares[c.against] + c.adds,
            tuple(sorted(c.takes)),
        )
        for c in classes
    }

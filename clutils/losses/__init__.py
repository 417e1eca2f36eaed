"""The losses, one file a paper. `catalogue()` lists them."""

from __future__ import annotations

from dataclasses import dataclass

from clutils.losses.base import Loss
from clutils.losses.decoupled import Decoupled
from clutils.losses.flatnce import FlatNCE
from clutils.losses.macl import MACL
from clutils.losses.nt_xent import NTXent
from clutils.losses.pair import PairMargin
from clutils.losses.triplet import Triplet

__all__ = ["MACL", "Decoupled", "Entry", "FlatNCE", "Loss", "NTXent", "PairMargin", "Triplet", "catalogue"]


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
    classes = (PairMargin, Triplet, NTXent, FlatNCE, Decoupled, MACL)
    compares = {
        "both views": "both views as anchors, against the 2B - 2 views of other pictures",
        "other view": "both views as anchors, against the B - 1 other pictures of the opposite view",
    }
    return {
        c.__name__: Entry(
            c, c.paper, c.year, c.equation, c.level, compares[c.against], tuple(sorted(c.takes))
        )
        for c in classes
    }

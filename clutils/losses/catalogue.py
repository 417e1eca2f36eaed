"""An entry of a catalogue, of losses or of methods: class, source, and what it compares."""

from dataclasses import dataclass
from typing import Any, Self

COMPARES = {
    "both views": "both views as anchors, against the 2B - 2 views of other pictures",
    "other view": "both views as anchors, against the B - 1 other pictures of the opposite view",
    "one way": "the first view as anchors, against the B - 1 other pictures of the second",
    "own view": "the two views of each picture, and nothing else",
    "whole batch": "the two views of each picture, and each view's batch with what it should look like",
    "features": "each feature of one view with every feature of the other, over the batch",
}


@dataclass(frozen=True)
class Entry:
    """One line of a catalogue; a method's level, pairs and further arguments are its loss's: empty here."""

    kind: Any  # the class
    paper: str
    year: int
    equation: str = ""
    level: str = ""
    compares: str = ""
    accepts: tuple[str, ...] = ()

    @classmethod
    def of(cls, kind: Any) -> Self:
        """What a class says of itself."""
        source = kind, kind.paper, kind.year, kind.equation
        if not hasattr(kind, "level"):
            return cls(*source)
        return cls(*source, kind.level, COMPARES[kind.against] + kind.adds, tuple(sorted(kind.accepts)))

    @property
    def loss(self) -> Any:
        """The class, of a loss."""
        return self.kind

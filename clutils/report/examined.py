"""What an examination found: numbers, and what the pictures of the report are drawn from."""

import json
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from clutils.data import ImageSet
from clutils.report.layers import Layer

MAPPED = 500  # judged pictures on a map


@dataclass
class Examination:
    """All that was measured.

    - numbers: name -> value, plain, as JSON takes it; unknown: name -> why it was not measured
    - each: name -> what the mean of a number is of, a value a judged picture
    - fresh_views: features of two views of the first judged pictures, by the same network with fresh weights
    - layers: from the first block to the output; none in a quick look
    - quick: only what the first screen shows was measured
    - the rest: what the pictures of the report are drawn from
    """

    judged: ImageSet
    z: Tensor
    views: tuple[Tensor, Tensor]
    raw: Tensor
    title: str = ""
    quick: bool = False
    facts: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    predicted: Tensor | None = None
    spectrum: Tensor | None = None
    fresh_views: tuple[Tensor, Tensor] | None = None
    each: dict[str, Tensor] = field(default_factory=dict)
    maps: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    kept: dict[tuple[str, int], Tensor] = field(default_factory=dict)  # of each map: `maps.neighbours_kept`
    pull: Tensor | None = None
    hardness: tuple[Tensor, Tensor] | None = None
    noise: tuple[Tensor, Tensor, Tensor, Tensor] | None = None
    layers: list[Layer] = field(default_factory=list)

    @property
    def has_directions(self) -> bool:
        """Whether pictures differ and none has length 0: else cosines mean nothing."""
        return self.numbers["spread"] > 0 and not self.numbers["zero_norms"]


def as_json(found: Any) -> str:
    """Plain values as JSON; what is not finite, which JSON does not have, is null."""
    return json.dumps(_finite(found), indent=1, ensure_ascii=False, allow_nan=False)


def _finite(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _finite(value) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [_finite(value) for value in found]
    return None if isinstance(found, float) and not math.isfinite(found) else found

"""Facts of an examination, typed, None where nothing is known; and the arrays that figures are drawn from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import numpy as np
from torch import Tensor

from clutils.data import ImageSet

MAPPED = 500  # test images on a map by class


class Row(NamedTuple):
    """Accuracies in [0, 1], of the same labelled images and test images for every row of the table."""

    knn: float
    probe: float


# a mapping's or a row's numbers by their names in JSON: "input_gap_imagenet", "kept_crop", "knn_untrained"
NAMED = {"input_gaps": "input_gap_{}", "kept": "kept_{}", "others": "{}"}
NAMED |= {"own": "{}_beside_untrained", "untrained": "{}_untrained", "raw": "{}_raw"}


@dataclass(frozen=True)
class Facts:
    """Numbers of an encoder that rules read.

    - pictures, gallery: test images and labelled images; pixels: their shorter side as they were given;
      dimensions: of a feature
    - spread: the part of an embedding's length in which images differ; dead: share of features that are still
    - plain_normalisations: of layers, gains 1 and biases 0
    - never_trained: there are batch normalisations, and none has seen an image; batches_seen: by the file's
      count, or by what is left of their start
    - input_gap: nats from the statistics of its training; input_gaps: by normalisation
    - finds_itself, nearer_than: how often one of an image's two views is nearest
      to the other one, and nearer than another image's; fresh_nearer_than: by fresh weights as made;
      raw_nearer_than: by raw pixels
    - head_*: after the projection head; temperature: the τ of the training
    - share_of_negatives: that share the push, after the head; share_before_head: if the loss saw the features
    - of_texts: τ was learned, as CLIP's and SigLIP's, whose negatives are texts
    - knn, chance: of all labelled images; own, untrained, raw: the table, of `compared` test images and 500
      labelled ones; untrained is the better of fresh weights as made and with settled statistics
    - copies: share of test images among the labelled, the same or saved again, scaled or brightened
    - kept: change -> 1 where an image stays where it is, 0 where it goes as far as another one
    - others: what no rule reads
    """

    pictures: int
    gallery: int
    dimensions: int
    spread: float
    dead: float
    norm_varies: float
    zero_norms: int
    positive_similarity: float
    negative_similarity: float
    finds_itself: float
    nearer_than: float
    pixels: int | None = None
    fresh_nearer_than: float | None = None
    raw_nearer_than: float | None = None
    plain_normalisations: bool = False
    never_trained: bool = False
    batches_seen: int | None = None
    input_gap: float | None = None
    input_gaps: Mapping[str, float] = field(default_factory=dict)
    effective_rank: float | None = None
    first_direction: float | None = None
    uniformity: float | None = None
    head_alignment: float | None = None
    head_uniformity: float | None = None
    temperature: float | None = None
    negatives: int | None = None
    share_of_negatives: float | None = None
    of_texts: bool = False
    share_before_head: float | None = None
    neighbours: int | None = None
    chance: float | None = None
    knn: float | None = None
    copies: float | None = None
    compared: int | None = None
    own: Row | None = None
    untrained: Row | None = None
    raw: Row | None = None
    kept: Mapping[str, float] = field(default_factory=dict)
    others: Mapping[str, float] = field(default_factory=dict)

    @property
    def lead(self) -> float:
        """How far positives lead: (s+ - s-) / (1 - s-), means. 1: an image's views coincide; 0: chance."""
        s = self.negative_similarity
        return (self.positive_similarity - s) / max(1 - s, 1e-6)

    def flat(self) -> dict[str, float]:
        """All that is known, by the names that JSON has."""
        found: dict[str, float] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name in NAMED and value:
                parts = value._asdict() if isinstance(value, Row) else value
                found |= {NAMED[each.name].format(name): part for name, part in parts.items()}
            elif value is not None and each.name not in NAMED:
                found[each.name] = float(value) if isinstance(value, bool) else value
        return found


@dataclass
class Examination:
    """All that was measured.

    - numbers: name -> value, plain, as JSON takes it; unknown: name -> why it was not measured
    - gallery, gallery_z: the labelled images and their features; none where no image has a label
    - each: name -> what the mean of a number is of, a value a test image
    - head_views: two views after the head; fresh_views: by the same network with fresh weights
    - facts: where the page comes from (`provenance.facts`)
    - statistics: mean and variance, (channels,) each, at the first batch normalisation: "in the file", "in
      training" (those without their start), "as fed", and by each usual normalisation
    """

    judged: ImageSet
    z: Tensor
    views: tuple[Tensor, Tensor]
    raw: Tensor
    found: Facts
    gallery: ImageSet
    gallery_z: Tensor
    unknown: dict[str, str] = field(default_factory=dict)
    quick: bool = False
    facts: dict[str, str] = field(default_factory=dict)
    spectrum: Tensor | None = None
    head_views: tuple[Tensor, Tensor] | None = None
    fresh_views: tuple[Tensor, Tensor] | None = None
    each: dict[str, Tensor] = field(default_factory=dict)
    tsne: np.ndarray | None = None
    statistics: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)

    @property
    def numbers(self) -> dict[str, float]:
        return self.found.flat()

    @property
    def mapped(self) -> int:
        """How many test images a map has: without classes all of them, as `clutils map` draws."""
        return len(self.judged) if self.found.knn is None else min(MAPPED, len(self.judged))

    @property
    def has_directions(self) -> bool:
        """True where images differ and none has length 0: else cosines mean nothing."""
        return self.found.spread > 0 and not self.found.zero_norms

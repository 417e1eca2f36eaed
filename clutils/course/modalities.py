"""Two modalities, a toy: generated scenes and captions of them, as CLIP compares images with texts.

A caption is a multi-hot vector, a word a number: what an object looks like, and words that say nothing of it.
A sample is the image and its caption in one row; a view of it shows one of the two and hides the other.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from clutils import encoders, measures
from clutils.data import ImageSet, VectorSet, scenes

COLOURS, PLACES = 8, 4  # each channel dark or bright; the quarter that the object's middle lies in
IDLE, FORGOTTEN = 16, 0.1  # words that say nothing; how often a word that says something is missing
WORDS = len(scenes.CLASS_NAMES) + COLOURS + PLACES + len(scenes.SHAPES) + IDLE


def captions(pictures: ImageSet, seed: int = 0) -> Tensor:
    """Texture, colour, place and shape of each object, and idle words: multi-hot, (N, WORDS) float32.

    Colour is that of the object's pixels, on average; shape is read from how much of its box a mask fills.
    Each word that says something is missing from a tenth of the captions; an idle one stands in half of them.

    Raises ValueError for images without masks.
    """
    if pictures.masks is None:
        raise ValueError(f"captions: {pictures.source} has no masks, but must have them, as scenes do")
    masks, draw = pictures.masks.float(), torch.Generator().manual_seed(seed)
    area, size = masks.sum(dim=(1, 2)), masks.shape[-1]
    mean = (pictures.images * masks[:, None]).sum(dim=(2, 3)) / area[:, None]
    rows, columns = masks.amax(dim=2), masks.amax(dim=1)  # which of them the object touches
    at = torch.arange(size) + 0.5
    middle = [(side * at).sum(dim=1) / side.sum(dim=1) > size / 2 for side in (rows, columns)]
    filled = area / (rows.sum(dim=1) * columns.sum(dim=1))  # a disc π/4, a square 1, a diamond 1/2
    shape = torch.where(filled > 0.89, 1, torch.where(filled < 0.64, 2, 0))
    colour = ((mean > 127.5) * torch.tensor([4, 2, 1])).sum(dim=1)
    place = 2 * middle[0].long() + middle[1]
    said = (pictures.labels, len(scenes.CLASS_NAMES)), (colour, COLOURS), (place, PLACES), (shape, 3)
    words = torch.cat([nn.functional.one_hot(word, number) for word, number in said], dim=1)
    kept = torch.rand(words.shape, generator=draw) >= FORGOTTEN
    idle = torch.rand(len(words), IDLE, generator=draw) < 0.5
    return torch.cat([words * kept, idle], dim=1).float()


def pairs(pictures: ImageSet, seed: int = 0) -> VectorSet:
    """Each image, in [0, 1], and its caption in one row: (N, 3 * size * size + WORDS) float32."""
    rows = torch.cat([pictures.images.flatten(1) / 255, captions(pictures, seed)], dim=1)
    source = f"{pictures.source}, with captions of {WORDS} words"
    return VectorSet(rows, pictures.labels, pictures.class_names, source)


@dataclass(frozen=True)
class OneModality:
    """Views of `pairs`: the first shows the images, the second the captions, and neither draws anything."""

    def several_views(self, rows: Tensor, generator: torch.Generator | None, number: int = 2) -> list[Tensor]:
        """(B, D) -> number views (B, D), images and captions in turn, the other part 0."""
        picture = torch.arange(rows.shape[1], device=rows.device) < rows.shape[1] - WORDS
        return [rows * (picture if view % 2 == 0 else ~picture) for view in range(number)]

    def __call__(self, rows: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.several_views(rows, generator, 1)[0]


class TwoTowers(nn.Module):
    """One encoder for images, one for captions: (N, D) rows of either view -> (N, 128) features."""

    features = 128

    def __init__(self, size: int = 16) -> None:
        super().__init__()
        self.size = size
        self.pictures = encoders.build("conv16")
        self.captions = encoders.MLP(WORDS, hidden=128, features=self.features)

    def forward(self, rows: Tensor) -> Tensor:
        shown = rows[:, :-WORDS].any(dim=1)
        found = rows.new_zeros(len(rows), self.features)
        if shown.any():
            found[shown] = self.pictures(rows[shown, :-WORDS].unflatten(1, (3, self.size, self.size))).to(
                found
            )
        if not shown.all():
            found[~shown] = self.captions(rows[~shown, -WORDS:]).to(found)
        return found


def retrieval(queries: Tensor, keys: Tensor, among: int = 1) -> float:
    """Share of queries (N, D) whose own key, of the same row, is among the nearest so many: recall at k.

    Cosine similarity; chance is among / N.
    """
    queries, keys = (
        measures.unit_rows(queries, "retrieval", "queries"),
        measures.unit_rows(keys, "retrieval", "keys"),
    )
    nearest = (queries @ keys.T).topk(among, dim=1).indices
    return (nearest == torch.arange(len(queries))[:, None]).any(dim=1).float().mean().item()

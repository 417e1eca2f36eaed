"""Images on maps, one HTML file: the same images by several features, with one selection."""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

import clutils
from clutils import files, maps
from clutils.data import ImageSet
from clutils.explorers.pages import embedded, module, template
from clutils.settings import within

TILE = 48  # pixels of a thumbnail's side
QUALITY = 60  # of the thumbnails, WebP
NEIGHBOURS = 8  # in feature space, of each image
NEAR = 16  # an image's nearest on a map: a neighbour that is not among them is far there
LISTED = 12  # duplicates, most similar pairs, and images that are least similar to any other
FEWEST, MOST = 20, 5000
PIXELS = 32  # images are brought to this side before their raw pixels are compared
COPY = 0.99  # correlation of the pixels from which on two images count as duplicates
FLAT = 1.0  # grey levels: below this deviation an image is one colour, and no correlation means anything
PLACES = 65_535  # a map's side, in steps


def pixels(images: Tensor) -> Tensor:
    """Raw pixels as features: images uint8 (N, C, H, W) -> (N, C * 32 * 32), the mean image subtracted."""
    small = torch.cat([_resized(part, PIXELS) for part in images.split(256)]).flatten(1)
    return small - small.mean(dim=0)


def page(
    pictures: ImageSet, spaces: Mapping[str, Tensor], title: str, names: Sequence[str] = (), seed: int = 0
) -> str:
    """The page, HTML: a t-SNE map for each of `spaces`, all with one selection.

    - pictures: N images, from 20 to 5,000; a label below 0 is no label
    - spaces: name -> features (N, D); the last one's most and least similar images are listed
    - names: a name for each image, such as its file's; default: its number
    - seed: of the maps

    A click on an image shows its eight nearest by cosine similarity, and says which of them are not among its
    16 nearest on that map. Raises ValueError on fewer or more images, or features of another number of rows.
    """
    count = len(pictures)
    within("map", "the number of images", count, FEWEST, MOST)
    names = list(names) or [str(k) for k in range(count)]
    if len(names) != count:
        raise ValueError(f"map: there are {count} images, but {len(names)} names")
    if not spaces:
        raise ValueError("map: spaces is empty, but must have features to draw a map of")
    for name, z in spaces.items():
        if len(z) != count:
            raise ValueError(f"map: {name} has {len(z)} rows, but there are {count} images")
    copies = [[first, k] for k, first in enumerate(duplicates(pictures.images)) if first is not None]
    labels = pictures.labels.tolist() if bool((pictures.labels >= 0).any()) else []
    data: dict[str, Any] = {
        "names": [files.printable(name) for name in names],
        "labels": labels,
        "classes": list(pictures.class_names) if labels else [],
        "tile": TILE,
        "neighbours": NEIGHBOURS,
        "near": NEAR,
        "maps": [_drawn(name, z, seed) for name, z in spaces.items()],
        "duplicates": copies[:LISTED],
        "copies": len(copies),
        **_extremes(spaces),
    }
    return template("map.html").render(
        title=html.escape(files.printable(title)),
        source=html.escape(f"{pictures.source}. clutils {clutils.__version__}."),
        data=embedded(data),
        sprite=base64.b64encode(_sprite(pictures.images)).decode(),
        script=module("map"),
    )


def write(
    path: str | Path, pictures: ImageSet, spaces: Mapping[str, Tensor], title: str, **further: Any
) -> None:
    """Write `page(...)` into a file; errors as there, and OSError."""
    files.write_atomically(path, page(pictures, spaces, title, **further))


def _resized(images: Tensor, side: int) -> Tensor:
    """uint8 (N, C, H, W) -> float (N, C, side, side) from 0 to 255."""
    return F.interpolate(images.float(), (side, side), mode="bilinear", antialias=True, align_corners=False)


def _sprite(images: Tensor) -> bytes:
    """All thumbnails in rows of one WebP image, left to right; as many columns as the page computes."""
    from torchvision.transforms.functional import to_pil_image
    from torchvision.utils import make_grid

    tiles = torch.cat([_resized(part, TILE).round().clamp(0, 255).byte() for part in images.split(256)])
    sheet = make_grid(tiles[:, :3], nrow=math.ceil(math.sqrt(len(tiles))), padding=0)
    to_pil_image(sheet).save(written := io.BytesIO(), "WEBP", quality=QUALITY)
    return written.getvalue()


def _nearest(z: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine similarities and numbers of each row's eight nearest others, (N, 8) both."""
    unit = F.normalize(z.double(), dim=1)
    values, indices = (unit @ unit.T).fill_diagonal_(-2).topk(NEIGHBOURS, dim=1)
    return values, indices


def _drawn(name: str, z: Tensor, seed: int) -> dict[str, Any]:
    """One map: places, neighbours in feature space, and which of these are near on the map."""
    z = z.detach().float().cpu()
    similarities, nearest = _nearest(z)
    positions = maps.tsne(z, seed=seed)
    places = torch.from_numpy(np.asarray(positions)).double()
    distances = torch.cdist(places, places).fill_diagonal_(torch.inf)
    reach = distances.topk(min(NEAR, len(z) - 1), dim=1, largest=False).values[:, -1:]
    kept = distances.gather(1, nearest) <= reach
    low, high = places.min(dim=0).values, places.max(dim=0).values
    span = (high - low).max().clamp(min=1e-12)
    middle = PLACES * ((places - (low + high) / 2) / span + 0.5)
    return {
        "name": name,
        "places": _packed(middle.round().clamp(0, PLACES), np.uint16),
        "nearest": _packed(nearest, np.uint16),
        "similar": _packed(((similarities.clamp(-1, 1) + 1) * PLACES / 2).round(), np.uint16),
        "kept": _packed(kept, np.uint8),
        "share": round(float(kept.double().mean()), 4),
    }


def _packed(values: Tensor, kind: type) -> str:
    return base64.b64encode(np.ascontiguousarray(values.numpy().astype(kind)).tobytes()).decode()


def duplicates(images: Tensor) -> list[int | None]:
    """For each image the number of the first one with nearly the same pixels before it, or None.

    images: uint8 (N, C, H, W). By the correlation of the pixels at 32 x 32, which neither brightness nor
    contrast nor size changes; two images of one colour are duplicates where they are equal there.
    """
    sides = (PIXELS, PIXELS)
    small = torch.cat([F.interpolate(part.float(), sides, mode="area") for part in images.split(256)])
    small = small.flatten(1)
    centred = small - small.mean(dim=1, keepdim=True)
    plain = centred.square().mean(dim=1).sqrt() < FLAT
    unit = F.normalize(centred, dim=1).masked_fill(plain[:, None], 0.0)
    hit, at = (unit @ unit.T >= COPY).tril(-1).max(dim=1)
    found = [j if yes else None for yes, j in zip(hit.tolist(), at.tolist(), strict=True)]
    first: dict[bytes, int] = {}
    for k in plain.nonzero()[:, 0].tolist():
        before = first.setdefault(small[k].numpy().tobytes(), k)
        found[k] = before if before != k else None
    return found


def _extremes(spaces: Mapping[str, Tensor]) -> dict[str, Any]:
    """By the last features: the most similar pairs, and images whose nearest one is farthest."""
    z = list(spaces.values())[-1].detach().float().cpu()
    similarities, nearest = _nearest(z)
    pairs: dict[tuple[int, int], float] = {}
    for flat in similarities.flatten().argsort(descending=True, stable=True).tolist():
        one, other = flat // NEIGHBOURS, int(nearest.flatten()[flat])
        pairs.setdefault((min(one, other), max(one, other)), float(similarities.flatten()[flat]))
        if len(pairs) == LISTED:
            break
    alone = similarities[:, 0].argsort(stable=True)[:LISTED].tolist()
    return {
        "pairs": [[*pair, round(similarity, 4)] for pair, similarity in pairs.items()],
        "alone": [[k, round(float(similarities[k, 0]), 4)] for k in alone],
        "median": round(float(similarities[:, 0].median()), 4),
    }

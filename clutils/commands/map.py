"""`map`: one's own images on maps, by raw pixels, fresh weights and an encoder, in one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, cast

from clutils.commands.arguments import Add, BadUsage, say, usage, value
from clutils.commands.check import unfit

if TYPE_CHECKING:
    from torch import Tensor

    from clutils import checkpoints
    from clutils.data import ImageSet


def add_to(add: Add) -> None:
    to_map = add("map", map_, "draw your own images on maps, in one interactive page that needs no network")
    to_map.add_argument("file", metavar="FILE", help="checkpoint, or folder that train wrote")
    to_map.add_argument(
        "--data", metavar="NAME", required=True, help="images, such as folder:photos or cifar10 (required)"
    )
    to_map.add_argument("--out", metavar="FILE", default="map.html", help="page to write; default: map.html")
    to_map.add_argument(
        "--images",
        "--pictures",
        dest="limit",
        metavar="N",
        type=value,
        default=2000,
        help="number of images, 20 to 5,000; default: 2000",
    )
    to_map.add_argument(
        "--arch",
        metavar="NAME",
        help="network in the file, as in check --arch; default: identified from the file",
    )
    to_map.add_argument(
        "--weights",
        metavar="NAME",
        help="weights to open, as in check --weights; default: the last weights",
    )
    to_map.add_argument(
        "--mean",
        metavar="X[,X,X]",
        type=value,
        default="auto",
        help="mean to subtract from images in [0, 1], as in check --mean; default: auto, the one that fits "
        "the batch-norm statistics best",
    )
    to_map.add_argument(
        "--size",
        metavar="N",
        type=value,
        help="side in pixels to resize images to, 8 to 1024; default: the network's, as in check --size",
    )
    to_map.add_argument(
        "--seed", metavar="N", type=value, default=0, help="random seed of the maps; default: 0"
    )


def map_(options: argparse.Namespace) -> int:
    """Compute features and maps; write the page."""
    from clutils import checkpoints, data, explorers, files, report
    from clutils.settings import Setting

    out = Path(options.out)
    if out.suffix not in (".html", ".htm"):
        raise BadUsage(f"--out {out}: must end in .html")
    with usage("--out"):
        files.demand_writable(out)
    fewest, most = explorers.photo_map.FEWEST, explorers.photo_map.MOST
    ranges = report.options.RANGES | {"limit": Setting(fewest, most, whole=True)}
    given = {name: getattr(options, name) for name in ("limit", "arch", "weights", "mean", "size", "seed")}
    with unfit(report):
        given = report.validated(given, ranges=ranges)
    opened = checkpoints.open(options.file, options.arch, options.weights)
    with usage("--data"):
        images = data.load(options.data, limit=options.limit)
    if not isinstance(images, data.ImageSet):
        raise BadUsage(f"--data {options.data}: must be images")
    say(f"read {images.source}")
    if len(images) < fewest:
        number = "1 image" if len(images) == 1 else f"{len(images)} images"
        raise BadUsage(f"--data {options.data}: {number}, but a map needs at least {fewest}")
    fed = report.as_taken(images, opened.channels)
    if fed is not images:
        say("colours averaged for the maps, since the encoder takes grey images")
    with unfit(report):
        spaces = _features(opened, fed, given["mean"], options.size or opened.side, options.seed)
    say(f"features computed; drawing {len(spaces)} maps")
    title = f"{len(images):,} images by {'/'.join(Path(opened.path).parts[-2:])}"
    explorers.photo_map.write(out, images, spaces, title, names=images.files, seed=options.seed)
    say(f"written: {out} (open it in a browser)")
    return 0


def _features(
    opened: checkpoints.Opened,
    pictures: ImageSet,
    mean: str | tuple[float, ...] | None,
    size: int | None,
    seed: int,
) -> dict[str, Tensor]:
    """Name -> features (N, D): raw pixels, fresh weights where the network can be rebuilt, the encoder."""
    import torch

    from clutils import encoders, explorers, views
    from clutils.report import prepared, preprocessing
    from clutils.training import streams

    few = pictures.subset(slice(0, preprocessing.VIEWED))
    seen = torch.cat(views.pair(few.images, 0))
    opened = preprocessing.with_decided_stem(opened, seen, size)
    shift, std, said = preprocessing.from_options(mean, None, opened, seen, size)
    if said:
        say(said)
    fed_as = shift or (0.0,), std or (1.0,)
    spaces = {"raw pixels": explorers.photo_map.pixels(pictures.images)}
    if opened.backbone is not None:
        with streams.Drawing(seed):
            made = opened.backbone.build().eval()
        fresh = prepared.Prepared(made, opened.channels, size, *fed_as)
        settled = cast(prepared.Prepared, encoders.settled(fresh, few.images))
        spaces["fresh weights"] = prepared.embed(settled, pictures.images)
    trained = prepared.Prepared(opened.encoder, opened.channels, size, *fed_as)
    spaces["this encoder"] = prepared.embed(trained, pictures.images)
    return spaces

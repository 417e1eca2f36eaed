"""`map`: one's own images on maps, by raw pixels, fresh weights and an encoder, in one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from clutils.commands.arguments import MAPPED, Add, BadUsage, Parser, say, usage
from clutils.commands.check import add_options, given, unfit


def add_to(add: Add) -> None:
    what = "draw your own images on maps, in one interactive page that needs no network"
    add("map", map_, what, fill=_flags)


def _flags(to_map: Parser) -> None:
    from clutils.report.options import ABOUT

    to_map.add_argument("file", metavar="FILE", help="checkpoint, or folder that train wrote")
    to_map.add_argument(
        "--data", metavar="NAME", required=True, help="images, such as folder:photos or cifar10 (required)"
    )
    to_map.add_argument("--out", metavar="FILE", default="map.html", help="page to write; default: map.html")
    about = {name: ABOUT[name] for name in MAPPED} | {"limit": "number of images, 20 to 5,000; default: 2000"}
    add_options(to_map, about)


def map_(options: argparse.Namespace) -> int:
    """Compute features, of raw pixels, fresh weights and the encoder, and maps; write the page."""
    from clutils import checkpoints, data, explorers, report
    from clutils.report import examination, prepared, preprocessing
    from clutils.settings import Setting

    fewest, most = explorers.photo_map.FEWEST, explorers.photo_map.MOST
    ranges = report.options.RANGES | {"limit": Setting(fewest, most, whole=True)}
    usual = {"limit": 2000, "mean": "auto" if options.std is None else None, "seed": 0}
    with unfit(report):
        typed = given(options) | {"out": options.out}
        asked: dict[str, Any] = usual | report.validated(typed, (".html", ".htm"), ranges)
    opened = checkpoints.open(options.file, options.arch, options.weights)
    with usage("--data"):
        images = data.load(options.data, limit=asked["limit"])
    if not isinstance(images, data.ImageSet):
        raise BadUsage(f"--data {options.data}: must be images")
    fed = report.as_taken(images, opened.channels)
    say(f"read {fed.source}")
    if len(images) < fewest:
        raise BadUsage(f"--data {options.data}: {len(images)} of the {fewest} images that a map needs")
    spaces = {"raw pixels": explorers.photo_map.pixels(fed.images)}
    with unfit(report):
        how = (asked.get(name) for name in ("mean", "std", "size"))
        opened, shift, said = preprocessing.fitted(opened, fed, *how)
        if said:
            say(said)
        for fresh in examination.untrained(opened, shift, asked["seed"]):  # none, where it can't be built
            settled = fresh.settled(fed.images[: preprocessing.VIEWED])
            spaces["fresh weights"] = prepared.embed(settled, fed.images)
        trained = prepared.Prepared(opened.encoder, opened.channels, opened.side, *shift)
        spaces["this encoder"] = prepared.embed(trained, fed.images)
    say(f"features computed; drawing {len(spaces)} maps")
    title = f"{len(images):,} images by {'/'.join(Path(opened.path).parts[-2:])}"
    explorers.photo_map.write(options.out, images, spaces, title, names=images.files, seed=asked["seed"])
    say(f"written: {options.out} (open it in a browser)")
    return 0

"""`data`: fetch a set and describe it, or list the sets."""

import argparse

from clutils.commands.arguments import Add, say, usage


def add_to(add: Add) -> None:
    to_load = add("data", data, "download a data set and describe it; without a name, list all")
    to_load.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        help="data set, such as digits, or your own: folder:PATH, vectors:FILE.csv, sentences:file:PATH",
    )
    to_load.add_argument(
        "--split", metavar="NAME", default="train", help="part of the data set; default: train"
    )


def data(options: argparse.Namespace) -> int:
    """Fetch a set, where it isn't here yet, and describe it; without a name, list what there is."""
    from clutils import data as datasets

    if options.name is None:
        for name, what in datasets.NAMES.items():
            say(f"{name:18} {what}")
        say(f"\ndownloads land in {datasets.directory()}")
        for place in datasets.on_disk():
            rest = "" if place.complete else f", incomplete: python -m clutils data {place.name} goes on"
            say(f"{place.name:18} {place.bytes / 1e6:,.0f} MB in {place.path}{rest}")
        return 0
    with usage():
        found = datasets.load(options.name, split=options.split)
    say(f"{options.name}: {found.source}")
    inputs = found.inputs
    kind, dtype = datasets.kind_of(inputs), str(inputs.dtype).removeprefix("torch.")
    held = f"{dtype} {kind.shape} = {tuple(inputs.shape)}, {kind.parts}: {datasets.width(inputs):,}"
    say(f"{kind!s:9} {len(found):,}, {held}")
    if isinstance(found, datasets.ImageSet):
        say(f"masks     {'one for each image' if found.masks is not None else 'none'}")
    labels = found.labels.tolist()
    for label, name in enumerate(found.class_names):
        say(f"label {label:3} {labels.count(label):8,}  {name}")
    if -1 in labels:
        say(f"label  -1 {labels.count(-1):8,}  (none)")
    return 0

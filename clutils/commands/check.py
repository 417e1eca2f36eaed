"""`check`: measure one encoder, or two side by side, say what is wrong, and write the page."""

from __future__ import annotations

import argparse
import itertools
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

from clutils.commands.arguments import Add, BadUsage, map_command, say, value


def add_to(add: Add) -> None:
    to_check = add(
        "check",
        check,
        "say whether an encoder is healthy: open a checkpoint of any library, safely, and write one page",
        epilog=_archs,
    )
    to_check.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="checkpoint, or folder that train wrote; two files are compared, three or more are a series: "
        "the main numbers against the epoch",
    )
    to_check.add_argument(
        "--data",
        metavar="NAME",
        help="images of the kind that the encoder was trained on, such as cifar10 or folder:PATH; default: "
        "scenes",
    )
    to_check.add_argument(
        "--out",
        metavar="FILE",
        action="append",
        help="file to write: .html (the page), .json (every number) or .png (the first screen); may be "
        "repeated; default: report.html",
    )
    to_check.add_argument(
        "--quick",
        action="store_true",
        help="stop at the first screen: the diagnosis in a sentence, the table and four panels, with a map "
        "by PCA in place of t-SNE",
    )
    to_check.add_argument(
        "--images",
        "--pictures",
        dest="limit",
        metavar="N",
        type=value,
        default=2000,
        help="number of images, at least 16, and at least 80 for a diagnosis; a quarter is the test set, "
        "the rest are the labelled neighbours; without labels, all are measured; default: 2000",
    )
    to_check.add_argument(
        "--arch",
        metavar="NAME",
        help="network in the file: a name below, torchvision:NAME or timm:NAME; default: identified from "
        "the file",
    )
    to_check.add_argument(
        "--weights",
        metavar="NAME",
        help="weights to open: ema, the moving average saved with the last weights, or a key or beginning of "
        "names, such as teacher; default: the last weights",
    )
    to_check.add_argument(
        "--head",
        metavar="NAME",
        help="key or beginning of names of the projection head; default: the only one that fits",
    )
    to_check.add_argument(
        "--temperature",
        metavar="X",
        type=value,
        help="temperature τ of the training, if the file does not say it",
    )
    to_check.add_argument(
        "--mean",
        metavar="X[,X,X]",
        type=value,
        help="mean to subtract from images in [0, 1]; or imagenet, cifar10, half (0.5), bytes (0 to 255) or "
        "none, which set --std too; default: auto, the one that fits the batch-norm statistics best",
    )
    to_check.add_argument(
        "--std",
        metavar="X[,X,X]",
        type=value,
        help="standard deviation to divide images by, after subtracting --mean; default: the one that "
        "belongs to --mean",
    )
    to_check.add_argument(
        "--size",
        metavar="N",
        type=value,
        help="side in pixels to resize images to, 8 to 1024; default: the network's, if it takes only one, "
        "else no resizing",
    )
    to_check.add_argument(
        "--fail-on",
        choices=("broken", "look"),
        help="lowest level that gives exit code 3: look (worth a look) or broken; for a series, the level "
        "of the last file; default: exit code 0 for every level",
    )
    to_check.add_argument("--seed", metavar="N", type=value, default=0, help="random seed; default: 0")


def _archs() -> str:
    from clutils import checkpoints

    return (
        f"encoders: {', '.join(checkpoints.NAMES)}; add what the weights do not show after a dash, as in "
        f"resnet18-padding2: {', '.join(checkpoints.backbones.OPTIONS)}."
    )


def check(options: argparse.Namespace) -> int:
    """Measure an encoder, two, or a series, and say what is wrong; write the page; 0, or 3 by --fail-on."""
    from clutils import report

    names = ("limit", "head", "arch", "weights", "temperature", "mean", "std", "size", "seed", "quick")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    given["out"] = options.out or ["report.html"]
    many, facts = len(options.files) > 2, {}
    if options.data and len(options.files) == 1:
        facts["interactive map"] = map_command(options.files[0], options.data, "map.html", options)
    command = shlex.join(["python", "-m", "clutils", *options.typed])
    with _stages((4 if options.quick else 6 if many else 7) * len(options.files)) as on_stage, unfit(report):
        reports = report.check_all(
            options.files, options.data, on_stage=on_stage, command=command, facts=facts, **given
        )
    gallery, judged = reports[0].examination.gallery, reports[0].examination.judged
    if len(gallery):
        say(f"{len(judged):,} test images: {judged.source}")
        say(f"{reports[0].examination.numbers['gallery']:,} are their labelled neighbours: {gallery.source}")
    else:
        say(f"{len(judged):,} images without labels: {judged.source}")
    for found in reports:
        say(str(found))
    if len(reports) == 2:
        say(report.compared(*reports))
    for out in given["out"]:
        say(f"written: {out}")
    if facts:
        say(f"these images on an interactive map: {facts['interactive map']}")
    feared = {None: (), "broken": (report.BROKEN,), "look": (report.LOOK, report.BROKEN)}[options.fail_on]
    levels = {found.level for found in reports}
    if many:  # of a run by its last checkpoint
        levels = {report.series.moments(reports)[-1]["level"]}
    return 3 if levels & set(feared) else 0


@contextmanager
def unfit(report: ModuleType) -> Iterator[None]:
    """Context manager: an option that `report` refuses is bad usage, named as it is typed."""
    try:
        yield
    except report.Unfit as error:
        option = "images" if error.option == "limit" else error.option
        raise BadUsage(f"--{option}: {error}" if option else str(error)) from error


@contextmanager
def _stages(number: int) -> Iterator[Callable[[str], None]]:
    """A bar that names the stage under way; where nobody watches, a line for each."""
    from tqdm import tqdm

    form = "{bar:20} {n_fmt}/{total_fmt} [{elapsed}] {postfix}"
    began, watched = time.monotonic(), sys.stderr.isatty()
    with tqdm(total=number, disable=not watched, bar_format=form, leave=False) as bar:
        done = itertools.count(1)

        def on_stage(name: str) -> None:
            bar.set_postfix_str(name)
            bar.update()
            if (at := next(done)) > 1 and not watched:  # "opening": a file that is refused is one line
                say(f"[{time.monotonic() - began:4.0f} s] {at} of {number}: {name}", sys.stderr)

        yield on_stage

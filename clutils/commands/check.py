"""`check`: measure one encoder, or two side by side, say what is wrong, and write the page."""

from __future__ import annotations

import argparse
import itertools
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from clutils.commands.arguments import (
    Add,
    BadUsage,
    above_zero,
    deviations,
    map_command,
    mean,
    positive,
    say,
    side,
    usage,
)

if TYPE_CHECKING:
    from clutils import checkpoints, report
    from clutils.data import ImageSet


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
        dest="pictures",
        metavar="N",
        type=positive,
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
        choices=("ema",),
        help="weights to open: ema, the moving average saved with the last weights; default: the last "
        "weights",
    )
    to_check.add_argument(
        "--temperature",
        metavar="X",
        type=above_zero,
        help="temperature τ of the training, if the file does not say it",
    )
    to_check.add_argument(
        "--mean",
        metavar="X[,X,X]",
        type=mean,
        help="mean to subtract from images in [0, 1]; or imagenet, cifar10, half (0.5), bytes (0 to 255) or "
        "none, which set --std too; default: auto, the one that fits the batch-norm statistics best",
    )
    to_check.add_argument(
        "--std",
        metavar="X[,X,X]",
        type=deviations,
        help="standard deviation to divide images by, after subtracting --mean; default: the one that "
        "belongs to --mean",
    )
    to_check.add_argument(
        "--size",
        metavar="N",
        type=side,
        help="side in pixels to resize images to, 8 to 1024; default: the network's, if it takes only one, "
        "else no resizing",
    )
    to_check.add_argument(
        "--fail-on",
        choices=("broken", "look"),
        help="lowest level that gives exit code 3: look (worth a look) or broken; for a series, the level "
        "of the last file; default: exit code 0 for every level",
    )
    to_check.add_argument("--seed", metavar="N", type=int, default=0, help="random seed; default: 0")


def _archs() -> str:
    from clutils import checkpoints

    return (
        f"encoders: {', '.join(checkpoints.NAMES)}; add what the weights do not show after a dash, as in "
        f"resnet18-padding2: {', '.join(checkpoints.backbones.OPTIONS)}."
    )


def check(options: argparse.Namespace) -> int:
    """Measure an encoder, two, or a series, and say what is wrong; write the page; 0, or 3 by --fail-on."""
    from clutils import checkpoints, report

    outs = [Path(out) for out in options.out or ["report.html"]]
    alone = len(options.files) == 1
    for out in outs:
        with usage("--out"):
            report.demand_suffix(out)
        if not alone and out.suffix not in (".html", ".json"):
            raise BadUsage(f"--out {out}: two files side by side, and a series, are an .html page or .json")
        demand_writable(out)
    if options.arch is not None:
        with usage("--arch"):
            checkpoints.demand_arch(options.arch)
    if isinstance(options.mean, str) and options.mean != "auto":
        with usage("--mean"):
            report.feeding.normalisation(options.mean)
    early = {file: opened_file(file, options) for file in options.files[:2]}  # they may be refused
    name = options.data or "scenes"
    with nullcontext() if name.startswith("folder:") else usage():  # what lies there is no matter of usage
        gallery, judged = report.load(name, options.pictures)
    pictures = gallery, judged
    if len(gallery):
        say(f"{len(judged):,} test images: {judged.source}")
        say(f"{len(gallery):,} are their labelled neighbours: {gallery.source}")
    else:
        say(f"{len(judged):,} images without labels: {judged.source}")
    reports: list[report.Report] = []
    many = len(options.files) > 2
    for file in options.files:  # of a series, one at a time is in memory
        opened = early.pop(file, None) or opened_file(file, options)
        reports.append(_checked(file, opened, pictures, options, many))
    _write(reports, outs)
    feared = {None: (), "broken": (report.BROKEN,), "look": (report.LOOK, report.BROKEN)}[options.fail_on]
    if len(reports) == 2:
        say(report.compared(*reports))
    levels = {found.level for found in reports}
    if many:  # of a run by its last checkpoint
        levels = {report.series.moments(reports)[-1]["level"]}
    return 3 if levels & set(feared) else 0


def _checked(
    file: str,
    opened: checkpoints.Opened,
    pictures: tuple[ImageSet, ImageSet],
    options: argparse.Namespace,
    many: bool,
) -> report.Report:
    """The report on one file, printed; one of many has no map."""
    from clutils import explorers, report

    names = ("temperature", "size", "mean", "std")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    given |= {"tsne": not many, "seed": options.seed, "quick": options.quick}
    given["command"] = shlex.join(["python", "-m", "clutils", *options.typed])
    with _stages(4 if options.quick else 6 if many else 7) as on_stage:
        try:
            found = report.check(opened, pictures, on_stage=on_stage, **given)
        except report.Unfit as error:
            raise BadUsage(f"{opened.path}: {error}") from error
    if opened.path != file:
        found.notes.insert(0, f"in the folder {file}, {Path(opened.path).name} was opened")
    if options.data is None:
        found.notes.insert(0, report.DEFAULTED)
    fewest, most = explorers.photo_map.FEWEST, explorers.photo_map.MOST
    if options.data and fewest <= sum(map(len, pictures)) and options.pictures <= most:
        found.examination.facts["interactive map"] = map_command(file, options.data, "map.html", options)
    say(str(found))
    return found


def _write(reports: list[report.Report], outs: list[Path]) -> None:
    from clutils import files, report

    for out in outs:
        page = out.suffix == ".html"
        if len(reports) > 2:
            files.write_atomically(out, (report.in_series if page else report.in_series_json)(reports))
        elif len(reports) == 2:
            files.write_atomically(out, (report.beside if page else report.beside_json)(*reports))
        else:
            reports[0].write(out)
        say(f"written: {out}")
    if len(reports) == 1 and (command := reports[0].examination.facts.get("interactive map")):
        say(f"these images on an interactive map: {command}")


def opened_file(file: str, options: argparse.Namespace) -> checkpoints.Opened:
    """The encoder in a file, or in the checkpoint of a run's folder, as `train --out` leaves it."""
    from clutils import checkpoints
    from clutils.training import saved

    within = Path(file) / saved.CHECKPOINT
    if (within.parent / saved.CONFIG).is_file() and not within.exists():
        raise FileNotFoundError(
            f"the run in {file} has no {saved.CHECKPOINT} yet: train writes it at the end, and on the "
            "way with --checkpoint-every STEPS"
        )
    return checkpoints.open(within if within.is_file() else file, options.arch, options.weights)


def demand_writable(out: Path) -> None:
    """Before the work: raises BadUsage, with what was typed, where nothing can be written there."""
    try:
        if out.is_dir():
            raise OSError("it is a folder")
        if not out.parent.is_dir():
            raise OSError(f"there is no folder {out.parent}")
        with tempfile.TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        raise BadUsage(f"--out {out} can't be written: {error.strerror or error}") from error


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

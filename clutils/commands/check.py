"""`check`: measure and judge one encoder, or two side by side, and write the page."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from clutils.commands.arguments import Add, BadUsage, above_zero, deviations, numbers, positive, side


def add_to(add: Add) -> None:
    to_check = add(
        "check",
        check,
        "is this encoder healthy? opens a checkpoint of any library, safely, and writes one page",
        epilog=_archs,
    )
    to_check.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="a checkpoint, or the folder that train wrote; two are put side by side",
    )
    to_check.add_argument(
        "--data",
        metavar="NAME",
        help="as in data.load: cifar10, folder:PATH ... of the kind that it was trained on; default: scenes",
    )
    to_check.add_argument(
        "--out",
        metavar="FILE",
        action="append",
        help=".html (the page), .json (every number), .pdf or .png (the verdicts; of one file); once for "
        "each; default: report.html",
    )
    to_check.add_argument(
        "--pictures",
        metavar="N",
        type=positive,
        default=2000,
        help="how many in all, at least 80; a quarter is judged, the others lend their labels; default: 2000",
    )
    to_check.add_argument("--arch", metavar="NAME", help="which network the file must hold")
    to_check.add_argument(
        "--temperature",
        metavar="X",
        type=above_zero,
        help="τ of its training, where the file lacks it; or another than the file's, to see its W",
    )
    to_check.add_argument("--mean", metavar="X[,X,X]", type=numbers, help="taken off pictures in [0, 1]")
    to_check.add_argument("--std", metavar="X[,X,X]", type=deviations, help="that pictures are divided by")
    to_check.add_argument("--size", metavar="N", type=side, help="pictures are resized to N x N, 8 to 1024")
    to_check.add_argument(
        "--layer", metavar="NAME", help="encoder, head, or a module of the encoder; default: encoder"
    )
    to_check.add_argument(
        "--grey",
        action="store_true",
        default=None,
        help="colours are averaged, for an encoder of grey pictures",
    )
    to_check.add_argument(
        "--fail-on",
        choices=("broken", "look"),
        help="exit code 3 where the verdict is broken, or at least worth a look; default: 0 whatever it is",
    )
    to_check.add_argument("--maps", choices=("none", "tsne", "both"), default="both", help="default: both")
    to_check.add_argument("--seed", metavar="N", type=int, default=0, help="default: 0")


def _archs() -> str:
    from clutils import checkpoints

    return (
        f"encoders: {', '.join(checkpoints.NAMES)}; what weights do not tell goes behind a dash, as in "
        f"resnet18-padding2: {', '.join(checkpoints.backbones.OPTIONS)}."
    )


def check(options: argparse.Namespace) -> int:
    """Measure and judge one encoder, or two side by side, and write the page; 0, or 3 by --fail-on."""
    from clutils import checkpoints, files, report

    if len(options.files) > 2:
        raise BadUsage(f"check takes one file, or two to put side by side, not {len(options.files)}")
    outs = [Path(out) for out in options.out or ["report.html"]]
    for out in outs:
        if out.suffix not in report.SUFFIXES:
            raise BadUsage(f"--out {out}: must end in {', '.join(report.SUFFIXES)}")
        if len(options.files) == 2 and out.suffix not in (".html", ".json"):
            raise BadUsage(f"--out {out}: two files side by side are an .html page or .json")
        _demand_writable(out)
    if options.arch is not None:
        try:
            checkpoints.demand_arch(options.arch)
        except ValueError as error:
            raise BadUsage(f"--arch: {error}") from error
    names = ("temperature", "size", "layer", "mean", "std", "grey")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    maps = {"none": (), "tsne": ("t-SNE",), "both": ("t-SNE", "UMAP")}[options.maps]
    try:
        gallery, judged = pictures = report.load(options.data or "scenes", options.pictures)
    except ValueError as error:
        if (options.data or "").startswith("folder:"):  # what lies there is no matter of usage
            raise
        raise BadUsage(str(error)) from error
    told = f"{len(gallery) + len(judged):,} pictures, of which {len(judged):,} are judged"
    print(f"{told} (the others lend their labels)", flush=True)
    reports = []
    for given_file in options.files:
        file = _in_folder(given_file)
        with _stages(7 + len(maps)) as (on_stage, on_hint):
            given |= {"on_stage": on_stage, "on_hint": on_hint, "map_names": maps, "seed": options.seed}
            try:
                found = report.check(file, pictures, options.arch, **given)
            except report.Unfit as error:
                raise BadUsage(f"{file}: {error}") from error
        if file != given_file:
            found.notes.insert(0, f"of the folder {given_file}, {Path(file).name} was opened")
        if options.data is None:
            found.notes.insert(0, report.DEFAULTED)
        print(found, flush=True)
        reports.append(found)
    for out in outs:
        if len(reports) == 2:
            files.replace(out, (report.beside if out.suffix == ".html" else report.beside_json)(*reports))
        else:
            reports[0].write(out)
        print(f"written: {out}")
    feared = {None: (), "broken": (report.BROKEN,), "look": (report.LOOK, report.BROKEN)}[options.fail_on]
    return 3 if any(found.level in feared for found in reports) else 0


def _in_folder(file: str) -> str:
    """The checkpoint in the folder of a run, as `train --out` leaves it; else what was given."""
    from clutils.training import saved

    within = Path(file) / saved.CHECKPOINT
    return str(within) if within.is_file() else file


def _demand_writable(out: Path) -> None:
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
def _stages(number: int) -> Iterator[tuple[Callable[[str], None], Callable[[str], None]]]:
    """(stage, hint): a bar that names the stage under way; where nobody watches, a line for each."""
    from tqdm import tqdm

    form = "{bar:20} {n_fmt}/{total_fmt} [{elapsed}] {postfix}"
    began, done, watched = time.monotonic(), 0, sys.stderr.isatty()
    with tqdm(total=number, disable=not watched, bar_format=form, leave=False) as bar:

        def log(text: str) -> None:
            print(f"[{time.monotonic() - began:4.0f} s] {text}", file=sys.stderr, flush=True)

        def on_stage(name: str) -> None:
            nonlocal done
            done += 1
            bar.set_postfix_str(name)
            bar.update()
            if not watched and done > 1:  # "opening": a file that is refused is one line
                log(f"{done} of {number}: {name}")

        def on_hint(text: str) -> None:
            bar.set_postfix_str(text)
            if not watched:
                log(text)

        yield on_stage, on_hint

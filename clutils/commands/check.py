"""`check`: measure one encoder, or two side by side, say what is wrong, and write the page."""

from __future__ import annotations

import argparse
import itertools
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from clutils.commands.arguments import Add, BadUsage, Parser, flags_of, map_command, say, value

METAVARS = dict.fromkeys(("arch", "weights", "head"), "NAME") | dict.fromkeys(("mean", "std"), "X[,X,X]")
METAVARS |= {"temperature": "X"}


def add_to(add: Add) -> None:
    add(
        "check",
        check,
        "say whether an encoder is healthy: open a checkpoint of any library, safely, and write one page",
        fill=_flags,
        epilog=_archs,
    )


def _flags(to_check: Parser) -> None:
    from clutils.report.options import ABOUT

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
    add_options(to_check, ABOUT)
    to_check.add_argument(
        "--fail-on",
        choices=("broken", "look"),
        help="lowest level that gives exit code 3: look (worth a look) or broken; for a series, the level "
        "of the last file; default: exit code 0 for every level",
    )


def add_options(parser: Parser, about: Mapping[str, str]) -> None:
    """Add options of a check, with these lines of help; their values are for `report` to refuse."""
    for name, said in about.items():
        how: dict[str, Any] = {"metavar": METAVARS.get(name, "N")}
        how |= {} if how["metavar"] == "NAME" else {"type": value}
        how = {"action": "store_true", "default": None} if name == "quick" else how
        parser.add_argument(*flags_of(name), dest=name, help=said, **how)


def given(options: argparse.Namespace) -> dict[str, Any]:
    """Options of a check that were typed, by their names in Python."""
    from clutils.report.options import ABOUT

    values = {name: getattr(options, name, None) for name in ABOUT}
    return {name: value for name, value in values.items() if value is not None}


def _archs() -> str:
    from clutils import checkpoints

    return (
        f"encoders: {', '.join(checkpoints.NAMES)}; add what the weights do not show after a dash, as in "
        f"resnet18-padding2: {', '.join(checkpoints.backbones.OPTIONS)}."
    )


def check(options: argparse.Namespace) -> int:
    """Measure an encoder, two, or a series, and say what is wrong; write the page; 0, or 3 by --fail-on."""
    from clutils import report

    outs = options.out or ["report.html"]
    many, facts = len(options.files) > 2, {}
    if options.data and len(options.files) == 1:
        facts["interactive map"] = map_command(options.files[0], options.data, "map.html", options)
    command = shlex.join(["python", "-m", "clutils", *options.typed])
    stages = (4 if options.quick else 6 if many else 7) * len(options.files)
    with unfit(report):
        reports = report.check_all(
            options.files,
            options.data,
            on_stage=_stages(stages),
            command=command,
            facts=facts,
            out=outs,
            **given(options),
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
    if many:
        moments = report.series.moments(reports)
        say(report.series.text(moments))
    for out in outs:
        say(f"written: {out}")
    if facts:
        say(f"these images on an interactive map: {facts['interactive map']}")
    feared = {None: (), "broken": (report.BROKEN,), "look": (report.LOOK, report.BROKEN)}[options.fail_on]
    levels = {found.level for found in reports}
    if many:  # of a run by its last checkpoint
        levels = {moments[-1]["level"]}
    return 3 if levels & set(feared) else 0


@contextmanager
def unfit(report: ModuleType) -> Iterator[None]:
    """Context manager: an option that `report` refuses is bad usage, named as it is typed."""
    try:
        yield
    except report.Unfit as error:
        option = f"{flags_of(error.option)[0]}: " if error.option else ""
        raise BadUsage(f"{option}{error}") from error


def _stages(number: int) -> Callable[[str], None]:
    """A function that says which stage is under way, a line on stderr each."""
    began, done = time.monotonic(), itertools.count(1)

    def on_stage(name: str) -> None:
        if (at := next(done)) > 1:  # "opening": a file that is refused is one line
            say(f"[{time.monotonic() - began:4.0f} s] {at} of {number}: {name}", sys.stderr)

    return on_stage

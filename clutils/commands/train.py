"""`train`: train an encoder. Each setting of `training.Run` is an option of the command."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clutils.commands.arguments import SETTINGS, Add, BadUsage, Parser, map_command, positive, say, usage
from clutils.commands.chosen import begun, resumed
from clutils.files import printable

if TYPE_CHECKING:
    from clutils.training import Run, Watcher

EXAMPLES = {"--set": "temperature=0.1", "--method-set": "queue_size=1024"}


def add_to(add: Add) -> None:
    add(
        "train",
        train,
        "train an encoder; write checkpoint, history, configuration and replay",
        fill=_flags,
        epilog=_names,
    )


def _flags(to_train: Parser) -> None:
    """An option for each of `training.Settings`, and those of this command."""
    from clutils.measures import BY_NAME
    from clutils.settings import ranges_of
    from clutils.training.settings import Settings

    length = to_train.add_mutually_exclusive_group()
    for setting, own in ranges_of(Settings).items():
        add = length.add_argument if setting in ("epochs", "steps") else to_train.add_argument
        name, about = "--" + setting.replace("_", "-"), own.about.replace("%", "%%")
        usual = own.unset or getattr(Settings, setting, None)
        if own.switch:
            add(name, action=argparse.BooleanOptionalAction, help=about)
        elif setting != "method_settings":  # see --method-set
            about += "" if usual is None else f"; default: {usual}"
            words = own.anything or own.choices
            flag: Any = str if words else int if own.whole else float
            add(name, metavar={int: "N", float: "X"}.get(flag, "NAME"), type=flag, help=about)
    for name, of in (("--set", "loss"), ("--method-set", "method")):
        help = f"setting of the {of}, such as {name} {EXAMPLES[name]}; may be repeated"
        to_train.add_argument(name, **SETTINGS, help=help)
    to_train.add_argument(
        "--schedule",
        **SETTINGS | {"metavar": "NAME=LOWEST:HIGHEST:PERIOD"},
        help="setting to vary between LOWEST and HIGHEST along a cosine of PERIOD steps, starting at "
        "HIGHEST, such as --schedule temperature=0.1:1:400; may be repeated",
    )
    to_train.add_argument(
        "--look",
        metavar="NAMES",
        type=_numbers,
        help="metrics to record in history.csv at the start, every --look-every steps and at the end, "
        f"separated by commas: {', '.join(BY_NAME)}; default: none; with --look-every: rankme, and knn if "
        "there are labels",
    )
    to_train.add_argument(
        "--look-every",
        metavar="STEPS",
        type=positive,
        help="number of steps between evaluations of --look; default: only at the start and the end",
    )
    to_train.add_argument("--out", metavar="DIR", required=True, help="folder to write to (required)")
    to_train.add_argument("--resume", action="store_true", help="continue the run in DIR")
    to_train.add_argument(
        "--checkpoint-every",
        metavar="STEPS",
        type=positive,
        help="number of steps between checkpoints; default: only one, at the end",
    )


def _numbers(text: str) -> tuple[str, ...]:
    from clutils.training import watcher

    try:
        return watcher.demand_known(name.strip() for name in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _names() -> str:
    from clutils import data, encoders, losses, methods, views

    settings = [
        f"{name} ({', '.join(entry.cls.setting_names())})" for name, entry in methods.catalogue().items()
    ]
    with_labels = [name for name, entry in methods.catalogue().items() if entry.cls.uses_labels is True]
    return (
        f"methods and their settings: {', '.join(settings)}. losses: {', '.join(losses.catalogue())}. labels "
        f"are used by {', '.join(with_labels)}. data: {', '.join(data.NAMES)}. "
        f"augmentations: {', '.join(views.names())}. encoders: {', '.join(encoders.NAMES)}. "
        "To train in several processes, each with a share of every batch: "
        "torchrun --nproc-per-node N -m clutils train ..."
    )


def train(options: argparse.Namespace) -> int:
    """Train, and write checkpoint.pt, history.csv and config.json; of several processes the first does."""
    from clutils import files, processes
    from clutils.training import interrupts

    if not options.out.strip():
        raise BadUsage(f"--out: {options.out!r} names no folder; --out runs/mine does")
    with contextlib.ExitStack() as held:
        rank = held.enter_context(processes.process_group(options.device))
        held.enter_context(interrupts.termination_as_interrupt())
        if rank:
            held.enter_context(contextlib.redirect_stdout(held.enter_context(open(os.devnull, "w"))))
        else:
            try:
                with usage("--out"):
                    held.enter_context(files.claimed(options.out))
            except OSError as error:
                said = f"--out {options.out}: no folder can be made there: {error.strerror or error}"
                raise BadUsage(said) from error
        return _train(options, Path(options.out))


def _train(options: argparse.Namespace, folder: Path) -> int:
    from clutils import explorers, processes
    from clutils.training import Checkpoints, noise_maps

    with processes.first_then_others():
        run = (resumed if options.resume else begun)(folder, options)
    if processes.rank():  # the first one looks, writes and says how it goes
        return 0 if run.finish(progress=False).done else 130
    watcher = _watching(run, options, folder)
    _describe(run)
    noise = noise_maps.watching(run, folder)
    noises = [] if noise is None else [noise]
    data: Any = run.data  # the command's is a set, with a source
    source = f"{data.source}. All images on a map: {command}" if (command := _map(run, folder)) else ""
    callbacks = [
        explorers.Replay(watcher, folder, source=source),
        watcher,
        *noises,
        Checkpoints(folder, options.checkpoint_every, [noise.write for noise in noises]),
    ]
    bar = sys.stdout.isatty()
    try:
        run.finish(callbacks if bar else [_in_a_log, *callbacks], progress=bar)
    except KeyboardInterrupt:
        say(f"clutils: stopped{_left_out(run, folder)}", sys.stderr)
        return 130
    if run.steps_done:
        seen = watcher.looks[-1]
        knn = "no kNN, for the data has no labels" if math.isnan(seen.knn) else f"kNN {seen.knn:.3f}"
        say(f"{knn}, effective rank {seen.effective_rank:.1f}, of {len(watcher.pictures)} {run.kind}")
    kept = "checkpoint.pt, history.csv, config.json" + (" and replay.html" if run.steps_done else "")
    say(f"{run.steps_done} steps, {_loss(run)}: {kept} are in {folder}")
    if not run.done:
        say("clutils: stopped; the same command with --resume goes on from here", sys.stderr)
        return 130
    if command:
        given = ["--data", str(run.configuration["data"]), "--out", str(folder / "report.html")]
        check = printable(shlex.join(["python", "-m", "clutils", "check", str(folder), *given]))
        say(f"this encoder checked on your images: {check}")
        say(f"your images on a map: {command}")
    return 0


def _in_a_log(run: Run) -> None:
    """A line at each tenth of the steps, in place of a bar."""
    if run.steps_done % math.ceil(run.steps / 10) == 0:
        say(f"step {run.steps_done} of {run.steps}: {_loss(run)}")


def _map(run: Run, folder: Path) -> str:
    """The command that draws what was trained on, a folder of images, on a map; "" for other data."""
    from clutils import explorers

    name = str(run.configuration["data"])
    enough = name.startswith("folder:") and len(run.data) >= explorers.photo_map.FEWEST
    return map_command(folder, name, folder / "map.html") if enough else ""


def _left_out(run: Run, folder: Path) -> str:
    """The files that a run stopped behind its last step has not written, and how to get them; or ""."""
    from clutils import explorers
    from clutils.training import saved

    def age(name: str) -> int:
        return (folder / name).stat().st_mtime_ns if (folder / name).exists() else -1

    names = (saved.MEASURED, saved.MAP, explorers.REPLAY)
    missing = [name for name in names if age(name) < age(saved.CHECKPOINT)]
    if not missing:
        return ""
    return (
        f" at step {run.steps_done} of {run.steps}, which is kept, before {', '.join(missing)} could be "
        "written; the same command with --resume goes on from here"
    )


def _watching(run: Run, options: argparse.Namespace, folder: Path) -> Watcher:
    """The watcher of a run, for the replay and for the numbers that --look and --look-every ask for."""
    from clutils import training

    every = options.look_every or (run.steps if options.look else None)
    with usage("--look"):
        name, numbers = run.configuration["data"], options.look or ()
        made = training.watching(run, name, numbers=numbers, every=every, folder=folder)
    if options.look is None and options.look_every is not None:
        made.numbers = ("rankme", "knn") if made.measures_knn else ("rankme",)
    return made


def _describe(run: Run) -> None:
    from clutils import processes

    shared = f", {processes.number()} processes" if processes.number() > 1 else ""
    data: Any = run.data  # the command's is a set, with a source
    what = f"{run.configuration['method']} with {run.loss} on {data.source}"
    where = f"on {run.device} in {run.settings.precision}{shared}"
    say(f"{what}, {where}: step {run.steps_done} of {run.steps}")


def _loss(run: Run) -> str:
    from clutils.training import callbacks

    return callbacks.in_words(run)

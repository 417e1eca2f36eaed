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

from clutils.commands.arguments import Add, BadUsage, map_command, say, usage
from clutils.commands.chosen import flags, names, new_run, resumed_run
from clutils.files import printable

if TYPE_CHECKING:
    from clutils.training import Run, Watcher


def add_to(add: Add) -> None:
    add(
        "train",
        train,
        "train an encoder; write checkpoint, history, configuration and replay",
        fill=flags,
        epilog=names,
    )


def train(options: argparse.Namespace) -> int:
    """Train, and write checkpoint.pt, history.csv and config.json; of several processes the first does."""
    from clutils import files, processes
    from clutils.training import interrupts, watcher

    if not options.out.strip():
        raise BadUsage(f"--out: {options.out!r} names no folder; --out runs/mine does")
    with usage("--look"):
        watcher.demand_known(options.look or ())
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
    from clutils.training.callbacks import in_words

    with processes.first_then_others():
        run = (resumed_run if options.resume else new_run)(folder, options)
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
        knn = f"kNN {seen.knn:.3f}" if watcher.measures_knn else "no kNN, which needs labels of two classes"
        say(f"{knn}, effective rank {seen.effective_rank:.1f}, of {len(watcher.pictures)} {run.kind}")
    kept = "checkpoint.pt, history.csv, config.json" + (" and replay.html" if run.steps_done else "")
    say(f"{run.steps_done} steps, {in_words(run)}: {kept} are in {folder}")
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
    from clutils.training.callbacks import in_words

    if run.steps_done % math.ceil(run.steps / 10) == 0:
        say(f"step {run.steps_done} of {run.steps}: {in_words(run)}")


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
    from clutils import losses, processes

    shared = f", {processes.number()} processes" if processes.number() > 1 else ""
    data: Any = run.data  # the command's is a set, with a source
    what = f"{run.configuration['method']} with {run.loss} on {data.source}"
    where = f"on {run.device} in {run.settings.precision}{shared}"
    say(f"{what}, {where}: step {run.steps_done} of {run.steps}")
    if isinstance(run.loss, losses.SupCon) and not run.method.uses_labels:
        method = run.configuration["method"]
        say(f"{method} gives its loss no labels, so SupCon is NT-Xent here: --method supcon gives them")
    if run.rows and not run.done and (rate := run.follow_settings()) > 1.5 * run.rows[-1]["learning_rate"]:
        rise = f"the learning rate rises from {run.rows[-1]['learning_rate']:.3g} to {rate:.3g}"
        say(f"{rise}: its schedule now spans {run.steps} steps")

"""`train`: train an encoder. Each setting of `training.Run` is an option of the command."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clutils.commands.arguments import SETTINGS, Add, BadUsage, Parser, positive, say, usage, value

if TYPE_CHECKING:
    from torch import nn

    from clutils.course.pinda.maps import Watch
    from clutils.training import Cosine, Run
    from clutils.training.watcher import Watcher

LEAST = 3  # samples: of fewer none is left to judge
NOISE_MAPS, WATCHED = "noise_maps.npz", 8  # of PiNDA: the file, and how many pictures are in it
APART = ("loss", "augmentation", "steps")  # that --resume compares in ways of their own
EXAMPLES = {"--set": "temperature=0.1", "--method-set": "queue_size=1024"}


def add_to(add: Add) -> None:
    add(
        "train",
        train,
        "train an encoder: writes checkpoint, history, config and a replay",
        fill=_flags,
        epilog=_names,
    )


def _flags(to_train: Parser) -> None:
    """An option for each of `training.Settings`, and those of this command."""
    from clutils.measures import BY_NAME
    from clutils.settings import ranges_of
    from clutils.training import logs
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
        help = f"a setting of the {of}, once for each, as in {name} {EXAMPLES[name]}"
        to_train.add_argument(name, **SETTINGS, help=help)
    to_train.add_argument(
        "--schedule",
        **SETTINGS | {"metavar": "NAME=LOWEST:HIGHEST:PERIOD"},
        help="a live setting, as the temperature, along a cosine of PERIOD steps that begins at the highest, "
        "once for each, as in --schedule temperature=0.1:1:400",
    )
    to_train.add_argument(
        "--look",
        metavar="NAMES",
        type=_numbers,
        help="numbers of check, with commas between them, of the encoder as it begins, at its end, and every "
        f"so many steps (--look-every), in history.csv: {', '.join(BY_NAME)}; default: rankme, and knn where "
        "there are labels",
    )
    to_train.add_argument("--look-every", metavar="STEPS", type=positive, help="see --look")
    to_train.add_argument(
        "--log",
        choices=tuple(logs.KINDS),
        action="append",
        default=[],
        help="write the history for TensorBoard or Weights & Biases too, into DIR, where that is installed "
        "(wandb: offline, unless WANDB_MODE says otherwise)",
    )
    to_train.add_argument("--out", metavar="DIR", required=True, help="folder for what is written")
    to_train.add_argument("--resume", action="store_true", help="go on with the run in DIR")
    to_train.add_argument(
        "--checkpoint-every", metavar="STEPS", type=positive, help="besides at the end; default: only then"
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
    return (
        f"methods and their settings: {', '.join(settings)}. losses: {', '.join(losses.catalogue())}. labels "
        f"are used by supcon. data: {', '.join(data.NAMES)}. "
        f"augmentations: {', '.join(views.names())}. encoders: {', '.join(encoders.NAMES)}. "
        "In several processes, each with its share of every batch: "
        "torchrun --nproc-per-node N -m clutils train ..."
    )


def train(options: argparse.Namespace) -> int:
    """Train, and write checkpoint.pt, history.csv and config.json; of several processes the first does."""
    from clutils import processes
    from clutils.training import interrupts

    with processes.process_group(options.device) as rank, interrupts.termination_as_interrupt():
        if not rank:
            return _train(options)
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            return _train(options)


def _train(options: argparse.Namespace) -> int:
    from clutils import processes
    from clutils.training import logs, saved

    folder = Path(options.out)
    checkpoint = folder / saved.CHECKPOINT
    with usage("--log"):
        for kind in options.log:
            logs.demand(kind)
    with processes.first_then_others():
        run = _resumed(checkpoint, options) if options.resume else _begun(checkpoint, options)
    if processes.rank():  # the first one looks, writes and says how it goes
        return 0 if run.finish(progress=False).done else 130
    watching = _watching(run, options)
    _describe(run, folder)

    def keep(run: Run) -> None:
        if not run.steps_done:  # where nothing was learned the next try shall find the folder free
            return
        if watch is not None:
            watch.maps.save(folder / NOISE_MAPS)
        saved.keep(run, folder)

    log_every = math.ceil(run.steps / 10)
    watch = _noise_watch(run, folder)
    written = [] if run.done else [logs.open(kind, run, folder) for kind in options.log]
    asked = bool(watching.numbers)
    if not run.done:
        first = asked and not run.steps_done
        seen = watching.look(run, free=first, few=not first)  # as it begins
        if first:
            run.looks[0] = dict(seen.numbers)
            for log in written:
                log.write(0, run.looks[0])

    def on_step(run: Run) -> None:
        if asked and (run.done or run.steps_done % (options.look_every or run.steps) == 0):
            run.looks[run.steps_done] = dict(watching.look(run, free=True).numbers)  # it takes what it takes
        elif watching.due(run):  # a few percent of the time: for the replay
            watching.look(run, few=True)
        for log in written:
            log.write(run.steps_done, run.rows[-1] | run.looks.get(run.steps_done, {}))
        if watch is not None:
            watch(run)
        if not sys.stdout.isatty() and run.steps_done % log_every == 0:  # in a log, lines instead of a bar
            say(f"step {run.steps_done} of {run.steps}: {_loss(run)}")
        if options.checkpoint_every and run.steps_done % options.checkpoint_every == 0:
            keep(run)

    try:
        run.finish(on_step, progress=sys.stdout.isatty())
    finally:  # also of a run that broke: what was learned until then
        keep(run)
        for log in written:
            log.close()
    if run.steps_done:
        say(_look(run, folder, watching))
    kept = "checkpoint.pt, history.csv, config.json" + (" and replay.html" if run.steps_done else "")
    say(f"{run.steps_done} steps, {_loss(run)}: {kept} are in {folder}")
    if not run.done:
        say("clutils: stopped; the same command with --resume goes on from here", sys.stderr)
        return 130
    return 0


def _look(run: Run, folder: Path, watching: Watcher) -> str:
    """Measure the run as the training lab does, write that and the replay beside the checkpoint, and say it.

    The replay's maps begin where this process did; its curves are of all steps.
    """
    from clutils import explorers
    from clutils.training import saved

    seen = watching.look(run, few=True)
    assert watching.map is not None  # it has just looked
    saved.add_look(folder, vars(seen), watching.map)
    what = f"{run.configuration['method']} with {run.loss}"
    source = getattr(run.data, "source", "")
    shown = explorers.of_run(run.history, watching.looks, watching.pictures, what, source)
    explorers.write_replay(folder, shown)
    knn = "no kNN, for the data has no labels" if math.isnan(seen.knn) else f"kNN {seen.knn:.3f}"
    return f"{knn}, effective rank {seen.effective_rank:.1f}, of {len(watching.pictures)} {run.kind.name}"


def _watching(run: Run, options: argparse.Namespace) -> Watcher:
    """The watcher of a run, for the replay and for the numbers that --look and --look-every ask for."""
    from clutils.training import watcher

    with usage("--look"):
        made = watcher.watching(run, run.configuration["data"], numbers=options.look or ())
    if options.look is None and options.look_every is not None:
        made.numbers = ("rankme", "knn") if made.measures_knn else ("rankme",)
    return made


def _describe(run: Run, folder: Path) -> None:
    """Write and say what is about to train; a resumed run lists its history so far again."""
    from clutils import processes
    from clutils.training import saved

    if not run.done:
        saved.describe(run, folder)
    if run.steps_done:
        saved.list_steps(run, folder)
    shared = f", {processes.number()} processes" if processes.number() > 1 else ""
    data: Any = run.data  # the command's is a set, with a source
    what = f"{run.configuration['method']} with {run.loss} on {data.source}"
    where = f"on {run.device} in {run.settings.precision}{shared}"
    say(f"{what}, {where}: step {run.steps_done} of {run.steps}")


def _noise_watch(run: Run, folder: Path) -> Watch | None:
    """For PiNDA on pictures: the maps of the first few, twenty times along the run; None for other runs."""
    if not hasattr(run.method, "noise") or run.images.ndim != 4:
        return None
    from clutils.course.pinda import maps

    watch = maps.Watch(run.images[:WATCHED], every=math.ceil(run.steps / 20))
    if run.steps_done and (folder / NOISE_MAPS).is_file():
        watch.go_on(maps.load(folder / NOISE_MAPS), run.steps_done)
    else:
        watch.take(run)
    return watch


def _begun(checkpoint: Path, options: argparse.Namespace) -> Run:
    """A new run with these options. Raises BadUsage on settings that can't be, OSError on missing data."""
    from clutils import methods, training

    if checkpoint.exists():
        raise BadUsage(f"{checkpoint} is there already: --resume goes on with it; another --out starts anew")
    given = _given(options)
    method = given.get("method", training.Settings.method)
    given["method_settings"] = method_settings(method, options.method_set)
    with usage():
        usual = type(methods.catalogue()[method].cls.default_loss(**given["method_settings"])).__name__
        given["loss"] = chosen_loss(options.loss, options.set, usual)
        run = training.Run(**given)
    if len(run.data) < LEAST:
        raise BadUsage(
            f"--data {options.data}: {len(run.data)} {run.kind.name}, but at least {LEAST} are needed"
        )
    run.schedules = schedules(options.schedule, run.live())
    return run


def _resumed(checkpoint: Path, options: argparse.Namespace) -> Run:
    """The run in a checkpoint, at its step. What is given must be what it has, but for a new length.

    A folder may lie elsewhere now: its pictures must be those that the run learned from.
    """
    from clutils import training, views

    def demand(same: bool, own: object, asked: object) -> None:
        if not same:
            raise BadUsage(f"--resume: {checkpoint} was trained with {own}, not {asked}")

    with usage("--device"):
        training.device(options.device)
    moved = options.data if (options.data or "").startswith("folder:") else None  # to another place
    run = training.resume(checkpoint, moved, device=options.device, compile=options.compile)
    before = run.configuration
    loss, settings, kept = before["loss"]["name"], before["loss"]["settings"], before["method_settings"]
    wanted = loss if options.loss is None else options.loss
    changed = settings | loss_settings(wanted, options.set)
    demand((wanted, changed) == (loss, settings), run.loss, " ".join(["with", wanted, *options.set]))
    for name, asked in _given(options, kept=True, fixed=True).items():
        if name not in APART:
            demand(asked == before[name], f"--{name.replace('_', '-')} {before[name]}", asked)
    for name, asked in method_settings(before["method"], options.method_set).items():
        demand(asked == kept[name], f"--method-set {name}={kept[name]}", asked)
    if options.schedule:
        own = " and ".join(f"{name}: {schedule}" for name, schedule in run.schedules.items()) or "no schedule"
        same = schedules(options.schedule, run.live()) == run.schedules
        demand(same, own, " ".join(options.schedule))
    if options.augmentation is not None:
        with usage():
            same = views.named(options.augmentation, run.images) == run.augmentation
        own = views.name_of(before["augmentation"], run.images.shape)
        demand(same, f"the augmentation {own}", options.augmentation)
    if options.epochs is not None:
        run.steps = options.epochs * run.steps_an_epoch
    if options.steps is not None:
        run.steps = options.steps
    if run.steps < run.steps_done:
        raise BadUsage(
            f"--resume: {checkpoint} has {run.steps_done} steps behind it already, more than the {run.steps} "
            "asked for"
        )
    return run


def _given(options: argparse.Namespace, **wanted: Any) -> dict[str, Any]:
    """The settings that were given as options of their own; wanted: as for `settings.names`."""
    from clutils.training import settings

    values = {name: getattr(options, name, None) for name in settings.names(**wanted)}
    return {name: value for name, value in values.items() if value is not None}


def chosen_loss(name: str | None, settings: Sequence[str], usual: str = "NTXent") -> nn.Module | None:
    """The loss called `name`, or else the usual one, with these settings; None where neither is given.

    Raises BadUsage.
    """
    from clutils import losses

    if name is None and not settings:
        return None
    name = usual if name is None else name
    given = loss_settings(name, settings)
    with usage("--set"):
        return losses.catalogue()[name].cls(**given)


def loss_settings(name: str, settings: Sequence[str]) -> dict[str, Any]:
    """['temperature=0.1'] -> {'temperature': 0.1}, for the loss called `name`.

    Raises BadUsage, listing what there is, on a loss or setting that does not exist; and on what is no value.
    """
    from clutils import losses

    known = losses.catalogue()
    _demand_known("--loss", name, known)
    return _values("--set", name, settings, known[name].cls.defaults())


def method_settings(name: str, settings: Sequence[str]) -> dict[str, Any]:
    """['queue_size=1024'] -> {'queue_size': 1024}, for the method called `name`; BadUsage as above."""
    from clutils import methods

    known = methods.catalogue()
    _demand_known("--method", name, known)
    return _values("--method-set", name, settings, known[name].cls.defaults())


def schedules(given: Sequence[str], live: Iterable[str]) -> dict[str, Cosine]:
    """['temperature=0.1:1:400'] -> {'temperature': Cosine(0.1, 1.0, 400)}; live: settings that there are.

    Raises BadUsage.
    """
    from clutils.training import Cosine

    found = {}
    for asked in given:
        name, _, parts = asked.partition("=")
        if name not in live:
            raise BadUsage(f"--schedule {asked}: may be of {', '.join(live)}")
        try:
            lowest, highest, period = parts.split(":")
            found[name] = Cosine(float(lowest), float(highest), int(period))
        except ValueError as error:
            why = f": {error}" if "but must be" in str(error) else ""
            raise BadUsage(f"--schedule {asked}: needs three numbers, as in {name}=0.1:1:400{why}") from error
    return found


def _demand_known(option: str, name: str, known: Iterable[str]) -> None:
    from clutils.settings import did_you_mean

    if name not in known:
        raise BadUsage(f"{option} {name}{did_you_mean(name, known, listed=True)}")


def _values(option: str, name: str, settings: Sequence[str], usual: Mapping[str, Any]) -> dict[str, Any]:
    """['key=1.5'] -> {'key': 1.5}; usual: the settings that `name` has, and a value of each."""
    given = {}
    for setting in settings:
        key, _, text = setting.partition("=")
        if key not in usual:
            raise BadUsage(f"{option} {setting}: {name} has the settings {', '.join(usual)}")
        given[key] = value(text)
        a_word = isinstance(given[key], str) and not isinstance(usual[key], str | None)  # as network=conv may
        if a_word or not text:
            what = f"{text!r} is a word, but {key} " if text else ""
            raise BadUsage(f"{option} {setting}: {what}needs a value, as in {option} {key}={usual[key]}")
    return given


def _loss(run: Run) -> str:
    if not run.rows:
        return "no loss yet"
    last = run.rows[-1]
    chance = "" if math.isnan(last["chance"]) else f" (chance {last['chance']:.4f})"
    return f"loss {last['loss']:.4f}{chance}"

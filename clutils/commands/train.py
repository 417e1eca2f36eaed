"""`train`: train an encoder. Each setting of `training.Run` is an option of the command."""

from __future__ import annotations

import argparse
import ast
import contextlib
import inspect
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clutils.commands.arguments import Add, BadUsage, Parser, positive

if TYPE_CHECKING:
    from torch import nn

    from clutils.course.pinda.maps import Watch
    from clutils.training import Cosine, Run
    from clutils.training.watcher import Watcher

NOISE_MAPS, WATCHED = "noise_maps.npz", 8  # of PiNDA: the file, and how many pictures are in it
APART = ("loss", "augmentation", "steps")  # that --resume compares in ways of their own
EXAMPLES = {"--set": "temperature=0.1", "--method-set": "queue_size=1024"}
WORDS = {"true": True, "false": False, "inf": math.inf}  # values that are no Python literals


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
    from clutils.training import logs
    from clutils.training.settings import Settings

    length = to_train.add_mutually_exclusive_group()
    for setting in fields(Settings):
        add = length.add_argument if setting.name in ("epochs", "steps") else to_train.add_argument
        flag, about = setting.metadata["flag"], setting.metadata["about"].replace("%", "%%")
        name = "--" + setting.name.replace("_", "-")
        if flag is bool:
            add(name, action=argparse.BooleanOptionalAction, help=about)
        elif flag is not None:
            metavar = {int: "N", float: "X"}.get(flag, "NAME")
            add(name, metavar=metavar, type=flag, help=_with_default(about, setting.default))
    for name, of in (("--set", "loss"), ("--method-set", "method")):
        help = f"a setting of the {of}, once for each, as in {name} {EXAMPLES[name]}"
        to_train.add_argument(name, metavar="NAME=VALUE", action="append", default=[], help=help)
    to_train.add_argument(
        "--schedule",
        metavar="NAME=LOWEST:HIGHEST:PERIOD",
        action="append",
        default=[],
        help="a live setting, as the temperature, along a cosine of PERIOD steps that begins at the highest, "
        "once for each, as in --schedule temperature=0.1:1:400",
    )
    to_train.add_argument(
        "--look",
        metavar="NAMES",
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


def _with_default(about: str, default: object) -> str:
    return about if default is None or "default" in about else f"{about}; default: {default}"


def _names() -> str:
    from clutils import data, encoders, losses, methods, views

    settings = [
        f"{name} ({', '.join(entry.kind.setting_names())})" for name, entry in methods.catalogue().items()
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

    with processes.joined(options.device) as rank, interrupts.termination_as_interrupt():
        if not rank:
            return _train(options)
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            return _train(options)


def _train(options: argparse.Namespace) -> int:
    from clutils import processes
    from clutils.training import logs, saved

    folder = Path(options.out)
    checkpoint = folder / saved.CHECKPOINT
    asked = _looked_for(options)
    try:
        for kind in options.log:
            logs.demand(kind)
    except ValueError as error:
        raise BadUsage(f"--log: {error}") from error
    with processes.first_then_others():
        run = _resumed(checkpoint, options) if options.resume else _begun(checkpoint, options)
    watching = None if processes.rank() else _watching(run, asked)
    if not processes.rank():
        _describe(run, folder)

    def keep(run: Run) -> None:
        # where nothing was learned the next try shall find the folder free
        if not run.steps_done or processes.rank():
            return
        if watch is not None:
            watch.maps.save(folder / NOISE_MAPS)
        saved.keep(run, folder)

    log_every = math.ceil(run.steps / 10)
    watch = None if processes.rank() else _noise_watch(run, folder)
    written = [] if processes.rank() or run.done else [logs.open(kind, run, folder) for kind in options.log]
    if watching is not None and not run.done:
        first = asked is not None and not run.steps_done
        seen = watching.look(run, free=first, few=not first)  # as it begins
        if first:
            run.looks[0] = dict(seen.numbers)
            for log in written:
                log.write(0, run.looks[0])

    def on_step(run: Run) -> None:
        at = asked is not None and (run.done or run.steps_done % (options.look_every or run.steps) == 0)
        if watching is not None and at:  # as asked for: it takes what it takes
            run.looks[run.steps_done] = dict(watching.look(run, free=True).numbers)
        elif watching is not None and watching.due(run):  # a few percent of the time: for the replay
            watching.look(run, few=True)
        for log in written:
            log.write(run.steps_done, run.rows[-1] | run.looks.get(run.steps_done, {}))
        if watch is not None:
            watch(run)
        if not sys.stdout.isatty() and run.steps_done % log_every == 0:  # in a log, lines instead of a bar
            print(f"step {run.steps_done} of {run.steps}: {_loss(run)}", flush=True)
        if options.checkpoint_every and run.steps_done % options.checkpoint_every == 0:
            keep(run)

    try:
        run.finish(on_step, progress=sys.stdout.isatty())
    finally:  # also of a run that broke: what was learned until then
        keep(run)
        for log in written:
            log.close()
    if looked := run.steps_done and watching is not None:
        print(_look(run, folder, watching))
    kept = "checkpoint.pt, history.csv, config.json" + (" and replay.html" if looked else "")
    print(f"{run.steps_done} steps, {_loss(run)}: {kept} are in {folder}")
    if not run.done:
        if not processes.rank():
            print("clutils: stopped; the same command with --resume goes on from here", file=sys.stderr)
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


def _looked_for(options: argparse.Namespace) -> tuple[str, ...] | None:
    """The numbers of --look; () = the usual ones, None = none are asked for. Raises BadUsage on another."""
    from clutils.training import watcher

    if options.look is None:
        return None if options.look_every is None else ()
    try:
        return watcher.demand_known(name.strip() for name in options.look.split(","))
    except ValueError as error:
        raise BadUsage(f"--look: {error}") from error


def _watching(run: Run, asked: tuple[str, ...] | None) -> Watcher:
    """The watcher of a run, for the replay and for the numbers that were asked for."""
    from clutils.training import watcher

    try:
        made = watcher.watching(run, run.configuration["data"], numbers=asked or ())
    except ValueError as error:
        raise BadUsage(f"--look: {error}") from error
    if asked == ():
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
    print(f"{what}, {where}: step {run.steps_done} of {run.steps}", flush=True)


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
    try:
        usual = type(methods.catalogue()[method].kind.default_loss(**given["method_settings"])).__name__
        given["loss"] = chosen_loss(options.loss, options.set, usual)
        run = training.Run(**given)
    except ValueError as error:
        raise BadUsage(str(error)) from error
    run.schedules = schedules(options.schedule, run.live())
    return run


def _resumed(checkpoint: Path, options: argparse.Namespace) -> Run:
    """The run in a checkpoint, at its step. What is given must be what it has, but for a new length.

    A folder may lie elsewhere now: its pictures must be those that the run learned from.
    """
    from clutils import training

    try:
        training.device(options.device)
    except ValueError as error:
        raise BadUsage(f"--device: {error}") from error
    moved = {}
    if options.data is not None and options.data.startswith("folder:"):  # where they lie on this machine
        moved["data"] = options.data
    run = training.resume(checkpoint, device=options.device, compile=options.compile, **moved)
    before = run.configuration
    wanted = before["loss"]["name"] if options.loss is None else options.loss
    settings = before["loss"]["settings"]
    if wanted != before["loss"]["name"] or settings != settings | loss_settings(wanted, options.set):
        asked = " ".join([wanted, *options.set])
        raise BadUsage(f"--resume: {checkpoint} was trained with {run.loss}, not with {asked}")
    for name, asked in _given(options, kept=True, fixed=True).items():
        if name not in APART and asked != before[name]:
            option = name.replace("_", "-")
            raise BadUsage(f"--resume: {checkpoint} was trained with --{option} {before[name]}, not {asked}")
    kept = before["method_settings"]
    for name, asked in method_settings(before["method"], options.method_set).items():
        if asked != kept[name]:
            option = f"--method-set {name}="
            raise BadUsage(f"--resume: {checkpoint} was trained with {option}{kept[name]}, not {asked}")
    if options.schedule and schedules(options.schedule, run.live()) != run.schedules:
        own = " and ".join(f"{name}: {schedule}" for name, schedule in run.schedules.items()) or "no schedule"
        raise BadUsage(f"--resume: {checkpoint} was trained with {own}, not {' '.join(options.schedule)}")
    if options.augmentation is not None:
        _same_augmentation(run, options.augmentation, checkpoint)
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


def _same_augmentation(run: Run, name: str, checkpoint: Path) -> None:
    """Raise BadUsage unless the run has the augmentation called so."""
    from clutils import views

    try:
        asked = views.named(name, run.images)
    except ValueError as error:
        raise BadUsage(str(error)) from error
    if asked != run.augmentation:
        own = views.name_of(run.configuration["augmentation"], run.images.shape)
        raise BadUsage(f"--resume: {checkpoint} was trained with the augmentation {own}, not {name}")


def chosen_loss(name: str | None, settings: Sequence[str], usual: str = "NTXent") -> nn.Module | None:
    """The loss called `name`, or else the usual one, with these settings; None where neither is given.

    Raises BadUsage.
    """
    from clutils import losses

    if name is None and not settings:
        return None
    name = usual if name is None else name
    given = loss_settings(name, settings)
    try:
        return losses.catalogue()[name].loss(**given)
    except ValueError as error:
        raise BadUsage(f"--set: {error}") from error


def loss_settings(name: str, settings: Sequence[str]) -> dict[str, Any]:
    """['temperature=0.1'] -> {'temperature': 0.1}, for the loss called `name`.

    Raises BadUsage, listing what there is, on a loss or setting that does not exist; and on what is no value.
    """
    from clutils import losses

    known = losses.catalogue()
    if name not in known:
        raise BadUsage(f"--loss {name}: there are {', '.join(known)}")
    loss = known[name].loss
    usual = {key: getattr(loss(), key) for key in loss.hyperparameters()}
    return _values("--set", name, settings, usual)


def method_settings(name: str, settings: Sequence[str]) -> dict[str, Any]:
    """['queue_size=1024'] -> {'queue_size': 1024}, for the method called `name`; BadUsage as above."""
    from clutils import methods

    known = methods.catalogue()
    if name not in known:
        raise BadUsage(f"--method {name}: there are {', '.join(known)}")
    kind = known[name].kind
    parameters = inspect.signature(kind).parameters
    usual = {key: parameters[key].default for key in kind.setting_names()}
    return _values("--method-set", name, settings, usual)


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


def _values(option: str, name: str, settings: Sequence[str], usual: Mapping[str, Any]) -> dict[str, Any]:
    """['key=1.5'] -> {'key': 1.5}; usual: the settings that `name` has, and a value of each."""
    given = {}
    for setting in settings:
        key, _, value = setting.partition("=")
        if key not in usual:
            raise BadUsage(f"{option} {setting}: {name} has the settings {', '.join(usual)}")
        try:
            given[key] = WORDS[value.lower()] if value.lower() in WORDS else ast.literal_eval(value)
        except (ValueError, SyntaxError) as error:
            if not value or not isinstance(usual[key], str | None):
                like = f"{option} {key}={usual[key]}"
                raise BadUsage(f"{option} {setting}: needs a value, as in {like}") from error
            given[key] = value  # a word, as in network=conv
    return given


def _loss(run: Run) -> str:
    if not run.rows:
        return "no loss yet"
    last = run.rows[-1]
    chance = "" if math.isnan(last["chance"]) else f" (chance {last['chance']:.4f})"
    return f"loss {last['loss']:.4f}{chance}"

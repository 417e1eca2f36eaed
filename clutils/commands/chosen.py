"""Options of `train`, and the run that they choose, a new or a resumed one."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clutils.commands.arguments import SETTINGS, BadUsage, Parser, positive, usage, value

if TYPE_CHECKING:
    from torch import nn

    from clutils.training import Cosine, Run


def flags(to_train: Parser) -> None:
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
    for name, of in (("--set temperature=0.1", "loss"), ("--method-set queue_size=1024", "method")):
        help = f"setting of the {of}, such as {name}; may be repeated"
        to_train.add_argument(name.split()[0], **SETTINGS, help=help)
    to_train.add_argument(
        "--schedule",
        **SETTINGS | {"metavar": "NAME=LOWEST:HIGHEST:PERIOD"},
        help="setting to vary between LOWEST and HIGHEST along a cosine of PERIOD steps, starting at "
        "HIGHEST, such as --schedule temperature=0.1:1:400; may be repeated",
    )
    to_train.add_argument(
        "--look",
        metavar="NAMES",
        type=lambda text: [name.strip() for name in text.split(",")],
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


def names() -> str:
    """Names that the options take, for the end of `--help`."""
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


def new_run(folder: Path, options: argparse.Namespace) -> Run:
    """A new run with these options. Raises BadUsage on settings that can't be, OSError on missing data."""
    from clutils import methods, training
    from clutils.training import saved

    with usage("--out"):
        saved.demand_free(folder)
    given = _given(options)
    method = given.get("method", training.Settings.method)
    given["method_settings"] = settings_of("method", method, options.method_set)
    with usage():
        usual = methods.catalogue()[method].cls.default_loss(**given["method_settings"])
        given["loss"] = chosen_loss(options.loss, options.set, usual)
        run = training.Run(**given)
    if len(run.data) < 3:  # of fewer none is left to judge
        raise BadUsage(f"--data {options.data}: {len(run.data)} {run.kind}, but at least 3 are needed")
    if run.differing < run.batch_size and run.kind.name == "sentences":
        few = f"of {len(run.data):,} sentences only {run.differing:,} differ"
        raise BadUsage(f"--data {options.data}: {few}, but a batch has {run.batch_size}")
    run.schedules = schedules(options.schedule, run.live())
    return run


def resumed_run(folder: Path, options: argparse.Namespace) -> Run:
    """The run in a checkpoint, at its step. What is given must be what it has, except for a new length.

    A folder may lie elsewhere now: its images must be those that the run learned from.
    """
    from clutils import training, views
    from clutils.training import saved

    checkpoint = folder / saved.CHECKPOINT
    with usage("--device"):
        training.device(options.device)
    moved = options.data if (options.data or "").startswith("folder:") else None  # to another place
    run = training.resume(checkpoint, moved, device=options.device, compile=options.compile)
    before = run.configuration
    loss, method = before["loss"], before["method"]
    wanted = loss["name"] if options.loss is None else options.loss
    asked: list[tuple[str, Any, Any]] = [("--loss ", loss["name"], wanted)]  # option, what it was, what it is
    for kind, of, kept in (("loss", wanted, loss["settings"]), ("method", method, before["method_settings"])):
        option, given = ("--set", options.set) if kind == "loss" else ("--method-set", options.method_set)
        settings = settings_of(kind, of, given)
        asked += [(f"{option} {name}=", kept.get(name), now) for name, now in settings.items()]
    for name, now in _given(options, kept=True, fixed=True).items():
        if name not in ("loss", "augmentation", "steps"):  # more steps continue it
            asked.append((f"--{name.replace('_', '-')} ", before[name], now))
    if options.schedule and schedules(options.schedule, run.live()) != run.schedules:
        own = " and ".join(f"{name}={one}" for name, one in run.schedules.items()) or "none"
        asked.append(("--schedule ", own, " ".join(options.schedule)))
    if options.augmentation is not None:
        with usage():
            same = views.named(options.augmentation, run.images) == run.augmentation
        own = options.augmentation if same else views.name_of(before["augmentation"], run.images.shape)
        asked.append(("--augmentation ", own, options.augmentation))
    for option, own, now in asked:
        if now != own:
            raise BadUsage(f"--resume: {checkpoint} was trained with {option}{own}, not {now}")
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


def chosen_loss(name: str | None, settings: Sequence[str], usual: Any = None) -> nn.Module | None:
    """The loss called `name`, or else the usual one, with these settings; None where neither is given.

    - usual: a loss, which keeps what `settings` do not change

    Raises BadUsage.
    """
    from clutils import losses

    if name is None and not settings:
        return None
    kept = {}
    if name is None:
        kept = {setting: getattr(usual, setting) for setting in usual.hyperparameters()}
        name = type(usual).__name__
    given = settings_of("loss", name, settings)
    with usage("--set"):
        return losses.catalogue()[name].cls(**{**kept, **given})


def settings_of(kind: str, name: str, settings: Sequence[str]) -> dict[str, Any]:
    """['temperature=0.1'] -> {'temperature': 0.1}, for the loss or the method of this name.

    Raises BadUsage for an unknown name or setting, with the known ones, and for a text that is no value.
    """
    from clutils import losses, methods
    from clutils.settings import SYNONYMS, did_you_mean

    known: Mapping[str, Any] = {"loss": losses, "method": methods}[kind].catalogue()
    option = {"loss": "--set", "method": "--method-set"}[kind]
    if name not in known:
        hint = did_you_mean(name, known, listed=True)
        raise BadUsage(f"--{kind} {name}: there is no {kind} of this name{hint}")
    of = known[name].cls
    given: dict[str, Any] = {}
    usual: Mapping[str, Any] = of.defaults()
    symbols = {own.symbol: setting for setting, own in of.ranges.items() if own.symbol}
    for setting in settings:
        key, _, text = setting.partition("=")
        if key not in usual:
            hint = did_you_mean(symbols.get(key, key), usual, listed=True)
            if (meant := SYNONYMS.get(key, key)) in {"learning_rate", "weight_decay", "batch_size"}:
                hint = f"; did you mean --{meant.replace('_', '-')}?"
            raise BadUsage(f"{option} {setting}: {name} has no setting {key}{hint}")
        given[key] = value(text)
        a_word = isinstance(given[key], str) and not isinstance(usual[key], str | None)  # as network=conv may
        if a_word or not text:
            what = f"{text!r} is a word, but {key} " if text else ""
            raise BadUsage(f"{option} {setting}: {what}needs a value, as in {option} {key}={usual[key]}")
    return given


def schedules(given: Sequence[str], live: Mapping[str, Any]) -> dict[str, Cosine]:
    """['temperature=0.1:1:400'] -> {'temperature': Cosine(0.1, 1.0, 400)}; live: as `Run.live` gives them.

    Raises BadUsage, also where an end is out of the setting's range.
    """
    from clutils.training import Cosine
    from clutils.training.settings import LEARNING_RATE

    ranges = {
        name: LEARNING_RATE if name == "learning_rate" else of.ranges[name] for name, of in live.items()
    }
    numbers = [name for name, own in ranges.items() if not (own.whole or own.switch or own.choices)]
    found = {}
    for asked in given:
        name, _, parts = asked.partition("=")
        if name not in numbers:
            raise BadUsage(f"--schedule {asked}: may be of {', '.join(numbers)}")
        try:
            lowest, highest, period = parts.split(":")
            cosine = float(lowest), float(highest), int(period)
        except ValueError as error:
            needed = f"needs three numbers, as in {name}=0.1:1:400"
            raise BadUsage(f"--schedule {asked}: {needed}") from error
        with usage(f"--schedule {asked}"):
            found[name] = Cosine(*cosine)
            for end in cosine[:2]:
                ranges[name].check(type(live[name]).__name__, name, end)
    return found

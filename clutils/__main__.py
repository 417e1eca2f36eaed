"""The command line: `python -m clutils lab | train | check FILE --data NAME | data NAME | doctor`.

Exit code 0 on success, 2 on bad usage, 1 on failure, 3 where `check` found what --fail-on asks about, 130
when stopped from the keyboard; whatever went wrong is said in one line on stderr.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import inspect
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from torch import nn

    from clutils.noise_maps import Watch
    from clutils.training import Run

# what needs torch is imported by the command that needs it: `--help` and `doctor` answer without

ROOT = Path(__file__).resolve().parent.parent
START = Path("notebooks", "00_start_here.ipynb")
NOISE_MAPS, WATCHED = "noise_maps.npz", 8  # of PiNDA: the file, and how many pictures are in it
WORDS = {"true": True, "false": False, "inf": math.inf}  # values that are no Python literals


class BadUsage(Exception):
    """What was asked for can't be: exit code 2."""


class Parser(argparse.ArgumentParser):
    """argparse, with errors in one line, and an epilogue that may be a function called for `--help` alone."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"clutils: {message} ({self.prog} --help says what there is)\n")

    def format_help(self) -> str:
        if callable(self.epilog):
            self.epilog = self.epilog()
        return super().format_help()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and options.command is not lab:
        parser.error(f"unknown arguments {' '.join(rest)}")
    try:
        return options.command(options, rest) if options.command is lab else options.command(options)
    except KeyboardInterrupt:
        print("clutils: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # what we print to has read enough, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nor complain when Python flushes
        return 1
    except BadUsage as error:
        return _complain(error, 2)
    except ImportError as error:
        return _complain(f"{error}: 'python -m clutils doctor' says what is missing", 1)
    except (ValueError, OSError) as error:
        return _complain(error, 1)


# ---- lab ---------------------------------------------------------------------------------------------------


def lab(options: argparse.Namespace, rest: list[str]) -> int:
    """Open the course in JupyterLab; what is not known here is passed on to it."""
    command = lab_command(rest)
    # so that `python` in JupyterLab's own terminal is the one that has the course
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    if os.name == "nt":  # its exec returns to the prompt while the server runs
        return subprocess.run(command).returncode
    os.execv(command[0], command)  # Ctrl-C then reaches JupyterLab alone, which asks before it stops


def lab_command(rest: Sequence[str] = ()) -> list[str]:
    """The command that starts JupyterLab on the first notebook; `rest` comes last, so that it wins.

    Raises FileNotFoundError where the notebooks are not beside the package.
    """
    if not (ROOT / START).is_file():
        raise FileNotFoundError(
            f"no notebook at {ROOT / START}: get the project's whole folder and install it with "
            "'pip install --editable .'"
        )
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={ROOT}"]
    command.append(f"--LabApp.default_url=/lab/tree/{START.as_posix()}")  # opened, and in the printed address
    # nothing pops up on stage, and nothing asks the network
    command += ["--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # as in a container; JupyterLab refuses otherwise
    if sys.platform == "linux" and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))):
        command.append("--no-browser")  # else Python would look for one that runs in the terminal
    return [*command, *rest]


# ---- train -------------------------------------------------------------------------------------------------


def train(options: argparse.Namespace) -> int:
    """Train, and write checkpoint.pt, history.csv and config.json; of several processes the first does."""
    from clutils import processes

    with processes.joined(options.device) as rank:
        if not rank:
            return _train(options)
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            return _train(options)


def _train(options: argparse.Namespace) -> int:
    from clutils import processes, saved_runs

    folder = Path(options.out)
    checkpoint = folder / saved_runs.CHECKPOINT
    with processes.first_then_others():
        run = _resumed(checkpoint, options) if options.resume else _begun(checkpoint, options)
    if not processes.rank():
        _describe(run, folder)

    def keep(run: Run) -> None:
        # where nothing was learned the next try shall find the folder free
        if not run.steps_done or processes.rank():
            return
        if watch is not None:
            watch.maps.save(folder / NOISE_MAPS)
        saved_runs.keep(run, folder)

    tell_every = math.ceil(run.steps / 10)
    watch = None if processes.rank() else _noise_watch(run, folder)

    def on_step(run: Run) -> None:
        if watch is not None:
            watch(run)
        if not sys.stdout.isatty() and run.steps_done % tell_every == 0:  # in a log, lines instead of a bar
            print(f"step {run.steps_done} of {run.steps}: {_loss(run)}", flush=True)
        if options.checkpoint_every and run.steps_done % options.checkpoint_every == 0:
            keep(run)

    try:
        run.finish(on_step, progress=sys.stdout.isatty())
    finally:  # also of a run that broke: what was learned until then
        keep(run)
    print(f"{run.steps_done} steps, {_loss(run)}: checkpoint.pt, history.csv and config.json are in {folder}")
    if not run.done:
        if not processes.rank():
            print("clutils: stopped; the same command with --resume goes on from here", file=sys.stderr)
        return 130
    return 0


def _describe(run: Run, folder: Path) -> None:
    """Write and say what is about to train; a run that goes on has its history so far listed anew."""
    from clutils import processes, saved_runs

    saved_runs.describe(run, folder)
    if run.steps_done:
        saved_runs.list_steps(run, folder)
    shared = f", {processes.number()} processes" if processes.number() > 1 else ""
    what = f"{run.configuration['method']} with {run.loss} on {run.data.source}"
    where = f"on {run.device} in {run.precision}{shared}"
    print(f"{what}, {where}: step {run.steps_done} of {run.steps}", flush=True)


def _noise_watch(run: Run, folder: Path) -> Watch | None:
    """For PiNDA on pictures: the maps of the first few, twenty times along the run; None for other runs."""
    from clutils import noise_maps

    if not hasattr(run.method, "noise") or run.images.ndim != 4:
        return None
    watch = noise_maps.Watch(run.images[:WATCHED].cpu(), every=math.ceil(run.steps / 20))
    if run.steps_done and (folder / NOISE_MAPS).is_file():
        watch.go_on(noise_maps.load(folder / NOISE_MAPS), run.steps_done)
    else:
        watch.take(run)
    return watch


def _begun(checkpoint: Path, options: argparse.Namespace) -> Run:
    """A new run with these options. Raises BadUsage on settings that can't be, OSError on missing data."""
    from clutils import methods, training

    if checkpoint.exists():
        raise BadUsage(f"{checkpoint} is there already: --resume goes on with it; another --out starts anew")
    names = ("method", "data", "encoder", "epochs", "steps", "batch_size", "learning_rate", "seed", "device")
    names += ("extra_views", "augmentation", "precision", "optimiser", "weight_decay", "compile")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    method = "simclr" if options.method is None else options.method
    given["method_settings"] = method_settings(method, options.method_set)
    try:
        usual = type(methods.catalogue()[method].default_loss(**given["method_settings"])).__name__
        return training.Run(loss=chosen_loss(options.loss, options.set, usual), **given)
    except ValueError as error:
        raise BadUsage(str(error)) from error


def _resumed(checkpoint: Path, options: argparse.Namespace) -> Run:
    """The run in a checkpoint, at its step. What is given must be what it has, but for a new length."""
    from clutils import training

    run = training.resume(checkpoint, device=options.device, compile=options.compile)
    before = run.configuration
    wanted = before["loss"]["name"] if options.loss is None else options.loss
    settings = before["loss"]["settings"]
    if wanted != before["loss"]["name"] or settings != settings | loss_settings(wanted, options.set):
        asked = " ".join([wanted, *options.set])
        raise BadUsage(f"--resume: {checkpoint} was trained with {run.loss}, not with {asked}")
    names = ("method", "data", "encoder", "batch_size", "learning_rate", "seed", "extra_views", "precision")
    for name in (*names, "optimiser", "weight_decay"):
        asked = getattr(options, name)
        if asked is not None and asked != before[name]:
            option = name.replace("_", "-")
            raise BadUsage(f"--resume: {checkpoint} was trained with --{option} {before[name]}, not {asked}")
    kept = before["method_settings"]
    for name, asked in method_settings(before["method"], options.method_set).items():
        if asked != kept[name]:
            option = f"--method-set {name}="
            raise BadUsage(f"--resume: {checkpoint} was trained with {option}{kept[name]}, not {asked}")
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


def _same_augmentation(run: Run, name: str, checkpoint: Path) -> None:
    """Raise BadUsage unless the run has the augmentation called so."""
    from clutils import training

    try:
        asked = training.named_augmentation(name, run.images)
    except ValueError as error:
        raise BadUsage(str(error)) from error
    if asked != run.augmentation:
        raise BadUsage(
            f"--resume: {checkpoint} was trained with {run.augmentation}, not with --augmentation {name}"
        )


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
    parameters = inspect.signature(known[name].__init__).parameters
    usual = {key: parameters[key].default for key in known[name].setting_names()}
    return _values("--method-set", name, settings, usual)


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


# ---- check -------------------------------------------------------------------------------------------------


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
    gallery, judged = pictures = report.load(options.data or "scenes", options.pictures)
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
    from clutils import saved_runs

    within = Path(file) / saved_runs.CHECKPOINT
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


def _numbers(text: str) -> tuple[float, ...]:
    """'0.5' or '0.485,0.456,0.406', a number for all channels or one for each."""
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if len(found) not in (1, 3) or not all(map(math.isfinite, found)):
        raise argparse.ArgumentTypeError(f"{text} is not one number, or three as in 0.485,0.456,0.406")
    return found


def _deviations(text: str) -> tuple[float, ...]:
    found = _numbers(text)
    if min(found) <= 0:
        raise argparse.ArgumentTypeError(f"{text} must be above 0: pictures are divided by it")
    return found


def _above_zero(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return value


# ---- data, doctor ------------------------------------------------------------------------------------------


def data(options: argparse.Namespace) -> int:
    """Fetch a set, where it isn't here yet, and describe it; without a name, list what there is."""
    from clutils import data as datasets
    from clutils import doctor

    if options.name is None:
        for name, what in datasets.NAMES.items():
            print(f"{name:15} {what}")
        print("\nvectors, data.load_vectors(NAME):")
        for name, what in datasets.VECTOR_NAMES.items():
            print(f"{name:15} {what}")
        print()
        doctor.show(doctor.data())
        return 0
    of_vectors = options.name.startswith("array:") or options.name in datasets.VECTOR_NAMES
    load = datasets.load_vectors if of_vectors and options.name not in datasets.NAMES else datasets.load
    try:
        found = load(options.name, split=options.split)
    except ValueError as error:
        raise BadUsage(str(error)) from error
    print(f"{options.name}: {found.source}")
    if isinstance(found, datasets.VectorSet):
        count, width = found.vectors.shape
        print(f"vectors   {count:,}, {width:,} numbers each, float32")
    else:
        count, channels, height, width = found.images.shape
        colours = f"{channels} channel{'s' if channels > 1 else ''}"
        print(f"pictures  {count:,}, {width} x {height}, {colours}, uint8")
        print(f"masks     {'one a picture' if found.masks is not None else 'none'}")
    print(f"on disk   {_stored(options.name)}")
    labels = found.labels.tolist()
    for label, name in enumerate(found.class_names):
        print(f"label {label:3} {labels.count(label):8,}  {name}")
    if -1 in labels:
        print(f"label  -1 {labels.count(-1):8,}  (none)")
    return 0


def _stored(name: str) -> str:
    """Where a set lies and how much of the disk it takes."""
    from clutils import data as datasets

    if name.startswith("folder:"):
        folder = Path(name.removeprefix("folder:")).expanduser()
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        return f"{size / 1e6:,.1f} MB in {folder}"
    if name.startswith("array:"):
        file = Path(name.removeprefix("array:")).expanduser()
        return f"{file.stat().st_size / 1e6:,.1f} MB in {file}"
    for place in datasets.on_disk():
        if place.name == name:
            return f"{place.bytes / 1e6:,.1f} MB in {place.path}"
    return "nothing: it needs no file of its own"


def doctor(options: argparse.Namespace) -> int:
    """Say what is here, what is missing, and what to do about it."""
    from clutils import doctor as examination

    return examination.examine()


# ---- arguments ---------------------------------------------------------------------------------------------


def _complain(error: Exception | str, code: int) -> int:
    rank = int(os.environ.get("RANK", 0)) if "TORCHELASTIC_RUN_ID" in os.environ else 0
    if not rank or not isinstance(error, BadUsage | ValueError | FileNotFoundError):  # else process 0 says it
        process = f"process {rank}: " if rank else ""
        print(f"clutils: {process}{' '.join(str(error).split())}", file=sys.stderr)
    return code


def _parser() -> Parser:
    parser = Parser(prog="python -m clutils", description="Contrastive losses, derived, checked and trained.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, command: Callable[..., int], what: str, **settings: Any) -> Parser:
        added = commands.add_parser(name, help=what, description=what, **settings)
        added.set_defaults(command=command)
        return added

    add("lab", lab, "open the course in JupyterLab; its own options are passed on: --no-browser --port 9999")

    to_train = add("train", train, "train an encoder: writes checkpoint, history and config", epilog=_names)
    to_train.add_argument("--method", metavar="NAME", help="default: simclr")
    to_train.add_argument(
        "--method-set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a setting of the method, as in --method moco --method-set queue_size=1024; once for each",
    )
    to_train.add_argument(
        "--loss",
        metavar="NAME",
        help="default: the method's own, for most NTXent at temperature 0.2; a named loss starts from "
        "its own defaults",
    )
    to_train.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a setting of the loss, as in --set temperature=0.1; once for each",
    )
    to_train.add_argument("--data", metavar="NAME", help="default: scenes; vectors:NAME for plain vectors")
    to_train.add_argument(
        "--augmentation",
        metavar="NAME",
        help="default: what suits the pictures; for vectors there is only none",
    )
    to_train.add_argument("--encoder", metavar="NAME", help="default: conv16; for vectors mlp")
    length = to_train.add_mutually_exclusive_group()
    length.add_argument("--epochs", metavar="N", type=int, help="times through the data")
    length.add_argument("--steps", metavar="N", type=int, help="batches; default: 300")
    to_train.add_argument(
        "--batch-size", metavar="N", type=int, help="pictures a step, of all processes together; default: 256"
    )
    to_train.add_argument("--learning-rate", metavar="X", type=float, help="default: what suits the encoder")
    to_train.add_argument("--optimiser", metavar="NAME", help="adamw or sgd (momentum 0.9); default: adamw")
    to_train.add_argument(
        "--weight-decay", metavar="X", type=float, help="default: 1e-4 for adamw, 5e-4 for sgd"
    )
    to_train.add_argument("--seed", metavar="N", type=int, help="default: 0")
    to_train.add_argument(
        "--precision",
        metavar="NAME",
        help="of the encoder, float32 or bfloat16; default: bfloat16 where the machine computes in it",
    )
    to_train.add_argument(
        "--compile",
        action=argparse.BooleanOptionalAction,
        help="torch.compile the encoder's step; may change on --resume; default: no",
    )
    to_train.add_argument(
        "--extra-views", metavar="M", type=int, help="positives for a loss that takes several; default: 0"
    )
    to_train.add_argument(
        "--device", metavar="NAME", help="cpu, cuda or mps; default: CUDA where there is one"
    )
    to_train.add_argument("--out", metavar="DIR", required=True, help="folder for what is written")
    to_train.add_argument("--resume", action="store_true", help="go on with the run in DIR")
    to_train.add_argument(
        "--checkpoint-every", metavar="STEPS", type=_positive, help="besides at the end; default: only then"
    )

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
        type=_positive,
        default=2000,
        help="how many in all, at least 80; a quarter is judged, the others lend their labels; default: 2000",
    )
    to_check.add_argument("--arch", metavar="NAME", help="which network the file must hold")
    to_check.add_argument(
        "--temperature",
        metavar="X",
        type=_above_zero,
        help="τ of its training, where the file lacks it; or another than the file's, to see its W",
    )
    to_check.add_argument("--mean", metavar="X[,X,X]", type=_numbers, help="taken off pictures in [0, 1]")
    to_check.add_argument("--std", metavar="X[,X,X]", type=_deviations, help="that pictures are divided by")
    to_check.add_argument("--size", metavar="N", type=_side, help="pictures are resized to N x N, 8 to 1024")
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

    to_load = add("data", data, "fetch a set and describe it; without a name, list the sets")
    to_load.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        help="as in data.load or data.load_vectors; folder:PATH for your own",
    )
    to_load.add_argument("--split", metavar="NAME", default="train", help="default: train")

    add("doctor", doctor, "examine this installation: versions, device, data, widgets, and what to do")
    return parser


def _names() -> str:
    from clutils import data, encoders, losses, methods, views

    settings = [f"{name} ({', '.join(kind.setting_names())})" for name, kind in methods.catalogue().items()]
    return (
        f"methods and their settings: {', '.join(settings)}. losses: {', '.join(losses.catalogue())}. labels "
        f"are used by supcon. data: {', '.join(data.NAMES)}, vectors:digits. "
        f"augmentations: {', '.join(views.PRESETS)}. encoders: {', '.join(encoders.NAMES)}. "
        "In several processes, each with its share of every batch: "
        "torchrun --nproc-per-node N -m clutils train ..."
    )


def _archs() -> str:
    from clutils import checkpoints

    return (
        f"encoders: {', '.join(checkpoints.NAMES)}; what weights do not tell goes behind a dash, as in "
        f"resnet18-padding2: {', '.join(checkpoints.backbones.OPTIONS)}."
    )


def _side(text: str) -> int:
    if not text.isdecimal() or not 8 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 8 to 1024")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 on")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())

"""The command line: `python -m clutils COMMAND`: lab, train, check, map, ruler, data, doctor; and book,
slides and site, the course as files.

Exit code 0 on success, 2 on bad usage, 1 on failure, 3 where `check` found what --fail-on asks about, 130
when stopped from the keyboard; whatever went wrong is said in one line on stderr.
"""

import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

# what needs torch is imported by the command that needs it: `--help` and `doctor` answer without
from clutils.commands import doctor
from clutils.commands.arguments import BadUsage, Parser, adding, say, unknown

# modules in the order of --help, by name: the library imports no lesson
COMMANDS = (
    "clutils.course.commands.lab",
    "clutils.commands.train",
    "clutils.commands.check",
    "clutils.commands.map",
    "clutils.commands.ruler",
    "clutils.commands.data",
    "clutils.commands.doctor",
    "clutils.course.commands.book",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # as of pythonw, and behind >&-
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        if hasattr(getattr(sys, name), "reconfigure"):  # a console may lack τ, ✓ or a file's letters
            getattr(sys, name).reconfigure(errors="replace")
    try:
        typed = list(sys.argv[1:] if arguments is None else arguments)
        for one in typed:
            if one.startswith("--") and one.endswith("=--"):  # of which argparse makes a list
                raise BadUsage(f"{one}: -- is no value")
        options, rest = _parser().parse_known_args(typed)  # which asks the library for its names
        options.typed, options.rest = typed, rest
        if rest and not options.passes_on:
            options.parser.error(f"unknown arguments {' '.join(rest)}{unknown(rest[0], options.parser)}")
        code = options.command(options)
        sys.stdout.flush()  # a full disk is said here, not by Python's last words
        return code
    except KeyboardInterrupt:
        print("clutils: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # what we print to has read enough, as `| head` does
        _print_nowhere()
        return 1
    except BadUsage as error:
        return _complain(error, 2)
    except ImportError as error:
        return _complain(f"{error}: {doctor.INSTALL}", 1)
    except (ValueError, OSError, RuntimeError) as error:
        return _complain(error, 1)
    except MemoryError as error:
        return _complain(f"out of memory: {error}", 1)
    except Exception as error:  # no command's words: where it arose is what a report of it needs
        at = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(at.filename).name}, line {at.lineno}"
        return _complain(f"a fault of this package, {type(error).__name__}: {error} ({where})", 1)


def _parser() -> Parser:
    parser = Parser(prog="python -m clutils", description="Contrastive losses, derived, checked and trained.")
    add = adding(parser)
    for name in COMMANDS:
        importlib.import_module(name).add_to(add)
    return parser


def _print_nowhere() -> None:
    """Drop what is left to print, so that Python does not complain when it flushes at its end."""
    with contextlib.suppress(OSError, ValueError):  # a stdout that is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(error: Exception | str, code: int) -> int:
    rank = os.environ.get("RANK", "0") if "TORCHELASTIC_RUN_ID" in os.environ else "0"
    of_all = isinstance(error, BadUsage | ValueError | FileNotFoundError)  # process 0 says it
    other = rank.isdecimal() and rank != "0"
    try:
        sys.stdout.flush()
    except (OSError, ValueError):  # the disk is full, which is what went wrong, or it was closed
        _print_nowhere()
    if not (other and of_all):
        process = f"process {rank}: " if other else ""
        say(f"clutils: {process}{' '.join(str(error).split())}", sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())

"""Arguments that the commands share: the parser, types of arguments, and errors in one line."""

from __future__ import annotations

import argparse
import ast
import math
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TextIO

from clutils.files import printable

Add = Callable[..., "Parser"]  # (name, command, what, **settings) -> the parser of a command
WORDS = {"true": True, "false": False, "inf": math.inf, "nan": math.nan}  # values that are no Python literals
MAPPED = ("limit", "arch", "weights", "mean", "std", "size", "seed")  # options of a check that `map` has
SETTINGS: dict[str, Any] = {"metavar": "NAME=VALUE", "action": "append", "default": []}  # of an option


class BadUsage(Exception):
    """Bad usage of the command line: exit code 2."""


@contextmanager
def usage(option: str = "") -> Iterator[None]:
    """Context manager: a ValueError becomes bad usage, of this option where one is named."""
    try:
        yield
    except ValueError as error:
        raise BadUsage(f"{option}: {error}" if option else str(error)) from error


class Parser(argparse.ArgumentParser):
    """argparse, with errors in one line, and what costs an import made when it is needed.

    - fill: adds this parser's arguments, called before it parses or helps
    - epilog: may be a function, called for `--help` alone
    """

    def __init__(self, fill: Callable[[Parser], None] | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self._fill = fill

    def parse_known_args(self, *arguments: Any, **named: Any) -> Any:
        self._filled()
        return super().parse_known_args(*arguments, **named)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"clutils: {printable(message)} (see {self.prog} --help)\n")

    def _filled(self) -> None:
        fill, self._fill = self._fill, None
        if fill is not None:
            fill(self)

    def format_help(self) -> str:
        self._filled()
        if callable(self.epilog):
            self.epilog = self.epilog()
        return super().format_help()


def say(text: str = "", to: TextIO | None = None) -> None:
    """Print at once, here or to stderr; what would control the terminal, in names of files, is escaped."""
    print("\n".join(map(printable, text.split("\n"))), file=to, flush=True)


def adding(parser: Parser) -> Add:
    """A function that gives the parser a command: add(name, command, what it does)."""
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, command: Callable[..., int], what: str, **settings: Any) -> Parser:
        added = commands.add_parser(name, help=what, description=what, **settings)
        added.set_defaults(command=command, parser=added, passes_on=False)
        return added

    return add


def unknown(argument: str, parser: Parser) -> str:
    """The end of an error on an option that a command lacks: '; did you mean ...?', or nothing."""
    from clutils import losses
    from clutils.settings import did_you_mean

    meant = {option[2:].replace("-", "_"): option for option in parser._option_string_actions}
    if "set" in meant:
        of_losses = {setting for entry in losses.catalogue().values() for setting in entry.cls.ranges}
        meant = {setting: f"--set {setting}=..." for setting in of_losses} | meant
    if "method_set" in meant:
        meant["queue_size"] = "--method moco --method-set queue_size=..."
    name = argument.removeprefix("--").partition("=")[0].replace("-", "_").lower()
    hint = did_you_mean(name, meant) if argument.startswith("--") else ""
    return f"; did you mean {meant[hint.split(chr(39))[1]]}?" if hint else ""


def value(text: str) -> Any:
    """Value behind NAME=: a Python literal, true, false, inf or nan; anything else is a word."""
    try:
        return WORDS[text.lower()] if text.lower() in WORDS else ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def positive(text: str) -> int:
    """Type of argument: a whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 on")
    return int(text)


def flags_of(name: str) -> tuple[str, ...]:
    """How an option of a check is typed; the first is the one that messages name."""
    return ("--images", "--pictures") if name == "limit" else (f"--{name}",)


def map_command(
    file: str | Path, data: str, out: str | Path, options: argparse.Namespace | None = None
) -> str:
    """The command that draws these images on a map, as one types it, with the same options as a check's."""
    words = ["python", "-m", "clutils", "map", str(file), "--data", data]
    for name in MAPPED:
        value = getattr(options, name, None)
        if value is not None:
            told = ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
            words.append(f"{flags_of(name)[0]}={told}")
    return printable(shlex.join([*words, "--out", str(out)]))

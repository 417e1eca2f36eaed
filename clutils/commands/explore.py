"""`explore`: a page that explores a loss, or a run, in any browser: no network, no kernel."""

import argparse
from pathlib import Path
from typing import Any

from clutils.commands.arguments import SETTINGS, Add, BadUsage, Parser, say, usage, value

ALL, FOLDER = "all", "notebooks/explorers"


def add_to(add: Add) -> None:
    add(
        "explore",
        explore,
        "write an explorer: a page with sliders that needs no network and no kernel",
        fill=_flags,
    )


def _flags(to_explore: Parser) -> None:
    from clutils import explorers

    names = ", ".join(f"{name} ({of.title})" for name, of in explorers.EXPLORERS.items())
    to_explore.add_argument(
        "page", metavar="PAGE", choices=(*explorers.NAMES, ALL), help=f"page to write: {names}, or {ALL}"
    )
    to_explore.add_argument(
        "--set",
        **SETTINGS,
        help="initial value of a control, such as --set loss=MACL; --set hide=seed,rate hides controls; "
        "may be repeated",
    )
    to_explore.add_argument(
        "--out",
        metavar="FILE",
        help=f"file to write (default: PAGE.html); for {ALL} a folder (default: {FOLDER}), whose index.html "
        "has all of them on one page",
    )
    to_explore.add_argument(
        "--base-url",
        metavar="URL",
        default="",
        help="address that will host the pages, for links and a QR code; default: none",
    )


def explore(options: argparse.Namespace) -> int:
    """Write the page, or all of them."""
    from clutils import explorers

    everything = options.page == ALL
    if everything and options.set:
        raise BadUsage(f"--set {options.set[0]}: of one page, not of {ALL}")
    for name in explorers.NAMES if everything else (options.page,):
        folder_or_file = Path(options.out or (FOLDER if everything else f"{name}.html"))
        path = folder_or_file / f"{name}.html" if everything else folder_or_file
        with usage("--set"):
            explorers.write(path, name, _settings(options.set), base_url=options.base_url)
        say(f"{path}: open it in a browser")
    if everything:
        path = Path(options.out or FOLDER) / "index.html"
        explorers.write_index(path)
        say(f"{path}: all of them on one page")
    return 0


def _settings(given: list[str]) -> dict[str, Any]:
    """['temperature=0.1', 'loss=MACL'] -> {'temperature': 0.1, 'loss': 'MACL'}."""
    found: dict[str, Any] = {}
    for setting in given:
        name, equals, text = setting.partition("=")
        if not equals:
            raise BadUsage(f"--set {setting}: needs a value, as in --set temperature=0.1")
        found[name] = value(text)
    return found

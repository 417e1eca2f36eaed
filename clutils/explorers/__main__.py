"""Write pages with sliders that need no network and no kernel: `python -m clutils.explorers PAGE`."""

import argparse
import ast
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clutils import explorers

ALL, FOLDER = "all", "notebooks/explorers"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write one page, or all of them; exit code 0, and 2 with one line on bad usage."""
    names = ", ".join(f"{name} ({of.title})" for name, of in explorers.EXPLORERS.items())
    parser = argparse.ArgumentParser(
        "python -m clutils.explorers", description=(__doc__ or "").partition(":")[0]
    )
    add = parser.add_argument
    add("page", metavar="PAGE", choices=(*explorers.NAMES, ALL), help=f"page to write: {names}, or {ALL}")
    add(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="initial value of a control, such as --set loss=MACL; --set hide=seed,rate hides controls; "
        "may be repeated",
    )
    add(
        "--out",
        metavar="FILE",
        help=f"file to write (default: PAGE.html); for {ALL} a folder (default: {FOLDER})",
    )
    add("--base-url", metavar="URL", default="", help="address of the pages, for links and a QR code")
    options = parser.parse_args(arguments)
    folder = Path(options.out or FOLDER)
    named = {f"{folder / name}.html": name for name in explorers.NAMES}
    if options.page != ALL:
        named = {options.out or f"{options.page}.html": options.page}
    try:
        given = dict(map(_setting, options.set))
        if given and options.page == ALL:
            raise ValueError(f"--set {options.set[0]}: of one page, not of {ALL}")
        for path, name in named.items():
            explorers.write(path, name, given, base_url=options.base_url)
            print(f"{path}: open it in a browser")
    except (ValueError, OSError) as error:
        print(f"clutils: {error}", file=sys.stderr)
        return 1 if isinstance(error, OSError) else 2
    return 0


def _setting(given: str) -> tuple[str, Any]:
    """'temperature=0.1' -> ('temperature', 0.1); text that is not a Python literal stays text."""
    name, equals, text = given.partition("=")
    if not equals:
        raise ValueError(f"--set {given}: needs a value, as in --set temperature=0.1")
    try:
        return name, ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return name, {"true": True, "false": False}.get(text.lower(), text)


if __name__ == "__main__":
    sys.exit(main())

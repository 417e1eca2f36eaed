"""`book`, `slides`, `site`: the course as files that any browser opens."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from clutils.commands.arguments import Add


def add_to(add: Add) -> None:
    build = Path("build")
    for name, command, what in (
        ("book", book, "run the notebooks and build the book, which opens from the disk"),
        ("slides", slides, "build the slides of the stage paths"),
        ("site", site, "book and slides as one folder for a static host"),
    ):
        parser = add(name, command, what)
        parser.add_argument(
            "--out", type=Path, metavar="DIR", default=build / name, help=f"default: build/{name}"
        )
        if name == "site":
            parser.add_argument("--base-url", metavar="URL", default="", help="where it will be hosted")
            told = "GitHub's, whose branch colab has the site's notebooks: 'Open in Colab' beside each title"
            parser.add_argument("--repository", metavar="OWNER/NAME", default="", help=told)


def book(options: argparse.Namespace) -> int:
    """Run what has changed since the last time, and build the book."""
    from clutils.course.book import running, site

    for line in site.book(options.out, running.executed()):
        print(line, file=sys.stderr)
    print(f"open {options.out / 'index.html'}")
    return 0


def slides(options: argparse.Namespace) -> int:
    """Run what has changed since the last time, and build the decks."""
    from clutils.course.book import running, slides

    slides.write(options.out, running.executed())
    print(f"open {options.out / 'index.html'}")
    return 0


def site(options: argparse.Namespace) -> int:
    """Book and slides in one folder, with the address of its host where one is given."""
    from clutils.course.book import running, site

    for line in site.whole(options.out, running.executed(), options.base_url, repository=options.repository):
        print(line, file=sys.stderr)
    print(f"open {options.out / 'index.html'}, or serve {options.out}")
    return 0

"""`book`, `slides`, `site`: the course as files that any browser opens."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


def add_to(add: Callable[..., argparse.ArgumentParser]) -> None:
    for name, what in (
        ("book", "run the notebooks and build the book, which opens with a double click"),
        ("slides", "build the slides of each notebook, for 50 and for 20 minutes"),
        ("site", "build book and slides in one folder, for a static host"),
    ):
        parser, out = add(name, build, what), Path("build", name)
        parser.set_defaults(what=name)
        parser.add_argument(
            "--out", type=Path, metavar="DIR", default=out, help=f"folder to write to; default: {out}"
        )
        if name != "book":
            host = "address that will host the site, for links and QR codes; default: none"
            parser.add_argument("--base-url", metavar="URL", default="", help=host)
        if name == "site":
            about = (
                "GitHub repository whose branch colab has the notebooks, for 'Open in Colab'; default: none"
            )
            parser.add_argument("--repository", metavar="OWNER/NAME", default="", help=about)


def build(options: argparse.Namespace) -> int:
    """Run what has changed since the last time, and build the book, the decks, or both for a host."""
    from clutils.course.book import running, site, slides

    if options.what != "slides":
        site.demand_packages()  # before the minutes that the notebooks take
    notebooks, lines = running.executed(), []
    if options.what == "slides":
        slides.write(options.out, notebooks, base_url=options.base_url)
    elif options.what == "book":
        lines = site.book(options.out, notebooks)
    else:
        lines = site.whole(options.out, notebooks, options.base_url, repository=options.repository)
    for line in lines:
        print(line, file=sys.stderr)
    served = f", or serve {options.out}" if options.what == "site" else ""
    print(f"open {options.out / 'index.html'}{served}")
    return 0

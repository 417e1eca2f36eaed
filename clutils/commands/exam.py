"""`exam`: the notebooks' exercises without solutions, in nbgrader's format; --mark marks hand-ins."""

import argparse
from collections import Counter

from clutils.commands.arguments import Add, BadUsage, Parser, usage


def add_to(add: Add) -> None:
    add("exam", exam, "exams from the notebooks' exercises, and their marks", fill=_flags)


def _flags(to_write: Parser) -> None:
    to_write.add_argument(
        "notebooks", nargs="*", metavar="NN", help="which, by their beginnings, as in 02 04; default: all"
    )
    to_write.add_argument("--out", metavar="DIR", default="exams", help="where to; default: exams")
    to_write.add_argument(
        "--mark", metavar="FILE", nargs="+", help="hand-ins to mark, in place of writing exams"
    )


def exam(options: argparse.Namespace) -> int:
    """Write exams, or mark hand-ins; 1 where one of these can't be marked."""
    from clutils.course.book import exam as exams

    if options.mark:
        if options.notebooks:
            raise BadUsage(f"exam: --mark takes files, and {options.notebooks[0]!r} stands before it")
        return _marks(options.mark)
    with usage():
        written = exams.build(options.out, options.notebooks)
    for name, (number, left) in written.items():
        out = "".join(f"; without {exercise}: {why}" for exercise, why in left.items())
        print(f"{name}: {number} exercise{'s' if number > 1 else ''}{out}")
    print(f"{options.out}/source has the solutions, {options.out}/release goes to the students")
    return 0


def _marks(paths: list[str]) -> int:
    from clutils.course.book import exam as exams

    code, numbers = 0, Counter[str]()
    for path in paths:
        try:
            found = exams.mark(path)
        except (ValueError, OSError) as error:
            print(error)
            code = 1
            continue
        numbers[found.number] += 1
        print(f"{path}: {found}")
    for number, times in numbers.items():
        if times > 1:
            print(f"number {number} was given in {times} hand-ins")
    return code

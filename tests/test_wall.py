"""The arrows between rooms: a library below, the course above it, and no way round in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import clutils

PACKAGE = Path(clutils.__file__).parent

# Each room may import those before it: from the ground to the course and the commands.
FLOORS = (
    *("files", "processes", "data", "views", "encoders", "similarities", "losses", "anatomy", "noise"),
    *("methods", "measures", "maps", "training", "figures", "checkpoints", "report", "course", "commands"),
)
WITHOUT_MATPLOTLIB = FLOORS[: FLOORS.index("figures")]


def modules() -> dict[str, Path]:
    """Dotted name -> file, of the whole package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ("clutils", *path.relative_to(PACKAGE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imported(source: str, known: set[str]) -> set[str]:
    """What a file imports, anywhere and if for annotations alone: modules of `known`, else as written."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                inside = f"{node.module}.{name.name}"
                found.add(inside if inside in known else node.module or "")
    return found


ARROWS = {name: imported(path.read_text(encoding="utf-8"), set(MODULES)) for name, path in MODULES.items()}


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else "clutils"


def circles(arrows: dict[str, set[str]]) -> Iterator[list[str]]:
    """Every way that comes back to where it began: one for each module that closes one."""
    done: set[str] = set()

    def walk(name: str, way: list[str]) -> Iterator[list[str]]:
        if name in way:
            yield [*way[way.index(name) :], name]
        elif name not in done:
            for following in sorted(arrows.get(name, set()) & arrows.keys()):
                yield from walk(following, [*way, name])
            done.add(name)

    for start in sorted(arrows):
        yield from walk(start, [])


def test_every_room_has_its_floor_and_there_are_few():
    rooms = {room(name) for name in MODULES} - {"clutils", "__main__"}
    assert rooms == set(FLOORS) and len(rooms) <= 18


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_arrow_turns(name):
    own = room(name)
    if own in ("clutils", "__main__"):
        return
    for target in ARROWS[name]:
        if target.startswith("clutils.") and room(target) != own:
            assert FLOORS.index(room(target)) < FLOORS.index(own), f"{name} imports {target}"


def test_the_library_knows_no_lesson():
    for name, targets in ARROWS.items():
        if room(name) not in ("course", "commands"):
            assert not {t for t in targets if t.startswith("clutils.course")}, name


def test_only_the_course_knows_widgets():
    assert {room(name) for name, targets in ARROWS.items() if "ipywidgets" in targets} == {"course"}


def test_nothing_below_the_figures_draws():
    for name, targets in ARROWS.items():
        if room(name) in WITHOUT_MATPLOTLIB:
            assert not {t for t in targets if t.split(".")[0] in ("matplotlib", "seaborn")}, name


def test_the_commands_are_imported_by_nobody():
    for name, targets in ARROWS.items():
        if room(name) not in ("commands", "__main__"):
            assert not {t for t in targets if t.startswith("clutils.commands")}, name


def test_no_way_comes_back():
    assert list(circles(ARROWS)) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from clutils import course", {"clutils.course"}),
        ("from clutils.course import check", {"clutils.course.check"}),
        ("def later():\n    import ipywidgets as W", {"ipywidgets"}),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from clutils.training import Run",
         {"typing", "clutils.training"}),
    ],
)  # fmt: skip
def test_an_import_is_seen_wherever_it_stands(source, found):
    assert imported(source, set(MODULES)) == found


def test_a_circle_is_found_where_there_is_one():
    assert list(circles({"a": {"b"}, "b": {"c"}, "c": {"b"}})) == [["b", "c", "b"]]
    assert list(circles({"a": {"b", "c"}, "b": {"c"}, "c": set()})) == []

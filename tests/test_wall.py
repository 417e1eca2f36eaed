"""The arrows between rooms: a library below, the course above it, and no way round in a circle."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import clutils
from clutils.__main__ import COMMANDS

PACKAGE = Path(clutils.__file__).parent

# Each room may import those before it: from the ground to the course and the commands.
FLOORS = (
    *("files", "settings", "processes", "data", "views", "encoders", "similarities", "losses", "anatomy"),
    *("noise", "methods", "measures", "maps", "checkpoints", "training", "figures", "report", "explorers"),
    *("course", "commands"),
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


def imported(source: str, module: str, known: set[str], package: bool = False) -> set[str]:
    """What a file imports, anywhere, for annotations or by a string too: modules of `known`, or as written.

    - module: the file's own dotted name, that relative imports start from; package: whether it is an __init__
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".")[: len(module.split(".")) - node.level + package]
                base = ".".join([*above, *filter(None, [node.module])])
            for name in node.names:
                inside = f"{base}.{name.name}"
                found.add(inside if inside in known else base)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            if str(getattr(node.func, "attr", getattr(node.func, "id", ""))) in (
                "import_module",
                "__import__",
            ):
                found.add(str(node.args[0].value))
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "clutils"
        ):
            found |= {f"clutils.{node.attr}"} & known
    return found


ARROWS = {
    name: imported(path.read_text(encoding="utf-8"), name, set(MODULES), path.stem == "__init__")
    for name, path in MODULES.items()
}
WIDGETS, DRAWING = {"ipywidgets"}, {"matplotlib", "seaborn", "mpl_toolkits", "pylab"}


def foreign(name: str) -> set[str]:
    """The other packages that a module imports."""
    return {target.split(".")[0] for target in ARROWS[name]} - {"clutils"}


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
    assert rooms == set(FLOORS) and len(rooms) <= 20


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_arrow_turns(name):
    own = room(name)
    if own in ("clutils", "__main__"):
        return
    for target in ARROWS[name]:
        if target.startswith("clutils.") and room(target) != own:
            assert FLOORS.index(room(target)) < FLOORS.index(own), f"{name} imports {target}"


def test_only_the_course_knows_widgets():
    assert {room(name) for name in ARROWS if foreign(name) & WIDGETS} == {"course"}


def test_no_command_imports_a_lesson():
    """The course's own commands stand in the course, and `__main__` finds them by their names."""
    for name in ARROWS:
        if room(name) in ("commands", "__main__"):
            assert not {target for target in ARROWS[name] if room(target) == "course"}, name
    lessons = [name for name in COMMANDS if room(name) == "course"]
    assert all(name.startswith("clutils.course.commands.") for name in lessons)


def test_nothing_below_the_figures_draws():
    for name in ARROWS:
        if room(name) in WITHOUT_MATPLOTLIB:
            assert not foreign(name) & DRAWING, name


def test_the_package_itself_loads_nothing():
    assert not {target for target in ARROWS["clutils"] if target.startswith("clutils")}


def test_no_way_comes_back():
    assert list(circles(ARROWS)) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from clutils import course", {"clutils.course"}),
        ("from clutils.course import check", {"clutils.course.check"}),
        ("from ..course import check", {"clutils.course.check"}),
        ("from .. import course", {"clutils.course"}),
        ("from . import base", {"clutils.losses.base"}),
        ("def later():\n    import ipywidgets.widgets as W", {"ipywidgets.widgets"}),
        (
            "import importlib\nimportlib.import_module('clutils.course.live')",
            {"importlib", "clutils.course.live"},
        ),
        ("import clutils\nclutils.course.live", {"clutils", "clutils.course"}),
        ("if TYPE_CHECKING:\n    from clutils.training import Run", {"clutils.training"}),
    ],
)
def test_an_import_is_seen_wherever_and_however_it_stands(source, found):
    assert imported(source, "clutils.losses.pair", set(MODULES)) == found


def test_a_relative_import_starts_from_the_package_in_its_own_init():
    assert imported("from . import base", "clutils.losses", set(MODULES), package=True) == {
        "clutils.losses.base"
    }


def test_a_circle_is_found_where_there_is_one():
    assert list(circles({"a": {"b"}, "b": {"c"}, "c": {"b"}})) == [["b", "c", "b"]]
    assert list(circles({"a": {"b", "c"}, "b": {"c"}, "c": set()})) == []


def test_a_docstrings_first_line_begins_with_a_noun_or_a_verb_and_no_riddle():
    """What, Whether, Of, Within, As: 227 first lines began so, and none was an entry of an index."""
    riddles = re.compile(r"(What|Whether|Of|Within|As)\b")
    found = []
    for path in [*MODULES.values(), *sorted((PACKAGE.parent / "benchmarks").glob("*.py"))]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                said = ast.get_docstring(node) or ""
                if riddles.match(said):
                    found.append(f"{path.name}: {said.splitlines()[0]}")
    assert found == []


# ---- the house on one page: docs/package.md ----------------------------------------------------------------

HOUSE = {  # row of the table -> its rooms, as paths below clutils
    "what notebooks import": (
        *("losses", "similarities.py", "anatomy.py", "data", "views", "encoders", "noise.py", "methods"),
        *("training", "measures.py", "maps.py", "figures", "settings.py", "files.py", "processes.py"),
        *("__init__.py", "__main__.py"),
    ),
    "the checkup of checkpoints": ("checkpoints", "report"),
    "the pages without a kernel": ("explorers",),
    "the commands": ("commands",),
    "the course": ("course",),
}


def lines_of(*rooms: str) -> int:
    """Lines of Python and of our JavaScript in these files and folders of the package."""
    files = [
        file for room in rooms for file in ([PACKAGE / room] if "." in room else (PACKAGE / room).rglob("*"))
    ]
    own = [file for file in files if file.suffix in (".py", ".js") and "static" not in file.parts]
    return sum(len(file.read_text("utf-8").splitlines()) for file in own)


def test_the_house_on_one_page_has_every_room_and_its_size():
    rooms = [room for inside in HOUSE.values() for room in inside]
    there = {p.name for p in PACKAGE.iterdir() if p.suffix == ".py" or (p.is_dir() and p.name[0] != "_")}
    assert set(rooms) == there and len(rooms) == len(there)
    page = (PACKAGE.parent / "docs" / "package.md").read_text("utf-8")
    for name, inside in HOUSE.items():
        said = re.search(rf"\| {name} \|.*\| ([\d,]+) \|", page)
        assert said, f"no row '{name}'"
        lines, number = lines_of(*inside), int(said[1].replace(",", ""))
        assert abs(lines - number) <= max(50, 0.02 * lines), (
            f"{name}: {number} in docs/package.md, {lines} here"
        )

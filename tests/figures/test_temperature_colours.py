"""A temperature has the same colour in every figure, whoever draws it."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLOTS = {"plot", "errorbar", "scatter", "step", "semilogx", "semilogy", "loglog", "hlines", "bar", "barh"}


def cells() -> Iterator[tuple[str, str]]:
    """Name and source of each code cell and each module that may draw."""
    for path in sorted(ROOT.glob("notebooks/*.ipynb")):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                yield f"{path.stem[:2]} {cell['id']}", "".join(cell["source"])
    for path in sorted(ROOT.glob("clutils/**/*.py")):
        yield str(path.relative_to(ROOT)), path.read_text("utf-8")


def strays(source: str) -> list[str]:
    """Plot calls that name a line by a temperature and do not give it that temperature's colour."""
    tree, found = ast.parse(source), []
    given = {
        ast.unparse(n.targets[0]): ast.unparse(n.value) for n in ast.walk(tree) if isinstance(n, ast.Assign)
    }
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or getattr(call.func, "attr", "") not in PLOTS:
            continue
        said = {(k.arg or "look"): ast.unparse(k.value) for k in call.keywords}
        label, look = said.get("label", ""), said.get("look", "")
        colour = said.get("color", "") + given.get(look, look)
        if label.startswith("f") and "τ = " in label and "temperature(" not in colour:
            found.append(ast.unparse(call))
    return found


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('ax.plot(x, y, **look, label=f"τ = {t:g}")', 1),
        ('ax.plot(x, y, color="C0", label=f"NT-Xent, τ = {t:g}")', 1),
        ('ax.plot(x, y, color=style.temperature(t), label=f"τ = {t:g}")', 0),
        ('look = {"color": style.temperature(t)}\nax.plot(x, y, **look, label=f"τ = {t:g}")', 0),
        ('ax.plot(x, y, color="C0", label=f"β = {b:g}")', 0),
    ],
)
def test_the_rule_itself(source, count):
    assert len(strays(source)) == count


def test_a_line_of_a_temperature_has_the_temperatures_colour():
    assert {name: found for name, source in cells() if (found := strays(source))} == {}

"""`explore` writes pages, and says in one line what can't be."""

import re

import pytest

from clutils import __main__ as command_line
from clutils import explorers


def run(*arguments: object) -> int:
    try:
        return command_line.main(["explore", *map(str, arguments)])
    except SystemExit as exit:
        return exit.code


def test_the_issues_command_writes_a_page_that_opens_at_that_temperature(tmp_path, capsys):
    assert (
        run("circle", "--set", "temperature=0.1", "--set", "hide=seed", "--out", tmp_path / "circle.html")
        == 0
    )
    assert capsys.readouterr().out == f"{tmp_path / 'circle.html'}: open it in a browser\n"
    assert '"temperature":0.1' in (tmp_path / "circle.html").read_text("utf-8")


def test_all_of_them_go_into_a_folder(tmp_path):
    assert run("all", "--out", tmp_path / "pages") == 0
    assert {path.name for path in (tmp_path / "pages").iterdir()} == {
        f"{name}.html" for name in explorers.NAMES
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["spiral"], "invalid choice: 'spiral'"),
        (["W", "--set", "loss=Magic"], "loss is 'Magic', but must be one of PairMargin"),
        (["W", "--set", "temperature"], "needs a value, as in --set temperature=0.1"),
        (["W", "--set", "colour=red"], "there is no setting colour"),
        (["circle", "--set", "step=-5"], "step is -5, but must be of the form [0-9]*"),
        (["W", "--set", "temperature=cold"], "temperature is 'cold', but must be a number"),
        (["all", "--set", "temperature=1"], "of one page, not of all"),
    ],
)
def test_bad_usage_is_one_line_and_writes_nothing(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    assert re.fullmatch(r"clutils: .+\n", text := capsys.readouterr().err) and said in text
    assert not list(tmp_path.iterdir())

"""`python -m clutils.explorers` writes pages."""

import pytest

from clutils import explorers
from clutils.explorers.__main__ import main


def test_a_page_opens_at_the_temperature_that_was_asked_for(tmp_path, capsys):
    page = tmp_path / "circle.html"
    assert main(["circle", "--set", "temperature=0.1", "--set", "hide=seed", "--out", str(page)]) == 0
    assert capsys.readouterr().out == f"{page}: open it in a browser\n"
    assert '"temperature":0.1' in page.read_text("utf-8")


def test_all_of_them_go_into_a_folder(tmp_path):
    assert main(["all", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.html" for name in explorers.NAMES}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["W", "--set", "temperature"], "needs a value, as in --set temperature=0.1"),
        (["circle", "--set", "step=-5"], "step is -5, but must be of the form [0-9]*"),
        (["all", "--set", "temperature=1"], "of one page, not of all"),
    ],
)
def test_bad_usage_is_code_2_and_one_line(arguments, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2 and said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())

"""`explore` writes pages."""

from clutils import explorers
from tests.commands.asked import run


def test_the_issues_command_writes_a_page_that_opens_at_that_temperature(tmp_path, capsys):
    page = tmp_path / "circle.html"
    assert run("explore", "circle", "--set", "temperature=0.1", "--set", "hide=seed", "--out", page) == 0
    assert capsys.readouterr().out == f"{page}: open it in a browser\n"
    assert '"temperature":0.1' in page.read_text("utf-8")


def test_all_of_them_go_into_a_folder(tmp_path):
    assert run("explore", "all", "--out", tmp_path) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{name}.html" for name in (*explorers.NAMES, "index")
    }

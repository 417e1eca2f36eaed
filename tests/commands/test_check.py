"""`check` from the command line: pages and JSON, exit codes for scripts, one clear line for each mistake."""

import hashlib
import html
import inspect
import json
import os
import re

import pytest
import torch

from clutils import report
from clutils.commands import check
from clutils.commands.arguments import Parser, adding, value
from clutils.figures import style
from clutils.report import GOOD, LOOK
from tests.commands.asked import complaint, run
from tests.report import ailing
from tests.report.pages import Page, folder


def command(*arguments: object) -> int:
    return run("check", *arguments)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.pt"
    ailing.trained().save(path)
    return path


def test_the_command_writes_what_is_asked_for(file, tmp_path, capsys):
    out = tmp_path / "a.html", tmp_path / "a.json"
    given = ("--data", "digits", "--pictures", 1200)
    assert command(file, *given, "--out", out[0], "--out", out[1]) == 0
    said = capsys.readouterr()
    first, second = said.out.splitlines()[:2]
    assert first.startswith("300 test images: ") and "split test" in first
    assert second.startswith("900 are their labelled neighbours: ") and "split train" in second
    assert "run.pt on" in said.out and "✓ collapse" in said.out and "no images were named" not in said.out
    stages = re.findall(r"^\[ *\d+ s\] (\d) of 7: ", said.err, re.MULTILINE)
    assert stages == list("234567")  # a log shows where it is, though nobody watches
    assert json.loads(out[1].read_text())["level"] in (GOOD, LOOK)


def test_two_files_come_side_by_side_on_the_terminal_too_and_in_one_json_by_name(file, tmp_path, capsys):
    out = tmp_path / "b.html", tmp_path / "both.json"
    given = ("--data", "digits", "--pictures", 400, "--out", out[0], "--out", out[1])
    assert command(file, file, *given) == 0
    printed = capsys.readouterr().out
    assert "one encoder twice" in printed and "kNN: A " in printed
    text = out[0].read_text()
    named = "/".join(file.parts[-2:])  # files of one name are told apart by their folders
    assert Page(text).loads == [] and f"A: {named}" in text and f"B: {named}" in text
    cells = re.findall(r'<td data-of="([AB])">', text)  # which file a cell is of
    assert cells.count("A") == cells.count("B") >= 5
    held = json.loads(out[1].read_text())
    assert list(held) == [str(file), f"{file} (2)", "beside"]
    assert held[str(file)]["numbers"] == held[f"{file} (2)"]["numbers"]


QUICK = ("--data", "digits", "--pictures", 80, "--quick")


def series(file, folder, names, **changed):
    """Copies of the file, each with what the k-th has of these in place of its own."""
    copies = [folder / f"{name}.pt" for name in names]
    for k, copy in enumerate(copies):
        state = torch.load(file, weights_only=False)
        torch.save(state | {name: values[k] for name, values in changed.items()}, copy)
    return copies


def test_more_than_two_files_are_a_series_with_the_main_numbers_against_the_epoch(file, tmp_path, capsys):
    copies = series(file, tmp_path, "cab", epoch=(3, 2, 1))
    out = tmp_path / "s.html", tmp_path / "s.json"
    given = ("--data", "digits", "--pictures", 200, "--out", out[0], "--out", out[1])
    assert command(*copies, *given) == 0
    held = json.loads(out[1].read_text())
    assert [moment["at"] for moment in held] == [1, 2, 3]
    assert [moment["name"].rpartition("/")[2] for moment in held] == ["b.pt", "a.pt", "c.pt"]
    assert held[0]["numbers"]["knn"] == held[2]["numbers"]["knn"]
    text = out[0].read_text()
    assert Page(text).loads == [] and Page(text).mute == 0 and "3 checkpoints" in text
    assert "kNN, this encoder from" in text
    assert text.count("in short") == 1
    # each row has the same measures, whatever its sentence speaks of, on the page and in the console
    share = f"{held[0]['numbers']['knn_beside_untrained']:.0%}"
    assert text.count("<th>kNN by 150 labelled images</th>") == 1 and text.count(f"<td>{share}</td>") >= 3
    told = capsys.readouterr().out.partition("3 checkpoints: kNN by 150 labelled images, probe by")[2]
    assert [share in line for line in told.splitlines()[1:4]] == [True] * 3
    provenance = html.unescape(text.partition("Where this page comes from")[2].partition("</details>")[0])
    for fact in (
        "150 labelled neighbours, 50 test images: ",
        "as they are",
        "python -m clutils check",
        "seed 0, 2",
    ):
        assert fact in provenance
    for copy in copies:  # a row each
        assert hashlib.sha256(copy.read_bytes()).hexdigest() in text


def test_a_file_is_read_before_the_pictures_are(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "load", lambda *_: pytest.fail("the pictures came first"))
    assert command(tmp_path / "none.pt", "--data", "digits") == 1


def test_fail_on_tells_scripts_by_the_exit_code(file, tmp_path, capsys):
    given = ("--data", "digits", "--pictures", 400, "--out", tmp_path / "a.json")
    spoilt = (*given, "--mean", "0.5", "--std", "0.01")
    assert command(file, *given, "--fail-on", "broken") == 0
    assert command(file, *spoilt) == 0
    assert command(file, *spoilt, "--fail-on", "broken") == command(file, *spoilt, "--fail-on", "look") == 3


def test_a_series_fails_by_its_last_checkpoint_and_not_by_step_0(file, tmp_path):
    """A run from its untrained start on ended with exit code 3, though its end was well."""
    start = tmp_path / "start.pt"
    ailing.untrained().save(start)
    given = ("--data", "digits", "--pictures", 400, "--quick", "--out", tmp_path / "a.json")
    copies = series(file, tmp_path, "ab", epoch=(3, 2))
    assert command(start, *copies, *given, "--fail-on", "broken") == 0
    assert command(start, *given, "--fail-on", "broken") == 3


def test_pictures_that_nobody_named_are_said_to_be_generated(file, tmp_path, capsys):
    out = tmp_path / "a.html"
    given = ("--pictures", 120, "--out", out)
    assert command(file, *given) == 0
    assert "no images were named (--data)" in capsys.readouterr().out
    assert "No images were named (--data)" in out.read_text()


def test_the_validation_split_is_judged_where_there_is_no_test_split_and_both_are_named(
    file, tmp_path, capsys
):
    for split, sizes, first in (("train", [40, 40], 0), ("valid", [40, 40], 0), ("models", [40], 2)):
        folder(tmp_path / split, sizes, first)
    given = ("--data", f"folder:{tmp_path}", "--pictures", 80, "--quick")
    assert command(file, *given, "--out", tmp_path / "a.json") == 0
    judged, gallery = capsys.readouterr().out.splitlines()[:2]
    assert "2 classes (c000, c001)" in judged and "split valid of train, valid; models beside" in judged
    assert "2 classes (c000, c001)" in gallery and "split train of train, valid; models beside" in gallery


def test_classes_of_any_name_are_judged_drawn_and_named_on_the_page(file, tmp_path, capsys):
    from PIL import Image

    for split in ("train", "test"):
        for name in ("$$", r"$\badmacro{$", "猫"):
            (tmp_path / split / name).mkdir(parents=True)
            for k in range(30):
                Image.new("L", (8, 8), 8 * k + len(split)).save(tmp_path / split / name / f"{k}.png")
    outs = [tmp_path / f"a.{kind}" for kind in ("png", "html")]
    given = [word for out in outs for word in ("--out", out)]
    assert command(file, "--data", f"folder:{tmp_path}", "--quick", *given) == 0
    said, text = capsys.readouterr(), outs[1].read_text()
    assert "Warning" not in said.err and outs[0].stat().st_size > 10_000
    if not style.drawable("猫"):
        assert "figures have numbers: 2 猫." in said.out and "figures have numbers: 2 猫." in text


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nothing.pt"], 1, "there is no file"),
        ([], 2, "FILE"),
        (["x", "--out", "nowhere/at/a.html"], 2, "can't be written: there is no folder nowhere/at"),
        (["x", "--out", "tests/runs.py/a.html"], 2, "--out: tests/runs.py/a.html can't be written"),
        (["x", "y", "--out", "a.png"], 2, "a.png ends in '.png', but must end in .html or .json"),
        (["x", "--fail-on", "good"], 2, "--fail-on"),
        (["RUN", "--weights", "ema"], 1, "holds no moving average of its weights"),
    ],
)
def test_a_mistake_is_one_line(arguments, code, said, file, capsys):
    given = arguments if "--data" in arguments else [*arguments, "--data", "digits"]
    given = [str(file) if word == "RUN" else word for word in given]
    assert command(*given) == code
    assert said in complaint(capsys)


@pytest.mark.parametrize(
    ("option", "wrong", "said"),
    [
        ("limit", 15, "limit is 15, but must be a whole number from 16 on"),
        ("limit", "many", "limit is 'many', but must be"),
        ("arch", "resnet19", "did you mean 'resnet1"),
        ("arch", "resnet18-odd", "option 'odd'; there are maxpool"),
        ("temperature", -1, "above 0"),
        ("mean", "imagnet", "mean is 'imagnet', but must be one of none, imagenet, cifar10, half, bytes"),
        ("mean", (1, 2), "mean is (1, 2), but must be one number, or three"),
        ("std", 0.0, "std is 0.0, but must be above 0"),
        ("size", 7, "size is 7, but must be a whole number from 8 to 1024"),
        ("size", 1025, "size is 1025, but must be"),
        ("seed", 0.5, "seed is 0.5, but must be a whole number"),
        ("out", "a.pdf", "a.pdf ends in '.pdf', but must end in .html"),
        ("data", "sentences:toy", "must be images"),
    ],
)
def test_the_command_refuses_an_option_as_report_check_does_and_before_a_file_is_opened(
    option, wrong, said, capsys
):
    with pytest.raises(report.Unfit, match=re.escape(said)) as refused:
        report.check("there/is/none.pt", **{option: wrong})
    assert refused.value.option == option
    typed = ",".join(map(str, wrong)) if isinstance(wrong, tuple) else wrong
    shown = "images" if option == "limit" else option
    assert command("there/is/none.pt", f"--{shown}", typed) == 2
    assert complaint(capsys) == f"clutils: --{shown}: {' '.join(str(refused.value).split())}\n"


def test_the_command_has_no_refusal_of_an_option_but_those_of_report_check():
    parser = Parser(prog="")
    check.add_to(adding(parser))
    of_check = parser._subparsers._group_actions[0].choices["check"]
    of_check.format_help()  # fills it
    refusing = [a.dest for a in of_check._actions if a.type not in (None, value) or a.choices]
    assert refusing == ["fail_on"]  # of the exit code, which report.check does not have
    source = inspect.getsource(check)
    assert source.count("raise ") == 1 and "raise BadUsage" in inspect.getsource(check.unfit)


def test_names_of_files_and_settings_reach_no_terminal_raw_and_end_no_page(file, tmp_path, capsys):
    """ESC in a file's name cleared the screen; a name that is no UTF-8 ended a check after all its work."""
    odd, undecodable = tmp_path / "a\x1b[2J.pt", tmp_path / os.fsdecode(b"\xff.pt")
    state = torch.load(file, weights_only=True)
    torch.save({**state, "args": {"note": "\x1b]0;b\x07\ud800", "\x1b[1m": "\r"}}, odd)
    out = tmp_path / "a.html", tmp_path / "a.json"
    assert command(odd, *QUICK, "--out", out[0], "--out", out[1]) == 0
    shown = capsys.readouterr()
    undecodable.write_bytes(odd.read_bytes())
    assert command(undecodable, *QUICK) == 1 and "has a name that is not UTF-8" in complaint(capsys)
    (tmp_path / "b\x1b[2J.pt").write_bytes(b"\x80\x02.")
    for given in (["b\x1b[2J.pt"], ["c\x1b[2J.pt"], [file, "--\x1b[2J"], [file, "--out", "\x1b[2J/a.html"]):
        assert command(*(tmp_path / one if "pt" in str(one) else one for one in given)) != 0
    said = shown.out + shown.err + "".join(capsys.readouterr())
    assert not set(said) & {"\x1b", "\x07", "\r", "\ud800"} and r"a\x1b[2J.pt" in said
    assert "\x1b" not in out[0].read_text() + out[1].read_text()


def test_a_quick_look_knows_all_labelled_images(file, tmp_path):
    out = tmp_path / "quick.json"
    assert command(file, "--data", "digits", "--pictures", 1200, "--quick", "--out", out) == 0
    assert json.loads(out.read_text())["numbers"]["gallery"] == 900

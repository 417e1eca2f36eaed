"""CONTRIBUTING.md is true: its loss, added as it says to a copy of the tree, works wherever losses appear."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from clutils import losses
from clutils.losses.base import contrast
from clutils.similarities import Pairs
from tests.faults import ROOT, copied
from tests.faults import pytest as run_in

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
FILE = re.search(r"For example, `(clutils/losses/\w+\.py)`", TEXT)[1]
EXAMPLE, LINE = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
NAME = re.search(r"^class (\w+)", EXAMPLE, re.MULTILINE)[1]
# where a loss is asked for by its place in the catalogue
WHERE = (
    *("tests/a_new_loss.py", "tests/losses/test_every_loss.py", "tests/test_settings.py"),
    *("tests/losses/test_numerics.py", "tests/test_ruler.py", "tests/test_readme.py"),
)


@pytest.fixture(scope="module")
def grown(tmp_path_factory) -> Path:
    """A copy of the tree with one file and one line more."""
    folder = tmp_path_factory.mktemp("grown")
    copied(folder)
    (folder / FILE).write_text(EXAMPLE, "utf-8")
    init = folder / "clutils/losses/__init__.py"
    lines = init.read_text("utf-8").splitlines(keepends=True)
    first, *_, last = (k for k, line in enumerate(lines) if line.startswith("from clutils.losses."))
    lines[first : last + 1] = sorted([*lines[first : last + 1], LINE])
    init.write_text("".join(lines), "utf-8")
    return folder


def test_the_example_works_wherever_losses_appear_and_no_table_asks_for_it(grown, monkeypatch):
    monkeypatch.setenv("NEW_LOSS", NAME)
    code, printed = run_in(grown, "--no-header", "-k", f"{NAME} or a_new_loss or catalogue", *WHERE)
    assert code == 0, printed
    assert f"| `{NAME}` |" in printed  # the line that docs/losses.md may get
    found = int(re.search(r"(\d+) passed", printed)[1])
    assert found > 60, printed


def test_a_loss_that_says_too_little_of_itself_is_refused_at_import(grown):
    file = grown / FILE
    file.write_text(EXAMPLE.replace("paper, year, equation = ", "paper, year, other = "), "utf-8")
    imported = [sys.executable, "-c", "import clutils.losses"]
    here = os.environ | {"PYTHONPATH": str(grown)}
    done = subprocess.run(imported, cwd=grown, env=here, capture_output=True, text=True)
    file.write_text(EXAMPLE, "utf-8")
    assert f"{NAME} has no equation" in done.stderr


def test_another_kernel_goes_into_a_batch_as_it_says():
    (code,) = re.findall(r"`(contrast\(.+?, 1\.0\))`", TEXT)
    pairs = losses.NTXent().compare(*torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0)))
    names = {"contrast": contrast, "Pairs": Pairs, "pairs": pairs, "k": lambda s: s / 0.3}
    torch.testing.assert_close(eval(code, names), contrast(pairs, 0.3))


def test_the_example_is_in_the_projects_style(grown):
    for check in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *check, FILE], cwd=grown, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_it_names_files_and_tests_that_exist():
    for path in re.findall(r"`((?:clutils|tests|benchmarks|notebooks)/[\w./-]+\.py)`", TEXT):
        new = path in (FILE, f"tests/losses/test_{NAME.lower()}.py")
        assert new or (ROOT / path).is_file(), path
    for called in re.findall(r"python -m pytest ([^`\n]*)", TEXT):
        for path in re.findall(r"\btests/[\w/]*\w(?:\.py)?", called):
            assert (ROOT / path).exists(), path
    assert len(TEXT.splitlines()) < 120

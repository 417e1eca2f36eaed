"""The README stays true: its links lead somewhere, its times are the notebooks' own, its code runs."""

from __future__ import annotations

import re

import nbformat
import pytest
import torch

from clutils import losses
from clutils.course import records

README = (records.ROOT / "README.md").read_text("utf-8")
NOTEBOOKS = sorted((records.ROOT / "notebooks").glob("[0-9]*.ipynb"))


def test_every_link_and_picture_exists():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (records.ROOT / target).exists(), f"README links to {target}, which is not there"


def test_every_picture_has_alt_text():
    pictures = re.findall(r"!\[([^\]]*)\]\(", README)
    assert pictures
    assert all(len(text) > 20 for text in pictures)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_each_notebook_is_listed_with_the_time_it_says_itself_and_that_was_measured(path):
    cells = nbformat.read(path, 4).cells
    (own,) = re.findall(r"about (\d+) s to run from a clean kernel on 2 cores", cells[0].source)
    (listed,) = re.findall(rf"\(notebooks/{path.name}\).*\| about (\d+) s \|", README)
    assert own == listed
    rows = records.read("notebook_times").query(f"notebook == '{path.stem}'")
    assert len(rows), f"{path.stem} has no measured time: python benchmarks/notebooks.py --record"
    measured = rows.iloc[-1]["seconds"]
    assert abs(measured - int(own)) <= max(1, 2.5), f"{own} s is said, {measured} s were measured last"


def test_every_loss_of_the_catalogue_is_listed():
    for name in losses.catalogue():
        assert f"`{name}`" in README


def test_the_example_for_researchers_runs():
    code = re.search(r"```python\nfrom clutils import anatomy, losses\n(.*?)```", README, re.DOTALL).group(1)
    draw = torch.Generator().manual_seed(0)
    z1, z2, q, k = torch.randn(4, 8, 5, generator=draw)
    scope = {"z1": z1, "z2": z2, "q": q, "k": k, "queue": torch.randn(20, 5, generator=draw)}
    scope |= {"positives": torch.rand(8, 1, generator=draw), "negatives": torch.rand(8, 9, generator=draw)}
    exec("from clutils import anatomy, losses\n" + code, scope)
    assert scope["push"].shape == (8, 9)

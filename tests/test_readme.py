"""README and docs/ stay true: links lead somewhere, times are the notebooks' own, code runs."""

import functools
import re

import nbformat
import pandas as pd
import pytest
import torch
from torch import nn

from clutils import data, losses, methods, training
from clutils.course import records

README = (records.ROOT / "README.md").read_text("utf-8")
DOCS = {path.stem: path for path in sorted((records.ROOT / "docs").glob("*.md"))}
PAGES = [records.ROOT / "README.md", *DOCS.values()]
NOTEBOOKS = sorted((records.ROOT / "notebooks").glob("[0-9]*.ipynb"))
page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)


def code(page: str, begins: str) -> str:
    """The one example of a page of docs/ whose first line begins so."""
    (found,) = re.findall(rf"```python\n({begins}.*?)```", DOCS[page].read_text("utf-8"), re.DOTALL)
    return found


@page
def test_every_link_and_picture_exists(path):
    for target in re.findall(r"\]\(([^)#]+)", path.read_text("utf-8")):
        if not target.startswith("https://"):
            assert (path.parent / target).exists(), f"{path.name} links to {target}, which is not there"


@page
def test_every_picture_has_alt_text(path):
    pictures = re.findall(r"!\[([^\]]*)\]\(", path.read_text("utf-8"))
    assert pictures or path.parent.name == "docs"
    assert all(len(text) > 20 for text in pictures)


def test_readme_leads_to_every_page_of_docs():
    listed = set(re.findall(r"\(docs/(\w+)\.md", README))
    assert listed == set(DOCS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_each_notebook_is_listed_with_the_time_it_says_itself_and_that_was_measured(path):
    cells = nbformat.read(path, 4).cells
    said = re.findall(r"about (\d+) s to run from a clean kernel on 2 cores", cells[0].source)
    wanted = "about N s to run from a clean kernel on 2 cores"
    assert len(said) == 1, f"{path.name}: its first cell has to say '{wanted}'"
    (own,) = said
    listed = re.findall(rf"\(notebooks/{path.name}\).*\| (\d+) s \|", README)
    assert listed == [own], f"README's table of notebooks has to list {path.name} once, with '{own} s'"
    rows = records.read("notebook_times").query(f"notebook == '{path.stem}'")
    assert len(rows), f"{path.stem} has no measured time: python benchmarks/notebooks.py --record"
    measured = rows.iloc[-1]["seconds"]
    assert abs(measured - int(own)) <= max(1, 2.5), f"{own} s is said, {measured} s were measured last"


def test_the_speeds_that_are_printed_are_those_of_the_records():
    """benchmarks/throughput.py --record, and records whose scripts have gone: their last rows."""
    text, steps = DOCS["checked"].read_text("utf-8"), records.read("throughput")
    for method in ("SimCLR", "MoCo", "BYOL", "VICReg", "DINO"):
        name = "clutils, float32 / lightly, float32"
        name = name if method == "SimCLR" else f"{method.lower()}: {name}"
        row = steps[steps["ratio"] == name].iloc[-1]
        assert f"| {method} | {row['median']:.1f} ({row['lowest']:.1f} to {row['highest']:.1f}) |" in text
    gain = steps[steps["ratio"] == "bfloat16 / float32"].iloc[-1]
    said = "{median:.1f} times as fast as in float32 ({lowest:.1f} to {highest:.1f})"
    assert said.format(**gain) in text
    kept = records.read("memory").groupby(["what", "encoder", "batch_size", "precision"])["median"].last()
    kept = kept["step"].drop("resnet18")
    assert f"takes {kept.min():.1f} to {kept.max():.1f} times as long" in text
    beside = records.read("loss_speed")
    beside = beside.groupby(["loss", "beside", "batch_size"])[["time_ratio", "memory_ratio"]].last()
    few, many = beside.query("batch_size < 256"), beside.query("batch_size >= 256")
    slowest = f"at most {few['time_ratio'].max():.1f} times .* and {many['time_ratio'].max():.1f} times"
    medians = "median {few.time_ratio:.1f} and {many.time_ratio:.1f} times"
    medians += ".* {few.memory_ratio:.2f} and {many.memory_ratio:.2f} of"
    assert re.search(rf"{slowest}.*{medians.format(few=few.median(), many=many.median())}", text)
    few, many = (of.xs("ready-made tables", level="beside")["time_ratio"] for of in (few, many))
    assert f"the median is {few.median():.2f} times below 128 pairs and {many.median():.2f} times" in text
    assert f"most is {few.max():.2f} times, for a loss of one millisecond, and {many.max():.2f} times" in text
    graphs = records.read("nodes_time").groupby("method")["ratio"].last()
    graphs = f"takes {graphs['graphcl']:.1f}, {graphs['grace']:.1f} and {graphs['dgi']:.1f} times as long"
    assert f"GraphCL, GRACE and DGI {graphs}" in text
    lab = records.read("lab").iloc[-1]
    spread = f"({lab['share_lowest']:.0%} to {lab['share_highest']:.0%} in ten rounds)"
    assert f"takes {lab['share']:.0%} of the images per second {spread}".replace("%", " %") in text


def test_the_numbers_from_a_gpu_are_those_of_the_record():
    text, record = DOCS["gpu"].read_text("utf-8"), records.read("gpu")
    table = "".join(re.findall(r"^\|.*\n", text, re.MULTILINE))
    said = [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\.?\d*", table)]
    of = record[record["task"].isin(("profile", "recipes"))]
    asked = {"pictures_per_s", "step_ms", "gpu_ms", "first_step_s", "knn_10"}
    for _, row in of[of["what"].isin(asked) & ~of["case"].str.contains("again")].iterrows():
        if not (row["what"] == "pictures_per_s" and row["task"] == "recipes"):
            assert row["value"] in said, (row["case"], row["what"], row["value"])
    for _, run in records.read("recipes").query("recipe.str.startswith('gpu')").iterrows():
        assert {run["knn_10"], run["seconds"]} <= set(said), (run["recipe"], run["seed"])
    errors = record[record["what"] == "errors"].groupby("case")["value"].max()
    assert f"Of the {len(errors)} notebooks that were run, {(errors == 0).sum()} did" in text


@pytest.mark.parametrize("kind", [losses, methods], ids=["losses", "methods"])
def test_the_table_of_losses_or_methods_names_those_of_the_catalogue_and_losses_with_their_years(kind):
    """One that is missing is no fault: the reason of the skip is the line to add."""
    page = kind.__name__.rpartition(".")[2]
    rows = re.findall(r"^\|([^|]*)\|([^|]*)\|", DOCS[page].read_text("utf-8"), re.MULTILINE)
    listed = [(name, paper) for names, paper in rows for name in re.findall(r"`(\w+)`", names)]
    catalogue, known = kind.catalogue(), dict(listed)
    assert len(listed) > 20 and set(known) <= set(catalogue) and len(known) == len(listed)
    for name, paper in listed:
        assert kind is methods or str(catalogue[name].year) in paper, name
    lacking = [
        f"| `{name}` | {of.paper} {of.year} |{f' {of.compares} |' if kind is losses else ''} |"
        for name, of in catalogue.items()
        if name not in known
    ]
    if lacking:
        pytest.skip(f"the table in docs/{page}.md may get: {' '.join(lacking)}")


def test_the_examples_with_a_batch_run_as_they_stand_and_are_right(tmp_path, monkeypatch):
    """Those of docs/losses.md and docs/own_loop.md; that of several processes is in test_processes.py."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    draw, scope = torch.Generator().manual_seed(0), own_loop(number=1)
    scope |= dict(zip(("z1", "z2", "q", "k"), torch.randn(4, 16, 5, generator=draw), strict=True))
    scope |= {"queue": torch.randn(20, 5, generator=draw), "labels": torch.arange(16) % 4}
    scope |= dict(zip(("x1", "x2"), scope["pairs"][0], strict=True))
    exec(code("losses", "from clutils import anatomy, losses"), scope)
    assert scope["push"].shape == (32, 30)
    exec(code("own_loop", "from clutils import anatomy, losses\n\nloss = "), scope)
    torch.testing.assert_close(scope["per_image"].mean(), scope["value"])
    assert scope["pull"].shape == (32, 1) and scope["push"].shape == (32, 30)
    exec(code("own_loop", "import torch\n\nfrom clutils import losses"), scope)
    assert scope["queue"].shape == (1024, 5) and scope["queue"][-16:].equal(scope["k"])
    exec(code("own_loop", "import torch\n\nwith torch.autocast"), scope)
    assert scope["z1"].dtype == torch.bfloat16 and scope["value"].dtype == torch.float32
    weights = [*scope["encoder"].parameters(), *scope["head"].parameters()]
    exec(code("own_loop", "import torch\n\ndef accumulate"), scope)
    exec(code("own_loop", "import torch\n\ndef forward"), scope)
    network = nn.Sequential(scope["encoder"], scope["head"])
    again = scope["accumulate"](scope["loss"], network, scope["x1"], scope["x2"], parts=1)
    torch.testing.assert_close(scope["value"].detach(), again)
    for weight, whole in zip(weights, torch.autograd.grad(scope["value"], weights), strict=True):
        torch.testing.assert_close(weight.grad, 2 * whole)  # of two parts, and of one
    exec(code("own_loop", "import torch\n\ntorch.save"), scope)
    assert list(torch.load(tmp_path / "mine.pt")) == ["encoder", "head", "temperature"]


def own_loop(number: int) -> dict:
    """What the examples of docs/own_loop.md take for granted, and pairs of views for so many steps."""
    draw = torch.Generator().manual_seed(0)
    encoder, head = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten()), nn.Linear(288, 16)
    return {
        "encoder": encoder,
        "head": head,
        "optimiser": torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.01),
        "loss": losses.NTXent(0.2),
        "pairs": list(torch.rand(number, 2, 16, 1, 8, 8, generator=draw)),
    }


def test_the_loop_of_one_s_own_runs_as_it_stands_and_its_table_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = own_loop(number=102)
    exec(code("own_loop", "from clutils import data, training"), scope)
    table = pd.read_csv(tmp_path / "numbers.csv")
    assert table["step"].tolist() == [0, 100] and {"rankme", "knn", "probe"} <= set(table)
    assert table["rankme"].nunique() == 2  # the weights moved in between
    assert table[["head_uniformity", "gradient_norm"]].notna().all(axis=None)
    digits = data.load("digits", limit=200)
    scope |= {"gallery": digits.subset(slice(0, 150)), "test_images": digits.subset(slice(150, 200))}
    exec(code("own_loop", "from clutils import anatomy, losses, report"), scope)
    assert scope["found"].examination.found.head_uniformity is not None


@pytest.mark.filterwarnings("ignore")  # Lightning's advice on workers and loggers
def test_the_callback_for_lightning_looks_while_its_trainer_trains():
    pl = pytest.importorskip("pytorch_lightning", reason="pytorch_lightning is not installed")
    scope: dict = {}
    exec(code("own_loop", "import pytorch_lightning as pl"), scope)
    given = own_loop(number=5)

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.encoder = given["encoder"]

        def training_step(self, batch, at):
            return given["loss"](*(self.encoder(x) for x in batch))

        def configure_optimizers(self):
            return given["optimiser"]

    digits = data.load("digits", limit=120)
    watcher = training.Watcher(digits, digits, numbers=("rankme", "knn"), every=2)
    off = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    trainer = pl.Trainer(
        accelerator="cpu", max_epochs=1, callbacks=[scope["Watching"](watcher)], **dict.fromkeys(off, False)
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(given["pairs"], batch_size=None))
    assert watcher.table["step"].tolist() == [1, 3, 5] and "rankme" in trainer.callback_metrics

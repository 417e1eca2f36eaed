r"""What waits for a GPU: the whole course once, recipes, a profile, MACL's table 9 in short, PiNDA's arms.

    python benchmarks/gpu.py tour --out runs/gpu      each notebook, each method for 40 s, the lab: tour.json
    python benchmarks/gpu.py recipes --record         kNN(10) of 0.83 in 3 minutes, of 0.90 in 10? three seeds
    python benchmarks/gpu.py profile --out runs/gpu   where the time of ten steps goes: profile.txt
    python benchmarks/gpu.py macl --out runs/gpu      five losses at batch 64 and 256: macl.json
    python benchmarks/gpu.py pinda --out runs/gpu     SimCLR, random noise, PiNDA, 40 epochs each: pinda.json

Each on CIFAR-10, or --source folder:PATH; what is done is written as it is done, so that a cut leaves it.
On a CPU, to see that it works and for nothing else:

    CLUTILS_FAST=1 python benchmarks/gpu.py tour --source digits --encoder conv16 --seconds 2 --notebooks 00
    python benchmarks/gpu.py recipes --source digits --encoder conv16 --steps 4 --seeds 0
    python benchmarks/gpu.py profile --source digits --encoder conv16
    python benchmarks/gpu.py macl --source digits --encoder conv16 --steps 4 --seeds 0
    python benchmarks/gpu.py pinda --source scenes --encoder conv16 --network conv --steps 4 --seeds 0

- recipes: `gpu-3min` and `gpu-10min` of `benchmarks/recipes.py`, judged after the last step; nothing is
  chosen on the test pictures. --record adds to the same record.
- macl: Huang et al. 2023, table 9, in short: ResNet-18, τ = 0.1 for all, 20 epochs where the paper has 200.
- pinda: ResNet-18 with the 3x3 stem, batch 256, τ = 0.1, the same steps for all arms; the generator is a
  ResNet-18 with a decoder, learns at the paper's 1e-3 as the encoder does, and starts from σ = 0.02, λ = 1.
- tour: notebooks with CLUTILS_FAST=1 are shorter; pictures a second stand beside kNN before and after.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import runpy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from clutils import data, losses, measures, methods, training
from clutils.course import lab as lesson
from clutils.course import records

ASKED = {"gpu-3min": (0.83, 180), "gpu-10min": (0.90, 600)}  # kNN with k = 10, seconds
RECIPES = runpy.run_path(str(Path(__file__).with_name("recipes.py")))
LOSSES = {
    "NT-Xent": lambda: losses.NTXent(0.1),
    "DCL": lambda: losses.Decoupled(0.1),
    "FlatNCE": lambda: losses.FlatNCE(0.1),
    "dual temperature": lambda: losses.DualTemperature(0.1),
    "MACL": lambda: losses.MACL(0.1),
}


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def show(row: dict[str, Any]) -> None:
    print(*(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()), flush=True)


def keep(out: Path | None, name: str, rows: list[dict[str, Any]], options: argparse.Namespace) -> None:
    if out is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    settings = {key: str(value) for key, value in vars(options).items() if key != "task"}
    kept = {"rows": rows, "settings": settings, "device": str(training.device())} | records.provenance()
    (out / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")


def changed(options: argparse.Namespace) -> None:
    """Another encoder than the recipes', to try them without a GPU: then neither compiled nor recorded."""
    if options.encoder == "resnet18":
        return
    for name in ASKED:
        RECIPES["RECIPES"][name] |= {"encoder": options.encoder, "compile": False, "batch_size": 128}


def recipes(options: argparse.Namespace, train: data.ImageSet, test: data.ImageSet) -> None:
    """The two recipes, three seeds, and whether they reach what is asked of them."""
    changed(options)
    record = options.record and options.encoder == "resnet18"
    done = records.known(RECIPES["NAME"], *RECIPES["SAME_RUN"]) if record else set()
    rows = []
    for name, (asked, limit) in ASKED.items():
        steps = options.steps or RECIPES["RECIPES"][name]["steps"]
        for seed in options.seeds:
            if (name, train.source, seed, steps) in done:
                continue
            row = RECIPES["measured"](name, train, test, seed, options.steps)
            show(row)
            if options.steps is None:
                reached = row["knn_10"] >= asked and row["seconds"] <= limit
                print(f"  asked: kNN(10) {asked} in {limit} s: {'reached' if reached else 'missed'}")
            if record:
                length = "" if options.steps is None else f" --steps {options.steps}"
                line = {"command": RECIPES["command"](name, str(seed)) + length} | row
                records.append(RECIPES["NAME"], line)
            rows.append(row)
    keep(options.out, "recipes", rows, options)


def profile(options: argparse.Namespace, train: data.ImageSet, test: data.ImageSet) -> None:
    """Ten steps of the first recipe under torch's profiler: its table, and pictures a second without it."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as watched

    changed(options)
    run = RECIPES["begun"]("gpu-3min", train, 0)
    for step in range(15):
        if step == 5:  # the first steps compile, choose algorithms and take memory
            wait()
            began = time.perf_counter()
        run.step()
    wait()
    rate = 10 * run.settings.batch_size / (time.perf_counter() - began)
    kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])]
    with watched(activities=kinds) as found:
        for _ in range(10):
            run.step()
        wait()
    order = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
    text = f"{rate:,.0f} pictures a second, {records.machine()}\n"
    text += found.key_averages().table(sort_by=order, row_limit=40, max_name_column_width=70)
    if options.out is None:
        print(text)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "profile.txt").write_text(text + "\n")


def macl(options: argparse.Namespace, train: data.ImageSet, test: data.ImageSet) -> None:
    """Five losses at two sizes of batch, all else equal, for the same number of epochs."""
    rows = []
    for batch_size in (64, 256):
        for name, loss in LOSSES.items():
            for seed in options.seeds:
                run = training.Run(
                    loss=loss(),
                    data=train,
                    encoder=options.encoder,
                    batch_size=batch_size,
                    steps=options.steps or options.epochs * (len(train) // batch_size),
                    seed=seed,
                ).finish(progress=False)
                row = {"loss": name, "batch_size": batch_size, "seed": seed, "steps": run.steps_done}
                row |= RECIPES["judged"](run.embed, train, test)
                row["seconds"] = run.rows[-1]["seconds"]
                show(row)
                rows.append(row)
                keep(options.out, "macl", rows, options)


def pinda(options: argparse.Namespace, train: data.ImageSet, test: data.ImageSet) -> None:
    """SimCLR without noise, with random noise of three strengths, and with PiNDA: equal steps."""
    learned = {"network": options.network, "penalty": options.penalty, "start": 0.02, "noise_rate": 1.0}
    arms = {"no noise": None, f"PiNDA, λ = {options.penalty:g}": learned}
    arms |= {
        f"random noise, σ = {scale}": {"network": "fixed", "start": scale} for scale in (0.02, 0.05, 0.1)
    }
    steps = options.steps or options.epochs * (len(train) // options.batch_size)
    rows = []
    for seed in options.seeds:
        for arm, settings in arms.items():
            run = training.Run(
                method="simclr" if settings is None else "pinda",
                loss=losses.NTXent(0.1),
                data=train,
                encoder=options.encoder,
                batch_size=options.batch_size,
                steps=steps,
                seed=seed,
                learning_rate=1e-3,
                method_settings={} if settings is None else {**settings, "on": "view"},
            ).finish(progress=False)
            row = {"arm": arm, "seed": seed, "steps": steps} | RECIPES["judged"](run.embed, train, test)
            row |= {"seconds": run.rows[-1]["seconds"], "noise": run.rows[-1].get("noise")}
            show(row)
            rows.append(row)
            keep(options.out, "pinda", rows, options)


def tour(options: argparse.Namespace, train: data.ImageSet, test: data.ImageSet) -> None:
    """Every notebook in this process, every method for a while, and the lab with its dials turned."""
    rows = []

    def done(**row: object) -> None:
        show(row)
        rows.append(row)
        keep(options.out, "tour", rows, options)

    for path in sorted((records.ROOT / "notebooks").glob("*.ipynb")):
        if options.notebooks and path.stem[:2] not in options.notebooks:
            continue
        began = time.perf_counter()
        done(notebook=path.stem, errors=errors_of(path), seconds=time.perf_counter() - began)
    os.environ.pop("CLUTILS_FAST", None)  # what follows is as long as it says
    bank = train.subset(slice(0, 5000))
    for method in methods.catalogue():
        run = training.Run(method, None, train, options.encoder, steps=10**5, batch_size=options.batch_size)
        before = knn(run, bank, test)
        for step in range(10**5):
            if step == 5:  # the first steps choose algorithms and take memory
                wait()
                began = time.perf_counter()
            run.step()
            if step > 5 and time.perf_counter() - began > options.seconds:
                break
        rate = (run.steps_done - 5) * options.batch_size / (time.perf_counter() - began)
        done(
            method=method,
            pictures_per_s=rate,
            steps=run.steps_done,
            knn_before=before,
            knn=knn(run, bank, test),
        )
    lab = lesson.training_lab(data=train, encoder=options.encoder, steps=10**5, batch_size=options.batch_size)
    lab.start()
    for temperature in (0.5, 0.1, 1.0, 0.2):
        time.sleep(1)
        lab.set(temperature=temperature)
    lab.stop()
    turned = len(lab.current.changes)
    done(lab=lab.background.status, turned=turned, said=lab.error.value, looks=len(lab.current.watcher.looks))


def errors_of(notebook: Path) -> list[str]:
    """What went wrong in its cells, run one after the other in this process."""
    from IPython.core.interactiveshell import InteractiveShell

    shell, found, here = InteractiveShell(), [], Path.cwd()
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    os.chdir(notebook.parent)
    try:
        for number, cell in enumerate(cells):
            with contextlib.redirect_stdout(io.StringIO()):
                result = shell.run_cell("".join(cell["source"]))
            error = result.error_before_exec or result.error_in_exec
            if error is not None:
                found.append(f"code cell {number}: {type(error).__name__}: {error}")
    finally:
        os.chdir(here)
    return found


def knn(run: training.Run, bank: data.ImageSet, test: data.ImageSet) -> float:
    z, judged = run.embed(bank), run.embed(test)
    return measures.knn_accuracy(z, bank.labels, judged, test.labels, k=min(20, len(bank)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    tasks = parser.add_subparsers(required=True, metavar="TASK")

    def add(name: str, task: Callable[..., None], seeds: bool = True) -> argparse.ArgumentParser:
        added = tasks.add_parser(name, help=task.__doc__)
        added.set_defaults(task=task)
        added.add_argument("--source", default="cifar10", help="as in data.load; default: cifar10")
        added.add_argument("--encoder", default="resnet18")
        added.add_argument("--out", type=Path, help="folder for what is written")
        if seeds:
            added.add_argument("--seeds", type=int, nargs="+", default=(0, 1, 2))
            added.add_argument("--steps", type=int, help="another length, to try it")
        return added

    add("recipes", recipes).add_argument("--record", action="store_true")
    add("profile", profile, seeds=False)
    add("macl", macl).add_argument("--epochs", type=int, default=20)
    arms = add("pinda", pinda)
    arms.add_argument("--epochs", type=int, default=40)
    arms.add_argument("--network", default="resnet18", help="the generator's")
    arms.add_argument("--penalty", type=float, default=1.0, help="λ")
    arms.add_argument("--batch-size", type=int, default=256)
    whole = add("tour", tour, seeds=False)
    whole.add_argument("--seconds", type=float, default=40.0, help="for each method")
    whole.add_argument("--batch-size", type=int, default=256)
    whole.add_argument("--notebooks", nargs="+", help="their numbers; default: all")
    options = parser.parse_args()
    train, test = data.load(options.source), data.load(options.source, "test")
    if options.source.startswith("folder:"):
        train.source = f"{len(train):,} of CIFAR-10 (JPEG copies)"
    options.task(options, train, test)


if __name__ == "__main__":
    main()

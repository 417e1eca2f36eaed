r"""What waits for a GPU: the recipes, a profile of their step, MACL's table 9 in short, SimCLR beside PiNDA.

    python benchmarks/gpu.py recipes --record         kNN(10) of 0.83 in 3 minutes, of 0.90 in 10? three seeds
    python benchmarks/gpu.py profile --out runs/gpu   where the time of ten steps goes: profile.txt
    python benchmarks/gpu.py macl --out runs/gpu      five losses at batch 64 and 256: macl.json
    python benchmarks/gpu.py pinda --out runs/gpu     SimCLR and SimCLR + PiNDA for ten minutes each

Each on CIFAR-10, or --source folder:PATH. On a CPU, to see that it works and for nothing else:

    python benchmarks/gpu.py recipes --source digits --encoder conv16 --steps 4 --seeds 0
    python benchmarks/gpu.py profile --source digits --encoder conv16
    python benchmarks/gpu.py macl --source digits --encoder conv16 --steps 4 --seeds 0
    python benchmarks/gpu.py pinda --source scenes --encoder conv16 --network conv --minutes 0.2

- recipes: `gpu-3min` and `gpu-10min` of `benchmarks/recipes.py`, judged after the last step; nothing is
  chosen on the test pictures. --record adds to the same record.
- macl: Huang et al. 2023, table 9, in short: ResNet-18, τ = 0.1 for all, 20 epochs where the paper has 200.
- pinda: ResNet-18 with the 3x3 stem, batch 256, τ = 0.1, the generator a ResNet-18 with a decoder. The number
  of steps is set from a trial of 20 steps, so that the learning rate's course ends when the minutes do.
"""

from __future__ import annotations

import argparse
import json
import runpy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from clutils import data, figures, losses, measures, training
from clutils.course import records
from clutils.course.pinda import maps as noise_maps

TRIAL = 20
ASKED = {"gpu-3min": (0.83, 180), "gpu-10min": (0.90, 600)}  # kNN with k = 10, seconds
RECIPES = runpy.run_path(str(Path(__file__).with_name("recipes.py")))
LOSSES = {
    "NT-Xent": lambda: losses.NTXent(0.1),
    "DCL": lambda: losses.Decoupled(0.1),
    "FlatNCE": lambda: losses.FlatNCE(0.1),
    "dual temperature": lambda: losses.DualTemperature(0.1),
    "MACL": lambda: losses.MACL(0.1),
}


def begun(method: str, options: argparse.Namespace, train: data.ImageSet, steps: int) -> training.Run:
    learned = {"network": options.network, "on": "view", "penalty": options.penalty}
    return training.Run(
        method=method,
        loss=losses.NTXent(0.1),
        data=train,
        encoder=options.encoder,
        batch_size=options.batch_size,
        steps=steps,
        seed=options.seed,
        learning_rate=options.learning_rate,
        method_settings=learned if method == "pinda" else {},
    )


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def measured(
    method: str, options: argparse.Namespace, train: data.ImageSet, test: data.ImageSet
) -> tuple[training.Run, dict[str, Any]]:
    trial = begun(method, options, train, 10 * TRIAL)
    for step in range(TRIAL + 3):
        if step == 3:  # the first steps choose algorithms and take memory
            wait()
            began = time.perf_counter()
        trial.step()
    wait()
    steps = max(TRIAL, round(60 * options.minutes * TRIAL / (time.perf_counter() - began)))
    del trial
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    run = begun(method, options, train, steps)
    began = time.perf_counter()
    run.finish()
    wait()
    seconds = time.perf_counter() - began
    bank, z = run.embed(train), run.embed(test)
    row = {"method": method, "steps": steps, "seconds": seconds}
    row["pictures_per_s"] = steps * options.batch_size / seconds
    row["peak_gib"] = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else None
    for k in (5, 10, 200):
        row[f"knn_{k}"] = measures.knn_accuracy(bank, train.labels, z, test.labels, k=min(k, len(bank)))
    row["probe"] = measures.linear_probe(bank, train.labels, z, test.labels)
    return run, row


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


def pinda_beside_simclr(options: argparse.Namespace, train: data.ImageSet, test: data.ImageSet) -> None:
    rows = []
    for method in ("simclr", "pinda"):
        run, row = measured(method, options, train, test)
        rows.append(row)
        show(row)
    keep(options.out, "gpu", rows, options)
    if options.out:
        shown = test.images[:8]
        drawn = run.method.noise.eval()(shown.to(run.device), torch.Generator().manual_seed(0))
        scale = noise_maps.of(run.method.noise, shown)[0]
        page = figures.noise.noise(shown, scale, drawn.sample.detach().cpu())
        (options.out / "noise_maps.png").write_bytes(figures.png(page))


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
    beside = add("pinda", pinda_beside_simclr, seeds=False)
    beside.add_argument("--minutes", type=float, default=10.0, help="for each of the two")
    beside.add_argument("--network", default="resnet18", help="the generator's")
    beside.add_argument("--penalty", type=float, default=3.0)
    beside.add_argument("--batch-size", type=int, default=256)
    beside.add_argument("--learning-rate", type=float, default=1e-3, help="the paper's")
    beside.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    train, test = data.load(options.source), data.load(options.source, "test")
    if options.source.startswith("folder:"):
        train.source = f"{len(train):,} of CIFAR-10 (JPEG copies)"
    options.task(options, train, test)


if __name__ == "__main__":
    main()

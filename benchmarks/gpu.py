r"""What waits for a GPU: the whole course once, recipes, a profile, PiNDA's arms, MACL's table 9 in short.

    python benchmarks/gpu.py all --out runs/gpu --minutes 9      all that follows, in this order
    python benchmarks/gpu.py tour --out runs/gpu       each notebook, each method for 40 s, the lab
    python benchmarks/gpu.py profile --out runs/gpu    where the time of ten steps goes
    python benchmarks/gpu.py tries --out runs/gpu      the recipe's learning rate and temperature
    python benchmarks/gpu.py recipes --out runs/gpu    is kNN(10) 0.80 after 3 minutes, 0.875 after 10?
    python benchmarks/gpu.py pinda --out runs/gpu      SimCLR, random noise, PiNDA: 40 epochs each
    python benchmarks/gpu.py macl --out runs/gpu       five losses at batch 64 and 256

Each on CIFAR-10, or on a folder with its classes (--source folder:PATH, with train/ and test/ in it), three
seeds. A line is added to OUT/TASK.jsonl as each notebook, method or run is done. A run keeps a checkpoint
there every five minutes, and when it is stopped or the minutes are over. The same command then goes on: what
has a line is left out, what failed is tried again. (Judging a run comes after its minutes: leave it some.)

- all: notebooks are run with CLUTILS_FAST, so that a first call says quickly what does not work.
- recipes: `gpu-3min` and `gpu-10min` of `benchmarks/recipes.py`, judged after the last step; nothing is
  chosen on the test images. --record adds to the same record.
- pinda: ResNet-18 with the 3x3 stem, batch 256, τ = 0.1, the same steps for all arms; the generator is a
  ResNet-18 with a decoder, learns at the paper's 1e-3 as the encoder does, and starts from σ = 0.02.
- macl: Huang et al. 2023, table 9, in short: ResNet-18, τ = 0.1 for all, 20 epochs where the paper has 200.

On a CPU, to see that it works and for nothing else:

    python benchmarks/gpu.py all --source digits --encoder conv16 --steps 4 --seeds 0 --seconds 1 --out runs/x
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import recipes as cookbook
import torch

from clutils import data, encoders, losses, measures, methods, training, views
from clutils.course import arms as equal
from clutils.course import lab as lesson
from clutils.course import records
from clutils.methods.base import autocast
from clutils.training import provenance

STOPPED = threading.Event()  # by a signal
# learning rate and temperature of gpu-3min; the first are the public recipe's own
TRIES = ((0.12, 0.5), (0.6, 0.5), (0.6, 0.2))
RMS = 0.05  # of the noise of four arms with equal amounts
ASKED = {"gpu-3min": (0.80, 180), "gpu-10min": (0.875, 600)}  # kNN with k = 10, seconds
LOSSES = {
    "NT-Xent": losses.NTXent,
    "DCL": losses.Decoupled,
    "FlatNCE": losses.FlatNCE,
    "dual temperature": losses.DualTemperature,
    "MACL": losses.MACL,
}
Unit = tuple[dict[str, Any], Callable[[], dict[str, Any]]]  # what tells it from the others, and its doing


class OutOfTime(Exception):
    """The minutes are over; what was learned until then is in a checkpoint."""


class Task:
    """The images, the options, and what is done of a task."""

    def __init__(self, options: argparse.Namespace, train: data.ImageSet, test: data.ImageSet) -> None:
        self.options, self.train, self.test = options, train, test
        self.end = time.monotonic() + 60 * options.minutes
        pictures = training.checkpoint.sampled(train.images)
        self.common = {"source": train.source, "pictures": pictures, "encoder": options.encoder}
        self.kept: list[Path] = []  # the checkpoints of what has no line yet
        self.resumed = False

    def go(self, name: str, units: Iterator[Unit]) -> bool:
        """Do what has no line in OUT/NAME.jsonl yet, and add its line; whether nothing went wrong.

        What fails gets a line with its error, and is tried again by the next call. Raises OutOfTime.
        """
        file, fine = self.options.out / f"{name}.jsonl", True
        done = [line for line in _lines(file) if not line.get("error") and not line.get("errors")]
        for own, do in units:
            key = self.common | own
            if any(line.items() >= key.items() for line in done):
                continue
            if time.monotonic() > self.end:
                raise OutOfTime
            self.kept, self.resumed = [], False
            try:
                row = key | do()
            except OutOfTime:
                raise
            except Exception as error:  # the others are tried all the same
                row = key | {"error": f"{type(error).__name__}: {error}"}
            fine = fine and not row.get("error") and not row.get("errors")
            shown = (f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())
            print(name, *shown, flush=True)
            cut = file.exists() and not file.read_text().endswith("\n")
            with file.open("a") as opened:
                opened.write("\n" * cut + json.dumps(row | provenance.provenance()) + "\n")
            if not row.get("error"):
                for checkpoint in self.kept:
                    checkpoint.unlink(missing_ok=True)
        return fine

    def trained(
        self,
        key: dict[str, Any],
        begin: Callable[[], training.Run],
        prepared: Callable[[training.Run], training.Run] = lambda run: run,
    ) -> training.Run:
        """A run, from its checkpoint in OUT where there is one, to its end; a checkpoint every five minutes.

        `prepared` does what a checkpoint does not keep. When the run is interrupted or the minutes are over
        there is a checkpoint, too. Raises OutOfTime.
        """
        name = hashlib.sha256(json.dumps(self.common | key, sort_keys=True).encode()).hexdigest()[:16]
        kept = self.options.out / f"{name}.pt"
        self.kept.append(kept)
        self.resumed = kept.exists()
        run = prepared(training.resume(kept, data=self.train) if self.resumed else begin())
        saved = time.monotonic()
        try:
            while not run.done:
                run.step()
                if time.monotonic() > self.end and not run.done:
                    raise OutOfTime
                if time.monotonic() > saved + 300:
                    run.save(kept)
                    saved = time.monotonic()
        finally:
            if run.steps_done:
                run.save(kept)
        return run

    def steps(self, epochs: int, batch_size: int) -> int:
        return self.options.steps or epochs * (len(self.train) // batch_size)


def _lines(file: Path) -> list[dict[str, Any]]:
    """Those of a .jsonl file; one that was cut half-written is left out."""
    found = []
    for line in file.read_text().splitlines() if file.exists() else ():
        with contextlib.suppress(json.JSONDecodeError):
            found.append(json.loads(line))
    return found


def recipes(task: Task) -> Iterator[Unit]:
    """The two recipes, three seeds, and whether they reach what is asked of them."""
    options = task.options

    def one(name: str, seed: int) -> dict[str, Any]:
        def train(run: training.Run) -> training.Run:
            return task.trained({"recipe": name, "seed": seed, "steps": run.steps}, lambda: run)

        row = cookbook.measured(name, task.train, task.test, seed, options.steps, train)
        if options.record and options.encoder == "resnet18":
            length = "" if options.steps is None else f" --steps {options.steps}"
            line = {"command": cookbook.command(name, str(seed), options.place) + length} | row
            records.append(cookbook.NAME, line)
        asked, limit = ASKED[name]
        reached = "reached" if row["knn_10"] >= asked and row["seconds"] <= limit else "missed"
        if task.resumed:  # it compiled more than once
            reached = "its time is not that of one go"
        return row | {"asked": f"kNN(10) {asked} in {limit} s: {reached}"}

    for name in ASKED:
        for seed in options.seeds:
            steps = options.steps or cookbook.RECIPES[name]["steps"]
            key = {"recipe": name, "seed": seed, "steps": steps}
            yield key, lambda name=name, seed=seed: one(name, seed)


def tries(task: Task) -> Iterator[Unit]:
    """Ten seconds of the first recipe by each of TRIES; kNN of 5,000 training images, no test image."""
    options = task.options
    order = torch.randperm(len(task.train), generator=torch.Generator().manual_seed(1))
    held = len(order) // 10
    asked, bank = (task.train.subset(part) for part in (order[:held], order[held : held + 20_000]))

    def one(steps: int, **tried: float) -> dict[str, Any]:
        run = cookbook.begun("gpu-3min", task.train, 0, steps, **tried).finish(progress=False)
        found = cookbook.judged(run.embed, bank, asked, probe=False)
        return {"knn_10": found["knn_10"], "loss": run.rows[-1]["loss"], "seconds": run.rows[-1]["seconds"]}

    for rate, temperature in TRIES:
        case = {"steps": options.steps or 320, "learning_rate": rate, "temperature": temperature}
        yield case, lambda case=case: one(**case)


def profile(task: Task) -> Iterator[Unit]:
    """A table of ten steps of the first recipe; compiled or not, its parts and images a second; views."""
    yield {"profile": "ten steps"}, lambda: table(task)
    for compiled in (True, False):
        asked = {"compile": compiled}
        yield asked, lambda asked=asked: pace(task, **asked)
    for pixels, number in ((32, 512), (96, 256)):
        yield {"views of": pixels, "batch_size": number}, lambda of=(pixels, number): engines(*of)


def pace(task: Task, **settings: Any) -> dict[str, Any]:
    """Images a second of the first recipe with these settings; ms of a step, its views and its network."""
    began = time.perf_counter()
    run = cookbook.begun("gpu-3min", task.train, 0, **settings)
    run.step()
    wait()
    first = time.perf_counter() - began
    several(run.step, 15)  # the first steps choose algorithms and take memory
    step, usual = several(run.step, 40), run.augmentation
    ways = {}  # of the same run, with other engines of views

    def by_cpu(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return by_cpu_engine(usual, images, generator)

    for way, augment in (("not_ahead", usual), ("by_cpu_engine", by_cpu)):
        run._ahead, run._augmentation = None, augment
        ways[f"step_{way}_ms"] = several(run.step, 40)
    run.augmentation = usual
    images = run.images[run.batch_index()]
    view, encoder = run.augment(images, run.stream("views")), run.method.encoder

    def both_views() -> None:
        for _ in range(2):
            run.augment(images, run.stream("views"))

    def forward_and_backward() -> None:
        for _ in range(2):
            with autocast(run.device, run.method.half_type):
                encoder(encoders.as_input(view)).float().sum().backward()

    run.method.train()
    network = several(forward_and_backward, 20)
    run.optimiser.zero_grad()
    return {
        "pictures_per_s": 1000 * run.settings.batch_size / step,
        "step_ms": step,
        **ways,
        "views_ms": several(both_views, 20),
        "network_ms": network,
        "first_step_s": first,
        "memory_GB": torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_available() else math.nan,
    }


def engines(pixels: int, number: int) -> dict[str, Any]:
    """Milliseconds of a view of so many images: by a GPU's engine, eager and compiled, and by the CPU's."""
    device, augment = training.device(), views.Augmentation(size=pixels, blur=0.5 * (pixels > 32))
    images = torch.randint(0, 256, (number, 3, pixels, pixels), dtype=torch.uint8, device=device)
    drawn = augment.draw(number, pixels, pixels, torch.Generator().manual_seed(0))
    there = views.everywhere.packed(drawn, device)

    def batched() -> torch.Tensor:
        return by_cpu_engine(augment, images, None, drawn)

    def eager() -> torch.Tensor:
        return augment.apply_packed(images, there)

    def compiled() -> torch.Tensor:
        return augment.apply_packed(images, there, compiled=True)

    with torch.no_grad():
        apart = (batched() - eager()).abs().max().item(), (compiled() - eager()).abs().max().item()
        found = {f"{way.__name__}_ms": several(way, 30) for way in (batched, eager, compiled)}
        draw = several(lambda: augment.draw(number, pixels, pixels, torch.Generator().manual_seed(0)), 30)
    return found | {"draw_ms": draw, "batched_apart": apart[0], "compiled_apart": apart[1]}


def by_cpu_engine(augment: Any, images: torch.Tensor, generator: Any, drawn: Any = None) -> torch.Tensor:
    """The views that a CPU makes, by its own functions on the images' device."""
    if drawn is None:
        drawn = augment.draw(len(images), *images.shape[-2:], generator)
    boxes, flipped = drawn.boxes.to(images.device), drawn.flipped.to(images.device)
    drawn = replace(drawn, boxes=boxes, flipped=flipped)
    with torch.no_grad():
        view = views.crop_and_colour(images, drawn, augment.size)
        return views.change(
            view, drawn.sigma > 0, lambda x, sigma: views.blur(x, sigma, augment._kernel), drawn.sigma
        )


def several(do: Callable[[], object], times: int) -> float:
    """Milliseconds of one of so many, after two that aren't counted."""
    do(), do()
    wait()
    began = time.perf_counter()
    for _ in range(times):
        do()
    wait()
    return 1000 * (time.perf_counter() - began) / times


def table(task: Task) -> dict[str, Any]:
    """Ten steps of the first recipe under torch's profiler, in OUT/profile.txt."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as watched

    run = cookbook.begun("gpu-3min", task.train, 0)
    several(run.step, 10)
    on_gpu = torch.cuda.is_available()
    with watched(activities=[ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * on_gpu]) as found:
        ten = 10 * several(run.step, 8)
    averages = found.key_averages()
    by_kernel = averages.table(
        sort_by="self_cuda_time_total" if on_gpu else "self_cpu_time_total",
        row_limit=40,
        max_name_column_width=70,
    )
    by_call = averages.table(sort_by="self_cpu_time_total", row_limit=25, max_name_column_width=70)
    (task.options.out / "profile.txt").write_text(f"{by_kernel}\n{by_call}\n")
    return {"written": "profile.txt", "ten_steps_ms": ten}


def pinda(task: Task) -> Iterator[Unit]:
    """SimCLR without noise, with random noise of three strengths, and with PiNDA of two: equal steps."""
    options, batch_size = task.options, 256 if task.options.encoder == "resnet18" else 128
    learned = {
        "network": "resnet18" if options.encoder == "resnet18" else "conv",
        "start": 0.02,
        "noise_rate": 1.0,
    }
    arms: dict[str, dict[str, Any] | None] = {"no noise": None}
    arms |= {f"PiNDA, λ = {penalty:g}": {**learned, "penalty": penalty} for penalty in (1.0, 0.1)}
    arms |= {f"random noise, σ = {s}": {"network": "fixed", "start": s} for s in (0.02, 0.05, 0.1)}
    arms |= {f"{arm}, rms {RMS}": learned for arm in equal.ARMS}  # equal amounts, in different places

    def one(arm: str, seed: int, steps: int) -> dict[str, Any]:
        settings = arms[arm]
        run = task.trained(
            {"arm": arm, "seed": seed, "steps": steps},
            lambda: training.Run(
                method="simclr" if settings is None else "pinda",
                loss=losses.NTXent(0.1),
                data=task.train,
                encoder=options.encoder,
                batch_size=batch_size,
                steps=steps,
                seed=seed,
                learning_rate=1e-3,
                method_settings={} if settings is None else {**settings, "on": "view"},
            ),
            lambda run: equal.use(run, arm.split(",")[0], RMS) if arm.endswith(f"rms {RMS}") else run,
        )
        found = {"seconds": run.rows[-1]["seconds"], "noise": run.rows[-1].get("noise")}
        return cookbook.judged(run.embed, task.train, task.test) | found

    steps = task.steps(40, batch_size)
    for seed in options.seeds:
        for arm in arms:
            key = {"arm": arm, "seed": seed, "steps": steps}
            yield key, lambda arm=arm, seed=seed: one(arm, seed, steps)


def macl(task: Task) -> Iterator[Unit]:
    """Five losses at two sizes of batch, all else equal, for the same number of epochs."""
    options = task.options

    def one(name: str, batch_size: int, seed: int, steps: int) -> dict[str, Any]:
        run = task.trained(
            {"loss": name, "batch_size": batch_size, "seed": seed, "steps": steps},
            lambda: training.Run(
                loss=LOSSES[name](0.1),
                data=task.train,
                encoder=options.encoder,
                batch_size=batch_size,
                steps=steps,
                seed=seed,
            ),
        )
        return cookbook.judged(run.embed, task.train, task.test) | {"seconds": run.rows[-1]["seconds"]}

    for seed in options.seeds:
        for batch_size in (64, 256):
            for name in LOSSES:
                steps = task.steps(20, batch_size)
                case = {"name": name, "batch_size": batch_size, "seed": seed, "steps": steps}
                yield case, lambda case=case: one(**case)


def tour(task: Task) -> Iterator[Unit]:
    """Every notebook in this process, every method for a while, and the lab with its dials turned."""
    options, test = task.options, task.test
    bank, batch_size = task.train.subset(slice(0, 5000)), 256

    def of_method(method: str) -> dict[str, Any]:
        run = training.Run(method, None, task.train, options.encoder, steps=4000, batch_size=batch_size)
        before, began = knn(run, bank, test), math.inf
        while not run.done and time.perf_counter() - began < options.seconds:
            run.step()
            if run.steps_done == 5:  # the first steps choose algorithms and take memory
                wait()
                began = time.perf_counter()
        wait()
        rate = (run.steps_done - 5) * batch_size / (time.perf_counter() - began)
        found = {"pictures_per_s": rate, "steps": run.steps_done}
        return found | {"knn_before": before, "knn": knn(run, bank, test)}

    def turned() -> dict[str, Any]:
        lab = lesson.training_lab(
            data=task.train, encoder=options.encoder, steps=10**5, batch_size=batch_size
        )
        lab.start()
        for temperature in (0.5, 0.1, 1.0, 0.2):
            time.sleep(1)
            lab.set(temperature=temperature)
        lab.stop()
        found = {"status": lab.background.status, "turned": len(lab.current.changes)}
        if found["turned"] < 4 or lab.error.layout.display != "none":
            found["error"] = f"the lab: {found['status']} {lab.error.value}"
        return found | {"looks": len(lab.current.watcher.looks)}

    for path in sorted((records.ROOT / "notebooks").glob("*.ipynb")):
        if path.stem[:2] in options.notebooks or "all" in options.notebooks:
            yield {"notebook": path.stem}, lambda path=path: errors_of(path)
    for method in methods.catalogue("pictures"):
        yield {"method": method, "for": options.seconds}, lambda method=method: of_method(method)
    yield {"lab": "dials turned"}, turned


def errors_of(notebook: Path) -> dict[str, Any]:
    """What went wrong in its cells, run one after the other in this process, in short runs."""
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()  # without one, `display` gives nothing to update
    found, here, began = [], Path.cwd(), time.perf_counter()
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    os.chdir(notebook.parent)
    os.environ["CLUTILS_FAST"] = "1"
    try:
        for number, cell in enumerate(cells):
            with contextlib.redirect_stdout(io.StringIO()):
                result = shell.run_cell("".join(cell["source"]))
            error = result.error_before_exec or result.error_in_exec
            if STOPPED.is_set() or isinstance(
                error, KeyboardInterrupt
            ):  # a run's `finish` takes an interrupt
                raise KeyboardInterrupt
            if error is not None:
                found.append(f"code cell {number}: {type(error).__name__}: {error}")
    finally:
        os.chdir(here)
        del os.environ["CLUTILS_FAST"]
    return {"errors": found, "seconds": time.perf_counter() - began}


def knn(run: training.Run, bank: data.ImageSet, test: data.ImageSet) -> float:
    z, judged = run.embed(bank), run.embed(test)
    return measures.knn_accuracy(z, bank.labels, judged, test.labels, k=min(20, len(bank)))


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def first_recipe(task: Task) -> Iterator[Unit]:
    """gpu-3min, once."""
    yield next(recipes(task))


def stop(*_: object) -> None:
    STOPPED.set()
    raise KeyboardInterrupt


TASKS = {f.__name__: f for f in (tour, profile, tries, recipes, pinda, macl)}
ALL = (  # file, units; what is wanted first comes first
    ("tour", tour),
    ("profile", profile),
    ("recipes", first_recipe),
    ("pinda", pinda),
    ("recipes", recipes),
    ("macl", macl),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("task", choices=("all", *TASKS))
    parser.add_argument("--out", type=Path, required=True, help="folder for what is written")
    parser.add_argument("--minutes", type=float, default=600.0, help="after them nothing new is begun")
    parser.add_argument("--source", default="cifar10", help="as in data.load; default: cifar10")
    parser.add_argument("--encoder", choices=encoders.NAMES, default="resnet18")
    parser.add_argument("--seeds", type=int, nargs="+", default=(0, 1, 2))
    parser.add_argument("--steps", type=int, help="another length of the runs of recipes, pinda and macl")
    parser.add_argument("--seconds", type=float, default=40.0, help="of tour, for each method")
    parser.add_argument("--notebooks", nargs="+", default=("all",), help="of tour: their numbers, or 'none'")
    parser.add_argument("--record", action="store_true", help="of recipes: in benchmarks/records/, too")
    options = parser.parse_args()
    known = {path.stem[:2] for path in (records.ROOT / "notebooks").glob("[0-9]*.ipynb")} | {"all", "none"}
    if not set(options.notebooks) <= known:
        parser.error(
            f"--notebooks is {' '.join(options.notebooks)}, but there are {', '.join(sorted(known))}"
        )
    if options.steps is not None and options.steps < 1:
        parser.error(f"--steps is {options.steps}, but must be a whole number from 1 on")
    if options.encoder == "resnet18" and not torch.cuda.is_available():
        parser.error("torch sees no GPU here; to try it on a CPU, name a smaller --encoder, as conv16")
    try:
        train, test = data.load(options.source), data.load(options.source, "test")
    except (ValueError, OSError) as error:
        parser.error(str(error))
    options.place = cookbook.named(options.source, train, test)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.encoder != "resnet18":  # to try them without a GPU: neither compiled nor recorded
        for name in ASKED:
            cookbook.RECIPES[name] |= {"encoder": options.encoder, "compile": False, "batch_size": 128}
    task = Task(options, train, test)
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        work = ALL if options.task == "all" else ((options.task, TASKS[options.task]),)
        fine = [task.go(name, units(task)) for name, units in work]
    except OutOfTime:
        print("the minutes are over: the same command goes on from here")
    except KeyboardInterrupt:
        print("stopped: the same command goes on from here")
    else:
        print("all of it is done" if all(fine) else "all was tried; the same command tries again what failed")


if __name__ == "__main__":
    main()

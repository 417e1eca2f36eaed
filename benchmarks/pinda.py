"""PiNDA at length: where its noise goes, and what it is worth.

    python benchmarks/pinda.py maps scenes                       generated scenes, plain backgrounds
    python benchmarks/pinda.py maps scenes-hard                  with textured backgrounds
    python benchmarks/pinda.py maps folder:PATH --measured-on folder:OTHER       your own; OTHER has masks
    python benchmarks/pinda.py baselines scenes                  maps that cost nothing, on the same masks
    python benchmarks/pinda.py along scenes --steps 1600         long runs, measured on the way
    python benchmarks/pinda.py help vectors:digits
    python benchmarks/pinda.py help scenes
    python benchmarks/pinda.py cost scenes

Prints a line a run; with --record it is also added to pinda_maps.csv, pinda_baselines.csv, pinda_along.csv,
pinda_help.csv or pinda_cost.csv in benchmarks/records/, which notebook 10 shows. A run that the record holds
already is left out, so an interrupted recording goes on where it stopped. --variants, --seeds and --steps
choose among the runs.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from typing import Any

from clutils import data, training
from clutils.course import records
from clutils.course.pinda import experiments as noise_experiments
from clutils.course.pinda import maps as noise_maps
from clutils.data import ImageSet, VectorSet

SEEDS = (0, 1, 2)
BASE: dict[str, Any] = {"penalty": 3.0, "noise_rate": 1.0}
# each changes one thing of the base: plain convolutions, softplus, reflected borders, SimCLR's views, λ = 3
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "base": ({}, {}),
    "no other augmentation": ({}, {"augmentation": "none"}),
    "noise on the view": ({"on": "view"}, {}),
    "λ = 1": ({"penalty": 1.0}, {}),
    "λ = 30": ({"penalty": 30.0}, {}),
    "exp": ({"positive": "exp"}, {}),
    "bounded at 1.5": ({"positive": "bounded", "highest": 1.5}, {}),
    "normalised to 0.3": ({"rms": 0.3}, {}),
    "uniform": ({"distribution": "uniform"}, {}),
    "μ learned": ({"learned_mean": True}, {}),
    "U-Net": ({"network": "unet"}, {}),
    "U-Net, zero padding": ({"network": "unet", "padding": "zeros"}, {}),
    "encoder frozen": ({}, {"frozen": True}),
    "generator five times slower": ({"noise_rate": 0.2}, {}),
}


def pictures(options: argparse.Namespace) -> tuple[ImageSet, ImageSet]:
    """Those to train on, and those with masks."""
    source, size = options.source, options.size
    if source.startswith("folder:"):
        train = data.load(source, size=size)
        masked = data.load(options.measured_on or source, size=size)
        if masked.masks is None:
            raise SystemExit(
                f"{options.measured_on or source} has no masks: --measured-on names some that have"
            )
        return train, masked
    return data.load(source, size=size, limit=options.count), data.load(source, "test", size=size, limit=200)


def maps(options: argparse.Namespace) -> None:
    train, test = pictures(options)
    name = options.called or options.source.split(":")[0]
    columns = ("pictures", "size", "variant", "seed", "steps")
    done = records.known("pinda_maps", *columns) if options.record else set()
    for seed in options.seeds:
        for variant in options.variants or VARIANTS:
            if (name, options.size, variant, seed, options.steps) in done:
                continue
            settings, others = VARIANTS[variant]
            _, _, row = noise_experiments.learned_maps(
                train, test, BASE | settings, steps=options.steps, seed=seed, **others
            )
            command = (
                f"python benchmarks/pinda.py maps {shown(options.source)} --size {options.size} "
                f'--steps {options.steps} --variants "{variant}" --seeds {seed} --record'
            )
            head = {"command": command, "pictures": name, "size": options.size, "trained_on": len(train)}
            records.keep(
                "pinda_maps", head | {"measured_on": len(test), "variant": variant} | row, options.record
            )


def baselines(options: argparse.Namespace) -> None:
    """What maps that cost nothing score on the same masks; nothing is trained."""
    _, test = pictures(options)
    name = options.called or options.source.split(":")[0]
    done = records.known("pinda_baselines", "pictures", "size") if options.record else set()
    if (name, options.size) in done:
        return
    command = f"python benchmarks/pinda.py baselines {shown(options.source)} --size {options.size} --record"
    head = {"command": command, "pictures": name, "size": options.size, "measured_on": len(test)}
    told = noise_maps.measure(noise_maps.detector_maps(test), test.masks)
    for row in told.to_dict("records"):
        records.keep("pinda_baselines", head | row, options.record)


def along(options: argparse.Namespace) -> None:
    """Long runs of generated scenes, measured on the way; the step of a row is not the run's length."""
    train, test = pictures(options)
    columns = ("pictures", "variant", "seed", "steps")
    done = records.known("pinda_along", *columns) if options.record else set()
    for seed in options.seeds:
        for variant in options.variants or ("base",):
            if (options.source, variant, seed, options.steps) in done:
                continue
            settings, others = VARIANTS[variant]
            _, watch, row = noise_experiments.learned_maps(
                train,
                test,
                BASE | settings,
                steps=options.steps,
                seed=seed,
                every=math.ceil(options.steps / 16),
                **others,
            )
            command = (
                f"python benchmarks/pinda.py along {options.source} --steps {options.steps} "
                f'--variants "{variant}" --seeds {seed} --record'
            )
            head = {"command": command, "pictures": options.source, "variant": variant, "seed": seed}
            head |= {"steps": options.steps, "object_indifference": row["object_indifference"]}
            for each in noise_experiments.along(watch, test):
                records.keep("pinda_along", head | each, options.record)


def help_(options: argparse.Namespace) -> None:
    source, name = options.source, options.called or options.source
    if source.startswith("vectors:"):
        train, test = (data.load(source, s) for s in ("train", "test"))
        cases = [(None, contender) for contender in noise_experiments.CONTENDERS]
    else:
        train = data.load(source, limit=options.count, size=options.size)
        test = data.load(source, "test", size=options.size)
        if options.classes:
            train, test = train.classes(options.classes), test.classes(options.classes)
        cases = [(views, c) for views in (None, "simclr") for c in noise_experiments.CONTENDERS]
    columns = ("pictures", "contender", "augmentation", "seed", "steps")
    done = records.known("pinda_help", *columns) if options.record else set()
    for seed in options.seeds:
        for views, contender in cases:
            if (name, contender, views or "none", seed, options.steps) in done:
                continue
            if options.variants and contender not in options.variants:
                continue
            _, row = noise_experiments.does_it_help(
                contender, train, test, views, steps=options.steps, seed=seed
            )
            command = (
                f"python benchmarks/pinda.py help {shown(source)} --steps {options.steps} "
                f'--variants "{contender}" --seeds {seed} --record'
            )
            records.keep(
                "pinda_help",
                {"command": command, "pictures": name, "source": described(train)} | row,
                options.record,
            )


def cost(options: argparse.Namespace) -> None:
    """Seconds a step with and without a generator, taking turns, as a ratio in one run."""
    train, _ = pictures(options)
    cases = {"SimCLR": ("simclr", {}), "random noise": ("pinda", {"network": "fixed"}), "CLAE": ("clae", {})}
    cases |= {f"PiNDA, {n}": ("pinda", {"network": n}) for n in ("conv", "unet", "resnet18")}
    runs = {
        name: training.Run(
            method=method,
            data=train,
            encoder=options.encoder,
            batch_size=options.batch_size,
            steps=1000,
            method_settings=settings,
        )
        for name, (method, settings) in cases.items()
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(options.turns + 1):
        for name, run in runs.items():
            run.step()  # brings its weights back into the cache, where another run's have been
            began = time.perf_counter()
            for _ in range(3):
                run.step()
            if turn:  # the first warms up
                times[name].append((time.perf_counter() - began) / 3)
    for name, took in times.items():
        ratios = [a / b for a, b in zip(took, times["SimCLR"], strict=True)]
        generator = getattr(runs[name].method, "noise", None)
        row = {
            "command": f"python benchmarks/pinda.py cost --encoder {options.encoder} --record",
            "encoder": options.encoder,
            "size": options.size,
            "batch_size": options.batch_size,
            "contender": name,
            "parameters": sum(p.numel() for p in generator.parameters()) if generator else 0,
            "step_seconds": statistics.median(took),
            "ratio": statistics.median(ratios),
            "lowest_ratio": min(ratios),
            "highest_ratio": max(ratios),
        }
        records.keep("pinda_cost", row, options.record)


def shown(source: str) -> str:
    """A source as a record names it, without the path of this machine."""
    return "folder:PATH" if source.startswith("folder:") else source


def described(train: ImageSet | VectorSet) -> str:
    return f"{len(train):,} pictures of a folder" if "folder" in train.source else train.source


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("maps", "baselines", "along", "help", "cost"))
    parser.add_argument("source", nargs="?", default="scenes")
    parser.add_argument("--measured-on", help="a folder that has masks, where the other has none")
    parser.add_argument("--classes", nargs="+", help="of a folder, for help: these classes alone")
    parser.add_argument("--called", help="what the record calls the pictures of a folder")
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--count", type=int, default=4000, help="generated pictures to train on")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--variants", nargs="+")
    parser.add_argument("--encoder", default="conv16")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    {"maps": maps, "baselines": baselines, "along": along, "help": help_, "cost": cost}[options.what](options)


if __name__ == "__main__":
    main()

"""Metric recipes on CIFAR-10, seed by seed, into a record; and the table of them in benchmarks/README.md.

    python benchmarks/recipes.py cpu-1min --pictures folder:PATH --record
    python benchmarks/recipes.py gpu-3min --pictures cifar10 --record
    python benchmarks/recipes.py cpu-1min --pictures digits --steps 20 --seeds 0
    python benchmarks/recipes.py --table

folder:PATH is CIFAR-10 as class-named folders of images in PATH/train and PATH/test.
Judged are the features after the last step, on the whole test split: kNN with k = 10 and 200, its bank the
images trained on, and a linear probe of the same; beside them kNN of raw pixels, kNN and probe of the
encoder before its first step. Nothing was chosen on the test split. Seconds are those spent in steps.

With --record a run's line is added to benchmarks/records/recipes.csv, and one that is there already left out.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from clutils import data, losses, measures, training, views
from clutils.course import records

NAME = "recipes"
CPU = {"temperature": 0.2, "batch_size": 256}
# the public recipe, dkobak/simclr-cifar10, with twice its batch, five times its learning rate for that, and
# 0.2 for its temperature of 0.5: best of three tries of ten seconds (`gpu.py tries` at 62436fd); after
# 4,200 steps a rate of 0.25 did no better. Views of 24 pixels take half the time, and an object has in them
# about the size that it has in a whole image (Touvron et al. 2019, "Fixing the train-test resolution
# discrepancy", arXiv 1906.06423)
GPU = {
    "temperature": 0.2,
    "encoder": "resnet18",
    "batch_size": 1024,
    "learning_rate": 0.6,
    "optimiser": "sgd",  # weight decay 5e-4
    "precision": "bfloat16",
    "compile": True,
    "method_settings": {"hidden": 1024},
    "augmentation": {"size": 24, "grayscale": 0.1},
}
RECIPES: dict[str, dict[str, Any]] = {
    "cpu-1min": {**CPU, "encoder": "conv16", "steps": 646, "limit": 10_000},
    "cpu-10min": {**CPU, "encoder": "conv32", "steps": 3105},
    "gpu-3min": {**GPU, "steps": 6400},  # 131 epochs: 39 s until the first step, then 18.5 ms each on an H200
    "gpu-10min": {**GPU, "steps": 29_500},  # 604 epochs
}
SAME_RUN = ("recipe", "source", "seed", "steps")
CIFAR = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
START, END = "<!-- recipes: begin -->", "<!-- recipes: end -->"
README = records.ROOT / "benchmarks" / "README.md"


def command(name: str, seeds: str = "0 1 2", place: str = "folder:PATH") -> str:
    return f"python benchmarks/recipes.py {name} --pictures {place} --seeds {seeds} --record"


def begun(
    name: str, train: data.ImageSet, seed: int, steps: int | None = None, **otherwise: Any
) -> training.Run:
    """The run of a recipe, before its first step; steps: another length; otherwise: other settings."""
    settings = {**RECIPES[name], **otherwise}
    settings.pop("limit", None)
    loss = losses.NTXent(settings.pop("temperature"))
    if steps is not None:
        settings["steps"] = steps
    if train.images.shape[1] == 3:
        given = settings.pop("augmentation", {})
        size = {"size": train.images.shape[-1]}
        settings["augmentation"] = views.Augmentation(**size | given)
    else:
        settings["augmentation"] = None  # what suits the images
    return training.Run(loss=loss, data=train, seed=seed, **settings)


def judged(embed, train: data.ImageSet, test: data.ImageSet, probe: bool = True) -> dict[str, float]:
    where = training.device()  # a GPU finds neighbours in a moment
    bank, z = embed(train).to(where), embed(test).to(where)
    found = {
        f"knn_{k}": measures.knn_accuracy(bank, train.labels, z, test.labels, k=min(k, len(bank)))
        for k in (10, 200)
    }
    if probe:
        found["probe"] = measures.linear_probe(bank, train.labels, z, test.labels)
    return found


def finished(run: training.Run) -> training.Run:
    return run.finish(progress=False)


def measured(
    name: str,
    train: data.ImageSet,
    test: data.ImageSet,
    seed: int,
    steps: int | None = None,
    finish: Callable[[training.Run], training.Run] = finished,
) -> dict[str, Any]:
    """One run of a recipe: its line in the record, except where it was made.

    - finish: takes the run to its end; what it gives back is judged
    """
    run = begun(name, train, seed, steps)
    raw = judged(measures.raw_inputs, train, test, probe=False)
    untrained = judged(run.embed, train, test)
    run = finish(run)
    seconds = run.rows[-1]["seconds"]
    found = judged(run.embed, train, test)
    found |= {f"{k}_raw": v for k, v in raw.items()} | {f"{k}_untrained": v for k, v in untrained.items()}
    settings = {
        "recipe": name,
        "source": train.source,
        "seed": seed,
        "encoder": RECIPES[name]["encoder"],
        "steps": run.steps_done,
        "batch_size": run.settings.batch_size,
        "precision": run.settings.precision,
        "threads": run.settings.threads,
        "load": round(os.getloadavg()[0], 1),
        "seconds": round(seconds, 1),
        "pictures_per_s": round(run.steps_done * run.settings.batch_size / seconds),
    }
    return settings | {k: round(v, 4) for k, v in found.items()}


def named(source: str, train: data.ImageSet, test: data.ImageSet) -> str:
    """How a record calls a source of images; a folder's path is nobody's business, but whose copies it has.

    Sets `train.source` where it is a folder: CIFAR-10 if all of its test images are there.
    """
    if not source.startswith("folder:"):
        return source
    whole = len(test) == 10_000 and train.class_names == CIFAR
    train.source = f"{len(train):,} of {'CIFAR-10 (JPEG copies)' if whole else 'a folder of pictures'}"
    return "folder:PATH"


def table() -> str:
    """The recipes and what is on record of them at full length, as markdown."""
    try:
        recorded = records.read(NAME)
    except FileNotFoundError:
        recorded = None
    head = "| recipe | kNN, k = 10 | kNN, k = 200 | linear probe | seeds | training | machine | command |"
    lines = [head, "|" + "---|" * 8]
    for name, recipe in RECIPES.items():
        what = f"`{name}`: {recipe['encoder']}, {recipe['steps']:,} steps of {recipe['batch_size']}"
        what += f", {recipe.get('limit', 50_000):,} images"
        runs = None
        if recorded is not None:
            runs = recorded[(recorded["recipe"] == name) & (recorded["steps"] == recipe["steps"])]
            runs = runs[runs["source"].str.contains("CIFAR-10", regex=False)]
        if runs is None or runs.empty:
            lines.append(f"| {what} | {'not run | ' * 6}`{command(name)}` |")
            continue
        cells = [_range(runs[column]) for column in ("knn_10", "knn_200", "probe")]
        seeds = [str(seed) for seed in sorted(runs["seed"])]
        cells.append(", ".join(seeds))
        cells.append(f"{runs['seconds'].min():.0f} s")
        threads = ", ".join(str(n) for n in sorted(set(runs["threads"])))
        cells.append(f"{', '.join(sorted(set(runs['machine'])))}; threads: {threads}")
        lines.append(f"| {what} | {' | '.join(cells)} | `{command(name, ' '.join(seeds))}` |")
    return "\n".join(lines) + "\n"


def _range(values) -> str:
    here = "" if values.notna().all() else f", of {values.count()}"  # of the seeds
    return f"{values.mean():.3f} ({values.min():.3f} to {values.max():.3f}{here})"


def with_table(text: str) -> str:
    """README's text with the table as it is now."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n{table()}{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("recipe", nargs="?", choices=RECIPES)
    parser.add_argument("--pictures", default="cifar10", help="as in data.load; default: cifar10")
    parser.add_argument("--seeds", type=int, nargs="+", default=(0, 1, 2))
    parser.add_argument("--steps", type=int, help="another length than the recipe's, to try it")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--table", action="store_true", help="write the table in benchmarks/README.md again")
    options = parser.parse_args()
    if options.table:
        README.write_text(with_table(README.read_text()))
        return
    if options.recipe is None:
        parser.error(f"name a recipe: {', '.join(RECIPES)}")
    if options.steps is not None and options.steps < 1:
        parser.error(f"--steps is {options.steps}, but must be a whole number from 1 on")
    try:
        train = data.load(options.pictures, "train", RECIPES[options.recipe].get("limit"))
        test = data.load(options.pictures, "test")
    except (ValueError, OSError) as error:
        parser.error(str(error))
    place = named(options.pictures, train, test)
    steps = options.steps or RECIPES[options.recipe]["steps"]
    done = records.known(NAME, *SAME_RUN) if options.record else set()
    for seed in options.seeds:
        if (options.recipe, train.source, seed, steps) in done:
            print(f"seed {seed} is on record already: without --record it runs again", flush=True)
            continue
        row = measured(options.recipe, train, test, seed, options.steps)
        print(*(f"{k} {v}" for k, v in row.items()), flush=True)
        if options.record:
            length = "" if options.steps is None else f" --steps {options.steps}"
            records.append(NAME, {"command": command(options.recipe, str(seed), place) + length} | row)


if __name__ == "__main__":
    main()

"""The methods beside each other: SimCLR's augmentations two by two, and what a step costs.

    python benchmarks/methods.py composition        SimCLR with every one and every two of five augmentations
    python benchmarks/methods.py cost               seconds, parameters and memory of a step of every method
    python benchmarks/methods.py share              of a step, how much is the comparing, by batch size

Prints a line a run; with --record it is also added to methods_WHAT.csv in benchmarks/records/, which notebook
11 shows. A run that the record holds already is left out, so an interrupted recording goes on where it
stopped. --methods, --seeds, --steps and --batch-sizes choose among the runs. All runs are of generated scenes
and the encoder conv16; an augmentation is drawn for both views.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import torch

from clutils import data, measures, training, views
from clutils.course import experiments, records

# what each augmentation is when it is on, as in SimCLR's chain; without it the value that changes nothing
ALONE: dict[str, dict[str, Any]] = {
    "crop": {"crop_scale": (0.2, 1.0)},
    "colour": {"jitter": (0.4, 0.4, 0.4, 0.1)},
    "grayscale": {"grayscale": 0.2},
    "flip": {"flip": 0.5},
    "blur": {"blur": 0.5},
}
STEPS, BATCH, SEEDS = 300, 256, (0, 1)  # of `composition`
BATCH_SIZES = (64, 256, 1024)  # of `share`
METHODS = {"cost": ("simclr", "moco", "byol", "simsiam", "supcon"), "share": ("simclr", "byol")}


def composed(first: str, second: str) -> views.Augmentation:
    """Two of `ALONE`, or one of them named twice, and nothing else; 'none' is the image itself."""
    chosen = {name: value for each in {first, second} - {"none"} for name, value in ALONE[each].items()}
    return views.Augmentation(**(views.PRESETS["none"] | chosen))


def of_method(
    method: str, train: data.ImageSet, test: data.ImageSet, **settings: Any
) -> tuple[training.Run, dict[str, Any]]:
    """A method with its own loss and settings -> the run, and what its encoder has learned.

    - settings: further ones of `training.Run`
    - knn_untrained, knn: accuracy on the test images (k = 20) before the first step and after the last
    - effective_rank: of the test images' features; alignment, uniformity: of the last step
    - loss: mean of the last tenth of the steps; seconds: spent in steps
    """
    run = training.Run(method=method, data=train, encoder="conv16", **settings)
    return run, experiments.measured(
        run,
        ("method", "seed", "steps", "batch_size", "learning_rate", "precision"),
        lambda run: {
            "knn": experiments.accuracy(run.embed, train, test),
            "effective_rank": measures.effective_rank(run.embed(test)),
            "loss": experiments.late(run),
            **experiments.last(run, "alignment", "uniformity", "seconds"),
        },
        lambda run: {"knn_untrained": experiments.accuracy(run.embed, train, test)},
    )


def kept_for_backward(run: training.Run) -> int:
    """Bytes that a step's forward pass keeps for its backward pass, each storage counted once.

    The run goes on by no step, but its batch normalisation has seen one batch more.
    """
    kept: dict[int, int] = {}
    weights = {p.untyped_storage().data_ptr() for p in run.method.parameters()}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    chosen = slice(0, run.settings.batch_size)
    labels = run.labels[chosen] if run.method.uses_labels else None
    run.method.train()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss, *_ = run.method(run.images[chosen], run.augmentation, torch.Generator().manual_seed(0), labels)
    del loss
    return sum(kept.values())


def composition(options: argparse.Namespace) -> None:
    """The order of two is that of the chain, so each two are run once."""
    train, test = data.load("scenes"), data.load("scenes", "test")
    raw = experiments.accuracy(measures.raw_inputs, train, test)
    pairs = [("none", "none"), *combinations_with_replacement(ALONE, 2)]
    for seed in options.seeds or SEEDS:
        for first, second in pairs:
            steps = options.steps or STEPS
            row = {"first": first, "second": second, "method": "simclr", "seed": seed, "steps": steps}
            row["batch_size"] = BATCH
            if options.record and tuple(row.values()) in records.known("methods_composition", *row):
                continue
            augmentation = composed(first, second)
            _, found = of_method(
                "simclr",
                train,
                test,
                augmentation=augmentation,
                steps=steps,
                batch_size=BATCH,
                seed=seed,
                precision=options.precision,
            )
            command = (
                f"python benchmarks/methods.py composition --methods simclr --seeds {seed} --steps {steps}"
            )
            records.keep(
                "methods_composition",
                {"command": f"{command} --record", "source": train.source} | row | found | {"knn_raw": raw},
                options.record,
            )


def cost(options: argparse.Namespace) -> None:
    """Steps of every method in turns, so that a busy machine slows them alike."""
    train = data.load("scenes", limit=1024)
    runs = {name: training.Run(method=name, data=train, batch_size=256) for name in options.methods}
    taken = in_turns({name: run.step for name, run in runs.items()}, options.turns)
    for name, run in runs.items():
        learned = [p for p in run.method.parameters() if p.requires_grad]
        row = {"command": "python benchmarks/methods.py cost --record", "source": train.source}
        row |= {"method": name, "batch_size": run.settings.batch_size, "precision": run.settings.precision}
        row |= {"turns": options.turns, "threads": torch.get_num_threads()}
        for clock in ("processor", "wall"):
            ratios = [a / b for a, b in zip(taken[clock][name], taken[clock]["simclr"], strict=True)]
            row[f"{clock}_seconds"] = statistics.median(taken[clock][name])
            row[f"{clock}_ratio"] = statistics.median(ratios)
            row[f"{clock}_ratio_lowest"], row[f"{clock}_ratio_highest"] = min(ratios), max(ratios)
        row["parameters_trained"] = sum(p.numel() for p in learned)
        row["parameters_and_buffers"] = sum(t.numel() for t in run.method.state_dict().values())
        row["kept_for_backward_mb"] = kept_for_backward(run) / 1e6
        records.keep("methods_cost", row, options.record)


def share(options: argparse.Namespace) -> None:
    """The loss alone, forwards and backwards on embeddings, beside the whole step that it belongs to."""
    train = data.load("scenes", limit=max(options.batch_sizes))
    runs = {
        (name, size): training.Run(method=name, data=train, batch_size=size)
        for name in options.methods
        for size in options.batch_sizes
    }
    ways: dict[Any, Callable[[], object]] = {key: run.step for key, run in runs.items()}
    ways |= {(*key, "loss"): comparing(run) for key, run in runs.items()}
    taken = in_turns(ways, options.turns)["processor"]
    for (name, size), run in runs.items():
        shares = [a / b for a, b in zip(taken[name, size, "loss"], taken[name, size], strict=True)]
        row = {"command": "python benchmarks/methods.py share --record", "source": train.source}
        row |= {
            "method": name,
            "batch_size": size,
            "precision": run.settings.precision,
            "turns": options.turns,
        }
        row |= {"step_seconds": statistics.median(taken[name, size])}
        row |= {"loss_seconds": statistics.median(taken[name, size, "loss"])}
        row |= {"share": statistics.median(shares), "lowest": min(shares), "highest": max(shares)}
        records.keep("methods_share", row, options.record)


def comparing(run: training.Run) -> Callable[[], object]:
    """Calls of the loss in a step of the run's method: SimCLR once, BYOL and SimSiam in both directions."""
    z1, z2 = (torch.randn(run.settings.batch_size, run.method.out) for _ in range(2))
    both = run.loss.comparison == "both views"

    def step() -> None:
        for _ in range(1 if both else 2):
            run.loss(z1.clone().requires_grad_(), z2.clone().requires_grad_(both)).backward()

    return step


def in_turns(ways: dict[Any, Callable[[], object]], turns: int) -> dict[str, dict[Any, list[float]]]:
    """clock -> way -> seconds of a call in each turn; the first turn, and each first call, warm up."""
    taken: dict[str, dict[Any, list[float]]] = {"processor": {}, "wall": {}}
    for turn in range(turns + 1):
        for name, way in ways.items():
            way()  # brings its weights back into the cache, where another's have been
            processor, wall = time.process_time(), time.perf_counter()
            for _ in range(3):
                way()
            if turn:
                taken["processor"].setdefault(name, []).append((time.process_time() - processor) / 3)
                taken["wall"].setdefault(name, []).append((time.perf_counter() - wall) / 3)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    whats = {f.__name__: f for f in (composition, cost, share)}
    parser.add_argument("what", choices=whats)
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", help="0 1")
    parser.add_argument("--steps", type=int, help="of composition, 300")
    parser.add_argument("--batch-sizes", type=int, nargs="+")
    parser.add_argument("--precision", choices=("float32", "bfloat16"))
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    options.methods = options.methods or METHODS.get(options.what)
    options.batch_sizes = options.batch_sizes or BATCH_SIZES
    whats[options.what](options)


if __name__ == "__main__":
    main()

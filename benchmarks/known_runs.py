"""Runs recorded step by step, for `python -m clutils ruler --curve` to draw others over.

    python benchmarks/known_runs.py simclr-scenes moco-scenes
    python benchmarks/known_runs.py simclr-cifar10 moco-cifar10 --cifar folder:PATH     10,000 of CIFAR-10

Each writes its rows into clutils/figures/known_runs.csv, in the place of its earlier ones. The loss is the
mean of the last 20 steps. The rest is of test images: W and uniformity after the head, of two views of a
batch; rank and kNN of the features before it, kNN by a quarter of the training images' labels.
"""

from __future__ import annotations

import argparse
from typing import Any

import pandas as pd
import torch

from clutils import anatomy, data, files, losses, measures, similarities, training, views
from clutils.figures import known_runs

RUNS: dict[str, dict[str, Any]] = {
    "simclr-cifar10": {"encoder": "conv16", "method": "simclr", "steps": 1560},
    "simclr-scenes": {"encoder": "conv16", "method": "simclr", "steps": 600},
    "moco-scenes": {
        "encoder": "conv16",
        "method": "moco",
        "method_settings": {"queue_size": 1024},
        "steps": 600,
    },
    "moco-cifar10": {
        "encoder": "conv16",
        "method": "moco",
        "method_settings": {"queue_size": 2048},
        "steps": 1560,
    },
}
TEMPERATURE, BATCH, SEED, LOOKS = 0.2, 128, 0, 24


def recorded(name: str, cifar: str) -> list[dict[str, Any]]:
    """The rows of one run: at the start, and 24 times along it."""
    settings = RUNS[name]
    of = cifar if name.endswith("cifar10") else "scenes"
    limit = 10_000 if of == cifar else 4000
    train, test = data.load(of, limit=limit), data.load(of, split="test", limit=1000)
    loss = losses.NTXent(TEMPERATURE)
    run = training.Run(data=train, loss=loss, batch_size=BATCH, seed=SEED, threads=1, **settings)
    watcher = training.Watcher(test, train.subset(slice(0, len(train), 4)))
    queue = settings.get("method_settings", {}).get("queue_size")
    marks = anatomy.ruler(loss, BATCH, queue)
    assert marks.chance is not None and marks.best is not None
    seen = views.pair(test.images[:BATCH])
    every = settings["steps"] // LOOKS
    images = "CIFAR-10 (JPEG copies)" if name.endswith("cifar10") else "generated scenes"
    what = f"{settings['method']}, {settings['encoder']}, {len(train):,} images of {images}, "
    what += f"NT-Xent at τ = {TEMPERATURE}, batch {BATCH}{f', queue {queue}' if queue else ''}, seed {SEED}, "
    what += f"{settings['steps']} steps ({settings['steps'] * BATCH / len(train):.0f} epochs)"
    rows: list[dict[str, Any]] = []

    def look(now: training.Run) -> None:
        if now.steps_done % every:
            return
        z1, z2 = (similarities.normalise(now.project(view)) for view in seen)
        pairs = similarities.two_views(z1, z2)
        negatives, positives = pairs.negatives, pairs.positives
        if queue:
            positives = (z1 * z2).sum(dim=1, keepdim=True)
            negatives = z1 @ now.method.queue.T
        found = watcher.look(now, free=True, step=now.steps_done)
        late = [row["loss"] for row in now.rows[-min(every, 20) :]]
        value = sum(late) / len(late) if late else float("nan")
        rows.append(
            {
                "run": name,
                "step": now.steps_done,
                "loss": round(value, 4),
                "learned": round((marks.chance - value) / (marks.chance - marks.best), 4),
                "W": round(anatomy.gradient_scale(positives, negatives, TEMPERATURE).mean().item(), 4),
                "effective_rank": round(found.effective_rank, 2),
                "uniformity": round(measures.uniformity(torch.cat([z1, z2])), 3),
                "knn": round(found.knn, 4),
                "what": what,
                "command": f"python benchmarks/known_runs.py {name}",
            }
        )
        print({key: rows[-1][key] for key in list(rows[-1])[:8]}, flush=True)

    look(run)
    run.finish([look], progress=False)
    return [row | training.provenance.provenance() for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="+", choices=tuple(RUNS), metavar="RUN")
    parser.add_argument("--cifar", default="folder:cifar10", help="CIFAR-10 as folders of train and test")
    options = parser.parse_args()
    for name in options.names:
        rows = recorded(name, options.cifar)
        kept = known_runs.read() if known_runs.KEPT.exists() else pd.DataFrame(columns=list(rows[0]))
        table = pd.concat([kept[kept["run"] != name], pd.DataFrame(rows)], ignore_index=True)
        files.write_atomically(known_runs.KEPT, table.to_csv(index=False))


if __name__ == "__main__":
    main()

"""CLIP and SigLIP on scenes with captions: the gap against τ, what a caption leaves out, two batch sizes.

    python benchmarks/images_and_sentences.py --record [PART ...]

PART: "left out" (captions with and without the texture, and fresh networks), "temperatures" (CLIP at a fixed
τ) or "batches" (CLIP and SigLIP at batches of 16 and 256, as many images seen, at one learning rate). Without
one all of them, in this order. What is on record already is not run again. "temperatures" also writes a map
of each τ of seed 0 beside the record.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch

from clutils import data
from clutils.course import records
from clutils.course.images_and_sentences import experiments as lesson

SEEDS, SEEN = range(3), 6400
KEYS = ("part", "loss", "said", "batch", "steps", "rate", "temperature", "seed")


def rows(part: str) -> list[dict[str, Any]]:
    """The runs of a part: what differs from CLIP with full captions at the notebook's settings."""
    common = {"part": part, "loss": "CLIP", "said": "all", "batch": lesson.BATCH, "steps": lesson.STEPS}
    common |= {"rate": lesson.RATE, "temperature": "none"}
    if part == "left out":
        runs = [common | {"said": said} for said in ("all", "no texture")]
        runs.append(common | {"steps": 0})  # fresh
    elif part == "temperatures":
        runs = [common | {"temperature": tau} for tau in lesson.TEMPERATURES]
    else:
        sizes = [(loss, batch) for loss in ("CLIP", "SigLIP") for batch in (16, 256)]
        runs = [common | {"loss": loss, "batch": b, "steps": SEEN // b} for loss, b in sizes]
    return [run | {"seed": seed} for seed in SEEDS for run in runs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", default=("left out", "temperatures", "batches"))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    test = data.load("scenes", "test", limit=1000, size=lesson.SIZE)
    maps = {}
    for part in options.parts:
        for run in rows(part):
            if options.record and tuple(run[key] for key in KEYS) in records.known(lesson.RECORD, *KEYS):
                continue
            keep = {"keep": lesson.WITHOUT_TEXTURE} if run["said"] == "no texture" else {}
            images, words = lesson.pairs(seed=run["seed"], **keep)
            fixed = None if run["temperature"] == "none" else run["temperature"]
            model = lesson.start(run["loss"], run["batch"], run["seed"], fixed)
            settings = (run["steps"], run["batch"], run["seed"], run["rate"])
            values = lesson.train(model, run["loss"], images.images, words, *settings) if run["steps"] else []
            row = {"command": "python benchmarks/images_and_sentences.py --record"} | run
            row |= {"loss at the end": float(np.mean(values[-10:])) if values else float("nan")}
            records.keep(lesson.RECORD, row | lesson.measured(model, images, test), options.record)
            if (part == "temperatures" or not run["steps"]) and run["seed"] == 0:
                name = f"{run['temperature']:g}" if run["steps"] else "fresh"
                maps[name] = lesson.positions(model, test).astype(np.float16)
    if options.record and len(maps) == len(lesson.TEMPERATURES) + 1:
        np.savez_compressed(records.FOLDER / f"{lesson.MAPS}.npz", **maps)


if __name__ == "__main__":
    main()

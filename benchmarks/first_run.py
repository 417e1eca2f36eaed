"""First runs at full length: what NT-Xent learns in about a minute, with several seeds.

    python benchmarks/first_run.py scenes             with SimCLR's augmentation, and without colour jitter
    python benchmarks/first_run.py folder:/path/to/cifar10       four classes of CIFAR-10, as photographs
    python benchmarks/first_run.py scenes --steps 20 --seeds 0
    python benchmarks/first_run.py scenes --picture              README's figure, from the recorded map

Prints a line a run. With --record it is also added to benchmarks/records/first_run.csv, which notebook 03
shows; a run that the record already holds is left out, so an interrupted recording goes on where it stopped.
With --maps it is not, but t-SNE and UMAP of its test images are kept in first_run_maps.json beside it.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from clutils import data, figures, losses, maps, measures, training, views
from clutils.course import experiments, records

SEEDS = (0, 1, 2)
NAME = "first_run"
FOUR = ("automobile", "frog", "horse", "ship")
POINTS = 600  # of a recorded map
QUESTIONS = ("class", "bright", "right")  # of `experiments.readable`


def first_run(
    train: data.ImageSet, test: data.ImageSet, **settings: Any
) -> tuple[training.Run, dict[str, Any]]:
    """NT-Xent at τ = 0.2 on any images -> the run, and kNN (k = 20) before and after it.

    - settings: further ones of `training.Run`
    - knn_raw, knn_untrained, knn: accuracy on the test images by raw pixels, and by the encoder before its
      first step and after its last
    - knn_head: the same after the head, in the space that the loss sees
    - probe_class, probe_bright, probe_right, and the same with _head: see `experiments.readable`
    - loss: mean of the last tenth of the steps; alignment, uniformity: of the last step
    """

    def before(run: training.Run) -> dict[str, Any]:
        raw = experiments.accuracy(measures.raw_inputs, train, test)
        return {"knn_raw": raw, "knn_untrained": experiments.accuracy(run.embed, train, test)}

    def after(run: training.Run) -> dict[str, Any]:
        found = {
            "knn": experiments.accuracy(run.embed, train, test),
            "knn_head": experiments.accuracy(run.project, train, test),
        }
        for space, embed in (("", run.embed), ("_head", run.project)):
            read = experiments.readable(embed, train, test)
            found |= {f"probe_{name}{space}": read.get(name, math.nan) for name in QUESTIONS}
        return found | {"loss": experiments.late(run)} | experiments.last(run, "alignment", "uniformity")

    run = training.Run(loss=losses.NTXent(0.2), data=train, encoder="conv16", **settings)
    return run, experiments.measured(run, ("seed", "steps", "batch_size", "precision"), after, before)


def keep_maps(augmentation: str, run: training.Run, test: data.ImageSet, row: dict[str, Any]) -> None:
    """Put t-SNE and UMAP of this run's features into first_run_maps.json: a key for each augmentation."""
    path = records.FOLDER / f"{NAME}_maps.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    some = test.subset(slice(0, POINTS))
    z = run.embed(some)
    found = {"t-SNE": maps.tsne(z), "UMAP": maps.umap(z)}
    kept[augmentation] = row | records.provenance() | {"labels": some.labels.tolist()}
    for name, at in found.items():
        kept[augmentation][name] = [[round(float(x), 2) for x in point] for point in at]
    path.write_text(json.dumps(kept) + "\n")


def picture() -> Path:
    """README's figure: maps of the same test images by raw pixels, an untrained and the recorded encoder."""
    kept = json.loads((records.FOLDER / f"{NAME}_maps.json").read_text())["simclr"]
    some = data.load("scenes", split="test").subset(slice(0, POINTS))
    fresh = training.Run(data="scenes", encoder="conv16", seed=kept["seed"]).embed(some)
    found = {"raw pixels": maps.tsne(measures.raw_inputs(some)), "untrained": maps.tsne(fresh)}
    found["trained"] = np.array(kept["t-SNE"])
    drawn = figures.maps.side_by_side(found, some.labels, some.class_names)
    path = records.ROOT / "notebooks" / "pictures" / "before_and_after.png"
    image = Image.open(io.BytesIO(figures.png(drawn, scale=1.0)))
    image.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pictures", help="scenes, cifar10, or folder:PATH with CIFAR-10's class names")
    parser.add_argument("--augmentations", nargs="+", help="of views.PRESETS")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--steps", type=int, help="300 on scenes, 600 on photographs")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--maps", action="store_true")
    parser.add_argument("--picture", action="store_true", help="draw README's figure, and train nothing")
    options = parser.parse_args()
    if options.picture:
        print(picture())
        return
    name, limit = options.pictures, None
    if name != "scenes":
        name, limit = f"{len(FOUR)} classes of CIFAR-10", 20_000  # 2,000 of each class
    train, test = data.load(options.pictures, limit=limit), data.load(options.pictures, split="test")
    if name != "scenes":
        train, test = train.classes(FOUR), test.classes(FOUR)
    steps = options.steps or (300 if options.pictures == "scenes" else 600)
    augmentations = options.augmentations or (("simclr", "crop") if name == "scenes" else ("simclr",))
    columns = ("pictures", "augmentation", "seed", "steps")
    done = records.known(NAME, *columns) if options.record else set()
    for seed in options.seeds:
        for augmentation in augmentations:
            if (name, augmentation, seed, steps) in done:
                continue
            began = time.perf_counter()
            preset = views.preset(augmentation, train.images.shape[-1])
            run, found = first_run(
                train,
                test,
                augmentation=preset,
                steps=steps,
                batch_size=options.batch_size,
                seed=seed,
                learning_rate=options.learning_rate,
            )
            seconds = round(time.perf_counter() - began, 1)
            found = {k: round(v, 6) if isinstance(v, float) else v for k, v in found.items()}
            print(name, augmentation, *(f"{k} {v}" for k, v in found.items()), f"{seconds} s", flush=True)
            pictures = "scenes" if name == "scenes" else "folder:PATH"
            command = (
                f"python benchmarks/first_run.py {pictures} --steps {steps} --augmentations {augmentation} "
                f"--seeds {seed} --batch-size {options.batch_size} --learning-rate {options.learning_rate:g}"
            )
            row = {"pictures": name, "augmentation": augmentation, "source": f"{len(train):,} {name}"}
            row |= found | {"seconds": seconds}
            if options.record:
                records.append(NAME, {"command": command + " --record"} | row)
            if options.maps:
                keep_maps(augmentation, run, test, {"command": command + " --maps"} | row)


if __name__ == "__main__":
    main()

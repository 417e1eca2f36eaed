"""PiNDA at length: where its noise goes, and what it costs.

    python benchmarks/pinda.py maps scenes                       generated scenes, plain backgrounds
    python benchmarks/pinda.py maps scenes-hard                  with textured backgrounds
    python benchmarks/pinda.py photos folder:PHOTOS/images       photographs, with masks in PHOTOS/masks
    python benchmarks/pinda.py stl10 --out runs/stl10            STL-10's unlabelled part, its maps drawn
    python benchmarks/pinda.py stl10 folder:PATH --measured-on folder:OTHER     a sample; masks from OTHER
    python benchmarks/pinda.py ceilings scenes-hard              what networks find that are told the answer
    python benchmarks/pinda.py ceilings folder:PHOTOS/images     the same of photographs, halved as above
    python benchmarks/pinda.py along scenes --steps 1600         long runs, measured on the way
    python benchmarks/pinda.py planted                           the constructed set with a shortcut
    python benchmarks/pinda.py cost scenes

Maps are measured against the object and against its outline, beside what costs nothing, beside the untrained
generator's and maps given to other images, and beside the generator's network trained with the answer: the
object's masks, or the band along their outlines.
Of photographs one half is trained on and the other measured.

Prints a line a map or run; with --record numbers (and no images) are added to pinda_maps.csv,
pinda_ceilings.csv, pinda_along.csv, pinda_planted.csv or pinda_cost.csv in benchmarks/records/, which
notebook 10 shows. A run that the record holds already is left out, so an interrupted recording goes on where
it stopped. --variants, --seeds and --steps choose among the runs.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import math
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from clutils import data, figures, files, losses, measures, training, views
from clutils.course import experiments, records
from clutils.course.pinda import detectors
from clutils.course.pinda import experiments as noise_experiments
from clutils.data import ImageSet
from clutils.training import noise_maps

SHOWN = (
    *("network", "positive", "padding", "skips", "on", "distribution", "learned_mean", "penalty"),
    *("noise_rate", "start"),
)
SEEDS = (0, 1, 2)
AMOUNTS = (0.02, 0.05, 0.1, 0.25)  # of the planted set's noise: root mean square over each image
# each changes one thing: plain convolutions, softplus, from σ = 0.02, the paper's rate and λ, SimCLR's views
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "base": ({}, {}),
    "U-Net": ({"network": "unet"}, {}),
    "U-Net without skips": ({"network": "unet", "skips": False}, {}),
    "sibling code's form": ({"network": "resnet18", "skips": False, "positive": "abs"}, {}),
    "no other augmentation": ({}, {"augmentation": "none"}),
    "noise on the view": ({"on": "view"}, {}),
    "λ = 0.1": ({"penalty": 0.1}, {}),
    "λ = 10": ({"penalty": 10.0}, {}),
    "exp": ({"positive": "exp"}, {}),
    "abs": ({"positive": "abs"}, {}),
    "normalised to 0.1": ({"rms": 0.1}, {}),
    "uniform": ({"distribution": "uniform"}, {}),
    "μ learned": ({"learned_mean": True}, {}),
    "zero padding": ({"padding": "zeros"}, {}),
}
# the generators that are trained with the answer, and what the records call their maps and a scale's
NETWORKS = {"conv": "three convolutions", "unet": "U-Net"}
TOLD = {"object": "told the masks", "outline": "told the outline"}
ON_RECORD = {
    "scale, given to other images": "scale, dealt to other pictures",
    "trained with the masks": "told the object",
    "trained with the outline": "told the outline",
}
# what the record of long runs was made with: a larger start, five times the paper's rate, λ = 3
LONG: dict[str, Any] = {"penalty": 3.0, "noise_rate": 1.0, "start": 0.2}


def pictures(options: argparse.Namespace) -> tuple[ImageSet, ImageSet]:
    """Images to train on, and those with masks."""
    source, size = options.source, options.size
    if options.what == "stl10" and not source.startswith("folder:"):
        train = data.load("stl10", "unlabeled", size=size, limit=options.count)
        return train, masked(options, size) if options.measured_on else train.subset(slice(0, 200))
    if options.what == "photos" or (options.what == "ceilings" and source.startswith("folder:")):
        both = data.load(source, size=size)
        if both.masks is None:
            raise SystemExit(f"{source} has no folder of masks beside it")
        order = torch.randperm(len(both), generator=torch.Generator().manual_seed(0))
        half = len(both) // 2
        return both.subset(order[:half]), both.subset(order[half:])
    if source.startswith("folder:"):
        return data.load(source, size=size), masked(options, size)
    return data.load(source, size=size, limit=options.count), data.load(source, "test", size=size, limit=200)


def masked(options: argparse.Namespace, size: int) -> ImageSet:
    """Images that the maps are measured on."""
    found = data.load(options.measured_on or options.source, size=size) if options.measured_on else None
    if found is None or found.masks is None:
        raise SystemExit(
            f"{options.measured_on or options.source} has no masks: --measured-on names some that have"
        )
    return found


def learned_maps(
    train: ImageSet,
    test: ImageSet,
    settings: dict[str, Any],
    augmentation: str = "simclr",
    steps: int = 400,
    batch_size: int = 64,
    seed: int = 0,
    every: int | None = None,
) -> tuple[training.Run, noise_maps.NoiseRecorder, dict[str, Any]]:
    """Train PiNDA and keep its maps of `test` -> the run, what was watched, and a row of its settings.

    - settings: of `methods.PiNDA`
    - augmentation: of `views.PRESETS`; "none" = algorithm 1 with the identity
    - every: keep the maps of `test` after so many steps, too; None = only before the first and after the last

    The row has `noise`, the root mean square of ε, and `loss` too: means over the last tenth of the steps.
    """
    run = training.Run(
        method="pinda",
        loss=losses.NTXent(noise_experiments.TEMPERATURE),
        data=train,
        augmentation=views.preset(augmentation, train.images.shape[-1]),
        steps=steps,
        batch_size=batch_size,
        seed=seed,
        method_settings=settings,
    )
    watch = noise_maps.NoiseRecorder(test, every or steps)
    watch.take(run)
    named = {name: getattr(run.method, name) for name in SHOWN} | {"rms": run.method.rms or 0.0}
    row = experiments.measured(
        run,
        ("batch_size", "steps", "seed"),
        lambda run: {name: experiments.late(run, name) for name in ("noise", "loss")},
        callbacks=[watch],
    )
    return run, watch, {"augmentation": augmentation} | named | row


def on_the_way(watch: noise_maps.NoiseRecorder, test: ImageSet) -> list[dict[str, Any]]:
    """Measure at each step that `watch` kept, as rows: the mean AUROC of the scale against the object,
    over all images of `test`, over those whose object is plain (without a texture), and over the others;
    and the `contrast` of the maps. For generated scenes, whose classes are textures.
    """
    plain = test.labels == test.class_names.index("plain")
    rows = []
    for step in sorted(watch.taken):
        scale = watch.taken[step][0].mean(dim=1)
        each, flat = detectors.auroc(scale, test.masks), scale.flatten(1)
        rows.append(
            {
                "step": step,
                "object": each.mean().item(),
                "object_plain": each[plain].mean().item(),
                "object_textured": each[~plain].mean().item(),
                "contrast": (flat.std(dim=1) / flat.mean(dim=1)).mean().item(),
            }
        )
    return rows


def maps(options: argparse.Namespace) -> None:
    """A row a map: of each run the learned scale, its controls, and what was told the masks."""
    train, test = pictures(options)
    names = {"photos": "photographs", "stl10": "STL-10"}
    name = options.called or names.get(options.what, options.source.split(":")[0])
    done = (
        records.known("pinda_maps", "pictures", "size", "variant", "seed", "steps")
        if options.record
        else set()
    )
    for seed in options.seeds:
        for variant in options.variants or VARIANTS:
            if (name, options.size, variant, seed, options.steps) in done:
                continue
            settings, others = VARIANTS[variant]
            run, watch, row = learned_maps(train, test, settings, steps=options.steps, seed=seed, **others)
            told = None
            if train.masks is not None:
                form = {"network": row["network"], "skips": row["skips"]}
                told = noise_experiments.positive_controls(train, test, **form, seed=seed)
            found = noise_experiments.compared(run, test, watch.taken[0][0], told)
            if test.masks is None:
                draw(options.out or Path("."), f"{variant} {seed}", run, test)
                continue
            if row["learned_mean"]:
                for step, when in ((0, "untrained"), (row["steps"], "trained")):
                    mean = watch.taken[step][1].mean(dim=1)
                    found[f"|μ - its mean|, {when}"] = (mean - mean.mean(dim=(1, 2), keepdim=True)).abs()
            command = (
                f"python benchmarks/pinda.py {options.what} {shown(options.source)} --size {options.size} "
                f'--steps {options.steps} --variants "{variant}" --seeds {seed} --record'
            )
            if options.measured_on:
                command += " --measured-on folder:OTHER"
            head = {"command": command, "pictures": name, "size": options.size, "trained_on": len(train)}
            head |= {"measured_on": len(test), "variant": variant} | row
            measured = noise_experiments.measured(found, test)
            for each in measured.to_dict("records"):
                named = ON_RECORD.get(each["map"], each["map"])
                records.keep("pinda_maps", head | each | {"map": named}, options.record)
            if options.out:
                draw(options.out, f"{variant} {seed}", run, test, measured)
            if options.what == "stl10" and options.record and (variant, seed) == ("base", SEEDS[0]):
                keep_maps(found, test, [path.stem for path in measured_files(options)])


def keep_maps(found: dict[str, torch.Tensor], test: ImageSet, names: list[str]) -> None:
    """Scale before and after a run, without the images: records/pinda_stl10_maps.npz.

    - names: of the files, CLASS_NUMBER: the number is the image's in STL-10's test part
    """
    words, numbers = zip(*(name.split("_") for name in names), strict=True)
    kept: dict[str, Any] = {"names": np.array(words), "number": np.array(numbers, int)}
    kept |= {when: found[f"scale, {when}"].half().numpy() for when in ("untrained", "trained")}
    for name, when in (("object_before", "untrained"), ("object", "trained")):
        kept[name] = detectors.auroc(found[f"scale, {when}"], test.masks).numpy()
    files.write_atomically(
        records.FOLDER / "pinda_stl10_maps.npz", functools.partial(np.savez_compressed, **kept)
    )


def measured_files(options: argparse.Namespace) -> list[Path]:
    """Files that `masked` read, in its order."""
    return sorted(Path(options.measured_on.removeprefix("folder:")).glob("*.png"))


def draw(folder: Path, name: str, run: training.Run, test: ImageSet, measured: Any = None) -> None:
    """The first eight of these images with their noise, and the measure if there is one, as PNG files."""
    from clutils.course import pinda as lesson

    folder.mkdir(parents=True, exist_ok=True)
    some = test.images[:8]
    drawn = run.method.noise.eval()(some, torch.Generator().manual_seed(0))
    pages = {"maps": figures.noise.noise(some, drawn.scale, drawn.sample)}
    pages |= {} if measured is None else {"found": lesson.found(measured)}
    for what, figure in pages.items():
        (folder / f"{what} {name}.png").write_bytes(figures.png(figure))


def ceilings(options: argparse.Namespace) -> None:
    """A row a network, seed and answer: the networks that are told, three convolutions and a U-Net."""
    train, test = pictures(options)
    called = options.called or ("photographs" if options.source.startswith("folder:") else options.source)
    done = (
        records.known("pinda_ceilings", "pictures", "network", "seed", "steps", "map")
        if options.record
        else set()
    )
    for seed, target, network in itertools.product(options.seeds, TOLD, NETWORKS):
        if options.variants and target not in options.variants:
            continue
        name = f"{TOLD[target]}, {NETWORKS[network]}"
        if (called, network, seed, options.steps, name) not in done:
            settings = {"network": network, "steps": options.steps, "seed": seed}
            found = noise_experiments.supervised_maps(train, test, target, **settings)
            command = (
                f"python benchmarks/pinda.py ceilings {shown(options.source)} --size {options.size} "
                f'--steps {options.steps} --variants "{target}" --seeds {seed} --record'
            )
            head = {"command": command, "pictures": called, "trained_on": len(train)}
            head |= {"measured_on": len(test), "network": network, "steps": options.steps, "seed": seed}
            for each in noise_experiments.measured({name: found}, test).to_dict("records"):
                records.keep("pinda_ceilings", head | each, options.record)


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
            run, watch, _ = learned_maps(
                train,
                test,
                LONG | settings,
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
            blind = noise_experiments.compared(run, test)["encoder's indifference"]
            indifferent = noise_experiments.measured({"blind": blind}, test)["object"].item()
            head |= {"steps": options.steps, "object_indifference": indifferent}
            for each in on_the_way(watch, test):
                records.keep("pinda_along", head | each, options.record)


def planted(options: argparse.Namespace) -> None:
    """Every kind of noise at every amount on the constructed set, by the cells of notebook 10 themselves."""
    notebook = json.loads((records.ROOT / "notebooks" / "10_pinda_maps.ipynb").read_text("utf-8"))
    cells = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}
    own: dict[str, Any] = {"torch": torch, "nn": torch.nn, "losses": losses, "measures": measures}
    for name in ("planted-images10", "planted-run10"):
        exec(cells[name], own)
    done = records.known("pinda_planted", "noise", "amount", "seed") if options.record else set()
    cases = [("none", 0.0), *itertools.product(("uniform", "oracle", "learned", "adversarial"), AMOUNTS)]
    for seed, (kind, amount) in itertools.product(options.seeds, cases):
        if (kind, amount, seed) in done or (options.variants and kind not in options.variants):
            continue
        command = f"python benchmarks/pinda.py planted --seeds {seed} --variants {kind} --record"
        for row in own["one_run"]("uniform" if kind == "none" else kind, amount, seed, (0, 80, 120)):
            records.keep("pinda_planted", {"command": command} | row | {"noise": kind}, options.record)


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
    if source.startswith("folder:"):
        return "folder:PATH"
    return Path(source).name if source.endswith(".npz") else source


ASKED = {"maps": maps, "photos": maps, "stl10": maps, "ceilings": ceilings, "along": along}
ASKED |= {"planted": planted, "cost": cost}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=tuple(ASKED))
    parser.add_argument("source", nargs="?", default="scenes")
    parser.add_argument("--measured-on", help="a folder that has masks, where the other has none")
    parser.add_argument("--out", type=Path, help="a folder for drawings of the maps")
    parser.add_argument("--called", help="what the record calls the images of a folder")
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--count", type=int, default=4000, help="images to train on, of sets that have more")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--variants", nargs="+")
    parser.add_argument("--encoder", default="conv16")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    ASKED[options.what](options)


if __name__ == "__main__":
    main()

"""Healthy encoders, and ones that became ill by their training, each checked: how far the lines are right.

    python benchmarks/calibration.py scenes --record                   generated scenes
    python benchmarks/calibration.py folder:PATH --record              CIFAR-10, as folders of train and test
    python benchmarks/calibration.py summary                           clutils/report/calibration.json anew

What an encoder counts as follows from how it was trained and from its kNN, never from a line; which lines
each ailment should sound is written down in `clutils/report/calibration.py`. conv16, 32x32, batches of 128;
seeds 11 and 12, on which no threshold was set; recorded with --most-steps 3000. Ten of the healthy are read
in wrong ways too.

Prints a line an encoder; with --record it is added to benchmarks/records/calibration.csv. What the record
holds is left out, so an interrupted recording goes on, and two (--part 0/2, --part 1/2) can run at a time.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from clutils import data, losses, report, training, views
from clutils.course import evidence, experiments, records
from clutils.data import ImageSet
from clutils.report import calibration

NAME = "calibration"
SEEDS = (11, 12)
ILL_STEPS, EARLY_STEPS = 600, 20
TRAIN, LENT, JUDGED = 4000, 900, 300  # pictures to train on, that lend their labels, that are judged
NO_COLOUR: dict[str, Any] = {"grayscale": 0.0, "jitter": (0.0, 0.0, 0.0, 0.0)}


class Case(NamedTuple):
    """A run: what it is called, `training.Run`'s settings, and what ails it ('' = nothing)."""

    contender: str
    settings: dict[str, Any]
    steps: int
    ailment: str
    seed: int


def tuned(contender: str) -> dict[str, Any]:
    return evidence.arguments(evidence.chosen("methods", contender))


def healthy(photographs: bool) -> Iterator[Case]:
    """Those of as many steps as the ill ones are what these are compared with."""
    for seed in SEEDS:
        for contender in ("SimCLR", "MoCo", "BYOL", "SimSiam"):
            yield Case(contender, tuned(contender), ILL_STEPS, "", seed)
        for contender in ("SimCLR", "MoCo", "BYOL"):
            for steps in (2000,) if photographs else (1000, 3000):
                yield Case(contender, tuned(contender), steps, "", seed)
        yield Case("SupCon", {"method": "supcon"}, 2000 if photographs else 1000, "", seed)
    yield Case("SimSiam", tuned("SimSiam"), 3000, "", SEEDS[0])
    methods = ("barlowtwins", "vicreg", "nnclr", "swav", "lejepa")
    for method in methods[:2] if photographs else methods:
        yield Case(method, {"method": method}, 2000, "", SEEDS[0])
    for contender in ("SimCLR", "BYOL") if not photographs else ():
        yield Case(contender, tuned(contender), 10_000, "", SEEDS[1])
    for name in ("MACL", "HardNegative") if not photographs else ():
        yield Case(name, {"loss": getattr(losses, name)(), "learning_rate": 5e-3}, 1000, "", SEEDS[0])


def ill() -> Iterator[Case]:
    """Two methods an ailment; of those stopped early, four."""
    plain = {name: tuned(name) for name in ("SimCLR", "MoCo", "BYOL", "SimSiam")} | {
        "SupCon": {"method": "supcon"}
    }
    for seed in SEEDS:
        for name in ("SimCLR", "MoCo"):
            hot, cold = ({"loss": losses.NTXent(tau)} for tau in (5.0, 0.01))
            colours = {"augmentation": views.Augmentation(**NO_COLOUR)}
            for ailment, change in (
                ("τ = 5", hot),
                ("τ = 0.01", cold),
                ("no colour augmentation", colours),
                ("learning rate of 1", {"learning_rate": 1.0}),
                ("learning rate of 1e-8", {"learning_rate": 1e-8}),
            ):
                yield Case(name, plain[name] | change, ILL_STEPS, ailment, seed)
        yield Case(
            "SimCLR", plain["SimCLR"] | {"loss": experiments.PullOnly()}, ILL_STEPS, "nothing pushes", seed
        )
        both_sides = {"method_settings": {"stop_gradient": False}}
        yield Case("SimSiam", plain["SimSiam"] | both_sides, ILL_STEPS, "nothing pushes", seed)
        for name in ("SimCLR", "BYOL"):
            own = plain[name].get("method_settings", {})
            narrow = plain[name] | {"method_settings": own | {"out": 2}}
            yield Case(name, narrow, ILL_STEPS, "head of two dimensions", seed)
            yield Case(
                name, plain[name] | {"augmentation": experiments.mispaired}, ILL_STEPS, "pairs mixed up", seed
            )
        for name in ("SimCLR", "MoCo") if seed == SEEDS[0] else ("BYOL", "SupCon"):
            yield Case(name, plain[name], EARLY_STEPS, "stopped early", seed)


def pictures(source: str) -> tuple[ImageSet, ImageSet, ImageSet]:
    """To train on, to lend labels, to be judged."""
    drawn, test = data.load(source, limit=TRAIN + LENT), data.load(source, split="test", limit=JUDGED)
    return drawn.subset(slice(0, TRAIN)), drawn.subset(slice(TRAIN, None)), test


def misread(file: Path, gallery: ImageSet, judged: ImageSet) -> Iterator[tuple[str, report.Report]]:
    """A healthy encoder read in wrong ways: what is wrong, and what the check says."""
    draw = torch.Generator().manual_seed(0)
    shuffled = replace(judged, labels=judged.labels[torch.randperm(len(judged), generator=draw)])
    renamed = replace(judged, labels=(judged.labels + 1) % len(judged.class_names))
    plain: dict[str, Any] = {"map_names": ()}
    yield "read after the head", report.check(file, (gallery, judged), layer="head", **plain)
    yield "fed wrongly", report.check(file, (gallery, judged), mean="imagenet", quick=True, **plain)
    yield "classes renamed", report.check(file, (gallery, renamed), quick=True, **plain)
    yield "labels shuffled", report.check(file, (gallery, shuffled), **plain)


def keep(about: dict[str, Any], ailment: str, found: report.Report, knn: float, record: bool) -> None:
    numbers = {k: float(f"{v:.6g}") for k, v in found.examination.numbers.items() if math.isfinite(v)}
    row = about | {"ailment": ailment, "knn": knn, "level": found.level}
    sounds = [v.name for v in found.verdicts if v.level in calibration.SOUNDS]
    print(*row.values(), "| sound:", *sounds, flush=True)
    if record:
        kept = {"numbers": json.dumps(numbers), "unknown": json.dumps(found.examination.unknown)}
        records.append(NAME, row | kept)


def train(source: str, part: tuple[int, int], threads: int | None, record: bool, most: int) -> None:
    photographs = source != "scenes"
    drawn, gallery, judged = pictures(source)
    cases = sorted([*healthy(photographs), *ill()], key=lambda case: case.seed)
    longest = [case for case in cases if not case.ailment and case.steps > ILL_STEPS]
    misread_of = longest[: 4 if photographs else 6]
    columns = ("pictures", "contender", "steps", "seed", "ailment")
    for case in cases[part[0] :: part[1]]:
        if case.steps > most:
            continue
        about = {"pictures": "photographs" if photographs else "scenes", "contender": case.contender}
        about |= {"steps": case.steps, "seed": case.seed}
        if record and (*about.values(), case.ailment or "none") in records.known(NAME, *columns):
            continue
        run = training.Run(
            data=drawn, steps=case.steps, batch_size=128, seed=case.seed, threads=threads, **case.settings
        )
        run.finish(progress=False)
        knn = round(experiments.accuracy(run.embed, drawn, judged), 4)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "run.pt"
            run.save(file)
            command = "folder:PATH" if photographs else source
            about = {"command": f"python benchmarks/calibration.py {command} --record"} | about
            checked = report.check(file, (gallery, judged), map_names=())
            keep(about, case.ailment, checked, knn, record)
            if case in misread_of:
                for ailment, found in misread(file, gallery, judged):
                    keep(about, ailment, found, knn, record)


def measure_fresh(source: str) -> None:
    """Put what fresh weights show into all rows of these pictures: it depends on the pictures alone."""
    drawn, gallery, judged = pictures(source)
    run = training.Run(data=drawn, steps=1, batch_size=128)
    run.finish(progress=False)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.pt"
        run.save(file)
        found = {"": report.check(file, (gallery, judged), map_names=())} | dict(
            misread(file, gallery, judged)
        )
    names = ("knn_untrained", "probe_untrained")
    table = records.read(NAME)
    ours = table["pictures"] == ("scenes" if source == "scenes" else "photographs")
    for at in table.index[ours]:
        numbers = json.loads(table.loc[at, "numbers"])
        ailment = table.loc[at, "ailment"] if table.loc[at, "ailment"] in found else ""
        fresh = found[ailment].examination.numbers
        numbers |= {name: float(f"{fresh[name]:.6g}") for name in names if name in numbers}
        table.loc[at, "numbers"] = json.dumps(numbers)
    table.to_csv(records.FOLDER / f"{NAME}.csv", index=False)
    print({name: found[""].examination.numbers[name] for name in names})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pictures", help="scenes, folder:PATH, or summary")
    parser.add_argument(
        "--fresh", action="store_true", help="measure fresh weights again, in the rows there are"
    )
    parser.add_argument("--part", default="0/1", help="i/n: every n-th encoder, from the i-th on")
    parser.add_argument("--most-steps", type=int, default=10_000, help="longer runs are left out")
    parser.add_argument("--threads", type=int, help="of torch, in a step")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if options.pictures == "summary":
        written = calibration.write(calibration.readings(records.read(NAME)))
        print(*calibration.table(written), sep="\n")
        return
    if options.fresh:
        measure_fresh(options.pictures)
        return
    first, _, of = options.part.partition("/")
    train(options.pictures, (int(first), int(of)), options.threads, options.record, options.most_steps)


if __name__ == "__main__":
    main()

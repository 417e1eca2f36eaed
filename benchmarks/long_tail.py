"""A temperature schedule on data with a long tail: what each temperature, and the schedule, learns of classes
that are frequent and of those that are rare, seed by seed.

    python benchmarks/long_tail.py                    six arms, three seeds, 400 steps
    python benchmarks/long_tail.py --steps 20 --arms schedule --seeds 0

Each seed draws another order of the classes, so that no texture is always the rare one. The control has as
many images, all classes alike, at the usual temperature: what there is to win. Group-wise: kNN accuracy
(the bank has all classes alike) on new images of the classes in the head and in the tail (the five larger,
the five smaller), and the squared distance of images of one class. Instance-wise: that of two views of one
image, and uniformity. Prints a line a run; with --record it is also added to
benchmarks/records/long_tail.csv, and what is there already is left out.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch

from clutils import data, losses, measures, training
from clutils.course import records
from clutils.data import ImageSet

NAME = "long_tail"
LOWEST, HIGHEST, PERIODS = 0.1, 1.0, 5  # the paper's; 400 of 2,000 epochs
ARMS = {"cold": LOWEST, "usual": 0.2, "warm": HIGHEST, "schedule": None, "alike": 0.2, "untrained": 0.2}
SEEDS = (0, 1, 2)
RATIO = 50.0
NEIGHBOURS, BANK = 20, 2000


def long_tailed(whole: ImageSet, ratio: float, seed: int) -> ImageSet:
    """Fewer images of each class than of the one before: the largest has `ratio` times the smallest.

    Class c of C, in an order drawn from the seed, keeps the first n ratio^{-c/(C - 1)} of its images,
    rounded, at least one; n: how many the smallest class has now. The exponential profile of Cui et al. 2019
    (arXiv 1901.05555), as CIFAR-LT has it (from memory).
    """
    found, sizes = whole.labels.unique(return_counts=True)
    kept = []
    for place, c in enumerate(
        found[torch.randperm(len(found), generator=torch.Generator().manual_seed(seed))]
    ):
        count = max(1, round(int(sizes.min()) * ratio ** (-place / (len(found) - 1))))
        kept.append((whole.labels == c).nonzero().flatten()[:count])
    few = whole.subset(torch.cat(kept).sort().values)
    few.source = f"{len(few):,} images with a long tail, {ratio:g} to 1, out of {whole.source}"
    return few


def arm(name: str, whole: ImageSet, test: ImageSet, steps: int, seed: int) -> dict[str, Any]:
    """NT-Xent at one temperature, or along the schedule -> what was measured at the end.

    whole: what the long tail is cut out of; test: all classes alike.
    """
    temperature, tail = ARMS[name], long_tailed(whole, RATIO, seed)
    shuffled = torch.randperm(len(whole), generator=torch.Generator().manual_seed(seed))
    alike, bank = whole.subset(shuffled[: len(tail)]), whole.subset(shuffled[-BANK:])
    train = alike if name == "alike" else tail
    run = training.Run(
        loss=losses.NTXent(HIGHEST if temperature is None else temperature),
        data=train,
        encoder="conv16",
        steps=max(1, steps),
        learning_rate=5e-3,
        seed=seed,
        precision="float32",
    )
    if temperature is None:
        run.schedules["temperature"] = training.Cosine(LOWEST, HIGHEST, period=max(1, steps // PERIODS))
    if steps:
        run.finish(progress=False)
    draw = torch.Generator().manual_seed(seed)
    z1, z2 = (run.project(run.augmentation(test.images, generator=draw)) for _ in range(2))
    features, of_test = run.embed(bank), run.embed(test)
    classes = tail.labels.bincount(minlength=len(tail.class_names)).argsort(descending=True)
    found: dict[str, Any] = {"source": train.source, "arm": name, "seed": seed, "steps": steps}
    for group, of in (("head", classes[:5]), ("tail", classes[5:])):
        asked = torch.isin(test.labels, of)
        found[f"knn_{group}"] = measures.knn_accuracy(
            features, bank.labels, of_test[asked], test.labels[asked], k=NEIGHBOURS
        )
    found["class_distance"] = 2 - 2 * measures.tolerance(z1, test.labels)
    return found | {"instance_distance": measures.alignment(z1, z2), "uniformity": measures.uniformity(z1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=tuple(ARMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    whole, test = data.load("scenes"), data.load("scenes", split="test", limit=1000)
    done = records.known(NAME, "arm", "seed", "steps") if options.record else set()
    rows = []
    for seed in options.seeds:
        for name in options.arms:
            steps = 0 if name == "untrained" else options.steps
            if (name, seed, steps) in done:
                continue
            asked = f"--steps {options.steps} --arms {name} --seeds {seed}"
            rows.append(arm(name, whole, test, steps, seed))
            records.keep(
                NAME,
                {"command": f"python benchmarks/long_tail.py --record {asked}", **rows[-1]},
                options.record,
            )
    for name in options.arms if len(options.seeds) > 1 else ():
        of_arm = [row for row in rows if row["arm"] == name]
        for measure in ("knn_head", "knn_tail", "class_distance", "instance_distance") if of_arm else ():
            values = [row[measure] for row in of_arm]
            spread = f"{min(values):.3f} to {max(values):.3f}"
            print(f"{name:9} {measure:18} {sum(values) / len(values):.3f} ({spread} in {len(values)} seeds)")


if __name__ == "__main__":
    main()

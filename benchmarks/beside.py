"""Turns and hidden patches beside SimCLR: one small vision transformer, trained in four ways and a wrong one.

    python benchmarks/beside.py scenes [--record]
    python benchmarks/beside.py images --images folder:PATH [--record]     CIFAR-10, as folders train and test

The encoder and two of the losses are cells of notebook 11 (`beside-vit`, `beside-turned`, `beside-filled`),
SimCLR's is the package's NT-Xent, 'told the classes' is cross-entropy. 'Patches of another image' is the
masked model that has to fill in what its image doesn't say. Only SimCLR's images are augmented. A step
encodes 128 images: 64 in two views, 32 in four turns; of the masked model and of those told, 64. AdamW; the
rate rises over a tenth of the steps and falls to 0 (`OneCycleLR`).

Each has four points of a grid, 300 steps long, and is judged by a linear probe on images kept apart. What
did best there is run by three seeds, a seed of all contenders after the other. Step 0 is fresh weights. Of
the test images: kNN (k = 20), a linear probe, kNN by one and by five labels a class (means of 20 draws); of
scenes further probes, of what is no label: shape, colour, ground, place. Rows on record are left out.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from evidence import pictures, with_few_labels
from torch import Tensor, nn

from clutils import encoders, losses, measures, views
from clutils.course import records
from clutils.course.images_and_sentences.captions import FACTS, facts
from clutils.data import ImageSet

RECORD, BATCH, GRID_STEPS, STEPS = "beside", 64, 300, {"scenes": 1000, "images": 1000}
RATES, FOUR_RATES = (1e-3, 3e-3), (5e-4, 1e-3, 2e-3, 4e-3)
GRIDS: dict[str, list[dict[str, float]]] = {
    "SimCLR": [{"rate": r, "temperature": t} for r, t in itertools.product(RATES, (0.2, 0.5))],
    "turns": [{"rate": r} for r in FOUR_RATES],
    "hidden patches": [{"rate": r, "hidden": h} for r, h in itertools.product(RATES, (0.5, 0.75))],
    "told the classes": [{"rate": r} for r in FOUR_RATES],
}
WRONG, RIGHT = "patches of another image", "hidden patches"  # WRONG has RIGHT's settings


FEW = ("knn_1_a_class", "knn_5_a_class")


def own_cells() -> dict[str, Any]:
    """Names that the cells of notebook 11 define."""
    notebook = json.loads((records.ROOT / "notebooks" / "11_methods.ipynb").read_text("utf-8"))
    cells = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}
    own: dict[str, Any] = {"torch": torch, "F": F}
    for name in ("beside-vit", "beside-turned", "beside-filled"):
        exec(cells[name], own)
    return own


def objective(contender: str, given: dict[str, float], own: dict[str, Any], classes: int) -> nn.Module:
    """Part that is trained beside the encoder; its `loss(encoder, images, labels, draw)` is a step's."""
    width = own["SmallViT"]().features
    if contender == "SimCLR":
        part: nn.Module = encoders.ProjectionHead(width, width, 64)
        augment, compare = views.Augmentation(), losses.NTXent(given["temperature"])

        def loss(encoder: nn.Module, images: Tensor, labels: Tensor, draw: torch.Generator) -> Tensor:
            both = augment(torch.cat([images, images]), generator=draw)
            return compare(*part(encoder(both)).chunk(2))
    elif contender == "turns":
        part = nn.Linear(width, 4)

        def loss(encoder: nn.Module, images: Tensor, labels: Tensor, draw: torch.Generator) -> Tensor:
            return own["turned"](encoder, part, images[: BATCH // 2], draw)
    elif contender == "told the classes":
        part = nn.Linear(width, classes)

        def loss(encoder: nn.Module, images: Tensor, labels: Tensor, draw: torch.Generator) -> Tensor:
            return F.cross_entropy(part(encoder(images)), labels)
    else:
        part = own["Decoder"](width)

        def loss(encoder: nn.Module, images: Tensor, labels: Tensor, draw: torch.Generator) -> Tensor:
            wanted = images.roll(1, 0) if contender == WRONG else None
            return own["filled_in"](encoder, part, images, draw, given["hidden"], wanted)

    part.loss = loss
    return part


def judged(encoder: nn.Module, train: ImageSet, test: ImageSet, few: bool = True) -> dict[str, float]:
    """Accuracies on the test images, of an encoder whose training images vote or fit the probe."""

    class Seen:  # what `with_few_labels` asks of a run
        embed = staticmethod(functools.lru_cache(lambda of: encoders.embed(encoder, of.images)))

    z, test_z = Seen.embed(train), Seen.embed(test)
    found = {
        "probe": measures.linear_probe(z, train.labels, test_z, test.labels),
        "knn": measures.knn_accuracy(z, train.labels, test_z, test.labels, k=20),
    }
    if few:
        found |= with_few_labels(Seen, train, test)  # type: ignore[arg-type]
    found |= dict.fromkeys((*FEW, *(f"probe_{fact}" for fact in FACTS[1:])), float("nan")) | found
    if few and train.masks is not None:
        seen, asked = facts(train), facts(test)
        for fact in FACTS[1:]:
            number = {name: i for i, name in enumerate(sorted(seen[fact].unique()))}
            of = [torch.tensor(each[fact].map(number).to_numpy()) for each in (seen, asked)]
            found[f"probe_{fact}"] = measures.linear_probe(z, of[0], test_z, of[1])
    return found


def trained(
    contender: str,
    given: dict[str, float],
    seed: int,
    steps: int,
    train: ImageSet,
    look: Callable[[nn.Module], dict[str, float]],
    looks: tuple[int, ...],
) -> list[dict[str, Any]]:
    """One run: a row a look. Fresh weights and the order of images are the same for a seed."""
    torch.manual_seed(seed)
    own = own_cells()
    encoder = own["SmallViT"]()
    part = objective(contender, given, own, len(train.class_names))
    draw, order = (torch.Generator().manual_seed(seed + k) for k in (1000, 2000))
    weights = [*encoder.parameters(), *part.parameters()]
    optimiser = torch.optim.AdamW(weights, lr=given["rate"], weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, given["rate"], total_steps=steps, pct_start=0.1)
    rows: list[dict[str, Any]] = []
    lost, spent = [], 0.0
    for step in range(steps + 1):
        if step in looks:
            mean = sum(lost[-100:]) / len(lost[-100:]) if lost else float("nan")
            rows.append({"step": step, "loss": mean, "seconds": spent} | look(encoder))
        if step == steps:
            break
        if step % (len(train) // BATCH) == 0:
            epoch = torch.randperm(len(train), generator=order).split(BATCH)
        began = time.perf_counter()
        batch = epoch[step % (len(train) // BATCH)]
        value = part.loss(encoder, train.images[batch].float() / 255, train.labels[batch], draw)  # type: ignore[operator]
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        schedule.step()
        spent += time.perf_counter() - began
        lost.append(value.item())
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("of", choices=tuple(STEPS))
    parser.add_argument("--images", metavar="folder:PATH", help="CIFAR-10's images")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--contender", choices=(*GRIDS, WRONG), help="this one alone")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    train, apart, test = pictures("real_images" if options.of == "images" else "scenes", options.images)
    command = f"python benchmarks/beside.py {options.of}" + " --images folder:PATH" * (options.of == "images")

    def run(stage: str, contender: str, given: dict[str, float], seed: int) -> None:
        about = {"of": options.of, "stage": stage, "contender": contender, "seed": seed}
        about["settings"] = json.dumps(given)
        if options.record and tuple(about.values()) in records.known(RECORD, *about):
            return
        steps = GRID_STEPS if stage == "grid" else STEPS[options.of]
        looks = (steps,) if stage == "grid" else (0, steps // 2, steps)
        look = functools.partial(
            judged, train=train, test=apart if stage == "grid" else test, few=stage != "grid"
        )
        for row in trained(contender, given, seed, steps, train, look, looks):
            records.keep(
                RECORD, {"command": f"{command} --record"} | about | {"steps": steps} | row, options.record
            )

    def best(contender: str) -> dict[str, float]:
        grid = records.read(RECORD).query("stage == 'grid'")
        own = grid[
            (grid["of"] == options.of) & (grid["contender"] == (RIGHT if contender == WRONG else contender))
        ]
        return json.loads(own.sort_values("probe")["settings"].iloc[-1])

    wanted = [name for name in (*GRIDS, WRONG) if options.contender in (None, name)]
    for contender in wanted:
        for given in GRIDS.get(contender, []):
            run("grid", contender, given, 0)
    for seed in options.seeds:
        for contender in wanted:
            run("seeds", contender, best(contender), seed)


if __name__ == "__main__":
    main()

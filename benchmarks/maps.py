"""Time and quality of the maps on 2,000 points: Neg-t-SNE beside scikit-learn's t-SNE and umap-learn.

    python benchmarks/maps.py                                   a minute or two on two cores
    python benchmarks/maps.py --maps "UMAP (umap-learn)"        some of them
    python benchmarks/maps.py --record                          also into benchmarks/records/maps.csv
    python benchmarks/maps.py --positions                       into benchmarks/records/one_idea_maps.npz

Points: two views each of 1,000 images of ten classes, clouds on the sphere in 128 dimensions, no encoder.
Each map once to warm up (umap-learn compiles then), and then in turns with t-SNE, so that a busy machine
slows both alike: trust the ratio, the median of the turns' own.

--positions keeps the maps that take notebook 08 too long: UMAP of its embeddings, which numba compiles first,
Neg-t-SNE of the same along its spectrum, 400 epochs each, and three maps learned from images, before the last
layer learns and after it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from clutils import data, files, maps
from clutils.course import embeddings, one_idea, records, toys

NAME, PICTURES, REPEATS, THREADS = "maps", 1000, 3, 2
POSITIONS = records.FOLDER / "one_idea_maps.npz"
LEARNED, SEEDS = 150, (0, 1, 2)  # steps with each of the two heads
EPOCHS = 400  # of Neg-t-SNE: at 60 its end at 0 still has UMAP's sum of q
SPECTRUM = {0: (0.0, 0.25, 0.5, 0.75, 1.0), 1: (0.0, 0.5, 1.0)}  # seed -> places
BESIDE = "t-SNE (scikit-learn)"
MAPS: dict[str, Callable[..., np.ndarray]] = {
    BESIDE: maps.tsne,
    "UMAP (umap-learn)": maps.umap,
    "Neg-t-SNE, spectrum 0": partial(maps.neg_tsne, spectrum=0.0),
    "Neg-t-SNE, spectrum 1": partial(maps.neg_tsne, spectrum=1.0),
}


def points() -> tuple[torch.Tensor, torch.Tensor]:
    """z (2,000, 128) and labels (2,000,)."""
    z1, z2, labels = toys.classes_on_the_sphere(pictures=PICTURES)
    return torch.cat([z1, z2]).float(), labels.repeat(2)


def measured(name: str, repeats: int) -> dict:
    """A map's row; t-SNE is its own measure, beside itself."""
    z, labels = points()
    found, times, ratios = MAPS[name](z), [], []
    for _ in range(repeats):
        taken = {}
        for each in {BESIDE, name}:
            began = time.perf_counter()
            MAPS[each](z)
            taken[each] = time.perf_counter() - began
        times.append(taken[name])
        ratios.append(taken[name] / taken[BESIDE])
    return {
        "map": name,
        "points": len(z),
        "dimension": z.shape[1],
        "repeats": repeats,
        "threads": THREADS,
        "seconds": statistics.median(times),
        "ratio_to_tsne": statistics.median(ratios),
        "neighbour_share": maps.neighbour_share(found, labels),
        "trustworthiness": maps.trustworthiness(z, found),
    }


def positions() -> dict[str, np.ndarray]:
    """Name -> (N, 2): umap and neg_PLACE_SEED of the kept embeddings; new_S, trained_S of 400 test images."""
    z = embeddings.load(3000, views=6).z.flatten(0, 1)
    found = {"umap": maps.umap(z)}
    for seed, places in SPECTRUM.items():
        found |= {f"neg_{s:g}_{seed}": maps.neg_tsne(z, s, epochs=EPOCHS, seed=seed) for s in places}
    scenes, test = data.load("scenes"), data.load("scenes", "test", limit=400)
    for seed in SEEDS:
        run = one_idea.learned_map(LEARNED, scenes, seed)
        found[f"new_{seed}"] = run.project(test).numpy()
        found[f"trained_{seed}"] = run.finish(progress=False).project(test).numpy()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--maps", nargs="+", choices=MAPS, default=list(MAPS))
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--positions", action="store_true")
    options = parser.parse_args()
    if options.positions:
        found = {name: at.astype(np.float32) for name, at in positions().items()}
        files.write_atomically(POSITIONS, partial(np.savez_compressed, steps=LEARNED, epochs=EPOCHS, **found))
        return
    torch.set_num_threads(THREADS)
    command = " ".join(["python benchmarks/maps.py", *sys.argv[1:]])
    for name in options.maps:
        records.keep(NAME, {"command": command} | measured(name, options.repeats), options.record)


if __name__ == "__main__":
    main()

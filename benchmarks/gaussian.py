"""Norms and coordinates of InfoNCE's embeddings: do norms concentrate, do coordinates become normal?

    python benchmarks/gaussian.py [--seeds 0 1 2] [--record]

SimCLR on scenes, looked at along the run; step 0 is fresh weights, whose batch normalisations have seen 60
batches (a run at a learning rate of nearly 0): untouched ones give all images the same numbers. Of 500 test
images, before and behind the head: the norms' standard deviation over their mean; and of the vectors of
length 1, the share of coordinates in which D'Agostino and Pearson's test refuses a normal distribution at
5 %, with the mean of the coordinates' |excess kurtosis|. The same of as many random directions; and of normal
numbers of the same shape, which is what the test says where the answer is known. Rows on record are left out.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from scipy import stats

from clutils import data, measures, training
from clutils.course import records

RECORD, STEPS, LOOKS, IMAGES = "gaussian", 1000, (0, 300, 650, 1000), 500


def normality(z: np.ndarray, seed: int = 0) -> dict[str, float]:
    """Spread of the norms of vectors (N, D), and how normal each column of the unit vectors is."""
    norms = np.linalg.norm(z, axis=1, keepdims=True)
    found = {"norm_spread": norms.std() / norms.mean()}
    z = z / norms
    turned = z @ np.random.default_rng(seed).normal(size=(z.shape[1], z.shape[1])) / z.shape[1] ** 0.5
    for name, columns in (("coordinates", z), ("directions", turned)):
        columns = columns[:, columns.std(axis=0) > 1e-6]
        found[f"{name}_refused"] = float((stats.normaltest(columns).pvalue < 0.05).mean())
        found[f"{name}_kurtosis"] = float(np.abs(stats.kurtosis(columns)).mean())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    train, test = data.load("scenes", limit=4000), data.load("scenes", "test", limit=IMAGES)
    for seed in options.seeds:
        known = records.known(RECORD, "seed", "step") if options.record else set()
        if (seed, STEPS) in known:
            continue
        given = {"data": train, "batch_size": 128, "seed": seed, "precision": "float32"}
        fresh = training.train("simclr", steps=60, learning_rate=1e-9, progress=False, **given)
        trained = training.Run("simclr", steps=STEPS, **given)
        for look in LOOKS:
            run = trained if look else fresh
            while look and run.steps_done < look:
                run.step()
            if (seed, look) in known:
                continue
            knn = measures.knn_accuracy(run.embed(train), train.labels, run.embed(test), test.labels, k=20)
            row = {"command": "python benchmarks/gaussian.py --record", "seed": seed, "steps": STEPS}
            row |= {"step": look, "images": IMAGES, "knn": knn}
            drawn = torch.randn(IMAGES, 128, generator=torch.Generator().manual_seed(seed))
            for where, z in (("encoder", run.embed(test)), ("head", run.project(test)), ("normal", drawn)):
                found = normality(z.double().numpy(), seed)
                row |= {f"{where}_{name}": value for name, value in found.items()}
            records.keep(RECORD, row, options.record)


if __name__ == "__main__":
    main()

"""Norms and coordinates of InfoNCE's embeddings: do norms concentrate, do coordinates become normal?

    python benchmarks/gaussian.py [--seeds 0 1 2] [--contender SimCLR] [--record]

SimCLR on scenes, looked at along the run; SupCon, told the textures, beside it. Step 0 is fresh weights,
whose batch normalisations have seen 60 batches (a run at a learning rate of nearly 0): untouched ones give
all images the same numbers. Of 500 test images, before and behind the head: the norms' standard deviation
over their mean; and of the vectors of length 1, the share of coordinates in which D'Agostino and Pearson's
test refuses a normal distribution at 5 %, with the mean of the coordinates' |excess kurtosis|. The same of
as many random directions.

The answer is known of two more sets. `normal`: independent normal numbers of the same shape. `matched`:
normal vectors of the head's own mean and covariance; once they have length 1, their coordinates are refused
as well, more often the fewer directions they use. `head_rank` says how many those are: (tr C)² / tr C², the
participation ratio of the head's covariance C. Rows on record are left out.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
import torch
from scipy import stats

from clutils import data, measures, training
from clutils.course import records

RECORD, STEPS, LOOKS, IMAGES = "gaussian", 1000, (0, 300, 650, 1000), 500
CONTENDERS = {"SimCLR": "simclr", "SupCon": "supcon"}


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


def matched(z: np.ndarray, seed: int) -> np.ndarray:
    """Normal vectors (N, D) with the mean and covariance of z (N, D)."""
    dice = np.random.default_rng(seed + 10)
    return dice.multivariate_normal(z.mean(axis=0), np.cov(z.T), size=len(z), method="svd")


def participation(z: np.ndarray) -> float:
    values = np.linalg.eigvalsh(np.cov(z.T))
    return float(values.sum() ** 2 / (values**2).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--contender", choices=tuple(CONTENDERS), help="this one alone")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    train, test = data.load("scenes", limit=4000), data.load("scenes", "test", limit=IMAGES)
    wanted = [options.contender] if options.contender else list(CONTENDERS)
    for seed, contender in itertools.product(options.seeds, wanted):
        known = records.known(RECORD, "contender", "seed", "step") if options.record else set()
        if (contender, seed, STEPS) in known:
            continue
        method = CONTENDERS[contender]
        given = {"data": train, "batch_size": 128, "seed": seed, "precision": "float32"}
        fresh = training.train(method, steps=60, learning_rate=1e-9, progress=False, **given)
        trained = training.Run(method, steps=STEPS, **given)
        for look in LOOKS:
            run = trained if look else fresh
            while look and run.steps_done < look:
                run.step()
            if (contender, seed, look) in known:
                continue
            knn = measures.knn_accuracy(run.embed(train), train.labels, run.embed(test), test.labels, k=20)
            row = {"command": "python benchmarks/gaussian.py --record", "contender": contender, "seed": seed}
            row |= {"steps": STEPS, "step": look, "images": IMAGES, "knn": knn}
            behind, drawn = run.project(test).double().numpy(), torch.Generator().manual_seed(seed)
            of = {
                "encoder": run.embed(test).double().numpy(),
                "head": behind,
                "matched": matched(behind, seed),
            }
            of["normal"] = torch.randn(IMAGES, 128, generator=drawn).double().numpy()
            row["head_rank"] = participation(behind)
            for where, z in of.items():
                row |= {f"{where}_{name}": value for name, value in normality(z, seed).items()}
            records.keep(RECORD, row, options.record)


if __name__ == "__main__":
    main()

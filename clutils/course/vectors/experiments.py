"""Ways to make two views of a vector, compared: each at its best strength, and features that learn nothing.

Notebook 16 trains a few of these live, `benchmarks/vectors.py` records all: the same code at other settings.
"""

from typing import Any

import pandas as pd
import torch
from torch import Tensor

from clutils import data, encoders, losses, measures, training
from clutils.course import evidence, records
from clutils.views import Identity
from clutils.views.vectors import Corruption, Masking, Noise

SETS = ("vectors:digits", "vectors:breast-cancer", "vectors:wine")
RECORD, STEPS, BATCH, SEEDS = "vectors", 100, 128, range(5)
TEMPERATURE, NEIGHBOURS, WIDTH = 0.2, 5, 256
COMPONENTS = 10  # of PCA, or as many as there are columns
NOTHING = ("raw", "PCA", "untrained")  # features without training

# name -> method, the name of its strength, strengths to choose from
WAYS: dict[str, tuple[str, str, tuple[float, ...]]] = {
    "two equal views": ("simclr", "", (0.0,)),
    "random noise": ("simclr", "noise", (0.5, 2.0)),
    "masking": ("simclr", "masking", (0.3, 0.6)),
    "SCARF's corruption": ("simclr", "corruption", (0.3, 0.6)),
    "DACL's mixup": ("dacl", "mixed", (0.2, 0.5)),
    "SimCL": ("simcl", "strength", (0.3, 1.0)),
    "CLAE": ("clae", "strength", (0.03, 0.1)),
    "PiNDA": ("pinda", "start", (0.02, 0.1)),
}
CONTROL = {"with labels": ("supcon", "noise", (0.5, 2.0))}  # what the labels themselves win by the same steps
VIEWS = {"noise": Noise, "masking": Masking, "corruption": Corruption}


def parts(train: data.VectorSet, seed: int) -> tuple[data.VectorSet, data.VectorSet]:
    """The training part in two: three quarters to learn from, a quarter, drawn by the seed, to choose by."""
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(seed))
    cut = len(train) // 4
    return train.subset(order[cut:]), train.subset(order[:cut])


def run_of(way: str, strength: float, train: data.VectorSet, seed: int = 0, **settings: Any) -> training.Run:
    """A run that makes its views in one of `WAYS` or learns as `CONTROL`; its encoder is three layers of 256.

    - settings: further ones of `training.Run`; 100 steps of 128 (or all, where there are fewer) by default
    """
    method, name, _ = (WAYS | CONTROL)[way]
    own = {} if name in VIEWS or not name else {name: strength}
    if method == "pinda":
        own["noise_rate"] = 1.0  # of the mlp's rate that is the paper's
    view = VIEWS[name](strength) if name in VIEWS else Identity()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = encoders.MLP(train.vectors.shape[1], hidden=WIDTH, features=WIDTH // 2)
    usual = {"steps": STEPS, "batch_size": min(BATCH, len(train)), "loss": losses.NTXent(TEMPERATURE)}
    usual |= {"loss": losses.SupCon(TEMPERATURE)} if way in CONTROL else {}
    return training.Run(
        method=method,
        data=train,
        encoder=encoder,
        augmentation=view,
        method_settings=own,
        seed=seed,
        precision="float32",
        threads=1,
        **usual | settings,
    )


def accuracy(z: Tensor, of: data.VectorSet, z_test: Tensor, test: data.VectorSet) -> float:
    """kNN accuracy (cosine, k = 5) on the test part; rows that are zero have no direction and are wrong."""
    return measures.knn_accuracy(z, of.labels, z_test, test.labels, k=min(NEIGHBOURS, len(z)))


def train_one(way: str, strength: float, name: str, seed: int, **settings: Any) -> dict[str, Any]:
    """One run -> a row: kNN by its features on the part to choose by (`validation`), and on the test part."""
    whole, test = data.load(name), data.load(name, "test")
    learned, chosen_by = parts(whole, seed)
    run = run_of(way, strength, learned, seed, **settings)
    training.shorten(run)
    run.finish(progress=False)
    z = run.embed(learned)
    found = {part: accuracy(z, learned, run.embed(of), of) for part, of in _judged(chosen_by, test)}
    return {"data": name, "way": way, "strength": strength, "seed": seed, "steps": run.steps_done, **found}


def nothing_learned(way: str, name: str, seed: int) -> dict[str, Any]:
    """A row as of `train_one` for features that learned nothing: one of `NOTHING`."""
    whole, test = data.load(name), data.load(name, "test")
    learned, chosen_by = parts(whole, seed)
    embed = _embedding(way, learned, seed)
    z = embed(learned)
    found = {part: accuracy(z, learned, embed(of), of) for part, of in _judged(chosen_by, test)}
    return {"data": name, "way": way, "strength": 0.0, "seed": seed, "steps": 0, **found}


def _judged(chosen_by: data.VectorSet, test: data.VectorSet) -> tuple:
    return ("validation", chosen_by), ("test", test)


def _embedding(way: str, learned: data.VectorSet, seed: int) -> Any:
    if way == "untrained":
        return run_of("two equal views", 0.0, learned, seed).embed
    centre = learned.vectors.mean(dim=0)
    if way == "raw":
        return lambda of: of.vectors - centre
    _, _, directions = torch.linalg.svd(learned.vectors - centre, full_matrices=False)
    return lambda of: (of.vectors - centre) @ directions[: min(COMPONENTS, len(directions))].T


def recorded() -> pd.DataFrame:
    """The record's runs, each way at the strength that was best on the part to choose by, mean over seeds."""
    rows = records.read(RECORD)
    chosen = rows.groupby(["data", "way", "strength"])["validation"].mean().reset_index()
    best = chosen.loc[chosen.groupby(["data", "way"])["validation"].idxmax(), ["data", "way", "strength"]]
    return rows.merge(best, on=["data", "way", "strength"])


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """way x data: 'mean ± standard deviation' of the test accuracy over seeds, in percent."""
    order = [way for way in (*NOTHING, *CONTROL, *WAYS) if way in set(rows["way"])]
    cells = rows.groupby(["way", "data"])["test"].agg(["mean", "std"])
    text = (100 * cells["mean"]).map("{:.1f}".format) + " ± " + (100 * cells["std"]).map("{:.1f}".format)
    return text.unstack("data").reindex(order)[list(dict.fromkeys(rows["data"]))]


def against(rows: pd.DataFrame, way: str, other: str, name: str) -> evidence.Difference:
    """Difference of two ways' test accuracy on a set, seed by seed; over seeds: their test rows are one."""
    both = rows[rows["data"] == name].pivot_table(index="seed", columns="way", values="test")
    both = both[[way, other]].dropna()
    return evidence.paired(both[way].tolist(), both[other].tolist())


def differences(rows: pd.DataFrame, other: str) -> pd.DataFrame:
    """Every trained way minus another one, `against` on every set: way, data, mean, half, verdict.

    verdict: "above" or "below" where the mean is farther from 0 than half the interval, else "not apart".
    """
    found = []
    for way in (way for way in WAYS if way in set(rows["way"]) and way != other):
        for name in dict.fromkeys(rows["data"]):
            gap = against(rows, way, other, name)
            found.append(
                {"way": way, "data": name, "mean": gap.mean, "half": gap.half, "verdict": gap.verdict}
            )
    return pd.DataFrame(found)


def points(rows: pd.DataFrame, way: str, other: str) -> str:
    """`against` on every set in points, as in "digits +1.5 ± 0.9, wine +0.9 ± 3.1": what a line prints."""
    found = {name: against(rows, way, other, name) for name in dict.fromkeys(rows["data"])}
    return ", ".join(
        f"{name.removeprefix('vectors:')} {100 * gap.mean:+.1f} ± {100 * gap.half:.1f}"
        for name, gap in found.items()
    )

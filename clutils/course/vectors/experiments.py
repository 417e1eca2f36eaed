"""Ways to make two views of a vector, compared: each at its best strength, and features that learn nothing.

Notebook 16 trains a few of these live, `benchmarks/vectors.py` records all: the same code at other settings.
"""

from typing import Any

import pandas as pd
import torch
from torch import Tensor

from clutils import data, encoders, losses, measures, training
from clutils.course import evidence, records
from clutils.course.experiments import labelled
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
    while not run.done:  # `finish` would print that views are equal, which the way's name says
        run.step()
    z, both = run.embed(learned), {"validation": chosen_by, "test": test}
    found = {part: accuracy(z, learned, run.embed(of), of) for part, of in both.items()}
    return {"data": name, "way": way, "strength": strength, "seed": seed, "steps": run.steps_done, **found}


def nothing_learned(way: str, name: str, seed: int) -> dict[str, Any]:
    """A row as of `train_one` for features that learned nothing: one of `NOTHING`."""
    whole, test = data.load(name), data.load(name, "test")
    learned, chosen_by = parts(whole, seed)
    embed = _embedding(way, learned, seed)
    z, both = embed(learned), {"validation": chosen_by, "test": test}
    found = {part: accuracy(z, learned, embed(of), of) for part, of in both.items()}
    return {"data": name, "way": way, "strength": 0.0, "seed": seed, "steps": 0, **found}


def _embedding(way: str, learned: data.VectorSet, seed: int) -> Any:
    if way == "untrained":
        return run_of("two equal views", 0.0, learned, seed).embed
    centre = learned.vectors.mean(dim=0)
    if way == "raw":
        return lambda of: of.vectors - centre
    _, _, directions = torch.linalg.svd(learned.vectors - centre, full_matrices=False)
    kept = COMPONENTS if way == "PCA" else int(way.split()[1])
    return lambda of: (of.vectors - centre) @ directions[:kept].T


# ---- SCARF's own experiment: few labels, two judges --------------------------------------------------------

FEW, FEW_STEPS, FEW_SEEDS, FEW_RECORD = 10, 800, range(3), "few_labels_of_rows"  # FEW: labels of each class
MADE = "made: what goes together is the class"
FEW_TABLES = {MADE: FEW_STEPS, "vectors:digits": 200}  # and for how many steps SCARF learns from each
JUDGES = ("kNN", "logistic regression")
COMPONENTS_TRIED = (8, 16, 24, 32, 48)  # beside the 10 of "PCA"
WITHOUT_NETWORK = ("raw", "PCA", *(f"PCA, {k} components" for k in COMPONENTS_TRIED))
FEATURES = (*WITHOUT_NETWORK, "untrained", "SCARF, as above", "SCARF, as published")
TREES = "boosted trees"  # on the raw columns
SPREADING = "label spreading"  # along 20 neighbours a row, on features without a network


class Published:
    """SCARF's view as the paper has it: ⌊cD⌋ columns of a row, each replaced by a row of the whole table's.

    - table: (N, D), the training part, whose columns are the marginal distributions; rate: c
    """

    kind = "vectors"

    def __init__(self, table: Tensor, rate: float = 0.6) -> None:
        self.table, self.rate = table, rate

    def __call__(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """(N, D) -> (N, D)."""
        chosen = torch.rand(x.shape, generator=generator).argsort(dim=1) < int(self.rate * x.shape[1])
        rows = torch.randint(len(self.table), x.shape, generator=generator)
        return torch.where(chosen, self.table.gather(0, rows), x)

    def several_views(self, x: Tensor, generator: torch.Generator | None, number: int) -> list[Tensor]:
        """The row itself, and views of it."""
        return [x, *(self(x, generator) for _ in range(number - 1))]


def made_table(number: int, seed: int) -> data.VectorSet:
    """Rows whose class no single column tells (see `by_one_column`): (number, 120), six classes.

    A row has an angle that nobody sees, and the class is its sixth of the circle. Forty columns are cosines
    of one to twelve times the angle, each with a phase of its own and noise; eighty are noise alone. Columns
    have deviation 1.
    """
    fixed, dice = (torch.Generator().manual_seed(s) for s in (7, seed))
    times = torch.randint(1, 13, (40,), generator=fixed)
    phases = 2 * torch.pi * torch.rand(40, generator=fixed)
    turn = torch.rand(number, generator=dice)
    waves = torch.cos(2 * torch.pi * turn[:, None] * times + phases)
    seen = (waves + 0.5 * torch.randn(number, 40, generator=dice)) / 0.75**0.5
    x = torch.cat([seen, torch.randn(number, 80, generator=dice)], dim=1)
    return data.vector_set(x, (6 * turn).long(), source=f"{number:,} rows, {MADE}")


def by_one_column(train: data.VectorSet, test: data.VectorSet) -> float:
    """The best test accuracy of a decision tree of twelve leaves that sees one column alone."""
    from sklearn.tree import DecisionTreeClassifier

    columns = zip(train.vectors.T[:, :, None].numpy(), test.vectors.T[:, :, None].numpy(), strict=True)
    trees = (
        DecisionTreeClassifier(max_leaf_nodes=12, random_state=0)
        .fit(own, train.labels.numpy())
        .score(asked, test.labels.numpy())
        for own, asked in columns
    )
    return float(max(trees))


def both_parts(name: str) -> tuple[data.VectorSet, data.VectorSet]:
    """Training and test part of a set by name, or of the table that is made."""
    if name == MADE:
        return made_table(1500, 0), made_table(600, 1)
    return data.load(name), data.load(name, "test")  # type: ignore[return-value]


def with_few_labels(name: str, seed: int, features: str, steps: int = FEW_STEPS) -> list[dict[str, Any]]:
    """Rows (features, labels, judge, seed, test) of one of `FEATURES`, by all labels and by few.

    With few labels and without a network, also by label spreading (Zhou et al. 2004), which sees all training
    rows and the few labels; of raw columns, also by boosted trees.
    """
    train, test = both_parts(name)
    few = labelled(train.labels, FEW * len(train.labels.unique()), seed)
    embed, rows = _features(features, train, seed, steps), []
    z, z_test = embed(train), embed(test)
    for labels, of in (("all", torch.arange(len(train))), ("few", few)):
        for judge in JUDGES:
            rows.append(
                (features, labels, judge, judged(judge, z[of], train.labels[of], z_test, test.labels))
            )
        if features == "raw":
            right = judged(TREES, train.vectors[of], train.labels[of], test.vectors, test.labels)
            rows.append((f"raw, by {TREES}", labels, TREES, right))
    if features in WITHOUT_NETWORK:
        rows.append((features, "few", SPREADING, spread(z, train.labels, few, z_test, test.labels)))
    named = (dict(zip(("features", "labels", "judge", "test"), row, strict=True)) for row in rows)
    return [{"data": name, "seed": seed, "steps": steps, **row} for row in named]


def spread(z: Tensor, y: Tensor, few: Tensor, z_test: Tensor, y_test: Tensor) -> float:
    """Test accuracy of scikit-learn's LabelSpreading: labels of the rows `few` move along 20 neighbours."""
    from sklearn.semi_supervised import LabelSpreading

    known = torch.full_like(y, -1)
    known[few] = y[few]
    model = LabelSpreading(kernel="knn", n_neighbors=20, max_iter=200)
    return float(model.fit(z.numpy(), known.numpy()).score(z_test.numpy(), y_test.numpy()))


def _features(name: str, train: data.VectorSet, seed: int, steps: int) -> Any:
    if name in (*NOTHING, *WITHOUT_NETWORK):
        return _embedding(name, train, seed)
    ours = name == "SCARF, as above"
    run = run_of(
        "SCARF's corruption",
        0.6,
        train,
        seed,
        steps=steps,
        batch_size=min(256, len(train)),
        loss=losses.NTXent(TEMPERATURE if ours else 1.0),
        learning_rate=3e-3,
    )
    if not ours:
        run.augmentation = Published(train.vectors)
    training.shorten(run)
    return run.finish(progress=False).embed


def judged(judge: str, z: Tensor, y: Tensor, z_test: Tensor, y_test: Tensor) -> float:
    """Test accuracy of a judge, one of `JUDGES` or `TREES`, on features (N, D)."""
    if judge == "kNN":
        return measures.knn_accuracy(z, y, z_test, y_test, k=min(NEIGHBOURS, len(z)))
    if judge == "logistic regression":
        return measures.linear_probe(z, y, z_test, y_test)
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(z.numpy(), y.numpy())
    return float(model.score(z_test.numpy(), y_test.numpy()))


# ---- what is on record -------------------------------------------------------------------------------------


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

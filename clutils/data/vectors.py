"""Sets of vectors: tables inside scikit-learn, and those that it fetches once, as PiNDA's HAR and Reuters.

Every feature is rescaled to [0, 1]: minus its least value in the training part, over its range there. A test
vector may lie a little outside; a feature that is constant in training becomes 0 where it has that value.
A set that was fetched is kept in `vectors/` of the data directory. scikit-learn's own downloads are not: it
would open pickles that lie in their place.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from clutils import files
from clutils.data.downloads import SWITCHED_OFF, explained, reach
from clutils.data.published import OnDisk
from clutils.data.sets import VectorSet

SPLITS = ("train", "test")
SEED = 0  # of every random choice made here
MOST = 2**30  # bytes of a set, unpacked
ROOTS = ("CCAT", "GCAT", "MCAT", "ECAT")  # RCV1's four root categories, in the order of DEC's labels
DOCUMENTS, TERMS, TRAINING_DOCUMENTS = 10_000, 2_000, 8_000


@dataclass(frozen=True)
class Parts:
    """A whole set before it is rescaled: `is_train` (N,) and a sentence on how the parts were divided."""

    vectors: np.ndarray  # (N, D)
    labels: np.ndarray  # (N,) int64
    is_train: np.ndarray  # (N,) bool
    division: str


@dataclass(frozen=True)
class Fetched:
    """A set that scikit-learn fetches: how, from where, and how it is named."""

    title: str
    class_names: tuple[str, ...]
    url: str  # asked for a sign of life before scikit-learn, which may wait for minutes; "" = inside it
    make: Callable[[Path], Parts]


def load(name: str, split: str, limit: int | None, root: Path, download: bool) -> VectorSet:
    """One split of a set of `SETS`, (N, D), fetched first where it is neither here nor inside scikit-learn.

    Raises `Unavailable`, in one line that says what happened and what to do.
    """
    fetched = SETS[name]
    if fetched.url:
        arrays = _kept(_place(name, root)) or _fetch(name, root, download)
    else:
        arrays = _divided(fetched.make(root))
    whole, labels = arrays[f"{split}_vectors"], arrays[f"{split}_labels"]
    vectors, total = whole[:limit], len(whole)
    count = f"{len(vectors):,} of {total:,}" if len(vectors) < total else f"all {total:,}"
    return VectorSet(
        vectors=torch.from_numpy(vectors),
        labels=torch.from_numpy(labels[:limit]),
        class_names=fetched.class_names,
        source=f"{fetched.title}: {count} of its {split} part, {vectors.shape[1]:,} features, each scaled to "
        f"[0, 1] by the training part (real; {arrays['division']})",
    )


def on_disk(root: Path) -> list[OnDisk]:
    """The sets of which anything lies below `root`; complete: ready without a network."""
    there = [(name, _place(name, root)) for name in SETS if _place(name, root).is_file()]
    return [OnDisk(f"vectors:{name}", path, path.stat().st_size, True) for name, path in there]


def reuters(home: Path) -> Parts:
    """A sample of RCV1 (Lewis et al. 2004), after DEC's recipe (Xie et al. 2016): 10,000 x 2,000.

    Of the 804,414 documents, those with exactly one of the four root categories; a random 10,000 of them, of
    which the first 8,000 drawn are for training; the 2,000 terms that occur in the most training documents.

    DEC counts words and weighs them itself. These are RCV1-v2's published weights, log tf-idf of stems, each
    document scaled to length 1 over all 47,236 terms; which documents the papers drew is not known.
    """
    from sklearn.datasets import fetch_rcv1

    found = fetch_rcv1(data_home=home)
    columns = [list(found.target_names).index(root) for root in ROOTS]
    has_root = found.target[:, columns].toarray() > 0  # (documents, 4)
    single = np.flatnonzero(has_root.sum(1) == 1)
    if len(single) < DOCUMENTS:
        raise ValueError(f"what came has {len(single):,} documents of one root category, not {DOCUMENTS:,}")
    drawn = np.random.default_rng(SEED).choice(single, DOCUMENTS, replace=False)
    weights = found.data[drawn].tocsc()  # (DOCUMENTS, 47236)
    documents = np.diff(weights[:TRAINING_DOCUMENTS].tocsc().indptr)  # in how many each term occurs
    terms = np.sort(np.argsort(-documents, kind="stable")[:TERMS])
    return Parts(
        vectors=weights[:, terms].toarray(),
        labels=has_root[drawn].argmax(1),
        is_train=np.arange(DOCUMENTS) < TRAINING_DOCUMENTS,
        division=f"sample and parts drawn at random with seed {SEED}",
    )


def table(name: str) -> Parts:
    """A table inside scikit-learn in its own units: (N, D), its labels, and which rows are for training.

    Of every class a quarter, drawn at random with seed 0, is the test part.
    """
    from sklearn import datasets

    found = getattr(datasets, f"load_{name.replace('-', '_')}")()
    labels, is_train = found.target.astype(np.int64), np.ones(len(found.target), bool)
    dice = np.random.default_rng(SEED)
    for label in range(len(found.target_names)):
        own = np.flatnonzero(labels == label)
        is_train[dice.permutation(own)[: round(len(own) / 4)]] = False
    division = f"a quarter of each class, drawn at random with seed {SEED}, is the test part"
    return Parts(found.data, labels, is_train, division)


def openml(
    title: str, name: str, class_names: tuple[str, ...], shape: tuple[int, int], first: int | tuple[int, ...]
) -> Fetched:
    """OpenML's set of this name, version 1.

    first: how many rows are for training, drawn at random; or how often each class is in the authors' own
    training part. Where the first rows have these counts they are taken to be that part (no column tells it);
    else as many are drawn, as `source` says.
    """

    def make(home: Path) -> Parts:
        from sklearn.datasets import fetch_openml

        found = fetch_openml(name, version=1, data_home=home, as_frame=False)
        values = np.asarray(found.data, np.float64)
        known, labels = np.unique(np.asarray(found.target).astype(str), return_inverse=True)
        if values.shape != shape or len(known) != len(class_names):
            raise ValueError(
                f"what came is {values.shape} with {len(known)} classes, not {shape} with {len(class_names)}"
            )
        training = int(np.sum(first))
        rows, division = np.arange(training), "the authors' own parts"
        if not np.array_equal(np.bincount(labels[:training]), first):
            rows = np.random.default_rng(SEED).permutation(len(values))[:training]
            division = f"parts drawn at random with seed {SEED}, not the authors' own"
        is_train = np.isin(np.arange(len(values)), rows)
        return Parts(values, labels.astype(np.int64), is_train, division)

    url = f"https://www.openml.org/api/v1/json/data/list/data_name/{name}/limit/2"
    return Fetched(title, class_names, url, make)


def _inside(name: str, title: str, *class_names: str) -> Fetched:
    return Fetched(f"{title}, inside scikit-learn", class_names, "", lambda home: table(name))


SETS = {
    "breast-cancer": _inside("breast-cancer", "Breast Cancer Wisconsin, cell nuclei", "malignant", "benign"),
    "wine": _inside("wine", "Wine, chemical analyses of three cultivars", "class_0", "class_1", "class_2"),
    "iris": _inside("iris", "Iris, lengths of leaves", "setosa", "versicolor", "virginica"),
    "letter": openml(
        "Letter Recognition, 16 moments of drawn capitals",
        "letter",
        tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        shape=(20_000, 16),
        first=16_000,
    ),
    "satimage": openml(
        "Statlog Landsat, 3 x 3 pixels in four bands",
        "satimage",
        ("red soil", "cotton crop", "grey soil", "damp grey soil", "stubble", "very damp grey soil"),
        shape=(6430, 36),
        first=4_435,
    ),
    "har": openml(  # Anguita et al. 2013; the authors' parts are of different persons
        "Human Activity Recognition Using Smartphones, windows of 2.56 s",
        "har",
        ("walking", "walking upstairs", "walking downstairs", "sitting", "standing", "laying"),
        shape=(10_299, 561),
        first=(1226, 1073, 986, 1286, 1374, 1407),
    ),
    "reuters": Fetched(
        title="Reuters RCV1-v2, a sample of 10,000 documents of one root category",
        class_names=ROOTS,
        url="https://ndownloader.figshare.com/files/5976048",
        make=reuters,
    ),
}


def rescaled(vectors: np.ndarray, is_train: np.ndarray) -> np.ndarray:
    """Each feature minus its least value in training, over its range there; (N, D) float32."""
    least, most = vectors[is_train].min(0), vectors[is_train].max(0)
    width = np.where(most > least, most - least, 1)
    return ((vectors - least) / width).astype(np.float32)


def _place(name: str, root: Path) -> Path:
    return root / "vectors" / f"{name}.npz"


def _divided(parts: Parts) -> dict[str, Any]:
    """Parts of a set that are kept: both parts, rescaled, and how they were divided."""
    vectors, arrays = rescaled(parts.vectors, parts.is_train), {"division": np.array(parts.division)}
    for part, inside in zip(SPLITS, (parts.is_train, ~parts.is_train), strict=True):
        arrays |= {f"{part}_vectors": vectors[inside], f"{part}_labels": parts.labels[inside]}
    return arrays


def _fetch(name: str, root: Path, download: bool) -> dict[str, Any]:
    """Let scikit-learn fetch the set, divide it and keep it."""
    fetched, path = SETS[name], _place(name, root)
    by_hand = f"copy {path.relative_to(root)} into {root} from a machine that has it"
    own = "take 'vectors:digits', or your own as 'vectors:array:PATH'"
    with explained(f"vectors:{name}", root, f"{by_hand}; or {own}"):
        if not download:
            raise ValueError(SWITCHED_OFF)
        reach(fetched.url)
        root.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="scikit-learn-", dir=root) as home:
            arrays = _divided(fetched.make(Path(home)))
        files.write_atomically(path, partial(np.savez_compressed, **arrays))
    return arrays


def _kept(path: Path) -> dict[str, Any] | None:
    """Result of `_divided`, or None where the file is not there or not whole."""
    try:
        return files.arrays(path, MOST)
    except (OSError, ValueError):
        return None

"""Data: `load(name)` gives a set of images, vectors, graphs or sentences as one tensor, or says why it can't.

`vector_set`, `graph_set` and `sentence_set` make such a set of what a reader has.
"""

import os
from pathlib import Path
from typing import Any

from clutils.data import (
    digits,
    folders,
    graphs,
    hard_scenes,
    own_graphs,
    published,
    scenes,
    sentences,
    tables,
    vectors,
)
from clutils.data.kinds import KINDS, Kind, kind_called, kind_of, width
from clutils.data.own_graphs import graph_set
from clutils.data.published import OnDisk
from clutils.data.sentences import sentence_set
from clutils.data.sets import (
    GraphSet,
    ImageSet,
    SentenceSet,
    Unavailable,
    VectorSet,
    asked,
    whole_number,
)
from clutils.data.tables import vector_set
from clutils.settings import did_you_mean, within

__all__ = [
    "KINDS",
    "NAMES",
    "GraphSet",
    "ImageSet",
    "Kind",
    "OnDisk",
    "SentenceSet",
    "Unavailable",
    "VectorSet",
    "directory",
    "graph_set",
    "kind_called",
    "kind_of",
    "load",
    "on_disk",
    "sentence_set",
    "vector_set",
    "width",
]

# beginnings of names that end in a path
OWN = ("folder:", "vectors:array:", "nodes:file:", "sentences:file:")

NAMES = {
    "scenes": "generated: a textured object on a background, the class is the texture; exact masks",
    "scenes-hard": "generated: small objects on backgrounds as textured as they are; exact masks",
    "digits": "1,797 real handwritten digits, 8x8, inside scikit-learn",
    "cifar10": "60,000 photographs in 10 classes, 32x32; a download of 170 MB",
    "cifar100": "60,000 photographs in 100 classes, 32x32; a download of 169 MB",
    "stl10": "13,000 photographs in 10 classes and 100,000 without, 96x96; a download of 2.6 GB",
    "fashion-mnist": "70,000 images of clothes in 10 classes, 28x28, grey; a download of 31 MB",
    "folder:PATH": "your own images, in class-named folders",
    "vectors:digits": "the same 1,797 digits as 64 numbers each",
    "vectors:breast-cancer": "569 tumours, 30 measures of their cell nuclei, 2 classes, inside scikit-learn",
    "vectors:wine": "178 wines, 13 chemical measures, 3 classes, inside scikit-learn",
    "vectors:iris": "150 flowers, 4 lengths, 3 classes, inside scikit-learn",
    "vectors:letter": "20,000 drawn capitals, 16 features, 26 classes; a download of 1 MB",
    "vectors:satimage": "6,430 satellite windows, 36 features, 6 classes; a download of 1 MB",
    "vectors:har": "10,299 windows of a phone's sensors, 561 features, 6 classes; a download of tens of MB",
    "vectors:reuters": "10,000 news stories of 4 categories, 2,000 tf-idf terms; a download of 656 MB",
    "vectors:array:PATH": "your own table: .csv by pandas (PATH?label=COLUMN), .npy (N, D), or "
    ".npz with `vectors`",
    "graphs:atlas-connected": "all 1,252 graphs of up to 7 nodes, inside networkx; the class is exact",
    "graphs:atlas-bipartite": "the same, by whether two colours suffice",
    "graphs:atlas-triangles": "the same, by whether there is a triangle",
    "graphs:atlas-planar": "the same, by whether it can be drawn without a crossing",
    "graphs:motifs": "generated: a tree with a motif tied to it, the class is the motif",
    "graphs:mutag": "188 molecules, 2 classes; a download of tens of kB, read by the extra [graphs]",
    "graphs:proteins": "1,113 proteins, 2 classes, those of at most 128 nodes; 1 MB, by the extra [graphs]",
    "nodes:blocks": "generated: 150 nodes of a stochastic block model, the class is the block",
    "nodes:karate": "34 members of a karate club, inside networkx, the class is the side they took",
    "nodes:miserables": "77 characters of Les Misérables, inside networkx, by whether all hangs on them",
    "nodes:florentine": "15 Florentine families, inside networkx, by whether all hangs on them",
    "nodes:file:PATH": "your own network: an edge list by pandas; PATH?nodes=TABLE.csv has "
    "attributes and labels",
    "nodes:cora": "2,708 papers and who cites whom, 7 classes; some MB, read by the extra [graphs]",
    "nodes:citeseer": "3,327 papers and who cites whom, 6 classes; some MB, read by the extra [graphs]",
    "sentences:topics": "about 3,000 sentences of Python's own help, nearly 80 topics, inside Python",
    "sentences:file:PATH": "your own text: a line a sentence, and perhaps a tab and its label; "
    "PATH?text=2&label=3&length=64 names columns and how many words are kept",
}
_SPLITS = {
    "scenes": tuple(scenes.COUNTS),
    "scenes-hard": tuple(scenes.COUNTS),
    "digits": tuple(digits.COUNTS),
    **{name: tuple(found.splits) for name, found in published.SETS.items()},
    "vectors:digits": tuple(digits.COUNTS),
    **{f"vectors:{name}": vectors.SPLITS for name in vectors.SETS},
    "sentences:topics": sentences.SPLITS,
    **graphs.SPLITS,
}


def load(
    name: str,
    split: str = "train",
    limit: int | None = None,
    fallback: str | None = None,
    size: int | None = None,
    root: str | os.PathLike[str] | None = None,
    seed: int = 0,
    download: bool = True,
) -> ImageSet | VectorSet | GraphSet | SentenceSet:
    """The images, vectors, graphs or sentences called `name`: one of `NAMES`.

    A name with a path is a reader's own: 'folder:PATH' (see `folders.read`), 'vectors:FILE.csv' or
    'vectors:array:PATH' (see `tables.read`), 'nodes:file:PATH' (see `own_graphs.read_nodes`),
    'sentences:file:PATH' (see `sentences.read`).
    'vectors:digits' has the same split as the images; of the other sets of vectors with a name every feature
    is rescaled to [0, 1] by the training part.

    - `split`: 'train' or 'test'; 'unlabeled' of stl10; a folder's own
    - `limit`: the first so many (of a folder: as many of each class, drawn); 'scenes' and 'scenes-hard' give
      any number, 8,000 and 2,000 where none is asked for
    - `size`: images of size x size, instead of the size they have; a folder's are cut to the square
    - `root`: the data directory, where downloads land; else see `directory`
    - `seed`: of 'scenes' and 'scenes-hard', of generated graphs; other sets are what they are
    - `download`: False never touches the network
    - `fallback`: for notebooks: the set to take instead, after one printed line that says why, where `name`
      could not be downloaded; never in place of a path of the reader's own

    Raises `ValueError` for a name, split, limit or size that can't be; `Unavailable`, a FileNotFoundError, in
    one line with what to do, where the data isn't there and can't be fetched.
    """
    within("data.load", "limit", limit, 1, whole=True, also=(None,))
    within("data.load", "size", size, 4, whole=True, also=(None,))
    within("data.load", "seed", seed, 0, 2**63 - 1, whole=True)
    name = f"folder:{name}" if isinstance(name, os.PathLike) else name
    name, fallback = full_name(name), full_name(fallback)
    for what, given in (("data.load", name), ("data.load: fallback", fallback)):
        if given is None and what != "data.load":
            continue
        if not isinstance(given, str):
            raise ValueError(f"{what}: name is {given!r}, but must be one of {', '.join(NAMES)}")
        if _plain(given) not in _SPLITS and not given.startswith(OWN):
            hint = did_you_mean(given, NAMES, listed=True)
            if given.startswith("array:"):
                hint = f"; did you mean 'vectors:{given}'?"
            if given.startswith("graphs:file:"):
                hint = "; commit 8e5a616 reads such a file. data.graph_set takes networkx graphs"
            raise ValueError(f"{what}: no data called {given!r}{hint}")
        kind = kind_called(given).name
        if size is not None and kind != "pictures":
            raise ValueError(f"{what}: size is {size}, but {given} has {kind}, not images")
    if split not in _SPLITS.get(_plain(name), (split,)):
        raise ValueError(
            f"data.load: {name} has no split {split!r}; it has {', '.join(_SPLITS[_plain(name)])}"
        )
    try:
        return _load(name, split, limit, size, directory(root), seed, download)
    except Unavailable as error:
        if fallback is None or name.startswith(OWN):
            raise
        other = split if split in _SPLITS.get(fallback, (split,)) else "train"
        native = published.SETS[name].side if name in published.SETS else None
        print(f"{name} could not be downloaded ({error.reason or error}). Using {fallback} instead")
        found = _load(fallback, other, limit, size or native, directory(root), seed, download)
        found.source = f"{found.source}, in place of {name}"
        return found


def directory(root: str | os.PathLike[str] | None = None) -> Path:
    """Where downloads land: `root`, else $CLUTILS_DATA, else data/ in the project, else the user's cache."""
    if given := root or os.environ.get("CLUTILS_DATA"):
        return Path(given).expanduser()
    project = Path(__file__).resolve().parents[2]
    if (project / "pyproject.toml").is_file():  # installed in editable mode
        return project / "data"
    return Path.home() / ".cache" / "clutils"


def on_disk(root: str | os.PathLike[str] | None = None) -> list[OnDisk]:
    """The downloaded sets that lie in the data directory: (name, path, bytes, complete)."""
    found = directory(root)
    return [*published.on_disk(found), *vectors.on_disk(found)]


def _load(
    name: str, split: str, limit: int | None, size: int | None, root: Path, seed: int, download: bool
) -> ImageSet | VectorSet | GraphSet | SentenceSet:
    if name.startswith("nodes:file:"):
        return own_graphs.read_nodes(name.removeprefix("nodes:file:"), split).subset(slice(limit))
    if name.startswith(("graphs:", "nodes:")):
        return graphs.load(name, split, limit, root, download, seed)
    if name in ("scenes", "scenes-hard"):
        make = scenes.make if name == "scenes" else hard_scenes.make
        return make(limit or scenes.COUNTS[split], size or 32, seed, split)
    if name.startswith("folder:"):
        return folders.read(name.removeprefix("folder:"), split, limit, size)
    if name.startswith("sentences:file:"):
        return sentences.read(name.removeprefix("sentences:file:"), split, limit)
    if name.startswith("sentences:topics"):
        length = asked(name, ("length",))[1].get("length", sentences.LENGTH)
        return sentences.topics(split, limit, whole_number("sentences:topics", "length", length))
    if name.startswith("vectors:array:"):
        return tables.read(name.removeprefix("vectors:array:"), split, limit)
    if name == "vectors:digits":
        return digits.vectors(split, limit)
    if name.startswith("vectors:"):
        return vectors.load(name.removeprefix("vectors:"), split, limit, root, download)
    found = (
        digits.images(split, limit)
        if name == "digits"
        else published.load(name, split, limit, root, download)
    )
    return found if size is None else found.resized(size)


def full_name(name: Any) -> Any:
    """'vectors:FILE.csv' as 'vectors:array:FILE.csv'; other names as they are."""
    if isinstance(name, str) and name.startswith("vectors:") and not name.startswith(OWN):
        path = asked(name.removeprefix("vectors:"))[0]
        if Path(path).suffix.lower() in tables.SUFFIXES:
            return f"vectors:array:{name.removeprefix('vectors:')}"
    return name


def _plain(name: str) -> str:
    """A name without what may stand behind it."""
    return asked(name, ("length",))[0] if name.startswith("sentences:topics?") else name

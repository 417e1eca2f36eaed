"""Published graphs as their authors' files have them: TU Dortmund's text files, Planetoid's pickles.

Of a pickle arrays alone are let in: nothing in it is called.
"""

import pickle
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

Edges = list[tuple[int, int]]
VALIDATION = 500  # nodes behind the training ones, of the public split


class Network(NamedTuple):
    """One network: attributes (n, F), edges, labels (n,), and the nodes of the public split, by number."""

    attributes: Tensor
    edges: Edges
    labels: Tensor
    train: Tensor
    validation: Tensor
    test: Tensor


def tu(folder: Path, name: str) -> tuple[list[tuple[Tensor, Edges]], list[int]]:
    """A set of the TU collection: for each graph attributes (n, F) and edges, and its label.

    Attributes are the nodes' labels, one-hot. Raises OSError where a file is missing, ValueError where one
    is not as it should be.
    """

    def numbers(part: str) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an empty file is a warning
            try:
                return np.loadtxt(folder / f"{name}_{part}.txt", np.int64, delimiter=",", ndmin=2)
            except UserWarning as error:
                raise ValueError(f"{name}_{part}.txt: {error}") from error

    of_graph, labels = numbers("graph_indicator")[:, 0] - 1, numbers("graph_labels")[:, 0]
    tags, pairs = numbers("node_labels")[:, 0], numbers("A") - 1
    count = len(of_graph)
    if len(tags) != count or pairs.shape[1] != 2 or not 0 <= pairs.min() <= pairs.max() < count:
        raise ValueError(f"{name}: its files are not of the same {count:,} nodes")
    if sorted(set(of_graph.tolist())) != list(range(len(labels))) or (np.diff(of_graph) < 0).any():
        raise ValueError(
            f"{name}: its nodes are not of the {len(labels):,} graphs that have labels, in order"
        )
    attributes = F.one_hot(torch.from_numpy(tags - tags.min())).float()
    first = np.searchsorted(of_graph, np.arange(len(labels) + 1))
    edges: list[Edges] = [[] for _ in labels]
    for a, b in pairs.tolist():
        graph = of_graph[a]
        if of_graph[b] != graph:
            raise ValueError(f"{name}: an edge, {a + 1} to {b + 1}, is between two graphs")
        edges[graph].append((a - first[graph], b - first[graph]))
    graphs = [(attributes[first[at] : first[at + 1]], edges[at]) for at in range(len(labels))]
    return graphs, labels.tolist()


def planetoid(folder: Path, name: str) -> Network:
    """A citation network with the public split of Yang et al. 2016.

    The test papers' rows come last in the files, in the order of `test.index`; where some numbers are missing
    there (CiteSeer), these papers have neither attributes nor citations. Raises as `tu` does.
    """
    parts = ("allx", "tx", "y", "ally", "ty", "graph")
    allx, tx, y, ally, ty, graph = (unpickled(folder / f"ind.{name}.{part}") for part in parts)
    tested = np.loadtxt(folder / f"ind.{name}.test.index", np.int64, ndmin=1)
    first, last = tested.min(), tested.max()
    sizes = len(tested), len(_rows(tx)), len(_rows(ty)), len(_rows(ally)) - len(_rows(allx)) + len(tested)
    if len(set(sizes)) > 1 or first != len(_rows(allx)) or not isinstance(graph, dict):
        raise ValueError(f"{name}: its files do not fit together")
    attributes = np.zeros((last + 1, _rows(allx).shape[1]), np.float32)
    codes = np.zeros((last + 1, _rows(ally).shape[1]), np.float32)
    attributes[:first], codes[:first] = _rows(allx), _rows(ally)
    attributes[tested], codes[tested] = _rows(tx), _rows(ty)
    edges = [(int(a), int(b)) for a, others in graph.items() for b in others]
    if any(not (0 <= a <= last and 0 <= b <= last) for a, b in edges):
        raise ValueError(f"{name}: an edge is of a paper that there is not")
    labels, known = torch.from_numpy(codes.argmax(axis=1)), len(_rows(y))
    validation = torch.arange(known, min(known + VALIDATION, int(first)))
    public = torch.arange(known), validation, torch.from_numpy(np.sort(tested))
    return Network(torch.from_numpy(attributes), edges, labels, *public)


def unpickled(path: Path) -> Any:
    """The arrays, sparse matrices, dictionaries and lists in a pickle. Raises ValueError on anything else."""
    with open(path, "rb") as file:
        try:
            found = _Arrays(file, encoding="latin1").load()
        except (OSError, MemoryError):
            raise
        except Exception as error:  # a broken pickle makes Python raise nearly anything
            raise ValueError(f"{path.name} is not an array: {' '.join(str(error).split())[:200]}") from error
    return _dense(found, path.name) if isinstance(found, _Sparse) else found


class _Sparse:
    """What a pickled csr_matrix holds, in place of SciPy's own class."""


class _Arrays(pickle.Unpickler):
    """Lets in what an array is made of, and makes nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        where = module.removeprefix("_").partition(".")[0]
        if (where, name) == ("numpy", "_reconstruct"):
            return lambda *given: np.empty(0)  # its shape and numbers come behind, with its state
        if (where, name) in (("numpy", "ndarray"), ("numpy", "dtype")):
            return getattr(np, name)
        if (where, name) == ("scipy", "csr_matrix"):
            return _Sparse
        if (module, name) == ("collections", "defaultdict"):
            return lambda *given: defaultdict(list)
        if (where, name) in (("copyreg", "_reconstructor"), ("copy_reg", "_reconstructor")):
            return lambda kind, *rest: _Sparse()
        if name in ("list", "object"):
            return {"list": list, "object": object}[name]
        if (where, name) == ("codecs", "encode"):
            return lambda text, encoding: text.encode("latin1")
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is no part of an array")


def _dense(sparse: _Sparse, name: str) -> np.ndarray:
    from scipy.sparse import csr_matrix

    state = vars(sparse)
    shape = state.get("_shape", state.get("shape"))
    try:
        return csr_matrix((state["data"], state["indices"], state["indptr"]), shape=shape).toarray()
    except (KeyError, TypeError) as error:
        raise ValueError(f"{name} is not a sparse matrix: {error!r}") from error


def _rows(array: Any) -> np.ndarray:
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError("one of its arrays is not a table of numbers")
    return array

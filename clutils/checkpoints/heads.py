"""Projection heads: a chain of linear layers, normalisations and activations, rebuilt from its weights."""

import re
from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from clutils.checkpoints import layouts
from clutils.checkpoints.backbones import COUNTER
from clutils.checkpoints.states import State

FEWEST = 2  # linear layers of a head that no layout names: one alone may be a classifier
# words in a name's beginning: parts that are not the head, or that belong to a second network
NONE = re.compile(
    r"classif|predict|prototype|last_layer|target|momentum|teacher|encoder_k|ema_|queue|decoder"
)
MOST = 200  # beginnings that are tried
RELU = "its projection head, under {!r}, is rebuilt with a ReLU between its layers: weights do not tell"


def found(
    names: Mapping[str, Tensor], states: Sequence[State], features: int
) -> list[tuple[str, nn.Sequential, set[str]]]:
    """Heads that no layout names: where each lies, the module, and its names among `names`.

    - names: what is left of the encoder's own state; states: all of the file; features: of the encoder

    The outermost of beginnings that hold one another. Classifiers, predictors, prototypes and the heads of
    moving averages are left out.
    """
    heads: list[tuple[str, nn.Sequential, set[str]]] = []
    last = [name for name in names if "last_layer" in name]  # DINO's, whose layers have a GELU between

    def take(where: str, own: Mapping[str, Tensor], used: set[str]) -> None:
        head = None if NONE.search(where) else rebuilt(own, features)
        if head is not None and sum(isinstance(layer, nn.Linear) for layer in head) >= FEWEST:
            heads.append((where, head, used))

    for begin in _beginnings(names):
        parent = begin.rstrip(".").rpartition(".")[0]
        beside_last = parent and any(name.startswith(f"{parent}.") for name in last)
        if not beside_last and not any(begin.startswith(known) for known, *_ in heads):
            own = layouts.with_prefix(begin, names)
            take(begin, own, {begin + name for name in own})
    for state in states:
        if where := ".".join(state.keys):
            take(where, state.names, set())
    return heads


def under(begin: str, states: Sequence[State], features: int) -> nn.Module:
    """The head that the caller names, by a key or a beginning of names. Raises ValueError where none is."""
    begin = begin.rstrip(".")
    for state in states:
        own = state.names if begin in (state.container, ".".join(state.keys)) else {}
        own = own or layouts.with_prefix(f"{begin}.", state.names)
        if own and (head := rebuilt(own, features)):
            return head
    fits = [where for state in states for where, *_ in found(state.names, [state], features)]
    raise ValueError(
        f"head is {begin!r}, but no linear layers and normalisations for {features} features are there; "
        f"they are under {', '.join(map(repr, dict.fromkeys(fits))) or 'no beginning of names'}"
    )


def _beginnings(names: Mapping[str, Tensor]) -> list[str]:
    """Every beginning of these names that ends in a dot, outer ones first."""
    parts = [name.split(".") for name in names if len(name) <= 200]
    every = {".".join(part[:k]) + "." for part in parts for k in range(1, min(len(part), 6))}
    return sorted(every, key=lambda begin: (begin.count("."), begin))[:MOST]


def rebuilt(found: Mapping[str, Tensor], features: int) -> nn.Sequential | None:
    """A projection head from its weights: linear layers and normalisations, by their numbers or in order.

    A number without weights between two that have some is the ReLU between them; of layers with names, one
    stands before each linear layer but the first. None where it is anything else, does not fit the features,
    or is not finite: then what needs it is not measured.
    """
    named: dict[str, dict[str, Tensor]] = {}
    for name, value in found.items():
        layer, _, what = name.rpartition(".")
        named.setdefault(layer, {})[what] = value
    numbers = [layer.rpartition(".")[2] for layer in named]
    numbered = all(n.isdecimal() for n in numbers) and len(set(numbers)) == len(numbers)
    ordered = list(enumerate(named.values()))
    if numbered:
        ordered = sorted((int(n), parts) for n, parts in zip(numbers, named.values(), strict=True))
    layers: list[nn.Module] = []
    at, width = ordered[0][0] if ordered else 0, features
    for number, parts in ordered:
        module = _layer(parts, width)
        if module is None:
            return None
        before = number > at if numbered else isinstance(module, nn.Linear)
        if before and layers:
            layers.append(nn.ReLU())
        layers.append(module)
        at, width = number + 1, getattr(module, "out_features", width)
    return nn.Sequential(*layers).eval() if any(isinstance(x, nn.Linear) for x in layers) else None


def _layer(parts: Mapping[str, Tensor], width: int) -> nn.Module | None:
    """A linear layer or a normalisation that takes `width` numbers, filled; None if it is neither."""
    numbers = [value for name, value in parts.items() if name != COUNTER]
    if not all(value.is_floating_point() and value.isfinite().all() for value in numbers):
        return None
    weight, mean = parts.get("weight"), parts.get("running_mean")
    linear = weight is not None and weight.ndim == 2 and set(parts) <= {"weight", "bias"}
    layer: nn.Module
    if weight is not None and linear and weight.shape[1] == width:
        layer = nn.Linear(width, len(weight), bias="bias" in parts, device="meta")  # nothing is drawn for it
    elif mean is not None and tuple(mean.shape) == (width,):
        layer = nn.BatchNorm1d(width, affine=weight is not None)
    elif weight is not None and tuple(weight.shape) == (width,) and set(parts) == {"weight", "bias"}:
        layer = nn.LayerNorm(width)
    else:
        return None
    try:
        kept = {name: value.float().clone() for name, value in parts.items()}
        layer.load_state_dict({**layer.state_dict(), **kept}, assign=isinstance(layer, nn.Linear))
    except RuntimeError:  # a bias of another length, a part that such a layer does not have
        return None
    return layer

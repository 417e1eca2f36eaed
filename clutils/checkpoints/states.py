"""States of a file: every mapping that names tensors, with its names as networks have them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from clutils.checkpoints import layouts, reading

LEAST = 4  # tensors that a network has; of an optimiser, a weight has two
AVERAGED = re.compile(r"(?:^|_)(?:ema|swa|averaged?|moving_average)(?:$|_)", re.IGNORECASE)
CHUNKED = re.compile(r"(?P<before>^|.*\.)blocks\.\d+\.(?P<block>\d+)\.(?=(?:norm\d|attn|ls\d|mlp)\.)")
PLAIN = re.compile(r"(?:^|.*\.)blocks\.\d+\.(?:norm\d|attn|ls\d|mlp)\.")


@dataclass(frozen=True)
class State:
    """Tensors by name.

    - keys: under which it lies in the file, outermost first
    - averaged: the key or beginning that says that these are a moving average of weights; else ""
    - notes: what was done to the names or the weights, a sentence each
    """

    keys: tuple[str, ...]
    names: dict[str, Tensor]
    averaged: str = ""
    notes: tuple[str, ...] = ()

    @property
    def container(self) -> str:
        """The innermost key."""
        return self.keys[-1] if self.keys else ""


def found(state: Any, path: str | Path) -> list[State]:
    """Every mapping that holds tensors by name, the likeliest to be an encoder's first.

    Raises Refused where they name more tensors than any encoder's file does.
    """
    every, count = [], 0
    for keys, mapping in reading.mappings(state):
        names = reading.tensors(mapping, path)
        count += len(names)
        if count > 2 * reading.TENSORS:
            raise reading.Refused(
                f"{path} names over {2 * reading.TENSORS:,} tensors in its mappings, which no encoder has"
            )
        if names:
            averaged = next(filter(AVERAGED.search, keys), "")
            every += _parted(State(keys, layouts.unwrapped(names), averaged))
    every = [one for one in every if len(one.names) >= LEAST] or every[:1]
    every.sort(key=lambda one: layouts.rank(one.container))  # a stable sort: outer before inner
    return [_unchunked(_unpruned(one)) for one in every]


def _parted(state: State) -> list[State]:
    """Weights and, where their names begin as `ema_model.` does, the moving average beside them."""
    begins = {name.partition(".")[0] for name in state.names if "." in name}
    parts = []
    for begin in sorted(begin for begin in begins if AVERAGED.search(begin)):
        own = layouts.unwrapped(layouts.with_prefix(f"{begin}.", state.names))
        parts.append(State((*state.keys, begin), own, begin))
    averaged = tuple(f"{part.averaged}." for part in parts)
    rest = {name: value for name, value in state.names.items() if not name.startswith(averaged)}
    return [replace(state, names=rest), *parts] if rest else parts


def _unpruned(state: State) -> State:
    """Weights that torch.nn.utils.prune left as NAME_orig and NAME_mask, multiplied."""
    names, masks = dict(state.names), 0
    for name, mask in state.names.items():
        whole = name.removesuffix("_mask")
        value = names.get(f"{whole}_orig") if whole != name else None
        if value is not None and value.shape == mask.shape:
            names[whole] = value * mask.to(value.dtype)
            del names[name], names[f"{whole}_orig"]
            masks += 1
    note = f"{masks} of its weights were pruned: each is multiplied by the mask beside it"
    return replace(state, names=names, notes=(*state.notes, note)) if masks else state


def _unchunked(state: State) -> State:
    """Blocks of a transformer that DINOv2's training wrote in chunks: `blocks.1.4.` is `blocks.4.`."""
    names = {_in_one_row(name): value for name, value in state.names.items()}
    if len(names) < len(state.names) or names.keys() == state.names.keys() or _plain(state.names):
        return state
    return replace(state, names=names)


def _in_one_row(name: str) -> str:
    return CHUNKED.sub(r"\g<before>blocks.\g<block>.", name, count=1)


def _plain(names: Mapping[str, Tensor]) -> bool:
    return any(PLAIN.match(name) for name in names)

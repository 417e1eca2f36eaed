"""States of a file: every mapping that names tensors, with its names as networks have them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from clutils.checkpoints import layouts, reading

LEAST = 4  # tensors that a network has; of an optimiser, a weight has two
AVERAGED = re.compile(r"(?:^|_)(?:ema|swa|averaged?|moving_average)(?:$|_)", re.IGNORECASE)
PARTS = r"(?:norm\d|attn|ls\d|mlp)\."  # of a block
CHUNKED = re.compile(rf"(?<![^.])blocks\.\d+\.(?=\d+\.{PARTS})")
PLAIN = re.compile(rf"(?<![^.])blocks\.\d+\.{PARTS}")


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
    every.sort(key=lambda one: layouts.rank(one.container))  # a stable sort: outer before inner
    return [_unchunked(_unpruned(one)) for one in every]


def under_name(name: str, found: Sequence[State]) -> list[State]:
    """States under this key; where there is none, what lies under this beginning of names."""
    name = name.rstrip(".")
    several = [state for state in found if name in (*state.keys, ".".join(state.keys))]
    inner = ((state, layouts.with_prefix(f"{name}.", state.names)) for state in found)
    return several or [replace(state, names=own) for state, own in inner if own]


def _parted(state: State) -> list[State]:
    """Weights and, where their names begin as `ema_model.` does, the moving average beside them."""
    by_begin: dict[str, dict[str, Tensor]] = {"": {}}
    for name, value in state.names.items():
        begin, _, inner = name.partition(".")
        averaged = bool(inner and AVERAGED.search(begin))
        by_begin.setdefault(begin if averaged else "", {})[inner if averaged else name] = value
    rest = by_begin.pop("")
    parts = [State((*state.keys, k), layouts.unwrapped(own), k) for k, own in by_begin.items()]
    if parts and all(name.startswith("model.") for name in rest):  # as `ema_model.` is stripped
        rest = layouts.unwrapped({name.removeprefix("model."): value for name, value in rest.items()})
    return [replace(state, names=rest), *parts] if rest else parts


def _unpruned(state: State) -> State:
    """Weights that torch.nn.utils.prune left as NAME_orig and NAME_mask, multiplied.

    No more bytes are made than the file holds: many names may share one tensor.
    """
    names, masks = dict(state.names), 0
    left = sum({value.data_ptr(): value.nbytes for value in names.values()}.values())
    for name, mask in state.names.items():
        whole = name.removesuffix("_mask")
        value = names.get(f"{whole}_orig") if whole != name else None
        if value is not None and value.shape == mask.shape and value.nbytes <= left:
            left -= value.nbytes
            names[whole] = value * mask.to(value.dtype)
            del names[name], names[f"{whole}_orig"]
            masks += 1
    note = f"{masks} of its weights were pruned: each is multiplied by the mask beside it"
    return replace(state, names=names, notes=(*state.notes, note)) if masks else state


def _unchunked(state: State) -> State:
    """Blocks of a transformer that DINOv2's training wrote in chunks: `blocks.1.4.` is `blocks.4.`."""
    names = {CHUNKED.sub("blocks.", name, count=1): value for name, value in state.names.items()}
    changed = len(names) == len(state.names) and names.keys() != state.names.keys()
    return replace(state, names=names) if changed and not any(map(PLAIN.search, state.names)) else state

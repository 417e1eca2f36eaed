"""Kinds of samples: what one tensor holds, known by its type and its shape.

A further kind is a row here, an encoder in `encoders.NAMES` and augmentations in `views`; `training`, the
command line and the lab read them.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Kind(NamedTuple):
    """One kind of samples.

    - name: of several, as errors say it
    - dtype, ndim: of the tensor that holds them
    - shape: the same in words
    - parts: what `width` counts
    - encoder: that of a run which names none
    - example: a name for `data.load`
    """

    name: str
    dtype: torch.dtype
    ndim: int
    shape: str
    parts: str
    encoder: str
    example: str

    def __str__(self) -> str:
        return said(self.name)


KINDS = (
    Kind("pictures", torch.uint8, 4, "(N, C, H, W)", "channels", "conv16", "digits"),
    Kind("vectors", torch.float32, 2, "(N, D)", "numbers", "mlp", "vectors:digits"),
    Kind("graphs", torch.float32, 3, "(N, V, 1 + F + V)", "attributes of a node", "gin", "graphs:motifs"),
    Kind("nodes", torch.float32, 3, "(1, V, 1 + F + V)", "attributes of a node", "gcn-nodes", "nodes:karate"),
    Kind("sentences", torch.int64, 2, "(N, L)", "words", "transformer", "sentences:topics"),
)


def said(name: str) -> str:
    """A kind's name in messages: "images" for `pictures`, which is its name in code and on the disk."""
    return "images" if name == "pictures" else name


def kind_of(inputs: Tensor, called: str = "data") -> Kind:
    """The kind of these samples; images may be floating, in [0, 1], too. One graph alone is its nodes.

    called: what an error calls them. Raises ValueError, listing the kinds, on any other tensor.
    """
    floating = inputs.is_floating_point()
    if inputs.ndim == 3 and floating and width(inputs) > 0:
        return kind_called("nodes:" if len(inputs) == 1 else "graphs:")
    for kind in KINDS:
        alike = inputs.dtype == kind.dtype or (floating and kind.dtype != torch.int64)
        if inputs.ndim == kind.ndim != 3 and alike:
            return kind
    known = ", ".join(f"{kind} {str(kind.dtype).removeprefix('torch.')} {kind.shape}" for kind in KINDS)
    raise ValueError(f"{called} is {tuple(inputs.shape)} {inputs.dtype}, but must be {known}")


def width(inputs: Tensor) -> int:
    """How many of its kind's `parts` a sample has: channels, numbers, attributes of a node."""
    if inputs.ndim == 3 and inputs.is_floating_point():
        return inputs.shape[2] - inputs.shape[1] - 1
    return inputs.shape[1]


def kind_called(name: str) -> Kind:
    """The kind of the samples in the set called `name`, by what stands before its colon; else images."""
    before = name.partition(":")[0]
    return next((kind for kind in KINDS if kind.name == before), KINDS[0])

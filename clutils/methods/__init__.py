"""The methods, one file each: what one training step does with a batch. `catalogue()` lists them.

A method is an nn.Module made from an encoder and a loss (`base.Method` says what they share). Calling it with
a batch of pictures, an augmentation and a generator gives `(loss, z1, z2)`: a scalar to descend, and the two
views' embeddings that it compared, detached, for the history. It holds all that is learned or carried from
step to step (parameters, buffers), so that its `state_dict()` is all of it.
"""

from __future__ import annotations

from clutils.methods.base import Method, several_views
from clutils.methods.byol import BYOL
from clutils.methods.clae import CLAE
from clutils.methods.moco import MoCo
from clutils.methods.pinda import PiNDA
from clutils.methods.simcl import SimCL
from clutils.methods.simclr import SimCLR
from clutils.methods.simsiam import SimSiam
from clutils.methods.supcon import SupCon

__all__ = [
    "BYOL",
    "CLAE",
    "Method",
    "MoCo",
    "PiNDA",
    "SimCL",
    "SimCLR",
    "SimSiam",
    "SupCon",
    "catalogue",
    "several_views",
]


def catalogue() -> dict[str, type[Method]]:
    """name -> class."""
    return {
        "simclr": SimCLR,
        "moco": MoCo,
        "supcon": SupCon,
        "byol": BYOL,
        "simsiam": SimSiam,
        "pinda": PiNDA,
        "simcl": SimCL,
        "clae": CLAE,
    }


PiNDA.bases = {name: kind for name, kind in catalogue().items() if kind is not PiNDA}

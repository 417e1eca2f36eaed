"""The methods, one file each: what one training step does with a batch. `catalogue()` lists them.

A method is an nn.Module made from an encoder and a loss (`base.Method` says what they share). Calling it with
a batch of images, an augmentation and a generator gives `(loss, z1, z2)`: a scalar to descend, and the two
views' embeddings that it compared, detached, for the history. It holds all that is learned or carried from
step to step (parameters, buffers), so that its `state_dict()` is all of it.

The defaults of BarlowTwins, VICReg, MoCoV3 and LeJEPA were not chosen by runs; what a grid chose, and how far
that went, is on record (`benchmarks/evidence.py further_methods`) and in notebook 11.
"""

from clutils.losses.entries import Entry, check_declared
from clutils.methods.barlow_twins import BarlowTwins
from clutils.methods.base import Method
from clutils.methods.bgrl import BGRL
from clutils.methods.byol import BYOL
from clutils.methods.clae import CLAE
from clutils.methods.dacl import DACL
from clutils.methods.dgi import DGI
from clutils.methods.dino import DINO
from clutils.methods.grace import GRACE
from clutils.methods.graphcl import GraphCL
from clutils.methods.lejepa import LeJEPA
from clutils.methods.moco import MoCo
from clutils.methods.moco_v3 import MoCoV3
from clutils.methods.modals import MODALS
from clutils.methods.mvgrl import MVGRL
from clutils.methods.nnclr import NNCLR
from clutils.methods.npid import NPID
from clutils.methods.pinda import PiNDA
from clutils.methods.sdmp import SDMP
from clutils.methods.simcl import SimCL
from clutils.methods.simclr import SimCLR
from clutils.methods.simco import SimCo
from clutils.methods.simgrace import SimGRACE
from clutils.methods.simsiam import SimSiam
from clutils.methods.supcon import SupCon
from clutils.methods.swav import SwAV
from clutils.methods.vicreg import VICReg

CLASSES = (
    *(SimCLR, MoCo, SupCon, BYOL, SimSiam, PiNDA, SimCL, CLAE),
    *(BarlowTwins, VICReg, MoCoV3, LeJEPA),
    *(NNCLR, SwAV, DINO, NPID, SimCo),  # neighbours, prototypes twice, a bank, and none of these
    *(DACL, SDMP, MODALS),  # mixes
    *(GraphCL, SimGRACE, GRACE, BGRL, DGI, MVGRL),  # of graphs, and of the nodes of one
)
check_declared(CLASSES, ("paper", "year"), formula=False)
__all__ = ["Method", "catalogue", *(of.__name__ for of in CLASSES)]


def catalogue(kind: str | None = None) -> dict[str, Entry]:
    """name -> class, paper, year, equation: entries as in `losses.catalogue()`.

    - kind: of samples (`data.KINDS`): the methods that take it; None: all
    """
    return {of.__name__.lower(): Entry.of(of) for of in CLASSES if kind is None or kind in of.sample_kinds}


PiNDA.bases = {
    name: entry.cls
    for name, entry in catalogue("vectors").items()  # noise is added to numbers
    if entry.cls is not PiNDA
}

"""The losses, one file a paper. `catalogue()` lists them."""

from clutils.losses.adnce import ADNCE
from clutils.losses.alpha_cl import AlphaCL
from clutils.losses.attention_nce import AttentionNCE
from clutils.losses.barlow_twins import BarlowTwins
from clutils.losses.base import Loss
from clutils.losses.clip import CLIP
from clutils.losses.debiased import Debiased
from clutils.losses.decoupled import Decoupled
from clutils.losses.dual_temperature import DualTemperature
from clutils.losses.entries import Entry, check_declared
from clutils.losses.flatnce import FlatNCE
from clutils.losses.hard_negative import HardNegative
from clutils.losses.isogclr import ISogCLR
from clutils.losses.macl import MACL
from clutils.losses.mochi import MoCHi
from clutils.losses.n_pair import NPair
from clutils.losses.nnclr import NNCLR
from clutils.losses.nt_xent import NTXent
from clutils.losses.pair import PairMargin
from clutils.losses.regression import Regression
from clutils.losses.rince import RINCE
from clutils.losses.robust import Robust
from clutils.losses.siglip import SigLIP
from clutils.losses.sigreg import SIGReg
from clutils.losses.sogclr import SogCLR
from clutils.losses.spectral import Spectral
from clutils.losses.sscl import SSCL
from clutils.losses.supcon import SupCon
from clutils.losses.temperature_free import TemperatureFree
from clutils.losses.triplet import Triplet
from clutils.losses.vicreg import VICReg
from clutils.losses.weighted_decoupled import WeightedDecoupled

# every class imported above, oldest first: a loss is listed by its import alone
_listed = [of for of in vars().values() if isinstance(of, type) and issubclass(of, Loss) and of is not Loss]
_ours = [of for of in Loss.__subclasses__() if of.__module__.startswith("clutils.losses.")]
check_declared([*_ours, *_listed])  # the former has what another of its name has replaced
CLASSES: tuple[type[Loss], ...] = tuple(sorted(_listed, key=lambda of: of.year))
__all__ = ["Entry", "Loss", "catalogue", *(c.__name__ for c in CLASSES)]


def catalogue() -> dict[str, Entry]:
    """name -> class, paper, year, equation, level, which pairs it compares, what it takes beside two views.

    Oldest first. Menus and tables are made from it.
    """
    return {c.__name__: Entry.of(c) for c in CLASSES}

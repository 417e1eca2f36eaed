"""The methods, one file each: what one training step does with a batch. `catalogue()` lists them.

A method is an nn.Module made from an encoder and a loss. Calling it with a batch of pictures, an augmentation
and a generator gives `(loss, z1, z2)`: a scalar to descend, and the two views' embeddings that it compared,
detached, for the history. It holds all that is learned or carried from step to step (parameters, buffers), so
that its `state_dict()` is all of it.
"""

from __future__ import annotations

from clutils.methods.simclr import SimCLR

__all__ = ["SimCLR", "catalogue"]


def catalogue() -> dict[str, type[SimCLR]]:
    """name -> class."""
    return {"simclr": SimCLR}

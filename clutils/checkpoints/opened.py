"""Result of `checkpoints.open`: an encoder out of a file, and all that is known about its origin."""

from dataclasses import dataclass, field
from typing import Any

from torch import nn

from clutils.checkpoints.backbones import Backbone

# methods whose loss has no temperature, as settings and layouts of theirs alone begin to name them
UNTEMPERED = {"byol": "BYOL", "simsiam": "SimSiam", "barlow": "Barlow Twins", "vicreg": "VICReg"}


@dataclass
class Opened:
    """An encoder out of a file, and all that is known about where it came from.

    - encoder: images (N, C, H, W) -> features (N, .features), in evaluation mode
    - origin: whose layout it was; arch: which network
    - missing: names that the file lacked and the encoder does without (counters of batches)
    - unexpected: names beside the encoder, under its own prefix, that were left out (a classifier)
    - dropped: number of further tensors that nothing here uses, by their beginnings
    - head: the projection head, where the file has one that could be rebuilt
    - temperature: the τ of its training, where the file says so
    - learned_scale: whether that τ was learned and lies among the weights (`logit_scale`), as CLIP's and
      SigLIP's, whose negatives are texts; bias: SigLIP's `logit_bias`, None where there is none
    - epoch: how far its training was, in epochs, or in steps where the file counts those alone
    - side: the images' width it needs, None = any; channels: how many it takes
    - notes: what was assumed, a sentence each
    """

    encoder: nn.Module
    origin: str
    arch: str
    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    head: nn.Module | None = None
    temperature: float | None = None
    learned_scale: bool = False
    bias: float | None = None
    side: int | None = None
    channels: int = 3
    notes: list[str] = field(default_factory=list)
    path: str = ""
    kind: str = ""
    size: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    epoch: float | None = None
    backbone: Backbone | None = None

    @property
    def untempered(self) -> str:
        """The method that it was trained by, where that is known and has no temperature: "BYOL"; else ""."""
        if self.origin == "a run of this package" and self.temperature is not None:
            return ""  # its loss has one, whatever its method's usual loss is
        told = [str(self.settings.get(key)).lower() for key in ("loss", "method")]
        told += [] if self.settings.get("method") else [self.origin.lower()]  # the file's own word goes first
        signs = UNTEMPERED.items()
        return next((name for said in told for sign, name in signs if said.startswith(sign)), "")

    def __str__(self) -> str:
        weights = sum(p.numel() for p in self.encoder.parameters())
        head = "with its head" if self.head is not None else "no head"
        tau = f"{self.untempered} has no τ" if self.untempered else "τ not in the file"
        tau = tau if self.temperature is None else f"τ = {self.temperature:.3g}"
        tau += f", bias {self.bias:.3g}" if self.bias is not None else ""
        return f"{self.arch} ({weights / 1e6:.2f} M weights), {self.origin}; {head}, {tau}"

"""Checkpoint layouts of other libraries: under which names each keeps encoder, head and the rest.

Names are looked at after wrappers such as `module.` (DataParallel) are gone (`unwrapped`).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from torch import Tensor

Value = TypeVar("Value")
# DataParallel, torch.compile, Lightning Fabric and DeepSpeed, FSDP and its activation checkpoints
WRAPPED = re.compile(
    r"(?<![^.])(?:module|_orig_mod|_forward_module|_fsdp_wrapped_module|_checkpoint_wrapped_module)\."
)
FIRST = ("conv1.weight", "conv_proj.weight", "patch_embed.proj.weight", "convolutions.0.weight", "0.weight")
MOST = 100  # beginnings of names that are tried


@dataclass(frozen=True)
class Layout:
    """A row of the table.

    - origin: the library, as a report says it
    - encoder: what the encoder's names begin with; head: the projection head's, None where there is none
    - signs: beginnings of names that must all be there; without: that must not
    - container: the key in the file under which this state lies; None = any
    - options: what this library does that shapes do not tell, as `backbones.recognise` takes it
    """

    origin: str
    encoder: str
    head: str | None = None
    signs: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    container: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)

    def fits(self, container: str, names: Iterable[str]) -> bool:
        """True where a state under this key, with these names, is laid out so."""

        def begins(sign: str) -> bool:
            return any(name.startswith(sign) for name in names)

        where = self.container in (None, container)
        return where and all(map(begins, (self.encoder, *self.signs))) and not any(map(begins, self.without))


# the first that fits: special ones before those that they look like
LAYOUTS = (
    Layout("a run of this package", "base.encoder.", "base.head.", container="method"),
    Layout("a run of this package", "method.encoder.", "method.head.", container="method"),  # PiNDA's
    Layout("a run of this package", "encoder.", "head.", container="method"),
    Layout("MoCo v3", "base_encoder.", None, ("momentum_encoder.",), options={"heads": 12}),
    Layout("MoCo v2", "encoder_q.", "encoder_q.fc.", ("encoder_k.", "encoder_q.fc.2.")),
    Layout("MoCo v1", "encoder_q.", "encoder_q.fc.", ("encoder_k.",), ("encoder_q.net.",)),
    Layout("MoCo, fc taken as its head", "encoder_q.", "encoder_q.fc.", ("encoder_q.fc.",), ("encoder_k.",)),
    Layout("MoCo (its demo on CIFAR-10)", "encoder_q.net.", None),
    Layout("SimSiam", "encoder.", "encoder.fc.", ("predictor.", "encoder.fc.0."), ("classifier.",)),
    Layout("BYOL (byol-pytorch)", "online_encoder.net.", None, ("target_encoder.",)),
    Layout("BYOL (PyTorch-BYOL)", "encoder.", "projetion.net.", ("projetion.",)),  # spelled so by its author
    Layout("BYOL", "online_encoder.", None, ("target_encoder.",)),
    Layout("Barlow Twins", "backbone.", "projector.", ("projector.", "bn.running_mean")),
    Layout("DINO", "backbone.", None, ("head.mlp.",)),
    Layout("lightly (DINO)", "teacher_backbone.", None, ("student_backbone.",)),
    Layout("SimSiam (PatrickHua)", "backbone.", None, ("projector.layer1.", "predictor.layer1.")),
    Layout("lightly", "backbone.", "projection_head.layers.", ("projection_head.layers.",)),
    Layout("lightly", "backbone.", None, ("online_classifier.",)),
    Layout("SimCLR (sthalles)", "backbone.", "backbone.fc.", ("backbone.fc.0.", "backbone.fc.2.")),
    # both together are solo-learn's alone, which pads by 2 for CIFAR; either alone is what many call theirs
    Layout("solo-learn", "backbone.", "projector.", ("projector.", "classifier."), options={"padding": 2}),
    Layout(
        "solo-learn, older", "encoder.", "projector.", ("projector.", "classifier."), options={"padding": 2}
    ),
    Layout("names of many (solo-learn, VICReg)", "backbone.", "projector.", ("projector.",)),
    Layout("names of many (Spijkervet's SimCLR)", "encoder.", "projector.", ("projector.",)),
    Layout(
        "open_clip's names, an image tower of timm's", "visual.trunk.", "visual.head.proj.", ("logit_scale",)
    ),
    Layout("names of many (CLIP)", "image_encoder.", "image_projection.", ("logit_scale",)),
    Layout("names of many (CLIP)", "visual.", "visual_projection.", ("logit_scale",)),
    Layout("names of many (CLIP)", "vision_model.", "visual_projection.", ("logit_scale",)),
    Layout("SwAV", "", "projection_head.", ("conv1.", "projection_head.", "prototypes.")),
    Layout("SupContrast", "encoder.", "head.", ("head.",), ("encoder.layers.",)),
    Layout("HCL, debiased, AttentionNCE or leftthomas's SimCLR", "f.", "g.", ("g.",)),
    Layout("an encoder of this package", "", None, ("convolutions.0.",)),
    Layout("timm's names", "", None, ("patch_embed.",)),
    Layout("torchvision's names", "", None, ("conv_proj.",)),
    Layout("torchvision's or timm's names", "", None, ("conv1.", "layer1.")),
)
# beginnings tried where no row fits, so that a file of nobody's layout opens too
BEGINNINGS = (
    "",
    "backbone.",
    "encoder.",
    "model.",
    "net.",
    "trunk.",
    "student.",
    "teacher.",
    "student.backbone.",
    "teacher.backbone.",
    "student_backbone.",
    "teacher_backbone.",
    "encoder_q.",
    "online_encoder.",
    "base_encoder.",
    "model.backbone.",
    "model.encoder.",
    "base_model.",
    "feature_extractor.",
    "visual.",
    "visual.trunk.",
    "vision_model.",
    "image_encoder.",
    "visual_encoder.",
)
USUAL = [Layout(f"no layout that is known: under {begin or 'no prefix'!r}", begin) for begin in BEGINNINGS]
# where a file keeps its weights, the likelier before the others
CONTAINERS = (
    *("method", "state_dict", "model", "online_network_state_dict", "model_state_dict", "teacher"),
    *("", "student", "module", "net", "network", "encoder", "backbone", "weights"),
)


def unwrapped(names: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors, without wrappers anywhere in their names: `layer1.0._orig_mod.conv1.weight`.

    Left as they are where two names would become one.
    """
    found = {WRAPPED.sub("", name): value for name, value in names.items()}
    return found if len(found) == len(names) else dict(names)


def beginnings(names: Mapping[str, Tensor]) -> list[str]:
    """Beginnings of names under which a network's first layer lies, the shorter first."""
    found = {
        name.removesuffix(first)
        for first in FIRST
        for name, value in names.items()
        if name.endswith(first) and value.ndim == 4 and (name == first or name[-len(first) - 1] == ".")
    }
    return sorted(found, key=lambda begin: (len(begin), begin))[:MOST]


def with_prefix(prefix: str, names: Mapping[str, Value]) -> dict[str, Value]:
    """Entries whose name begins with the prefix, by their names without it."""
    return {name.removeprefix(prefix): value for name, value in names.items() if name.startswith(prefix)}


def rank(container: str) -> int:
    """The likelier a container is to hold the weights, the lower."""
    return CONTAINERS.index(container) if container in CONTAINERS else len(CONTAINERS)

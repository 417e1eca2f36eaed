"""Recognise the network in a file's weights, in one order (`recognise`), and fill it: `Opened`."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from clutils.checkpoints import backbones, heads, layouts, named, states
from clutils.checkpoints.backbones import Partial
from clutils.checkpoints.states import State

MODULE = "any network of yours is taken as an nn.Module, in Python: report.check(module, data)"
SHAPES = "its network is told by all of its weights' names and shapes"
OTHERWISE = "; a variant of timm's that has the same may compute otherwise (then --arch timm:NAME)"
NO_CLASSIFIER = "the file has nothing of its classifier: its hidden layers are left out, features end before"
OWN = "a run of this package"
# methods whose loss has no temperature, as settings and layouts of theirs alone begin to name them
UNTEMPERED = {"byol": "BYOL", "simsiam": "SimSiam", "barlow": "Barlow Twins", "vicreg": "VICReg"}
Rows = Iterator[tuple[layouts.Layout, State]]


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
    backbone: backbones.Backbone | None = None

    @property
    def untempered(self) -> str:
        """The method that it was trained by, where that is known and has no temperature: "BYOL"; else ""."""
        if self.origin == OWN and self.temperature is not None:
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


def recognise(
    every: Sequence[State], path: str | Path, arch: str = "", options: Sequence[str] = (), stated: str = ""
) -> Opened:
    """The encoder in the first of these states that holds a whole network, which is asked in this order:

    1. the network of a library that the caller names, "timm:resnet18d"
    2. names and shapes of a family of `backbones`: under the layouts of known libraries, then under usual
       beginnings, then under any other one, if it is the only one; a plain name of the caller must be theirs
    3. the network that the file names (`stated`), where the weights fit it: it goes before what 2 found, for
       networks of the same shapes may compute otherwise
    4. a network of torchvision or timm that all names and shapes fit (`named.by_shapes`)

    Raises ValueError, saying what was seen and which arch may fit, where none of these answers.
    """
    found = [state for state in every if len(state.names) >= states.LEAST] or list(every[:1])
    if ":" in arch:
        return _by_name(found, path, arch, every)
    chosen = dict(backbones.OPTIONS[option] for option in options)
    partial: list[str] = []

    def whole(rows: Rows) -> Iterator[tuple[str, Opened]]:
        for layout, state in rows:
            inner = layouts.with_prefix(layout.encoder, state.names)
            try:
                backbone = backbones.recognise(inner, **layout.options)
                if backbone is not None and arch and backbone.arch != arch:
                    raise ValueError(f"arch is {arch!r}, but the weights are those of {backbone.arch}")
                if backbone is not None:
                    opened = _filled(backbone.with_options(**chosen), layout, state, every)
                    opened.notes += _copies(opened, layout, state, found)
                    where = ".".join((*state.keys, layout.encoder)).rstrip(".")
                    yield where, opened if arch else _as_stated(opened, stated, inner, state)
            except Partial as error:
                partial.append(str(error))

    first = next(whole(_usual(found)), None)
    several = [first] if first else list(whole(_unusual(found)))
    if len(several) > 1:
        listed = " and ".join(f"{one.arch} under {where!r}" for where, one in several)
        raise ValueError(f"{path} holds several whole networks, {listed}: --weights BEGINNING takes one")
    return several[0][1] if several else _by_library(found, path, arch, stated, partial, every)


def _usual(found: Sequence[State]) -> Rows:
    rows = [(layout, state) for layout in layouts.LAYOUTS for state in found]
    rows += [(layout, state) for state in found for layout in layouts.USUAL]
    return ((layout, state) for layout, state in rows if layout.fits(state.container, state.names))


def _unusual(found: Sequence[State]) -> Rows:
    for state in found:
        for begin in layouts.beginnings(state.names):
            if begin not in layouts.BEGINNINGS:
                yield (
                    layouts.Layout(f"no layout that is known: under {backbones.short(begin)!r}", begin),
                    state,
                )


def _copies(opened: Opened, layout: layouts.Layout, state: State, found: Sequence[State]) -> list[str]:
    """A note where the same network lies in the file once more, as a teacher beside a student."""
    for other in found if opened.origin != OWN else ():
        for begin in layouts.beginnings(other.names):
            if other is state and begin == layout.encoder:
                continue
            try:
                backbone = backbones.recognise(layouts.with_prefix(begin, other.names))
            except Partial:
                continue
            if backbone is not None and backbone.arch == opened.arch:
                label = backbones.short(begin.rstrip(".") if other is state else other.container)
                taken = layout.encoder.rstrip(".") if other is state else state.container
                return [
                    f"another {opened.arch} lies under {label!r}; read was the one under "
                    f"{backbones.short(taken)!r} (--weights {label} takes the other)"
                ]
    return []


def _as_stated(opened: Opened, stated: str, inner: Mapping[str, Tensor], state: State) -> Opened:
    """The network that the file names, where there is one and the weights fit it; else what was opened.

    Networks of the same shapes may compute otherwise: timm's resnetblur50 has all names of resnet50.
    """
    plain = re.sub(r"[^a-z0-9]", "", stated.partition(".")[0].lower())
    plain = plain.replace("tiny", "t").replace("small", "s").replace("base", "b")
    shape = re.sub(r"[^a-z0-9]", "", opened.arch)
    if not stated or plain == shape or (plain.startswith("vit") and shape.startswith(plain)):
        return opened
    if arch := _fitting(stated, inner):
        taken = _by_name([State((), dict(inner))], "", arch)
        said = f"the file names {backbones.short(stated)!r}, and its weights fit that network"
        of_it = ("encoder", "arch", "backbone", "missing", "side", "channels")
        own: dict[str, Any] = {name: getattr(taken, name) for name in of_it}
        return replace(opened, notes=[*state.notes, *taken.notes, said], **own)
    if named.candidates(stated) or re.search(r"resn|vit", plain):
        opened.notes.append(
            f"the file names {backbones.short(stated)!r} as its network, but by names and shapes it was "
            f"opened as {opened.arch}: features are wrong where these differ (--arch timm:NAME has others)"
        )
    return opened


def _fitting(stated: str, names: Mapping[str, Tensor]) -> str:
    """The arch of a library's network that the file names and its weights fit; "" where there is none."""
    return next((arch for arch in named.candidates(stated) if named.weights_match(arch, names)), "")


def _by_library(
    found: Sequence[State],
    path: str | Path,
    arch: str,
    stated: str,
    partial: Sequence[str],
    every: Sequence[State],
) -> Opened:
    """The network that the file names, or that all shapes tell. Raises ValueError where there is none."""
    for state in found if not arch else ():
        known = _fitting(stated, state.names)
        said = "it is the one that the file names" if known else SHAPES
        if known := known or named.by_shapes(state.names):
            said += OTHERWISE * (said == SHAPES and known.startswith("timm:"))
            opened = _by_name([state], path, known, every)
            return replace(opened, notes=[*opened.notes, said])
    signs = (name for state in found for name in named.signed(state.names))
    look = dict.fromkeys([*named.candidates(stated), *signs])
    by_hand = "--arch timm:NAME says which network it is"
    by_hand += f" (it looks like {', '.join(look)}); {MODULE}" if look else f"; {MODULE}"
    if partial:
        raise ValueError(f"{path} holds no whole encoder that is known here: found {partial[0]}; {by_hand}")
    raise ValueError(
        f"{path} holds no encoder: under no beginning is a network that is known here ('python -m clutils "
        f"check --help' lists them); its {len(found[0].names)} tensors begin with "
        f"{_beginnings(found[0].names)}; {by_hand}"
    )


def _by_name(found: Sequence[State], path: str | Path, arch: str, every: Sequence[State] = ()) -> Opened:
    """The weights of a network that the caller names, wherever in the file they are."""
    usual = named.build(arch)
    for state in found:
        names = named.to_timm_names(arch, state.names)
        begin = named.find_prefix(names, usual.state_dict())
        if begin is None:
            continue
        built = named.build_options(arch, usual, names, begin)
        net = named.build(arch, **built) if built else usual
        own = {name: name for name in net.state_dict() if begin + name in names}
        notes = (NO_CLASSIFIER,) if "hidden" in built else ()
        backbone = backbones.Backbone(arch, own, named.channels(net), named.side(net), built, notes=notes)
        origin = f"{arch.partition(':')[0]}'s names" + (f" under {begin!r}" if begin else "")
        try:
            return _filled(backbone, layouts.Layout(origin, begin), replace(state, names=names), every)
        except Partial as error:
            raise ValueError(f"{path} does not hold {arch}: {error}; {MODULE}") from None
    raise ValueError(
        f"{path} does not hold {arch}: its tensors begin with {_beginnings(found[0].names)}; {MODULE}"
    )


def _filled(
    backbone: backbones.Backbone, layout: layouts.Layout, state: State, every: Sequence[State] = ()
) -> Opened:
    """A network with its weights out of the file, and what else there is. Raises as `backbones.fill` does."""
    names = state.names
    encoder, missing = backbones.fill(backbone, layouts.with_prefix(layout.encoder, names))
    head, notes = None, [*state.notes, *backbone.notes, *backbone.assumptions]
    used = {layout.encoder + name for name in backbone.names}
    features = getattr(encoder, "features", None)  # of a library's network it may be a layer
    if layout.head is not None and isinstance(features, int):
        of_head = layouts.with_prefix(layout.head, names)
        head = heads.rebuilt(of_head, features) if of_head else None
        used |= {layout.head + name for name in of_head} if head is not None else set()
    if head is None and layout.origin != OWN and isinstance(features, int):
        rest = {name: value for name, value in names.items() if name not in used}
        fitting = heads.found(rest, [other for other in every if other is not state], features)
        if len(fitting) == 1:
            where, head, own = fitting[0]
            used |= own
            notes.append(heads.RELU.format(backbones.short(where)))
        elif fitting:
            listed = ", ".join(repr(backbones.short(where)) for where, *_ in fitting)
            notes.append(f"several heads fit, under {listed}: none is used (--head BEGINNING takes one)")
    if head is None and layout.head is not None and not any("heads fit" in note for note in notes):
        notes.append("its projection head is of a kind that is not rebuilt here")
    rest_names = [name for name in names if name not in used]
    beside = [name for name in rest_names if name.startswith(layout.encoder)]
    dropped = dict(Counter(_beginning(n) for n in rest_names if not n.startswith(layout.encoder)))
    known: dict[str, Any] = {"side": backbone.side, "channels": backbone.channels, "backbone": backbone}
    return Opened(encoder, layout.origin, backbone.arch, missing, beside, dropped, head, notes=notes, **known)


def _beginning(name: str) -> str:
    return backbones.short(name.partition(".")[0] + "." if "." in name else name)


def _beginnings(names: Mapping[str, Tensor]) -> str:
    counts = Counter(map(_beginning, names)).most_common(5)
    return ", ".join(f"{name[:40]} ({count})" for name, count in counts)

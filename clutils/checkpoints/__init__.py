"""Open any checkpoint safely: `open(path)` gives the encoder in it, and says whose layout it was.

Reading (`reading`) never runs what a file holds; `layouts` is a table of where libraries keep their encoder;
`backbones` distinguishes networks by the shapes of their weights and builds them.
"""

import argparse
import contextlib
import copy
import inspect
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from clutils import encoders, noise
from clutils.checkpoints import backbones, layouts, named, reading, states
from clutils.checkpoints.backbones import NAMES, Partial
from clutils.checkpoints.reading import Refused
from clutils.checkpoints.states import State
from clutils.data import kinds
from clutils.data.sets import did_you_mean

__all__ = ["NAMES", "Opened", "Refused", "demand_arch", "open", "with_stem"]

TEMPERATURES = ("temperature", "temp", "tau", "moco_t", "contrastive_temperature", "T", "t")
SETTINGS = (
    *("configuration", "loss", "settings", "hyper_parameters", "opt", "args", "config", "hparams"),
    *("method_kwargs", "cfg", "method_settings"),
)
LOGITS = ("logit_scale", "logit_bias")
LARGEST_LOG = 12.0  # of a scale that is a logarithm: CLIP's stays below log 100, SigLIP's near log 117
# methods whose loss has no temperature, as settings and layouts of theirs alone begin to name them
UNTEMPERED = {"byol": "BYOL", "simsiam": "SimSiam", "barlow": "Barlow Twins", "vicreg": "VICReg"}
EPOCHS = ("epoch", "current_epoch", "epochs_done", "global_step", "step", "iteration", "steps_done")
BY_HAND = "any network of yours is taken as an nn.Module, in Python: report.check(module, data)"
LONGEST, MOST_PARTS = 60, 16  # characters of an augmentation's name, numbers of its value
ARCHITECTURES = ("arch", "architecture", "model", "model_name", "backbone")  # keys that name a network
LARGEST_CONFIG = 1 << 20  # bytes of a hub's config.json
OF_NO_PICTURES = tuple(f"{kind.name}:" for kind in kinds.KINDS if kind.name != "pictures")
MEASURED = (
    "the page is for images: kNN and rank of this run are in measured.csv beside it, and in Python "
    "training.resume(path).embed(data) gives features for clutils.measures and clutils.maps"
)


@dataclass
class Opened:
    """An encoder out of a file, and all that is known about where it came from.

    - encoder: images (N, C, H, W) -> features (N, .features), in evaluation mode
    - origin: whose layout it was; arch: which network
    - missing: names that the file lacked and the encoder does without (counters of batches)
    - unexpected: names beside the encoder, under its own prefix, that were left out (a classifier)
    - dropped: how many further tensors there were that nothing here uses, by their beginnings
    - head: the projection head, where the file has one that could be rebuilt
    - temperature: the τ of its training, where the file says so
    - learned_scale: whether that τ was learned and lies among the weights (`logit_scale`), as CLIP's and
      SigLIP's, whose negatives are texts; bias: SigLIP's `logit_bias`, None where there is none
    - generator: of a run of PiNDA, the noise that it learned
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
    generator: noise.NoiseGenerator | None = None
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


def open(path: str | Path | nn.Module, arch: str | None = None, weights: str | None = None) -> Opened:
    """The encoder in a checkpoint of any library; or an nn.Module of your own, as it is.

    - arch: a name of `NAMES`, where the shapes should be held to it, and behind a dash what they do not tell:
      "resnet18-padding2", "resnet18-maxpool", "vit_s_16-12heads"; or any network of torchvision, and of timm
      where that is installed: "torchvision:convnext_tiny", "timm:resnet18d" (`named`)
    - weights: "ema" takes the moving average of the weights that lies beside them; None takes the last ones

    A folder is opened by the one file of weights in it, as a hub's has beside its config.json.
    Nothing in the file is run (`reading`). Raises FileNotFoundError where there is no file; Refused on what
    is no harmless checkpoint; ValueError, saying what was seen and which arch might fit, where no whole
    encoder is in it or its weights are not finite.
    """
    if isinstance(path, nn.Module):
        return _given(path)
    name, *options = demand_arch(arch) if arch is not None else ("",)
    if weights not in (None, "ema"):
        raise ValueError(f"weights is {weights!r}, but must be 'ema' or None")
    if Path(path).is_dir():
        path = reading.within(Path(path))
    contents = reading.read(path)
    try:
        return _opened(contents, path, name, options, weights == "ema")
    except (ValueError, MemoryError, ImportError):
        raise
    except Exception as error:  # names, settings and shapes are the file's own, and may be anything
        raise Refused(f"{path} is damaged, or no checkpoint: {reading.one_line(error)}") from error


def _opened(
    contents: reading.Contents, path: str | Path, name: str, options: list[str], averaged: bool
) -> Opened:
    found = states.found(contents.state, path)
    if not found:
        raise ValueError(f"{path} holds no tensors with names, so no encoder: {_kinds(contents.state)}")
    settings = _settings(contents.state)
    if str(settings.get("data")).startswith(OF_NO_PICTURES):
        raise ValueError(
            f"{path} is a run of this package on {backbones.short(settings['data'])}, and {MEASURED}"
        )
    try:
        said = _stated(contents.state, settings, Path(path))
        opened = _of_states(found, path, name, options, averaged, said)
    except backbones.Unsound as error:
        raise ValueError(f"{path}: {error}") from None
    opened.path, opened.kind, opened.size = str(path), contents.kind, contents.size
    opened.temperature = next(filter(None, _numbers(settings, TEMPERATURES)), None)
    _take_logits(opened, found)
    opened.settings = settings
    opened.epoch = next(_numbers(contents.state, EPOCHS), None)
    if opened.origin == "a run of this package":
        opened.generator = _generator(contents.state, opened)
        if opened.generator is not None:
            opened.dropped.pop("noise.", None)
    if isinstance(contents.state, Mapping) and "pytorch-lightning_version" in contents.state:
        opened.origin += ", in a Lightning file"
    return opened


def with_stem(opened: Opened, **of_the_stem: Any) -> Opened:
    """The same weights in a ResNet whose stem is otherwise: maxpool, padding, as in `backbones.Backbone`."""
    assert opened.backbone is not None  # only what was opened has something to be otherwise
    backbone = opened.backbone.with_options(**of_the_stem)
    encoder = copy.copy(opened.encoder)  # shallow, and so are its layers: the weights are shared
    encoder._modules = dict(encoder._modules)
    first = cast(nn.Conv2d, copy.copy(encoder.conv1))
    padding = backbone.padding if backbone.stem == 3 else 3
    first.padding = (padding, padding)
    encoder.conv1 = first
    encoder.maxpool = nn.MaxPool2d(3, 2, 1) if backbone.maxpool else nn.Identity()
    notes = [note for note in opened.notes if note not in opened.backbone.assumptions]
    return replace(opened, encoder=encoder, backbone=backbone, notes=[*notes, *backbone.assumptions])


def demand_arch(arch: str) -> list[str]:
    """An arch's name and options. Raises ValueError, listing what there is, on others."""
    if ":" in arch:
        named.demand(arch)
        return [arch]
    name, *options = arch.split("-")
    if name not in NAMES:
        raise ValueError(
            f"arch is {arch!r}, which is not known{did_you_mean(name, NAMES)} "
            "('python -m clutils check --help' lists all)"
        )
    for option in options:
        if option not in backbones.OPTIONS:
            raise ValueError(f"arch has the option {option!r}; there are {', '.join(backbones.OPTIONS)}")
    return [name, *options]


def _given(module: nn.Module) -> Opened:
    arch = type(module).__name__
    return Opened(module, "a module handed over in Python", arch, channels=named.channels(module))


def _of_states(
    found: list[State], path: str | Path, arch: str, options: list[str], averaged: bool, said: str
) -> Opened:
    """The encoder of the last weights, or of their moving average, with a note where there are both."""
    last = [state for state in found if not state.averaged]
    means = [state for state in found if state.averaged]
    if averaged and not means:
        raise ValueError(
            f"{path} holds no moving average of its weights: no key or name begins with ema or swa"
        )
    if averaged or not last:
        opened = _recognised(means, path, arch, options, said)
        opened.notes.append(
            f"these weights are a moving average, under {backbones.short(means[0].averaged)!r}"
        )
        if opened.head is None and last:
            with contextlib.suppress(ValueError):  # then there is no head
                beside = _recognised(last, path, arch, options, said)
                if beside.head is not None and beside.arch == opened.arch:
                    opened.head = beside.head
                    opened.notes.append("its projection head is of the last weights: the average has none")
        return opened
    opened = _recognised(last, path, arch, options, said)
    if means:
        opened.notes.append(
            f"a moving average of the weights lies beside, under {backbones.short(means[0].averaged)!r}, "
            "and was not taken (--weights ema takes it)"
        )
    return opened


def _recognised(
    found: list[State], path: str | Path, arch: str, options: list[str], stated: str = ""
) -> Opened:
    """The first state in which a row of the table fits a whole backbone; then any usual beginning.

    stated: the network that the file names, which shapes alone may not tell.
    """
    partial: list[str] = []
    chosen = dict(backbones.OPTIONS[option] for option in options)
    if ":" in arch:
        return _by_name(found, path, arch)
    ordered = [(state, sorted(state.names)) for state in found]
    rows = [(layout, state) for layout in layouts.LAYOUTS for state in ordered]
    rows += [(layout, state) for state in ordered for layout in layouts.USUAL]
    for layout, (state, in_order) in rows:
        if not layout.fits(state.container, in_order):
            continue
        try:
            inner = layouts.with_prefix(layout.encoder, state.names)
            backbone = backbones.recognise(inner, **layout.options)
            if backbone is not None and arch and backbone.arch != arch:
                raise ValueError(f"arch is {arch!r}, but the weights are those of {backbone.arch}")
            if backbone is not None:
                opened = _filled(backbone.with_options(**chosen), layout, state)
                return opened if arch else _as_stated(opened, stated, layout, state)
        except Partial as error:
            partial.append(str(error))
    seen, lacking = _beginnings(found[0].names), ""
    candidates = named.called(stated) if stated and not arch else []
    for state in found if not arch else ():
        fitting = next((candidate for candidate in candidates if named.fits(candidate, state.names)), "")
        known, said = (
            (fitting, "it is the one that the file names") if fitting else named.by_shapes(state.names)
        )
        if known:
            opened = _by_name([state], path, known)
            return replace(opened, notes=[*opened.notes, said])
        lacking = lacking or (f"; {said}" if said else "")
    if not partial:
        raise ValueError(
            f"{path} holds no encoder: under none of the usual beginnings is a network that is known "
            f"here ('python -m clutils check --help' lists them); its {len(found[0].names)} tensors begin "
            f"with {seen}{lacking}; {BY_HAND}"
        )
    raise ValueError(
        f"{path} holds no whole encoder that is known here: found {partial[0]}{lacking}; {BY_HAND}"
    )


def _as_stated(opened: Opened, stated: str, layout: layouts.Layout, state: State) -> Opened:
    """The network that the file names, where there is one and the weights fit it; else what was opened.

    Networks of the same shapes may compute otherwise: timm's resnetblur50 has all names of resnet50.
    """
    plain = re.sub(r"[^a-z0-9]", "", stated.partition(".")[0].lower())
    plain = plain.replace("tiny", "t").replace("small", "s").replace("base", "b")
    shape = re.sub(r"[^a-z0-9]", "", opened.arch)
    if not stated or plain == shape or (plain.startswith("vit") and shape.startswith(plain)):
        return opened
    candidates = named.called(stated)
    inner = layouts.with_prefix(layout.encoder, state.names)
    for arch in candidates:
        if named.fits(arch, inner):
            taken = _by_name([State((), inner)], "", arch)
            said = f"the file names {backbones.short(stated)!r}, and its weights fit that network"
            of_it: dict[str, Any] = {"side": taken.side, "channels": taken.channels, "missing": taken.missing}
            of_it |= {"encoder": taken.encoder, "arch": arch, "backbone": taken.backbone}
            return replace(opened, notes=[*state.notes, *taken.notes, said], **of_it)
    if candidates or re.search(r"resn|vit", plain):
        opened.notes.append(
            f"the file names {backbones.short(stated)!r} as its network, but by names and shapes it was "
            f"opened as {opened.arch}: features are wrong where these differ (--arch timm:NAME has others)"
        )
    return opened


def _by_name(found: list[State], path: str | Path, arch: str) -> Opened:
    """The weights of a network that the caller names, wherever in the file they are."""
    usual = named.build(arch)
    for state in found:
        names = named.in_its_form(arch, state.names)
        begin = named.beginning(names, usual.state_dict())
        if begin is None:
            continue
        built, notes = named.adapted(arch, usual, names, begin)
        net = named.build(arch, **built) if built else usual
        own = {name: name for name in net.state_dict() if begin + name in names}
        known: dict[str, Any] = {"side": named.side(net), "built": built, "notes": notes}
        backbone = backbones.Backbone(arch, own, named.channels(net), **known)
        origin = f"{arch.partition(':')[0]}'s names" + (f" under {begin!r}" if begin else "")
        try:
            return _filled(backbone, layouts.Layout(origin, begin), replace(state, names=names))
        except Partial as error:
            raise ValueError(f"{path} does not hold {arch}: {error}; {BY_HAND}") from None
    raise ValueError(
        f"{path} does not hold {arch}: its tensors begin with {_beginnings(found[0].names)}; {BY_HAND}"
    )


def _filled(backbone: backbones.Backbone, layout: layouts.Layout, state: State) -> Opened:
    """A network with its weights out of the file, and what else there is. Raises as `backbones.fill` does."""
    names = state.names
    encoder, missing = backbones.fill(backbone, layouts.with_prefix(layout.encoder, names))
    head, notes = None, [*state.notes, *backbone.notes, *backbone.assumptions]
    used = {layout.encoder + name for name in backbone.names}
    if layout.head is not None:
        of_head = layouts.with_prefix(layout.head, names)
        head = backbones.head(of_head, encoders.width(encoder)) if of_head else None
        used |= {layout.head + name for name in of_head} if head is not None else set()
        if head is None:
            notes.append("its projection head is of a kind that is not rebuilt here")
    rest = [name for name in names if name not in used]
    beside = [name for name in rest if name.startswith(layout.encoder)]
    dropped = dict(Counter(_beginning(name) for name in rest if name not in beside))
    known: dict[str, Any] = {"side": backbone.side, "channels": backbone.channels, "backbone": backbone}
    return Opened(encoder, layout.origin, backbone.arch, missing, beside, dropped, head, notes=notes, **known)


def _beginning(name: str) -> str:
    return backbones.short(name.partition(".")[0] + "." if "." in name else name)


def _beginnings(names: Mapping[str, Tensor]) -> str:
    counts = Counter(map(_beginning, names)).most_common(5)
    return ", ".join(f"{name[:40]} ({count})" for name, count in counts)


def _kinds(state: Any) -> str:
    if isinstance(state, Mapping):
        keys = [backbones.short(k) if isinstance(k, str) else f"a {type(k).__name__}" for k in state]
        return f"its keys are {', '.join(keys[:6]) or 'none'}"
    return f"it is a {type(state).__name__}"


def _settings(state: Any) -> dict[str, Any]:
    """The plain values of a file's settings, however deep under the usual names: innermost last.

    "augmentation", where that is a mapping: those of its values that are numbers, or tuples of numbers.
    """
    found: dict[str, Any] = {}
    waiting = [state]
    seen: set[int] = set()
    while waiting and len(seen) < 100:
        value = waiting.pop()
        value = vars(value) if isinstance(value, argparse.Namespace) else value
        if not isinstance(value, dict) or id(value) in seen:
            continue
        seen.add(id(value))
        if value is not state:
            named = {k: v for k, v in value.items() if isinstance(k, str) and len(k) <= reading.NAME}
            found |= {k: v for k, v in named.items() if isinstance(v, str) or _number(v)}
            if isinstance(augmentation := named.get("augmentation"), dict):
                found["augmentation"] = {
                    str(k)[:LONGEST]: v
                    for k, v in augmentation.items()
                    if isinstance(k, str) and _of_numbers(v)
                }
        waiting += [value[key] for key in SETTINGS if key in value]
    return found


def _number(value: Any) -> bool:
    """Whether it is a number that a float and 64 bits hold, as numbers of settings do."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 1 << 63)


def _stated(state: Any, settings: Mapping[str, Any], path: Path) -> str:
    """The network that the file names, or the config.json that a hub has beside it; "" where none does."""
    beside: Any = None
    with contextlib.suppress(OSError, ValueError, RecursionError):
        config = path.with_name("config.json")
        if path.name in reading.OF_A_HUB and config.is_file() and config.stat().st_size < LARGEST_CONFIG:
            beside = json.loads(config.read_text("utf-8"))
    own = state if isinstance(state, Mapping) else {}
    for held in (own, settings, beside):
        for key in ARCHITECTURES if isinstance(held, Mapping) else ():
            if isinstance(held.get(key), str):
                return str(held[key])[: reading.NAME]
    return ""


def _of_numbers(value: Any) -> bool:
    parts = value if isinstance(value, list | tuple) and 0 < len(value) <= MOST_PARTS else [value]
    return all(map(_number, parts))


def _generator(state: Any, opened: Opened) -> noise.NoiseGenerator | None:
    """The noise generator in a run of this package; None, with a note, where it does not fit its settings."""
    weights = layouts.with_prefix("noise.", state["method"])
    if not weights:
        return None
    configuration = state.get("configuration")
    settings = configuration.get("method_settings") if isinstance(configuration, Mapping) else None
    settings = settings if isinstance(settings, Mapping) else {}
    takes = inspect.signature(noise.NoiseGenerator).parameters
    given = {name: value for name, value in settings.items() if name in takes} | {"channels": opened.channels}
    try:
        backbones.demand_sound(weights)
        with torch.device("meta"):  # nothing is drawn, and no memory taken for what its settings claim
            generator = noise.NoiseGenerator(**given)
        generator.load_state_dict({name: value.clone() for name, value in weights.items()}, assign=True)
    except (RuntimeError, ValueError, TypeError, AttributeError) as error:
        reason = backbones.short(str(error).partition("\n")[0])
        opened.notes.append(f"its noise generator can't be rebuilt: {reason}")
        return None
    return generator.eval()


def _take_logits(opened: Opened, found: list[State]) -> None:
    """τ and bias of a loss that learned them: `logit_scale`, the logarithm of 1/τ, and `logit_bias`."""
    given: dict[str, float] = {}
    for name, value in ((name, value) for state in found for name, value in state.names.items()):
        last = name.rpartition(".")[2]
        if last in LOGITS and value.numel() == 1 and value.is_floating_point() and bool(value.isfinite()):
            given.setdefault(last, float(value))
    scale = given.get("logit_scale")
    if scale is None or not -LARGEST_LOG <= scale <= LARGEST_LOG:
        return
    opened.temperature, opened.learned_scale, opened.bias = math.exp(-scale), True, given.get("logit_bias")
    for name in LOGITS:
        opened.dropped.pop(name, None)


def _numbers(found: Any, names: tuple[str, ...]) -> Iterator[float]:
    """Of these names, what stands under them and is a number."""
    for name in names if isinstance(found, Mapping) else ():
        value = found.get(name)
        if _number(value) and not isinstance(value, bool) and 0 <= value < math.inf:
            yield float(value)

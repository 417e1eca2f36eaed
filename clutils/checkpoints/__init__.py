"""Open any checkpoint safely: `open(path)` gives the encoder in it, and says whose layout it was.

Reading (`reading`) never runs what a file holds; `layouts` is a table of where libraries keep their encoder;
`backbones` distinguishes networks by the shapes of their weights and builds them; `recognition` asks which
network it is, in one order.
"""

import argparse
import contextlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from clutils import encoders
from clutils.checkpoints import backbones, heads, named, reading, recognition, states
from clutils.checkpoints.backbones import NAMES
from clutils.checkpoints.reading import Refused
from clutils.checkpoints.recognition import Opened
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
EPOCHS = ("epoch", "current_epoch", "epochs_done", "global_step", "step", "iteration", "steps_done")
ARCHITECTURES = ("arch", "architecture", "model", "model_name", "backbone")  # keys that name a network
LARGEST_CONFIG = 1 << 20  # bytes of a hub's config.json
OF_NO_PICTURES = tuple(f"{kind.name}:" for kind in kinds.KINDS if kind.name != "pictures")
MEASURED = (
    "the page is for images: kNN and rank of this run are in measured.csv beside it, and in Python "
    "training.resume(path).embed(data) gives features for clutils.measures and clutils.maps"
)


def open(
    path: str | Path | nn.Module,
    arch: str | None = None,
    weights: str | None = None,
    head: str | None = None,
) -> Opened:
    """The encoder in a checkpoint of any library; or an nn.Module of your own, as it is.

    - arch: a name of `NAMES`, where the shapes should be held to it, and behind a dash what they do not tell:
      "resnet18-padding2", "resnet18-maxpool", "vit_s_16-12heads"; or any network of torchvision, and of timm
      where that is installed: "torchvision:convnext_tiny", "timm:resnet18d" (`named`)
    - weights: "ema" takes the moving average of the weights that lies beside them; a key or a beginning of
      names, "teacher", takes what lies under it; None takes the last weights
    - head: a key or a beginning of names under which the projection head lies; None takes the one that a
      layout names, or the only one that fits

    A folder is opened by the one file of weights in it, as a hub's has beside its config.json.
    Nothing in the file is run (`reading`). Raises FileNotFoundError where there is no file; Refused on what
    is no harmless checkpoint; ValueError, saying what was seen and which arch might fit, where no whole
    encoder is in it or its weights are not finite.
    """
    if isinstance(path, nn.Module):
        for name, value in (("arch", arch), ("weights", weights), ("head", head)):
            if value is not None:
                raise ValueError(f"{name} is {value!r}, a name in a file, but a module is taken as it is")
        encoders.demand_weights(path)
        arch = type(path).__name__
        return Opened(path, "a module handed over in Python", arch, channels=named.channels(path))
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"checkpoints.open: {path!r:.80} is no file, and no nn.Module that gives features")
    name, *options = demand_arch(arch) if arch is not None else ("",)
    if Path(path).is_dir():
        path = reading.within(Path(path))
    state, kind = reading.read(path)
    try:
        opened = _opened(state, path, name, options, weights, head)
    except (ValueError, MemoryError, ImportError):
        raise
    except Exception as error:  # names, settings and shapes are the file's own, and may be anything
        raise Refused(f"{path} is damaged, or no checkpoint: {reading.one_line(error)}") from error
    opened.path, opened.kind, opened.size = str(path), kind, Path(path).stat().st_size
    return opened


def _opened(
    state: Any,
    path: str | Path,
    name: str,
    options: list[str],
    weights: str | None,
    head: str | None,
) -> Opened:
    found = states.found(state, path)
    if not found:
        raise ValueError(f"{path} holds no tensors with names, so no encoder: {_kinds(state)}")
    settings = _settings(state)
    if str(settings.get("data")).startswith(OF_NO_PICTURES):
        raise ValueError(
            f"{path} is a run of this package on {backbones.short(settings['data'])}, and {MEASURED}"
        )
    try:
        said = _stated(state, settings, Path(path))
        chosen = found if weights in (None, "ema") else _under(weights, found, path)
        opened = _of_states(chosen, path, name, options, weights == "ema", said)
    except backbones.Unsound as error:
        raise ValueError(f"{path}: {error}") from None
    if head is not None:
        opened.head = heads.under(head, found, encoders.width(opened.encoder))
        opened.notes = [note for note in opened.notes if "head" not in note]
    beside = _numbers(state, TEMPERATURES[:-2])  # there t may be a step
    opened.temperature = next(filter(None, [*_numbers(settings, TEMPERATURES), *beside]), None)
    _take_logits(opened, found)
    opened.settings = settings
    opened.epoch = next(_numbers(state, EPOCHS), None)
    if isinstance(state, Mapping) and "pytorch-lightning_version" in state:
        opened.origin += ", in a Lightning file"
    return opened


def with_stem(opened: Opened, **of_the_stem: Any) -> Opened:
    """The same weights in a ResNet whose stem is otherwise: maxpool, padding, as in `backbones.Backbone`."""
    assert opened.backbone is not None  # only what was opened has something to be otherwise
    backbone = opened.backbone.with_options(**of_the_stem)
    with torch.device("meta"):
        encoder = backbone.build()
    encoder.load_state_dict(opened.encoder.state_dict(), assign=True)
    notes = [note for note in opened.notes if note not in opened.backbone.assumptions]
    return replace(opened, encoder=encoder.eval(), backbone=backbone, notes=[*notes, *backbone.assumptions])


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


def _under(weights: str, found: list[State], path: str | Path) -> list[State]:
    """The states under a key, or the names under a beginning. Raises ValueError where there are none."""
    if several := states.under_name(weights, found):
        return [replace(state, averaged="") for state in several]
    there = [key for state in found for key in state.keys] + [n.partition(".")[0] for n in found[0].names]
    listed = ", ".join(dict.fromkeys(map(backbones.short, there[:200])))
    raise ValueError(f"{path}: weights is {weights!r}, but there are only 'ema', {listed[:300]}")


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
    taken = means if averaged or not last else last
    opened = recognition.recognise(taken, path, arch, options, said)
    if taken is means:
        opened.notes.append(
            f"these weights are a moving average, under {backbones.short(means[0].averaged)!r}"
        )
        if opened.head is None and last:
            with contextlib.suppress(ValueError):  # then there is no head
                beside = recognition.recognise(last, path, arch, options, said)
                if beside.head is not None and beside.arch == opened.arch:
                    opened.head = beside.head
                    opened.notes.append("its projection head is of the last weights: the average has none")
    elif means:
        opened.notes.append(
            f"a moving average of the weights lies beside, under {backbones.short(means[0].averaged)!r}, "
            "and was not taken (--weights ema takes it)"
        )
    return opened


def _kinds(state: Any) -> str:
    if isinstance(state, Mapping):
        keys = [backbones.short(k) if isinstance(k, str) else f"a {type(k).__name__}" for k in state]
        return f"its keys are {', '.join(keys[:6]) or 'none'}"
    return f"it is a {type(state).__name__}"


def _settings(state: Any) -> dict[str, Any]:
    """The plain values of a file's settings, however deep under the usual names: innermost last."""
    found: dict[str, Any] = {}
    waiting, seen = [state], set[int]()
    while waiting and len(seen) < 100:
        value = waiting.pop()
        value = vars(value) if isinstance(value, argparse.Namespace) else value
        if not isinstance(value, dict) or id(value) in seen:
            continue
        seen.add(id(value))
        if value is not state:
            named = {k: v for k, v in value.items() if isinstance(k, str) and len(k) <= reading.NAME}
            found |= {k: v for k, v in named.items() if isinstance(v, str) or _number(v)}
        waiting += [value[key] for key in SETTINGS if key in value]
    return found


def _number(value: Any) -> bool:
    """True for a number that a float or 64 bits hold, as numbers of settings do."""
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
    """Finite numbers from 0 on that stand under these names."""
    for name in names if isinstance(found, Mapping) else ():
        value = found.get(name)
        if _number(value) and not isinstance(value, bool) and 0 <= value < math.inf:
            yield float(value)

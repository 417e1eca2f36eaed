"""Any two losses of the family on the same similarities, their settings under sliders."""

from __future__ import annotations

import math
from typing import Any

import ipywidgets as W
import torch
from torch import Tensor

from clutils import losses
from clutils.course.forces import figures as drawn
from clutils.course.forces.mixes import FixedMixes
from clutils.course.forces.negatives import DISTRIBUTIONS, READS, places, show_what_is_read
from clutils.course.panels import Panel, among, choose, log_slider, panel, slider
from clutils.losses import Loss
from clutils.similarities import Pairs

COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 255, 510, 1024)
# attribute -> label and range; a pair of logarithmic ends, or low, high and step
SETTINGS: dict[str, tuple[str, tuple[float, ...]]] = {
    "temperature": ("τ temperature", (0.02, 5.0)),
    "alpha": ("α slope of τ", (0.0, 2.0, 0.05)),
    "alignment_threshold": ("A₀ threshold", (-1.0, 1.0, 0.05)),
    "ratio": ("m ratio of temperatures", (1.0, 100.0)),
    "class_prior": ("τ⁺ class prior", (0.0, 0.5, 0.01)),
    "beta": ("β hardness", (0.0, 4.0, 0.05)),
    "d_pos": ("d_pos", (0.01, 100.0)),
    "d_neg": ("d_neg", (0.05, 1000.0)),
    "margin": ("m margin", (0.0, 2.0, 0.05)),
}
# attribute -> label and the numbers on the slider
NUMBERS = {
    "hardest": ("s hardest", (1, 2, 4, 8, 16, 32, 64, 128, 255, 510)),
    "synthetic": ("k synthetic", (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)),
}
SWITCHES = {"detach_attention": "attention detached", "batch_hard": "hardest only"}


def one_anchor(
    positive: float, count: int, shape: str, views: int = 1, spread: float = 0.0, **place: float
) -> tuple[Tensor, Tensor]:
    """One anchor's similarities to `views` positives and `count` negatives, float64: (P,), (K,).

    - positive, spread: the positives lie evenly from positive - spread to positive + spread, inside [-1, 1]
    - shape: "gaussian" (the evenly spaced quantiles of mean `similarity` and standard deviation `deviation`),
      "few hard" (`number` at `hard`, the others at `similarity`), "equal" (all at `similarity`)

    Raises ValueError on another shape.
    """
    if shape not in READS:
        raise ValueError(f"one_anchor: shape is {shape!r}, but must be one of {', '.join(READS)}")
    offsets = torch.linspace(-1, 1, views, dtype=torch.float64) if views > 1 else torch.zeros(1).double()
    positives = (positive + spread * offsets).clamp(-1, 1)
    negatives = torch.full((count,), place["similarity"], dtype=torch.float64)
    if shape == "gaussian":
        level = (torch.arange(count, dtype=torch.float64) + 0.5) / count
        negatives = (negatives + place["deviation"] * torch.special.ndtri(level)).clamp(-1, 1)
    elif shape == "few hard":
        negatives[: int(place["number"])] = place["hard"]
    return positives, negatives


def explore(
    loss: Loss | str = "MACL",
    beside: Loss | str = "NTXent",
    similarities: tuple[Tensor, Tensor] | None = None,
    **shaped: Any,
) -> Panel:
    """A loss beside another under sliders: who is pushed, how hard the positive is pulled, force by force.

    - loss: a loss of level "similarity", or its name; its settings become sliders, and start as they are.
      SSCL makes its mixes from the similarities here (`FixedMixes`), and their push is led back to the
      parents
    - beside: what it is compared with, at the same temperature; its other settings stay
    - similarities: tables (A, P), (A, K), as of a trained encoder's batch: a slider then goes through the
      anchors, from the easiest to the hardest. None: similarities that the reader shapes
    - shaped: of the anchor that the reader shapes, where its sliders start, as named by `one_anchor`; `views`
      is the number of its positives

    Raises ValueError on a loss of another level, and on a value outside its slider's range.
    """
    first, second = _mixing(_built(loss)), _mixing(_built(beside))
    for each in (first, second):
        each.only_similarities()
    if similarities is None:
        inputs = shaped_anchor(**shaped)
    else:
        tables, order = _sorted(*similarities)
        inputs = {"anchor": slider("anchor, easy to hard", 1, len(order), (len(order) + 1) // 2)}
    views = shaped.get("views", 1) if similarities is None else tables[0].shape[1]
    picture = drawn.Beside(views > 1)
    settings = sliders_of(first)
    if first.name == "MACL" and similarities is None:
        inputs["alignment"] = slider("A alignment of the batch", -1.0, 1.0, 0.6, 0.01)
    names = set(settings)

    def update(**values: Any) -> str:
        for name in names:
            setattr(first, name, values.pop(name))
        for each in (first, second):
            if isinstance(each, FixedMixes):
                each.hardest = min(each.hardest, tables[1].shape[1] if similarities else values["count"])
        if "temperature" in names and hasattr(second, "temperature"):
            second.temperature = first.temperature
        alignment = values.pop("alignment", None)
        if similarities is not None:
            row = values["anchor"] - 1
            anchor = tables[0][row], tables[1][row]
            said = picture.update((second, first), *anchor, float(tables[0].mean()), batch=tables)
        else:
            show_what_is_read(inputs, values["shape"])
            anchor = one_anchor(views=views, **values)
            said = picture.update((second, first), *anchor, alignment)
        return said + _noted(first, *anchor)

    return panel(picture.figure, update, **settings, **inputs)


def family(first: str = "NTXent", second: str = "MACL", temperature: float = 0.2, **shaped: Any) -> Panel:
    """Any two losses of level "similarity", chosen from menus, on similarities that the reader shapes.

    - first, second: names in `losses.catalogue()`; all but the temperature is at its default
    - shaped: where the sliders of the similarities start, as in `explore`

    Raises ValueError on a name that is not in the menu.
    """
    menu = {
        drawn.title_of(entry.loss()): name
        for name, entry in losses.catalogue().items()
        if entry.level == "similarity"
    }
    for name in (first, second):
        if name not in menu.values():
            raise ValueError(f"family: no loss {name!r} to compare; there are {', '.join(menu.values())}")
    views = shaped.get("views", 1)
    built = {name: getattr(losses, name)() for name in menu.values()}
    inputs = {
        "first": choose("first loss", menu, first),
        "second": choose("second loss", menu, second),
        "temperature": log_slider("τ temperature", 0.02, 5.0, temperature),
        **shaped_anchor(**shaped),
    }
    picture = drawn.Beside(views > 1)

    def update(first: str, second: str, temperature: float, **values: Any) -> str:
        compared = [built[first], built[second]]
        for loss in compared:
            if hasattr(loss, "temperature"):
                loss.temperature = temperature
        show_what_is_read(inputs, values["shape"])
        return picture.update(compared, *one_anchor(views=views, **values))

    return panel(picture.figure, update, **inputs)


def sliders_of(loss: Loss) -> dict[str, W.Widget]:
    """A slider or menu for each setting of a loss that can be turned: attribute -> widget."""
    widgets: dict[str, W.Widget] = {}
    for name in loss.hyperparameters():
        value = getattr(loss, name)
        if name in SWITCHES:
            widgets[name] = choose(SWITCHES[name], {"yes": True, "no": False}, value)
        elif name in NUMBERS:
            widgets[name] = among(*NUMBERS[name], value)
        elif name in SETTINGS:
            label, ends = SETTINGS[name]
            kind = log_slider if len(ends) == 2 else slider
            widgets[name] = kind(label, *ends[:2], float(value), *ends[2:])
    return widgets


def _built(loss: Loss | str) -> Loss:
    if isinstance(loss, Loss):
        return loss
    if loss not in losses.catalogue():
        raise ValueError(f"forces: no loss {loss!r}; there are {', '.join(losses.catalogue())}")
    return getattr(losses, loss)()


def _mixing(loss: Loss) -> Loss:
    """SSCL in the form that makes its mixes from similarities; any other loss as it is."""
    if type(loss) is not losses.SSCL:
        return loss
    return FixedMixes(*(getattr(loss, name) for name in loss.hyperparameters()))


def shaped_anchor(
    views: int = 1,
    positive: float = 0.6,
    count: int = 255,
    shape: str = "gaussian",
    similarity: float = 0.0,
    deviation: float = 0.25,
    hard: float = 0.8,
    number: int = 3,
) -> dict[str, W.Widget]:
    """The sliders of an anchor that the reader shapes, named as by `one_anchor`, each on its default."""
    several = {"spread": slider("spread of the positives", 0.0, 0.6, 0.2, 0.01)} if views > 1 else {}
    return {
        "positive": slider("s⁺ positives' mean" if views > 1 else "s⁺ positive", -1.0, 1.0, positive, 0.01),
        **several,
        "count": among("K negatives", COUNTS, count),
        "shape": choose("negatives", DISTRIBUTIONS, shape),
        **places(similarity, deviation, hard, number),
    }


def _sorted(positives: Tensor, negatives: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """The tables in float64, rows from the anchor that wins most clearly to the one that loses worst."""
    positives, negatives = positives.detach().double(), negatives.detach().double()
    order = (negatives.amax(dim=1) - positives.mean(dim=1)).argsort()
    return (positives[order], negatives[order]), order


def _noted(loss: Loss, positives: Tensor, negatives: Tensor) -> str:
    """What a loss found out about itself at the last call: this anchor's positives (P,), negatives (K,)."""
    if isinstance(loss, FixedMixes) and loss.synthetic:
        mixes = loss.mixes(Pairs(positives[None], negatives[None]))
        said = f" The hardest mix lies at {float(mixes.max()):.2f}, the hardest real negative at"
        return f"{said} {float(negatives.max()):.2f} (s = {loss.hardest}, k = {loss.synthetic}).".replace(
            "-", "−"
        )
    if loss.name == "MACL" and loss.adaptive_temperature is not None:
        floor = loss.temperature / 10 if loss.minimum_temperature is None else loss.minimum_temperature
        acts = ", its floor" if math.isclose(float(loss.adaptive_temperature), floor, rel_tol=1e-6) else ""
        return f" MACL's τ_a is {float(loss.adaptive_temperature):.3g}{acts}."
    return ""

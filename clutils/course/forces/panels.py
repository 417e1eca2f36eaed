"""Forces under sliders: any two losses of the family on the same similarities."""

import copy
import math
from collections.abc import Collection, Mapping
from typing import Any

import ipywidgets as W
import torch
from torch import Tensor

from clutils import losses
from clutils.course.forces import figures as drawn
from clutils.course.forces.mixes import FixedMixes
from clutils.course.panels import NONE, Panel, among, choose, dial, panel, slider
from clutils.losses import Loss
from clutils.similarities import Pairs

DISTRIBUTIONS = {
    "all equal": "equal",
    "spread as a Gaussian": "gaussian",
    "a few hard, many easy": "few hard",
}
# the inputs that a distribution reads, and what they are called there; the others are hidden
READS = {
    "equal": {"similarity": "s⁻ of all"},
    "gaussian": {"similarity": "s⁻ mean", "deviation": "s⁻ spread"},
    "few hard": {"hard": "s⁻ of the hard", "similarity": "s⁻ of the easy", "number": "number of hard"},
}
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 255, 510, 1024)

# ---- the inputs of an anchor's negatives ---------------------------------------------------------------


def places(similarity: float, deviation: float, hard: float, number: int) -> dict[str, W.Widget]:
    """A slider for each number that some distribution reads, at these values."""
    return {
        "similarity": slider("s⁻", -1.0, 1.0, float(similarity), 0.01),
        "deviation": slider("s⁻ spread", 0.02, 0.6, deviation, 0.01),
        "hard": slider("s⁻ of the hard", -1.0, 1.0, float(hard), 0.01),
        "number": slider("number of hard", 1, 20, number),
    }


def show_what_is_read(inputs: Mapping[str, W.Widget], distribution: str) -> None:
    """Show the inputs that this distribution reads, under its names for them, and hide the others."""
    for name in ("similarity", "deviation", "hard", "number"):
        inputs[name].layout.display = "" if name in READS[distribution] else "none"
        inputs[name].description = READS[distribution].get(name, "")


# ---- two losses ----------------------------------------------------------------------------------------


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
    without: Collection[str] = (),
    **shaped: Any,
) -> Panel:
    """A loss beside another under sliders: who is pushed, how hard the positive is pulled, force by force.

    - loss: a loss of level "similarity", of the catalogue (or its name) or your own. Each hyper-parameter
      that it declares becomes a slider, which goes where its dial says and starts at its value (an input
      of its name; "loss_" before it where the anchor has that name). SSCL makes its mixes from the
      similarities here (`FixedMixes`), and their push is led back to the parents
    - beside: what it is compared with, at the same temperature; its other settings stay
    - similarities: tables (A, P), (A, K), as of a trained encoder's batch: a slider then goes through the
      anchors, from the easiest to the hardest. None: similarities that the reader shapes
    - without: hyper-parameters that get no slider, for one that changes nothing on these similarities
    - shaped: of the anchor that the reader shapes, where its sliders start, as named by `one_anchor`; `views`
      is the number of its positives

    A hyper-parameter that acts in a batch alone, as SogCLR's rate, changes nothing here, and the sentence
    under the figure says so. Raises ValueError on a loss of another level, and on an anchor's value outside
    its slider's range.
    """
    first, second = (_mixing(_copied(_built(each))) for each in (loss, beside))
    for each in (first, second):
        each.only_similarities()
    hardest = {each: each.hardest for each in (first, second) if isinstance(each, FixedMixes)}
    if similarities is None:
        inputs = shaped_anchor(**shaped)
    else:
        tables = _sorted(*similarities)
        anchors = len(tables[0])
        inputs = {"anchor": slider("anchor, easy to hard", 1, anchors, (anchors + 1) // 2)}
    views = shaped.get("views", 1) if similarities is None else tables[0].shape[1]
    picture = drawn.Beside(views > 1)
    if first.name == "MACL" and similarities is None:
        inputs["alignment"] = slider("A alignment of the batch", -1.0, 1.0, 0.6, 0.01)
    # ADNCE has a deviation, as the anchor's negatives have
    keys = {f"loss_{name}" if name in inputs else name: name for name in first.ranges if name not in without}
    settings = {key: dial(name, getattr(first, name), first.ranges[name]) for key, name in keys.items()}

    def update(**values: Any) -> str:
        for key, name in keys.items():
            value = values.pop(key)
            setattr(first, name, None if value == NONE else value)
        for each, asked in hardest.items():
            most = tables[1].shape[1] if similarities else values["count"]
            each.hardest = min(each.hardest if each is first else asked, most)
        if "temperature" in settings and hasattr(second, "temperature"):
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


def _built(loss: Loss | str) -> Loss:
    if isinstance(loss, Loss):
        return loss
    if loss not in losses.catalogue():
        raise ValueError(f"forces: no loss {loss!r}; there are {', '.join(losses.catalogue())}")
    return getattr(losses, loss)()


def _copied(loss: Loss) -> Loss:
    """Copy of a loss for the sliders to change: the reader's own stays as it is."""
    try:
        return copy.deepcopy(loss)
    except (RuntimeError, TypeError):  # it keeps what has no copy, as a tensor of its last call
        return copy.copy(loss)


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


def _sorted(positives: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor]:
    """The tables in float64, rows from the anchor that wins most clearly to the one that loses worst."""
    positives, negatives = positives.detach().double(), negatives.detach().double()
    order = (negatives.amax(dim=1) - positives.mean(dim=1)).argsort()
    return positives[order], negatives[order]


def _noted(loss: Loss, positives: Tensor, negatives: Tensor) -> str:
    """Remark on the loss's last call: its hardest mix, MACL's τ_a; positives (P,), negatives (K,)."""
    if loss.in_batches:
        named = ", ".join(name.replace("_", " ") for name in loss.in_batches)
        return f" What acts in a batch alone changes nothing here: {named}."
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

"""Forces under sliders: W of one anchor, and any two losses of the family on the same similarities."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as W
import torch
from torch import Tensor

from clutils import figures, losses
from clutils.course.forces import figures as drawn
from clutils.course.forces import gradient_scaling
from clutils.course.forces.mixes import FixedMixes
from clutils.course.panels import NONE, Panel, among, choose, dial, log_slider, panel, slider
from clutils.figures import style
from clutils.losses import Loss
from clutils.similarities import Pairs

DISTRIBUTIONS = {
    "all equal": "equal",
    "spread as a Gaussian": "gaussian",
    "a few hard, many easy": "few hard",
}
# the inputs that a distribution reads, in its order, and what they are called there; the others are put away
READS = {
    "equal": {"similarity": "s⁻ of all"},
    "gaussian": {"similarity": "s⁻ mean", "deviation": "s⁻ spread"},
    "few hard": {"hard": "s⁻ of the hard", "similarity": "s⁻ of the easy", "number": "number of hard"},
}
# of negatives: powers of two and the steps between; 201 and 510 = 2·256 - 2 are numbers of the course
NEGATIVES = sorted({2**k for k in range(17)} | {3 * 2**k for k in range(15)} | {201, 510})
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
    """Show the inputs that this distribution reads, under its names for them, and put the others away."""
    for name in ("similarity", "deviation", "hard", "number"):
        inputs[name].layout.display = "" if name in READS[distribution] else "none"
        inputs[name].description = READS[distribution].get(name, "")


# ---- W -------------------------------------------------------------------------------------------------


def gradient_scale(
    positive: float = 1.0,
    temperature: float = 0.5,
    count: int = 255,
    negatives: str = "equal",
    similarity: float = -1.0,
    deviation: float = 0.1,
    hard: float = 0.9,
    number: int = 1,
) -> Panel:
    """W = 1 - p+ under sliders: against temperature, against the number of negatives, and who gets the push.

    - positive: s+; temperature: τ; count: K
    - negatives: how they are distributed: "equal" (all at `similarity`), "gaussian" (mean `similarity`,
      standard deviation `deviation`) or "few hard" (`number` at `hard`, the others at `similarity`)

    With positive=0.5, count=201, negatives="few hard", similarity=-0.9 it opens on the counter-example to
    MACL's proposition 2. Raises ValueError on a value outside its slider's range.
    """
    if negatives not in DISTRIBUTIONS.values():
        raise ValueError(f"gradient_scale: negatives is {negatives!r}, but must be one of {', '.join(READS)}")
    inputs = {
        "positive": slider("s⁺ positive similarity", -1.0, 1.0, float(positive), 0.01),
        "temperature": log_slider("τ temperature", *gradient_scaling.TEMPERATURES, temperature),
        "count": among("K negatives", NEGATIVES, count),
        "negatives": choose("negatives", DISTRIBUTIONS, negatives),
        **places(similarity, deviation, hard, number),
    }
    made: dict[str, Callable[..., gradient_scaling.Distribution]] = {
        "equal": gradient_scaling.all_equal,
        "gaussian": gradient_scaling.gaussian,
        "few hard": gradient_scaling.few_hard,
    }
    temperatures, counts = gradient_scaling.temperature_axis(), gradient_scaling.count_axis()
    figure, (warm, many, who) = figures.new(10.2, 3.7, 1, 3, width_ratios=[1.25, 1, 1])
    with style.course():
        gradient_scaling.scale_frame(warm, "temperature τ")
        gradient_scaling.scale_frame(many, "number of negatives K")
        many.set_ylabel("")
        gradient_scaling.push_frame(who)
        dashed = {"color": style.GREY, "linestyle": (0, (4, 3)), "linewidth": 1.3}
        point = {"color": style.VERMILLION, "marker": "o", "markersize": 10, "linestyle": "none"}
        triangle = {"color": style.BLACK, "marker": "v", "markersize": 9, "linestyle": "none"}
        (against_t,) = warm.plot(temperatures, 0 * temperatures, color=style.BLUE)
        limit = warm.axhline(1, **dashed, label="K/(K+1)")
        (lowest,) = warm.plot([], [], **triangle, label="lowest W")
        (here_t,) = warm.plot([], [], **point, label="your τ")
        (against_k,) = many.plot(counts, 0 * counts, color=style.BLUE)
        many.plot(counts, counts / (counts + 1), **dashed)
        (here_k,) = many.plot([], [], **point)
        zeros, edges = torch.zeros(len(gradient_scaling.BINS) - 1).numpy(), gradient_scaling.BINS.numpy()
        in_number = who.stairs(zeros, edges, fill=True, color="#BDBDBD", label="negatives")
        in_push = who.stairs(zeros, edges, color=style.VERMILLION, linewidth=2.2, label="push")
        own = who.axvline(0, color=style.ROLES["positive"]["color"], linestyle="--", label="s⁺")
        warm.legend(loc="lower right", handlelength=1.6)
        who.legend(loc="upper center", handlelength=1.3, ncols=3, columnspacing=1.2)
        warm.set_title("W against τ")
        many.set_title("W against K")
        who.set_title("who is pushed")
    figures.describe(
        figure,
        "Three charts: W against temperature, with its limit K/(K+1) dashed, a point at the chosen "
        "temperature and a triangle at its minimum if it has one; W against the number of negatives, with a "
        "point at the chosen number; and how the negatives, and the push on them, are distributed over the "
        "similarity.",
    )

    def update(negatives: str, positive: float, temperature: float, count: int, **place: float) -> str:
        show_what_is_read(inputs, negatives)
        distribution = made[negatives](*(place[name] for name in READS[negatives]))
        W = float(gradient_scaling.scale(positive, distribution, temperature, count))
        against_t.set_ydata(gradient_scaling.scale(positive, distribution, temperatures, count)[:, 0].numpy())
        against_k.set_ydata(gradient_scaling.scale(positive, distribution, temperature, counts)[0].numpy())
        here_t.set_data([temperature], [W])
        here_k.set_data([count], [W])
        limit.set_ydata([count / (count + 1)] * 2)
        turn = gradient_scaling.turning_point(positive, distribution, count)
        lowest.set_data(*([[], []] if turn is None else [[turn[0]], [turn[1]]]))
        shares, push = gradient_scaling.push_shares(distribution, count, temperature)
        in_number.set_data(gradient_scaling.binned(distribution, shares).numpy())
        in_push.set_data(gradient_scaling.binned(distribution, push).numpy())
        own.set_xdata([positive] * 2)
        moves = "W goes one way along τ"
        if turn is not None:
            moves = f"W is lowest, {turn[1]:.3f}, at τ = {turn[0]:.2f}, and rises to both sides"
        centre = float((push * distribution.similarities).sum())
        text = (
            f"W = {W:.3f} at τ = {temperature:.3g} and K = {count:,}; as τ grows it goes to K/(K+1) = "
            f"{count / (count + 1):.3f}. {moves}. On average the push lands on similarity {centre:.2f}."
        )
        return text.replace("-", "−")

    return panel(figure, update, **inputs)


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
    - shaped: of the anchor that the reader shapes, where its sliders start, as named by `one_anchor`; `views`
      is the number of its positives

    A hyper-parameter that acts in a batch alone, as SogCLR's rate, changes nothing here, and the sentence
    under the figure says so. Raises ValueError on a loss of another level, and on an anchor's value outside
    its slider's range.
    """
    first, second = _mixing(_built(loss)), _mixing(_built(beside))
    for each in (first, second):
        each.only_similarities()
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
    keys = {f"loss_{name}" if name in inputs else name: name for name in first.ranges}
    settings = {key: dial(name, getattr(first, name), first.ranges[name]) for key, name in keys.items()}

    def update(**values: Any) -> str:
        for key, name in keys.items():
            value = values.pop(key)
            setattr(first, name, None if value == NONE else value)
        for each in (first, second):
            if isinstance(each, FixedMixes):
                each.hardest = min(each.hardest, tables[1].shape[1] if similarities else values["count"])
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
    """What a loss found out about itself at the last call: this anchor's positives (P,), negatives (K,)."""
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

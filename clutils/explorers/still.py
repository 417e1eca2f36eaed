"""An image of an explorer as it opens: for where no script runs, on paper and in an untrusted notebook."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from matplotlib.collections import LineCollection
from torch import Tensor

from clutils import anatomy, figures, losses
from clutils.explorers import controls
from clutils.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BARS = 40  # of drawn negatives, over [-1, 1]
DIGITS = 36**3  # of a point: a place on the circle in three letters
TURN = 2 * math.pi


def still(name: str, given: Mapping[str, Any]) -> Figure | None:
    """An explorer as it opens, with its alt text; None = of "matrix" and "run", which have no still.

    - given: its settings, checked
    """
    drawn = {"W": _w, "circle": _circle}.get(name)
    known = {control.name: control.default for control in controls.EXPLORERS[name].controls}
    return None if drawn is None else drawn({**known, **given})


def _loss(state: Mapping[str, Any], prefix: str = "") -> losses.Loss:
    """The chosen loss, with its settings as the page has them."""
    name = state["beside" if prefix else "loss"]
    own = {c.name: state[f"{prefix}{c.name}"] for c in controls.of_loss(name) if f"{prefix}{c.name}" in state}
    return losses.catalogue()[name].cls(**own)


def _titled(loss: losses.Loss) -> str:
    temperature = getattr(loss, "temperature", None)
    return style.title(loss.name) + ("" if temperature is None else f", τ = {temperature:g}")


# ---- W -----------------------------------------------------------------------------------------------------


def negatives(state: Mapping[str, Any]) -> Tensor:
    """The negatives that the page opens on, (K,), float64."""
    K, shape = state["count"], state["shape"]
    level = (torch.arange(K, dtype=torch.float64) + 0.5) / K
    found = torch.full((K,), float(state["similarity"]), dtype=torch.float64)
    if shape == "gaussian":
        ends = torch.tensor([-1.0, 1.0], dtype=torch.float64)
        low, high = torch.special.ndtr((ends - state["similarity"]) / state["spread"])  # of what lies inside
        return (found + state["spread"] * torch.special.ndtri(low + (high - low) * level)).clamp(-1, 1)
    if shape == "few hard":
        found[: state["number"]] = state["hard"]
    if shape == "drawn":
        heights = [int(letter, 36) for letter in state["drawn"]]
        if len(heights) != BARS or not any(heights):
            heights = [35 * (k == BARS // 4) for k in range(BARS)]
        share = torch.tensor(heights, dtype=torch.float64).cumsum(0)
        found = -1 + (2 * torch.searchsorted(share, level * share[-1]).double() + 1) / BARS
    return found


def _w(state: Mapping[str, Any]) -> Figure:
    """W of these similarities against the temperature, and who is pushed by the loss."""
    s, n = torch.tensor([[state["positive"]]], dtype=torch.float64), negatives(state)[None]
    loss = _loss(state)
    temperatures = torch.logspace(math.log10(0.02), math.log10(20), 60, dtype=torch.float64)
    gates = torch.cat([anatomy.gradient_scale(s, n, float(t)) for t in temperatures])
    pull, push = anatomy.forces(loss, s, n)
    figure, (left, right) = figures.new(7.6, 2.9, columns=2)
    with style.course():
        ends = torch.stack([temperatures, gates], dim=1).unfold(0, 2, 1).mT.numpy()  # (59, 2, 2)
        shades = [style.temperature(float(t)) for t in temperatures[1:]]
        left.add_collection(LineCollection(list(ends), colors=shades, linewidths=2))
        left.set(xscale="log", xlim=(0.02, 20), xlabel="temperature τ", ylabel="W, the gate", ylim=(0, 1.04))
        edges = torch.linspace(-1, 1, BARS + 1)
        place = ((n[0] + 1) / 2 * BARS).long().clamp(0, BARS - 1)
        for weights, sign, colour in (
            (torch.ones_like(n[0]), 1, style.GREY),
            (push[0], -1, style.VERMILLION),
        ):
            high = torch.zeros(BARS, dtype=torch.float64).index_add(0, place, weights)
            right.stairs(sign * high / high.abs().max().clamp(min=1e-300), edges, fill=True, color=colour)
        right.axvline(state["positive"], color=style.BLUE)
        right.set(xlabel="similarity (the line: s⁺)", yticks=[], xlim=(-1.02, 1.02))
        left.set_title(_titled(loss))
        right.set_title("negatives (up), push (down)")
    here, said = getattr(loss, "temperature", None), ""
    if here is not None:
        W = float(anatomy.gradient_scale(s, n, here))
        said = f"W is {W:.3g} at τ = {here:g}. "
        with style.course():
            left.plot([here], [W], "o", color=style.temperature(here), markersize=8)
    text = (
        f"{_titled(loss)}: one positive at {state['positive']:g} and {state['count']:,} negatives, mean "
        f"{float(n.mean()):.2f}, hardest {float(n.max()):.2f}. {said}The pull on the positive is "
        f"{float(pull.sum()):.3g}. Left, W against the temperature; right, negatives and who is pushed."
    )
    return figures.describe(figure, re.sub(r"-(?=\d)", "−", text))


# ---- the circle --------------------------------------------------------------------------------------------


def _random(seed: int) -> Iterator[float]:
    """mulberry32, as the page draws: numbers in [0, 1)."""
    a, most = seed * 2654435769 % 2**32, 2**32 - 1
    while True:
        a = (a + 0x6D2B79F5) & most
        t = (a ^ (a >> 15)) * (1 | a) & most
        t = ((t + ((t ^ (t >> 7)) * (61 | t) & most)) & most) ^ t
        yield ((t ^ (t >> 14)) & most) / 2**32


def angles(state: Mapping[str, Any]) -> list[float]:
    """Where the page starts: angles of 2N points in radians, those of view 1 first."""
    N, classes, at = state["pictures"], state["classes"], state["at"]
    if len(at) == 6 * N:
        return [int(at[k : k + 3], 36) / DIGITS * TURN for k in range(0, 6 * N, 3)]
    draw = _random(state["seed"] + 1)

    def normal() -> float:
        return math.sqrt(-2 * math.log(1 - next(draw))) * math.cos(TURN * next(draw))

    first, second = [], []
    wide = (0.22 if classes > 1 else 0.3 * 2.9) * state["arc"] * TURN / classes
    for i in range(N):
        own = math.pi / 2 + state["arc"] * TURN * ((i % classes + 0.5) / classes - 0.5)
        own += wide * (normal() / 2 if classes > 1 else 2 * next(draw) - 1)
        first.append(own + state["scatter"] * normal())
        second.append(own + state["scatter"] * normal())
    return first + second


def _circle(state: Mapping[str, Any]) -> Figure:
    """The points as they start."""
    N, loss, places = state["pictures"], _loss(state), angles(state)
    figure, ax = figures.new(3.4, 3.6)
    with style.course():
        around = torch.linspace(0, TURN, 200)
        tau = getattr(loss, "temperature", None)
        hue = style.GREY if tau is None else style.temperature(tau)
        ax.plot(around.cos(), around.sin(), color=hue, linewidth=2, linestyle="-")
        for a, b in zip(places[:N], places[N:], strict=True):
            x, y = [math.cos(a), math.cos(b)], [math.sin(a), math.sin(b)]
            ax.plot(x, y, color=style.BLACK, linewidth=1, linestyle="-")
            ax.plot(x[:1], y[:1], "o", color=style.INK)
            ax.plot(x[1:], y[1:], "o", color=style.INK, fillstyle="none")
        ax.set(aspect="equal", xticks=[], yticks=[], title=f"{_titled(loss)}: the start")
        ax.axis("off")
    around_ = sorted(angle % TURN for angle in places[:N])
    gap = max(b - a for a, b in zip(around_, [*around_[1:], around_[0] + TURN], strict=True))
    beside = "" if state["beside"] == "none" else f" and under {_titled(_loss(state, 'beside_'))}"
    text = (
        f"{N} images, two views each (filled and hollow, joined by a line), as they start on a circle, to "
        f"move under {_titled(loss)}{beside}; the widest gap is {math.degrees(gap):.0f}° of 360°."
    )
    return figures.describe(figure, text)

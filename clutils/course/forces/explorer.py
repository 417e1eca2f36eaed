"""The W explorer: the gradient-scaling factor under the reader's own hands."""

from __future__ import annotations

import torch

from clutils import figures
from clutils.course.forces import gradient_scaling
from clutils.course.forces.gradient_scaling import Distribution
from clutils.course.forces.negatives import DISTRIBUTIONS, READS, places, show_what_is_read
from clutils.course.panels import Panel, among, choose, log_slider, panel, slider
from clutils.figures import style

# powers of two and the steps between; 201 and 510 = 2·256 - 2 are numbers that the course talks about
NUMBERS = sorted({2**k for k in range(17)} | {3 * 2**k for k in range(15)} | {201, 510})


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
    picture = _Picture()
    inputs = {
        "positive": slider("s⁺ positive similarity", -1.0, 1.0, float(positive), 0.01),
        "temperature": log_slider("τ temperature", *gradient_scaling.TEMPERATURES, temperature),
        "count": among("K negatives", NUMBERS, count),
        "negatives": choose("negatives", DISTRIBUTIONS, negatives),
        **places(similarity, deviation, hard, number),
    }

    def update(negatives: str, **values: float) -> str:
        show_what_is_read(inputs, negatives)
        return picture.update(negatives, **values)

    return panel(picture.figure, update, **inputs)


class _Picture:
    """The explorer's three axes, and the artists that move."""

    def __init__(self) -> None:
        with style.course():
            self.figure, (warm, many, who) = figures.new(10.2, 3.7, 1, 3, width_ratios=[1.25, 1, 1])
            gradient_scaling.temperature_frame(warm)
            gradient_scaling.count_frame(many)
            many.set_ylabel("")
            gradient_scaling.push_frame(who)
            dashed = {"color": style.GREY, "linestyle": (0, (4, 3)), "linewidth": 1.3}
            point = {"color": style.VERMILLION, "marker": "o", "markersize": 10, "linestyle": "none"}
            empty: list[float] = []
            self.temperatures = gradient_scaling.temperature_axis()
            self.counts = gradient_scaling.count_axis()
            t, K = self.temperatures.numpy(), self.counts.numpy()
            (self.against_t,) = warm.plot(t, 0 * t, color=style.BLUE)
            self.limit = warm.axhline(1, **dashed, label="K/(K+1)")
            (self.lowest,) = warm.plot(
                empty, empty, marker="v", color=style.BLACK, markersize=9, linestyle="none", label="lowest W"
            )
            (self.here_t,) = warm.plot(empty, empty, **point, label="your τ")
            (self.against_k,) = many.plot(K, 0 * K, color=style.BLUE)
            many.plot(K, K / (K + 1), **dashed)
            (self.here_k,) = many.plot(empty, empty, **point)
            zeros, edges = torch.zeros(len(gradient_scaling.BINS) - 1).numpy(), gradient_scaling.BINS.numpy()
            self.share = who.stairs(zeros, edges, fill=True, color="#BDBDBD", label="negatives")
            self.push = who.stairs(zeros, edges, color=style.VERMILLION, linewidth=2.2, label="push")
            self.positive = who.axvline(0, color=style.ROLES["positive"]["color"], linestyle="--", label="s⁺")
            warm.legend(loc="lower right", handlelength=1.6)
            who.legend(loc="upper center", handlelength=1.3, ncols=3, columnspacing=1.2)
            warm.set_title("W against τ")
            many.set_title("W against K")
            who.set_title("who is pushed")
            figures.describe(
                self.figure,
                "Three charts: W against temperature, with its limit K/(K+1) dashed, a point at the chosen "
                "temperature and a triangle at its minimum if it has one; W against the number of "
                "negatives, with a point at the chosen number; and how the negatives, and the push on "
                "them, are distributed over the similarity.",
            )

    def update(
        self,
        negatives: str,
        positive: float,
        temperature: float,
        count: int,
        similarity: float,
        deviation: float,
        hard: float,
        number: int,
    ) -> str:
        distribution = {
            "equal": lambda: gradient_scaling.all_equal(similarity),
            "gaussian": lambda: gradient_scaling.gaussian(similarity, deviation),
            "few hard": lambda: gradient_scaling.few_hard(hard, similarity, number),
        }[negatives]()
        W = float(gradient_scaling.scale(positive, distribution, temperature, count))
        along_t = gradient_scaling.scale(positive, distribution, self.temperatures, count)[:, 0]
        along_k = gradient_scaling.scale(positive, distribution, temperature, self.counts)[0]
        self.against_t.set_ydata(along_t.numpy())
        self.against_k.set_ydata(along_k.numpy())
        self.here_t.set_data([temperature], [W])
        self.here_k.set_data([count], [W])
        self.limit.set_ydata([count / (count + 1)] * 2)
        turn = gradient_scaling.turning_point(positive, distribution, count)
        self.lowest.set_data(*([[], []] if turn is None else [[turn[0]], [turn[1]]]))
        shares, push = gradient_scaling.push_shares(distribution, count, temperature)
        self.share.set_data(gradient_scaling.binned(distribution, shares).numpy())
        self.push.set_data(gradient_scaling.binned(distribution, push).numpy())
        self.positive.set_xdata([positive] * 2)
        return _sentence(W, temperature, count, turn, distribution, push)


def _sentence(
    W: float,
    temperature: float,
    count: int,
    turn: tuple[float, float] | None,
    distribution: Distribution,
    push: torch.Tensor,
) -> str:
    moves = (
        "W goes one way along τ"
        if turn is None
        else f"W is lowest, {turn[1]:.3f}, at τ = {turn[0]:.2f}, and rises to both sides"
    )
    centre = float((push * distribution.similarities).sum())
    text = (
        f"W = {W:.3f} at τ = {temperature:.3g} and K = {count:,}; as τ grows it goes to K/(K+1) = "
        f"{count / (count + 1):.3f}. {moves}. On average the push lands on similarity {centre:.2f}."
    )
    return text.replace("-", "−")

"""The W explorer: the gradient-scaling factor under the reader's own hands."""

from __future__ import annotations

import torch

from clutils import figures
from clutils.course.forces import gradient_scaling
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
    inputs = {
        "positive": slider("s⁺ positive similarity", -1.0, 1.0, float(positive), 0.01),
        "temperature": log_slider("τ temperature", *gradient_scaling.TEMPERATURES, temperature),
        "count": among("K negatives", NUMBERS, count),
        "negatives": choose("negatives", DISTRIBUTIONS, negatives),
        **places(similarity, deviation, hard, number),
    }
    temperatures, counts = gradient_scaling.temperature_axis(), gradient_scaling.count_axis()
    figure, (warm, many, who) = figures.new(10.2, 3.7, 1, 3, width_ratios=[1.25, 1, 1])
    with style.course():
        gradient_scaling.temperature_frame(warm)
        gradient_scaling.count_frame(many)
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

    def update(
        negatives: str,
        positive: float,
        temperature: float,
        count: int,
        similarity: float,
        deviation: float,
        hard: float,
        number: int,
    ) -> str:
        show_what_is_read(inputs, negatives)
        distribution = {
            "equal": lambda: gradient_scaling.all_equal(similarity),
            "gaussian": lambda: gradient_scaling.gaussian(similarity, deviation),
            "few hard": lambda: gradient_scaling.few_hard(hard, similarity, number),
        }[negatives]()
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

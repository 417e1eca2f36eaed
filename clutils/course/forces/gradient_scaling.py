"""The gradient-scaling factor W against temperature and number of negatives; who gets the push.

All values are computed by `clutils.anatomy`. MACL (arXiv 2207.07874), section 3 and figure 2.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator
from torch import Tensor

from clutils import anatomy
from clutils.figures import axes_for, describe, style
from clutils.figures.training import curves

# the axis of every figure here: from one-negative-takes-all to all-negatives-alike
TEMPERATURES = (0.02, 20.0)
COUNTS = (1, 65_536)
AXES = {"temperature τ": TEMPERATURES, "number of negatives K": COUNTS}
BINS = torch.linspace(-1, 1, 41, dtype=torch.float64)


@dataclass(frozen=True)
class Distribution:
    """How the similarities of an anchor's K negatives are distributed, for any K.

    - similarities: (m,), the values that occur, in [-1, 1]
    - counts: (..., 1) numbers of negatives K -> (..., m), how many lie at each value; fractions count, rows
      sum to K
    - text: the distribution in words
    """

    similarities: Tensor
    counts: Callable[[Tensor], Tensor]
    text: str

    def weighted(self, K: Tensor | float, temperature: Tensor | float) -> Tensor:
        """The K negatives (...) as m similarities, (..., m), of the same Σ exp(s-/τ).

        n equal negatives act like a single one that lies τ log n closer: n exp(s/τ) = exp((s + τ log n)/τ).
        So 65,536 negatives cost no more than one, and every formula of `anatomy` takes them as they are.
        """
        return self.similarities + temperature * self.counts(_column(K)).log()


def _say(number: float) -> str:
    return f"{number:g}".replace("-", "−")


def _in_range(name: str, similarity: float) -> None:
    if not -1 <= similarity <= 1:
        raise ValueError(f"{name} is {similarity}, but a cosine similarity lies between -1 and 1")


def all_equal(similarity: float = -1.0) -> Distribution:
    """Every negative at the same similarity."""
    _in_range("similarity", similarity)
    value = torch.tensor([similarity], dtype=torch.float64)
    return Distribution(value, lambda K: K, f"all negatives at {_say(similarity)}")


def gaussian(mean: float = 0.0, deviation: float = 0.1) -> Distribution:
    """Negatives spread as a typical draw of K from a Gaussian cut off at -1 and 1, in steps of 0.005.

    Typical means that the hardest lies at the quantile 1 - 1/(2K + 2): it gets harder as K grows, and no
    fraction of a negative that a draw of K never holds gets a say, as it would (all of it, when τ is small)
    in the mean. Random unit vectors in D dimensions have mean 0 and a deviation of about 1/√D.
    """
    _in_range("mean", mean)
    if not deviation > 0:
        raise ValueError(f"gaussian: deviation is {deviation}, but must be above 0")
    edges = torch.linspace(-1, 1, 10 * len(BINS) - 9, dtype=torch.float64)  # each bin of a histogram in ten
    level = torch.special.ndtr((edges - mean) / deviation)
    level = (level - level[0]) / (level[-1] - level[0])

    def counts(K: Tensor) -> Tensor:
        tail = 1 / (2 * K + 2)
        inside = torch.minimum(torch.maximum(level, tail), 1 - tail)
        return K * inside.diff(dim=-1) / (1 - 2 * tail)

    text = f"negatives spread around {_say(mean)}, standard deviation {deviation:g}"
    return Distribution((edges[1:] + edges[:-1]) / 2, counts, text)


def few_hard(hard: float = 0.9, easy: float = -0.9, number: int = 1) -> Distribution:
    """`number` negatives at `hard` (all, where K is smaller), the others at `easy`.

    With s+ = 0.5, one at 0.9 and 200 at -0.9 this is the counter-example to MACL's proposition 2.
    """
    _in_range("hard", hard)
    _in_range("easy", easy)
    if number < 1:
        raise ValueError(f"few_hard: number is {number}, but at least one negative is hard")
    values = torch.tensor([hard, easy], dtype=torch.float64)
    text = f"{number:,} at {_say(hard)}, the others at {_say(easy)}"
    return Distribution(
        values, lambda K: torch.cat([K.clamp(max=number), (K - number).clamp(min=0)], dim=-1), text
    )


# MACL's extreme case (figure 2), the easiest pair there is: W = K e^(-2/τ) / (1 + K e^(-2/τ))
EXTREME = (1.0, all_equal(-1.0))
EXTREME_IN_WORDS = f"s⁺ = 1, {EXTREME[1].text}"


def temperature_axis(points: int = 161) -> Tensor:
    """Temperatures, evenly spaced on a logarithmic axis, (points,)."""
    return torch.logspace(*map(math.log10, TEMPERATURES), points, dtype=torch.float64)


def count_axis(points: int = 97) -> Tensor:
    """Numbers of negatives, evenly spaced on a logarithmic axis, (points,)."""
    return torch.logspace(*map(math.log10, COUNTS), points, dtype=torch.float64)


def scale(
    positive: float, distribution: Distribution, temperatures: Tensor | float, counts: Tensor | float
) -> Tensor:
    """W = `anatomy.gradient_scale` for each temperature (T,) and number of negatives (C,) -> (T, C).

    A single number instead of a tensor counts as one of them.
    """
    return anatomy.gradient_scale(*_cases(positive, distribution, temperatures, counts)).reshape(
        torch.as_tensor(temperatures).numel(), torch.as_tensor(counts).numel()
    )


def turning_point(positive: float, distribution: Distribution, count: float) -> tuple[float, float] | None:
    """The temperature at which W is smallest, and that W; None where W has no minimum between the ends.

    W turns at most once, since the contrast is a convex function of 1/τ; sought in the contrast itself, since
    W comes too close to 0 and 1 to be told from them.
    """
    grid = temperature_axis()
    for _ in range(2):  # on the axis, then between the neighbours of its smallest value
        c = anatomy.contrast(*_cases(positive, distribution, grid, count))
        k = int(c.argmin())
        if k in (0, len(grid) - 1) or c[k] > min(c[0], c[-1]) - 1e-9:
            return None
        best = float(grid[k])
        grid = torch.linspace(float(grid[k - 1]), float(grid[k + 1]), 201, dtype=torch.float64)
    return best, float(scale(positive, distribution, best, count))


def scale_frame(ax: Axes, against: str) -> None:
    """Axes for W against one of `AXES`."""
    _logarithmic(ax, "x", against)
    ax.set(ylim=(-0.03, 1.03), ylabel="gradient scale W")


def push_frame(ax: Axes) -> None:
    """Axes for shares over the negatives' similarity: logarithmic, since one in a thousand may get it all."""
    ax.set(xlim=(-1.02, 1.02), xlabel="similarity s⁻ of the negative", yscale="log", ylim=(1e-5, 5))
    ax.set_yticks([10.0**e for e in range(-5, 1)], ["0.001%", "0.01%", "0.1%", "1%", "10%", "100%"])
    ax.yaxis.set_minor_locator(NullLocator())


@style.in_course_style
def against_count(temperatures: Sequence[float] = (0.1, 0.2, 0.3, 0.5, 1.0), ax: Axes | None = None) -> Axes:
    """W against the number of negatives in the extreme case, a line a temperature; dotted K/(K+1)."""
    grid = count_axis()
    lines = {f"τ = {t:g}": scale(*EXTREME, t, grid)[0] for t in temperatures}
    ax = curves(grid, lines, "number of negatives", "W", ordered=True, ax=axes_for(ax))
    ax.plot(grid, grid / (grid + 1), color=style.GREY, linestyle=(0, (2, 3)), linewidth=1.2, label="K/(K+1)")
    scale_frame(ax, "number of negatives K")
    ax.set_title(EXTREME_IN_WORDS)
    style.name_lines(ax)
    return describe(
        ax,
        f"W against the number of negatives for temperatures {', '.join(f'{t:g}' for t in temperatures)}, "
        f"with {EXTREME_IN_WORDS}; every line rises with K; K/(K+1) is dotted.",
    )


@style.in_course_style
def directions(
    positive: float,
    distributions: Sequence[Distribution],
    count: int = 201,
    ax: Axes | None = None,
) -> Axes:
    """W against τ for several distributions of K negatives, the minimum marked where there is one."""
    ax, grid = axes_for(ax, 9.4), temperature_axis()
    turns = []
    for k, (look, distribution) in enumerate(
        zip(style.series(len(distributions), ordered=False), distributions, strict=True)
    ):
        name, W = distribution.text, scale(positive, distribution, grid, count)[:, 0]
        ax.plot(grid, W, **look, markevery=(5 * k, 25), label=name)
        turn = turning_point(positive, distribution, count)
        if turn is not None:
            ax.plot(*turn, marker="o", markersize=12, fillstyle="none", color=style.INK, linestyle="none")
            turns.append(f"{name} has its minimum {turn[1]:.3f} at temperature {turn[0]:.2f}")
    limit = count / (count + 1)
    ax.axhline(limit, color=style.GREY, linestyle=(0, (2, 3)), linewidth=1.2, label=f"K/(K+1) = {limit:.3f}")
    scale_frame(ax, "temperature τ")
    ax.set_title(f"s⁺ = {_say(positive)}, K = {count:,}")
    style.name_lines(ax)
    return describe(
        ax,
        f"W against temperature with s+ = {_say(positive)} and {count} negatives for {len(distributions)} "
        f"distributions of them; {'; '.join(turns) if turns else 'none has a minimum inside'}.",
    )


def _cases(
    positive: float, distribution: Distribution, temperatures: Tensor | float, counts: Tensor | float
) -> tuple[Tensor, Tensor, Tensor]:
    """Every temperature with every number of negatives: positives (A,), negatives (A, m), τ (A, 1)."""
    _in_range("positive", positive)
    t = torch.as_tensor(temperatures, dtype=torch.float64).reshape(-1, 1, 1)
    K = torch.as_tensor(counts, dtype=torch.float64).reshape(-1)
    negatives = distribution.weighted(K, t)  # (T, C, m)
    rows = negatives.shape[0] * negatives.shape[1]
    return (
        torch.full((rows,), float(positive), dtype=torch.float64),
        negatives.reshape(rows, -1),
        t.expand(-1, len(K), 1).reshape(rows, 1),
    )


def _logarithmic(ax: Axes, axis: str, label: str) -> None:
    """One of `AXES`, logarithmic, with plain numbers: 1, 3, 10 ... over few decades, else 1, 10, 100, 1k."""
    ends = AXES[label]
    steps = (1, 3) if ends[1] / ends[0] < 1e4 else (1,)
    ticks = [m * 10.0**e for e in range(-3, 6) for m in steps if ends[0] <= m * 10.0**e <= ends[1]]
    ax.set(**{f"{axis}scale": "log", f"{axis}lim": ends, f"{axis}label": label})
    names = [f"{t / 1000:g}k" if t >= 1000 else f"{t:g}" for t in ticks]
    getattr(ax, f"set_{axis}ticks")(ticks, names)
    getattr(ax, f"{axis}axis").set_minor_locator(NullLocator())


def _column(K: Tensor | float) -> Tensor:
    return torch.as_tensor(K, dtype=torch.float64)[..., None]

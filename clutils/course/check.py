"""Checks that a notebook puts behind each derived equation: they compare, and print what they compared.

check.DETAILS = True        the largest difference that was found, and what is allowed, in every line
"""

import textwrap
from collections.abc import Callable

import torch
from torch import Tensor

from clutils.course import toys

DETAILS = False
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}  # relative to the larger of 1 and the value


class Unequal(AssertionError):
    """Two sides of an equation that should agree do not."""


def equal(left: Tensor | float, right: Tensor | float, says: str, tolerance: float | None = None) -> None:
    """Both sides, one printed line: `says` and the value; of several values how many, and how equal.

    - left, right: tensors of one shape, or numbers
    - says: the equation in words, as in "softplus(c) = NT-Xent"
    - tolerance: largest allowed |left - right| / max(1, |right|); 1e-10 in float64, 1e-5 in float32

    Raises Unequal, showing both sides, when they differ by more.
    """
    a, b = _tensor(left), _tensor(right)
    gap, allowed = _compare(a, b, says, tolerance)
    several = f"{a.numel():,} values, largest difference {gap:.0e}"
    _say(f"✓ {says}: {_show(a) if a.numel() == 1 or DETAILS else several}", gap, allowed)


def equal_everywhere(
    sides: Callable[[Tensor, Tensor, float], tuple[Tensor, Tensor]],
    says: str = "the same",
    cases: int = 1000,
    seed: int = 0,
    tolerance: float | None = None,
) -> None:
    """The equation on random cases: `sides(positives, negatives, temperature)` returns its two sides.

    Each round draws 50 anchors with one positive (50, 1) and 1 to 200 negatives (50, K), uniform in [-1, 1],
    and a temperature from 0.05 to 2, log-uniform. Prints one line; raises Unequal at the first case that
    does not hold.
    """
    draw = torch.Generator().manual_seed(seed)
    worst, done = 0.0, 0
    while done < cases:
        anchors = min(50, cases - done)
        K = int(torch.randint(1, 201, (1,), generator=draw))
        temperature = float(0.05 * 40 ** torch.rand(1, generator=draw))
        positives, negatives = toys.random_similarities(anchors, 1, K, generator=draw)
        left, right = sides(positives, negatives, temperature)
        case = f"{says} (K = {K}, τ = {temperature:.3g})"
        gap, allowed = _compare(left.detach(), right.detach(), case, tolerance)
        worst, done = max(worst, gap), done + anchors
    _say(f"✓ {says}, on {done:,} random cases", worst, allowed)


def _say(line: str, gap: float, allowed: float) -> None:
    """Print it, broken between words: a notebook breaks lines of more than some 104 within them."""
    line += f"  (largest difference {gap:.0e}, allowed {allowed:.0e})" if DETAILS else ""
    print(textwrap.fill(line, 104, subsequent_indent="  ", replace_whitespace=False, drop_whitespace=True))


def _tensor(values: Tensor | float) -> Tensor:
    """A plain number counts as exact: in float64, so that it does not loosen what is allowed."""
    return values.detach() if isinstance(values, Tensor) else torch.tensor(values, dtype=torch.float64)


def _compare(a: Tensor, b: Tensor, says: str, tolerance: float | None) -> tuple[float, float]:
    """Largest relative difference and what is allowed; raises Unequal when it is more."""
    if a.shape != b.shape and a.numel() != 1 and b.numel() != 1:
        raise Unequal(f"{says}: one side is {tuple(a.shape)}, the other {tuple(b.shape)}")
    allowed = tolerance or max(TOLERANCE.get(t.dtype, TOLERANCE[torch.float32]) for t in (a, b))
    a, b = torch.broadcast_tensors(a.double(), b.double())
    gaps = (a - b).abs() / b.abs().clamp(min=1)
    gap = float(gaps.max()) if gaps.numel() else 0.0
    if not gap <= allowed:  # written so that NaN is caught as well
        raise Unequal(
            f"{says}: {_show(a)} is not {_show(b)}: they differ by {gap:.2g}, allowed {allowed:.0e}"
        )
    return gap, allowed


def _show(values: Tensor) -> str:
    numbers = [f"{v:.4g}" for v in values.flatten()[:5].tolist()]
    return ", ".join(numbers) + (", …" if values.numel() > 5 else "")

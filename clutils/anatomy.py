"""Gradients of any loss by similarity: pull on positives, push on negatives, the gradient-scaling factor W.

The notebooks' figures of pull and push are made by these functions. `ruler` says what a loss's value means.
"""

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils import similarities
from clutils.losses import base
from clutils.settings import one_device, within
from clutils.similarities import Pairs, widen


def forces(
    loss: base.Loss,
    positives: Tensor | Pairs,
    negatives: Tensor | None = None,
    positive_mask: Tensor | None = None,
    negative_mask: Tensor | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    """Pull (A, P) = -∂ℓ_i/∂s+ and push (A, K) = ∂ℓ_i/∂s-, by autograd, per anchor, before any mean.

    - positives (A, P), negatives (A, K): cosine similarities; masks as in `loss.per_anchor`. Or Pairs, which
      have their masks: `forces(loss, loss.compare(z1, z2, labels=y))`
    - options: handed on to `loss.per_anchor` (MACL's alignment)

    Raises ValueError as `loss.per_anchor` does, also for losses that are no function of similarities, and for
    a class in place of a loss.
    """
    if not isinstance(loss, base.Loss):
        raise ValueError(f"forces: loss is {loss!r}, but must be one that is made, as losses.NTXent(0.1)")
    pairs = similarities.as_pairs(positives, negatives, positive_mask, negative_mask)
    loss.checked(pairs)  # before they are copied: one table for both is seen here alone
    with torch.inference_mode(False), torch.enable_grad():
        s_plus, s_minus = (t.detach().clone().requires_grad_() for t in (pairs.positives, pairs.negatives))
        values = loss.per_anchor(replace(pairs, positives=s_plus, negatives=s_minus), **options)
        # one anchor's loss depends on its own row alone (what joins them, MACL's alignment, is detached),
        # so the sum's gradient is each anchor's own
        pull, push = torch.autograd.grad(values.sum(), (s_plus, s_minus))
    return -pull, push


def contrast(
    positives: Tensor | Pairs,
    negatives: Tensor | float | None = None,
    temperature: float | Tensor | None = None,
) -> Tensor:
    r"""The contrast of each anchor, (A,): positives (A,) or (A, 1), negatives (A, K).

    $$c = \log\sum_j e^{s^-_j/\tau} - s^+/\tau$$

    Or Pairs with one positive each, and the temperature: `contrast(pairs, 0.1)`.

    Raises ValueError when an anchor has more than one positive.
    """
    if isinstance(positives, Pairs) and None not in (negatives, temperature):
        raise ValueError("contrast: positives is a Pairs, which has its negatives: give (pairs, temperature)")
    if isinstance(positives, Pairs) and temperature is None:
        negatives, temperature = None, negatives
    elif not isinstance(positives, Pairs) and positives.ndim == 1:
        positives = positives[:, None]
    pairs = _one_positive(similarities.as_pairs(positives, negatives))
    if temperature is None or not isinstance(pairs.negatives, Tensor):
        raise ValueError("contrast: needs positives, negatives and a temperature, or pairs and a temperature")
    column, negatives = pairs.positives, pairs.negatives
    if column.ndim != 2 or column.shape[1] != 1 or negatives.ndim != 2 or len(column) != len(negatives):
        raise ValueError(
            f"contrast: one positive per anchor: positives (A,) or (A, 1) and negatives (A, K), "
            f"got {tuple(column.shape)} and {tuple(negatives.shape)}"
        )
    _above_zero("contrast", temperature)
    one_device("contrast", positives=column, negatives=negatives)
    return base.contrast(replace(pairs, positives=widen(column), negatives=widen(negatives)), temperature)[
        :, 0
    ]


def _one_positive(pairs: Pairs) -> Pairs:
    """The same pairs, with the one positive that each anchor's mask leaves: (A, 1)."""
    if (mask := pairs.positive_mask) is None:
        return pairs
    count = mask.sum(dim=1)
    if (several := count != 1).any():
        row = int(several.nonzero()[0])
        raise ValueError(f"contrast: one positive per anchor, but anchor {row} has {int(count[row])}")
    return Pairs(pairs.positives[mask][:, None], pairs.negatives, None, pairs.negative_mask)


def gradient_scale(
    positives: Tensor | Pairs,
    negatives: Tensor | float | None = None,
    temperature: float | Tensor | None = None,
) -> Tensor:
    r"""The gradient-scaling factor, (A,): a gate: 1 = open, full force; 0 = shut.

    $$W = 1 - p^+ = \frac{1}{1 + e^{-c}}$$

    positives (A,) or (A, 1), negatives (A, K); temperature one number, or (A, 1) to sweep it. Or Pairs with
    one positive each, and the temperature: `gradient_scale(pairs, 0.1)`.
    MACL (arXiv 2207.07874), eq. 3.
    """
    return torch.sigmoid(contrast(positives, negatives, temperature))


def hardness_weights(negatives: Tensor, temperature: float | Tensor) -> Tensor:
    r"""The share of the push that each negative gets, (A, K), rows sum to 1.

    $$\hat p_j = \frac{e^{s^-_j/\tau}}{\sum_k e^{s^-_k/\tau}}$$

    Wang & Liu 2021; MACL (arXiv 2207.07874), eq. 4.
    """
    _above_zero("hardness_weights", temperature)
    return torch.softmax(widen(negatives) / temperature, dim=1)


def effective_negatives(negatives: Tensor, temperature: float | Tensor | None = None) -> Tensor:
    r"""How many negatives share a push, (A,): exp of the entropy of their shares (perplexity).

    $$K_\mathrm{eff} = \exp\Bigl(-\sum_j \hat p_j\log\hat p_j\Bigr)$$

    1 = the hardest takes it all (τ → 0), K = all alike (τ → ∞); 0 where none is pushed.

    - negatives: (A, K), their similarities, pushed as InfoNCE does at this temperature; without one, a push
      itself, as from `forces`, where a negative that is drawn in counts for nothing. Where a loss adds mixes,
      that counts the real negatives that they were made of
    """
    if temperature is None:
        shares = F.normalize(negatives.clamp(min=0), p=1, dim=1, eps=torch.finfo(negatives.dtype).tiny)
    else:
        shares = hardness_weights(negatives, temperature)
    return torch.special.entr(shares).sum(dim=1).exp() * (shares > 0).any(dim=1)


def push_on_false_negatives(z1: Tensor, z2: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Share of each anchor's push that falls on views of its own class, its false negatives, (2B,).

    z1, z2: two views (B, D), normalised inside; labels (B,). The anchors are those of NT-Xent: both views,
    each against the 2B - 2 views of other images; one without a label (below 0) has no false negatives.
    Raises ValueError on shapes that do not fit, labels that are no whole numbers, and a τ of 0 or less.
    """
    who = "push_on_false_negatives"
    one_device(who, z1=z1, z2=z2, labels=labels)
    within(who, "temperature", temperature, 0, open_below=True)
    if z1.shape != z2.shape or labels.shape != z1.shape[:1] or len(z1) < 2:
        shapes = f"z1 {tuple(z1.shape)}, z2 {tuple(z2.shape)}, labels {tuple(labels.shape)}"
        raise ValueError(f"{who}: {shapes}, but must be (B, D), (B, D), (B,), of two images or more")
    first, second = similarities.normalise_views([z1, z2], ["z1", "z2"], who)
    shares = hardness_weights(similarities.two_views(first, second).negatives, temperature)
    return (shares * similarities.false_negatives(labels)).sum(dim=1)


def _above_zero(who: str, temperature: float | Tensor) -> None:
    if not bool(torch.all(torch.as_tensor(temperature) > 0)):
        raise ValueError(f"{who}: temperature is {temperature}, but must be above 0")


# ---- what a loss's value means -----------------------------------------------------------------------------

# NT-Xent at 0.2 on scenes: 0.77 and 0.25 after 300 steps, 0.87 and 0.18 after 3,000
POSITIVE, SPREAD = 0.85, 0.2
NEAR = 0.02  # of the way from chance to the best reachable: so close counts as being there
PAST = 1e-3  # of that way: more than rounding takes a value below the best reachable
MOST_VECTORS = 4096  # of a loss that needs them
SCALES = (  # how published code prints InfoNCE: who, a and b of the factor a·τ + b, whether over the batch
    ("SupContrast prints it, times τ/0.07", 1 / 0.07, 0.0, False),
    ("MoCo v3 prints it, times 2τ", 2.0, 0.0, True),
    ("MoCo v3 prints it, times 2τ and summed over two directions", 4.0, 0.0, True),
    ("the sum of two directions, over the batch", 0.0, 2.0, True),
    ("the sum of two directions", 0.0, 2.0, False),
)
OF_PROTOTYPES = ("DINO", "SwAV", "iBOT", "DINOv2", "DINOv3")  # whose chance is the logarithm of their number


@dataclass(frozen=True)
class Stand:
    """Where a loss stands at given similarities, of one anchor.

    - value: of the loss
    - W: NT-Xent's gate 1 - p+ at its temperature; None of a loss whose pull is not W/τ
    - pull: on the positive
    - K_eff: how many negatives share the push, `effective_negatives`
    """

    value: float
    W: float | None
    pull: float
    K_eff: float


@dataclass(frozen=True)
class Ruler:
    """Marks on a loss's scale, from `ruler`; None where a mark means nothing for that loss.

    - loss: with its hyper-parameters; K: negatives of an anchor, None where it has none
    - chance: all similarities are 0
    - collapsed: all embeddings are equal
    - best: positives 1, and negatives where the sphere allows them all at once: the vertices of a simplex,
      -1/(n - 1) for n images (the batch; with a queue, its keys and the anchor's own); of a loss on vectors
      at right angles where that is lower. It assumes n - 1 dimensions, and that no two images are alike
    - floor: positives 1, negatives -1, which no three images can have; or `best`, where that is lower
    - unbounded: why `best` and `floor` are None, of a loss without a best value; empty where there is one
    - at_chance, trained: `Stand`s, the second at the similarities that `ruler` was given
    - otherwise: a form of the loss that has another collapse -> that value (VICReg's two)
    - scaled: how published code prints the loss -> its value at chance, and how that is made
    """

    loss: str
    K: int | None
    n: int
    chance: float | None
    collapsed: float | None
    best: float | None
    floor: float | None
    at_chance: Stand | None
    trained: Stand | None
    otherwise: Mapping[str, float] = field(default_factory=dict)
    unbounded: str = ""
    scaled: Mapping[str, tuple[float, str]] = field(default_factory=dict)

    def says(self, value: float) -> str:
        """One sentence: is such a loss normal? Above or at chance, learning, at the best, below it.

        The value is taken as rounded to the decimals that it has: 0.69 is not below a floor of 0.6931. One
        that published code prints on another scale is named: "8.909 is chance as SupContrast prints it".
        """
        if not math.isfinite(value):
            raise ValueError(f"ruler: value is {value}, but must be a finite number")
        said = self._unscaled(value)
        for name, (mark, how) in self.scaled.items():
            exactly = abs(value - mark) <= half_a_digit(value) + 1e-9
            outside = ("above chance" in said or "below the" in said) and math.isclose(
                value, mark, rel_tol=0.005
            )
            if (exactly or outside) and "at chance:" not in said:
                if "learning" in said:  # it may be either
                    return f"{said} It is also chance as {name}: {how} = {mark:.4g}."
                return (
                    f"A loss of {value:g} is at chance as {name}: {how} = {mark:.4g}. "
                    "Embeddings do not distinguish images."
                )
        return said

    def _unscaled(self, value: float) -> str:
        """Words of `says` for a loss that is printed as its paper defines it."""
        if self.chance is None:
            marks = {self.loss: self.collapsed or math.nan} | dict(self.otherwise)
            form = next((one for one, mark in marks.items() if math.isclose(value, mark, rel_tol=NEAR)), "")
            if form:
                return f"A loss of {value:g} is that of a collapsed encoder: {form} gives {marks[form]:.4g}."
        if self.chance is None or self.best is None or math.isclose(self.chance, self.best):
            why = "has no chance level" if self.chance is None else "is no measure of progress"
            why = f"has no bound: {self.unbounded}" if self.unbounded else why
            other = "" if self.collapsed is None else f"; a collapsed encoder gives {self.collapsed:.4g}"
            return f"Whether a loss of {value:g} is normal can't be said: {self.loss} {why}{other}."
        read = value
        for mark in (self.floor, self.best, self.chance):  # as it may have been before it was rounded
            if mark is not None and abs(value - mark) <= half_a_digit(value):
                read = mark
        learned = (self.chance - read) / (self.chance - self.best)
        chance, best = f"{self.chance:.4g}", f"the best reachable, {self.best:.4g}"
        if self.K is not None and math.isclose(self.chance, math.log(self.K + 1), rel_tol=1e-9):
            chance = f"log {self.K + 1} = {chance}"
        other = "what was measured has another K, setting or scale"
        if self.floor is not None and read < self.floor - 1e-6 * max(1.0, abs(self.floor)):
            said = f"below the floor: no similarities give less than {self.floor:.4g}, so {other}"
        elif learned < -NEAR:
            said = f"above chance: chance is {chance}, so positives are less alike than negatives, or {other}"
        elif learned <= NEAR:
            collapsed = self._as_collapsed(self.chance)
            said = f"at chance: {chance}. Embeddings do not distinguish images{collapsed}"
        elif learned < 1 - NEAR:
            said = f"learning: {learned:.0%} of the way from chance, {chance}, to {best}"
        elif learned > 1 + PAST:
            said = f"below the best reachable: evenly spread embeddings give {self.best:.4g}, so {other}"
            if not (self.loss.startswith("NTXent(") and 2 * self.n - 2 == self.K):  # where that is proven
                said += ", or another arrangement of its images suits this loss better"
        else:
            left = f"{self.best:.4g}; less than {NEAR:.0%} of the way from chance, {chance}, is left"
            said = f"at the best reachable: {left}{self._as_collapsed(self.best)}"
        return f"A loss of {value:g} is {said}."

    def _as_collapsed(self, mark: float) -> str:
        same = self.collapsed is not None and math.isclose(self.collapsed, mark, rel_tol=1e-6, abs_tol=1e-6)
        return ". A collapsed encoder gives the same value" if same else ""


def half_a_digit(value: float) -> float:
    """Half of the last decimal that a number is written with, at least a hundredth: 8.909 -> 0.0005."""
    text = repr(float(value))
    decimals = len(text.partition(".")[2]) if "e" not in text else 17
    return 0.5 * 10.0 ** -max(decimals, 2)


def _scaled(
    loss: base.Loss, chance: float | None, batch_size: int, queue: int | None
) -> dict[str, tuple[float, str]]:
    """Chance as published code prints it, of a loss whose chance is the logarithm of its candidates."""
    temperature = getattr(loss, "temperature", None)
    candidates = round(math.exp(chance)) if chance is not None and 0 < chance < 30 else 0
    if temperature is None or candidates < 2 or abs(math.log(candidates) - (chance or 0)) > 1e-9:
        return {}
    found = {}
    for name, a, b, in_the_batch in SCALES:
        factor, count = a * temperature + b, batch_size if in_the_batch and queue is None else candidates
        if not math.isclose(factor, 1):
            found[name] = factor * math.log(count), f"{factor:.4g} · log {count}"
    return found


def ruler(
    loss: base.Loss,
    batch_size: int = 256,
    queue: int | None = None,
    positive: float = POSITIVE,
    spread: float = SPREAD,
    classes: int | None = None,
) -> Ruler:
    """Reference values of a loss in a batch of two views: chance, collapse, the best reachable, the floor.

    - batch_size: images, B; K is counted as the loss counts it: 2B - 2, B - 1 of the opposite view alone
    - queue: K where a queue gives the negatives, for a loss that takes one
    - positive, spread: of the trained state: an anchor's similarity to its positive, and the deviation of
      those to its negatives, which are the evenly spaced quantiles of a normal distribution around 0
    - classes: for a loss that is given labels, how many there are in a batch, as even as its size allows;
      then an anchor's positives are all of its class, and the best is one point a class, a simplex's vertices

    NT-Xent: chance and collapse log(K + 1), best log(1 + K e^{-(1 + 1/(n - 1))/τ}), floor
    log(1 + K e^{-2/τ}). That no batch is better than the simplex follows for InfoNCE from its convexity and
    from ‖Σ z‖² ≥ 0, which keeps the mean of the negatives at -1/(n - 1) or above (of a queue this is assumed,
    and of losses that weigh their negatives, and some batches are better there).

    In float64. A loss that needs vectors is given them, in as many dimensions as it takes: no floor and no
    `Stand`s. Of one without anchors (BarlowTwins, VICReg, SIGReg) the collapse alone means something. SSCL's
    marks leave its mixes out, as its `chance` does.
    Raises ValueError, quoting what came in, on what is no loss of the catalogue, on numbers out of range, and
    on a queue, or classes, for a loss that takes none.
    """
    if not isinstance(loss, base.Loss):
        raise ValueError(
            f"ruler: loss is {loss!r}, but must be one of losses.catalogue(), as losses.NTXent(0.1)"
        )
    within("ruler", "batch_size", batch_size, 2, base.MOST // 2, whole=True)
    within("ruler", "queue", queue, 1, base.MOST, whole=True, also=(None,))
    within("ruler", "positive", positive, -1, 1)
    within("ruler", "spread", spread, 0, 1)
    loss.check_hyperparameters()
    if queue is not None and "queue" not in loss.accepts:
        raise ValueError(f"ruler: queue is {queue}, but {loss.name} takes none")
    if classes is not None:
        within("ruler", "classes", classes, 2, batch_size // 2, whole=True)
        if "labels" not in loss.accepts or queue is not None:
            why = "of a queue no labels are known" if queue is not None else f"{loss.name} takes no labels"
            raise ValueError(f"ruler: classes is {classes}, but {why}")
    loss = copy.copy(loss)  # what a call leaves on it is of training
    loss.check_inputs = True
    loss.effective_temperature = None
    anchors = loss.comparison in similarities.COMPARISONS
    K = similarities.count(batch_size, loss.comparison, queue) if anchors else None
    n = batch_size if queue is None else queue + 1
    name = f"{loss.name}({loss.extra_repr()})"
    if classes is not None:
        marks = _with_labels(loss, batch_size, classes)
        scaled = _scaled(loss, marks[0], batch_size, queue)
        return Ruler(
            f"{name} with labels of {classes} classes", None, classes, *marks, None, None, scaled=scaled
        )
    if loss.level != "similarity" or K is None:
        chance, collapsed, best = _of_vectors(loss, batch_size, queue)
        best = None if loss.unbounded else best
        found = Ruler(name, K, n, chance, collapsed, best, None, None, None, unbounded=loss.unbounded)
        if hasattr(loss, "printed"):  # VICReg's other form, by which other code may have logged the value
            other: Any = loss
            other.printed = not other.printed
            form = "as the paper prints it" if other.printed else "by its authors' code"
            collapsed = _of_vectors(other, batch_size, queue)[1] or math.nan
            found = replace(found, otherwise={f"{loss.name} {form}": collapsed})
        return found

    def at(s: float, t: float) -> float:
        return _stand(loss, s, torch.full((1, K), t, dtype=torch.float64)).value

    best = at(1, -1 / (n - 1))
    quantiles = torch.special.ndtri((torch.arange(K, dtype=torch.float64) + 0.5) / K)
    trained = _stand(loss, positive, (spread * quantiles).clamp(-1, 1)[None])
    at_chance = _stand(loss, 0, torch.zeros(1, K, dtype=torch.float64))
    beaten = best > trained.value + 1e-9  # ADNCE at a negative mean; MACL, whose temperature the batch sets
    unbounded = loss.unbounded or ("at these settings the trained state has a lower value" if beaten else "")
    if None in (at_chance.W, trained.W):  # where all are alike another loss's pull may be W/τ too
        at_chance, trained = (replace(stand, W=None) for stand in (at_chance, trained))
    chance, collapsed = loss.chance(K), at(1, 1)
    for what, value in (("all similarities 0", chance), ("all equal", collapsed), ("the best", best)):
        if value is not None and math.isnan(value):
            raise ValueError(f"ruler: {name} is nan at {what}, with K = {K}: see its formula")
    return Ruler(
        name,
        K,
        n,
        chance=chance,
        collapsed=collapsed,
        best=None if unbounded else best,
        floor=None if unbounded else min(at(1, -1), best),
        at_chance=at_chance,
        trained=trained,
        unbounded=unbounded,
        scaled=_scaled(loss, chance, batch_size, queue),
    )


def _stand(loss: base.Loss, positive: float, negatives: Tensor) -> Stand:
    """One anchor's: negatives (1, K), float64."""
    positives = torch.full((1, 1), float(positive), dtype=torch.float64)
    pull, push = forces(loss, positives, negatives)
    value = loss.per_anchor(positives, negatives)
    temperature = getattr(loss, "temperature", math.nan)
    W = math.nan if math.isnan(temperature) else float(gradient_scale(positives, negatives, temperature))
    its_own = math.isclose(float(pull) * temperature, W, rel_tol=1e-9, abs_tol=1e-300)
    return Stand(
        value=value.item(),
        W=W if its_own else None,
        pull=float(pull),
        K_eff=float(effective_negatives(push)),
    )


def _with_labels(loss: Any, batch: int, classes: int) -> tuple[float, float, float, float]:
    """Chance, collapse, best and floor with labels: views at right angles, all equal, a point a class.

    The floor: positives 1 and negatives -1, an anchor of each class.
    """
    within(f"ruler of {loss.name} with labels", "batch_size", batch, 2, MOST_VECTORS, whole=True)
    y = torch.arange(batch) % classes
    apart = torch.eye(2 * batch, dtype=torch.float64)
    alike = torch.full_like(apart, len(apart) ** -0.5)
    corners = similarities.normalise(torch.eye(classes, dtype=torch.float64) - 1 / classes)[y]
    with torch.no_grad():
        chance, collapsed, best = (
            float(loss(z[:batch], z[-batch:], labels=y)) for z in (apart, alike, corners)
        )
        floor = 0.0
        for size in y.bincount().tolist():
            sides = (torch.ones(1, 2 * size - 1), -torch.ones(1, 2 * (batch - size)))
            floor += size / batch * float(loss.per_anchor(*(side.double() for side in sides)))
    return chance, collapsed, best, min(floor, best)


def _of_vectors(loss: Any, batch: int, queue: int | None) -> tuple[float | None, float | None, float | None]:
    """Chance, collapse and the best reachable of a loss that needs vectors."""
    pictures = batch + (queue or 0)
    what = "batch_size" if queue is None else "batch_size and queue together"
    within(f"ruler of {loss.name}, on vectors", what, pictures, 2, MOST_VECTORS, whole=True)

    def value(z1: Tensor, z2: Tensor, others: Tensor) -> float:
        if hasattr(loss, "generator"):
            loss.generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            return float(loss(z1, z2, queue=None if queue is None else others))

    if loss.comparison in ("whole batch", "features"):  # which say nothing of one anchor's similarities
        ones = torch.full((batch, batch), batch**-0.5, dtype=torch.float64)
        try:
            return None, value(ones, ones, ones), None
        except ValueError:  # BarlowTwins: a feature that is constant has no correlation
            return None, None, None
    apart = torch.eye(pictures + batch, dtype=torch.float64)
    alike = torch.full_like(apart, len(apart) ** -0.5)  # of length 1, as all of them
    simplex = similarities.normalise(torch.eye(pictures, dtype=torch.float64) - 1 / pictures)
    return (
        value(apart[:batch], apart[pictures:], apart[batch:pictures]),
        value(alike[:batch], alike[pictures:], alike[batch:pictures]),
        min(value(z[:batch], z[:batch], z[batch:]) for z in (simplex, apart[:pictures])),
    )

"""Base of every loss: the batch logic, the checks on what comes in, the precision, and `contrast`.

A paper's own file holds its formula and nothing else.
"""

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from typing import Any, ClassVar, Self, dataclass_transform

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from clutils import similarities
from clutils.losses import entries
from clutils.settings import (
    Declared,
    Setting,
    bind,
    check,
    collect,
    demand_known,
    one_device,
    setting,
    within,
)
from clutils.similarities import Batch, Pairs, holds

TEMPERATURE = Setting(
    1e-6, 1e6, "τ", dial=(0.01, 5, "log"), about="similarities are divided by it"
)  # where every loss is finite in float32
BLOCK_SIZE = Setting(1, whole=True, also=(None,))
MOST = 10_000_000  # negatives that `chance` is asked for: more than any queue, and a table that still fits
LARGEST = 1e6  # entry of a vector that is not normalised: fourth powers of lengths stay within float32
SLACK = 0.01  # how far rounding may carry a bfloat16 cosine beyond 1
# numbers of the largest table that is computed at once, and of the parts of a larger one
WHOLE, PART = 2**22, 2**21
ON_A_GPU = 2**24  # of both, where few and large operations are quickest
SEVERAL = "at least 1"
ARGUMENTS = {  # beside z1: what they hold, and their shape, where z1 is (B, D)
    "z2": ("floating point", ("B", "D")),
    "labels": ("integers", ("B",)),
    "index": ("int64", ("B",)),
    "extra_views": ("floating point", ("B", SEVERAL, "D")),
    "queue": ("floating point", (SEVERAL, "D")),
}
NUMBERS: dict[str, Callable[[torch.dtype], bool]] = {
    "floating point": lambda dtype: dtype.is_floating_point,
    "integers": lambda dtype: not (dtype.is_floating_point or dtype.is_complex),
    "int64": lambda dtype: dtype == torch.int64,
}
EASY = -40.0  # below this contrast softplus(c)/sigmoid(c) is 1 in float64 too, and both tend to underflow


@collect
@dataclass_transform(field_specifiers=(setting, field))
class Loss(nn.Module, metaclass=Declared):
    """A contrastive loss: `loss(z1, z2)` for a batch, `loss.per_anchor(...)` for the paper's formula.

    Hyper-parameters are declared in a class's body, each with range and default, and are the arguments that
    the class takes, in this order. They are plain attributes, read at every call and checked at the first
    after one was set, so that a slider may turn them while a run trains. They are no part of `state_dict()`;
    copies and pickles keep them.
    AttributeError where another name is set than the class has: `loss.temprature = 0.1`.
    `as_written` is the paper's equation in a few literal lines, to read and to copy; it overflows where the
    paper does, knows no masks, and checks nothing.
    `check_inputs=False` leaves out the checks on tensor values, which make a GPU wait; NaN then gives NaN.
    """

    level = "similarity"  # per_anchor is all of it
    comparison = "both views"  # which pairs of a batch it compares: see similarities.two_views
    unbounded = ""  # why it has no best value, in a clause; empty where it has one
    extra_negatives = ""  # what it compares with beyond those pairs, for the catalogue
    accepts: frozenset[str] = frozenset({"queue"})  # what it understands beside two views
    input_note = ""  # what a loss of another level needs beyond an anchor's similarities
    normalised = True  # whether vectors are compared by their direction alone
    samples: Tensor | None = None  # during a call with `index`: the numbers of the batch's samples
    effective_temperature: Tensor | None = None  # where τ moves by itself: in the last call
    ranges: ClassVar[Mapping[str, Setting]]  # what each hyper-parameter may be: see `settings.collect`
    in_batches: tuple[str, ...] = ()  # hyper-parameters that say nothing of given similarities
    before: ClassVar[Mapping[str, Any]] = {}  # settings that came later -> as runs from before had them
    _checked = False  # hyper-parameters, since one was last set
    needs_negatives = True  # whether an anchor without any is an error
    block_size: int | None = None  # anchors computed at a time; None = what the memory suits
    paper: str
    year: int
    equation: str
    check_inputs: bool = field(default=True, kw_only=True)

    def __init__(self, *given: Any, **by_name: Any) -> None:
        super().__init__()
        for name, value in bind(type(self), *given, **by_name).items():
            setattr(self, name, value)
        self._check_settings()
        for name in self.of_an_unseen_sample():
            self.register_buffer(name, torch.zeros(0))

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        collect(cls)
        entries.document(cls)

    def __setattr__(self, name: str, value: Any) -> None:
        demand_known(self, name, value)
        if isinstance(value, nn.Parameter) and name in self.ranges:
            raise ValueError(
                f"{self.name}: {name} is a Parameter, but must be {self.ranges[name]}: of all losses CLIP "
                f"alone learns its temperature, losses.CLIP(learned_scale=True)"
            )
        super().__setattr__(name, value)
        declared = name in self.ranges or name == "block_size"
        if declared or not (name.startswith("_") or isinstance(value, Tensor | None)):
            self._checked = False

    @property
    def reported(self) -> dict[str, Tensor]:
        """Numbers of the last call for a run's history beside its value: name -> 0-d tensor."""
        moved = self.effective_temperature
        return {} if moved is None else {"effective_temperature": moved.mean()}

    # ---- what a paper's file writes -------------------------------------------------------------------

    def formula(self, pairs: Any) -> Tensor:
        """The paper's formula: Pairs in float32 or float64 -> one value per anchor, (A,).

        A large batch is computed a block of anchors at a time: each value must be a function of the anchor's
        own row. What joins the rows, as MACL's mean, is for `of_the_batch`. Its values come as keywords only
        where a batch is computed in blocks, so each needs a default, None: else the formula computes it from
        the pairs, as `MACL.formula` does. What is drawn is for `draw`. Losses of level "batch" take what
        their own `pair_up` gives.
        """
        raise NotImplementedError

    def of_the_batch(self, positives: Tensor) -> dict[str, Tensor]:
        """Keywords of `formula` that all similarities (B,) of the batch's two views decide."""
        return {}

    def draw(self, anchors: int, like: Tensor) -> tuple[Tensor, ...]:
        """Random numbers (anchors, k) each, for `pair_up`, which finds its rows' own in `batch.drawn`."""
        return ()

    def of_an_unseen_sample(self) -> dict[str, float]:
        """The state that a loss keeps of each sample, by name, as it begins; such a loss `takes` an "index".

        Each is a buffer, which `formula` writes to in place: its values are put back where a step fails.
        While it computes a batch, `self.samples`, (B,), has the numbers of the batch's samples; at other
        times, as in `chance`, it is None. Over two views there are 2B anchors, those of z1 first:
        `self.samples.repeat(2)` has theirs. A method may call the loss twice a step (BYOL, SimSiam, CLAE).
        """
        return {}

    def allocate(self, samples: int) -> None:
        """Make room for a state of so many samples; called before training, and by `run.loss = ...`.

        A loss that has room for as many keeps what it holds. In a loop of your own, call it first.
        """
        for name, first in self.of_an_unseen_sample().items():
            if len(getattr(self, name)) != samples:
                setattr(self, name, getattr(self, name).new_full((samples,), first))

    def check_hyperparameters(self) -> None:
        """Raise ValueError when a hyper-parameter is outside its range; more where a paper's file says so."""
        check(self.name, self, {**self.ranges, "block_size": BLOCK_SIZE})

    # ---- what a reader calls ---------------------------------------------------------------------------

    def forward(
        self,
        z1: Tensor,
        z2: Tensor,
        labels: Tensor | None = None,
        extra_views: Tensor | None = None,
        queue: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Mean over the loss's anchors, a scalar.

        - z1, z2: (B, D) embeddings of two views, any floating type, normalised inside
        - labels: (B,) integers, where the loss is supervised: same label = positive; below 0 = no label:
          the image's own other view is its one positive, as without labels
        - extra_views: (B, M, D) further positives, where the loss takes several
        - queue: (K, D); then z1 are queries, z2 their keys, and the queue gives all negatives
        - index: (B,) int64, the samples' numbers in the data, for a loss that keeps a state per sample

        Raises ValueError, quoting what came in, on shapes that do not fit, a batch of one, zero vectors,
        NaN or infinity, hyper-parameters outside their range, or an argument that the loss does not take.
        """
        self._check_settings()
        batch = self.batch(z1, z2, labels=labels, extra_views=extra_views, queue=queue, index=index)
        if index is None and "index" in self.accepts:
            raise ValueError(f"{self.name} keeps a state per sample: it needs index=, the samples' numbers")
        with full_precision(z1.device):
            if index is None:
                return self.mean_over_anchors(batch)
            self.samples = index
            try:
                return self.mean_over_anchors(batch)
            finally:
                self.samples = None

    def mean_over_anchors(self, batch: Batch) -> Tensor:
        """Mean of `formula` over a batch's anchors; of a large table, some images' anchors at a time.

        Of such a part only its values are kept. What its gradient needs is computed again when it is asked
        for, by `torch.utils.checkpoint`: memory grows with B instead of B².
        """
        images, size = batch.first.shape[0], self.images_at_a_time(batch)
        if size >= images:
            return self.evaluate(self.pair_up(batch)).mean()
        known = self.of_the_batch(batch.own_views)
        now = copy.copy(self)  # its hyper-parameters may have other values once a gradient is asked for

        def part(start: int) -> Tensor:
            return now.evaluate(now.pair_up(batch.some(start, start + size)), **known)

        values, temperatures = [], []
        for start in range(0, images, size):
            if transformed():
                values.append(part(start))
            else:
                values.append(checkpoint(part, start, use_reentrant=False))
            own = now.effective_temperature
            if own is not None and own.ndim:
                temperatures.append(own.unflatten(0, (-1, min(size, images - start))))
        if temperatures:  # those of view 1 first, as in one table
            self.effective_temperature = torch.cat(temperatures, dim=1).flatten()
        return torch.cat(values).mean()

    def images_at_a_time(self, batch: Batch) -> int:
        """How many images' anchors are computed at once: all, or as `block_size` or the memory asks."""
        images, queue = batch.first.shape[0], None if batch.queue is None else len(batch.queue)
        if self.level == "batch" or self.samples is not None:
            return images
        views = 1 if queue is not None or self.comparison == "one way" else 2
        columns = similarities.count(images, self.comparison, queue)
        whole, part = (ON_A_GPU, ON_A_GPU) if batch.first.is_cuda else (WHOLE, PART)
        if self.block_size is None and views * images * columns <= whole:
            return images
        return max(1, (self.block_size or part // columns) // views)

    def per_anchor(
        self,
        positives: Tensor | Pairs,
        negatives: Tensor | None = None,
        positive_mask: Tensor | None = None,
        negative_mask: Tensor | None = None,
        **known: Any,
    ) -> Tensor:
        """The formula alone: cosine similarities (A, P), (A, K), optional masks (True = counts) -> (A,).

        Or Pairs, as `compare` gives them, which have their masks: `loss.per_anchor(loss.compare(z1, z2))`.
        With several positives: the mean over them, each as the only one, unless the class says otherwise.
        Computed in float32 (float64 in, float64 out). Raises ValueError on shapes that do not fit, an
        anchor without a positive or a negative, similarities outside [-1, 1], and for a loss whose level is
        not "similarity".
        """
        self._check_settings()
        pairs = self.checked(similarities.as_pairs(positives, negatives, positive_mask, negative_mask))
        with full_precision(pairs.positives.device):
            return self.evaluate(pairs, **known)

    def evaluate(self, pairs: Any, **known: Tensor) -> Tensor:
        """`formula`, one value per anchor. Raises TypeError where it gives another shape."""
        values = self.formula(pairs, **known)
        if isinstance(pairs, Pairs) and values.shape != (count := pairs.positives.shape[:1]):
            came = tuple(values.shape)
            raise TypeError(f"{self.name}.formula gave {came}, not one value per anchor, {tuple(count)}")
        return values

    def chance(self, K: int) -> float | None:
        """per_anchor where all similarities are 0, with K negatives: where a loss starts, about.

        None where that means nothing.
        """
        within(f"{self.name}.chance", "K", K, 1, MOST, whole=True)
        if self.level != "similarity":
            return None
        zeros = torch.zeros(1, K, dtype=torch.float64)
        asked = copy.copy(self)  # what `formula` leaves or counts is of training
        return asked.formula(Pairs(zeros[:, :1], zeros)).item()

    # ---- how a batch becomes pairs ---------------------------------------------------------------------

    def compare(self, z1: Tensor, z2: Tensor, **further: Tensor | None) -> Any:
        """Who is compared with whom in this batch: arguments as in `forward`, checked -> Pairs."""
        return self.pair_up(self.batch(z1, z2, **further))

    def batch(self, z1: Tensor, z2: Tensor, **further: Tensor | None) -> Batch:
        """The arguments of `forward`, checked and prepared, with what the loss draws for them."""
        given = {argument: value for argument, value in further.items() if value is not None}
        if given:
            self._check_arguments(given)
        self._check_shapes(z1, z2, given)
        first, second = self.prepare(z1, z2)
        if not given:
            return Batch(first, second, drawn=self.draw(2 * z1.shape[0], first))
        if "queue" in given:
            (given["queue"],) = self.prepare(given["queue"], names=("queue",))
        if "extra_views" in given:
            several = given["extra_views"]
            named = (f"extra_views {tuple(several.shape)} as",)
            (rows,) = self.prepare(several.flatten(0, 1), names=named)
            given["extra_views"] = rows.view(several.shape)
        labels, index = given.get("labels"), given.pop("index", None)
        if self.check_inputs and self.needs_negatives and labels is not None:
            same = f"{self.name}: every label is the same, so no anchor has a negative"
            if not holds(((labels != labels[0]) | (labels < 0)).any(), same):
                raise ValueError(same.replace("the same", str(labels[0].item())))
        if self.check_inputs and index is not None:
            numbered = f"{self.name}: index has a number below 0, but samples are numbered from 0"
            if not holds((index >= 0).all(), numbered):
                raise ValueError(numbered.replace("a number below 0", f"the number {int(index.min())}"))
        drawn = self.draw(len(z1) * (1 if "queue" in given else 2), first)
        labels, extra_views, queue = map(given.get, ("labels", "extra_views", "queue"))
        return Batch(first, second, labels, extra_views, queue, drawn)

    def prepare(self, *views: Tensor, names: Sequence[str] = ("z1", "z2")) -> Sequence[Tensor]:
        """Embeddings (N, D) each as the method compares them: of unit length, or as given."""
        if self.normalised:
            return similarities.normalise_views(views, names, self.name, self.check_inputs)
        views = tuple(map(similarities.widen, views))
        if self.check_inputs:
            similarities.check_rows(views, names, self.name, LARGEST)
        return views

    def pair_up(self, batch: Batch) -> Any:
        """`compare` of prepared vectors, or of a block of them: what `formula` takes."""
        return batch.pairs(self.comparison)

    @property
    def name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self.hyperparameters())

    def _repr_markdown_(self) -> str:
        """Card for a notebook's cell: formula, hyper-parameters as they are now, source."""
        return entries.card(self, {name: getattr(self, name) for name in self.hyperparameters()})

    @classmethod
    def example(cls) -> list[str]:
        """Lines of a call, for the docstring."""
        given = (f"{name}={value!r}" for name, value in cls.defaults().items())
        further = {"queue": "torch.randn(2048, 64)", "labels": "torch.arange(640) % 10"}
        further["extra_views"] = "torch.randn(640, 4, 64)"
        calls = ["loss(z1, z2)  # a scalar"]
        calls += [f"loss(z1, z2, {name}={value})" for name, value in further.items() if name in cls.accepts]
        if "index" in cls.accepts:  # which is then no choice
            calls = [
                "loss.allocate(50_000)  # room for a state of each image in the data",
                "loss(z1, z2, index=torch.randperm(50_000)[:640])  # their numbers in it; a scalar",
            ]
        return [
            f"loss = losses.{cls.__name__}({', '.join(given)})".replace("=inf", "=math.inf"),
            "z1, z2 = torch.randn(2, 640, 64)  # two views' embeddings of 640 images",
            *calls,
        ]

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """The hyper-parameters' defaults, by name."""
        parameters = inspect.signature(cls).parameters
        return {name: one.default for name, one in parameters.items() if name != "check_inputs"}

    @classmethod
    def stored(cls, settings: Mapping[str, Any]) -> Self:
        """The loss that a file's settings name; a setting that they lack is as in `before`."""
        return cls(**{**cls.before, **settings})

    @classmethod
    def hyperparameters(cls) -> tuple[str, ...]:
        """Names of the paper's own settings, in the order the class takes them."""
        return tuple(cls.defaults())

    # ---- checks ----------------------------------------------------------------------------------------

    def _check_settings(self) -> None:
        """`check_hyperparameters`, where one was set since it last passed."""
        if not self._checked:
            self.check_hyperparameters()
            self._checked = True

    def _check_arguments(self, given: Mapping[str, Tensor]) -> None:
        for argument in sorted(given.keys() - self.accepts):
            known = ", ".join(sorted(self.accepts)) or "nothing"
            raise ValueError(
                f"{self.name} does not take {argument}: beside two views it takes {known}. "
                f"losses.catalogue() lists what each loss takes"
            )
        who = sorted(given.keys() - {"index"})
        if len(who) > 1:
            both = " and ".join(who)
            raise ValueError(f"{self.name}: {both} were both given, but each says who is compared")

    def _check_shapes(self, z1: Tensor, z2: Tensor, further: Mapping[str, Tensor]) -> None:
        name = self.name
        alike = isinstance(z1, Tensor) and isinstance(z2, Tensor) and z1.shape == z2.shape
        alike = alike and z1.dtype == z2.dtype and z1.device == z2.device
        if not alike or further:
            further = {"z2": z2, **further}
            one_device(name, z1=z1, **further)
        if z1.ndim != 2 or 0 in z1.shape or not z1.is_floating_point():
            raise ValueError(
                f"{name}: z1 is {_what(z1)}, but embeddings are floating point, (batch, dimension)"
            )
        B, D = z1.shape
        if "queue" not in further and B < 2:
            raise ValueError(f"{name}: a batch of {B} is too small, z1 is {(B, D)}: two images at least")
        for argument, given in further.items():
            kind, shape = ARGUMENTS[argument]
            wanted = tuple({"B": B, "D": D}.get(n, n) for n in shape)
            fits = given.ndim == len(wanted) and all(
                right in (n, SEVERAL) for n, right in zip(given.shape, wanted, strict=True)
            )
            if not fits or 0 in given.shape or not NUMBERS[kind](given.dtype):
                asked = str(wanted).replace("'", "")
                raise ValueError(
                    f"{name}: {argument} is {_what(given)}, but a batch of {B} has {kind} {asked}"
                )
            if (
                z1.dtype != given.dtype
                and kind == "floating point"
                and torch.float64 in (z1.dtype, given.dtype)
            ):
                raise ValueError(f"{name}: z1 is {z1.dtype} but {argument} is {given.dtype}")

    def only_similarities(self) -> None:
        """Raise ValueError where the loss is no function of each anchor's similarities."""
        if self.level != "similarity":
            raise ValueError(
                f"{self.name} is no function of an anchor's similarities (its level is {self.level!r}): it "
                f"works on {self.input_note}. Call it with two views: loss(z1, z2)"
            )

    def checked(self, pairs: Pairs) -> Pairs:
        """The same pairs, widened to float32, or a ValueError that quotes what came in."""
        name = self.name
        self.only_similarities()
        positives, negatives, *masks = vars(pairs).values()
        tables = tuple(zip(("positives", "negatives"), (positives, negatives), masks, strict=True))
        given = {a: t for a, t, _ in tables} | {f"the mask of {a}": m for a, _, m in tables if m is not None}
        one_device(name, **given)
        if positives is negatives and positives.shape[1:] != (1,) and None in masks:
            raise ValueError(
                f"{name}: positives and negatives are one table {tuple(positives.shape)} without a mask for "
                f"each: hand over the pairs, loss.per_anchor(pairs) or anatomy.forces(loss, pairs)"
            )
        dtype = torch.float64 if torch.float64 in (positives.dtype, negatives.dtype) else torch.float32
        widened = []
        for argument, table, mask in tables:
            if table.ndim != 2 or table.shape[1] < 1 or not table.is_floating_point():
                raise ValueError(
                    f"{name}: {argument} is {_what(table)}, but it holds similarities: (anchors, at least 1)"
                )
            if len(positives) != len(table):
                raise ValueError(
                    f"{name}: positives is {tuple(positives.shape)} but negatives is {tuple(table.shape)}: "
                    f"each anchor has a row in both"
                )
            if mask is not None:
                if mask.shape != table.shape or mask.dtype != torch.bool:
                    raise ValueError(
                        f"{name}: the mask of {argument} is {_what(mask)}, but it must be bool "
                        f"and {tuple(table.shape)}"
                    )
                empty = ~mask.any(dim=1)
                if self.check_inputs and (argument == "positives" or self.needs_negatives) and empty.any():
                    row = int(empty.nonzero()[0])
                    raise ValueError(f"{name}: anchor {row} has no {argument}: its mask is all False")
                # what is masked counts for nothing, so it must not carry a NaN into the gradient either
                table = table.masked_fill(~mask, 0.0)
            if self.check_inputs and (beyond := ~(table.detach().abs() <= 1 + SLACK)).any():
                raise ValueError(
                    f"{name}: {argument} holds {float(table[beyond][0]):.4g}, "
                    f"but a cosine similarity lies between -1 and 1"
                )
            widened.append(table.to(dtype))
        return Pairs(*widened, *masks)


def full_precision(device: torch.device) -> AbstractContextManager[Any]:
    """A context in which autocast, where it is on, lowers no precision."""
    on = torch._C._is_any_autocast_enabled() and device.type != "meta"  # quicker than to ask for one device
    return torch.autocast(device.type, enabled=False) if on else nullcontext()


def transformed() -> bool:
    """True where a transform of `torch.func` is at work: it knows no checkpoints and no module's state."""
    return torch._C._are_functorch_transforms_active()


def contrast(pairs: Pairs, temperature: float | Tensor) -> Tensor:
    """c = log Σ_j exp(s-_j/τ) - s+/τ for each positive, (A, P): the one number that carries the family.

    InfoNCE is softplus(c), its gradient-scaling factor W is sigmoid(c), the decoupled loss is c itself.
    """
    return log_sum(pairs, temperature) - pairs.positives / temperature


def log_sum(pairs: Pairs, temperature: float | Tensor) -> Tensor:
    """log Σ_j exp(s-_j/τ) over each anchor's own negatives, (A, 1)."""
    logits = masked(pairs.negatives / temperature, pairs.negative_mask, -torch.inf)
    return logits.logsumexp(dim=1, keepdim=True)


def masked(values: Tensor, mask: Tensor | None, value: float) -> Tensor:
    """`value` in place of what does not count: a mask as in `Pairs`."""
    return values if mask is None else values.masked_fill(~mask, value)


def softplus(c: Tensor) -> Tensor:
    """log(1 + e^c), exact: from the threshold on it is c itself, to the last digit of float32 or float64.

    Its gradient has e^c as a factor of what comes from above, which with a larger threshold leaves float32.
    """
    return F.softplus(c, threshold=50 if c.dtype == torch.float64 else 20)


def loss_over_weight(c: Tensor) -> Tensor:
    """softplus(c)/sigmoid(c) = -log p+ / W: tends to 1 for an easy pair, where both tend to 0."""
    return torch.where(c < EASY, 1.0, softplus(c) / torch.sigmoid(c))


def mean_over_positives(values: Tensor, pairs: Pairs) -> Tensor:
    """(A, P) -> (A,): the mean over each anchor's own positives."""
    mask = pairs.positive_mask
    if mask is None:
        return values.mean(dim=1) if values.shape[1] > 1 else values.squeeze(1)
    return values.masked_fill(~mask, 0.0).sum(dim=1) / mask.sum(dim=1)


def counted(pairs: Pairs) -> Tensor:
    """How many negatives each anchor has, in floating point: 0-d, or (A, 1) where they are masked."""
    mask = pairs.negative_mask
    if mask is None:
        return pairs.negatives.new_full((), pairs.negatives.shape[1])
    return mask.sum(dim=1, keepdim=True).to(pairs.negatives.dtype)


def _what(tensor: Any) -> str:
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"

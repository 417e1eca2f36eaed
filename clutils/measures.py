"""Numbers that say what an embedding is good for. Each takes plain tensors (or arrays) and returns floats.

Embeddings need not be normalised: alignment, uniformity, tolerance and kNN look at directions only and
normalise inside. Everything is computed without gradient, in float32 (float64 in, float64 inside).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from clutils import similarities
from clutils.data import ImageSet, VectorSet

ROWS = 1024  # anchors at a time where a full table of similarities would not fit in memory

Vectors = Tensor | np.ndarray


@torch.no_grad()
def alignment(z1: Vectors, z2: Vectors) -> float:
    """Mean squared distance of the two views of a picture, on the unit sphere; 0 is best, 2 is chance.

    z1, z2: (N, D), row i of both from one picture. Wang & Isola 2020, eq. for L_align with α = 2.

    MACL's alignment magnitude A is the mean *similarity* of the same pairs: A = 1 - alignment / 2.
    """
    z1, z2 = unit_rows(z1, "alignment", "z1"), unit_rows(z2, "alignment", "z2")
    if z1.shape != z2.shape:
        raise ValueError(f"alignment: z1 is {tuple(z1.shape)} but z2 is {tuple(z2.shape)}")
    similarities.one_device("alignment", z1=z1, z2=z2)
    return (z1 - z2).square().sum(dim=1).mean().item()


@torch.no_grad()
def uniformity(z: Vectors, t: float = 2.0) -> float:
    """log mean exp(-t d²) over all pairs of different rows, d their distance on the unit sphere.

    z: (N, D), N >= 2. 0 where all coincide; the lower, the more evenly spread. Its floor, reached by points
    spread evenly over a sphere of many dimensions, is near -2t = -4. Wang & Isola 2020, L_uniform.
    """
    z = unit_rows(z, "uniformity", "z")
    if len(z) < 2:
        raise ValueError(f"uniformity: z is {tuple(z.shape)}, but a pair takes at least two rows")
    if not (isinstance(t, int | float) and 0 < t < math.inf):
        raise ValueError(f"uniformity: t is {t!r}, but must be a positive number")
    logs = []
    for start in range(0, len(z), ROWS):
        rows = z[start : start + ROWS]
        exponents = 2 * t * (rows @ z.T - 1)  # -t d², since d² = 2 - 2s
        exponents[torch.arange(len(rows)), start + torch.arange(len(rows))] = -torch.inf  # no pair
        logs.append(exponents.flatten().logsumexp(dim=0).double())
    return torch.stack(logs).logsumexp(dim=0).item() - math.log(len(z) * (len(z) - 1))


@torch.no_grad()
def tolerance(z: Vectors, y: Vectors) -> float:
    """Mean cosine similarity of two different rows of the same class: how far a class may stay together.

    z: (N, D); y: (N,) classes, one of them with at least two rows. Wang & Liu 2021, eq. 9, without the pairs
    of a row with itself (there they count, as 1).
    """
    z = unit_rows(z, "tolerance", "z")
    y = as_classes(y, "tolerance", "y", z)
    _, code, sizes = y.unique(return_inverse=True, return_counts=True)
    pairs = (sizes * (sizes - 1)).sum().item()
    if not pairs:
        raise ValueError(f"tolerance: each of the {len(y)} rows has a class of its own, so there is no pair")
    sums = torch.zeros(len(sizes), z.shape[1], dtype=torch.float64, device=z.device)
    sums.index_add_(0, code, z.double())
    # the squared length of a sum of unit vectors is all their similarities, each row's own (1) included
    return ((sums.square().sum() - len(z)) / pairs).item()


@torch.no_grad()
def effective_rank(z: Vectors) -> float:
    """How many dimensions the rows really use: exp of the entropy of the singular values' shares.

    z: (N, D), not normalised, but centred first (a common offset is no dimension in use); between 1 and
    min(N - 1, D). Roy & Vetterli 2007, eq. 1 to 4.

    Raises ValueError where all rows are equal.
    """
    z = finite_rows(z, "effective_rank", "z").double()
    if len(z) < 2:
        raise ValueError(f"effective_rank: z is {tuple(z.shape)}, but a spread takes at least two rows")
    size = z.abs().max()
    values = torch.linalg.svdvals(z - z.mean(dim=0))
    if values.sum() <= 1e-12 * size * math.sqrt(z.numel()):
        raise ValueError(f"effective_rank: all {len(z)} rows of z are equal, so no dimension is in use")
    shares = values / values.sum()
    return torch.special.entr(shares).sum().exp().item()


@torch.no_grad()
def knn_accuracy(
    train_z: Vectors,
    train_y: Vectors,
    test_z: Vectors,
    test_y: Vectors,
    k: int = 200,
    temperature: float = 0.1,
) -> float:
    """Share of test rows whose class wins the vote of their k nearest training rows, in [0, 1].

    Nearest by cosine similarity s, a neighbour's vote weighs exp(s / temperature): Wu et al. 2018,
    section 3.4. train_z (N, D), test_z (M, D); train_y (N,), test_y (M,) integer classes; ties go to the
    lower class.

    Raises ValueError where k is not between 1 and N.
    """
    who = "knn_accuracy"
    train_z, test_z = unit_rows(train_z, who, "train_z"), unit_rows(test_z, who, "test_z")
    train_y, test_y = _split(train_z, train_y, test_z, test_y, who)
    if not isinstance(k, int) or not 1 <= k <= len(train_z):
        raise ValueError(f"{who}: k is {k!r}, but must be from 1 to the {len(train_z)} rows of train_z")
    if not (isinstance(temperature, int | float) and 0 < temperature < math.inf):
        raise ValueError(f"{who}: temperature is {temperature!r}, but must be a positive number")
    classes, code = train_y.unique(return_inverse=True)
    right = 0
    for rows, truth in zip(test_z.split(ROWS), test_y.split(ROWS), strict=True):
        similarity, nearest = (rows @ train_z.T).topk(k, dim=1)
        weight = (
            (similarity - similarity[:, :1]) / temperature
        ).exp()  # the same factor for a row's all votes
        votes = weight.new_zeros(len(rows), len(classes)).scatter_add_(1, code[nearest], weight)
        right += (classes[votes.argmax(dim=1)] == truth).sum().item()
    return right / len(test_z)


def linear_probe(train_z: Vectors, train_y: Vectors, test_z: Vectors, test_y: Vectors) -> float:
    """Test accuracy, in [0, 1], of a logistic regression on the (frozen) features.

    Features are standardised by the training rows' mean and deviation (constant ones are left out of it);
    scikit-learn's `LogisticRegression` with its default penalty, run until it has converged; on a GPU
    torch's LBFGS descends the same objective there.
    train_z (N, D), test_z (M, D); train_y (N,) with at least two classes, test_y (M,).
    """
    who = "linear_probe"
    train_z, test_z = finite_rows(train_z, who, "train_z"), finite_rows(test_z, who, "test_z")
    train_y, test_y = _split(train_z, train_y, test_z, test_y, who)
    if train_z.is_cuda:
        return _probe_there(train_z, train_y, test_z, test_y)
    return _probe(*(part.cpu().numpy() for part in (train_z, train_y, test_z, test_y)))


@dataclass(frozen=True)
class FewLabels:
    """What `few_label_probe` found: the accuracy of each draw, and their mean."""

    labels: int
    accuracies: tuple[float, ...]

    @property
    def mean(self) -> float:
        return sum(self.accuracies) / len(self.accuracies)

    def __str__(self) -> str:
        spread = f"{min(self.accuracies):.3f} to {max(self.accuracies):.3f}"
        return f"{self.mean:.3f} ({spread} in {len(self.accuracies)} draws of {self.labels} labels)"


def few_label_probe(
    z: Vectors,
    y: Vectors,
    test_z: Vectors,
    test_y: Vectors,
    labels: int = 100,
    draws: int = 5,
    seed: int = 0,
) -> FewLabels:
    """`linear_probe` that is told only a few labels, drawn several times, the same number of each class.

    z (N, D), y (N,): what may be drawn from; labels: how many in all, a multiple of the number of classes.
    The same seed draws the same rows, whatever the features: so two encoders can be compared draw by draw.

    Raises ValueError where labels is no such multiple, or a class has too few rows.
    """
    who = "few_label_probe"
    z, test_z = finite_rows(z, who, "z"), finite_rows(test_z, who, "test_z")
    y, test_y = _split(z, y, test_z, test_y, who, names=("z", "y"))
    classes, sizes = y.unique(return_counts=True)
    each, rest = divmod(labels, len(classes))
    if each < 1 or rest:
        raise ValueError(
            f"{who}: labels is {labels}, but must be a multiple of the {len(classes)} classes in y"
        )
    if each > sizes.min():
        rare = int(sizes.argmin())
        raise ValueError(
            f"{who}: {labels} labels take {each} of each class, "
            f"but class {classes[rare].item()} has {sizes[rare].item()} rows"
        )
    if draws < 1:
        raise ValueError(f"{who}: draws is {draws}, but must be 1 or more")
    random = np.random.default_rng(seed)
    features, truth, test = z.cpu().numpy(), y.cpu().numpy(), (test_z.cpu().numpy(), test_y.cpu().numpy())
    accuracies = []
    for _ in range(draws):
        told = np.concatenate(
            [random.choice(np.flatnonzero(truth == c), each, replace=False) for c in classes.tolist()]
        )
        accuracies.append(_probe(features[told], truth[told], *test))
    return FewLabels(labels, tuple(accuracies))


def _probe(train_z: np.ndarray, train_y: np.ndarray, test_z: np.ndarray, test_y: np.ndarray) -> float:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if len(np.unique(train_y)) < 2:
        raise ValueError(
            f"linear_probe: every training label is {train_y[0]}, but a probe parts at least two"
        )
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
    return float(probe.fit(train_z, train_y).score(test_z, test_y))


def _probe_there(train_z: Tensor, train_y: Tensor, test_z: Tensor, test_y: Tensor) -> float:
    """`_probe` on the tensors' own device: the mean loss plus |W|²/2 per row, as scikit-learn has it."""
    classes, y = train_y.unique(return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"linear_probe: every training label is {int(classes[0])}, but a probe parts at least two"
        )
    train_z, test_z = train_z.double(), test_z.double()
    mean, deviation = train_z.mean(dim=0), train_z.std(dim=0, correction=0)
    deviation = torch.where(deviation > 0, deviation, 1.0)
    train_z, test_z = (train_z - mean) / deviation, (test_z - mean) / deviation
    out = 1 if len(classes) == 2 else len(classes)  # of two classes one number tells
    W, b = train_z.new_zeros(train_z.shape[1], out), train_z.new_zeros(out)
    W.requires_grad_(), b.requires_grad_()

    def logits(z: Tensor) -> Tensor:
        found = z @ W + b
        return torch.cat([torch.zeros_like(found), found], dim=1) if out == 1 else found

    until = {"max_iter": 5000, "tolerance_grad": 1e-7, "tolerance_change": 1e-12}
    optimiser = torch.optim.LBFGS([W, b], **until, line_search_fn="strong_wolfe")

    def objective() -> Tensor:
        optimiser.zero_grad()
        value = torch.nn.functional.cross_entropy(logits(train_z), y) + W.square().sum() / 2 / len(train_z)
        value.backward()
        return value

    with torch.enable_grad():
        optimiser.step(objective)
    with torch.no_grad():
        return (classes[logits(test_z).argmax(dim=1)] == test_y).double().mean().item()


# ---- what comes in --------------------------------------------------------------------------------------


def finite_rows(z: Vectors, who: str, name: str) -> Tensor:
    """z as a floating tensor (N, D) without NaN or infinity; half precision is widened to float32."""
    z = torch.as_tensor(z).detach()
    if z.ndim != 2 or not z.numel():
        raise ValueError(f"{who}: {name} is {tuple(z.shape)}, but embeddings are (rows, dimensions)")
    z = similarities.widen(z)
    sound = z.isfinite().all(dim=1)
    if not sound.all():
        raise ValueError(
            f"{who}: {name} {tuple(z.shape)}: row {int((~sound).nonzero()[0])} holds NaN or infinity"
        )
    return z


def unit_rows(z: Vectors, who: str, name: str) -> Tensor:
    return similarities.normalise(finite_rows(z, who, name), name, who)


def as_classes(y: Vectors, who: str, name: str, z: Tensor) -> Tensor:
    """y as int64 (rows,), a class for each row of z, on z's device."""
    y = torch.as_tensor(y).detach()
    if y.shape != z.shape[:1]:
        raise ValueError(f"{who}: {name} is {tuple(y.shape)}, but {len(z)} rows have ({len(z)},) classes")
    if y.is_floating_point():
        raise ValueError(f"{who}: {name} is {y.dtype}, but classes are whole numbers")
    return y.to(z.device, torch.int64)


def _split(
    train_z: Tensor,
    train_y: Vectors,
    test_z: Tensor,
    test_y: Vectors,
    who: str,
    names: tuple[str, str] = ("train_z", "train_y"),
) -> tuple[Tensor, Tensor]:
    if train_z.shape[1] != test_z.shape[1]:
        raise ValueError(
            f"{who}: {names[0]} is {tuple(train_z.shape)} but test_z is {tuple(test_z.shape)}: "
            f"the dimensions differ"
        )
    similarities.one_device(who, **{names[0]: train_z, "test_z": test_z})
    return as_classes(train_y, who, names[1], train_z), as_classes(test_y, who, "test_y", test_z)


def raw_inputs(data: ImageSet | VectorSet) -> Tensor:
    """The inputs themselves as features, (N, numbers) float32: what learning nothing is worth.

    Images go from -0.5 (black) to 0.5 (white): grey is the origin. Around black no coordinate would be
    negative, every cosine would be near 1, and raw pixels a weaker baseline than they are: 0.15 instead of
    0.21 on scenes, 0.58 instead of 0.71 on four classes of CIFAR-10 (kNN, k = 20). Vectors stay as they are.
    """
    values = data.inputs.flatten(1)
    return values.float() / 255 - 0.5 if values.dtype == torch.uint8 else values

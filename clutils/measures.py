"""Measures of a representation: alignment, uniformity, modality gap; ranks; kNN, probes; likeness.

Embeddings need not be normalised: alignment, uniformity, tolerance and kNN look at directions only and
normalise inside. Everything is computed without gradient, in float32 (float64 in, float64 inside).
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from clutils import similarities
from clutils.data import SentenceSet, sentences
from clutils.data.labels import numbered
from clutils.data.sets import SampleSet
from clutils.settings import one_device, one_of, within

ROWS = 1024  # anchors at a time where a full table of similarities would not fit in memory
NEIGHBOURS, PROBED = 20, 750  # of numbers by name: k of kNN, and how many labels train the linear probe
THREADED = 2**20  # values of a probe's rows from which on threads make its fit faster
DINO = ((10, 20, 100, 200), 0.07)  # k and T of its eval_knn.py
FEW, DRAWS = 10, 5  # labels of each class, and how often they are drawn
DELTA, EPSILON = 1e-4, 1e-7  # LiDAR's δ, and ε of it and of RankMe

Vectors = Tensor | np.ndarray
Rows = Callable[[Vectors, str, str], Tensor]  # `finite_rows`, or `unit_rows`


@torch.no_grad()
def alignment(z1: Vectors, z2: Vectors) -> float:
    """Mean squared distance of the two views of an image, on the unit sphere; 0 is best, 2 is chance.

    z1, z2: (N, D), row i of both from one image. Wang & Isola 2020, eq. for L_align with α = 2.

    MACL's alignment magnitude A is the mean *similarity* of the same pairs: A = 1 - alignment / 2.
    """
    z1, z2 = (
        similarities.normalise(finite_rows(z, "alignment", name).double(), name, "alignment")
        for z, name in ((z1, "z1"), (z2, "z2"))
    )
    if z1.shape != z2.shape:
        raise ValueError(f"alignment: z1 is {tuple(z1.shape)} but z2 is {tuple(z2.shape)}")
    one_device("alignment", z1=z1, z2=z2)
    return mean_squared_distance(z1, z2).item()


def mean_squared_distance(z1: Tensor, z2: Tensor) -> Tensor:
    """`alignment` of rows (N, D) of length 1, 2 - 2s of their similarity s: a scalar on their device."""
    return 2 - 2 * (z1 * z2).sum(dim=1).mean()


@torch.no_grad()
def uniformity(z: Vectors, t: float = 2.0) -> float:
    r"""How evenly rows are spread, over all pairs of different ones, on the unit sphere.

    $$\log\frac{1}{N(N-1)}\sum_{i\ne j} e^{-t\,\|z_i - z_j\|^2}$$

    z: (N, D), N >= 2. 0 where all coincide; the lower, the more evenly spread. Its floor, reached by points
    spread evenly over a sphere of many dimensions, is near -2t = -4. Wang & Isola 2020, L_uniform.
    """
    z = unit_rows(z, "uniformity", "z")
    if len(z) < 2:
        raise ValueError(f"uniformity: z is {tuple(z.shape)}, but a pair takes at least two rows")
    within("uniformity", "t", t, 0, open_below=True)
    return log_potential(z, t).item()


def log_potential(z: Tensor, t: float = 2.0) -> Tensor:
    """`uniformity` of rows (N, D) of length 1: a scalar on their device."""
    logs = []
    for start in range(0, len(z), ROWS):
        rows = z[start : start + ROWS]
        exponents = 2 * t * (rows @ z[start:].T - 1)  # -t d², since d² = 2 - 2s
        exponents.diagonal().fill_(-torch.inf)  # no pair
        exponents[:, len(rows) :] += math.log(2)  # a pair with a later row counts in both orders
        logs.append(exponents.flatten().logsumexp(dim=0))
    return torch.stack(logs).logsumexp(dim=0) - math.log(len(z) * (len(z) - 1))


@torch.no_grad()
def modality_gap(z1: Vectors, z2: Vectors) -> float:
    """Distance between the centres of two modalities' embeddings on the unit sphere; 0: they share it.

    z1, z2: (N, D) and (M, D), normalised inside; pairs are not needed. Liang et al. 2022, "Mind the gap"
    (arXiv 2203.02053): the length of its Δ_gap, the difference of the two means (from a secondary source).
    """
    z1, z2 = unit_rows(z1, "modality_gap", "z1"), unit_rows(z2, "modality_gap", "z2")
    if z1.shape[1] != z2.shape[1]:
        raise ValueError(f"modality_gap: z1 is {tuple(z1.shape)} but z2 is {tuple(z2.shape)}")
    one_device("modality_gap", z1=z1, z2=z2)
    return (z1.mean(dim=0) - z2.mean(dim=0)).norm().item()


@torch.no_grad()
def tolerance(z: Vectors, y: Vectors) -> float:
    """Mean cosine similarity of two different rows of the same class: how far a class may stay together.

    z: (N, D); y: (N,) classes, one of them with at least two rows; rows without one (below 0) are left out.
    Wang & Liu 2021, eq. 9, without the pairs of a row with itself (there they count, as 1).
    """
    z = unit_rows(z, "tolerance", "z")
    y = as_classes(y, "tolerance", "y", z)
    z, y = _labelled("tolerance", "given", z, y)
    _, code, sizes = y.unique(return_inverse=True, return_counts=True)
    pairs = (sizes * (sizes - 1)).sum().item()
    if not pairs:
        raise ValueError(f"tolerance: each of the {len(y)} rows has a class of its own, so there is no pair")
    sums = torch.zeros(len(sizes), z.shape[1], dtype=torch.float64, device=z.device)
    sums.index_add_(0, code, z.double())
    # the squared length of a sum of unit vectors is all their similarities, each row's own (1) included
    return ((sums.square().sum() - len(z)) / pairs).item()


@torch.no_grad()
def effective_rank(z: Vectors, values: Tensor | None = None) -> float:
    r"""How many dimensions the rows really use: exp of the entropy of the singular values' shares.

    $$\exp\Bigl(-\sum_k p_k\log p_k\Bigr), \qquad p_k = \frac{\sigma_k}{\sum_l\sigma_l}$$

    z: (N, D), not normalised, but centred first (a common offset is no dimension in use); between 1 and
    min(N - 1, D). Roy & Vetterli 2007, eq. 1 to 4. values: `spectrum(z)`, where that is there already.

    Raises ValueError where all rows are equal.
    """
    values = spectrum(z, "effective_rank") if values is None else values
    return torch.special.entr(values / values.sum()).sum().exp().item()


@torch.no_grad()
def rankme(z: Vectors, epsilon: float = EPSILON) -> float:
    r"""RankMe: exp of the entropy of the singular values' shares, of the rows as they are, not centred.

    $$\exp\Bigl(-\sum_k p_k\log p_k\Bigr), \qquad p_k = \frac{\sigma_k}{\sum_l\sigma_l} + \varepsilon$$

    z: (N, D), at least as many rows as dimensions for the paper's use (it takes 25,600). A common
    offset is one large singular value and lowers it: `effective_rank` looks past that.
    Garrido et al. 2023 (arXiv 2210.02885), eq. 1 and 2.

    Raises ValueError where all rows are zero.
    """
    z = finite_rows(z, "rankme", "z").double()
    within("rankme", "epsilon", epsilon, 0, open_below=True)
    return _entropic_rank(torch.linalg.svdvals(z), epsilon, "rankme: every row of z is zero")


@torch.no_grad()
def nesum(z: Vectors, values: Tensor | None = None) -> float:
    """NESum: the sum of the covariance's eigenvalues over the largest, from 1 to min(N - 1, D).

    z: (N, D). He & Ozay 2022, "Exploring the gap between collapsed and whitened features in self-supervised
    learning", its normalised eigenvalue sum. values: as in `effective_rank`.

    Raises ValueError where all rows are equal.
    """
    squares = (spectrum(z, "nesum") if values is None else values).square()
    return (squares.sum() / squares[0]).item()


@torch.no_grad()
def alpha_req(z: Vectors, first: int = 1, last: int | None = None, values: Tensor | None = None) -> float:
    """α-ReQ: how fast the covariance's eigenvalues fall, α in λ_i ∝ i^(-α), by least squares on logarithms.

    z: (N, D), centred here. Near 1 is the paper's sign of a good representation; 0 is white, and it grows as
    fewer directions carry more. Fitted from eigenvalue `first` to `last`, both counted from 1 (None = the
    last that is above rounding): the tail bends the line, so a number is known only with its range. All ranks
    count alike here. The authors' code (kumarkrishna/fastssl, utils/powerlaw.py) weighs a rank i by 1/i, over
    ranks 4 to 100, 6 to 50 or 6 to 80: of an exact power law the same, of a bent spectrum another number.
    Agrawal et al. 2022, "α-ReQ: assessing representation quality in self-supervised learning by measuring
    eigenspectrum decay", section 3. values: as in `effective_rank`.

    Raises ValueError where all rows are equal, or fewer than two eigenvalues are left to fit.
    """
    values = (spectrum(z, "alpha_req") if values is None else values).square()
    values = values[values > 1e-12 * values[0]]
    last = len(values) if last is None else last
    if not 1 <= first < last <= len(values):
        raise ValueError(
            f"alpha_req: first is {first} and last is {last}, but must be two, in this order, of the "
            f"{len(values)} eigenvalues above rounding"
        )
    ranks = np.arange(first, last + 1)
    return -float(np.polyfit(np.log(ranks), np.log(values[first - 1 : last].cpu().numpy()), 1)[0])


@torch.no_grad()
def lidar(views: Vectors, delta: float = DELTA, epsilon: float = EPSILON) -> float:
    r"""LiDAR: the rank in which images can be distinguished, in units of how far an image's views scatter.

    $$\exp\Bigl(-\sum_k p_k\log p_k\Bigr), \qquad p_k = \frac{\lambda_k}{\sum_l\lambda_l} + \varepsilon,
    \qquad \lambda \text{ of } \Sigma_w^{-1/2}\,\Sigma_b\,\Sigma_w^{-1/2}$$

    views: (N, V, D), V >= 2 views of each of N images (the paper: 1,000 images, 50 views). Σ_b is the
    covariance of the images' means, Σ_w that of views around their image's mean, plus δ on the diagonal. At
    most min(N - 1, D); a direction counts only as far as an image keeps its place in it.
    Thilak et al. 2024 (arXiv 2312.04000), eq. 1 to 4; both covariances are means here, over N and N·V.

    Raises ValueError where all images have one mean.
    """
    views = tensor_of(views)
    if views.ndim != 3 or views.shape[0] < 2 or views.shape[1] < 2:
        raise ValueError(
            f"lidar: views is {tuple(views.shape)}, but must be (images, views, dimensions), two or more of "
            f"the first two"
        )
    finite_rows(views.flatten(0, 1), "lidar", "views")
    within("lidar", "delta", delta, 0, open_below=True)
    within("lidar", "epsilon", epsilon, 0, open_below=True)
    views = views.double()
    means = views.mean(dim=1)
    around = (views - means[:, None]).flatten(0, 1)
    of_views = around.T @ around / len(around) + delta * torch.eye(views.shape[2]).to(views)
    scatter, directions = torch.linalg.eigh(of_views)
    # Σ_b is Mᵀ M, so λ are the squared singular values of M Σ_w^(-1/2), in whose basis D columns scale
    between = _centred(means) / math.sqrt(len(means)) @ directions / scatter.sqrt()
    return _entropic_rank(
        torch.linalg.svdvals(between).square(), epsilon, f"lidar: all {len(views)} images have one mean"
    )


def _entropic_rank(values: Tensor, epsilon: float, nothing: str) -> float:
    """RankMe's smooth rank of numbers from 0 on; raises ValueError, saying `nothing`, where all are 0."""
    if not values.sum() > 0:
        raise ValueError(nothing)
    shares = values / values.sum() + epsilon
    return torch.special.entr(shares).sum().exp().item()


def _centred(z: Tensor) -> Tensor:
    return z - z.mean(dim=0)


@torch.no_grad()
def spectrum(z: Vectors, who: str = "spectrum") -> Tensor:
    """The singular values of the centred rows, falling, in float64: z (N, D) -> (min(N, D),).

    Raises ValueError where there is one row, or all are equal.
    """
    z = finite_rows(z, who, "z").double()
    if len(z) < 2:
        raise ValueError(f"{who}: z is {tuple(z.shape)}, but a spread takes at least two rows")
    values = torch.linalg.svdvals(_centred(z))
    if values.sum() <= 1e-12 * z.abs().max() * math.sqrt(z.numel()):
        raise ValueError(f"{who}: all {len(z)} rows of z are equal, so no dimension is in use")
    return values


@torch.no_grad()
def neighbour_overlap(a: Vectors, b: Vectors, k: int = 10) -> float:
    """Share of a row's k nearest others (cosine) in one space that the other space has too; mean.

    a: (N, D), b: (N, E), row i of both from one image. 1 = the same neighbours; k / (N - 1) is chance.

    Raises ValueError where k is not from 1 to N - 1.
    """
    who = "neighbour_overlap"
    a, b = _both(unit_rows, who, a, b)
    within(who, "k", k, 1, len(a) - 1, whole=True)
    shared = 0
    for start in range(0, len(a), ROWS):
        near = []
        for z in (a, b):
            similar = z[start : start + ROWS] @ z.T
            similar.diagonal(start).fill_(-torch.inf)  # a row is no neighbour of itself
            found = similar.topk(k, dim=1).indices
            near.append(torch.zeros_like(similar, dtype=torch.bool).scatter_(1, found, True))
        shared += int((near[0] & near[1]).sum())
    return shared / (k * len(a))


@torch.no_grad()
def average_precision(train_z: Vectors, train_y: Vectors, test_z: Vectors, test_y: Vectors) -> Tensor:
    """Average precision of each test row's retrieval among the training rows, (M,) float64; mean = mAP.

    All training rows are ranked by cosine similarity; of each that has the test row's class, the share of its
    class among those up to it; their mean. NaN where no training row has the class, and for a row without one
    (below 0; such training rows are left out). train_z (N, D), test_z (M, D); train_y (N,), test_y (M,). The
    information-retrieval definition, without interpolation.
    """
    who = "average_precision"
    train_z, train_y, test_z, test_y = _split(unit_rows, who, train_z, train_y, test_z, test_y)
    ranks = torch.arange(1, len(train_z) + 1, dtype=torch.float64, device=train_z.device)
    found = []
    for rows, truth in zip(test_z.split(ROWS), test_y.split(ROWS), strict=True):
        order = (rows @ train_z.T).argsort(dim=1, descending=True, stable=True)
        right = (train_y[order] == truth[:, None]).double()
        found.append((right.cumsum(dim=1) / ranks * right).sum(dim=1) / right.sum(dim=1))
    return torch.cat(found).masked_fill(test_y < 0, math.nan)


@torch.no_grad()
def bootstrap(
    values: Vectors, draws: int = 1000, confidence: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Interval of a mean by the percentile bootstrap, of values (N,) drawn with replacement -> (low, high).

    For a share of images, values are 0 and 1; for a paired difference, the difference of each image. Efron
    1979; the percentile interval, too narrow for few images.
    """
    values = tensor_of(values).double()
    if values.ndim != 1 or not len(values) or not values.isfinite().all():
        raise ValueError(f"bootstrap: values is {tuple(values.shape)}, but must be finite numbers (N,)")
    within("bootstrap", "confidence", confidence, 0, 1, open_below=True, open_above=True)
    within("bootstrap", "draws", draws, 1, whole=True)
    within("bootstrap", "seed", seed, -(2**63), 2**63 - 1, whole=True)
    dice = torch.Generator().manual_seed(seed)
    means = torch.stack(
        [values[torch.randint(len(values), (len(values),), generator=dice)].mean() for _ in range(draws)]
    )
    outside = (1 - confidence) / 2
    low, high = means.quantile(torch.tensor([outside, 1 - outside], dtype=torch.float64)).tolist()
    return low, high


@torch.no_grad()
def cka(a: Vectors, b: Vectors) -> float:
    """Linear CKA: how alike two representations of the same images are, in [0, 1]; 1 = up to rotation, scale.

    a: (N, D), b: (N, E), row i of both from one image; centred here. ‖AᵀB‖²/(‖AᵀA‖ ‖BᵀB‖), Frobenius norms.
    It is biased upwards where there are few rows for the dimensions: two random clouds of N rows in D
    dimensions are near D/(N + D) alike. Kornblith et al. 2019 (arXiv 1905.00414), section 3.

    Raises ValueError where the rows of either are all equal.
    """
    a, b = (z.double() for z in _both(finite_rows, "cka", a, b))
    sizes = [spectrum(z, "cka").square().square().sum().sqrt() for z in (a, b)]  # ‖ZᵀZ‖
    return ((_centred(a).T @ _centred(b)).square().sum() / (sizes[0] * sizes[1])).item()


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
    lower class. Rows without a label (below 0) are left out on both sides. A row of zeros has no direction:
    a test row counts as wrong, a training row has no vote.

    Raises ValueError where k is not between 1 and the number of labelled training rows that have a direction.
    """
    return _knn_right(train_z, train_y, test_z, test_y, k=k, temperature=temperature).mean().item()


@torch.no_grad()
def _knn_right(*given: Vectors, k: int, temperature: float) -> Tensor:
    """Which labelled test rows `knn_accuracy`'s vote gets right: (M,), 0 or 1 in float64."""
    who = "knn_accuracy"
    train_z, train_y, test_z, test_y = _split(_directions, who, *given)
    test_z, test_y = _labelled(who, "test", test_z, test_y)
    pointing = train_z.any(dim=1)
    if not pointing.any():
        raise ValueError(f"{who}: train_z {tuple(train_z.shape)}: every labelled row is a zero vector")
    train_z, train_y = train_z[pointing], train_y[pointing]
    within(who, "k", k, 1, len(train_z), whole=True)
    within(who, "temperature", temperature, 0, open_below=True)
    classes, code = train_y.unique(return_inverse=True)
    won = [classes[knn_vote(rows @ train_z.T, code, k, temperature)] for rows in test_z.split(ROWS)]
    return ((torch.cat(won) == test_y) & test_z.any(dim=1)).double()


def knn_vote(similarity: Tensor, labels: Tensor, k: int, temperature: float = 0.1) -> Tensor:
    """The class that wins the weighted vote of each row's k nearest (Wu et al. 2018): (M,).

    similarity: (M, N), of M asked rows to N labelled ones; labels: (N,) from 0 on.
    """
    similarity, nearest = similarity.topk(k, dim=1)
    weight = ((similarity - similarity[:, :1]) / temperature).exp()  # the same factor for a row's all votes
    votes = weight.new_zeros(len(weight), int(labels.max()) + 1)
    return votes.scatter_add_(1, labels[nearest], weight).argmax(dim=1)


def neighbours_for(train_y: Tensor, test_y: Tensor) -> int:
    """k for a vote: 20, or as many labelled images as the class of the median test image has.

    With more, images of other classes outvote the right one wherever classes are small. train_y: (N,);
    test_y: (M,), classes from 0 on.
    """
    classes = int(max(train_y.max(), test_y.max())) + 1
    return max(1, min(NEIGHBOURS, int(train_y.bincount(minlength=classes)[test_y].median())))


def linear_probe(train_z: Vectors, train_y: Vectors, test_z: Vectors, test_y: Vectors) -> float:
    """Test accuracy, in [0, 1], of a logistic regression on the (frozen) features.

    Features are standardised by the training rows' mean and deviation (constant ones are left out of it);
    scikit-learn's `LogisticRegression` with its default penalty, on the CPU, run until it has converged.
    train_z (N, D), test_z (M, D); train_y (N,) with at least two classes, test_y (M,). Rows without a label
    (below 0) are left out on both sides.
    """
    (train_y, test_y), _ = numbered("linear_probe", train_y, test_y)
    found = probed(train_z, train_y, test_z, "linear_probe")
    test_y = as_classes(test_y, "linear_probe", "test_y", found)
    found, test_y = _labelled("linear_probe", "test", found, test_y)
    return (found == test_y).double().mean().item()


def probed(train_z: Vectors, train_y: Vectors, test_z: Vectors, who: str = "probed") -> Tensor:
    """The classes that `linear_probe`'s regression gives the test rows, (M,) int64: arguments as there."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    ((train_y,), _), unasked = numbered(who, train_y), torch.zeros(len(test_z), dtype=torch.int64)
    train_z, train_y, test_z, _ = _split(finite_rows, who, train_z, train_y, test_z, unasked)
    if len(train_y.unique()) < 2:
        raise ValueError(
            f"linear_probe: every training label is {int(train_y[0])}, but a probe parts at least two"
        )
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
    few = train_z.numel() < THREADED  # threads would wait for each other: one takes a seventh of two's time
    with warnings.catch_warnings(), threadpool_limits(1 if few else None):
        # "could represent a regression problem": many classes are no mistake
        warnings.filterwarnings("ignore", "The number of unique classes")
        probe.fit(train_z.cpu().numpy(), train_y.cpu().numpy())
        return torch.from_numpy(probe.predict(test_z.cpu().numpy()))


def few_label_probe(
    train_z: Vectors,
    train_y: Vectors,
    test_z: Vectors,
    test_y: Vectors,
    labels: int = 100,
    draws: int = 5,
    seed: int = 0,
) -> tuple[float, ...]:
    """`linear_probe` on few labels, drawn several times, as many of each class: the accuracy of each draw.

    labels: how many in all, a multiple of the number of classes. The same seed draws the same rows, whatever
    the features: so two encoders can be compared draw by draw. Rows without a label (below 0) are left out.

    Raises ValueError where labels is no such multiple, or a class has too few rows.
    """
    who = "few_label_probe"
    sides = _split(finite_rows, who, train_z, train_y, test_z, test_y)
    z, y, test_z, test_y = (side.cpu() for side in sides)
    classes, sizes = y.unique(return_counts=True)
    each, rest = divmod(labels, len(classes))
    if each < 1 or rest:
        raise ValueError(f"{who}: labels is {labels}, but must be a multiple of the {len(classes)} classes")
    if each > sizes.min():
        rare = int(sizes.argmin())
        raise ValueError(
            f"{who}: {labels} labels take {each} of each class, "
            f"but class {classes[rare].item()} has {sizes[rare].item()} rows"
        )
    within(who, "draws", draws, 1, whole=True)
    random = np.random.default_rng(seed)
    accuracies = []
    for _ in range(draws):
        drawn = np.concatenate(
            [random.choice(np.flatnonzero(y == c), each, replace=False) for c in classes.tolist()]
        )
        accuracies.append(linear_probe(z[drawn], y[drawn], test_z, test_y))
    return tuple(accuracies)


# ---- by name -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Features:
    """Data that a number by name is measured on: test images, and a gallery of labelled neighbours.

    - z: (N, D); y: (N,) classes; gallery_z, gallery_y: (M, D), (M,); all but z None where there are no labels
    - views: (N, V, D), V views of each image, None = none were drawn
    - values: `spectrum(z)`, where that is there already
    - neighbours: k of kNN; fewer where classes have fewer labelled images (`neighbours_for`)
    """

    z: Tensor
    y: Tensor | None = None
    gallery_z: Tensor | None = None
    gallery_y: Tensor | None = None
    views: Tensor | None = None
    values: Tensor | None = None
    neighbours: int = NEIGHBOURS

    @property
    def labelled(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """gallery_z, gallery_y, z, y of the rows with a label. Raises ValueError where there are none."""
        if self.y is None or self.gallery_z is None or self.gallery_y is None:
            raise ValueError("Features: there are no labels")
        gallery = _labelled("Features", "gallery", self.gallery_z, self.gallery_y)
        return *gallery, *_labelled("Features", "judged", self.z, self.y)


@dataclass(frozen=True)
class Metric:
    """A number of the literature.

    - label: as pages and charts write it; settings: what it is computed with, since one name means several
      computations
    - measure: `Features` -> the number, or a value for each test image, whose mean it is
    - needs: "labels", "views" or "" (features alone); least: images that a gallery must have
    - unit: "share", "dimensions" or "exponent"
    """

    label: str
    settings: str
    measure: Callable[[Features], float | Tensor]
    needs: str = ""
    unit: str = "dimensions"
    least: int = 1


def _knn(k: int, temperature: float) -> Callable[[Features], Tensor]:
    return lambda f: _knn_right(*f.labelled, k=k, temperature=temperature)


def _probed(f: Features) -> Tensor:
    gallery_z, gallery_y, z, y = f.labelled
    return (probed(gallery_z[:PROBED], gallery_y[:PROBED], z) == y).double()


def _precision(f: Features) -> Tensor:
    found = average_precision(*f.labelled)
    return found[found.isfinite()]


def _few(f: Features) -> float:
    """Mean of `few_label_probe` on ten labels of each class, or as many as the rarest has."""
    classes, sizes = f.labelled[1].unique(return_counts=True)
    labels = min(FEW, int(sizes.min())) * len(classes)
    return sum(few_label_probe(*f.labelled, labels=labels, draws=DRAWS)) / DRAWS


def _lidar(f: Features) -> float:
    if f.views is None:
        raise ValueError("Features: there are no views")
    return lidar(f.views)


_share = partial(Metric, needs="labels", unit="share")
BY_NAME: dict[str, Metric] = {
    "rankme": Metric("RankMe", f"not centred, ε = {EPSILON:g}", lambda f: rankme(f.z)),
    "effective_rank": Metric("effective rank", "centred, ε = 0", lambda f: effective_rank(f.z, f.values)),
    "alpha_req": Metric(
        "α-ReQ",
        "centred, all eigenvalues above rounding",
        lambda f: alpha_req(f.z, values=f.values),
        unit="exponent",
    ),
    "nesum": Metric("NESum", "centred, eigenvalues over the largest", lambda f: nesum(f.z, f.values)),
    "lidar": Metric("LiDAR", f"2 true views, δ = {DELTA:g}, ε = {EPSILON:g}", _lidar, "views"),
    "knn": _share(
        "kNN",
        f"k = {NEIGHBOURS}, T = 0.1",
        lambda f: _knn(min(f.neighbours, len(f.labelled[0])), 0.1)(f),
    ),
    **{
        f"knn_dino_{k}": _share(
            f"kNN, DINO's, k = {k}",
            f"k = {k}, T = {DINO[1]:g}",
            _knn(k, DINO[1]),
            least=k,
        )
        for k in DINO[0]
    },
    "map": _share("retrieval, mAP", "by cosine, no interpolation", _precision),
    "probe": _share("linear probe", "logistic regression, penalty C = 1, features standardised", _probed),
    "few": _share(
        "few-label probe",
        f"the linear probe on {FEW} labels a class, mean of {DRAWS} draws",
        _few,
    ),
}


def by_name(name: str, features: Features) -> float:
    """The number of `BY_NAME`; raises ValueError on another name, and where these features do not have it."""
    one_of("measures.by_name", "name", name, tuple(BY_NAME))
    found = BY_NAME[name].measure(features)
    return found.mean().item() if isinstance(found, Tensor) else found


# ---- what comes in --------------------------------------------------------------------------------------


def tensor_of(values: Vectors) -> Tensor:
    """A tensor of a tensor, list or array; an array that torch cannot share is copied.

    So is one that nobody may write into, backwards (negative strides) or of the other byte order.
    """
    if not isinstance(values, Tensor):
        given = np.asarray(values)
        values = torch.from_numpy(np.require(given, given.dtype.newbyteorder("="), ["C", "W"]))
    return values.detach()


def finite_rows(z: Vectors, who: str, name: str) -> Tensor:
    """z as a floating tensor (N, D) without NaN or infinity; half precision is widened to float32."""
    z = tensor_of(z)
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


def _directions(z: Vectors, who: str, name: str) -> Tensor:
    """`unit_rows`, but a row of zeros stays one."""
    z = finite_rows(z, who, name)
    zero = z.abs().amax(dim=1, keepdim=True) <= similarities.SHORTEST
    return similarities.normalise(z.masked_fill(zero, 1), name, who).masked_fill(zero, 0)


def _both(rows: Rows, who: str, a: Vectors, b: Vectors) -> tuple[Tensor, Tensor]:
    """Two representations of the same images, checked by `rows`."""
    a, b = rows(a, who, "a"), rows(b, who, "b")
    if len(a) != len(b):
        raise ValueError(
            f"{who}: a is {tuple(a.shape)} but b is {tuple(b.shape)}: a row each for the same images"
        )
    one_device(who, a=a, b=b)
    return a, b


def as_classes(y: Vectors, who: str, name: str, z: Tensor) -> Tensor:
    """Labels y as int64 (rows,), a class for each row of z, below 0 = none, on z's device."""
    ((y,), _) = numbered(f"{who}: {name}", y)
    if y.shape != z.shape[:1]:
        raise ValueError(f"{who}: {name} is {tuple(y.shape)}, but {len(z)} rows have ({len(z)},) classes")
    return y.to(z.device)


def _split(rows: Rows, who: str, *given: Vectors) -> tuple[Tensor, ...]:
    """train_z and train_y of the rows with a label, test_z and test_y; checked, the embeddings by `rows`."""
    train_z, train_y, test_z, test_y = given
    (train_y, test_y), _ = numbered(who, train_y, test_y)
    train_z, test_z = rows(train_z, who, "train_z"), rows(test_z, who, "test_z")
    if train_z.shape[1] != test_z.shape[1]:
        raise ValueError(
            f"{who}: train_z is {tuple(train_z.shape)} but test_z is {tuple(test_z.shape)}: "
            f"the dimensions differ"
        )
    one_device(who, train_z=train_z, test_z=test_z)
    wider = torch.promote_types(train_z.dtype, test_z.dtype)  # NumPy's features are float64
    train_z, test_z = train_z.to(wider), test_z.to(wider)
    train_y, test_y = as_classes(train_y, who, "train_y", train_z), as_classes(test_y, who, "test_y", test_z)
    return *_labelled(who, "training", train_z, train_y), test_z, test_y


def _labelled(who: str, which: str, z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The rows with a label. Raises ValueError where none has one."""
    if not len(z) or (y < 0).all():
        raise ValueError(f"{who}: none of the {len(y)} {which} rows has a label (below 0 is none)")
    return z[y >= 0], y[y >= 0]


def raw_inputs(data: SampleSet) -> Tensor:
    """The inputs themselves as features, (N, numbers) float32: what learning nothing is worth.

    Images go from -0.5 (black) to 0.5 (white): grey is the origin. Around black no coordinate would be
    negative, every cosine would be near 1, and raw pixels a weaker baseline than they are: 0.15 instead of
    0.21 on scenes, 0.58 instead of 0.71 on four classes of CIFAR-10 (kNN, k = 20). Vectors stay as they
    are; of a sentence, how often each word number stands in it (a bag of words); of a node, its attributes
    and its neighbours; of a graph, how many nodes it has, the sums of their attributes, and their degrees,
    sorted.
    """
    if data.inputs.ndim == 3:
        rows, places = data.inputs, data.inputs.shape[1]
        if len(rows) == 1:
            return rows[0, rows[0, :, 0] > 0, 1:]
        degrees = rows[..., -places:].sum(dim=-1).sort(dim=1, descending=True).values
        return torch.cat([rows[..., :-places].sum(dim=1), degrees], dim=1)
    values = data.inputs.flatten(1)
    if isinstance(data, SentenceSet):
        bag = torch.zeros(len(values), sentences.BUCKETS)
        return bag.scatter_add_(1, values, (values > 0).float())
    return values.float() / 255 - 0.5 if values.dtype == torch.uint8 else values

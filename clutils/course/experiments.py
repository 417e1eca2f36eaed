"""Experiments that notebooks run in small and `benchmarks/` records at full length, and runs gone wrong."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from clutils import losses, measures, views
from clutils.data import ImageSet
from clutils.training import Run

NEIGHBOURS = 20
PROBE_TRAIN = 2000  # labelled images for the linear probes of `readable`

Row = dict[str, Any]


def measured(
    run: Run,
    settings: Sequence[str],
    after: Callable[[Run], Row],
    before: Callable[[Run], Row] | None = None,
    callbacks: Sequence[Any] = (),
) -> Row:
    """Train a run to its end -> a row: these of its settings, what was measured before it, and after it."""
    first = {} if before is None else before(run)
    run.finish(callbacks, progress=False)
    now = vars(run.settings) | {"steps": run.steps_done}
    return {name: now[name] for name in settings} | first | after(run)


def late(run: Run, column: str = "loss") -> float:
    """Mean of a column of the history over the last tenth of the steps."""
    return float(run.history[column].tail(max(1, run.steps_done // 10)).mean())


def last(run: Run, *columns: str) -> Row:
    """Columns of the history at the last step."""
    return {name: run.rows[-1][name] for name in columns}


def accuracy(embed: Callable[[ImageSet], Tensor], train: ImageSet, test: ImageSet) -> float:
    """kNN accuracy (k = 20) on the test images, with the training images' labels, by these features."""
    return measures.knn_accuracy(embed(train), train.labels, embed(test), test.labels, k=NEIGHBOURS)


def readable(
    embed: Callable[[ImageSet], Tensor],
    train: ImageSet,
    test: ImageSet,
    questions: Sequence[str] = ("class", "bright", "right"),
) -> dict[str, float]:
    """Accuracies of linear probes on these features: question -> accuracy on the test images.

    - class: the image's label
    - bright: whether its mean is above the training images' median; jitter changes that from view to view
    - right: whether its object lies right of the middle, where there are masks; crops and flips change that

    questions: those of the three that are asked
    """
    labelled = train.subset(slice(0, PROBE_TRAIN))
    level = labelled.images.float().mean(dim=(1, 2, 3)).median()
    answers = {
        "class": lambda pictures: pictures.labels,
        "bright": lambda pictures: (pictures.images.float().mean(dim=(1, 2, 3)) > level).long(),
    }
    if labelled.masks is not None and test.masks is not None:
        answers["right"] = on_the_right
    z, test_z = embed(labelled), embed(test)
    return {
        name: measures.linear_probe(z, ask(labelled), test_z, ask(test))
        for name, ask in answers.items()
        if name in questions
    }


def on_the_right(pictures: ImageSet) -> Tensor:
    """True where the centre of an image's mask lies right of the image's middle: (N,), 0 or 1."""
    masks = pictures.masks.float()
    columns = torch.arange(masks.shape[-1]) + 0.5
    centre = (masks * columns).sum(dim=(1, 2)) / masks.sum(dim=(1, 2)).clamp(min=1)
    return (centre > masks.shape[-1] / 2).long()


def labelled(labels: Tensor, count: int, seed: int = 0) -> Tensor:
    """Rows whose label is told, (count,): the same number of each class in labels (N,), drawn by seed.

    Raises ValueError unless count is a multiple of the number of classes and each class has enough rows; all
    N of them may be told, too.
    """
    if count == len(labels):
        return torch.arange(count)
    classes, sizes = labels.unique(return_counts=True)
    each, rest = divmod(count, len(classes))
    if rest or not 1 <= each <= int(sizes.min()):
        raise ValueError(
            f"labelled: count is {count}, but must be a multiple of the {len(classes)} classes, "
            f"of which the smallest has {int(sizes.min())} rows"
        )
    dice = torch.Generator().manual_seed(seed)
    rows = [(labels == c).nonzero()[:, 0] for c in classes]
    return torch.cat([own[torch.randperm(len(own), generator=dice)[:each]] for own in rows])


# ---- trained wrongly, on purpose ---------------------------------------------------------------------------


class PullOnly(nn.Module):
    """Nothing pushes: all images end at one place."""

    temperature = 0.2

    def forward(self, z1: Tensor, z2: Tensor) -> Tensor:
        return -torch.nn.functional.cosine_similarity(z1, z2).mean()


class NTXentOfViews(losses.NTXent):
    r"""NT-Xent with several further views: the mean of a loss a view, each against the same negatives.

    $$\ell = \frac1M\sum_i \mathrm{softplus}\Bigl(\log\sum_j e^{s^-_j/\tau} - \frac{s^+_i}{\tau}\Bigr)$$
    """

    accepts = losses.NTXent.accepts | {"extra_views"}


def mispaired(images: Tensor, generator: torch.Generator) -> Tensor:
    """Views whose second half is shifted by one: each image is paired with the next one's view."""
    first, second = views.Augmentation()(images, generator).chunk(2)
    return torch.cat([first, second.roll(1, dims=0)])

"""A set with a planted truth: noise in a known place of each image must help. Arms of equal noise on it.

An image is 8 x 8 and grey. Faint stripes fill it, and their direction is the class. Its first quarter is
covered by a shortcut: black and white pixels, drawn for each image and independent of its class. They tell
an image from all others, so a contrastive loss can be solved by them alone (Chen et al. 2021, "Intriguing
properties of contrastive losses", arXiv 2011.02803; Robinson et al. 2021, arXiv 2106.11230). Noise on that
quarter takes the shortcut away; noise elsewhere hides the stripes.

Each run is PiNDA's algorithm 1 with the identity as the other view. All runs are trained side by side, layer
by layer in one product of matrices, since each alone is too small to be worth a call.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clutils import losses, measures, similarities
from clutils.course import arms
from clutils.course.experiments import NEIGHBOURS
from clutils.data import ImageSet
from clutils.noise import Noise
from clutils.training import optimisers

if TYPE_CHECKING:
    import pandas

SIDE, PIXELS = 8, 64
CLASSES = ("0 degrees", "45 degrees", "90 degrees", "135 degrees")
PLACE = torch.zeros(SIDE, SIDE, dtype=torch.bool)
PLACE[: SIDE // 2, : SIDE // 2] = True  # of the shortcut, in every image
STRIPES = 0.25  # how far their crests lie from mid grey, 1 being from black to white
ARMS = {
    "none": "no noise",
    "uniform": arms.ARMS["uniform"],
    "oracle": "noise on the shortcut alone: told the place",
    "learned": arms.ARMS["learned"],
    "dealt": arms.ARMS["dealt"],
    "adversarial": arms.ARMS["adversarial"],
}
AMOUNTS = (0.25, 1.0)  # of noise: the grid of every arm
COMPARED = ("uniform", "oracle", "learned", "dealt")  # at both amounts, beside no noise
TRAINED_ON, JUDGED_ON = 1500, 500  # images; as many to choose the amount by, and others to judge by
SEEDS, LOOKS = (0, 1, 2, 3, 4), (0, 80, 120)
TEMPERATURE, BATCH = 0.2, 32
RATE, NOISE_RATE = 1e-2, 0.2  # the generator's as a share of the run's, PiNDA's default
WIDTHS = {"encoder": (PIXELS, 96, 32), "head": (32, 16), "generator": (PIXELS, 32, PIXELS)}


class Case(NamedTuple):
    """A run: an arm, the noise's root mean square over each image (0 where there is none), a seed."""

    arm: str
    amount: float
    seed: int


def make(count: int, seed: int = 0) -> ImageSet:
    """`count` images; `.masks` is the place of the shortcut."""
    dice = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return torch.rand(count, *shape, generator=dice)

    labels = (drawn() * len(CLASSES)).long()
    angle, at = labels[:, None, None] * math.pi / len(CLASSES), torch.arange(SIDE) + 0.5
    along = angle.cos() * at + angle.sin() * at[:, None]
    waves = (2 * math.pi * (along / (3.5 + drawn(1, 1)) + drawn(1, 1))).sin()
    place = PLACE.expand(count, -1, -1)
    images = torch.where(place, (drawn(SIDE, SIDE) < 0.5).float(), 0.5 + STRIPES * waves)
    said = f"{count:,} constructed images, {SIDE}x{SIDE}, a shortcut in a quarter of each (seed {seed})"
    return ImageSet(
        images=(255 * images).round().to(torch.uint8)[:, None],
        labels=labels,
        class_names=CLASSES,
        masks=place.clone(),
        source=said,
    )


class Stacked(nn.Module):
    """A network a seed, of linear layers with ReLU between: (R, N, in) -> (R, N, out).

    A network's first weights depend on its seed alone, whichever others are trained beside it.
    """

    def __init__(self, part: str, seeds: Sequence[int]) -> None:
        super().__init__()
        widths, place = WIDTHS[part], list(WIDTHS).index(part)
        dice = {seed: torch.Generator().manual_seed(len(WIDTHS) * seed + place) for seed in set(seeds)}
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for narrow, wide in itertools.pairwise(widths):
            first = {
                seed: (2 * torch.rand(narrow + 1, wide, generator=own) - 1) / math.sqrt(narrow)
                for seed, own in dice.items()
            }  # as torch's linear layers begin
            together = torch.stack([first[seed] for seed in seeds])
            self.weights.append(together[:, :-1].clone())
            self.biases.append(together[:, -1:].clone())

    def forward(self, x: Tensor) -> Tensor:
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, F.relu(x) if layer else x, weight)
        return x


class Runs(nn.Module):
    """Runs side by side: `step()` trains each by one step, `look()` gives a row each.

    - cases: one a run; those of the same seed meet the same batches and the same draws of noise
    - train: from `make`; its masks are what the oracle is told

    The learning rate is constant, so a run does not depend on how long it will go on.
    """

    def __init__(self, cases: Sequence[Case], train: ImageSet) -> None:
        super().__init__()
        unknown = [case.arm for case in cases if case.arm not in ARMS]
        if unknown:
            raise ValueError(f"planted: arm is {unknown[0]!r}; there are {', '.join(ARMS)}")
        self.cases, self.train_set, self.steps_done = list(cases), train, 0
        self.x, self.loss_of = _flat(train), losses.NTXent(TEMPERATURE)
        seeds = [case.seed for case in cases]
        self.encoder, self.head, self.generator = (Stacked(part, seeds) for part in WIDTHS)
        self.dice = {seed: torch.Generator().manual_seed(1000 + seed) for seed in dict.fromkeys(seeds)}
        learned = [*self.encoder.parameters(), *self.head.parameters()]
        groups = [{"params": learned}, {"params": self.generator.parameters(), "lr": RATE * NOISE_RATE}]
        self.optimiser = optimisers.AdamW(groups, RATE, weight_decay=0)  # so it is Adam
        self.amounts = torch.tensor([case.amount for case in cases])
        self.of_arm = {
            arm: torch.tensor([k for k, case in enumerate(cases) if case.arm == arm])
            for arm in dict.fromkeys(case.arm for case in cases)
        }
        self.last: tuple[Tensor, Tensor] = (torch.full_like(self.amounts, math.nan), self.amounts)

    def step(self) -> None:
        seeds = [case.seed for case in self.cases]
        dice = self.dice.items()
        chosen = {seed: torch.randint(len(self.x), (BATCH,), generator=own) for seed, own in dice}
        normal = {seed: torch.randn(BATCH, PIXELS, generator=own) for seed, own in dice}
        x = torch.stack([self.x[chosen[seed]] for seed in seeds])
        noise = self.noise(x, torch.stack([normal[seed] for seed in seeds]))
        features = self.encoder(_centred(torch.cat([x + noise, x], dim=1)))
        z = similarities.normalise(self.head(F.relu(features)).flatten(0, 1), "z").view(len(x), 2 * BATCH, -1)
        positives = (z * z.roll(BATCH, dims=1)).sum(dim=2)
        own = torch.eye(2 * BATCH, dtype=torch.bool)
        negatives = ~(own | own.roll(BATCH, dims=1)).expand(len(x), -1, -1)
        lost = self.loss_of.per_anchor(
            positives.flatten()[:, None], (z @ z.mT).flatten(0, 1), negative_mask=negatives.flatten(0, 1)
        )
        lost = lost.view(len(x), -1).mean(dim=1)  # of each run: no weight is shared, so the sum trains all
        self.optimiser.zero_grad()
        lost.sum().backward()
        self.optimiser.step()
        self.steps_done += 1
        self.last = lost.detach(), noise.detach().pow(2).mean(dim=(1, 2)).sqrt()

    def scale(self, x: Tensor) -> Tensor:
        """Of each run's noise at x (R, N, pixels), before dealing and up to a factor of each image."""
        learned = F.softplus(arms.in_log_space(self.generator(_centred(x)).transpose(0, 1))).transpose(0, 1)
        place = PLACE.flatten().float()
        for k, (arm, *_) in enumerate(self.cases):
            if arm in ("none", "uniform", "oracle"):
                learned[k] = place if arm == "oracle" else 1.0
        return learned

    def noise(self, x: Tensor, normal: Tensor) -> Tensor:
        """What is added to x, (R, N, pixels), of these standard normal draws."""
        found = torch.zeros_like(x)
        scale, normal = self.scale(x).transpose(0, 1), normal.transpose(0, 1)  # images first, as in `arms`
        for arm, at in self.of_arm.items():
            own = scale[:, at]
            drawn = Noise(own * normal[:, at], own, torch.zeros_like(own))
            if arm == "oracle":
                sample = arms.levelled(drawn.sample, self.amounts[at, None])
            elif arm != "none":
                sample = arms.noise_of(drawn, arm, self.amounts[at, None]).sample
            if arm != "none":
                found = found.index_copy(0, at, sample.transpose(0, 1))
        return found

    @torch.no_grad()
    def look(self, *judged: ImageSet) -> list[dict[str, Any]]:
        """A row a run, as it is now.

        - knn_validation, knn: kNN accuracy (k = 20) on the first and the last of `judged`; the training
          images vote
        - place: share of the noise's power that lies on the shortcut, a quarter of the image
        - loss, noise: of the last batch; noise is the root mean square of what was added
        """
        x = [_flat(some).expand(len(self.cases), -1, -1) for some in (self.train_set, *judged)]
        train_z, *zs = (self.encoder(_centred(each)) for each in x)
        power = self.scale(x[-1]).pow(2)
        place = (power[..., PLACE.flatten()].sum(dim=2) / power.sum(dim=2)).mean(dim=1)
        rows = []
        for k, (arm, amount, seed) in enumerate(self.cases):
            found = [
                measures.knn_accuracy(train_z[k], self.train_set.labels, z[k], some.labels, k=NEIGHBOURS)
                for z, some in zip(zs, judged, strict=True)
            ]
            row = {"arm": arm, "amount": amount, "seed": seed, "step": self.steps_done}
            row |= {"knn_validation": found[0], "knn": found[-1], "place": float(place[k])}
            rows.append(row | {"loss": float(self.last[0][k]), "noise": float(self.last[1][k])})
        return rows


def sets() -> tuple[ImageSet, ImageSet, ImageSet]:
    """Images to train on, to choose an amount by, and to judge by."""
    return make(TRAINED_ON, 0), make(JUDGED_ON, 1), make(JUDGED_ON, 2)


def experiment(steps: Sequence[int] = LOOKS, seeds: Sequence[int] = SEEDS) -> pandas.DataFrame:
    """Every arm that is compared, at every amount, with every seed: a row a run and look.

    The adversary runs at one amount, since it is there to show where its noise goes.
    """
    import pandas as pd

    train, *judged = sets()
    cases = [Case(arm, amount, seed) for seed in seeds for arm in COMPARED for amount in AMOUNTS]
    cases += [
        Case(arm, amount, seed) for seed in seeds for arm, amount in (("none", 0.0), ("adversarial", 1.0))
    ]
    runs, rows = Runs(cases, train), []
    for look in steps:
        while runs.steps_done < look:
            runs.step()
        rows += runs.look(*judged)
    return pd.DataFrame(rows)


def chosen(table: pandas.DataFrame) -> dict[str, float]:
    """Arm -> the amount that did best on validation images at the end, by the mean of the seeds."""
    ends = table[table["step"] == table["step"].max()]
    means = ends.groupby(["arm", "amount"])["knn_validation"].mean()
    return {arm: means[arm].idxmax() for arm in ARMS if arm in means}


def of_equal_amount(table: pandas.DataFrame) -> None:
    """Raise ValueError where a run's noise had another amount than it was to have: that is no comparison."""
    for row in table.to_dict("records"):
        if not abs(row["noise"] - row["amount"]) <= 1e-3 * row["amount"]:
            raise ValueError(
                f"planted: {row['arm']}, seed {row['seed']}: noise of {row['noise']:.4f} at step "
                f"{row['step']}, not {row['amount']}"
            )


def _flat(pictures: ImageSet) -> Tensor:
    return pictures.images.flatten(1).float() / 255


def _centred(x: Tensor) -> Tensor:
    return 2 * x - 1  # what the networks see: from black, -1, to white, 1

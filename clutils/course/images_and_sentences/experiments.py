"""CLIP and SigLIP on scenes with captions: two small encoders from scratch, and what is measured of them."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clutils import data, encoders, measures
from clutils.course.images_and_sentences.captions import FACTS, captions, facts
from clutils.course.images_and_sentences.exercises import recall_at, symmetric
from clutils.data.sentences import tokens
from clutils.encoders.transformer import Transformer

RECORD, MAPS = "images_and_sentences", "images_and_sentences_maps"
SIZE, LENGTH, BATCH, STEPS, RATE, LEFT_OUT = 24, 16, 64, 100, 3e-3, 0.2
TEMPERATURES = (0.01, 0.03, 0.1, 0.3, 1.0)
PROMPT = "a thing with {}"
WITHOUT_TEXTURE = tuple(fact for fact in FACTS if fact != "texture")


class Towers(nn.Module):
    """An image encoder and the text encoder of notebook 15, each with a linear map to 64 numbers.

    - t: log of the scale 1/τ, and bias: SigLIP's b. Both are learned
    """

    def __init__(self, t: float, bias: float = 0.0) -> None:
        super().__init__()
        self.image = nn.Sequential(encoders.build("conv16"), nn.Linear(128, 64))
        self.text = nn.Sequential(Transformer(LENGTH, width=64, layers=1, dropout=0.0), nn.Linear(64, 64))
        self.t, self.bias = nn.Parameter(torch.tensor(t)), nn.Parameter(torch.tensor(bias))

    def forward(self, images: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Images uint8 (B, 3, H, W), words (B, L) -> unit vectors (B, 64) of each."""
        u, v = self.image(images.float() / 127.5 - 1), self.text(words)
        return F.normalize(u, dim=1), F.normalize(v, dim=1)


def siglip_loss(u: Tensor, v: Tensor, model: Towers) -> Tensor:
    """SigLIP's loss of unit vectors (B, D): a logistic loss a pair, summed over B² pairs, divided by B."""
    logits = u @ v.T * model.t.exp() + model.bias
    match = 2 * torch.eye(len(u)) - 1  # 1 for a pair, -1 for all others
    return -F.logsigmoid(match * logits).sum() / len(u)


def start(loss: str, batch: int, seed: int, temperature: float | None = None) -> Towers:
    """Fresh towers: CLIP at τ = 0.07, SigLIP at τ = 0.1 and the bias b = -log(B - 1) that suits the batch.

    With cosines of 0 an image's loss is log(1 + e^-b) + (B - 1) log(1 + e^b), least at that b: e^b are the
    odds of a match. The paper's b = -10 suits a batch of some 22,000.

    - temperature: None = learned from there on; else it stays at this value
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        tau = temperature or (0.07 if loss == "CLIP" else 0.1)
        model = Towers(-math.log(tau), -math.log(batch - 1) if loss == "SigLIP" else 0.0)
    model.t.requires_grad_(temperature is None)
    return model


def train(
    model: Towers, loss: str, images: Tensor, words: Tensor, steps: int, batch: int, seed: int, rate: float
) -> list[float]:
    """Train in place, AdamW with one cycle of the learning rate; the losses, one a step.

    1/τ is kept at 100 or below, and has no weight decay, nor has the bias.
    """
    own = [model.t, model.bias]
    others = [weight for weight in model.parameters() if all(weight is not one for one in own)]
    groups = [{"params": others}, {"params": own, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=rate, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps, pct_start=0.1)
    draw, values = torch.Generator().manual_seed(seed), []
    model.train()
    for _ in range(steps):
        at = torch.randint(len(images), (batch,), generator=draw)
        u, v = model(images[at], words[at])
        value = symmetric(u, v, model.t) if loss == "CLIP" else siglip_loss(u, v, model)
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        schedule.step()
        model.t.data.clamp_(max=math.log(100))
        values.append(value.item())
    model.eval()
    return values


def classes_by(model: Towers, names: Sequence[str], prompts: Sequence[str]) -> Tensor:
    """One unit vector a class, the mean over its prompts: (classes, 64)."""
    vectors = [F.normalize(model.text(tokens([p.format(n) for n in names], length=LENGTH))) for p in prompts]
    return F.normalize(torch.stack(vectors).mean(dim=0))


@torch.no_grad()
def measured(model: Towers, train_set: data.ImageSet, test_set: data.ImageSet) -> dict[str, float]:
    """Retrieval, zero-shot accuracy, linear probes and the gap, of the test images with full captions.

    The first half of the test images is `validation`, by recall alone; the rest is measured on the second.
    """
    model.eval()
    said = facts(test_set)
    u, v = model(test_set.images, tokens(captions(said, seed=1), length=LENGTH))
    half = len(test_set) // 2
    found = {"validation": recall_at(u[:half] @ v[:half].T, 1)}
    u, v, later = u[half:], v[half:], test_set.subset(slice(half, None))
    for way, table in (("image to text", u @ v.T), ("text to image", v @ u.T)):
        found |= {f"{way}, recall@{k}": recall_at(table, k) for k in (1, 5)}
    classes = classes_by(model, test_set.class_names, [PROMPT])
    found["zero-shot"] = float(((u @ classes.T).argmax(dim=1) == later.labels).float().mean())
    few = train_set.subset(slice(0, 1000))
    features = [model.image[0](of.images.float() / 127.5 - 1) for of in (few, later)]
    shapes = [_numbers(facts(of)["shape"]) for of in (few, later)]
    found["probe of texture"] = measures.linear_probe(features[0], few.labels, features[1], later.labels)
    found["probe of shape"] = measures.linear_probe(features[0], shapes[0], features[1], shapes[1])
    found |= {"gap": measures.modality_gap(u, v), "scale": float(model.t.exp()), "bias": float(model.bias)}
    return found


def pairs(number: int = 2000, seed: int = 0, **said: Any) -> tuple[data.ImageSet, Tensor]:
    """Training scenes and the word numbers of their captions; said: of `captions`."""
    scenes = data.load("scenes", limit=number, size=SIZE)
    return scenes, tokens(captions(facts(scenes), seed=seed, **{"left_out": LEFT_OUT} | said), length=LENGTH)


def _numbers(names: pd.Series) -> Tensor:
    """Names -> numbers of the sorted names, (N,) int64."""
    return torch.from_numpy(names.astype("category").cat.codes.to_numpy("int64"))


@torch.no_grad()
def positions(model: Towers, test_set: data.ImageSet, number: int = 150) -> np.ndarray:
    """Images and captions along the two strongest directions of both clouds together: (2, number, 2)."""
    few = test_set.subset(slice(0, number))
    z = torch.cat(model(few.images, tokens(captions(facts(few), seed=1), length=LENGTH)))
    centred = z - z.mean(dim=0)
    directions = torch.linalg.svd(centred, full_matrices=False).Vh[:2]
    return (centred @ directions.T).view(2, number, 2).numpy()

"""PiNDA's experiments, as notebooks 09 and 10 repeat them in small and `benchmarks/pinda.py` records them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from clutils import losses, measures, training, views
from clutils.course.pinda import detectors
from clutils.course.pinda import maps as noise_maps
from clutils.data import ImageSet, VectorSet

TEMPERATURE = 0.1  # the paper's, on all its data
NEIGHBOURS = 5  # likewise
SHOWN = ("network", "positive", "padding", "on", "distribution")


def learned_maps(
    train: ImageSet,
    test: ImageSet,
    settings: Mapping[str, Any],
    augmentation: str = "simclr",
    steps: int = 400,
    batch_size: int = 64,
    seed: int = 0,
    frozen: bool = False,
    every: int | None = None,
) -> tuple[training.Run, noise_maps.Watch, dict[str, Any]]:
    """Train PiNDA and measure its maps on `test`, which has masks -> the run, what was watched, and a row.

    - settings: of `methods.PiNDA`
    - augmentation: of `views.PRESETS`; "none" = algorithm 1 with the identity
    - frozen: encoder and head stay as they were initialised, and the generator alone learns
    - every: keep the maps of `test` after so many steps, too; None = only before the first and after the last

    The row: `object` and `outline`, the mean AUROC per picture of the scale (mean over channels), with
    bootstrap intervals over pictures; the same of `indifference`, of the encoder at the end; `object_before`,
    of the untrained generator; `contrast`, standard deviation over mean of a map, averaged over pictures;
    `noise`, the root mean square of ε over the last tenth of the steps.
    """
    run = training.Run(
        method="pinda",
        loss=losses.NTXent(TEMPERATURE),
        data=train,
        augmentation=views.preset(augmentation, train.images.shape[-1]),
        steps=steps,
        batch_size=batch_size,
        seed=seed,
        method_settings=settings,
    )
    if frozen:
        run.method.method.requires_grad_(False)
    watch = noise_maps.Watch(test, every or steps)
    watch.take(run)
    run.finish(watch, progress=False)
    before, after = (watch.taken[step][0].mean(dim=1) for step in (0, steps))
    blind = noise_maps.indifference(run.encoder, test.images)
    told = noise_maps.measure({"scale": after, "indifference": blind, "before": before}, test.masks)
    told = told.set_index("map")
    last = max(1, steps // 10)
    row: dict[str, Any] = {
        "augmentation": augmentation,
        **{name: getattr(run.method, name) for name in SHOWN},
        "learned_mean": run.method.learned_mean,
        "rms": run.method.rms or 0.0,
        "penalty": run.method.penalty,
        "frozen": frozen,
        "batch_size": batch_size,
        "steps": run.steps_done,
        "seed": seed,
    }
    for what in ("object", "outline"):
        row |= {f"{what}{end}": told.loc["scale", f"{what}{end}"] for end in ("", "_low", "_high")}
        row[f"{what}_before"] = told.loc["before", what]
        row[f"{what}_indifference"] = told.loc["indifference", what]
    row["contrast"] = (after.flatten(1).std(dim=1) / after.flatten(1).mean(dim=1)).mean().item()
    row["noise"] = float(run.history["noise"].tail(last).mean())
    row["loss"] = float(run.history["loss"].tail(last).mean())
    return run, watch, row


def along(watch: noise_maps.Watch, test: ImageSet) -> list[dict[str, Any]]:
    """The measure at each step that `watch` kept, as rows: the mean AUROC of the scale against the object,
    over all pictures of `test`, over those whose object is plain (without a texture), and over the others;
    and the `contrast` of the maps. For generated scenes, whose classes are textures.
    """
    plain = test.labels == test.class_names.index("plain")
    rows = []
    for step in sorted(watch.taken):
        maps = watch.taken[step][0].mean(dim=1)
        each, flat = detectors.auroc(maps, test.masks), maps.flatten(1)
        rows.append(
            {
                "step": step,
                "object": each.mean().item(),
                "object_plain": each[plain].mean().item(),
                "object_textured": each[~plain].mean().item(),
                "contrast": (flat.std(dim=1) / flat.mean(dim=1)).mean().item(),
            }
        )
    return rows


CONTENDERS: dict[str, tuple[str, dict[str, Any]]] = {
    "no noise": ("simclr", {}),
    "random noise, σ = 0.1": ("pinda", {"network": "fixed", "start": 0.1}),
    "random noise, σ = 0.3": ("pinda", {"network": "fixed", "start": 0.3}),
    "random noise, σ = 1": ("pinda", {"network": "fixed", "start": 1.0}),
    "SimCL": ("simcl", {}),
    "CLAE": ("clae", {}),
    "PiNDA, μ = 0": ("pinda", {"noise_rate": 1.0}),
    "PiNDA, μ learned": ("pinda", {"noise_rate": 1.0, "learned_mean": True}),
    "PiNDA, λ = 1": ("pinda", {"noise_rate": 1.0, "penalty": 1.0}),  # the paper has none on vectors
    "PiNDA, λ = 0.1": ("pinda", {"noise_rate": 1.0, "penalty": 0.1}),
}


def does_it_help(
    contender: str,
    train: ImageSet | VectorSet,
    test: ImageSet | VectorSet,
    augmentation: str | None = None,
    steps: int = 200,
    batch_size: int = 128,
    seed: int = 0,
    labels: int = 100,
) -> tuple[training.Run, dict[str, Any]]:
    """Train one of `CONTENDERS` -> the run, and a row: what its features are worth on the test part.

    - augmentation: of `views.PRESETS`, of both views, with PiNDA's noise on top of view one; None = none
    - labels: how many labelled inputs the small probe is told

    The row: `knn`, `probe` and `probe_few` of `worth`; `noise` and `loss` at the end; `step_seconds`, median.
    """
    method, settings = CONTENDERS[contender]
    pictures = isinstance(train, ImageSet)
    augment = None
    if pictures:
        augment = views.preset(augmentation or "none", train.images.shape[-1])
        if method == "pinda" and augmentation:
            settings = {**settings, "on": "view"}
    run = training.Run(
        method=method,
        loss=losses.NTXent(TEMPERATURE),
        data=train,
        augmentation=augment,
        steps=steps,
        batch_size=batch_size,
        seed=seed,
        method_settings=settings,
    )
    run.finish(progress=False)
    took = run.history["seconds"].diff().median() if run.steps_done > 1 else run.history["seconds"].iloc[0]
    return run, {
        "contender": contender,
        "augmentation": augmentation or "none",
        "encoder": "conv16" if pictures else "mlp",
        "batch_size": batch_size,
        "steps": run.steps_done,
        "seed": seed,
        **worth(run.embed(train), train.labels, run.embed(test), test.labels, labels),
        "noise": float(run.history["noise"].iloc[-1]) if "noise" in run.history else 0.0,
        "loss": float(run.history["loss"].tail(max(1, steps // 10)).mean()),
        "step_seconds": float(took),
    }


def worth(
    z: torch.Tensor, y: torch.Tensor, z_test: torch.Tensor, y_test: torch.Tensor, labels: int = 100
) -> dict[str, float]:
    """Accuracy on the test part, z (N, D) and y (N,): `knn` (cosine, k = 5 as in the paper), `probe` (softmax
    regression on all labels) and `probe_few` (on the first `labels`)."""
    return {
        "knn": measures.knn_accuracy(z, y, z_test, y_test, k=NEIGHBOURS),
        "probe": measures.linear_probe(z, y, z_test, y_test),
        "probe_few": measures.linear_probe(z[:labels], y[:labels], z_test, y_test),
    }


def task_entropy(loss: torch.Tensor) -> torch.Tensor:
    r"""Entropy in nats of PiNDA's auxiliary Gaussian N(0, 1/γ) with γ = e^{-ℓ}: ½ log 2πe + ℓ/2.

    (arXiv 2408.09929, eqs. 7 to 9.) loss: ℓ per anchor, any shape.
    """
    return 0.5 * (1 + torch.log(torch.tensor(2 * torch.pi, dtype=loss.dtype))) + 0.5 * loss

"""SimCLR and SimCLR + PiNDA for so many minutes each, at the paper's size: for a GPU.

    python benchmarks/gpu.py folder:PATH --test folder:OTHER --minutes 10 --out runs/gpu
    python benchmarks/gpu.py cifar10 --minutes 10 --out runs/gpu
    python benchmarks/gpu.py scenes --encoder conv16 --network conv --minutes 0.2          on a CPU

ResNet-18 with the 3x3 stem, batch 256, τ = 0.1, the generator a ResNet-18 with a decoder. The number of steps
is set from a trial of 20 steps, so that the learning rate's course ends when the minutes do. Prints, and with
--out writes as JSON: steps, seconds, pictures a second, peak memory, kNN (k = 5, 10, 200) and probe on the
test pictures at the last step; and a page of PiNDA's maps as PNG.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from clutils import data, figures, losses, measures, noise_maps, records, training
from clutils.figures import pinda

TRIAL = 20


def begun(method: str, options: argparse.Namespace, train: data.ImageSet, steps: int) -> training.Run:
    learned = {"network": options.network, "on": "view", "penalty": options.penalty}
    return training.Run(
        method=method,
        loss=losses.NTXent(0.1),
        data=train,
        encoder=options.encoder,
        batch_size=options.batch_size,
        steps=steps,
        seed=options.seed,
        learning_rate=options.learning_rate,
        method_settings=learned if method == "pinda" else {},
    )


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def measured(
    method: str, options: argparse.Namespace, train: data.ImageSet, test: data.ImageSet
) -> tuple[training.Run, dict[str, Any]]:
    trial = begun(method, options, train, 10 * TRIAL)
    for step in range(TRIAL + 3):
        if step == 3:  # the first steps choose algorithms and take memory
            wait()
            began = time.perf_counter()
        trial.step()
    wait()
    steps = max(TRIAL, round(60 * options.minutes * TRIAL / (time.perf_counter() - began)))
    del trial
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    run = begun(method, options, train, steps)
    began = time.perf_counter()
    run.finish()
    wait()
    seconds = time.perf_counter() - began
    bank, z = run.embed(train), run.embed(test)
    row = {"method": method, "steps": steps, "seconds": seconds}
    row["pictures_per_s"] = steps * options.batch_size / seconds
    row["peak_gib"] = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else None
    for k in (5, 10, 200):
        row[f"knn_{k}"] = measures.knn_accuracy(bank, train.labels, z, test.labels, k=min(k, len(bank)))
    row["probe"] = measures.linear_probe(bank, train.labels, z, test.labels)
    return run, row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("source", nargs="?", default="cifar10")
    parser.add_argument("--test", help="folder of the test pictures; default: the source's split 'test'")
    parser.add_argument("--minutes", type=float, default=10.0, help="for each of the two")
    parser.add_argument("--encoder", default="resnet18")
    parser.add_argument("--network", default="resnet18", help="the generator's")
    parser.add_argument("--penalty", type=float, default=3.0)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--learning-rate", type=float, default=1e-3, help="the paper's")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    train = data.load(options.source)
    test = data.load(options.test) if options.test else data.load(options.source, "test")
    rows = []
    for method in ("simclr", "pinda"):
        run, row = measured(method, options, train, test)
        rows.append(row)
        print(*(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()), flush=True)
    shown = test.images[:8]
    drawn = run.method.noise.eval()(shown.to(run.device), torch.Generator().manual_seed(0))
    scale = noise_maps.of(run.method.noise, shown)[0]
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        page = pinda.noise(shown, scale, drawn.sample.detach().cpu())
        (options.out / "noise_maps.png").write_bytes(figures.png(page))
        settings = {name: str(value) for name, value in vars(options).items()}
        kept = {"rows": rows, "settings": settings, "device": str(run.device)} | records.provenance()
        (options.out / "gpu.json").write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()

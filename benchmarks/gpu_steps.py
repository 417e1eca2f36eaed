"""What a training step asks of a GPU, counted without one: launches, copies and waits.

    python benchmarks/gpu_steps.py [--record]

The tests' pretend GPU (tests/on_a_gpu/pretend_cuda.py) counts the second step of each method, in bfloat16 on
64 images of 32x32, with conv16; of three methods with ResNet-18; and with losses that mix or count their
negatives. A launch is an operation that computes, so one kernel at least; a copy counts as waiting unless it
was asked not to. --record adds the rows to benchmarks/records/gpu_steps.csv.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from clutils import data, losses, methods, training
from clutils.course import records

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.on_a_gpu.pretend_cuda import pretend_cuda

BATCH = 64
CASES = (
    *((method, "conv16", None) for method in methods.catalogue()),
    *((method, "resnet18", None) for method in ("simclr", "moco", "byol")),
    *(("simclr", "conv16", loss) for loss in ("MoCHi", "SSCL", "Debiased", "AttentionNCE")),
    ("moco", "conv16", "MoCHi"),
)
MIXING = {"MoCHi": {"hardest": 64, "synthetic": 32, "query_mixed": 16}}  # of 126 negatives
KINDS = {
    "launches": "launch",
    "to_device": "to device",
    "to_device_not_waiting": "to device, not waiting",
    "to_host": "to host",
    "waits": "wait",
}


def counted(method: str, encoder: str, loss: str | None) -> dict[str, object]:
    """One row: what the second step asked for."""
    made = None if loss is None else losses.catalogue()[loss].cls(**MIXING.get(loss, {}))
    pictures = data.load("scenes", limit=2 * BATCH)
    with pretend_cuda() as traffic:
        run = training.Run(
            method, made, pictures, encoder, steps=5, batch_size=BATCH, device="cuda", precision="bfloat16"
        )
        run.step()
        traffic.clear()
        run.step()
        return {
            "method": method,
            "encoder": encoder,
            "loss": loss or type(run.loss).__name__,
            "batch_size": BATCH,
            **{column: traffic.count(kind) for column, kind in KINDS.items()},
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    for case in CASES:
        row = {"command": "python benchmarks/gpu_steps.py --record"} | counted(*case)
        records.keep("gpu_steps", row, options.record)


if __name__ == "__main__":
    main()

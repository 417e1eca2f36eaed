"""Time and memory of the losses, forward and backward, beside plain lines of PyTorch and published libraries.

    git worktree add /tmp/before bd1ea0e             once, for --before
    python benchmarks/losses.py                      every loss, three quarters of an hour on one core
    python benchmarks/losses.py --losses NTXent CLIP --batch-sizes 64 1024 --before /tmp/before
    python benchmarks/losses.py --record             also into benchmarks/records/loss_speed.csv

Embeddings of 128 dimensions in float32, one thread of a CPU. Each loss is measured beside

- plain lines: what one would write in a cell for it, a whole table of similarities and no check of anything
- ready-made tables: its own formula on tensors that three plain lines make, without checks, Batch and blocks;
  where it compares others than both views with all others, on what its own `pair_up` makes
- lightly and pytorch-metric-learning, where they have it and it fits (theirs takes 34 GB at 1,024 pairs)
- with --before: itself in a checkout of an earlier commit

First the rival's value has to be ours. Ours and the rival take turns, these two alone: a third that fills the
caches, as pytorch-metric-learning's NT-Xent does, would slow the one behind it. A time is the CPU time of the
process, the median of all turns, so that what else runs on the machine counts little: trust the ratio. Peak
memory is what all tensors hold at once beyond the embeddings, counted by torch's profiler in one forward and
backward.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils import losses, similarities
from clutils.course import records
from clutils.similarities import Batch, Pairs

NAME, DIMENSION = "loss_speed", 128
SIZES = (64, 128, 256, 512, 1024, 2048, 4096)
FAMILY_SIZES = (64, 256, 1024)  # of the losses that nobody else has
TURNS = {64: 300, 128: 150, 256: 150, 512: 25, 1024: 10, 2048: 5, 4096: 3}
LARGEST_OF_METRIC_LEARNING = 64  # at 256 a call takes seconds
SETTINGS: dict[str, dict[str, Any]] = {"MoCHi": {"hardest": 64, "synthetic": 32, "query_mixed": 16}}
PARTS = {"lightly": "lightly", "commit": "before"}  # of the record
Contender = Callable[[Tensor, Tensor], Tensor]


# ---- plain lines: z1, z2 (B, 128), and our loss for its settings -------------------------------------------


def nt_xent(z1: Tensor, z2: Tensor, loss: Any) -> Tensor:
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    logits = (z @ z.T / loss.temperature).fill_diagonal_(-math.inf)
    return F.cross_entropy(logits, torch.arange(len(z)).roll(len(z1)))


def table(z1: Tensor, z2: Tensor) -> tuple[Tensor, Tensor]:
    """Positives (2B,), and negatives (2B, 2B) with -inf in place of an anchor's own image."""
    z, own = F.normalize(torch.cat([z1, z2]), dim=1), torch.arange(len(z1)).repeat(2)
    negatives = (z @ z.T).masked_fill(own[:, None] == own, -math.inf)
    return (z * z.roll(len(z1), 0)).sum(dim=1), negatives


def decoupled(z1: Tensor, z2: Tensor, loss: Any) -> Tensor:
    positives, negatives = table(z1, z2)
    return ((negatives / loss.temperature).logsumexp(dim=1) - positives / loss.temperature).mean()


def flatnce(z1: Tensor, z2: Tensor, loss: Any) -> Tensor:
    positives, negatives = table(z1, z2)
    c = (negatives / loss.temperature).logsumexp(dim=1) - positives / loss.temperature
    return (c - c.detach()).exp().mean()


def macl(z1: Tensor, z2: Tensor, loss: Any) -> Tensor:
    positives, negatives = table(z1, z2)
    mean = positives.mean().detach()
    tau = loss.temperature * (1 + loss.alpha * (mean - loss.alignment_threshold))
    c = (negatives / tau).logsumexp(dim=1) - positives / tau
    return (F.softplus(c) / c.sigmoid().detach()).mean()


def debiased(z1: Tensor, z2: Tensor, loss: Any) -> Tensor:
    positives, negatives = table(z1, z2)
    pos, neg = (positives / loss.temperature).exp(), (negatives / loss.temperature).exp()
    return estimated(pos, neg.sum(dim=1), loss)


def hard_negative(z1: Tensor, z2: Tensor, loss: Any) -> Tensor:
    positives, negatives = table(z1, z2)
    pos, neg = (positives / loss.temperature).exp(), (negatives / loss.temperature).exp()
    weights = neg**loss.beta
    return estimated(pos, (weights * neg).sum(dim=1) * (len(neg) - 2) / weights.sum(dim=1), loss)


def estimated(pos: Tensor, total: Tensor, loss: Any) -> Tensor:
    N, prior = len(pos) - 2, loss.class_prior
    Ng = ((total - N * prior * pos) / (1 - prior)).clamp(min=N * math.exp(-1 / loss.temperature))
    return -(pos / (pos + Ng)).log().mean()


def sup_con(z1: Tensor, z2: Tensor, loss: Any) -> Tensor:
    z, y = F.normalize(torch.cat([z1, z2]), dim=1), classes(len(z1)).repeat(2)
    logits = (z @ z.T / loss.temperature).fill_diagonal_(-math.inf)
    same = (y[:, None] == y).fill_diagonal_(False)
    log_p = logits - logits.logsumexp(dim=1, keepdim=True)
    return -(log_p.masked_fill(~same, 0.0).sum(dim=1) / same.sum(dim=1)).mean()


def clip(z1: Tensor, z2: Tensor, loss: Any) -> Tensor:
    logits = F.normalize(z1, dim=1) @ F.normalize(z2, dim=1).T / loss.temperature
    own = torch.arange(len(z1))
    return (F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)) / 2


def triplet(z1: Tensor, z2: Tensor, loss: Any) -> Tensor:
    positives, negatives = table(z1, z2)
    hinges = (loss.margin + 2 * negatives - 2 * positives[:, None]).clamp(min=0)
    return hinges.sum(dim=1).mean() / (len(positives) - 2)


def sig_lip(z1: Tensor, z2: Tensor, loss: Any) -> Tensor:
    logits = F.normalize(z1, dim=1) @ F.normalize(z2, dim=1).T / loss.temperature + loss.bias
    signs = 2 * torch.eye(len(z1)) - 1
    return -F.logsigmoid(signs * logits).sum() / len(z1)


def nnclr(z1: Tensor, z2: Tensor, loss: Any) -> Tensor:
    z1, z2, own = F.normalize(z1, dim=1), F.normalize(z2, dim=1), torch.arange(len(z1))
    logits = (near @ z.T / loss.temperature for near, z in ((z1.detach(), z2), (z2.detach(), z1)))
    return torch.stack([F.cross_entropy(each, own) for each in logits]).mean()


def ready_made(z1: Tensor, z2: Tensor, loss: Any) -> Tensor:
    """The loss's formula, in tables that nothing has checked."""
    if loss.normalised and loss.level != "batch":
        z1, z2 = F.normalize(z1, dim=1), F.normalize(z2, dim=1)
    else:
        z1, z2 = loss.prepare(z1, z2)
    labelled = isinstance(loss, losses.SupCon)
    if loss.comparison == "both views" and type(loss).pair_up is losses.Loss.pair_up and not labelled:
        table = torch.cat([z1, z2]) @ torch.stack([z1, z2], dim=1).flatten(0, 1).T
        positives = (z1 * z2).sum(dim=1, keepdim=True).repeat(2, 1)
        return loss.formula(Pairs(positives, similarities.without_own(table, len(z1), views=2))).mean()
    labels = classes(len(z1)) if labelled else None
    return loss.formula(loss.pair_up(Batch(z1, z2, labels, drawn=loss.draw(2 * len(z1), z1)))).mean()


def as_written(z1: Tensor, z2: Tensor, loss: Any) -> Tensor:
    return loss.as_written(z1, z2, **{name: getattr(loss, name) for name in loss.hyperparameters()})


PLAIN: dict[str, Callable[[Tensor, Tensor, Any], Tensor]] = {
    **{"NTXent": nt_xent, "Decoupled": decoupled, "FlatNCE": flatnce, "MACL": macl},
    **{"Debiased": debiased, "HardNegative": hard_negative, "SupCon": sup_con, "CLIP": clip},
    **{"Triplet": triplet, "SigLIP": sig_lip},
    "NNCLR": nnclr,  # without a queue each is its own neighbour, which its equation would look for
    # the paper's equation, which these have of whole views
    **dict.fromkeys(("NPair", "Spectral", "BarlowTwins", "VICReg", "Regression"), as_written),
}
LIGHTLY = {"NTXent": "NTXentLoss", "Decoupled": "DCLLoss", "WeightedDecoupled": "DCLWLoss"}
METRIC_LEARNING = {"NTXent": "NTXentLoss", "SupCon": "SupConLoss"}


# ---- who is measured ---------------------------------------------------------------------------------------


def classes(batch: int) -> Tensor:
    """Labels of a batch: four images of each class."""
    return torch.arange(batch) // 4


def built(name: str, module: ModuleType = losses) -> Any:
    """One of our losses, with its own defaults, and the same draws and samples each time it is made."""
    loss = getattr(module, name)(**SETTINGS.get(name, {}))
    if hasattr(loss, "generator"):
        loss.generator = torch.Generator().manual_seed(0)
    return loss


def called(name: str, loss: Any, batch: int) -> Contender:
    """Our loss as it is called: with labels where it is SupCon, with the samples' numbers where it asks."""
    if name == "SupCon":
        return lambda z1, z2: loss(z1, z2, labels=classes(batch))
    if "index" in loss.accepts:
        loss.allocate(batch)
        return lambda z1, z2: loss(z1, z2, index=torch.arange(batch))
    return loss


def rivals(name: str, batch: int) -> dict[str, Contender]:
    """The same loss as others have it, by name."""
    found: dict[str, Contender] = {}
    loss = built(name)
    if name in PLAIN:
        found["plain lines"] = lambda z1, z2: PLAIN[name](z1, z2, loss)
    bare = built(name)
    bare.check_inputs = False
    if "index" in bare.accepts:
        bare.allocate(batch)
        bare.samples = torch.arange(batch)
    found["ready-made tables"] = lambda z1, z2: ready_made(z1, z2, bare)
    if name in LIGHTLY:
        import lightly.loss

        found[f"lightly {LIGHTLY[name]}"] = getattr(lightly.loss, LIGHTLY[name])(loss.temperature)
    if name in METRIC_LEARNING and batch <= LARGEST_OF_METRIC_LEARNING:
        from pytorch_metric_learning import losses as theirs

        of_theirs = getattr(theirs, METRIC_LEARNING[name])(loss.temperature)
        labels = (classes(batch) if name == "SupCon" else torch.arange(batch)).repeat(2)
        found["pytorch-metric-learning"] = lambda z1, z2: of_theirs(torch.cat([z1, z2]), labels)
    return found


def earlier(checkout: Path) -> tuple[str, ModuleType]:
    """The losses of another checkout beside these, and 'commit ...' of it."""
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    ours = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "clutils"}
    sys.path.insert(0, str(checkout))
    try:
        from clutils import losses as before
    finally:
        sys.path.pop(0)
        for name in [name for name in sys.modules if name.split(".")[0] == "clutils"]:
            del sys.modules[name]
        sys.modules.update(ours)
    assert Path(str(before.__file__)).is_relative_to(checkout)
    return f"commit {commit}", before


# ---- how -------------------------------------------------------------------------------------------------


def embeddings(batch: int) -> tuple[Tensor, Tensor]:
    """Views that resemble each other, as those of an encoder do: cosines of 0.7 or so."""
    draw = torch.Generator().manual_seed(0)
    z1, z2 = torch.randn(2, batch, DIMENSION, generator=draw) / math.sqrt(DIMENSION)
    return z1.requires_grad_(), (z1 + z2).detach().requires_grad_()


def seconds(loss: Contender, z1: Tensor, z2: Tensor) -> float:
    """CPU time of a forward and a backward."""
    z1.grad = z2.grad = None
    began = time.process_time()
    loss(z1, z2).backward()
    return time.process_time() - began


def in_turns(contenders: dict[str, Contender], batch: int) -> dict[str, float]:
    """Milliseconds of each, the median of all turns."""
    z1, z2 = embeddings(batch)
    turns = [{name: seconds(of, z1, z2) for name, of in contenders.items()} for _ in range(TURNS[batch])]
    return {name: 1e3 * median(turn[name] for turn in turns) for name in contenders}


def peak(loss: Contender, batch: int) -> float:
    """Megabytes of tensors, at most, that a forward and a backward hold at once beyond their input."""
    z1, z2 = embeddings(batch)
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profiled:
        loss(z1, z2).backward()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profiled.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    taken = sorted((e["ts"], e["args"]["Bytes"]) for e in events if e.get("name") == "[memory]")
    return max(accumulate(size for _, size in taken)) / 1e6


def measure(name: str, batch: int, before: tuple[str, ModuleType] | None) -> list[dict[str, Any]]:
    """A row for each rival, in one run."""
    ours, beside = called(name, built(name), batch), rivals(name, batch)
    z1, z2 = embeddings(batch)
    for rival, of in beside.items():
        torch.testing.assert_close(of(z1, z2), ours(z1, z2), rtol=1e-3, atol=1e-4, msg=f"{name}: {rival}")
    if before:
        commit, module = before
        beside[commit] = called(name, built(name, module), batch)
    memory = peak(ours, batch)
    rows = []
    for rival, of in beside.items():
        times = in_turns({"ours": ours, rival: of}, batch)
        row: dict[str, Any] = {"part": PARTS.get(rival.split()[0], rival), "loss": name, "beside": rival}
        row |= {"batch_size": batch, "dimension": DIMENSION, "repeats": TURNS[batch], "threads": 1}
        row |= {"milliseconds": times["ours"], "milliseconds_beside": times[rival]}
        row |= {
            "time_ratio": times["ours"] / times[rival],
            "peak_mb": memory,
            "peak_mb_beside": peak(of, batch),
        }
        row["memory_ratio"] = memory / row["peak_mb_beside"]
        rows.append({k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in row.items()})
    return rows


def line(row: dict[str, Any]) -> str:
    took = f"{row['milliseconds']:.4g} : {row['milliseconds_beside']:.4g} = {row['time_ratio']:.2f}"
    memory = f"{row['peak_mb']:.4g} : {row['peak_mb_beside']:.4g} = {row['memory_ratio']:.2f}"
    return f"{row['loss']:<18}{row['beside']:<26}{row['batch_size']:>5}{took:>26}{memory:>26}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--batch-sizes", type=int, nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--losses", nargs="+", choices=tuple(losses.catalogue()), help="default: all")
    parser.add_argument("--before", type=Path, help="a checkout of an earlier commit, to be measured beside")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="lightly")
    warnings.filterwarnings("ignore", message="To copy construct")
    before = earlier(options.before.resolve()) if options.before else None
    print(f"{'loss':<18}{'beside':<26}{'pairs':>5}{'ms : ms = ratio':>26}{'MB : MB = ratio':>26}")
    for batch in options.batch_sizes:
        for name in options.losses or losses.catalogue():
            alone = list(rivals(name, batch)) == ["ready-made tables"]
            if alone and batch not in FAMILY_SIZES:
                continue
            for row in measure(name, batch, before):
                print(line(row), flush=True)
                if options.record:
                    command = f"python benchmarks/losses.py --record --losses {name} --batch-sizes {batch}"
                    command += " --before CHECKOUT" * bool(before)
                    records.append(NAME, {"command": command, **row})


if __name__ == "__main__":
    main()

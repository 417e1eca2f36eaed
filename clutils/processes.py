r"""Data-parallel training, as `torchrun --nproc-per-node 2 -m clutils train ...` starts it.

Every process makes the same views of the whole batch, by the same seeds, and sends its share of them through
the encoder: of W processes, process r takes every W-th image from the r-th on, in all of its views. The
features are gathered, and from there on each process computes the same: head, loss, queue, batch statistics.
So a loss sees what it would see in one process, whatever it is made of (its negatives, MACL's alignment), and
a queue or a noise generator is in step without being sent around.

$$\nabla_\theta = \frac1W\sum_r \nabla_\theta^{(r)}$$

Of the features' gradient, which all processes have whole, each sends W times its own rows back through the
encoder: then the mean over processes is the gradient of one process, for a weight before the gathering
(the sum of the shares) and for one behind it (W times the same) alike. `training.step` takes that mean.

What differs from one process: batch normalisation within the encoder sees a process's own share, and its
running statistics are the mean over processes.
"""

import datetime
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor
from torch import distributed as group

PATIENCE = datetime.timedelta(minutes=5)  # for the others' part of a step: after it they count as gone
DOWNLOAD = datetime.timedelta(hours=12)  # for the first one's download
_unhurried: group.ProcessGroup | None = None  # by gloo, whose barrier may take that long; NCCL's would not


def number() -> int:
    """Number of processes that train this run."""
    return group.get_world_size() if _several() else 1


def rank() -> int:
    """Rank of this process, from 0; process 0 writes the files and prints."""
    return group.get_rank() if _several() else 0


@contextmanager
def process_group(device: str | None = None) -> Iterator[int]:
    """Join the processes that torchrun started beside this one, and leave them at the end; gives the rank.

    - device: as for `training.device`; with "cuda", or None where there is CUDA, each process gets a GPU of
      its own, and NCCL connects them (which has not been tried); else gloo does

    Started in another way, or joined already, it does nothing. Raises ValueError where GPUs are too few, and
    for one GPU by its number, which all the processes would share.
    """
    global _unhurried
    launched = group.is_available() and group.is_torchelastic_launched()
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE") if launched else ():
        if not (given := os.environ.get(name, "1")).isdecimal():
            raise ValueError(f"processes: {name} is {given!r}, but torchrun sets it to a whole number")
    if not launched or _several() or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield rank()
        return
    on_gpus = torch.cuda.is_available() if device is None else str(device).partition(":")[0] == "cuda"
    settings: dict[str, Any] = {"timeout": PATIENCE}
    if on_gpus:
        if device is not None and str(device) != "cuda":
            raise ValueError(
                f"processes: device is {str(device)!r}, but each of the {os.environ['WORLD_SIZE']} processes "
                "that torchrun started takes a GPU of its own: --device cuda"
            )
        own, here = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
        if torch.cuda.device_count() < here:
            raise ValueError(
                f"processes: torchrun started {here} here, but there are {torch.cuda.device_count()} GPUs: "
                "--nproc-per-node with as many as there are, or --device cpu"
            )
        torch.cuda.set_device(own)
        settings["device_id"] = torch.device("cuda", own)
        # NCCL's calls return before they are done; one that waits ends with an error where its peer is gone
        os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")
    group.init_process_group("nccl" if on_gpus else "gloo", **settings)
    try:
        _unhurried = cast(group.ProcessGroup, group.new_group(backend="gloo", timeout=DOWNLOAD))
        yield rank()
    finally:
        _unhurried = None
        group.destroy_process_group()


@contextmanager
def first_then_others() -> Iterator[None]:
    """Process 0 first, then the others: so that it alone downloads what they then find. All must come by.

    They wait for it, and it for them at the end, as long as a slow download takes; where one dies the others
    stop at once.
    """
    if rank():
        _exchange(group.barrier, _unhurried)
    try:
        yield
    finally:
        if number() > 1 and not rank():
            _exchange(group.barrier, _unhurried)
    if number() > 1:
        _exchange(group.barrier, _unhurried)  # or the first would count those as gone that still load


def local_shard(rows: Tensor) -> Tensor:
    """Rows of this process, (N, ...) -> (N / W, ...): every W-th row, from this process's rank on.

    Raises ValueError where N is no multiple of W.
    """
    if len(rows) % number():
        raise ValueError(f"processes: {len(rows)} rows are no multiple of the {number()} processes")
    return rows if number() == 1 else rows[rank() :: number()]


def all_gather(rows: Tensor) -> Tensor:
    """Rows of all processes, (N / W, ...) of each -> (N, ...), in the order that `local_shard` took them.

    Its gradient is W times that of the process's own rows: see the top of this file.
    """
    return _Gathered.apply(rows) if number() > 1 else rows


@torch.no_grad()
def average(tensors: Iterable[Tensor]) -> None:
    """Put the mean over all processes into each of these floating-point tensors, in one exchange."""
    tensors = [tensor for tensor in tensors if tensor.is_floating_point()]
    if number() == 1 or not tensors:
        return
    together = torch.cat([tensor.flatten().float() for tensor in tensors])
    _exchange(group.all_reduce, together)
    together /= number()
    for tensor, mean in zip(tensors, together.split([t.numel() for t in tensors]), strict=True):
        tensor.copy_(mean.view(tensor.shape))


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: Tensor) -> Tensor:
        parts = [torch.empty_like(rows, memory_format=torch.contiguous_format) for _ in range(number())]
        _exchange(group.all_gather, parts, rows.contiguous())
        return torch.stack(parts, dim=1).flatten(0, 1)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        return number() * local_shard(gradient)


def _exchange(collective: Callable[..., object], *arguments: object) -> None:
    """Collective call; what torch says of a lost connection (a plain RuntimeError) as a ConnectionError."""
    try:
        collective(*arguments)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        reason = str(error).splitlines()[0].partition(". ")[0]
        raise ConnectionError(f"processes: another one has ended, so this one stops: {reason}") from error


def _several() -> bool:
    return (
        group.is_available() and group.is_initialized()
    )  # a torch without `distributed` has the first alone

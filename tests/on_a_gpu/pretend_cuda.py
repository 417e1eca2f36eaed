"""A GPU that isn't there: code that mixes devices fails here as it would on a machine that has one.

    with pretend_cuda() as waits:
        run = training.Run(data="digits", device="cuda", steps=3)
        run.step()                       # computed on the CPU; an error where CUDA would give one
    waits                                # how often the processor would have waited for the GPU, by operation

A tensor "on the GPU" is an `OnGpu`: it says that it lies on cuda:0 and holds a CPU tensor. Before an
operation is computed on what is held, its arguments are looked at as CUDA would look. torch's C++, which
would ask a driver about "cuda", is told "meta" instead.

What this cannot show: a GPU's rounding, autocast, operations without a CUDA kernel, memory, streams, times,
several GPUs, torch.compile, and waits inside libraries. It leans on private parts of torch (2.15 was tried).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import torch
from torch import Tensor
from torch.optim.optimizer import _foreach_supported_types
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

aten = torch.ops.aten
GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
NAMES = ("cuda", "meta")  # of the device, in Python and in C++
MOVES = {aten.copy_, aten._to_copy}  # may have arguments on two devices
INDEXING = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_, aten._unsafe_index}
# the processor waits until the GPU has said a value, or how many there are
WAITS = {aten._local_scalar_dense, aten.nonzero, aten.masked_select, aten.bincount, aten.equal, aten._unique2}
waits: Counter[str] = Counter()


class OnGpu(Tensor):
    """A tensor that says it is on cuda:0; `.held` is what it holds, on the CPU."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # results are what `computed` makes of them
    device, is_cuda, is_meta = (property(lambda self, answer=answer: answer) for answer in (GPU, True, False))

    @staticmethod
    def __new__(cls, held: Tensor) -> OnGpu:
        layout = {"strides": held.stride(), "storage_offset": held.storage_offset(), "dtype": held.dtype}
        made = Tensor._make_wrapper_subclass(cls, held.size(), device="meta", **layout)
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, operation, types, arguments=(), named=None):
        return computed(operation, arguments, named or {})

    def to(self, *arguments, copy=False, **named):
        device, dtype, non_blocking, form = torch._C._nn._parse_to(*arguments, **named)
        device = None if device is None or device.type in NAMES else device  # None: stay
        return super().to(device, dtype, non_blocking, copy, memory_format=form)

    def new_tensor(self, values, *, dtype=None, device=GPU, requires_grad=False):
        return torch.tensor(values, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)

    def __getitem__(self, key):
        return super().__getitem__(_indices(key))

    def __setitem__(self, key, value):
        super().__setitem__(_indices(key), value)

    def numpy(self, *_, **__):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")

    __array__ = numpy

    def tolist(self):
        waits["tolist"] += 1
        return self.held.tolist()

    def __format__(self, how: str) -> str:
        return format(self.item(), how) if self.ndim == 0 else repr(self.held)

    def __reduce_ex__(self, protocol):
        return self.held.detach().clone().requires_grad_(self.requires_grad).__reduce_ex__(protocol)


def _indices(key):
    """Lists among indices as tensors, which C++ would read from memory that is not there."""
    if isinstance(key, list):
        return torch.tensor(key)
    return tuple(map(_indices, key)) if isinstance(key, tuple) else key


class Generator(torch.Generator):
    """torch's, that remembers whether it was made for the GPU."""

    on_gpu: dict[int, Generator] = {}  # noqa: RUF012  by address, as operations are handed another object

    def __new__(cls, device="cpu"):
        made = super().__new__(cls)
        if torch.device(device).type == "cuda":
            cls.on_gpu[made._cdata] = made
        return made

    device = property(lambda self: GPU if self._cdata in self.on_gpu else CPU)


def computed(operation, arguments, named):
    """The operation's result: an error where CUDA refuses the arguments, else as on the CPU, wrapped."""
    given = [value for value in tree_leaves((arguments, named)) if isinstance(value, Tensor)]
    there = [tensor for tensor in given if isinstance(tensor, OnGpu)]
    here = [tensor for tensor in given if not isinstance(tensor, OnGpu)]
    asked, generator = named.get("device"), named.get("generator")
    on_gpu = bool(there) if asked is None else torch.device(asked).type in NAMES
    if generator is not None and (generator._cdata in Generator.on_gpu) != on_gpu:
        raise RuntimeError(f"Expected a {'cuda' if on_gpu else 'cpu'!r} device type for generator")
    if not there and not on_gpu:
        return operation(*arguments, **named)
    packet = operation.overloadpacket
    if there and here and packet not in MOVES:
        _refuse_mixed(operation, arguments, here)
    to_host = packet is aten._to_copy and not on_gpu and not named.get("non_blocking")
    by_mask = packet in INDEXING and any(
        t.dtype is torch.bool for t in tree_leaves(arguments[1]) if t is not None
    )
    waits[str(packet)] += to_host or by_mask or packet in WAITS
    as_given = {id(t): t for t in here} | {id(t.held): t for t in there}  # written in place, or to out=

    def wrapped(value):
        if id(value) in as_given:
            return as_given[id(value)]
        return OnGpu(value) if on_gpu and isinstance(value, Tensor) else value

    arguments, named = tree_map(lambda x: x.held if isinstance(x, OnGpu) else x, (arguments, named))
    if asked is not None:
        named = {**named, "device": CPU}
    if named.get("pin_memory"):  # there is no driver that could
        named = {**named, "pin_memory": False}
    return tree_map(wrapped, operation(*arguments, **named))


def _refuse_mixed(operation, arguments, here) -> None:
    """Raise where CUDA does: it takes CPU tensors as indices, and single numbers in pointwise operations."""
    indexing = operation.overloadpacket in INDEXING
    first = operation._schema.arguments[0].alias_info
    fine = [t for t in here if t.ndim == 0 and torch.Tag.pointwise in operation.tags]
    if indexing:
        fine = [*tree_leaves(arguments[1]), *(t for t in arguments[2:3] if t.ndim == 0)]
    written = (indexing or (first and first.is_write)) and any(t is arguments[0] for t in here)
    if written or any(all(t is not f for f in fine) for t in here):
        name = operation._schema.name
        raise RuntimeError(f"Expected all tensors to be on the same device, not cuda:0 and cpu: {name}")


class _Operations(TorchDispatchMode):
    """What has no `OnGpu` among its arguments: torch.zeros(3, device="cuda"), x.to("cuda")."""

    def __torch_dispatch__(self, operation, types, arguments=(), named=None):
        return computed(operation, arguments, named or {})


@contextmanager
def pretend_cuda(**says: object) -> Iterator[Counter[str]]:
    """Context manager: "cuda" is there, also in threads that start meanwhile. Gives the waits, from 0 on.

    - says: what functions of torch.cuda answer, by name, where it is not what a large GPU would say
    """
    run = threading.Thread.run

    def run_within(thread):
        torch._C._set_only_lift_cpu_tensors(True)  # as below: it is a thread's own
        with _Operations():
            run(thread)

    silent = ("_lazy_init", "empty_cache", "reset_peak_memory_stats", "set_device", "synchronize")
    answers = dict.fromkeys(silent) | {"is_available": True, "device_count": 1, "current_device": 0}
    answers |= {"get_device_name": "a pretend GPU", "get_device_capability": (9, 0)}
    answers |= {"is_bf16_supported": True, "max_memory_allocated": 0, **says}
    torch._C._ensureCUDADeviceGuardSet()  # one that does nothing where no GPU is
    waits.clear()
    with ExitStack() as undo, _Operations():
        for name, answer in answers.items():
            undo.enter_context(patch.object(torch.cuda, name, lambda *_, answer=answer, **__: answer))
        undo.enter_context(patch.object(torch, "Generator", Generator))
        undo.enter_context(patch.object(threading.Thread, "run", run_within))
        undo.enter_context(patch.object(Tensor, "pin_memory", lambda tensor, *_: tensor))
        _foreach_supported_types.append(OnGpu)  # an optimiser moves all weights at once, as on a GPU
        undo.callback(_foreach_supported_types.remove, OnGpu)
        lift, swap = (
            torch._C._set_only_lift_cpu_tensors,
            torch.__future__.set_swap_module_params_on_conversion,
        )
        for switch in (lift, swap):  # torch.tensor(device="cuda") is made here and moved; Parameters are kept
            switch(True)
            undo.callback(switch, False)
        yield waits

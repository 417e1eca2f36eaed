"""AdamW and SGD without torch's compiler, which torch's own import at a first step: 2.8 s of CPU time.

Their methods are those of torch without the decorators that keep the compiler out of them. A run compiles
networks and no optimiser.

On a CPU one kernel moves all weights of a group (fused=True), ten times as fast for many weights. It walks
through memory, so a group in which a weight has gaps, or a gradient or an average lies otherwise, is left to
torch's loop.
"""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor


class _Uncompiled(torch.optim.Optimizer):
    """The methods that all of torch's optimisers share."""

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)

    def moved(self) -> Iterator[tuple[dict[str, Any], list[Tensor]]]:
        """Each group, and those of its weights that have a gradient."""
        for group in self.param_groups:
            yield group, [weight for weight in group["params"] if weight.grad is not None]

    def fuse(self) -> None:
        """Choose the kernel of each group of weights on a CPU; a GPU's was chosen when the run was made."""
        for group, weights in self.moved():
            if weights and weights[0].device.type == "cpu":
                group["fused"] = all(_dense(weight, self.state.get(weight, {})) for weight in weights)


class AdamW(_Uncompiled, torch.optim.AdamW):
    """AdamW without importing torch's compiler (saves 2.8 s of CPU time)."""

    _step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))

    def step(self, closure: Any = None) -> Any:
        """Take a step, with the fused kernel where the memory layout allows it."""
        self.fuse()
        return self._step(closure)


class SGD(_Uncompiled, torch.optim.SGD):
    """SGD without importing torch's compiler; with momentum, a weight may get its first gradient late."""

    _step = torch.no_grad()(inspect.unwrap(torch.optim.SGD.step))

    def step(self, closure: Any = None) -> Any:
        """Take a step; a weight without an average gets one first, or torch's kernel would fail."""
        self.fuse()
        for group, weights in self.moved():
            for weight in weights if group["momentum"] else ():
                if self.state[weight].get("momentum_buffer") is None:
                    self.state[weight]["momentum_buffer"] = torch.zeros_like(weight)
        return self._step(closure)


def _dense(weight: Tensor, state: Mapping[str, Any]) -> bool:
    """True where a weight has no gaps in memory, and its gradient and averages the same strides."""
    beside = [weight.grad, *(each for each in state.values() if isinstance(each, Tensor) and each.ndim)]
    return (
        weight.is_floating_point()
        and torch.ops.aten.is_non_overlapping_and_dense(weight)
        and all(each is not None and each.stride() == weight.stride() for each in beside)
    )

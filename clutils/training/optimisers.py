"""torch's optimisers without torch's compiler, which the first optimiser of a process imports: 2 s on a CPU.

Their methods are those of torch without the decorators that keep the compiler out of them. A run compiles
networks and no optimiser, so every step is bit-identical.
"""

import inspect

import torch


class _Uncompiled(torch.optim.Optimizer):
    """The methods that all of torch's optimisers share."""

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)


class AdamW(_Uncompiled, torch.optim.AdamW):
    """`torch.optim.AdamW`, sooner."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))


class SGD(_Uncompiled, torch.optim.SGD):
    """`torch.optim.SGD`, sooner."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.SGD.step))

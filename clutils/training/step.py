"""One training step: two views of a batch, their loss, its gradient, and the optimiser's move.

`Run.step()` calls it. What stands around it has files of its own: random numbers and the way back from a step
that failed (`around`), what a GPU and float16 need (`devices`), signals (`interrupts`), and the mean over
several processes (`clutils.processes`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from clutils import measures, processes
from clutils.training import around, devices, interrupts
from clutils.training.state import RunState


def step(run: RunState) -> dict[str, float]:
    """Take one step of a run; returns its row of the history. Errors as `Run.step`."""
    began = time.perf_counter()
    method, optimiser, scaler = run.method, run.optimiser, run.scaler
    index = run.batch_index()  # (B,) which images it takes
    labels = run.labels[index] if method.uses_labels and run.labels is not None else None
    run.compile_networks()
    buffers = method.changing_buffers()  # by the forward pass: batch statistics, a loss's state per sample
    with around.undone_on_failure(run, buffers):
        method.train()
        rate = run.follow_settings()
        with around.drawing(run):
            # the method makes the views, embeds them and compares them
            loss, z1, z2 = method(run.images[index], run.augment, run.stream("views"), labels, index)
        optimiser.zero_grad()
        scaler.scale(loss).backward()  # times 1, except in float16
        gradients = [p.grad for p in method.parameters() if p.grad is not None]
        processes.average([*gradients, *buffers])  # the mean over processes, if there are several
        scaler.unscale_(optimiser)
        chance = method.chance(run.batch_size)  # while a GPU works
        numbers = measured(run, loss, z1, z2, gradients)
    with interrupts.deferred():  # a step is taken and counted, or neither
        for group in optimiser.param_groups:
            group["lr"] = rate * group.get("factor", 1.0)
        scaler.step(optimiser)  # unless a float16 gradient overflowed: then the scale falls
        scaler.update()
        method.after_step()  # a moving average or a queue follows
        run.steps_done += 1
        row = {
            "step": run.steps_done,
            "loss": numbers.pop("loss"),
            "chance": math.nan if chance is None else chance,
            "learning_rate": rate,
            **numbers,
            **run.live_settings(),
            "seconds": (run.rows[-1]["seconds"] if run.rows else 0.0) + time.perf_counter() - began,
        }
        run.rows.append(row)
    if run.steps_done >= run.steps:  # else the next step would notice
        around.demand_finite_weights(run)
    return row


def measured(
    run: RunState, loss: Tensor, z1: Tensor, z2: Tensor, gradients: Sequence[Tensor]
) -> dict[str, float]:
    """The loss, alignment and uniformity of its views, the gradient's length, and what the method reports.

    The length is NaN where a float16 gradient overflowed. Raises ValueError where another is not finite.
    """
    z1, z2 = nn.functional.normalize(z1, dim=1), nn.functional.normalize(z2, dim=1)
    found = {
        "loss": loss.detach(),
        "alignment": measures.mean_squared_distance(z1, z2),
        "uniformity": (measures.log_potential(z1) + measures.log_potential(z2)) / 2,
        "gradient_norm": nn.utils.get_total_norm(gradients),
        **run.method.reported,
        **getattr(run.loss, "reported", {}),
    }
    on_device = torch.stack([value.float() for value in found.values()])
    run.draw_ahead()  # the next step's random numbers, while a GPU works on this one
    numbers = dict(zip(found, on_device.tolist(), strict=True))  # here alone the processor waits for a GPU
    length = numbers["gradient_norm"]
    if devices.overflowed(run.scaler, length):
        del numbers["gradient_norm"]
    if not all(map(math.isfinite, numbers.values())):
        raise ValueError(f"its loss is {numbers['loss']:.4g}, its gradient {length:.4g} long")
    return {name: numbers.get(name, math.nan) for name in found}

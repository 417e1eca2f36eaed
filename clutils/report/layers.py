"""Layer by layer: kNN, linear probe and effective rank of what each block of an encoder makes.

The blocks are read by hooks while the features are computed, so they cost no pass of their own. A block's
output is taken as the module gives it: before a ReLU that the network applies outside of it.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from clutils import measures
from clutils.measures import NEIGHBOURS, PROBED
from clutils.report.prepared import LARGEST, pooled

MOST = 8  # layers, spread evenly over the encoder
OUTPUT = "the encoder's output"
NORMALISATIONS = (nn.BatchNorm2d, nn.GroupNorm, nn.LayerNorm)


@dataclass(frozen=True)
class Layer:
    """One block: its name in the encoder, how many numbers it gives, and what they are worth.

    - knn, probe: accuracy in [0, 1], NaN where there are no labels
    """

    name: str
    width: int
    effective_rank: float
    knn: float
    probe: float


def blocks(encoder: nn.Module) -> list[str]:
    """Names of the modules that an encoder is a chain of: at most `MOST`, the last among them.

    Blocks with modules of their own (a ResNet's, a transformer's) where there are two or more; else plain
    layers with weights, of a convolution and its normalisation the latter. Fewer than two: none.
    """
    found = list(_chain(encoder))
    composite = [name for name, part in found if any(True for _ in part.children())]
    plain = [name for name, part in found if any(True for _ in part.parameters(recurse=False))]
    normalised = [name for name, part in found if isinstance(part, NORMALISATIONS)]
    names = next((names for names in (composite, normalised, plain) if len(names) > 1), [])
    at = torch.linspace(0, len(names) - 1, min(MOST, len(names))).round().int().tolist()
    return [names[k] for k in at]


def _chain(module: nn.Module, before: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Its children; in the place of a container, or of what holds one of blocks, what is inside."""
    for name, part in module.named_children():
        if type(part) in (nn.Sequential, nn.ModuleList) or any(map(_holds_blocks, part.children())):
            yield from _chain(part, f"{before}{name}.")
        else:
            yield f"{before}{name}", part


def _holds_blocks(part: nn.Module) -> bool:
    """Whether it is a container of two blocks or more, all of one kind."""
    within = list(part.children())
    alike = len({type(child) for child in within}) == 1 and any(True for _ in within[0].children())
    return isinstance(part, nn.Sequential | nn.ModuleList) and len(within) > 1 and alike


@contextlib.contextmanager
def reading(encoder: nn.Module, rows: int) -> Iterator[dict[str, list[Tensor]]]:
    """Within, what the blocks make of the first images, at most `rows`, pooled: name -> batches (n, width).

    A block that is not called once for each batch is left out. The hooks are gone afterwards.
    """
    images = 0
    caught: dict[str, list[Tensor]] = {name: [] for name in (blocks(encoder) if rows else ())}

    def count(module: nn.Module, given: tuple[Tensor, ...]) -> None:
        nonlocal images
        images += len(given[0])

    def hook(name: str) -> Callable[[nn.Module, object, object], None]:
        def keep(module: nn.Module, given: object, made: object) -> None:
            known = sum(map(len, caught.get(name, ())))
            if name not in caught or known >= rows:
                return
            if not isinstance(made, Tensor) or made.ndim < 2 or known + len(made) != images:
                del caught[name]
            else:
                caught[name].append(pooled(made.detach()).float().cpu())

        return keep

    hooks = [encoder.register_forward_pre_hook(count)] if caught else []
    hooks += [encoder.get_submodule(name).register_forward_hook(hook(name)) for name in caught]
    try:
        yield caught
    finally:
        for handle in hooks:
            handle.remove()


def measure(
    caught: dict[str, list[Tensor]],
    y: Tensor,
    gallery_y: Tensor | None,
    output: Tensor | None = None,
    k: int = NEIGHBOURS,
) -> list[Layer]:
    """The layers, from what was read of test images, with labels y, and of a gallery behind them.

    output: of the same images, what the encoder gives in the end, a further line where it is not the last.
    gallery_y: None = there are no labels; k: of kNN. Where fewer than two layers were read, there are none.
    """
    found = []
    lent = 0 if gallery_y is None else min(PROBED, len(gallery_y))
    read = {name: torch.cat(batches) for name, batches in caught.items() if batches}
    last = next(reversed(read.values()), None)
    if output is not None and last is not None:
        rows = min(map(len, (last, output)))
        if last.shape[1:] != output.shape[1:] or not torch.allclose(last[:rows], output[:rows], atol=1e-5):
            read[OUTPUT] = output
    for name, z in read.items():
        if len(z) < len(y) + lent or not z.abs().max() <= LARGEST:  # nor NaN
            continue
        judged = measures.Features(z[: len(y)])
        if gallery_y is not None:
            judged = replace(
                judged, y=y, gallery_z=z[len(y) :][:lent], gallery_y=gallery_y[:lent], neighbours=k
            )
        numbers = {key: _number(key, judged) for key in ("effective_rank", "knn", "probe")}
        found.append(Layer(name, z.shape[1], **numbers))
    return found if len(found) > 1 else []


def _number(name: str, features: measures.Features) -> float:
    try:
        return measures.by_name(name, features)
    except ValueError:  # no labels, or a layer that is the same for all
        return math.nan

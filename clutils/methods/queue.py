"""A queue of embeddings of earlier batches, first in, first out: MoCo's negatives, NNCLR's neighbours."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from clutils.methods.base import Method
from clutils.settings import Setting, demand_room

QUEUE_SIZE = Setting(1, symbol="K", whole=True, about="keys in the queue")


class Queued(Method):
    """A method with a queue of unit vectors (K, out): what a step leaves in `entering` enters after it."""

    after_step_only = ("queue", "next_place")
    queue_size: int  # K: each method declares its own default
    queue: Tensor
    next_place: Tensor  # 0-d int64, where the oldest stands
    entering: Tensor | None = None  # (B, out), unit vectors of a step that is under way

    def start_queue(self) -> None:
        """Random unit vectors."""
        demand_room(type(self).__name__, f"a queue of {self.queue_size:,} keys", self.queue_size * self.out)
        self.register_buffer("queue", normalize(torch.randn(self.queue_size, self.out), dim=1))
        self.register_buffer("next_place", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def after_step(self) -> None:
        """The step's vectors take the places of the oldest, in place, from the end on to the start."""
        super().after_step()
        assert self.entering is not None  # `forward` came before
        size = len(self.entering)
        places = (self.next_place + torch.arange(size, device=self.queue.device)) % len(self.queue)
        self.queue[places] = self.entering
        self.next_place.add_(size).remainder_(len(self.queue))
        self.entering = None

    def check_batch(self, size: int) -> None:
        """Raise ValueError on a batch that is larger than the queue."""
        if size > self.queue_size:
            raise ValueError(
                f"{type(self).__name__}: a batch of {size} does not fit into a queue of {self.queue_size}: "
                f"a smaller batch, or queue_size {size} at least"
            )

"""`index=`: a loss that keeps a state per sample is told which samples it sees, and the state is saved."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clutils import data, losses, methods, training
from clutils.losses.base import contrast
from clutils.similarities import Pairs

DIGITS = data.load("digits", limit=48)


class Remembering(losses.Loss):
    """NT-Xent, and for each sample a moving average of its two anchors' values (as SogCLR keeps one)."""

    takes = frozenset({"index"})
    paper, year, equation = "none: a test's own", 2026, "none"

    def __init__(self, check_inputs: bool = True) -> None:
        super().__init__(check_inputs)
        self.register_buffer("average", torch.zeros(0))

    def allocate(self, samples: int) -> None:
        if len(self.average) != samples:
            self.average = self.average.new_zeros(samples)

    def formula(self, pairs: Pairs) -> Tensor:
        values = torch.nn.functional.softplus(contrast(pairs, 0.2))[:, 0]
        if self.samples is not None:
            now = values.detach().view(2, -1).mean(dim=0).to(self.average)
            self.average[self.samples] = 0.5 * self.average[self.samples] + 0.5 * now
        return values


def run(method: str = "simclr", **settings) -> training.Run:
    return training.Run(
        method,
        Remembering(),
        data=DIGITS,
        batch_size=16,
        steps=6,
        device="cpu",
        precision="float32",
        **settings,
    )


def test_the_numbers_are_those_of_the_samples_that_the_step_took():
    made = run()
    seen: list[Tensor] = []
    made.method.register_forward_pre_hook(lambda module, arguments: seen.append(arguments))
    made.step()
    images, _, _, _, index = seen[0]
    assert index.shape == (16,) and torch.equal(made.images[index], images)
    touched = made.loss.average.nonzero()[:, 0]
    assert torch.equal(touched, index.sort().values)


def test_an_epoch_touches_every_sample():
    made = run()
    for _ in range(3):  # 48 samples, 16 a step
        made.step()
    assert bool((made.loss.average > 0).all())


@pytest.mark.parametrize("method", ["simclr", "pinda", "simcl", "clae"])
def test_it_is_part_of_what_is_saved(method, tmp_path):
    made = run(method)
    for _ in range(2):
        made.step()
    made.save(tmp_path / "half.pt")
    again = training.resume(tmp_path / "half.pt", data=DIGITS, loss=Remembering(), device="cpu")
    assert torch.equal(again.loss.average, made.loss.average) and bool(made.loss.average.any())
    for one in (made, again):
        one.finish(progress=False)
    assert torch.equal(again.loss.average, made.loss.average)
    assert again.history["loss"].tolist() == made.history["loss"].tolist()


def test_a_step_that_fails_leaves_it_as_it_was(monkeypatch):
    made = run()
    made.step()
    before = made.loss.average.clone()
    monkeypatch.setattr(torch.nn.utils, "get_total_norm", lambda gradients: torch.tensor(torch.nan))
    with pytest.raises(ValueError, match="step 2 was not taken"):
        made.step()
    assert torch.equal(made.loss.average, before)


def test_a_loss_set_on_the_way_gets_its_room():
    made = training.Run(data=DIGITS, batch_size=16, steps=6, device="cpu")
    made.step()
    made.loss = Remembering()
    made.step()
    assert len(made.loss.average) == len(DIGITS) and int((made.loss.average > 0).sum()) == 16


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"Remembering keeps a state per sample: it needs index="),
        ({"index": torch.arange(3)}, r"Remembering: index is .*3.*, but a batch of 4 has int64 \(4,\)"),
        ({"index": torch.rand(4)}, r"Remembering: index is .*float32.*, but a batch of 4 has int64"),
        ({"index": torch.ones(4, dtype=torch.bool)}, r"index is .*bool.*, but a batch of 4 has int64"),
        ({"index": torch.arange(4, dtype=torch.uint8)}, r"index is .*uint8.*, but a batch of 4 has int64"),
        ({"index": torch.tensor([0, -1, 2, 3])}, r"index holds -1, but samples are numbered from 0"),
        ({"index": [0, 1, 2, 3]}, r"Remembering: index is .*list"),
    ],
)
def test_an_index_that_can_t_be_is_refused_and_quoted(given, message):
    loss = Remembering()
    loss.allocate(8)
    with pytest.raises(ValueError, match=message):
        loss(torch.randn(4, 5), torch.randn(4, 5), **given)


def test_a_loss_without_such_a_state_refuses_an_index():
    with pytest.raises(ValueError, match="NTXent does not take index: beside two views it takes queue"):
        losses.NTXent(0.2)(torch.randn(4, 5), torch.randn(4, 5), index=torch.arange(4))


@pytest.mark.parametrize("method", sorted(methods.catalogue()))
def test_every_method_takes_the_numbers(method):
    made = training.Run(
        method, data=DIGITS, batch_size=16, steps=1, device="cpu", precision="float32", method_settings={}
    )
    index = torch.arange(16)
    loss, *_ = made.method(
        made.images[:16], made.augmentation, torch.Generator().manual_seed(0), made.labels[:16], index=index
    )
    assert bool(loss.isfinite())


def test_a_loss_that_could_be_taken_in_blocks_is_told_the_numbers_all_the_same():
    class Counting(losses.NTXent):
        takes = frozenset({"index"})
        seen = None

        def of_contrast(self, c):
            self.seen = self.samples
            return super().of_contrast(c)

        def formula(self, pairs):
            self.seen = self.samples
            return super().formula(pairs)

    class InBlocks(Counting):
        block_size = 512

    for loss in (Counting(), InBlocks()):
        loss(torch.randn(4, 5), torch.randn(4, 5), index=torch.arange(4))
        assert loss.seen.tolist() == [0, 1, 2, 3]

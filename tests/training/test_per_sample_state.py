"""`index=`: a loss that keeps a state per sample is told which samples it sees, and the state is saved."""

import pytest
import torch
from torch import Tensor

from clutils import data, losses, training
from tests.runs import advance

DIGITS = data.load("digits", limit=48)


def run(method: str = "simclr") -> training.Run:
    settings = {"data": DIGITS, "batch_size": 16, "steps": 6, "device": "cpu", "precision": "float32"}
    return training.Run(method, losses.SogCLR(), **settings)


def test_the_numbers_are_those_of_the_samples_that_the_step_took():
    made = run()
    seen: list[Tensor] = []
    made.method.register_forward_pre_hook(lambda module, arguments: seen.append(arguments))
    made.step()
    images, _, _, _, index = seen[0]
    assert index.shape == (16,) and torch.equal(made.images[index], images)
    touched = made.loss.log_average.isfinite().nonzero()[:, 0]
    assert torch.equal(touched, index.sort().values)
    advance(made, 2)  # 48 samples, 16 a step
    assert bool(made.loss.log_average.isfinite().all())


@pytest.mark.parametrize("method", ["pinda", "simcl", "clae"])
def test_it_is_part_of_what_is_saved(method, tmp_path):
    made = advance(run(method), 2)
    made.save(tmp_path / "half.pt")
    again = training.resume(tmp_path / "half.pt", data=DIGITS, device="cpu")
    assert torch.equal(again.loss.log_average, made.loss.log_average)
    assert bool(made.loss.log_average.isfinite().any())
    for one in (made, again):
        one.finish(progress=False)
    assert torch.equal(again.loss.log_average, made.loss.log_average)
    assert again.history["loss"].tolist() == made.history["loss"].tolist()


def test_a_step_that_fails_leaves_it_as_it_was(monkeypatch):
    made = run()
    made.step()
    before = made.loss.log_average.clone()
    monkeypatch.setattr(torch.nn.utils, "get_total_norm", lambda gradients: torch.tensor(torch.nan))
    with pytest.raises(ValueError, match="step 2 was not taken"):
        made.step()
    assert torch.equal(made.loss.log_average, before)


def test_a_loss_set_on_the_way_gets_its_room():
    made = training.Run(data=DIGITS, batch_size=16, steps=6, device="cpu")
    made.step()
    made.loss = losses.SogCLR()
    made.step()
    assert len(made.loss.log_average) == len(DIGITS) and int(made.loss.log_average.isfinite().sum()) == 16


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"index": torch.arange(3)}, r"SogCLR: index is .*3.*, but a batch of 4 has int64 \(4,\)"),
        ({"index": torch.rand(4)}, r"SogCLR: index is .*float32.*, but a batch of 4 has int64"),
        ({"index": torch.ones(4, dtype=torch.bool)}, r"index is .*bool.*, but a batch of 4 has int64"),
        ({"index": torch.tensor([0, -1, 2, 3])}, r"index has the number -1, but samples are numbered from 0"),
        ({"index": [0, 1, 2, 3]}, r"SogCLR: index is .*list"),
    ],
)
def test_an_index_that_can_t_be_is_refused_and_quoted(given, message):
    loss = losses.SogCLR()
    loss.allocate(8)
    with pytest.raises(ValueError, match=message):
        loss(torch.randn(4, 5), torch.randn(4, 5), **given)


def test_a_loss_that_could_be_taken_in_blocks_is_told_the_numbers_all_the_same():
    class Counting(losses.NTXent):
        accepts = frozenset({"index"})
        seen = None

        def formula(self, pairs):
            self.seen = self.samples
            return super().formula(pairs)

    for block_size in (None, 2):
        loss = Counting()
        loss.block_size = block_size
        loss(torch.randn(4, 5), torch.randn(4, 5), index=torch.arange(4))
        assert loss.seen.tolist() == [0, 1, 2, 3]

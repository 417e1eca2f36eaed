"""The optimisers of a run are torch's own."""

import pytest
import torch

from clutils.training import optimisers


@pytest.mark.parametrize(
    ("name", "settings"), [("AdamW", {"lr": 0.01}), ("SGD", {"lr": 0.01, "momentum": 0.9})], ids=str
)
def test_steps_and_states_are_bit_identical_to_torchs_and_each_takes_up_the_others(name, settings):
    def moved(make, steps, weight, state=None):
        weight = weight.clone().requires_grad_()
        optimiser = make([{"params": [weight], "weight_decay": 0.1}], **settings)
        if state is not None:
            optimiser.load_state_dict(state)
        for _ in range(steps):
            optimiser.zero_grad()
            (weight**3).sum().backward()
            optimiser.step()
        return weight.detach(), optimiser.state_dict()

    own, torchs = getattr(optimisers, name), getattr(torch.optim, name)
    start = torch.linspace(-2, 2, 40)
    whole, _ = moved(torchs, 6, start)
    assert torch.equal(moved(own, 6, start)[0], whole)
    for first, second in ((own, torchs), (torchs, own)):
        half, state = moved(first, 3, start)
        assert torch.equal(moved(second, 3, half, state)[0], whole)

"""One kernel moves all weights where they lie so that it may, and a loop as torch's where they do not."""

import pytest
import torch
from torch import nn

from clutils import training
from clutils.training import optimisers

SETTINGS = {"adamw": {"lr": 0.01, "weight_decay": 0.1}, "sgd": {"lr": 0.01, "momentum": 0.9}}
OURS = {"adamw": optimisers.AdamW, "sgd": optimisers.SGD}
TORCHS = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}


def weights(kind: str) -> list[nn.Parameter]:
    draw = torch.Generator().manual_seed(0)
    w = torch.randn(6, 12, generator=draw)
    of = {
        "dense": [w],
        "transposed": [w.t()],
        "parts": list(w.chunk(3, dim=1)),
        "every second": [w[:, ::2]],
        "one value": [w[:, :1].expand(6, 4).clone(), torch.randn((), generator=draw), torch.zeros(0)],
        "channels last": [torch.randn(4, 3, 2, 2, generator=draw).to(memory_format=torch.channels_last)],
        "complex": [torch.complex(w, w)],
    }
    return [nn.Parameter(each) for each in of[kind]]


def moved(optimiser: type, kind: str, how: str, **settings) -> tuple[list[torch.Tensor], list]:
    """Weights after 20 steps, and whether one kernel moved them.

    - how: "late": the first weight has no gradient at first; "turned": averages lie otherwise from a step on,
      as of a file that another class of encoder wrote
    """
    own = weights(kind)
    made = optimiser(own, **settings)
    for step in range(20):
        for number, weight in enumerate(own):
            skipped = how == "late" and number == 0 and step < 5
            weight.grad = None if skipped else (weight.detach() * 0.3 + 0.1 * step).clone()
        made.step()
        for state in made.state.values() if (how, step) == ("turned", 2) else ():
            state |= {key: value.t().contiguous().t() for key, value in state.items() if value.ndim}
    return [weight.detach() for weight in own], [group["fused"] for group in made.param_groups]


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize(
    ("kind", "how", "fused"),
    [
        ("dense", "", True),
        ("transposed", "", True),
        ("parts", "", False),
        ("every second", "", False),
        ("one value", "", True),
        ("channels last", "", True),
        ("complex", "", False),
        ("parts", "late", False),
        ("dense", "turned", False),
    ],
)
def test_it_moves_weights_as_torchs_loop_does_wherever_they_lie(name, kind, how, fused):
    ours, chosen = moved(OURS[name], kind, how, **SETTINGS[name])
    expected, _ = moved(TORCHS[name], kind, how, **SETTINGS[name], foreach=False)
    assert chosen == [fused]
    for one, other in zip(ours, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", OURS)
def test_a_weight_may_get_its_first_gradient_later_than_others(name):
    run = training.Run(data="digits", batch_size=16, steps=6, optimiser=name)
    first = next(run.encoder.parameters()).requires_grad_(False)
    before = first.detach().clone()
    run.step()
    assert torch.equal(first, before)
    first.requires_grad_(True)
    run.step()
    assert not torch.equal(first, before) and run.optimiser.param_groups[0]["fused"]


@pytest.mark.parametrize("kernel", [False, True])
@pytest.mark.parametrize("name", OURS)
def test_each_takes_up_the_state_of_torchs_and_the_reverse_in_the_loop_to_the_bit(name, kernel):
    draw = torch.Generator().manual_seed(1)
    gradients, start = torch.randn(6, 40, generator=draw), torch.linspace(-2, 2, 40)

    def moved_on(kind, weight, chosen, state=None):
        weight = nn.Parameter(weight.clone())
        made = kind([weight], **SETTINGS[name], foreach=False)
        if state is not None:
            made.load_state_dict(state)
        if not kernel:  # which rounds otherwise, see above
            made.fuse = lambda: None
            made.param_groups[0]["fused"] = False
        for gradient in chosen:
            weight.grad = gradient.clone()
            made.step()
        return weight.detach(), made.state_dict()

    within = {} if kernel else {"rtol": 0, "atol": 0}
    whole, _ = moved_on(TORCHS[name], start, gradients)
    torch.testing.assert_close(moved_on(OURS[name], start, gradients)[0], whole, **within)
    for first, second in ((OURS[name], TORCHS[name]), (TORCHS[name], OURS[name])):
        half, state = moved_on(first, start, gradients[:3])
        torch.testing.assert_close(moved_on(second, half, gradients[3:], state)[0], whole, **within)

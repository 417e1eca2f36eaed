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


def moved(optimiser: type, kind: str, late: bool = False, **settings) -> tuple[list[torch.Tensor], list]:
    own = weights(kind)
    made = optimiser(own, **settings)
    for step in range(20):
        for number, weight in enumerate(own):
            skipped = late and number == 0 and step < 5
            weight.grad = None if skipped else (weight.detach() * 0.3 + 0.1 * step).clone()
        made.step()
    return [weight.detach() for weight in own], [group["fused"] for group in made.param_groups]


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize(
    ("kind", "fused"),
    [
        ("dense", True),
        ("transposed", True),
        ("parts", False),
        ("every second", False),
        ("one value", True),
        ("channels last", True),
        ("complex", False),
    ],
)
def test_it_moves_weights_as_torchs_loop_does_wherever_they_lie(name, kind, fused):
    ours, chosen = moved(OURS[name], kind, **SETTINGS[name])
    expected, _ = moved(TORCHS[name], kind, **SETTINGS[name], foreach=False)
    assert chosen == [fused]
    for one, other in zip(ours, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", OURS)
def test_a_weight_may_get_its_first_gradient_later_than_others(name):
    ours, _ = moved(OURS[name], "parts", late=True, **SETTINGS[name])
    expected, _ = moved(TORCHS[name], "parts", late=True, **SETTINGS[name], foreach=False)
    for one, other in zip(ours, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    run = training.Run(data="digits", batch_size=16, steps=6, optimiser=name)
    first = next(run.encoder.parameters()).requires_grad_(False)
    before = first.detach().clone()
    run.step()
    assert torch.equal(first, before)
    first.requires_grad_(True)
    run.step()
    assert not torch.equal(first, before) and run.optimiser.param_groups[0]["fused"]


@pytest.mark.parametrize("name", OURS)
def test_averages_that_lie_otherwise_than_their_weight_are_not_walked_through(name):
    (weight,) = weights("dense")
    made = OURS[name]([weight], **SETTINGS[name])
    (other,) = weights("dense")
    loop = TORCHS[name]([other], **SETTINGS[name], foreach=False)
    for step in range(6):
        for each, of in ((weight, made), (other, loop)):
            each.grad = each.detach() * 0.3 + 0.1 * step
            of.step()
        if step == 2:  # as of a file that another class of encoder wrote
            for key, value in made.state[weight].items():
                if value.ndim:
                    made.state[weight][key] = value.t().contiguous().t()
    assert made.param_groups[0]["fused"] is False
    torch.testing.assert_close(weight, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", OURS)
def test_loop_and_state_are_bit_identical_to_torchs_and_each_takes_up_the_others(name):
    def moved_on(make, steps, weight, state=None):
        weight = weight.clone().requires_grad_()
        made = make([{"params": [weight]}], **SETTINGS[name])
        if state is not None:
            made.load_state_dict(state)
        made.fuse = lambda: None  # the loop alone: the kernel rounds otherwise, see above
        for group in made.param_groups:
            group["fused"] = False
        for _ in range(steps):
            made.zero_grad()
            (weight**3).sum().backward()
            made.step()
        return weight.detach(), made.state_dict()

    own, torchs = OURS[name], TORCHS[name]
    start = torch.linspace(-2, 2, 40)
    whole, _ = moved_on(torchs, 6, start)
    assert torch.equal(moved_on(own, 6, start)[0], whole)
    for first, second in ((own, torchs), (torchs, own)):
        half, state = moved_on(first, 3, start)
        assert torch.equal(moved_on(second, 3, half, state)[0], whole)


@pytest.mark.parametrize("name", OURS)
def test_a_kernels_state_is_taken_up_by_torchs_loop_and_the_reverse(name):
    draw = torch.Generator().manual_seed(1)
    gradients = torch.randn(6, 40, generator=draw)

    def moved_on(make, weight, chosen, state=None, **more):
        weight = nn.Parameter(weight.clone())
        made = make([weight], **SETTINGS[name], **more)
        if state is not None:
            made.load_state_dict(state)
        for gradient in chosen:
            weight.grad = gradient.clone()
            made.step()
        return weight.detach(), made.state_dict()

    start = torch.linspace(-2, 2, 40)
    whole, _ = moved_on(TORCHS[name], start, gradients, foreach=False)
    half, state = moved_on(OURS[name], start, gradients[:3])
    torch.testing.assert_close(moved_on(TORCHS[name], half, gradients[3:], state)[0], whole)
    half, state = moved_on(TORCHS[name], start, gradients[:3], foreach=False)
    torch.testing.assert_close(moved_on(OURS[name], half, gradients[3:], state)[0], whole)

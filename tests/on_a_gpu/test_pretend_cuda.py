"""The pretend GPU itself: it refuses what CUDA refuses, takes what CUDA takes, and counts both ways."""

import inspect
import textwrap
import threading

import pytest
import torch

from clutils import data, encoders, losses, maps, noise, report, similarities, training
from clutils.course.methods import experiments
from clutils.report import prepared
from clutils.training import watcher

ON = {"device": "cuda"}


def table(*shape: int, device: str = "cpu") -> torch.Tensor:
    return torch.arange(1.0, 1.0 + torch.Size(shape).numel(), device=device).reshape(shape)


@pytest.mark.parametrize(
    "mixed",
    [
        lambda: table(3) + table(3, device="cuda"),
        lambda: table(3, 3) @ table(3, 3, device="cuda"),
        lambda: torch.cat([table(3), table(3, device="cuda")]),
        lambda: torch.where(torch.ones(3, dtype=torch.bool), table(3, device="cuda"), 0.0),
        lambda: table(4)[torch.tensor([0, 1], device="cuda")],
        lambda: table(3, device="cuda").index_copy_(0, torch.tensor([0]), table(1, device="cuda")),
        lambda: table(3).add_(torch.ones((), device="cuda")),
        lambda: torch.nn.Linear(3, 2).to("cuda")(table(2, 3)),
        lambda: torch.randn(3, device="cuda", generator=torch.Generator()),
        lambda: torch.randn(3, generator=torch.Generator("cuda")),
        lambda: encoders.ProjectionHead(4, 4, 4).to("cuda")(table(2, 4)),
    ],
)
def test_what_cuda_refuses_is_refused(mixed, gpu):
    with pytest.raises(RuntimeError, match=r"on the same device|for generator"):
        mixed()


@pytest.mark.parametrize("make", [lambda x: x.numpy(), lambda x: __import__("numpy").asarray(x)])
def test_a_gpus_tensor_is_no_array(make, gpu):
    with pytest.raises(TypeError, match="cuda:0 device type tensor to numpy"):
        make(table(3, device="cuda"))


@pytest.mark.parametrize(
    ("fine", "expected"),
    [
        (lambda: table(3, device="cuda") + torch.tensor(2.0), [3.0, 4.0, 5.0]),
        (lambda: table(3, device="cuda")[torch.tensor([2, 0])], [3.0, 1.0]),
        (lambda: table(3, device="cuda")[[2, 0]], [3.0, 1.0]),
        (lambda: table(3).copy_(2 * table(3, device="cuda")), [2.0, 4.0, 6.0]),
        (lambda: table(3, device="cuda").new_tensor([1.0, 2.0]), [1.0, 2.0]),
        (lambda: torch.full((2,), 3.0, **ON), [3.0, 3.0]),
        (lambda: torch.tensor([1.0, 2.0], **ON).to("cpu").to("cuda").double(), [1.0, 2.0]),
    ],
)
def test_what_cuda_takes_is_computed(fine, expected, gpu):
    assert fine().tolist() == expected


def test_gradients_optimisers_and_buffers_stay_on_the_gpu(gpu):
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten()).to(
        "cuda"
    )
    optimiser = torch.optim.AdamW(net.parameters())
    before = [p.detach().cpu().clone() for p in net.parameters()]
    net(torch.rand(2, 3, 5, 5, **ON)).square().sum().backward()
    optimiser.step()
    there = [*net.parameters(), *net.buffers(), *(p.grad for p in net.parameters())]
    assert all(tensor.is_cuda for tensor in there)
    moved = [not torch.equal(p.detach().cpu(), old) for p, old in zip(net.parameters(), before, strict=True)]
    assert any(moved)


def test_traffic_is_counted_by_line(gpu):
    x = table(3, 3).to("cuda")
    y = x @ x
    y.sum().item()
    y.cpu()
    table(3).to("cuda", non_blocking=True)
    y[y > 3]
    torch.rand(3, device="cuda")
    assert gpu.count("to device") == 1 and gpu.count("to device, not waiting") == 1
    assert gpu.count("to host") == 1 and gpu.count("wait") == 2 and gpu.count("global draw") == 1
    assert gpu.count("launch") == 5  # product, sum, comparison, what it chooses, random numbers
    assert all(__file__ in place for place in gpu.places("wait"))


def test_threads_that_start_meanwhile_have_the_gpu_too(gpu):
    found = []
    made = (lambda: torch.ones(2, device="cuda"), lambda: torch.tensor([1.0, 3.0], device="cuda"))
    thread = threading.Thread(target=lambda: found.extend(make().sum().item() for make in made))
    thread.start()
    thread.join()
    assert found == [2.0, 4.0]


def test_without_it_there_is_no_such_device():
    from tests.on_a_gpu.pretend_cuda import pretend_cuda

    with pretend_cuda():
        assert torch.cuda.is_available()
    if not torch.cuda.is_available():
        with pytest.raises((RuntimeError, AssertionError)):
            torch.ones(2, device="cuda")


# ---- mistakes that this is here to find --------------------------------------------------------------------


def stepped(run: training.Run) -> None:
    run.step()
    run.embed(run.images[:8])


def a_run(method: str = "simclr", loss: losses.Loss | None = None) -> training.Run:
    return training.Run(method, loss, data.load("scenes", limit=96), batch_size=32, steps=2, device="cuda")


def drawn() -> None:
    noise.NoiseGenerator("conv").to("cuda")(torch.rand(2, 3, 8, 8), torch.Generator())


PLANTED = {  # the function, what is written there, what a mistake makes of it, and what then must fail
    "features stay on the GPU": (
        (encoders, "embed", ".float().cpu()", ".float()"),
        lambda: a_run().embed(data.load("scenes", limit=8)).numpy(),
    ),
    "images stay on the CPU": (
        (encoders, "embed", "part.to(parameter.device)", "part"),
        lambda: watcher.watching(run := a_run()).look(run),
    ),
    "labels stay on the CPU": (
        (training.Run, "__init__", "labels.to(self.device)", "labels"),
        lambda: a_run("supcon").step(),
    ),
    "weights stay on the CPU": (
        (training.Run, "__init__", "._built().to(self.device)", "._built()"),
        lambda: a_run().step(),
    ),
    "images are not moved to the noise": (
        (noise.NoiseGenerator, "forward", ".to(next(self.parameters(), x).device)", ""),
        drawn,
    ),
    "a table is made on the CPU": (
        (similarities.Batch, "by_label", ", device=y.device", ""),
        lambda: a_run("supcon").step(),
    ),
    "a diagonal is made on the CPU": (
        (losses.BarlowTwins, "formula", ", device=correlations.device", ""),
        lambda: a_run(loss=losses.BarlowTwins()).step(),
    ),
    "vectors stay on the GPU": (
        (maps, "_rows", ".cpu()", ""),
        lambda: maps.tsne(torch.randn(40, 4, device="cuda", generator=torch.Generator("cuda"))),
    ),
    "means stay on the CPU": (
        (prepared.Prepared, "__init__", ", device=device", ""),
        lambda: report.check(encoders.build("conv16").to("cuda"), data="digits", limit=80, tsne=False),
    ),
    "keys stay on the GPU": (
        (experiments, "key_ages", "by_age.cpu()", "by_age"),
        lambda: experiments.key_ages(0.99, data.load("digits", limit=80), 1, 32, 16, 0, 64).by_age.numpy(),
    ),
}


@pytest.mark.parametrize("mistake", PLANTED)
def test_a_planted_mistake_is_found(mistake, monkeypatch, gpu):
    (owner, name, written, instead), case = PLANTED[mistake]
    case()
    function = getattr(owner, name)
    source = textwrap.dedent(inspect.getsource(function)).replace("super()", "super(type(self), self)")
    assert written in source
    spoiled = {}
    exec(source.replace(written, instead), vars(inspect.getmodule(function)), spoiled)
    monkeypatch.setattr(owner, name, spoiled[name])
    with pytest.raises((RuntimeError, TypeError, ValueError), match=r"same device|one device|cuda:0 device"):
        case()

"""On the pretend GPU: every method once, then saving, reports and commands; planted mistakes are found."""

import inspect
import textwrap

import pytest
import torch

from clutils import checkpoints, data, encoders, maps, methods, report, training
from clutils.__main__ import main
from clutils.report import prepared
from tests.on_a_gpu.pretend_cuda import pretend_cuda
from tests.runs import samples_for

DIGITS = data.load("digits", limit=96)
DRAW_THERE = {"pinda", "simcl", "dacl", "sdmp", "modals", "simgrace"}  # noise and mixes, on the device


@pytest.fixture(autouse=True)
def gpu():
    with pretend_cuda() as waits:
        yield waits


def a_run(method="simclr", **settings) -> training.Run:
    seen = DIGITS if method in methods.catalogue("pictures") else samples_for(method)
    return training.Run(method, **{"data": seen, "batch_size": 32, "steps": 3, "device": "cuda", **settings})


@pytest.mark.parametrize("method", methods.catalogue())
def test_a_method_takes_the_cpus_step_on_a_gpu_and_waits_for_it_once(method, gpu):
    run = a_run(method, precision="float32")
    first = run.step()["loss"]
    gpu.clear()
    run.step()
    assert all(p.is_cuda for p in run.method.parameters())
    if method in methods.catalogue("pictures"):
        assert gpu.total() == 1, gpu
    if method not in DRAW_THERE:
        here = a_run(method, precision="float32", device="cpu")
        assert first == pytest.approx(here.step()["loss"], rel=0.01)


@pytest.mark.parametrize(("begun", "resumed"), [("cuda", "cuda"), ("cuda", "cpu"), ("cpu", "cuda")])
def test_a_run_goes_on_on_either_device_and_its_checkpoint_opens(begun, resumed, tmp_path):
    run = a_run("moco", device=begun)
    run.step()
    run.save(tmp_path / "run.pt")
    again = training.resume(tmp_path / "run.pt", data=DIGITS, device=resumed)
    assert again.steps_done == 1 and again.device.type == resumed
    assert again.step()["loss"] == pytest.approx(run.step()["loss"], rel=0.01)
    assert next(checkpoints.open(tmp_path / "run.pt").encoder.parameters()).device.type == "cpu"


def test_the_commands_train_and_check(tmp_path, capsys):
    out = str(tmp_path / "run")
    assert main(["train", "--data", "digits", "--batch-size", "32", "--steps", "2", "--out", out]) == 0
    assert "on cuda" in capsys.readouterr().out
    page = ["--out", str(tmp_path / "page.json")]
    assert main(["check", out, "--data", "digits", "--images", "80", "--quick", *page]) == 0


def test_a_gpu_without_bfloat16_computes_in_float16_and_the_scale_of_its_loss_is_saved(tmp_path):
    encoders.computes_bfloat16.cache_clear()
    try:
        with pretend_cuda(get_device_capability=(7, 5)):  # as Colab's T4
            run = a_run(data=data.load("vectors:digits", limit=160))
            run.scaler.load_state_dict(run.scaler.state_dict() | {"scale": 2.0**5})
            run.step()
            run.save(tmp_path / "run.pt")
            again = training.resume(tmp_path / "run.pt", data=run.data, device="cuda")
    finally:
        encoders.computes_bfloat16.cache_clear()
    assert run.settings.precision == "float16" and again.scaler.get_scale() == 2.0**5


PLANTED = {  # the function, what is written there, what a mistake makes of it, and what then must fail
    "features stay on the GPU": (
        (encoders, "embed", ".cpu()", ".float()"),
        lambda: a_run().embed(DIGITS).numpy(),
    ),
    "labels stay on the CPU": (
        (training.Run, "__init__", "labels.to(self.device)", "labels"),
        lambda: a_run("supcon").step(),
    ),
    "weights stay on the CPU": (
        (training.Run, "__init__", "._built().to(self.device)", "._built()"),
        lambda: a_run().step(),
    ),
    "vectors stay on the GPU": (
        (maps, "_rows", ".cpu()", ""),
        lambda: maps.tsne(torch.randn(40, 4, device="cuda", generator=torch.Generator("cuda"))),
    ),
    "means stay on the CPU": (
        (prepared.Prepared, "__init__", ", device=device", ""),
        lambda: report.check(encoders.build("conv16").to("cuda"), data="digits", limit=80, tsne=False),
    ),
}


@pytest.mark.parametrize("mistake", PLANTED)
def test_a_planted_mistake_is_found(mistake, monkeypatch):
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

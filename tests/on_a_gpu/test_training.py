"""Runs on the pretend GPU: methods, losses and encoders; saved, resumed, watched, steered, by command."""

import itertools
import threading
import time

import pytest
import torch

from clutils import checkpoints, data, encoders, losses, methods, training, views
from clutils.__main__ import main
from clutils.course import lab as lesson
from clutils.training import watcher
from clutils.training.background import Background
from tests.on_a_gpu.pretend_cuda import Traffic, pretend_cuda
from tests.runs import GRAPHS, NETWORK, samples_for

SCENES, DIGITS = data.load("scenes", limit=160), data.load("digits", limit=160)
VECTORS = data.load("vectors:digits", limit=160)
HALF = {"precision": "float16", "data": VECTORS}  # of which a CPU takes a step of a convolution in seconds
DRAW_THERE = {"pinda", "simcl", "dacl", "sdmp", "modals", "simgrace"}  # noise and mixes, on the device
CLOSE = {"rtol": 0.01, "atol": 1e-4}  # the same sums in another order


def a_run(**settings) -> training.Run:
    method = settings.get("method", "simclr")
    seen = DIGITS if settings.get("precision") == "float16" else SCENES
    seen = seen if method in methods.catalogue("pictures") else samples_for(method)
    return training.Run(**{"data": seen, "batch_size": 32, "steps": 4, "device": "cuda", **settings})


def two_losses(gpu: Traffic, **settings) -> list[float]:
    """Of two steps, all random numbers by the run's seed; `gpu` then knows of the second alone."""
    run, found = a_run(**settings), []
    for _ in range(2):
        gpu.clear()
        found.append(run.step()["loss"])
        assert gpu.count("global draw") == 0
    return found


FLOAT32 = ("simclr", "float32")
STEP = "clutils/training/step.py"  # the file whose line may wait


def waited_once(gpu: Traffic) -> bool:
    assert gpu.places("wait") == gpu.places("to device") == {}, "this line waits for the GPU"
    (place,) = gpu.places("to host")
    return STEP in place and gpu.count("to host") == 1


# one of each form: two views, a queue, two copies of the networks, noise drawn there, statistics of features,
# graphs; a GPU's own precision is bfloat16, float32 is one method's; the sweep has all
FORMS = ("simclr", "moco", "dino", "simcl", "vicreg", "graphcl")
QUICK = {FLOAT32, *((method, "bfloat16") for method in FORMS)}
PRECISIONS = [
    pytest.param(*case, marks=() if case in QUICK else pytest.mark.sweep)
    for case in itertools.product(methods.catalogue(), training.settings.PRECISIONS)
]


@pytest.mark.parametrize(("method", "precision"), PRECISIONS)
def test_a_method_takes_the_steps_that_it_takes_on_a_cpu_and_waits_once_in_each(method, precision, gpu):
    there = two_losses(gpu, method=method, precision=precision)
    # those of graphs wait where they count the nodes that there are
    assert method not in methods.catalogue("pictures") or waited_once(gpu)
    if method in DRAW_THERE:  # as repeatable as all else, but other numbers
        assert there == two_losses(gpu, method=method, precision=precision)
    near = 0.1 if method in DRAW_THERE else 0.03 if precision != "float32" else 0.01
    assert there == pytest.approx(two_losses(gpu, method=method, precision=precision, device="cpu"), rel=near)


ON_VECTORS = [  # the others in the sweep
    pytest.param(method, marks=() if method in ("simclr", "moco", "pinda") else pytest.mark.sweep)
    for method in methods.catalogue("vectors")
]


@pytest.mark.parametrize("method", ON_VECTORS)
def test_a_method_learns_from_vectors(method, gpu):
    there, here = (two_losses(gpu, method=method, data=VECTORS, device=d) for d in ("cuda", "cpu"))
    assert there == pytest.approx(here, rel=0.1 if method in DRAW_THERE else 0.01)


@pytest.mark.parametrize("encoder", ["conv32", "resnet18"])
def test_an_encoder_learns(encoder, gpu):
    there, here = (
        a_run(encoder=encoder, batch_size=6, precision="float32", device=device).step()["loss"]
        for device in ("cuda", "cpu")
    )
    assert there == pytest.approx(here, rel=0.01)


SMALL = {"MoCHi": {"hardest": 8, "synthetic": 4, "query_mixed": 2}, "SSCL": {"hardest": 8}}


@pytest.mark.parametrize("name", losses.catalogue())
def test_a_loss_is_on_the_gpu_what_it_is_on_the_cpu_with_all_that_it_takes(name, gpu):
    entry = losses.catalogue()[name]
    drawn = torch.Generator().manual_seed(0)
    z1, z2, keys = (torch.randn(n, 8, generator=drawn) for n in (12, 12, 24))
    given = {
        "labels": torch.arange(12) % 3,
        "extra_views": torch.randn(12, 2, 8, generator=drawn),
        "queue": keys,
    }
    for extra in ({}, *({one: given[one]} for one in entry.accepts if one in given)):
        found = []
        for device in ("cpu", "cuda"):
            loss = entry.cls(**SMALL.get(name, {})).to(device)
            if hasattr(loss, "generator"):
                loss.generator = torch.Generator().manual_seed(1)
            if "index" in entry.accepts:
                loss.allocate(12)
                loss, extra = loss.to(device), {**extra, "index": torch.arange(12)}
            leaf = z1.clone().to(device).requires_grad_()
            value = loss(leaf, z2.to(device), **{key: of.to(device) for key, of in extra.items()})
            value.backward()
            assert value.device.type == leaf.grad.device.type == device
            found.append((value.item(), leaf.grad.cpu()))
        assert found[0][0] == pytest.approx(found[1][0], rel=1e-4)
        torch.testing.assert_close(found[0][1], found[1][1], rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("name", losses.catalogue())
def test_a_loss_says_which_of_its_arguments_lies_elsewhere(name, gpu):
    loss = losses.catalogue()[name].cls(**SMALL.get(name, {}))
    z = torch.randn(12, 8)
    given = {"index": torch.arange(12)} if "index" in loss.accepts else {}
    with pytest.raises(
        ValueError,
        match=rf"^{name}: z1 on cpu, z2 on cuda:0, (index on cpu, )?but they must be on one device",
    ):
        loss(z, z.to("cuda"), **given)
    if "labels" in loss.accepts:
        with pytest.raises(ValueError, match="labels on cpu"):
            loss(z.to("cuda"), z.to("cuda"), labels=torch.arange(12) % 3)
    if "queue" in loss.accepts:
        with pytest.raises(ValueError, match="queue on cpu"):
            loss(z.to("cuda"), z.to("cuda"), queue=z)
    if "extra_views" in loss.accepts:
        with pytest.raises(ValueError, match="extra_views on cpu"):
            loss(z.to("cuda"), z.to("cuda"), extra_views=z[:, None])
    if loss.level == "similarity":
        with pytest.raises(ValueError, match="positives on cpu, negatives on cuda:0"):
            loss.per_anchor(torch.zeros(3, 1), torch.zeros(3, 4, device="cuda"))


@pytest.mark.parametrize(("begun", "resumed"), [("cuda", "cuda"), ("cuda", "cpu"), ("cpu", "cuda")])
@pytest.mark.parametrize(
    "method", ["moco", *(pytest.param(m, marks=pytest.mark.sweep) for m in ("byol", "pinda"))]
)
def test_a_run_goes_on_on_either_device(method, begun, resumed, tmp_path, gpu):
    run = a_run(method=method, device=begun)
    run.step()
    run.save(tmp_path / "run.pt")
    again = training.resume(tmp_path / "run.pt", data=SCENES, device=resumed)
    assert again.steps_done == 1 and again.device.type == resumed
    assert again.step()["loss"] == pytest.approx(run.step()["loss"], rel=0.01)
    opened = checkpoints.open(tmp_path / "run.pt")
    assert next(opened.encoder.parameters()).device.type == "cpu"


def test_a_seed_gives_the_same_order_views_and_first_weights_on_both(gpu):
    there, here = a_run(), a_run(device="cpu")
    assert torch.equal(there.batch_index().cpu(), here.batch_index())
    seen = [
        run.augmentation(run.images[:8], generator=torch.Generator().manual_seed(7)).cpu()
        for run in (there, here)
    ]
    torch.testing.assert_close(*seen, rtol=0, atol=1e-5)
    for ours, theirs in zip(there.method.parameters(), here.method.parameters(), strict=True):
        assert torch.equal(ours.detach().cpu(), theirs.detach())


def test_networks_are_compiled_as_cuda_graphs_in_the_main_thread_alone(gpu, monkeypatch):
    monkeypatch.setattr("clutils.training.devices.demand_compiler", lambda device: None)
    run, modes = a_run(compile=True), []
    monkeypatch.setattr(type(run.encoder), "compile", lambda _, mode: modes.append(mode))
    run.compile_networks()
    run.compile_networks()
    assert modes == ["reduce-overhead"]
    elsewhere = threading.Thread(target=run.compile_networks)
    elsewhere.start()
    elsewhere.join()
    assert modes == ["reduce-overhead", None]


def test_a_gpu_takes_one_thread_unless_told(gpu):
    assert a_run().settings.threads == 1 and a_run(threads=2).settings.threads == 2


def test_a_failed_step_puts_everything_back(gpu):
    run = a_run()
    run.step()
    before = {name: value.cpu().clone() for name, value in run.method.state_dict().items()}
    run.loss.temperature = -1.0
    with pytest.raises(ValueError, match="temperature"):
        run.step()
    after = {name: value.cpu() for name, value in run.method.state_dict().items()}
    assert all(torch.equal(before[name], after[name]) for name in before)
    run.loss.temperature = 0.2
    assert run.step()["step"] == 2


def test_a_loss_that_is_not_finite_stops_the_step(gpu):
    class Endless(losses.NTXent):
        def formula(self, pairs):
            return super().formula(pairs) * torch.inf

    with pytest.raises(ValueError, match="its loss is inf"):
        a_run(loss=Endless(0.2)).step()


def test_a_run_is_watched_in_the_background_and_turned(gpu):
    run = a_run(data=DIGITS, steps=6)
    looks = watcher.watching(run)
    background = Background(run, on_step=lambda run: None).start()
    background.call(lambda run: setattr(run.loss, "temperature", 0.4)).result()
    looks.look(background.call(watcher.snapshot).result())
    assert background.wait(60) and run.steps_done == 6
    assert looks.looks[0].positions.shape == (len(looks.pictures), 2)
    assert run.history["temperature"].iloc[-1] == 0.4


def test_the_panel_trains_with_its_dials_turned(gpu):
    lab = lesson.training_lab(data="digits", steps=10**5, batch_size=32)
    lab.start()
    assert lab.run.device.type == "cuda"
    lab.set(temperature=0.4)
    until = time.monotonic() + 120
    while not lab.run.rows or lab.run.rows[-1]["temperature"] != 0.4:
        assert time.monotonic() < until, "the dial has not reached the run"
        time.sleep(0.05)
    lab.stop()
    assert lab.run.loss.temperature == 0.4 and lab.error.layout.display == "none"


def test_the_commands_train_resume_and_check(tmp_path, capsys, gpu):
    out = str(tmp_path / "run")
    short = ["--data", "digits", "--batch-size", "32"]
    assert main(["train", *short, "--steps", "2", "--method", "pinda", "--out", out]) == 0
    assert "on cuda" in capsys.readouterr().out
    assert main(["train", *short, "--steps", "3", "--method", "pinda", "--out", out, "--resume"]) == 0
    page = ["--out", str(tmp_path / "page.html")]
    assert main(["check", f"{out}/checkpoint.pt", "--data", "digits", "--pictures", "80", *page]) == 0
    assert (tmp_path / "page.html").stat().st_size > 10_000


@pytest.mark.parametrize("preset", views.PRESETS)
def test_views_are_the_cpus(preset, gpu):
    images = SCENES.images[:6]
    augment = views.preset(preset, size=24)
    augment.blur = 0.5
    drawn = augment.draw(6, 32, 32, torch.Generator().manual_seed(0))
    torch.testing.assert_close(augment.apply(images.to("cuda"), drawn).cpu(), augment.apply(images, drawn))
    there = augment(images.to("cuda"), torch.Generator("cuda").manual_seed(0))  # drawn on the GPU
    assert there.is_cuda and there.shape == (6, 3, 24, 24)


@pytest.mark.parametrize("name", [name for name in encoders.NAMES if name != "resnet50"])
def test_an_encoder_embeds_what_it_does_on_the_cpu(name, gpu):
    sentences = data.load("sentences:topics", limit=6)
    samples = {
        "pictures": SCENES,
        "vectors": VECTORS,
        "sentences": sentences,
        "graphs": GRAPHS,
        "nodes": NETWORK,
    }
    inputs = samples[encoders.NAMES[name]].inputs[:6]
    net = encoders.build(name, channels=data.width(inputs))
    here = encoders.embed(net, inputs)
    there = encoders.embed(net.to("cuda"), inputs)
    assert there.device.type == "cpu"
    torch.testing.assert_close(there, here, **CLOSE)


# ---- one wait a step ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "loss"),
    [
        *(("simclr", name) for name, entry in losses.catalogue().items() if methods.SimCLR.fits(entry.cls)),
        ("moco", "MoCHi"),
    ],
)
def test_a_step_waits_for_the_gpu_once_whatever_the_loss(method, loss, gpu):
    one = losses.catalogue()[loss].cls(**SMALL.get(loss, {}))
    run = a_run(method=method, loss=one, data=DIGITS, precision="bfloat16")
    run.step()
    gpu.clear()
    run.step()
    assert waited_once(gpu)
    assert run.loss.check_inputs  # outside a step it looks at what it is given, as anywhere


def test_views_take_at_most_half_the_launches_that_they_took(gpu):
    images = SCENES.images[:64].to("cuda")
    augment = views.Augmentation(size=32)
    for _ in range(2):
        gpu.clear()
        augment(images, torch.Generator().manual_seed(0))
    assert gpu.count("launch") <= 123 // 2
    assert gpu.count("to device, not waiting") == 1
    assert gpu.count("to device") == gpu.count("wait") == gpu.count("to host") == 0


def test_a_new_epoch_does_not_wait_either(gpu):
    run = a_run(data=SCENES.subset(slice(0, 64)), batch_size=32)  # two steps an epoch
    run.step()
    run.step()
    gpu.clear()
    run.step()
    assert gpu.count("to device") == gpu.count("wait") == 0 and gpu.count("to host") == 1


def test_what_is_drawn_ahead_is_what_would_be_drawn(gpu):
    """Also where a setting is turned between two steps, and where a step fails."""
    ahead, not_ahead = a_run(steps=8), a_run(steps=8)
    for step in range(6):
        if step == 2:
            for run in (ahead, not_ahead):
                run.augmentation.jitter = (0.1, 0.1, 0.1, 0.1)
        if step == 4:
            ahead.loss.temperature = -1.0
            with pytest.raises(ValueError, match="temperature"):
                ahead.step()
            ahead.loss.temperature = 0.2
        not_ahead._ahead = None
        assert ahead.step()["loss"] == not_ahead.step()["loss"]
        assert ahead._ahead._ready is not None


# ---- float16 -----------------------------------------------------------------------------------------------


def test_a_gpu_without_bfloat16_computes_in_float16_and_scales_the_loss():
    encoders.computes_bfloat16.cache_clear()
    try:
        with pretend_cuda(get_device_capability=(7, 5)):  # as Colab's T4
            run = a_run(data=VECTORS)
            assert run.settings.precision == "float16" and run.scaler.get_scale() == 2.0**12
            run.step()
    finally:
        encoders.computes_bfloat16.cache_clear()


def test_a_gradient_too_large_for_float16_is_left_out_and_the_scale_falls(gpu):
    run = a_run(**HALF)
    run.scaler.load_state_dict(run.scaler.state_dict() | {"scale": 2.0**40})
    before = [p.detach().cpu().clone() for p in run.method.parameters()]
    run.step()
    assert run.scaler.get_scale() == 2.0**39 and run.steps_done == 1
    for p, old in zip(run.method.parameters(), before, strict=True):
        assert torch.equal(p.detach().cpu(), old)
    run.scaler.update(2.0**8)  # as after many falls
    run.step()
    assert any(
        not torch.equal(p.detach().cpu(), old) for p, old in zip(run.method.parameters(), before, strict=True)
    )


def test_the_scale_is_saved_with_the_run(tmp_path, gpu):
    run = a_run(**HALF)
    run.scaler.load_state_dict(run.scaler.state_dict() | {"scale": 2.0**5})
    run.step()
    run.save(tmp_path / "run.pt")
    again = training.resume(tmp_path / "run.pt", data=VECTORS, device="cuda")
    assert again.scaler.get_scale() == 2.0**5
    assert again.step()["loss"] == run.step()["loss"]


# ---- several devices ---------------------------------------------------------------------------------------


def test_a_background_run_makes_its_gpu_that_of_its_thread(gpu, monkeypatch):
    chosen = []
    monkeypatch.setattr(torch.cuda, "set_device", lambda d: chosen.append((d, threading.get_ident())))
    run = a_run(steps=2)
    assert Background(run).start().wait(60)
    assert [device for device, _ in chosen] == [run.device] and run.device.index == 0
    assert chosen[0][1] != threading.get_ident()


def test_each_gpu_is_asked_for_itself_whether_it_computes_in_bfloat16(gpu, monkeypatch):
    capable = {0: (7, 5), 1: (9, 0)}
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capable[device.index])
    encoders.computes_bfloat16.cache_clear()
    halves = [encoders.half_precision(torch.device("cuda", number)) for number in (0, 1)]
    encoders.computes_bfloat16.cache_clear()
    assert halves == [torch.float16, torch.bfloat16]


# ---- what a step that fails leaves -------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_float16_run_goes_on_after_a_step_that_failed(device, monkeypatch, gpu):
    run = a_run(**HALF, device=device)
    run.step()
    with monkeypatch.context() as interrupted:
        interrupted.setattr(torch.nn.utils, "get_total_norm", lambda gradients: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run.step()
    with monkeypatch.context() as interrupted:  # where Ctrl-C is most likely to come
        interrupted.setattr("math.isfinite", lambda number: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run.step()
    assert run.step()["step"] == 2


def test_losses_within_a_loss_of_one_s_own_do_not_wait_either(gpu):
    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = torch.nn.ModuleList([losses.NTXent(0.2), losses.BarlowTwins()])

        def forward(self, z1, z2):
            return sum(part(z1, z2) for part in self.parts)

    run = a_run(loss=Both())
    run.step()
    gpu.clear()
    run.step()
    assert gpu.count("wait") == 0 and all(part.check_inputs for part in run.loss.parts)


def test_a_list_in_the_augmentation_may_change_where_it_is(gpu):
    ahead, not_ahead = (a_run(augmentation=views.Augmentation(jitter=[0.4, 0.4, 0.4, 0.1])) for _ in range(2))
    for step in range(3):
        if step == 2:
            ahead.augmentation.jitter[0] = not_ahead.augmentation.jitter[0] = 0.0
        not_ahead._ahead = None
        assert ahead.step()["loss"] == not_ahead.step()["loss"]


def test_a_loss_with_a_state_may_be_set_on_the_way(gpu):
    run = a_run()
    run.step()
    run.loss = losses.SogCLR(0.2)
    run.step()
    assert run.loss.log_average.is_cuda and run.loss.log_average.isfinite().sum().item() == 32


def test_a_loss_whose_chance_fails_leaves_the_run_as_it_was(gpu):
    class Hopeless(losses.NTXent):
        def chance(self, K):
            raise ValueError("none")

    run = a_run(loss=Hopeless(0.2))
    before = [p.detach().cpu().clone() for p in run.method.parameters()]
    with pytest.raises(ValueError, match="none"):
        run.step()
    assert run.steps_done == len(run.rows) == 0
    assert all(
        torch.equal(p.detach().cpu(), old) for p, old in zip(run.method.parameters(), before, strict=True)
    )

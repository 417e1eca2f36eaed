"""`notebooks/simclr.py`, SimCLR in one file: it is the package's training step, and it runs as it stands."""

import ast
import copy
import importlib.util
import os
import subprocess
import sys
from types import ModuleType

import pytest
import torch
from PIL import Image
from torch import Tensor

from clutils import checkpoints, data, encoders, losses, measures, training, views


@pytest.fixture
def simclr(root, monkeypatch) -> ModuleType:
    """The file as a module, set to small steps of 32 images on the CPU.

    Adam's first steps are as long for a gradient that is rounding alone: a small rate keeps that below 1e-5.
    """
    spec = importlib.util.spec_from_file_location("simclr", root / "notebooks" / "simclr.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, value in {
        "STEPS": 40,
        "LEARNING_RATE": 1e-5,
        "BATCH": 32,
        "WORKERS": 0,
        "DEVICE": "cpu",
    }.items():
        monkeypatch.setattr(module, name, value)
    return module


def beside(simclr: ModuleType) -> tuple[training.Run, list[tuple[Tensor, Tensor]], tuple]:
    """A run of the package with the file's settings, the views that it draws, and the file's networks.

    Both have the same weights, and images in the memory order of a run: in another, convolutions round
    differently, by up to 1e-3 of a gradient.
    """
    torch.manual_seed(0)
    order = torch.channels_last
    encoder, head = (network.to(memory_format=order) for network in simclr.make_networks())
    own = copy.deepcopy(encoder)
    own.features = 128
    augment, pairs = views.Augmentation(), []

    def recorded(images: Tensor, generator: torch.Generator) -> Tensor:
        both = augment(images, generator)
        pairs.append(both.contiguous(memory_format=order).chunk(2))
        return both

    run = training.Run(
        data=data.load("scenes", limit=96),
        loss=losses.NTXent(simclr.TEMPERATURE),
        encoder=own,
        augmentation=recorded,
        steps=simclr.STEPS,
        batch_size=simclr.BATCH,
        learning_rate=simclr.LEARNING_RATE,
        weight_decay=simclr.WEIGHT_DECAY,
        precision="float32",
        device="cpu",
    )
    weights = run.method.head.state_dict().values()
    head.load_state_dict(dict(zip(head.state_dict(), weights, strict=True)))
    return run, pairs, (encoder, head)


def test_one_step_has_the_loss_and_the_gradients_of_a_run_s_step(simclr):
    run, pairs, (encoder, head) = beside(simclr)
    assert all(network.training for network in (run.method, encoder, head))
    theirs, *_ = run.method(run.images[:32], run.augmentation, torch.Generator())
    theirs.backward()
    z1, z2 = head(encoder(torch.cat(pairs[0]))).chunk(2)
    ours = simclr.nt_xent(z1, z2)
    ours.backward()
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=0)
    weights = [*encoder.parameters(), *head.parameters()]
    expected = [*run.method.encoder.parameters(), *run.method.head.parameters()]
    for weight, other in zip(weights, expected, strict=True):
        assert (weight.grad - other.grad).abs().max() <= 1e-5 * other.grad.abs().max()


def test_its_losses_are_those_of_a_run_step_by_step(simclr):
    run, pairs, networks = beside(simclr)
    for _ in range(8):  # the rate rises in two of them
        run.step()
    found = simclr.train(*networks, pairs)
    assert len(found) == 8 and found == pytest.approx(run.history["loss"].tolist(), rel=1e-5)
    rates = [simclr.learning_rate(step) for step in range(8)]
    assert rates == pytest.approx(run.history["learning_rate"].tolist(), rel=1e-12)


def test_its_accuracy_is_that_of_the_measures(simclr):
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(900) % 5
    z = torch.randn(5, 8, generator=draw)[labels] + 2 * torch.randn(900, 8, generator=draw)
    parts = z[:300], labels[:300], z[300:], labels[300:]
    expected = measures.knn_accuracy(*parts, k=simclr.NEIGHBOURS)
    assert 0.3 < expected < 0.9 and simclr.knn_accuracy(*parts) == pytest.approx(expected, abs=1e-9)


def test_two_views_are_two_draws_and_a_folder_has_its_classes(simclr, tmp_path, monkeypatch):
    images, labels = simclr.generated(8, seed=0)
    one, other = simclr.TwoViews(images)[3]
    assert one.shape == other.shape == (3, 32, 32) and not torch.equal(one, other)
    assert one.dtype == torch.float32 and 0 <= float(one.min()) <= float(one.max()) <= 1
    for part in ("train", "test"):
        for image, label in zip(images, labels.tolist(), strict=True):
            folder = tmp_path / part / f"class{label}"
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"{len(list(folder.iterdir()))}.png"
            Image.fromarray(image.permute(1, 2, 0).numpy()).save(file)
    monkeypatch.setattr(simclr, "DATA", str(tmp_path))
    for found, classes in simclr.load():
        assert found.shape == images.shape and len(classes.unique()) == len(labels.unique())


def test_it_runs_as_a_script_without_a_network_and_says_what_it_does(root, tmp_path):
    settings = ("STEPS=2", "BATCH=16", "SIZE=16", "WORKERS=0")
    script = [sys.executable, str(root / "notebooks" / "simclr.py"), *settings]
    nobody = dict.fromkeys(("http_proxy", "https_proxy", "HTTPS_PROXY", "HTTP_PROXY"), "http://127.0.0.1:9")
    options = {"cwd": tmp_path, "env": os.environ | nobody, "capture_output": True, "text": True}
    said = subprocess.run([*script, "DEVICE=cpu"], **options, check=True).stdout.splitlines()
    assert said[0].startswith("CIFAR-10 could not be downloaded") and "generated images instead" in said[0]
    assert [line.partition(":")[0] for line in said[1:]] == [
        "kNN accuracy before training",
        "step 2 of 2",
        "kNN accuracy after training",
    ]
    opened = checkpoints.open(tmp_path / "simclr.pt")
    assert (opened.arch, opened.temperature, opened.missing) == ("conv16", 0.2, [])
    assert opened.head is not None
    ended = subprocess.run([*script, "STEPS=two"], **options)
    assert ended.returncode == 1 and ended.stdout == "" and "'two'" in ended.stderr
    assert "File " not in ended.stderr, "a traceback, where one line says it"


@pytest.mark.parametrize("network, arch", [("small", "conv16"), ("resnet18", "resnet18")])
def test_what_it_saves_gives_the_same_features_and_vectors(simclr, monkeypatch, tmp_path, network, arch):
    monkeypatch.setattr(simclr, "NETWORK", network)
    monkeypatch.setattr(simclr, "OUT", str(tmp_path / "own.pt"))
    monkeypatch.setattr(simclr, "STEPS", 1)
    monkeypatch.setattr(simclr, "generated", lambda count, seed, real=simclr.generated: real(40, seed))
    made = simclr.make_networks()
    monkeypatch.setattr(simclr, "make_networks", lambda: made)
    monkeypatch.setattr(sys, "argv", ["simclr.py", "DATA=generated"])
    simclr.main()
    images, _ = simclr.generated(40, seed=2)
    opened = checkpoints.open(tmp_path / "own.pt")
    encoder, head = (network.eval() for network in made)
    features = simclr.features(encoder, images)
    assert opened.arch == arch
    torch.testing.assert_close(encoders.embed(opened.encoder, images), features, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(opened.head.eval()(features), head(features), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        *(
            (given, f"^{given.replace('=', ' is ')}, but must be a number from ")
            for given in (
                *("TEMPERATURE=0", "TEMPERATURE=nan", "LEARNING_RATE=nan", "LEARNING_RATE=-1", "SIZE=-3"),
                *("SIZE=8", "STEPS=-1", "BATCH=1", "NEIGHBOURS=0", "WORKERS=-1", "WEIGHT_DECAY=inf"),
            )
        ),
        ("STEP=3", r"no setting 'STEP'; there are DATA, NETWORK, SIZE, .*, DEVICE, OUT$"),
        *((f"{name}={value}", value) for name, value in (("NETWORK", "resnet19"), ("DEVICE", "abacus"))),
        *((given, "no.*where") for given in ("DATA=nowhere", "OUT=no/where.pt")),
    ],
)
def test_a_setting_that_does_not_fit_is_one_line_that_quotes_it_before_the_training(
    simclr, monkeypatch, given, said
):
    monkeypatch.setattr(sys, "argv", ["simclr.py", "DATA=generated", given])
    monkeypatch.setattr(simclr, "generated", lambda count, seed, real=simclr.generated: real(40, seed))
    monkeypatch.setattr(simclr, "train", lambda *networks: pytest.fail("it trained"))
    with pytest.raises((SystemExit, Exception), match=said):
        simclr.main()


def test_it_is_one_short_file_that_needs_torch_and_torchvision_alone(root):
    source = (root / "notebooks" / "simclr.py").read_text("utf-8")
    assert len(source.splitlines()) <= 200
    tree = ast.parse(source)
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    needed = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
    assert needed == {"torch", "torchvision"}

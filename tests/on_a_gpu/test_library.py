"""Measures, maps, anatomy, reports, checkpoints and noise on the pretend GPU."""

import numpy as np
import pytest
import torch

from clutils import anatomy, checkpoints, data, encoders, figures, losses, maps, measures, noise, report
from clutils.course.pinda.maps import indifference
from clutils.training import noise_maps
from clutils.training.run import Run

DIGITS = data.load("digits", limit=160)
DRAWN = torch.Generator().manual_seed(0)
Z, OTHER, Y = torch.randn(60, 6, generator=DRAWN), torch.randn(60, 6, generator=DRAWN), torch.arange(60) % 3

MEASURES = {
    "alignment": lambda z, other, y: measures.alignment(z, other),
    "uniformity": lambda z, other, y: measures.uniformity(z),
    "tolerance": lambda z, other, y: measures.tolerance(z, y),
    "effective_rank": lambda z, other, y: measures.effective_rank(z),
    "knn_accuracy": lambda z, other, y: measures.knn_accuracy(z, y, other, y, k=5),
    "linear_probe": lambda z, other, y: measures.linear_probe(z, y, other, y),
    "few_label_probe": lambda z, other, y: measures.few_label_probe(z, y, other, y, labels=6).mean,
    "trustworthiness": lambda z, other, y: maps.trustworthiness(z, other[:, :2]),
    "neighbour_share": lambda z, other, y: maps.neighbour_share(other[:, :2], y),
    "tsne": lambda z, other, y: maps.tsne(z, perplexity=10),  # its rows come as all maps' do
    "W": lambda z, other, y: anatomy.gradient_scale(
        torch.tanh(z[:, 0]), torch.tanh(other), 0.3
    ).cpu(),
    "forces": lambda z, other, y: anatomy.forces(
        losses.NTXent(0.3), torch.tanh(z[:, :1]), torch.tanh(other)
    )[1].cpu(),
    "push_on_false_negatives": lambda z, other, y: anatomy.push_on_false_negatives(z, other, y, 0.3).cpu(),
}  # fmt: skip


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_is_the_cpus(name, gpu):
    here = MEASURES[name](Z, OTHER, Y)
    there = MEASURES[name](*(given.to("cuda") for given in (Z, OTHER, Y)))
    assert not isinstance(there, torch.Tensor) or there.device.type == "cpu"
    np.testing.assert_allclose(np.asarray(there), np.asarray(here), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["alignment", "knn_accuracy", "linear_probe", "few_label_probe", "W"])
def test_a_callers_two_devices_are_one_clear_error(name, gpu):
    with pytest.raises(ValueError, match=r"on c.*, but they must be on one device"):
        MEASURES[name](Z.to("cuda"), OTHER, Y)


def test_labels_may_lie_elsewhere(gpu):
    there = measures.knn_accuracy(Z.to("cuda"), Y, OTHER.to("cuda"), Y, k=5)
    assert there == measures.knn_accuracy(Z, Y, OTHER, Y, k=5)


@pytest.mark.parametrize("network", noise.NETWORKS)
def test_noise_is_made_where_its_network_lies(network, gpu):
    x = Z if network == "mlp" else torch.rand(4, 3, 16, 16)
    made = noise.NoiseGenerator(network, channels=6 if network == "mlp" else 3).to("cuda")
    for given in (x, x.to("cuda")):
        for generator in (torch.Generator(), torch.Generator("cuda"), None):
            drawn = made(given, None if generator is None else generator.manual_seed(0))
            if network != "fixed":  # nothing of that lies anywhere
                assert drawn.sample.is_cuda and drawn.scale.is_cuda
    if network != "mlp":
        figures.noise.noise(x, drawn.scale, drawn.sample, drawn.mean)


def test_noise_maps_are_kept_of_pictures_on_the_gpu(tmp_path, gpu):
    run = Run("pinda", data=data.load("scenes", limit=64), batch_size=32, steps=2, device="cuda")
    watch = noise_maps.Watch(run.images[:8], every=1)
    watch.take(run)
    watch.maps.save(tmp_path / "maps.npz")
    assert noise_maps.load(tmp_path / "maps.npz").scale.shape == (1, 8, 3, 32, 32)
    assert indifference(run.encoder, run.images[:4].cpu()).device.type == "cpu"


@pytest.mark.parametrize(
    "given",
    ["checkpoint on the GPU", *(pytest.param(more, marks=pytest.mark.sweep) for more in ("module", "file"))],
)
def test_a_report_is_the_cpus(given, tmp_path, gpu):
    run = Run("pinda", data=DIGITS, batch_size=32, steps=2, device="cuda")
    run.step()
    run.save(tmp_path / "run.pt")
    opened = checkpoints.open(tmp_path / "run.pt")
    asked = {"data": "digits", "limit": 120, "tsne": False}
    if given == "module":
        here, there = report.check(opened.encoder, **asked), report.check(run.encoder, **asked)
    else:
        here = report.check(opened, **asked)
        if given != "file":
            for part in (opened.encoder, opened.head, opened.generator):
                part.to("cuda")
        there = report.check(tmp_path / "run.pt" if given == "file" else opened, **asked)
    assert [verdict.level for verdict in there.verdicts] == [verdict.level for verdict in here.verdicts]
    there.write(tmp_path / "page.html")


def test_an_encoder_is_told_pictures_of_either_device(gpu):
    net = encoders.build("conv16", channels=1).to("cuda")
    here, there = (
        encoders.embed(net, images) for images in (DIGITS.images[:4], DIGITS.images[:4].to("cuda"))
    )
    assert torch.equal(here, there)


def test_figures_and_reports_take_labels_of_the_gpu(gpu):
    labels = DIGITS.labels.to("cuda")
    assert measures.tolerance(DIGITS.images.flatten(1).float(), labels) > 0

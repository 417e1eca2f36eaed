"""VICReg: three terms, and two weightings of them in use."""

import math

import pytest
import torch
from torch import nn

from clutils import anatomy, data, losses, measures
from clutils.training.settings import from_plain
from tests.losses.inputs import close, embeddings


def test_four_points_for_all_pictures_satisfy_both_regularisers_and_uniformity_sees_it():
    square = torch.tensor([[1, 1], [1, -1], [-1, 1], [-1, -1]], dtype=torch.float64).repeat(64, 1)
    angle = torch.arange(256, dtype=torch.float64) * 2 * math.pi / 256
    ring = math.sqrt(2) * torch.stack([angle.cos(), angle.sin()], dim=1)
    for z in (square, ring):
        assert float(losses.VICReg()(z, z)) == pytest.approx(0, abs=1e-12)
    assert float(measures.uniformity(ring)) < float(measures.uniformity(square)) - 0.2
    collapsed = torch.ones_like(ring) + 1e-9 * ring
    assert float(losses.VICReg()(collapsed, collapsed)) == pytest.approx(25 * 0.99, rel=1e-3)


def test_by_default_it_is_the_librarys_and_as_printed_another_loss_at_the_same_numbers():
    library = pytest.importorskip("lightly.loss")
    z1, z2 = (0.7 * z for z in embeddings(9, 4))
    theirs = library.VICRegLoss(25.0, 25.0, 1.0)(z1, z2)
    close(losses.VICReg()(z1, z2), theirs)
    close(losses.VICReg(25.0 / 4, 25.0 / 2, 1.0, printed=True)(z1, z2), theirs)
    assert float(losses.VICReg(printed=True)(z1, z2)) > 1.5 * float(theirs)


@pytest.mark.parametrize("printed", [False, True])
def test_in_a_loop_of_ones_own_the_default_trains_and_the_printed_sums_collapse(printed):
    """A head of 128 outputs on digits: 25, 25 and 1 before sums collapsed within sixty steps."""
    images = data.load("digits", limit=512).images.float().flatten(1) / 255
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 128))
    optimiser, loss = torch.optim.Adam(net.parameters(), 3e-3), losses.VICReg(printed=printed)
    collapsed = anatomy.ruler(loss, 128).collapsed
    for k in range(60):
        batch = images[128 * (k % 4) :][:128]
        z1, z2 = (net(batch + 0.2 * torch.randn_like(batch)) for _ in range(2))
        optimiser.zero_grad()
        value = loss(z1, z2)
        value.backward()
        optimiser.step()
    assert (value.item() > 0.9 * collapsed) == printed, value


def test_settings_of_a_run_from_before_there_were_two_forms_are_the_printed_one():
    kept = {"invariance": 25 / 128, "variance": 12.5, "covariance": 1.0}
    settings = from_plain({"loss": {"name": "VICReg", "settings": kept}})
    assert settings["loss"].printed and not losses.VICReg().printed
    z1, z2 = embeddings(9, 4)
    close(settings["loss"](z1, z2), losses.VICReg.as_written(z1, z2, 25 / 128, 12.5, 1.0, printed=True))

"""CLAE: one signed step up the loss makes the view that the weights descend."""

import copy

import pytest
import torch

from clutils import encoders, losses, methods
from tests.runs import DIGITS


def test_claes_view_is_one_signed_step_up_the_loss_and_the_weights_descend_it():
    torch.manual_seed(0)
    method = methods.CLAE(encoders.build("conv16", channels=1), losses.NTXent(0.3), strength=0.05).train()
    copied = copy.deepcopy(method)
    x = DIGITS.images[:8].float() / 255
    first = x.clone().requires_grad_()
    second = 0.9 * x

    def half_dark(images, generator):
        return torch.cat([x, second])

    z1, z2 = copied.head(copied.encoder(torch.cat([first, second]))).chunk(2)
    (slope,) = torch.autograd.grad(copied.loss(z1, z2), first)
    adversarial = x + 0.05 * slope.sign()
    z1, z2 = copied.head(copied.encoder(torch.cat([adversarial, second]))).chunk(2)
    loss, *_ = method(DIGITS.images[:8], half_dark, torch.Generator().manual_seed(0))
    assert loss.item() == pytest.approx(copied.loss(z1, z2).item(), rel=1e-4)
    reported = {name: value.item() for name, value in method.reported.items()}
    assert reported["loss"] > reported["clean_loss"]
    with_clean = methods.CLAE(encoders.build("conv16", channels=1), losses.NTXent(0.3), clean=0.5).train()
    total, *_ = with_clean(DIGITS.images[:8], half_dark, torch.Generator().manual_seed(0))
    reported = with_clean.reported
    torch.testing.assert_close(total, reported["loss"] + 0.5 * reported["clean_loss"])
    total.backward()

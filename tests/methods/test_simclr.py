"""SimCLR: two views, one encoder, one head and the loss."""

import math

import pytest
import torch
from torch import nn

from clutils import encoders, losses, methods, views
from tests.runs import DIGITS, advance, small


def test_the_simclr_step_is_two_views_one_encoder_one_head_and_the_loss():
    torch.manual_seed(0)
    method = methods.SimCLR(encoders.build("conv16", channels=1), losses.NTXent(temperature=0.3)).train()
    images, augment = DIGITS.images[:16], views.Augmentation(size=8, flip=0.0)
    loss, z1, z2 = method(images, augment, torch.Generator().manual_seed(7))
    both = augment(torch.cat([images, images]), generator=torch.Generator().manual_seed(7))
    assert not torch.equal(both[:16], both[16:])
    z = method.head(method.encoder(both))
    torch.testing.assert_close(torch.cat([z1, z2]), z.detach(), rtol=1e-3, atol=1e-4)
    logits = nn.functional.normalize(z, dim=1) @ nn.functional.normalize(z, dim=1).T / 0.3
    logits = logits.masked_fill(torch.eye(32, dtype=torch.bool), -torch.inf)
    expected = nn.functional.cross_entropy(logits, torch.arange(32).roll(16))
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-4)
    assert loss.requires_grad and not z1.requires_grad


def test_chance_is_log_of_2b_minus_1_for_nt_xent_and_each_losss_own_for_others():
    assert advance(small(), 1).rows[0]["chance"] == pytest.approx(math.log(2 * 32 - 1))
    decoupled = losses.Decoupled(temperature=0.2)
    assert advance(small(loss=decoupled), 1).rows[0]["chance"] == pytest.approx(decoupled.chance(62))

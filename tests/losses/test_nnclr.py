"""NNCLR: the nearest neighbour of a view in a support set stands in for it."""

import torch

from clutils import losses
from tests.losses.inputs import close, embeddings


def test_without_a_queue_each_is_its_own_neighbour_clips_value_without_the_anchors_gradient():
    z1, z2 = (z.requires_grad_() for z in embeddings(6, 4))
    ours, clip = losses.NNCLR(0.2)(z1, z2), losses.CLIP(0.2)(z1, z2)
    close(ours, clip)
    own, unit = torch.arange(6), [torch.nn.functional.normalize(z, dim=1) for z in (z1, z2)]
    through_anchors = [
        torch.nn.functional.cross_entropy(anchor @ key.detach().T / 0.2, own)
        for anchor, key in (unit, reversed(unit))
    ]
    found = (
        torch.autograd.grad(v, (z1, z2), retain_graph=True) for v in (ours, clip, sum(through_anchors) / 2)
    )
    for mine, whole, anchors in zip(*found, strict=True):
        close(mine, whole - anchors)
    close(losses.NNCLR(0.2)(z1, z2, queue=torch.cat([z1, z2])), ours)

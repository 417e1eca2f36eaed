"""SDMP: mixed images near their sources, by their shares, and near mixes that share them."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import normalize

from clutils import losses, methods
from tests.methods.steps import VECTORS, Fixed, built, by_loops, views_of
from tests.runs import small


def one_way(anchors, others, i, j, temperature):
    """InfoNCE of anchor i with others[j] for its positive."""
    scores = [math.exp(sum(a * b for a, b in zip(anchors[i], o, strict=True)) / temperature) for o in others]
    return -math.log(scores[j] / sum(scores))


@pytest.mark.parametrize("batch", [8, 9])  # of nine, the middle one is mixed with itself
def test_a_step_is_the_readmes_three_losses_in_loops(batch):
    sdmp = built(methods.SDMP, losses.NTXent(0.3), mixing=0.7)
    views = views_of(VECTORS[:batch], 2)
    loss, *_ = sdmp(VECTORS[:batch], Fixed(*views), torch.Generator().manual_seed(2))
    drawn = torch.rand(batch, generator=torch.Generator().manual_seed(2)).double()
    share = [0.1 + 0.8 * float(u) for u in drawn]
    mirror = [batch - 1 - i for i in range(batch)]
    mixes = [
        torch.stack([share[i] * x[i] + (1 - share[i]) * x[mirror[i]] for i in range(batch)]) for x in views
    ]
    embedded = normalize(sdmp.head(sdmp.encoder(torch.cat([*views, *mixes]))), dim=1).chunk(4)
    plain = by_loops(losses.NTXent(0.3), *embedded[:2])
    z2, m1, m2 = (z.tolist() for z in embedded[1:])
    sources, mixed = 0.0, 0.0
    for i, j in enumerate(mirror):
        common = min(share[i], 1 - share[j]) + min(1 - share[i], share[j])
        sources += share[i] * one_way(m1, z2, i, i, 0.3) + (1 - share[i]) * one_way(m1, z2, i, j, 0.3)
        mixed += (one_way(m1, m2, i, i, 0.3) + common * one_way(m1, m2, i, j, 0.3)) / (1 + common)
    assert loss.item() == pytest.approx(plain + 0.7 * (sources + mixed) / batch, rel=1e-6)
    reported = {name: value.item() for name, value in sdmp.reported.items()}
    expected = {"plain": plain, "to_sources": sources / batch, "to_mixes": mixed / batch}
    assert reported == pytest.approx(expected, rel=1e-6)


def test_without_the_terms_it_is_simclr_on_vectors_and_the_history_has_all_three():
    run = small(method="sdmp", method_settings={"mixing": 0.5})
    row = run.step()
    assert row["loss"] == pytest.approx(row["plain"] + 0.5 * (row["to_sources"] + row["to_mixes"]), rel=1e-5)
    assert row["chance"] == pytest.approx(math.log(63) + math.log(32))

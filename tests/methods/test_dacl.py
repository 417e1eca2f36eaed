"""DACL: a little of another row of the batch in each view."""

from __future__ import annotations

import pytest
import torch

from clutils import losses, methods
from tests.methods.steps import VECTORS, Fixed, built, by_loops, views_of
from tests.runs import DIGITS, small


def test_every_mix_is_its_own_row_and_a_share_of_one_other():
    dacl = built(methods.DACL, mixed=0.4)
    x = torch.randn(200, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mixed = dacl.mix(x, torch.Generator().manual_seed(1))
    shares, partners = [], []
    for i in range(200):
        found = []
        for j in range(200):
            if j != i:
                toward, moved = x[j] - x[i], mixed[i] - x[i]
                share = float(moved @ toward / (toward @ toward))
                if float((moved - share * toward).norm()) < 1e-9:
                    found.append((share, j))
        ((share, partner),) = found  # one row explains it, and no other
        shares.append(share)
        partners.append(partner)
    assert 0 <= min(shares) < 0.03 and 0.37 < max(shares) <= 0.4
    assert sum(shares) / 200 == pytest.approx(0.2, abs=0.03)
    assert len(set(partners)) > 100


def test_a_step_is_nt_xent_of_two_mixes_in_loops():
    dacl = built(methods.DACL, losses.NTXent(0.3))
    views = views_of(VECTORS[:9], 2)
    loss, *_ = dacl(VECTORS[:9], Fixed(*views), torch.Generator().manual_seed(4))
    draw = torch.Generator().manual_seed(4)
    mixes = []
    for view in views:
        which, share = torch.rand((2, 9), generator=draw).double()
        rows = []
        for i in range(9):
            other = view[(i + 1 + int(which[i] * 8)) % 9]
            rows.append((1 - 0.3 * share[i]) * view[i] + 0.3 * share[i] * other)
        mixes.append(torch.stack(rows))
    z1, z2 = dacl.head(dacl.encoder(torch.cat(mixes))).chunk(2)
    expected = by_loops(losses.NTXent(0.3), z1, z2)
    assert loss.item() == pytest.approx(expected, rel=1e-6)  # a share is drawn in float32


def test_with_nothing_mixed_in_it_is_simclr():
    given = {"data": DIGITS, "batch_size": 32, "steps": 20}
    plain = small(method="simclr", **given).step()["loss"]
    assert small(method="dacl", method_settings={"mixed": 0.0}, **given).step()["loss"] == plain
    assert small(method="dacl", method_settings={"mixed": 0.5}, **given).step()["loss"] != plain

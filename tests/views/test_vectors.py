"""Views of vectors: which numbers change, to what, in which units, and what is refused."""

import pytest
import torch

from clutils.views.vectors import Corruption, Masking, Noise


def rows(n: int = 400, D: int = 5) -> torch.Tensor:
    """Columns of very different units."""
    units = 10.0 ** torch.arange(D)
    return units * (torch.rand(n, D, generator=torch.Generator().manual_seed(0)) - 0.5)


def dice(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_corruption_takes_each_number_from_its_own_column_at_its_rate():
    x = rows()
    view = Corruption(0.3)(x, dice())
    assert view.shape == x.shape and view.dtype == torch.float32
    for column in range(5):
        assert set(view[:, column].tolist()) <= set(x[:, column].tolist())
    changed = (view != x).double().mean(dim=0)
    assert bool(((changed - 0.3).abs() < 0.08).all())
    sources = [(x[:, c, None] == view[None, :, c]).double().argmax(dim=0) for c in range(5)]
    both = (view[:, 0] != x[:, 0]) & (view[:, 1] != x[:, 1])
    assert bool((sources[0][both] != sources[1][both]).double().mean() > 0.9), "one row lent all numbers"


def test_the_paper_corrupts_one_view_alone():
    x = rows()
    first, second = Corruption().several_views(x, dice(), 2)
    assert torch.equal(first, x) and not torch.equal(second, x)
    first, second, third = Corruption(both=True).several_views(x, dice(), 3)
    assert not torch.equal(first, x) and not torch.equal(first, second) and not torch.equal(second, third)


def test_noise_is_in_units_of_each_columns_spread():
    x = rows()
    added = Noise(0.5)(x, dice()) - x
    torch.testing.assert_close(added.std(dim=0) / x.std(dim=0), torch.full((5,), 0.5), atol=0.06, rtol=0)
    first, second = Noise().several_views(x, dice(), 2)
    assert not torch.equal(first, second)


def test_masking_gives_the_columns_mean_at_its_rate():
    x = rows()
    view = Masking(0.4)(x, dice())
    masked = view == x.mean(dim=0)
    assert torch.equal(view[~masked], x[~masked])
    assert float(masked.double().mean()) == pytest.approx(0.4, abs=0.03)


@pytest.mark.parametrize("view", [Corruption(), Noise(), Masking()], ids=lambda view: type(view).__name__)
def test_another_unit_of_a_column_is_the_same_view_in_that_unit(view):
    x, units = rows(), torch.tensor([3.0, 0.1, 7.0, 1.0, 20.0])
    torch.testing.assert_close(view(x * units, dice()), view(x, dice()) * units, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", [Corruption, Masking, Noise])
def test_no_strength_is_no_view(kind):
    torch.testing.assert_close(kind(0.0)(rows(), dice()), rows())

"""The checks that notebooks print must be able to fail."""

import pytest
import torch

from clutils import anatomy, losses
from clutils.course import check, toys


def test_equal_prints_what_it_compared_and_how_closely_when_asked(capsys, monkeypatch):
    positives, negatives = toys.three_points()
    c = anatomy.contrast(positives, negatives, 0.2)
    both = torch.log1p(c.exp()), losses.NTXent(0.2).per_anchor(positives, negatives)
    check.equal(*both, "softplus(c) = NT-Xent")
    assert capsys.readouterr().out == "✓ softplus(c) = NT-Xent: 0.08028\n"
    check.equal(torch.arange(3.0), torch.arange(3.0), "a = b")
    assert capsys.readouterr().out == "✓ a = b: 3 values, largest difference 0e+00\n"
    monkeypatch.setattr(check, "DETAILS", True)
    check.equal(*both, "softplus(c) = NT-Xent")
    assert "(largest difference" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1.0, 1.0 + 1e-4),
        (torch.ones(3), torch.ones(2)),
        (torch.tensor([1.0, torch.nan]), torch.tensor([1.0, torch.nan])),
        (torch.tensor(1.0, dtype=torch.float64), torch.tensor(1.0 + 1e-9, dtype=torch.float64)),
        (torch.tensor(1.0, dtype=torch.float64), 1.0 + 1e-9),  # a plain number is exact, not float32
    ],
)
def test_equal_raises_on_a_wrong_equation(left, right):
    with pytest.raises(check.Unequal, match="a = b"):
        check.equal(left, right, "a = b")


def test_equal_everywhere_finds_an_equation_that_holds_only_sometimes(capsys):
    def sides(s, n, t):
        return losses.NTXent(t).per_anchor(s, n), losses.Decoupled(t).per_anchor(s, n)

    with pytest.raises(check.Unequal, match="K ="):
        check.equal_everywhere(sides, "NT-Xent = decoupled")

    def right(s, n, t):
        c = anatomy.contrast(s, n, t)
        return torch.logaddexp(c, torch.zeros_like(c)), losses.NTXent(t).per_anchor(s, n)

    check.equal_everywhere(right, "softplus(c) = NT-Xent")
    assert "on 1,000 random cases" in capsys.readouterr().out

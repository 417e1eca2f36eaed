"""The checks and verdicts that notebooks print must be able to fail."""

from __future__ import annotations

import json

import pytest
import torch

from clutils import anatomy, check, claims, example, losses


def test_equal_prints_what_it_compared(capsys):
    positives, negatives = example.three_points()
    c = anatomy.contrast(positives, negatives, 0.2)
    check.equal(
        torch.log1p(c.exp()), losses.NTXent(0.2).per_anchor(positives, negatives), "softplus(c) = NT-Xent"
    )
    printed = capsys.readouterr().out
    assert "softplus(c) = NT-Xent: 0.08028" in printed


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


def test_the_points_on_the_circle_have_the_similarities_of_the_three_points():
    circle = example.three_points_on_the_circle()
    positives, negatives = example.three_points()
    torch.testing.assert_close(circle.norm(dim=1), torch.ones(4, dtype=torch.float64))
    torch.testing.assert_close(circle[1:] @ circle[0], torch.cat([positives[0], negatives[0]]))


def test_the_counter_example_is_the_ledgers():
    positives, negatives = example.one_hard_negative()
    W = {t: anatomy.gradient_scale(positives, negatives, t).item() for t in (0.05, 0.2, 0.3, 0.5, 2, 10)}
    expected = {0.05: 0.9997, 0.2: 0.883, 0.3: 0.850, 0.5: 0.935, 2: 0.990, 10: 0.994}
    assert pytest.approx(expected, abs=6e-4) == W


@pytest.mark.parametrize(
    ("always", "holds_when", "verdict"),
    [
        (True, None, "holds"),
        (False, None, "fails"),
        (False, True, "holds when K is 1"),
        (False, False, "fails"),
    ],
)
def test_a_verdict_is_what_the_evidence_says(always, holds_when, verdict, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CLUTILS_CLAIMS", str(tmp_path))
    when = None if holds_when is None else "K is 1"
    assert claims.test("MACL", "W is monotone", always, "a sweep", when, holds_when) == verdict
    (file,) = tmp_path.glob("*.json")
    assert json.loads(file.read_text("utf-8"))["verdict"] == verdict
    assert verdict in capsys.readouterr().out


def test_a_condition_needs_its_evidence(tmp_path, monkeypatch):
    monkeypatch.setenv("CLUTILS_CLAIMS", str(tmp_path))
    with pytest.raises(ValueError, match="go together"):
        claims.test("MACL", "W is monotone", False, "a sweep", when="K is 1")
    assert not list(tmp_path.glob("*"))


def test_contrast_quotes_what_does_not_fit():
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(2, 4\)"):
        anatomy.contrast(torch.zeros(2, 3), torch.zeros(2, 4), 0.1)
    with pytest.raises(ValueError, match="temperature is 0"):
        anatomy.gradient_scale(torch.zeros(2), torch.zeros(2, 4), 0)

"""Views of sentences: which words stay, in which order, and what is refused."""

import pytest
import torch

from clutils.views.sentences import Deletion, Dropout, Reordering


def rows(n: int = 200) -> torch.Tensor:
    dice = torch.Generator().manual_seed(0)
    tokens = torch.randint(1, 5000, (n, 12), generator=dice)
    lengths = torch.randint(1, 13, (n, 1), generator=dice)
    return tokens * (torch.arange(12) < lengths)


def dice(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_dropout_leaves_the_sentence_to_the_encoder():
    assert torch.equal(Dropout()(rows(), dice()), rows())


def test_deletion_leaves_words_out_at_its_rate_in_their_order_and_never_all():
    x = rows()
    view = Deletion(0.3)(x, dice())
    for before, after in zip(x.tolist(), view.tolist(), strict=True):
        words = [word for word in before if word]
        kept = [word for word in after if word]
        rest = iter(words)
        assert all(word in rest for word in kept), "another order"
        assert after == kept + [0] * (12 - len(kept)) and kept
    long = (x > 0).sum(dim=1) >= 6
    share = 1 - (view[long] > 0).sum() / (x[long] > 0).sum()
    assert float(share) == pytest.approx(0.3, abs=0.04)
    assert bool(((Deletion(1.0)(x, dice()) > 0).sum(dim=1) == 1).all())


def test_reordering_keeps_the_words_and_moves_none_far():
    x = rows()
    view = Reordering(4.0)(x, dice())
    assert torch.equal(view.sort(dim=1).values, x.sort(dim=1).values) and not torch.equal(view, x)
    assert torch.equal(view > 0, x > 0)
    places = torch.arange(1, 13).repeat(200, 1)
    moved = (Reordering(4.0)(places, dice()) - places).abs()
    assert 1 < int(moved.max()) < 4
    assert torch.equal(Reordering(1.0)(places, dice()), places)


def test_an_empty_sentence_stays_empty():
    empty = torch.zeros(2, 5, dtype=torch.int64)
    for view in (Dropout(), Deletion(), Reordering()):
        assert torch.equal(view(empty, dice()), empty)

"""Maps as drawn: each class with its own look and points, distances and grids as asked."""

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from clutils import figures, maps
from clutils.figures import maps as drawn


def test_each_class_has_its_own_colour_and_marker_and_its_own_points(world):
    _, at, labels = world
    ax = drawn.embedding_map(at, labels, [f"class {c}" for c in range(10)], "a title")
    looks = {(to_hex(m.get_facecolor()[0]), str(m.get_paths()[0].vertices.tolist())) for m in ax.collections}
    assert len(looks) == 10
    low, high = at.min(axis=0), at.max(axis=0)
    scaled = 0.5 + (at - (low + high) / 2) / (high - low).max()
    for c, marks in enumerate(ax.collections):
        np.testing.assert_allclose(marks.get_offsets(), scaled[(labels == c).numpy()], atol=1e-6)
    share = maps.neighbour_share(at, labels)
    assert f"a title: of a point's ten nearest, {share:.0%} share its class" in figures.alt(ax)
    assert {t.get_text() for t in ax.texts} == ({f"class {c}" for c in range(10)} if share >= 0.5 else set())
    with pytest.raises(ValueError, match=r"120 labels need a row of two each|\(119, 2\)|labels"):
        drawn.embedding_map(at[1:], labels)


def test_a_mixed_map_has_no_names_in_it_but_a_key_below(world):
    _, at, labels = world
    mixed = labels[torch.randperm(120, generator=torch.Generator().manual_seed(0))]
    figure = drawn.side_by_side({"mixed": at, "again": at}, mixed, [f"class {c}" for c in range(10)])
    assert not any(ax.texts for ax in figure.axes)
    assert {t.get_text() for t in figure.legends[0].get_texts()} == {f"class {c}" for c in range(10)}
    with pytest.raises(ValueError, match="5 maps"):
        drawn.side_by_side(dict.fromkeys("abcde", at), labels)


def test_distances_of_classes_on_a_faithful_map_keep_their_order(world):
    z, at, labels = world
    unit = torch.nn.functional.normalize(z, dim=1).double()
    truth, seen = drawn.class_distances(z, at, labels)
    centres = [unit[labels == c].mean(dim=0) for c in range(10)]
    expected = [float((centres[a] - centres[b]).norm()) for a in range(10) for b in range(a + 1, 10)]
    np.testing.assert_allclose(truth, np.array(expected) / np.mean(expected), rtol=1e-6)
    assert seen.mean() == pytest.approx(1)
    assert drawn.rank_correlation(truth, truth) == pytest.approx(1)
    with pytest.raises(ValueError, match="2 classes"):
        drawn.class_distances(z, at, labels % 2)


def test_a_grid_needs_every_pair_and_shows_it(world):
    _, at, labels = world
    figure = drawn.grid({(p, s): at for p in (5, 30) for s in (0, 1)}, labels)
    assert len(figure.axes) == 4
    assert "perplexity 5, 30 and 2 seeds" in figures.alt(figure)
    with pytest.raises(ValueError, match="no map for perplexity 30 and seed 1"):
        drawn.grid({(5, 0): at, (5, 1): at, (30, 0): at}, labels)


def test_worlds_stand_above_their_maps(world):
    _, at, labels = world
    figure = drawn.worlds({"a": at, "b": at}, {"a": -at, "b": at}, {"a": labels, "b": labels})
    top = np.concatenate([m.get_offsets() for m in figure.axes[0].collections])
    below = np.concatenate([m.get_offsets() for m in figure.axes[2].collections])
    np.testing.assert_allclose(below, 1 - top, atol=1e-9)
    assert "2 data sets (a; b)" in figures.alt(figure)

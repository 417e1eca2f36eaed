"""Maps: deterministic, quiet, true to their algorithms; and the two numbers that judge a map."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from clutils import maps


def clusters(n: int = 120, classes: int = 4, spread: float = 0.15):
    """(n, 10) around as many orthogonal directions as there are classes, and their labels."""
    y = torch.arange(n) % classes
    return torch.eye(10)[y] + spread * torch.randn(n, 10, generator=torch.Generator().manual_seed(0)), y


def test_tsne_parts_clusters_repeats_itself_and_lets_a_random_start_show_the_seed():
    z, y = clusters(60)
    first = maps.tsne(z, perplexity=10)
    assert first.shape == (60, 2) and first.dtype == np.float32
    assert np.array_equal(first, maps.tsne(z.numpy(), perplexity=10))
    assert maps.neighbour_share(first, y, k=10) > 0.99
    anywhere = maps.tsne(z, perplexity=10, seed=1, init="random")
    assert maps.neighbour_share(anywhere, y, k=10) > 0.99
    assert not np.allclose(anywhere, maps.tsne(z, perplexity=10, seed=2, init="random"), atol=1)


def test_a_map_looks_at_directions_only():
    z, _ = clusters(60)
    lengths = torch.linspace(0.5, 20, 60)[:, None]
    assert np.allclose(maps.pca(lengths * z), maps.pca(z), atol=1e-5)


def test_pca_is_scikit_learns_up_to_signs_which_are_fixed():
    z, _ = clusters()
    unit = torch.nn.functional.normalize(z, dim=1)
    ours, theirs = maps.pca(z), PCA(2, svd_solver="full").fit_transform(unit.double().numpy())
    assert np.allclose(np.abs(ours), np.abs(theirs), atol=1e-5)
    assert np.allclose(maps.pca(z[torch.arange(119, -1, -1)]), ours[::-1], atol=1e-5)


UMAP_TWICE = """
import numpy as np
import torch
from clutils import maps
torch.set_num_threads(1)
z = np.random.default_rng(0).normal(size=(90, 8)) + 4 * np.eye(8)[np.arange(90) % 3]
first = maps.umap(z, neighbours=10)
assert first.shape == (90, 2) and first.dtype == np.float32
assert np.array_equal(first, maps.umap(z, neighbours=10))
assert not np.array_equal(first, maps.umap(z, neighbours=10, seed=1))
assert torch.get_num_threads() == 1, "UMAP left torch with numba's threads"
print(maps.neighbour_share(first, np.arange(90) % 3))
"""


@pytest.mark.sweep  # half a minute: it is compiled first
def test_umap_parts_clusters_repeats_itself_and_says_nothing():
    quiet = {**os.environ, "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-c", UMAP_TWICE], capture_output=True, text=True, env=quiet, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 0.99
    assert done.stderr == ""


# ---- judging a map -------------------------------------------------------------------------------------


def test_neighbour_share_counts_the_nearest_others_one_by_one():
    random = np.random.default_rng(0)
    at, y = random.normal(size=(50, 2)), random.integers(0, 3, size=50)
    shares = []
    for i in range(50):
        order = sorted((j for j in range(50) if j != i), key=lambda j: np.hypot(*(at[i] - at[j])))
        shares.append(np.mean([y[j] == y[i] for j in order[:7]]))
    assert maps.neighbour_share(at, y, k=7) == pytest.approx(np.mean(shares))


def test_points_on_top_of_each_other_are_still_neighbours():
    assert maps.neighbour_share(np.zeros((6, 2)), np.zeros(6, int), k=3) == 1.0


def test_what_a_map_keeps_is_what_loops_count():
    z, _ = clusters(40)
    unit = torch.nn.functional.normalize(z, dim=1).double().numpy()
    random = np.random.default_rng(0).normal(size=(40, 2))
    n, k = 40, 5
    for at in (random, maps.pca(z)):
        false, recall = 0, []
        for i in range(n):
            others = [j for j in range(n) if j != i]
            truly = sorted(others, key=lambda j: np.linalg.norm(unit[i] - unit[j]))
            shown = sorted(others, key=lambda j: np.linalg.norm(at[i] - at[j]))
            false += sum(max(0, truly.index(j) + 1 - k) for j in shown[:k])
            recall.append(len(set(truly[:k]) & set(shown[:k])) / k)
        most = n * k * (2 * n - 3 * k - 1) / 2
        assert maps.trustworthiness(z, at, k=5) == pytest.approx(1 - false / most, abs=1e-6)
        assert maps.neighbours_kept(z, at, k=5).tolist() == pytest.approx(recall)
    assert maps.neighbours_kept(z, random, k=5).mean() < 0.4
    assert maps.trustworthiness(z, maps.tsne(z, perplexity=10), k=5) > 0.8


# ---- what comes in -------------------------------------------------------------------------------------

Z = torch.randn(20, 5, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: maps.tsne(Z, perplexity=20), "perplexity is 20, but must be a number from 1 to below 20"),
        (lambda: maps.tsne(Z, perplexity=0.5), "perplexity is 0.5"),
        (lambda: maps.tsne(Z, perplexity=5, init="spectral"), "init is 'spectral'"),
        (lambda: maps.umap(Z, neighbours=20), "neighbours is 20, but must be a whole number from 2 to 19"),
        (lambda: maps.umap(Z, min_distance=1.5), "min_distance is 1.5"),
        (lambda: maps.pca(torch.zeros(4, 3)), "row 0 is a zero vector"),
        (lambda: maps.tsne(Z.index_fill(0, torch.tensor([3]), float("nan"))), "row 3 holds NaN"),
        (lambda: maps.trustworthiness(Z, np.zeros((20, 2)), k=10), "k is 10"),
        (lambda: maps.trustworthiness(Z, np.zeros((19, 2)), k=3), "z has 20 rows but the map has 19"),
        (lambda: maps.neighbours_kept(Z, np.zeros((20, 2)), k=10), "neighbours_kept: k is 10"),
        (lambda: maps.neighbour_share(np.zeros((20, 3)), np.zeros(20, int)), r"positions is \(20, 3\)"),
        (lambda: maps.neighbour_share(np.zeros((20, 2)), np.zeros(19, int)), r"labels is \(19,\)"),
        (lambda: maps.neighbour_share(np.zeros((20, 2)), np.zeros(20, int), k=20), "k is 20"),
        (lambda: maps.neg_tsne(Z, spectrum=3), "spectrum is 3"),
        (lambda: maps.neg_tsne(Z, neighbours=20), "neighbours is 20"),
        (lambda: maps.neg_tsne(Z, negatives=0), "negatives is 0"),
        (lambda: maps.neg_tsne(Z, epochs=0), "epochs is 0"),
    ],
)
def test_bad_input_is_refused_and_quoted(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---- Neg-t-SNE -------------------------------------------------------------------------------------------


def by_loops(positions, pairs, drawn, c):
    """Neg-t-SNE's loss, a pair at a time, from the paper's fractions."""

    def fraction(a, b):
        q = 1 / (1 + float((positions[a] - positions[b]).square().sum()))
        return q / (q + c)

    total = 0.0
    for (i, j), others in zip(pairs.T.tolist(), drawn.tolist(), strict=True):
        total -= math.log(fraction(i, j)) + sum(math.log(1 - fraction(i, k)) for k in others)
    return total


def some_pairs(n=12, m=3):
    dice = torch.Generator().manual_seed(0)
    positions = 2 * torch.randn(n, 2, generator=dice, dtype=torch.float64)
    pairs = maps.neighbour_pairs(torch.randn(n, 5, generator=dice), 2)
    others = torch.randint(1, n, (pairs.shape[1], m), generator=dice)
    return positions, pairs, (pairs[0][:, None] + others) % n  # none drawn with itself


@pytest.mark.parametrize("c", [0.05, 1.0, 4.0])
def test_neg_tsnes_loss_is_the_papers_pair_by_pair(c):
    case = some_pairs()
    assert float(maps.negative_sampling(*case, c)) == pytest.approx(by_loops(*case, c), rel=1e-12)


@pytest.mark.parametrize("spectrum", [0.0, 0.5, 1.0])
def test_neg_tsne_steps_along_the_gradient_of_that_loss(spectrum):
    positions, (i, j), drawn = some_pairs()
    c, slope, own = maps._slope(positions, i, j, drawn, None, spectrum)
    assert float(c) == pytest.approx((3 * float(own)) ** (1 - spectrum))
    for point, axis in ((0, 0), (5, 1), (11, 0)):
        moved = [positions.clone(), positions.clone()]
        moved[0][point, axis] += 1e-6
        moved[1][point, axis] -= 1e-6
        rise = [by_loops(p, torch.stack([i, j]), drawn, float(c)) for p in moved]
        assert float(slope[point, axis]) == pytest.approx((rise[0] - rise[1]) / 2e-6, rel=1e-5)
    leaf = positions.requires_grad_()
    maps.negative_sampling(leaf, torch.stack([i, j]), drawn, c).backward()
    torch.testing.assert_close(slope, leaf.grad)


def test_neighbour_pairs_are_the_nearest_of_either_end_and_no_point_its_own():
    z, _ = clusters(30)
    found = {tuple(pair) for pair in maps.neighbour_pairs(z, 3).T.tolist()}
    unit = torch.nn.functional.normalize(z, dim=1)
    expected = set()
    for a in range(30):
        nearest = sorted((b for b in range(30) if b != a), key=lambda b: -float(unit[a] @ unit[b]))[:3]
        expected |= {(a, b) for b in nearest} | {(b, a) for b in nearest}
    assert found == expected


@pytest.mark.parametrize("spectrum", [0, 1])
def test_neg_tsne_recovers_separated_clusters_at_both_ends(spectrum):
    z, y = clusters(120)
    found = maps.neg_tsne(z, spectrum, epochs=80)
    assert found.shape == (120, 2) and found.dtype == np.float32
    assert maps.neighbour_share(found, y, k=10) > 0.97
    assert maps.trustworthiness(z, found) > 0.8
    assert np.array_equal(found, maps.neg_tsne(z, spectrum, epochs=80))


def test_rows_of_one_direction_lie_at_one_place_and_one_feature_is_enough():
    ray = torch.zeros(40, 5)
    ray[:, 2] = torch.arange(1, 41)
    assert maps.tsne(ray).shape == (40, 2) and not maps.tsne(ray).any()
    assert np.isfinite(maps.tsne(torch.randn(40, 1, generator=torch.Generator().manual_seed(0)))).all()

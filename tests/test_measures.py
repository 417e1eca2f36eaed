"""Measures against plain loops, closed forms, scipy and scikit-learn."""

import math
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.spatial
import scipy.stats
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.neighbors import KNeighborsClassifier

from clutils import data, maps, measures


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def clusters(n: int = 300, classes: int = 5, spread: float = 0.8, seed: int = 0):
    """(n, 6) around as many directions as there are classes, and their labels."""
    y = torch.arange(n) % classes
    return normal(classes, 6, seed=99)[y] + spread * normal(n, 6, seed=seed), y


def length_one(z: torch.Tensor) -> np.ndarray:
    z = z.double().numpy()
    return z / np.linalg.norm(z, axis=1, keepdims=True)


# ---- alignment and uniformity --------------------------------------------------------------------------


def test_alignment_is_the_mean_squared_distance_of_normalised_pairs():
    z1, z2 = normal(40, 7), normal(40, 7, seed=1)
    distances = [np.sum((a - b) ** 2) for a, b in zip(length_one(z1), length_one(z2), strict=True)]
    assert measures.alignment(z1, z2) == pytest.approx(np.mean(distances), rel=1e-12)


@pytest.mark.parametrize("n, t", [(50, 0.5), (50, 2.0), (50, 5.0), (2 * measures.ROWS + 3, 2.0)])
def test_uniformity_is_the_log_of_the_mean_potential_of_all_pairs(n, t):
    z = normal(n, 5)
    distances = scipy.spatial.distance.pdist(length_one(z), "sqeuclidean")
    assert measures.uniformity(z, t) == pytest.approx(np.log(np.mean(np.exp(-t * distances))), rel=1e-12)


def test_uniformity_of_points_that_coincide_is_0_and_of_a_large_t_finite():
    assert measures.uniformity(torch.ones(20, 3)) == pytest.approx(0, abs=1e-5)
    opposite = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    assert measures.uniformity(opposite, t=500.0) == pytest.approx(-2000)


# ---- tolerance and rank --------------------------------------------------------------------------------


def test_tolerance_is_the_mean_similarity_of_pairs_within_a_class():
    z, y = clusters(60)
    unit = length_one(z)
    similarities = [
        unit[i] @ unit[j] for i in range(60) for j in range(60) if i != j and y[i].item() == y[j].item()
    ]
    assert measures.tolerance(z, y) == pytest.approx(np.mean(similarities), rel=1e-12)


def test_tolerance_leaves_out_classes_of_one():
    z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert measures.tolerance(z, torch.tensor([7, 7, 3])) == pytest.approx(1)
    with pytest.raises(ValueError, match="each of the 3 rows has a class of its own"):
        measures.tolerance(z, torch.tensor([0, 1, 2]))


def test_effective_rank_is_the_exponential_entropy_of_singular_values():
    z = normal(100, 12) * torch.logspace(0, -3, 12, dtype=torch.float64) + 5
    values = np.linalg.svd(z.numpy() - z.numpy().mean(axis=0), compute_uv=False)
    expected = np.exp(scipy.stats.entropy(values / values.sum()))
    assert measures.effective_rank(z) == pytest.approx(expected, rel=1e-10)


def test_rankme_is_the_entropy_of_the_singular_values_of_the_rows_as_they_are():
    z = normal(60, 7) + 0.5
    values = np.linalg.svd(z.numpy(), compute_uv=False)
    rank = 1.0
    for value in values:
        share = value / sum(values) + 1e-7
        rank *= share**-share
    assert measures.rankme(z) == pytest.approx(rank, rel=1e-10)
    offset = torch.cat([z, 100 + 0 * z[:, :1]], dim=1)  # a constant, and large, coordinate
    assert measures.rankme(offset) < 2 < measures.effective_rank(offset)
    assert measures.rankme(torch.eye(5)) == pytest.approx(5, rel=1e-5)


def test_nesum_is_the_trace_of_the_covariance_over_its_largest_eigenvalue():
    z = normal(50, 6) * torch.arange(1.0, 7)
    eigenvalues = np.linalg.eigvalsh(np.cov(z.numpy(), rowvar=False))
    assert measures.nesum(z + 3) == pytest.approx(sum(eigenvalues) / max(eigenvalues), rel=1e-10)
    assert measures.nesum(torch.eye(5)) == pytest.approx(4, rel=1e-6)  # a simplex: N - 1 directions, evenly


def test_alpha_req_finds_the_exponent_of_a_power_law_and_fits_as_numpy_does():
    q, _ = torch.linalg.qr(normal(200, 31) - normal(200, 31).mean(dim=0))
    q = torch.linalg.qr(q - q.mean(dim=0))[0]  # orthogonal, and of mean 0
    z = q * torch.arange(1.0, 32, dtype=torch.float64) ** -0.75  # eigenvalues i^-1.5
    assert measures.alpha_req(z) == pytest.approx(1.5, rel=1e-6)
    z = normal(80, 12) * torch.linspace(2, 0.1, 12)
    eigenvalues = np.linalg.eigvalsh(np.cov(z.numpy(), rowvar=False))[::-1]
    slope = np.polyfit(np.log(np.arange(3, 10)), np.log(eigenvalues[2:9]), 1)[0]
    assert measures.alpha_req(z, first=3, last=9) == pytest.approx(-slope, rel=1e-9)


def test_lidar_is_the_entropic_rank_of_the_discriminant_matrix_in_loops():
    N, V, D = 9, 4, 5
    views = (normal(N, 1, D) * torch.linspace(3, 0.2, D) + 0.3 * normal(N, V, D, seed=1)).numpy()
    means = [sum(image) / V for image in views]
    overall = sum(means) / N
    between, within = np.zeros((D, D)), 1e-4 * np.eye(D)
    for image, mean in zip(views, means, strict=True):
        between += np.outer(mean - overall, mean - overall) / N
        for view in image:
            within += np.outer(view - mean, view - mean) / (N * V)
    values, vectors = np.linalg.eigh(within)
    whitener = vectors @ np.diag(values**-0.5) @ vectors.T
    shares = np.linalg.eigvalsh(whitener @ between @ whitener)
    shares = shares / sum(shares) + 1e-7
    assert measures.lidar(views) == pytest.approx(np.exp(-sum(shares * np.log(shares))), rel=1e-9)


def test_cka_is_the_ratio_of_hsics_and_knows_neither_rotation_nor_scale():
    a, b = normal(30, 5), normal(30, 8, seed=1)
    H = np.eye(30) - 1 / 30

    def hsic(x, y):
        return np.trace(x @ x.T @ H @ y @ y.T @ H)

    x, y = a.numpy(), b.numpy()
    assert measures.cka(a, b) == pytest.approx(hsic(x, y) / math.sqrt(hsic(x, x) * hsic(y, y)), rel=1e-10)
    rotation = torch.linalg.qr(normal(5, 5, seed=3))[0]
    assert measures.cka(a, 7 * a @ rotation + 2) == pytest.approx(1, rel=1e-12)
    many, more = normal(400, 100, seed=4), normal(400, 100, seed=5)
    assert measures.cka(many, more) == pytest.approx(100 / 500, abs=0.01)  # of noise, as the docstring says


# ---- kNN -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k, temperature", [(1, 0.1), (7, 0.1), (50, 0.05), (200, 1.0)])
def test_knn_votes_as_scikit_learn_does_with_cosine_and_the_same_weights(k, temperature):
    (z, y), (test_z, test_y) = clusters(300, spread=1.5), clusters(measures.ROWS + 5, spread=1.5, seed=1)
    y, test_y = 1000 * y + 5, 1000 * test_y + 5  # any numbers from 0 on
    oracle = KNeighborsClassifier(k, metric="cosine", weights=lambda d: np.exp((1 - d) / temperature))
    expected = oracle.fit(z.numpy(), y.numpy()).score(test_z.numpy(), test_y.numpy())
    assert measures.knn_accuracy(z, y, test_z, test_y, k, temperature) == expected
    assert 0.3 < expected < 0.99  # else the test would tell nothing


def test_knn_at_the_coldest_temperature_is_the_nearest_neighbour_and_no_nan():
    (z, y), (test_z, test_y) = clusters(100, spread=1.5), clusters(100, spread=1.5, seed=1)
    args = (z.float(), y, test_z.float(), test_y)
    assert measures.knn_accuracy(*args, k=50, temperature=1e-6) == measures.knn_accuracy(*args, k=1)


def test_average_precision_is_scikit_learns_of_each_row():
    (z, y), (test_z, test_y) = clusters(60, spread=1.5), clusters(20, spread=1.5, seed=1)
    cosines = length_one(test_z) @ length_one(z).T
    expected = [average_precision_score(y == truth, row) for truth, row in zip(test_y, cosines, strict=True)]
    found = measures.average_precision(z, y, test_z, test_y)
    assert found.tolist() == pytest.approx(expected, abs=1e-6)
    assert bool(measures.average_precision(z, y, test_z, test_y + 100).isnan().all())


@pytest.mark.parametrize("rows", [7, 1024])  # in blocks, the last one shorter, and at once
def test_neighbour_overlap_is_counted_by_loops_and_ignores_scale(rows, monkeypatch):
    monkeypatch.setattr(measures, "ROWS", rows)
    (a, _), (b, _) = clusters(40, spread=1.5), clusters(40, spread=2.5, seed=1)

    def near(z, i):
        z = torch.nn.functional.normalize(z, dim=1)
        cosines = [(float(z[i] @ z[j]), j) for j in range(len(z)) if j != i]
        return {j for _, j in sorted(cosines, reverse=True)[:5]}

    expected = sum(len(near(a, i) & near(b, i)) for i in range(40)) / (5 * 40)
    assert measures.neighbour_overlap(a, b, k=5) == pytest.approx(expected, abs=1e-6)
    assert measures.neighbour_overlap(a, 7 * a, k=5) == 1


def test_the_bootstrap_interval_of_a_share_is_near_the_normal_one_and_repeatable():
    share = (torch.arange(400) < 100).double()
    low, high = measures.bootstrap(share, draws=4000)
    half = 1.96 * math.sqrt(0.25 * 0.75 / 400)
    assert low == pytest.approx(0.25 - half, abs=0.006) and high == pytest.approx(0.25 + half, abs=0.006)
    assert measures.bootstrap(share, draws=50) == measures.bootstrap(share, draws=50)
    assert measures.bootstrap(torch.ones(9)) == (1, 1)
    # the mean of two draws out of {0, 1} is 0, 1/2 or 1, with probabilities 1/4, 1/2 and 1/4; that of six
    # out of five 0 and a 1 is 4/6 or more in 0.9 % of the cases, 3/6 in 5.4 %, 2/6 in 20 %
    assert measures.bootstrap([0.0, 1.0]) == (0, 1)
    assert measures.bootstrap([0.0] * 5 + [1.0]) == (0, 0.5)


def test_a_spectrum_handed_on_gives_the_same_ranks():
    z, _ = clusters(50)
    values = measures.spectrum(z)
    centred = z.double() - z.double().mean(dim=0)
    eigenvalues = np.linalg.eigvalsh((centred.T @ centred).numpy())[::-1].clip(0)
    assert values.square().tolist() == pytest.approx(eigenvalues[: len(values)].tolist(), abs=1e-6)
    for measure in (measures.effective_rank, measures.nesum, measures.alpha_req):
        assert measure(z, values=values) == measure(z)


# ---- probes --------------------------------------------------------------------------------------------


def test_the_probe_is_logistic_regression_on_features_standardised_by_the_training_rows():
    (z, y), (test_z, test_y) = clusters(200, spread=1.5), clusters(300, spread=1.5, seed=1)
    z, test_z = 50 * z + 7, 50 * test_z + 7
    mean, deviation = z.numpy().mean(axis=0), z.numpy().std(axis=0)
    oracle = LogisticRegression(max_iter=10_000, tol=1e-8).fit((z.numpy() - mean) / deviation, y.numpy())
    expected = oracle.score((test_z.numpy() - mean) / deviation, test_y.numpy())
    assert measures.linear_probe(z, y, test_z, test_y) == pytest.approx(expected, abs=0.004)


def test_the_probe_ignores_constant_features_and_never_warns():
    (z, y), (test_z, test_y) = clusters(200), clusters(100, seed=1)
    alone = measures.linear_probe(z, y, test_z, test_y)
    train = torch.cat([z, torch.full((200, 3), 0.1)], dim=1).float()
    test = torch.cat([test_z, torch.full((100, 3), 900.0)], dim=1).float()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert measures.linear_probe(train, y, test, test_y) == pytest.approx(alone, abs=0.011)
        measures.linear_probe(1e6 * z.float(), y, test_z.float(), test_y)


def test_few_labels_are_balanced_repeatable_and_the_same_whatever_the_features():
    (z, y), (test_z, test_y) = clusters(200, spread=1.5), clusters(200, spread=1.5, seed=1)
    first = measures.few_label_probe(z, y, test_z, test_y, labels=20)
    again = measures.few_label_probe(z, y, test_z, test_y, labels=20)
    other = measures.few_label_probe(z, y, test_z, test_y, labels=20, seed=1)
    mirrored = measures.few_label_probe(-z, y, -test_z, test_y, labels=20)
    assert first == again == mirrored != other
    assert len(first) == 5 and len(set(first)) > 1
    assert np.mean(first) < np.mean(measures.few_label_probe(z, y, test_z, test_y, labels=200))
    for n in (24, 200):  # fewer than ten of a class, and more
        few = measures.by_name("few", measures.Features(test_z, test_y, gallery_z=z[:n], gallery_y=y[:n]))
        labels = min(10, int(y[:n].bincount().min())) * len(y.unique())
        assert few == pytest.approx(np.mean(measures.few_label_probe(z[:n], y[:n], test_z, test_y, labels)))


def test_a_draw_of_few_labels_has_no_row_twice(monkeypatch):
    drawn = []
    monkeypatch.setattr(measures, "linear_probe", lambda z, *_: drawn.append(z[:, 0].tolist()) or 0.5)
    z, y = torch.arange(40.0)[:, None], torch.arange(40) % 2
    measures.few_label_probe(z, y, z, y, labels=30)
    assert [len(set(rows)) for rows in drawn] == [30] * 5


def test_all_labels_drawn_is_the_linear_probe():
    (z, y), (test_z, test_y) = clusters(100, spread=1.5), clusters(100, spread=1.5, seed=1)
    few = measures.few_label_probe(z, y, test_z, test_y, labels=100, draws=1)
    assert few == (pytest.approx(measures.linear_probe(z, y, test_z, test_y), abs=0.011),)


# ---- what comes in -------------------------------------------------------------------------------------

Z, Y = torch.ones(4, 3), torch.tensor([0, 0, 1, 1])
BROKEN = torch.tensor([[1.0, 2.0], [float("nan"), 1.0]])


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: measures.alignment(Z, Z[:3]), r"z1 is \(4, 3\) but z2 is \(3, 3\)"),
        (lambda: measures.alignment(BROKEN, torch.ones(2, 2)), r"z1 \(2, 2\): row 1 holds NaN or infinity"),
        (lambda: measures.uniformity(torch.zeros(3, 2)), "row 0 is a zero vector"),
        (lambda: measures.uniformity(Z[:1]), r"z is \(1, 3\)"),
        (lambda: measures.uniformity(Z, t=0.0), "t is 0.0"),
        (lambda: measures.tolerance(Z, Y[:3]), r"y is \(3,\), but 4 rows have \(4,\)"),
        (lambda: measures.tolerance(Z, Y + 0.5), r"y: labels hold \d\.5, but must be classes"),
        (lambda: measures.effective_rank(torch.ones(3)), r"z is \(3,\)"),
        (lambda: measures.effective_rank(BROKEN), "row 1 holds NaN"),
        (lambda: measures.rankme(0 * Z), "every row of z is zero"),
        (lambda: measures.rankme(Z, epsilon=0), "epsilon is 0"),
        (lambda: measures.nesum(torch.full((5, 3), 0.1)), "all 5 rows of z are equal"),
        (lambda: measures.alpha_req(torch.eye(4), first=0), "first is 0 and last is 3"),
        (lambda: measures.alpha_req(torch.eye(4), last=7), "first is 1 and last is 7"),
        (lambda: measures.lidar(Z), r"views is \(4, 3\), but must be \(images, views, dimensions\)"),
        (lambda: measures.lidar(torch.ones(3, 2, 4)), "all 3 images have one mean"),
        (lambda: measures.lidar(BROKEN[:, None].expand(2, 2, 2)), "row 2 holds NaN"),
        (lambda: measures.cka(Z, Z[:3]), r"a is \(4, 3\) but b is \(3, 3\)"),
        (lambda: measures.cka(Z, 0 * Z), "all 4 rows of z are equal"),
        (lambda: measures.neighbour_overlap(Z, Z[:3]), r"a is \(4, 3\) but b is \(3, 3\)"),
        (lambda: measures.neighbour_overlap(Z, Z, k=4), "k is 4, but must be a whole number from 1 to 3"),
        (lambda: measures.neighbour_overlap(Z[:1], Z[:1], k=1), "k is 1.* at least 1 and at most 0"),
        (lambda: measures.bootstrap(Z), r"values is \(4, 3\)"),
        (lambda: measures.bootstrap(Y, confidence=1.0), "confidence is 1.0"),
        (lambda: measures.bootstrap(Y, draws=0), "draws is 0"),
        (lambda: measures.by_name("kn", measures.Features(Z)), "name is 'kn', but must be one of .*knn"),
        (lambda: measures.knn_accuracy(Z, Y, Z[:, :2], Y, k=1), r"but test_z is \(4, 2\): the dim"),
        (lambda: measures.knn_accuracy(Z, Y, Z, Y, k=1, temperature=0.0), "temperature is 0.0"),
        (lambda: measures.linear_probe(Z, 0 * Y, Z, Y), "every training label is 0"),
        (lambda: measures.linear_probe(BROKEN, Y[:2], BROKEN, Y[:2]), "row 1 holds NaN"),
        (lambda: measures.knn_accuracy(Z, Y, Z, Y), "k is 200, but must be a whole number from 1 to 4"),
        (lambda: measures.few_label_probe(Z, Y, Z, Y, labels=2, draws=0), "draws is 0"),
        (lambda: measures.few_label_probe(Z, Y, Z, Y, labels=3), "labels is 3, but must be a multiple"),
        (lambda: measures.few_label_probe(Z, Y, Z, Y, labels=6), "class 0 has 2 rows"),
        (lambda: measures.few_label_probe(Z, Y, Z, Y, labels=0), "labels is 0"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_and_quoted(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_arrays_half_precision_and_gradients_are_taken_as_they_come():
    z, y = clusters(40)
    expected = measures.uniformity(z)
    assert measures.uniformity(z.numpy()) == pytest.approx(expected)
    assert measures.uniformity(z.float().requires_grad_()) == pytest.approx(expected, abs=1e-5)
    assert measures.uniformity(z.bfloat16()) == pytest.approx(expected, abs=0.05)
    assert measures.knn_accuracy(z.numpy(), y.numpy(), z.numpy(), y.numpy(), k=1) == 1.0


def test_pixels_are_around_grey():
    black_and_white = (
        torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1).expand(2, 3, 4, 4).contiguous()
    )
    pictures = data.ImageSet(black_and_white, torch.tensor([0, 1]), ("black", "white"), None, "two")
    assert measures.raw_inputs(pictures).unique(dim=1).flatten().tolist() == [-0.5, 0.5]


def test_the_modality_gap_is_the_distance_of_the_centres_in_plain_loops():
    draw = torch.Generator().manual_seed(0)
    z1, z2 = torch.randn(7, 3, generator=draw), torch.randn(5, 3, generator=draw) + 1
    centres = []
    for z in (z1, z2):
        rows = [[x / sum(y * y for y in row) ** 0.5 for x in row] for row in z.tolist()]
        centres.append([sum(column) / len(rows) for column in zip(*rows, strict=True)])
    expected = sum((a - b) ** 2 for a, b in zip(*centres, strict=True)) ** 0.5
    assert measures.modality_gap(z1, z2) == pytest.approx(expected, rel=1e-5)
    assert measures.modality_gap(z1, z1) == 0
    assert measures.modality_gap(z1[:1], -3 * z1[:1]) == pytest.approx(2, rel=1e-6)
    with pytest.raises(ValueError, match=r"z1 is \(7, 3\) but z2 is \(5, 2\)"):
        measures.modality_gap(z1, z2[:, :2])


@pytest.mark.parametrize("none", [-1, -100])
def test_rows_without_a_label_are_left_out_on_both_sides(none):
    draw = torch.Generator().manual_seed(0)
    z, test_z = torch.randn(2, 80, 4, generator=draw)
    y, test_y = (torch.randint(3, (80,), generator=draw) for _ in range(2))
    z, test_z = z + 2 * y[:, None], test_z + 2 * test_y[:, None]
    some, test_some = y.clone(), test_y.clone()
    some[::3], test_some[1::4] = none, none
    kept = z[some >= 0], y[some >= 0], test_z[test_some >= 0], test_y[test_some >= 0]
    given = z, some, test_z, test_some
    for measure in (
        lambda *of: measures.knn_accuracy(*of, k=5),
        measures.linear_probe,
        lambda *of: measures.few_label_probe(*of, labels=15, draws=2),
    ):
        assert measure(*given) == measure(*kept)
    found = measures.average_precision(*given)
    assert torch.equal(found[test_some >= 0], measures.average_precision(*kept))
    assert found[test_some < 0].isnan().all()
    assert measures.tolerance(z, some) == pytest.approx(measures.tolerance(z[some >= 0], y[some >= 0]))
    for name in ("knn", "knn_dino_10", "map", "probe", "few"):
        by_name = [
            measures.by_name(name, measures.Features(of[2], of[3], gallery_z=of[0], gallery_y=of[1]))
            for of in (given, kept)
        ]
        assert by_name[0] == by_name[1], name
    nobody = torch.full((80,), none)
    for measure in (measures.knn_accuracy, measures.linear_probe, measures.few_label_probe):
        with pytest.raises(ValueError, match="none of the 80 training rows has a label"):
            measure(z, nobody, test_z, test_y)
    with pytest.raises(ValueError, match="none of the 80 test rows has a label"):
        measures.knn_accuracy(z, y, test_z, nobody, k=5)
    with pytest.raises(ValueError, match="none of the 80 test rows has a label"):
        measures.linear_probe(z, y, test_z, nobody)
    with pytest.raises(ValueError, match="none of the 80 given rows has a label"):
        measures.tolerance(z, nobody)
    with pytest.raises(ValueError, match="k is 54, but must be"):
        measures.knn_accuracy(z, some, test_z, test_y, k=54)


def test_the_share_of_neighbours_leaves_out_points_without_a_label():
    at = np.random.default_rng(0).normal(size=(60, 2))
    labels = torch.arange(60) % 3 - 1
    kept = (labels >= 0).numpy()
    assert maps.neighbour_share(at, labels, 5) == maps.neighbour_share(at[kept], labels[kept], 5)


def test_a_test_row_of_zeros_is_wrong_and_a_training_row_of_zeros_has_no_vote():
    train, y = torch.tensor([[1.0, 0], [0, 1], [0, 0]]), torch.tensor([0, 1, 1])
    test, wanted = torch.tensor([[2.0, 0.1], [0, 0], [-1, -1]]), torch.tensor([0, 0, 0])
    right = measures._knn_right(train, y, test, wanted, k=1, temperature=0.1)
    assert right.tolist() == [1, 0, 1]  # the last: both cosines are equal, ties go to the lower class
    assert measures.knn_accuracy(train, y, test, wanted, k=1) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="k is 3, but must be"):
        measures.knn_accuracy(train, y, test, wanted, k=3)
    with pytest.raises(ValueError, match=r"train_z \(3, 2\): every labelled row is a zero vector"):
        measures.knn_accuracy(0 * train, y, test, wanted, k=1)


def test_features_of_numpy_and_of_torch_are_compared_in_the_wider_type():
    (z, y), (test_z, test_y) = clusters(40, spread=1.5), clusters(40, spread=1.5, seed=1)
    for measure in (partial(measures.knn_accuracy, k=5), measures.linear_probe, measures.average_precision):
        found = torch.as_tensor(measure(z.double().numpy(), y, test_z, test_y))
        torch.testing.assert_close(found, torch.as_tensor(measure(z.double(), y, test_z.double(), test_y)))


@pytest.mark.parametrize(
    "kind", ["names", "a Series after a split", "floats with a gap", "one column", "strings of bytes"]
)
def test_labels_as_users_hold_them_give_what_whole_numbers_give(kind):
    draw = torch.Generator().manual_seed(0)
    y = torch.arange(60) % 3
    z = torch.randn(60, 8, generator=draw) + torch.eye(8)[y] * 2
    held = {
        "names": [("cat", "dog", "eel")[label] for label in y.tolist()],
        "a Series after a split": pd.Series(y.numpy())
        .sample(frac=1, random_state=0)
        .sort_values()
        .sort_index(),
        "floats with a gap": y.double().numpy(),
        "one column": pd.DataFrame({"y": y.numpy()}),
        "strings of bytes": np.array([b"x", b"y", b"z"])[y.numpy()],
    }[kind]
    train, test = held[:40], held[40:]  # of a Series by its index, which does not begin at 0
    if kind == "floats with a gap":
        train, y = np.append(train[:-1], np.nan), y.index_fill(0, torch.tensor([39]), -1)
    for measure in (partial(measures.knn_accuracy, k=5), measures.linear_probe):
        assert measure(z[:40], train, z[40:], test) == measure(z[:40], y[:40], z[40:], y[40:])


def test_names_are_numbered_alike_in_both_parts_and_not_mixed_with_numbers():
    z = torch.eye(4).repeat(3, 1)
    assert measures.knn_accuracy(z[:8], list("abcd" * 2), z[8:], list("abcd"), k=2) == 1
    assert measures.knn_accuracy(z[:8], list("abcd" * 2), z[8:9], ["a"], k=2) == 1
    assert measures.knn_accuracy(z[:8], list("abcd" * 2), z[11:], ["d"], k=2) == 1
    for labels, said in (([0, 1, 2, 3], "some labels are names"), ([0.5, 1, 2, 3], "labels hold 0.5")):
        with pytest.raises(ValueError, match=said):
            measures.knn_accuracy(z[:8], list("abcd" * 2), z[8:], labels, k=2)


@pytest.mark.parametrize(
    "stored",
    [
        lambda z: z[::-1].copy()[::-1],
        lambda z: z.astype(">f8"),
        lambda z: np.asfortranarray(z),
        lambda z: np.broadcast_to(z, z.shape),
        lambda z: np.hstack([z, z])[:, : z.shape[1]],
        lambda z: z.tolist(),
    ],
    ids=["backwards", "another byte order", "columns first", "read only", "a part", "lists"],
)
@pytest.mark.filterwarnings("error")
def test_an_array_is_taken_however_its_numbers_are_stored(stored):
    """Those of FITS files, z[::-1] and pandas 3 ended in torch's words, or in a warning of it."""
    z, y = np.random.default_rng(0).normal(size=(40, 6)), np.arange(40) % 4
    views = np.stack([z, z + 0.1 * z[::-1]], axis=1)
    assert measures.uniformity(stored(z)) == measures.uniformity(z)
    assert measures.knn_accuracy(stored(z), y, stored(z), y, k=3) == measures.knn_accuracy(z, y, z, y, k=3)
    assert measures.bootstrap(np.asarray(stored(z))[:, 0]) == measures.bootstrap(z[:, 0])
    assert measures.lidar(np.stack([stored(z), views[:, 1]], axis=1)) == measures.lidar(views)

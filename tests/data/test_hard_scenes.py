"""The hard scenes: exact masks, the same images however asked for, and no cheap way to the object."""

import hashlib

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from clutils import data
from clutils.course.pinda import detectors
from clutils.data import hard_scenes, scenes


@pytest.fixture(scope="module")
def train() -> data.ImageSet:
    return data.load("scenes-hard", limit=1000)


@pytest.fixture(scope="module")
def textures(train: data.ImageSet) -> tuple[np.ndarray, np.ndarray]:
    """The (object, background) textures of all images, as they were drawn."""
    drawn = []
    original = scenes.mixtures

    def watched(rng: np.random.Generator, labels: np.ndarray, *offsets: np.ndarray) -> np.ndarray:
        drawn.append(labels)
        return original(rng, labels, *offsets)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scenes, "mixtures", watched)
        scenes._drawn.cache_clear()
        hard_scenes.make(1000)
    return np.concatenate(drawn[::2]), np.concatenate(drawn[1::2])


def _grey(pictures: data.ImageSet) -> np.ndarray:
    return np.tensordot(pictures.images.double().numpy(), [0.299, 0.587, 0.114], axes=(1, 0)) / 255


def test_the_easy_scenes_are_still_those_that_records_were_made_of():
    found = data.load("scenes", "test", limit=350, size=45, seed=3)
    digest = hashlib.sha256(found.images.numpy().tobytes() + found.masks.numpy().tobytes()).hexdigest()
    assert digest[:12] == "56f43483a688"


def test_textures_are_drawn_anew_at_96_pixels_and_not_enlarged():
    large = data.load("scenes-hard", limit=200, size=96)
    enlarged = data.load("scenes-hard", limit=200, size=32).resized(96)
    checker = (large.labels == large.class_names.index("checker")).nonzero()[:, 0]
    for i in checker.tolist():
        mask = large.masks[i]
        crisp = len(torch.unique(large.images[i][:, mask], dim=1).T)
        assert crisp == 2 < len(torch.unique(enlarged.images[i][:, mask], dim=1).T)


def test_masks_are_exact_where_the_object_is_plain(train):
    plain = train.subset(train.labels == train.class_names.index("plain"))
    for picture, mask in zip(plain.images, plain.masks, strict=True):
        colour = picture[:, mask]
        assert (colour == colour[:, :1]).all()
        same = (picture == colour[:, :1, None]).all(0)
        assert (same & ~mask).float().mean() < 0.05  # a background pixel has that very colour by accident


def test_the_object_is_whole_often_small_and_seldom_in_the_middle(train):
    height, width = train.masks.any(2).sum(1), train.masks.any(1).sum(1)
    assert (height - width).abs().max() <= 1  # cut off by the border, one of them would be shorter
    area = train.masks.float().mean((1, 2))
    assert 0.05 < area.min() < 0.09 and 0.17 < area.max() < 0.24
    assert train.masks[:, 16, 16].float().mean() < 0.25
    assert (train.masks.float().mean(0) > 0.03).float().mean() > 0.9  # and yet anywhere
    easy = data.load("scenes", limit=1000).masks.float().mean((1, 2))
    assert area.mean() < 0.5 * easy.mean()


def test_the_background_has_a_texture_drawn_apart_from_the_class(train, textures):
    labels, behind = textures
    assert np.array_equal(labels, train.labels.numpy())
    counts = np.histogram2d(labels, behind, bins=(np.arange(11), np.arange(10)))[0]
    expected = counts.sum(1, keepdims=True) * counts.sum(0) / counts.sum()
    assert ((counts - expected) ** 2 / expected).sum() < 115  # chi square, 72 degrees: 99.9 % lie below
    parts = zip(train.images, train.masks, strict=True)
    varies = [picture[:, ~mask].float().std(1).max() for picture, mask in parts]
    assert min(varies) > 10  # no plain background


def test_many_objects_share_brightness_and_colour_with_their_background(train):
    textured = train.subset(train.labels != train.class_names.index("plain"))

    def means(pictures: data.ImageSet) -> np.ndarray:
        inside = pictures.masks[:, None]
        parts = [(pictures.images * m).sum((2, 3)) / m.sum((2, 3)) for m in (inside, ~inside)]
        return (parts[0] - parts[1]).abs().amax(1).numpy()  # of the channel that differs most, 0..255

    easy = data.load("scenes", limit=1000)
    assert np.median(means(textured)) < 45 < 65 < np.median(means(easy))


@pytest.mark.parametrize("size", [32, 64, 96])
def test_neither_edges_nor_variance_nor_the_middle_finds_the_object(size):
    pictures = data.load("scenes-hard", "test", limit=200, size=size, seed=77)
    maps = {
        "edges": detectors.edge_magnitude(pictures.images),
        "variance over 3 pixels": detectors.local_variance(pictures.images, 3),
        "variance over 7 pixels": detectors.local_variance(pictures.images, 7),
        "middle": detectors.centre_prior(len(pictures), size, size),
    }
    for name, values in maps.items():
        assert 0.38 < detectors.auroc(values, pictures.masks).mean() < 0.64, name


def test_edges_do_find_the_object_in_the_easy_scenes():
    pictures = data.load("scenes", "test", limit=200, seed=77)
    edges = detectors.edge_magnitude(pictures.images)
    assert detectors.auroc(edges, pictures.masks).mean() > 0.7


def test_the_object_cut_out_gives_the_class_away(train):
    test = data.load("scenes-hard", "test", limit=500)

    def spectrum(pictures: data.ImageSet) -> np.ndarray:
        """How strongly the object's brightness changes over 1, 2, 3 and 4 units, along and across."""
        grey, inside = _grey(pictures), pictures.masks.numpy()
        features = []
        for step in (1, 2, 3, 4):
            for down, right in ((step, 0), (0, step), (step, step), (step, -step)):
                a, b = (np.roll(x, (down, right), (1, 2)) for x in (grey, inside))
                both = inside & b
                features.append(np.where(both, abs(grey - a), 0).sum((1, 2)) / both.sum((1, 2)).clip(1))
        features = np.stack(features, 1)
        return features / (features.max(1, keepdims=True) + 1e-3)

    probe = LogisticRegression(max_iter=2000).fit(spectrum(train), train.labels)
    assert probe.score(spectrum(test), test.labels) > 0.5

"""What `load` gives, the digits, the generated scenes, and every way to ask for what can't be."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from clutils import data
from clutils.data import scenes


@pytest.fixture(scope="module")
def train() -> data.ImageSet:
    return data.load("scenes", limit=2000)


# Scenes


both = pytest.mark.parametrize("name", ["scenes", "scenes-hard"])


@both
def test_scenes_are_what_the_contract_says(name):
    found = data.load(name, limit=1000)
    assert found.images.shape == (1000, 3, 32, 32) and found.images.dtype == torch.uint8
    assert found.masks is not None and found.masks.shape == (1000, 32, 32) and len(found) == 1000
    assert found.labels.bincount().tolist() == [100] * 10 and found.class_names == scenes.CLASS_NAMES
    assert found.source.startswith(f"1,000 generated {'hard ' * (name != 'scenes')}scenes, 32x32")


@both
def test_a_limit_takes_a_prefix_of_the_same_scenes(name):
    whole = data.load(name, limit=250)
    for limit in (1, 99, 100, 101):
        scenes._drawn.cache_clear()
        few = data.load(name, limit=limit)
        assert torch.equal(few.images, whole.images[:limit]) and torch.equal(few.masks, whole.masks[:limit])
        assert torch.equal(few.labels, whole.labels[:limit])


@both
def test_no_scene_and_no_order_of_classes_comes_twice_within_or_across_splits_and_seeds(name):
    found = [
        data.load(name, limit=500),
        data.load(name, "test", limit=500),
        data.load(name, limit=500, seed=1),
    ]
    found.append(data.load("scenes-hard" if name == "scenes" else "scenes", limit=500))
    pictures = torch.cat([each.images for each in found])
    assert len({picture.numpy().tobytes() for picture in pictures}) == 2000
    assert len({tuple(each.labels.tolist()) for each in found}) == 4


def test_scenes_do_not_depend_on_the_number_of_threads(train):
    scenes._drawn.cache_clear()
    torch.set_num_threads(3)
    with threadpool_limits(3):  # NumPy's BLAS, too
        threaded = data.load("scenes", limit=500)
    assert torch.equal(threaded.images, train.images[:500]) and torch.equal(threaded.masks, train.masks[:500])


def test_masks_are_exactly_the_pixels_that_differ_from_a_plain_background(train):
    corners = train.images[:, :, [0, 0, -1, -1], [0, -1, 0, -1]]
    plain = (corners == corners[..., :1]).all(-1).all(-1)  # a drifting background has four different corners
    assert 0.4 < plain.float().mean() < 0.6
    differs = (train.images != train.images[:, :, :1, :1]).any(1)
    assert torch.equal(differs[plain], train.masks[plain])


def test_masks_leave_no_object_pixel_out_where_the_background_drifts(train):
    outside = ~train.masks[:, None]
    right = (train.images[..., 1:].int() - train.images[..., :-1].int()).abs()
    down = (train.images[:, :, 1:].int() - train.images[:, :, :-1].int()).abs()
    both_right, both_down = outside[..., 1:] & outside[..., :-1], outside[:, :, 1:] & outside[:, :, :-1]
    assert (right * both_right).max() <= 16 and (down * both_down).max() <= 16  # no edge beyond the mask
    across = right.amax(1)[(train.masks[..., 1:] ^ train.masks[..., :-1])]
    assert across.float().mean() > 60  # but one along it


def test_the_object_is_whole_and_of_the_three_shapes(train):
    masks = train.masks
    assert masks.float().mean((1, 2)).min() > 0.1 and masks.float().mean((1, 2)).max() < 0.6
    height, width = masks.any(2).sum(1), masks.any(1).sum(1)
    assert (height - width).abs().max() <= 1  # cut off by the border, one of them would be shorter
    filled = masks.float().sum((1, 2)) / (height * width)  # 1 square, pi/4 disc, 1/2 diamond
    kind = (filled[:, None] - torch.tensor([1.0, torch.pi / 4, 0.5])).abs()
    assert (kind.amin(1) < 0.08).all()
    assert kind.argmin(1).bincount(minlength=3).min() > 500


def test_the_class_is_the_texture(train):
    def same_along(picture: torch.Tensor, mask: torch.Tensor, axis: int) -> bool:
        """All object pixels that differ only in this coordinate have one colour."""
        high = picture.masked_fill(~mask, 0).amax(axis)
        low = picture.masked_fill(~mask, 255).amin(axis)
        used = mask.any(axis - 1)
        return bool(((high - low)[:, used] == 0).all())

    found = {name: [] for name in train.class_names}
    for picture, mask, label in zip(train.images.int(), train.masks, train.labels, strict=True):
        colours = len(torch.unique(picture[:, mask], dim=1).T)
        found[train.class_names[label]].append(
            (same_along(picture, mask, 1), same_along(picture, mask, 2), colours)
        )
    assert all(down and not across for down, across, _ in found["vertical stripes"])
    assert all(across and not down for down, across, _ in found["horizontal stripes"])
    assert all(colours == 1 for *_, colours in found["plain"])
    assert all(colours == 2 for *_, colours in found["checker"])
    for name in ("diagonal stripes", "wide stripes", "dots", "fine noise", "rings", "soft blobs"):
        assert not any(down or across for down, across, _ in found[name]), name
        assert all(colours > 2 for *_, colours in found[name]), name


@both
def test_raw_pixels_and_shapes_do_not_give_the_class_away(name):
    train, test = data.load(name, limit=1000), data.load(name, "test", limit=500)
    for part, most in (("images", 0.25 if name == "scenes" else 0.2), ("masks", 0.2)):
        nearest = KNeighborsClassifier(20).fit(getattr(train, part).flatten(1), train.labels)
        assert nearest.score(getattr(test, part).flatten(1), test.labels) < most, part


@both
@pytest.mark.parametrize("size", [20, 32])
def test_a_scene_is_the_same_scene_at_every_size(name, size):
    large = data.load(name, limit=100, size=3 * size)
    small = data.load(name, limit=100, size=size)
    assert torch.equal(small.masks, large.masks[:, 1::3, 1::3])  # the same pixel centres
    assert (small.images.int() - large.images[:, :, 1::3, 1::3].int()).abs().max() <= 1


@both
def test_scenes_of_odd_sizes_and_none_beyond_the_range(name):
    assert data.load(name, limit=7, size=45).images.shape == (7, 3, 45, 45)
    for size in (scenes.SIZES[0] - 1, scenes.SIZES[1] + 1):
        with pytest.raises(ValueError, match=rf"{name}: size {size}; 16 to 512"):
            data.load(name, size=size)


# Digits


def test_digits_are_scikit_learns_each_once_in_one_of_two_parts():
    train, test = data.load("digits"), data.load("digits", split="test")
    original = load_digits()
    ours = torch.cat([train.images, test.images]).flatten(1)
    ours = torch.cat([ours.float() * 16 / 255, torch.cat([train.labels, test.labels])[:, None]], 1).round()
    theirs = np.c_[original.data, original.target]
    assert sorted(map(tuple, ours.int().tolist())) == sorted(map(tuple, theirs.astype(int).tolist()))
    assert (len(train), len(test)) == (1352, 445)
    assert test.labels.bincount().min() >= 43 and test.labels.bincount().max() <= 46
    assert train.images.shape[1:] == (1, 8, 8) and train.images.max() == 255 and train.masks is None


def test_digits_as_vectors_are_the_same_digits():
    for split in ("train", "test"):
        pictures, vectors = data.load("digits", split), data.load("vectors:digits", split)
        assert vectors.vectors.shape == (len(pictures), 64) and vectors.vectors.dtype == torch.float32
        assert torch.equal(vectors.labels, pictures.labels)
        difference = vectors.vectors - pictures.images.flatten(1) / 255
        assert difference.abs().max() < 0.5 / 255 + 1e-6
        assert vectors.vectors.min() == 0 and vectors.vectors.max() == 1
    assert len(data.load("vectors:digits", limit=10)) == 10


# The set itself


def test_subset_takes_indices_masks_and_slices():
    whole = data.load("scenes", limit=20)
    picked = whole.subset([3, 1, -1])
    assert torch.equal(picked.images, whole.images[[3, 1, 19]])
    assert torch.equal(picked.masks, whole.masks[[3, 1, 19]])
    assert picked.source.startswith("3 of 20 generated scenes")
    twos = whole.subset(whole.labels == 2)
    assert len(twos) == int((whole.labels == 2).sum()) > 1 and (twos.labels == 2).all()
    assert whole.subset(slice(5)).images.data_ptr() == whole.images.data_ptr()
    assert len(whole.subset([])) == 0


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([20], "from 20 to 20 for 20"),
        ([-21, 0], "from -21 to 0"),
        ([0.5], "float32"),
        ([True, False], "2 booleans for 20"),
        ([[1, 2]], r"\(1, 2\)"),
    ],
)
def test_subset_refuses_indices_that_mean_nothing(indices, message):
    with pytest.raises(ValueError, match=message):
        data.load("scenes", limit=20).subset(indices)


def test_classes_keeps_and_renumbers_in_the_order_asked_for_and_leaves_the_unlabelled_out():
    whole = data.load("scenes", limit=50)
    kept = whole.classes(["rings", "plain"])
    of_rings, of_plain = (whole.labels == whole.class_names.index(name) for name in ("rings", "plain"))
    assert kept.class_names == ("rings", "plain")
    assert torch.equal(kept.images[kept.labels == 0], whole.images[of_rings])
    assert torch.equal(kept.images[kept.labels == 1], whole.images[of_plain])
    assert len(kept) == int(of_rings.sum() + of_plain.sum()) and "rings, plain" in kept.source
    with pytest.raises(ValueError, match="no class 'ring'; did you mean 'rings'"):
        whole.classes(["ring"])
    with pytest.raises(ValueError, match="one or more different"):
        whole.classes(["rings", "rings"])
    pictures = torch.zeros(4, 1, 2, 2, dtype=torch.uint8)
    mixed = data.ImageSet(pictures, torch.tensor([-1, 1, 0, -1]), ("a", "b"), None, "four")
    assert mixed.classes(["b", "a"]).labels.tolist() == [0, 1]


def test_resized_averages_when_it_shrinks():
    whole = data.load("scenes", limit=10, size=64)
    half = whole.resized(32)
    assert half.images.shape[-2:] == half.masks.shape[-2:] == (32, 32) and "64x64 to 32x32" in half.source
    cover = torch.nn.functional.avg_pool2d(whole.masks.float()[:, None], 2)[:, 0]
    assert (half.masks[cover == 1]).all() and not half.masks[cover == 0].any()
    grey = torch.full((1, 3, 9, 5), 77, dtype=torch.uint8)
    flat = data.ImageSet(grey, torch.tensor([-1]), (), None, "grey")
    assert (flat.resized(4).images == 77).all()
    assert data.load("digits", size=32, limit=3).images.shape == (3, 1, 32, 32)


def test_a_set_says_what_it_is_when_printed():
    printed = repr(data.load("scenes", limit=5))
    assert printed.startswith("ImageSet(5 x 3 x 32 x 32, 10 classes, with masks; 5 generated scenes")
    assert repr(data.load("vectors:digits")).startswith("VectorSet(1,352 x 64, 10 classes; 1,352 of scikit")


SETS = {
    data.ImageSet: {"images": torch.zeros(2, 3, 4, 4, dtype=torch.uint8), "masks": None},
    data.VectorSet: {"vectors": torch.zeros(2, 3)},
    data.GraphSet: {"graphs": torch.zeros(2, 3, 5)},
    data.SentenceSet: {"tokens": torch.zeros(2, 3, dtype=torch.int64), "texts": ("", "")},
}


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (data.ImageSet, {"images": torch.zeros(2, 3, 4, 4)}, "images are torch.float32"),
        (data.ImageSet, {"images": torch.zeros(2, 4, 4, dtype=torch.uint8)}, r"\(2, 4, 4\)"),
        (data.ImageSet, {"labels": torch.zeros(3, dtype=torch.int64)}, r"labels are torch.int64 \(3,\)"),
        (data.ImageSet, {"labels": torch.zeros(2)}, "labels are torch.float32"),
        (data.ImageSet, {"labels": torch.tensor([0, 1])}, "from 0 to 1, but there are 1 class names"),
        (
            data.ImageSet,
            {"masks": torch.zeros(2, 4, 5, dtype=torch.bool)},
            r"masks are torch.bool \(2, 4, 5\)",
        ),
        (
            data.ImageSet,
            {"labels": [0, 0]},
            r"labels are of type list, .* a tensor: torch\.as_tensor\(labels\)",
        ),
        (data.ImageSet, {"labels": np.array([0, 0])}, "labels are of type ndarray, but must be a tensor"),
        (
            data.ImageSet,
            {"images": np.zeros((2, 3, 8, 8), np.uint8)},
            "images are of type ndarray, but must be",
        ),
        (
            *(data.ImageSet, {"images": torch.zeros(2, 8, 8, 3, dtype=torch.uint8)}),
            r"images \(2, 8, 8, 3\) end with their channels: images\.permute\(0, 3, 1, 2\)",
        ),
        (data.VectorSet, {"vectors": torch.zeros(2, 3, 3)}, r"float32 \(N, D\) is needed"),
        (data.GraphSet, {"graphs": torch.zeros(2, 3, 3)}, r"1 \+ F \+ V"),
        (data.SentenceSet, {"tokens": torch.zeros(2, 3)}, r"int64 \(N, L\) is needed"),
        (data.SentenceSet, {"texts": ("",)}, "1 texts for 2 rows"),
    ],
)
def test_a_set_refuses_parts_that_do_not_fit_its_kind_or_are_of_other_libraries(kind, change, message):
    right = {"labels": torch.zeros(2, dtype=torch.int64), "class_names": ("only",), "source": "nothing"}
    kind(**right, **SETS[kind])
    with pytest.raises(ValueError, match=message):
        kind(**right | SETS[kind] | change)


# Asking for what can't be


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "cifar-10"}, "no data called 'cifar-10'; did you mean 'cifar10'"),
        ({"name": "STL10"}, "did you mean 'stl10'"),
        ({"name": "imagenet"}, "no data called 'imagenet'.*Known: scenes, scenes-hard, digits"),
        ({"name": "folder:"}, "folder:"),
        ({"name": "digits", "split": "dev"}, "digits has no split 'dev'; it has train, test"),
        ({"name": "cifar10", "split": "unlabeled"}, "cifar10 has no split 'unlabeled'"),
        ({"name": "digits", "limit": 0}, "limit is 0"),
        ({"name": "digits", "limit": -5}, "limit is -5"),
        ({"name": "scenes", "limit": 2.5}, "limit is 2.5"),
        ({"name": "scenes", "seed": -1}, "seed is -1"),
        ({"name": "digits", "size": 3}, "size is 3"),
        ({"name": "scene-hard"}, "did you mean 'scenes-hard'"),
        ({"name": "scenes-hard", "split": "dev"}, "scenes-hard has no split 'dev'; it has train, test"),
        ({"name": "cifar10", "fallback": "scene"}, "fallback: no data called 'scene'; did you mean 'scenes'"),
        ({"name": "vectors:digit"}, "no data called 'vectors:digit'; did you mean 'vectors:digits'"),
        ({"name": "Reuters"}, "did you mean 'vectors:reuters'"),
        ({"name": "vectors:scenes"}, "no data called 'vectors:scenes'"),
        ({"name": "vectors:digits", "split": "val"}, "digits has no split 'val'; it has train, test"),
        ({"name": "vectors:har", "split": "val"}, "har has no split 'val'; it has train, test"),
        ({"name": "vectors:har", "limit": 0}, "data.load: limit is 0"),
        ({"name": "vectors:har", "size": 32}, "size is 32, but vectors:har has vectors"),
        ({"name": "graphs:motifs", "size": 8}, "graphs:motifs has graphs, not images"),
        (
            {"name": "graphs:file:a.txt"},
            "'graphs:file:a.txt'; commit 8e5a616 reads such a file. data.graph_set",
        ),
        ({"name": "graphs:karate"}, "no data called 'graphs:karate'.*nodes:karate"),
        ({"name": "graphs:motifs", "split": "validation"}, "no split 'validation'; it has train, test, all"),
        ({"name": "sentences:topics", "size": 8}, "sentences:topics has sentences, not images"),
        ({"name": "sentences:file:nowhere.txt"}, "is no file"),
        ({"name": "vectors:array:no.npy"}, r"array:no\.npy: .* is no file"),
        ({"name": "vectors:array:"}, "array: names no file"),
    ],
)
def test_a_wrong_question_gets_one_clear_answer(arguments, message):
    with pytest.raises((ValueError, data.Unavailable), match=message) as answer:
        data.load(**arguments)
    assert "\n" not in str(answer.value)

"""A reader's own folders: every common way that images are stored, sorted, masked and broken."""

import os
import re
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from clutils import data, training
from clutils.data import folders


def picture(seed: int, height: int = 8, width: int = 8, channels: int = 3) -> np.ndarray:
    shape = (height, width, channels) if channels > 1 else (height, width)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def save(path: Path, pixels: np.ndarray, **options: object) -> np.ndarray:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return pixels


def load(path: Path, **options: object) -> data.ImageSet:
    return data.load(f"folder:{path}", **options)


def rows(found: data.ImageSet) -> list[bytes]:
    return [image.permute(1, 2, 0).numpy().tobytes() for image in found.images]


# Which images, in which order, of which class


def test_class_folders_give_pictures_of_each_class_in_turn(tmp_path):
    saved = {
        (name, i): save(tmp_path / name / f"{i}.png", picture(10 * k + i)).tobytes()
        for k, name in enumerate(("cat", "ant", "dog"))
        for i in range(2 if name == "dog" else 3)
    }
    found = load(tmp_path)
    assert found.class_names == ("ant", "cat", "dog")
    order = [(name, i) for i in range(3) for name in ("ant", "cat", "dog") if (name, i) in saved]
    assert rows(found) == [saved[key] for key in order]
    assert [found.class_names[label] for label in found.labels] == [name for name, _ in order]
    assert found.images.shape == (8, 3, 8, 8) and found.images.is_contiguous() and found.masks is None
    assert found.source == f"8 images in 3 classes (ant, cat, dog) from the folder {tmp_path}"


def test_a_limit_draws_as_many_of_each_class_and_reads_nothing_else(tmp_path):
    for name in ("a", "b"):
        for i in range(9):
            save(tmp_path / name / f"{i}.png", picture(i))
    whole = rows(load(tmp_path))
    few = load(tmp_path, limit=5)
    assert few.labels.tolist() == [0, 1, 0, 1, 0]
    assert few.source.startswith("5 of 18 images in 2 classes (a, b), drawn, from")
    taken = {name: {whole.index(row) // 2 for row in rows(few)[at::2]} for at, name in enumerate("ab")}
    assert len(taken["a"]) == 3 and len(taken["b"]) == 2 and taken["a"] != {0, 1, 2}
    assert rows(load(tmp_path, limit=5)) == rows(few) and rows(load(tmp_path, limit=7))[:5] == rows(few)
    left = min(set(range(9)) - taken["b"])
    (tmp_path / "b" / f"{left}.png").write_bytes(b"broken")
    assert len(load(tmp_path, limit=5)) == 5
    assert "; 1 that can't be read left out: b/" in load(tmp_path, limit=18).source


def test_what_is_no_picture_is_ignored_and_stray_pictures_are_counted(tmp_path):
    save(tmp_path / "a" / "1.png", picture(1))
    save(tmp_path / "overview.png", picture(2, 50, 90))
    save(tmp_path / ".thumbnails" / "1.png", picture(3))
    (tmp_path / "a" / "notes.txt").write_text("no image")
    (tmp_path / "a" / "._1.png").write_bytes(b"what some systems leave behind")
    (tmp_path / "empty").mkdir()
    found = load(tmp_path)
    assert len(found) == 1 and found.class_names == ("a",)
    assert "1 beside the class folders left out" in found.source


@pytest.mark.parametrize(
    ("inside", "test"),
    [
        ("train valid test", "test"),
        ("train dev test", "test"),
        ("Train Test", "Test"),
        ("training testing", "testing"),
        ("training_set test_set", "test_set"),
        ("train2017 val2017", "val2017"),
        ("seg_train seg_test seg_pred", "seg_test"),
        ("train test annotations", "test"),
        ("train valid models", "valid"),
        ("train val", "val"),
        ("trainval test", "test"),
        ("train holdout", "holdout"),
        ("archive/train archive/test", "test"),
        ("archive/archive/training archive/archive/eval", "eval"),
    ],
)
def test_splits_in_any_usual_name_and_beside_anything_are_no_classes(tmp_path, inside, test):
    for at, part in enumerate(inside.split()):
        (tmp_path / part).mkdir(parents=True)
        if part not in ("annotations", "models"):
            for label, name in enumerate(("cat", "dog")):
                save(tmp_path / part / name / "1.png", picture(10 * at + label))
    train, judged = load(tmp_path), load(tmp_path, split="test")
    assert train.class_names == judged.class_names == ("cat", "dog")
    assert train.labels.tolist() == judged.labels.tolist() == [0, 1]
    assert "in 2 classes (cat, dog)" in train.source and f"split {test} of " in judged.source
    assert not set(rows(train)) & set(rows(judged))


def laid(root: Path, inside: str) -> None:
    """An image, each its own, in each of these folders or files."""
    for at, name in enumerate(inside.split(", ")):
        save(root / (name if Path(name).suffix else f"{name}/1.png"), picture(at))


TWO, BOTH = "train/a, train/b, test/b, test/c", "art/cat, art/dog, photo/cat, photo/dog"
THREE = "train/cat, valid/cat, test/cat"
HALF, UNLABELLED = "labeled/cat, labeled/dog, unlabeled", "train/cat, train/dog, test/test, unlabeled/0"
LETTERS = "train/A, train/a, test/A, test/a"


@pytest.mark.parametrize(
    ("inside", "split", "classes", "labels", "said"),
    [
        ("animal/cat/black, animal/dog, thing/1.PNG", "train", "animal thing", [0, 1, 0], ""),
        ("0.png, 1.png, 2.png", "train", "", [-1, -1, -1], "3 images"),
        (TWO, "train", "a b c", [0, 1], "split train of test, train"),
        (TWO, "test", "a b c", [1, 2], "split test of test, train"),
        ("boat, train", "train", "boat train", [0, 1], ""),
        *(
            (THREE, name, "cat", [0], "split valid of test")
            for name in ("val", "valid", "Valid", "validation")
        ),
        (f"{THREE}, dev/cat", "dev", "cat", [0], "split dev "),
        (HALF, "train", "cat dog", [0, 1], "split labeled of"),
        (HALF, "unlabeled", "cat dog", [-1], "split unlabeled of"),
        (BOTH, "train", "art photo", [0, 1, 0, 1], "folders inside a class are part of it (cat, dog)"),
        ("art/cat, val-d'isere/cat", "train", "art val-d'isere", [0, 1], ""),
        (LETTERS, "train", "A a", [0, 1], ""),  # both are classes
        ("train/cat, test/cat, samples/cat", "train", "cat", [0], "; samples beside the splits left out"),
        ("archive/cat, archive/dog", "train", "cat dog", [0, 1], "from the folder {}/archive"),
        ("archive/archive/cat, archive/archive/dog", "train", "cat dog", [0, 1], "{}/archive/archive"),
        (UNLABELLED, "train", "cat dog", [0, 1], ""),
        *((UNLABELLED, split, "cat dog", [-1], "") for split in ("test", "unlabeled")),  # of one folder
    ],
)
def test_folders_are_classes_or_splits_as_their_names_say(tmp_path, inside, split, classes, labels, said):
    laid(tmp_path, inside)
    found = load(tmp_path, split=split)
    assert found.class_names == tuple(classes.split()) and found.labels.tolist() == labels
    assert said.format(tmp_path) in found.source


SPLITS = r"seem to be splits, not classes.*call them train/, val/ and test/"
ONE_NAME = r"one split has the class .*, another .*: give it one name in both"


@pytest.mark.parametrize(
    ("inside", "splits", "said"),
    [
        (TWO, "unlabeled", "no split 'unlabeled'; it has test, train"),
        ("boat, train", "test", r"no split 'test', only 'train'.*sort the images into train/"),
        (f"{THREE}, dev/cat", "val", "split is 'val', but must be one of dev, valid"),
        ("fold_0/cat, fold_0/dog, fold_1/cat, fold_1/dog, fold_2/cat, fold_2/dog", "train test", SPLITS),
        ("trainA, trainB, testA, testB", "train test", SPLITS),
        ("Trainieren/cat, Trainieren/dog, Testen/cat, Testen/dog", "train test", SPLITS),
        ("train/cat, train/dog, query/cat, query/dog, gallery/cat, gallery/dog", "train test", SPLITS),
        ("train/cat, train/dog, support/cat, support/dog", "train test", SPLITS),
        ("train/Cat, train/dog, test/cat, test/dog", "train test", ONE_NAME),
        ("train/caf\u00e9, train/dog, test/cafe\u0301, test/dog", "train test", ONE_NAME),
    ],
)
def test_splits_that_nobody_can_tell_from_classes_are_refused(tmp_path, inside, splits, said):
    laid(tmp_path, inside)
    for split in splits.split():
        with pytest.raises(ValueError, match=said):
            load(tmp_path, split=split)


def test_tiny_imagenet_as_unpacked_has_labels_from_its_text_file_and_no_class_images(tmp_path):
    for name in ("n01", "n02"):
        save(tmp_path / "train" / name / "images" / f"{name}_0.png", picture(1))
    for part in ("val", "test"):
        for i in range(3):
            save(tmp_path / part / "images" / f"{part}_{i}.png", picture(i))
    (tmp_path / "val" / "val_annotations.txt").write_text("val_0.png\tn02\t0\t0\nval_1.png\tn01\t0\t0\n")
    train, val, test = (load(tmp_path, split=split) for split in ("train", "val", "test"))
    assert train.class_names == val.class_names == test.class_names == ("n01", "n02")
    assert train.labels.tolist() == [0, 1] and test.labels.tolist() == [-1] * 3
    assert val.labels.tolist() == [1, 0, -1] and "labels from val_annotations.txt" in val.source
    assert load(tmp_path / "test").class_names == ()


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_links_to_folders_inside_a_class_count_once_and_one_that_leads_up_is_refused(tmp_path):
    for name in ("cat/real", "dog"):
        save(tmp_path / "classes" / name / "1.png", picture(1))
    for i in range(3):
        save(tmp_path / "elsewhere" / f"{i}.png", picture(i))
    (tmp_path / "classes" / "cat" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "classes" / "cat" / "twice").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "classes" / "fox").symlink_to(tmp_path / "elsewhere")
    found = load(tmp_path / "classes")
    assert found.class_names == ("cat", "dog", "fox") and torch.bincount(found.labels).tolist() == [4, 1, 3]
    (tmp_path / "classes" / "cat" / "loop").symlink_to(tmp_path / "classes")
    with pytest.raises(ValueError, match=r"cat/loop leads back up to .*classes: take it away"):
        load(tmp_path / "classes")


@pytest.mark.parametrize(("most", "bits"), [(200, 8), (1023, 10), (4092, 12), (16383, 14), (16384, 16)])
def test_few_bits_in_files_of_sixteen_do_not_turn_black(tmp_path, most, bits):
    values = np.linspace(0, most, 64).astype(np.uint16).reshape(8, 8)
    save(tmp_path / "1.png", values)
    save(tmp_path / "2.png", values // 2)
    save(tmp_path / "3.png", picture(1))
    found = load(tmp_path)
    for image, own in zip(found.images, (values, values // 2), strict=False):
        assert (image.numpy() - own * (255 / (2**bits - 1))).__abs__().max() <= 0.5
    assert torch.equal(found.images[2], torch.from_numpy(picture(1)).permute(2, 0, 1))
    said = f"the largest value of its 16-bit files is {most:,} of 65,535, so they are read as {bits} bits"
    assert (said in found.source) == (bits < 16)


def test_all_splits_of_few_bits_are_read_alike_whatever_is_taken_of_each(tmp_path):
    for part, most in (("train", 4092), ("test", 900)):
        save(tmp_path / part / "cat" / "1.png", np.full((8, 8), most, np.uint16))
        save(tmp_path / part / "cat" / "2.png", np.full((8, 8), 100, np.uint16))
    for split, limit in (("train", None), ("test", None), ("train", 1), ("test", 1)):
        found = load(tmp_path, split=split, limit=limit)
        assert "is 4,092 of 65,535, so they are read as 12 bits" in found.source
        assert {int(image.max()) for image in found.images} <= {255, 56, 6}  # v 255/4095


def png(path: Path, *chunks: tuple[bytes, bytes]) -> None:
    """A .png of these chunks, (kind, content), by hand."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, content in chunks:
            file.write(struct.pack(">I", len(content)) + kind + content)
            file.write(struct.pack(">I", zlib.crc32(kind + content)))


def header(width: int, height: int, bits: int = 8, kind: int = 2) -> tuple[bytes, bytes]:
    return b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)


def colours_of_16_bits(path: Path, values: np.ndarray, channels: int) -> None:
    """A .png, by hand: Pillow writes none of 16 bits a colour."""
    height, width = values.shape
    pixels = np.repeat(values[..., None], channels, axis=2).astype(">u2")
    if channels == 2:
        pixels[..., 1] = 65535  # opaque
    lines = zlib.compress(b"".join(b"\0" + line.tobytes() for line in pixels))
    png(path, header(width, height, 16, {2: 4, 3: 2}[channels]), (b"IDAT", lines), (b"IEND", b""))


@pytest.mark.parametrize("channels", [2, 3])
def test_colours_of_16_bits_that_hold_12_do_not_turn_black(tmp_path, channels):
    values = np.linspace(0, 4092, 64).reshape(8, 8)
    colours_of_16_bits(tmp_path / "1.png", values, channels)
    with pytest.raises(
        ValueError, match=r"1 images have 16 bits a colour.*nearly black: the largest is 15 of 255"
    ):
        load(tmp_path)
    colours_of_16_bits(tmp_path / "1.png", 16 * values, channels)
    assert load(tmp_path).images.max() == 255


# How they are stored


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".ppm", ".tif", ".webp"])
def test_lossless_formats_come_back_bit_for_bit(tmp_path, suffix):
    options = {"lossless": True} if suffix == ".webp" else {}
    pixels = save(tmp_path / f"1{suffix}", picture(1, 7, 5), **options)
    found = load(tmp_path)
    assert rows(found) == [pixels.tobytes()] and "cut" not in found.source


def test_grey_one_bit_and_sixteen_bit_pictures_become_rgb(tmp_path):
    grey = save(tmp_path / "1.png", picture(1, channels=1))
    deep = (picture(2, channels=1).astype(np.uint16) << 8) | 0x80
    save(tmp_path / "2.png", deep)
    Image.fromarray(grey > 127).save(tmp_path / "3.png")
    found = load(tmp_path).images
    assert torch.equal(found[0], torch.from_numpy(grey).expand(3, -1, -1))
    assert (found[1].numpy() - deep / 257).__abs__().max() <= 0.5
    assert torch.equal(found[2], 255 * torch.from_numpy(grey > 127).byte().expand(3, -1, -1))


def test_transparency_becomes_white(tmp_path):
    pixels = picture(1, channels=4)
    pixels[:4, :, 3], pixels[4:, :, 3] = 0, 255
    save(tmp_path / "1.png", pixels)
    palette = Image.fromarray(pixels[..., :3]).quantize(16)
    palette.save(tmp_path / "2.png", transparency=int(np.asarray(palette)[0, 0]))
    found = load(tmp_path).images
    assert (found[0, :, :4] == 255).all()
    assert torch.equal(found[0, :, 4:], torch.from_numpy(pixels[4:, :, :3]).permute(2, 0, 1))
    clear = torch.from_numpy(np.array(palette) == np.array(palette)[0, 0])
    assert (found[1][:, clear] == 255).all() and not (found[1][:, ~clear] == 255).all()


def test_cmyk_becomes_rgb(tmp_path):
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(tmp_path / "1.jpg", quality=95)
    red, green, blue = load(tmp_path).images[0].float().mean((1, 2))
    assert red > 230 and green < 30 and blue < 30


@pytest.mark.parametrize("size", [None, 4])
def test_photographs_are_turned_as_the_camera_says(tmp_path, size):
    turns: dict[int, Callable[[np.ndarray], np.ndarray]] = {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.transpose(1, 0, 2),
        6: lambda a: np.rot90(a, -1),
        7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
        8: lambda a: np.rot90(a),
    }
    for orientation, turn in turns.items():
        upright = np.zeros((6, 12, 3), np.uint8)
        upright[:3, :6], upright[3:, 6:] = (255, 0, 0), (0, 255, 0)
        undo = {6: 8, 8: 6}.get(orientation, orientation)
        exif = Image.Exif()
        exif[0x0112] = orientation
        folder = tmp_path / str(orientation)
        save(folder / "1.png", np.ascontiguousarray(turns[undo](upright)), exif=exif)
        assert np.array_equal(turn(turns[undo](upright)), upright)
        found = load(folder, size=size).images[0].permute(1, 2, 0).numpy()
        if size is None:
            assert np.array_equal(found, upright), orientation
        else:
            assert found[0, 0, 0] > 200 and found[-1, -1, 1] > 200, orientation


# Sizes


def test_mixed_sizes_become_the_smallest_ones_square_and_the_source_says_so(tmp_path):
    for i, (height, width) in enumerate(((20, 30), (12, 40), (16, 16))):
        save(tmp_path / f"{i}.png", picture(i, height, width))
    found = load(tmp_path)
    assert found.images.shape == (3, 3, 12, 12)
    assert "scaled and cut to 12x12 (they are 16x16 to 30x20)" in found.source


def test_a_size_cuts_the_central_square(tmp_path):
    wide = np.zeros((10, 30, 3), np.uint8)
    wide[:, 10:20] = picture(1, 10, 10)
    save(tmp_path / "wide" / "1.png", wide)
    save(tmp_path / "high" / "1.png", np.ascontiguousarray(wide.transpose(1, 0, 2)))
    assert rows(load(tmp_path / "wide", size=10)) == [wide[:, 10:20].tobytes()]
    assert rows(load(tmp_path / "high", size=10)) == [
        np.ascontiguousarray(wide[:, 10:20].transpose(1, 0, 2)).tobytes()
    ]
    assert load(tmp_path / "wide", size=37).images.shape == (1, 3, 37, 37)


def test_large_photographs_shrink_to_the_mean_of_what_they_show(tmp_path):
    steps = np.repeat(np.repeat(picture(3, 4, 4), 200, 0), 200, 1)
    save(tmp_path / "1.jpg", steps, quality=95, subsampling=0)
    found = load(tmp_path, size=40).images[0].permute(1, 2, 0).numpy().astype(int)
    assert abs(found[5::10, 5::10] - steps[100::200, 100::200]).max() <= 6  # middles of the 16 fields


def test_more_than_fits_is_refused_before_it_is_read(tmp_path, monkeypatch):
    for i in range(3):
        save(tmp_path / f"{i}.png", picture(i, 20, 20))
    monkeypatch.setattr(folders, "ROOM", 3000)
    with pytest.raises(ValueError, match=r"3 images of 20x20 would take 3.6 kB; say which size"):
        load(tmp_path)
    assert load(tmp_path, size=10).images.shape == (3, 3, 10, 10)
    assert len(load(tmp_path, limit=2)) == 2


@pytest.mark.parametrize(("height", "width"), [(1, 1), (3, 800), (8, 8), (900, 900)])
def test_one_tiny_thin_or_huge_image_does_not_decide_the_size_of_all(tmp_path, height, width):
    for i in range(9):
        save(tmp_path / f"{i}.png", picture(i, 64, 64))
    save(tmp_path / "odd.png", picture(9, height, width))
    found = load(tmp_path)
    assert found.images.shape == (10, 3, 64, 64)
    told = f"far smaller, and enlarged: odd.png ({width}x{height})"
    assert (told in found.source) == (min(height, width) < 64)
    assert torch.equal(
        found.images[:9],
        torch.from_numpy(np.stack([picture(i, 64, 64) for i in range(9)])).permute(0, 3, 1, 2),
    )


def test_a_run_from_before_one_tiny_image_lost_its_say_goes_on_with_the_images_it_had(tmp_path, monkeypatch):
    for i in range(9):
        save(tmp_path / "all" / f"{i}.png", picture(i, 64, 64))
    save(tmp_path / "all" / "odd.png", picture(9, 16, 16))
    settings = {"steps": 2, "batch_size": 4, "encoder": "conv16"}
    name = f"folder:{tmp_path / 'all'}"
    with monkeypatch.context() as before:
        before.setattr(folders, "_common_side", lambda path, shapes: (min(map(min, shapes.values())), []))
        old = training.Run(data=name, **settings)
    old.step()
    old.save(tmp_path / "run.pt")
    again = training.resume(tmp_path / "run.pt")
    assert again.images.shape[-1] == 16 and again.step()["loss"] == old.step()["loss"]


def test_many_tiny_images_among_larger_ones_are_refused_and_a_size_takes_them(tmp_path):
    for i in range(10):
        save(tmp_path / f"{i}.png", picture(i, *((64, 64) if i > 3 else (2, 2))))
    with pytest.raises(
        ValueError, match=r"4 of 10 images are tiny beside the others, the first .*0\.png \(2x2\)"
    ):
        load(tmp_path)
    assert load(tmp_path, size=32).images.shape == (10, 3, 32, 32)


# Masks


@pytest.mark.parametrize("size", [None, 12, 30])
@pytest.mark.parametrize("layout", ["loose", "classes", "splits"])
def test_masks_beside_the_pictures_are_cut_as_the_pictures_are(tmp_path, layout, size):
    stem = {"loose": "", "classes": "cat/", "splits": "train/cat/"}[layout]
    pictures = tmp_path if layout == "splits" else tmp_path / "pictures"
    for i, (height, width) in enumerate(((24, 40), (30, 26))):
        rows_, columns = np.ogrid[:height, :width]
        disc = (rows_ - 11) ** 2 + (columns - 16 + 4 * i) ** 2 < 64
        mask = (255 * disc).astype(np.uint8)
        save(pictures / f"{stem}{i}.png", np.repeat(mask[..., None], 3, 2))  # the image shows its mask
        save(tmp_path / "masks" / f"{stem}{i}.png", mask if i else disc.astype(np.uint8))  # 0 and 1 will do
    found = load(pictures, size=size)
    assert found.masks is not None and found.masks.shape == found.images[:, 0].shape
    assert 0.1 < found.masks.float().mean() < 0.5
    disagree = found.masks != (found.images[:, 0] > 127)
    assert disagree.float().mean() < 0.015  # the image is resampled smoothly: a pixel of the outline differs


def test_masks_of_some_pictures_only_are_refused_and_foreign_ones_ignored(tmp_path):
    for i in range(3):
        save(tmp_path / "pictures" / f"{i}.png", picture(i))
    save(tmp_path / "masks" / "other.png", picture(0, channels=1))
    assert load(tmp_path / "pictures").masks is None
    save(tmp_path / "masks" / "1.jpg", picture(0, channels=1))
    with pytest.raises(ValueError, match=r"no mask for 2 of 3 images, first 0\.png"):
        load(tmp_path / "pictures")


def test_a_mask_of_another_size_is_refused_by_name(tmp_path):
    save(tmp_path / "pictures" / "1.png", picture(1, 8, 8))
    save(tmp_path / "masks" / "1.png", picture(1, 8, 9, channels=1))
    with pytest.raises(ValueError, match=r"1\.png \(its mask .*1\.png is \(8, 9\).*not \(8, 8\)"):
        load(tmp_path / "pictures")


# What can't be read


@pytest.mark.parametrize(
    ("suffix", "lossy"), [(".avif", True), (".jp2", False), (".tga", False), (".mpo", True)]
)
def test_whatever_pillow_reads_is_read(tmp_path, suffix, lossy):
    if suffix not in folders._suffixes():
        pytest.skip(f"this Pillow reads no {suffix}")
    smooth = np.full((16, 16, 3), 100, np.uint8)
    save(tmp_path / f"1{suffix}", smooth)
    assert np.abs(load(tmp_path).images.numpy() - 100.0).max() <= (8 if lossy else 0)


def test_images_of_kinds_that_are_not_read_are_counted_in_the_source_and_in_the_error(tmp_path):
    save(tmp_path / "a" / "1.png", picture(1))
    sound = (tmp_path / "a" / "1.png").read_bytes()
    for name in ("a/1.HEIC", "a/2.heic", "b/3.dng", "a/IMG_1", "a/notes.txt", "a/LICENSE"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(sound if name == "a/IMG_1" else b"no image")
    found = load(tmp_path)
    assert len(found) == 1 and found.source.endswith("; not read: 1 .dng, 2 .heic, 1 without a suffix")
    with pytest.raises(ValueError, match=r"no images .* in .*b, but 1 \.dng: save them as \.png"):
        load(tmp_path / "b")


def test_a_sound_image_that_is_too_large_for_pillow_is_said_to_be_so(tmp_path, monkeypatch, recwarn):
    for i in range(30):
        save(tmp_path / f"{i}.png", picture(i, 16, 16))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 200)
    assert len(load(tmp_path)) == 30 and not recwarn.list  # Pillow warns of 256
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(ValueError, match=r"256 pixels\) exceeds limit .* Scale it down"):
        load(tmp_path)


def test_a_few_broken_images_are_left_out_and_said_and_many_are_all_named_in_one_line(tmp_path):
    for i in range(100):
        save(tmp_path / "ab"[i % 2] / f"{i:03}.png", picture(i, 16, 16))
    whole = load(tmp_path)
    bad = {f"{'ab'[i % 2]}/{i:03}.png": content for i, content in ((0, b""), (51, b"404"), (99, b""))}
    bad["a/020.png"] = (tmp_path / "a" / "050.png").read_bytes()[:100]
    for name, content in bad.items():
        (tmp_path / name).write_bytes(content)
    some = load(tmp_path)
    kept = [at for at, name in enumerate(whole.files) if name not in bad]
    assert torch.equal(some.images, whole.images[kept]) and torch.equal(some.labels, whole.labels[kept])
    assert list(some.files) == [whole.files[at] for at in kept]
    assert some.source.startswith("96 images in 2 classes") and some.source.endswith(
        "; 4 that can't be read left out: a/000.png and 3 more"
    )
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "0.png").write_text("")
    assert "96 images in 2 classes (a, b)" in load(tmp_path).source  # of c none is left
    (tmp_path / "c" / "0.png").unlink()
    for i in range(10, 18):
        (tmp_path / "ab"[i % 2] / f"{i:03}.png").write_text("a page that says 404")
    with pytest.raises(
        ValueError, match=r"12 of 100 images can't be read: .*020\.png.* and 2 more; rep"
    ) as e:
        load(tmp_path)
    assert "\n" not in str(e.value)


def test_a_sound_image_is_not_left_out_for_its_mask_its_size_or_the_disk(tmp_path, monkeypatch):
    for i in range(20):
        save(tmp_path / "pictures" / f"{i:02}.png", picture(i, 16, 16))
        save(tmp_path / "masks" / f"{i:02}.png", picture(i, 16, 16, channels=1))
    sound = (tmp_path / "masks" / "07.png").read_bytes()
    for bad in (b"", sound[: len(sound) // 2]):
        (tmp_path / "masks" / "07.png").write_bytes(bad)
        with pytest.raises(ValueError, match=r"1 of 20 .*07\.png \(its mask .*07\.png can't be read"):
            load(tmp_path / "pictures")
    (tmp_path / "masks" / "07.png").write_bytes(sound)
    reads = folders._read_image
    for error in (OSError(5, "Input/output error"), Image.DecompressionBombError("too large")):

        def fails(file, *given, error=error):
            if file.endswith("11.png"):
                raise error
            return reads(file, *given)

        monkeypatch.setattr(folders, "_read_image", fails)
        with pytest.raises(ValueError, match=r"1 of 20 images can't be read: .*11\.png"):
            load(tmp_path / "pictures")


def test_a_float_picture_is_refused_by_name(tmp_path):
    save(tmp_path / "1.tif", np.random.default_rng(0).random((8, 8)).astype(np.float32))
    with pytest.raises(ValueError, match=r"1\.tif \(its values \(F\) are not 8 or 16 bits"):
        load(tmp_path)


def test_no_folder_a_file_and_an_empty_folder_get_their_own_answers(tmp_path):
    with pytest.raises(data.Unavailable, match=r"is no folder.*relative paths start in"):
        load(tmp_path / "nowhere")
    (tmp_path / "pictures.zip").write_bytes(b"zip")
    with pytest.raises(FileNotFoundError, match="is a file: unpack it"):
        load(tmp_path / "pictures.zip")
    (tmp_path / "empty" / "class").mkdir(parents=True)
    (tmp_path / "empty" / "class" / "notes.txt").touch()
    with pytest.raises(ValueError, match=r"no images \(\.png \.jpg"):
        load(tmp_path / "empty")


def test_the_home_folder_may_be_written_as_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME" if os.name == "posix" else "USERPROFILE", str(tmp_path))
    save(tmp_path / "mine" / "1.png", picture(1))
    assert len(data.load("folder:~/mine")) == 1


# Real images


def test_real_stl10_pictures_in_groups(shared):
    path = shared / "stl10-sample" / "images"
    found = load(path)
    assert found.images.shape == (246, 3, 96, 96) and len(found.class_names) == 26
    assert "train" in found.class_names  # the vehicle
    one = sorted((path / "airplane").iterdir())[0]
    assert rows(found)[0] == np.asarray(Image.open(one).convert("RGB")).tobytes()


def test_real_stl10_pictures_with_masks(shared):
    sample = shared / "stl10-sample"
    found = load(sample / "with_mask")
    assert found.images.shape == (10, 3, 96, 96) and found.masks is not None
    for i, file in enumerate(sorted((sample / "masks").iterdir())):
        assert np.array_equal(found.masks[i], np.asarray(Image.open(file).convert("L")) > 127)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "I;16", "LA", "CMYK"])
def test_large_images_are_made_small_first_and_look_the_same(tmp_path, monkeypatch, mode):
    """An image of 169 million pixels with transparency took 2.7 GB; alone and made small first 1.4 GB."""
    y, x = np.mgrid[:640, :960]
    grey = (127 + 100 * np.sin(x / 90) * np.cos(y / 120)).astype(np.uint8)
    colours = np.stack([grey, grey[::-1], 255 - grey, np.full_like(grey, 200)], axis=-1)
    made = {"I;16": lambda: Image.fromarray(257 * grey.astype(np.uint16))}
    image = made.get(mode, lambda: Image.fromarray(colours).convert(mode))()
    file = tmp_path / ("a.tif" if mode == "CMYK" else "a.png")
    image.save(file)
    usual, halved = folders._read_image(str(file), 32)
    monkeypatch.setattr(folders, "LARGE", 1e4)
    small, same = folders._read_image(str(file), 32)
    assert same == halved and np.abs(small.astype(int) - usual).max() <= 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
@pytest.mark.parametrize("place", ["photos/cat", "photos", "masks"])
def test_a_named_pipe_is_not_waited_for_and_among_images_or_masks_refused_unopened(tmp_path, place):
    for part in {"photos/cat": place, "photos": place, "masks": "photos masks"}[place].split():
        save(tmp_path / part / "a.png", picture(0))
        save(tmp_path / part / "b.png", picture(1))
    os.mkfifo(tmp_path / place / "pipe")
    assert len(load(tmp_path / "photos")) == 2
    (tmp_path / place / "b.png").unlink()
    os.mkfifo(tmp_path / place / "b.png")
    with pytest.raises(ValueError, match=r"1 of 2 images can't be read: .*b\.png.*a pipe or a device"):
        load(tmp_path / "photos")


PIXELS = b"IDAT", zlib.compress(b"".join(b"\0" + bytes([9 * y] * 24) for y in range(8)))  # 8x8, of 3 bytes
ZEROS = zlib.compress(bytes(200_000_000), 9)  # 194 kB


@pytest.mark.parametrize(
    "chunks",
    [
        (header(8, 8), header(2000, 2000), PIXELS),
        (header(2000, 2000), header(8, 8), PIXELS),
        (header(8, 8), PIXELS, header(2000, 2000)),
        (header(8, 8), PIXELS, (b"IEND", b""), header(2000, 2000), PIXELS),
        (header(8, 8), (b"zTXt", b"a\0\0" + ZEROS), PIXELS),
        (header(8, 8), PIXELS, (b"zTXt", b"a\0\0" + ZEROS)),
        (header(8, 8), (b"iTXt", b"a\0\1\0\0\0" + ZEROS), PIXELS),
        (header(8, 8), (b"iCCP", b"a\0\0" + ZEROS), PIXELS),
        (header(8, 8), (b"IDAT", ZEROS)),  # more than the header says
    ],
    ids=[
        "two headers",
        "larger first",
        "late header",
        "a second image",
        "zTXt",
        "late zTXt",
        "iTXt",
        "iCCP",
        "IDAT",
    ],
)
@pytest.mark.parametrize("size", [None, 8])
def test_a_png_with_two_readings_or_a_bomb_is_what_was_measured_or_is_refused(tmp_path, chunks, size):
    """What is checked is what is read: an image of 8x8, in little memory, or one sentence."""
    save(tmp_path / "a.png", picture(0))
    png(tmp_path / "b.png", *chunks, (b"IEND", b""))
    tracemalloc.start()
    try:
        found = load(tmp_path, size=size)
        assert found.images.shape == (2, 3, 8, 8)
    except ValueError as error:
        assert re.search(r"1 of 2 images can't be read: .*b\.png \(", str(error)), error
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 30e6

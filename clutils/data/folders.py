"""Image folders of the reader's own: a folder of class-named folders, with masks where there are any."""

import os
import random
from collections.abc import Callable, Iterator
from itertools import zip_longest
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError
from tqdm import tqdm

from clutils.data.downloads import human
from clutils.data.sets import ImageSet, Unavailable

SPLITS = ("train", "test", "validation", "val", "unlabeled")
SUFFIXES = (
    *(".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".gif", ".webp"),
    *(".tif", ".tiff", ".ppm", ".pgm", ".pbm"),
)
ROOM = 4e9  # bytes that images may take when no `size` was asked for


def read(path: str, split: str, limit: int | None, size: int | None) -> ImageSet:
    """The images below `path`, as RGB, (N, 3, H, W).

    - Folders inside `path` are the classes, by name; what lies deeper belongs to the class above it. Without
      folders, the images have no class: label -1. Files that aren't images, and hidden ones, are ignored.
    - Where all folders inside (but for `masks`) are called train, test, validation, val or unlabeled, they
      are the splits, and classes lie in them. Any other folder has the one split 'train'.
    - A folder `masks` beside the folder of classes, or beside the splits, with the same names in it, gives
      the masks: bright is object. Either every image has one or none has.
    - Order: a first image of every class, then a second, and so on, so a `limit` takes as many of each. What
      a `limit` takes is drawn, always alike: the first by name may be of one day, one film or one subject.
    - `size`: an image is scaled until its shorter side fits, and its central square is cut out. Without it,
      images all of one size stay as they are, and mixed ones become squares of the shortest side there is.
    - Photographs are turned as their camera says, transparency becomes white, 16 bits become 8.

    Raises `Unavailable` where there is no such folder; `ValueError` where it holds no images, or one that
    can't be read: then nothing is loaded.
    """
    folder = Path(path).expanduser()
    if not path:
        raise Unavailable("folder: names no folder; folder:PATH does")
    if not folder.is_dir():
        what = "is a file: unpack it and give the folder" if folder.is_file() else "is no folder"
        raise Unavailable(f"folder:{path}: {folder.absolute()} {what} (relative paths start in {Path.cwd()})")
    base, class_names = _layout(folder, split)
    names, labels, stray = _listing(base, class_names, limit)
    if not names:
        raise ValueError(f"folder:{path}: no pictures ({' '.join(SUFFIXES)}) in {base.absolute()}")
    masks = _masks_of(folder, base, names)
    files, labels = [os.path.join(base, name) for name in names[:limit]], labels[:limit]

    note, shape = "", (size or 0, size or 0)
    if size is None:
        shapes = _each(path, "measuring", files, lambda at: _shape(files[at]), tell=False) or [shape]
        shape = shapes[0]
        if len(set(shapes)) > 1:
            size = min(min(shape) for shape in shapes)
            shape = size, size
            small, large = (f(shapes, key=lambda s: s[0] * s[1]) for f in (min, max))
            note = f" (they are {small[1]}x{small[0]} to {large[1]}x{large[0]})"
    if size is not None:
        note = f", scaled and cut to {size}x{size}{note}"
    images, inside = _decode(path, files, masks, size, shape)

    cut = len(files) < len(names)
    count = f"{len(files):,} of {len(names):,}" if cut else f"{len(files):,}"
    classes = f" in {len(class_names)} class{'es' if len(class_names) > 1 else ''}" if class_names else ""
    left_out = f"; {stray} beside the class folders left out" if stray else ""
    return ImageSet(
        images=torch.from_numpy(images),
        labels=torch.tensor(labels, dtype=torch.int64),
        class_names=class_names,
        masks=None if inside is None else torch.from_numpy(inside),
        source=f"{count} pictures{classes}{', drawn,' * cut} from the folder {base}{note}{left_out}",
    )


# Which files there are


def _layout(folder: Path, split: str) -> tuple[Path, tuple[str, ...]]:
    """The folder that holds the split's classes, and the classes of all splits together."""
    inside = [name for name in _folders(folder) if name != "masks"]
    if not inside or not set(inside) <= set(SPLITS):
        if split != "train":
            raise ValueError(
                f"folder:{folder} has no split {split!r}, only 'train': all that is in it. "
                "To have both, sort the pictures into train/ and test/ inside it"
            )
        return folder, tuple(name for name in _folders(folder) if any(_walk(folder / name)))
    if split not in inside:
        raise ValueError(f"folder:{folder} has no split {split!r}; it has {', '.join(inside)}")
    classes = {
        name for part in inside for name in _folders(folder / part) if any(_walk(folder / part / name))
    }
    return folder / split, tuple(sorted(classes))


def _listing(base: Path, class_names: tuple[str, ...], limit: int | None) -> tuple[list[str], list[int], int]:
    """Files below `base` and labels, one of each class in turn; and how many lie beside the class folders.

    By name; where a limit leaves some out, drawn.
    """
    loose = sorted(entry.name for entry in os.scandir(base) if entry.is_file() and _is_image(entry.name))
    of_class = [_image_files(base, name) if (base / name).is_dir() else [] for name in class_names]
    if limit is not None and limit < (sum(map(len, of_class)) or len(loose)):
        for drawn, name in zip((loose, *of_class), ("", *class_names), strict=True):
            random.Random(name).shuffle(drawn)
    if not any(of_class):
        return loose, [-1] * len(loose), 0
    turns = zip_longest(*([(name, label) for name in names] for label, names in enumerate(of_class)))
    names, labels = zip(*(pair for turn in turns for pair in turn if pair), strict=True)
    return list(names), list(labels), len(loose)


def _masks_of(folder: Path, base: Path, names: list[str]) -> list[str] | None:
    """The mask of each image, or None where there are none; `masks` lies beside classes or splits."""
    below = "" if base == folder else base.name
    masks = folder / "masks" if below else folder.absolute().parent / "masks"
    if not masks.is_dir() or masks == folder.absolute():
        return None
    known = {os.path.splitext(name)[0]: name for name in _image_files(masks, below)}
    found = [known.get(os.path.splitext(os.path.join(below, name))[0]) for name in names]
    missing = found.count(None)
    if missing == len(found):
        return None
    if missing:
        raise ValueError(
            f"folder:{folder}: {masks} has no mask for {missing} of {len(names)} pictures, first "
            f"{names[found.index(None)]}; add what is missing or move the masks away"
        )
    return [os.path.join(masks, name) for name in found if name]


def _folders(folder: Path) -> list[str]:
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and _visible(entry.name))


def _image_files(base: Path, below: str) -> list[str]:
    """The images in the folder `below` of `base` and in all folders in it, named from `base`, in order."""
    start = len(os.path.join(base, ""))
    return sorted(found[start:] for found in _walk(base / below))


def _walk(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = filter(_visible, folders)
        yield from (os.path.join(place, name) for name in names if _is_image(name))


def _is_image(name: str) -> bool:
    return _visible(name) and name.lower().endswith(SUFFIXES)


def _visible(name: str) -> bool:
    return not name.startswith((".", "__MACOSX"))


# What is in them


def _decode(
    path: str, files: list[str], masks: list[str] | None, size: int | None, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray | None]:
    """Images (N, 3, *shape) and masks (N, *shape)."""
    needed = 3 * shape[0] * shape[1] * len(files)
    if size is None and needed > ROOM:
        raise ValueError(
            f"folder:{path}: {len(files):,} pictures of {shape[1]}x{shape[0]} would take {human(needed)}; "
            "say which size you want, as in data.load(..., size=96), or a limit"
        )
    images = np.empty((len(files), 3, *shape), np.uint8)
    inside = np.empty((len(files), *shape), bool) if masks else None

    def place(at: int) -> None:
        images[at] = _read_image(files[at], size).transpose(2, 0, 1)
        if masks and inside is not None:
            inside[at] = _mask(masks[at], files[at], size)

    _each(path, "reading", files, place)
    return images, inside


def _each(path: str, doing: str, files: list[str], do: Callable[[int], Any], tell: bool = True) -> list[Any]:
    """`do` every index, on a few threads; all failures together are one ValueError, or left out."""
    failures: dict[int, str] = {}

    def one(at: int) -> Any:
        try:
            return do(at)
        except MemoryError:
            raise
        except UnidentifiedImageError:
            failures[at] = f"{files[at]} (no picture is in it, whatever its name says)"
        except Exception as error:  # a broken file makes Pillow raise nearly anything; reported below
            failures[at] = f"{files[at]} ({error or type(error).__name__})"

    with ThreadPool(min(8, os.cpu_count() or 1)) as pool:
        done = pool.imap(one, range(len(files)), chunksize=64)
        found = list(tqdm(done, total=len(files), desc=f"{doing} pictures", delay=2))
    if failures and tell:
        raise ValueError(
            f"folder:{path}: {len(failures)} of {len(files)} pictures can't be read, first "
            f"{failures[min(failures)]}; repair them or take them away"
        )
    return [each for at, each in enumerate(found) if at not in failures]


def _shape(file: str) -> tuple[int, int]:
    """Height and width as displayed, from the file's header alone."""
    with Image.open(file) as image:
        on_its_side = image.getexif().get(ExifTags.Base.Orientation, 1) > 4
        return image.size if on_its_side else image.size[::-1]


def _read_image(file: str, size: int | None) -> np.ndarray:
    """One image as uint8 (H, W, 3)."""
    with Image.open(file) as image:
        if size is not None:
            image.draft(None, (2 * size, 2 * size))  # a JPEG decodes at a fraction of its size: faster
        return np.asarray(_cut(_rgb(ImageOps.exif_transpose(image)), size, Image.Resampling.BICUBIC))


def _mask(file: str, of: str, size: int | None) -> np.ndarray:
    """One mask as bool (H, W): bright is object; a mask of 0 and 1 too."""
    if _shape(file) != (shape := _shape(of)):
        raise ValueError(f"its mask {file} is {_shape(file)} pixels high and wide, not {shape}")
    with Image.open(file) as image:
        grey = ImageOps.exif_transpose(image).convert("L")
    if grey.getextrema()[1] == 1:
        grey = grey.point(lambda value: 255 * value)
    return np.asarray(_cut(grey, size, Image.Resampling.BOX)) > 127


def _cut(image: Image.Image, size: int | None, resampling: Image.Resampling) -> Image.Image:
    """The central square, scaled to size x size."""
    if size is None or image.size == (size, size):
        return image
    return ImageOps.fit(image, (size, size), resampling)


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode == "F" or image.mode.startswith("I"):  # more than 8 bits a pixel
        values = np.asarray(image)
        if image.mode == "F" or values.min() < 0 or values.max() > 65535:
            raise ValueError(f"its values ({image.mode}) are not 8 or 16 bits")
        return Image.fromarray(np.rint(values / 257).astype(np.uint8)).convert("RGB")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")

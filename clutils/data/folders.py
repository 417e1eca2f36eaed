"""Image folders, as `torchvision.datasets.ImageFolder` finds them, with splits and masks, read by Pillow."""

import contextlib
import math
import os
import random
import re
import threading
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import pairwise, zip_longest
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import ExifTags, Image, ImageFile, ImageOps, UnidentifiedImageError
from tqdm import tqdm

from clutils.data.downloads import human
from clutils.data.labels import SPLITS
from clutils.data.sets import ImageSet, Unavailable, shortlist

_SPLIT = re.compile(
    rf"(?P<before>.+[ _.-])?(?P<word>{'|'.join(SPLITS)})(?:[ _.-]?(?:set|split|data|images?|imgs?|\d+))*",
    re.IGNORECASE,
)
_FOLD = re.compile(r"(fold|cv|split|part|chunk)[ _.-]?\d+", re.IGNORECASE)
_LIKE = re.compile("train", re.IGNORECASE), re.compile("test|val|dev", re.IGNORECASE)  # as splits begin
NO_CLASSES = ("images", "image", "imgs", "img", "pictures", "photos", "jpegimages")  # of a single folder
SUFFIXES = (  # of images, as far as this Pillow reads them
    *(".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".bmp", ".dib", ".gif", ".webp", ".tif", ".tiff"),
    *(".ppm", ".pgm", ".pbm", ".pnm", ".avif", ".jp2", ".j2k", ".jpx", ".tga", ".apng", ".qoi", ".heic"),
    ".heif",
)
OTHERS = (  # images that are counted alone
    *(".hif", ".avifs", ".jxl", ".svg", ".psd", ".xcf", ".eps", ".exr", ".hdr", ".ico", ".icns", ".dds"),
    *(".dng", ".cr2", ".cr3", ".nef", ".nrw", ".arw", ".orf", ".rw2", ".raf", ".pef", ".srw", ".raw"),
    *(".pcx", ".3fr", ".dcm", ".dicom", ".nii", ".nrrd", ".fits", ".svs", ".ndpi", ".czi"),
)
SIGNS = re.compile(  # how images of any name begin
    rb"\x89PNG|\xff\xd8\xff|GIF8|BM....\0\0\0\0|RIFF....WEBP|II\*\0|MM\0\*|....ftyp(avif|hei|mif)", re.DOTALL
)
ROOM = 4e9  # bytes that images may take when no `size` was asked for
LARGE = 16e6  # pixels of an image from which on one is decoded at a time, and made small before all else
ALONE = threading.Lock()
DEPTHS = (8, 10, 12, 14)  # bits that a 16-bit file may hold in fact
DARK = 64  # of 255: 16-bit colours of which nothing is brighter hold 14 bits or fewer
SOME = 1000  # files of all splits, spread over them, whose depth is looked at
NAMED = 10  # broken images that an error lists
TINY = 16  # pixels: a side that images of other sizes do not get, where most have several times as many
BROKEN = 0.1  # share of the files that may be damaged: these are left out, and `source` names them


class Layout(NamedTuple):
    """How a folder was read.

    - top: the folder of the splits or classes; base: the folder of the chosen split's classes, or top
    - split: the chosen split's folder, splits: all of them; None and () where there are no splits
    - stray: folders of images beside the splits
    """

    top: Path
    base: Path
    class_names: tuple[str, ...]
    split: str | None = None
    splits: tuple[str, ...] = ()
    stray: tuple[str, ...] = ()


def read(path: str, split: str, limit: int | None, size: int | None) -> ImageSet:
    """The images below `path`, as RGB, (N, 3, H, W). `source` says what was taken for splits and classes.

    - Folders inside `path` are the classes, by name; what lies deeper belongs to the class above it. Without
      folders, the images have no class: label -1. Hidden files and folders without images are ignored;
      `source` counts images that are not read, as HEIC, raw ones or without a suffix. A single folder that
      holds only folders is opened: the classes are inside it. A single folder called `images` is no class.
    - Folders are splits where all of them have a split's usual name (train, training, test, val, valid,
      validation, dev, eval, unlabeled ..., in any case), or where a training split and another one are among
      them; classes lie inside the splits. `split` is a folder's name or its usual one: 'test' finds Testing/.
      Where there is no test split, 'test' is the validation split. A split with a single folder that no other
      split has is without labels, unless a file `SPLIT_annotations.txt` in it (Tiny ImageNet's) has them, a
      line an image: its name and its class. Any other folder has the one split 'train'.
    - A folder `masks` beside the folder of classes, or beside the splits, with the same names in it, gives
      the masks: bright is object. Either every image has one or none has.
    - Order: a first image of every class, then a second, and so on, so a `limit` takes as many of each. What
      a `limit` takes is drawn, always alike: the first by name may be of one day, one film or one subject.
    - `size`: an image is scaled until its shorter side fits, and its central square is cut out. Without it,
      images all of one size stay as they are, and mixed ones become squares of the shortest side there is;
      a few whose shorter side is less than half of what the others have are enlarged, and named.
    - Photographs are turned as their camera says, transparency becomes white. 16 bits become 8; where no
      value of the set needs more than 8, 10, 12 or 14 bits, these do. Values of 1,000 images of all splits
      count, so that every split is read alike.
    - Damaged files, up to a tenth of all, are left out; `source` counts them and names the first.
    - Links are followed; one that leads back up is refused.

    Raises `Unavailable` where there is no such folder; `ValueError` where it holds no images, or more than a
    tenth can't be read; where an image holds floats; where splits have unusual names, and would become the
    classes; where two splits spell a class differently; and where 16-bit colours are nearly black.
    """
    folder = Path(path).expanduser()
    if not path:
        raise Unavailable("folder: names no folder; folder:PATH does")
    if not folder.is_dir():
        what = "is a file: unpack it and give the folder" if folder.is_file() else "is no folder"
        raise Unavailable(f"folder:{path}: {folder.absolute()} {what} (relative paths start in {Path.cwd()})")
    layout = _layout(folder, split)
    base, class_names = layout.base, layout.class_names
    names, labels, notes = _listing(layout, limit)
    if not names:
        there = [f"{count:,} {kind}" for kind, count in _kinds(base, all_files=True).most_common(5)]
        what = f", but {', '.join(there)}: save them as .png or .jpg" if there else ""
        raise ValueError(f"folder:{path}: no images ({' '.join(_suffixes())}) in {base.absolute()}{what}")
    if unread := _kinds(base):
        notes.append(f"not read: {', '.join(f'{count:,} {kind}' for kind, count in sorted(unread.items()))}")
    masks = _masks_of(layout, names)
    files, labels = [os.path.join(base, name) for name in names[:limit]], labels[:limit]

    note, shape = "", (size or 0, size or 0)
    if size is None:
        shapes = dict(_each(path, "measuring", files, lambda file: (file, _shape(file)), tell=False))
        shape = next(iter(shapes.values()), shape)
        if len(set(shapes.values())) > 1:
            size, odd = _common_side(path, shapes)
            shape = size, size
            small, large = (f(shapes.values(), key=lambda s: s[0] * s[1]) for f in (min, max))
            note = f" (they are {small[1]}x{small[0]} to {large[1]}x{large[0]})"
            if odd:
                high, wide = shapes[odd[0]]
                notes.append(f"far smaller, and enlarged: {_first(odd, base, f' ({wide}x{high})')}")
    if size is not None:
        note = f", scaled and cut to {size}x{size}{note}"
    broken, seen = list[str](), set(labels)
    images, inside, depth = _decode(path, files, masks, size, shape, layout.top, broken)
    whole = ImageSet(
        images=torch.from_numpy(images),
        labels=torch.tensor(labels, dtype=torch.int64),
        class_names=class_names,
        masks=None if inside is None else torch.from_numpy(inside),
        source="",
        files=tuple(names[:limit]),
    )
    lost = set(broken)
    found = whole.subset([at for at, file in enumerate(files) if file not in lost]) if broken else whole
    if broken:
        notes.append(f"{len(broken)} that can't be read left out: {_first(broken, base)}")
    cut, kept = len(files) < len(names), set(found.labels.tolist())
    count = f"{len(found):,} of {len(names):,}" if cut else f"{len(found):,}"
    left = [name for c, name in enumerate(class_names) if c not in seen - kept]
    classes = f" in {len(left)} class{'es' * (len(left) > 1)} ({shortlist(left)})" if max(kept) >= 0 else ""
    which = f", split {layout.split} of {', '.join(layout.splits)}" if layout.split else ""
    count += " images" if len(names) > 1 else " image"
    found.source = f"{count}{classes}{', drawn,' * cut} from the folder {base}{which}{note}" + "".join(
        f"; {each}" for each in (*notes, *depth)
    )
    return found


def _first(files: list[str], base: Path, said: str = "") -> str:
    """The first of these files, what is said of it, and how many more there are."""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{os.path.relpath(files[0], base)}{said}{more}"


# Which files there are


def _layout(folder: Path, split: str) -> Layout:
    """Roles of the folders inside. Raises ValueError where there is no such split, or several."""
    folder = _opened(folder)
    inside = _filled(folder)
    named = {name: found for name in inside if (found := _SPLIT.fullmatch(name))}
    roles = {name: SPLITS[found["word"].lower()] for name, found in named.items()}
    plain = all(name in named and not named[name]["before"] for name in inside)
    if not roles or not (plain or {"train"} < set(roles.values())):
        _refuse_unusual(folder, inside)
        if split != "train":
            raise ValueError(
                f"folder:{folder} has no split {split!r}, only 'train': all that is in it. "
                "To have both, sort the images into train/ and test/ inside it"
            )
        return Layout(folder, folder, tuple(inside))
    chosen = _chosen(folder, split, roles)
    bases = {
        name: _opened(folder / name, [folder / other for other in roles if other != name]) for name in roles
    }
    of_each = [set(_filled(base)) for base in bases.values()]
    classes = tuple(sorted(set().union(*of_each)))
    alike = sorted(classes, key=_plain)
    for one, other in pairwise(alike):
        if _plain(one) == _plain(other) and not any({one, other} <= own for own in of_each):
            both = f"one split has the class {one!a}, another {other!a}"
            raise ValueError(f"folder:{folder}: {both}: give it one name in both")
    stray = tuple(name for name in inside if name not in roles)
    return Layout(folder, bases[chosen], classes, chosen, tuple(roles), stray)


def _refuse_unusual(folder: Path, inside: list[str]) -> None:
    """Raise ValueError where folders that would be the classes are splits, by names that are not known."""
    like = [[name for name in inside if begins.match(name)] for begins in _LIKE]
    all_like = all(like) and len(inside) == sum(map(len, like))
    known = any(like) or any(map(_SPLIT.fullmatch, inside))
    alike = known and len(set.intersection(*(set(_filled(folder / name)) for name in inside))) > 1
    folds = len(inside) > 1 and all(map(_FOLD.fullmatch, inside))
    if all_like or folds or (alike and not any(any(_loose(folder / name)) for name in inside)):
        raise ValueError(
            f"folder:{folder}: {shortlist(inside)} seem to be splits, not classes, but have unusual names: "
            f"call them train/, val/ and test/, or give one of them, as in folder:{folder / inside[0]}"
        )


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _chosen(folder: Path, split: str, roles: dict[str, str]) -> str:
    """The folder of this split: of its name, else of its role; for 'test' also the validation split."""
    for alike in (str, str.lower):
        if found := [name for name in roles if alike(name) == alike(split)]:
            break
    else:
        asked = _SPLIT.fullmatch(split)
        role = SPLITS[asked["word"].lower()] if asked else None
        found = [name for name, own in roles.items() if own == role]
        if not found and role == "test":
            found = [name for name, own in roles.items() if own == "val"]
    if not found:
        raise ValueError(f"folder:{folder} has no split {split!r}; it has {', '.join(roles)}")
    if len(found) > 1:
        raise ValueError(f"folder:{folder}: split is {split!r}, but must be one of {', '.join(found)}")
    return found[0]


def _opened(folder: Path, others: Iterable[Path] = ()) -> Path:
    """The folder, or the only one inside that is no class: it holds folders alone, or is called `images`.

    others: further splits. A split's only folder is no class where these have classes, but not that one.
    """
    beside = {name for other in others for name in _filled(other)}
    while len(inside := _filled(folder)) == 1 and not any(_loose(folder)):
        (name,), match = inside, _SPLIT.fullmatch(inside[0])
        if match and not beside:
            return folder  # a split alone
        foreign = name not in beside if beside else not any(_loose(folder / name))
        if not foreign and not match and name.lower() not in NO_CLASSES:
            return folder
        folder = folder / name
    return folder


def _listing(layout: Layout, limit: int | None) -> tuple[list[str], list[int], list[str]]:
    """Files below `base` and labels, one of each class in turn; and what `source` has to say of them.

    By name; where a limit leaves some out, drawn.
    """
    base, class_names = layout.base, layout.class_names
    loose = sorted(_loose(base))
    of_class = _of_classes(base, class_names)
    if limit is not None and limit < (sum(map(len, of_class)) or len(loose)):
        for drawn, name in zip((loose, *of_class), ("", *class_names), strict=True):
            random.Random(name).shuffle(drawn)
    notes = [f"{', '.join(layout.stray)} beside the splits left out"] if layout.stray else []
    if len(class_names) > 1 and (whole := [name for name in class_names if name.lower() in NO_CLASSES]):
        notes.append(f"if {whole[0]!r} is no class but has all images: folder:{base / whole[0]}")
    if not any(of_class):
        labels, file = _annotated(layout, loose)
        return loose, labels, [*notes, f"labels from {file}"] if file else notes
    turns = zip_longest(*([(name, label) for name in names] for label, names in enumerate(of_class)))
    names, found = zip(*(pair for turn in turns for pair in turn if pair), strict=True)
    if loose:
        notes.append(f"{len(loose)} beside the class folders left out")
    deeper = {parts[1] for name in names if len(parts := name.split(os.sep)) > 2} - set(NO_CLASSES)
    if deeper:
        notes.append(f"folders inside a class are part of it ({shortlist(sorted(deeper))})")
    return list(names), list(found), notes


def _annotated(layout: Layout, names: list[str]) -> tuple[list[int], str]:
    """The label of each image by the split's text file, and its name; -1 and "" where there is none."""
    own = layout.top / (layout.split or "")
    for file in sorted(own.glob("*_annotations.txt")) if layout.split else ():
        rows = (line.split() for line in file.read_text("utf-8", errors="replace").splitlines())
        known = {row[0]: row[1] for row in rows if len(row) > 1}
        codes = {name: code for code, name in enumerate(layout.class_names)}
        labels = [codes.get(known.get(name, ""), -1) for name in names]
        if max(labels, default=-1) >= 0:
            return labels, file.name
    return [-1] * len(names), ""


def _masks_of(layout: Layout, names: list[str]) -> list[str] | None:
    """The mask of each image, or None where there are none; `masks` lies beside classes or splits."""
    top, base = layout.top.absolute(), layout.base.absolute()
    below = str(base.relative_to(top)) if layout.split else ""
    masks = (top if layout.split else base.parent) / "masks"
    if not masks.is_dir() or masks == base:
        return None
    known = {os.path.splitext(mask)[0]: mask for mask in _images(masks / below)}
    found = [known.get(os.path.splitext(os.path.join(masks, below, name))[0]) for name in names]
    missing = found.count(None)
    if missing == len(found):
        return None
    if missing:
        raise ValueError(
            f"folder:{layout.top}: {masks} has no mask for {missing} of {len(names)} images, first "
            f"{names[found.index(None)]}; add what is missing or move the masks away"
        )
    return [mask for mask in found if mask]


def _filled(folder: Path) -> list[str]:
    """The folders inside in which there is an image, by name; `masks` is none."""
    inside = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and _visible(entry.name))
    return [name for name in inside if name != "masks" and _has_images(folder / name)]


def _has_images(folder: Path) -> bool:
    """True where there is an image inside; where one lies there directly, the others are not looked at."""
    return any(_loose(folder)) or any(_images(folder))


def _loose(folder: Path) -> Iterator[str]:
    """The images that lie directly inside."""
    with os.scandir(folder) as entries:
        yield from (entry.name for entry in entries if not entry.is_dir() and _is_image(entry.name))


def _of_classes(base: Path, class_names: tuple[str, ...]) -> list[list[str]]:
    """The images of each class by torchvision, named from `base`, in order; linked twice counts once."""
    from torchvision.datasets import ImageFolder

    start, places = len(os.path.join(base, "")), {name: label for label, name in enumerate(class_names)}
    own = {path for name in class_names if (base / name).is_dir() for path in _images(base / name)}
    found: list[list[str]] = [[] for _ in class_names]
    if own:
        made = ImageFolder.make_dataset(str(base), places, is_valid_file=own.__contains__, allow_empty=True)
        for path, label in made:
            found[label].append(path[start:])
    return [sorted(names) for names in found]


def _images(folder: Path) -> Iterator[str]:
    return (path for path in _walk(folder) if _is_image(os.path.basename(path)))


def _kinds(folder: Path, all_files: bool = False) -> Counter[str]:
    """Suffixes of images that are not read, or of all files that are not, and how often each is there."""
    found = Counter[str]()
    for path in _walk(folder):
        suffix = os.path.splitext(path)[1].lower()
        if suffix in _suffixes():
            continue
        told = suffix or "without a suffix"
        if suffix in (*SUFFIXES, *OTHERS) or (not suffix and _begins_as_image(path)) or all_files:
            found[told] += 1
    return found


def _begins_as_image(path: str) -> bool:
    if not os.path.isfile(path):  # a pipe, which one would wait for
        return False
    try:
        with open(path, "rb") as file:
            return SIGNS.match(file.read(32)) is not None
    except OSError:
        return False


@cache
def _suffixes() -> tuple[str, ...]:
    """Suffixes of the images that this Pillow reads."""
    Image.init()
    known = Image.registered_extensions()
    opened = {
        suffix for suffix, kind in known.items() if kind in Image.OPEN or kind == "MPO"
    }  # a kind of JPEG
    return tuple(suffix for suffix in SUFFIXES if suffix in opened)


def _common_side(path: str, shapes: dict[str, tuple[int, int]]) -> tuple[int, list[str]]:
    """The shortest side without the few images that are far smaller, and these few.

    A twentieth of them, at least one, has no say where the next one's side is more than twice theirs. Raises
    ValueError where the side is tiny beside what most have.
    """
    sides = sorted(map(min, shapes.values()))
    robust = sides[max(1, len(sides) // 20)] if len(sides) > 2 else sides[0]
    side, median = min(side for side in sides if 2 * side >= robust), sides[len(sides) // 2]
    if side < TINY and 4 * side < median:
        tiny = [file for file, shape in shapes.items() if 4 * min(shape) < median]
        raise ValueError(
            f"folder:{path}: {len(tiny)} of {len(shapes)} images are tiny beside the others, the first "
            f"{tiny[0]} ({shapes[tiny[0]][1]}x{shapes[tiny[0]][0]}): move them away, or say which "
            "size all shall "
            "have, as in data.load(..., size=64)"
        )
    return side, [file for file, shape in shapes.items() if 2 * min(shape) < robust]


def _walk(folder: Path) -> Iterator[str]:
    """The files in the folder and in all inside, links to folders included; each real folder once."""
    seen: set[str] = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(filter(_visible, folders))
        for name in folders:
            if _leads_up(place, name, real):
                link = os.path.join(place, name)
                raise ValueError(
                    f"folder:{folder}: the link {link} leads back up to {os.readlink(link)}: take it away"
                )
        yield from (os.path.join(place, name) for name in names if _visible(name))


def _leads_up(place: str, name: str, real: str) -> bool:
    """True where the folder is a link to one that holds this place."""
    path = os.path.join(place, name)
    return os.path.islink(path) and os.path.commonpath([target := os.path.realpath(path), real]) == target


def _is_image(name: str) -> bool:
    return _visible(name) and name.lower().endswith(_suffixes())


def _visible(name: str) -> bool:
    return not name.startswith((".", "__MACOSX"))


# What is in them


def _decode(
    path: str,
    files: list[str],
    masks: list[str] | None,
    size: int | None,
    shape: tuple[int, int],
    top: Path,
    broken: list[str],
) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Images (N, 3, *shape), masks (N, *shape), and what is to say of files of 16 bits.

    top: the folder of all splits, which are read alike; broken: gets damaged files.
    """
    needed = 3 * shape[0] * shape[1] * len(files)
    if size is None and needed > ROOM:
        raise ValueError(
            f"folder:{path}: {len(files):,} images of {shape[1]}x{shape[0]} would take {human(needed)}; "
            "say which size you want, as in data.load(..., size=96), or a limit"
        )
    images = np.empty((len(files), 3, *shape), np.uint8)
    inside = np.empty((len(files), *shape), bool) if masks else None
    most = max(_each(path, "measuring", files, _deepest, tell=False), default=0)
    if 0 < most < 1 << DEPTHS[-1]:
        others = sorted({file for name in _filled(top) for file in _images(top / name)} - set(files))
        others = others[:: len(others) // SOME + 1]
        most = max([most, *_each(path, "measuring", others, _deepest, tell=False)])
    bits = next((bits for bits in DEPTHS if 0 < most < 1 << bits), 16)
    number = {file: at for at, file in enumerate(files)}
    upper: list[int] = []  # the largest value of each image whose upper 8 bits alone can be read

    def place(file: str) -> None:
        at = number[file]
        images[at], halved = _read_image(file, size, (1 << bits) - 1)
        if halved:
            upper.append(int(images[at].max()))
        if masks and inside is not None:
            inside[at] = _mask(masks[at], file, size)

    _each(path, "reading", files, place, broken=broken)
    if upper and max(upper) < DARK:
        raise ValueError(
            f"folder:{path}: {len(upper):,} images have 16 bits a colour, of which the upper 8 are read, and "
            f"these are nearly black: the largest is {max(upper)} of 255. Save them as images of 8 bits"
        )
    said = f"the largest value of its 16-bit files is {most:,} of 65,535, so they are read as {bits} bits"
    return images, inside, [said] if bits < 16 else []


def _each(
    path: str,
    doing: str,
    files: list[str],
    do: Callable[[str], Any],
    tell: bool = True,
    broken: list[str] | None = None,
) -> list[Any]:
    """`do` every file, on a few threads; all failures together are one ValueError, or left out.

    broken: gets damaged files, where they are few and nothing else failed.
    """
    failures, refused = dict[str, str](), False

    def one(file: str) -> Any:
        nonlocal refused
        try:
            return do(file)
        except MemoryError:
            raise
        except UnidentifiedImageError:
            failures[file] = "no image is in it, whatever its name says"
        except Exception as error:  # a broken file makes Pillow raise nearly anything; reported below
            # a disk that fails, or an image that is sound and too large, is no damaged file
            large = isinstance(error, Image.DecompressionBombError)
            refused |= large or isinstance(error, ValueError) or getattr(error, "errno", None) is not None
            failures[file] = f"{error or type(error).__name__}{' Scale it down' * large}"

    with warnings.catch_warnings(), ThreadPool(min(8, os.cpu_count() or 1)) as pool:
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # of sound scans
        done = pool.imap(one, files, chunksize=64)
        found = list(tqdm(done, total=len(files), desc=f"{doing} images", delay=2))
    failed = [file for file in files if file in failures]
    if broken is not None and not refused and len(failures) <= BROKEN * len(files):
        broken += failed
    elif failures and tell:
        named = [f"{file} ({failures[file]})" for file in failed[:NAMED]]
        more = f" and {len(failures) - NAMED} more" if len(failures) > NAMED else ""
        raise ValueError(
            f"folder:{path}: {len(failures)} of {len(files)} images can't be read: {', '.join(named)}{more}; "
            "repair, convert or move them away"
        )
    return [each for file, each in zip(files, found, strict=True) if file not in failures]


@contextlib.contextmanager
def _image_in(file: str) -> Iterator[ImageFile.ImageFile]:
    """Context manager: the image in a file, a large one alone; of a pipe, which one would wait for, none."""
    if os.path.exists(file) and not os.path.isfile(file):
        raise ValueError("a pipe or a device, no file")
    with Image.open(file) as image, ALONE if math.prod(image.size) > LARGE else contextlib.nullcontext():
        yield image


def _shape(file: str) -> tuple[int, int]:
    """Height and width as displayed, by the file's header; of a PNG all is read, whose Exif may come last."""
    with _image_in(file) as image:
        on_its_side = image.getexif().get(ExifTags.Base.Orientation, 1) > 4
        return image.size if on_its_side else image.size[::-1]


def _deepest(file: str) -> int:
    """The largest value of an image of 16 bits; 0 of others."""
    with _image_in(file) as image:
        return int(np.asarray(image).max()) if image.mode.startswith("I") else 0


def _read_image(file: str, size: int | None, white: int = 65535) -> tuple[np.ndarray, bool]:
    """One image as uint8 (3, H, W), and whether it was halved: 16-bit colours are read as their upper 8 bits.

    white: of grey images of 16 bits.
    """
    with _image_in(file) as image:
        halved = not image.mode.startswith("I") and any(";16" in str(tile[3]) for tile in image.tile)
        if size is not None:
            image.draft(None, (2 * size, 2 * size))  # a JPEG decodes at a fraction of its size: faster
        upright: Image.Image = image
        ImageOps.exif_transpose(upright, in_place=True)  # without a copy where it stands upright
        upright = _eight_bits(upright, white)
        if size is not None and math.prod(upright.size) > LARGE:  # no second one in full size
            upright = upright if upright.mode in ("L", "RGB", "RGBA", "LA") else upright.convert("RGBA")
            upright = upright.reduce(max(1, min(upright.size) // (4 * size)))
        cut = _cut(_rgb(upright), size, Image.Resampling.BICUBIC)
        return np.asarray(cut).transpose(2, 0, 1), halved


def _mask(file: str, of: str, size: int | None) -> np.ndarray:
    """One mask as bool (H, W): bright is object; a mask of 0 and 1 too."""
    try:
        if _shape(file) != (shape := _shape(of)):
            raise ValueError(f"its mask {file} is {_shape(file)} pixels high and wide, not {shape}")
        with _image_in(file) as image:
            grey = ImageOps.exif_transpose(image).convert("L")
    except OSError as error:
        raise ValueError(f"its mask {file} can't be read: {error}") from error
    if grey.getextrema()[1] == 1:
        grey = grey.point(lambda value: 255 * value)
    return np.asarray(_cut(grey, size, Image.Resampling.BOX)) > 127


def _cut(image: Image.Image, size: int | None, resampling: Image.Resampling) -> Image.Image:
    """The central square, scaled to size x size."""
    if size is None or image.size == (size, size):
        return image
    return ImageOps.fit(image, (size, size), resampling)


def _eight_bits(image: Image.Image, white: int) -> Image.Image:
    """The image with 8 bits a pixel; of 16, `white` becomes 255."""
    if image.mode != "F" and not image.mode.startswith("I"):
        return image
    values = np.asarray(image)
    if image.mode == "F" or values.min() < 0 or values.max() > 65535:
        raise ValueError(f"its values ({image.mode}) are not 8 or 16 bits")
    grey = np.empty(values.shape, np.uint8)
    for row, found in zip(grey, values, strict=True):  # row by row: a scan as float64 has gigabytes
        row[:] = np.rint(found * (255 / white))
    return Image.fromarray(grey)


def _rgb(image: Image.Image) -> Image.Image:
    if image.has_transparency_data:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")

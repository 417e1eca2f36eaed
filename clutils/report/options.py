"""Options of a check: each is declared and validated here alone, before anything is opened."""

import math
import numbers
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clutils import checkpoints
from clutils.files import demand_writable
from clutils.measures import BY_NAME
from clutils.report.prepared import Unfit
from clutils.report.preprocessing import NORMALISATIONS
from clutils.settings import SWITCH, Setting, one_of

LEAST = 16  # images, of which a quarter is the test set
OF_SEVERAL = (".html", ".json")  # suffixes of a page on several files
SUFFIXES = (*OF_SEVERAL, ".png")
RANGES = {
    "limit": Setting(LEAST, whole=True),
    "temperature": Setting(0.0, open_below=True, also=(None,)),
    "size": Setting(8, 1024, whole=True, also=(None,)),
    "seed": Setting(-(2**63), 2**63 - 1, whole=True),
    "tsne": SWITCH,
    "quick": SWITCH,
}
ABOUT = {  # lines of help, of those that the command has
    "limit": "number of images, at least 16, and at least 80 for a diagnosis; a quarter is the test set, the "
    "rest are the labelled neighbours; without labels, all are measured; default: 2000",
    "arch": "network in the file: a name that 'check --help' lists, torchvision:NAME or timm:NAME; default: "
    "identified from the file",
    "weights": "weights to open: ema, the moving average saved with the last weights, or a key or beginning "
    "of names, such as teacher; default: the last weights",
    "head": "key or beginning of names of the projection head; default: the only one that fits",
    "temperature": "temperature τ of the training, if the file does not say it",
    "mean": "mean to subtract from images in [0, 1]; or imagenet, cifar10, half (0.5), bytes (0 to 255) or "
    "none, which set --std too; default: auto, the one that fits the batch-norm statistics best",
    "std": "standard deviation to divide images by, after subtracting --mean; default: the one that belongs "
    "to --mean",
    "size": "side in pixels to resize images to, 8 to 1024; default: the network's, if it takes only one, "
    "else no resizing",
    "quick": "stop at the first screen: the diagnosis in a sentence, the table and four panels, with a map "
    "by PCA in place of t-SNE",
    "seed": "random seed; default: 0",
}


def validated(
    given: Mapping[str, Any], suffixes: Sequence[str] = SUFFIXES, ranges: Mapping[str, Setting] = RANGES
) -> dict[str, Any]:
    """The same options, with mean and std as tuples (or "auto") and files to write as paths.

    - suffixes: of files to write; ranges: of the options that are numbers

    Raises Unfit, naming the option, on a value that is out of its range, and TypeError on an unknown option.
    """
    found = dict(given)
    for name, value in given.items():
        try:
            if name in ranges and not ranges[name].allows(value):
                raise ValueError(f"{name} is {value!r}, but must be {ranges[name]}")
            elif name == "arch" and value is not None:
                checkpoints.demand_arch(value)
            elif name in ("mean", "std") and value is not None:
                found[name] = _channels(name, value)
            elif name == "numbers":
                for number in value:
                    one_of("report.check", "a further number", number, BY_NAME)
            elif name == "out":
                found[name] = [Path(out) for out in ([value] if isinstance(value, str | Path) else value)]
                for out in found[name]:
                    demand_suffix(out, suffixes)
                    demand_writable(out)
        except ValueError as error:
            raise Unfit(str(error), name) from error
        if name not in (*ranges, "arch", "mean", "std", "numbers", "out", "weights"):
            raise TypeError(f"check: there is no option {name!r}")
    if found.get("mean") in NORMALISATIONS:
        found["mean"], usual = NORMALISATIONS[found["mean"]]
        found["std"] = found.get("std") or usual
    return found


def demand_suffix(path: Path, suffixes: Sequence[str] = SUFFIXES) -> None:
    """Raise ValueError where a report can't be written under this name."""
    if path.suffix not in suffixes:
        raise ValueError(f"{path} ends in {path.suffix!r}, but must end in {' or '.join(suffixes)}")


def _channels(name: str, value: Any) -> str | tuple[float, ...]:
    """Mean or std: a usual name, or one finite number for all channels or three."""
    if isinstance(value, str) and name == "mean":
        if value not in (known := (*NORMALISATIONS, "auto")):
            raise ValueError(f"mean is {value!r}, but must be one of {', '.join(known)}, or numbers")
        return value
    several = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    plain = all(isinstance(one, numbers.Real) and math.isfinite(one) for one in several)
    if not plain or len(several) not in (1, 3):
        raise ValueError(f"{name} is {value!r}, but must be one number, or three as in 0.485,0.456,0.406")
    if name == "std" and min(several) <= 0:
        raise ValueError(f"std is {value!r}, but must be above 0: images are divided by it")
    return tuple(map(float, several))

"""Controls of the explorers: names, ranges, where they start; checked here, drawn by the page."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from clutils import anatomy, losses
from clutils.figures import style
from clutils.settings import SWITCH, Setting, did_you_mean, one_of

CLASSES = {name: entry.cls for name, entry in losses.catalogue().items()}
SOURCES = resources.files("clutils.explorers")
# the losses that the pages can compute: `export const LOSSES` of their JavaScript
_TABLE = (SOURCES / "losses.js").read_text(encoding="utf-8").partition("export const LOSSES = {")[2]
WRITTEN = re.findall(r"\b([A-Z]\w*):", _TABLE.partition("\n};")[0])


def of_the_family(name: str) -> bool:
    """True where a loss of the catalogue is a function of each anchor's similarities."""
    return CLASSES[name].level == "similarity"


def _why_not(name: str) -> str:
    """Why no page can show a loss; "" = one can."""
    if not of_the_family(name):
        return f"works on {CLASSES[name].input_note}"
    return "" if name in WRITTEN else "has no formula in JavaScript yet (losses.js)"


def _needs_more(cls: Any) -> str:
    """Parts of a batch that a loss needs beyond its similarities; "" = none."""
    if "index" in cls.accepts:
        return "keeps a state of each sample from step to step"
    return "draws new numbers at each step" if cls.draw is not losses.Loss.draw else ""


NOT_HERE = {name: why for name in CLASSES if (why := _why_not(name))}
FAMILY = [name for name in CLASSES if name not in NOT_HERE]
NEEDS_MORE = {name: why for name in FAMILY if (why := _needs_more(CLASSES[name]))}
LEFT_OUT = {"W": NOT_HERE, "circle": NOT_HERE | NEEDS_MORE, "matrix": NOT_HERE | NEEDS_MORE}
COUNTS = (*sorted({2**k for k in range(17)} | {3 * 2**k for k in range(15)} | {201, 255, 510}),)
LONGEST_QUEUE = Setting(1, 65_536, whole=True, also=(None,))
LETTERS, DIGITS = "[0-9a-z]*", "[0-9]*"
ENDS = {"none": None, "inf": math.inf}


@dataclass(frozen=True)
class Control:
    """One setting of a page.

    - within: what it may be, for a slider ("slider", also of choices alone) or a field ("number")
    - options: value -> label, of a "menu"; prefix: before the names of the settings that a menu's loss brings
    - kind: "text" has no control: state that a finger makes, such as points that were dragged
    - form: a regular expression, of a "text" alone; what has another is not taken
    """

    name: str
    label: str
    default: Any
    within: Setting | None = None
    kind: str = "slider"
    options: Mapping[str, str] = field(default_factory=dict)
    prefix: str | None = None
    form: str = ""

    def check(self, value: Any, who: str) -> None:
        """Raise ValueError, quoting what came in, where the value can't be."""
        if self.kind == "menu":
            one_of(who, self.name, value, self.options)
        elif self.within is not None:
            self.within.check(who, self.name, value)
        elif not re.fullmatch(self.form, str(value)):
            raise ValueError(f"{who}: {self.name} is {value!r}, but must be of the form {self.form}")

    def described(self) -> dict[str, Any]:
        """For the page, in plain values."""
        found: dict[str, Any] = {"name": self.name, "label": self.label, "kind": self.kind}
        found |= {"default": self.default, "symbol": self.within.symbol if self.within else ""}
        if self.within is not None and self.within.about:
            found |= {"about": self.within.about}
        if self.options:
            found |= {"options": list(self.options.items())}
        if self.prefix is not None:
            found |= {"prefix": self.prefix}
        if self.form:
            found |= {"form": self.form}
        if self.within is not None and self.within.choices:
            values = self.within.choices
            found |= {"values": values, "low": min(values), "high": max(values), "whole": True}
        elif self.within is not None and not self.within.switch:
            low, high, how = self.within.dial or (self.within.lowest, self.within.highest, "even")
            beyond = [name for name, end in ENDS.items() if end in self.within.also]
            found |= {"low": self.within.lowest, "high": min(self.within.highest, 1e12), "dial": (low, high)}
            found |= {"how": how, "whole": self.within.whole, "also": beyond}
        return found


def _menu(
    name: str, label: str, default: str, prefix: str, without: Mapping[str, str], *first: str
) -> Control:
    offered = {given: given for given in first}
    offered |= {given: style.title(given) for given in FAMILY if given not in without}
    return Control(name, label, default, kind="menu", options=offered, prefix=prefix)


def _slider(
    name: str, label: str, default: Any, low: float, high: float, how: str = "even", **more: Any
) -> Control:
    return Control(name, label, default, Setting(low, high, dial=(low, high, how), **more))


def _switch(name: str, label: str, default: bool) -> Control:
    return Control(name, label, default, SWITCH, kind="switch")


SHAPES = {
    "equal": "all equal",
    "gaussian": "as a Gaussian",
    "few hard": "a few hard",
    "drawn": "as drawn",
}
W = (
    _menu("loss", "loss", "NTXent", "", {}),
    _menu("beside", "beside it", "Decoupled", "beside_", {}, "none"),
    _slider("positive", "s⁺ of the positive", 0.5, -1, 1),
    Control("count", "K, negatives", 201, Setting(choices=COUNTS)),
    Control("shape", "negatives", "few hard", kind="menu", options=SHAPES),
    _slider("similarity", "s⁻, or its mean", -0.9, -1, 1),
    _slider("spread", "s⁻ spread", 0.2, 0.02, 0.6),
    _slider("hard", "s⁻ of the hard", 0.9, -1, 1),
    _slider("number", "number of hard", 1, 1, 20, whole=True),
    _switch("family", "all losses of the family", False),
    Control("drawn", "", "", kind="text", form=LETTERS),
)
CIRCLE = (
    _menu("loss", "loss", "NTXent", "", NEEDS_MORE),
    _menu("beside", "beside it", "NTXent", "beside_", NEEDS_MORE, "none"),
    _slider("pictures", "images", 16, 2, 64, whole=True),
    _slider("classes", "classes", 4, 1, 8, whole=True),
    _slider("scatter", "scatter of views", 0.1, 0, 1),
    _slider("arc", "arc of the start, in turns", 0.8, 0.02, 1),
    _slider("rate", "learning rate", 0.1, 0.005, 1, "log"),
    _switch("proportional", "steps in proportion to τ", True),
    _switch("by_labels", "positives by class, if the loss takes labels", False),
    _switch("forces", "forces: pull, and outside push", False),
    _slider("seed", "seed", 0, 0, 99, whole=True),
    Control("at", "", "", kind="text", form=LETTERS),
    Control("step", "", "", kind="text", form=DIGITS),
)
PAIRS = {  # the last two: of `pairs.json`
    "views": "views",
    "fresh": "captions, fresh",
    "trained": "captions, trained",
}
ASKS = {"images": "rows (images)", "captions": "columns (captions)"}
MATRIX = (
    _menu("loss", "loss", "NTXent", "", NEEDS_MORE),
    Control("value", "your loss", 5.0, Setting(-1e9, 1e9), kind="number"),
    Control("batch_size", "your batch, B", 128, Setting(2, 16_384, whole=True), kind="number"),
    Control("queue", "your queue, if any", None, LONGEST_QUEUE, kind="number"),
    Control("pairs", "images with", "views", kind="menu", options=PAIRS),
    Control("asks", "softmax over", "images", kind="menu", options=ASKS),
    _slider("pictures", "B, images", 6, 2, 16, whole=True),
    _slider("dimensions", "dimensions", 8, 2, 64, whole=True),
    _slider("classes", "classes", 3, 1, 8, whole=True),
    _slider("learned", "how close two views are", 0.6, 0, 1),
    _slider("seed", "seed", 0, 0, 99, whole=True),
    _slider("positive", "trained: s⁺", anatomy.POSITIVE, -1, 1),
    _slider("spread", "trained: spread of s⁻", anatomy.SPREAD, 0, 1),
    Control("row", "", 0, kind="text", form=DIGITS),
)
RUN = (
    Control("frame", "", "", kind="text", form=r"([0-9]+([.][0-9]+)?)?"),
    Control("only", "", "", kind="text", form=DIGITS),
)


@dataclass(frozen=True)
class Explorer:
    """One page: its words, its controls, and what else than a control's own default it opens on."""

    title: str
    lead: str
    controls: tuple[Control, ...]
    opens: Mapping[str, Any] = field(default_factory=dict)


EXPLORERS = {
    "W": Explorer(
        "W, the gate",
        "How much of an anchor's gradient comes through: W = 1 is open, W = 0 is shut. Move a point, drag "
        "s⁺, or draw the negatives.",
        W,
        {"temperature": 0.5, "beside_temperature": 0.5},
    ),
    "circle": Explorer(
        "Points on a circle, under a loss",
        "Two views of each image (filled and hollow), moved only by the loss; trails begin at "
        "the start. Drag a point, or compare two losses.",
        CIRCLE,
        {"temperature": 0.1, "beside_temperature": 1.0},
    ),
    "matrix": Explorer(
        "A batch's similarities, and what a loss makes of them",
        "From similarities to shares, to the gate W, to the gradient. Choose an anchor (a row).",
        MATRIX,
        {"temperature": 0.2},
    ),
    "run": Explorer(
        "A run, step by step", "Drag along the steps to see the map and the measurements there.", RUN
    ),
}
NAMES = tuple(EXPLORERS)


def of_loss(name: str) -> list[Control]:
    """A loss's settings as controls, named as in Python."""
    kind = losses.catalogue()[name].cls
    found = []
    for setting, within in kind.ranges.items():
        if setting in kind.in_batches:
            continue
        words = setting.replace("_", " ")
        label = words if not within.symbol else f"{within.symbol}, {words}"
        how = "switch" if within.switch else "slider"
        found.append(Control(setting, label, kind.defaults()[setting], within, kind=how))
    return found


def settings(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Where the page called so starts: what is given, upon its own; all names and values checked.

    "hide" names controls, with commas, that are left out. Raises ValueError on a name or value that can't be.
    """
    one_of("explorers", "name", name, EXPLORERS)
    explorer, who = EXPLORERS[name], f"explorers {name}"
    found = {**explorer.opens, **given}
    known = {control.name: control for control in explorer.controls}
    for menu in [control for control in explorer.controls if control.prefix is not None]:
        chosen = found.get(menu.name, menu.default)
        if chosen in LEFT_OUT[name]:
            raise ValueError(f"{who}: {menu.name} is {chosen!r}, which is left out: {LEFT_OUT[name][chosen]}")
        menu.check(chosen, who)
        own = {f"{menu.prefix}{c.name}": c for c in of_loss(chosen)} if chosen in losses.catalogue() else {}
        temperature = f"{menu.prefix}temperature"
        if temperature not in {*given, *own}:
            found.pop(temperature, None)  # of a loss that has none
        known |= own
    for setting, value in found.items():
        if setting == "hide":
            for hidden in filter(None, str(value).split(",")):
                one_of(who, "hide", hidden, [*known, "lead", "share", "buttons"])
        elif setting not in known:
            hint = did_you_mean(setting, known, listed=True)
            raise ValueError(f"{who}: there is no setting {setting}{hint}")
        else:
            known[setting].check(value, who)
    return found

"""The course's look: one palette safe for colour-blind readers, one colour and marker for each role.

Nothing here changes matplotlib's settings for the reader: `course()` is a context, entered while a figure is
made.
"""

import colorsys
import functools
import math
import zlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from textwrap import fill
from typing import Any, ParamSpec, TypeVar

import matplotlib
import matplotlib.colors
import matplotlib.style
import numpy as np
from cycler import cycler
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.container import ErrorbarContainer
from matplotlib.font_manager import FontProperties
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patheffects import AbstractPathEffect, withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

P = ParamSpec("P")
R = TypeVar("R")

# Okabe & Ito, 'Color Universal Design' (2008): distinguishable with any of the common colour deficiencies
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY, INK = "#767676", "#222222"

NAME = "the name of a line"  # the gid of what `name_lines` writes
MOST_MOVED = 2.5  # letters' heights that a name may lie from its line's end

LINES = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
SERIES = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)

SETTINGS: dict[str, Any] = {
    # said outright, so that in a dark theme it is a light image, not dark ink on dark
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E2E2E2",
    "grid.linewidth": 0.8,
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "axes.labelsize": 11,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "legend.handlelength": 2.6,  # long enough to tell a dash from a dot
    "lines.linewidth": 2.0,
    "lines.markersize": 6,
    "image.cmap": "viridis",
    # the two lists cycle together, so that a series is known by its line as well as by its colour
    "axes.prop_cycle": cycler(color=SERIES[:6]) + cycler(linestyle=LINES),
}

# the first has most alphabets; of the others those that are installed draw what it has not
FONTS = (
    "DejaVu Sans",
    *(f"Noto Sans CJK {place}" for place in ("SC", "JP", "TC", "KR")),
    *("Noto Sans SC", "Noto Sans JP", "Noto Sans KR", "Source Han Sans", "Source Han Sans SC"),
    *("WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback", "IPAexGothic", "IPAGothic"),
    *("PingFang SC", "Hiragino Sans GB", "Hiragino Sans", "Heiti SC", "Apple SD Gothic Neo"),
    *("Microsoft YaHei", "SimHei", "Yu Gothic", "Meiryo", "MS Gothic", "Malgun Gothic", "Arial Unicode MS"),
)

ROLES: dict[str, dict[str, Any]] = {
    "anchor": {"color": BLACK, "marker": "o"},
    "positive": {"color": BLUE, "marker": "^"},
    "negative": {"color": VERMILLION, "marker": "v"},
}

LOSSES: dict[str, dict[str, Any]] = {
    name: {"color": color, "linestyle": line, "marker": marker}
    for name, color, line, marker in (
        ("NTXent", BLUE, "-", "o"),
        ("Decoupled", VERMILLION, "--", "s"),
        ("FlatNCE", PURPLE, ":", "D"),
        ("MACL", GREEN, "-.", "^"),
        ("PairMargin", SKY, (0, (6, 1.5, 1, 1.5, 1, 1.5)), "v"),
        ("Triplet", ORANGE, (0, (1, 1)), "P"),
        # the palette again, darker: relatives share a hue (what is done about the negatives: greens), and no
        # two losses a dash pattern or a marker
        ("DualTemperature", "#7A3E66", (0, (8, 2)), "p"),
        ("Debiased", "#7FD1B9", (0, (3, 1, 1, 1)), "X"),
        ("HardNegative", "#00573F", (0, (10, 2, 2, 2)), "h"),
        ("SSCL", "#8A9A00", (0, (5, 1)), "*"),
        ("MoCHi", "#4B5A00", (0, (2, 2)), "<"),
        ("AttentionNCE", "#9C2F00", (0, (4, 1, 1, 1, 1, 1, 1, 1)), ">"),
        ("SupCon", "#8C6200", (0, (12, 3)), "d"),
        ("CLIP", "#003A5D", (0, (1, 3)), "H"),
        ("BarlowTwins", GREY, (0, (3, 3, 1, 3)), "8"),
        ("Regression", BLACK, (0, (7, 1, 3, 1)), "|"),
        ("NPair", "#6A4C00", (0, (9, 1, 1, 1)), "1"),
        ("Spectral", "#5C5C5C", (0, (1, 2, 4, 2)), "2"),
        ("NNCLR", "#1B7F9E", (0, (6, 3)), "3"),
        ("WeightedDecoupled", "#F0905A", (0, (4, 2)), "4"),
        ("RINCE", "#B0003A", (0, (2, 1)), "x"),
        ("AlphaCL", "#C77CFF", (0, (1, 1, 3, 1)), "+"),
        ("SogCLR", "#2E4A9E", (0, (14, 2)), "_"),
        ("ISogCLR", "#6F86D6", (0, (14, 2, 2, 2)), (4, 1, 0)),
        ("Robust", "#101080", (0, (11, 1, 3, 1)), (6, 1, 0)),
        ("ADNCE", "#3FA34D", (0, (5, 2, 2, 2)), (5, 1, 0)),
        ("SigLIP", "#00868B", (0, (1, 4)), (8, 1, 0)),
        ("VICReg", "#9A9A9A", (0, (2, 3, 8, 3)), "."),
        ("TemperatureFree", "#D9027D", (0, (8, 1, 1, 1, 3, 1)), (7, 1, 0)),
        ("SIGReg", "#7A7A55", (0, (5, 5)), (3, 2, 0)),
    )
}

TITLES = {
    "PairMargin": "pair loss",
    "Triplet": "triplet loss",
    "NTXent": "NT-Xent",
    "Decoupled": "decoupled",
    "DualTemperature": "dual temperature",
    "Debiased": "debiased",
    "HardNegative": "HCL",
    "NPair": "N-pair",
    "BarlowTwins": "Barlow Twins",
    "Spectral": "spectral",
    "WeightedDecoupled": "DCLW",
    "AlphaCL": "α-CL",
    "ISogCLR": "iSogCLR",
    "Robust": "robust",
    "TemperatureFree": "temperature-free",
}


def course() -> AbstractContextManager[None]:
    """Matplotlib's defaults and the course's settings on them, whatever the reader has set."""
    return matplotlib.style.context(["default", SETTINGS | {"font.family": list(_fonts())}])


@functools.cache
def _fonts() -> tuple[str, ...]:
    """Those of `FONTS` that are here."""
    here = set(font_manager.get_font_names())
    return tuple(name for name in FONTS if name in here)


@functools.cache
def _characters() -> frozenset[int]:
    """All that these fonts can draw."""
    files = (font_manager.findfont(name) for name in _fonts())
    return frozenset().union(*(font_manager.get_font(file).get_charmap() for file in files))


def drawable(text: str) -> bool:
    """True where a font here has every character of a text."""
    return all(character == "\n" or ord(character) in _characters() for character in text)


def literal(text: str) -> str:
    r"""A text of the reader's (a name of a class, a file, a run) as a figure draws it, whatever is in it.

    A $ is no mathematics; a character that no font here has is a �.
    """
    plain = "".join(character if drawable(character) else "\ufffd" for character in text)
    return plain.replace("$", r"\$")


def in_course_style(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator of a figure function: all that it draws is in the course's style."""

    @functools.wraps(function)
    def styled(*arguments: P.args, **options: P.kwargs) -> R:
        with course():
            return function(*arguments, **options)

    return styled


def role(name: str) -> dict[str, Any]:
    """Colour and marker of 'anchor', 'positive' or 'negative', as keywords for a plot call.

    Raises ValueError on any other name.
    """
    if name not in ROLES:
        raise ValueError(f"style: no look for the role {name!r}; there are {', '.join(ROLES)}")
    return dict(ROLES[name])


def loss(name: str) -> dict[str, Any]:
    """Colour, line style and marker of a loss, the same in every figure; no two losses share one of them.

    One that `LOSSES` does not list gets them from its place in the catalogue, or from its name.
    """
    if name in LOSSES:
        return dict(LOSSES[name])
    from clutils import losses  # which loads PyTorch

    known = list(losses.catalogue())
    place = known.index(name) if name in known else len(known) + zlib.crc32(name.encode()) % 1000
    hue = place * (math.sqrt(5) - 1) / 2 % 1  # far from the hues of the places around it
    return {
        "color": matplotlib.colors.to_hex(colorsys.hls_to_rgb(hue, 0.4, 0.6)),
        "linestyle": (0, (2 + place % 7, 1.25, 1 + place // 7, 1.25)),
        "marker": (3 + place % 5, place // 5 % 3, 11 * (1 + place // 15)),  # corners, form, turned by
    }


def title(name: str) -> str:
    """A loss's name as the literature writes it, where that is not its class's."""
    return TITLES.get(name, name)


def series(count: int, ordered: bool = True) -> list[dict[str, Any]]:
    """Colours, line styles and markers of `count` series, as keywords for plot calls.

    - ordered: the series are steps of one quantity (temperatures, numbers of negatives), so they are solid
      lines in one colour's shades, from light to dark; else they are as different as can be
    """
    if count < 1:
        raise ValueError(f"style.series: needs at least one series, got {count}")
    if ordered:
        ramp = matplotlib.colormaps["Blues"]  # its first half is too pale for a line on white
        shades = [ramp(0.45 + 0.55 * k / (count - 1) if count > 1 else 0.75) for k in range(count)]
        return [
            {"color": matplotlib.colors.to_hex(shade), "linestyle": "-", "marker": ""} for shade in shades
        ]
    return [
        {
            "color": SERIES[k % len(SERIES)],
            "linestyle": LINES[k % len(LINES)],
            "marker": MARKERS[k % len(MARKERS)],
        }
        for k in range(count)
    ]


def temperature(tau: float) -> str:
    """Colour of a temperature, by its logarithm: cold blue at 0.02, hot orange at 2, the same everywhere."""
    ramp = matplotlib.colors.LinearSegmentedColormap.from_list("temperature", (BLUE, "#8A5A94", VERMILLION))
    return matplotlib.colors.to_hex(ramp((math.log10(tau) + 1.7) / 2))


def legend_outside(ax: Axes, **options: Any) -> Legend:
    """A legend to the right of the axes, at half their height; options: of `Axes.legend`."""
    return ax.legend(**{"loc": "center left", "bbox_to_anchor": (1.0, 0.5), **options})


def name_lines(ax: Axes, **options: Any) -> None:
    """Write the name of each line at its right end; where lines end together, in a legend outside.

    To be called when lines, limits and scales are final; what an earlier call wrote is replaced. A leader
    joins a name to a line that ends elsewhere. What is no line with a right end needs the legend, too.

    - options: of that legend, see `legend_outside`
    """
    for text in [text for text in ax.texts if text.get_gid() == NAME]:
        text.remove()
    if (legend := ax.get_legend()) is not None:
        legend.remove()
    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return
    ax.get_xlim(), ax.get_ylim()  # settles them
    ends = [end for handle in handles if (end := _right_end(ax, handle)) is not None]
    size = FontProperties(size=matplotlib.rcParams["legend.fontsize"]).get_size_in_points()
    tall = [1.25 * size * (1 + label.count("\n")) for label in labels]
    points = 72 / ax.figure.dpi
    heights = [float(min(max(y, ax.bbox.y0), ax.bbox.y1)) for _, y, _ in ends]
    own = [points * height for height in heights]
    moved = [place - at for place, at in zip(apart(own, tall[: len(own)]), own, strict=True)]
    far = len(ends) < len(handles) or max(map(abs, moved)) > MOST_MOVED * size
    if far or (len(own) > 1 and max(own) - min(own) < sum(tall) / 2):
        legend_outside(ax, **options)
        return
    last = max(x for x, _, _ in ends)
    aside = 16 if max(map(abs, moved)) > 2 else 7  # room for leaders
    for label, (x, _, color), y, up in zip(labels, ends, heights, moved, strict=True):
        in_column = aside + points * (last - x if last - x < 0.1 * ax.bbox.width else 0)
        leader = {"arrowstyle": "-", "color": color, "linewidth": 0.8, "shrinkA": 1, "shrinkB": 0}
        leader |= {"relpos": (0, 0.5)}  # from where the name begins: from its middle it would cross others
        ax.annotate(
            label,
            tuple(ax.transData.inverted().transform((x, y))),
            (in_column, up),
            textcoords="offset points",
            va="center",
            size=size,
            color=readable(color),
            annotation_clip=False,
            arrowprops=leader if abs(up) > 2 else None,
            path_effects=halo(),  # a guide line across the whole chart ends behind the name
            gid=NAME,
        )


def readable(color: Any) -> str:
    """A colour as letters on white need it: darkened until its contrast is 4.5."""
    rgb: tuple[float, ...] = matplotlib.colors.to_rgb(color)
    while 1.05 / (_luminance(rgb) + 0.05) < 4.5:
        rgb = tuple(0.95 * part for part in rgb)
    return matplotlib.colors.to_hex(rgb)  # type: ignore[arg-type]


def halo(linewidth: float = 3) -> list[AbstractPathEffect]:
    """Path effects: a white edge, so that a name or a box stands out from what lies below it."""
    return [withStroke(linewidth=linewidth, foreground="white")]


def _luminance(rgb: Any) -> float:
    """Relative luminance as WCAG defines it."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _right_end(ax: Axes, handle: Any) -> tuple[float, float, Any] | None:
    """Where a line leaves the axes or ends, in pixels, and its colour; None of what has no such end."""
    line = handle.lines[0] if isinstance(handle, ErrorbarContainer) else handle
    if not isinstance(line, Line2D) or line.get_linestyle() in ("None", "", " "):
        return None
    x, y = (np.asarray(part, dtype=float) for part in (line.get_xdata(), line.get_ydata()))
    spot = line.get_transform().transform(np.column_stack([x, y]))
    spot = spot[np.isfinite(spot).all(axis=1) & (spot[:, 0] <= ax.bbox.x1 + 1)]
    if len(spot) < 2 or np.ptp(spot[:, 0]) == 0:  # a vertical line
        return None
    right = spot[spot[:, 0].argmax()]
    return float(right[0]), float(right[1]), line.get_color()


def apart(at: Sequence[float], tall: Sequence[float]) -> list[float]:
    """Heights nearest to those given, in their order, at which names so tall do not overlap."""
    if not at:
        return []
    from sklearn.isotonic import isotonic_regression  # which takes a while to load

    order, places = np.argsort(at, kind="stable"), np.zeros(len(at))
    high = np.asarray(tall)[order]
    need = np.cumsum([0, *(high[:-1] + high[1:]) / 2])
    places[order] = isotonic_regression(np.asarray(at)[order] - need) + need
    return places.tolist()


def log_axis(axis: Axis) -> None:
    """Make `ax.xaxis` or `ax.yaxis` logarithmic: ticks at 1, 2 and 5 of each decade, as plain numbers."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})  # type: ignore[attr-defined]  # not in the stubs
    axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def step_axis(ax: Axes) -> None:
    """Whole steps along the x axis, thousands with a comma."""
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def signed(number: float, digits: int = 2) -> str:
    """With a true minus, and no minus before a zero."""
    return f"{round(number, digits) + 0.0:.{digits}f}".replace("-", "−")


def folded(label: object, longest: int = 36) -> str:
    """A long label in several lines, so that it leaves room for the chart; "λ = 1" stays together."""
    label = str(label)
    if len(label) <= longest:
        return label
    return fill(label.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"), longest)


def bare(ax: Axes) -> None:
    """No ticks, no grid and no frame: axes that hold an image."""
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
    ax.spines[:].set_visible(False)

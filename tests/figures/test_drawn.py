"""Figures show what plain loops compute: one table (figure, what is read from it, formula), one checker."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from clutils import data, figures, maps, views
from clutils.course import first_run as lesson
from clutils.course.first_run.progress import Progress
from clutils.figures import maps as drawn
from clutils.figures import noise, pictures
from clutils.figures import training as curves
from tests.course.drawn import inside

# ---- what is drawn -----------------------------------------------------------------------------------------

DRAW = torch.Generator().manual_seed(0)
IMAGES = torch.randint(0, 256, (3, 3, 8, 8), generator=DRAW, dtype=torch.uint8)
SCALE, SAMPLE, MEAN = (torch.rand(3, 3, 8, 8, generator=DRAW) + low for low in (0.05, -0.5, -0.5))
SCENES = data.load("scenes", "test", limit=120)
Z = torch.randn(120, 9, generator=DRAW)
Z1, Z2 = torch.randn(2, 6, 5, generator=DRAW)
LABELS = torch.arange(120) % 10
WORLD = torch.randn(10, 20, generator=DRAW)[LABELS] + 0.2 * torch.randn(120, 20, generator=DRAW)
AT, NAMES = maps.pca(WORLD), [f"class {c}" for c in range(10)]
ROWS = [
    {"step": k + 1, "loss": 5.0 - 0.1 * k, "alignment": 1.0 - 0.01 * k, "uniformity": -2.0 - 0.02 * k}
    for k in range(10)
]
BASELINES = {"raw": 0.3, "untrained": 0.31}


def progress(rows=ROWS, found=None, chance=5.2, **given):
    shown = Progress(40, chance=chance, **given)
    return shown.update(rows, {0: 0.3, 10: 0.6} if found is None else found, "step 10 of 40")


def two_views():
    """Boxes (left, bottom, width, height) and images as they are drawn, the parameters, the views."""
    augment, draw = views.Augmentation(), torch.Generator().manual_seed(4)
    parameters = [augment.draw(5, 32, 32, draw) for _ in range(2)]
    made = [augment.apply(SCENES.images[:5], p) for p in parameters]
    shown = pictures.Views(SCENES.images[:5])
    shown.update(parameters, made)
    boxes = [[(*box.get_xy(), box.get_width(), box.get_height()) for box in row] for row in shown.boxes]
    return boxes, [[view.get_array() for view in row] for row in shown.shown], parameters, made


# ---- how it is read ----------------------------------------------------------------------------------------


def canvas(ax):
    return np.ma.filled(np.ma.asarray(ax.images[0].get_array()).astype(float), np.nan)


def row_of(axes_number: int, count: int = 3) -> Callable[[Any], np.ndarray]:
    """The images in a row of a figure of noise, without the gaps."""

    def read(figure):
        array = canvas(figure.axes[axes_number])
        gap = (array.shape[1] - count * 8) // (count - 1)
        return np.stack([array[:, k * (8 + gap) : k * (8 + gap) + 8] for k in range(count)])

    return read


def limits(axes_number: int) -> Callable[[Any], tuple[float, float]]:
    return lambda figure: figure.axes[axes_number].images[0].get_clim()


def len_of_axes(figure) -> int:
    return len(figure.axes)


def tile(row: int, column: int) -> Callable[[Any], np.ndarray]:
    return lambda ax: canvas(ax)[34 * row : 34 * row + 32, 34 * column : 34 * column + 32]


def line(axes_number: int, number: int = 0) -> Callable[[Any], np.ndarray]:
    return lambda figure: figure.axes[axes_number].lines[number].get_xydata()


def levels(axes_number: int) -> Callable[[Any], list[float]]:
    """Heights of the horizontal lines behind the first."""
    return lambda figure: sorted({line.get_ydata()[0] for line in figure.axes[axes_number].lines[1:]})


# ---- what it must be ---------------------------------------------------------------------------------------


def last(x):
    return x.permute(0, 2, 3, 1)


def cosines() -> np.ndarray:
    rows = [v / v.norm() for v in (*Z1, *Z2)]
    return np.array([[float(a @ b) for b in rows] for a in rows])


def negatives() -> list[float]:
    return [cosines()[i][j] for i in range(12) for j in range(12) if i % 6 != j % 6]


def table() -> np.ndarray:
    found = cosines()
    np.fill_diagonal(found, np.nan)  # no loss uses it: it is left out
    return found


def nearest(query: int, k: int = 4) -> list[int]:
    found = [(float(Z[query] @ Z[i] / (Z[query].norm() * Z[i].norm())), i) for i in range(120) if i != query]
    return [i for _, i in sorted(found, reverse=True)[:k]]


def same(queries, labels=SCENES.labels) -> int:
    return sum(int(labels[j] == labels[q]) for q in queries for j in nearest(q))


def pixels(parameters, i) -> list[set]:
    boxes = [p.boxes[i].tolist() for p in parameters]
    return [{(r, c) for r in range(y, y + t) for c in range(x, x + w)} for y, x, t, w in boxes]


def distances(points) -> np.ndarray:
    centres = [points[c == LABELS].mean(dim=0) for c in range(10)]
    found = [float((centres[a] - centres[b]).norm()) for a in range(10) for b in range(a + 1, 10)]
    return np.array(found) / np.mean(found)


def scaled(at) -> np.ndarray:
    low, high = at.min(axis=0), at.max(axis=0)
    return 0.5 + (at - (low + high) / 2) / (high - low).max()


def of_class(c: int) -> np.ndarray:
    return scaled(AT)[(c == LABELS).numpy()]


class Case(NamedTuple):
    """A figure, the numbers that are read from it, what plain arithmetic gives, and words of its alt text."""

    name: str
    draw: Callable[[], Any]
    read: Callable[[Any], Any]
    formula: Callable[[], Any]
    says: str = ""


def noise_of(**given):
    return noise.noise(IMAGES, SCALE, SAMPLE, MEAN, **given)


PLAIN = [last(IMAGES / 255), SCALE.mean(1), MEAN.mean(1)]
PLAIN += [last(x.clamp(0, 1)) for x in (0.5 + SAMPLE, IMAGES / 255 + SAMPLE)]
CHANNELS, SIGNS = ("mean", "highest", "red", "green", "blue"), torch.tensor([-1.0, 1.0])
UNIT = torch.nn.functional.normalize(WORLD, dim=1).double()
C = Case
CASES = [
    *(C(f"noise, row {k}", noise_of, row_of(k), lambda k=k: PLAIN[k]) for k in range(5)),
    C("noise, one bar for all scales", noise_of, limits(1),
      lambda: (SCALE.mean(1).min(), SCALE.mean(1).max()), "3 images"),
    C("noise, the mean's bar around 0", noise_of, limits(2), lambda: MEAN.mean(1).abs().max() * SIGNS),
    C("noise, a flat scale: rounding is no pattern",
      lambda: noise.noise(IMAGES, torch.full_like(SCALE, 0.2) + 1e-9 * SCALE, SAMPLE), limits(1),
      lambda: (0, 0.2)),
    C("noise as colour, each image's maximum is 1", lambda: noise_of(channels="colour"), row_of(1),
      lambda: last(SCALE / SCALE.amax((1, 2, 3), keepdim=True))),
    C("noise of grey images", lambda: noise.noise(*(x[:, :1] for x in (IMAGES, SCALE, SAMPLE))), row_of(1),
      lambda: SCALE[:, 0]),
    C("channels, each as it is called", lambda: torch.tensor([1.0, -5, 3]).view(1, 3, 1, 1),
      lambda values: [float(noise.of_channels(values, name)) for name in CHANNELS],
      lambda: [-1 / 3, -5, 1, -5, 3]),
    C("the mean's colours get lighter all the way", lambda: noise.AROUND_0(np.linspace(0, 1, 101))[:, :3],
      lambda colours: np.diff(colours @ (0.299, 0.587, 0.114)) > 0, lambda: np.ones(100)),
    C("progress, the loss", progress, line(0), lambda: [(r["step"], r["loss"]) for r in ROWS],
      "the loss goes from 5.00 to 4.10 (chance is 5.20)"),
    C("progress, accuracies", lambda: progress(baselines=BASELINES), line(2, -1),
      lambda: [[0, 0.3], [10, 0.6]], "kNN accuracy from 0.30 to 0.60, raw 0.30, untrained 0.31"),
    C("progress, its levels", lambda: progress(floor=1.5), levels(0), lambda: [1.5, 5.2]),
    C("progress, its baselines", lambda: progress(baselines=BASELINES), levels(2), lambda: [0.3, 0.31]),
    C("progress without a chance level is as high as the loss", lambda: progress(ROWS[:3], {}, None),
      lambda f: f.axes[0].get_ylim(), lambda: (0, 5.5)),
    C("progress of nothing", lambda: progress([], {}), len_of_axes, lambda: 3, "fill while a run trains"),
    C("similarity table", lambda: lesson.similarity_table(Z1, Z2), canvas, table, "negatives at"),
    C("similarity table, its positives", lambda: lesson.similarity_table(Z1, Z2),
      lambda ax: sorted({(int(p.get_x() + 0.5), int(p.get_y() + 0.5)) for p in ax.patches}),
      lambda: [(i, (i + 6) % 12) for i in range(12)]),
    C("spread of similarities", lambda: curves.similarity_spread(Z1, Z2),
      lambda ax: next(p for p in ax.patches if p.get_label() == "negatives").get_data().values,
      lambda: np.histogram(negatives(), np.linspace(-1, 1, 81))[0] / len(negatives())),
    C("accuracies", lambda: curves.accuracies({"raw": [0.8, 0.9], "trained": [0.95]}, "probe"),
      lambda ax: [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "D"], lambda: [0.85, 0.95],
      "raw 0.850 (0.800 to 0.900); trained 0.950."),
    *(C(f"sheet of class {c}", lambda: pictures.sheet(SCENES, each=2), tile(1, c),
        lambda c=c: last(SCENES.images[SCENES.labels == c])[1] / 255, "horizontal stripes") for c in (0, 9)),
    C("views, their boxes: pixel 0 reaches from -0.5 to 0.5", two_views, lambda found: found[0],
      lambda: [[(x - 0.5, y - 0.5, w, t) for y, x, t, w in p.boxes.tolist()] for p in two_views()[2]]),
    C("views, as they are made", two_views, lambda found: found[1],
      lambda: [last(made) for made in two_views()[3]]),
    C("overlap of two crops, in pixels", two_views, lambda found: pictures.overlap(*found[2]),
      lambda: [len(a & b) / len(a | b) for a, b in (pixels(two_views()[2], i) for i in range(5))]),
    *(C(f"nearest of {q}", lambda: Z, lambda z, q=q: pictures.nearest(z, q, 4), lambda q=q: nearest(q))
      for q in (0, 119)),
    C("neighbours of its class, framed", lambda: pictures.neighbours(SCENES, {"random": Z}, [0, 7], k=4),
      lambda ax: len([p for p in ax.patches if p.get_linewidth() > 2]), lambda: same([0, 7]),
      f"random {same([0, 7])} of 8"),
    C("share of the same class", lambda: Z, lambda z: maps.share_of_class(z, SCENES.labels, 4, "cosine"),
      lambda: same(range(120)) / 480),
    *(C(f"map, class {c}", lambda: drawn.embedding_map(AT, LABELS, NAMES, "a title"),
        lambda ax, c=c: ax.collections[c].get_offsets(), lambda c=c: of_class(c),
        f"a title: of a point's ten nearest, {maps.neighbour_share(AT, LABELS):.0%} share") for c in (0, 9)),
    C("worlds above their maps",
      lambda: lesson.worlds({"a": AT, "b": AT}, {"a": -AT, "b": AT}, {"a": LABELS, "b": LABELS}),
      lambda f: np.concatenate([m.get_offsets() for m in f.axes[2].collections]),
      lambda: 1 - np.concatenate([of_class(c) for c in range(10)]), "2 data sets (a; b)"),
    C("distances of classes", lambda: WORLD, lambda z: lesson.class_distances(z, AT, LABELS)[0],
      lambda: distances(UNIT)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_figure_shows_what_plain_arithmetic_gives_and_its_alt_text_says_so(case):
    target = case.draw()
    found, expected = (np.asarray(values, float) for values in (case.read(target), case.formula()))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    if case.says:
        assert case.says in figures.alt(target)


REFUSED = [  # what is asked for, and the words of its refusal
    (
        lambda: noise.noise(IMAGES, SCALE[:2], SAMPLE),
        r"noise: scale is \(2, 3, 8, 8\), but the images are \(3, 3,",
    ),
    (lambda: noise_of(channels="alpha"), "noise: channels is 'alpha'; there are mean, highest, red"),
    (lambda: noise.noise(IMAGES[:, :1], SCALE[:, :1], SAMPLE[:, :1], channels="red"), "but images .* have 1"),
    (lambda: curves.accuracies({"raw": []}), "at least one value"),
    (lambda: pictures.sheet(SCENES, each=0), "each is 0"),
    (lambda: pictures.neighbours(SCENES, {"short": Z[1:]}, queries=[0]), "short has 119 rows for 120 images"),
    (lambda: drawn.embedding_map(AT[1:], LABELS), r"120 labels need a row of two each|\(119, 2\)|labels"),
    (lambda: drawn.side_by_side(dict.fromkeys("abcde", AT), LABELS), "5 maps"),
    (lambda: lesson.class_distances(WORLD, AT, LABELS % 2), "2 classes"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_can_not_be_drawn_is_quoted(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("count", [1, 3, 12])
def test_no_label_of_the_noise_maps_is_cut(count):
    many = [x.repeat(4, 1, 1, 1)[:count] for x in (IMAGES, SCALE, SAMPLE, MEAN)]
    assert inside(noise.noise(*many))


def test_each_class_has_its_own_look_and_a_mixed_map_a_key_in_place_of_names():
    ax = drawn.embedding_map(AT, LABELS, NAMES)
    looks = {(to_hex(m.get_facecolor()[0]), str(m.get_paths()[0].vertices.tolist())) for m in ax.collections}
    assert len(looks) == 10
    mixed = LABELS[torch.randperm(120, generator=torch.Generator().manual_seed(0))]
    figure = drawn.side_by_side({"mixed": AT, "again": AT}, mixed, NAMES)
    assert not any(ax.texts for ax in figure.axes)
    assert {text.get_text() for text in figure.legends[0].get_texts()} == set(NAMES)

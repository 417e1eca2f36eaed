"""Figures: what they show is what anatomy says, everyone can read them, and the reader's settings stay."""

import base64
import io
import math
from html.parser import HTMLParser

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from PIL import Image
from scipy.optimize import minimize_scalar

from clutils import anatomy, figures, losses
from clutils.figures import gradient_scaling, style

FIGURES = {
    "against_temperature": gradient_scaling.against_temperature,
    "against_count": gradient_scaling.against_count,
    "surface": gradient_scaling.surface,
    "relief": gradient_scaling.relief,
    "directions": lambda ax=None: gradient_scaling.directions(
        0.5, [gradient_scaling.few_hard(), gradient_scaling.all_equal(-0.9)], ax=ax
    ),
    "hardness": gradient_scaling.hardness,
    "who_is_pushed": gradient_scaling.who_is_pushed,
}
FLAT = [name for name in FIGURES if name != "relief"]
COUNTEREXAMPLE = {0.05: 0.9997, 0.2: 0.883, 0.3: 0.850, 0.5: 0.935, 2.0: 0.990, 10.0: 0.994}


def by_loop(positive, negatives, temperature):
    """W with nothing but math.exp."""
    total = math.fsum(math.exp(s / temperature) for s in negatives)
    return total / (total + math.exp(positive / temperature))


# what the curves say -----------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.1, 0.5, 3.0])
@pytest.mark.parametrize("K", [1, 3, 7, 40])
def test_counting_equal_negatives_gives_what_listing_them_gives(K, temperature):
    crowds = {
        gradient_scaling.all_equal(-0.3): [-0.3] * K,
        gradient_scaling.few_hard(0.8, -0.4, 5): [0.8] * min(K, 5) + [-0.4] * max(K - 5, 0),
    }
    for crowd, listed in crowds.items():
        expected = by_loop(0.2, listed, temperature)
        assert float(gradient_scaling.scale(0.2, crowd, temperature, K)) == pytest.approx(expected, rel=1e-12)


def test_scale_gives_each_temperature_a_row_and_each_count_a_column():
    crowd = gradient_scaling.few_hard(0.7, -0.7, 2)
    W = gradient_scaling.scale(0.4, crowd, torch.tensor([0.1, 0.5]), torch.tensor([2, 10, 100]))
    for row, t in zip(W, (0.1, 0.5), strict=True):
        for value, K in zip(row, (2, 10, 100), strict=True):
            assert float(value) == pytest.approx(by_loop(0.4, [0.7] * 2 + [-0.7] * (K - 2), t), rel=1e-6)


def test_extreme_case_is_macls_figure_2():
    ax = gradient_scaling.against_temperature(counts=(16, 4096))
    for line, K in zip(ax.lines, (16, 4096), strict=False):
        t, W = line.get_xdata(), line.get_ydata()
        odds = K * np.exp(-2 / np.asarray(t))
        np.testing.assert_allclose(W, odds / (1 + odds), rtol=1e-9)


@pytest.mark.parametrize("temperature, W", COUNTEREXAMPLE.items())
def test_counterexample_to_proposition_2_shows_the_measured_values(temperature, W):
    crowd = gradient_scaling.few_hard(hard=0.9, easy=-0.9, number=1)
    negatives = torch.tensor([[0.9] + [-0.9] * 200], dtype=torch.float64)
    here = float(gradient_scaling.scale(0.5, crowd, temperature, 201))
    assert here == pytest.approx(W, abs=6e-4)
    listed = anatomy.gradient_scale(torch.tensor([0.5], dtype=torch.float64), negatives, temperature)
    assert here == pytest.approx(float(listed), rel=1e-12)


def test_turning_point_is_where_scipy_finds_the_minimum():
    found = gradient_scaling.turning_point(0.5, gradient_scaling.few_hard(), 201)
    expected = minimize_scalar(
        lambda t: by_loop(0.5, [0.9] + [-0.9] * 200, t), bounds=(0.05, 2), method="bounded"
    )
    assert found[0] == pytest.approx(expected.x, rel=2e-3)
    assert found[1] == pytest.approx(expected.fun, rel=1e-6)


@pytest.mark.parametrize("positive, similarity", [(1.0, -1.0), (-1.0, 1.0), (0.5, 0.5), (0.0, 0.3)])
def test_no_turning_point_where_all_negatives_lie_on_one_side(positive, similarity):
    crowd = gradient_scaling.all_equal(similarity)
    assert gradient_scaling.turning_point(positive, crowd, 100) is None


@pytest.mark.parametrize("K", [1, 2, 10, 510, 65_536])
def test_gaussian_negatives_number_K_around_their_mean(K):
    crowd = gradient_scaling.gaussian(0.2, 0.1)
    counts = crowd.counts(torch.tensor([float(K)], dtype=torch.float64))
    assert float(counts.sum()) == pytest.approx(K)
    assert float((counts * crowd.similarities).sum() / K) == pytest.approx(0.2, abs=1e-3)


def test_gaussian_W_is_that_of_a_typical_draw():
    draws = torch.Generator().manual_seed(0)
    for K, temperature in ((100, 0.1), (510, 0.1), (510, 0.03), (4096, 0.05)):
        negatives = 0.1 * torch.randn(400, K, generator=draws, dtype=torch.float64)
        drawn = anatomy.gradient_scale(torch.full((400,), 0.3, dtype=torch.float64), negatives, temperature)
        here = float(gradient_scaling.scale(0.3, gradient_scaling.gaussian(0.0, 0.1), temperature, K))
        assert drawn.quantile(0.2) < here < drawn.quantile(0.8), (K, temperature)


def test_hardest_gaussian_negative_gets_harder_with_their_number():
    crowd = gradient_scaling.gaussian(0.0, 0.1)
    hardest = [
        float(crowd.similarities[crowd.counts(torch.tensor([float(K)])) > 0].max()) for K in (10, 100, 10_000)
    ]
    assert hardest == sorted(set(hardest))


def test_shares_of_the_push_are_the_summed_hardness_weights():
    crowd = gradient_scaling.few_hard(0.9, -0.9, 3)
    number, push = gradient_scaling.push_shares(crowd, 50, 0.4)
    listed = anatomy.hardness_weights(torch.tensor([[0.9] * 3 + [-0.9] * 47], dtype=torch.float64), 0.4)[0]
    assert number.tolist() == pytest.approx([3 / 50, 47 / 50])
    assert push.tolist() == pytest.approx([float(listed[:3].sum()), float(listed[3:].sum())], rel=1e-12)


@pytest.mark.parametrize("similarity", [-1.0, -0.95, 0.0, 0.999, 1.0])
def test_no_share_is_lost_between_the_bins(similarity):
    crowd = gradient_scaling.all_equal(similarity)
    bins = gradient_scaling.binned(crowd, torch.ones(1, dtype=torch.float64))
    assert float(bins.sum()) == 1
    k = int(bins.argmax())
    assert gradient_scaling.BINS[k] <= similarity <= gradient_scaling.BINS[k + 1]


def test_hardness_figure_draws_the_weights_of_the_negatives_given():
    negatives = torch.tensor([0.5, -0.5, 0.1], dtype=torch.float64)
    line = gradient_scaling.hardness(negatives, temperatures=(0.2,)).lines[0]
    expected = [math.exp(s / 0.2) for s in (-0.5, 0.1, 0.5)]
    np.testing.assert_allclose(line.get_ydata(), np.array(expected) / sum(expected))


# everyone can read them --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_one_sentence_of_alt_text(name):
    text = figures.alt(FIGURES[name]())
    assert text.endswith(".") and 40 < len(text) < 400


@pytest.mark.parametrize("name", FLAT)
def test_a_figure_draws_on_the_axes_it_was_given(name):
    _, axes = figures.new(8, 3, 1, 2)
    assert FIGURES[name](ax=axes[1]) is axes[1]
    assert axes[1].has_data() and not axes[0].has_data()


@pytest.mark.parametrize("name", FLAT)
def test_lines_are_told_apart_without_colour(name):
    legend = FIGURES[name]().get_legend()
    lines = [] if legend is None else [line for line in legend.get_lines() if line.get_linestyle() != "None"]
    looks = [(line.get_linestyle(), line._dash_pattern, line.get_marker()) for line in lines]
    assert len(set(map(str, looks))) == len(looks)


def test_roles_are_told_apart_in_grey_and_by_marker():
    def grey(color):
        return float(np.dot(to_rgb(color), (0.299, 0.587, 0.114)))

    roles = [style.role(name) for name in ("anchor", "positive", "negative")]
    greys = sorted(grey(look["color"]) for look in roles)
    assert min(np.diff(greys)) > 0.08
    assert len({look["marker"] for look in roles}) == 3


def test_losses_keep_their_looks_and_none_shares_another_ones():
    assert set(style.LOSSES) == set(losses.catalogue())
    for key in ("color", "linestyle", "marker"):
        assert len({str(style.loss(name)[key]) for name in style.LOSSES}) == len(style.LOSSES)


@pytest.mark.parametrize("count", [1, 2, 6])
def test_a_series_is_known_by_colour_line_and_marker(count):
    for ordered in (True, False):
        looks = style.series(count, ordered)
        for key in ("color", "linestyle", "marker"):
            assert len({str(look[key]) for look in looks}) == count


def test_alt_text_of_a_figure_is_its_own_or_that_of_its_parts():
    figure, (left, right) = figures.new(6, 2, 1, 2)
    figures.describe(left, "A line.")
    figures.describe(right, "A  point\n that moves.")
    assert figures.alt(left) == figures.alt(figure) == "A line. A point that moves."
    figures.describe(figure, "Both.")
    assert figures.alt(right) == "Both."


def test_a_subfigures_axes_belong_to_the_whole_figure():
    figure, _ = figures.new(6, 2)
    figure.clear()
    left, _ = figure.subfigures(1, 2)
    ax = figures.describe(left.subplots(), "The left half.")
    assert figures.alt(ax) == figures.alt(figure) == "The left half."
    assert Image.open(io.BytesIO(figures.png(ax, scale=1))).size == (600, 200)


class _Images(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        if tag == "img":
            self.found.append(dict(attributes))


def test_show_puts_the_alt_text_and_a_sharp_picture_into_the_page(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, **_: shown.append(bundle))
    _, ax = figures.new(5, 2)
    figures.describe(ax, 'W < 1 & "K" grows.')
    figures.show(ax, caption="a < b")
    parser = _Images()
    parser.feed(shown[0]["text/html"])
    (image,) = parser.found
    assert image["alt"] == 'W < 1 & "K" grows.' and image["width"] == "500"
    picture = Image.open(io.BytesIO(base64.b64decode(image["src"].removeprefix("data:image/png;base64,"))))
    assert picture.size == (1000, 400)
    assert "a &lt; b" in shown[0]["text/html"]


def test_show_refuses_a_figure_that_nobody_described():
    _, ax = figures.new()
    with pytest.raises(ValueError, match=r"no alt text; call figures\.describe"):
        figures.show(ax)


# and the reader's settings stay ------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_leaves_settings_and_pyplot_alone(name):
    before = dict(matplotlib.rcParams)
    FIGURES[name]()
    assert dict(matplotlib.rcParams) == before
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", ["directions", "hardness"])
def test_a_readers_dark_style_does_not_reach_the_figure(name):
    plain = figures.png(FIGURES[name](), scale=1)
    with plt.style.context("dark_background"):
        dark = figures.png(FIGURES[name](), scale=1)
    assert dark == plain
    assert Image.open(io.BytesIO(plain)).convert("RGB").getpixel((1, 1)) == (255, 255, 255)


def test_show_closes_a_readers_pyplot_figure(monkeypatch):
    monkeypatch.setattr("IPython.display.display", lambda *_, **__: None)
    figure, ax = plt.subplots()
    figures.show(ax, caption="mine")
    assert not plt.fignum_exists(figure.number)


# errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: figures.describe(figures.new()[1], " "), "alt text is one sentence, got ' '"),
        (lambda: style.role("query"), "no look for the role 'query'; there are anchor, positive, negative"),
        (lambda: style.loss("Nothing"), "no look for the loss 'Nothing'"),
        (lambda: style.series(0), "at least one series, got 0"),
        (lambda: gradient_scaling.all_equal(1.5), "similarity is 1.5, but a cosine similarity"),
        (lambda: gradient_scaling.gaussian(0.0, 0.0), "deviation is 0.0, but must be above 0"),
        (lambda: gradient_scaling.few_hard(number=0), "number is 0, but at least one"),
        (lambda: gradient_scaling.against_count(positive=2.0), "positive is 2.0"),
    ],
)
def test_bad_input_is_quoted(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_journey_shows_a_batchs_similarities_as_they_are():
    from clutils.figures import journey

    z = torch.nn.functional.normalize(torch.randn(6, 5, generator=torch.Generator().manual_seed(0)), dim=1)
    pictures = torch.rand(2, 3, 8, 8)
    figure = journey.journey(pictures[0], pictures, z[:2], z @ z.T, 1.25)
    (table,) = figure.axes[3].images
    np.testing.assert_allclose(table.get_array(), (z @ z.T).numpy())
    assert "1.25" in [text.get_text() for text in figure.axes[4].texts]

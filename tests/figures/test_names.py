"""Names of the reader's own: whatever a class or a file is called, its figure is drawn, without a warning.

pytest turns warnings into errors, so a missing glyph fails a test here.
"""

import numpy as np
import torch

from clutils import figures
from clutils.data import ImageSet, VectorSet
from clutils.figures import maps, pictures, style, training
from clutils.maps import share_of_class

NAMES = ("$$", r"a$^{$b", r"$\badmacro{$", "5$ and $6", r"\$", "猫", "犬", "_background_", "संस्कृतम्", "plain")
LABELS = torch.arange(len(NAMES)).repeat(12)
AT = np.random.default_rng(0).normal(size=(120, 2))


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(figures.style.matplotlib.text.Text)]


def test_any_class_name_is_drawn_on_every_kind_of_figure():
    images = torch.zeros(120, 3, 8, 8, dtype=torch.uint8)
    own = ImageSet(images, LABELS, NAMES, None, "mine")
    near = AT + 100 * LABELS[:, None].numpy()  # every class has a place, and so its name
    for figure in (
        maps.embedding_map(near, LABELS, NAMES, title="$$ 猫"),
        maps.side_by_side({"t-SNE $$": AT}, LABELS, NAMES),
        pictures.sheet(own),
        pictures.neighbours(own, {"$$": torch.randn(120, 4)}, [0, 1], k=2),
        pictures.neighbours(own, {"$$": torch.randn(120, 4)}, [0, 3, 8], k=2, names=True),
        training.accuracies({"$$": [0.5], "猫": [0.2]}),
    ):
        assert figures.png(figure)


def test_a_name_without_a_font_is_a_number_in_the_figure_and_a_name_in_the_page(monkeypatch):
    monkeypatch.setattr(style, "_characters", lambda: frozenset(range(32, 127)))
    ax = maps.embedding_map(AT + 100 * LABELS[:, None].numpy(), LABELS, NAMES)
    shown = texts(ax.figure)
    assert "5" in shown and "6" in shown and "plain" in shown and not {"猫", "犬"} & set(shown)
    assert "figures have numbers: 5 猫, 6 犬, 8 संस्कृतम्." in figures.page(ax)
    assert "number" not in figures.page(maps.embedding_map(AT, LABELS % 2, ("a", "b")))


def test_a_font_that_has_the_name_draws_it(monkeypatch):
    monkeypatch.setattr(style, "_characters", lambda: frozenset(range(0x20000)))
    assert maps.class_name(NAMES, 5) == "猫"


def test_dollars_and_backslashes_are_drawn_as_they_are():
    from matplotlib.text import Text

    ax = figures.new(2, 2)[1]
    for name in NAMES[:5]:
        drawn: Text = ax.text(0, 0, style.literal(name))
        assert drawn._preprocess_math(drawn.get_text()) == (name, False)


def test_points_without_a_label_are_grey_and_nameless():
    labels = torch.tensor([0, 1, -1, -100] * 30)
    near = AT + 100 * labels[:, None].numpy()
    ax = maps.embedding_map(near, labels, ("airplane", "truck"))
    assert sorted(filter(None, (text.get_text() for text in ax.texts))) == ["airplane", "truck"]
    assert "100% share its class" in figures.alt(ax)
    grey = [marks for marks in ax.collections if len(marks.get_offsets()) == 60]
    assert len(grey) == 1 and figures.style.matplotlib.colors.same_color(
        grey[0].get_facecolor()[0][:3], "#BBBBBB"
    )
    named = {text.get_text(): text.get_position() for text in ax.texts}
    # both classes lie in one corner, so the names stand one above the other
    assert named["airplane"][0] in {x for x, _ in ax.collections[1].get_offsets().tolist()}
    one, other = (text.get_window_extent() for text in ax.texts if text.get_text())
    assert one.y1 < other.y0 or other.y1 < one.y0
    figure = maps.side_by_side({"PCA": AT}, labels, ("airplane", "truck"))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["airplane", "truck"]
    nobody = maps.embedding_map(AT, torch.full((120,), -1), ("airplane", "truck"))
    assert "share its class" not in figures.alt(nobody) and not [t for t in nobody.texts if t.get_text()]
    assert not maps.side_by_side({"PCA": AT}, torch.full((120,), -1)).legends


def test_few_points_have_a_map():
    for n in (2, 3, 10):
        assert "share its class" in figures.alt(maps.embedding_map(AT[:n], torch.zeros(n, dtype=torch.int64)))


def test_images_without_a_label_are_no_neighbours_of_one_class():
    z = torch.randn(120, 4, generator=torch.Generator().manual_seed(0))
    own = ImageSet(torch.zeros(120, 3, 8, 8, dtype=torch.uint8), torch.full((120,), -1), (), None, "mine")
    ax = pictures.neighbours(own, {"z": z}, [0, 1], k=2)
    assert "z 0 of 4" in figures.alt(ax) and not ax.patches
    labels = torch.tensor([0] * 10 + [-1] * 110)
    assert share_of_class(z, labels, 4, "cosine") == 1.0


def test_a_name_that_is_no_utf8_or_controls_the_terminal_is_printable_once_loaded():
    found = VectorSet(
        torch.zeros(1, 1), torch.zeros(1, dtype=torch.int64), ("bad\udcff", "\x1b[2J", "猫"), "in \udcff"
    )
    assert found.class_names == (r"bad\udcff", r"\x1b[2J", "猫") and found.source == r"in \udcff"
    " ".join((*found.class_names, found.source)).encode()

"""The book's pages: what becomes of outputs that need a kernel, of pictures, and of docstrings."""

import base64
import io

import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image

from clutils import losses, training
from clutils.course import sphere
from clutils.course.book import pages


def shown(*outputs, tmp_path, source="lesson.panel()") -> list:
    """The outputs of a cell as the book has them."""
    notebook = new_notebook(cells=[new_code_cell(source, outputs=list(outputs))])
    return pages.prepared(notebook, tmp_path / "pictures").cells[0].outputs


def png(pixels: np.ndarray) -> str:
    """A picture in the page, as `figures.show` puts it there."""
    buffer = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(buffer, "PNG")
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img src="data:image/png;base64,{data}" alt="A." width="50">'


def test_a_progress_bar_leaves_one_line(tmp_path):
    pieces = ("ready\n", "\r", "1/3 steps", "\r", "2/3 steps", "\r", "3/3 steps", "\n", "done\n")
    (said,) = shown(*(new_output("stream", name="stdout", text=text) for text in pieces), tmp_path=tmp_path)
    assert said.text == "ready\n3/3 steps\ndone\n"


def test_what_goes_to_stderr_stays_apart(tmp_path):
    pieces = [new_output("stream", name=name, text=f"{name}\n") for name in ("stdout", "stderr", "stdout")]
    assert [output.name for output in shown(*pieces, tmp_path=tmp_path)] == ["stdout", "stderr", "stdout"]


@pytest.mark.parametrize("page", [None, "<figure>W against τ</figure>"], ids=["no picture", "its picture"])
def test_a_live_panel_is_its_picture_or_a_sentence_never_an_empty_box(tmp_path, page):
    data = {pages.WIDGET: {"model_id": "1"}, "text/plain": "VBox()"} | ({"text/html": page} if page else {})
    (output,) = shown(new_output("display_data", data), tmp_path=tmp_path)
    assert pages.WIDGET not in output.data and "A live panel" in output.data["text/html"]
    assert (page or "<code>lesson.panel()</code>") in output.data["text/html"]


@pytest.mark.parametrize(
    ("colours", "suffix"), [(3, ".png"), (16**6, ".webp")], ids=["a chart", "a photograph"]
)
def test_a_picture_becomes_a_small_file_that_keeps_its_alt_text_and_size(tmp_path, colours, suffix):
    draw = np.random.default_rng(0)
    pixels = draw.integers(0, colours, (60, 100))[..., None] // [1, 256, 65536] % 256
    pixels = pixels * (255 // min(colours - 1, 255))
    (output,) = shown(new_output("display_data", {"text/html": png(pixels)}), tmp_path=tmp_path)
    (file,) = (tmp_path / "pictures").iterdir()
    assert file.suffix == suffix
    assert f'src="../pictures/{file.name}" height="30"' in output.data["text/html"]
    assert 'alt="A."' in output.data["text/html"]
    kept = np.asarray(Image.open(file).convert("RGB"), float)
    assert kept.shape == (60, 100, 3) and (suffix == ".webp" or np.abs(kept - pixels).max() <= 1)


def test_a_docstring_is_markdown_with_its_examples_fenced_and_its_arguments_listed():
    text = pages.markdown("""Sum.

    $$a + b$$

    Args:
        a: one number,
            any
        b: another

    >>> add(1, 2)
    3
    """)
    assert "$$a + b$$" in text and "```python\n>>> add(1, 2)\n3\n```" in text
    assert "**Args**\n\n- a: one number,\n    any\n- b: another" in text


def test_the_librarys_page_has_every_loss_with_its_formula_and_its_source():
    page = pages.api_page("losses")
    for name in losses.catalogue():
        assert f"{{py:class}} {name}(" in page, name
        assert pages.source_of(getattr(losses, name)) in page
    assert page.count("$$") >= 2 * 20


def test_names_of_a_notebook_lead_to_where_they_are_defined():
    cells = [new_code_cell("from clutils import losses\nfrom clutils.course import check, macl as lesson")]
    names = pages.imported(new_notebook(cells=[*cells, new_code_cell("%timeit 1\nfrom clutils import maps")]))
    assert set(names) == {"losses", "check", "lesson"}
    assert pages.source_of(training.train).startswith("source/clutils.training.html#line-")
    assert pages.source_of(np.mean) == pages.source_of(3) == ""


@pytest.mark.parametrize(
    ("source", "title", "holds", "without"),
    [
        ('sphere.circle("NTXent", temperature=0.25, pictures=8)', "Points on a circle", "0.25", []),
        (
            'sphere.circle(loss="PairMargin", temperature=0.2)',
            "Points on a circle",
            '"proportional":false',
            [],
        ),
        ("x = 1\nforces.explore(losses.HardNegative(0.5, beta=1.5), positive=0.8)", "W, the gate", "1.5", []),
        ("forces.explore(losses.MACL(0.1), similarities=a[3])", "W, the gate", "", ["similarities = a[3]"]),
        ('forces.gradient_scale(negatives="gaussian", count=64)', "W, the gate", '"beside":"none"', []),
        (
            "lab = lesson.training_lab(data='scenes', **recipe.settings())\nlab",
            "A run, along its steps",
            "",
            [],  # as the run that is recorded
        ),
        ("lesson.training_lab(data='digits')", "A run, along its steps", "", ["data = 'digits'"]),
        (  # what a panel opens on when its cell does not say
            "forces.explore(losses.HardNegative(0.5, class_prior=0.1, beta=1.0), positive=0.8)",
            "W, the gate",
            '"positive":0.8,"count":255,"shape":"gaussian","similarity":0.0,"spread":0.25',
            [],
        ),
        (
            'forces.family("NTXent", "HardNegative", temperature=0.5)',
            "W, the gate",
            '"positive":0.6,"count":255,"shape":"gaussian"',
            [],
        ),
        ('sphere.circle("SSCL", temperature=0.2)', None, "", []),  # needs more than similarities
        (
            "forces.gradient_scale()  # as it opens",
            "W, the gate",
            '"positive":1.0,"count":255,"shape":"equal","similarity":-1.0',
            [],
        ),
        ("lesson.dilemma()", "Points on a circle", "", []),
    ],
)
def test_an_explorer_stands_for_a_panel_that_does_the_same_and_says_what_it_leaves_out(
    source, title, holds, without
):
    found = pages.explorer_of(source)
    assert (found is None) == (title is None)
    if found is not None:
        frame, left_out = found
        page = pages.panel(source, "")
        assert frame.title.startswith(title) and holds in frame.inside
        assert "<iframe" in page and "needs no kernel" in page
        assert left_out == without and ("Here without: " in page) == bool(without)


def test_the_circle_opens_on_the_points_and_the_steps_of_the_panel_that_it_stands_for():
    given = sphere.panels.as_explored("MACL", temperature=0.3, pictures=5)
    z1, z2 = sphere.start(5, 2, spread=0.2, arc=2.0, seed=0)
    at = [given["at"][3 * a : 3 * a + 3] for a in range(10)]
    angles = 2 * np.pi * np.array([int(place, 36) / 36**3 for place in at])
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    np.testing.assert_allclose(points, np.concatenate([z1.numpy(), z2.numpy()]), atol=2 * np.pi / 36**3)
    assert (given["rate"], given["proportional"]) == (sphere.panels.RATE, False)
    frame, _ = pages.explorer_of('sphere.circle("MACL", temperature=0.3, pictures=5)')
    assert f'"at":"{given["at"]}"' in frame.inside and '"beside_temperature":0.3' in frame.inside

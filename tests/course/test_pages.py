"""The book's pages: what becomes of outputs that need a kernel, of images, and of docstrings."""

import base64
import html
import io
import re

import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from clutils import explorers, losses
from clutils.course.book import gallery, pages


def shown(*outputs, tmp_path, source="lesson.panel()") -> list:
    """The outputs of a cell as the book has them."""
    notebook = new_notebook(cells=[new_code_cell(source, outputs=list(outputs))])
    return pages.prepared(notebook, tmp_path / "pictures").cells[0].outputs


def png(pixels: np.ndarray) -> str:
    """An image in the page, as `figures.show` puts it there."""
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


@pytest.mark.parametrize("page", [None, "<figure>W against τ</figure>"], ids=["no image", "its image"])
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


def test_every_figure_can_be_taken_by_its_name_and_stands_on_one_page(tmp_path):
    first, second = (
        png(np.full((4, 6, 3), grey)).replace("A.", alt) for grey, alt in ((0, "W &amp; τ."), (9, "?"))
    )
    outputs = [
        new_output("display_data", {"text/html": first, gallery.SVG: "<svg></svg>", "image/png": "x"}),
        new_output("stream", text="no figure"),
        new_output("display_data", {pages.WIDGET: {"model_id": "1"}, "text/html": second}),
    ]
    cells = [new_markdown_cell("# 02 · Gate"), *(new_code_cell("", outputs=[output]) for output in outputs)]
    notebook = new_notebook(cells=cells)
    gallery.write(tmp_path, {"02_gate": notebook, "03_none": new_notebook(cells=cells[:1])})
    files = sorted((tmp_path / "pictures").iterdir())
    assert [re.sub("[0-9a-f]{16}", "#", file.name) for file in files] == [
        "02-01-w-#.png",
        "02-01-w.svg",
        "02-02-figure-#.png",
    ]
    assert np.asarray(Image.open(files[2]).convert("RGB")).max() == 9
    assert gallery.smaller(next(gallery.found(notebook))[0], tmp_path / "pictures")[0] == files[0], (
        "written twice"
    )
    page = (tmp_path / "figures.md").read_text("utf-8")
    assert "[02 · Gate](notebooks/02_gate.ipynb)" in page and "03_none" not in page
    assert page.count("<img") == 2 and 'alt="W &amp; τ."' in page and page.count(".svg") == 1
    assert all(
        "(figures.md)" in (pages.HERE / name).read_text("utf-8") for name in ("index.md", "lecturer.md")
    )


def test_a_long_alt_text_gives_a_name_of_whole_words():
    name = gallery.words("Effective number of negatives against temperature, rising to K (dashed)")
    assert name == "effective-number-of-negatives-against"


def test_a_docstring_of_markdown_becomes_what_sphinx_reads():
    lines = [
        "Sum of `a_` and *b*.",
        "",
        "$$a",
        "  + b$$",
        "",
        "An example:",
        "",
        "    add(a_, *b)",
        "    add()",
    ]
    pages.restructured(None, "function", "", None, None, lines)
    text = "\n".join(lines)
    assert r"``a_`` and \*b\*." in text and ".. math::\n\n   a\n   + b" in text
    assert ".. code-block:: python\n\n    add(a_, *b)\n    add()" in text


def test_a_rooms_page_has_every_module_with_a_loss_in_it():
    page = pages.api_page("losses")
    for entry in losses.catalogue().values():
        assert f".. automodule:: {entry.cls.__module__}\n" in page


def test_names_of_a_notebook_lead_to_where_they_are_documented():
    cells = [new_code_cell("from clutils import losses\nfrom clutils.course import check, macl as lesson")]
    names = pages.imported(new_notebook(cells=[*cells, new_code_cell("%timeit 1\nfrom clutils import maps")]))
    assert set(names) == {"losses", "check", "lesson"}
    assert pages.documented_at(losses.MACL) == "api/losses.html#clutils.losses.macl.MACL"
    assert pages.documented_at(np.mean) == pages.documented_at(3) == pages.documented_at(names["check"]) == ""


@pytest.mark.parametrize(
    ("source", "title"),
    [
        ("lesson.dilemma()", "Points on a circle"),
        ("lab = lesson.training_lab(data='scenes', **recipe.settings())\nlab", "A run, step by step"),
    ],
)
def test_where_a_panel_needs_a_kernel_an_explorer_of_the_same_stands_in_the_book(source, title):
    page = pages.panel(source, "<figure>its axes</figure>")
    assert f'title="{title}' in page and "needs no kernel" in page and "its axes" not in page


def test_an_explorer_of_a_notebook_is_in_the_book_as_it_is_and_its_still_is_a_file(tmp_path):
    frame = explorers.frame("W", beside="none")
    (output,) = shown(new_output("execute_result", {"text/html": str(frame)}), tmp_path=tmp_path)
    (file,) = (tmp_path / "pictures").iterdir()
    page = output.data["text/html"]
    assert frame.inside[:200] in html.unescape(page) and "live-panel" not in page
    assert f'src="../pictures/{file.name}"' in page and "base64" not in page.split("</iframe>")[1]

"""Pages with results, read without an installation: what stands closed, where links lead, which are old."""

import base64
import io
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from clutils.course.book import read, running, stage


@pytest.fixture
def png():
    made = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(made, "PNG")
    return base64.b64encode(made.getvalue()).decode()


def test_folds_close_where_they_end_and_outputs_follow_their_code(tmp_path, png):
    shown = new_output(
        "display_data", {"text/html": f'<img src="data:image/png;base64,{png}" alt="a red field" width="20">'}
    )
    bar = new_output("stream", name="stdout", text="step 1\rstep 2\n")
    cells = [
        new_markdown_cell("# Title\n\n[next](01_x.ipynb#Part) and ![i](pictures/a.png)"),
        new_markdown_cell("## ▸ aside", metadata={stage.FOLDED: True}),
        new_markdown_cell(stage.OPENS + "inside"),
        new_markdown_cell("## open"),
        new_code_cell("draw()", outputs=[bar, shown], metadata={"jupyter": {"source_hidden": True}}),
    ]
    text = read.page(new_notebook(cells=cells), tmp_path, "07")
    assert "(01.md#part)" in text and "(../../notebooks/pictures/a.png)" in text
    assert re.search(r"<b>aside</b></summary>\s+inside\s+</details>\s+## open", text)
    assert re.search(r"<summary>code</summary>.*draw\(\).*</details>.*```text\nstep 2\n```", text, re.DOTALL)
    (file,) = tmp_path.glob("07-*.webp")
    assert f'<img src="figures/{file.name}" alt="a red field" width="20">' in text


def test_no_page_holds_what_needs_a_kernel_or_a_script(tmp_path, png):
    frame = new_output("execute_result", {"text/html": "<iframe srcdoc='x'></iframe>", "image/png": png})
    styled = new_output(
        "display_data", {"text/html": "<style>a{}</style><table class='x'><tr><td>1</td></tr></table>"}
    )
    text = read.page(new_notebook(cells=[new_code_cell("f()", outputs=[frame, styled])]), tmp_path, "07")
    assert "<iframe" not in text and "<style" not in text and "base64" not in text
    assert read.EXPLORERS in text and "<table><tr><td>1</td></tr></table>" in text


def test_a_page_is_old_as_soon_as_its_notebook_changes(tmp_path, monkeypatch):
    source = tmp_path / "00_x.ipynb"
    nbformat.write(new_notebook(cells=[new_markdown_cell("# A")]), source)
    monkeypatch.setattr(running, "sources", lambda: [source])
    out = tmp_path / "read"
    assert read.older(out) == ["00_x"]
    read.write(tmp_path, out)
    assert read.older(out) == []
    nbformat.write(new_notebook(cells=[new_markdown_cell("# B")]), source)
    assert read.older(out) == ["00_x"]
    other = tmp_path / "01_y.ipynb"
    nbformat.write(new_notebook(cells=[new_markdown_cell("# C")]), other)
    monkeypatch.setattr(running, "sources", lambda: [source, other])
    read.write(tmp_path, out)
    for path in (source, other):
        nbformat.write(new_notebook(cells=[new_markdown_cell("# D")]), path)
    read.write(tmp_path, out, names=["01_y"])
    assert read.older(out) == ["00_x"] and "# A" not in (out / "00.md").read_text("utf-8")
    (out / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"notes\.txt"):
        read.write(tmp_path, out)


@pytest.mark.sweep
def test_every_page_is_made_from_the_present_notebook():
    assert read.older() == [], "make read"


@pytest.mark.skipif(not read.OUT.exists(), reason="docs/read is not written yet")
def test_the_pages_stay_small_and_each_notebook_has_one():
    files = [file for file in read.OUT.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 12e6
    named = {file.stem for file in files if file.suffix == ".md"}
    assert {read.short(source.stem) for source in running.sources()} == named

"""Exercises that are answered in the book's pages; tests/browser/test_book asks the pages themselves."""

import base64
import json
import re

import nbformat
import pytest

from clutils.course import exercise
from clutils.course.book import questions, running

KNOWN = {e.name: e for every in exercise.catalogue().values() for e in every}
FORMS = {name: form for name, e in KNOWN.items() if (form := questions.form(e))}


def data(form: str) -> dict:
    return json.loads(base64.b64decode(re.search(r'data-asked="([^"]+)"', form)[1]))


def test_every_question_for_words_is_one_and_functions_of_few_numbers_are():
    of_words = {
        name
        for name, e in KNOWN.items()
        if isinstance(e.answer, tuple) and all(isinstance(w, str) for w in e.answer)
    }
    words = of_words | {
        name for name, e in KNOWN.items() if isinstance(e.answer, str | list) or name == "ailments"
    }
    assert {name for name, form in FORMS.items() if not data(form)["digits"]} == words
    assert {"cosine", "negatives_of_an_anchor", "pull", "floor_at"} <= FORMS.keys()
    assert not FORMS.keys() & {
        "nt_xent",
        "macl_loss",
        "counter_example",
        "rescue",
    }  # too many, compared in more


def test_every_chapter_with_exercises_has_one_for_a_phone_and_it_names_mistakes():
    for folder, asked in exercise.catalogue().items():
        in_page = [e for e in asked if e.name in FORMS]
        assert in_page, f"{folder} asks nothing that its page can judge"
        assert any(len(data(FORMS[e.name])["said"]) >= 3 for e in in_page), folder  # right, and two mistakes


@pytest.mark.parametrize("name", FORMS)
def test_no_answer_stands_in_the_form_as_it_is_looked_up(name: str):
    form, asked = FORMS[name], KNOWN[name]
    if questions.choices(asked):
        key = asked.answer if isinstance(asked.answer, str) else "\n".join(asked.answer)
    else:
        one, _ = questions.by_hand(asked)
        key = questions.spelled(one.answer, one.answer)
    keys = data(form)["keys"]
    assert questions.hashed(f"{name}\n{key}") in keys and key not in keys
    assert "selected" not in form and "✓" not in form


def test_a_number_counts_to_its_third_digit_and_a_whole_one_to_its_last():
    assert questions.spelled(298.04, 1.0) == "2.98e2" and questions.spelled(-0.00123456, 1.0) == "-1.23e-3"
    assert questions.spelled(510, 1) != questions.spelled(511, 1)
    assert questions.spelled(-0.0, 1.0) == questions.spelled(0.0, 1.0)
    own = data(FORMS["pull"])  # 0.3857
    right = own["said"].index("✓ pull: right.")
    taken = [k for k in range(380, 393) if own["keys"].get(questions.hashed(f"pull\n{k / 100}e-1")) == right]
    assert taken == [385, 386, 387]


def test_a_cell_shows_the_form_in_place_of_nothing_here_yet_and_keeps_what_it_prints():
    notebook = nbformat.read(running.NOTEBOOKS / "13_checkpoint_check.ipynb", 4)
    cell = next(c for c in notebook.cells if "lesson.where_to_look_first.check" in c.source)
    cell.outputs = [
        nbformat.v4.new_output("stream", text="three pages"),
        nbformat.v4.new_output("execute_result", {"text/plain": "nothing here yet"}),
    ]
    questions.put_in(notebook)
    assert [output.output_type for output in cell.outputs] == ["stream", "display_data"]
    assert 'class="question"' in cell.outputs[1].data["text/html"]


def test_an_exercise_for_a_kernel_has_its_hints_and_no_not_yet():
    notebook = nbformat.read(running.NOTEBOOKS / "01_from_siamese_nets_to_infonce.ipynb", 4)
    cell = next(c for c in notebook.cells if "lesson.nt_xent.check" in c.source)
    cell.outputs = [
        nbformat.v4.new_output("execute_result", {"text/plain": "✗ nt_xent: not yet"}, execution_count=1)
    ]
    questions.put_in(notebook)
    (output,) = cell.outputs
    page = output.data["text/html"]
    assert "JupyterLab" in page and "not yet" not in page
    assert page.count("<details>") == len(KNOWN["nt_xent"].hints) > 1

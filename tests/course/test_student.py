"""A student's number: variants of exercises that differ, and a file of progress that is never lost."""

import json

import pytest

from clutils.course import exercise, student, variants

EVERY = [pytest.param(e, id=e.name) for es in exercise.catalogue().values() for e in es]
FREE = {  # a property is judged, or it is one word
    "both_sides", "mines_hard_positives", "what_happened", "two_controls", "verdict", "few_points",
    "spares_false_negatives", "rescue", "counter_example", "positive_control", "what_sscl_calls_tau",
}  # fmt: skip


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("CLUTILS_PROGRESS", str(tmp_path / "progress.json"))
    return tmp_path / "progress.json"


@pytest.mark.parametrize("exercise", EVERY)
def test_a_variant_takes_its_own_answer_and_neither_everybodys_nor_a_wrong_one(exercise):
    for number in ("7", "20261234"):
        variant = variants.variant(exercise, number)
        assert (variant is None) == (exercise.name in FREE)
        if variant is None:
            continue
        asked = exercise.of(number)
        assert asked.check(asked.answer)
        assert variant.words in asked.question
        refused = asked.check(exercise.answer)
        assert not refused and "what everybody is asked" in repr(refused) and variant.words in repr(refused)
        for wrong in asked.wrong:
            assert not asked.check(wrong.answer), wrong.name


def test_hand_ins_differ_with_the_number():
    found = {
        tuple(variants.variant(e, str(n)).words for e in (p.values[0] for p in EVERY) if e.name not in FREE)
        for n in range(40)
    }
    assert len(found) == 40, "two of forty students are asked the same in every exercise"


def test_what_was_solved_is_kept_and_shown(kept):
    cosine = exercise.catalogue()["start"][0]
    assert "begin" in repr(student.progress()) and not kept.exists()
    cosine.check(cosine.answer)
    assert not kept.exists(), "kept without being asked to"
    student.begin(" 20261234 ")
    cosine.check(cosine.answer)
    entry = json.loads(kept.read_text())["exercises"]["cosine"]
    assert entry == {"tries": 1, "right": None}, "everybody's answer is none of this number's"
    cosine.check(cosine.of().answer)
    cosine.check(None)
    entry = json.loads(kept.read_text())["exercises"]["cosine"]
    assert entry["tries"] == 3 and entry["right"]
    assert "start 1 of 2" in repr(student.progress()) and "✓ cosine" in student.progress()._repr_html_()
    assert "With your number" in repr(cosine.check(None))
    assert variants.variant(cosine).words in repr(cosine.solution())
    assert student.begin("20261234").of == "20261234"


def test_a_number_that_is_none_another_one_and_a_broken_file_are_refused_and_nothing_is_lost(kept, capsys):
    for number in ("", "a b", "x" * 65, 1.5, "<b>"):
        with pytest.raises(ValueError, match="number is"):
            student.begin(number)
    student.begin("1")
    before = kept.read_text()
    with pytest.raises(ValueError, match=r"number is '2', but .* was begun with '1'"):
        student.begin("2")
    assert kept.read_text() == before
    for broken in (
        "{",
        "[]",
        '{"number": 3, "exercises": {}}',
        '{"number": "3", "exercises": {"cosine": {}}}',
    ):
        kept.write_text(broken)
        with pytest.raises(ValueError, match="is no file of progress"):
            student.progress()
        variants.note("cosine", True)
        assert "Progress was not kept" in capsys.readouterr().out and kept.read_text() == broken


def test_an_exam_shows_no_solution(monkeypatch):
    monkeypatch.setenv("CLUTILS_EXAM", "1")
    assert "left out" in repr(exercise.catalogue()["start"][0].solution())

"""A student's number: variants of exercises that differ, and a file of progress that is never lost."""

import dataclasses
import functools
import json

import pytest
import torch

from clutils import losses
from clutils.course import exercise, student, variants

EVERY = [pytest.param(e, id=e.name) for es in exercise.catalogue().values() for e in es]
FREE = {  # a property is judged, or it is one word
    "both_sides", "mines_hard_positives", "what_happened", "two_controls", "few_points",
    "spares_false_negatives", "rescue", "counter_example", "positive_control", "what_sscl_calls_tau",
}  # fmt: skip


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("CLUTILS_PROGRESS", str(tmp_path / "progress.json"))
    return tmp_path / "progress.json"


def finite(value):
    """Whether no number in what was seen is infinite or none: an answer that no student could mean."""
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, tuple | list):
        return all(map(finite, value))
    return not isinstance(value, torch.Tensor | float) or bool(torch.as_tensor(value).isfinite().all())


def test_two_changes_that_undo_each_other_are_asked_of_nobody():
    (asked,) = (e for es in exercise.catalogue().values() for e in es if e.name == "hot_limit")
    undone = [v for v in variants.every(asked) if not asked.differs(v)]
    assert [v.words for v in undone] and all(v.given and "minus twice" in v.words for v in undone)
    for number in range(100):
        assert asked.differs(variants.variant(asked, str(number)))


def drawn(exercise):
    """Of the variants: each quantity and each way of giving arguments, with a convention of the result."""
    by_kind = {}
    for variant in filter(exercise.differs, variants.every(exercise)):
        by_kind.setdefault((variant.right, tuple(c.words for c in variant.given.values())), []).append(
            variant
        )
    return [of_kind[len(of_kind) // 2] for of_kind in by_kind.values()]


@pytest.mark.parametrize("exercise", EVERY)
def test_a_variant_takes_its_own_answer_and_neither_everybodys_nor_a_wrong_one(exercise, monkeypatch):
    found = drawn(exercise)
    assert (not found) == (exercise.name in FREE)
    for variant in found:
        for case in exercise.cases() if callable(exercise.answer) and exercise.cases else []:
            numbers = exercise._varied(variant)._seen(exercise._varied(variant).answer, variant.case(case))
            assert finite(numbers), variant.words
        monkeypatch.setattr(variants, "variant", lambda own, of=None, variant=variant: variant)
        asked = exercise.of("7")
        assert asked.judged(asked.answer), variant.words
        assert variant.words in asked.question
        refused = asked.judged(exercise.answer)
        assert not refused and "✓" not in repr(refused), variant.words
        for wrong in asked.wrong:
            assert not asked.judged(wrong.answer), (variant.words, wrong.name)


def answered(name, function, right="", given=()):
    """What is said of a function that somebody wrote for this variant."""
    (asked,) = (e for es in exercise.catalogue().values() for e in es if e.name == name)
    (variant,) = (
        v
        for v in variants.every(asked)
        if v.right == right
        and [c.words.split()[1] for c in v.given.values()] == [*given]
        and v.change(2.5) == 2.5
    )
    own = dataclasses.replace(asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(variants, "variant", lambda *_: variant)
        return own.of("7").judged(function)


def test_answers_written_for_a_variant_are_right():
    def pull(positives, negatives, temperature):  # of squared distances
        c = torch.logsumexp(-negatives / 2 / temperature, dim=1) + positives[:, 0] / 2 / temperature
        return 1 / (1 + torch.exp(-c)) / temperature

    assert answered("pull", pull, given=["s", "s"])

    def attention_row(positives, negatives, *rest, more=0.0):  # of squared distances
        s, n = 1 - positives / 2, 1 - negatives / 2
        return losses.AttentionNCE(*rest).per_anchor(s, n) + more * (s - s.detach()).sum()

    given = ["s", "s"]
    assert answered("attention_row", attention_row, given=given)
    message = answered("attention_row", functools.partial(attention_row, more=1.0), given=given).message
    assert "gradient by 2 - 2s⁺ differs" in message and "gradient by 2 - 2s⁻" in message

    def nt_xent(z1, z2, temperature):  # of columns, the first views alone as anchors
        z = torch.nn.functional.normalize(torch.cat([z1, z2], dim=1), dim=0)
        found = []
        for i in range(z1.shape[1]):
            logits = (z.T @ z[:, i]) / temperature
            rest = [j for j in range(z.shape[1]) if j != i]
            found.append(torch.logsumexp(logits[rest], dim=0) - logits[i + z1.shape[1]])
        return sum(found) / len(found)

    assert answered("nt_xent", nt_xent, "one view as anchor", ["are", "are"])

    def follow(target, online, step, steps, base):
        kept = base + (1 - base) * step / steps
        return target + (1 - kept) * (online - target)

    assert answered("follow", follow, "a straight line")
    assert not answered("follow", follow, "a quarter of a cosine")


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

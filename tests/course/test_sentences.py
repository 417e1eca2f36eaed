"""Notebook 15: exercises that see through wrong answers, the search box, and what is measured."""

import pandas as pd
import pytest
import torch

from clutils import data, losses
from clutils.course import records
from clutils.course import sentences as lesson
from clutils.course.sentences import experiments, panels
from tests.course.answers import judged


@pytest.fixture(scope="module")
def train() -> data.SentenceSet:
    return data.load("sentences:topics", limit=120)


@pytest.fixture(scope="module")
def run(train):
    return lesson.run_of("dropout", train, steps=2, batch_size=16)


def test_zero_is_where_macls_temperature_meets_it_without_a_floor():
    A = torch.tensor(lesson.floor_at.answer(2.0, 0.8, 0.0))
    assert float(panels.adaptive(A, 2.0, 0.8)) == pytest.approx(0, abs=1e-6)
    macl = losses.MACL(0.05, alpha=2.0, alignment_threshold=0.8)
    assert float(macl.temperature_at(A + 0.3)) == pytest.approx(0.05 * 0.6, rel=1e-5)
    at = lesson.floor_at.answer(2.0, 0.8, 0.1)
    below, on, above = macl.temperature_at(torch.tensor([at - 0.1, at, at + 0.1])).tolist()
    assert below == on == pytest.approx(0.005, rel=1e-5) and above > on
    panel = lesson.adaptive_temperature(0.9)
    panel.set(alpha=2.0, threshold=0.8)
    assert "τₐ = 1.20 τ₀" in panel.readout.value and "it is 0 at A = 0.30" in panel.readout.value


def test_the_mean_of_word_vectors_counts_words_alone(run, train):
    means = lesson.word_means(run.encoder, train.tokens[:5])
    table = run.encoder.words.weight
    for row, mean in zip(train.tokens[:5], means, strict=True):
        torch.testing.assert_close(mean, table[row[row > 0]].mean(dim=0).detach())


def test_no_view_is_judged_where_the_control_is_not_above_untrained():
    def said(control: float) -> dict[str, str]:
        worth = {"untrained": 0.6, "with labels": control, "dropout": 0.4}
        rows = [
            {"way": way, "seed": seed, "encoder": worth.get(way, 0.5) + 1e-3 * seed * (way in worth)}
            for way in lesson.WAYS
            for seed in range(4)
        ]
        lines = lesson.differences(pd.DataFrame(rows)).splitlines()[1:]
        return {line.split(" minus")[0]: line.split(", ", 1)[1] for line in lines}

    assert said(0.9) == {"with labels": "above"} | dict.fromkeys(lesson.VIEWS, "below")
    for control, verdict in ((0.6, "not apart"), (0.1, "below")):
        blind = dict.fromkeys(lesson.VIEWS, "not decided (the control is not above)")
        assert said(control) == {"with labels": verdict} | blind


def test_what_is_counted_is_told_by_width_and_random_vectors_keep_some_of_tf_idf(train):
    test = data.load("sentences:topics", "test", limit=60)
    found = lesson.counted(train, test, seeds=2)["accuracy"]
    assert [numbers for _, numbers in found.index][2:] == [64, 64, 256, 256]
    weighed = lesson.tf_idf(train, test)
    right = lesson.accuracy(weighed[0], train, weighed[1], test)
    assert found["TF-IDF"].iloc[0] == pytest.approx(100 * right) and found.between(0, 100).all()


def test_the_gain_of_deletion_is_a_difference_of_two_accuracies_with_its_error(train):
    test = data.load("sentences:topics", "test", limit=60)
    found = experiments.deletion_gain(train, test, seed=1, steps=2, batch_size=16)
    for name, way in (("untrained", "untrained"), ("deletion", "dropout and deletion")):
        made = lesson.worth(lesson.trained(way, train, 1, steps=2, batch_size=16), train, test)
        assert found[name] == pytest.approx(made["encoder"])
    assert 0 <= found["test_error"] < (1 / 60) ** 0.5  # that of differences of -1, 0 and 1


def test_docstrings_are_sentences_that_stand_once_with_their_module():
    whole = experiments.docstrings()
    assert len(set(whole.texts)) == len(whole) > 900 and set(whole.class_names) == set(experiments.MODULES)
    gains = records.read("sentences_deletion")
    assert set(gains["corpus"]) == {"docstrings", "topics"} and (gains["test_error"] > 0).all()
    assert gains.query("corpus == 'topics'")["seed"].min() == 5  # none of the first record's


def test_the_box_answers_and_escapes_what_is_typed(run, train):
    box = lesson.search(train, {"encoder": run.embed}, train.texts[3])
    assert f"<b>{train.class_names[train.labels[3]]}</b>" in box.children[1].value
    box.children[0].value = "..."
    assert "type a sentence" in box.children[1].value
    box.children[0].value = "<script> a loop"
    assert "<script>" not in box.children[1].value


def test_macls_table_is_the_papers():
    assert [len(row) for row in lesson.MACL_TABLE_3.values()] == [len(lesson.TASKS)] * 2
    printed = (76.57, 77.59, 76.02)  # the averages in table B.5
    for row, mean in zip((*lesson.MACL_TABLE_3.values(), lesson.REPRODUCED), printed, strict=True):
        assert sum(row) / 7 == pytest.approx(mean, abs=0.005)


def test_macls_settings_have_a_steep_line_for_sentences_alone():
    steep = [where for where, (alpha, _) in lesson.MACL_SETTINGS.items() if not 0 <= alpha <= 1]
    assert steep == ["sentences (appendix B.4)"] and len(lesson.MACL_SETTINGS) > 5
    kinds = {where.split(",")[0].split(" (")[0] for where in lesson.MACL_SETTINGS}
    assert kinds == {"pictures", "sentences", "graphs"}


ANSWERS = {
    "pooled": [
        lambda states, tokens: torch.stack(
            [s[t > 0].mean(dim=0) for s, t in zip(states, tokens, strict=True)]
        ),
    ],
    "floor_at": [lambda a, t, f: (a * t + f - 1) / a],
}

test_an_exercise_takes_other_ways = judged(lesson, ANSWERS)

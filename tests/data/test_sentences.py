"""Sentences: what is cut where, what a word's number is, which part holds what, and one's own files."""

import zlib

import pytest
import torch

from clutils import __main__ as command_line
from clutils import data
from clutils.data import sentences
from clutils.data.sets import SentenceSet


def test_a_sentence_has_its_words_numbers_and_zeros_behind():
    found = sentences.tokens(["If x is None, return 12.", "", "return IF"])
    assert found.shape == (3, sentences.LENGTH) and found.dtype == torch.int64
    assert (found > 0).sum(dim=1).tolist() == [6, 0, 2]
    assert found[0, 0] == found[2, 1] and found[0, 4] == found[2, 0], "a word has one number in any case"
    assert int(found.max()) < sentences.BUCKETS
    assert bool((sentences.tokens(["word " * 100])[0] > 0).all()), "what is too long is cut"


def test_a_word_keeps_its_number_forever():
    assert sentences.tokens(["coroutine"])[0, 0] == 1 + zlib.crc32(b"coroutine") % 8191


def test_a_text_is_cut_behind_full_stops_and_at_empty_lines():
    text = "A first one stands here.  The second one\nends: Here is one more.\n\nTitle\n\nv1.2 is not cut"
    assert sentences.sentences(text) == [
        "A first one stands here.",
        "The second one ends:",
        "Here is one more.",
        "v1.2 is not cut",
    ]


@pytest.fixture(scope="module")
def parts() -> tuple[SentenceSet, SentenceSet]:
    return data.load("sentences:topics"), data.load("sentences:topics", "test")


def test_the_topics_are_divided_and_no_sentence_is_in_both_parts(parts):
    train, test = parts
    assert len(train) > 1500 and 0.15 < len(test) / (len(train) + len(test)) < 0.3
    assert not set(train.texts) & set(test.texts)
    assert len(set(train.texts)) == len(train)
    assert set(test.labels.tolist()) <= set(train.labels.tolist())
    assert train.class_names == test.class_names and len(train.class_names) > 50
    assert "real" in train.source and "text " in train.source and "split train" in train.source
    assert torch.equal(train.inputs, sentences.tokens(train.texts))


def test_a_limit_and_a_subset_keep_texts_labels_and_tokens_together(parts):
    train, _ = parts
    few = train.subset(torch.tensor([5, 2]))
    assert few.texts == (train.texts[5], train.texts[2])
    assert torch.equal(few.tokens, train.tokens[[5, 2]]) and torch.equal(few.labels, train.labels[[5, 2]])
    assert few.source.startswith("2 of ")
    assert data.load("sentences:topics", limit=3).texts == train.texts[:3]
    assert train.subset(train.labels == 4).labels.unique().tolist() == [4]


def test_ones_own_file_is_a_line_a_sentence_and_a_label_behind_a_tab(tmp_path):
    file = tmp_path / "own.txt"
    file.write_text("Cats sleep a lot\tanimals\n\nTea is hot\tdrinks\nDogs bark\tanimals\n", "utf-8")
    found = data.load(f"sentences:file:{file}")
    assert found.texts == ("Cats sleep a lot", "Tea is hot", "Dogs bark")
    assert found.class_names == ("animals", "drinks") and found.labels.tolist() == [0, 1, 0]
    file.write_text("one line\nanother line\n", "utf-8")
    assert data.load(f"sentences:file:{file}", limit=1).labels.tolist() == [-1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\tc\nd e\n", "line 2 of those with words has no label"),
        ("\n...\n", "holds no line with a word"),
        (b"\xff\xfe\xfa", "is no text in UTF-8"),
    ],
)
def test_a_file_that_can_not_be_is_refused_in_one_line(tmp_path, text, message):
    file = tmp_path / "own.txt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message) as answer:
        data.load(f"sentences:file:{file}")
    assert "\n" not in str(answer.value)


def test_the_command_describes_them(capsys):
    assert command_line.main(["data", "sentences:topics"]) == 0
    said = capsys.readouterr().out
    assert "int64 (N, L) = (2253, 24), words: 24" in said and "async" in said

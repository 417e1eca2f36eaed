"""Sentences: what is cut where, what a word's number is, which part holds what, and one's own files."""

import unicodedata
import zlib

import pandas as pd
import pytest
import torch

from clutils import __main__ as command_line
from clutils import data, training
from clutils.data import sentences
from clutils.data.sets import SentenceSet


def test_a_sentence_has_its_words_numbers_and_zeros_behind():
    found = sentences.tokens(["If x is None, return 12.", "", "return IF"])
    assert found.shape == (3, sentences.LENGTH) and found.dtype == torch.int64
    assert (found > 0).sum(dim=1).tolist() == [6, 0, 2]
    assert found[0, 0] == found[2, 1] and found[0, 4] == found[2, 0], "a word has one number in any case"
    assert int(found.max()) < sentences.BUCKETS
    assert bool((sentences.tokens(["word " * 100])[0] > 0).all()), "what is too long is cut"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("मैं हिंदी में", ["मैं", "हिंदी", "में"]),
        ("اللُّغَةُ العربية", ["اللُّغَةُ", "العربية"]),
        ("ภาษา ไทย ที่นี่", ["ภาษา", "ไทย", "ที่นี่"]),
        ("Cafe\u0301 cre\u0300me", ["café", "crème"]),  # NFD
        ("ﬁne ｗｏｒｄ１２", ["fine", "word12"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("If x2 is None, return 12.", ["if", "x2", "is", "none", "return", "12"]),
    ],
)
def test_words_are_found_by_unicode_and_marks_do_not_cut_them(text, found):
    assert sentences.words(text) == [unicodedata.normalize("NFKC", word) for word in found]
    both = sentences.tokens([unicodedata.normalize(form, text) for form in ("NFC", "NFD")])
    assert torch.equal(both[0], both[1])


def test_an_old_run_keeps_the_words_that_it_learned_from(tmp_path):
    file = tmp_path / "own.txt"
    file.write_text("".join(f"मैं हिंदी में {k} लिखता हूँ\n" for k in range(40)), "utf-8")
    old = sentences.by_rule(data.load(f"sentences:file:{file}"), 1)
    assert sentences.words(old.texts[0], 1)[:3] == ["म", "ह", "द"]
    kept = training.Run(data=old, steps=2, batch_size=16)
    kept.step()
    kept.save(tmp_path / "old.pt")
    state = torch.load(tmp_path / "old.pt", weights_only=True)
    assert state.pop("words") == 1
    state["configuration"]["data"] = f"sentences:file:{file}"
    torch.save(state, tmp_path / "old.pt")
    again = training.resume(tmp_path / "old.pt")
    assert again.data.rule == 1 and again.step()["loss"] == kept.step()["loss"]
    again.save(tmp_path / "again.pt")
    assert torch.load(tmp_path / "again.pt", weights_only=True)["words"] == 1
    new = training.Run(data=f"sentences:file:{file}", steps=2, batch_size=16)
    assert not torch.equal(new.images, old.tokens)


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\tc\nd e\nf g\n", "1 of 3 sentences have a label, the first 'a b' has 'c'"),
        ("\n...\n", "holds no line with a word"),
        (
            "größer als\n".encode("cp1252"),
            "perhaps Windows-1252, as Excel's 'CSV' is .*save it as 'CSV UTF-8'",
        ),
        (
            "a cat\n".encode("utf-16"),
            "is UTF-16, as Excel's 'Unicode Text', not UTF-8: save it as 'CSV UTF-8'",
        ),
        ("a cat\ttrain\na dog\ttest\n", "labels are test, train, names of splits and no classes"),
        ("review\tsplit\na cat\ttrain\na dog\ttest\n", "names of splits and no classes"),
        ("1\tthe cat sat\tpets\n", r"line 1 has 3 columns.*say which they are, as in .*\?text=2&label=3"),
        ("the cat sat\tthe dog ran\t0.5\n", "line 1 has 3 columns"),
        (
            "1\tthe cat sat\n2\ta dog runs fast\n3\tit is raining\n",
            "3 different texts stand where the labels of 3",
        ),
        ("the cat sat\ta cat was sitting\nit rains\tthere is some rain\n", r"as of pairs.*as in .*\?text=2"),
        ("".join(f"hello {k}\tbonjour {k}\n" for k in range(10)), "as of pairs"),
        ("\tpets\n", "holds no sentence with a word, but '', 'pets'"),
        ("a cat\t0.5\na dog\t1.5\na fox\t0.5\n", r"a label is '[01]\.5', but must be a class"),
    ],
)
def test_a_file_that_can_not_be_is_refused_in_one_line(tmp_path, text, message):
    file = tmp_path / "own.txt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message) as answer:
        data.load(f"sentences:file:{file}")
    assert "\n" not in str(answer.value)


def test_a_long_text_is_read_no_further_than_its_first_words(monkeypatch):
    looked = []

    class Word:
        def finditer(self, text):
            for number in range(10**9):
                looked.append(number)
                yield ["word"]

    monkeypatch.setattr(sentences, "_word", Word)
    assert torch.equal(sentences.tokens(["endless"]) > 0, torch.ones(1, 24, dtype=torch.bool))
    assert len(looked) == 24


def test_two_lines_are_refused_before_training(tmp_path, capsys):
    (tmp_path / "own.txt").write_text("a cat sat\na dog ran\n")
    given = ["train", "--data", f"sentences:file:{tmp_path / 'own.txt'}", "--out", str(tmp_path / "run")]
    assert command_line.main(given) == 2
    assert "own.txt: 2 sentences, but at least 3 are needed\n" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_columns_and_length_are_those_asked_for_behind_the_path(tmp_path):
    file = tmp_path / "own.tsv"
    file.write_text("1\tthe cat sat on the mat\tpets\n2\ttea is hot\tdrinks\n", "utf-8")
    found = data.load(f"sentences:file:{file}?text=2&label=3&length=5")
    assert found.texts == ("the cat sat on the mat", "tea is hot") and found.class_names == ("drinks", "pets")
    assert found.tokens.shape == (2, 5) and "1 are cut to 5 words" in found.source
    assert torch.equal(found.tokens, sentences.tokens(found.texts)[:, :5])
    run = training.Run(data=f"sentences:file:{file}?text=2&length=5", steps=1, batch_size=2)
    assert run.step()["step"] == 1 and run.encoder.places.num_embeddings == 5
    for behind, said in (
        ("text=4", "line 1 has 3 columns, but column 4 is asked for"),
        ("text=two", "text is 'two', but the first line names '1', 'the cat sat on the mat', 'pets'"),
        ("length=0", "length is '0', but must be a whole number from 1 on"),
        ("words=9", "there is no 'words' behind a path, but text, label, length"),
    ):
        with pytest.raises(ValueError, match=said):
            data.load(f"sentences:file:{file}?{behind}")


def test_a_csv_and_a_list_of_texts_are_sentences_as_a_file_of_lines_is(tmp_path):
    (tmp_path / "own.txt").write_text("the cat, it sat\tpets\ntea is hot\tdrinks\ntea is hot\tdrinks\n")
    lines = data.load(f"sentences:file:{tmp_path / 'own.txt'}")
    (tmp_path / "own.csv").write_text(
        'text,label\n"the cat, it sat",pets\ntea is hot,drinks\ntea is hot,drinks\n'
    )
    for found in (
        data.load(f"sentences:file:{tmp_path / 'own.csv'}"),
        data.sentence_set(list(lines.texts), ["pets", "drinks", "drinks"]),
    ):
        assert found.texts == lines.texts and torch.equal(found.tokens, lines.tokens)
        assert found.class_names == lines.class_names and torch.equal(found.labels, lines.labels)
        assert "1 repeat an earlier one" in found.source
    (tmp_path / "own.jsonl").write_text('{"text": "a cat"}\n')
    with pytest.raises(ValueError, match=r"is JSON, .*data\.sentence_set\(frame\['text'\]\)"):
        data.load(f"sentences:file:{tmp_path / 'own.jsonl'}")
    for texts, said in (
        (["a cat", None], "sentence 1 is None"),
        (["..."], "0 is '...'"),
        ("a cat", "one text"),
    ):
        with pytest.raises(ValueError, match=said):
            data.sentence_set(texts)


def test_topics_may_keep_longer_sentences_and_say_how_many_they_cut(parts):
    train, _ = parts
    longer = data.load("sentences:topics?length=64")
    assert longer.texts == train.texts and longer.tokens.shape[1] == 64
    assert torch.equal(longer.tokens[:, :24], train.tokens)
    over = [sum(len(sentences.words(text)) > most for text in train.texts) for most in (24, 64)]
    assert over[0] > over[1] and f"{over[0]} are cut to 24 words" in train.source
    with pytest.raises(ValueError, match="has no split 'val'; it has train, test"):
        data.load("sentences:topics?length=64", "val")


def test_equal_sentences_are_no_negatives_of_each_other_and_an_earlier_run_keeps_them(tmp_path):
    file = tmp_path / "own.txt"
    lines = [f"a sentence on number {k % 20}" for k in range(60)]
    file.write_text("\n".join(lines), "utf-8")
    run = training.Run(data=f"sentences:file:{file}", steps=8, batch_size=8)
    assert (run.differing, run.steps_an_epoch) == (20, 2)
    for run.steps_done in range(4):
        texts = [run.data.texts[row] for row in run.batch_index().tolist()]
        assert len(set(texts)) == len(texts) == 8
    run.steps_done = 0
    run.step()
    run.save(tmp_path / "run.pt")
    assert training.resume(tmp_path / "run.pt").differing == 20
    assert training.Run(data=f"sentences:file:{file}", steps=1).batch_size == 20
    with pytest.raises(ValueError, match="batch_size is 32, but of 60 sentences only 20 differ"):
        training.Run(data=f"sentences:file:{file}", steps=1, batch_size=32).step()
    state = torch.load(tmp_path / "run.pt", weights_only=True)
    del state["distinct"]  # as it was before
    torch.save(state, tmp_path / "old.pt")
    old = training.resume(tmp_path / "old.pt")
    assert old.differing == 60
    old.save(tmp_path / "again.pt")
    assert training.resume(tmp_path / "again.pt").differing == 60


FILMS = "very good,5\nbad film,1\nquite good,5\nnot bad,1\n"
ANIMALS = "Cats sleep a lot\tanimals\n\nTea is hot\tdrinks\nDogs bark\tanimals\n"
MANY = "id\tSentence\ttopic\n1\ta cat\tx\n2\ta dog\tx\n"
NAMED = "Text\tLabel\na cat\t0\na dog\t-100\na fox\t1\n"
BREAK = "one break\x0cinside\u2028still"
JAPANESE = "猫がマットの上に座った"


@pytest.mark.parametrize(
    ("name", "text", "first", "labels", "said"),
    [
        ("a.txt", ANIMALS, "Cats sleep a lot", ["animals", "drinks", "animals"], ""),
        (
            "a.txt",
            f"{BREAK}\n한국어 문장 입니다\nДве строки\n",
            BREAK,
            [None] * 3,
            "3 sentences from the file {}",
        ),
        ("a.txt", "a cat\na dog\n" + "a cat\n" * 2, "a cat", [None] * 4, "file {}; 2 repeat an earlier one"),
        ("a.txt", "long " * 25 + "\n", "long " * 25, [None], "from the file {}; 1 are cut to 24 words"),
        ("a.txt", f"{JAPANESE}\nภาษาไทยเขียนติดกัน\n", JAPANESE, [None] * 2, "no blanks between words"),
        ("a.txt", NAMED, "a cat", ["0", None, "1"], "'text' and 'label', names the columns; 1 have no label"),
        ("a.txt", MANY, "a cat", ["x", "x"], ""),
        ("a.txt?text=2&label=3", MANY, "a cat", ["x", "x"], ""),
        ("a.txt?text=sentence&label=topic", MANY, "a cat", ["x", "x"], ""),
        ("a.txt", "a cat\t-1\na dog\t1\ntext\tnoun\n", "a cat", ["-1", "1", "noun"], "is a sentence"),
        ("a.txt", "a cat\t-1\na dog\t1\n", "a cat", ["-1", "1"], "is a sentence"),
        (
            "a.csv",
            "film,stars\n" + FILMS,
            "film",
            ["stars", *"5151"],
            "'film' with label 'stars', is a sentence",
        ),
        ("a.csv", "a film,5\n" + FILMS, "a film", [*"55151"], "5 sentences"),
        ("a.csv", "review,stars\n" + FILMS, "very good", [*"5151"], "4 sentences"),
        ("a.csv", "id,review\n1,very good\n2,bad film\n", "very good", [None, None], "2 sentences"),
        ("a.csv", "review,id\nvery good,1\nbad film,2\n", "very good", [None, None], "2 sentences"),
    ],
)
def test_a_file_s_lines_are_sentences_labels_or_names_of_columns_and_source_says_so(
    tmp_path, name, text, first, labels, said
):
    (tmp_path / name.partition("?")[0]).write_text(text, "utf-8")
    found = data.load(f"sentences:file:{tmp_path / name}")
    assert found.texts[0] == first and [(*found.class_names, None)[code] for code in found.labels] == labels
    assert said.format(tmp_path / name) in found.source
    assert ("is a sentence" in found.source) == ("is a sentence" in said)
    assert set(found.class_names) == set(labels) - {None}
    assert len(data.load(f"sentences:file:{tmp_path / name}", limit=1)) == 1


def test_a_csv_of_texts_with_empty_cells_gaps_and_row_numbers_is_read_and_said(tmp_path):
    (tmp_path / "own.csv").write_text(',text,label\n0,"a\ncat",1.0\n1,,0.0\n2,a dog,\n3,a fox,0.0\n')
    found = data.load(f"sentences:file:{tmp_path / 'own.csv'}")
    assert found.texts == ("a\ncat", "a dog", "a fox") and found.labels.tolist() == [1, -1, 0]
    assert found.class_names == ("0", "1")
    for said in ("1 without a word in their text left out, first line 4", "1 have no label"):
        assert said in found.source
    with pytest.raises(ValueError, match=r"sentence 1 is .*nan.*frame\.dropna"):
        data.sentence_set(pd.read_csv(tmp_path / "own.csv")["text"])

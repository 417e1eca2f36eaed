"""Sentences as rows of word numbers: of Python's own help topics, or of a text file of the reader's.

A word's number is a hash of its letters, from 1 to 8,191; 0 is padding. So there is no vocabulary to keep
with a run: any sentence, also one that nobody had when it was trained, has its numbers at once. The price:
some words share a number; of 3,500 different words a third do.
"""

import hashlib
import re
import unicodedata
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clutils.data.labels import codes_of, names_of_splits
from clutils.data.sets import WORD_RULE, SentenceSet, own_file, text_of, whole_number
from clutils.data.tables import NAMELESS, delimiter_of, texts_of
from clutils.settings import within

BUCKETS = 8192  # numbers of words, with 0 for padding
LENGTH = 24  # words of a sentence that are kept, where nobody asks for more
LONGEST = 1024  # words that one may ask for: attention compares each with each
SHORTEST = 4  # words: what is shorter, a heading or a name, is no sentence
SPLITS = ("train", "test")
HEADINGS = (  # what a file's first line may call its sentences, and their labels
    ("sentence", "sentences", "text", "texts", "review", "tweet", "title", "question", "document"),
    ("label", "labels", "target", "class", "category", "topic", "sentiment", "intent"),
)
NUMBERS = ("", "id", "idx", "index", "number", "nr", "no")  # columns that number the lines
PAIRS = 10  # lines, of which no two share a label, that are no toy
WORDS_OF_1 = re.compile(r"[^\W\d]\w*|\d+")  # rule 1: cut at every combining mark
JOINERS = "\u200c\u200d"  # inside words of Persian, Hindi ...
# Thai, Lao, Myanmar, Khmer, Tai, Balinese, Javanese, kana, Han: written without blanks between words
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u1b00-\u1b7f\u3040-\u30ff"
    "\u3400-\u9fff\ua980-\ua9df\uaa80-\uaadf\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff]"
)
END = re.compile(r'(?<=[.!?:])\s+(?=[A-Z"(*])')  # of a sentence: before a capital, a quotation, a bracket


def words(text: str, rule: int = WORD_RULE) -> list[str]:
    """A text's words in lower case: names and numbers, no punctuation.

    By Unicode: of the text in its compatible composed form (NFKC), a letter and what letters, digits and
    marks follow it. rule: 1 = as runs had them before: without marks, and so cut at each.
    """
    return first_words(text, None, rule)


def first_words(text: str, number: int | None, rule: int = WORD_RULE) -> list[str]:
    """The first so many of a text's `words`, or all: the rest of a long text is not looked at."""
    word, plain = (WORDS_OF_1, text) if rule == 1 else (_word(), unicodedata.normalize("NFKC", text))
    return [match[0] for match in islice(word.finditer(plain.lower()), number)]


@cache
def _word() -> re.Pattern[str]:
    planes = (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0))
    marks = "".join(re.escape(chr(c)) for c in planes if unicodedata.category(chr(c)).startswith("M"))
    return re.compile(rf"[^\W\d][\w{marks}{JOINERS}]*|\d+")


def tokens(texts: Sequence[str], rule: int = WORD_RULE, length: int = LENGTH) -> Tensor:
    """Word numbers of sentences: (N, length) int64, 0 after a sentence's end; further words are cut off.

    rule: see `words`.
    """
    within("tokens", "length", length, 1, LONGEST, whole=True)
    found = torch.zeros(len(texts), length, dtype=torch.int64)
    for row, text in zip(found, texts, strict=True):
        found_words = first_words(text, length, rule)
        own = [zlib.crc32(word.encode()) % (BUCKETS - 1) + 1 for word in found_words]
        row[: len(own)] = torch.tensor(own, dtype=torch.int64)
    return found


def by_rule(of: SentenceSet, rule: int) -> SentenceSet:
    """The same sentences with their words found by another rule: see `words`."""
    return replace(of, tokens=tokens(of.texts, rule, of.tokens.shape[1]), rule=rule)


def sentences(text: str) -> list[str]:
    """A text's sentences of four words or more: paragraphs, cut behind full stops and colons."""
    paragraphs = (" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text))
    cut = (piece for paragraph in paragraphs for piece in END.split(paragraph))
    return [sentence for sentence in cut if len(words(sentence)) >= SHORTEST]


def topics(split: str, limit: int | None, length: int = LENGTH) -> SentenceSet:
    """Sentences of `pydoc_data.topics`, the texts behind Python's help(): each with its topic as the label.

    Longer topics repeat shorter ones: a sentence stands once, with the shortest topic that has it. Of every
    topic each fourth sentence is in the test part. The texts differ between releases of Python: `source`
    tells them by a hash, and says how many are cut. length: words of a sentence that are kept.
    """
    texts, labels, names, origin = _topics()
    is_test = torch.zeros(len(labels), dtype=torch.bool)
    for label in range(len(names)):
        is_test[(labels == label).nonzero()[3::4, 0]] = True
    rows = (is_test == (split == "test")).nonzero()[:, 0][:limit]
    chosen = tuple(texts[row] for row in rows.tolist())
    what = f"{len(rows):,} sentences of the {len(names)} topics of Python's help"
    notes = [f"{what} (real; split {split}; {origin})"]
    return _made("sentences:topics", chosen, labels[rows], names, notes, length)


def sentence_set(
    texts: Iterable[str],
    labels: Tensor | np.ndarray | Sequence[int | str] | None = None,
    class_names: Sequence[str] | None = None,
    source: str = "sentences of your own",
    length: int = LENGTH,
) -> SentenceSet:
    """A `SentenceSet` of these texts: a list, or a column of a DataFrame.

    - labels, class_names: one a sentence, as of `vector_set`
    - length: words of a sentence that are kept

    `source` says how many repeat an earlier one, how many are cut, and where most letters are of a script
    without blanks between words. Raises ValueError, quoting it, where one is no text or has no word.

    >>> own = data.sentence_set(frame["review"], frame["stars"], length=64)
    """
    if isinstance(texts, str):
        raise ValueError(f"sentence_set: texts is one text, {texts[:40]!r}, but must be a list of sentences")
    found = tuple(texts)
    for at, text in enumerate(found):
        if not isinstance(text, str) or not first_words(text, 1):
            mend = (
                "; frame.dropna(subset=['text']) leaves rows without a text out"
                if hasattr(texts, "dropna")
                else ""
            )
            raise ValueError(f"sentence_set: sentence {at} is {text!r}, but must be text with a word{mend}")
    if not found:
        raise ValueError("sentence_set: texts is empty, but must hold a sentence or more")
    return _made("sentence_set", found, labels, class_names, [source], length)


def _made(
    name: str,
    texts: tuple[str, ...],
    labels: Any,
    class_names: Sequence[str] | None,
    notes: list[str],
    length: int,
) -> SentenceSet:
    codes, names = codes_of(name, labels, len(texts), class_names, "sentences")
    numbers = tokens(texts, length=length)
    if repeated := len(texts) - len(set(texts)):
        notes.append(f"{repeated:,} repeat an earlier one")
    if longer := sum(len(first_words(text, length + 1)) > length for text in texts):
        notes.append(f"{longer:,} are cut to {length} words")
    letters = "".join(texts)
    if 3 * len(UNSPACED.findall(letters)) > sum(map(str.isalpha, letters)):
        notes.append("its script has no blanks between words: put some, or a whole phrase counts as one word")
    return SentenceSet(numbers, torch.from_numpy(codes), names, texts, "; ".join(notes))


def read(path: str, split: str, limit: int | None) -> SentenceSet:
    """The sentences in a text file in UTF-8, a line each, all of them 'train'; behind a tab, the label.

    A .csv has its columns as a spreadsheet writes them. Behind the path, as in
    'FILE?text=2&label=3&length=64': which column holds the sentence and which the label, by number from 1 or
    by its name in the first line; how many words of a sentence are kept, 24 where nobody asks.

    A label that is empty, or a whole number below 0, is none, but -1 and 1 alone are two classes; 1.0 is 1.
    Rows whose text has no word are left out. A first line that names the columns, as "text" and "label", is
    left out, and says which is which. `source` tells, and what `sentence_set` says.

    Raises `Unavailable` where there is no such file; ValueError where no line has a word, where columns are
    not a sentence and its label, or where labels are numbers with a fraction or names of splits.
    """
    name, file, wanted = own_file("sentences:file", path, split, ("text", "label", "length"))
    length = whole_number(name, "length", wanted.pop("length", LENGTH))
    text = text_of(name, file)
    if file.suffix.lower() in (".json", ".jsonl") or text.lstrip().startswith(('{"', "[{", '["')):
        mend = "data.sentence_set(frame['text']) takes a column of pandas.read_json"
        raise ValueError(f"{name} is JSON, but must have a line a sentence; {mend}")
    rows = _rows(name, file, text)
    if not rows:
        raise ValueError(f"{name} holds no line with a word")
    first = [field.strip().lower() for field in rows[0][1]]
    heading, text_at, label_at = _columns(name, first, wanted)
    rows = rows[heading:]
    needed = max(text_at, (label_at or 0) if wanted else 0)
    for line, fields in rows:
        if needed >= len(fields):
            said = f"line {line} has {len(fields)} columns, but column {needed + 1} is asked for"
            raise ValueError(f"{name}: {said}")
        if len(fields) > 2 and not heading and not wanted:
            raise ValueError(
                f"{name}: line {line} has {len(fields)} columns, but must have a sentence and perhaps its "
                f"label: say which they are, as in {name}?text=2&label=3"
            )
    notes, empty = [], [line for line, fields in rows if not first_words(fields[text_at], 1)]
    if empty:
        notes.append(f"{len(empty):,} without a word in their text left out, first line {empty[0]}")
    rows = [(line, fields) for line, fields in rows if first_words(fields[text_at], 1)]
    if not rows:
        raise ValueError(f"{name} holds no sentence with a word, but {', '.join(map(repr, first))}")
    texts = tuple(fields[text_at] for _, fields in rows)
    notes.insert(0, f"{len(texts):,} sentences from the file {file}")
    if heading:
        notes.append(f"its first line, {' and '.join(map(repr, first))}, names the columns")
    label_at = len(first) if label_at is None else label_at  # where no line has a field
    given = [fields[label_at].strip() if len(fields) > label_at else "" for _, fields in rows]
    labels = _labels(name, texts, given)
    if labels is not None:
        if (
            not heading and labels.count(labels[0]) == 1 and labels[0]
        ):  # as an unusual name of a column would be
            notes.append(f"its first line, {texts[0]!r} with label {labels[0]!r}, is a sentence")
        if without := labels.count(""):
            notes.append(f"{without:,} have no label, or one below 0, which is none")
    return _made(name, texts, labels, None, notes, length).subset(slice(limit))


def _rows(name: str, file: Path, text: str) -> list[tuple[int, list[str]]]:
    """A file's rows that have a word: the line where each begins, and its fields."""
    if file.suffix.lower() != ".csv":
        rows = [(number, line.rstrip("\t").split("\t")) for number, line in enumerate(text.split("\n"), 1)]
        return [(number, fields) for number, fields in rows if first_words(" ".join(fields), 1)]
    _, mark = delimiter_of(text)
    mark = "," if mark == r"\s+" else mark
    frame = texts_of(name, text, sep=mark, header=None, skip_blank_lines=False)
    found, line = [], 1
    for fields in frame.to_numpy().tolist():
        if first_words(" ".join(fields), 1):
            found.append((line, fields))
        line += 1 + sum(field.count("\n") for field in fields)
    return found


def _labels(name: str, texts: Sequence[str], given: list[str]) -> list[str] | None:
    """Labels as texts, "" = none; None where nobody has one. Raises ValueError where they are no classes."""
    given = ["" if label.lower() in ("nan", "<na>") else label for label in given]
    classes = {label for label in given if label}
    if not classes:
        return None
    if all(re.fullmatch(r"[+-]?\d+(\.0*)?", label) for label in classes):  # pandas' 1.0 beside a gap
        given = [str(int(float(label))) if label else "" for label in given]
        classes = {label for label in given if label}
    if 2 * given.count("") > len(given):
        some = next(at for at, label in enumerate(given) if label)
        raise ValueError(
            f"{name}: {len(given) - given.count(''):,} of {len(given):,} sentences have a label, "
            f"the first {texts[some]!r} "
            f"has {given[some]!r}: give most of them one, or none"
        )
    if names_of_splits(classes):
        raise ValueError(
            f"{name}: the labels are {', '.join(sorted(classes))}, names of splits and no classes: "
            "take the lines of "
            f"one part, or say which column holds the text alone, as in {name}?text=1"
        )
    broken = [label for label in classes if re.fullmatch(r"[+-]?\d*[.,]\d+", label)]
    if len(broken) and 2 * len(broken) >= len(classes):
        raise ValueError(f"{name}: a label is {broken[0]!r}, but must be a class: a whole number or a name")
    long = sum(len(words(label)) for label in given) > 2 * len(given)
    if (2 * len(classes) > len(texts) and long) or len(classes) == len(texts) >= PAIRS:
        raise ValueError(
            f"{name}: {len(classes):,} different texts stand where the labels of {len(texts):,} "
            "lines should, as of "
            "pairs, or of numbers and sentences, but a label must be shared: say which column holds the "
            f"sentences, as in {name}?text=2"
        )
    below = {label for label in classes if re.fullmatch(r"-\d+", label)}
    if below and all(label.lstrip("-").isdecimal() for label in classes) and classes != {"-1", "1"}:
        given = ["" if label in below else label for label in given]
    return given


def _columns(name: str, first: Sequence[str], wanted: Mapping[str, str]) -> tuple[bool, int, int | None]:
    """True where a first line, in lower case, names the columns; which hold the text and the label, from 0.

    wanted: what is asked for by number, from 1, or by name. Of two columns the second may be called anything:
    no sentence with a label is one such word alone. Raises ValueError for a column that is not there.
    """
    known = [field in HEADINGS[0] for field in first]
    numbers = [field in NUMBERS or bool(NAMELESS.fullmatch(field.title())) for field in first]
    others = (field in HEADINGS[1] for at, field in enumerate(first) if not known[at] and not numbers[at])
    heading = (len(first) == 2 and known[0]) or (any(known) and all(others))
    at = {}
    for word, value in wanted.items():
        heading |= not value.isdecimal()
        if value.lower() not in first and not value.isdecimal():
            names = ", ".join(map(repr, first))
            raise ValueError(f"{name}: {word} is {value!r}, but the first line names {names}")
        at[word] = (
            first.index(value.lower()) if value.lower() in first else whole_number(name, word, value) - 1
        )
    if at:
        return heading, at.get("text", 0), at.get("label")
    text = known.index(True) if heading else 0
    label = next((at for at, field in enumerate(first) if heading and field in HEADINGS[1]), None)
    if label is None and len(first) == 2 and text == 0 and not numbers[1]:
        label = 1
    return heading, text, label if heading else 1


@cache
def _topics() -> tuple[list[str], Tensor, tuple[str, ...], str]:
    """All sentences, their labels (N,), the topics' names, and which texts these are."""
    from pydoc_data.topics import topics as all_topics

    own = {name: list(dict.fromkeys(sentences(text))) for name, text in sorted(all_topics.items())}
    home: dict[str, str] = {}
    for name in sorted(own, key=lambda name: len(own[name])):
        for sentence in own[name]:
            home.setdefault(sentence, name)
    names = tuple(name for name in own if name in set(home.values()))
    pairs = [(each, names.index(name)) for name in names for each in own[name] if home[each] == name]
    digest = hashlib.sha256("\n".join(sentence for sentence, _ in pairs).encode()).hexdigest()[:12]
    origin = f"text {digest}; it differs between releases of Python"
    return [sentence for sentence, _ in pairs], torch.tensor([label for _, label in pairs]), names, origin

"""Sentences as rows of word numbers: of Python's own help topics, or of a text file of the reader's.

A word's number is a hash of its letters, from 1 to 8,191; 0 is padding. So there is no vocabulary to keep
with a run: any sentence, also one that nobody had when it was trained, has its numbers at once. The price:
some words share a number; of 3,500 different words a third do.
"""

import hashlib
import re
import zlib
from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor

from clutils.data.sets import SentenceSet, own_file

BUCKETS = 8192  # numbers of words, with 0 for padding
LENGTH = 24  # words of a sentence that are kept
SHORTEST = 4  # words: what is shorter, a heading or a name, is no sentence
SPLITS = ("train", "test")
WORD = re.compile(r"[^\W\d]\w*|\d+")
END = re.compile(r'(?<=[.!?:])\s+(?=[A-Z"(*])')  # of a sentence: before a capital, a quotation, a bracket


def words(text: str) -> list[str]:
    """A text's words in lower case: names and numbers, no punctuation."""
    return WORD.findall(text.lower())


def tokens(texts: Sequence[str]) -> Tensor:
    """Word numbers of sentences: (N, 24) int64, 0 after a sentence's end; further words are cut off."""
    found = torch.zeros(len(texts), LENGTH, dtype=torch.int64)
    for row, text in zip(found, texts, strict=True):
        own = [zlib.crc32(word.encode()) % (BUCKETS - 1) + 1 for word in words(text)[:LENGTH]]
        row[: len(own)] = torch.tensor(own, dtype=torch.int64)
    return found


def sentences(text: str) -> list[str]:
    """A text's sentences of four words or more: paragraphs, cut behind full stops and colons."""
    paragraphs = (" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text))
    cut = (piece for paragraph in paragraphs for piece in END.split(paragraph))
    return [sentence for sentence in cut if len(words(sentence)) >= SHORTEST]


def topics(split: str, limit: int | None) -> SentenceSet:
    """Sentences of `pydoc_data.topics`, the texts behind Python's help(): each with its topic as the label.

    Longer topics repeat shorter ones: a sentence stands once, with the shortest topic that has it. Of every
    topic each fourth sentence is in the test part. The texts differ between releases of Python: `source`
    tells them by a hash.
    """
    texts, labels, names, origin = _topics()
    is_test = torch.zeros(len(labels), dtype=torch.bool)
    for label in range(len(names)):
        is_test[(labels == label).nonzero()[3::4, 0]] = True
    rows = (is_test == (split == "test")).nonzero()[:, 0][:limit]
    chosen = [texts[row] for row in rows.tolist()]
    what = f"{len(rows):,} sentences of the {len(names)} topics of Python's help"
    source = f"{what} (real; split {split}; {origin})"
    return SentenceSet(tokens(chosen), labels[rows], names, tuple(chosen), source)


def read(path: str, split: str, limit: int | None) -> SentenceSet:
    """The sentences in a text file in UTF-8, a line each, all of them 'train'; behind a tab, the label.

    Raises `Unavailable` where there is no such file; ValueError where no line has a word, or some lines have
    a label and others none.
    """
    name, file = f"sentences:file:{path}", own_file("sentences:file", path, split)
    try:
        lines = [line for line in file.read_text("utf-8-sig").splitlines() if words(line.partition("\t")[0])]
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is no text in UTF-8: {error}") from error
    if not lines:
        raise ValueError(f"{name} holds no line with a word")
    texts, _, given = zip(*(line.partition("\t") for line in lines), strict=True)
    if any(given) and not all(given):
        first = next(number for number, label in enumerate(given, 1) if not label)
        raise ValueError(f"{name}: line {first} of those with words has no label behind a tab, others have")
    classes = tuple(sorted({label.strip() for label in given if label}))
    codes = [classes.index(label.strip()) if label else -1 for label in given]
    source = f"{len(texts):,} sentences from the file {file}"
    whole = SentenceSet(tokens(texts), torch.tensor(codes), classes, texts, source)
    return whole.subset(slice(limit))


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

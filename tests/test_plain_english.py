"""Plain English, as far as it can be counted: README's size, long sentences, words, help read alone."""

import argparse
import re

import pytest

from clutils.__main__ import _parser
from clutils.course import records

README = records.ROOT / "README.md"
MOST_BYTES, MOST_WORDS = 7168, 40
GUIDES = [
    *(README, records.ROOT / "CONTRIBUTING.md", records.ROOT / "data" / "README.md"),
    *sorted((records.ROOT / "docs").glob("*.md")),
    *sorted((records.ROOT / "clutils" / "course" / "book").glob("*.md")),
]
guide = pytest.mark.parametrize("path", GUIDES, ids=lambda path: f"{path.parent.name}/{path.name}")
PLAIN = {  # a word -> what to say; code and the names of flags, settings and records are not prose
    r"pictures?": "image, or figure for a plot",
    r"accelerators?": "GPU",
    r"(?:told|tells?|telling)(?: \w+){0,2} apart": "distinguish, separate, detect",
    r"(?:taken|takes?|taking) off": "subtract",
    r"anew": "again",
    r"but for": "except",
    r"lend(?:s|ing)?|lent": "labelled neighbours",
    r"(?:stands?|standing) in for": "replace",
    r"of (?:its|their) own accord": "by itself",
    r"judged": "test images; evaluated",
    r"course of the learning rate": "learning-rate schedule",
}
PREPOSITIONS = "of|as|with|at|on|in|from|to|by|for|besides|beside|that|which|where|when|see|is|are|how|what"


def prose(text: str) -> str:
    """Markdown without code, links' targets, figures and tables' bars."""
    text = re.sub(r"```.*?```|`[^`\n]*`", " ", text, flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return text.replace("|", "\n")


def sentences(text: str) -> list[str]:
    """Its sentences: a new paragraph, a point of a list and a cell of a table begin one, too."""
    parts = re.split(r"\n\s*\n|\n\s*(?:[-*>]|\d+\.) |\n(?=#)|\n(?=\n)", prose(text))
    return [one.strip() for part in parts for one in re.split(r"(?<=[.!?])[*_]*\s+|\n", part) if one.strip()]


def commands() -> dict[str, argparse.ArgumentParser]:
    parser = _parser()
    (choices,) = (action.choices for action in parser._actions if isinstance(action.choices, dict))
    for command in choices.values():
        command.format_help()  # which asks the library for its names
    return choices


COMMANDS = commands()
OPTIONS = {
    f"{name} {' '.join(action.option_strings) or action.metavar}": action.help or ""
    for name, command in COMMANDS.items()
    for action in command._actions
    if "--help" not in action.option_strings
}


def test_readme_is_read_to_its_end():
    assert len(README.read_bytes()) <= MOST_BYTES


@guide
def test_no_sentence_of_a_guide_is_longer_than_forty_words(path):
    counted = {one: len(one.split()) for one in sentences(path.read_text("utf-8"))}
    assert not {one: n for one, n in counted.items() if n > MOST_WORDS}


@guide
def test_a_guide_uses_the_terms_of_the_field(path):
    text = prose(path.read_text("utf-8"))
    found = {say: re.findall(rf"(?i).{{0,30}}\b(?:{word})\b.{{0,20}}", text) for word, say in PLAIN.items()}
    assert not {say: those for say, those in found.items() if those}


@pytest.mark.parametrize("option", OPTIONS)
def test_each_option_of_help_begins_with_a_noun_or_a_verb_and_says_more_than_its_default(option):
    said = OPTIONS[option]
    assert said and not re.match(rf"(?i)(?:{PREPOSITIONS}|default)\b", said), said
    assert not [one for one in re.split(r"[.;:]\s", said) if len(one.split()) > MOST_WORDS], said


@pytest.mark.parametrize("option", OPTIONS)
def test_each_option_of_help_uses_the_terms_of_the_field(option):
    found = [say for word, say in PLAIN.items() if re.search(rf"(?i)(?<!-)\b(?:{word})\b", OPTIONS[option])]
    assert not found, OPTIONS[option]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_says_what_it_does_in_one_sentence(command):
    said = COMMANDS[command].description or ""
    assert 3 <= len(said.split()) <= MOST_WORDS and not re.match(rf"(?i)(?:{PREPOSITIONS})\b", said), said

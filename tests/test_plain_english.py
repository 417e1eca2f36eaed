"""Plain English, as far as it can be counted: README's size, long sentences, words, help read alone.

The words are looked for in all that a reader meets: guides, help, notebooks, and what the package says.
"""

import argparse
import ast
import json
import re
import tokenize
from io import StringIO
from pathlib import Path

import pytest

from clutils.__main__ import _parser
from clutils.course import records

README = records.ROOT / "README.md"
MOST_BYTES, MOST_WORDS = 7168, 40
CLUTILS, NOTEBOOKS = records.ROOT / "clutils", sorted((records.ROOT / "notebooks").glob("*.ipynb"))
GUIDES = [
    *(README, records.ROOT / "CONTRIBUTING.md", records.ROOT / "data" / "README.md"),
    *sorted((records.ROOT / "docs").glob("*.md")),
    *sorted((CLUTILS / "course" / "book").glob("*.md")),
]
SPEAKING = [  # whatever shows text: panels, figures, messages, the report, the book, explorers, speaker notes
    file
    for file in sorted(CLUTILS.rglob("*.*"))
    if file.suffix in (".py", ".html", ".js", ".md") and not {"mathjax", "reveal"} & set(file.parts)
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
NOT = r"(?i)(?<![-.])\b(?:{})\b"
ANY = re.compile(NOT.format("|".join(PLAIN)))
RECORDED = r"pictures ==|scale, dealt to other pictures"  # a column and a row of records, as they are named
LABELLED = {"slider", "choose", "_slider", "_switch", "_menu", "Control"}  # calls with the label of a control
PREPOSITIONS = "of|as|with|at|on|in|from|to|by|for|besides|beside|that|which|where|when|see|is|are|how|what"


def prose(text: str) -> str:
    """Markdown without code, links' targets, figures and tables' bars."""
    text = re.sub(r"```.*?```|`[^`\n]*`", " ", text, flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return text.replace("|", "\n")


def spoken(code: str) -> list[str]:
    """What Python code says to a reader: its comments and strings of several words, without code in them."""
    tree = ast.parse(code)
    inside = {id(part) for one in ast.walk(tree) if isinstance(one, ast.JoinedStr) for part in one.values}
    found = [
        one.string
        for one in tokenize.generate_tokens(StringIO(code).readline)
        if one.type == tokenize.COMMENT
    ]
    for one in ast.walk(tree):
        if isinstance(one, ast.JoinedStr):
            found.append(
                "".join(part.value if isinstance(part, ast.Constant) else "0" for part in one.values)
            )
        elif isinstance(one, ast.Constant) and isinstance(one.value, str) and id(one) not in inside:
            found.append(one.value)
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in LABELLED:
            labels = [one.args[0]] if one.func.id in ("slider", "choose") else one.args[1:2]
            found += [f"label: {part.value}" for part in labels if isinstance(part, ast.Constant)]
    arguments = r"(?m)^\s*- [\w, ]+:|^ *\w+  +\(.*|^\w+ = .*"  # names in a docstring's list
    return [re.sub(arguments, " ", prose(one)) for one in found if " " in one.strip()]


def said(path: Path) -> str:
    """The text of a file that a reader meets, a paragraph for each string."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        return "\n\n".join(spoken(text))
    if path.suffix == ".html":
        return re.sub(r"(?s)<style>.*?</style>|<script.*?</script>|<[^>]*>|{[{%].*?[}%]}|{\w+}", " ", text)
    if path.suffix == ".js":
        strings = re.findall(r""""[^"\n]*"|`[^`]*`""", re.sub(r"(?m)//.*$|\$\{[^}]*\}", "0", text))
        return "\n\n".join(one[1:-1] for one in strings if " " in one)
    return prose(text)


def not_plain(text: str) -> dict[str, list[str]]:
    """What to say -> places with the word that it replaces."""
    text = re.sub(RECORDED, " ", text)
    if not ANY.search(text):
        return {}
    found = {
        say: [text[max(0, one.start() - 30) : one.end() + 20] for one in re.finditer(NOT.format(word), text)]
        for word, say in PLAIN.items()
    }
    return {say: places for say, places in found.items() if places}


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
    assert not not_plain(said(path))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_uses_the_terms_of_the_field(path):
    found = {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        found[cell["id"]] = not_plain(
            prose(source) if cell["cell_type"] == "markdown" else "\n\n".join(spoken(source))
        )
    assert not {cell: those for cell, those in found.items() if those}


def test_what_the_package_says_uses_the_terms_of_the_field():
    found = {str(file.relative_to(CLUTILS)): not_plain(said(file)) for file in SPEAKING}
    assert not {file: those for file, those in found.items() if those}


def test_the_rule_itself():
    code = 'x = f"{n} pictures are judged"  # drawn anew, if n\ny = "pictures"\nz = slider("accelerator", y)'
    assert len(not_plain("\n".join(spoken(code)))) == 4 and not not_plain(
        prose("images; `pictures`; I judge")
    )


@pytest.mark.parametrize("option", OPTIONS)
def test_each_option_of_help_begins_with_a_noun_or_a_verb_and_says_more_than_its_default(option):
    said = OPTIONS[option]
    assert said and not re.match(rf"(?i)(?:{PREPOSITIONS}|default)\b", said), said
    assert not [one for one in re.split(r"[.;:]\s", said) if len(one.split()) > MOST_WORDS], said


@pytest.mark.parametrize("option", OPTIONS)
def test_each_option_of_help_uses_the_terms_of_the_field(option):
    assert not not_plain(OPTIONS[option])


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_says_what_it_does_in_one_sentence(command):
    said = COMMANDS[command].description or ""
    assert 3 <= len(said.split()) <= MOST_WORDS and not re.match(rf"(?i)(?:{PREPOSITIONS})\b", said), said

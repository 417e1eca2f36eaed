r"""No number of ours stands typed in a markdown cell: what was measured is printed by code.

A numeral may stand in maths ($...$: a setting, a formula), in `code`, in a reference (section, table, eq.,
notebook, arXiv, a year), in a name (CIFAR-10, conv16), or in a span that marks it as a paper's:
<span class="paper">77.38</span>.
"""

import json
import re
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
PLACE = (
    r"(?:sections?|tables?|figures?|fig\.|eqs?\.|equations?|algorithms?|propositions?|appendix|lemmas?|versions?"
    r"|steps?|notebooks?|exercises?|parts?|slides?|pages?|questions?|your turn,)"
)
REFERENCE = r"[A-Z]?\.?\d+(?:\.\d+)*[a-z]?"
VALUE = r"[-–]?[\d.,]+(?:/\d+)?"
SYMBOL = r"(?:[τταβγλσρημKkMmNnsBPWDA]|A₀|τ₀|τ⁺|s⁺|s⁻|τₐ|τ_a|A_0|d_pos|d_neg|start|share)"
ALLOWED = (
    r"(?s)```.*?```",
    r"`[^`\n]*`",
    r"(?s)\$\$.*?\$\$",
    r"(?s)\$[^$]+?\$",
    r'(?s)<span class="paper">.*?</span>',
    r"\]\([^)]*\)",  # where a link leads
    r"https?://\S+",
    r"(?m)^- \*\*Time\*\*:.*$",  # tested against the record elsewhere
    r"(?m)^#+ .*$",  # headings
    r"(?m)^\s*\d+\. ",  # an item of a list
    r"(?m)^\*\*\d+ ·",  # an exercise
    r"(?m)^\*\*\d+\.",
    r"\[\d\d\b",  # a notebook, as a link
    rf"(?i)\b{PLACE}\s+{REFERENCE}(?:(?:,| and| or| to|, and|–|-)\s*{REFERENCE})*",
    r"arXiv[ :]\d+\.\d+(?:v\d+)?",
    r"\b(?:19|20)\d\d\b",
    rf"{SYMBOL} ?(?:=|→|<|>|≤|≥|∈ \[) ?{VALUE}(?:(?:,| and| or| to|, and) {VALUE})*",  # a setting, as maths
    r"\b[A-Za-z][A-Za-z_-]*[0-9][\w.-]*",  # a name: CIFAR-10, conv16, v2
    r"\b\d/[τα-ωA-Z]",
)


def typed(source: str) -> list[str]:
    """The numerals that are left when all that may stand is taken out, each with the words around it."""
    for pattern in ALLOWED:
        source = re.sub(pattern, " ", source)
    around = ((max(0, m.start() - 30), m.end() + 20) for m in re.finditer(r"\d+", source))
    return [source[a:b].replace("\n", " ") for a, b in around]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_number_of_ours_is_typed(path):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    found = {
        cell["id"]: numbers
        for cell in cells
        if cell["cell_type"] == "markdown" and (numbers := typed("".join(cell["source"])))
    }
    assert not found, "\n".join(f"{name}: {numbers}" for name, numbers in found.items())


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("accuracy is 0.91 after 300 steps", 3),
        ("the push grows from 22 to 68 %", 2),
        ("at $\\tau = 0.5$ in section 4.2 and table 8 of arXiv 2207.07874 (2021), CIFAR-10", 0),
        ('the paper has <span class="paper">77.38</span>, see [02 · Temperature](02_x.ipynb)', 0),
        ("1. first\n2. second", 0),
    ],
)
def test_the_rule_itself(text, number):
    assert len(typed(text)) == number or (number and len(typed(text)) >= number)

"""The report as one HTML page that needs nothing else: its style and its pictures are inside."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence

from clutils.report.verdicts import BROKEN, GOOD, LOOK, UNKNOWN, Verdict

MARKS = {GOOD: "✓", LOOK: "◐", BROKEN: "✗", UNKNOWN: "?"}  # told apart without colour, too
CLASSES = {GOOD: "good", LOOK: "look", BROKEN: "broken", UNKNOWN: "unknown"}
STYLE = """
:root { color-scheme: light dark; --ink: #1d1d1f; --soft: #5c5c62; --paper: #fff; --card: #f5f5f7;
  --line: #d8d8dc; --good: #00714f; --look: #8a5a00; --broken: #b00020; --unknown: #5c5c62; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #ececf0; --soft: #a9a9b2; --paper: #17171a;
  --card: #232327; --line: #3a3a40; --good: #5fd0a6; --look: #e8b04b; --broken: #ff8a93;
  --unknown: #a9a9b2; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 66rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
.soft, figcaption { color: var(--soft); font-size: .88rem; }
.overall { display: inline-block; padding: .3rem .8rem; border-radius: .5rem; font-weight: 700;
  border: 2px solid currentColor; }
.good { color: var(--good); } .look { color: var(--look); }
.broken { color: var(--broken); } .unknown { color: var(--unknown); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .8rem 0; }
dt { color: var(--soft); } dd { margin: 0; }
.verdicts { display: grid; gap: .7rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)); }
.verdict { background: var(--card); border: 1px solid var(--line); border-left: 5px solid currentColor;
  border-radius: .5rem; padding: .6rem .8rem; break-inside: avoid; }
.verdict > * { color: var(--ink); margin: .15rem 0; }
.verdict h3 { font-size: 1rem; color: inherit; }
.verdict .value { font-weight: 600; } .verdict .soft { color: var(--soft); }
.verdict ul { padding-left: 1.1rem; font-size: .92rem; }
.pictures { display: grid; gap: 1rem; grid-auto-flow: dense;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); }
.pictures section { break-inside: avoid; min-width: 0; } .pictures h2 { margin: .8rem 0 .4rem; }
.pictures .wide { grid-column: 1 / -1; }
figure { margin: 0; } img { border-radius: .5rem; border: 1px solid var(--line); width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .5rem; border-bottom: 1px solid var(--line); }
.scroll { overflow-x: auto; } tbody th { min-width: 7.5rem; }
@media (max-width: 30rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; } }
@media print { body { max-width: none; font-size: 11pt; padding: 0; } h2 { break-after: avoid; }
  .verdicts, .pictures { grid-template-columns: 1fr 1fr; } }
"""

RANGES = (
    '<p class="soft">Expected ranges hold for the layer and the pictures that are named above. They were '
    "set on small encoders trained on generated scenes and on digits: on other pictures, trust a "
    "comparison with raw pixels and with fresh weights more than a range.</p>"
)


def page(
    title: str,
    level: str,
    facts: Mapping[str, str],
    verdicts: Sequence[Verdict],
    pictures: Mapping[str, str],
    notes: Sequence[str] = (),
    numbers: str = "",
) -> str:
    """One encoder's report.

    - facts: name -> what the file and the pictures are
    - pictures: heading -> a figure's HTML with its picture inside (`figures.page`)
    - numbers: JSON, which the page carries for programs
    """
    body = [
        f"<h1>{html.escape(title)}</h1>",
        f'<p class="overall {CLASSES[level]}">{MARKS[level]} {level}</p>',
        _facts(facts),
        "".join(f'<p class="soft">{html.escape(note)}</p>' for note in notes),
        "<h2>What was found</h2>",
        f'<div class="verdicts">{"".join(map(_card, _ordered(verdicts)))}</div>',
        "<h2>What it was read from</h2>",
        f'<div class="pictures">{_sections(pictures)}</div>',
        RANGES,
    ]
    return document(title, "\n".join(body), numbers)


def beside(
    titles: Sequence[str],
    levels: Sequence[str],
    facts: Sequence[Mapping[str, str]],
    verdicts: Sequence[Sequence[Verdict]],
    pictures: Mapping[str, str],
    numbers: str = "",
) -> str:
    """Two encoders side by side: a line for each thing that was looked at, then shared pictures."""
    head = "".join(
        f'<th>{html.escape(t)}<br><span class="{CLASSES[at]}">{MARKS[at]} {at}</span></th>'
        for t, at in zip(titles, levels, strict=True)
    )
    rows = []
    for name in dict.fromkeys(v.name for own in verdicts for v in own):
        cells = []
        for own in verdicts:
            v = next((v for v in own if v.name == name), None)
            cells.append("<td></td>" if v is None else _cell(v))
        rows.append(f"<tr><th>{html.escape(name)}</th>{''.join(cells)}</tr>")
    keys = dict.fromkeys(key for own in facts for key in own)
    for key in keys:
        cells = "".join(f"<td>{html.escape(own.get(key, ''))}</td>" for own in facts)
        rows.append(f"<tr><th>{html.escape(key)}</th>{cells}</tr>")
    body = [
        f"<h1>{html.escape(' and '.join(titles))}</h1>",
        f'<div class="scroll"><table><thead><tr><th></th>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
        "</table></div>",
        f'<h2>Side by side</h2><div class="pictures">{_sections(pictures)}</div>',
        RANGES,
    ]
    return document(" and ".join(titles), "\n".join(body), numbers)


def document(title: str, body: str, numbers: str = "") -> str:
    """A whole page around a body; it may load nothing."""
    data = numbers.replace("<", "\\u003c")
    held = f'<script type="application/json" id="numbers">{data}</script>' if numbers else ""
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>\n<body>\n{body}\n{held}</body></html>\n"
    )


def _ordered(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """What needs looking at first, otherwise in the order of the examination."""
    rank = {BROKEN: 0, LOOK: 1, GOOD: 2, UNKNOWN: 3}
    return sorted(verdicts, key=lambda v: rank[v.level])


def _facts(facts: Mapping[str, str]) -> str:
    return (
        "<dl>"
        + "".join(f"<dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd>" for k, v in facts.items())
        + "</dl>"
    )


def _card(v: Verdict) -> str:
    causes = "".join(f"<li>{html.escape(cause)}</li>" for cause in v.causes)
    causes = f'<p class="soft">Usual causes:</p><ul>{causes}</ul>' if causes else ""
    return (
        f'<div class="verdict {CLASSES[v.level]}"><h3>{MARKS[v.level]} {html.escape(v.name)}: {v.level}</h3>'
        f'<p class="value">{html.escape(v.value)}</p><p>{html.escape(v.says)}</p>'
        f'<p class="soft">Expected: {html.escape(v.expected)}</p>{causes}</div>'
    )


def _cell(v: Verdict) -> str:
    return (
        f'<td><b class="{CLASSES[v.level]}">{MARKS[v.level]} {v.level}</b><br>{html.escape(v.value)}<br>'
        f"{html.escape(v.says)}<br>"
        f'<span class="soft">Expected: {html.escape(v.expected)}{_causes(v)}</span></td>'
    )


def _causes(v: Verdict) -> str:
    return f". Usual causes: {html.escape('; '.join(v.causes))}" if v.causes else ""


def _sections(pictures: Mapping[str, str]) -> str:
    sections = []
    for name, picture in pictures.items():
        width = re.search(r'width="(\d+)"', picture)
        wide = ' class="wide"' if width and int(width[1]) > 700 else ""
        sections.append(f"<section{wide}><h2>{html.escape(name)}</h2>{picture}</section>")
    return "".join(sections)

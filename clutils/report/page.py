"""The report as one HTML page that needs nothing else: its style and its pictures are inside."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clutils.report.examination import NEIGHBOURS
from clutils.report.verdicts import BROKEN, GOOD, LOOK, UNKNOWN, Verdict

MARKS = {GOOD: "✓", LOOK: "◐", BROKEN: "✗", UNKNOWN: "?"}  # told apart without colour, too
LETTERS = "AB"  # of two files side by side
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
.summary { font-size: 1.08rem; font-weight: 600; margin: .6rem 0; }
details { border: 1px solid var(--line); border-radius: .5rem; padding: .5rem .8rem; margin: 1rem 0; }
summary { font-weight: 600; cursor: pointer; }
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
.verdict.rests { border-left-style: dashed; }
.verdict ul { padding-left: 1.1rem; font-size: .92rem; }
.pictures { display: grid; gap: 1rem; grid-auto-flow: dense;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); }
.pictures section { break-inside: avoid; min-width: 0; } .pictures h2 { margin: .8rem 0 .4rem; }
.pictures .wide { grid-column: 1 / -1; }
figure { margin: 0; } img { border-radius: .5rem; border: 1px solid var(--line); width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .5rem; border-bottom: 1px solid var(--line); }
.scroll { overflow-x: auto; } .scroll table { table-layout: fixed; min-width: 40rem; }
thead th:first-child { width: 8rem; }
@media screen and (max-width: 37.5rem) { /* two files: A above B within each line */
  .scroll table { min-width: 0; } .scroll table, .scroll thead, .scroll tbody { display: block; }
  .scroll tr { display: grid; grid-template-columns: minmax(0, 1fr); padding: .5rem 0;
    border-bottom: 2px solid var(--line); }
  .scroll th, .scroll td { border: 0; padding: .15rem 0; }
  .scroll th:empty, .scroll td:empty { display: none; }
  .scroll thead th:first-child { width: auto; }
  .scroll tbody th { font-size: 1rem; } .scroll td[data-of]::before { content: attr(data-of) ": ";
    font-weight: 700; color: var(--soft); } }
@media (max-width: 30rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; }
  .wide figure { overflow-x: auto; } .wide img { width: 38rem; max-width: none; } }
@media print { body { max-width: none; font-size: 10pt; padding: 0; } h2 { break-after: avoid; }
  .verdicts { grid-template-columns: 1fr 1fr; } .pictures { grid-template-columns: 1fr 1fr; gap: .5rem; }
  .pictures section, .verdict, tr { break-inside: avoid; } img { max-height: 22cm; object-fit: contain; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
  summary { list-style: none; } .verdict, .overall { print-color-adjust: exact;
  -webkit-print-color-adjust: exact; } .scroll { overflow: visible; }
  .scroll table { min-width: 0; } }
"""
GLOSSARY = {
    "embedding, features": "the numbers that an encoder gives for a picture; compared here by their cosine, "
    "so that length does not count",
    "kNN": f"each judged picture gets the class that its {NEIGHBOURS} nearest gallery pictures have, by "
    "cosine s and weights exp(s / 0.1); the share that comes out right",
    "linear probe": "a logistic regression on the features of labelled gallery pictures, asked about the "
    "judged, with one fixed penalty: a thermometer, not the papers' linear evaluation",
    "raw pixels, fresh weights": "the same with the pictures' own values (for the probe their principal "
    "directions), and with the same network before any training: what there is without learning",
    "chance": "the share of the largest class: what one gets who always says that",
    "nats": "how far two distributions are apart, by the divergence of normal ones; 0 = the same",
    "spread": "of an embedding's length, the part in which pictures differ",
    "effective rank": "how many directions are in use, the exponential of the entropy of the singular "
    "values' shares (Roy & Vetterli 2007; not of their squares, the variances); at most as many as features, "
    "or pictures less one",
    "dead units": "numbers of the embedding that are the same for all pictures",
    "view": "a random crop, mirrored, with other colours: what training compares",
    "alignment, uniformity": "the mean squared distance of a picture's two views (0 = they coincide); the "
    "logarithm of how crowded pictures are on the sphere (0 = all at one place, -4 = evenly spread)",
    "lead": "how far two views of a picture are more alike than two pictures: 1 = they coincide, 0 = not "
    "at all",
    "head": "the small network between features and loss, thrown away after training",
    "τ, W": "the temperature of the loss; the weight of an anchor's gradient (1 = full force, 0 = it has "
    "nothing left to learn)",
    "trustworthiness": "how far neighbours on a map are neighbours in truth; 1 = all, near 0.5 = by chance",
}

RANGES = (
    '<p class="soft">Expected ranges hold for the layer and the pictures that are named above. They were '
    "set on small encoders trained on generated scenes and on digits: on other pictures, trust a "
    "comparison with raw pixels and with fresh weights more than a range.</p>"
)


@dataclass(frozen=True)
class Head:
    """What a report opens with.

    - summary: its verdicts in a sentence or three
    - facts: name -> what the file and the pictures are; notes: what was assumed, a sentence each
    """

    title: str
    level: str
    summary: str
    facts: Mapping[str, str]
    notes: Sequence[str] = field(default=())


def page(head: Head, verdicts: Sequence[Verdict], pictures: Mapping[str, str], numbers: str = "") -> str:
    """One encoder's report.

    - pictures: heading -> a figure's HTML with its picture inside (`figures.page`)
    - numbers: JSON, which the page carries for programs
    """
    body = [
        f"<h1>{html.escape(head.title)}</h1>",
        f'<p class="overall {CLASSES[head.level]}">{MARKS[head.level]} {head.level}</p>',
        f'<p class="summary">{html.escape(head.summary)}</p>',
        _facts(head.facts),
        _notes(head.notes),
        "<h2>What was found</h2>",
        f'<div class="verdicts">{"".join(map(_card, ordered(verdicts)))}</div>',
        _glossary(),
        "<h2>What it was read from</h2>",
        f'<div class="pictures">{_sections(pictures)}</div>',
        RANGES,
    ]
    return document(head.title, "\n".join(body), numbers)


def beside(
    heads: Sequence[Head],
    verdicts: Sequence[Sequence[Verdict]],
    pictures: Mapping[str, str],
    numbers: str = "",
) -> str:
    """Two encoders side by side: a line for each thing that was looked at, then shared pictures."""
    titles = [head.title for head in heads]
    top = "".join(
        f"<th>{html.escape(h.title)}<br>"
        f'<span class="{CLASSES[h.level]}">{MARKS[h.level]} {h.level}</span></th>'
        for h in heads
    )
    cells = "".join(
        f'<td data-of="{of}"><b>{html.escape(h.summary)}</b>{_notes(h.notes)}</td>'
        for of, h in zip(LETTERS, heads, strict=True)
    )
    rows = [f"<tr><th>in short</th>{cells}</tr>"]
    for name in dict.fromkeys(v.name for own in verdicts for v in own):
        cells = []
        for of, own in zip(LETTERS, verdicts, strict=True):
            v = next((v for v in own if v.name == name), None)
            cells.append("<td></td>" if v is None else _cell(v, of))
        rows.append(f"<tr><th>{html.escape(name)}</th>{''.join(cells)}</tr>")
    keys = dict.fromkeys(key for head in heads for key in head.facts)
    for key in keys:
        told = zip(LETTERS, (head.facts.get(key, "") for head in heads), strict=True)
        cells = "".join(
            f'<td data-of="{of}">{html.escape(fact)}</td>' if fact else "<td></td>" for of, fact in told
        )
        rows.append(f"<tr><th>{html.escape(key)}</th>{cells}</tr>")
    body = [
        f"<h1>{html.escape(' and '.join(titles))}</h1>",
        f'<div class="scroll"><table><thead><tr><th></th>{top}</tr></thead><tbody>{"".join(rows)}</tbody>'
        "</table></div>",
        _glossary(),
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


def ordered(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """What needs looking at first, otherwise in the order of the examination."""
    rank = {BROKEN: 0, LOOK: 1, GOOD: 2, UNKNOWN: 3}
    return sorted(verdicts, key=lambda v: rank[v.level])


def _notes(notes: Sequence[str]) -> str:
    return "".join(f'<p class="soft">{html.escape(note[:1].upper() + note[1:])}.</p>' for note in notes)


def _glossary() -> str:
    return f"<details><summary>What the words mean</summary>{_facts(GLOSSARY)}</details>"


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
        f'<div class="verdict {CLASSES[v.level]}{" rests" if v.remark else ""}">'
        f"<h3>{MARKS[v.level]} {html.escape(v.name)}: {html.escape(v.said)}</h3>"
        f'<p class="value">{html.escape(v.value)}</p><p>{html.escape(v.says)}</p>'
        f'<p class="soft">Expected: {html.escape(v.expected)}</p>{causes}</div>'
    )


def _cell(v: Verdict, of: str) -> str:
    return (
        f'<td data-of="{of}"><b class="{CLASSES[v.level]}">{MARKS[v.level]} {html.escape(v.said)}</b><br>'
        f"{html.escape(v.value)}<br>"
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

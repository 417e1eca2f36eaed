"""A paper's sentence put to the test: a verdict that the evidence carries, kept for the claims page."""

import ast
import html
import json
import os
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import jinja2
from IPython.display import display

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "data" / "claims"
RECORDED = ROOT / "benchmarks" / "records" / "claims"
NOTEBOOKS = ROOT / "notebooks"


UNDECIDED = "not decided here"
EVIDENCE = {
    "derived": "an identity or a theorem, proved in the text and checked in numbers",
    "the paper's numbers": "its own tables or settings, computed with again",
    "constructed case": "an example made for the purpose, which a statement about all cases must survive",
    "forces": "pulls and pushes on similarities, of drawn points or of a trained encoder",
    "runs here": "small encoders trained on small images",
}
MARKS = {  # how a verdict begins -> its sign and colour
    "holds when": ("◐", "#8A5A00"),
    "holds": ("✓", "#00714F"),
    "fails": ("✗", "#B00020"),
    UNDECIDED: ("?", "#767676"),
}
UNCONTROLLED = {  # what stands for a control where a claim names none
    "derived": "none but each step's check, which no wrong formula passes",
    "the paper's numbers": "none: arithmetic on the paper's own table",
    "constructed case": "none named: one case decides a statement about all",
    "forces": "none named",
    "runs here": "none named",
}
TEXTS = {  # the text that a paper's claims are quoted from, where there is more than one
    "AttentionNCE": "the text under anonymous review for ICLR 2025",
    "MACL": "arXiv 2207.07874, as HTML",
    "PiNDA": "an early text of arXiv 2408.09929; the later one (v3, ICML 2026) was not at hand",
}
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
AGAINST = ("derived", "the paper's numbers", "constructed case")  # what alone can show that a claim fails


def test(
    paper: str,
    claim: str,
    evidence: str,
    always: bool | None,
    shown_by: str,
    when: str | None = None,
    holds_when: bool | None = None,
    control: str | None = None,
) -> str:
    """Show the verdict on a claim, as a `Card`, and write it down as JSON; returns it.

    The verdicts are "holds", "holds when …", "fails" and "not decided here". A claim fails by an identity, by
    the paper's own numbers, or by a constructed case alone: where forces or runs here find no support, it is
    not decided here.

    - paper, claim: where it is said and what, in our words; the claim starts with its place in the paper, as
      in "proposition 2: W is monotone in the temperature"
    - evidence: which kind, one of `EVIDENCE`
    - always: what the check found: True when no counter-example was found; None when it decides nothing
    - shown_by: what was checked, in a sentence, with its numbers formatted in
    - when, holds_when: a condition, and what the check found under it
    - control: of runs here, how it is known that they could have said otherwise: what a known good and a
      known bad case gave, and which difference the seeds could have detected

    The file is written to data/claims/ (CLUTILS_CLAIMS names another folder).
    Raises ValueError on an unknown kind of evidence, when a condition comes without its evidence, and on runs
    without a control.
    """
    if evidence not in EVIDENCE:
        raise ValueError(f"claims.test: evidence is {evidence!r}; there are {', '.join(EVIDENCE)}")
    if (when is None) != (holds_when is None):
        raise ValueError(f"claims.test: when = {when!r} and holds_when = {holds_when!r} go together")
    if evidence == "runs here" and not control:
        raise ValueError(f"claims.test: {claim!r} rests on runs, which need a control: it is {control!r}")
    if always:
        verdict = "holds"
    elif holds_when:
        verdict = f"holds when {when}"
    elif always is None or evidence not in AGAINST:
        verdict = UNDECIDED
    else:
        verdict = "fails"
    display(Card(paper, claim, verdict, evidence, shown_by, control))
    folder = written_to()
    folder.mkdir(parents=True, exist_ok=True)
    entry = {"paper": paper, "claim": claim, "evidence": evidence, "verdict": verdict, "shown_by": shown_by}
    text = json.dumps(entry | ({"control": control} if control else {}), indent=1, ensure_ascii=False) + "\n"
    (folder / f"{slug(paper, claim)}.json").write_text(text, "utf-8")
    return verdict


test.__test__ = False  # pytest collects functions of this name


@dataclass(frozen=True)
class Card:
    """A verdict as a notebook shows it: the sentence and the verdict, with the evidence folded under them."""

    paper: str
    claim: str
    verdict: str
    evidence: str
    shown_by: str
    control: str | None

    def __repr__(self) -> str:
        lines = [f"{self.paper}: {self.claim}", f"  verdict: {self.verdict} ({self.evidence})"]
        lines += [f"  shown by: {self.shown_by}"] + ([f"  control: {self.control}"] if self.control else [])
        return "\n".join(textwrap.fill(line, 100, subsequent_indent="    ") for line in lines)

    def _repr_html_(self) -> str:
        mark, colour = _mark(self.verdict)
        paper, claim, verdict, evidence, shown_by = map(
            html.escape, (self.paper, self.claim, self.verdict, self.evidence, self.shown_by)
        )
        control = f"<p><b>Control</b>: {html.escape(self.control)}</p>" if self.control else ""
        return (
            f'<div class="claim" id="{slug(self.paper, self.claim)}" '
            f'style="border-left: 4px solid {colour}; padding: .2em .8em">'
            f"<p>{paper}: {claim}</p><p><b>{mark} {verdict}</b></p>"
            f"<details><summary>evidence: {evidence}</summary><p>{shown_by}</p>{control}</details></div>"
        )


@dataclass(frozen=True)
class Claim:
    """A line of the claims page.

    - notebook, section, cell: where it is tested; link: to that cell, as JupyterLab takes it, from notebooks/
    - verdict, evidence, shown_by, control: None where neither this machine nor the record has run the cell;
      control also where a claim has none
    - origin: "run here", "recorded" or "not run yet"
    """

    paper: str
    claim: str
    notebook: str
    section: str
    cell: str
    link: str
    verdict: str | None
    evidence: str | None
    shown_by: str | None
    control: str | None
    origin: str


def slug(paper: str, claim: str) -> str:
    """Name of a claim's file."""
    return re.sub(r"[^a-z0-9]+", "-", f"{paper} {claim}".lower()).strip("-")[:80]


def written_to() -> Path:
    """Folder of this machine's verdicts."""
    return Path(os.environ.get("CLUTILS_CLAIMS", FOLDER))


def collect(
    notebooks: Path = NOTEBOOKS, recorded: Path | None = RECORDED, own: Path | None = None
) -> list[Claim]:
    """Claims that the notebooks' cells test, in their order, with the verdict that the cell last wrote.

    A verdict written on this machine (`own`, by default where `test` writes) goes before the recorded one.
    Which claims there are, and where, is read from the notebooks themselves, so none can be left over.
    """
    found = []
    for path in sorted(notebooks.glob("[0-9]*.ipynb")):
        for paper, claim, section, cell in _tested(path):
            name = f"{slug(paper, claim)}.json"
            verdict, origin = None, "not run yet"
            for folder, where in ((own or written_to(), "run here"), (recorded, "recorded")):
                if folder is not None and (folder / name).exists():
                    verdict, origin = json.loads((folder / name).read_text("utf-8")), where
                    break
            verdict = verdict or {}
            link = f"{path.name}#cell-id={quote(cell)}"
            found.append(
                Claim(
                    *(paper, claim, path.stem, section, cell, link),
                    *(verdict.get(key) for key in ("verdict", "evidence", "shown_by", "control")),
                    origin,
                )
            )
    return found


def same_evidence(ours: str, recorded: str) -> bool:
    """True where two sentences of evidence agree: word by word, their numbers to 2 % or the last digit.

    Numbers below 1e-9 are what rounding leaves, and are the same whatever they are.
    """
    if NUMBER.sub("#", ours) != NUMBER.sub("#", recorded):
        return False
    for mine, theirs in zip(NUMBER.findall(ours), NUMBER.findall(recorded), strict=True):
        a, b = (float(number.replace(",", "")) for number in (mine, theirs))
        digits = len(theirs.partition("e")[0].partition(".")[2])
        last = 0.0 if "e" in theirs else 10.0**-digits
        if max(abs(a), abs(b)) > 1e-9 and abs(a - b) > max(0.02 * abs(b), 1.01 * last):
            return False
    return True


def anchors(notebooks: Path = NOTEBOOKS) -> dict[str, str]:
    """Id of a cell that tests a claim -> the id of its first card in the cell's output."""
    found: dict[str, str] = {}
    for claim in collect(notebooks, recorded=None):
        found.setdefault(claim.cell, slug(claim.paper, claim.claim))
    return found


def page(claims: list[Claim] | None = None) -> str:
    """Claims as an HTML table, a block for each paper, each line linked to the cell that shows it."""
    claims = collect() if claims is None else claims
    template = jinja2.Template(Path(__file__).with_suffix(".html").read_text("utf-8"), autoescape=True)
    papers = dict.fromkeys(c.paper for c in claims)
    return template.render(claims=claims, papers=papers, texts=TEXTS, mark=_mark, uncontrolled=UNCONTROLLED)


def _mark(verdict: str | None) -> tuple[str, str]:
    """Sign and colour of a verdict, of which None is not run yet."""
    return next(look for begins, look in MARKS.items() if (verdict or UNDECIDED).startswith(begins))


def _tested(path: Path) -> list[tuple[str, str, str, str]]:
    """(paper, claim, section, cell's id) of each `claims.test(paper, claim, ...)` in a notebook, in order."""
    section, found = "", []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            headings = re.findall(r"^#+ +(?:▸ )?(.+)$", source, flags=re.MULTILINE)
            if headings and "answer" not in cell["metadata"].get("tags", []):  # 'The answer in figures'
                section = headings[-1].strip()
            continue
        if "claims.test(" not in source:
            continue
        calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
        for call in sorted(calls, key=lambda node: node.lineno):
            if ast.unparse(call.func) != "claims.test":
                continue
            try:
                paper, claim = (ast.literal_eval(argument) for argument in call.args[:2])
            except ValueError as error:
                raise ValueError(
                    f"claims: {path.name}: paper and claim must be plain strings in "
                    f"{ast.unparse(call)[:120]}: the claims page reads them from the cell"
                ) from error
            found.append((paper, claim, section, cell.get("id", "")))
    return found

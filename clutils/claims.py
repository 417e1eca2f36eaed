"""A paper's sentence put to the test: a verdict that the evidence carries, kept for the claims page."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "data" / "claims"


def test(
    paper: str,
    claim: str,
    always: bool,
    shown_by: str,
    when: str | None = None,
    holds_when: bool | None = None,
) -> str:
    """Print the verdict on a claim and write it down as JSON; returns "holds", "holds when …" or "fails".

    - paper, claim: where it is said and what, in our words
    - always: what the check found: True when no counter-example was found
    - shown_by: what was checked, in a sentence, with its numbers formatted in
    - when, holds_when: a condition, and what the check found under it

    The file is written to data/claims/ (CLUTILS_CLAIMS names another folder).
    Raises ValueError when a condition comes without its evidence.
    """
    if (when is None) != (holds_when is None):
        raise ValueError(f"claims.test: when = {when!r} and holds_when = {holds_when!r} go together")
    if always:
        verdict = "holds"
    elif holds_when:
        verdict = f"holds when {when}"
    else:
        verdict = "fails"
    print(f"{paper}: {claim}\n  verdict: {verdict}\n  shown by: {shown_by}")
    folder = Path(os.environ.get("CLUTILS_CLAIMS", FOLDER))
    folder.mkdir(parents=True, exist_ok=True)
    slug = re.sub(r"[^a-z0-9]+", "-", f"{paper} {claim}".lower()).strip("-")[:80]
    entry = {"paper": paper, "claim": claim, "verdict": verdict, "shown_by": shown_by}
    (folder / f"{slug}.json").write_text(json.dumps(entry, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return verdict


test.__test__ = False  # pytest collects functions of this name

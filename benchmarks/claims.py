"""Record the verdict on each claim that the notebooks test, for the claims page of a fresh clone.

    python benchmarks/claims.py [NOTEBOOK ...]

Runs each notebook that tests one from a clean kernel, in full, and keeps what its cells write in
benchmarks/records/claims/. What no cell tests any more is removed.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from clutils.course import claims


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: all that test a claim")
    options = parser.parse_args()
    tested = {claim.notebook for claim in claims.collect()}
    paths = options.notebooks or [claims.NOTEBOOKS / f"{stem}.ipynb" for stem in sorted(tested)]
    for path in paths:
        notebook = nbformat.read(path, 4)
        client = NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": str(path.parent)}})
        client.execute(env=os.environ | {"CLUTILS_CLAIMS": str(claims.RECORDED)})
    known = {f"{claims.slug(claim.paper, claim.claim)}.json" for claim in claims.collect()}
    for file in claims.RECORDED.glob("*.json"):
        if file.name not in known:
            file.unlink()
    for claim in claims.collect(own=claims.RECORDED):
        print(f"{claim.notebook[:2]}  {claim.verdict or 'NOT RUN':30}  {claim.paper}: {claim.claim}")


if __name__ == "__main__":
    main()

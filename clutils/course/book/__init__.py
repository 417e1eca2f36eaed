"""The course as a static site and as slides: `python -m clutils book`, `slides` and `site`.

`running` executes the notebooks once and keeps them, `pages` writes what Sphinx reads (its configuration is
`conf.py`), `slides` the decks, `front` the page that the book opens with, `stage` the notebook that a
lecturer opens. In `static` lie MathJax 3.2.2 and reveal.js 5.2.1, each with its licence: a site that opens
from the disk has no network.
"""

"""Parts of the course's notebooks: a folder each, and what several of them share.

Shared: `check` (both sides of an equation), `claims`, `records`, `experiments`, `toys`,
`exercise`, `panels` and `live` (sliders joined to a figure), `sphere` and `forces`. A notebook opens with the
library's names, those of the shared ones that it needs, and its own folder as `lesson`:

    from clutils.course import check, claims
    from clutils.course import macl as lesson

Nothing outside this folder imports from it or imports ipywidgets; `commands` are found by their names.
"""

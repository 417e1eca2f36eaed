"""Sphinx's configuration of the book; what it reads is written by `pages.write`."""

from pathlib import Path

from clutils import __version__
from clutils.course.book import pages

project, author, copyright = "Contrastive learning", "the authors of clutils", "the authors of clutils, MIT"
release = __version__
extensions = ["myst_nb", "sphinx.ext.mathjax", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]

autodoc_default_options = {"members": True, "member-order": "bysource", "ignore-module-all": True}
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
viewcode_follow_imported_members = False  # else a method taken from a class leads to that class's page
python_use_unqualified_type_names = True

nb_execution_mode = "off"  # `running` did that
nb_render_markdown_format = "myst"  # of outputs: tables and formulas, as in the cells
nb_ipywidgets_js = {}
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
myst_dmath_double_inline = True
myst_update_mathjax = False  # else every element of class "math" alone is looked at, and no output
suppress_warnings = ["mystnb.unknown_mime_type", "myst.header", "toc.not_included", "autodoc"]

mathjax_path = "mathjax/tex-svg.js"
mathjax3_config = {
    "options": {"ignoreHtmlClass": "tex2jax_ignore", "processHtmlClass": "math", "enableMenu": False},
    "svg": {"fontCache": "global"},
}

html_theme = "sphinx_book_theme"
html_title = "Contrastive learning"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["book.css"]
html_js_files = [("questions.js", {"defer": "defer"}), ("reading.js", {"defer": "defer"})]
html_use_index = False
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # fetched, which a browser refuses from the disk
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navbar_persistent": [],
    "show_toc_level": 2,
    "use_download_button": False,
    "use_fullscreen_button": False,
}


def setup(app):
    app.connect("html-page-context", pages.link_code)
    app.connect("autodoc-process-docstring", pages.restructured)

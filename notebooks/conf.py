"""Sphinx's settings for the book: `sphinx-build -W --keep-going -j auto notebooks build/book` writes it, offline.

Nothing is executed here. The tests run every page and every notebook and compare what they print with what is stored;
the book shows what is stored.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

from sphinx.application import Sphinx

import rote

project = "Rote"
author = "The Rote authors"
copyright = author
version = release = rote.__version__
addresses = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]["urls"]

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
exclude_patterns = ["apps", "pictures", "_templates", "_static"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_js_files = ["copy.js"]
html_logo = "_static/logo.svg"

myst_enable_extensions = []  # equations are text, for MathJax would come from the network
myst_heading_anchors = 4
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # no notebook has a widget, and they would be fetched from the network

# Links to other projects need their lists of names from the network: ROTE_BOOK_ONLINE=1 makes them.
if os.environ.get("ROTE_BOOK_ONLINE"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "mpi4py": ("https://mpi4py.readthedocs.io/en/stable", None),
    }

default_role = "py:obj"  # in docstrings, `name` is a link where the name is public, and code elsewhere
autodoc_default_options = {
    "members": True,
    "inherited-members": "ndarray, Exception, tuple",
    "exclude-members": "__init__, __new__",
}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"npt.DTypeLike": "DTypeLike", "GridLike": "GridLike", "LayoutLike": "LayoutLike"}
python_use_unqualified_type_names = True
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_ivar = True
maximum_signature_line_length = 88

html_theme = "sphinx_book_theme"
html_title = f"Rote {release}"
html_baseurl = addresses["Documentation"]
html_theme_options = {
    "icon_links": [
        {"name": "Repository", "url": addresses["Repository"], "icon": "fa-solid fa-code-branch"},
        {"name": "Issues", "url": addresses["Issues"], "icon": "fa-solid fa-circle-question"},
    ],
    "show_toc_level": 2,
    "collapse_navbar": True,  # or every page would hold the names of all others
    "navbar_persistent": [],  # the sidebar has the search
    "use_download_button": False,
}
toc_object_entries_show_parents = "hide"
html_copy_source = False
html_show_copyright = False


def toctrees(app: Sphinx, name: str, source: list[str]) -> None:
    """Make a toctree of the links below each heading of the first page, which readers without Sphinx follow."""
    if name != "index":
        return
    first, *sections = source[0].split("\n## ")
    parts = [first]
    for section in sections:
        title, _, body = section.partition("\n")
        pages = [re.sub(r"\.\w+$", "", page) for page in re.findall(r"^- \[.*?\]\((.*?)\)", body, re.MULTILINE)]
        tree = "\n".join(["```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```", ""])
        parts.append(f"{section}\n\n{tree}")
    source[0] = "\n## ".join(parts)


def setup(app: Sphinx) -> None:
    """Sphinx calls this before it reads a page."""
    app.connect("source-read", toctrees)

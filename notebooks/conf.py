"""Sphinx's settings for the book: `sphinx-build -W --keep-going -j auto notebooks build/book` writes it, without network.

Nothing is executed here. The tests run every page and every notebook and compare what they print with what is stored;
the book shows what is stored.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

import rote

BOOK = Path(__file__).parent

project = "Rote"
author = "The Rote authors"
copyright = author
version = release = rote.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
exclude_patterns = ["apps", "pictures", "_templates"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence"]
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
autosummary_imported_members = True
autodoc_default_options = {"members": True, "inherited-members": "ndarray, Exception, tuple", "exclude-members": "__init__, __new__"}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"npt.DTypeLike": "DTypeLike", "GridLike": "GridLike", "LayoutLike": "LayoutLike"}
python_use_unqualified_type_names = True
autodoc_class_signature = "mixed"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
maximum_signature_line_length = 88

html_theme = "sphinx_book_theme"
html_title = f"Rote {release}"
html_theme_options = {"show_toc_level": 2, "home_page_in_toc": False, "collapse_navbar": True, "use_download_button": False}
html_copy_source = False
html_show_copyright = False
linkcheck_timeout = 20


def toctrees(app: Sphinx, name: str, source: list[str]) -> None:
    """Make a toctree of the links below each heading of the first page, where they stand for readers without Sphinx.

    A line in a comment is of a page that is still to come: it counts once the page is there.
    """
    if name != "index":
        return
    text = re.sub(r"<!-- (- \[.*?\]\((.*?)\).*?) -->", lambda m: m[1] if (BOOK / m[2]).exists() else "", source[0])
    first, *sections = text.split("\n## ")
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

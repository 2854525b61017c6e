"""The book: its first page names every page, and its reference every public name."""

from __future__ import annotations

import importlib
import re
from pkgutil import resolve_name
from types import ModuleType

from house import ROOT
from test_house_docstrings import REFERENCE, described, listed, listed_only, methods_of, names_of, public

import rote

BOOK = ROOT / "notebooks"
FIRST = (BOOK / "index.md").read_text("utf-8")

# Public name -> why it has no entry.
UNLISTED = {
    "rote.errors.counted": "words for the errors themselves",
    "rote.errors.deprecated": "for those who change Rote",
    "rote.array_api.lib": "NumPy's name of a module, which xarray looks up",
}

# Modules that the door does not name, but that users import.
BESIDE = ("rote.testing", "rote.array_api", "rote.array_api.fft", "rote.array_api.linalg", "rote.compat.mpi4py_fft")
BESIDE += ("rote.jax",)


def offered() -> dict[str, object]:
    """Every public name with its value: those of the door, of its modules, and of modules beside it."""
    names = dict(public())
    for home in BESIDE:
        module = importlib.import_module(home)
        those = names_of(module) if hasattr(module, "__all__") else [n for n in dir(module) if not n.startswith("_")]
        names |= {f"{home}.{name}": getattr(module, name) for name in those}
    constants = (int, float, type(None), type)  # of the array API: NumPy's numbers and dtypes
    return {
        name: value
        for name, value in names.items()
        if name not in UNLISTED
        and not isinstance(value, ModuleType)
        and not (name.startswith("rote.array_api.") and (isinstance(value, constants) or hasattr(value, "itemsize")))
    }


def missing(names: dict[str, object], text: str) -> list[str]:
    """The names without an entry, neither under this name nor under another of the same thing."""
    entries = set(listed(text))
    things = {id(resolve_name(name)) for name in entries}
    return [name for name, value in names.items() if name not in entries and id(value) not in things]


def linked(page: str) -> list[str]:
    """The pages that the first page has a line for."""
    return re.findall(r"^- \[.*?\]\((.*?)\)", page, re.MULTILINE)


def test_every_public_name_has_an_entry() -> None:
    """No public name is missing in the reference."""
    assert len(offered()) > 200
    assert missing(offered(), REFERENCE) == []


def test_every_entry_is_a_public_name() -> None:
    """The reference names nothing that is not there, and nothing twice: names, methods, and classes of results."""
    entries = list(listed(REFERENCE))
    results = {name for name, value in listed_only().items() if isinstance(value, type)}
    assert sorted(entries) == sorted(set(entries))
    assert [name for name in entries if name not in offered() | described() and name not in results] == []


def test_the_tasks_of_a_tensor_name_every_method() -> None:
    """Its tables name each method and property of a tensor."""
    methods = {f"rote.DistTensor.{name}" for name, _ in methods_of(rote.DistTensor)}
    assert {name for name in listed(REFERENCE) if name.startswith("rote.DistTensor.")} == methods


def test_the_book_needs_no_network() -> None:
    """Equations are text: MathJax would be fetched from elsewhere. Nothing else that the book shows is."""
    assert "dollarmath" not in (BOOK / "conf.py").read_text("utf-8")
    shown = "\n".join(path.read_text("utf-8") for path in (*BOOK.glob("*.md"), *BOOK.glob("_static/*")))
    assert "$$" not in shown
    assert not re.search(r"!\[[^\]]*\]\(https?:|(?:src|href|url)[=(][\"']?https?:", shown)


def test_a_page_says_for_whom_it_is_and_where_to_go_next() -> None:
    """A reader knows after the first paragraphs whether to read on, and at the end has a link to go on with."""
    for path in BOOK.glob("*.md"):
        page = path.read_text("utf-8")
        assert "This page is for" in page[:700] or path.name == "index.md", path.name
        end = page.rpartition("\n## ")[2]
        assert (end.startswith("Where to go next\n\n") and ".md" in end) or path.name == "index.md", path.name


def test_the_first_page_names_every_page() -> None:
    """A guide, a notebook or a list that it does not name would be found by nobody; one that is named twice, twice."""
    pages = {path.name for path in (*BOOK.glob("*.md"), *BOOK.glob("*.ipynb"))} - {"index.md"}
    assert len(pages) > 10
    assert pages - set(linked(FIRST)) == set()
    assert len(linked(FIRST)) == len(set(linked(FIRST)))

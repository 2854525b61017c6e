"""The book: its first page names every page, and its reference every public name."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from operator import attrgetter
from types import ModuleType

from house import ROOT
from test_house_docstrings import names_of, public

BOOK = ROOT / "notebooks"
FIRST = (BOOK / "index.md").read_text("utf-8")
REFERENCE = "\n".join((BOOK / name).read_text("utf-8") for name in ("reference.md", "array-api.md"))

# Public name -> why it has no entry.
UNLISTED = {
    "rote.errors.counted": "words for the errors themselves",
    "rote.errors.deprecated": "for those who change Rote",
    "rote.array_api.lib": "NumPy's name of a module, which xarray looks up",
}

# Modules that the door does not name, but that users import.
BESIDE = ("rote.testing", "rote.array_api", "rote.array_api.fft", "rote.array_api.linalg", "rote.compat.mpi4py_fft")


def listed(text: str) -> Iterator[str]:
    """The full names that the directives of a page make entries of: summaries, data, and members of a module."""
    for fence in re.findall(r"^```\{eval-rst\}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        module = ""
        for directive in re.split(r"^\.\. ", fence, flags=re.MULTILINE):
            kind, _, rest = directive.partition("::")
            lines = rest.splitlines() or [""]
            named = re.search(r"^   :members: (.*(?:\n {6}.*)*)", rest, re.MULTILINE)
            match kind:
                case "currentmodule" | "automodule":
                    module = lines[0].strip()
                    yield from (f"{module}.{name}" for name in re.findall(r"\w+", named[1] if named else ""))
                case "autosummary":
                    yield from (f"{module}.{line.strip()}" for line in lines if re.fullmatch(r" {3}\w[\w.]*", line))
                case "py:data":
                    yield f"{module}.{lines[0].strip()}"


def value_of(name: str) -> object:
    """The value of a full name, which may lie in a module that nobody has imported yet."""
    home = next(module for module in (*BESIDE[::-1], "rote") if name.startswith(f"{module}."))
    return attrgetter(name.removeprefix(f"{home}."))(importlib.import_module(home))


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
    things = {id(value_of(name)) for name in entries}
    return [name for name, value in names.items() if name not in entries and id(value) not in things]


def linked(page: str) -> list[str]:
    """The pages that the first page has a line for."""
    return re.findall(r"^- \[.*?\]\((.*?)\)", page, re.MULTILINE)


def test_every_public_name_has_an_entry() -> None:
    """No public name is missing in the reference."""
    assert len(offered()) > 200
    assert missing(offered(), REFERENCE) == []


def test_every_entry_is_a_public_name() -> None:
    """The reference names nothing that is not there, and nothing twice."""
    entries = list(listed(REFERENCE))
    assert sorted(entries) == sorted(set(entries))
    assert [name for name in entries if name not in offered()] == []


def test_the_first_page_names_every_page() -> None:
    """A guide, a notebook or a list that it does not name would be found by nobody; one that is named twice, twice."""
    pages = {path.name for path in (*BOOK.glob("*.md"), *BOOK.glob("*.ipynb"))} - {"index.md"}
    assert len(pages) > 10
    assert pages - set(linked(FIRST)) == set()
    assert len(linked(FIRST)) == len(set(linked(FIRST)))

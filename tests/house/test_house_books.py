"""The books of the house: none imports more than it may, and each keeps its budget."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from textwrap import dedent

from books import BOOKS, DOORS, book_of, sizes
from house import ROOT, files, module_name
from test_house_walls import all_imports, imports, within

CORE_TESTS = ["grammar", "layout", "machines", "compiler", "execute", "runtime"]  # folders that `.ci/run core` runs


def test_every_room_of_a_book_is_there() -> None:
    """The table names no room that does not exist."""
    modules = {module_name(path) for path in files()}
    rooms = {room for book in BOOKS.values() for room in book.rooms}
    assert rooms <= modules


def test_no_arrow_leaves_a_book_but_to_those_it_may_import() -> None:
    """A book imports others as the table says, and of those above it the doors alone."""
    wrong = []
    for module, imported in all_imports():
        if module in DOORS or not within(imported.target, "rote"):
            continue

        book, other = book_of(module), book_of(imported.target)
        doors = BOOKS[other].doors
        if other not in (book, *BOOKS[book].may) and not any(within(imported.target, door) for door in doors):
            wrong.append(f"{module} of {book} imports {imported.target} of {other}")
    assert wrong == []


def test_every_book_keeps_its_budget() -> None:
    """Lines of code, without docstrings, comments and blank lines."""
    assert {name: size for name, size in sizes().items() if size > BOOKS[name].budget} == {}


def asked(program: str) -> Iterator[str]:
    """The names of Rote that a program asks for: by imports, as `rote.NAME`, and in programs that it has as texts.

    >>> sorted(asked("import rote\\nfrom rote import fft\\nrote.save(x)\\nmpirun(2, 'import rote.cli')"))
    ['rote', 'rote.cli', 'rote.fft', 'rote.save']
    """
    source = ast.parse(program)
    yield from (found.target for found in imports(source, "test", False) if within(found.target, "rote"))
    for node in ast.walk(source):
        match node:
            case ast.Attribute(ast.Name("rote"), name):
                yield f"rote.{name}"
            case ast.Constant(str(text)) if "rote" in text:
                with suppress(SyntaxError):  # most texts are no programs
                    yield from asked(dedent(text))


def test_tests_of_the_core_ask_no_other_book() -> None:
    """They run where the other books are deleted; what tests a tensor, or a transform, has a folder of its own."""
    doors = [found.target for module, found in all_imports() if module == "rote"]
    homes = {f"rote.{target.rpartition('.')[2]}": target for target in doors}

    wrong = []
    for path in (path for folder in CORE_TESTS for path in sorted((ROOT / "tests" / folder).glob("*.py"))):
        names = {name: homes.get(name, name) for name in asked(path.read_text("utf-8"))}
        asks = [name for name, home in names.items() if book_of(home) not in ("core", "testing")]
        wrong += [f"{path.relative_to(ROOT)} asks {name} of {book_of(names[name])}" for name in asks]
    assert wrong == []

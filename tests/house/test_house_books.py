"""The books of the house: none imports more than it may, and each keeps its budget."""

from __future__ import annotations

from books import BOOKS, DOORS, book_of, sizes
from house import files, module_name
from test_house_walls import all_imports, within


def test_every_room_of_a_book_is_there() -> None:
    """The table names no room that does not exist."""
    modules = {module_name(path) for path in files()}
    rooms = {room for book in BOOKS.values() for room in book.rooms}
    assert rooms - modules <= {"rote.linalg"}  # for which a place is kept


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

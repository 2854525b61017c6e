"""CONTRIBUTING.md is true: its rooms are the house's and stand in order, its paths exist, its counts of files hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest
from house import PACKAGES, ROOT, files, module_name, tree
from test_house_walls import all_imports

PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
PATH = re.compile(r"`([\w./-]*(?:/|\.(?:py|md|lark|txt|ipynb)))`")


def rows(page: str) -> list[list[str]]:
    """The rooms of the table, row by row."""
    lines = re.findall(r"^\| (`.*?`) \| .* \|$", page, re.MULTILINE)
    return [rooms for line in lines if (rooms := PATH.findall(line))]  # another table names no room


def homes(table: list[list[str]]) -> dict[str, int]:
    """The row of each room, by the name under which it is imported."""
    return {room_module(room): number for number, row in enumerate(table) for room in row}


def row_of(module: str, rooms: dict[str, int]) -> int | None:
    """The row in which a module is: that of the innermost room that holds it."""
    while module and module not in rooms:
        module = module.rpartition(".")[0]
    return rooms.get(module)


@cache
def room_module(room: str) -> str:
    """The name under which a room is imported."""
    folder = room.rstrip("/")
    return PACKAGES[folder] if folder in PACKAGES else module_name(folder)


def backward(table: list[list[str]]) -> list[str]:
    """Every import that leads from a room to one below it in the table."""
    wrong, rooms = [], homes(table)
    for module, found in all_imports():
        source, target = row_of(module, rooms), row_of(found.target, rooms)
        through_the_door = module == "rote" or (found.target.count(".") == 1 and target is None)
        if through_the_door or source is None or target is None:
            continue
        if target > source:
            wrong.append(f"{module} imports {found.target}")
    return wrong


@cache
def constants(path: str) -> list[str]:
    """The texts in a file's code; no docstrings, and names that it exports as such."""
    return [*_constants(path)]


def _constants(path: str) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        exported = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        if exported or (isinstance(node, ast.AugAssign) and ast.unparse(node.target) == "__all__"):
            yield from (f"exported {each.value}" for each in ast.walk(node.value) if isinstance(each, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def naming(word: str) -> set[str]:
    """The files in whose code a word stands as a text of its own."""
    exporting = {path for path in files() if f"exported {word}" in constants(path)}
    return {path for path in files() if constants(path).count(word) > (path in exporting)}


def section(title: str) -> str:
    """A section of the page."""
    return PAGE.split(f"## How to add a {title}\n")[1].split("\n## ")[0]


def test_every_path_exists() -> None:
    """A path of the page is a file or a folder of the repository."""
    for path in {*PATH.findall(PAGE)}:
        assert (ROOT / path).exists(), path
        assert (ROOT / path).is_dir() == path.endswith("/"), path


def test_every_file_is_in_a_room() -> None:
    """The table forgets no file of the three packages; the door alone stands outside."""
    rooms = homes(rows(PAGE))
    assert [path for path in files() if row_of(module_name(path), rooms) is None] == ["rote/__init__.py"]


def test_every_room_is_a_folder_or_a_module() -> None:
    """And every folder of modules is a room, or in one."""
    table = rows(PAGE)
    assert len(table) > 15
    assert [room for row in table for room in row if not (ROOT / room).exists()] == []


def test_rooms_stand_on_those_above() -> None:
    """Every import of the house leads up the table, or stays in its room."""
    assert backward(rows(PAGE)) == []


MPI4PY = {"rote/runtime/comm/threads.py"}  # which has mpi4py's calls by their names
RECIPES = [("distribution kind", "floor", 6), ("method of exchange", "sendrecv", 2), ("step kind", "scatter", 3)]


@pytest.mark.parametrize(("title", "word", "count"), RECIPES)
def test_a_recipe_names_the_files_that_name_its_example(title: str, word: str, count: int) -> None:
    """The numbered files are as many as said, each has the example in it, and no other file's code names it."""
    numbered = re.findall(r"^\d\. `([^`]+)`", section(title), re.MULTILINE)
    said = {2: "Two", 3: "Three", 6: "Six"}[count]
    assert section(title).strip().startswith(f"{said} files")
    assert len(numbered) == count
    assert [path for path in numbered if word not in (ROOT / path).read_text("utf-8").lower()] == []
    assert naming(word) - MPI4PY <= set(numbered)


def test_the_house_is_on_half_a_page() -> None:
    """A description that has grown is none."""
    house = PAGE.split("## The house")[1].split("\n## ")[0]
    assert len(house.splitlines()) < 50

"""CONTRIBUTING.md is true: its rooms are the house's and stand in order, its paths exist, its counts of files hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from house import PACKAGES, ROOT, files, module_name, tree
from test_house_walls import all_imports, within

PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
PATH = re.compile(r"`([\w./-]*(?:/|\.(?:py|md|lark|txt|ipynb)))`")

# Arrows that run back, as the page says: methods that call what is above them. Importing module -> what it imports.
BACK = {
    "rote.layout.layout": ["rote.layout.distribution", "rote.html"],
    "rote.layout.distribution": ["rote.html"],
    "rote.compiler.plan": ["rote.plot", "rote.html"],
    "rote.tensor.methods": ["rote.array_api"],
}


def rows(page: str) -> list[list[str]]:
    """The rooms of the table, row by row."""
    lines = re.findall(r"^\| (`.*?`) \| .* \|$", page, re.MULTILINE)
    return [rooms for line in lines if (rooms := PATH.findall(line))]  # another table names no room


def row_of(module: str, table: list[list[str]]) -> int | None:
    """The row in which a module is: that of the innermost room that holds it."""
    rooms = [(room_module(room), number) for number, row in enumerate(table) for room in row]
    holding = [(len(room), number) for room, number in rooms if within(module, room)]
    return max(holding)[1] if holding else None


def room_module(room: str) -> str:
    """The name under which a room is imported."""
    folder = room.rstrip("/")
    return PACKAGES[folder] if folder in PACKAGES else module_name(folder)


def backward(table: list[list[str]]) -> list[str]:
    """Every import that leads from a room to one below it in the table."""
    wrong = []
    for module, found in all_imports():
        source, target = row_of(module, table), row_of(found.target, table)
        through_the_door = module == "rote" or (found.target.count(".") == 1 and target is None)
        if through_the_door or source is None or target is None:
            continue
        if target > source and not any(within(found.target, place) for place in BACK.get(module, [])):
            wrong.append(f"{module} imports {found.target}")
    return wrong


def constants(path: str) -> Iterator[str]:
    """The texts in a file's code; no docstrings, and no names that it exports."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            yield from (f"exported {each.value}" for each in ast.walk(node.value) if isinstance(each, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def naming(word: str) -> set[str]:
    """The files in whose code a word stands as a text of its own."""
    exporting = {path for path in files() if f"exported {word}" in constants(path)}
    return {path for path in files() if list(constants(path)).count(word) > (path in exporting)}


def section(title: str) -> str:
    """A section of the page."""
    return PAGE.split(f"## How to add a {title}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("path", sorted(set(PATH.findall(PAGE))))
def test_every_path_exists(path: str) -> None:
    """A path of the page is a file or a folder of the repository."""
    assert (ROOT / path).exists()
    assert (ROOT / path).is_dir() == path.endswith("/")


def test_every_file_is_in_a_room() -> None:
    """The table forgets no file of the three packages; the door alone stands outside."""
    table = rows(PAGE)
    homes = {path: row_of(module_name(path), table) for path in files()}
    assert [path for path, row in homes.items() if row is None] == ["rote/__init__.py"]


def test_every_room_is_a_folder_or_a_module() -> None:
    """And every folder of modules is a room, or in one."""
    table = rows(PAGE)
    assert len(table) > 15
    assert [room for row in table for room in row if not (ROOT / room).exists()] == []


def test_rooms_stand_on_those_above() -> None:
    """Every import of the house leads up the table, or stays in its room."""
    assert backward(rows(PAGE)) == []


def test_arrows_that_run_back_are_there() -> None:
    """The page excuses no arrow that does not exist."""
    arrows = [(module, target) for module, targets in BACK.items() for target in targets]
    assert [
        arrow for arrow in arrows if not any(n == arrow[0] and within(f.target, arrow[1]) for n, f in all_imports())
    ] == []


def test_a_room_out_of_order_is_seen() -> None:
    """The test of the order can fail: upside down, the house falls."""
    assert len(backward(rows(PAGE)[::-1])) > 100


RECIPES = [("distribution kind", "floor", 6), ("method of exchange", "sendrecv", 2), ("step kind", "scatter", 4)]


@pytest.mark.parametrize(("title", "word", "count"), RECIPES)
def test_a_recipe_names_the_files_that_name_its_example(title: str, word: str, count: int) -> None:
    """The numbered files are as many as said, each has the example in it, and no other file's code names it."""
    numbered = re.findall(r"^\d\. `([^`]+)`", section(title), re.MULTILINE)
    said = {2: "Two", 4: "Four", 6: "Six"}[count]
    assert section(title).strip().startswith(f"{said} files")
    assert len(numbered) == count
    assert [path for path in numbered if word not in (ROOT / path).read_text("utf-8").lower()] == []
    assert naming(word) <= set(numbered)


def test_the_house_is_on_half_a_page() -> None:
    """A description that has grown is none."""
    house = PAGE.split("## The house")[1].split("\n## ")[0]
    assert len(house.splitlines()) < 50

"""CONTRIBUTING.md, architecture.md, calls.md are true: rooms, recipes, paths, and the way of a call through the house.

`python tests/house/test_house_contributing.py` writes the table of rooms and draws notebooks/architecture.svg.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from html import escape

import pytest
from house import PACKAGES, ROOT, files, tree
from test_house_walls import ROOMS, all_imports, room_of

CONTRIBUTING, PICTURE = ROOT / "CONTRIBUTING.md", ROOT / "notebooks" / "architecture.svg"
PAGE = CONTRIBUTING.read_text("utf-8")
GUIDE = "".join([(ROOT / "notebooks" / name).read_text("utf-8") for name in ("architecture.md", "calls.md")])
PATH = re.compile(r"`([\w./-]*(?:/|\.(?:py|md|lark|txt|ipynb)))`")
HEAD = "| room | its one job |\n|---|---|\n"
SHOWN = [room for room in ROOMS if room not in ("rote", "rote.__main__")]
CELL, LEFT, TOP, MARGIN = 20, 190, 28, 12  # pixels
COLOURS = {"grammar": "#b45309", "rote": "#1d4ed8", "fft": "#047857"}


@cache
def home(room: str) -> str:
    """The folder, with a slash, or the file of a room: rote.fft -> fft/, rote.errors -> rote/errors.py."""
    folder = next((path for path, name in PACKAGES.items() if name == room), room.replace(".", "/"))
    return f"{folder}/" if f"{folder}/__init__.py" in files() else f"{folder}.py"


def job(room: str) -> str:
    """The first sentence of a room's docstring, which is its one job."""
    path = home(room)
    text = ast.get_docstring(tree(f"{path}__init__.py" if path.endswith("/") else path)) or ""
    return " ".join(text.split("\n\n")[0].split()).rstrip(".:")


def written(page: str) -> str:
    """The page with the rooms of today."""
    before, _, after = page.partition(HEAD)
    rows = "".join(f"| `{home(room)}` | {job(room)} |\n" for room in SHOWN)
    return before + HEAD + rows + re.sub(r"\A(?:[|].*\n)*", "", after)


def arrows() -> set[tuple[int, int]]:
    """The pairs of rooms, importing and imported, by their places in the table."""
    pairs = {(room_of(module), room_of(found.target)) for module, found in all_imports()}
    return {(SHOWN.index(a), SHOWN.index(b)) for a, b in pairs if a in SHOWN and b in SHOWN and a != b}


def drawn() -> str:
    """A row and a column per room, and a dot where the row's files import the column's."""
    size = len(SHOWN) * CELL
    paint = [COLOURS[home(room).split("/")[0]] for room in SHOWN]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + size + MARGIN} {TOP + size + MARGIN}" '
        'role="img" font-family="monospace" font-size="12">',
        "<title>Which room of the house imports which</title>",
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for i, room in enumerate(SHOWN):
        y, x = TOP + i * CELL, LEFT + i * CELL
        lines += [
            f'<rect x="0" y="{y}" width="{LEFT + size}" height="{CELL}" fill="{("white", "#f4f4f5")[i % 2]}"/>',
            f'<text x="{MARGIN}" y="{y + 14}" fill="{paint[i]}">{i + 1:2} {escape(home(room))}</text>',
            f'<text x="{x + CELL / 2:g}" y="{TOP - 8}" text-anchor="middle" fill="{paint[i]}">{i + 1}</text>',
            f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="#d4d4d8"/>',
        ]
    for i, j in sorted(arrows()):
        x, y = LEFT + j * CELL + CELL / 2, TOP + i * CELL + CELL / 2
        lines.append(f'<circle cx="{x:g}" cy="{y:g}" r="5" fill="{paint[j]}"/>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def test_the_table_and_the_picture_are_current() -> None:
    """The page has the rooms of the walls with the jobs of their docstrings, and the picture the imports of today."""
    assert HEAD in PAGE and written(PAGE) == PAGE
    assert PICTURE.read_text("utf-8") == drawn()
    assert len(PAGE.split("## The house")[1].split("\n## ")[0].splitlines()) < 50  # half a page


def test_every_path_exists() -> None:
    """A path of either page is a file or a folder of the repository."""
    for path in {*PATH.findall(PAGE), *PATH.findall(GUIDE)}:
        assert any((folder / path).exists() for folder in (ROOT, ROOT / "rote" / "functions")), path


# --- recipes ---------------------------------------------------------------------------------------------------------


@cache
def constants(path: str) -> list[str]:
    """The texts in a file's code, without docstrings and names that it exports."""
    source = tree(path)
    exported = {
        id(text)
        for node in ast.walk(source)
        if isinstance(node, ast.Assign | ast.AugAssign) and "__all__" in ast.unparse(node).partition("=")[0]
        for text in ast.walk(node.value)
    }
    texts = [node for node in ast.walk(source) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [str(node.value) for node in texts if id(node) not in exported]


def section(title: str) -> str:
    """A section of the page."""
    return PAGE.split(f"## How to add a {title}\n")[1].split("\n## ")[0]


NUMBERS = {2: "Two", 3: "Three", 4: "Four", 5: "Five", 6: "Six"}
MPI4PY = {"rote/runtime/comm/mpi4py_calls.py"}  # which has mpi4py's calls by their names
RECIPES = [("distribution kind", "floor"), ("method of exchange", "waitsome"), ("step kind", "scatter")]


@pytest.mark.parametrize(("title", "word"), RECIPES)
def test_a_recipe_names_the_files_that_name_its_example(title: str, word: str) -> None:
    """The numbered files are as many as said, each has the example in it, and no other file's code names it."""
    numbered = re.findall(r"^\d\. `([^`]+)`", section(title), re.MULTILINE)
    assert section(title).strip().startswith(f"{NUMBERS[len(numbered)]} files")
    assert [path for path in numbered if word not in (ROOT / path).read_text("utf-8").lower()] == []
    assert {path for path in files() if word in constants(path)} - MPI4PY <= set(numbered)


# --- the way of a call -----------------------------------------------------------------------------------------------

STEP = re.compile(r"^\| \d+ \| `([^`]+)`, ((?:`\w+`(?:, )?)+) \|", re.MULTILINE)
PASSED = [(path, name) for path, names in STEP.findall(GUIDE) for name in re.findall(r"`(\w+)`", names)]


@pytest.mark.parametrize(("path", "name"), PASSED)
def test_a_call_passes_what_the_guide_says(path: str, name: str) -> None:
    """Every function that the guide names is in the file that it names."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    assert name in {node.name for node in ast.walk(tree(path)) if isinstance(node, kinds)}


if __name__ == "__main__":
    CONTRIBUTING.write_text(written(PAGE), "utf-8")
    PICTURE.write_text(drawn(), "utf-8")

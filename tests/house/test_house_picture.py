"""The picture of the house, notebooks/architecture.svg, and the files and functions that architecture.md names."""

from __future__ import annotations

import ast
import re
from xml.etree import ElementTree

import pytest
from house import ROOT, tree
from picture import LEFT, MARGIN, PICTURE, ROOMS, arrows, drawn, labels

GUIDE = (ROOT / "notebooks" / "architecture.md").read_text("utf-8")
STEP = re.compile(r"^\| \d+ \| `([^`]+)`, ((?:`\w+`(?:, )?)+) \|", re.MULTILINE)


def steps() -> list[tuple[str, str]]:
    """The file and the name of every function that the guide says a call passes."""
    return [(path, name) for path, names in STEP.findall(GUIDE) for name in re.findall(r"`(\w+)`", names)]


def defined(path: str) -> set[str]:
    """The names of all functions, methods and classes of a file."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(tree(path)) if isinstance(node, kinds)}


def test_names_end_before_the_dots_begin() -> None:
    """A character of the picture's type is 7.3 pixels wide; a number and a space stand before each name."""
    assert MARGIN + 7.3 * (3 + max(map(len, labels(ROOMS)))) <= LEFT


def test_the_picture_is_current() -> None:
    """It shows the imports of today; if not: python tests/house/picture.py."""
    assert PICTURE.read_text("utf-8") == drawn(ROOMS, arrows())


def test_the_picture_shows_rooms_and_arrows() -> None:
    """A name per room, a circle per arrow, a ring per arrow that runs back between rooms; and all of it in words."""
    pairs = arrows()
    root = ElementTree.fromstring(PICTURE.read_text("utf-8"))
    space = {"svg": "http://www.w3.org/2000/svg"}
    circles = root.findall("svg:circle", space)
    rings = [each for each in circles if each.get("fill") == "none"]
    back = [(source, target) for source, target in pairs if target > source]
    assert len(root.findall("svg:text", space)) == 2 * len(ROOMS) == 2 * len({*labels(ROOMS)})
    assert (len(circles), len(rings)) == (len(pairs), len(back))
    assert len(circles) > 80 and not back
    words = root.findtext("svg:desc", "", space)
    assert words.count(" imports ") == len({source for source, _ in pairs})


def test_another_house_gives_another_picture() -> None:
    """An arrow more, or fewer, is another picture."""
    pairs = arrows()
    assert drawn(ROOMS, pairs) != drawn(ROOMS, pairs - {min(pairs)})


@pytest.mark.parametrize(("path", "name"), steps())
def test_a_call_passes_what_the_guide_says(path: str, name: str) -> None:
    """Every function that the guide names is in the file that it names."""
    assert name in defined(path)


def test_both_calls_are_told() -> None:
    """The guide follows a redistribution and a transform through the house."""
    assert len(steps()) > 25
    assert "nothing" not in defined("rote/compiler/compile.py")

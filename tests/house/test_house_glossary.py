"""The glossary of the book: one line per word, each word once, in the order of the alphabet."""

from __future__ import annotations

import ast
import re
from itertools import pairwise

import pytest
from house import ROOT, files, tree

PAGE = ROOT / "notebooks" / "glossary.md"

# What nobody may have to guess: the words that the folders, files and classes of the house are named with.
WANTED = (
    *("grid mode", "mode", "kind", "view", "split", "digit", "run", "layout", "distribution", "partial", "root"),
    *("replica", "idle rank", "step", "rule", "plan", "certificate", "candidate", "bound", "volume", "request"),
    *("segment", "strided copy", "indexed copy", "pack", "unpack", "workspace", "double buffer", "transport"),
    *("rendezvous", "chunk", "calibrate", "autotune", "backend", "tiled pass", "collective error", "program"),
    *("operation", "slot", "walk", "stage"),
)


def complaints(page: str, classes: set[str]) -> list[str]:
    """What is wrong with a glossary, as texts."""
    listing = page.partition("\n- ")[2]
    lines = [" ".join(item.split()) for item in f"\n- {listing}".split("\n- ")[1:]]
    matches = [re.fullmatch(r"\*\*([^*]+)\*\*: .+\.", line) for line in lines]
    wrong = [f"not '**word**: meaning.': {line}" for line, match in zip(lines, matches, strict=True) if not match]
    words = [match[1] for match in matches if match]
    wrong += [f"more than once: {word}" for word in sorted({word for word in words if words.count(word) > 1})]
    wrong += [f"out of order: {word}" for word, after in pairwise(words) if word > after]
    wrong += [f"no class: {name}" for name in re.findall(r"`([^`]+)`", listing) if name not in classes]
    return wrong


def product_classes() -> set[str]:
    """The names of all classes of the three packages."""
    return {node.name for path in files() for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)}


def test_the_glossary_is_in_order() -> None:
    """Every word once and in order; every class that is named there is one of the product."""
    assert complaints(PAGE.read_text("utf-8"), product_classes()) == []


@pytest.mark.parametrize("word", WANTED)
def test_the_words_of_the_house_are_told(word: str) -> None:
    """The words that folders, files and classes are named with are in the glossary."""
    assert f"\n- **{word}**: " in PAGE.read_text("utf-8")


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("- **a**: x.\n- **a**: y.\n", "more than once: a"),
        ("- **b**: x.\n- **a**: y.\n", "out of order: b"),
        ("- **a**: a\n  `Grid`.\n- **b**: a `Grit`.\n", "no class: Grit"),
        ("- **a** x.\n", "not '**word**: meaning.': **a** x."),
    ],
)
def test_a_wrong_glossary_is_seen(page: str, complaint: str) -> None:
    """Each way to be wrong is said, once."""
    assert complaints(f"# Glossary\n\n{page}", {"Grid"}) == [complaint]

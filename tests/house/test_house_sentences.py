"""Pages and docstrings are free of sentences that readers had to read twice; `phrases.txt` has these, one a line.

`python tests/house/test_house_sentences.py` prints how often each page has words that often stand for plainer ones. It
only counts: a word can be right where it stands.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from house import ROOT, files, tree

PHRASES = Path(__file__).with_name("phrases.txt").read_text("utf-8").splitlines()
WORDS = ("text", "alone", "lies", "at once", "by which", "that of")


@cache
def pages() -> dict[str, str]:
    """Path from the root -> what people read there, with single spaces: pages, cells of notebooks, docstrings."""
    texts = {path: path.read_text("utf-8") for path in (*ROOT.glob("*.md"), *ROOT.glob("notebooks/*.md"))}
    texts[ROOT / "tests" / "README.md"] = (ROOT / "tests" / "README.md").read_text("utf-8")
    for path in ROOT.glob("notebooks/*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        texts[path] = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")

    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for name in files():
        nodes = [node for node in ast.walk(tree(name)) if isinstance(node, documented)]
        texts[ROOT / name] = "\n".join(ast.get_docstring(node) or "" for node in nodes)

    del texts[ROOT / "CHANGELOG.md"]
    return {path.relative_to(ROOT).as_posix(): " ".join(text.split()) for path, text in texts.items()}


@pytest.mark.parametrize("phrase", PHRASES)
def test_no_page_has_a_phrase_that_puzzled_readers(phrase: str) -> None:
    """A sentence that was replaced by a plainer one does not come back, however its lines are broken."""
    assert [path for path, text in pages().items() if phrase.lower() in text.lower()] == []


def counts() -> dict[str, Counter[str]]:
    """Path -> how often each of WORDS stands there."""
    return {
        path: Counter({word: len(re.findall(rf"\b{word}\b", text)) for word in WORDS}) for path, text in pages().items()
    }


if __name__ == "__main__":
    table = {path: numbers for path, numbers in counts().items() if numbers.total() and path.endswith(("md", "ipynb"))}
    print(" ".join(f"{word:>9}" for word in WORDS))
    for path, numbers in table.items():
        print(" ".join(f"{numbers[word]:9}" for word in WORDS), path)
    print(" ".join(f"{sum(numbers[word] for numbers in counts().values()):9}" for word in WORDS), "with docstrings")

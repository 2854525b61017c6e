"""The docstrings of fft/: the first line is a sentence that stands on its own."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "fft"
FILES = sorted(ROOT.rglob("*.py"))

LEANING = ("What ", "The same ", "As ")


def _leaning(tree: ast.AST) -> Iterator[str]:
    """The first lines of docstrings that lean on something else."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            line = (ast.get_docstring(node) or "").partition("\n")[0]
            if line.startswith(LEANING):
                yield line


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_docstrings_stand_on_their_own(path: Path) -> None:
    """No docstring's first line begins with what is said elsewhere."""
    assert not [*_leaning(ast.parse(path.read_text("utf-8")))]


@pytest.mark.parametrize(
    "text", ['def f():\n    """What it does."""', '"""The same as before."""', 'class C:\n    """As the other."""']
)
def test_the_search_can_fail(text: str) -> None:
    """A docstring that leans on something else is seen wherever it stands."""
    assert [*_leaning(ast.parse(text))]

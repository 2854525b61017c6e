"""The words of fft/: locals are nouns of the thing, and a docstring begins with a sentence that stands on its own."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "fft"
FILES = sorted(path for path in ROOT.rglob("*.py") if path.parent.name != "program")

VAGUE = {"found", "told", "one", "here", "there", "of", "by"}
LEANING = ("What ", "The same ", "As ")


def _vague(tree: ast.AST) -> Iterator[str]:
    """The vague names that functions bind, with their lines."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.Lambda):
            for node in ast.walk(function):
                name = node.arg if isinstance(node, ast.arg) else ""
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    name = node.id
                if name in VAGUE:
                    yield f"{name} in line {node.lineno}"


def _leaning(tree: ast.AST) -> Iterator[str]:
    """The first lines of docstrings that lean on something else."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            line = (ast.get_docstring(node) or "").partition("\n")[0]
            if line.startswith(LEANING):
                yield line


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_words_are_the_things_own(path: Path) -> None:
    """No function binds a vague name, and no docstring's first line begins with what stands elsewhere."""
    tree = ast.parse(path.read_text())
    assert not [*_vague(tree), *_leaning(tree)]


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    found = 1",
        "def f(one):\n    return one",
        "def f(row):\n    return [here for here in row]",
        "f = lambda by: by",
        'def f():\n    """What it does."""',
        '"""The same as before."""',
        'class C:\n    """As the other."""',
    ],
)
def test_the_search_can_fail(text: str) -> None:
    """A vague name or a leaning docstring is seen wherever it stands."""
    tree = ast.parse(text)
    assert [*_vague(tree), *_leaning(tree)]

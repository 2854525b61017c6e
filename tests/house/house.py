"""The files of the three packages, as the house tests see them: paths, module names, syntax trees."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"rote": "rote", "grammar": "rote.grammar", "fft": "rote.fft"}


def module_name(path: str) -> str:
    """The name under which a file (given from the root, with slashes) is imported.

    >>> module_name("grammar/parser.py"), module_name("rote/layout/__init__.py")
    ('rote.grammar.parser', 'rote.layout')
    """
    folder, *rest = path.removesuffix(".py").split("/")
    return ".".join([PACKAGES[folder], *(part for part in rest if part != "__init__")])


@cache
def files() -> dict[str, str]:
    """Path from the root -> source text, of every Python file of the three packages."""
    found = sorted(path for folder in PACKAGES for path in (ROOT / folder).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in found}


@cache
def tree(path: str) -> ast.Module:
    """The syntax tree of one of `files()`."""
    return ast.parse(files()[path], path)

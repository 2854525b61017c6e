"""The words of the house: nouns for locals, one name per class, docstrings that stand on their own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from house import files, tree

# Names that say nothing of what they hold: what was found, what one was told, and prepositions.
SAY_NOTHING = ("found", "told", "one", "here", "there", "of", "by")

# Packages, by the folder of their files, in which no such name is left.
CLEAN = ("rote", "grammar", "fft")


def empty_names(source: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each variable, parameter and attribute that is called by a word that says nothing.

    What a class offers under such a name, as `Grid.of`, is a method: it reads well after the name of its class.
    """
    for node in ast.walk(source):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                named = [name]
            case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
                named = [name]
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                named = [name]
            case ast.MatchMapping(rest=str(name)):
                named = [name]
            case ast.Import() | ast.ImportFrom():
                named = [alias.asname for alias in node.names if alias.asname]
            case _:
                continue
        yield from ((getattr(node, "lineno", 0), name) for name in named if name in SAY_NOTHING)


def test_names_say_what_they_hold() -> None:
    """No variable, parameter or attribute is called `found`, `told` or by a preposition."""
    paths = [path for path in files() if path.split("/")[0] in CLEAN]
    assert [(path, *name) for path in paths for name in empty_names(tree(path))] == []


BREAKS = [
    "found = 1",
    "def f(told):\n    pass",
    "def f(*, found=None):\n    pass",
    "lambda one: 0",
    "[0 for there in ()]",
    "for here, x in ():\n    pass",
    "class C:\n    found: str",
    "self.told = 1",
    "if (found := 1):\n    pass",
    "with x as of:\n    pass",
    "try:\n    pass\nexcept E as told:\n    pass",
    "import numpy as by",
    "match x:\n    case [*found]:\n        pass",
    "match x:\n    case {**found}:\n        pass",
    "match x:\n    case found:\n        pass",
    "def f():\n    global g\n    def told(): \n        found = 1",
]


@pytest.mark.parametrize("source", BREAKS)
def test_empty_names_are_seen(source: str) -> None:
    """Every way to bind a name is seen, exactly once."""
    assert len(list(empty_names(ast.parse(source)))) == 1


def test_other_uses_are_let_pass() -> None:
    """Methods, keys of data and words of prose are no names of what something holds."""
    source = '"""What is found here."""\nclass Grid:\n    def of(self): ...\nGrid.of(d["found"])\nfounded = 1'
    assert list(empty_names(ast.parse(source))) == []


def shared_names(sources: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Names of public classes that stand in several files, with these files."""
    homes: dict[str, list[str]] = {}
    for path, source in sources.items():
        for node in source.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(path)
    return {name: paths for name, paths in homes.items() if len(paths) > 1}


def test_a_class_has_a_name_of_its_own() -> None:
    """No two public classes of a package share a name, but other packages' names: known from one file, known in all."""
    ours = [path for path in files() if path.split("/")[0] in CLEAN and not path.startswith("rote/compat/")]
    assert shared_names({path: tree(path) for path in ours}) == {}


def test_a_shared_name_is_seen() -> None:
    """Two files may not name a class alike; private ones, and those inside of others, they may."""
    sources = {"a.py": "class A: ...\nclass _B: ...", "b.py": "class A: ...\nclass _B: ...\nclass C:\n    class A: ..."}
    assert shared_names({path: ast.parse(text) for path, text in sources.items()}) == {"A": ["a.py", "b.py"]}


# How no docstring begins: as half a sentence that leans on the name above it, or on another docstring.
LEANING = ("What ", "The same", "As ")


def leaning(source: ast.Module) -> list[str]:
    """The first lines of docstrings that do not stand on their own."""
    nodes = (n for n in ast.walk(source) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef))
    return [text.partition("\n")[0] for n in nodes if (text := ast.get_docstring(n)) and text.startswith(LEANING)]


def test_docstrings_stand_on_their_own() -> None:
    """A docstring begins with a noun phrase, or with what to do, never "What …", "The same …" or "As …"."""
    paths = [path for path in files() if path.split("/")[0] in CLEAN]
    assert [(path, line) for path in paths for line in leaning(tree(path))] == []


def test_leaning_docstrings_are_seen() -> None:
    """Of a module, of a class and of a function."""
    source = '"""What a."""\nclass A:\n    """As b."""\n    def f(self):\n        """The same c.\n\n        d"""'
    assert leaning(ast.parse(source)) == ["What a.", "As b.", "The same c."]
    assert leaning(ast.parse('"""Assert what is the same."""')) == []


def test_papers_are_cited_by_author_and_year() -> None:
    """No file speaks of a paper by a number that only this house knows."""
    numbered = re.compile(r"\bpapers? 0\d\d\b", re.IGNORECASE)
    assert [path for path, text in files().items() if path.split("/")[0] in CLEAN and numbered.search(text)] == []
    assert numbered.search("As paper 003 says")

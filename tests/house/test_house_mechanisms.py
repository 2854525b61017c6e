"""One mechanism per job: one loop that times, one decorator that remembers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from house import files, tree

# Files that read the clock, and what for.
CLOCKS = {
    "rote/__main__.py": "when the command began",
    "rote/runtime/tuning/autotune.py": "the loop",
    "rote/runtime/tuning/limits.py": "when all timing is to end",
    "fft/kernels/turns.py": "a turn of a kernel: many calls for one reading",
    "fft/kernels/config.py": "when FFTW is to end its planning",
}


def readers(name: str) -> set[str]:
    """The files of the product, but for the command line and the comparisons, that use something of this name."""
    return {
        path
        for path in files()
        if not path.startswith(("rote/cli/", "rote/bench/"))
        and any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree(path)))
    }


def test_one_loop_times() -> None:
    """No other file than these reads the clock, and one alone forms medians."""
    assert readers("perf_counter") == CLOCKS.keys()
    assert readers("median") == {"rote/runtime/tuning/autotune.py"}


# Files that remember by functools alone what functions with arguments give, and why.
UNREGISTERED = {
    "rote/caches.py": "the decorator",
    "grammar/parser.py": "the grammar imports nothing of Rote; the register sees it from outside",
    "grammar/build.py": "the grammar imports nothing of Rote; the register sees it from outside",
}


def unregistered(source: ast.Module) -> Iterator[int]:
    """The lines where functools remembers something else than what a function without arguments gives, once."""
    for node in ast.walk(source):
        used: list[ast.expr] = []
        if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).split(".")[-1] == "lru_cache":
            yield node.lineno
        elif isinstance(node, ast.Call):
            used = [node.func]
        elif isinstance(node, ast.FunctionDef) and ast.unparse(node.args):
            used = node.decorator_list
        yield from (each.lineno for each in used if ast.unparse(each) in ("cache", "functools.cache"))


def test_one_decorator_remembers() -> None:
    """Functions of arguments are `memoized`, and so in the register; what has none is a constant of the process."""
    assert {path for path in files() if any(unregistered(tree(path)))} == UNREGISTERED.keys()


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("@lru_cache\ndef f(): ...", [1]),
        ("@lru_cache(maxsize=3)\ndef f(x): ...", [1]),
        ("@functools.lru_cache\ndef f(x): ...", [1]),
        ("@cache\ndef f(x): ...", [1]),
        ("f = cache(g)", [1]),
        ("@cache\ndef f(): ...", []),
        ("comm.cache.clear()\n@memoized(3)\ndef f(x): ...", []),
    ],
)
def test_other_ways_to_remember_are_seen(source: str, lines: list[int]) -> None:
    """Every way to use functools for it is seen; a constant of the process and a communicator's own cache are none."""
    assert [*unregistered(ast.parse(source))] == lines

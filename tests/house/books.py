"""The books of the house: which rooms stand in each, which books it may import, and how many lines of code it has.

A person holds one book in the head, and the core first. Lines of code are those that are neither docstring nor comment
nor blank: paragraphs and explanations are free. `python tests/house/books.py` prints the table of today, and
`python tests/house/books.py SITE` takes all books but the core, and what tests it, out of an installed copy.
"""

from __future__ import annotations

import ast
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from house import files, module_name, tree


@dataclass(frozen=True, slots=True)
class Book:
    """A book: its rooms, or all modules that stand in no other one; the other books it may import; and its budget.

    `doors` are its modules that every book may import: arrays ask contractions for products, and these ask arrays.
    """

    budget: int
    about: str
    rooms: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    doors: tuple[str, ...] = ()


def _modules(room: str, names: str) -> tuple[str, ...]:
    return tuple(f"{room}.{name}" for name in names.split())


BOOKS = {
    "core": Book(13_840, "a movement: text, layout, distribution, plan, program, ranks"),
    "arrays": Book(
        11_010,
        "a DistTensor: functions with their rules of layout, files, random numbers",
        _modules("rote", "tensor functions linalg io array_api random einops"),
        ("core",),
    ),
    "einsum": Book(
        2_830,
        "a Contraction: a tree of products, and the moves between them",
        ("rote.functions.contraction",),
        ("core", "arrays"),
        _modules("rote.functions.contraction", "compile diagonals local operands plan run subscripts"),
    ),
    "fft": Book(
        5_710,
        "a Walk: stages that transform what is whole, and the moves between them",
        ("rote.fft",),
        ("core", "arrays"),
        ("rote.fft.functions",),  # those of np.fft, as the array API names them
    ),
    "jax": Book(
        1_450,
        "a plan as a program for XLA: functions of sharded arrays of JAX",
        ("rote.jax",),
        ("core", "arrays", "einsum", "fft"),
    ),
    "tools": Book(
        4_300,
        "the command line, benchmarks, pictures and pages of the values of other books",
        _modules("rote", "cli bench plot html"),
        ("core", "arrays", "einsum", "fft"),
        ("rote.cli.main",),  # which `python -m rote` starts
    ),
    "compat": Book(670, "the names of mpi4py-fft", ("rote.compat",), ("core", "arrays", "fft")),
    "testing": Book(400, "strategies and a pytest plugin for users", ("rote.testing",), ("core", "arrays")),
}

DOORS = ("rote", "rote.lazy")
"""Name things of all books, and import none of them before they are asked for."""


def book_of(module: str) -> str:
    """The book in which a module stands: the one with the innermost room around it, or the core.

    >>> book_of("rote.functions.contraction.tree"), book_of("rote.functions.scans"), book_of("rote.layout.grid")
    ('einsum', 'arrays', 'core')
    """
    rooms = {room: name for name, book in BOOKS.items() for room in book.rooms}
    around = [room for room in rooms if module == room or module.startswith(room + ".")]
    return rooms[max(around, key=len)] if around else "core"


def lines_of_code(path: str) -> int:
    """The lines of a file that are neither in a docstring, nor blank, nor a comment."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    docstrings = {
        line
        for node in ast.walk(tree(path))
        if isinstance(node, documented) and ast.get_docstring(node) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    lines = [line.strip() for number, line in enumerate(files()[path].splitlines(), 1) if number not in docstrings]
    return sum(bool(line) and not line.startswith("#") for line in lines)


def sizes() -> dict[str, int]:
    """The lines of code of each book."""
    counts = dict.fromkeys(BOOKS, 0)
    for path in files():
        counts[book_of(module_name(path))] += lines_of_code(path)
    return counts


def leave_core(site: Path) -> None:
    """Delete the other books from the folder where `rote` is installed; testing stays, because tests need it."""
    for name, book in BOOKS.items():
        for room in book.rooms if name != "testing" else ():
            place = site.joinpath(*room.split("."))
            shutil.rmtree(place, ignore_errors=True)
            place.with_suffix(".py").unlink(missing_ok=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        leave_core(Path(sys.argv[1]))
    else:
        for name, size in sizes().items():
            print(f"{name:8} {size:6,} of {BOOKS[name].budget:6,}   {BOOKS[name].about}")

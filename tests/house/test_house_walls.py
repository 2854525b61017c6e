"""The walls of the house: who may import whom. Read off the syntax, so an import that never runs counts too."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import pytest
from house import files, module_name, tree


def _rooms(names: str) -> tuple[str, ...]:
    """Rooms, or single modules of them, by their names within rote."""
    return tuple(name if name == "rote" else f"rote.{name}" for name in names.split())


# Room -> the rooms, or single modules of them, that it may import. A room is a module or a package with all that is
# in it. Arrows point up this table: fft -> rote -> grammar, and nothing but the command line and the door knows the
# FFTs.
ROOMS: dict[str, tuple[str, ...]] = {
    "rote.grammar": (),
    "rote.errors": _rooms("grammar"),
    "rote.caches": (),
    "rote.version": (),
    "rote.host": _rooms("caches errors"),
    "rote.lazy": (),  # names that are imported on first use, of doors and of what is made above
    "rote.layout": _rooms("grammar errors lazy"),
    "rote.lattice": (),
    "rote.units": (),
    "rote.wisdom": _rooms("errors host version"),
    "rote.machines": _rooms("errors lazy layout wisdom"),
    "rote.compiler": _rooms("units grammar errors lazy layout lattice machines"),
    "rote.compiler.verify": _rooms("grammar errors layout lattice compiler machines"),
    "rote.plot.drawing": _rooms("grammar errors layout"),
    "rote.prediction": _rooms("units errors lazy layout compiler machines"),
    "rote.scaling": _rooms("units errors lazy compiler machines prediction"),
    "rote.runtime": _rooms("errors host wisdom layout lattice compiler machines"),
    "rote.io": _rooms("units errors layout compiler machines runtime"),
    "rote.simulate": _rooms("errors layout compiler machines runtime"),
    "rote.functions": _rooms(
        "units grammar errors lazy host layout compiler machines prediction scaling runtime simulate"
    ),
    "rote.linalg": _rooms("units errors lazy host layout compiler machines runtime functions"),
    "rote.tensor": _rooms("errors lazy layout compiler machines runtime io functions"),
    "rote.einops": _rooms("tensor"),
    "rote.random": _rooms("layout compiler machines runtime functions tensor"),
    "rote.testing": _rooms("grammar errors lazy host layout runtime tensor"),
    "rote.plot": _rooms("version errors layout compiler machines scaling functions.contraction"),
    "rote.fft": _rooms(
        "units grammar errors lazy host layout compiler machines prediction scaling wisdom runtime functions tensor"
    ),
    "rote.jax": _rooms("units errors lazy layout compiler machines prediction functions.contraction fft"),
    "rote.html": _rooms("units errors layout compiler machines prediction plot.drawing functions.contraction fft"),
    "rote.array_api": _rooms("grammar errors lazy layout compiler machines runtime functions tensor fft"),
    "rote.bench": _rooms("units rote errors host layout compiler machines runtime tensor plot fft"),
    "rote.cli": _rooms(
        "units rote errors host layout compiler machines prediction scaling wisdom runtime io "
        "functions.contraction tensor plot html fft bench"
    ),
    "rote.compat": _rooms("rote"),  # names of other packages, over the public ones
    "rote.__main__": _rooms("cli"),
    # The door names everything to type checkers and imports nothing: see the test of its eager imports.
    "rote": _rooms(
        "version grammar errors lazy layout machines compiler prediction scaling simulate runtime functions linalg "
        "tensor random plot fft jax wisdom array_api testing"
    ),
}

NUMBERLESS = (
    *("rote", "rote.__main__", "rote.grammar", "rote.errors", "rote.host"),
    *("rote.caches", "rote.lazy", "rote.units", "rote.version"),
)

# The decorator of all functions that remember: every room may import it but those that import nothing of the house.
REMEMBERING = "rote.caches"

# Package from outside -> the rooms or modules that may import it.
OUTSIDE: dict[str, tuple[str, ...]] = {
    "numpy": tuple(room for room in ROOMS if room not in NUMBERLESS),
    "lark": ("rote.grammar",),
    "mpi4py": ("rote.runtime.comm.mpi",),
    "pyfftw": ("rote.fft.kernels", "rote.bench"),
    "scipy": ("rote.array_api", "rote.compiler", "rote.fft.kernels", "rote.bench"),
    "ducc0": ("rote.fft.kernels", "rote.bench"),
    "mkl_fft": ("rote.bench",),
    "mpi4py_fft": ("rote.bench",),
    "dtfft": ("rote.bench",),
    "platformdirs": ("rote.wisdom",),
    "matplotlib": ("rote.plot", "rote.cli", "rote.bench"),
    "mpl_toolkits": ("rote.plot",),
    "click": ("rote.cli",),
    "rich": ("rote.cli", "rote.io"),
    "h5py": ("rote.io", "rote.compat"),
    "zarr": ("rote.io",),
    "dask": ("rote.tensor",),
    "xarray": ("rote.tensor",),
    "einops": ("rote.einops",),
    "hypothesis": ("rote.testing",),
    "pytest": ("rote.testing",),
    "jax": ("rote.jax.meshes",),
}

# Lines of one file, which tells one story, from the value to its operations to its door; a docstring counts as one.
LONGEST, SHORTEST = 700, 25

# Files that may be longer, or shorter, and why. The front of a folder, `__init__.py`, may always be short.
UNUSUAL = {
    "rote/version.py": "the version alone, so that wisdom need not import `rote`, which leads to every room",
    "rote/__main__.py": "python -m rote wants a file of this name",
    "rote/runtime/log.py": "the one line of the log, for plans, choices, files and walks, which share no other module",
}


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name, made absolute; eager when importing the module imports it too."""

    target: str
    line: int
    eager: bool


def within(name: str, place: str) -> bool:
    """Is the dotted `name` the module `place` or something in it?"""
    return name == place or name.startswith(place + ".")


def room_of(name: str) -> str | None:
    """The innermost room that `name` is in: rote.layout.grid -> rote.layout; None outside the house.

    A name directly under rote that is no room (rote.Grid, rote/new.py) is not the door's: it answers itself.
    """
    rooms = [room for room in ROOMS if room != "rote" and within(name, room)]
    if rooms:
        return max(rooms, key=len)
    return name if within(name, "rote") else None


def imports(source: ast.Module, module: str, is_package: bool) -> Iterator[Import]:
    """All imports of a module: any depth, relative ones, TYPE_CHECKING ones, import_module and __import__."""
    package = module if is_package else module.rpartition(".")[0]

    def absolute(name: str, level: int) -> str:
        if not level:
            return name
        parts = package.split(".")
        base = parts[: len(parts) - level + 1]
        return ".".join([*base, name] if name else base)

    def visit(node: ast.AST, eager: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, eager) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node.module or "", node.level)
            yield from (Import(f"{base}.{alias.name}", node.lineno, eager) for alias in node.names)
        elif isinstance(node, ast.Call) and called(node) in ("import_module", "__import__"):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                name = first.value.lstrip(".")
                yield Import(absolute(name, len(first.value) - len(name)), node.lineno, eager)
            else:
                yield Import("?", node.lineno, eager)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from (found for child in node.body for found in visit(child, False))
            yield from (found for child in node.orelse for found in visit(child, eager))
            return
        runs_later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, eager and not runs_later)

    yield from visit(source, True)


def called(node: ast.Call) -> str:
    """The last name of what a call calls; none where it is called by no name."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def breaches(source: ast.Module, module: str, is_package: bool = False) -> list[str]:
    """Every import of a module that goes through a wall, in words."""
    room = room_of(module)
    if room not in ROOMS:
        return [f"{module}: in no room; name it, and what it may import, in ROOMS"]
    return [
        f"{module}, line {found.line}: {complaint}"
        for found in imports(source, module, is_package)
        if (complaint := refusal(found, module, room))
    ]


def refusal(found: Import, module: str, room: str) -> str:
    """Why `module`, of `room`, may not have this import; empty when it may."""
    if found.target == "?":
        lazy = module in ("rote.lazy", "rote.functions")
        return "" if lazy else "imports what only the running program knows; name it"
    target = room_of(found.target)
    if target is not None:
        through_the_door = target not in ROOMS or target == "rote"
        may = "rote" in (room, *ROOMS[room]) if through_the_door else reaches(room, found.target)
        return "" if may else f"{room} may not import {found.target}"
    top = found.target.partition(".")[0]
    if top in sys.stdlib_module_names:
        return ""
    allowed = OUTSIDE.get(top, ())
    return "" if any(within(module, place) for place in allowed) else f"{module} may not import {top}"


def reaches(room: str, name: str) -> bool:
    """Is `name` in the room itself, or in a place that the room may import?"""
    if within(name, REMEMBERING) and ROOMS[room]:
        return True
    return any(within(name, place) for place in (room, *ROOMS[room]) if place != "rote")


def is_package(path: str) -> bool:
    """Is this file the front of a folder?"""
    return path.endswith("__init__.py")


@cache
def all_imports() -> tuple[tuple[str, Import], ...]:
    """(module, import) for every import of the house."""
    return tuple(
        (module_name(path), found)
        for path in files()
        for found in imports(tree(path), module_name(path), is_package(path))
    )


@cache
def made_late() -> tuple[tuple[str, str, str], ...]:
    """(module, home, name) for all that a module imports by `late("home:name")`; no name means the home itself."""
    calls = []
    for path in files():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and called(node) == "late":
                home, _, name = str(ast.literal_eval(node.args[0])).partition(":")
                calls.append((module_name(path), f"rote.{home}", name))
    return tuple(calls)


# --- the house stands -------------------------------------------------------------------------------------------


def test_no_import_goes_through_a_wall() -> None:
    """Every file is in a room, and imports only what its room may."""
    assert [wrong for path in files() for wrong in breaches(tree(path), module_name(path), is_package(path))] == []


def test_every_room_is_there() -> None:
    """The table names no room that does not exist: a wall around nothing guards nothing."""
    modules = {module_name(path) for path in files()}
    assert [room for room in ROOMS if room not in modules] == []
    places = {place for name, allowed in OUTSIDE.items() if name != "numpy" for place in allowed}
    assert sorted(places - modules) == []


def test_rooms_are_in_building_order() -> None:
    """Each room imports only rooms above it in the table; the door aside, which imports nothing when it runs."""
    order = list(ROOMS)
    for room in order:
        places = [str(room_of(place)) for place in ROOMS[room] if place != "rote"]
        assert [place for place in places if order.index(place) >= order.index(room)] == []


def circle(arrows: dict[str, set[str]]) -> list[str]:
    """The modules of a circle of imports, from one of them back to it; none where there is no circle."""
    order: list[str] = []
    done: set[str] = set()

    def visit(module: str) -> list[str]:
        if module in order:
            return [*order[order.index(module) :], module]
        if module in done:
            return []
        order.append(module)
        round_trip = next((way for target in sorted(arrows.get(module, ())) if (way := visit(target))), [])
        done.add(order.pop())
        return round_trip

    return next((way for module in sorted(arrows) if (way := visit(module))), [])


def test_no_files_import_each_other_in_a_circle() -> None:
    """Those inside functions and under TYPE_CHECKING count too; the doors name all that is behind them.

    A file may name, to type checkers alone, the type of what its values make late: a `Layout` makes a `Distribution`,
    which has a layout.
    """
    late = {(module, home) for module, home, _ in made_late()}
    modules = {module_name(path) for path in files() if not is_package(path)}
    arrows: dict[str, set[str]] = {module: set() for module in modules}
    for module, imported in all_imports():
        for name in (imported.target, imported.target.rpartition(".")[0]):
            if module in modules and name in modules and (imported.eager or (module, name) not in late):
                arrows[module].add(name)
    assert circle(arrows) == []


def test_what_comes_late_is_there() -> None:
    """What a value hands out by name is a public function, or a module, of a room above it, and no other goes up."""
    above = ("rote.layout", "rote.compiler", "rote.functions", "rote.linalg", "rote.html", "rote.plot")
    above += ("rote.array_api", "rote.fft")
    assert len(made_late()) > 15
    for _, home, name in made_late():
        assert room_of(home) in above
        assert not name or name in import_module(home).__all__


def test_exactly_one_file_imports_mpi4py() -> None:
    """MPI has one door."""
    assert {module for module, found in all_imports() if within(found.target, "mpi4py")} == {"rote.runtime.comm.mpi"}


def test_the_costly_imports_wait() -> None:
    """What is optional, and the files that import lark, mpi4py, pyfftw and zarr, are imported inside functions only."""
    late = ("matplotlib", "mpl_toolkits", "scipy", "ducc0", "mkl_fft", "rote.grammar.build", "rote.runtime.comm.mpi")
    late += ("pyfftw", "rote.fft.kernels.backends.fftw", "h5py", "zarr", "rote.io.chunks", "xarray", "dask", "jax")
    eager = [(m, f.target) for m, f in all_imports() if f.eager and any(within(f.target, name) for name in late)]
    assert [(module, name) for module, name in eager if module != "rote.io.chunks"] == []


def test_verify_is_a_second_program() -> None:
    """What proves a plan right shares no code with what found it and what priced it."""
    shared = [found.target for module, found in all_imports() if within(module, "rote.compiler.verify")]
    names = "along compile cost digits halo pairs plan relabel rules search volumes"
    searching = [f"rote.compiler.{name}" for name in names.split()]
    assert [name for name in shared if any(within(name, place) for place in searching)] == []


def test_the_door_imports_nothing_of_the_house() -> None:
    """What `import rote` runs is the standard library's, its version, and the function that waits for all others."""
    eager = [found.target for module, found in all_imports() if module in ("rote", "rote.lazy") and found.eager]
    own = {name for name in eager if name.partition(".")[0] not in sys.stdlib_module_names}
    assert own == {"rote.lazy.attach", "rote.version.VERSION"}


def docstring_lines(path: str) -> int:
    """The lines of all docstrings of a file beyond the first of each."""
    named = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    first = [node.body[0] for node in ast.walk(tree(path)) if isinstance(node, named) and ast.get_docstring(node)]
    return sum((node.end_lineno or node.lineno) - node.lineno for node in first)


def test_files_are_neither_long_nor_short() -> None:
    """A file tells one story from beginning to end; one that is longer, or has few lines, says why."""
    for path, text in files().items():
        lines = len(text.splitlines())
        fits = lines - docstring_lines(path) <= LONGEST and (lines >= SHORTEST or is_package(path))
        assert fits != (path in UNUSUAL), f"{path}: {lines} lines, {UNUSUAL.get(path)}"


def test_public_things_have_docstrings() -> None:
    """A module that holds something, and each public function and class at its top level, says what it is."""
    silent = []
    for path in files():
        nodes = tree(path).body
        things = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
        public = [n for n in things if not n.name.startswith("_")]
        public = [n for n in public if "overload" not in map(ast.unparse, n.decorator_list)]
        silent += [f"{path}: {n.name}" for n in public if not ast.get_docstring(n)]
        if nodes and not ast.get_docstring(tree(path)):
            silent.append(path)
    assert silent == []


# --- and a wall can fail ------------------------------------------------------------------------------------------

BREAKS = [
    ("rote.grammar.parser", "import numpy"),
    ("rote.grammar.nodes", "from rote import layout"),
    ("rote.layout.grid", "from ..compiler.plan import Plan"),
    ("rote.layout.grid", "from .. import compiler"),
    ("rote.layout.grid", "def f():\n    from rote.compiler import plan"),
    ("rote.layout.grid", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..tensor import DistTensor"),
    ("rote.layout.grid", "from importlib import import_module\nimport_module('..tensor', __package__)"),
    ("rote.layout.grid", "import importlib\nimportlib.import_module(name)"),
    ("rote.compiler.plan", "import mpi4py.MPI"),
    ("rote.runtime.comm.threads", "from mpi4py import MPI"),
    ("rote.compiler.verify.certificate", "from ...runtime import program"),
    ("rote.tensor", "class T:\n    def f(self):\n        from rote import fft"),
    ("rote.fft.walk", "import pyfftw"),
    ("rote.newcomer", "import os"),
]


@pytest.mark.parametrize(("module", "source"), BREAKS)
def test_each_wall_can_be_hit(module: str, source: str) -> None:
    """Every way to write a forbidden import is seen, exactly once."""
    assert len(breaches(ast.parse(source), module)) == 1

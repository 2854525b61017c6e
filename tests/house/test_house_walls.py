"""The walls of the house: who may import whom. Read off the syntax, so an import that never runs counts too."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import get_args

import pytest
from house import files, module_name, tree

from rote.late import HOMES, Late

# Room -> the rooms, or single modules of them, that it may import. A room is a module or a package with all that is
# in it. Arrows point up this table: fft -> rote -> grammar, and nothing but the command line and the door knows the
# FFTs.
ROOMS: dict[str, tuple[str, ...]] = {
    "rote.grammar": (),
    "rote.errors": ("rote.grammar",),
    "rote.caches": (),
    "rote.launcher": ("rote.errors",),
    "rote.host": ("rote.caches",),
    "rote.late": (),  # names of what is made above
    "rote.layout": ("rote.grammar", "rote.errors", "rote.late"),
    "rote.compiler.movement": ("rote.grammar", "rote.errors", "rote.layout"),
    "rote.compiler": ("rote.grammar", "rote.errors", "rote.late", "rote.layout"),
    "rote.compiler.verify": ("rote.grammar", "rote.errors", "rote.layout", "rote.compiler"),
    "rote.plot.geometry": ("rote.layout",),
    "rote.html": ("rote.errors", "rote.layout", "rote.compiler", "rote.plot.geometry"),
    "rote.wisdom": ("rote", "rote.errors", "rote.host"),
    "rote.runtime.comm": ("rote.errors", "rote.launcher", "rote.layout"),
    "rote.runtime.copy": ("rote.layout", "rote.compiler"),
    "rote.runtime.exchange": ("rote.errors", "rote.layout", "rote.compiler", "rote.runtime.comm", "rote.runtime.copy"),
    "rote.runtime.executor": (
        *("rote.errors", "rote.layout", "rote.compiler"),
        *("rote.runtime.comm", "rote.runtime.copy", "rote.runtime.exchange"),
    ),
    "rote.runtime.program": (
        *("rote.errors", "rote.layout", "rote.compiler"),
        *("rote.runtime.comm", "rote.runtime.copy", "rote.runtime.exchange", "rote.runtime.executor"),
    ),
    "rote.runtime.tuning": (
        *("rote.errors", "rote.layout", "rote.compiler", "rote.wisdom"),
        *("rote.runtime.comm", "rote.runtime.exchange", "rote.runtime.program"),
    ),
    "rote.runtime": ("rote.errors", "rote.layout", "rote.compiler"),
    "rote.simulate": ("rote.errors", "rote.layout", "rote.compiler", "rote.runtime.copy.regions"),
    "rote.io": ("rote.errors", "rote.layout", "rote.compiler", "rote.runtime"),
    "rote.functions.distributed": ("rote.layout", "rote.runtime.comm.protocol"),
    "rote.functions.moves": (
        *("rote.errors", "rote.host", "rote.layout", "rote.compiler", "rote.functions.distributed"),
        *("rote.runtime.comm.protocol", "rote.runtime.comm.cache", "rote.runtime.comm.collective_errors"),
    ),
    "rote.functions.sharing": ("rote.errors", "rote.layout", "rote.functions.distributed"),
    "rote.functions.rules": (
        *("rote.errors", "rote.runtime.comm.protocol", "rote.runtime.comm.collective_errors"),
        *("rote.functions.distributed", "rote.functions.moves", "rote.functions.sharing"),
    ),
    "rote.functions.alignment": (
        *("rote.grammar", "rote.layout", "rote.compiler"),
        *("rote.functions.distributed", "rote.functions.moves"),
    ),
    "rote.functions.elements": (
        *("rote.grammar", "rote.errors", "rote.layout", "rote.compiler", "rote.runtime"),
        *("rote.functions.rules", "rote.functions.distributed", "rote.functions.moves", "rote.functions.alignment"),
        "rote.functions.sharing",
    ),
    "rote.functions.rearranging": (
        *("rote.grammar", "rote.errors", "rote.layout", "rote.compiler", "rote.runtime"),
        *("rote.functions.rules", "rote.functions.distributed", "rote.functions.moves", "rote.functions.alignment"),
        "rote.functions.sharing",
    ),
    "rote.functions.contraction": (
        *("rote.grammar", "rote.errors", "rote.layout", "rote.compiler"),
        *("rote.functions.distributed", "rote.functions.moves", "rote.functions.alignment"),
    ),
    "rote.functions.reducing": (
        *("rote.grammar", "rote.errors", "rote.layout", "rote.compiler", "rote.runtime.copy.regions"),
        *("rote.functions.rules", "rote.functions.distributed", "rote.functions.moves", "rote.functions.alignment"),
        *("rote.functions.elements", "rote.functions.rearranging", "rote.functions.contraction"),
    ),
    "rote.functions.sorts": (
        *("rote.errors", "rote.layout", "rote.runtime"),
        *("rote.functions.rules", "rote.functions.distributed", "rote.functions.moves", "rote.functions.alignment"),
        *("rote.functions.rearranging", "rote.functions.reducing"),
    ),
    "rote.functions.linalg": (
        *("rote.grammar", "rote.errors", "rote.layout", "rote.runtime.comm.collective_errors"),
        *("rote.functions.rules", "rote.functions.distributed", "rote.functions.moves", "rote.functions.alignment"),
        "rote.functions.sharing",
        *("rote.functions.elements", "rote.functions.rearranging", "rote.functions.contraction"),
        "rote.functions.reducing",
    ),
    # The front hands out the modules of its rooms, and names them to type checkers.
    "rote.functions": (
        *("rote.functions.elements", "rote.functions.rearranging", "rote.functions.reducing"),
        *("rote.functions.sorts", "rote.functions.linalg"),
    ),
    "rote.tensor.methods": ("rote.errors", "rote.late", "rote.functions"),
    "rote.tensor": (
        *("rote.errors", "rote.late", "rote.layout", "rote.compiler", "rote.runtime", "rote.io"),
        *("rote.functions", "rote.tensor.methods"),
    ),
    "rote.random": ("rote.layout", "rote.compiler", "rote.runtime", "rote.functions", "rote.tensor"),
    "rote.testing": ("rote.grammar", "rote.errors", "rote.layout", "rote.runtime", "rote.tensor"),
    "rote.plot.text": ("rote.layout",),
    "rote.plot": ("rote.errors", "rote.layout", "rote.compiler"),
    "rote.fft.transforms": ("rote.errors", "rote.grammar"),
    "rote.fft.request.request": ("rote.grammar", "rote.errors", "rote.layout", "rote.fft.transforms"),
    "rote.fft.request": (
        *("rote.grammar", "rote.errors", "rote.layout", "rote.compiler", "rote.runtime", "rote.tensor"),
        *("rote.fft.transforms", "rote.fft.request.request"),
    ),
    "rote.fft.kernels": (
        *("rote.errors", "rote.host", "rote.layout", "rote.compiler", "rote.runtime"),
        *("rote.fft.transforms", "rote.fft.request"),
    ),
    "rote.fft.walk": (
        *("rote.errors", "rote.late", "rote.grammar", "rote.layout", "rote.compiler", "rote.html"),
        *("rote.fft.transforms", "rote.fft.request"),
    ),
    "rote.fft.families": (
        *("rote.errors", "rote.grammar", "rote.layout", "rote.compiler", "rote.runtime.comm.protocol"),
        *("rote.fft.transforms", "rote.fft.request", "rote.fft.walk"),
    ),
    "rote.fft.program": (
        *("rote.grammar", "rote.errors", "rote.layout", "rote.compiler", "rote.runtime", "rote.tensor"),
        "rote.functions.sharing",
        *("rote.fft.transforms", "rote.fft.request", "rote.fft.kernels", "rote.fft.walk"),
        *("rote.fft.families", "rote.functions.moves"),
    ),
    "rote.fft.tuning": (
        *("rote.layout", "rote.compiler", "rote.runtime"),
        *("rote.fft.request", "rote.fft.walk", "rote.fft.families", "rote.fft.program"),
    ),
    "rote.fft.plan": (
        *("rote.errors", "rote.layout", "rote.compiler", "rote.runtime", "rote.tensor"),
        *("rote.fft.transforms", "rote.fft.request", "rote.fft.walk", "rote.fft.families", "rote.fft.program"),
        *("rote.fft.tuning", "rote.functions.moves"),
    ),
    "rote.fft.functions": (
        *("rote.errors", "rote.layout", "rote.compiler", "rote.runtime", "rote.functions", "rote.tensor"),
        *("rote.fft.transforms", "rote.fft.request", "rote.fft.walk", "rote.fft.families", "rote.fft.program"),
        "rote.fft.plan",
    ),
    "rote.fft": (),
    "rote.array_api": (
        *("rote.grammar", "rote.errors", "rote.layout", "rote.compiler", "rote.runtime"),
        *("rote.functions", "rote.tensor", "rote.fft"),
    ),
    "rote.bench": (
        *("rote", "rote.errors", "rote.launcher", "rote.host", "rote.layout", "rote.compiler", "rote.runtime"),
        *("rote.tensor", "rote.fft"),
    ),
    "rote.cli": (
        *("rote", "rote.errors", "rote.launcher", "rote.host", "rote.layout", "rote.compiler", "rote.wisdom"),
        *("rote.runtime", "rote.io", "rote.tensor", "rote.plot", "rote.fft", "rote.bench"),
    ),
    "rote.compat": ("rote",),  # names of other packages, over the public ones
    "rote.__main__": ("rote.cli",),
    # The door names everything to type checkers and imports nothing: see the test of its eager imports.
    "rote": (
        *("rote.grammar", "rote.errors", "rote.layout", "rote.compiler", "rote.simulate"),
        *("rote.runtime", "rote.functions", "rote.tensor", "rote.random", "rote.plot", "rote.fft", "rote.wisdom"),
        *("rote.array_api", "rote.testing"),
    ),
}

NUMBERLESS = (
    *("rote", "rote.__main__", "rote.grammar", "rote.errors", "rote.launcher", "rote.host"),
    *("rote.caches", "rote.late"),
)

# The decorator of all functions that remember: every room may import it but those that import nothing of the house.
REMEMBERING = "rote.caches"

# Package from outside -> the rooms or modules that may import it.
OUTSIDE: dict[str, tuple[str, ...]] = {
    "numpy": tuple(room for room in ROOMS if room not in NUMBERLESS),
    "lark": ("rote.grammar.build",),
    "mpi4py": ("rote.runtime.comm.mpi",),
    "pyfftw": ("rote.fft.kernels.fftw_core", "rote.bench.local_libraries"),
    "scipy": ("rote.compiler.relabel", "rote.fft.kernels.backends.scipyfft", "rote.bench.local_libraries"),
    "ducc0": ("rote.fft.kernels.backends.ducc", "rote.bench.local_libraries"),
    "mkl_fft": ("rote.bench.local_libraries", "rote.bench.rote_cases"),
    "mpi4py_fft": ("rote.bench.mpi_libraries",),
    "dtfft": ("rote.bench.mpi_libraries",),
    "platformdirs": ("rote.wisdom",),
    "matplotlib": ("rote.plot", "rote.cli.picture", "rote.bench.picture"),
    "mpl_toolkits": ("rote.plot",),
    "click": ("rote.cli",),
    "rich": ("rote.cli", "rote.io.progress"),
    "h5py": ("rote.io.hdf5", "rote.compat.mpi4py_fft.io"),
    "zarr": ("rote.io.zarr",),
    "xarray": ("rote.tensor.protocols",),
    "hypothesis": ("rote.testing.strategies",),
    "pytest": ("rote.testing.plugin",),
}

LONGEST, SHORTEST = 700, 25  # lines of one file: it tells one story, from the value to its operations to its door

# Files that may be longer, or shorter, and why. The front of a folder, `__init__.py`, may always be short.
UNUSUAL = {
    "rote/__main__.py": "python -m rote wants a file of this name",
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
        return (
            ""
            if module in ("rote", "rote.fft", "rote.late", "rote.testing", "rote.functions")
            else "imports what only the running program knows; name it"
        )
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
    """Those inside functions and under TYPE_CHECKING count too; the doors name all that is behind them."""
    modules = {module_name(path) for path in files() if not is_package(path)}
    arrows: dict[str, set[str]] = {module: set() for module in modules}
    for module, imported in all_imports():
        for name in (imported.target, imported.target.rpartition(".")[0]):
            if module in modules and name in modules:
                arrows[module].add(name)
    assert circle(arrows) == []
    assert arrows["rote.layout.refine"] >= {"rote.layout.layout", "rote.layout.view"}
    assert {"rote.layout.grid", "rote.layout.refine"} <= set(
        circle(arrows | {"rote.layout.grid": {"rote.layout.refine"}})
    )


def test_no_door_is_open_for_nobody() -> None:
    """What a room may import, some file of it does; but for local transforms, which may ask for costs."""
    targets: dict[str, set[str]] = {}
    for module, imported in all_imports():
        targets.setdefault(str(room_of(module)), set()).add(imported.target)
    idle = []
    for room, places in ROOMS.items():
        taken = targets.get(room, set())
        idle += [(room, place) for place in places if place != "rote" and not any(within(t, place) for t in taken)]
    assert [pair for pair in idle if pair[0] != "rote.fft.kernels"] == []


def test_what_comes_late_is_there() -> None:
    """What a value hands out by name is a public function, or a module, of a room above it, and no other goes up."""
    for module, name in HOMES.values():
        assert room_of(f"rote.{module}") in ("rote.html", "rote.plot", "rote.array_api", "rote.fft.functions")
        assert not name or name in import_module(f"rote.{module}").__all__
    assert set(HOMES) == set(get_args(Late))


def test_exactly_one_file_imports_mpi4py() -> None:
    """MPI has one door."""
    assert {module for module, found in all_imports() if within(found.target, "mpi4py")} == {"rote.runtime.comm.mpi"}


def test_the_costly_imports_wait() -> None:
    """What is optional, and the files that import lark, mpi4py and pyfftw, are imported inside functions only."""
    late = ("matplotlib", "mpl_toolkits", "scipy", "ducc0", "mkl_fft", "rote.grammar.build", "rote.runtime.comm.mpi")
    late += ("pyfftw", "rote.fft.kernels.backends.fftw", "h5py", "zarr", "xarray")
    eager = [(m, f.target) for m, f in all_imports() if f.eager and any(within(f.target, name) for name in late)]
    assert eager == []


def test_verify_is_a_second_program() -> None:
    """What proves a plan right shares no code with what found it and what priced it."""
    shared = [found.target for module, found in all_imports() if within(module, "rote.compiler.verify")]
    names = "candidates compile cost explain halo machine movement.matrix movement.volumes plan rules search"
    searching = [f"rote.compiler.{name}" for name in names.split()]
    held = {module for module, _ in all_imports() if within(module, "rote.compiler.verify")}
    assert held == {module_name(path) for path in files() if "/verify/" in path and not is_package(path)}
    assert [name for name in shared if any(within(name, place) for place in searching)] == []


def test_the_door_imports_nothing_of_the_house() -> None:
    """What `import rote` runs is the standard library's."""
    eager = [found.target for module, found in all_imports() if module == "rote" and found.eager]
    assert [name for name in eager if name.partition(".")[0] not in sys.stdlib_module_names] == []


def test_files_are_neither_long_nor_short() -> None:
    """A file tells one story from beginning to end; one that is longer, or has few lines, says why."""
    for path, text in files().items():
        lines = len(text.splitlines())
        fits = lines <= LONGEST and (lines >= SHORTEST or is_package(path))
        assert fits != (path in UNUSUAL), f"{path}: {lines} lines, {UNUSUAL.get(path)}"


def test_unusual_files_are_there() -> None:
    """Nothing is said of a file that does not exist."""
    assert sorted(UNUSUAL.keys() - files().keys()) == []


def promised(path: str) -> set[str]:
    """The functions of a library's file that the protocol of libraries describes, once for all of them."""
    folder, _, name = path.rpartition("/")
    if folder != "fft/kernels/backends" or is_package(path) or name == "protocol.py":
        return set()
    (library,) = [n for n in tree(f"{folder}/protocol.py").body if isinstance(n, ast.ClassDef) and n.name == "Library"]
    return {n.name for n in library.body if isinstance(n, ast.FunctionDef) and ast.get_docstring(n)}


def test_public_things_have_docstrings() -> None:
    """A module that holds something, and each public function and class at its top level, says what it is."""
    silent = []
    for path in files():
        nodes, said = tree(path).body, promised(path)
        things = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
        public = [n for n in things if not n.name.startswith("_") and n.name not in said]
        public = [n for n in public if "overload" not in map(ast.unparse, n.decorator_list)]
        silent += [f"{path}: {n.name}" for n in public if not ast.get_docstring(n)]
        if nodes and not ast.get_docstring(tree(path)):
            silent.append(path)
    assert silent == []


def test_docstrings_do_not_repeat_a_protocol() -> None:
    """A method whose text is that of the protocol or base class that it keeps, in this file or another, has none."""
    for path in files():
        for node in (each for each in ast.walk(tree(path)) if isinstance(each, ast.ClassDef)):
            for method in (each for each in node.body if isinstance(each, ast.FunctionDef)):
                text = ast.get_docstring(method)
                assert not text or text not in protocol_texts(method.name, path, node.name), (path, node.name, text)


@cache
def protocols() -> tuple[tuple[str, ast.ClassDef], ...]:
    """The classes that only say what others do, each with its file."""
    classes = [(path, node) for path in files() for node in tree(path).body if isinstance(node, ast.ClassDef)]
    return tuple((p, n) for p, n in classes if {ast.unparse(b) for b in n.bases} & {"Protocol", "ABC"})


def protocol_texts(method: str, path: str, owner: str) -> set[str]:
    """What protocols other than this class say of a method of that name."""
    texts = set()
    for home, node in protocols():
        for each in node.body if (home, node.name) != (path, owner) else []:
            if isinstance(each, ast.FunctionDef) and each.name == method:
                texts.add(ast.get_docstring(each) or "no text")
    return texts


def test_protocols_are_found() -> None:
    """So that the test above compares with something."""
    assert {node.name for _, node in protocols()} >= {"Comm", "MpiHandle", "Library", "Method", "Distributed"}
    assert [text.startswith("Return when all ranks") for text in protocol_texts("barrier", "", "")] == [True]
    assert protocol_texts("barrier", "rote/runtime/comm/protocol.py", "Comm") == set()


# --- and each wall can fail ---------------------------------------------------------------------------------------

BREAKS = [
    ("rote.grammar.parser", "import numpy"),
    ("rote.grammar.text", "def f():\n    import lark"),
    ("rote.grammar.nodes", "from ..errors import LayoutError"),
    ("rote.grammar.nodes", "from rote import layout"),
    ("rote.grammar.parser", "from ..caches import memoized"),
    ("rote.caches", "from .grammar import parser"),
    ("rote.grammar.nodes", "from mpi4py import MPI"),
    ("rote.errors", "import numpy as np"),
    ("rote.layout.grid", "from ..compiler.plan import Plan"),
    ("rote.layout.grid", "from ..compiler import plan"),
    ("rote.layout.grid", "from .. import compiler"),
    ("rote.layout.grid", "import rote"),
    ("rote.layout.grid", "from rote import Plan"),
    ("rote.layout.grid", "def f():\n    from rote.compiler import plan"),
    ("rote.layout.grid", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..tensor import DistTensor"),
    ("rote.layout.grid", "import importlib\nimportlib.import_module('rote.tensor')"),
    ("rote.layout.grid", "from importlib import import_module\nimport_module('..tensor', __package__)"),
    ("rote.layout.grid", "__import__('mpi4py')"),
    ("rote.layout.grid", "import importlib\nimportlib.import_module(name)"),
    ("rote.compiler.plan", "from ..runtime.comm.protocol import Comm"),
    ("rote.compiler.plan", "import mpi4py.MPI"),
    ("rote.compiler.movement.volumes", "from ..plan import Plan"),
    ("rote.runtime.comm.threads", "from mpi4py import MPI"),
    ("rote.runtime.program", "from ..tensor import DistTensor"),
    ("rote.runtime.program", "from ..fft import fftn"),
    ("rote.runtime.program", "from .tuning.methods import chosen"),
    ("rote.simulate", "from .runtime.program import bind"),
    ("rote.runtime.comm.mpi", "from ..copy.regions import Region"),
    ("rote.runtime.copy.strided", "from ..comm.protocol import Comm"),
    ("rote.runtime.exchange.one_sided", "from ..program import bind"),
    ("rote.fft.request.request", "from .families.choose import choices"),
    ("rote.fft.walk.walk", "from ..program.program import BoundWalk"),
    ("rote.compiler.verify.certificate", "from ...runtime import program"),
    ("rote.functions.moves", "from .alignment import aligned"),
    ("rote.functions.moves", "from .rules import follows"),
    ("rote.functions.alignment", "from .elements.operands import lie_alike"),
    ("rote.functions.elements.likes", "from ..rearranging.indexing import getitem"),
    ("rote.functions.rearranging.keys", "from ..sorts import sorting"),
    ("rote.functions.contraction.contraction", "from ..linalg.products import matmul"),
    ("rote.functions.reducing.extrema", "from ..sorts.sorting import sort"),
    ("rote.functions.sorts.sorting", "from ..linalg.norms import norm"),
    ("rote.functions.linalg.norms", "from ...tensor import DistTensor"),
    ("rote.tensor", "from .fft import fftn"),
    ("rote.tensor", "class T:\n    def f(self):\n        from rote import fft"),
    ("rote.io", "from . import fft"),
    ("rote.plot", "import rote.fft.walk.walk"),
    ("rote.html", "import rote.fft.walk.walk"),
    ("rote.html", "from matplotlib import colors"),
    ("rote.html", "from ..tensor import DistTensor"),
    ("rote.layout.grid", "from ..html.reprs import card"),
    ("rote.compiler.search", "from ..html.page import plan_page"),
    ("rote.tensor", "import matplotlib.pyplot as plt"),
    ("rote.tensor", "import rich"),
    ("rote.plot", "import click"),
    ("rote.fft.kernels.kernel", "import mpi4py"),
    ("rote.fft.functions.fourier", "from ..kernels.kernel import Kernel"),
    ("rote.fft.plan", "from .functions.fourier import fftn"),
    ("rote.fft.tuning.walks", "from ..plan import FFT"),
    ("rote.fft.walk.walk", "import pyfftw"),
    ("rote.fft.kernels.kernel", "import pyfftw"),
    ("rote.fft.walk.walk", "from rote.cli import main"),
    ("rote.cli", "import mpi4py"),
    ("rote.compat", "import mpi4py"),
    ("rote.compat", "from rote.tensor import DistTensor"),
    ("rote.compat", "from ..layout.grid import Grid"),
    ("rote.cli", "import scipy"),
    ("rote.compiler.search", "def f():\n    from scipy import optimize"),
    ("rote.newcomer", "import os"),
    ("rote", "import numpy"),
]


@pytest.mark.parametrize(("module", "source"), BREAKS)
def test_each_wall_can_be_hit(module: str, source: str) -> None:
    """Every way to write a forbidden import is seen, exactly once."""
    assert len(breaches(ast.parse(source), module)) == 1


ALLOWED = [
    ("rote.grammar.build", "from lark import Lark"),
    ("rote.layout.grid", "import numpy as np\nfrom ..errors import LayoutError\nfrom .indexset import IndexSet"),
    ("rote.runtime.comm.mpi", "from mpi4py import MPI\nfrom .protocol import Comm"),
    ("rote.fft.walk.walk", "from ..transforms import complex_dtype\nimport functools"),
    ("rote.fft.functions.fourier", "from rote.tensor import DistTensor\nfrom ..request.request import as_request"),
    ("rote.fft.kernels.fftw_core", "def f():\n    import pyfftw"),
    ("rote.compiler.relabel", "def f():\n    from scipy.optimize import linear_sum_assignment"),
    ("rote.cli", "import click, rich.table\nimport rote\nfrom rote import fft, Grid"),
]


@pytest.mark.parametrize(("module", "source"), ALLOWED)
def test_walls_have_doors(module: str, source: str) -> None:
    """What the design allows is allowed, so that the test above does not pass by refusing everything."""
    assert breaches(ast.parse(source), module) == []


def test_eagerness_is_seen() -> None:
    """An import in a function or under TYPE_CHECKING waits; at the top, in a class or in a try it does not."""
    text = (
        "import a\n"
        "def f():\n    import b\n"
        "if TYPE_CHECKING:\n    import c\nelse:\n    import d\n"
        "class K:\n    import e\n"
        "try:\n    import f\nexcept ImportError:\n    pass\n"
        "g = lambda: __import__('g')\n"
    )
    found = {item.target: item.eager for item in imports(ast.parse(text), "rote.layout.x", False)}
    assert found == {"a": True, "b": False, "c": False, "d": True, "e": True, "f": True, "g": False}


def test_relative_imports_are_resolved() -> None:
    """Relative to the module's package: a folder's front counts as its own package."""
    source = ast.parse("from . import x\nfrom .y import z\nfrom .. import w")
    inside = [item.target for item in imports(source, "rote.layout.grid", False)]
    front = [item.target for item in imports(source, "rote.layout", True)]
    assert inside == ["rote.layout.x", "rote.layout.y.z", "rote.w"]
    assert front == inside

"""The tests' own marks: registered ones only, a quick sibling of every slow test, and no clock on the wall.

Read off the syntax of every test file, so that a test which does not run is looked at too.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from house import ROOT

BUILT_IN = {"parametrize", "usefixtures", "skipif", "skip", "xfail", "filterwarnings"}
CLOCKS = {"perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time.time", "time_ns", "default_timer"}
TIMERS = {"timeit", "repeat", "Timer"}  # of timeit: by the clock on the wall unless `timer=` says otherwise
FILES = sorted((ROOT / "tests").rglob("test_*.py"))


@cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


def names(node: ast.AST) -> set[str]:
    """Every name in a piece of syntax, and `a.b` for each attribute that is looked up."""
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return found | {ast.unparse(each) for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def marks(node: ast.AST) -> set[str]:
    """The marks that stand in a piece of syntax: pytest.mark.slow -> slow."""
    attributes = [each for each in ast.walk(node) if isinstance(each, ast.Attribute)]
    return {each.attr for each in attributes if isinstance(each.value, ast.Attribute) and each.value.attr == "mark"}


def cases(source: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(source):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node


def decorated(test: ast.FunctionDef, source: ast.Module) -> set[str]:
    """The marks and names of a test's decorators, those of the whole file, and of the lists of cases they name."""
    found = set().union(*(names(each) for each in test.decorator_list), *whole_file(source))
    lists = [node for node in source.body if isinstance(node, ast.Assign) and names(node.targets[0]) & found]
    return found.union(*(names(each.value) for each in lists))


def whole_file(source: ast.Module) -> list[set[str]]:
    given = [node for node in source.body if isinstance(node, ast.Assign) and "pytestmark" in names(node.targets[0])]
    return [names(node.value) for node in given]


def is_slow(test: ast.FunctionDef, source: ast.Module) -> bool:
    """Whether all cases of a test are slow: it is decorated so itself, not some of its parameters."""
    return "pytest.mark.slow" in {ast.unparse(each) for each in test.decorator_list} | set().union(*whole_file(source))


# --- the clock on the wall ------------------------------------------------------------------------------------------


def by_the_wall(source: ast.Module) -> list[str]:
    """Every assertion outside a test of perf that hangs on the clock on the wall, by line.

    What is assigned or returned from the clock, or from what hangs on it, hangs on it; so does the text of a program
    that reads it, and what is found by running that.
    """
    found = []
    shared = hanging(source.body, set())
    for node in source.body:
        if isinstance(node, ast.FunctionDef) and "perf" not in marks(ast.Module(node.decorator_list, [])):
            local = hanging(node.body, shared)
            found += [
                f"line {each.lineno}: {ast.unparse(each)}"
                for each in ast.walk(node)
                if isinstance(each, ast.Assert) and hangs(each.test, local)
            ]
    return found


def names_a_clock(text: str) -> bool:
    """Whether a file names a clock or `timeit` at all: if not, nothing in it hangs on one, and nobody need look."""
    return any(name in text for name in {*CLOCKS, "timeit"})


def hanging(body: list[ast.stmt], known: set[str]) -> set[str]:
    """The names that hang on the clock after a body of statements has run, to a fixed point."""
    found, nodes = set(known), [each for statement in body for each in shallow(statement)]
    while True:
        before = len(found)
        for node in nodes:
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if hangs(node.value, found):
                    found |= {each for target in targets for each in bound(target)}
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if any(hangs(each, found) for each in node.args):  # times.append(...)
                    found |= bound(node.func.value)
            elif isinstance(node, ast.FunctionDef):
                inner = hanging(node.body, found)
                returned = [each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value]
                if any(hangs(each, inner) for each in returned):
                    found.add(node.name)
        if len(found) == before:
            return found


def shallow(node: ast.AST) -> Iterator[ast.AST]:
    """A piece of syntax and what is in it, but not what is in functions: their names are their own."""
    yield node
    if not isinstance(node, ast.FunctionDef):
        for child in ast.iter_child_nodes(node):
            yield from shallow(child)


def bound(target: ast.expr) -> set[str]:
    """The plain names that an assignment to a target, or a call of a method of it, changes."""
    if isinstance(target, ast.Tuple | ast.List):
        return set().union(*(bound(each) for each in target.elts))
    while isinstance(target, ast.Subscript | ast.Attribute | ast.Starred):
        target = target.value
    return {target.id} if isinstance(target, ast.Name) else set()


def hangs(node: ast.expr, known: set[str]) -> bool:
    """Whether an expression reads the clock on the wall, or a name that hangs on it."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id in known:
            return True
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and _reads_it(each.value):
            return True
        if isinstance(each, ast.Call):
            called = ast.unparse(each.func)
            if called.split(".")[-1] in CLOCKS or called in CLOCKS:
                return True
            given = {keyword.arg for keyword in each.keywords}
            if called.split(".")[0] == "timeit" and called.split(".")[-1] in TIMERS and "timer" not in given:
                return True
    return False


def _reads_it(text: str) -> bool:
    """Whether a text is a program that reads the clock on the wall."""
    return any(f"{clock}()" in text for clock in CLOCKS)


# --- the rules ------------------------------------------------------------------------------------------------------


def registered() -> set[str]:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    return {line.partition(":")[0] for line in options["markers"]}


def test_the_marks_are_these() -> None:
    """slow, mpi, perf and browser, and no others; what is not for every machine is left out unless asked for."""
    assert registered() == {"slow", "mpi", "perf", "browser"}
    options = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    assert options["addopts"][options["addopts"].index("-m") + 1] == "not slow and not perf and not browser"


def test_marks_are_registered_and_mpi_is_said() -> None:
    """Rule: only registered marks, and "mpi" on each test that takes MPI ranks, and on no other file."""
    allowed = registered() | BUILT_IN
    for path in FILES:
        source = syntax(path)
        assert marks(source) <= allowed, path.name
        for test in cases(source):
            if {each.arg for each in test.args.args} & {"mpirun", "job"}:
                assert "pytest.mark.mpi" in decorated(test, source), f"{path.name}: {test.name} starts MPI: mark it mpi"


def test_a_slow_test_has_a_quick_sibling() -> None:
    """Rule: a run of the quick tests proves something of every file."""
    for path in FILES:
        source = syntax(path)
        assert any(not is_slow(test, source) for test in cases(source)), f"{path.name} has slow tests alone"


def test_only_perf_asserts_on_the_clock() -> None:
    """Rule: other tests count calls, or the time of the process, which a busy machine does not change."""
    named = [path for path in FILES if names_a_clock(path.read_text("utf-8"))]
    assert [(path.name, line) for path in named for line in by_the_wall(syntax(path))] == []


# --- the rules can fail ---------------------------------------------------------------------------------------------

BUSY = [
    "def test_it():\n    start = time.perf_counter()\n    assert time.perf_counter() - start < 1",
    "def test_it():\n    took = time.monotonic() - 1\n    best = min(took, 3)\n    assert best < 1",
    "def test_it():\n    times = []\n    times.append(time.time())\n    assert min(times) < 1",
    "def took():\n    start = perf_counter()\n    return perf_counter() - start\ndef test_it():\n    assert took() < 1",
    "CODE = 'print(time.perf_counter())'\ndef test_it():\n    said = run(CODE)\n    assert float(said) < 1",
    "def test_it():\n    assert min(timeit.repeat(len, number=5)) < 1",
    "def test_it():\n    def program(comm):\n        return time.monotonic_ns()\n    assert run(program) < 1",
]
CALM = [
    "def test_it():\n    start = time.process_time()\n    assert time.process_time() - start < 1",
    "@pytest.mark.perf\ndef test_it():\n    assert time.perf_counter() < 1",
    "def test_it():\n    assert min(timeit.repeat(len, timer=time.process_time)) < 1",
    "def test_it():\n    until = time.monotonic() + 5\n    while time.monotonic() < until: pass\n    assert 1 < 2",
]


@pytest.mark.parametrize("text", BUSY)
def test_a_clock_on_the_wall_is_found(text: str) -> None:
    assert names_a_clock(text) and len(by_the_wall(ast.parse(text))) == 1


@pytest.mark.parametrize("text", CALM)
def test_other_clocks_are_not(text: str) -> None:
    assert by_the_wall(ast.parse(text)) == []


def test_what_is_slow_alone_is_found() -> None:
    """Of a test some of whose cases are slow, the others are quick."""
    text = "@pytest.mark.slow\ndef test_it(): pass\n@pytest.mark.parametrize('part', PARTS)\ndef test_other(part): pass"
    source = ast.parse(text)
    assert [is_slow(test, source) for test in cases(source)] == [True, False]
    source = ast.parse("pytestmark = [pytest.mark.slow, pytest.mark.mpi]\ndef test_it(job): pass")
    (test,) = cases(source)
    assert is_slow(test, source) and "pytest.mark.mpi" in decorated(test, source)

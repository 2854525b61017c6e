"""The package as a whole: what `import rote` costs and starts, its names, the checkout, and all doctests."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import rlcompleter
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from house import ROOT, files, module_name, tree
from packaging.requirements import Requirement

import rote


def python(*args: str, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run this Python on `args` in the folder `cwd`."""
    command = [sys.executable, *args]
    return subprocess.run(
        command, cwd=cwd, check=check, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300
    )


def imported_after(source: str, folder: Path) -> set[str]:
    """Run `source` in a new Python; the top-level packages and rote's own modules that it had at the end."""
    answer = python("-c", f"{source}\nimport sys, json; print(json.dumps(sorted(sys.modules)))", cwd=folder)
    return set(json.loads(answer.stdout.splitlines()[-1]))


def test_import_imports_nothing(tmp_path: Path) -> None:
    """`import rote` imports only what makes its names lazy, and nothing from outside."""
    before = imported_after("", tmp_path)
    new = imported_after("import rote", tmp_path) - before
    assert {name for name in new if name.partition(".")[0] not in sys.stdlib_module_names} == {
        *("rote", "rote.lazy", "rote.version")
    }


@pytest.mark.parametrize(
    ("source", "absent"),
    [
        ("import rote.grammar", {"lark", "numpy", "mpi4py"}),
        ("import rote; rote.parse('[(0),()]')", {"mpi4py", "pyfftw", "matplotlib"}),
        (
            "import rote; rote.compile('[(0),()] -> [(),(0)]', shape=(4, 4), grid=(2,), dtype='c16').verify()",
            {"mpi4py", "pyfftw", "matplotlib"},
        ),
        ("import rote; rote.run(lambda comm: comm.rank, ranks=2)", {"mpi4py", "pyfftw", "matplotlib"}),
        ("import rote; rote.jax, rote.jax.lower", {"jax", "mpi4py", "matplotlib"}),
        ("import rote; rote.simulate, rote.DistTensor, rote.fft, rote.plot", {"mpi4py", "matplotlib"}),
        ("import rote.fft", {"numpy", "rich", "scipy", "mpi4py", "matplotlib", "lark", "pyfftw", "ducc0"}),
        (
            "import rote.fft; rote.fft.algorithms, rote.fft.FFT, rote.fft.fftn",
            {"pyfftw", "scipy", "ducc0", "mpi4py", "matplotlib"},
        ),
    ],
)
def test_nothing_starts_mpi_before_it_must(source: str, absent: set[str], tmp_path: Path) -> None:
    """Parsing, compiling, in-process ranks and all public names work without MPI, plots or kernels being loaded."""
    assert imported_after(source, tmp_path) & absent == set()


_BARE = """
import sys
sys.modules.update(dict.fromkeys(("mpi4py", "mpich", "pyfftw", "ducc0", "mkl_fft", "scipy", "matplotlib")))
import numpy as np, rote

values = np.random.default_rng(0).random((8, 6, 5))


def program(comm):
    x = rote.DistTensor.from_global(values, "block[(0),(1),()]", comm)
    a = rote.DistTensor.from_global(values[0, :5], "block[(0),()]", comm)
    fft = rote.fft.FFT(values.shape, "block[(0),(1),()]", comm=comm)
    products, solution = np.einsum("ijk,ijl->kl", values, values), np.linalg.solve(values[0, :5], np.ones(5))
    rote.save("x.npy", x)
    with rote.config(implicit="allow"):
        return {
            "fftn": np.allclose(rote.fft.fftn(x).to_global(), np.fft.fftn(values)),
            "rfftn": np.allclose(rote.fft.irfftn(rote.fft.rfftn(x), s=x.shape), x),
            "FFT": np.allclose(fft.backward(fft.forward(x.astype("c16"))), x),
            "move": np.array_equal(x.redistribute("[(),(0),(1)]").to_global(), values),
            "einsum": np.allclose(rote.einsum("ijk,ijl->kl", x, x).to_global(), products),
            "sum": np.allclose(np.sin(x).sum(axis=0).to_global(), np.sin(values).sum(axis=0)),
            "sort": np.array_equal(np.sort(x, axis=0).to_global(), np.sort(values, axis=0)),
            "solve": np.allclose(np.linalg.solve(a, np.ones(5)).to_global(), solution),
            "load": np.array_equal(rote.load("x.npy", "[(0),(),()]", comm=comm).to_global(), values),
        }


results = {name: all(result[name] for result in rote.run(program, ranks=4)) for name in rote.run(program, ranks=1)[0]}
plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(5, 4), grid=(2,))
plan.verify()
results["predict"] = rote.predict(plan, machine=rote.Machine.load("k-computer")).seconds > 0
from rote.compat.mpi4py_fft import PFFT
from rote.cli import main
results["command"] = main(["fft", "x.npy", "y.npy", "--ranks", "4", "--check"], standalone_mode=False) in (None, 0)
print(sorted(name for name, right in results.items() if not right), len(results))
"""


def test_works_without_mpi4py_and_pyfftw(tmp_path: Path) -> None:
    """Transforms, moves, functions, files, plans and commands need NumPy alone, and are right: ranks are threads."""
    answer = python("-c", _BARE, cwd=tmp_path)
    assert answer.stdout.splitlines()[-1] == "[] 11", answer.stderr


def test_the_page_of_versions_shows_the_warning() -> None:
    """A name that goes warns in the words of the page, which name what to write instead."""
    old = rote.errors.deprecated("rote.old", "rote.new")(lambda: 7)
    with pytest.warns(DeprecationWarning) as caught:
        assert old() == 7
    page = (ROOT / "notebooks" / "versions.md").read_text("utf-8")
    assert f"DeprecationWarning: {caught[0].message}" in page.splitlines()


def test_every_name_of_the_ffts_is_there() -> None:
    """A name that is fetched late is kept and listed, and is no module; a misspelt one is an AttributeError."""
    for name in sorted(rote.fft.__all__):
        value = getattr(rote.fft, name)
        assert vars(rote.fft)[name] is value and not isinstance(value, ModuleType)
    for package in (rote, rote.fft):
        assert {name for name in dir(package) if not name.startswith("__")} >= {*package.__all__}
        assert not {"attach", "os", "annotations", "TYPE_CHECKING", "lazy"} & {*dir(package)}
    with pytest.raises(AttributeError, match=r"module 'rote\.fft' has no attribute 'ffftn'"):
        rote.fft.ffftn  # noqa: B018


PURE = """
import os
for name in ("fork", "register_at_fork", "sched_getaffinity", "memfd_create"):
    if hasattr(os, name):
        delattr(os, name)
import numpy as np
import rote
from click.testing import CliRunner
from rote.cli import main
array = np.arange(30.0).reshape(5, 6)
dist = rote.parse("block[(0),()]").on((5, 6), 3)
assert (dist.local_shape(2), dist.owners((4, 5)), dist.indices(2)[0].tolist()) == ((1, 6), (2,), [4])
assert str(rote.parse("block[(0),()]").move(0, to=1)) == "block[(),(0)]"
plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(5, 6), grid=3)
plan.verify()
assert rote.Plan.from_json(plan.to_json()) == plan and "alltoall" in plan.explain() and plan.cost.messages == 2
blocks = rote.simulate.run(plan, rote.simulate.scatter(array, plan.source))
assert np.array_equal(rote.simulate.gather(blocks, plan.target), array)
assert rote.fft.compare((8, 8, 8), ranks=4)[0].walk and plan.to_html()
for line in (["show", "block[(0),()]"], ["explain", "[(0)] -> [()]"], ["predict", "8x8x8", "--ranks", "4"]):
    assert CliRunner().invoke(main, line).exit_code == 0, line
assert rote.run(lambda comm: comm.rank, ranks=2) == [0, 1]
"""


def test_pure_functions_need_no_unix(tmp_path: Path) -> None:
    """Where Python has no fork, as on Windows and in Pyodide, all that starts no MPI works: layouts, plans, proofs,
    simulation, predictions, the commands that show them, and in-process ranks."""
    assert python("-W", "error", "-c", PURE, cwd=tmp_path).stdout == ""


# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", rote.__all__)
def test_every_public_name_resolves(name: str) -> None:
    """Each name of `__all__` is there, is kept once fetched, and is listed."""
    value = getattr(rote, name)
    assert vars(rote)[name] is value
    assert name in dir(rote)


DOORS = ["rote/__init__.py", "fft/__init__.py", "rote/functions/__init__.py", "rote/testing/__init__.py"]
DOORS += ["rote/jax/__init__.py"]


@pytest.mark.parametrize("path", DOORS)
def test_type_checkers_see_the_same_names(path: str) -> None:
    """What the imports under TYPE_CHECKING would give is what a package gives, and all that it lists."""
    (block,) = [node for node in tree(path).body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    seen = {a.name: n.module or "" for n in block.body if isinstance(n, ast.ImportFrom) for a in n.names}
    package = importlib.import_module(module_name(path))
    for name, home in seen.items():
        module = importlib.import_module(f"{package.__name__}.{home}".rstrip("."))
        assert getattr(package, name) is getattr(module, name)
    assert len({*package.__all__}) == len(package.__all__)
    assert seen.keys() - {*package.__all__} == ({"array_api", "jax", "testing"} if package is rote else set())
    assert {*package.__all__} <= seen.keys() <= {*dir(package)}


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("zeros", "rote.DistTensor.zeros(shape, layout)"),
        ("array", "rote.DistTensor.from_global(array, layout)"),
        ("ones", "rote.array_api.ones(shape, layout=…)"),
        ("fftn", "rote.fft.fftn"),
        ("halo", "x.halo(width)"),
        ("world", "rote.runtime.world()"),
        ("PFFT", "from rote.compat.mpi4py_fft import PFFT"),
        ("explain", 'rote.compile("A -> B", shape=…, grid=…).explain()'),
        ("Shard", "a layout, as text: block[(0),()] splits mode 0"),
    ],
)
def test_names_of_other_libraries_say_what_to_write(name: str, cure: str) -> None:
    """Law: a name of NumPy, mpi4py-fft, DTensor or the command line that Rote has not is refused with its like."""
    with pytest.raises(AttributeError, match=re.escape(f"module 'rote' has no attribute '{name}'\nwrite {cure}")):
        getattr(rote, name)
    assert name not in rote.__all__


@pytest.mark.parametrize("name", ["solve", "inv", "svd", "norm", "det", "qr", "cholesky"])
def test_names_of_numpy_linalg_say_what_to_write(name: str) -> None:
    """What NumPy has answers under NumPy's name, and SciPy's names that NumPy has not are in `rote.linalg`."""
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'\nwrite numpy.linalg.{name}\(x, …\)"):
        getattr(rote.linalg, name)
    assert name not in rote.linalg.__all__ and hasattr(np.linalg, name)


def values() -> dict[str, object]:
    """What users hold: each public name and module, and values that they give."""
    x = rote.DistTensor.from_global([[1.0, 2.0], [3.0, 4.0]], "block[(0),()]")
    plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(4, 6), grid=2)
    f = rote.fft.FFT((4, 4), "block[(0),()]")
    old = x[:1]
    x += 1  # after which that part is outdated
    made = [old, x, x.T, x.sum(), x[:1], x.layout, x.distribution, x.grid, x.comm, plan]
    made += [
        x.move_to("[(),(0)]"),
        plan.steps[0],
        plan.cost,
        f,
        f.walk,
        rote.Machine(),
        rote.random.default_rng(0),
        x.__array_namespace__(),
        rote.fft,
    ]
    return {
        f"a{number}": value for number, value in enumerate([rote, *(getattr(rote, n) for n in rote.__all__), *made])
    }


def test_names_are_listed_and_completed() -> None:
    """Law: `dir`, `vars`, `inspect.getmembers`, `hasattr` and completion take every public value, whatever the name.

    An attribute that a value does not have is an AttributeError, always.
    """
    names = {*dir(np), *dir(np.ndarray), *dir(dict), "typecodes", "ScalarType", "e", "newaxis", "sctypeDict", "_local_"}
    for name, value in values().items():
        assert dir(value)
        with warnings.catch_warnings(action="ignore"):
            assert inspect.getmembers(value)
        for attribute in names:
            hasattr(value, attribute)
        completer = rlcompleter.Completer({name: value})
        assert completer.complete(f"{name}.", 0), name
    assert "x.sum(" in str(rlcompleter.Completer({"x": rote.DistTensor.zeros(2, "[(0)]")}).attr_matches("x.su"))


def test_modules_do_not_shadow_names(tmp_path: Path) -> None:
    """Importing every submodule leaves each public name what it was: `rote.compile` stays the function."""
    modules = [module_name(path) for path in files() if not path.endswith(("__main__.py", "runtime/mpi.py"))]
    source = f"""
import importlib, types, rote
for name in {modules}:
    importlib.import_module(name)
for name in rote.__all__:
    assert isinstance(getattr(rote, name), types.ModuleType) == (f"rote.{{name}}" in {modules}), name
assert callable(rote.compile) and rote.compiler.compile is not None
"""
    python("-c", source, cwd=tmp_path)


# --- the checkout ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["rote", "rote.grammar", "rote.fft", "rote.layout.layout"])
def test_the_checkout_imports_from_its_root(module: str) -> None:
    """In the root of a checkout Python finds ./rote before any installed one; its neighbours are found too."""
    answer = python("-c", f"import {module}, sys; print(sys.modules[{module!r}].__file__)", cwd=ROOT)
    path = Path(answer.stdout.strip())
    assert path.is_relative_to(ROOT)
    assert module_name(path.relative_to(ROOT).as_posix()) == module


@pytest.mark.parametrize("folder", ["grammar", "fft"])
def test_a_twin_is_refused(folder: str) -> None:
    """In the root of a checkout `import fft` would make a second copy of rote.fft; it says what to write instead."""
    answer = python("-c", f"import {folder}", cwd=ROOT, check=False)
    last = answer.stderr.splitlines()[-1]
    assert answer.returncode != 0
    assert "ImportError" in answer.stderr
    assert f"import rote.{folder}" in last


# --- every module, imported -----------------------------------------------------------------------------------------

# All in one Python of their own: importing rote.runtime.comm.mpi starts MPI, and pytest's own process must not, since
# what MPI leaves in the environment would reach the mpiexec of other tests.
RUNNER = """
import contextlib, doctest, importlib, inspect, io, json, sys
from hypothesis import Phase, settings
sys.path += sys.argv[2:]
from doctests import compare_whole_errors, keep_wisdom_apart
from test_house_docstrings import examples
compare_whole_errors()
keep_wisdom_apart()
pasted = examples()
phases = [phase for phase in Phase if phase is not Phase.explain]  # of what `find` finds no failure is to be explained
settings.register_profile("few", max_examples=5, deadline=None, database=None, phases=phases)
settings.load_profile("few")
results = {}
for name in json.loads(sys.argv[1]):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        try:
            module = importlib.import_module(name)
            names = getattr(module, "__all__", [])
            lost = [n for n in names if names.count(n) > 1 or not hasattr(module, n)]
            runner = doctest.DocTestRunner()
            for test in doctest.DocTestFinder().find(module):
                if inspect.cleandoc(test.docstring) not in pasted:
                    runner.run(test)
            failed, tried = runner.failures, runner.tries
        except Exception as error:
            failed, tried, lost = 1, 0, []
            print(type(error).__name__, error)
    results[name] = failed, tried, text.getvalue(), lost
print(json.dumps(results))
"""


def test_examples_and_names(tmp_path: Path) -> None:
    """The examples that are not public print what they say, among the names of their module; `__all__` names what each
    module has, once each.

    Public ones run pasted (`test_house_docstrings.py`). The runner finds the examples: one that finds nothing passes
    everything.
    """
    modules = [module_name(path) for path in files() if not path.startswith("rote/jax/")]  # others: tests/on_jax
    answer = python("-c", RUNNER, json.dumps(modules), ROOT / "tests", ROOT / "tests" / "house", cwd=tmp_path)
    results = json.loads(answer.stdout.splitlines()[-1])
    assert {name: report for name, (failed, _, report, _) in results.items() if failed} == {}
    assert {name: lost for name, (_, _, _, lost) in results.items() if lost} == {}
    assert sum(tried for _, tried, _, _ in results.values()) > 400


# --- the distribution: rote-tensor, because on PyPI `rote` is another project's, a memoization library ----------------


def project() -> dict[str, object]:
    """The table `project` of pyproject.toml."""
    found: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def test_every_folder_of_code_is_installed() -> None:
    """The packages that are named are the folders that hold modules: one that is forgotten is missed after install."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]
    assert sorted(named) == sorted({module_name(path) for path in files() if path.endswith("__init__.py")})


def test_the_name() -> None:
    """The distribution is rote-tensor; the command is rote, and the extras that ask for others ask for our own."""
    table = project()
    assert table["name"] == "rote-tensor"
    assert table["scripts"] == {"rote": "rote.__main__:start"}
    extras = table["optional-dependencies"]
    assert isinstance(extras, dict)
    asked = [name for wanted in extras.values() for name in wanted if name.startswith("rote")]
    assert asked and all(name.startswith("rote-tensor[") for name in asked)
    named = {extra.strip() for name in asked for extra in name.split("[")[1].rstrip("]").split(",")}
    assert named <= set(extras)


@pytest.mark.parametrize(
    ("platform", "version", "wanted"),
    [
        ("linux", "3.11", {"mpi4py", "pyfftw"}),
        ("darwin", "3.14", {"mpi4py", "pyfftw"}),
        ("win32", "3.14", {"mpi4py", "pyfftw"}),
        ("linux", "3.15", {"mpi4py", "ducc0"}),
        ("emscripten", "3.13", set()),
        ("emscripten", "3.15", set()),
    ],
)
def test_only_what_has_wheels_is_required(platform: str, version: str, wanted: set[str]) -> None:
    """mpi4py and a library of transforms are required where they come as wheels; elsewhere NumPy transforms."""
    needs = project()["dependencies"]
    assert isinstance(needs, list)
    where = {"sys_platform": platform, "python_version": version}
    asked = [Requirement(need) for need in needs]
    compiled = {need.name for need in asked if not need.marker or need.marker.evaluate(where)}
    assert compiled & {"mpi4py", "pyfftw", "ducc0"} == wanted and {"numpy", "lark", "click"} <= compiled


def test_nobody_is_told_to_install_another_project() -> None:
    """No file of the repository has a command or a requirement that would fetch PyPI's `rote`."""
    install = re.compile(
        r"\b(?:pipx?|pip3|uv|conda|mamba)(?: pip| tool)? (?:install|add|run|download)\b((?:(?!\\n|&&|\|)[^\n])*)"
    )
    foreign = re.compile(r"(?<![\w./-])rote(?=\[|[=<>~!]=|[\s`'\"\\;,)]|$)")  # the bare name, with or without extras
    suffixes = {".py", ".md", ".ipynb", ".toml", ".sh", ".yml", ".yaml", ".txt", ""}
    folders = ("rote", "grammar", "fft", "notebooks", "tests", ".ci")
    paths = [*ROOT.iterdir(), *(path for folder in folders for path in (ROOT / folder).rglob("*"))]
    seen = [path for path in paths if path.is_file() and path.suffix in suffixes and "__pycache__" not in path.parts]
    assert {ROOT / name for name in ("README.md", "pyproject.toml", ".ci/run", "rote/cli/doctor.py")} <= set(seen)
    told = []
    for path in seen:
        for line in path.read_text("utf-8", "replace").splitlines():
            commands = [found[1] for found in install.finditer(line)]
            if any(map(foreign.search, commands)) or re.search(r"(?<![\w./$-])rote\[\w", line):
                told.append(f"{path}: {line}")
    assert told == []

"""The pytest plugin: `@pytest.mark.ranks(1, 2, 4)` runs a test on 1, 2 and 4 ranks, with each rank's `comm`.

The ranks are threads of pytest's process. With `pytest --mpi`, mpiexec is started for each such test, and every rank
runs pytest for this one test. Fixtures are made once for all in-process ranks, or once per MPI rank.
"""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Generator
from functools import cache
from typing import Any, cast

import pytest

from ..host import alone, family, launchers

_INSIDE = "ROTE_TESTING_INSIDE"  # environment variable that marks the ranks of one test
_TIMEOUT = 300.0  # seconds for one test under MPI, after which it counts as hanging
_SHOWN = 6000  # characters of the output of failed ranks
_SKIPS = "rote: this rank skips the test: "


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--mpi`."""
    group = parser.getgroup("rote")
    group.addoption("--mpi", action="store_true", help="run tests of @pytest.mark.ranks under mpiexec")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, for `--strict-markers`."""
    config.addinivalue_line("markers", "ranks(*numbers): run the test on each number of ranks; it takes `comm`")


@pytest.fixture
def comm(request: pytest.FixtureRequest) -> Any:
    """The communicator of this rank in a test with `@pytest.mark.ranks(…)`; else the one of only this process."""
    from ..runtime.comm.resolve import world

    return getattr(request, "param", None) or world()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize a marked test by its numbers of ranks.

    Raises:
        UsageError: the marker gives no numbers, or the test cannot run on ranks; the text says why.
    """
    marker = metafunc.definition.get_closest_marker("ranks")
    if marker is None:
        return

    numbers = marker.args
    if not numbers or not all(type(number) is int and number > 0 for number in numbers):
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: ranks{numbers} names no numbers of ranks\nwrite @pytest.mark.ranks(1, 2, 4)"
        )
    if "comm" not in metafunc.fixturenames:
        raise pytest.UsageError(f"{metafunc.definition.nodeid} runs on ranks, but takes no `comm`\nadd the argument")
    if getattr(metafunc.function, "is_hypothesis_test", False):
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: each rank would draw by itself\n"
            "draw outside of ranks: @given(dist_tensors()), and case.run(…) runs on ranks"
        )

    metafunc.parametrize("comm", numbers, indirect=True, ids=[f"ranks{number}" for number in numbers])


def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> None:
    """Refuse a fixture that takes `comm`: the communicator exists only inside the test."""
    if "comm" in fixturedef.argnames and request.node.get_closest_marker("ranks") is not None:
        pytest.fail(
            f"the fixture {fixturedef.argname} takes `comm`, but fixtures are made before there are ranks\n"
            "write a function of comm, and call it in the test",
            pytrace=False,
        )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Run a marked test on its ranks, instead of once."""
    if pyfuncitem.get_closest_marker("ranks") is None:
        return (yield)

    ranks = cast(int, pyfuncitem.callspec.params["comm"])

    test = pyfuncitem.obj
    if os.environ.get(_INSIDE):
        pyfuncitem.obj = _one_rank(test)
    elif pyfuncitem.config.getoption("--mpi"):
        pyfuncitem.obj = _under_mpiexec(pyfuncitem, ranks)
    else:
        pyfuncitem.obj = _in_process(test, ranks)
    try:
        return (yield)
    finally:
        pyfuncitem.obj = test


def _in_process(test: Any, ranks: int) -> Any:
    """The test as a function that runs it on in-process ranks, and raises the error of the first rank that failed."""

    def on_ranks(**fixtures: Any) -> None:
        from ..runtime.comm.resolve import run

        run(lambda comm: test(**{**fixtures, "comm": comm}), ranks=ranks, on="threads")

    return on_ranks


def _one_rank(test: Any) -> Any:
    """The test as a function for one rank of MPI; a failure ends all ranks, because others may wait for this one."""

    def on_rank(**fixtures: Any) -> None:
        from ..runtime.comm.resolve import world

        try:
            test(**{**fixtures, "comm": world()})
        except BaseException as error:
            report = f"rank {world().rank} of {world().size}\n{traceback.format_exc()}"
            if isinstance(error, pytest.skip.Exception):
                report = f"{_SKIPS}{error.msg}"
            print(report, file=sys.__stderr__, flush=True)  # not captured by pytest
            os._exit(1)

    return on_rank


def _under_mpiexec(item: pytest.Function, ranks: int) -> Any:
    """The test as a function that starts MPI, and fails if any rank fails or hangs."""

    def started(**fixtures: Any) -> None:
        command = [*mpiexec_command(), "-n", str(ranks), sys.executable, "-m", "pytest", item.nodeid]
        command += ["-q", "-s", "-p", __name__, "-p", "no:cacheprovider", "--rootdir", str(item.config.rootpath)]

        if item.config.pluginmanager.hasplugin("xdist"):
            command += ["-n", "0"]
        if item.config.inipath is not None:
            command += ["-c", str(item.config.inipath)]

        environment = {**launcher_environment(), _INSIDE: "1"}

        try:
            done = subprocess.run(
                command, cwd=item.config.rootpath, env=environment, capture_output=True, text=True, timeout=_TIMEOUT
            )
        except subprocess.TimeoutExpired:
            pytest.fail(f"{ranks} ranks hang: {_TIMEOUT:.0f} s", pytrace=False)

        output = done.stderr + done.stdout
        if _SKIPS in output and "Traceback" not in output:
            pytest.skip(output.partition(_SKIPS)[2].splitlines()[0])
        if done.returncode:
            pytest.fail(f"on {ranks} ranks of MPI\n{output[:_SHOWN]}", pytrace=False)

    return started


# --- the start of MPI in tests: the launcher, and an environment in which many ranks share few cores -----------------


@cache
def mpiexec_command() -> list[str]:
    """The mpiexec command with its implementation's options that let many ranks share few cores.

    Raises:
        RuntimeError: there is no mpiexec.
    """
    mpiexec = next(iter(launchers()), "")
    if not mpiexec:
        raise RuntimeError("no mpiexec beside this Python or on the PATH; install one with: pip install mpich")

    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, env=launcher_environment()).stdout
    if family(version) == "Open MPI":
        return [mpiexec, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    return [mpiexec]


def launcher_environment() -> dict[str, str]:
    """This process's environment without the variables of an outer MPI launch, and without mixing of ranks' output."""
    moved = {name: value for name, value in os.environ.items() if name == "OPAL_PREFIX"}  # where Open MPI lies now
    inherited = {name: value for name, value in (alone() | moved).items() if name != "PYTHONUNBUFFERED"}
    quiet = {"OMPI_MCA_osc": "^ucx"}  # else Open MPI's wheel warns of its own UCX at each window
    yielding = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}  # MPICH: waiting ranks sleep
    return {**inherited, **quiet, **yielding, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}

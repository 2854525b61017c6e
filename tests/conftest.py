"""For all tests: MPI programs, Hypothesis, and the rule that a test that does not run has failed.

ROTE_TESTS_EXAMPLES=all gives the laws all their examples, of which a quick run sees a few (marks.py).

ROTE_TESTS_NO_MPI=1 skips the tests that start MPI; without it, a missing MPI fails them. Any other skip must give a
reason that starts with "expected:", or it is a failure.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

os.environ["ROTE_WISDOM"] = ""  # no test, nor what it starts, finds or leaves anything in the user's cache
sys.path.insert(0, str(Path(__file__).parent))  # so that every test may import launch, however pytest imports

import launch
import marks

if TYPE_CHECKING:
    from subprocess import CompletedProcess
    from typing import Protocol

    class Mpirun(Protocol):
        def __call__(
            self, ranks: int, code: str | Path, *args: object, timeout: float = 60, env: dict[str, str] | None = None
        ) -> CompletedProcess[str]: ...


WORKERS = 8  # at most: each of them imports and collects all tests, and starts MPI programs of six ranks

ON_CI = bool(os.environ.get("CI"))

gc.disable()  # until all tests are collected: nothing of them is garbage

settings.register_profile(
    "rote", deadline=None, max_examples=marks.examples(60), derandomize=ON_CI, database=None, print_blob=True
)
settings.load_profile("rote")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """All tests run in a process per core; a part of them in this one, which starts at once and can be debugged."""
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        return 0
    return min(WORKERS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one number of MPI ranks stand together, at the end, so that one start of MPI serves them all."""
    items.sort(key=lambda item: item.callspec.params.get("job", 0) if hasattr(item, "callspec") else 0)


def pytest_collection_finish() -> None:
    """From now on there may be garbage."""
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _settled() -> None:
    """Garbage is looked for among what a file's tests make, not among all tests, caches and libraries, time and again.

    It is collected once before, so that none is kept.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def _jobs(mpirun: Mpirun) -> Generator[list[launch.Job]]:
    """The job that runs, if any: one at a time."""
    found: list[launch.Job] = []
    yield found
    for each in found:
        each.close()


@pytest.fixture(params=[n if n in (2, 3) else pytest.param(n, marks=pytest.mark.slow) for n in launch.RANKS])
def job(request: pytest.FixtureRequest, _jobs: list[launch.Job]) -> launch.Job:
    """MPI ranks that run programs, `job.run(PROGRAM)`: `job.ranks` of them, in a test of each number.

    Other numbers: `@pytest.mark.parametrize("job", (2, 4), indirect=True)`.
    """
    if [each.ranks for each in _jobs] != [request.param]:
        while _jobs:
            _jobs.pop().close()
        _jobs.append(launch.Job(request.param))
    return _jobs[0]


@pytest.fixture(scope="session")
def mpirun() -> Mpirun:
    """`launch.mpirun`, or a failure that says how to install an MPI."""
    if os.environ.get("ROTE_TESTS_NO_MPI") == "1":
        pytest.skip("expected: ROTE_TESTS_NO_MPI=1")
    if not launch.launchers() or find_spec("mpi4py") is None:
        pytest.fail("these tests need MPI: pip install mpich, or set ROTE_TESTS_NO_MPI=1 to do without", pytrace=False)
    return launch.mpirun


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Make a skip that gives no expected reason a failure."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if not reason.startswith("expected:"):
        report.outcome = "failed"
        report.longrepr = f"unexpected skip: {reason}\na test that does not run has failed; see tests/conftest.py"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    report = yield
    _refuse_skip(report)
    return report

"""`rote doctor`: the parts of this installation, whether they work, and the commands that would repair them.

Each check is a function; an error that it raises becomes its finding.

MPI is checked in another process, because a broken MPI ends the process that loads it.
"""

from __future__ import annotations

import io
import platform
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import distributions, version
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .. import __version__
from ..errors import CommError, RoteError
from ..host import answer, cores, family, fits, installed, launchers, memory
from ..units import in_bytes
from .output import Answer, coloured, give, json_option, on_rank_0
from .transform import available_memory, largest_error

__all__ = ["doctor"]

_MPI = "pip install mpich"
_ANEW = "pip install --force-reinstall rote-tensor"
_APART = "pip uninstall -y rote rote-tensor && pip install rote-tensor"
_STYLES = {"ok": "green", "missing": "yellow", "broken": "bold red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report: the part that was checked, the outcome, and the command that repairs it, if needed."""

    subject: str
    result: str
    state: str = "ok"  # or "missing": Rote works without it; or "broken": Rote does not
    hint: str = ""


@click.command()
@json_option
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """Check the installation, and name the commands that repair it and the one that starts MPI ranks.

    The exit status is 1 if something essential is broken. Rote does without an MPI (then its ranks are threads of one
    process), without Matplotlib (then it draws no pictures), and without Zarr, HDF5 and xarray (then files are .npy).

    \b
    Examples:
      rote doctor
      rote doctor --json
      mpiexec -n 4 rote doctor
    """
    report = give(as_json, lambda: on_rank_0(_report))
    context.exit(int(not report["works"]))


def _report() -> Answer:
    """Print the findings, and the commands that repair what is missing or broken."""
    report, line = list(findings()), launch_line()

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))

    repairs: dict[str, list[str]] = {}

    # One command may repair several parts; it is printed once, with all of them.
    for finding in report:
        table.add_row(Text(finding.state, _STYLES[finding.state]), finding.subject, Text(finding.result))
        if finding.hint:
            repairs.setdefault(finding.hint, []).append(finding.subject)

    text = io.StringIO()
    Console(file=text, force_terminal=coloured(), width=shutil.get_terminal_size((200, 24)).columns).print(table)

    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    lines += [f"\nto mend {', '.join(subjects)}:\n    {hint}" for hint, subjects in repairs.items()]
    if not repairs:
        lines.append("\nnothing is missing")
    if line is not None:
        lines.append(f"\nto start 2 ranks:\n    {line}")

    click.echo("\n".join(lines))

    works = all(finding.state != "broken" for finding in report)
    return {"works": works, "launch": line, "findings": [*map(asdict, report)]}


def findings() -> Iterator[Finding]:
    """All findings, in order. An error in a check is one, too; a CommError names the repair on its second line."""
    # A package that is there and does not load is broken; one that is not there is only missed.
    pyfftw = ("broken", _ANEW) if installed("pyfftw") else ("missing", "pip install pyfftw")

    checks: list[tuple[str, Callable[[], str], str, str]] = [
        ("Python", lambda: f"{platform.python_version()} on {platform.system()} {platform.machine()}", "broken", _ANEW),
        ("Rote", _rote, "broken", _APART),
        ("NumPy", lambda: version("numpy"), "broken", _ANEW),
        ("pyFFTW", _pyfftw, *pyfftw),
        *_system_fftw(),
        *((name, partial(_load, name), "missing", f"pip install --force-reinstall {name}") for name in _unloadable()),
        ("mpi4py", lambda: version("mpi4py"), "missing", "pip install mpi4py"),
        ("MPI", _mpi, "missing", _MPI),
        ("mpiexec", _mpiexec, "missing", _MPI),
        ("ranks", _ranks, "broken", _MPI),
        ("ScaLAPACK", _scalapack, "missing", "pip install mkl"),
        ("cores", lambda: f"{len(cores())}; each rank computes on one", "broken", _ANEW),
        ("memory", lambda: f"{in_bytes(memory())}, {in_bytes(available_memory())} available", "broken", _ANEW),
        ("Matplotlib", lambda: version("matplotlib"), "missing", "pip install matplotlib"),
        ("Zarr", lambda: version("zarr"), "missing", "pip install zarr"),
        ("HDF5", _hdf5, "missing", "pip install h5py"),
        ("xarray", lambda: version("xarray"), "missing", "pip install xarray"),
        ("notation", _notation, "broken", _ANEW),
        ("plan", _plan, "broken", _ANEW),
        ("FFT", _fft, "broken", _ANEW),
    ]

    for subject, check, state, repair in checks:
        try:
            yield Finding(subject, check())
        except Exception as error:  # whatever a half-installed package raises
            text, _, hint = str(error).partition("\n")
            hint = hint.removeprefix("write ") if hint and isinstance(error, CommError) else repair
            yield Finding(subject, text or type(error).__name__, state, hint)


def _rote() -> str:
    """The version of Rote, if no file of the distribution `rote`, another project's, is in Rote's folder."""
    folder = Path(__file__).parents[1]
    for other in distributions(name="rote"):
        if any(Path(str(file.locate())).parent.resolve() == folder.resolve() for file in other.files or ()):
            raise RoteError(f"files of another project, rote {other.version}, are in {folder}")
    return __version__


def _pyfftw() -> str:
    from ..fft.kernels.backends.fftw import fftw_build

    binding, fftw, precisions = fftw_build()
    if "double" not in precisions:
        raise RoteError(f"{binding}, FFTW {fftw}, has no double precision")
    return f"{binding}, FFTW {fftw}: {', '.join(precisions)} precision"


def _system_fftw() -> list[tuple[str, Callable[[], str], str, str]]:
    """The check of the system's FFTW, if there is one or the user names one."""
    from ..fft.kernels.backends import fault, library

    wrong, _, repair = fault().partition("\n")
    if not wrong and not library("fftw3").loads:
        return []

    def check() -> str:
        if wrong:
            raise RoteError(wrong)
        files = ", ".join(sorted(opened._name for opened in library("fftw3").load().values()))
        return f"{library('fftw3').version()} precision, {files}"

    return [("FFTW", check, "broken", repair)]


def _unloadable() -> list[str]:
    """The other libraries of transforms that are installed and cannot be loaded, so that they are not used."""
    from ..fft.kernels.backends import NAMES, library

    return [name for name in NAMES[1:] if installed(name) and not library(name).loads]


def _load(name: str) -> str:
    from ..fft.kernels.backends import library

    return str(library(name).load())


def _mpi() -> str:
    text = answer(sys.executable, "-m", "mpi4py", "--mpi-lib-version")
    return " ".join(text.partition("\n")[0].partition(",")[0].replace("Version:", "").split())


def launch_line() -> str | None:
    """The command that starts two ranks of this very Python, by the launcher of the MPI that mpi4py loads.

    It works in any shell and folder; None if there is no such launcher.
    """
    with suppress(Exception):  # the checks of MPI and mpiexec report it
        library = family(_mpi())
        fitting = next(path for path in launchers() if fits(path, library))
        return shlex.join([fitting, "-n", "2", sys.executable, "-m", "rote", "doctor"])
    return None


def _mpiexec() -> str:
    """The launcher that a shell would take, and whether it is of the MPI that mpi4py loads."""
    # Ranks of one MPI that the launcher of another starts do not find each other: each takes itself for the only one.
    programs, library = str(Path(sys.executable).parent), ""
    with suppress(Exception):  # the check of MPI itself reports it
        library = family(_mpi())

    path, ours = shutil.which("mpiexec"), shutil.which("mpiexec", path=programs)
    if path is None and ours is None:
        raise RoteError("no mpiexec on the PATH or beside this Python")

    wrong = "the PATH has none"
    if path is not None:
        kind = family(answer(path, "--version"))
        if not kind or not library or kind == library:
            where = "beside this Python" if Path(path).parent == Path(programs) else f"on the PATH, {path}"
            return f"mpiexec {where}, of {kind}" if kind else f"mpiexec {where}"
        wrong = f"the one on the PATH, {path}, is of {kind}, but mpi4py loads {library}: its ranks would not meet"

    if ours is not None and ours != path and fits(ours, library):
        raise CommError(f'{wrong}; {ours}, beside this Python, does\nwrite export PATH="{programs}:$PATH"')
    raise RoteError(wrong)


def _ranks() -> str:
    from ..runtime import world

    size = world().size  # an error, as of a launcher of another MPI, names the command that repairs it
    if size > 1:
        return f"{size}, started by mpiexec"
    return "1; `mpiexec -n 4 rote fft` starts 4, `rote fft --ranks 4` runs 4 in one process"


def _scalapack() -> str:
    """Where ScaLAPACK is for the MPI that mpi4py loads; asked of another process, and not loaded."""
    program = (
        "from rote.runtime.comm.mpi import wrap; from rote.linalg.library import files_for; mpi = wrap().native; "
        "found = files_for(mpi.size, mpi.vendor, mpi.file); "
        "print('!' + found if isinstance(found, str) else found[-1])"
    )
    text = answer(sys.executable, "-c", program).strip()
    if text.startswith("!"):
        raise RoteError(f"{text[1:]}: split matrices are factored by walks, and their eigenvalues on one rank")
    return f"{Path(text).resolve()}, for np.linalg of split matrices"


def _hdf5() -> str:
    """The versions of h5py and its library, and how ranks write; from another process, since h5py may load MPI."""
    program = "import h5py; print(h5py.__version__, h5py.version.hdf5_version, h5py.get_config().mpi)"

    binding, library, has_mpi = answer(sys.executable, "-c", program).split()
    how = "built with MPI, so that ranks write at once" if has_mpi == "True" else "without MPI: ranks write in turn"
    return f"h5py {binding}, HDF5 {library}, {how}"


def _notation() -> str:
    from ..layout.layout import parse

    text = "(a b) c: [(0,1:cyclic(4)),()]|(2)"
    if parse(str(parse(text))) != parse(text):
        raise RoteError(f"{text} does not parse back")
    return "a layout is read and written"


def _plan() -> str:
    from ..compiler.compile import compile

    plan = compile("block[(0),(1),()] -> [(),(1),(0)]", shape=(5, 6, 7), grid=(2, 3), dtype="c16")

    plan.verify()
    return "a plan is compiled and proved"


def _fft() -> str:
    from ..fft import fftn
    from ..runtime import Comm, run
    from ..tensor import DistTensor

    array = np.random.default_rng(0).standard_normal((8, 9, 10))

    def program(comm: Comm) -> float:
        x = DistTensor.from_global(array, "block[(0),(1),()]", comm)
        return largest_error(fftn(x).to_global(), np.fft.fftn(array))

    error = max(run(program, 4, on="threads"))
    if not error < 1e-12:
        raise RoteError(f"on 4 in-process ranks it differs from numpy.fft by {error:.1e}")
    return "on 4 in-process ranks as numpy.fft"

"""FFTW's MPI transforms, and PFFT: a C program, which is compiled here and launched once per round."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from ..caches import memoized
from ..host import alone, cores
from ..runtime.comm.protocol import Comm
from .cases import SPAN, Case, Missing, Round, Work
from .machine import fftw_text

__all__ = ["with_programs"]

_CROWDED = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
_SOURCE = Path(__file__).with_name("program.c")


class _Library(NamedTuple):
    name: str
    flags: tuple[str, ...]
    libraries: tuple[str, ...]  # beside FFTW's, each with an f at its end in single precision
    install: str


_LIBRARIES = (
    _Library("fftw-mpi", (), (), "on Debian, apt-get install libfftw3-dev libfftw3-mpi-dev libopenmpi-dev openmpi-bin"),
    _Library("pfft", ("-DPFFT",), ("-lpfft",), "build PFFT, and name its folders in CFLAGS and LDFLAGS"),
)


def with_programs(work: Work) -> list[Case]:
    """The transforms of a work by these libraries."""
    return [
        Case(library.name, "", "MPI ranks", work.ranks, work, None, partial(_run, library, work))
        for library in _LIBRARIES
    ]


def _run(library: _Library, work: Work, comm: Comm) -> Round:
    """One round: one launch of the program, which reuses its plans."""
    program, mpiexec = _build(library, work.dtype.char in "fF", work.ranks)
    first, seconds = _launch(program, mpiexec, work.ranks, work.points, "r2c" if work.real else "c2c", "1", str(SPAN))[
        :2
    ]
    return Round(float(seconds), fftw_text(first.split()[-1]))


def _launch(program: Path, mpiexec: str, ranks: int, *args: str) -> list[str]:
    """Launch the program and return the lines that it prints, after checking that its ranks found each other."""
    wisdom = program.with_suffix(".wisdom")  # keeps the plans from round to round
    command = (mpiexec, "-n", str(ranks), str(program), *args, str(wisdom))
    lines = _output(*command, crowded=ranks > len(cores())).splitlines() or [""]
    if not lines[0].startswith(f"ranks {ranks} "):
        raise Missing("has an mpiexec of another MPI than the mpicc beside it")
    return lines


@memoized(64)
def _build(library: _Library, single: bool, ranks: int) -> tuple[Path, str]:
    """The program, compiled by the first mpicc on the PATH that works, and the mpiexec beside it, which tests it.

    The test is needed because a library belongs to one MPI, but may compile with the header of another.
    """
    letter = "f" if single else ""
    reason = "has no mpicc, with mpiexec beside it, on the PATH"
    for folder in dict.fromkeys(os.get_exec_path()):
        mpicc, mpiexec = (shutil.which(name, path=folder) for name in ("mpicc", "mpiexec"))
        if mpicc is None or mpiexec is None:
            continue
        program = Path(_folder().name, library.name + letter)
        theirs = [f"{each}{letter}" for each in library.libraries]
        libraries = [*theirs, f"-lfftw3{letter}_mpi", f"-lfftw3{letter}", "-lm"]
        flags = [*library.flags, *["-DSINGLE"] * single, *shlex.split(os.environ.get("CFLAGS", ""))]
        folders = shlex.split(os.environ.get("LDFLAGS", ""))
        try:
            _output(mpicc, "-O2", *flags, str(_SOURCE), "-o", str(program), *folders, *libraries)
            _launch(program, mpiexec, ranks, "4x4", "c2c", "0", "0")
        except Missing as error:
            reason = str(error)
        else:
            return program, mpiexec
    raise Missing(f"{reason}; {library.install}")


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """The folder for compiled programs, which is deleted when this process ends."""
    return tempfile.TemporaryDirectory(prefix="rote-bench-")


def _output(*command: str, crowded: bool = False) -> str:
    """Run a command as if from a shell, and return what it prints; `crowded` lets ranks share cores.

    If it fails, `Missing` has the line of its output that says why.
    """
    environment = alone()
    if "OPAL_PREFIX" in os.environ:  # of a launcher that was moved after its build: drop its libraries
        paths = environment.get("LD_LIBRARY_PATH", "").split(os.pathsep)
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(
            p for p in paths if not p.startswith(os.environ["OPAL_PREFIX"])
        )
    environment |= _CROWDED if crowded else {}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip(" -")]
        complaints = [line for line in lines if "error" in line.lower() or line.startswith("program:")]
        why = (complaints or lines or [f"it ends with status {done.returncode}"])[0]
        raise Missing(f"does not run, by {Path(command[0]).name}: {why}")
    return done.stdout

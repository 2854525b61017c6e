"""The machine on which `rote bench` runs: processor, caches, instruction sets; versions and builds of all libraries."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..caches import memoized
from ..host import installed, processor
from ..runtime.choose import mpi_library
from ..runtime.comm.agreement import from_root
from ..runtime.comm.protocol import Comm

__all__ = ["build", "commit", "fftw_text", "machine"]

_DTFFT = ("dtfft-fftw-openmpi", "dtfft-fftw-mpich")  # the packages of dtFFT with FFTW, one for each MPI
_PACKAGES = ("numpy", "mpi4py", "mpi4py-fft", *_DTFFT, "pyfftw", "scipy", "ducc0", "mkl_fft", "mkl")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_WITHIN = {"pyfftw": "pyfftw.pyfftw", "mpi4py-fft": "mpi4py_fft.fftw.", "dtfft": "dtfft._dtfft"}  # linked to FFTW


def machine(comm: Comm, usable: int) -> dict[str, Any]:
    """The machine of rank 0: processor, usable cores, caches, instruction sets, system, commit, and the
    versions of all packages that may have taken part. Collective.

    >>> from rote.runtime.comm.threads import alone
    >>> sorted(machine(alone(), 1))
    ['caches', 'commit', 'cores', 'instructions', 'processor', 'system', 'versions']
    """

    def describe() -> dict[str, Any]:
        versions = {"rote": __version__, "python": platform.python_version()} | _versions(_PACKAGES)

        mpi = mpi_library(comm).replace("Version: ", "")

        sets: Any = np.show_config("dicts")
        simd = sets.get("SIMD Extensions", {}) if isinstance(sets, dict) else {}  # of those that NumPy knows
        return {
            "processor": processor(),
            "cores": usable,
            "instructions": [*simd.get("baseline", ()), *simd.get("found", ())],
            "caches": _caches(),
            "system": platform.platform(),
            "commit": commit(),
            "versions": versions | ({"mpi": mpi} if mpi and comm.size > 1 else {}),
        }

    return from_root(comm, describe)


def commit() -> str | None:
    """The commit of Rote's sources if they are a checkout, and "with changes" if they differ from it; else None."""
    sources = Path(__file__).parents[1]

    def git(*args: str) -> str:
        options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "check": True}
        printed: str = subprocess.run(["git", "-C", str(sources), *args], text=True, **options).stdout
        return printed.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # fails for a package installed inside another checkout
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "HEAD") + " with changes" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return None


def _caches() -> list[str]:
    """The caches of the first core, from Linux: level, kind, size, and the cores that share it."""
    caches = []
    with suppress(OSError):
        for index in sorted(_CACHES.glob("index*")):
            names = ("level", "type", "size", "shared_cpu_list")
            level, kind, size, cores = ((index / name).read_text("ascii").strip() for name in names)
            caches.append(f"L{level} {kind} {size} of cores {cores}")
    return caches


@memoized(64)
def build(package: str) -> str:
    """An imported package: name, version, and the FFTW or MKL that it uses, with its instruction set.

    >>> import pyfftw
    >>> build("pyfftw").startswith("pyfftw 0."), "with FFTW 3." in build("pyfftw")
    (True, True)
    """
    versions = [*_versions(_DTFFT if package == "dtfft" else (package,)).values()]
    if not versions:
        return package

    within = _linked(_WITHIN[package]) if package in _WITHIN else []
    if package == "mkl_fft":
        within = [f"MKL {number}" for number in _versions(("mkl",)).values()]
    return " with ".join([f"{package} {versions[0]}", *within])


def _versions(packages: Sequence[str]) -> dict[str, str]:
    """The versions of those packages that are installed."""
    return {package: version for package in packages if (version := installed(package))}


def fftw_text(name: str) -> str:
    """FFTW's own version string in readable form.

    >>> fftw_text("fftw-3.3.5-sse2-avx"), fftw_text("fftw-3.3.10")
    ('FFTW 3.3.5 (sse2, avx)', 'FFTW 3.3.10')
    """
    _, _, rest = name.partition("-")
    number, *sets = rest.split("-")
    instructions = f" ({', '.join(sets)})" if sets else ""
    return f"FFTW {number}{instructions}" if number else name


def _linked(modules: str) -> list[str]:
    """The FFTW libraries to which the first imported module of these names is linked; in double precision, if known."""

    files = {name: getattr(module, "__file__", None) for name, module in [*sys.modules.items()]}
    for name, path in sorted(files.items()):
        if name.startswith(modules) and path is not None:
            for symbol in ("fftw_version", "fftwf_version"):
                with suppress(OSError, ValueError):
                    return [fftw_text((ctypes.c_char * 128).in_dll(ctypes.CDLL(path), symbol).value.decode("ascii"))]
    return []

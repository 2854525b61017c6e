"""The machine on which `rote bench` runs: processor, caches, instruction sets; versions and builds of all libraries."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..caches import memoized
from ..host import processor
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
    return from_root(comm, lambda: _machine(usable, comm.size > 1))


def _machine(usable: int, mpi: bool) -> dict[str, Any]:
    versions = {"rote": __version__, "python": platform.python_version()} | _installed(_PACKAGES)
    library = getattr(sys.modules.get("mpi4py.MPI"), "Get_library_version", None)
    if mpi and library is not None:
        versions["mpi"] = " ".join(library().partition("\n")[0].partition(",")[0].replace("Version:", "").split())
    return {
        "processor": processor(),
        "cores": usable,
        "instructions": _instructions(),
        "caches": _caches(),
        "system": platform.platform(),
        "commit": commit(),
        "versions": versions,
    }


def commit() -> str | None:
    """The commit of Rote's sources if they are a checkout, and "with changes" if they differ from it; else None."""
    sources = Path(__file__).parents[1]

    def git(*args: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(sources), *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # fails for a package installed inside another checkout
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "HEAD") + " with changes" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return None


def _instructions() -> list[str]:
    """The instruction sets of the processor, of those that NumPy detects."""
    sets: Any = np.show_config("dicts")
    known = sets.get("SIMD Extensions", {}) if isinstance(sets, dict) else {}
    return [*known.get("baseline", ()), *known.get("found", ())]


def _caches() -> list[str]:
    """The caches of the first core, from Linux: level, kind, size, and the cores that share it."""
    try:
        caches = []
        for index in sorted(_CACHES.glob("index*")):
            names = ("level", "type", "size", "shared_cpu_list")
            level, kind, size, cores = ((index / name).read_text("ascii").strip() for name in names)
            caches.append(f"L{level} {kind} {size} of cores {cores}")
        return caches
    except OSError:
        return []


@memoized(64)
def build(package: str) -> str:
    """An imported package: name, version, and the FFTW or MKL that it uses, with its instruction set.

    >>> import pyfftw
    >>> build("pyfftw").startswith("pyfftw 0."), "with FFTW 3." in build("pyfftw")
    (True, True)
    """
    versions = _installed(_DTFFT if package == "dtfft" else (package,))
    if not versions:
        return package
    text = f"{package} {next(iter(versions.values()))}"
    if package in _WITHIN:
        text += "".join(f" with {fftw}" for fftw in _linked(_WITHIN[package]))
    if package == "mkl_fft":
        text += "".join(f" with MKL {number}" for number in _installed(("mkl",)).values())
    return text


def _installed(packages: Sequence[str]) -> dict[str, str]:
    versions = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


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

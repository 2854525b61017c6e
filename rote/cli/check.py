"""The comparison with numpy.fft on one rank, and whether memory suffices for it and the disk for a result."""

from __future__ import annotations

import errno
import os
import shutil
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..compiler.explain import in_bytes
from ..errors import RoteError
from ..host import memory
from ..io.replacement import Draft

__all__ = ["available_memory", "largest_error", "refuse_no_room", "refuse_too_large", "tolerance"]

Array = npt.NDArray[Any]


def available_memory() -> int:
    """Bytes that this machine can give to a program now, or all its bytes if it does not say what is free."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            free = next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return memory()
    return min(free, memory())


def refuse_too_large(shape: tuple[int, ...], dtype: np.dtype[Any], out: tuple[int, ...], result: np.dtype[Any]) -> None:
    """Refuse a comparison that does not fit into memory: input, spectrum, and the temporary arrays of numpy.fft.

    NumPy transforms axis by axis, from one whole array to the next; then the spectrum is read and subtracted.
    """
    spectrum = max(prod(out), prod(shape)) * np.result_type(result, np.complex64).itemsize
    needs = prod(shape) * dtype.itemsize + 4 * spectrum
    has = available_memory()
    if needs > has:
        raise RoteError(
            f"--check computes the whole transform on one rank, which needs about {in_bytes(needs)} of memory, "
            f"but {in_bytes(has)} are available\nleave --check out, or check a smaller array of the same kind"
        )


def refuse_no_room(path: str, nbytes: int, folder: bool) -> None:
    """Refuse a result that cannot be written, before the work: try to make a file or folder beside it.

    Raises:
        OSError: no file can be made there or replaced, or the disk has less than `nbytes` free.
        RoteError: a device or a pipe has that name.
    """
    draft = Draft.beside(path, folder)
    draft.remove()
    free = shutil.disk_usage(os.path.dirname(draft.path)).free
    if free < nbytes:
        needs = f"the result takes {in_bytes(nbytes)}, and the disk has {in_bytes(free)} left"
        raise OSError(errno.ENOSPC, needs, path)


def tolerance(dtype: np.dtype[Any]) -> float:
    """The largest error that is accepted, relative to the largest value: 1e-4 in single precision, else 1e-10."""
    return 1e-4 if dtype.char in "fF" else 1e-10


def largest_error(computed: Array, expected: Array) -> float:
    """The largest difference of two arrays, relative to the largest value expected; infinite if the shapes differ.

    >>> largest_error(np.array([1.0, 2.5]), np.array([1.0, 2.0]))
    0.25
    """
    if computed.shape != expected.shape:
        return float("inf")
    if not expected.size:
        return 0.0
    largest = float(np.abs(expected).max())
    return float(np.abs(computed - expected).max()) / (largest or 1.0)

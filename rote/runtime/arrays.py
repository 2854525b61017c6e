"""Arrays that programs pass to Rote, as NumPy's: of any library, if their elements are in the memory of this process.

An array is all that `numpy.asarray` takes: nested lists, ranges, buffers, data sets of h5py and Zarr, arrays of JAX and
torch; DLPack is enough. Every rank has such an array whole, and takes its part of it.

Four kinds are refused, because to convert them would lose or hide something. A mask would be lost. All ranks would
compute a Dask array, each of them all of it. Elements on another device would be copied to the host silently. A
distributed array of PyLops-MPI has other elements on each rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["as_array", "refuse_mask", "refuse_remote"]

# Types of arrays and of numbers that are in the memory of this process, known without a look at their values.
_LOCAL = frozenset((np.ndarray, bool, int, float, complex, str, bytes, type(None)))

# DLPack's numbers of devices whose memory the host reads: its own, pinned and managed memory of CUDA, that of ROCm.
_HOST = (1, 3, 11, 13)

# How libraries copy an array y into the memory of the host.
_COPIES = {
    "cupy": "y.get()",
    "jax": "jax.device_get(y)",
    "jaxlib": "jax.device_get(y)",
    "numba": "y.copy_to_host()",
    "torch": "y.detach().cpu()",
}


def as_array(values: Any, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """Values as a plain array, as by `numpy.asarray`, or by DLPack where an array has nothing else.

    Raises:
        TypeError: the values have a mask, are a Dask array, or are on another device.

    >>> as_array(range(3)), as_array(memoryview(b"ab"))
    (array([0, 1, 2]), array([97, 98], dtype=uint8))
    """
    kind = type(values)
    if kind in _LOCAL:
        return np.asarray(values, dtype)

    refuse_remote(values)
    if not hasattr(kind, "__array__") and not hasattr(kind, "__dlpack__"):
        return np.asarray(values, dtype)

    try:
        array = np.asarray(values) if hasattr(kind, "__array__") else np.from_dlpack(values)
    except (TypeError, RuntimeError, BufferError) as error:
        raise TypeError(_refusal(values, f"does not become an array of NumPy: {error}")) from error
    return np.asarray(array, dtype)


def refuse_mask(kind: type) -> None:
    """Refuse a type of arrays with a mask, such as `numpy.ma.MaskedArray`.

    Raises:
        TypeError: arrays of this type have a mask.
    """
    if kind is not np.ndarray and issubclass(kind, np.ndarray) and hasattr(kind, "filled"):
        raise TypeError(f"a tensor has no mask, and {kind.__name__} has one\nwrite x.filled(value) of it")


def refuse_remote(values: Any) -> None:
    """Refuse an array with a mask, one of Dask or PyLops-MPI, one on another device, and a list of these.

    Raises:
        TypeError: the values are such an array.
    """
    kind = type(values)
    if isinstance(values, list | tuple):
        if not _LOCAL.issuperset(map(type, values)):
            for value in values:
                refuse_remote(value)
        return
    if isinstance(values, np.ndarray | np.generic):
        refuse_mask(kind)
        return

    # xarray's arrays have the method of Dask, too, and answer None if their data is not of Dask.
    if hasattr(kind, "__dask_graph__") and values.__dask_graph__() is not None:
        raise TypeError(_refusal_of_dask(values))
    if hasattr(kind, "local_array") and hasattr(kind, "global_shape"):
        raise TypeError(_refusal_of_parts(values))
    if reason := _why_remote(values):
        raise TypeError(_refusal(values, reason))


def _why_remote(values: Any) -> str:
    """Why the host does not read the elements of an array; empty if it does, or if no device is named."""
    elsewhere = "is not in the memory of the host"
    if hasattr(values, "__cuda_array_interface__"):
        return elsewhere

    device = getattr(values, "__dlpack_device__", None)
    if device is None:
        return ""

    try:
        is_on_host = device()[0] in _HOST
    except Exception as error:
        # JAX raises BufferError for an array on several devices, torch ValueError for one on none.
        return f"is not in one memory: {error}"
    return "" if is_on_host else elsewhere


def _refusal(values: Any, reason: str) -> str:
    library = type(values).__module__.partition(".")[0]
    copy = _COPIES.get(library, "y.to_device('cpu') or numpy.asarray(y)")
    return f"{library}'s {type(values).__name__} y {reason}\nwrite its copy in the memory of the host, {copy}"


def _refusal_of_dask(values: Any) -> str:
    order = getattr(values, "ndim", 1)
    layout = f"block[{','.join(['(0)', *['()'] * (order - 1)][:order])}]"
    return (
        "a Dask array d is not read: every rank would compute all of it\n"
        f"let each rank compute its part:\nx = rote.from_dask(d, {layout!r})"
    )


def _refusal_of_parts(values: Any) -> str:
    order = len(values.global_shape)
    modes = ["()"] * order
    if getattr(values.partition, "name", "") == "SCATTER":
        modes[values.axis] = "(0)"
    layout = f"block[{','.join(modes)}]"
    return (
        f"a {type(values).__name__} d of PyLops-MPI has one part on each rank, and is no array that all ranks have\n"
        f"write rote.DistTensor.from_local(d.local_array, {layout!r}, d.global_shape, d.base_comm)"
    )

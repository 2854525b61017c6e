"""Arrays of other libraries: stand-ins that have one protocol each, and the libraries that are installed."""

from __future__ import annotations

from array import array as buffer
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import count
from typing import Any

import numpy as np

_NUMBERS = count()


class WithArray:
    """An array that has `__array__` alone."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values, dtype)


class WithDLPack:
    """An array that has DLPack alone."""

    device = (1, 0)

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


class Items:
    """A sequence that is registered as none: it has a length and items."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values).tolist()

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> Any:
        return self.values[index]


class OnDevice(WithDLPack, WithArray):
    """An array on a device of CUDA, which is copied to the host by whoever asks for it, as JAX's is."""

    device = (2, 0)


class OnDevices(OnDevice):
    """An array on several devices, as JAX's are that are sharded."""

    def __dlpack_device__(self) -> tuple[int, int]:
        raise BufferError("it is sharded")


def data_set(values: Any) -> Any:
    """A data set of HDF5, in memory."""
    import h5py

    file = h5py.File(f"foreign {next(_NUMBERS)}.h5", "w", driver="core", backing_store=False)
    return file.create_dataset("x", data=values)


def of_zarr(values: Any) -> Any:
    """An array of Zarr, in memory."""
    import zarr

    return zarr.array(values)


def of_strict(values: Any, device: str = "CPU_DEVICE") -> Any:
    """An array of array_api_strict; on another device than the first, it refuses to become NumPy's."""
    import array_api_strict

    return array_api_strict.asarray(values, device=array_api_strict.Device(device))


def of_jax(values: Any) -> Any:
    """An array of JAX, which keeps 64 bits."""
    import jax

    with jax.enable_x64(True):
        return jax.numpy.asarray(values)


KINDS: dict[str, Callable[[Any], Any]] = {
    "__array__": WithArray,
    "__dlpack__": WithDLPack,
    "items": Items,
    "memoryview": memoryview,
    "h5py": data_set,
    "zarr": of_zarr,
    "array_api_strict": of_strict,
}
if find_spec("jax"):
    KINDS["jax"] = of_jax


def line_of(values: Any) -> Any:
    """An `array.array`, or a range where numbers are consecutive integers; these have one mode."""
    if values.dtype.kind in "iu" and values.tolist() == [*range(len(values))]:
        return range(len(values))
    return buffer(values.dtype.char, values.tolist())


REMOTE: dict[str, Callable[[Any], Any]] = {
    "device": OnDevice,
    "devices": OnDevices,
    "array_api_strict": partial(of_strict, device="device1"),
}
"""Arrays that the host does not read."""

"""JAX itself, and its meshes: each axis of a mesh is a mode of the grid, in order, and each device is a rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PlanError, RoteError
from ..layout.grid import Grid

__all__ = ["as_planned", "check_dtype", "check_mesh", "check_process", "is_narrow", "library", "on_host"]

_LEAST = (0, 7)  # the first version of JAX with all that is called here


def library() -> Any:
    """The package `jax`, imported now.

    Raises:
        RoteError: JAX is not installed, or is too old.
    """
    try:
        import jax
        from jax import __version_info__ as version
    except ImportError:
        raise RoteError('rote.jax needs JAX\npip install "jax>=0.7"') from None
    if version < _LEAST:
        raise RoteError(f"JAX is {jax.__version__}, and 0.7 or later is needed\npip install --upgrade jax")
    return jax


def on_host(x: Any) -> npt.NDArray[Any]:
    """The elements of an array on the host, those of other processes, too. Collective if there are some."""
    if not x.size:  # whose shards JAX does not put together
        return np.zeros(x.shape, x.dtype)
    if x.is_fully_addressable:
        return np.asarray(x)
    from jax.experimental.multihost_utils import process_allgather

    return np.asarray(process_allgather(x, tiled=True))


def check_dtype(dtype: np.dtype[Any]) -> None:
    """Refuse a dtype that JAX would change without a word, as it does to elements of 64 bits unless it is told not to.

    Raises:
        PlanError: JAX would change the dtype, or has no such elements.
    """
    stored = library().dtypes.canonicalize_dtype(dtype)
    if stored != dtype:
        raise PlanError(
            f"JAX would make {stored} of {dtype}, because its elements of 64 bits are switched off\n"
            f'call jax.config.update("jax_enable_x64", True) first, or pass {stored}'
        )
    try:
        library().numpy.empty(0, dtype)
    except TypeError:
        raise PlanError(f"JAX has no elements of {dtype}\nwrite array.astype('f4'), say") from None


def is_narrow(dtype: np.dtype[Any]) -> bool:
    """Whether numbers are of half precision or less, as float16 and JAX's bfloat16, which is of NumPy's kind "V"."""
    return isinstance(dtype, np.dtype) and (dtype.kind == "V" or dtype == np.float16)  # keys have dtypes of JAX alone


def as_planned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that a plan has for elements of JAX: for narrow ones, which MPI does not have, integers of their size.

    >>> as_planned(np.dtype("f2")), as_planned(np.dtype("f4"))
    (dtype('uint16'), dtype('float32'))
    """
    return np.dtype(f"u{dtype.itemsize}") if is_narrow(dtype) else dtype


def check_process(mesh: Any) -> None:
    """Refuse a mesh whose devices are all of other processes.

    Raises:
        PlanError: the mesh has no device of this process.
    """
    jax = library()
    devices = mesh.devices.flat if isinstance(mesh, jax.sharding.Mesh) else ()
    if not any(device.process_index == jax.process_index() for device in devices):
        raise PlanError(
            f"no device of the mesh is of process {jax.process_index()} of {jax.process_count()}\n"
            "make a mesh of jax.devices(), which are those of all processes after jax.distributed.initialize()"
        )


def check_mesh(mesh: Any, grid: Grid | None = None) -> None:
    """Refuse what is no mesh, and a mesh that is not the grid.

    Raises:
        PlanError: there is no mesh, or it has another shape than the grid.
    """
    if not isinstance(mesh, library().sharding.Mesh | library().sharding.AbstractMesh):
        raise PlanError(f"{mesh!r} is no mesh\nwrite one, as jax.make_mesh((2, 4), ('x', 'y'))")
    if grid is not None and mesh.axis_sizes != grid.shape:
        raise PlanError(
            f"the mesh is {'x'.join(map(str, mesh.axis_sizes))} devices, and the grid is {grid}\n"
            f"make a mesh with jax.make_mesh({grid.shape}, names), or plan for grid={mesh.axis_sizes}"
        )

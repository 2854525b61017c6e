"""JAX itself, and its meshes: each axis of a mesh is a mode of the grid, in order, and each device is a rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PlanError, RoteError
from ..layout.grid import Grid

__all__ = ["check_dtype", "check_mesh", "check_process", "library", "on_host"]

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
    if x.is_fully_addressable:
        return np.asarray(x)
    from jax.experimental.multihost_utils import process_allgather

    return np.asarray(process_allgather(x, tiled=True))


def check_dtype(dtype: np.dtype[Any]) -> None:
    """Refuse a dtype that JAX would change without a word, as it does to elements of 64 bits unless it is told not to.

    Raises:
        PlanError: JAX would change the dtype.
    """
    stored = library().dtypes.canonicalize_dtype(dtype)
    if stored != dtype:
        raise PlanError(
            f"JAX would make {stored} of {dtype}, because its elements of 64 bits are switched off\n"
            f'call jax.config.update("jax_enable_x64", True) first, or pass {stored}'
        )


def check_process(mesh: Any) -> None:
    """Refuse a mesh whose devices are all of other processes.

    Raises:
        PlanError: the mesh has no device of this process.
    """
    jax = library()
    if not any(device.process_index == jax.process_index() for device in mesh.devices.flat):
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

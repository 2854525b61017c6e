"""JAX itself, and its meshes: each axis of a mesh is a mode of the grid, in order, and each device is a rank."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ..compiler.digits import RankDigit
from ..errors import PlanError, RoteError
from ..layout.grid import Grid, row_major

__all__ = ["axes_of", "check_dtype", "check_mesh", "library", "rank_of"]

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


def check_mesh(mesh: Any, grid: Grid) -> None:
    """Refuse a mesh that is not the grid.

    Raises:
        PlanError: the mesh has another shape than the grid.
    """
    if mesh.axis_sizes != grid.shape:
        size = "x".join(map(str, mesh.axis_sizes))
        raise PlanError(
            f"the mesh is {size} devices, and the grid is {grid}\n"
            f"make a mesh with jax.make_mesh({grid.shape}, names), or plan for grid={mesh.axis_sizes}"
        )


# --- within shard_map ------------------------------------------------------------------------------------------------


def rank_of(mesh: Any) -> Any:
    """The number of the rank that asks."""
    lax, weights = library().lax, row_major(mesh.axis_sizes)
    return sum([lax.axis_index(name) * weight for name, weight in zip(mesh.axis_names, weights, strict=True)])


def axes_of(over: Sequence[RankDigit], mesh: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The axes of a mesh that have some digits of the rank number, and groups along them if they have others, too."""
    weights = row_major(mesh.axis_sizes)
    axes = zip(mesh.axis_names, weights, mesh.axis_sizes, strict=True)
    touched = [(n, w, p) for n, w, p in axes if any(w < at * size and at < w * p for at, size in over)]
    names = tuple([name for name, _, _ in touched])
    if prod([parts for _, _, parts in touched]) == prod([size for _, size in over]):
        return names, {}

    # Ranks are numbered along these axes alone, and each group is in the order of its digits.
    groups = dict[int, list[tuple[tuple[int, ...], int]]]()
    for number, at in enumerate(product(*[range(parts) for _, _, parts in touched])):
        rank = sum([c * weight for c, (_, weight, _) in zip(at, touched, strict=True)])
        digits = tuple([rank // weight % size for weight, size in over])
        others = rank - sum([digit * weight for digit, (weight, _) in zip(digits, over, strict=True)])
        groups.setdefault(others, []).append((digits, number))
    return names, {"axis_index_groups": [[number for _, number in sorted(group)] for group in groups.values()]}

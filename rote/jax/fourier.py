"""Parallel FFTs of arrays of JAX: Rote plans a walk, XLA transforms and moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy.typing as npt

from ..errors import LayoutError, PlanError
from ..fft.families import is_text
from ..fft.families.choose import choices_for, walk_for, walks
from ..fft.request import Arguments, as_arguments, check_norm, planned_request, scale
from ..fft.walk import Walk
from ..layout.distribution import Distribution
from ..layout.expressions import block
from ..layout.grid import Grid, tensor_shape
from ..layout.layout import Layout, as_layout
from ..layout.refine import fitted
from .arrays import check_sharded, sharding
from .meshes import library
from .walks import LoweredWalk, lowered_walks

__all__ = ["FFT"]

Order = Literal["natural", "any"]


class FFT:
    """A parallel transform of one shape, layout and dtype as functions of arrays of JAX, for use in `jit` and `grad`.

    Args:
        shape: of the whole array, without padding.
        layout: of the input: a PartitionSpec, or a layout or its text, whose grid modes are the axes of the mesh.
        mesh: a `jax.sharding.Mesh`.
        dtype: of the input; a real one gives half a spectrum, as `numpy.fft.rfftn`. If None, complex numbers of the
            precision that JAX has switched on.
        axes: as in NumPy; all if None. A real transform halves the last of them. Other axes may be a batch.
        kinds: what `forward` does along its axes: "fft", "rfft", "dct2", "dct3", "dst2", "dst3"; or a mapping from axis
            to kind, which also names the axes.
        algorithm: as for `rote.fft.FFT`: "auto", the name of a family, or the text of a walk.
        order: "natural" for a spectrum in the layout of the input; "any" for the one in which the walk ends, which
            spares a move. `target` says which it is.
        norm: "backward", "ortho" or "forward", as in NumPy.

    Attributes:
        walk: the walk of the array as it is, without padding.
        mesh: the mesh.
        source, target: the distributions of input and spectrum, on padded extents: arrays are in their stored order.

    Raises:
        LayoutError: shape, layout, axes, kinds and algorithm do not fit each other.
        PlanError: there is no such walk on the mesh, or JAX would change the dtype.
    """

    def __init__(
        self,
        shape: Sequence[int] | int,
        layout: Any,
        mesh: Any,
        dtype: npt.DTypeLike | None = None,
        axes: Sequence[int] | int | None = None,
        kinds: Mapping[int, str] | str | None = None,
        algorithm: str = "auto",
        order: Order = "natural",
        norm: str | None = None,
    ) -> None:
        if order not in ("natural", "any"):
            raise LayoutError(f'order is "natural" or "any", not {order!r}')
        extents, text = tensor_shape(shape), is_text(algorithm)
        element = library().dtypes.canonicalize_dtype("c16") if dtype is None else dtype
        request = planned_request(extents, element, axes, kinds, text, None, None)

        grid = Grid(mesh.axis_sizes)
        begin = _layout_of(layout, mesh, len(extents))
        end = None
        if order == "natural":
            end = fitted(begin.on(extents, grid), request.after(extents, request.axes)).layout
        arguments = as_arguments(extents, request, mesh.size, begin, grid, end)

        self.mesh: Any = mesh
        self.norm: str = check_norm(norm)
        self.axes: tuple[int, ...] = request.axes
        self.lowered: tuple[LoweredWalk, LoweredWalk] = _lowered_pair(arguments, algorithm, mesh)
        self.walk: Walk = self.lowered[0].walk
        self.source: Distribution = self.lowered[0].source
        self.target: Distribution = self.lowered[0].target

        factors = [float(scale(check_norm(norm), self.walk.sizes, forward)) for forward in (True, False)]
        self._run_forward = _program(self.lowered[0], factors[0], norm == "ortho")
        self._run_backward = _program(self.lowered[1], factors[1], norm == "ortho")

    def forward(self, x: Any) -> Any:
        """The spectrum of an array, in the stored order of `target`, from one in that of `source`.

        Raises:
            PlanError: the array has another shape, dtype or sharding.
        """
        _check(x, self.lowered[0])
        return self._run_forward(x)

    def backward(self, X: Any) -> Any:
        """The array of a spectrum, in the stored order of `source`, from one in that of `target`.

        Raises:
            PlanError: the spectrum has another shape, dtype or sharding.
        """
        _check(X, self.lowered[1])
        return self._run_backward(X)


def _layout_of(layout: Any, mesh: Any, order: int) -> Layout:
    """A layout from a PartitionSpec of a mesh, from a text, or from itself."""
    if not isinstance(layout, library().sharding.PartitionSpec):
        return as_layout(layout)
    names = [entry if isinstance(entry, tuple) else () if entry is None else (entry,) for entry in layout]
    unknown = [name for some in names for name in some if name not in mesh.axis_names]
    if unknown or len(names) > order:
        raise PlanError(
            f"{layout} does not fit an array of {order} modes on a mesh with axes {mesh.axis_names}\n"
            "write a PartitionSpec with a name of an axis, several, or None for each mode"
        )
    modes = [tuple([block(mesh.axis_names.index(name)) for name in some]) for some in names]
    return Layout((*modes, *((),) * (order - len(modes))))


def _program(lowered: LoweredWalk, factor: float, ortho: bool) -> Any:
    """A walk as a compiled function of arrays."""
    jax = library()
    ends = [sharding(dist, lowered.mesh).spec for dist in (lowered.source, lowered.target)]
    local = partial(lowered.local, scale=factor, ortho=ortho)
    return jax.jit(jax.shard_map(local, mesh=lowered.mesh, in_specs=ends[0], out_specs=ends[1], check_vma=False))


def _check(x: Any, lowered: LoweredWalk) -> None:
    if x.dtype != lowered.walk.dtype:
        raise PlanError(f"the array is of {x.dtype}, the transform of {lowered.walk.dtype}\nwrite x.astype(…) first")
    check_sharded(x, lowered.source, lowered.mesh)


def _lowered_pair(arguments: Arguments, algorithm: str, mesh: Any) -> tuple[LoweredWalk, LoweredWalk]:
    """A walk and its inverse as functions of blocks, which are padded alike; with tables only if all others fail."""
    candidates = [*walks(choices_for(arguments))] if algorithm == "auto" else [walk_for(arguments, algorithm)]
    refused = PlanError(f"no walk fits the mesh {mesh}")

    for tables in (False, True):
        for walk in candidates:
            try:
                for forward in lowered_walks(walk, mesh, tables):
                    for backward in lowered_walks(walk.inverse(), mesh, tables):
                        if (backward.source, backward.target) == (forward.target, forward.source):
                            return forward, backward
            except PlanError as error:
                refused = error
    raise refused

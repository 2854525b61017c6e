"""FFT: a walk bound to ranks, ready to run again and again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from operator import index as as_int
from typing import Any

import numpy as np
import numpy.typing as npt

from rote.compiler.explain import in_bytes
from rote.compiler.plan import Plan
from rote.compiler.step import as_dtype
from rote.errors import LayoutError
from rote.layout.distribution import Distribution, distribute
from rote.layout.grid import Grid
from rote.layout.layout import L, Layout, as_layout, block
from rote.runtime.comm import Comm
from rote.runtime.doors import as_comm
from rote.runtime.execute import Program, bind, check_grid
from rote.tensor import DistTensor

from .families import SPLITS, check_algorithm, transpose
from .kernels import Kernel, check_extents, is_plain, plain, real_dtype, scratch_bytes, view
from .passes import BoundKernel
from .walk import Walk

__all__ = ["FFT", "NORMS", "BoundWalk", "check_norm", "describe", "normal_axes", "scale"]

Array = npt.NDArray[Any]
Scratch = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]
NORMS = ("backward", "ortho", "forward")


class FFT:
    """A parallel transform of one shape, layout and dtype, planned once.

    Args:
        shape: of the whole tensor.
        layout: of the input; blocks over the first modes if None. `output_layout` is where the walk ends, the cheapest.
        grid: of the ranks; balanced if None.
        comm: an mpi4py or Rote communicator; the ranks of `rote.run`, MPI's world or this process if None.
        dtype: of the input; a real one makes a real-to-half-spectrum transform, as `numpy.fft.rfftn`.
        axes: as NumPy; all if None. A real transform halves the last of them.
        algorithm: "slab" (a grid of order 1), "pencil" (order 2), or "auto": whatever the layout asks for.
        norm: "backward", "ortho" or "forward", as NumPy.

    Raises:
        LayoutError: shape, layout, axes and algorithm do not fit each other.
        CommError: the grid does not match the ranks.

    >>> f = FFT((8, 9, 10), dtype="f8")
    >>> x = DistTensor.zeros((8, 9, 10), f.input_layout)
    >>> f.forward(x).shape, f.backward(f.forward(x)).shape
    ((8, 9, 6), (8, 9, 10))
    """

    def __init__(
        self,
        shape: Sequence[int] | int,
        layout: Layout | str | None = None,
        grid: Grid | Sequence[int] | int | None = None,
        comm: object | None = None,
        dtype: npt.DTypeLike = "c16",
        axes: Sequence[int] | int | None = None,
        algorithm: str = "auto",
        norm: str | None = None,
    ) -> None:
        ranks = as_comm(comm)
        source = _source(shape, layout, grid, ranks.size, algorithm)
        check_grid(source.grid, ranks)
        found = as_dtype(dtype)
        found = found if found.kind in "fc" else np.dtype("f8")
        self._axes = normal_axes(axes, len(source.shape))
        self._norm = check_norm(norm)
        self._comm = ranks
        kind = "fft" if found.kind == "c" else "rfft"
        check_extents(source.shape, self._axes)
        if kind == "rfft" and not self._axes:
            raise LayoutError("a real transform needs at least one axis")
        self.walk = transpose(source, self._axes, kind, found)
        self._forward = BoundWalk(self.walk, ranks)
        self._backward = BoundWalk(self.walk.inverse(), ranks, self._forward.scratch)

    @property
    def input_layout(self) -> Layout:
        """The layout that `forward` takes and `backward` gives."""
        return self.walk.source.layout

    @property
    def output_layout(self) -> Layout:
        """The layout that `forward` gives and `backward` takes."""
        return self.walk.target.layout

    @property
    def moves(self) -> tuple[Plan, ...]:
        """The plans of the forward walk's transitions, in order."""
        return self.walk.moves

    @property
    def workspace_bytes(self) -> int:
        """Bytes of scratch and message buffers on this rank, beyond input and output; both directions share them."""
        programs = (*self._forward.programs, *self._backward.programs)
        messages = max((program.workspace_bytes for program in programs), default=0)
        return sum(s.nbytes for s in self._forward.scratch) + messages

    def forward(self, x: DistTensor, out: DistTensor | None = None) -> DistTensor:
        """The spectrum of x, in `output_layout`; x keeps its values.

        Raises:
            LayoutError: x or `out` is not of the shape, layout and dtype that the transform was made for.
        """
        factor = scale(self._norm, [self.walk.source.shape[a] for a in self._axes], forward=True)
        return self._run(self._forward, x, out, factor)

    def backward(self, X: DistTensor, out: DistTensor | None = None) -> DistTensor:
        """The tensor of a spectrum, in `input_layout`; X keeps its values.

        Raises:
            LayoutError: X or `out` is not of the shape, layout and dtype that the transform was made for.
        """
        factor = scale(self._norm, [self.walk.source.shape[a] for a in self._axes], forward=False)
        return self._run(self._backward, X, out, factor)

    def _run(self, bound: BoundWalk, x: DistTensor, out: DistTensor | None, factor: np.floating[Any]) -> DistTensor:
        if x.comm is not self._comm:
            raise LayoutError("the transform and the tensor are on different communicators; give both the same comm")
        dtypes = bound.walk.dtypes()
        _check(x, bound.walk.source, dtypes[0], "the input")
        if out is None:
            target = bound.walk.target
            out = DistTensor(np.empty(target.local_shape(self._comm.rank), dtypes[-1]), target, self._comm)
        else:
            _check(out, bound.walk.target, dtypes[-1], "out")
        bound(x.local, out.local, factor)
        return out

    def __str__(self) -> str:
        return describe(self.walk, self._axes)


@dataclass(frozen=True, slots=True)
class _Operation:
    """One operation of a bound walk: a kernel or a move, and the block that comes out of it."""

    run: BoundKernel | Program
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def in_place(self) -> bool:
        return isinstance(self.run, BoundKernel) and self.run.kernel.in_place


class BoundWalk:
    """A walk bound to a communicator: kernels, programs, and two scratch blocks, each as large as the largest block.

    A walk and its inverse may share their scratch.
    """

    def __init__(self, walk: Walk, comm: Comm, scratch: Scratch | None = None) -> None:
        self.walk = walk
        rank, moves, dtypes = comm.rank, walk.moves, walk.dtypes()
        if scratch is None:
            blocks = [prod(d.local_shape(rank)) for s in walk.stages for d in (s.before, s.after)]
            largest = max(blocks) * max(d.itemsize for d in dtypes)
            scratch = scratch_bytes(largest), scratch_bytes(largest)
        self.scratch = scratch
        self._operations: list[_Operation] = []
        for number, stage in enumerate(walk.stages):
            if number and moves[number - 1].steps:
                program = bind(moves[number - 1], comm)
                self._operations.append(_Operation(program, stage.before.local_shape(rank), dtypes[number]))
            if stage.axes:
                before, after = stage.before.local_shape(rank), stage.after.local_shape(rank)
                kernel = Kernel(stage.kind, stage.axes, before, after, dtypes[number])
                bound = BoundKernel(kernel, scratch)
                self._operations.append(_Operation(bound, after, dtypes[number + 1]))
        fresh = [i for i, operation in enumerate(self._operations) if not operation.in_place]
        self._last = max(fresh, default=0)  # from here on the block lies in `out`

    @property
    def programs(self) -> list[Program]:
        """The bound moves, in order."""
        return [op.run for op in self._operations if isinstance(op.run, Program)]

    def __call__(self, block: Array, out: Array, factor: np.floating[Any]) -> None:
        """Walk a block from the walk's source to its target, into `out`, times a factor; the input is preserved."""
        fits = is_plain(out) and out.flags.writeable
        target = plain(out) if fits else plain(np.empty(out.shape, out.dtype))
        here, taken = plain(block), -1  # the scratch block that `here` lies in
        if not self._operations:
            target[...] = here
        for number, operation in enumerate(self._operations):
            run = operation.run
            if isinstance(run, BoundKernel) and run.kernel.kind == "irfft" and taken < 0 and here.size:
                taken = 0  # a complex-to-real kernel destroys its input
                copy = view(self.scratch[0], here.shape, here.dtype)
                copy[...] = here
                here = copy
            if number >= self._last:
                there = target
            elif operation.in_place and taken >= 0:
                there = here
            else:
                taken = 1 if taken == 0 else 0
                there = view(self.scratch[taken], operation.shape, operation.dtype)
            run(here, there)
            here = there
        if factor != 1:
            target *= real_dtype(target.dtype).type(factor)
        if not fits:
            out[...] = target


def describe(walk: Walk, axes: tuple[int, ...]) -> str:
    """A walk as text, with a line above that says what is transformed, and one below with what is moved."""
    moved, times = sum(plan.cost.bytes for plan in walk.moves), len(walk.moves)
    source = walk.source
    return (
        f"{walk.kind} of {source.shape} {walk.dtype} on grid {source.grid}, axes {axes}\n{walk}\n"
        f"  each rank receives {in_bytes(moved)} in {times} move{'s' * (times != 1)}"
    )


def scale(norm: str, extents: Sequence[int], forward: bool) -> np.longdouble:
    """The factor that NumPy's `norm` asks for, as exact as any dtype wants it; the kernels themselves never scale.

    >>> float(scale("backward", [4, 5], forward=False)), float(scale("ortho", [4], forward=True))
    (0.05, 0.5)
    """
    points = np.longdouble(prod(extents))
    if norm == "ortho":
        points = np.sqrt(points)
    elif (norm == "forward") != forward:
        points = np.longdouble(1)
    return np.longdouble(1 / points)


def normal_axes(axes: Sequence[int] | int | None, order: int) -> tuple[int, ...]:
    """Axes as numbers from 0, each once.

    Raises:
        LayoutError: an axis is no integer, outside the tensor, or named twice.
    """
    if axes is None:
        return tuple(range(order))
    try:
        named = tuple(as_int(a) for a in (axes if isinstance(axes, Iterable) else (axes,)))
    except TypeError:
        raise LayoutError(f"axes are integers, not {axes!r}") from None
    if any(not -order <= a < order for a in named):
        raise LayoutError(f"axes {named} are not all axes of a tensor of order {order}")
    found = tuple(a % order for a in named)
    if len(set(found)) != len(found):
        raise LayoutError(f"axes {named} name an axis twice")
    return found


def check_norm(norm: str | None) -> str:
    """A norm by its name; None is "backward"."""
    if norm is not None and norm not in NORMS:
        raise LayoutError(f"norm is one of {', '.join(NORMS)}; not {norm!r}")
    return norm or "backward"


def _source(
    shape: Sequence[int] | int,
    layout: Layout | str | None,
    grid: Grid | Sequence[int] | int | None,
    ranks: int,
    algorithm: str,
) -> Distribution:
    """Where the walk starts: the layout that is asked for, or blocks over the first modes."""
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    wanted = SPLITS.get(algorithm)
    if wanted is not None and layout is None and grid is not None and _order(grid) != wanted:
        raise LayoutError(f"a {algorithm} takes a grid of order {wanted}, not {grid}")
    if layout is not None:
        start = as_layout(layout)
        order = max((*start.grid_modes, 0)) + 1
    else:
        order = wanted or (1 if grid is None else _order(grid))
        if order >= max(len(extents), 2):
            raise LayoutError(
                f"a tensor of order {len(extents)} is transformed on a grid of order {len(extents) - 1} or less, "
                f"not {order}; give a layout to say otherwise"
            )
        start = L(*(block(m) if m < order else () for m in range(len(extents))))
    check_algorithm(algorithm, start)
    return distribute(start, extents, Grid.of(ranks, order) if grid is None else grid)


def _order(grid: Grid | Sequence[int] | int) -> int:
    return grid.order if isinstance(grid, Grid) else 1 if isinstance(grid, int) else len(grid)


def _check(x: DistTensor, dist: Distribution, dtype: np.dtype[Any], name: str) -> None:
    if x.distribution != dist or x.dtype != dtype:
        raise LayoutError(f"{name} is {x.distribution} {x.dtype}, but the transform takes {dist} {dtype}")

"""DistTensor: a tensor that lies distributed over ranks.

It wraps this rank's block, a plain NumPy array, and the distribution that says what the block is. All methods that
move data, and all constructors, are collective: every rank calls them, by one thread; where a rank is alone, any may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..compiler.step import as_dtype
from ..errors import LayoutError
from ..functions.moves import announce, implicit_cause, records_open
from ..layout.layout import Distribution, Layout
from ..runtime.comm import segments
from ..runtime.comm.collective_errors import collective_errors
from ..runtime.comm.protocol import Comm, Path
from ..runtime.comm.resolve import as_comm
from ..runtime.copy.regions import filled
from ..runtime.placement import GridLike, compute_block, cut_block, place, place_slices, same_everywhere
from ..runtime.tuning.limits import Tune
from .bound_move import Movable, move_into, program_to
from .halo import Halos
from .labels import Labelled
from .methods import ArrayMethods
from .protocols import ArrayProtocols
from .rearranging import Rearranging
from .subsets import Subsets

__all__ = ["DistTensor"]

Array = npt.NDArray[Any]


class DistTensor(Rearranging, ArrayMethods, ArrayProtocols, Movable, Halos, Subsets, Labelled):
    """A tensor distributed over the ranks of a communicator.

    Operators and NumPy's element-wise functions work between tensors of equal distribution and with scalars;
    `np.array_equal` and `np.allclose` are collective and the same on all ranks. Nothing is gathered behind the user's
    back: what wants the whole array, as `np.asarray(x)`, is refused with a cure; `x.to_global()` says it.

    >>> import numpy as np
    >>> x = DistTensor.from_global(np.arange(6.0).reshape(2, 3), "block[(0),()]")
    >>> x
    DistTensor((2, 3), float64, 'block[(0),()]', grid=(1,), rank=0, local=(2, 3))
    >>> (2 * x + 1).redistribute("[(),(0)]").to_global()[1]
    array([ 7.,  9., 11.])
    """

    __slots__ = ("__weakref__", "_comm", "_distribution", "_local")

    def __init__(self, local: Array, distribution: Distribution, comm: object | None = None) -> None:
        """Wrap this rank's block, without a copy and without a word to the others; see `from_local` for the safe way.

        Raises:
            LayoutError: the block has another shape than the distribution gives this rank; on this rank only.
        """
        self._comm = as_comm(comm)
        self._distribution = distribution
        self._local = local
        if not isinstance(distribution, Distribution):
            raise TypeError("DistTensor(block, dist) takes a Distribution\nwrite DistTensor.from_global(array, layout)")
        if local.shape != (wanted := distribution.local_shape(self._comm.rank)):
            raise LayoutError(f"rank {self._comm.rank} holds a block of {wanted} in {distribution}, not {local.shape}")

    @staticmethod
    def from_global(
        array: npt.ArrayLike, layout: Layout | str, comm: object | None = None, grid: GridLike = None
    ) -> DistTensor:
        """A tensor from an array that every rank has whole; each copies its own part.

        Args:
            array: the same on all ranks.
            layout: of the tensor's order.
            comm: an mpi4py or Rote communicator; the ranks of `rote.run`, MPI's world or this process if None.
            grid: of as many ranks as the communicator, as (2, 3), or (2, -1) for as many as there are; the most
                balanced one that the layout allows if None.

        Raises:
            LayoutError: the layout does not fit.
            CommError: the grid does not match the ranks.

        >>> from rote import run
        >>> run(lambda comm: DistTensor.from_global(np.arange(5), "block[(0)]", comm).local.tolist(), ranks=2)
        [[0, 1, 2], [3, 4]]
        """
        return DistTensor(*cut_block(array, layout, as_comm(comm), grid))

    @staticmethod
    def from_local(
        local: npt.ArrayLike,
        layout: Layout | str | Distribution,
        shape: Iterable[int] | int | None = None,
        comm: object | None = None,
        grid: GridLike = None,
    ) -> DistTensor:
        """A tensor of blocks that already lie where they belong; `x.local` shares their memory, of any strides.

        Args:
            local: this rank's block, of shape `distribution.local_shape(rank)`; copied if it is a list, or an array in
                another byte order than the machine's.
            layout: or a `Distribution`, as of `Distribution.from_ranges(…)`, which has shape and grid.
            shape: of the whole tensor; the other arguments as in `from_global`.

        Raises:
            LayoutError: on all ranks, if on some rank the block has not the shape that the layout gives it.

        >>> DistTensor.from_local(np.zeros((2, 3)), "block[(0),()]", (2, 3)).shape
        (2, 3)
        """
        ranks = as_comm(comm)
        with collective_errors(ranks):
            block = np.asarray(local)
            x = DistTensor(block.astype(as_dtype(block.dtype), copy=False), place(shape, layout, ranks, grid), ranks)
        same_everywhere(ranks, x.distribution, x.dtype)
        return x

    @staticmethod
    def from_slices(
        local: npt.ArrayLike, slices: Sequence[slice], shape: Iterable[int] | int, comm: object | None = None
    ) -> DistTensor:
        """A tensor of blocks of which each rank knows the slices; layout and grid are found. Blocks are wrapped.

        So those of other libraries come in: uneven, empty, replicated, elementwise cyclic, with ranks in row-major
        order over the grid's modes in any order.

        Args:
            local, comm: as in `from_local`.
            slices: per mode, which global indices it holds; an empty block may say so by any empty slice.
            shape: of the whole tensor.

        Raises:
            LayoutError: on all ranks, where blocks overlap, leave a gap, or are those of no layout; it says which.

        >>> print(DistTensor.from_slices(np.zeros((3, 4)), (slice(0, 3), slice(0, 4)), (3, 4)).layout)
        [(),()]
        """
        return DistTensor(*place_slices(local, slices, shape, as_comm(comm)))

    @staticmethod
    def from_function(
        function: Callable[..., npt.ArrayLike],
        shape: Iterable[int] | int,
        layout: Layout | str,
        comm: object | None = None,
        grid: GridLike = None,
        dtype: npt.DTypeLike | None = None,
    ) -> DistTensor:
        """A tensor computed where it lies: `function(i, j, …)` of the global indices, one array per tensor mode.

        The index arrays broadcast against each other to the block's shape (as `np.ogrid`), and so must the result.
        All ranks raise the same error, or none.

        Raises:
            ValueError: the result of `function` does not broadcast to the block.
            LayoutError: the layout does not fit the shape or the ranks.

        >>> DistTensor.from_function(lambda i, j: 10 * i + j, (2, 3), "[(0),()]").to_global().tolist()
        [[0, 1, 2], [10, 11, 12]]
        """
        return DistTensor(*compute_block(function, shape, layout, as_comm(comm), grid, dtype))

    @staticmethod
    def zeros(
        shape: Iterable[int] | int,
        layout: Layout | str,
        comm: object | None = None,
        grid: GridLike = None,
        dtype: npt.DTypeLike = "f8",
    ) -> DistTensor:
        """A tensor of zeros; arguments and errors as `from_global`.

        >>> DistTensor.zeros((2, 3), "[(0),()]", dtype="c8").dtype
        dtype('complex64')
        """
        dist = place(shape, layout, ranks := as_comm(comm), grid)
        return DistTensor(filled(dist, ranks.rank, 0, as_dtype(dtype)), dist, ranks)

    @staticmethod
    def empty(
        shape: Iterable[int] | int,
        layout: Layout | str,
        comm: object | None = None,
        grid: GridLike = None,
        dtype: npt.DTypeLike = "f8",
    ) -> DistTensor:
        """A tensor whose elements are not set yet; arguments and errors as `from_global`.

        >>> DistTensor.empty((2, 3), "[(0),()]").local[...] = 7
        """
        dist = place(shape, layout, ranks := as_comm(comm), grid)
        return DistTensor(segments.empty(dist.local_shape(ranks.rank), as_dtype(dtype)), dist, ranks)

    @staticmethod
    def load(path: Path, layout: Layout | str, comm: object | None = None, grid: GridLike = None) -> DistTensor:
        """A tensor from a file that holds one; every rank reads its own part. Arguments as `from_global`.

        `rote.load` is the function that takes names and steps as well, and says all; errors as there.

        Raises:
            OSError, RoteError, LayoutError: as `rote.load`.

        >>> np.save("volume.npy", np.arange(6.0).reshape(2, 3))
        >>> DistTensor.load("volume.npy", "block[(),(0)]")
        DistTensor((2, 3), float64, 'block[(),(0)]', grid=(1,), rank=0, local=(2, 3))
        """
        from .files import load_as

        return load_as(DistTensor, path, layout, comm=comm, grid=grid)

    def save(self, path: Path) -> None:
        """Write one file, `.npy`, `.zarr`, `.h5` or `.xdmf` by its suffix; every rank writes its own part.

        `rote.save` is the function that takes names, attributes and steps as well, and says all; errors as there.

        Raises:
            OSError, RoteError, LayoutError: as `rote.save`.

        >>> DistTensor.zeros((2, 3), "[(0),()]").save("zeros.npy")
        >>> np.load("zeros.npy").shape
        (2, 3)
        """
        from .files import save

        save(path, self)

    @property
    def local(self) -> Array:
        """This rank's block, of shape `distribution.local_shape(rank)`; write into it freely."""
        return self._local

    @property
    def distribution(self) -> Distribution:
        """The layout on the tensor's shape and grid: who owns what."""
        return self._distribution

    @property
    def comm(self) -> Comm:
        """The communicator of the tensor's ranks."""
        return self._comm

    def slices(self) -> tuple[slice, ...]:
        """Per mode, the slice of the whole tensor that this rank's block is: `whole[x.slices()]` is `x.local`.

        Raises: LayoutError when some block is none: of a view, of contributions, or of several tiles.

        >>> DistTensor.zeros((4, 6), "block[(0),()]").slices()
        (slice(0, 4, None), slice(0, 6, None))
        """
        from ..layout.slices import as_slices

        return as_slices(self.distribution, self._comm.rank)

    def redistribute(
        self,
        layout: Layout | str,
        out: DistTensor | None = None,
        grid: GridLike = None,
        method: str = "auto",
        tune: Tune = "model",
        wire: str | None = None,
    ) -> DistTensor:
        """The tensor in another layout, moved by the compiled plan: `out`, or a new tensor. Collective.

        Args:
            layout: the new one.
            out: a tensor of that layout, shape and dtype to write into, which may share this one's memory; new if None.
            grid: the grid of the new layout, over the same ranks, as `from_global` has it; the old one if None.
            method: how messages travel, one of `rote.methods`; "auto" has ranks that share memory read each other's.
                The result is the same, bit for bit.
            tune: "model" takes the usual method for "auto"; "measure" and "patient" the fastest, by timing them the
                first time, which is kept (see `rote.wisdom`).
            wire: "f4" rounds f8 and c16 to single precision in messages, of half the bytes (see `rote.compile`).

        Raises:
            LayoutError: the layout does not fit, or `out` is laid out otherwise.
            PlanError, CommError: the grid has another number of ranks; no such method, or `wire`, for these.

        >>> x = DistTensor.zeros((4, 6), "block[(0),()]")
        >>> print(x.redistribute("block[(),(0)]").layout)
        block[(),(0)]
        """
        program = program_to(self._distribution, self._local.dtype, self._comm, layout, grid, method, tune, wire)
        if implicit_cause.get() or records_open.get():
            announce(self, program.plan.cost.bytes, lambda: str(program.plan))
        if out is None:
            return DistTensor._wrap(program(self._local), program.plan.target, self._comm)
        move_into(self, out, program)
        return out

    def to_global(self) -> Array:
        """The whole array, of shape `x.shape`, on every rank. Collective.

        >>> DistTensor.from_function(lambda i: i**2, 4, "[(0)]").to_global()
        array([0, 1, 4, 9])
        """
        return self.redistribute(Layout(((),) * self.ndim)).local

    def _with(self, block: Array) -> Self:
        return self._wrap(block, self._distribution, self._comm)

    def _on(self, block: Array, distribution: Distribution) -> Self:
        return self._wrap(block, distribution, self._comm)

    @classmethod
    def _wrap(cls, block: Array, distribution: Distribution, comm: Comm) -> Self:
        x = cls.__new__(cls)  # the caller has made the block, of the shape that the distribution says
        x._local, x._distribution, x._comm = block, distribution, comm
        return x

    def __repr__(self) -> str:
        return (
            f"DistTensor({self.shape}, {self.dtype}, {str(self.layout)!r}, grid={self.grid.shape}, "
            f"rank={self._comm.rank}, local={self.local.shape})"
        )

"""DistTensor: a tensor distributed over ranks.

It wraps this rank's block, a plain NumPy array, and the distribution that says which part of the tensor this is. All
constructors, and all methods that move data, are collective: every rank calls them from one thread, or, if there is
only one rank, from any thread.

`rote.functions.distributed` has the value itself, `protocols` what Python and NumPy call, and `methods` what NumPy's
arrays have, too. Here are the other methods; functions of other modules do their work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from ..compiler.step import as_dtype
from ..errors import LayoutError
from ..functions.distributed import Array, changed
from ..functions.moves import attributed_to, attribution, record_move, records_open, refuse_copies
from ..layout.distribution import Distribution
from ..layout.layout import Layout
from ..runtime import placement
from ..runtime.arrays import as_array, refuse_mask
from ..runtime.choose import Tune
from ..runtime.comm.agreement import collective_errors
from ..runtime.comm.protocol import Comm, Path
from ..runtime.comm.resolve import as_comm
from ..runtime.placement import GridLike, filled, place
from .halo import Periodic, Width, halo_plan, with_halo, without_halo
from .methods import ArrayMethods
from .moving import BoundMove, bound_move, from_roots, grid_comm, move_into, on_roots, program_to

if TYPE_CHECKING:
    from ..compiler.halo import HaloPlan

__all__ = ["DistTensor"]


class DistTensor(ArrayMethods):
    """A tensor distributed over the ranks of a communicator.

    Operators and NumPy's element-wise functions combine tensors with each other and with scalars. If the operands have
    different layouts, one of them is moved; `rote.config` allows or forbids this. `np.array_equal` and `np.allclose`
    are collective and give the same on all ranks. `np.asarray(x)` is refused; `x.to_global()` gathers. A function that
    must gather, as `np.linalg.qr(x, mode="complete")`, says so with a `MoveWarning`, from 16 MiB on a `GatherWarning`.

    Use the constructors `from_function`, `from_global`, `from_local`, `from_slices`, `zeros`, `empty` and `load`.

    Parameters
    ----------
    local : Array
        This rank's block, of shape `distribution.local_shape(rank)`.
    distribution : Distribution
        The layout on the tensor's shape and grid.
    comm : object, optional
        A communicator of as many ranks as the grid; if None, the ranks of `rote.run`, MPI's world, or this process.

    Examples
    --------
    >>> import numpy as np, rote
    >>> x = rote.DistTensor.from_global(np.arange(6.0).reshape(2, 3), "block[(0),()]")
    >>> x
    DistTensor((2, 3), float64, 'block[(0),()]', grid=(1,), rank=0, local=(2, 3))
    >>> (2 * x + 1).redistribute("[(),(0)]").to_global()[1]
    array([ 7.,  9., 11.])
    """

    __slots__ = ()

    def __init__(self, local: Array, distribution: Distribution, comm: object | None = None) -> None:
        """Wrap this rank's block without a copy, and without asking other ranks; `from_local` also checks those.

        Raises:
            LayoutError: the block has another shape than the distribution gives this rank; raised on this rank only.
            TypeError: `distribution` is not one, or the block is no array or has a mask; raised on this rank only.
        """
        self._comm = as_comm(comm)
        self._distribution = distribution
        self._local = local
        self._sharing = None

        if type(local) is not np.ndarray:
            refuse_mask(type(local))
        if not isinstance(distribution, Distribution) or not isinstance(local, np.ndarray):
            raise TypeError(
                "DistTensor(block, dist) takes an array and a Distribution\nwrite DistTensor.from_global(array, layout)"
            )

        shape = distribution.local_shape(self._comm.rank)
        if local.shape != shape:
            text = f"rank {self._comm.rank} holds a block of {shape} in {distribution}, not {local.shape}"
            if local.shape == distribution.shape:
                text += "\nwrite DistTensor.from_global(array, layout) for an array that every rank has whole"
            raise LayoutError(text)

    @classmethod
    def from_global(
        cls, array: npt.ArrayLike, layout: Layout | str, comm: object | None = None, grid: GridLike = None
    ) -> Self:
        """A tensor from an array that every rank has whole; each rank copies its own part.

        Parameters
        ----------
        array : ArrayLike
            The whole array, the same on all ranks.
        layout : Layout | str
            A layout for the array's order.
        comm : object, optional
            An mpi4py or Rote communicator; if None, the ranks of `rote.run`, MPI's world, or this process alone.
        grid : Grid | Sequence[int] | int, optional
            A grid of as many ranks as the communicator, such as (2, 3), or (2, -1), where -1 stands for the extent that
            fits; if None, the most balanced grid that the layout allows.

        Raises
        ------
        LayoutError
            The layout does not fit.
        CommError
            The grid does not match the ranks.
        TypeError
            The array has a mask.

        See Also
        --------
        rote.DistTensor.from_function : Compute each block from its global indices.
        rote.DistTensor.from_local : Take blocks that are already on their ranks.
        rote.load : Read each rank's part of a file.

        Examples
        --------
        >>> import numpy as np
        >>> from rote import DistTensor, run
        >>> run(lambda comm: DistTensor.from_global(np.arange(5), "block[(0)]", comm).local.tolist(), ranks=2)
        [[0, 1, 2], [3, 4]]
        """
        return cls(*placement.cut_block(array, layout, as_comm(comm), grid))

    @classmethod
    def from_local(
        cls,
        local: npt.ArrayLike,
        layout: Layout | str | Distribution,
        shape: Iterable[int] | int | None = None,
        comm: object | None = None,
        grid: GridLike = None,
    ) -> Self:
        """A tensor from blocks that are already on their ranks; `x.local` shares their memory, with any strides.

        Parameters
        ----------
        local : ArrayLike
            This rank's block, of shape `distribution.local_shape(rank)`; it is copied if it is a list, or an array in
            another byte order than the machine's.
        layout : Layout | str | Distribution
            A layout, or a `Distribution`, such as that of `Distribution.from_ranges(…)`, which has shape and grid.
        shape : Iterable[int] | int, optional
            The shape of the whole tensor; None with a `Distribution`, which has it.
        comm : object, optional
            As for `from_global`.
        grid : Grid | Sequence[int] | int, optional
            As for `from_global`.

        Raises
        ------
        LayoutError
            On some rank the block does not have the shape that the layout gives it; raised on all ranks.

        See Also
        --------
        rote.DistTensor.from_slices : Find the layout from the slices of blocks.
        rote.Distribution.from_ranges : Find the layout from ranges of indices.

        Examples
        --------
        >>> import numpy as np
        >>> from rote import DistTensor
        >>> DistTensor.from_local(np.zeros((2, 3)), "block[(0),()]", (2, 3)).shape
        (2, 3)
        """
        ranks = as_comm(comm)
        with collective_errors(ranks):
            block = as_array(local)
            x = cls(block.astype(as_dtype(block.dtype), copy=False), place(shape, layout, ranks, grid), ranks)
        placement.same_everywhere(ranks, x.distribution, x.local.dtype)
        return x

    @classmethod
    def from_slices(
        cls, local: npt.ArrayLike, slices: Sequence[slice], shape: Iterable[int] | int, comm: object | None = None
    ) -> Self:
        """A tensor from blocks and their slices; layout and grid are found from the slices, and nothing is copied.

        Use it for blocks of other libraries: uneven, empty, replicated or elementwise cyclic, with ranks in row-major
        order over the grid's modes in any order.

        Parameters
        ----------
        local : ArrayLike
            As in `from_local`.
        slices : Sequence[slice]
            Per mode, the global indices that this rank holds; for an empty block, any empty slice.
        shape : Iterable[int] | int
            The shape of the whole tensor.
        comm : object, optional
            As in `from_local`.

        Raises
        ------
        LayoutError
            Blocks overlap, leave a gap, or have no layout; the text, the same on all ranks, says which.

        Examples
        --------
        >>> import numpy as np
        >>> from rote import DistTensor
        >>> print(DistTensor.from_slices(np.zeros((3, 4)), (slice(0, 3), slice(0, 4)), (3, 4)).layout)
        [(),()]
        """
        return cls(*placement.place_slices(local, slices, shape, as_comm(comm)))

    @classmethod
    def from_function(
        cls,
        function: Callable[..., npt.ArrayLike],
        shape: Iterable[int] | int,
        layout: Layout | str,
        comm: object | None = None,
        grid: GridLike = None,
        dtype: npt.DTypeLike | None = None,
    ) -> Self:
        """A tensor computed by blocks: each rank calls `function(i, j, …)` with its global indices.

        The index arrays, one per mode, broadcast against each other to the block's shape (as `np.ogrid`), and so must
        the result. The other arguments are those of `from_global`.

        Parameters
        ----------
        function : Callable[..., ArrayLike]
            A function of one index array per mode.
        shape : Iterable[int] | int
            The shape of the tensor.
        layout : Layout | str
            A layout for that shape.
        comm : object, optional
            As for `from_global`.
        grid : Grid | Sequence[int] | int, optional
            As for `from_global`.
        dtype : DTypeLike, optional
            The dtype of the elements; that of the function's result if None.

        Raises
        ------
        ValueError
            The result of `function` does not broadcast to the block; all ranks raise the same error.
        LayoutError
            The layout does not fit the shape or the ranks.

        Examples
        --------
        >>> from rote import DistTensor
        >>> DistTensor.from_function(lambda i, j: 10 * i + j, (2, 3), "[(0),()]").to_global().tolist()
        [[0, 1, 2], [10, 11, 12]]
        """
        return cls(*placement.compute_block(function, shape, layout, as_comm(comm), grid, dtype))

    @classmethod
    def zeros(
        cls,
        shape: Iterable[int] | int,
        layout: Layout | str,
        comm: object | None = None,
        grid: GridLike = None,
        dtype: npt.DTypeLike = "f8",
    ) -> Self:
        """A tensor of zeros; arguments and errors as for `from_global`.

        Parameters
        ----------
        shape : Iterable[int] | int
            The shape of the tensor.
        layout : Layout | str
            As for `from_global`.
        comm : object, optional
            As for `from_global`.
        grid : Grid | Sequence[int] | int, optional
            As for `from_global`.
        dtype : DTypeLike, default 'f8'
            The dtype of the elements.

        Examples
        --------
        >>> from rote import DistTensor
        >>> DistTensor.zeros((2, 3), "[(0),()]", dtype="c8").dtype
        dtype('complex64')
        """
        dist = place(shape, layout, ranks := as_comm(comm), grid)
        return cls(filled(dist, ranks.rank, 0, as_dtype(dtype)), dist, ranks)

    @classmethod
    def empty(
        cls,
        shape: Iterable[int] | int,
        layout: Layout | str,
        comm: object | None = None,
        grid: GridLike = None,
        dtype: npt.DTypeLike = "f8",
    ) -> Self:
        """A tensor with uninitialized elements; arguments and errors as for `from_global`.

        Parameters
        ----------
        shape : Iterable[int] | int
            The shape of the tensor.
        layout : Layout | str
            As for `from_global`.
        comm : object, optional
            As for `from_global`.
        grid : Grid | Sequence[int] | int, optional
            As for `from_global`.
        dtype : DTypeLike, default 'f8'
            The dtype of the elements.

        Examples
        --------
        >>> from rote import DistTensor
        >>> DistTensor.empty((2, 3), "[(0),()]").local[...] = 7
        """
        dist = place(shape, layout, ranks := as_comm(comm), grid)
        return cls(placement.new_block(dist, ranks.rank, as_dtype(dtype)), dist, ranks)

    def save(self, path: Path) -> None:
        """Write one file, with `.npy`, `.zarr`, `.h5`, `.nc` or `.xdmf` as its suffix; every rank writes its own part.

        For names, attributes and steps use `rote.save`, which has the details.

        Parameters
        ----------
        path : str | PathLike[str]
            The file; its suffix names the format.

        Raises
        ------
        OSError, RoteError, LayoutError
            As `rote.save`.

        Examples
        --------
        >>> import numpy as np, rote
        >>> rote.DistTensor.zeros((2, 3), "[(0),()]").save("zeros.npy")
        >>> np.load("zeros.npy").shape
        (2, 3)
        """
        from .files import save

        save(path, self)

    @classmethod
    def load(cls, path: Path, layout: Layout | str, comm: object | None = None, grid: GridLike = None) -> Self:
        """A tensor from a file that holds one; every rank reads its own part. Arguments as for `from_global`.

        For names and steps use `rote.load`, which has the details.

        Parameters
        ----------
        path : str | PathLike[str]
            The file.
        layout : Layout | str
            As for `from_global`.
        comm : object, optional
            As for `from_global`.
        grid : Grid | Sequence[int] | int, optional
            As for `from_global`.

        Raises
        ------
        OSError, RoteError, LayoutError
            As `rote.load`.

        Examples
        --------
        >>> import numpy as np
        >>> from rote import DistTensor
        >>> np.save("volume.npy", np.arange(6.0).reshape(2, 3))
        >>> DistTensor.load("volume.npy", "block[(),(0)]")
        DistTensor((2, 3), float64, 'block[(),(0)]', grid=(1,), rank=0, local=(2, 3))
        """
        from .files import load_as

        return load_as(cls, path, layout, comm=comm, grid=grid)[0]

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

        Parameters
        ----------
        layout : Layout | str
            The new layout.
        out : DistTensor, optional
            A tensor of that layout, shape and dtype to write into, which may share this one's memory; new if None.
        grid : Grid | Sequence[int] | int, optional
            The grid of the new layout, over the same ranks, as in `from_global`; the old one if None.
        method : str, default 'auto'
            How messages travel, one of `rote.methods`; with "auto", ranks that share memory read each other's blocks.
            The result is the same, bit for bit, but for sums of floats between nodes, and for `wire`.
        tune : {'model', 'measure', 'patient'}, default 'model'
            "model" takes the default method for "auto"; "measure" and "patient" time the methods at the first call,
            take the fastest, and keep the choice (see `rote.wisdom`).
        wire : str, optional
            "f4" rounds f8 and c16 to single precision in messages, which halves their bytes (see `rote.compile`).

        Raises
        ------
        LayoutError
            The layout does not fit, or `out` has another layout or is read-only.
        PlanError, CommError
            The grid has another number of ranks; these ranks have no such method, or no such `wire`.
        TypeError
            `out` is not a tensor.

        See Also
        --------
        rote.redistribute : Move several tensors in one exchange.
        rote.DistTensor.move_to : Bind a move that is made again and again.
        rote.compile : Look at the plan before it runs.

        Examples
        --------
        >>> import rote
        >>> x = rote.DistTensor.zeros((4, 6), "block[(0),()]")
        >>> print(x.redistribute("block[(),(0)]").layout)
        block[(),(0)]
        """
        # What moves by this alone, as `to_global` and `float(x)` do, gives its name to the call that ranks compare.
        work = attribution.get()
        name = work.name if work.call is None and work.name else "redistribute"
        program = program_to(name, self, layout, grid, method, tune, wire, "no out" if out is None else "an out")
        if work.implicit or records_open.get():
            record_move(self, program.nbytes, lambda: str(program.plan))

        if out is None:
            return DistTensor._wrap(program(self._local), program.plan.target, self._comm)
        move_into(self, out, program)
        if out._sharing is not None:
            changed(out)
        return out

    def move_to(
        self,
        layout: Layout | str,
        out: DistTensor | None = None,
        grid: GridLike = None,
        method: str = "auto",
        tune: Tune = "model",
        wire: str | None = None,
    ) -> BoundMove[DistTensor]:
        """Bind the move of this tensor to another layout, to be called again and again. Collective.

        Binding moves nothing. Each call fills the result with the current values of this tensor, as
        `x.redistribute(layout, out=result)` does, at a fraction of its cost if blocks are small. The move keeps the
        memory of both tensors.

        Parameters
        ----------
        layout : Layout | str
            As in `redistribute`.
        out : DistTensor, optional
            The tensor to fill, which may share this one's memory; a new one if None.
        grid : Grid | Sequence[int] | int, optional
            As in `redistribute`.
        method : str, default 'auto'
            As in `redistribute`.
        tune : {'model', 'measure', 'patient'}, default 'model'
            As in `redistribute`.
        wire : str, optional
            As in `redistribute`.

        Returns
        -------
        BoundMove[DistTensor]
            A `BoundMove`, whose `result` is `out` or a new tensor that is not set yet.

        Raises
        ------
        LayoutError
            The layout does not fit, or `out` has another layout or is read-only.
        PlanError, CommError
            The grid has another number of ranks; these ranks have no such method.
        TypeError
            `out` is not a tensor.

        See Also
        --------
        rote.DistTensor.redistribute : Move once.

        Examples
        --------
        >>> import rote
        >>> x = rote.DistTensor.from_function(lambda i, j: 10 * i + j, (2, 3), "[(0),()]")
        >>> move = x.move_to("[(),(0)]")
        >>> move().to_global().tolist()
        [[0, 1, 2], [10, 11, 12]]
        """
        return bound_move(self, layout, out, grid, method, tune, wire)

    def to_global(self) -> Array:
        """The whole array, of shape `x.shape`, on every rank. Collective.

        Raises
        ------
        LayoutError
            The copies of the ranks of some node would take more than half of its memory, and
            `rote.config(gather="allow")` is not set; on all ranks.

        See Also
        --------
        rote.DistTensor.redistribute : Move to another layout without a gather.
        rote.DistTensor.on_roots : Keep a tensor on the ranks that hold it.

        Examples
        --------
        >>> import rote
        >>> rote.DistTensor.from_function(lambda i: i**2, 4, "[(0)]").to_global()
        array([0, 1, 4, 9])
        """
        whole = Layout(((),) * self.ndim)
        refuse_copies(self, whole, None, "to_global")
        with attributed_to("to_global"):
            return self.redistribute(whole).local

    def grid_comm(self, *grid_modes: int) -> Comm:
        """The communicator of the ranks that differ from this one only along some grid modes. Collective; made once.

        For example, `x.grid_comm(1)` is this rank's row of a grid of order 2: the ranks with equal coordinates along
        grid mode 0.

        Parameters
        ----------
        *grid_modes : int
            Modes of the tensor's grid, in any order; none for a communicator of this rank alone.

        Returns
        -------
        Comm
            A communicator in which ranks are numbered in row-major order of their coordinates along these grid modes.

        Raises
        ------
        LayoutError
            The grid has no such mode, or a mode is given twice.

        Examples
        --------
        >>> import numpy as np, rote
        >>> def row_sums(comm):
        ...     x = rote.DistTensor.from_global(np.arange(6.0).reshape(2, 3), "block[(0),(1)]", grid=(2, -1))
        ...     sums = x.local.sum(axis=1)
        ...     x.grid_comm(1).allreduce_in_place(sums, "sum")
        ...     return sums.tolist()
        >>> rote.run(row_sums, ranks=4)
        [[3.0], [3.0], [12.0], [12.0]]
        """
        return grid_comm(self, grid_modes)

    def on_roots(self) -> Self | None:
        """The tensor on the communicator of the ranks that hold it; None on all other ranks. Collective.

        The rooted layout names these ranks. Blocks are shared with this tensor, not copied. Operations on the result
        are collective over these ranks only, so that the others can do other work meanwhile. `from_roots` is the
        inverse.

        Raises
        ------
        LayoutError
            The layout is not rooted, so that all ranks hold a part.

        Examples
        --------
        >>> import rote
        >>> def program(comm):
        ...     x = rote.DistTensor.zeros(6, "block[(0)]|(1)", grid=(2, 2)).on_roots()
        ...     return None if x is None else (x.comm.rank, x.local.shape, str(x.layout))
        >>> rote.run(program, ranks=4)
        [(0, (3,), 'block[(0)]'), None, (1, (3,), 'block[(0)]'), None]
        """
        return on_roots(self)

    @classmethod
    def from_roots(
        cls,
        x: Self | None,
        layout: Layout | str,
        shape: Iterable[int] | int,
        comm: object | None = None,
        grid: GridLike = None,
    ) -> Self:
        """The tensor on all ranks from one that only some of them hold, without a copy: the inverse of `on_roots`.

        Parameters
        ----------
        x : DistTensor | None
            The tensor on the ranks that hold data, numbered in row-major order of their coordinates; None on all
            others.
        layout : Layout | str
            The rooted layout of the whole tensor, which equals that of x except for its roots.
        shape : Iterable[int] | int
            The shape of the whole tensor.
        comm : object, optional
            Those of all ranks, as in `from_global`.
        grid : Grid | Sequence[int] | int, optional
            Those of all ranks, as in `from_global`.

        Raises
        ------
        LayoutError
            On all ranks, if the layout is not rooted, or x does not fit it on some rank.

        Examples
        --------
        >>> import numpy as np, rote
        >>> def program(comm):
        ...     half = comm.split(color=comm.rank % 2, key=comm.rank)
        ...     even = comm.rank % 2 == 0
        ...     x = rote.DistTensor.from_global(np.arange(6), "block[(0)]", half) if even else None
        ...     y = rote.DistTensor.from_roots(x, "block[(0)]|(1)", 6, comm, (2, 2))
        ...     return y.redistribute("block[(0,1)]").local
        >>> [block.tolist() for block in rote.run(program, ranks=4)]
        [[0, 1], [2], [3, 4], [5]]
        """
        return cls._wrap(*from_roots(x, layout, shape, as_comm(comm), grid))

    def halo(self, width: Width, periodic: Periodic = False, fill: Any = 0, out: Array | None = None) -> Array:
        """This rank's block with ghost cells around it: its neighbours' faces, edges and corners. Collective.

        The layout may be any in which every block is a box, even or uneven; a halo may be wider than the neighbour. The
        shape is that of the block plus the ghosts on both sides of each mode, at the ends of the tensor too, as for
        PETSc's DMDA with ghosted boundaries; so `h[1:-1]` is the block, and a stencil needs no special case for the
        ends. A block that is empty along a mode has no ghosts there. The communicator keeps the bound exchange for
        later calls.

        Parameters
        ----------
        width : int | Sequence[int | tuple[int, int]]
            Ghost cells on both sides of every mode; or per mode a number, or a pair (below, above).
        periodic : bool | Sequence[bool], default False
            Whether ghosts beyond an end come from the other end; for all modes, or per mode.
        fill : scalar, default 0
            The value of ghosts beyond the ends of modes that are not periodic.
        out : Array, optional
            An array of that shape and of the tensor's dtype to write into; new if None. `x.local` may be the block
            inside it, which then stays as it is.

        Raises
        ------
        LayoutError
            Blocks are not boxes; there is not one width per mode, or not one truth value; `out` does not fit.

        See Also
        --------
        rote.DistTensor.accumulate_halo : The transpose: add ghost cells to their owners.
        rote.DistTensor.halo_plan : The messages and bytes, without a move.

        Examples
        --------
        >>> import numpy as np, rote
        >>> def program(comm):
        ...     x = rote.DistTensor.from_global(np.arange(1, 7), "block[(0)]", comm)
        ...     return x.halo(1).tolist(), x.halo([(2, 1)], periodic=True).tolist()
        >>> rote.run(program, ranks=2)
        [([0, 1, 2, 3, 4], [5, 6, 1, 2, 3, 4]), ([3, 4, 5, 6, 0], [2, 3, 4, 5, 6, 1])]
        """
        return with_halo(self, width, periodic, fill, out)

    def accumulate_halo(self, halo: npt.ArrayLike, width: Width, periodic: Periodic = False) -> Self:
        """The tensor with the ghost cells of all ranks added to the cells of their owners: the transpose of `halo`.

        Finite elements, particles and gradients of stencils compute values for cells of their neighbours; this adds
        them there. Ghosts beyond the ends of a mode that is not periodic are dropped. Replicas must give equal arrays.
        Collective. Law: the sum of `x.halo(w) * y` over all ranks is that of `x.local * x.accumulate_halo(y, w).local`.

        Parameters
        ----------
        halo : ArrayLike
            This rank's array, of the shape and dtype of `x.halo(width, periodic)`; `x` gives the layout.
        width : int | Sequence[int | tuple[int, int]]
            The width of that halo.
        periodic : bool | Sequence[bool], default False
            Whether that halo is periodic, as for `halo`.

        Raises
        ------
        LayoutError
            An array has another shape or dtype (raised on all ranks); or as `halo`.

        See Also
        --------
        rote.DistTensor.halo : Fetch ghost cells.

        Examples
        --------
        >>> import numpy as np, rote
        >>> def program(comm):
        ...     x = rote.DistTensor.zeros(6, "block[(0)]", comm)
        ...     return x.accumulate_halo(np.ones(5), 1).local.tolist()
        >>> rote.run(program, ranks=2)
        [[1.0, 1.0, 2.0], [2.0, 1.0, 1.0]]
        """
        return without_halo(self, halo, width, periodic)

    def halo_plan(self, width: Width, periodic: Periodic = False) -> HaloPlan:
        """The plan of `halo`: its messages, bytes and seconds, and its proof. It moves nothing, and is not collective.

        Raises
        ------
        LayoutError
            A width is negative, or there is not one for each mode; or as `halo`.

        Examples
        --------
        >>> import rote
        >>> x = rote.DistTensor.zeros((8, 8), "block[(0),()]")
        >>> plan = x.halo_plan(1, periodic=True)
        >>> plan.cost.messages, plan.shape(0)
        (0, (10, 10))
        >>> plan.verify()
        """
        return halo_plan(self, width, periodic)

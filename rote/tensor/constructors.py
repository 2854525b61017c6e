"""New tensors: from an array, from blocks that ranks already hold, from a function, of one value, from a file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Self

import numpy.typing as npt

from ..compiler.step import as_array, as_dtype
from ..functions.distributed import Array, Distributed
from ..layout.layout import Distribution, Layout
from ..runtime.comm.collective_errors import collective_errors
from ..runtime.comm.protocol import Path
from ..runtime.comm.resolve import as_comm
from ..runtime.placement import (
    GridLike,
    compute_block,
    cut_block,
    filled,
    new_block,
    place,
    place_slices,
    same_everywhere,
)

__all__ = ["Constructors"]


class Constructors(Distributed):
    """The constructors of tensors. All are collective."""

    __slots__ = ()

    @abstractmethod
    def __init__(self, local: Array, distribution: Distribution, comm: object | None = None) -> None: ...

    @classmethod
    def from_global(
        cls, array: npt.ArrayLike, layout: Layout | str, comm: object | None = None, grid: GridLike = None
    ) -> Self:
        """A tensor from an array that every rank has whole; each rank copies its own part.

        Args:
            array: the whole array, the same on all ranks.
            layout: a layout for the array's order.
            comm: an mpi4py or Rote communicator; if None, the ranks of `rote.run`, MPI's world, or this process alone.
            grid: a grid of as many ranks as the communicator, such as (2, 3), or (2, -1), where -1 stands for the
                extent that fits; if None, the most balanced grid that the layout allows.

        Raises:
            LayoutError: the layout does not fit.
            CommError: the grid does not match the ranks.
            TypeError: the array has a mask.

        >>> import numpy as np
        >>> from rote import DistTensor, run
        >>> run(lambda comm: DistTensor.from_global(np.arange(5), "block[(0)]", comm).local.tolist(), ranks=2)
        [[0, 1, 2], [3, 4]]
        """
        return cls(*cut_block(array, layout, as_comm(comm), grid))

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

        Args:
            local: this rank's block, of shape `distribution.local_shape(rank)`; it is copied if it is a list, or an
                array in another byte order than the machine's.
            layout: a layout, or a `Distribution`, such as that of `Distribution.from_ranges(…)`, which has shape and
                grid.
            shape: the shape of the whole tensor; the other arguments as in `from_global`.

        Raises:
            LayoutError: on some rank the block does not have the shape that the layout gives it; raised on all ranks.

        >>> import numpy as np
        >>> from rote import DistTensor
        >>> DistTensor.from_local(np.zeros((2, 3)), "block[(0),()]", (2, 3)).shape
        (2, 3)
        """
        ranks = as_comm(comm)
        with collective_errors(ranks):
            block = as_array(local)
            x = cls(block.astype(as_dtype(block.dtype), copy=False), place(shape, layout, ranks, grid), ranks)
        same_everywhere(ranks, x.distribution, x.local.dtype)
        return x

    @classmethod
    def from_slices(
        cls, local: npt.ArrayLike, slices: Sequence[slice], shape: Iterable[int] | int, comm: object | None = None
    ) -> Self:
        """A tensor from blocks and their slices; layout and grid are found from the slices, and nothing is copied.

        Use it for blocks of other libraries: uneven, empty, replicated or elementwise cyclic, with ranks in row-major
        order over the grid's modes in any order.

        Args:
            local, comm: as in `from_local`.
            slices: per mode, the global indices that this rank holds; for an empty block, any empty slice.
            shape: the shape of the whole tensor.

        Raises:
            LayoutError: blocks overlap, leave a gap, or have no layout; the text, the same on all ranks, says which.

        >>> import numpy as np
        >>> from rote import DistTensor
        >>> print(DistTensor.from_slices(np.zeros((3, 4)), (slice(0, 3), slice(0, 4)), (3, 4)).layout)
        [(),()]
        """
        return cls(*place_slices(local, slices, shape, as_comm(comm)))

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
        """A tensor computed block by block: each rank calls `function(i, j, …)` with its global indices, one array per
        mode.

        The index arrays broadcast against each other to the block's shape (as `np.ogrid`), and so must the result. The
        other arguments are those of `from_global`.

        Raises:
            ValueError: the result of `function` does not broadcast to the block; all ranks raise the same error.
            LayoutError: the layout does not fit the shape or the ranks.

        >>> from rote import DistTensor
        >>> DistTensor.from_function(lambda i, j: 10 * i + j, (2, 3), "[(0),()]").to_global().tolist()
        [[0, 1, 2], [10, 11, 12]]
        """
        return cls(*compute_block(function, shape, layout, as_comm(comm), grid, dtype))

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

        >>> from rote import DistTensor
        >>> DistTensor.empty((2, 3), "[(0),()]").local[...] = 7
        """
        dist = place(shape, layout, ranks := as_comm(comm), grid)
        return cls(new_block(dist, ranks.rank, as_dtype(dtype)), dist, ranks)

    @classmethod
    def load(cls, path: Path, layout: Layout | str, comm: object | None = None, grid: GridLike = None) -> Self:
        """A tensor from a file that holds one; every rank reads its own part. Arguments as for `from_global`.

        For names and steps use `rote.load`, which has the details.

        Raises:
            OSError, RoteError, LayoutError: as `rote.load`.

        >>> import numpy as np
        >>> from rote import DistTensor
        >>> np.save("volume.npy", np.arange(6.0).reshape(2, 3))
        >>> DistTensor.load("volume.npy", "block[(),(0)]")
        DistTensor((2, 3), float64, 'block[(),(0)]', grid=(1,), rank=0, local=(2, 3))
        """
        from .files import load_as

        return load_as(cls, path, layout, comm=comm, grid=grid)

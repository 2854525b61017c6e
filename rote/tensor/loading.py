"""`rote.load`: a tensor from a file."""

from __future__ import annotations

from ..layout.layout import Layout
from ..runtime.comm.protocol import Path
from ..runtime.placement import GridLike
from ..runtime.tuning.autotune import Progress
from .files import load_as
from .tensor import DistTensor

__all__ = ["load"]


def load(
    path: Path,
    layout: Layout | str | None = None,
    name: str | None = None,
    step: int | None = None,
    comm: object | None = None,
    grid: GridLike = None,
    progress: Progress | None = None,
) -> DistTensor:
    """A tensor from a file, on any number of ranks and in any layout; every rank reads its own part. Collective.

    Files of NumPy, h5py and zarr-python (version 2 or 3 of the format) are read as those of `save` are: in either byte
    order, Fortran order, chunked and compressed as they like.

    Args:
        path: its suffix says the format.
        layout: of the file's order; the one of `rote.config`, or blocks of mode 0, if None.
        name: of the tensor, with slashes if it lies in groups; the only one if None.
        step: of which; the last if None, unless tensors lie outside of steps.
        comm: an mpi4py or Rote communicator; the ranks of `rote.run`, MPI's world or this process if None.
        grid: of as many ranks; the most balanced one that the layout allows if None.
        progress: called on this rank with the part that is read, as in `save`.

    All ranks raise the same error.

    Raises:
        OSError: the file cannot be read.
        RoteError: it is damaged, or holds no such tensor, step or dtype; the suffix is of no known format; a library
            is missing.
        LayoutError: the layout does not fit the file's shape.
        CommError: ranks give different paths, steps or names.

    >>> import numpy as np, rote
    >>> np.save("volume.npy", np.arange(6.0).reshape(2, 3))
    >>> rote.load("volume.npy", "block[(),(0)]")
    DistTensor((2, 3), float64, 'block[(),(0)]', grid=(1,), rank=0, local=(2, 3))
    """
    return load_as(DistTensor, path, layout, name, step, comm, grid, progress)

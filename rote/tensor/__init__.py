"""Tensors that are distributed over ranks, with the methods and protocols of NumPy's arrays."""

from __future__ import annotations

from typing import Any, Literal, overload

from ..layout.layout import Layout
from ..runtime.choose import Progress
from ..runtime.comm.protocol import Path
from ..runtime.placement import GridLike
from .tensor import DistTensor

__all__ = ["DistTensor", "load"]


@overload
def load(
    path: Path,
    layout: Layout | str | None = None,
    name: str | None = None,
    step: int | None = None,
    comm: object | None = None,
    grid: GridLike = None,
    progress: Progress | None = None,
    *,
    index: Any = None,
    decode: bool = False,
    attrs: Literal[False] = False,
) -> DistTensor: ...


@overload
def load(
    path: Path,
    layout: Layout | str | None = None,
    name: str | None = None,
    step: int | None = None,
    comm: object | None = None,
    grid: GridLike = None,
    progress: Progress | None = None,
    *,
    index: Any = None,
    decode: bool = False,
    attrs: Literal[True],
) -> tuple[DistTensor, dict[str, Any]]: ...


def load(
    path: Path,
    layout: Layout | str | None = None,
    name: str | None = None,
    step: int | None = None,
    comm: object | None = None,
    grid: GridLike = None,
    progress: Progress | None = None,
    *,
    index: Any = None,
    decode: bool = False,
    attrs: bool = False,
) -> DistTensor | tuple[DistTensor, dict[str, Any]]:
    """Read a tensor from a file, on any number of ranks and in any layout; every rank reads its own part. Collective.

    All ranks read one version of the file, although another program may replace it meanwhile.
    Files of NumPy, h5py, netCDF-4 and zarr-python (version 2 or 3 of the format) are read like those of `save`: in
    either byte order, in Fortran order, with any chunks and compression.

    Parameters
    ----------
    path : str | PathLike[str]
        The file; its suffix names the format, or else what is in it. In a `.zarr` store it may go on to an array or a
        group.
    layout : Layout | str, optional
        A layout for the order of the tensor in the file; if None, that of `rote.config`, or blocks of mode 0. A move
        into it, if the format is not read in it, is no implicit move.
    name : str, optional
        The name of the tensor, with slashes if it is in groups, also through links of HDF5; may be None if the file has
        one tensor.
    step : int, optional
        The number of the step; the last one if None, unless tensors are outside of steps.
    comm : object, optional
        An mpi4py or Rote communicator; if None, the ranks of `rote.run`, MPI's world, or this process alone.
    grid : Grid | Sequence[int] | int, optional
        A grid of as many ranks; if None, the most balanced grid that the layout allows.
    progress : Callable[[float], object], optional
        Called on this rank with the fraction that has been read, as in `save`.
    index : tuple | Mapping[str, slice], optional
        The part to read, as numbers and slices by position, such as `numpy.s_[10:20, 3]`, or by the names of modes,
        such as {"time": slice(10, 20)}; the rest is not read. The layout is that of the part.
    decode : bool, default False
        Whether the attributes `_FillValue`, `scale_factor` and `add_offset` are applied, as xarray does it; without it,
        the elements are those of the file.
    attrs : bool, default False
        Whether the tensor's attributes are returned too.

    Returns
    -------
    DistTensor | tuple[DistTensor, dict[str, Any]]
        The tensor; with `attrs`, the tensor and its attributes by name.

    Raises
    ------
    IndexError
        `index` has a number that is outside, an unknown name, or something else than numbers and slices.
    OSError
        The file cannot be read. All ranks raise the same error.
    RoteError
        The file is damaged, or has no such tensor, step or dtype; it is larger than memory; another program replaces it
        again and again while it is read; it is in no known format; a library is missing; integers to decode have none
        of the attributes.
    LayoutError
        The layout does not fit the shape in the file.
    CommError
        Ranks give different paths, steps or names.

    See Also
    --------
    rote.save : Write tensors.
    rote.contents : List what is in a file.

    Examples
    --------
    >>> import numpy as np, rote
    >>> np.save("volume.npy", np.arange(6.0).reshape(2, 3))
    >>> rote.load("volume.npy", "block[(),(0)]")
    DistTensor((2, 3), float64, 'block[(),(0)]', grid=(1,), rank=0, local=(2, 3))
    """
    from .files import load_as

    x, attributes = load_as(DistTensor, path, layout, name, step, comm, grid, progress, index, decode)
    return (x, attributes) if attrs else x

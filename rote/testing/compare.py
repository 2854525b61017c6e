"""Comparison of a tensor with an array, which reports the first wrong element, its owner and its local index."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..errors import counted
from ..layout.expressions import L
from ..runtime.arrays import as_array
from ..runtime.comm.agreement import collective_errors
from ..tensor import DistTensor

__all__ = ["assert_equal"]

_Wrong = tuple[tuple[int, ...], int, tuple[int, ...], str, str, int]


def assert_equal(tensor: DistTensor, array: npt.ArrayLike, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Assert that a tensor has the values of an array that every rank has whole; collective, the same on all ranks.

    No rank gathers the tensor, unless it is partial. NaN equals NaN.

    Parameters
    ----------
    tensor : DistTensor
        A tensor in any layout.
    array : ArrayLike
        An array of its shape, or a number with which all elements are compared.
    rtol, atol : float, default 0.0
        The tolerances, as in `np.isclose`; exact if both are 0.

    Raises
    ------
    TypeError
        It is no tensor.
    AssertionError
        Raised on all ranks. It names the wrong element with the lowest global index, its owner (of several, the lowest
        rank that has it wrong), its local index there, and how many ranks hold wrong elements.

    Examples
    --------
    >>> import numpy as np, rote.testing
    >>> def program(comm):
    ...     x = rote.DistTensor.from_global(np.arange(6), "block[(0)]", comm)
    ...     try:
    ...         rote.testing.assert_equal(x, np.array([0, 1, 2, 3, 9, 5]))
    ...     except AssertionError as error:
    ...         return str(error)
    >>> print(rote.run(program, ranks=2)[0])
    x[4] is 4, not 9: rank 1 holds it at [1] of its block (3,), by block[(0)] on (6,), grid 2
    1 element is wrong
    """
    if not isinstance(tensor, DistTensor):
        raise TypeError(
            f"a tensor is compared, not {type(tensor).__name__}\nwrite np.testing.assert_array_equal for two arrays"
        )

    expected = as_array(array)
    dist, comm = tensor.distribution, tensor.comm
    with collective_errors(comm):
        if expected.shape not in ((), tensor.shape):
            raise AssertionError(f"the tensor has shape {tensor.shape}, the array {expected.shape}")

    if dist.partial:
        whole = tensor.to_global()
        tensor = DistTensor.from_global(whole, L(*[()] * whole.ndim), comm, dist.grid)
        dist = tensor.distribution

    wrong = _first_wrong(tensor, np.broadcast_to(expected, tensor.shape), rtol, atol)
    reports = [report for report in comm.allgather_object(wrong) if report is not None]
    if not reports:
        return

    # Of several owners of the first wrong element, the lowest rank is named: all ranks raise the same text.
    index, rank, place, value, right, _ = min(reports, key=lambda report: report[:2])
    total = counted(sum(report[-1] for report in reports), "element is", "elements are")
    ranks = f" on {len(reports)} ranks" if len(reports) > 1 else ""

    raise AssertionError(
        f"x{list(index)} is {value}, not {right}: rank {rank} holds it at {list(place)} of its block "
        f"{dist.local_shape(rank)}, by {dist}\n{total} wrong{ranks}"
    )


def _first_wrong(tensor: DistTensor, expected: npt.NDArray[np.generic], rtol: float, atol: float) -> _Wrong | None:
    """This rank's wrong element with the lowest global index, if any, and the number of its wrong elements."""
    dist, rank, block = tensor.distribution, tensor.comm.rank, tensor.local
    if not block.size:
        return None

    indices = np.broadcast_arrays(*dist.tensor_indices(rank), np.empty(block.shape))[:-1]
    right = expected[tuple(indices)]
    if rtol or atol:
        inexact = block.dtype.kind in "fc" and right.dtype.kind in "fc"
        same = np.isclose(block, right, rtol, atol, equal_nan=inexact)
    else:
        same = (block == right) | ((block != block) & (right != right))  # NaN alone differs from itself

    places = np.argwhere(~same)
    if not len(places):
        return None

    # A block's order is not the tensor's: in a cyclic layout the first wrong place may have a later global index.
    wrong = []
    for at in map(tuple, places.tolist()):
        wrong.append((tuple([int(index[at]) for index in indices]), at))

    first, at = min(wrong)
    return first, rank, at, str(block[at]), str(right[at]), len(places)

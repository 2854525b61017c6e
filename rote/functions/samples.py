"""Functions that are given by samples: their values between these, integrals and convolutions; and polynomials."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..errors import LayoutError
from ..layout.refine import fitted
from ..runtime.arrays import as_array
from . import reductions
from .alignment import as_tensor
from .distributed import shape_of
from .elementwise import elementwise
from .indexing import fetch, getitem, key_at, known
from .products import conjugate
from .rearranging import flip
from .reductions import normal_axis
from .reshaping import in_order
from .rules import follows

__all__ = ["convolve", "correlate", "interp", "polyval", "trapezoid"]

Mode = Literal["full", "same", "valid"]


@follows("joined", np.convolve)
def convolve(a: Any, v: Any, mode: Mode = "full") -> Any:
    """The sum of products of a vector and another that runs over it backwards, as `numpy.convolve`. Collective.

    Every rank gets the shorter vector; of the longer one it fetches what is next to its block. `rote.fft.convolve`
    takes fewer operations if both are long, and tensors of any order.

    Args:
        mode: the part of the result: "full", of n + m - 1 elements; "same", as long as the longer vector; "valid",
            where both overlap wholly.

    Raises:
        ValueError: an operand is no vector or is empty, or there is no such mode.

    >>> from rote import DistTensor
    >>> np.convolve(DistTensor.from_global([1, 2, 3], "block[(0)]"), [1, 10]).to_global()
    array([ 1, 12, 23, 30])
    """
    return _convolved("convolve", a, v, mode)


@follows("joined", np.correlate)
def correlate(a: Any, v: Any, mode: Mode = "valid") -> Any:
    """The sum of products of a vector and the conjugate of another that runs over it, as `numpy.correlate`. Collective.

    Arguments and errors as for `convolve`.

    >>> from rote import DistTensor
    >>> np.correlate(DistTensor.from_global([1, 2, 3], "block[(0)]"), [1, 10]).to_global()
    array([21, 32])
    """
    if shape_of(v) > shape_of(a):  # as in NumPy, the longer one stays where it is
        turned = correlate(v, a, mode)
        return conjugate(flip(turned, axis=0))
    backwards = conjugate(v)[::-1] if len(shape_of(v)) == 1 else v
    return _convolved("correlate", a, backwards, mode)


@follows("along", np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None) -> Any:
    """The values at x of the function through points, as `numpy.interp`; every rank gets all points.

    >>> from rote import DistTensor
    >>> np.interp(DistTensor.from_global([0.5, 3.0], "block[(0)]"), [0, 1, 2], [0, 10, 30]).to_global()
    array([ 5., 30.])
    """
    places, values, ends = known(xp), known(fp), (known(left), known(right))
    points = as_tensor(x, xp, fp, left, right)
    return elementwise("interp", lambda block: np.interp(block, places, values, *ends, period), (points,), {})


@follows("along", np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """The values at x of a polynomial, as `numpy.polyval`; every rank gets all coefficients, the highest power first.

    >>> from rote import DistTensor
    >>> np.polyval([1, 0, 2], DistTensor.from_global([1, 3], "block[(0)]")).to_global()
    array([ 3, 11])
    """
    if len(shape_of(p)) != 1:
        raise LayoutError(
            f"polyval takes coefficients of order 1, not of shape {shape_of(p)}\n"
            "write numpy.polyval(p.to_global(), x.to_global())"
        )
    coefficients = known(p)
    return elementwise("polyval", lambda block: np.polyval(coefficients, block), (as_tensor(x, p),), {})


@follows("reduction", np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral along a mode by the trapezoidal rule, as `numpy.trapezoid`. Collective if the mode is split.

    Args:
        x: where the samples are, one for each index of the mode, or a tensor of y's shape; if None, `dx` apart.

    >>> from rote import DistTensor
    >>> float(np.trapezoid(DistTensor.from_global([0.0, 1.0, 4.0], "block[(0)]"), [0, 1, 3]))
    5.5
    """
    values = as_tensor(y, x, dx)
    order = len(values.distribution.shape)
    mode = normal_axis(axis, order)

    steps = known(dx)
    if x is not None and np.ndim(x) == 1:
        steps = np.diff(as_array(known(x))).reshape([-1 if m == mode else 1 for m in range(order)])
    elif x is not None:
        steps = np.diff(x, axis=mode)
    after, before = (getitem(values, key_at(part, (mode,), order)) for part in (slice(1, None), slice(None, -1)))
    return reductions.sum(steps * (after + before) / 2.0, mode)


def _convolved(name: str, a: Any, v: Any, mode: Mode) -> Any:
    shapes = shape_of(a), shape_of(v)
    if [len(shape) for shape in shapes] != [1, 1] or 0 in shapes[0] + shapes[1]:
        raise ValueError(
            f"{name} takes vectors that are not empty, not of shapes {shapes[0]} and {shapes[1]}\n"
            f"write rote.fft.{name}(x, y) of tensors of any order"
        )
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode is 'full', 'same' or 'valid', not {mode!r}")

    longer, shorter = (a, v) if shapes[0] >= shapes[1] else (v, a)
    kernel = as_array(known(shorter))
    longer = as_tensor(longer, shorter)
    n, m = longer.distribution.shape[0], len(kernel)
    start, length = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}[mode]

    # Element g of the full result is made of the elements g - m + 1 to g of the longer vector:
    #     longer     first ...... low ............. stop     of which [first, stop) are fetched
    #     result                  low ... high               of this rank
    x = in_order(longer, name)
    target = fitted(x.distribution, (length,))
    (indices,) = target.indices(x.comm.rank)
    low, high = (int(indices[0]) + start, int(indices[-1]) + 1 + start) if len(indices) else (0, 0)
    first, stop = max(low - m + 1, 0), min(high, n)

    near = fetch(x, target, (name, m, mode), lambda: [np.arange(first, stop)], name)
    if not len(indices):
        return x._on(np.convolve(np.ones(1, near.dtype), kernel[:1])[:0], target)
    return x._on(np.convolve(near, kernel)[low - first : high - first].copy(), target)

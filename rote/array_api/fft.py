"""The `fft` extension of the array API standard: transforms of tensors along named axes, by `rote.fft`.

>>> import rote.array_api as xp
>>> xp.fft.ifft(xp.fft.fft(xp.ones(4))).to_global().real
array([1., 1., 1., 1.])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Concatenate, Final, Literal, ParamSpec, Unpack

import numpy as np
import numpy.typing as npt

from rote.fft.functions.dispatch import TRANSFORMS
from rote.fft.functions.fourier import HINTS

from ..errors import LayoutError
from ..functions.creation import Where, taking
from ..functions.rules import of_tensors, written
from ..layout.grid import tensor_shape
from ..tensor.tensor import DistTensor
from .creation import arange

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn"]
__all__ += ["rfft", "rfftfreq", "rfftn"]

P = ParamSpec("P")
Norm = Literal["backward", "ortho", "forward"]


def _single(
    name: str, x: DistTensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> DistTensor:
    return TRANSFORMS[getattr(np.fft, name)](x, n, axis, norm)


def _several(
    name: str,
    x: DistTensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> DistTensor:
    return TRANSFORMS[getattr(np.fft, name)](x, s, axes, norm)


def _shift(name: str, x: DistTensor, /, *, axes: int | Sequence[int] | None = None) -> DistTensor:
    return TRANSFORMS[getattr(np.fft, name)](x, axes)


_DOC = """The `numpy.fft.{name}` of a tensor, with NumPy's arguments and lengths; layouts and moves as in `rote.fft`.

Parameters
----------
x : DistTensor
    The tensor; the other parameters are NumPy's.

Returns
-------
DistTensor
    The transform, in the layout that `rote.fft` gives it.

Raises
------
LayoutError
    The tensor has no such axis, or cannot be transformed in its layout; the text says what to write.

Examples
--------
>>> import numpy as np, rote.array_api as xp
>>> values = np.asarray([1.0, 2.0, 4.0])
>>> bool(np.allclose(xp.fft.{name}(xp.asarray(values)).to_global(), np.fft.{name}(values)))
True
"""


def _transform(name: str, model: Callable[Concatenate[Any, P], DistTensor]) -> Callable[P, DistTensor]:
    """A function of the standard, with the arguments that the model has after its name."""
    return of_tensors(name, written(name, _DOC.format(name=name), model, name, HINTS))


fft: Final = _transform("fft", _single)
ifft: Final = _transform("ifft", _single)
rfft: Final = _transform("rfft", _single)
irfft: Final = _transform("irfft", _single)
hfft: Final = _transform("hfft", _single)
ihfft: Final = _transform("ihfft", _single)
fftn: Final = _transform("fftn", _several)
ifftn: Final = _transform("ifftn", _several)
rfftn: Final = _transform("rfftn", _several)
irfftn: Final = _transform("irfftn", _several)
fftshift: Final = _transform("fftshift", _shift)
ifftshift: Final = _transform("ifftshift", _shift)


@taking(Where)
def fftfreq(n: int, /, *, d: float = 1.0, dtype: npt.DTypeLike | None = None, **where: Unpack[Where]) -> DistTensor:
    """The frequencies of `fft` along an axis of n points at distance d, as a tensor.

    Parameters
    ----------
    n : int
        The number of points.
    d : float, default 1.0
        Their distance.
    dtype : DTypeLike, optional
        The dtype; float64 if None.
    device : str, optional
        "cpu", the only device, or None.
    layout : Layout | str, optional
        A layout; if None, that of `rote.config`, by default blocks of mode 0.
    grid : Grid | Sequence[int] | int, optional
        A grid of as many ranks; if None, the most balanced one that the layout allows.
    comm : object, optional
        An mpi4py or Rote communicator; if None, the ranks of `rote.run`, MPI's world, or this process alone.

    Raises
    ------
    LayoutError
        There are no points, or their distance is 0.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.fft.fftfreq(4, d=0.5).to_global()
    array([ 0. ,  0.5, -1. , -0.5])
    """
    return _frequencies(n, n, d, dtype, where)


@taking(Where)
def rfftfreq(n: int, /, *, d: float = 1.0, dtype: npt.DTypeLike | None = None, **where: Unpack[Where]) -> DistTensor:
    """The frequencies of `rfft` along an axis of n points at distance d, as a tensor.

    Parameters
    ----------
    n : int
        The number of points.
    d : float, default 1.0
        Their distance.
    dtype : DTypeLike, optional
        The dtype; float64 if None.
    device : str, optional
        "cpu", the only device, or None.
    layout : Layout | str, optional
        A layout; if None, that of `rote.config`, by default blocks of mode 0.
    grid : Grid | Sequence[int] | int, optional
        A grid of as many ranks; if None, the most balanced one that the layout allows.
    comm : object, optional
        An mpi4py or Rote communicator; if None, the ranks of `rote.run`, MPI's world, or this process alone.

    Raises
    ------
    LayoutError
        There are no points, or their distance is 0.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.fft.rfftfreq(4).to_global()
    array([0.  , 0.25, 0.5 ])
    """
    return _frequencies(n, n // 2 + 1, d, dtype, where)


def _frequencies(n: int, count: int, d: float, dtype: npt.DTypeLike | None, where: Where) -> DistTensor:
    """The first `count` frequencies of n points; of all n, the upper half are negative."""
    if not isinstance(d, Real):
        raise LayoutError(f"the distance d of points is a number, not {d!r}")
    if not tensor_shape(n)[0] or not d:
        raise LayoutError(f"frequencies of {n} points at distance {d}: both are to be other than 0")
    harmonics = arange(count, **where)
    index = harmonics.local
    if count == n:
        index = np.where(index < (n + 1) // 2, index, index - n)
    values = index / (n * d)
    return harmonics._with(values.astype("f8" if dtype is None else dtype))

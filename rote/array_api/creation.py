"""New tensors of the array API standard, and the dtypes and devices that they may have.

Each rank makes its own block, and nothing moves.

Beside the standard's arguments, all take `layout=`, `grid=` and `comm=`, as the constructors of `DistTensor` do; if
`layout` is None, `rote.config(layout=…)` decides. All are collective, as those constructors are.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, Unpack

import numpy as np
import numpy.typing as npt

from ..compiler.step import as_dtype
from ..errors import LayoutError
from ..functions.creation import Where, check_device, check_value, placed, taking
from ..functions.facts import isdtype
from ..functions.moves import default_layout
from ..functions.rules import follows
from ..grammar.nodes import MAX_MODES
from ..layout.distribution import Distribution
from ..layout.grid import integer, tensor_shape
from ..runtime.arrays import as_array
from ..runtime.comm.protocol import Comm
from ..runtime.placement import filled, new_block
from ..tensor.tensor import DistTensor

__all__ = ["DTYPES", "NamespaceInfo", "arange", "asarray", "empty", "eye", "from_dlpack", "full", "linspace", "ones"]
__all__ += ["zeros"]

F = TypeVar("F", bound=Callable[..., Any])
Shape = Iterable[int] | int


def _creates(function: F) -> F:
    """Enter a function into the table of rules; its signature shows the arguments of `Where`."""
    return follows("created")(taking(Where)(function))


def _creates_of_numbers(function: F) -> F:
    """Enter a function that takes tensors of order 0 as numbers."""
    return follows("created")(taking(Where, numbers=True)(function))


@_creates
def asarray(
    obj: Any, /, *, dtype: npt.DTypeLike | None = None, copy: bool | None = None, **where: Unpack[Where]
) -> DistTensor:
    """A tensor from a tensor, or from an array, number or nested list that every rank has whole.

    Parameters
    ----------
    obj : DistTensor | array_like
        A tensor, array or list; a tensor is returned itself, unless dtype or layout change or `copy` is true. Tensors
        of order 0 in a list count as numbers.
    dtype : DTypeLike, optional
        The dtype of the result; that of `obj` if None.
    copy : bool, optional
        False refuses anything that needs a copy: all but a tensor that stays as it is.
    device : str, optional
        "cpu" or None.
    layout : Layout | str, optional
        A layout; if None, that of `rote.config`, by default blocks of mode 0.
    grid : Grid | Sequence[int] | int, optional
        A grid of as many ranks; if None, the most balanced one that the layout allows.
    comm : object, optional
        An mpi4py or Rote communicator; if None, the ranks of `rote.run`, MPI's world, or this process alone.

    Raises
    ------
    ValueError
        `copy` is False, and a copy is needed.
    LayoutError
        The layout does not fit, or the device is not "cpu".

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.asarray([1, 2, 3]).to_global()
    array([1, 2, 3])
    """
    check_device(where.get("device"))
    layout, grid = where.get("layout"), where.get("grid")
    if not isinstance(obj, DistTensor):
        if copy is False:
            raise ValueError("copy=False of what is no tensor: its blocks are always copies; write copy=None")
        array = as_array(obj, dtype)
        layout = default_layout(array.shape) if layout is None else layout
        return DistTensor.from_global(array, layout, where.get("comm"), grid)

    x = obj
    if dtype is not None and as_dtype(dtype) != x.dtype:
        x = x.astype(dtype)
    if layout is not None:
        x = x.redistribute(layout, grid=grid)
    if copy is False and x is not obj:
        raise ValueError("copy=False of a tensor that is to have another dtype or layout; write copy=None")
    return x.copy() if copy and x is obj else x


@_creates_of_numbers
def zeros(shape: Shape, *, dtype: npt.DTypeLike | None = None, **where: Unpack[Where]) -> DistTensor:
    """A tensor of zeros.

    Parameters
    ----------
    shape : Iterable[int] | int
        The shape of the tensor.
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

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.zeros((2, 3), layout="block[(),(0)]").to_global().sum()
    np.float64(0.0)
    """
    return full(shape, 0, dtype=_element(dtype), **where)


@_creates_of_numbers
def ones(shape: Shape, *, dtype: npt.DTypeLike | None = None, **where: Unpack[Where]) -> DistTensor:
    """A tensor of ones.

    Parameters
    ----------
    shape : Iterable[int] | int
        The shape of the tensor.
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

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.ones(3).to_global()
    array([1., 1., 1.])
    """
    return full(shape, 1, dtype=_element(dtype), **where)


@_creates_of_numbers
def empty(shape: Shape, *, dtype: npt.DTypeLike | None = None, **where: Unpack[Where]) -> DistTensor:
    """A tensor with uninitialized elements.

    Parameters
    ----------
    shape : Iterable[int] | int
        The shape of the tensor.
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

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.empty((2, 3), dtype=xp.int8).shape
    (2, 3)
    """
    element = _element(dtype)
    dist, ranks = _placed(shape, **where)
    return DistTensor(new_block(dist, ranks.rank, element), dist, ranks)


@_creates_of_numbers
def full(
    shape: Shape, fill_value: complex, *, dtype: npt.DTypeLike | None = None, **where: Unpack[Where]
) -> DistTensor:
    """A tensor of one value; its dtype is that of the value if none is given.

    Parameters
    ----------
    shape : Iterable[int] | int
        The shape of the tensor.
    fill_value : complex
        The value.
    dtype : DTypeLike, optional
        The dtype; that of the value if None.
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
        There are several values.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.full(2, True).to_global()
    array([ True,  True])
    """
    check_value("full", fill_value)
    dist, ranks = _placed(shape, **where)
    element = _element(dtype, as_array(fill_value).dtype)
    return DistTensor(filled(dist, ranks.rank, fill_value, element), dist, ranks)


@_creates_of_numbers
def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: npt.DTypeLike | None = None,
    **where: Unpack[Where],
) -> DistTensor:
    """Evenly spaced numbers in [start, stop), or in [0, start) if no stop is given, as in `numpy.arange`.

    Parameters
    ----------
    start : float
        The first number; if there is no `stop`, the end, and 0 is first.
    stop : float, optional
        The end, which is not among them.
    step : float, default 1
        The distance of neighbours.
    dtype : DTypeLike, optional
        The dtype; if None, it follows from the numbers.
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
    ValueError
        The step is 0, or the numbers have no end.
    OverflowError
        The first or the second number does not fit into an integer dtype.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.arange(1, 2, 0.25).to_global()
    array([1.  , 1.25, 1.5 , 1.75])
    """
    first, last = (0, start) if stop is None else (start, stop)
    if not step:
        raise ValueError("arange of step 0; give another one")
    length = (last - first) / step
    if not length < 2**63:  # NaN and infinity, too
        raise ValueError(
            f"arange from {first} to {last} by {step} has {length:g} numbers, and a tensor fewer than 2**63\n"
            "write finite ends and a finite step, a longer one for fewer numbers"
        )

    count = max(math.ceil(length), 0)
    element = _element(dtype, np.asarray([first, last, step]).dtype)
    if not length and first != last and math.copysign(1, length) > 0:  # too small for a float: NumPy takes one number
        count, step = 1, 0
    if element.kind in "iu":
        for number in (first, first + step)[:count]:
            if not np.iinfo(element).min <= int(number) <= np.iinfo(element).max:
                raise OverflowError(f"arange has {number}, which {element} has not\ngive another dtype, as dtype='i8'")

    def numbers(index: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        begin, second = (np.asarray(value).astype(element) for value in (first, first + step))
        result: npt.NDArray[Any] = begin + index.astype(element) * (second - begin)
        return result

    return _computed(numbers, (count,), element, where)


@_creates_of_numbers
def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: npt.DTypeLike | None = None,
    endpoint: bool = True,
    **where: Unpack[Where],
) -> DistTensor:
    """Evenly spaced numbers from start to stop, which `endpoint` includes or excludes, as in `numpy.linspace`.

    Parameters
    ----------
    start, stop : complex
        The first number, and the end.
    num : int
        How many numbers there are.
    dtype : DTypeLike, optional
        The dtype; if None, it follows from the numbers.
    endpoint : bool, default True
        Whether `stop` is the last of them.
    device : str, optional
        "cpu", the only device, or None.
    layout : Layout | str, optional
        A layout; if None, that of `rote.config`, by default blocks of mode 0.
    grid : Grid | Sequence[int] | int, optional
        A grid of as many ranks; if None, the most balanced one that the layout allows.
    comm : object, optional
        An mpi4py or Rote communicator; if None, the ranks of `rote.run`, MPI's world, or this process alone.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.linspace(0, 1, 3).to_global()
    array([0. , 0.5, 1. ])
    """
    (count,) = tensor_shape(num)
    computed = np.result_type(start, stop, 1.0)
    element = _element(dtype, computed)
    parts = count - 1 if endpoint else count
    first, span = computed.type(start), computed.type(stop) - computed.type(start)
    step = span / builtins.max(parts, 1)

    def numbers(index: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        places = index.astype(computed.type(0).real.dtype)
        values = (places * step if step else places / builtins.max(parts, 1) * span) + first
        if endpoint and count > 1:
            values[index == count - 1] = stop
        result: npt.NDArray[Any] = np.floor(values) if element.kind in "iu" else values
        return result

    return _computed(numbers, (count,), element, where)


@_creates_of_numbers
def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: npt.DTypeLike | None = None, **where: Unpack[Where]
) -> DistTensor:
    """A matrix of ones on the k-th diagonal, counted to the right from the main one, and zeros elsewhere.

    Parameters
    ----------
    n_rows : int
        The number of rows.
    n_cols : int, optional
        The number of columns; that of rows if None.
    k : int, default 0
        The diagonal: 0 is the main one, 1 the one above it.
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

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.eye(2, 3, k=1).to_global().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    shape = (n_rows, n_rows if n_cols is None else n_cols)
    diagonal = integer(k, "the number of a diagonal")
    return _computed(lambda i, j: j - i == diagonal, shape, _element(dtype), where)


@_creates
def from_dlpack(x: Any, /, *, copy: bool | None = None, **where: Unpack[Where]) -> DistTensor:
    """A tensor from an array of any library that every rank has whole; a tensor is returned as it is.

    Parameters
    ----------
    x : DistTensor | array_like
        An array with `__dlpack__`, the same on all ranks.
    copy : bool, optional
        Whether to copy; if None, only where it must.
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
    TypeError
        `x` has no `__dlpack__`, as numbers and lists have none.

    Examples
    --------
    >>> import numpy as np, rote.array_api as xp
    >>> xp.from_dlpack(np.arange(3)).to_global()
    array([0, 1, 2])
    """
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack takes an array that has __dlpack__, not {type(x).__name__}\nwrite asarray of it")
    return asarray(x, copy=copy, **where)


def _element(dtype: npt.DTypeLike | None, usual: npt.DTypeLike = "f8") -> np.dtype[Any]:
    """The given dtype, or the usual one if it is None."""
    return as_dtype(usual if dtype is None else dtype)


def _placed(shape: Shape, device: str | None = None, **where: Any) -> tuple[Distribution, Comm]:
    """The distribution of a new tensor, and its ranks."""
    check_device(device)
    return placed(shape, **where)


def _computed(function: Callable[..., Any], shape: Shape, dtype: np.dtype[Any], where: Where) -> DistTensor:
    """A tensor of which each rank computes its block from its global indices."""
    check_device(where.get("device"))
    extents, layout = tensor_shape(shape), where.get("layout")
    layout = default_layout(extents) if layout is None else layout
    return DistTensor.from_function(function, extents, layout, where.get("comm"), where.get("grid"), dtype)


_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATING = ("float32", "float64", "complex64", "complex128")
DTYPES: dict[str, np.dtype[Any]] = {name: np.dtype(name) for name in ("bool", *_INTEGERS, *_FLOATING)}
"""The dtypes of the standard, by name."""

_DEFAULTS = {"real floating": "float64", "complex floating": "complex128", "integral": "int64", "indexing": "int64"}


class NamespaceInfo:
    """The answers of `rote.array_api.__array_namespace_info__()`.

    >>> NamespaceInfo().devices(), NamespaceInfo().default_dtypes()["integral"]
    (['cpu'], dtype('int64'))
    """

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """Whether masks may index, whether shapes may depend on data, and the most modes of a tensor.

        >>> NamespaceInfo().capabilities()["boolean indexing"]
        True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MAX_MODES}

    def default_device(self) -> str:
        """The device of new tensors.

        >>> NamespaceInfo().default_device()
        'cpu'
        """
        return "cpu"

    def devices(self) -> list[str]:
        """All devices.

        >>> NamespaceInfo().devices()
        ['cpu']
        """
        return ["cpu"]

    def default_dtypes(self, *, device: str | None = None) -> dict[str, np.dtype[Any]]:
        """The default dtypes of new tensors, by kind.

        Raises:
            LayoutError: there is no such device.

        >>> NamespaceInfo().default_dtypes()["real floating"]
        dtype('float64')
        """
        check_device(device)
        return {kind: DTYPES[name] for kind, name in _DEFAULTS.items()}

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype[Any]]:
        """The dtypes of a kind, or of several kinds; all if it is None.

        Raises:
            LayoutError: there is no such device, or no such kind.

        >>> [*NamespaceInfo().dtypes(kind="complex floating")]
        ['complex64', 'complex128']
        """
        check_device(device)
        try:
            return {name: dtype for name, dtype in DTYPES.items() if kind is None or isdtype(dtype, kind)}
        except (TypeError, ValueError) as error:
            raise LayoutError(f"{kind!r} is no kind of dtypes; write 'bool', 'integral', 'numeric', …") from error

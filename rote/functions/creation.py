"""New tensors: where they are placed, and those in the layout of others: filled ones, copies, triangles, meshes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypedDict, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ..compiler.step import as_dtype
from ..errors import LayoutError
from ..layout.distribution import Distribution, distribute
from ..layout.grid import integer, tensor_shape
from ..layout.layout import Layout, as_layout
from ..runtime.arrays import as_array
from ..runtime.comm.protocol import Comm
from ..runtime.comm.resolve import as_comm
from ..runtime.placement import GridLike, filled, place
from .alignment import as_tensor, common, plain
from .distributed import Distributed, T, comm_of, is_foreign
from .elementwise import elementwise
from .indexing import part_at
from .moves import default_layout, moved
from .reshaping import reshape
from .rules import Function, OfOne, follows, numpy_arguments, of_one, written

__all__ = ["LayoutLike", "Ranks", "Where", "astype", "check_device", "check_value", "copy", "empty_like", "full_like"]
__all__ += ["meshgrid", "ones_like", "placed", "taking", "tril", "triu", "zeros_like"]

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
LayoutLike = Layout | str | None


class Ranks(TypedDict, total=False):
    """The arguments of functions that make tensors, which say over which ranks these are."""

    grid: GridLike
    comm: object | None


class Where(TypedDict, total=False):
    """The arguments of the array API's functions that make tensors, which say where these are."""

    device: str | None
    layout: LayoutLike
    grid: GridLike
    comm: object | None


def taking(options: type, hints: Mapping[str, str] = MappingProxyType({}), numbers: bool = False) -> Callable[[F], F]:
    """Let a function show the arguments of a TypedDict, which it takes as `**options`, and refuse others by its name.

    Arrays of other libraries come to the function as NumPy's.

    Args:
        hints: texts that refuse some arguments, with {0} for the name of the function and {1} for the argument.
        numbers: whether tensors of order 0 come to the function as numbers.

    >>> @taking(Ranks)
    ... def order(shape: tuple[int, ...], **ranks: Any) -> int:
    ...     return len(shape)
    >>> order((2, 3), comm=None), [*signature(order).parameters]
    (2, ['shape', 'grid', 'comm'])
    """

    def decorate(function: F) -> F:
        declared = signature(function)
        *parameters, _ = declared.parameters.values()  # all but `**options`
        for name, kind in options.__annotations__.items():
            parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind.__forward_arg__))
        names = {parameter.name for parameter in parameters}
        positional = [parameter.name for parameter in parameters if parameter.kind is not Parameter.KEYWORD_ONLY]

        @wraps(function)
        def called(*args: Any, **named: Any) -> Any:
            for name, value in named.items():
                if name not in names:
                    usual = f"{function.__qualname__}() got an unexpected keyword argument {name!r}"
                    raise TypeError(hints[name].format(function.__name__, value) if name in hints else usual)

            if True in map(is_foreign, map(type, (*args, *named.values()))):
                args, named = numpy_arguments(args, named)
            if numbers:
                args, named = tuple(map(_as_number, args)), {name: _as_number(value) for name, value in named.items()}
            try:
                return function(*args, **named)
            except TypeError as error:
                if len(args) > len(positional):
                    raise TypeError(f"{error}\nwrite by name what comes after {positional[-1]}: layout=…") from None
                raise

        called.__signature__ = declared.replace(parameters=parameters)  # type: ignore[attr-defined]
        return cast(F, called)

    return decorate


def _as_number(value: Any) -> Any:
    """A tensor of order 0 as a scalar; another value as it is. Collective for a tensor that not every rank has."""
    if isinstance(value, Distributed) and not value.distribution.shape:
        return np.asarray(value)[()]
    return value


def placed(
    shape: Iterable[int] | int, layout: LayoutLike = None, grid: GridLike = None, comm: object | None = None
) -> tuple[Distribution, Comm]:
    """The distribution of a new tensor, by default in the layout of `rote.config`, and its ranks."""
    extents, ranks = tensor_shape(shape), as_comm(comm)
    return place(extents, default_layout(extents) if layout is None else layout, ranks, grid), ranks


def check_device(device: object) -> None:
    """Refuse any device but "cpu"."""
    if device not in (None, "cpu"):
        raise LayoutError(f"{device!r} is no device; blocks are in the memory of the host: write 'cpu' or None")


def check_value(name: str, value: Any) -> None:
    """Refuse several values, or one with a mask, where a tensor is filled with one."""
    if np.ndim(as_array(value)):
        raise LayoutError(f"{name} takes one value; lay an array out with from_global")


@of_one
@follows("created", np.full_like)
def full_like(
    x: Distributed,
    /,
    fill_value: Any,
    dtype: npt.DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: str | None = None,
    layout: Layout | str | None = None,
) -> Any:
    """A tensor filled with one value, in the layout of `x` or in `layout`; blocks are in C order for any `order`.

    Parameters
    ----------
    x : DistTensor
        The tensor whose shape and layout are taken.
    fill_value : scalar
        The value.
    dtype : DTypeLike, optional
        The dtype; that of `x` if None.
    order : str, default 'K'
        Ignored; blocks are in C order.
    subok : bool, default True
        Ignored.
    shape : tuple[int, ...], optional
        None, or the shape of `x`.
    device : str, optional
        "cpu", the only device, or None.
    layout : Layout | str, optional
        A layout; that of `x` if None.

    Raises
    ------
    LayoutError
        Another shape, another device, or more than one value is asked for.
    TypeError
        The value has a mask.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.full_like(xp.ones(3), 7).to_global()
    array([7., 7., 7.])
    """
    dist = x.distribution
    if shape is not None and tensor_shape(shape) != dist.shape:
        raise LayoutError(
            f"a tensor like another has its shape, {dist.shape}, not {shape}\n"
            "write DistTensor.zeros(shape, layout), or empty, from_function or from_global"
        )
    check_device(device)
    check_value("full_like", fill_value)

    if layout is not None:
        dist = distribute(as_layout(layout), dist.shape, dist.grid)
    element = x.local.dtype if dtype is None else as_dtype(dtype)
    lay = dist.layout
    if lay.op in ("max", "min") and element.kind == "c":  # complex numbers have no identity of max and min
        dist = distribute(Layout(lay.modes, lay.view, rooted=lay.rooted), dist.shape, dist.grid)
    return x._on(filled(dist, x.comm.rank, fill_value, element), dist)


_DOC = """A tensor of {values}, in the layout of another; arguments and errors as for `full_like`.

Examples
--------
>>> import rote.array_api as xp
>>> xp.{name}(xp.full(2, 7.0)).to_global()
array([{value}., {value}.])
"""


def _filled_like(
    value: int,
    x: Distributed,
    /,
    dtype: npt.DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: str | None = None,
    layout: Layout | str | None = None,
) -> Any:
    return full_like(x, value, dtype, order, subok, shape, device=device, layout=layout)


def _like(model: Callable[Concatenate[Any, Any, P], Any], answered: Function, value: int, values: str) -> OfOne[P]:
    """The function of the model that fills a tensor with this value, and answers for a function of NumPy."""
    name = answered.__name__
    doc = _DOC.format(name=name, value=value, values=values)
    return of_one(follows("created", answered)(written(name, doc, model, value)))


zeros_like: Final = _like(_filled_like, np.zeros_like, 0, "zeros")
ones_like: Final = _like(_filled_like, np.ones_like, 1, "ones")
empty_like: Final = _like(_filled_like, np.empty_like, 0, "zeros, since replicas must be equal")


@of_one
@follows("elementwise", np.copy)
def copy(x: Distributed, order: str = "K", subok: bool = False) -> Any:
    """A copy of the tensor, with its own blocks."""
    return x.copy()


@follows("elementwise", np.astype)
def astype(x: T, dtype: npt.DTypeLike, /, *, copy: bool = True, device: str | None = None) -> T:
    """The tensor in another dtype; itself if it has that dtype and `copy` is false.

    An array of NumPy stays one, for xarray converts conditions on coordinates by this function of the data's namespace:
    all other functions of tensors refuse a call that has none.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    dtype : DTypeLike
        The new dtype.
    copy : bool, default True
        Whether a tensor of that dtype is copied, too.
    device : str, optional
        "cpu", the only device, or None.

    Raises
    ------
    PlanError
        Rote does not move elements of this dtype.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.astype(xp.asarray([1.7, 2.2]), xp.int32).to_global()
    array([1, 2], dtype=int32)
    """
    if isinstance(x, np.ndarray):
        values: Any = np.astype(x, dtype, copy=copy, device=device)
        return values
    element = as_dtype(dtype)
    if not copy and x.local.dtype == element:
        return x
    result: T = elementwise("astype", lambda block, dtype: block.astype(dtype), (x,), {"dtype": element})
    return result


@of_one
@follows("elementwise", np.tril)
def tril(x: Distributed, /, k: int = 0) -> Any:
    """The matrices with zeros above the k-th diagonal.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    k : int, default 0
        The diagonal: 0 is the main one, 1 the one above it.

    Raises
    ------
    LayoutError
        The tensor is of order 1 or less.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.tril(xp.ones((2, 2))).to_global()
    array([[1., 0.],
           [1., 1.]])
    """
    return _triangle("tril", x, k, np.less_equal)


@of_one
@follows("elementwise", np.triu)
def triu(x: Distributed, /, k: int = 0) -> Any:
    """The matrices with zeros below the k-th diagonal.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    k : int, default 0
        The diagonal: 0 is the main one, 1 the one above it.

    Raises
    ------
    LayoutError
        The tensor is of order 1 or less.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.triu(xp.ones((2, 2))).to_global()
    array([[1., 1.],
           [0., 1.]])
    """
    return _triangle("triu", x, k, np.greater_equal)


def _triangle(name: str, x: Distributed, k: int, stays: np.ufunc) -> Any:
    diagonal = integer(k, "the number of a diagonal")
    if len(x.distribution.shape) < 2:
        raise LayoutError(f"{name} is of matrices, tensors of order 2 or more, not of shape {x.distribution.shape}")
    if x.distribution.partial:
        x = plain(x, name, ((name, x.distribution, x.local.dtype), (name, (x, k), {})))
    *_, row, column = x.distribution.tensor_indices(x.comm.rank)
    return x._with(np.where(stays(column - row, diagonal), x.local, x.local.dtype.type(0)))


@follows("elementwise")
def meshgrid(*arrays: Distributed, indexing: Literal["xy", "ij"] = "xy") -> list[Any]:
    """One tensor per vector, each constant along all modes but its own.

    Parameters
    ----------
    *arrays : DistTensor
        vectors.
    indexing : {'xy', 'ij'}, default 'xy'
        "ij" for modes in the order of the vectors, "xy" for the first two exchanged.

    Raises
    ------
    LayoutError
        An argument is not a vector, or `indexing` is neither of these.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> [x.to_global().tolist() for x in xp.meshgrid(xp.asarray([1, 2]), xp.asarray([3, 4]))]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    if indexing not in ("xy", "ij"):
        raise LayoutError(f"indexing={indexing!r} is neither 'xy' nor 'ij'")
    comm_of("meshgrid", arrays)
    order = len(arrays)
    modes = [1, 0, *range(2, order)] if indexing == "xy" and order > 1 else list(range(order))
    key = "meshgrid", *[(x.distribution, x.local.dtype) for x in arrays]
    call = key, ("meshgrid", arrays, {"indexing": indexing})
    standing = [_standing(plain(x, "meshgrid", call), mode, order) for x, mode in zip(arrays, modes, strict=True)]
    if not standing:
        return []

    shape = np.broadcast_shapes(*[x.distribution.shape for x in standing])
    target, ends = common(tuple([(x.distribution, x.local.dtype) for x in standing]), shape)
    extents = target.local_shape(standing[0].comm.rank)
    results = []
    for n, (x, end) in enumerate(zip(standing, ends, strict=True)):
        if end is not None:
            vector = Layout((end.layout.modes[modes[n]],))
            hint = f"move operand {n + 1} by x.redistribute({str(vector)!r}) first"
            x = moved(x, end.layout, "meshgrid", end.grid, hint, call=call)
        results.append(x._on(np.broadcast_to(x.local, extents).copy(), target))
    return results


@follows("elementwise", np.meshgrid, name="numpy.meshgrid")
def _meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: Literal["xy", "ij"] = "xy"
) -> tuple[Any, ...]:
    """Make meshes as `meshgrid` does; NumPy has a tuple, takes arrays and numbers, too, and makes sparse ones."""
    comm_of("meshgrid", xi)
    vectors = [reshape(as_tensor(x, *xi), -1) for x in xi]
    if not sparse:
        return tuple(meshgrid(*vectors, indexing=indexing))

    order = len(vectors)
    modes = [1, 0, *range(2, order)] if indexing == "xy" and order > 1 else list(range(order))
    return tuple([_standing(x, mode, order).copy() for x, mode in zip(vectors, modes, strict=True)])


def _standing(x: Distributed, mode: int, order: int) -> Distributed:
    """A vector as a tensor along one of its modes, of extent 1 along all others; the blocks share memory."""
    if len(x.distribution.shape) != 1:
        raise LayoutError(f"meshgrid is of vectors, tensors of order 1, not of shape {x.distribution.shape}")
    return part_at(x, tuple([slice(None) if m == mode else None for m in range(order)]), "meshgrid")

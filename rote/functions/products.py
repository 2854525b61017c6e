"""Products of tensors, by contraction: `numpy.einsum`, and those that are an einsum under another name.

Each names the modes of its operands by labels, equal ones where modes are multiplied together, and calls `contract`.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, overload

import numpy as np

from ..caches import memoized
from ..errors import LayoutError
from ..layout.grid import Grid, grid_shape
from ..layout.layout import Layout
from ..runtime.arrays import as_array
from .alignment import as_plain_operands, into
from .contraction.operands import Term, common_operands, stackwise
from .contraction.plan import Contraction
from .contraction.run import contract, planned
from .contraction.subscripts import Subscripts, as_text, read_path, read_subscripts
from .distributed import Distributed, KeyAxis, T, linked, shape_of
from .exact import exact_contract
from .rules import follows, numpy_arguments, of_two

__all__ = ["conjugate", "cross", "dot", "einsum", "einsum_path", "inner", "matmul", "matvec", "multi_dot"]
__all__ += ["outer", "stack_labels", "tensordot", "vdot", "vecdot", "vecmat"]


_STACK = 1000  # from here, labels of stack modes, which operands share; the last mode comes first
_OTHER = 2000  # from here, labels of modes that only one operand has


def _of_newer_numpy(name: str) -> list[Any]:
    """The function of NumPy with a name; none if an older one is installed."""
    return [vars(np)[name]] if name in vars(np) else []


@overload
def einsum(
    subscripts: str,
    x: T,
    /,
    *operands: Any,
    out: Distributed | None = None,
    optimize: Any = True,
    layout: Layout | str | None = None,
    grid: Any = None,
    max_bytes: int | None = None,
    plan: Contraction | None = None,
) -> T: ...
@overload
def einsum(
    subscripts: Any,
    *operands: Any,
    out: Distributed | None = None,
    optimize: Any = True,
    layout: Layout | str | None = None,
    grid: Any = None,
    max_bytes: int | None = None,
    plan: Contraction | None = None,
) -> Any: ...
@follows("contracted", np.einsum, views=True)
def einsum(
    subscripts: Any,
    *operands: Any,
    out: Distributed | None = None,
    optimize: Any = True,
    layout: Layout | str | None = None,
    grid: Any = None,
    max_bytes: int | None = None,
    plan: Contraction | None = None,
) -> Any:
    """The sum of products that the subscripts describe, for tensors in any layouts, as `numpy.einsum`. Collective.

    The contraction is planned as `rote.compile_einsum` plans it, and the plan is kept: operands are moved until modes
    of one letter are split alike, each rank multiplies its blocks, and a reduction adds up the contributions.

    As in NumPy, a tensor with its modes in another order, "ij->ji", is a view: what is written into it is in the
    operand. A diagonal, "ii->i", is read-only.

    Parameters
    ----------
    subscripts : str
        Such as "ij,jk->ik" or "...ii->..."; or operands, each followed by a list of labels, integers from 0 to 51.
    *operands : DistTensor | array_like
        Tensors, and arrays that are the same on all ranks.
    out : DistTensor, optional
        A tensor of the result's shape and dtype to write into.
    optimize : bool | str | Sequence, default True
        A path, such as ["einsum_path", (0, 1), (0, 1)], says which operands are multiplied. All other values that NumPy
        takes let the plan choose.
    layout : Layout | str, optional
        The layout of the result; if None, the splits that its letters have in the operands; "cheapest" for the layout
        that costs least.
    grid : Grid | Sequence[int] | int, optional
        The grid on which the ranks multiply, and `layout` is read; if None, that of the largest operand.
    max_bytes : int, optional
        The most bytes that a rank may hold at any time, operands and result included.
    plan : Contraction, optional
        The contraction to run, for operands that are distributed as it says.

    Raises
    ------
    NotationError
        The subscripts are invalid.
    LayoutError
        Subscripts, plan or path and operands do not fit each other; a move is refused by `rote.config`.
    PlanError
        Every contraction needs more than `max_bytes`.

    See Also
    --------
    rote.compile_einsum : Plan a contraction before it runs.

    Examples
    --------
    >>> import rote
    >>> x = rote.DistTensor.from_global([[1.0, 2.0], [3.0, 4.0]], "block[(0),()]")
    >>> rote.einsum("ij,ij->i", x, x).to_global()
    array([ 5., 25.])
    """
    subscripts, arrays, labels = _read(subscripts, operands)
    on = None if grid is None else Grid(grid_shape(grid))
    if plan is not None:
        if not isinstance(plan, Contraction):
            raise LayoutError(f"plan= takes a contraction of rote.compile_einsum, not {plan!r}")
        for name, value in (("layout", layout), ("grid", grid), ("max_bytes", max_bytes)):
            if value is not None:
                raise LayoutError(f"einsum takes plan= or {name}=\ngive {name}= to rote.compile_einsum, which plans it")
    path = None if optimize is True else read_path(optimize, len(arrays))

    is_part = len(arrays) == 1 and out is None and {*labels.terms[0]} == {*labels.result}  # in NumPy a view
    if is_part and layout is None and grid is None and max_bytes is None and plan is None:
        lay, modes = arrays[0].distribution.layout, _order_of_modes(labels)
        if len(modes) == lay.order and lay.view is None and not lay.partial and not lay.rooted:
            from .rearranging import reordered

            return reordered(arrays[0], modes, "einsum")

    result = contract(arrays, labels.terms, labels.result, "einsum", layout, on, max_bytes, path, plan)
    return _part(result, arrays[0], subscripts, labels) if is_part else into(out, result, "einsum")


def _order_of_modes(labels: Subscripts) -> list[int]:
    """Per letter of the result, the first mode of the only operand that has it."""
    return [labels.terms[0].index(letter) for letter in labels.result]


def _part(result: Any, x: Distributed, subscripts: str, labels: Subscripts) -> Any:
    """The result of an einsum of one tensor without sums, in memory of its own, as a part of the tensor."""
    shape, modes = x.distribution.shape, _order_of_modes(labels)
    if len(modes) < len(shape):  # a diagonal
        return linked(result, x, None, "copy", fixed=lambda array: np.einsum(subscripts, array))

    axes = [KeyAxis((mode,), range(shape[mode]), (shape[mode],)) for mode in modes]
    return linked(result, x, axes, "copy")


@follows("fact", np.einsum_path)
def einsum_path(subscripts: Any, *operands: Any, optimize: Any = True) -> tuple[list[Any], str]:
    """`numpy.einsum_path`: the pairs in which `einsum` multiplies operands, and the plan of the contraction as text.

    Args:
        subscripts, operands, optimize: see `einsum`.

    Raises:
        NotationError, LayoutError: as for `einsum`.

    >>> import rote
    >>> x = rote.DistTensor.zeros((4, 4), "block[(0),()]")
    >>> v = rote.DistTensor.zeros(4, "block[(0)]")
    >>> einsum_path("ij,jk,k->i", x, x, v)[0]
    ['einsum_path', (1, 2), (0, 1)]
    """
    operands, _ = numpy_arguments(operands, {})
    _, arrays, labels = _read(subscripts, operands)
    path = read_path(optimize, len(arrays))
    placed = [(x.distribution, x.local.dtype) for x in common_operands(arrays)]
    plan = planned(labels, placed, "einsum_path", path=path)
    return ["einsum_path", *plan.path], plan.explain()


@of_two
@follows("contracted", np.matmul, np.linalg.matmul)
def matmul(x1: Any, x2: Any, /, out: Any = None, *, layout: Layout | str | None = None) -> Any:
    """The product of matrices, or of stacks of them: `x1 @ x2`. Collective.

    Parameters
    ----------
    x1, x2 : DistTensor | array_like
        Of shapes (…, m, k) and (…, k, n), whose leading modes broadcast; of shape (k,), `x1` is a row and `x2` a
        column, and the result has no mode for it.
    out : DistTensor, optional
        A tensor of the result's shape and dtype to write into.
    layout : Layout | str, optional
        The layout of the result.

    Raises
    ------
    LayoutError
        The shapes do not fit each other.

    Examples
    --------
    >>> import rote
    >>> x = rote.DistTensor.from_global([[1.0, 2.0], [3.0, 4.0]], "block[(0),()]")
    >>> (x @ x).to_global()
    array([[ 7., 10.],
           [15., 22.]])
    """
    shapes = shape_of(x1), shape_of(x2)
    orders = len(shapes[0]), len(shapes[1])
    if not all(orders):
        raise LayoutError("matmul takes no tensor of order 0; write x1 * x2")
    if shapes[0][-1] != shapes[1][-min(orders[1], 2)]:
        _check_summed("matmul", (x1, -1), (x2, -min(orders[1], 2)))
    product = _matrix_product(*orders)
    return into(out, contract((x1, x2), product.terms, product.result, "matmul", layout), "matmul")


@memoized(64)
def _matrix_product(first: int, second: int) -> Subscripts:
    """The letters of matrices of some orders, or of stacks of them, and of their product.

    >>> print(_matrix_product(2, 2), _matrix_product(1, 2), _matrix_product(4, 3))
    ik,kj->ij k,kj->j yzik,zkj->yzij
    """
    rows, columns = "i" * (first > 1), "j" * (second > 1)
    return read_subscripts(f"...{rows}k,...k{columns}->...{rows}{columns}", (first, second))


@of_two
@follows("contracted", *_of_newer_numpy("matvec"))
def matvec(x1: Any, x2: Any, /, out: Any = None, *, layout: Layout | str | None = None) -> Any:
    """The products of matrices of shape (…, m, n) and vectors of shape (…, n); leading modes broadcast. Collective.

    Arguments and errors as for `matmul`.

    >>> import rote
    >>> x = rote.DistTensor.from_global([[1.0, 2.0], [3.0, 4.0]], "block[(0),()]")
    >>> matvec(x, [1.0, 1.0]).to_global()
    array([3., 7.])
    """
    return _with_vector("matvec", x1, x2, "...ij,...j->...i", (2, 1), (out, layout))


@of_two
@follows("contracted", *_of_newer_numpy("vecmat"))
def vecmat(x1: Any, x2: Any, /, out: Any = None, *, layout: Layout | str | None = None) -> Any:
    """The products of vectors of shape (…, m), conjugated, and matrices of shape (…, m, n). Collective.

    Arguments and errors as for `matmul`.

    >>> import rote
    >>> x = rote.DistTensor.from_global([[1.0, 2.0], [3.0, 4.0]], "block[(0),()]")
    >>> vecmat([1.0, 1.0], x).to_global()
    array([4., 6.])
    """
    return _with_vector("vecmat", conjugate(x1), x2, "...i,...ij->...j", (1, 2), (out, layout))


def _with_vector(
    name: str, x1: Any, x2: Any, subscripts: str, least: tuple[int, int], ends: tuple[Any, Layout | str | None]
) -> Any:
    """The products of matrices and vectors; `least` are the orders of one matrix and one vector."""
    orders = len(shape_of(x1)), len(shape_of(x2))
    if orders[0] < least[0] or orders[1] < least[1]:
        raise ValueError(
            f"{name} takes tensors of order {least[0]} and {least[1]} or more, not {orders[0]} and {orders[1]}"
        )
    _check_summed(name, (x1, -1), (x2, -least[1]))

    out, layout = ends
    product = read_subscripts(subscripts, orders)
    return into(out, contract((x1, x2), product.terms, product.result, name, layout), name)


@of_two
@follows("contracted", np.tensordot, np.linalg.tensordot)
def tensordot(x1: Any, x2: Any, /, axes: Any = 2, *, layout: Layout | str | None = None, exact: bool = False) -> Any:
    """The sum of products over modes of both tensors. Collective.

    Parameters
    ----------
    x1, x2 : DistTensor | array_like
        Tensors, or one of them an array.
    axes : int | tuple, default 2
        The number of last modes of `x1` and first modes of `x2` to sum over; or two lists of modes.
    layout : Layout | str, optional
        The layout of the result, whose modes are the others of `x1`, then those of `x2`.
    exact : bool, default False
        Round each true sum of products once, so that it has the same bits in any layout, on any number of ranks.

    Raises
    ------
    LayoutError
        There are no such modes, or their extents differ.
    TypeError
        `exact` is given for numbers wider than 64 bits.

    Examples
    --------
    >>> import rote, rote.array_api as xp
    >>> x = rote.DistTensor.from_global([1e200, 1.0, 3.0], "block[(0)]")
    >>> weights = [1e200, 2.0, -1.0], [0.0, 0.1, 0.1]
    >>> [float(xp.tensordot(x, y, 1, exact=True)) for y in weights]
    [inf, 0.4]
    """
    first, second = len(shape_of(x1)), len(shape_of(x2))
    if isinstance(axes, int | np.integer):
        summed = [[*range(first - int(axes), first)], [*range(int(axes))]]
        if not 0 <= axes <= min(first, second):
            raise LayoutError(f"tensordot over {axes} modes wants tensors of that order, not of {first} and {second}")
    else:
        lists = [np.atleast_1d(modes).tolist() for modes in axes] if np.iterable(axes) else []
        summed = [[_mode(axis, order) for axis in modes] for modes, order in zip(lists, (first, second), strict=False)]
        if len(lists) != 2 or len({*map(len, summed), *(len({*modes}) for modes in summed)}) > 1:
            raise LayoutError(f"tensordot takes two lists of as many modes, each once, not axes={axes!r}")
    for mode, other in zip(*summed, strict=True):
        _check_summed("tensordot", (x1, mode), (x2, other))

    # Modes of x1 are their own labels; those of x2 that are summed have the label of their partner.
    term = tuple(range(first))
    shared = dict(zip(summed[1], summed[0], strict=True))
    second_term = tuple([shared.get(mode, _OTHER + mode) for mode in range(second)])
    result = tuple([label for label in (*term, *second_term) if label not in shared.values()])
    return (exact_contract if exact else contract)((x1, x2), (term, second_term), result, "tensordot", layout)


@of_two
@follows("contracted", np.vecdot, np.linalg.vecdot)
def vecdot(
    x1: Any, x2: Any, /, *, axis: int = -1, out: Any = None, layout: Layout | str | None = None, exact: bool = False
) -> Any:
    """The products of vectors along a mode, the first one conjugated; other modes broadcast. Collective.

    Parameters
    ----------
    x1, x2 : DistTensor | array_like
        Tensors, or one of them an array.
    axis : int, default -1
        The mode along the vectors, of one extent in both.
    out : DistTensor, optional
        A tensor of the result's shape and dtype to write into.
    layout : Layout | str, optional
        As for `tensordot`.
    exact : bool, default False
        As for `tensordot`.

    Raises
    ------
    LayoutError
        The vectors differ in length, or there is no such mode.
    TypeError
        `exact` is given for numbers wider than 64 bits.

    Examples
    --------
    >>> import rote, rote.array_api as xp
    >>> x = rote.DistTensor.from_global([1e16, 1.0, 1.0], "block[(0)]")
    >>> float(xp.vecdot(x, [1.0, 1.0, 0.5], exact=True))
    1.0000000000000002e+16
    """
    first, second = len(shape_of(x1)), len(shape_of(x2))
    along = _mode(axis, first), _mode(axis, second)
    _check_summed("vecdot", (x1, along[0]), (x2, along[1]))
    a, b = _vectors(first, along[0]), _vectors(second, along[1])
    result = tuple([label for label in max(a, b, key=len) if label])
    product = (exact_contract if exact else contract)((conjugate(x1), x2), (a, b), result, "vecdot", layout)
    return into(out, product, "vecdot")


@of_two
@follows("contracted", np.dot)
def dot(a: Any, b: Any, out: Any = None, *, layout: Layout | str | None = None, exact: bool = False) -> Any:
    """The products summed over the last mode of `a` and the last but one of `b`, as `numpy.dot`. Collective.

    Other arguments and errors as for `vecdot`.

    Parameters
    ----------
    a : DistTensor | array_like
        The first operand.
    b : DistTensor | array_like
        The second operand; one of the two is a tensor.
    out : DistTensor, optional
        A tensor to write into.
    layout : Layout | str, optional
        The layout of the result.
    exact : bool, default False
        Whether sums are rounded once, so that the result has the same bits in any layout.

    Examples
    --------
    >>> from rote import DistTensor
    >>> x = DistTensor.from_global([1e16, 1.0, -1e16], "block[(0)]")
    >>> float(x.dot([0.1, 0.1, 0.1], exact=True))
    0.1
    """
    axes = ([-1], [-min(np.ndim(b), 2)]) if np.ndim(a) and np.ndim(b) else 0
    return into(out, tensordot(a, b, axes, layout=layout, exact=exact), "dot")


@of_two
@follows("contracted", np.inner)
def inner(a: Any, b: Any, /, *, layout: Layout | str | None = None) -> Any:
    """`numpy.inner`: the sum of products over the last modes; with an operand of order 0, the product. Collective."""
    if not (np.ndim(a) and np.ndim(b)):
        return tensordot(a, b, 0, layout=layout)
    return tensordot(a, b, ([-1], [-1]), layout=layout)


@follows("contracted", np.vdot)
def vdot(a: Any, b: Any, /, *, exact: bool = False) -> Any:
    """`numpy.vdot`: the sum of the products of all elements, those of `a` conjugated; `exact` as for `dot`. Collective.

    Raises:
        LayoutError: the shapes differ. `numpy.vdot` would flatten both in C order; ask for that by reshape.
    """
    if np.shape(a) != np.shape(b):
        raise LayoutError(f"vdot takes tensors of one shape, not {np.shape(a)} and {np.shape(b)}; reshape one of them")
    modes = [*range(np.ndim(a))]
    return tensordot(conjugate(a), b, (modes, modes), exact=exact)


@of_two
@follows("contracted", np.outer, np.linalg.outer)
def outer(x1: Any, x2: Any, /, *, layout: Layout | str | None = None) -> Any:
    """The products of all elements of a vector with all of another, of shape (m, n). Collective.

    Parameters
    ----------
    x1, x2 : DistTensor | array_like
        The vectors; one is a tensor.
    layout : Layout | str, optional
        The layout of the result.

    Raises
    ------
    LayoutError
        One of them is not a vector.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([3, 4])).to_global()
    array([[3, 4],
           [6, 8]])
    """
    if (np.ndim(x1), np.ndim(x2)) != (1, 1):
        orders = f"{np.ndim(x1)} and {np.ndim(x2)}"
        raise LayoutError(f"outer takes two vectors, not tensors of order {orders}\nwrite x.reshape(-1) of the others")
    return tensordot(x1, x2, 0, layout=layout)


@follows("contracted", np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any], *, out: Any = None, layout: Layout | str | None = None) -> Any:
    """`numpy.linalg.multi_dot`: the product of several matrices; the first and the last may be vectors."""
    arrays = as_plain_operands(arrays)
    orders = [*map(np.ndim, arrays)]
    if len(orders) < 2 or any(order != 2 for order in orders[1:-1]) or {orders[0], orders[-1]} - {1, 2}:
        raise LayoutError(f"multi_dot takes matrices, the first and last may be vectors; these have orders {orders}")
    terms: list[Term] = [(n, n + 1) for n in range(len(orders))]
    terms[0] = terms[0][-orders[0] :]
    terms[-1] = terms[-1][: orders[-1]]
    result = (0,) * (orders[0] - 1) + (len(orders),) * (orders[-1] - 1)
    return into(out, contract(arrays, terms, result, "multi_dot", layout), "multi_dot")


@of_two
@follows("contracted", np.cross, np.linalg.cross)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross products of vectors of 3 components along a mode, which is made whole. Collective.

    Parameters
    ----------
    x1, x2 : DistTensor | array_like
        Tensors or arrays whose shapes broadcast.
    axis : int, default -1
        The mode of the components.

    Raises
    ------
    LayoutError
        The mode does not have 3 elements in both.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0])).to_global()
    array([0, 0, 1])
    """
    along = _mode(axis, np.ndim(x1)), _mode(axis, np.ndim(x2))
    extents = np.shape(x1)[along[0]], np.shape(x2)[along[1]]
    if extents != (3, 3):
        raise LayoutError(
            f"cross takes vectors of 3 components along mode {axis}, not of {extents[0]} and {extents[1]}"
        )
    terms = [_vectors(np.ndim(x), at) for x, at in zip((x1, x2), along, strict=True)]
    result = max(terms, key=len)

    def product(a: Any, b: Any) -> Any:
        return np.cross(a, b, *along, axisc=result.index(0))

    return stackwise(product, (x1, x2), terms, (result,), "cross", whole=(0,))[0]


def _read(subscripts: Any, operands: Sequence[Any]) -> tuple[str, list[Any], Subscripts]:
    """The text of a call of einsum, its operands, and their letters."""
    arrays = [*operands]
    if not isinstance(subscripts, str):
        subscripts, arrays = as_text((subscripts, *operands))
    return subscripts, arrays, read_subscripts(subscripts, tuple([len(shape_of(x)) for x in arrays]))


def conjugate(x: Any) -> Any:
    """The complex conjugate, of every contribution if the tensor is partial; real numbers are returned as they are."""
    if not isinstance(x, Distributed):
        return as_array(x).conj()  # which leaves bools as they are, as `numpy.conjugate` does not
    return x._with(np.conjugate(x.local)) if x.local.dtype.kind == "c" else x


def stack_labels(order: int) -> Term:
    """Labels of leading modes, counted from the last one, so that stacks of different orders align at their ends."""
    return tuple(range(_STACK + order, _STACK, -1))


def _vectors(order: int, along: int) -> Term:
    """Labels of a stack of vectors along a mode: 0 for that mode, and those of a stack for the others."""
    stack = stack_labels(order - 1)
    return (*stack[:along], 0, *stack[along:])


def _mode(axis: Any, order: int) -> int:
    """The number of a mode, which may count from the end."""
    if not -order <= (mode := index(axis)) < order:
        raise LayoutError(f"a tensor of order {order} has no mode {axis}")
    return mode % order


def _check_summed(cause: str, *modes: tuple[Any, int]) -> None:
    """Refuse modes of different extents that are summed over together; nothing broadcasts there."""
    extents = [shape_of(x)[mode] for x, mode in modes]
    if extents[0] != extents[1]:
        shapes = " and ".join(str(shape_of(x)) for x, _ in modes)
        raise LayoutError(f"{cause} sums over modes of one extent, not of {extents[0]} and {extents[1]}, of {shapes}")

"""Hypothesis strategies for grids, shapes, layouts, distributions and tensors that fit each other by construction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from ..errors import LayoutError
from ..layout.distribution import Distribution
from ..layout.grid import Grid, grid_shape, tensor_shape
from ..layout.layout import Layout
from ..runtime.comm.resolve import run
from .choices import ROLES, Pick, pick_grid, pick_layout, pick_shape

if TYPE_CHECKING:  # layouts and distributions are drawn without tensors
    from ..tensor import DistTensor

__all__ = ["TensorCase", "dist_tensors", "distributions", "grids", "layouts", "shapes"]

T = TypeVar("T")
Array = npt.NDArray[Any]

_DTYPES = ("float64", "int64", "complex128", "float32", "complex64", "int32", "uint8", "bool")


@dataclass(frozen=True, slots=True)
class TensorCase:
    """A tensor that a strategy has drawn: the whole array, and its distribution.

    Hypothesis draws in one thread, but a tensor is spread over several ranks; a case can be handed to all of them.

    Examples
    --------
    >>> import numpy as np, rote.testing
    >>> case = rote.testing.TensorCase(np.arange(4.0), rote.parse("block[(0)]").on(4, 2))
    >>> case.ranks, case.run(lambda x: float(x.local.sum()))
    (2, [1.0, 5.0])
    """

    array: Array
    distribution: Distribution

    @property
    def ranks(self) -> int:
        """The number of ranks of the grid."""
        return self.distribution.grid.size

    def on(self, comm: object | None = None) -> DistTensor:
        """The tensor on the ranks of `comm`, which must be as many as the grid has; collective.

        Raises
        ------
        CommError
            The number of ranks differs from the grid's.

        Examples
        --------
        >>> import numpy as np, rote.testing
        >>> case = rote.testing.TensorCase(np.arange(4), rote.parse("block[(0)]").on(4, 2))
        >>> rote.run(lambda comm: case.on(comm).local.tolist(), ranks=2)
        [[0, 1], [2, 3]]
        """
        from ..tensor import DistTensor

        return DistTensor.from_global(self.array, self.distribution.layout, comm, self.distribution.grid)

    def run(self, fn: Callable[[DistTensor], T]) -> list[T]:
        """Call `fn` with the tensor on each of `ranks` in-process ranks; an error of a rank is raised here.

        Returns
        -------
        list
            The results in rank order.

        Examples
        --------
        >>> import numpy as np, rote.testing
        >>> case = rote.testing.TensorCase(np.arange(4), rote.parse("block[(0)]").on(4, 2))
        >>> case.run(lambda x: int(x.sum()))
        [6, 6]
        """
        return run(lambda comm: fn(self.on(comm)), ranks=self.ranks, on="threads")

    def __str__(self) -> str:
        return f"{self.distribution}, {self.array.dtype}: {self.array.tolist()}"


def _pick(draw: st.DrawFn) -> Pick:
    def pick(options: Sequence[Any]) -> Any:
        return draw(st.sampled_from(_simplest_first(options)))

    return pick


def _simplest_first(options: Sequence[Any]) -> Sequence[Any]:
    """Options with the simplest first, to which Hypothesis shrinks: small numbers, and replicated grid modes."""
    if all(type(option) is int for option in options):
        return sorted(options)
    if all(option in ROLES for option in options):
        return sorted(options, key=ROLES.index)
    return options


def _as_strategy(value: Any, read: Callable[[Any], T]) -> st.SearchStrategy[T]:
    """A strategy as it is; for a value, the strategy that draws it alone."""
    return value if isinstance(value, st.SearchStrategy) else st.just(read(value))


def _as_grid(grid: Grid | tuple[int, ...] | int) -> Grid:
    return Grid(grid_shape(grid))


@st.composite
def _picked(draw: st.DrawFn, function: Callable[..., T], most: int) -> T:
    return function(_pick(draw), most=most)


def grids(max_ranks: int = 12) -> st.SearchStrategy[Grid]:
    """Grids of order 0 to 3 over at most `max_ranks` ranks; the simplest has order 0 and one rank.

    Examples
    --------
    >>> import rote.testing
    >>> rote.testing.grids(max_ranks=1).filter(lambda grid: grid.size > 1).is_empty
    False
    """
    return _picked(pick_grid, max_ranks).map(Grid)


def shapes(max_size: int = 400) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of tensors of order 0 to 4, with extents that are 0, 1, odd, prime, or multiples of tiles.

    Parameters
    ----------
    max_size : int, default 400
        The most elements of a tensor.

    Examples
    --------
    >>> import rote.testing
    >>> from hypothesis import find
    >>> find(rote.testing.shapes(), lambda shape: True)
    ()
    """
    return _picked(pick_shape, max_size)


@st.composite
def _distributions(
    draw: st.DrawFn, shape: st.SearchStrategy[tuple[int, ...]], grid: st.SearchStrategy[Grid], views: bool, whole: bool
) -> Distribution:
    pick, over, extents = _pick(draw), draw(grid), draw(shape)
    layout = pick_layout(pick, extents, over.shape, views)
    if whole:  # no grid mode stays partial or rooted
        layout = Layout(layout.modes, layout.view, "sum", (), ())
    return layout.on(extents, over)


def distributions(
    shape: tuple[int, ...] | int | st.SearchStrategy[tuple[int, ...]] | None = None,
    grid: Grid | tuple[int, ...] | int | st.SearchStrategy[Grid] | None = None,
    views: bool = True,
    whole: bool = False,
) -> st.SearchStrategy[Distribution]:
    """Layouts on a shape and a grid: all kinds, several splits of one mode, views, partial and rooted grid modes.

    Parameters
    ----------
    shape : tuple[int, ...] | int | st.SearchStrategy[tuple[int, ...]], optional
        The shape of the tensor, or a strategy for it; `shapes()` if None.
    grid : Grid | tuple[int, ...] | int | st.SearchStrategy[Grid], optional
        The grid or its shape, or a strategy for grids; `grids()` if None.
    views : bool, default True
        Whether modes may be fused and tiled.
    whole : bool, default False
        Whether every rank must hold its elements, so that no grid mode is partial or rooted.

    Returns
    -------
    st.SearchStrategy[Distribution]
        A strategy whose simplest example is replicated on every rank.

    Examples
    --------
    >>> import rote.testing
    >>> from hypothesis import find
    >>> print(find(rote.testing.distributions((3,), rote.Grid((2,))), lambda dist: True))
    [()] on (3,), grid 2
    """
    fitting = shapes() if shape is None else _as_strategy(shape, tensor_shape)
    return _distributions(fitting, grids() if grid is None else _as_strategy(grid, _as_grid), views, whole)


def layouts(order: int | None = None) -> st.SearchStrategy[Layout]:
    """Layouts without sizes.

    Parameters
    ----------
    order : int, optional
        The order of their tensors; any up to 4 if None.

    Raises
    ------
    LayoutError
        Tensors of that order are not drawn.

    Examples
    --------
    >>> import rote.testing
    >>> from hypothesis import find
    >>> print(find(rote.testing.layouts(order=2), lambda layout: True))
    [(),()]
    """
    if order is not None and order not in range(5):
        raise LayoutError(f"layouts(order={order!r}) draws nothing\nwrite an order from 0 to 4")
    fitting = shapes() if order is None else shapes().filter(lambda shape: len(shape) == order)
    return distributions(fitting).map(lambda dist: dist.layout)


@st.composite
def _dist_tensors(draw: st.DrawFn, dist: st.SearchStrategy[Distribution], dtype: st.SearchStrategy[str]) -> TensorCase:
    distribution, kind = draw(dist), np.dtype(draw(dtype))

    size = prod(distribution.shape)
    # Small integers: their sums are exact in every dtype, in any order.
    least, most = {"b": (0, 1), "u": (0, 9)}.get(kind.kind, (-9, 9))
    small = st.integers(least, most)
    values = draw(st_numpy.arrays(kind, distribution.shape, elements=small.map(kind.type), fill=st.nothing()))

    if size > 1 and draw(st.booleans()):  # all elements differ, so that a wrong place shows
        values = np.arange(size).astype(kind).reshape(distribution.shape)
    return TensorCase(values, distribution)


def dist_tensors(
    dist: Distribution | st.SearchStrategy[Distribution] | None = None,
    dtype: npt.DTypeLike | st.SearchStrategy[str] | None = None,
) -> st.SearchStrategy[TensorCase]:
    """Tensors with values, as `TensorCase`: small integers in any dtype, so that sums are exact.

    Parameters
    ----------
    dist : Distribution | st.SearchStrategy[Distribution], optional
        Their distribution, or a strategy for it; `distributions(grid=grids(4), whole=True)` if None.
    dtype : DTypeLike | st.SearchStrategy[str], optional
        The dtype of the elements, or a strategy for its name; one of eight if None.

    Raises
    ------
    LayoutError
        `dist` is neither.

    Examples
    --------
    >>> import rote.testing
    >>> from hypothesis import given
    >>> @given(rote.testing.dist_tensors())
    ... def test_double(case):
    ...     assert case.run(lambda x: (2 * x).to_global().tolist()) == [(2 * case.array).tolist()] * case.ranks
    """
    if dist is None:
        dist = distributions(grid=grids(4), whole=True)

    chosen = st.just(dist) if isinstance(dist, Distribution) else dist
    if not isinstance(chosen, st.SearchStrategy):
        raise LayoutError(f"tensors have a distribution, not {dist!r}\nwrite rote.parse(text).on(shape, grid)")

    names = st.sampled_from(_DTYPES) if dtype is None else _as_strategy(dtype, lambda name: np.dtype(name).name)
    return _dist_tensors(chosen, names)

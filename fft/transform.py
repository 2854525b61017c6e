"""FFT: a walk bound to ranks, ready to run again and again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import pi, prod
from operator import index as as_int
from typing import Any

import numpy as np
import numpy.typing as npt

from rote.compiler.explain import in_bytes
from rote.compiler.plan import Plan
from rote.compiler.step import as_dtype
from rote.errors import LayoutError
from rote.layout.distribution import Distribution, distribute
from rote.layout.grid import Grid
from rote.layout.layout import Layout, as_layout
from rote.runtime.comm import Comm
from rote.runtime.doors import as_comm
from rote.runtime.execute import check_grid
from rote.tensor import DistTensor

from .bound import BoundWalk, bind_walks
from .choose import (
    SPLITS,
    Choice,
    best,
    check_algorithm,
    choices,
    compared,
    ranking,
    read_lines,
    start,
    walk_of,
)
from .kernels import check_extents, known_plans, learn_plans
from .kinds import Kinds, by_axis, in_order
from .problem import Problem, problem
from .spectral import wavenumbers
from .tuning import Tuning
from .walk import Walk

__all__ = ["FFT", "NORMS", "check_norm", "describe", "normal_axes", "scale"]

Array = npt.NDArray[Any]
NORMS = ("backward", "ortho", "forward")


class FFT:
    """A parallel transform of one shape, layout and dtype, planned once.

    Args:
        shape: of the whole tensor.
        layout: of the input; the one in which the algorithm begins if None, of all if that is "auto".
        grid: of the ranks; balanced if None, or the cheapest if the algorithm is "auto" and no layout is given.
        comm: an mpi4py or Rote communicator; the ranks of `rote.run`, MPI's world or this process if None.
        dtype: of the input; a real one makes a real-to-half-spectrum transform, as `numpy.fft.rfftn`.
        axes: as NumPy; all if None. A real transform halves the last of them.
        algorithm: one of `rote.fft.algorithms`: "slab" (a grid of order 1), "pencil" (order 2), "rows" (order 1),
            "volumetric" or "cyclic" (as many grid modes as axes), or "auto": the cheapest by the cost model; or the
            text of a walk, a line per layout, as `f.walk` prints.
        norm: "backward", "ortho" or "forward", as NumPy.
        output: the layout of the spectrum; where the walk ends, the cheapest, if None.
        kinds: what `forward` does: "fft", "rfft", or one of "dct1" to "dct4" and "dst1" to "dst4" as `scipy.fft.dct`
            and `dst` (a complex dtype has its real and imaginary part each transformed), for all axes; or a mapping
            from axis to kind, `{0: "dct2", 1: "fft", 2: "rfft"}`, which names the axes itself. A real dtype has "fft"
            only beside one "rfft". If None: "rfft" if the dtype is real, else "fft"; or what the text of a walk does.
        s: the lengths of the transforms along `axes`, as NumPy: `forward` cuts the tensor to them or pads it with
            zeros, at the end; `backward` goes back to its shape. -1 leaves an extent as it is, and so does None all.
        resample: along `axes`, the number of points whose spectrum is kept, for products without aliasing (the 3/2
            rule): `forward` cuts the spectrum to that of so many points, `backward` pads it. -1 keeps all of it. With
            norm="forward" it is the same as that of a signal on these points. What is cut or padded never travels.
        tune: "model" estimates the plans of local transforms, at once, and gives the same bits in every run; "measure"
            times them, for some seconds, and "patient" longer: often faster, the same on all ranks, but the last bits
            may differ from run to run.

    Raises:
        LayoutError: shape, layout, axes, kinds and algorithm do not fit each other.
        CommError: the grid does not match the ranks.

    >>> f = FFT((8, 9, 10), dtype="f8")
    >>> x = DistTensor.zeros((8, 9, 10), f.input_layout)
    >>> f.forward(x).shape, f.backward(f.forward(x)).shape
    ((8, 9, 6), (8, 9, 10))
    >>> print(FFT((8, 9, 10), "block[(0),(),()]", dtype="f8", kinds={0: "dct2", 1: "fft", 2: "rfft"}).walk)
      block[(0),(),()]: dct2(0), rfft(1, 2)
    """

    def __init__(
        self,
        shape: Sequence[int] | int,
        layout: Layout | str | None = None,
        grid: Grid | Sequence[int] | int | None = None,
        comm: object | None = None,
        dtype: npt.DTypeLike = "c16",
        axes: Sequence[int] | int | None = None,
        algorithm: str = "auto",
        norm: str | None = None,
        output: Layout | str | None = None,
        kinds: Mapping[int, str] | str | None = None,
        s: Sequence[int] | int | None = None,
        resample: Sequence[int] | int | None = None,
        tune: str = "model",
    ) -> None:
        tuning = Tuning(tune)
        ranks = as_comm(comm)
        extents = (shape,) if isinstance(shape, int) else tuple(shape)
        found = as_dtype(dtype)
        found = found if found.kind in "fc" else np.dtype("f8")
        self._axes, kind = _asked(kinds, axes, len(extents), found.kind == "f")
        self._norm = check_norm(norm)
        self._comm = ranks
        check_extents(extents, self._axes)
        said = "" if kinds is None and "[" in algorithm else kind  # the text of a walk says its kinds itself
        wanted = problem(extents, self._axes, said, found, s, resample)
        self._choices: tuple[Choice, ...] = ()
        if algorithm == "auto" and layout is None:
            self._choices = ranking(extents, ranks.size, wanted, None if grid is None else as_grid(grid), output)
        else:
            source = _source(extents, layout, grid, ranks.size, algorithm, wanted)
            if algorithm == "auto":
                self._choices = choices(source, wanted, output)
            else:
                self.walk = walk_of(source, wanted, algorithm, output)
        if self._choices:
            self.walk = best(self._choices)
        check_grid(self.walk.source.grid, ranks)
        ortho = self._norm == "ortho"
        there, back = (scale(self._norm, self.walk.sizes, forward) for forward in (True, False))
        self._forward = BoundWalk(self.walk, ranks, there, ortho, tuning)
        self._backward = BoundWalk(self.walk.inverse(), ranks, back, ortho, tuning)
        self._workspace = bind_walks(ranks, self._forward, self._backward)
        if tune != "model":  # now that every rank has timed its own, all take the same
            learn_plans(ranks.allgather_object(known_plans()))
            self._workspace = bind_walks(ranks, self._forward, self._backward)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what `forward` takes."""
        return self.walk.source.shape

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that are transformed, numbered from 0, in NumPy's order: the one that is halved is the last."""
        return self._axes

    @property
    def comm(self) -> Comm:
        """The communicator of the ranks."""
        return self._comm

    @property
    def input_layout(self) -> Layout:
        """The layout that `forward` takes and `backward` gives."""
        return self.walk.source.layout

    @property
    def output_layout(self) -> Layout:
        """The layout that `forward` gives and `backward` takes."""
        return self.walk.target.layout

    @property
    def grid(self) -> Grid:
        """The grid of `input_layout`."""
        return self.walk.source.grid

    @property
    def moves(self) -> tuple[Plan, ...]:
        """The plans of the forward walk's moves, in order."""
        return self.walk.moves

    @property
    def workspace_bytes(self) -> int:
        """Bytes that this rank needs beyond input and output: two of the largest blocks or messages on the way.

        Both directions share them. The ends of messages may lie in the output for a while.
        """
        return self._workspace

    def forward(self, x: DistTensor, out: DistTensor | None = None) -> DistTensor:
        """The spectrum of x, in `output_layout`; x keeps its values.

        Raises:
            LayoutError: x or `out` is not of the shape, layout and dtype that the transform was made for.
        """
        return self._run(self._forward, x, out)

    def backward(self, X: DistTensor, out: DistTensor | None = None) -> DistTensor:
        """The tensor of a spectrum, in `input_layout`; X keeps its values.

        Raises:
            LayoutError: X or `out` is not of the shape, layout and dtype that the transform was made for.
        """
        return self._run(self._backward, X, out)

    def wavenumbers(self, L: float | Sequence[float] = 2 * pi, nyquist: str = "keep") -> tuple[Array, ...]:
        """The angular wavenumbers 2 pi k / L of this rank's block of the spectrum that `forward` gives.

        A derivative along an axis is a product with `1j` times its wavenumbers. Of an even extent n the mode of the
        highest one stands for both signs, k = n/2 and -n/2 (Nyquist's mode). Even derivatives want it, as in
        `-(kx**2 + ky**2)`; odd ones want zero in its place, or that of a real tensor would not be real. Those of cosine
        and sine transforms are pi k / L, with k + 1 or k + 1/2 for k as the kind says, and have no such mode.

        Args:
            L: the length of the box, in any unit: one for all axes, or one per axis of `axes`. A periodic box is n
                spacings long, and so is one that is mirrored, but of "dct1" n - 1 and of "dst1" n + 1.
            nyquist: "keep" that wavenumber, for even derivatives, or put "zero" there, for odd ones.

        Returns:
            One array per axis of `axes`, in radians per unit of L and in the transform's real dtype. Together they
            broadcast to the block, as an open mesh does (`numpy.ogrid`), whatever layout the spectrum has.

        Raises:
            LayoutError: there are not as many lengths as axes, one is not positive, or `nyquist` is another word.

        >>> f = FFT(8, "block[(0)]", dtype="f8")
        >>> [k.tolist() for nyquist in ("keep", "zero") for k in f.wavenumbers(nyquist=nyquist)]
        [[0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 3.0, 0.0]]
        >>> X = f.forward(DistTensor.from_function(lambda j: np.sin(2 * pi * j / 8), 8, f.input_layout))
        >>> X.local[...] *= 1j * f.wavenumbers(nyquist="zero")[0]
        >>> bool(np.allclose(f.backward(X).to_global(), np.cos(2 * pi * np.arange(8) / 8)))
        True
        """
        return wavenumbers(self.walk, self._axes, self._comm.rank, L, nyquist)

    def _run(self, bound: BoundWalk, x: DistTensor, out: DistTensor | None) -> DistTensor:
        if x.comm is not self._comm:
            raise LayoutError("the transform and the tensor are on different communicators; give both the same comm")
        dtypes = bound.dtypes
        _check(x, bound.walk.source, dtypes[0], "the input")
        if out is None:
            target = bound.walk.target
            out = DistTensor(np.empty(target.local_shape(self._comm.rank), dtypes[-1]), target, self._comm)
        else:
            _check(out, bound.walk.target, dtypes[-1], "out")
        bound(x.local, out.local)
        return out

    def __str__(self) -> str:
        return "\n".join([describe(self.walk, self._axes), *compared(self._choices, self.walk)])


def describe(walk: Walk, axes: tuple[int, ...]) -> str:
    """A walk as text, with a line above that says what is transformed, and one below with what is moved."""
    moved, times = sum(plan.cost.bytes for plan in walk.moves), len(walk.moves)
    source = walk.source
    return (
        f"{walk.kind} of {source.shape} {walk.dtype} on grid {source.grid}, axes {axes}\n{walk}\n"
        f"  each rank receives {in_bytes(moved)} in {times} move{'s' * (times != 1)}"
    )


def scale(norm: str, sizes: Sequence[int], forward: bool) -> np.longdouble:
    """The factor that NumPy's `norm` asks for, as exact as any dtype wants it; the kernels themselves never scale.

    The sizes are the logical ones: the extents of the signal, about twice as many for cosine and sine transforms.

    >>> float(scale("backward", [4, 5], forward=False)), float(scale("ortho", [4], forward=True))
    (0.05, 0.5)
    """
    points = np.longdouble(prod(sizes))
    if norm == "ortho":
        points = np.sqrt(points)
    elif (norm == "forward") != forward:
        points = np.longdouble(1)
    return np.longdouble(1 / points)


def _asked(
    kinds: Mapping[int, str] | str | None, axes: Sequence[int] | int | None, order: int, real: bool
) -> tuple[tuple[int, ...], Kinds]:
    """The axes of a transform in NumPy's order, and their kinds."""
    if isinstance(kinds, Mapping):
        if axes is not None:
            raise LayoutError("kinds says the axes itself; leave out axes, or give one kind for all of them")
        named = normal_axes(tuple(kinds), order)
        return in_order(dict(sorted(zip(named, kinds.values(), strict=True))), real)
    named, kind = normal_axes(axes, order), kinds or ("rfft" if real else "fft")
    if kind == "rfft" and not named:
        raise LayoutError("a real transform needs at least one axis")
    return in_order(by_axis(kind, named), real)


def normal_axes(axes: Sequence[int] | int | None, order: int) -> tuple[int, ...]:
    """Axes as numbers from 0, each once.

    Raises:
        LayoutError: an axis is no integer, outside the tensor, or named twice.
    """
    if axes is None:
        return tuple(range(order))
    try:
        named = tuple(as_int(a) for a in (axes if isinstance(axes, Iterable) else (axes,)))
    except TypeError:
        raise LayoutError(f"axes are integers, not {axes!r}") from None
    if any(not -order <= a < order for a in named):
        raise LayoutError(f"axes {named} are not all axes of a tensor of order {order}")
    found = tuple(a % order for a in named)
    if len(set(found)) != len(found):
        raise LayoutError(f"axes {named} name an axis twice")
    return found


def check_norm(norm: str | None) -> str:
    """A norm by its name; None is "backward"."""
    if norm is not None and norm not in NORMS:
        raise LayoutError(f"norm is one of {', '.join(NORMS)}; not {norm!r}")
    return norm or "backward"


def _source(
    extents: tuple[int, ...],
    layout: Layout | str | None,
    grid: Grid | Sequence[int] | int | None,
    ranks: int,
    algorithm: str,
    wanted: Problem,
) -> Distribution:
    """Where the walk starts: the layout that is asked for, or that in which the algorithm begins."""
    if layout is None and "[" in algorithm:
        layout = read_lines(algorithm)[0].layout
    if layout is not None:
        begins = as_layout(layout)
        named = max((*begins.grid_modes, 0)) + 1
        return distribute(begins, extents, Grid.of(ranks, named) if grid is None else grid)
    check_algorithm(algorithm)
    if grid is None:
        split = [axis for axis in wanted.axes if axis != wanted.real]
        order = {"rows": 1, **SPLITS}.get(algorithm, max(len(split), 1))
    on = Grid.of(ranks, order) if grid is None else as_grid(grid)
    return distribute(start(algorithm, len(extents), on, wanted), extents, on)


def as_grid(grid: Grid | Sequence[int] | int) -> Grid:
    """A grid as it is, or from its extents."""
    return grid if isinstance(grid, Grid) else Grid((grid,) if isinstance(grid, int) else tuple(grid))


def _check(x: DistTensor, dist: Distribution, dtype: np.dtype[Any], name: str) -> None:
    if x.distribution != dist or x.dtype != dtype:
        raise LayoutError(f"{name} is {x.distribution} {x.dtype}, but the transform takes {dist} {dtype}")

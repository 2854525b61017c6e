"""Parallel FFTs of arrays of JAX: Rote plans a walk, XLA transforms and moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, product
from math import pi
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..caches import memoized
from ..errors import LayoutError, PlanError
from ..fft.check import build, name_modes
from ..fft.families import is_text
from ..fft.families.choose import choices, crowded, walk_of, walks
from ..fft.families.transpose import ending, transpose
from ..fft.request import (
    Axes,
    Lengths,
    Norm,
    TransformRequest,
    as_request,
    check_extents,
    check_norm,
    given_length,
    given_lengths,
    normal_axes,
    planned_request,
)
from ..fft.transforms import FUNCTIONS, KINDS, complex_dtype, real_dtype
from ..fft.walk import Walk, describe
from ..fft.wavenumbers import Nyquist, chosen_axes, wavenumbers
from ..layout.distribution import Distribution
from ..layout.grid import tensor_shape
from ..layout.layout import Layout, as_layout
from ..layout.refine import fitted
from .arrays import distribution_of, from_global, has_equal_blocks, on_mesh
from .meshes import check_mesh, is_narrow, library
from .walks import LoweredWalk, lowered_walks

__all__ = ["FFT", "dctn", "dstn", "fft", "fftn", "idctn", "idstn", "ifft", "ifftn", "irfft", "irfftn", "rfft", "rfftn"]

Order = Literal["natural", "any"]


class FFT:
    """A parallel transform of one shape, layout and dtype as functions of arrays of JAX, for use in `jit` and `grad`.

    Parameters
    ----------
    shape : Sequence[int] | int
        Of the whole array, without padding.
    layout : Layout | str | PartitionSpec
        Of the input: a PartitionSpec, or a layout or its text, whose grid modes are the axes of the mesh.
    mesh : jax.sharding.Mesh
        A `jax.sharding.Mesh`.
    dtype : DTypeLike, optional
        Of the input; a real one gives half a spectrum, as `numpy.fft.rfftn`. If None, complex numbers of the precision
        that JAX has switched on.
    axes : Sequence[int] | int, optional
        As in NumPy; all if None. A real transform halves the last of them. Other axes may be a batch.
    kinds : Mapping[int, str] | str, optional
        What `forward` does along its axes: "fft", "rfft", "dct2", "dct3", "dst2", "dst3"; or a mapping from axis to
        kind, which also names the axes.
    algorithm : str, default 'auto'
        As for `rote.fft.FFT`: "auto", the name of a family, or the text of a walk.
    order : {'natural', 'any'}, default 'natural'
        "natural" for a spectrum in the layout of the input; "any" for the one in which the walk ends, with its axes in
        the order in which they lie then, which spares a move and a transpose. `target` says which it is.
    norm : str, optional
        "backward", "ortho" or "forward", as in NumPy.

    Attributes
    ----------
    walk : Walk
        The walk of the array as it is, without padding.
    mesh : jax.sharding.Mesh
        The mesh.
    axes : tuple[int, ...]
        The transformed axes, numbered from 0, in NumPy's order.
    lowered : tuple[LoweredWalk, LoweredWalk]
        The two directions as functions, which `rote.jax.virtual` takes, too.
    source : Distribution
        The distribution of the input, on padded extents: arrays are in its stored order.
    target : Distribution
        The distribution of the spectrum, on padded extents: arrays are in its stored order.

    Raises
    ------
    LayoutError
        Shape, layout, axes, kinds and algorithm do not fit each other.
    PlanError
        There is no such walk on the mesh, or JAX would change the dtype.

    Examples
    --------
    >>> import jax, rote.jax
    >>> f = rote.jax.FFT((4, 6), "block[(0),()]", jax.make_mesh((1,), ("x",)), dtype="f4")
    >>> f.source.shape, f.target.shape
    ((4, 6), (4, 4))
    """

    def __init__(
        self,
        shape: Sequence[int] | int,
        layout: Any,
        mesh: Any,
        dtype: npt.DTypeLike | None = None,
        axes: Sequence[int] | int | None = None,
        kinds: Mapping[int, str] | str | None = None,
        algorithm: str = "auto",
        order: Order = "natural",
        norm: str | None = None,
    ) -> None:
        if order not in ("natural", "any"):
            raise LayoutError(f'order is "natural" or "any", not {order!r}')
        extents, text = tensor_shape(shape), is_text(algorithm)
        element = library().dtypes.canonicalize_dtype("c16") if dtype is None else dtype
        request = planned_request(extents, element, axes, kinds, text, None, None)

        source, end = _layout_of(layout, mesh, len(extents)).on(extents, mesh.axis_sizes), None
        if order == "natural":
            end = fitted(source, request.after(extents, request.axes)).layout

        candidates = _candidates(source, request, algorithm, end)

        self.mesh: Any = mesh
        self.axes: tuple[int, ...] = request.axes
        self.lowered: tuple[LoweredWalk, LoweredWalk] = _lowered_pair(candidates, mesh, check_norm(norm))
        if order == "any":
            self.lowered = _turned(*self.lowered)
        self.walk: Walk = self.lowered[0].walk
        self.source: Distribution = self.lowered[0].source
        self.target: Distribution = self.lowered[0].target

    def forward(self, x: Any) -> Any:
        """The spectrum of an array, in the stored order of `target`, from one in that of `source`.

        Parameters
        ----------
        x : jax.Array
            An array of JAX, of the transform's shape, dtype and input layout.

        Raises
        ------
        PlanError
            The array has another shape, dtype or sharding.

        Examples
        --------
        >>> import jax, numpy as np, rote.jax
        >>> f = rote.jax.FFT(4, "block[(0)]", jax.make_mesh((1,), ("x",)), dtype="f4")
        >>> x = rote.jax.from_global(np.ones(4, "f4"), f.source, f.mesh)
        >>> f.forward(x).real.tolist()
        [4.0, 0.0, 0.0]
        """
        return self.lowered[0](x)

    def backward(self, X: Any) -> Any:
        """The array of a spectrum, in the stored order of `source`, from one in that of `target`.

        Parameters
        ----------
        X : jax.Array
            An array of JAX, as `forward` returns it.

        Raises
        ------
        PlanError
            The spectrum has another shape, dtype or sharding.

        Examples
        --------
        >>> import jax, numpy as np, rote.jax
        >>> f = rote.jax.FFT(4, "block[(0)]", jax.make_mesh((1,), ("x",)), dtype="f4")
        >>> x = rote.jax.from_global(np.ones(4, "f4"), f.source, f.mesh)
        >>> f.backward(f.forward(x)).tolist()
        [1.0, 1.0, 1.0, 1.0]
        """
        return self.lowered[1](X)

    def wavenumbers(
        self,
        L: float | Sequence[float] | None = None,
        nyquist: Nyquist = "keep",
        axes: Sequence[int] | int | None = None,
        d: float | Sequence[float] | None = None,
    ) -> tuple[Any, ...]:
        """The angular wavenumbers 2 pi k / L of the spectrum, as arrays that broadcast to it; not within `jit`.

        Parameters
        ----------
        L : float | Sequence[float], optional
            The length of the box, one for all axes, or one per axis of `axes`; 2 pi if None. See
            `rote.fft.FFT.wavenumbers`.
        nyquist : {'keep', 'zero'}, default 'keep'
            "keep" the highest wavenumber of an even extent, for even derivatives, or put "zero" there, for odd ones.
        axes : Sequence[int] | int, optional
            The axes whose wavenumbers are wanted; all that are transformed if None.
        d : float | Sequence[float], optional
            The spacing of the points, in place of L.

        Returns
        -------
        tuple[jax.Array, ...]
            One array per axis of `axes`, sharded as the spectrum along its own axis, with extent 1 along others. Where
            the layout of the spectrum fuses axes, it has the whole shape.

        Raises
        ------
        LayoutError
            There are not as many lengths as axes, one is not positive, or `nyquist` is another word.
        PlanError
            Both L and d are given.

        Examples
        --------
        >>> import jax, rote
        >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec
        >>> f = rote.jax.FFT((2, 4), P("x", None), mesh, dtype="f4")
        >>> [k.tolist() for k in f.wavenumbers()]
        [[[0.0], [-1.0]], [[0.0, 1.0, 2.0]]]
        """
        target, named = self.target, chosen_axes(axes, self.axes, len(self.walk.target.shape))
        if L is not None and d is not None:
            raise PlanError("the length L of the box and the spacing d of its points say the same\nwrite one of them")
        if d is not None:
            L = [
                turn * step for turn, step in zip(map(self._turns, named), np.broadcast_to(d, len(named)), strict=True)
            ]

        whole = [np.arange(self.walk.target.shape[axis]) for axis in named]
        rows = wavenumbers(self.walk, named, whole, 2 * pi if L is None else L, nyquist)
        return tuple([_along(row, axis, target, self.mesh) for row, axis in zip(rows, named, strict=True)])

    def _turns(self, axis: int) -> float:
        """The number of points along a box in which harmonic 1 makes a turn, or half a turn."""
        half = KINDS[self.walk.kinds[axis]].first is not None
        return self.walk.sizes[axis] / (2 if half else 1)

    def __str__(self) -> str:
        moves = [str(move.digits) for move in self.lowered[0].moves if move.digits.steps]
        return "\n".join([describe(self.walk, self.axes), *moves])


# --- functions of arrays ---------------------------------------------------------------------------------------------


def fftn(
    x: Any, s: Lengths = None, axes: Axes = None, norm: str | None = None, *, layout: Any = None, mesh: Any = None
) -> Any:
    """The Fourier transform of a sharded array, as `numpy.fft.fftn`; no device has to hold the whole array.

    Parameters
    ----------
    x : jax.Array
        An array with a `NamedSharding`.
    s : Sequence[int] | int, optional
        The lengths of the transforms along `axes`, to which x is cut, or padded with zeros at its end.
    axes : Sequence[int] | int, optional
        As in NumPy; all if None.
    norm : str, optional
        "backward", "ortho" or "forward", as in NumPy.
    layout, mesh : PartitionSpec and jax.sharding.Mesh, optional
        The sharding of x where JAX does not know it, as within `jit`: a PartitionSpec and a mesh.

    Returns
    -------
    jax.Array
        An array that is sharded as x.

    Raises
    ------
    PlanError
        The sharding of x is not known, or the result has no such sharding, because an extent does not divide; or JAX
        would change the dtype.
    LayoutError
        Axes, lengths or norm do not fit x.

    Examples
    --------
    >>> import jax, rote
    >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec
    >>> x = jax.device_put(jax.numpy.ones((2, 2), "f4"), jax.sharding.NamedSharding(mesh, P("x")))
    >>> rote.jax.fftn(x).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _transform("fft", x, s, axes, norm, layout, mesh)


def ifftn(
    x: Any, s: Lengths = None, axes: Axes = None, norm: str | None = None, *, layout: Any = None, mesh: Any = None
) -> Any:
    """The inverse of `fftn`, as `numpy.fft.ifftn`; arguments and errors are those of `fftn`.

    Examples
    --------
    >>> import jax, rote
    >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec
    >>> x = jax.device_put(jax.numpy.ones((2, 2), "f4"), jax.sharding.NamedSharding(mesh, P("x")))
    >>> rote.jax.ifftn(x).real.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _transform("ifft", x, s, axes, norm, layout, mesh)


def rfftn(
    x: Any, s: Lengths = None, axes: Axes = None, norm: str | None = None, *, layout: Any = None, mesh: Any = None
) -> Any:
    """The first half of the spectrum of a real array, as `numpy.fft.rfftn`; arguments and errors are those of `fftn`.

    Examples
    --------
    >>> import jax, rote
    >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec
    >>> x = jax.device_put(jax.numpy.ones((2, 4), "f4"), jax.sharding.NamedSharding(mesh, P("x")))
    >>> rote.jax.rfftn(x).shape
    (2, 3)
    """
    return _transform("rfft", x, s, axes, norm, layout, mesh)


def irfftn(
    x: Any, s: Lengths = None, axes: Axes = None, norm: str | None = None, *, layout: Any = None, mesh: Any = None
) -> Any:
    """The real array of half a spectrum, as `numpy.fft.irfftn`; arguments and errors are those of `fftn`.

    Examples
    --------
    >>> import jax, rote
    >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec
    >>> x = jax.device_put(jax.numpy.ones((2, 3), "c8"), jax.sharding.NamedSharding(mesh, P("x")))
    >>> rote.jax.irfftn(x).shape
    (2, 4)
    """
    return _transform("irfft", x, s, axes, norm, layout, mesh)


def fft(
    x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, *, layout: Any = None, mesh: Any = None
) -> Any:
    """The Fourier transform of one axis, as `numpy.fft.fft`; arguments and errors are those of `fftn`.

    Examples
    --------
    >>> import jax, rote
    >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec
    >>> x = jax.device_put(jax.numpy.ones((2, 2), "f4"), jax.sharding.NamedSharding(mesh, P("x")))
    >>> rote.jax.fft(x).real.tolist()
    [[2.0, 0.0], [2.0, 0.0]]
    """
    return _transform("fft", x, given_length(n), (axis,), norm, layout, mesh)


def ifft(
    x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, *, layout: Any = None, mesh: Any = None
) -> Any:
    """The inverse of `fft`, as `numpy.fft.ifft`; arguments and errors are those of `fftn`.

    Examples
    --------
    >>> import jax, rote
    >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec
    >>> x = jax.device_put(jax.numpy.ones((2, 2), "f4"), jax.sharding.NamedSharding(mesh, P("x")))
    >>> rote.jax.ifft(x).real.tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    return _transform("ifft", x, given_length(n), (axis,), norm, layout, mesh)


def rfft(
    x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, *, layout: Any = None, mesh: Any = None
) -> Any:
    """The first half of the spectrum along an axis, as `numpy.fft.rfft`; arguments and errors are those of `fftn`.

    Examples
    --------
    >>> import jax, rote
    >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec
    >>> x = jax.device_put(jax.numpy.ones((2, 4), "f4"), jax.sharding.NamedSharding(mesh, P("x")))
    >>> rote.jax.rfft(x).shape
    (2, 3)
    """
    return _transform("rfft", x, given_length(n), (axis,), norm, layout, mesh)


def irfft(
    x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, *, layout: Any = None, mesh: Any = None
) -> Any:
    """The real array of half a spectrum along one axis, as `numpy.fft.irfft`; arguments and errors are those of `fftn`.

    Examples
    --------
    >>> import jax, rote
    >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec
    >>> x = jax.device_put(jax.numpy.ones((2, 3), "c8"), jax.sharding.NamedSharding(mesh, P("x")))
    >>> rote.jax.irfft(x).shape
    (2, 4)
    """
    return _transform("irfft", x, given_length(n), (axis,), norm, layout, mesh)


def dctn(
    x: Any,
    type: int = 2,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    *,
    layout: Any = None,
    mesh: Any = None,
) -> Any:
    """The cosine transform, as `scipy.fft.dctn`, of type 2 or 3; the other arguments and errors are those of `fftn`.

    Examples
    --------
    >>> import jax, rote
    >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec
    >>> x = jax.device_put(jax.numpy.ones((2, 2), "f4"), jax.sharding.NamedSharding(mesh, P("x")))
    >>> rote.jax.dctn(x).round(3).tolist()
    [[16.0, 0.0], [0.0, 0.0]]
    """
    return _transform(f"dct{type}", x, s, axes, norm, layout, mesh)


def idctn(
    x: Any,
    type: int = 2,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    *,
    layout: Any = None,
    mesh: Any = None,
) -> Any:
    """The inverse of `dctn` of the same type, as `scipy.fft.idctn`; arguments and errors are those of `dctn`.

    Examples
    --------
    >>> import jax, rote
    >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec
    >>> x = jax.device_put(jax.numpy.ones((2, 2), "f4"), jax.sharding.NamedSharding(mesh, P("x")))
    >>> rote.jax.idctn(rote.jax.dctn(x)).round(3).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _transform(f"idct{type}", x, s, axes, norm, layout, mesh)


def dstn(
    x: Any,
    type: int = 2,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    *,
    layout: Any = None,
    mesh: Any = None,
) -> Any:
    """The sine transform, as `scipy.fft.dstn`, of type 2 or 3; the other arguments and errors are those of `fftn`.

    Examples
    --------
    >>> import jax, rote
    >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec
    >>> x = jax.device_put(jax.numpy.ones((2, 2), "f4"), jax.sharding.NamedSharding(mesh, P("x")))
    >>> rote.jax.dstn(x, type=3).shape
    (2, 2)
    """
    return _transform(f"dst{type}", x, s, axes, norm, layout, mesh)


def idstn(
    x: Any,
    type: int = 2,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    *,
    layout: Any = None,
    mesh: Any = None,
) -> Any:
    """The inverse of `dstn` of the same type, as `scipy.fft.idstn`; arguments and errors are those of `dstn`.

    Examples
    --------
    >>> import jax, rote
    >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec
    >>> x = jax.device_put(jax.numpy.ones((2, 2), "f4"), jax.sharding.NamedSharding(mesh, P("x")))
    >>> rote.jax.idstn(rote.jax.dstn(x)).round(3).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _transform(f"idst{type}", x, s, axes, norm, layout, mesh)


def _transform(kind: str, x: Any, s: Lengths, axes: Axes, norm: str | None, layout: Any, mesh: Any) -> Any:
    """The transform of a kind, a key of `FUNCTIONS`; the rest is as for `fftn`."""
    if kind not in FUNCTIONS:
        raise PlanError(f"rote.jax has no {kind}\nwrite type 2 or 3")
    source, on = distribution_of(x, layout, mesh)
    side = KINDS[FUNCTIONS[kind].kind].real
    if side == "input" and x.dtype.kind == "c":
        raise LayoutError(f"rfft transforms real numbers, not {x.dtype}\nwrite fft, or x.real")

    is_real = side == "input" or (side == "both" and x.dtype.kind != "c")
    element = np.dtype("f4") if is_narrow(x.dtype) else x.dtype
    dtype = real_dtype(element) if is_real else complex_dtype(element)
    if element.kind not in "fc":
        dtype = np.dtype(library().dtypes.canonicalize_dtype(dtype))
    lengths = given_lengths(s, "s")
    if axes is None and lengths is not None:
        axes = range(-len(lengths), 0)
    named = normal_axes(axes, x.ndim)
    if side in ("input", "output") and not named:
        raise LayoutError(f"{kind} needs at least one axis")

    return _function(kind, source, on, dtype, named, lengths, check_norm(norm))(x.astype(dtype))


@memoized(64)
def _function(
    kind: str,
    source: Distribution,
    mesh: Any,
    dtype: np.dtype[Any],
    axes: tuple[int, ...],
    lengths: tuple[int, ...] | None,
    norm: Norm,
) -> LoweredWalk:
    """A transform of arrays of a distribution as a function, whose results have its layout."""
    check_extents(source.shape, axes, lengths)
    request = as_request(source.shape, axes, kind, dtype, lengths)
    target = fitted(source, request.after(source.shape, axes))
    if not has_equal_blocks(target):
        raise PlanError(
            f"the result of shape {target.shape} is not sharded as the array is, because an extent does not divide\n"
            "shard another axis, or write rote.jax.FFT, which pads"
        )

    candidates = _candidates(source, request, "auto", target.layout)
    return next(_lowered(candidates, mesh, norm, request.forward))


# --- plans -----------------------------------------------------------------------------------------------------------


def _layout_of(layout: Any, mesh: Any, order: int) -> Layout:
    """A layout from a PartitionSpec of a mesh, whatever the extents; from a text, or from itself."""
    check_mesh(mesh)
    if isinstance(layout, library().sharding.PartitionSpec):
        return on_mesh(layout, (mesh.size,) * order, mesh).layout
    return as_layout(layout)


def _candidates(
    source: Distribution, request: TransformRequest, algorithm: str, output: Layout | None
) -> Sequence[Walk]:
    """The walks that a transform may go, in order of preference."""
    if algorithm != "auto":
        return [walk_of(source, request, algorithm, output)]

    candidates = [*walks(choices(source, request, output))]
    if output is not None:
        with suppress(LayoutError):  # short ways cut axes into more parts, which may not divide an extent
            longer = build(source, ending(transpose(source, request), output), request)
            if not crowded(longer):  # no device comes to hold much more than its part
                candidates.append(longer)
    return candidates


def _lowered(candidates: Sequence[Walk], mesh: Any, norm: Norm, forward: bool) -> Iterator[LoweredWalk]:
    """Walks as functions of blocks; those with tables come last.

    Raises:
        PlanError: there is none.
    """
    refused, some = PlanError(f"no walk fits the mesh {mesh}"), False
    for tables, walk in product((False, True), candidates):
        try:
            for lowered in lowered_walks(walk, mesh, norm, forward, tables):
                some = True
                yield lowered
        except PlanError as error:
            refused = error
    if not some:
        raise refused


def _lowered_pair(candidates: Sequence[Walk], mesh: Any, norm: Norm) -> tuple[LoweredWalk, LoweredWalk]:
    """A walk and its inverse as functions of blocks, which are padded alike."""
    for forward in _lowered(candidates, mesh, norm, True):
        for backward in _lowered([forward.walk.inverse()], mesh, norm, False):
            if (backward.source, backward.target) == (forward.target, forward.source):
                return forward, backward
    raise PlanError("no walk and its inverse are padded alike\npad the array to extents that divide")


def _turned(forward: LoweredWalk, backward: LoweredWalk) -> tuple[LoweredWalk, LoweredWalk]:
    """The same with a spectrum in whose blocks the axes of the last transform are last, where XLA transforms them."""
    target, last = forward.target, [*chain(*[stage.acted_modes for stage in forward.walk.stages if stage.done][-1:])]
    order = tuple(sorted(range(target.order), key=lambda mode: mode in last))
    if target.layout.view is not None or order == tuple(range(target.order)):
        return forward, backward

    modes = tuple([target.layout.modes[mode] for mode in order])
    where = Layout(modes, name_modes([[mode] for mode in order])).on(target.shape, target.grid)
    return replace(forward, target=where, turned=order), replace(backward, source=where, turned=order)


def _along(values: npt.NDArray[Any], axis: int, target: Distribution, mesh: Any) -> Any:
    """Values along an axis as an array that broadcasts to one of a distribution."""
    shape = [extent if mode == axis else 1 for mode, extent in enumerate(target.shape)]
    whole = values.reshape([-1 if mode == axis else 1 for mode in range(len(shape))])
    if any(len(digits) != 1 for digits in target.digits):
        return from_global(np.broadcast_to(whole, target.shape), target, mesh)  # no axis is a mode of the block

    layout = target.layout
    own = zip(layout.modes, target.digits, strict=True)
    modes = [entries if digit.mode == axis else () for entries, (digit,) in own]
    return from_global(whole, replace(layout, modes=tuple(modes)).on(tuple(shape), target.grid), mesh)

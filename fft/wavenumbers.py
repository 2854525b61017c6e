"""Frequencies, wavenumbers and shells of the elements of a spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from typing import Any, Literal, get_args

import numpy as np

from rote.errors import LayoutError
from rote.layout.distribution import Distribution, distribute
from rote.layout.layout import Layout, as_layout
from rote.layout.refine import with_components
from rote.runtime.comm.protocol import Array, Comm
from rote.tensor import DistTensor

from .request import normal_axes
from .transforms import HALVING, KINDS, real_dtype
from .walk import Walk

__all__ = ["NYQUIST", "Lengths", "Nyquist", "Wavenumbers", "chosen_axes", "frequencies", "local_wavenumbers"]
__all__ += ["shell_sums", "shells", "spectrum_at", "wavenumber_tensors", "wavenumbers"]

Lengths = float | Sequence[float]

Nyquist = Literal["keep", "zero"]
NYQUIST: tuple[Nyquist, ...] = get_args(Nyquist)
"""The treatments of the highest wavenumber of an even extent by `wavenumbers`."""


def frequencies(walk: Walk, axes: tuple[int, ...], indices: Sequence[Array], d: Lengths) -> tuple[Array, ...]:
    """The frequencies of the elements at some global indices of a spectrum; see `rote.fft.fftfreq`."""
    rows = []
    for axis, at, spacing in zip(axes, indices, _lengths(d, axes, "spacing d"), strict=True):
        turn = 1 / (walk.sizes[axis] * spacing)  # spacing of the signal's points, even if the spectrum is resampled
        rows.append((_harmonics(walk, axis, at) * turn).astype(real_dtype(walk.dtype), copy=False))
    return tuple(rows)


def wavenumbers(
    walk: Walk, axes: tuple[int, ...], indices: Sequence[Array], L: Lengths, nyquist: Nyquist
) -> tuple[Array, ...]:
    """The angular wavenumbers 2 pi k / L at some global indices of a spectrum; see `FFT.wavenumbers`.

    Args:
        indices: per axis of `axes`, an array of indices along it.
    """
    if nyquist not in NYQUIST:
        raise LayoutError(f"nyquist is one of {', '.join(NYQUIST)}; not {nyquist!r}")

    rows = []
    for axis, at, length in zip(axes, indices, _lengths(L, axes, "length L"), strict=True):
        half_turns, n = KINDS[walk.kinds[axis]].first is not None, walk.points[axis]
        index = _harmonics(walk, axis, at)
        if nyquist == "zero" and not half_turns:
            index = np.where(2 * abs(index) == n, 0, index)

        turn = 8 * np.arctan(type(length)(1)) / length  # 2 pi, in the precision of the length
        if half_turns:
            turn = turn / 2
        rows.append((index * turn).astype(real_dtype(walk.dtype), copy=False))
    return tuple(rows)


def shells(walk: Walk, axes: tuple[int, ...], indices: Sequence[Array], L: Lengths) -> tuple[Array, Array, int]:
    """The shells of the elements at some global indices of a spectrum; see `FFT.shell_sums`.

    Returns:
        The number of each element's shell; how many elements of a whole spectrum it stands for; the number of shells.
    """
    width = 2 * pi / float(max(_lengths(L, axes, "length L"), default=2 * pi))
    square = sum((k.astype(float) ** 2 for k in wavenumbers(walk, axes, indices, L, "keep")), np.zeros(()))

    whole = [np.arange(walk.target.shape[axis]) for axis in axes]
    most = sum(max(k.astype(float) ** 2, default=0) for k in wavenumbers(walk, axes, whole, L, "keep"))

    stands_for = np.ones(())
    for axis, at in zip(axes, indices, strict=True):
        if walk.kinds[axis] in HALVING or KINDS[walk.kinds[axis]].parts == "halves":
            mirrors_itself = 2 * at % walk.points[axis] == 0
            stands_for = np.where(mirrors_itself, 1.0, 2.0)

    numbers = np.floor(np.sqrt(square) / width + 0.5).astype(np.int64)
    return numbers, stands_for, int(np.sqrt(most) / width + 0.5) + 1


def _harmonics(walk: Walk, axis: int, index: Array) -> Array:
    """The harmonics at some indices along an axis of a transform, in turns per size of the transform."""
    kind, n = walk.kinds[axis], walk.points[axis]
    first = KINDS[kind].first
    if first is not None:
        shifted: Array = index + first
        return shifted
    if KINDS[kind].parts == "halves":
        mirrored: Array = np.minimum(index, n - index)
        return mirrored
    return index if kind in HALVING else np.where(index < (n + 1) // 2, index, index - n)


def _lengths(lengths: Lengths, axes: tuple[int, ...], name: str) -> list[np.floating[Any]]:
    """One length per axis of a transform, in double precision, or in longer precision if it is given so."""
    values = np.asarray(lengths)
    if values.dtype.kind not in "iuf" or values.ndim > 1:
        raise LayoutError(f"the {name} is a number, or one per axis, not {lengths!r}")
    if values.ndim and len(values) != len(axes):
        raise LayoutError(f"the {name} is one number, or one for each of the axes {axes}, not {len(values)} of them")
    if not (np.isfinite(values) & (values > 0)).all():
        raise LayoutError(f"the {name} is positive and finite, not {lengths!r}")
    return list(np.broadcast_to(values.astype(np.result_type(values, np.float64)), len(axes)))


# --- tensors of them --------------------------------------------------------------------------------------------------


class Wavenumbers(DistTensor):
    """A tensor of wavenumbers, or of functions of them, which combines with tensors and numbers.

    An array with as many modes is refused: a tensor takes it for a whole one, but next to wavenumbers it is most likely
    a block of a spectrum, which has the shape of the whole one where there is one rank.
    """

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        operands = (*inputs, *kwargs.get("out", ()))
        order = min(self.ndim, self.local.ndim)  # a view may have fewer modes
        if any(isinstance(x, np.ndarray) and x.ndim >= order > 0 for x in operands):
            raise LayoutError(
                f"numpy.{ufunc.__name__} of an array and of the wavenumbers of a whole spectrum\n"
                "write f.local_wavenumbers() for those of a block such as X.local, or X * k of the tensor X itself\n"
                "make a tensor of an array that every rank has whole: DistTensor.from_global(array, layout)"
            )

        result = super().__array_ufunc__(ufunc, method, *inputs, **kwargs)
        tensors = [x for x in operands if isinstance(x, DistTensor)]
        return result if all(isinstance(x, Wavenumbers) for x in tensors) else _plain(result)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _plain(super().__array_function__(function, types, args, kwargs))


def _plain(result: Any) -> Any:
    """A result that is a tensor as any other."""
    if isinstance(result, Wavenumbers):
        return DistTensor._wrap(result.local, result.distribution, result.comm)
    return tuple(map(_plain, result)) if type(result) is tuple else result


def spectrum_at(walk: Walk, layout: Layout | str | None) -> Distribution:
    """The distribution of a spectrum in a layout, on the grid on which it is transformed; that of it, if None."""
    target = walk.target
    return target if layout is None else distribute(as_layout(layout), target.shape, target.grid)


def chosen_axes(axes: Sequence[int] | int | None, transformed: tuple[int, ...], order: int) -> tuple[int, ...]:
    """The axes that a call names, all that are transformed if None.

    Raises:
        LayoutError: one of them is not transformed.

    >>> chosen_axes((0, -1), (0, 1, 2), 3)
    (0, 2)
    """
    if axes is None:
        return transformed
    named = normal_axes(axes, order)
    if not {*named} <= {*transformed}:
        raise LayoutError(f"wavenumbers are of transformed axes, {transformed}, not of {named}")
    return named


def local_wavenumbers(
    walk: Walk, target: Distribution, axes: tuple[int, ...], comm: Comm, L: Lengths, nyquist: Nyquist
) -> tuple[Array, ...]:
    """The wavenumbers of this rank's block of a spectrum in any layout; see `FFT.local_wavenumbers`."""
    indices = target.tensor_indices(comm.rank)
    return wavenumbers(walk, axes, [indices[axis] for axis in axes], L, nyquist)


def wavenumber_tensors(
    walk: Walk, target: Distribution, axes: tuple[int, ...], comm: Comm, L: Lengths, nyquist: Nyquist
) -> tuple[Wavenumbers, ...]:
    """The wavenumbers of a spectrum in any layout as tensors that broadcast to it; see `FFT.wavenumbers`."""
    layout, order = target.layout, len(target.shape)
    if layout.view is not None:  # no tensor of one axis has blocks that broadcast to those of a view
        shape, blocks = target.local_shape(comm.rank), local_wavenumbers(walk, target, axes, comm, L, nyquist)
        return tuple([Wavenumbers(np.broadcast_to(block, shape).copy(), target, comm) for block in blocks])

    ends = []
    for axis in axes:
        modes = tuple([layout.modes[axis] if mode == axis else () for mode in range(order)])
        shape = tuple([target.shape[axis] if mode == axis else 1 for mode in range(order)])
        ends.append(Layout(modes, rooted=layout.rooted).on(shape, target.grid))

    indices = [end.indices(comm.rank)[axis] for end, axis in zip(ends, axes, strict=True)]
    blocks = wavenumbers(walk, axes, indices, L, nyquist)
    return tuple([Wavenumbers(k.reshape(e.local_shape(comm.rank)), e, comm) for k, e in zip(blocks, ends, strict=True)])


def shell_sums(walk: Walk, axes: tuple[int, ...], values: DistTensor, L: Lengths) -> Array:
    """The sums of values over the shells of a spectrum; see `FFT.shell_sums`."""
    target, comm = walk.target, values.comm
    front = values.ndim - len(target.shape)
    if front < 0 or values.distribution != with_components(target, values.shape[:front]):
        raise LayoutError(
            f"shell_sums takes a tensor in the layout of the spectrum, {target}, not in {values.distribution}\n"
            "write abs(X) ** 2 of a spectrum X of f.forward, or values.redistribute(f.output_layout)"
        )
    if values.dtype.kind not in "fiub":
        raise LayoutError(f"shell_sums takes real numbers, such as abs(X) ** 2, not {values.dtype}")

    indices = target.tensor_indices(comm.rank)
    numbers, stands_for, count = shells(walk, axes, [indices[axis] for axis in axes], L)

    block = values.local.sum(axis=tuple(range(front)), dtype=np.float64)
    numbers, weighted = np.broadcast_arrays(numbers, stands_for * block)
    sums = np.bincount(numbers.ravel(), weighted.ravel(), count).astype(np.float64)  # of nothing it counts integers

    # Each rank adds its own elements; a replica counts once.
    split = tuple(sorted({entry.grid_mode for mode in target.layout.modes for entry in mode}))
    partial = Layout(((),), partial=split, rooted=target.layout.rooted).on((count,), target.grid)
    return DistTensor(sums[: partial.local_shape(comm.rank)[0]], partial, comm).to_global()

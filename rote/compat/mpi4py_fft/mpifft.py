"""Transforms of tensors that are distributed in pencils, which are walks of Rote."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import rote

from .fftw.factory import Plan
from .libfft import FFT, Transforms, actions_of, factors_of, plans
from .pencil import Array, Pencil, Subcomm, axes_of

__all__ = ["FFT", "PFFT", "Pencil", "Subcomm", "Transform"]


class Transform:
    """A chain of local transforms, with moves between them from an output to the next input.

    The transforms `xfftn` have an `input_array` and an `output_array`, and take the keywords of a call; `pencil` has
    the pencils of the first input and the last output. Calls without arrays use these two.
    """

    input_array: Final = property(lambda self: self._xfftn[0].input_array)
    output_array: Final = property(lambda self: self._xfftn[-1].output_array)
    input_pencil: Final = property(lambda self: self._pencil[0])
    output_pencil: Final = property(lambda self: self._pencil[1])

    def __init__(self, xfftn: Sequence[Any], transfer: Sequence[Callable[..., Any]], pencil: Sequence[Any]) -> None:
        self._xfftn, self._transfer, self._pencil = tuple(xfftn), tuple(transfer), tuple(pencil)

    def __call__(self, input_array: Array | None = None, output_array: Array | None = None, **kw: Any) -> Any:
        """Transform; `normalize` says whether to scale."""
        if isinstance(self._xfftn[0], Plan):  # it uses the given arrays directly
            return self._xfftn[0](input_array, output_array, **kw)

        if input_array is not None:
            self.input_array[...] = input_array

        for (before, after), move in zip(pairwise(self._xfftn), self._transfer, strict=True):
            before(**kw)
            move(before.output_array, after.input_array)
        self._xfftn[-1](**kw)

        if output_array is None:
            return self.output_array
        output_array[...] = self.output_array
        return output_array


class PFFT:
    """A parallel transform of one shape, planned once: one walk of Rote, which begins with the last group of axes.

    Arguments are those of mpi4py-fft; `backend` and planning flags have no effect. `xfftn` are the walk's lines, and
    `transfer` the pairs of lines between which the tensor moves. `destroy` frees the communicators of this transform.

    Examples
    --------
    >>> import numpy as np, rote
    >>> from rote.compat.mpi4py_fft import PFFT
    >>> fft = PFFT(rote.runtime.world(), (4, 6))
    >>> fft.forward(np.ones((4, 6)))[0, 0], fft.backward().sum()
    (np.complex128(1+0j), np.float64(24.0))
    """

    def __init__(self, comm: Any, shape: Sequence[int] | None = None, axes: Any = None, dtype: npt.DTypeLike = float,
                 grid: Sequence[int] | None = None, padding: Any = False, collapse: bool = False, backend: str = "fftw",
                 transforms: Transforms = None, darray: Any = None, slab: Any = False, **kw: Any) -> None:  # fmt: skip
        if darray is not None:
            comm, dtype = darray.pencil.subcomm, darray.dtype
            shape = darray.pencil.shape if shape is None else shape
        if shape is None:
            raise rote.LayoutError("PFFT takes the shape of a tensor, or a DistArray\nwrite PFFT(comm, shape)")

        extents, dtype = list(map(int, shape)), np.dtype(dtype)
        order = len(extents)
        if axes is None:  # the whole axis comes last
            turn = 0 if darray is None else order - 1 - darray.alignment
            axes = np.roll(range(order), turn).tolist()

        groups = [axes_of(group, order) for group in (axes if isinstance(axes, Iterable) else [axes])]
        if not groups or not all(groups):
            raise rote.LayoutError(f"each group of axes names one or more, not as in {axes!r}\nwrite axes=(0, 1)")

        factors = factors_of(padding, order)
        flat = [*chain(*groups)]

        # Padded axes are transformed at their full length, and their spectra are cut to the points that were asked for.
        cut = {axis: extents[axis] for axis in flat if factors[axis] > 1 + 1e-6}
        padded = [int(n * factors[axis]) if axis in cut else n for axis, n in enumerate(extents)]

        if not isinstance(comm, Subcomm):
            sizes = _usual_grid(groups[-1], order, slab) if grid is None else [*grid]
            comm = Subcomm(comm, sizes + [1] * (order - len(sizes)))
        self.subcomm: Subcomm = comm

        whole = {axis for axis, mode in enumerate(self.subcomm.modes) if mode == ()}
        if collapse:
            groups = _collapsed(groups, whole)
        if not {*groups[-1]} <= whole:
            raise rote.LayoutError(f"axes {groups[-1]} are transformed first, but some rank has only a part of them")

        self.axes: tuple[tuple[int, ...], ...] = tuple(map(tuple, groups))
        self.collapse: bool = collapse
        self.xfftn: list[str] = []

        first = last = Pencil(self.subcomm, padded, groups[-1][-1])
        real = dtype.kind == "f"
        for group in reversed(groups):
            last = last.pencil(group[-1])
            actions, real = actions_of(group, real, transforms, cut)
            self.xfftn.append(f"{last.on().layout}: {actions}")

        self.transfer: list[tuple[str, str]] = list(pairwise(self.xfftn))
        self._own = darray is None
        walk = "\n".join(self.xfftn)
        onward, back = plans(padded, self.subcomm.grid, self.subcomm.comm, dtype, flat, walk, kw)

        self.pencil: list[Pencil] = [first, Pencil(last.subcomm, onward.transform.output_shape, last.axis)]
        self.forward: Transform = Transform([onward], [], self.pencil)
        self.backward: Transform = Transform([back], [], self.pencil[::-1])

    dimensions: Final = property(lambda self: len(self.pencil[0].shape), doc="The number of axes.")

    def destroy(self) -> None:
        """Free the communicators, except those of `darray`."""
        if self._own:
            self.subcomm.destroy()

    def shape(self, forward_output: bool = True) -> tuple[int, ...]:
        """The shape of this rank's block of the spectrum, or of the signal."""
        return self.pencil[forward_output].subshape

    def local_slice(self, forward_output: bool = True) -> tuple[slice, ...]:
        """The slices of the whole spectrum, or signal, that this rank's block holds."""
        return self.pencil[forward_output].slices

    def global_shape(self, forward_output: bool = False) -> tuple[int, ...]:
        """The shape of the whole signal, or spectrum."""
        return self.pencil[forward_output].shape

    def dtype(self, forward_output: bool = False) -> Any:
        """The dtype of the signal, or of the spectrum."""
        return (self.forward.input_array, self.forward.output_array)[forward_output].dtype


def _usual_grid(first: Sequence[int], order: int, slab: Any) -> list[int]:
    """The ranks along each axis, 0 for any number: the axes that are transformed first stay whole; for a slab, all but
    one."""
    if slab is None or slab is False:
        return [int(axis in first) for axis in range(order)]
    split = (first[-1] + 1) % order if slab is True else axes_of(slab, order)[0]
    return [int(axis != split) for axis in range(order)]


def _collapsed(groups: Sequence[list[int]], whole: set[int]) -> list[list[int]]:
    """Merge a group of axes that is whole at first with the next group in the list, which is transformed before it."""
    merged: list[list[int]] = [[]]
    for group in reversed(groups):
        if {*group} <= whole:
            merged[0] = [*group, *merged[0]]
        else:
            merged.insert(0, group)
    return merged

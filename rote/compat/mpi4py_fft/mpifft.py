"""Transforms of tensors that lie in pencils on many ranks: walks of Rote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import rote

from .libfft import Transforms, plans, texts
from .pencil import Array, Pencil, Subcomm


class Transform:
    """Functions that transform arrays of this rank, and between any two one that moves an output to the next input.

    `xfftn` have an `input_array` and an `output_array`, and take the keywords of a call; `pencil` says where the first
    input and the last output lie. A call takes and returns these arrays where it is given none.
    """

    input_array: Final = property(lambda self: self._xfftn[0].input_array)
    output_array: Final = property(lambda self: self._xfftn[-1].output_array)
    input_pencil: Final = property(lambda self: self._pencil[0])
    output_pencil: Final = property(lambda self: self._pencil[1])

    def __init__(self, xfftn: Sequence[Any], transfer: Sequence[Callable[..., Any]], pencil: Sequence[Any]) -> None:
        self._xfftn, self._transfer, self._pencil = tuple(xfftn), tuple(transfer), tuple(pencil)

    def __call__(self, input_array: Array | None = None, output_array: Array | None = None, **kw: Any) -> Array:
        """Transform; `normalize` says whether with the factor."""
        if not self._transfer:
            whole: Array = self._xfftn[0](input_array, output_array, **kw)
            return whole
        if input_array is not None:
            self.input_array[...] = input_array
        for (before, after), move in zip(pairwise(self._xfftn), self._transfer, strict=True):
            before(**kw)
            move(before.output_array, after.input_array)
        self._xfftn[-1](**kw)
        result: Array = self.output_array
        if output_array is not None:
            output_array[...] = result
        return result if output_array is None else output_array


class PFFT:
    """A parallel transform of one shape, planned once: one walk of Rote, which begins with the last group of axes.

    Arguments are those of mpi4py-fft; `backend` and planning flags have no effect. `xfftn` are the walk's lines, and
    `transfer` the pencils between them. `destroy` frees the communicators that were made for it.

    >>> fft = PFFT(rote.runtime.world(), (4, 6))
    >>> fft.forward(np.ones((4, 6)))[0, 0], fft.backward().sum()
    (np.complex128(1+0j), np.float64(24.0))
    """

    axes: tuple[tuple[int, ...], ...]
    collapse: bool
    xfftn: list[str]
    transfer: list[Any]
    pencil: list[Pencil]
    forward: Transform
    backward: Transform

    def __init__(self, comm: Any, shape: Sequence[int] | None = None, axes: Any = None, dtype: npt.DTypeLike = float,
                 grid: Sequence[int] | None = None, padding: Any = False, collapse: bool = False, backend: str = "fftw",
                 transforms: Transforms = None, darray: Any = None, slab: Any = False, **kw: Any) -> None:  # fmt: skip
        extents = list(map(int, darray.pencil.shape if shape is None else shape))
        order, dtype = len(extents), np.dtype(dtype if darray is None else darray.dtype)
        if axes is None:
            axes = np.roll(range(order), 0 if darray is None else order - 1 - darray.alignment).tolist()
        named = [axes] if isinstance(axes, int | np.integer) else axes
        groups = [[range(order)[a] for a in (group if isinstance(group, Sequence) else [group])] for group in named]
        factors = np.broadcast_to(padding or 1.0, order)
        kept = {a: extents[a] for group in groups for a in group if factors[a] > 1 + 1e-6}
        padded = [int(n * factors[a]) if a in kept else n for a, n in enumerate(extents)]
        if isinstance(comm, Subcomm) or darray is not None:
            self.subcomm = comm if darray is None else darray.pencil.subcomm
        elif grid is not None:
            self.subcomm = Subcomm(comm, [*grid, *[1] * (order - len(grid))])
        elif slab is None or slab is False:
            self.subcomm = Subcomm(comm, [int(a in groups[-1]) for a in range(order)])
        else:
            split = (groups[-1][-1] + 1) % order if slab is True else range(order)[slab]
            self.subcomm = Subcomm(comm, [int(a != split) for a in range(order)])
        whole = {a for a in range(order) if self.subcomm[a].size == 1}
        if self.subcomm.comm is None or not {*groups[-1]} <= whole:
            raise rote.LayoutError(f"axes {groups[-1]} are transformed first, but some rank has only a part of them")
        if collapse:
            merged: list[list[int]] = [[]]
            for group in reversed(groups):  # what is whole from the beginning goes with what comes next
                merged[:1] = [[*group, *merged[0]]] if {*group} <= whole else [group, merged[0]]
            groups = merged
        self.axes, self.collapse, self.xfftn, self.transfer = tuple(map(tuple, groups)), collapse, list[str](), []
        pencil, real = Pencil(self.subcomm, padded, groups[-1][-1]), dtype.kind == "f"
        self.pencil = [pencil, pencil]
        for group in reversed(groups):
            before = pencil.pencil(group[-1]) if self.xfftn else pencil
            self.transfer += [(pencil, before)] if self.xfftn else []
            text, still_real = texts(group, real, transforms, kept)
            self.xfftn.append(f"{before.layout}: {text}")
            sizes = [kept.get(a, n) if a in group else n for a, n in enumerate(before.shape)]
            sizes[group[-1]] = sizes[group[-1]] // 2 + 1 if real and not still_real else sizes[group[-1]]
            self.pencil[1] = pencil = Pencil(before.subcomm, sizes, group[-1])
            real = still_real
        flat = [a for group in groups for a in group]
        ranks, self._own = rote.runtime.as_comm(self.subcomm.comm), darray is None
        onward, back = plans(padded, self.subcomm.grid, ranks, dtype, flat, "\n".join(self.xfftn), kw)
        self.forward, self.backward = Transform([onward], [], self.pencil), Transform([back], [], self.pencil[::-1])

    dimensions: Final = property(lambda self: len(self.pencil[0].shape), doc="The number of axes.")

    def destroy(self) -> None:
        """Free the communicators, but those of `darray`."""
        if self._own:
            self.subcomm.destroy()

    def shape(self, forward_output: bool = True) -> tuple[int, ...]:
        """The shape of this rank's block of the spectrum, or of the signal."""
        return self.pencil[forward_output].subshape

    def local_slice(self, forward_output: bool = True) -> tuple[slice, ...]:
        """Where this rank's block lies in the whole."""
        return self.pencil[forward_output].slices

    def global_shape(self, forward_output: bool = False) -> tuple[int, ...]:
        """The shape of the whole signal, or spectrum."""
        return self.pencil[forward_output].shape

    def dtype(self, forward_output: bool = False) -> Any:
        """The dtype of the signal, or of the spectrum."""
        return (self.forward.output_array if forward_output else self.forward.input_array).dtype

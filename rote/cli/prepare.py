"""The options of `rote fft`, and the transform that they request: its walk, its run, and the tensors at both ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..compiler.explain import in_bytes
from ..errors import LayoutError
from ..layout.grid import check_grid
from ..layout.layout import Distribution, as_layout, distribute
from ..runtime.comm.protocol import Comm
from .options import refuse_too_many

if TYPE_CHECKING:
    from ..fft.plan import FFT
    from ..fft.request.request import TransformRequest
    from ..fft.walk.walk import Walk
    from ..runtime.tuning.autotune import Progress
    from ..tensor import DistTensor

__all__ = ["FileTransform", "Request", "prepare"]

_Run: TypeAlias = "Callable[[DistTensor], DistTensor]"


@dataclass(frozen=True, slots=True)
class Request:
    """The options of `rote fft`."""

    source: str
    target: str
    layout: str | None = None
    grid: tuple[int, ...] | None = None
    algorithm: str = "auto"
    inverse: bool = False
    real: bool | None = None
    length: int | None = None
    axes: tuple[int, ...] | None = None
    norm: str | None = None
    output: str | None = None
    check: bool = False
    tune: str = "model"
    threads: int | None = None
    force: bool = False


@dataclass(frozen=True, slots=True)
class FileTransform:
    """A request on an array: how to run it, and how to describe it."""

    walk: Walk
    run: _Run
    target: Distribution
    axes: tuple[int, ...]
    text: str

    @property
    def result(self) -> np.dtype[Any]:
        """The dtype of the elements of the result."""
        return self.walk.dtypes()[-1]


def prepare(
    request: Request, shape: tuple[int, ...], dtype: np.dtype[Any], comm: Comm, part: Progress | None
) -> FileTransform:
    """The walk of a request, bound; the same on every rank, errors included."""
    from ..fft.walk.walk import describe

    refuse_too_many(comm, request.threads or 1)
    real = request.real
    if real is None:
        real = dtype.kind != "c" and not request.inverse
    if request.inverse:
        fft = _backward(request, shape, dtype, comm, real, part)
        walk = fft.walk.inverse()
        plan = describe(walk, fft.axes)
        run: _Run = fft.backward
    else:
        if real and dtype.kind == "c":
            raise LayoutError(f"--real transforms real arrays, and {request.source} holds {dtype}; leave --real out")
        fft = _forward(request, shape, dtype, comm, real, part)
        walk, run, plan = fft.walk, fft.forward, str(fft)
    target = walk.target
    half = "real, so half a spectrum " if walk.kind == "rfft" else ""
    lines = [f"{request.source}: {shape} {dtype}, {half}as by numpy.fft.{walk.kind}n", plan]
    if request.output is not None:
        target = distribute(as_layout(request.output), target.shape, target.grid)
        if target.layout.partial:
            raise LayoutError(
                f"a file holds values, and {target.layout} contributions to them; give an --output without +"
            )
        lines.append(f"  output {target.layout}")
    size = in_bytes(prod(target.shape) * walk.dtypes()[-1].itemsize)
    lines.append(f"{request.target}: {target.shape} {walk.dtypes()[-1]}, {size}")
    return FileTransform(walk, run, target, fft.axes, "\n".join(lines) + "\n")


def _forward(
    request: Request, shape: tuple[int, ...], dtype: np.dtype[Any], comm: Comm, real: bool, part: Progress | None
) -> FFT:
    """The transform of the file."""
    from ..fft.request.arguments import normal_axes
    from ..fft.request.request import as_request
    from ..fft.transforms import complex_dtype, real_dtype

    kind = real_dtype(dtype) if real else complex_dtype(dtype)
    layout, grid = request.layout, request.grid
    if layout is None and request.algorithm == "auto" and all(shape):
        wanted = as_request(shape, normal_axes(request.axes, len(shape)), "rfft" if real else "fft", kind)
        begins = _begins(request, shape, wanted, comm)
        layout, grid = str(begins.layout), begins.grid.shape
    return _bound(request, comm, shape, layout, grid, kind, request.algorithm, part)


def _begins(request: Request, shape: tuple[int, ...], wanted: TransformRequest, comm: Comm) -> Distribution:
    """The distribution in which the transform of a file begins: one of the cheapest, in blocks if possible."""
    from ..fft.families.choose import best
    from ..fft.families.resolve import choices_for, walk_for
    from ..fft.request.arguments import as_arguments
    from ..runtime.tuning.calibrate import known_machine

    arguments = as_arguments(shape, wanted, comm.size, request.layout, request.grid, None)
    if request.layout is not None or request.algorithm != "auto":
        return walk_for(arguments, request.algorithm).source
    choices = choices_for(arguments, known_machine(comm))
    blocks = []
    for choice in choices:
        if choice.walk is not None and all(entry.kind.name == "block" for entry in chain(*choice.source.layout.modes)):
            blocks.append(choice)
    return best(blocks or choices).source


def _backward(
    request: Request, shape: tuple[int, ...], dtype: np.dtype[Any], comm: Comm, real: bool, part: Progress | None
) -> FFT:
    """The transform whose spectrum the file holds."""
    from ..fft.families.choose import best, choices
    from ..fft.request.arguments import normal_axes
    from ..fft.request.request import as_request
    from ..fft.transforms import complex_dtype, real_dtype

    axes, kind = normal_axes(request.axes, len(shape)), complex_dtype(dtype)
    begins = _begins(request, shape, as_request(shape, axes, "fft", kind), comm)
    check_grid(begins.grid, comm.size)
    extents = _restored(request, shape, axes) if real else None
    candidates = choices(begins, as_request(shape, axes, "irfft" if real else "ifft", kind, extents))
    walk = best(candidates)
    name = next(choice.name for choice in candidates if choice.walk == walk)
    result, grid = walk.target.shape, walk.target.grid.shape
    dtype = real_dtype(kind) if real else kind
    if name in ("cyclic", "volumetric"):  # whose way there is of the same family; it ends where the file is read
        ends = str(begins.layout)
        return _bound(request, comm, result, str(walk.target.layout), grid, dtype, name, part, ends)
    return _bound(request, comm, result, None, grid, dtype, str(walk.inverse()), part)


def _bound(
    request: Request,
    comm: Comm,
    shape: tuple[int, ...],
    layout: str | None,
    grid: tuple[int, ...] | None,
    dtype: np.dtype[Any],
    algorithm: str,
    part: Progress | None,
    output: str | None = None,
) -> FFT:
    """A transform, tuned as requested."""
    from ..fft.plan import FFT

    tuning: dict[str, Any] = {"tune": request.tune, "threads": request.threads or 1, "progress": part}
    return FFT(shape, layout, grid, comm, dtype, request.axes, algorithm, request.norm, output, **tuning)


def _restored(request: Request, shape: tuple[int, ...], axes: tuple[int, ...]) -> list[int]:
    """The extents, along the axes, of the real array whose half spectrum a file holds."""
    if not axes:
        raise LayoutError(f"a real transform needs at least one axis, and {shape} has none")
    points = shape[axes[-1]]
    if request.length is None or request.length // 2 + 1 != points:
        either = f"{2 * points - 2} or {2 * points - 1}" if points > 1 else "1"
        if request.length is not None:
            either += f", not {request.length}"
        raise LayoutError(
            f"{points} points of half a spectrum come from an extent of {either}; say which with --length"
        )
    return [*(shape[a] for a in axes[:-1]), request.length]

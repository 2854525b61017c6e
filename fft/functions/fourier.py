"""NumPy's transforms of distributed tensors: same names and conventions, with the layout as an argument."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rote.compiler.machine import DEFAULT
from rote.compiler.step import as_wire
from rote.errors import LayoutError
from rote.functions.moves import gathers_are_silent, records_open
from rote.layout.layout import Layout, as_layout
from rote.runtime.comm import segments
from rote.runtime.comm.cache import cached
from rote.tensor import DistTensor

from ..families.choose import walk_of, warn_if_gathered
from ..families.registry import is_text
from ..program.fields import list_moves
from ..program.program import BoundWalk, bind_walks
from ..request import (
    USUAL,
    Options,
    as_request,
    check_extents,
    check_norm,
    check_real,
    check_tensor,
    given_lengths,
    normal_axes,
    scale,
)
from ..transforms import FOURIER, FUNCTIONS, KINDS, complex_dtype, real_dtype

__all__ = ["Axes", "Lengths", "fftn", "ifftn", "irfftn", "rfftn", "transform"]

_DEPTH = 4  # calls between a user's call and the place where a walk is made
_KEPT = 16  # walks that a communicator keeps bound; each holds about two blocks of scratch

Axes = Sequence[int] | int | None
Lengths = Sequence[int] | int | None


def fftn(
    x: DistTensor,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
    wire: str | None = None,
) -> DistTensor:
    """Return the discrete Fourier transform along some axes, as `numpy.fft.fftn`.

    On a single rank, any number of threads may call this and the other functions at once; with several ranks, one
    thread of each rank at a time may use a communicator.

    Args:
        x: a tensor in any layout that has no view and is not partial; a real tensor is converted to complex.
        s: the lengths of the transforms along `axes`: x is cut or padded with zeros at its end, before it is sent. -1
            keeps an extent, None keeps all.
        axes: the axes to transform; if None, all, or the last ones if s has fewer lengths. An axis that is named twice
            is transformed twice, as by NumPy.
        norm: "backward" (the default), "ortho" or "forward".
        output: the layout of the spectrum; if None, the one in which the walk ends, which is the cheapest.
        algorithm: one of `rote.fft.algorithms`; "auto" takes the cheapest walk from x's layout, on the machine that
            `rote tune` measured with as many ranks, or on the default one.
        wire: "f4" rounds double precision to single in messages, which halves their bytes, as for `FFT`.

    Returns:
        A complex tensor of x's shape except for `s`, in `output` or in the layout in which the walk ends. x keeps its
        values.

    Raises:
        LayoutError: an axis has no points and no length in s, the layout has a view or is partial, or `output` does not
            fit.
        PlanError: `wire` has another value, or is given but x is not of double precision.
        TypeError: x is not a tensor.

    Source: Dalcin et al. (2019, eq. 5).

    >>> import numpy as np
    >>> x = DistTensor.from_global(np.arange(6.0).reshape(2, 3), "block[(0),()]")
    >>> bool(np.allclose(fftn(x).to_global(), np.fft.fftn(np.arange(6.0).reshape(2, 3))))
    True
    """
    return transform("fft", x, s, axes, norm, output, algorithm, wire)


def ifftn(
    X: DistTensor,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
    wire: str | None = None,
) -> DistTensor:
    """The inverse transform, as `numpy.fft.ifftn`; for a result of `fftn`, it restores the layout before `fftn`.

    Arguments, result and errors are those of `fftn`.

    >>> import numpy as np
    >>> x = DistTensor.from_global(np.arange(3.0), "block[(0)]")
    >>> ifftn(fftn(x)).real.to_global().round(12).tolist()
    [0.0, 1.0, 2.0]
    """
    return transform("ifft", X, s, axes, norm, output, algorithm, wire)


def rfftn(
    x: DistTensor,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
    wire: str | None = None,
) -> DistTensor:
    """The transform of a real tensor, as `numpy.fft.rfftn`: half the spectrum, n//2 + 1 points on the last axis.

    Arguments, result and errors are those of `fftn`; a complex tensor is refused as well.

    >>> rfftn(DistTensor.zeros((4, 6), "block[(0),()]")).shape
    (4, 4)
    """
    return transform("rfft", x, s, axes, norm, output, algorithm, wire)


def irfftn(
    X: DistTensor,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
    wire: str | None = None,
) -> DistTensor:
    """Return the real tensor of half a spectrum, as `numpy.fft.irfftn`.

    Args:
        s: the extents of the result along `axes`. If None, the last one is even, 2(m - 1) for m points; so pass an odd
            extent explicitly.

    The other arguments and errors are those of `fftn`.

    Returns:
        A real tensor. X keeps its values.

    >>> import numpy as np
    >>> x = DistTensor.from_global(np.arange(5.0), "block[(0)]")
    >>> irfftn(rfftn(x), s=x.shape).to_global().round(12).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    return transform("irfft", X, s, axes, norm, output, algorithm, wire)


def transform(
    kind: str,
    x: DistTensor,
    s: Lengths,
    axes: Axes,
    norm: str | None,
    output: Layout | str | None,
    algorithm: str,
    wire: str | None = None,
    orthogonalize: bool | None = None,
    name: str = "",
) -> DistTensor:
    """The transform of a kind (a key of `FUNCTIONS`); the rest is as for `fftn` and `dctn`.

    Public functions call it directly: a warning counts the calls from here to the user's.

    Args:
        name: of the public function, for errors; that of the one for any axes if empty.
    """
    function = FUNCTIONS[kind]
    (check_real if kind == "rfft" else check_tensor)(x, name or function.name)
    if axes is None and isinstance(s, Sequence):
        axes = range(-len(s), 0)
    distribution, block, comm = x.distribution, x.local, x.comm
    named, lengths = normal_axes(axes, len(distribution.shape), kind in FOURIER), given_lengths(s, "s")
    norm = check_norm(norm)
    if len({*named}) < len(named):
        return _one_by_one(kind, x, named, lengths, norm, output, algorithm, wire)
    if orthogonalize not in (None, True, False):
        raise LayoutError(f"orthogonalize is True, False or None; not {orthogonalize!r}")
    weighted = norm == "ortho" if orthogonalize is None else orthogonalize
    side = KINDS[function.kind].real
    is_real = side == "input" or (side == "both" and block.dtype.kind != "c")
    dtype = real_dtype(block.dtype) if is_real else complex_dtype(block.dtype)
    where = None if output is None else as_layout(output)

    key = (distribution, kind, dtype, named, lengths, algorithm, where, norm, weighted, wire)

    def make() -> BoundWalk:
        check_extents(distribution.shape, named, lengths)
        if side in ("input", "output") and not named:
            raise LayoutError(f"{function.name} needs at least one axis")
        wanted = as_request(distribution.shape, named, kind, dtype, lengths)
        as_wire(wire, dtype)
        options = USUAL if wire is None else Options(wire=wire)
        machine = options.priced_machine(comm) if algorithm == "auto" else DEFAULT
        walk = walk_of(distribution, wanted, algorithm, where, machine)
        if algorithm == "auto" and wire is not None:
            walk = replace(walk, machine=options.machine_on(comm))
        bound = BoundWalk(walk, comm, scale(norm, walk.sizes, wanted.forward), weighted, options)
        bind_walks(comm, bound)
        if not (is_text(algorithm) or gathers_are_silent()):
            warn_if_gathered(walk, wanted, comm, _DEPTH)
        return bound

    bound = cached(comm, "walks", key, make, _KEPT, (function.name, key))
    target = bound.target
    if records_open.get():
        list_moves(bound.walk, x, function.name)
    out = segments.empty(target.local_shape(comm.rank), bound.dtypes[-1])
    bound(block.astype(dtype, copy=False), out)
    return DistTensor._wrap(out, target, comm)


def _one_by_one(
    kind: str,
    x: DistTensor,
    axes: tuple[int, ...],
    s: tuple[int, ...] | None,
    norm: str,
    output: Layout | str | None,
    algorithm: str,
    wire: str | None,
) -> DistTensor:
    """The transform along axes of which one is named more than once: in NumPy's order, each with its length."""
    check_extents(x.shape, axes, s)
    points, last = as_request(x.shape, axes, kind, x.dtype, s).points, len(axes) - 1
    order = range(last + 1) if kind == "irfft" else range(last, -1, -1)
    for n in order:
        along = kind if n == last else KINDS[kind].others
        ends = output if n == order[-1] else None
        x = transform(along, x, points[n], axes[n], norm, ends, algorithm, wire)
    return x

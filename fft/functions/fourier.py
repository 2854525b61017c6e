"""Transforms of distributed tensors under NumPy's and SciPy's names: same conventions, with layouts as arguments.

All call one function, `transform`: it plans a walk when its arguments are new, keeps the bound walk on the
communicator, and runs it. Functions of one signature form a family: each passes its arguments on to the family's model,
behind the kind of its transform.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, Final, ParamSpec

import numpy as np

from rote.compiler.step import as_wire
from rote.errors import LayoutError
from rote.functions.moves import gathers_are_silent, records_open
from rote.functions.rules import written
from rote.layout.layout import Layout, as_layout
from rote.machines.machine import DEFAULT
from rote.runtime.comm import segments
from rote.runtime.comm.agreement import agree
from rote.runtime.comm.cache import cached
from rote.tensor import DistTensor

from ..families import is_text
from ..families.choose import walk_of, warn_if_gathered
from ..program.program import BoundWalk, bind_walks, list_moves
from ..request import (
    USUAL,
    Axes,
    Lengths,
    Norm,
    as_request,
    check_extents,
    check_norm,
    check_real,
    check_tensor,
    given_length,
    given_lengths,
    normal_axes,
    scale,
)
from ..transforms import FOURIER, FUNCTIONS, KINDS, complex_dtype, real_dtype

__all__ = ["HINTS", "dct", "dctn", "dht", "dst", "dstn", "fft", "fft2", "fftn", "hc2r", "hfft", "idct"]
__all__ += ["idctn", "idst", "idstn", "ifft", "ifft2", "ifftn", "ihfft", "irfft", "irfft2", "irfftn", "r2hc", "rfft"]
__all__ += ["rfft2", "rfftn", "transform"]

P = ParamSpec("P")

_DEPTH = 5  # calls between a user's call and the place where a walk is made
_KEPT = 16  # walks that a communicator keeps bound; each holds about two blocks of scratch
_THREADS = "leave it out: a rank transforms on one thread; rote.fft.FFT(…, threads=…) takes more"
HINTS: Final[Mapping[str, str]] = {
    "out": "plan it: f = rote.fft.FFT(x.shape, x.layout, …), and write f.forward(x, out=…) or f.backward(X, out=…)",
    "workers": _THREADS,
    "threads": _THREADS,
    "overwrite_x": "leave it out: x keeps its values; f = rote.fft.FFT(…) has f.forward(x, out=x)",
    "plan": "leave it out: rote.fft.FFT(…) is a plan",
    "layout": "write output=… for the layout of the result",
}
"""What to write in place of arguments that other libraries take, or other functions of Rote."""

_SWAPPED: dict[Norm, Norm] = {"forward": "backward", "backward": "forward", "ortho": "ortho"}


def _member(
    model: Callable[Concatenate[Any, P], DistTensor], kind: str
) -> Callable[[Callable[[], None]], Callable[P, DistTensor]]:
    """Make a member of a family from its name and docstring: it calls the model behind the kind of its transform."""
    return lambda shown: written(shown.__name__, shown.__doc__, model, kind, HINTS)


def _along_axes(
    kind: str,
    x: DistTensor,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
    wire: str | None = None,
) -> DistTensor:
    return transform(kind, x, s, axes, norm, output, algorithm, wire)


@_member(_along_axes, "fft")
def fftn() -> None:
    """Return the discrete Fourier transform along some axes, as `numpy.fft.fftn`.

    On a single rank, any number of threads may call this and the other functions; with several ranks, one
    thread of each rank at a time may use a communicator.

    Parameters
    ----------
    x : DistTensor
        A tensor in any layout that has no view and is not partial; a real tensor is converted to complex.
    s : Sequence[int] | int, optional
        The lengths of the transforms along `axes`: x is cut or padded with zeros at its end, before it is sent. -1
        keeps an extent, None keeps all.
    axes : Sequence[int] | int, optional
        The axes to transform; if None, all, or the last ones if s has fewer lengths. An axis that is named twice is
        transformed twice, as by NumPy.
    norm : str, optional
        "backward" (the default), "ortho" or "forward".
    output : Layout | str, optional
        The layout of the spectrum; if None, the one in which the walk ends, which is the cheapest.
    algorithm : str, default 'auto'
        One of `rote.fft.algorithms`; "auto" takes the cheapest walk from x's layout, on the machine that `rote tune`
        measured with as many ranks, or on the default one.
    wire : str, optional
        "f4" rounds double precision to single in messages, which halves their bytes, as for `FFT`.

    Returns
    -------
    DistTensor
        A complex tensor of x's shape except for `s`, in `output` or in the layout in which the walk ends. x keeps its
        values.

    Raises
    ------
    LayoutError
        An axis has no points and no length in s, the layout has a view or is partial, or `output` does not fit.
    PlanError
        `wire` has another value, or is given but x is not of double precision.
    TypeError
        x is not a tensor.

    See Also
    --------
    rote.fft.ifftn : The inverse.
    rote.fft.rfftn : The transform of real numbers.
    rote.fft.FFT : Plan once, run again and again.

    Notes
    -----
    Source: Dalcin et al. (2019, eq. 5).

    Examples
    --------
    >>> import numpy as np, rote
    >>> x = rote.DistTensor.from_global(np.arange(6.0).reshape(2, 3), "block[(0),()]")
    >>> bool(np.allclose(rote.fft.fftn(x).to_global(), np.fft.fftn(np.arange(6.0).reshape(2, 3))))
    True
    """


@_member(_along_axes, "ifft")
def ifftn() -> None:
    """The inverse transform, as `numpy.fft.ifftn`; for a result of `fftn`, it restores the layout before `fftn`.

    Arguments, result and errors are those of `fftn`.

    Examples
    --------
    >>> import numpy as np, rote
    >>> x = rote.DistTensor.from_global(np.arange(3.0), "block[(0)]")
    >>> rote.fft.ifftn(rote.fft.fftn(x)).real.to_global().round(12).tolist()
    [0.0, 1.0, 2.0]
    """


@_member(_along_axes, "rfft")
def rfftn() -> None:
    """The transform of a real tensor, as `numpy.fft.rfftn`: half the spectrum, n//2 + 1 points on the last axis.

    Arguments, result and errors are those of `fftn`; a complex tensor is refused as well.

    Examples
    --------
    >>> import rote
    >>> rote.fft.rfftn(rote.DistTensor.zeros((4, 6), "block[(0),()]")).shape
    (4, 4)
    """


@_member(_along_axes, "irfft")
def irfftn() -> None:
    """Return the real tensor of half a spectrum, as `numpy.fft.irfftn`.

    Parameters
    ----------
    s : Sequence[int] | int, optional
        The extents of the result along `axes`. If None, the last one is even, 2(m - 1) for m points; so pass an odd
        extent explicitly.

    Returns
    -------
    DistTensor
        A real tensor. x keeps its values.

    See Also
    --------
    rote.fft.rfftn : The transform that it inverts.

    Notes
    -----
    The other arguments and errors are those of `fftn`.

    Examples
    --------
    >>> import numpy as np, rote
    >>> x = rote.DistTensor.from_global(np.arange(5.0), "block[(0)]")
    >>> rote.fft.irfftn(rote.fft.rfftn(x), s=x.shape).to_global().round(12).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """


# --- transforms of real numbers: cosines and sines, Hartley's, and FFTW's halfcomplex order ---------------------------


def _cosines(
    family: str,
    x: DistTensor,
    type: int = 2,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
    *,
    orthogonalize: bool | None = None,
) -> DistTensor:
    return transform(cosines(family, type), x, s, axes, norm, output, algorithm, None, orthogonalize)


def cosines(name: str, type: int) -> str:
    """The key in `FUNCTIONS` of a cosine or sine transform of a type.

    Raises:
        LayoutError: there is no such type.
    """
    if type not in (1, 2, 3, 4):
        raise LayoutError(f"type is 1, 2, 3 or 4; not {type!r}")
    return f"{name}{int(type)}"


@_member(_cosines, "dct")
def dctn() -> None:
    """Return the discrete cosine transform along some axes, as `scipy.fft.dctn`.

    Parameters
    ----------
    x : DistTensor
        A tensor in any layout that has no view and is not partial. The real and imaginary parts of a complex tensor are
        transformed separately.
    type : int, default 2
        1, 2, 3 or 4. Type 1 needs at least two points along each axis.
    norm : str, optional
        "backward" (the default), "ortho", which makes the transform orthogonal, or "forward".
    orthogonalize : bool, optional
        Whether the first and last points are weighted so that the transform is orthogonal but for a factor, as in
        SciPy; if None, with norm="ortho" only.

    Returns
    -------
    DistTensor
        A tensor of x's shape, except for `s`; real if x is, else complex.

    Notes
    -----
    The other arguments and errors are those of `fftn`; another type is refused as well, and so is an axis that is
    named twice.

    Examples
    --------
    >>> import numpy as np, rote
    >>> x = rote.DistTensor.from_global(np.ones((2, 3)), "block[(0),()]")
    >>> rote.fft.dctn(x).to_global().round(12).tolist()
    [[24.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """


@_member(_cosines, "idct")
def idctn() -> None:
    """The inverse of `dctn` of the same type and norm, as `scipy.fft.idctn`, in the layout before `dctn`.

    Arguments, result and errors are those of `dctn`.

    Examples
    --------
    >>> import numpy as np, rote
    >>> x = rote.DistTensor.from_global(np.arange(1.0, 4.0), "block[(0)]")
    >>> rote.fft.idctn(rote.fft.dctn(x, type=3), type=3).to_global().round(12).tolist()
    [1.0, 2.0, 3.0]
    """


@_member(_cosines, "dst")
def dstn() -> None:
    """The discrete sine transform along some axes, as `scipy.fft.dstn`.

    Arguments, result and errors are those of `dctn`; type 1 takes one point as well.

    Examples
    --------
    >>> import numpy as np, rote
    >>> rote.fft.dstn(rote.DistTensor.from_global(np.ones(2), "block[(0)]"), type=1).to_global().round(3).tolist()
    [3.464, 0.0]
    """


@_member(_cosines, "idst")
def idstn() -> None:
    """The inverse of `dstn` of the same type and norm, as `scipy.fft.idstn`, in the layout before `dstn`.

    Arguments, result and errors are those of `dstn`.

    Examples
    --------
    >>> import numpy as np, rote
    >>> x = rote.DistTensor.from_global(np.arange(1.0, 4.0), "block[(0)]")
    >>> rote.fft.idstn(rote.fft.dstn(x)).to_global().round(12).tolist()
    [1.0, 2.0, 3.0]
    """


@_member(_along_axes, "dht")
def dht() -> None:
    """Return the discrete Hartley transform along some axes: the sum of x[j] (cos + sin)(2 pi j k / n) over j.

    Along one axis it is the real part of the Fourier transform of a real tensor minus the imaginary part. Along several
    axes, each is transformed in turn, as by FFTW's DHT.

    Parameters
    ----------
    x : DistTensor
        A tensor in any layout that has no view and is not partial. The real and imaginary parts of a complex tensor are
        transformed separately.
    norm : str, optional
        "backward" (the default), which does not scale; "forward", which divides by the number of points and so inverts
        "backward"; or "ortho", with which the transform is its own inverse.

    Returns
    -------
    DistTensor
        A tensor of x's shape, except for `s`; real if x is, else complex.

    Notes
    -----
    The other arguments and errors are those of `fftn`.

    Source: Hartley (1942); Bracewell (1983).

    Examples
    --------
    >>> import rote
    >>> x = rote.DistTensor.from_global([1.0, 2.0, 3.0, 4.0], "block[(0)]")
    >>> X = rote.fft.dht(x)
    >>> X.to_global().round(12).tolist(), rote.fft.dht(X, norm="forward").to_global().round(12).tolist()
    ([10.0, -4.0, -2.0, 0.0], [1.0, 2.0, 3.0, 4.0])
    """


@_member(_along_axes, "r2hc")
def r2hc() -> None:
    """Return the Fourier transform of real numbers in FFTW's halfcomplex order: as many real numbers, along some axes.

    Along one axis of n points these are the real parts of `numpy.fft.rfft` from the first to the last, followed by
    the imaginary parts that are not always zero, from the last to the first: r0, r1, …, r(n/2), i((n+1)/2-1), …, i1.
    Along several axes, each is transformed in turn.

    Parameters
    ----------
    x : DistTensor
        A tensor in any layout that has no view and is not partial. The real and imaginary parts of a complex tensor are
        transformed separately.
    norm : str, optional
        "backward" (the default), "ortho" or "forward", as for `numpy.fft.rfft`.

    Returns
    -------
    DistTensor
        A tensor of x's shape, except for `s`; real if x is, else complex.

    Notes
    -----
    The other arguments and errors are those of `fftn`.

    Source: Frigo and Johnson (2005).

    Examples
    --------
    >>> import rote
    >>> x = rote.DistTensor.from_global([1.0, 2.0, 3.0, 5.0], "block[(0)]")
    >>> rote.fft.r2hc(x).to_global().round(12).tolist()
    [11.0, -2.0, -3.0, 3.0]
    """


@_member(_along_axes, "hc2r")
def hc2r() -> None:
    """The real tensor of spectra in FFTW's halfcomplex order: the inverse of `r2hc` with the same norm.

    Arguments, result and errors are those of `r2hc`.

    Examples
    --------
    >>> import rote
    >>> x = rote.DistTensor.from_global([1.0, 2.0, 3.0, 5.0, 4.0], "block[(0)]")
    >>> rote.fft.hc2r(rote.fft.r2hc(x)).to_global().round(12).tolist()
    [1.0, 2.0, 3.0, 5.0, 4.0]
    """


# --- Hermitian signals, and transforms along one axis or two ----------------------------------------------------------


def _hermitian(
    kind: str,
    x: DistTensor,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """A Hermitian signal equals its own mirrored conjugate, so half of it is kept, and its spectrum is real.

    Its transforms are those of real numbers with input and spectrum interchanged, and so with the norms swapped.
    """
    name = "hfft" if kind == "irfft" else "ihfft"
    check_tensor(x, name)
    swapped = _SWAPPED[check_norm(norm)]
    length = given_length(n)
    if kind == "irfft":
        return transform(kind, x.conj(), length, axis, swapped, output, algorithm)

    X = transform(kind, x, length, axis, swapped, output, algorithm, name=name)
    np.conjugate(X.local, out=X.local)
    return X


@_member(_hermitian, "irfft")
def hfft() -> None:
    """Return the real spectrum of half a Hermitian signal, along one axis, as `numpy.fft.hfft`.

    Parameters
    ----------
    x : DistTensor
        The points from 0 to n//2 along the axis; the others are their conjugates in reverse order.
    n : int, optional
        The number of points of the whole signal and of the spectrum; 2(m - 1) for m points if None, so an odd number
        must be given.
    axis : int, default -1
        The axis of the transform.
    norm : str, optional
        As for `rote.fft.fftn`.
    output : Layout | str, optional
        As for `rote.fft.fftn`.
    algorithm : str, default 'auto'
        As for `rote.fft.fftn`.

    Returns
    -------
    DistTensor
        A real tensor. x keeps its values.

    Notes
    -----
    Its errors are those of `rote.fft.fftn`.

    Examples
    --------
    >>> import rote
    >>> x = rote.DistTensor.from_global([4.0, 1j, 2.0], "block[(0)]")
    >>> rote.fft.hfft(x).to_global().round(12).tolist()
    [6.0, 4.0, 6.0, 0.0]
    """


@_member(_hermitian, "rfft")
def ihfft() -> None:
    """Return half the Hermitian signal of a real spectrum, along one axis, as `numpy.fft.ihfft`: the inverse of `hfft`.

    Parameters
    ----------
    x : DistTensor
        A real tensor.
    n : int, optional
        The length of the transform: x is cut to it or padded with zeros at its end; x's extent if None.

    Returns
    -------
    DistTensor
        A complex tensor with n//2 + 1 points along the axis.

    Notes
    -----
    The other arguments and errors are those of `hfft`; a complex tensor is refused as well.

    Examples
    --------
    >>> import rote
    >>> rote.fft.ihfft(rote.DistTensor.from_global([6.0, 4.0, 6.0, 0.0], "block[(0)]")).to_global().tolist()
    [(4-0j), 1j, (2-0j)]
    """


def _one_axis(
    kind: str,
    x: DistTensor,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
    wire: str | None = None,
) -> DistTensor:
    return transform(kind, x, given_length(n), (axis,), norm, output, algorithm, wire, None, kind)


def _two_axes(
    kind: str,
    x: DistTensor,
    s: Lengths = None,
    axes: Axes = (-2, -1),
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
    wire: str | None = None,
) -> DistTensor:
    return transform(kind, x, s, axes, norm, output, algorithm, wire, None, f"{kind}2")


def _cosines_of_one(
    family: str,
    x: DistTensor,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
    *,
    orthogonalize: bool | None = None,
) -> DistTensor:
    length = given_length(n)
    return transform(cosines(family, type), x, length, (axis,), norm, output, algorithm, None, orthogonalize, family)


_DOC = """The transform `{many}` along {count}, as `{package}.fft.{name}`.

Parameters
----------
{lengths}
    The same as `s` and `axes` of `{many}`, which also has the other arguments, the result and the errors.

Examples
--------
>>> import numpy as np, rote
>>> x = rote.DistTensor.from_global(np.arange(12.0).reshape(3, 4), "block[(0),()]")
>>> bool(np.allclose(rote.fft.{name}(x).to_global(), rote.fft.{many}(x, axes={axes}).to_global()))
True
"""
_ONE = {"count": "one axis", "lengths": "n, axis : int", "axes": "(-1,)"}
_TWO = {"count": "two axes, by default the last ones", "lengths": "s, axes : Sequence[int]", "axes": "(-2, -1)"}


def _of_few_axes(model: Callable[Concatenate[Any, P], DistTensor], kind: str) -> Callable[P, DistTensor]:
    """The function of a kind along one axis or two, with a docstring of its own."""
    package = "scipy" if model is _cosines_of_one else "numpy"
    words = _TWO if model is _two_axes else _ONE
    name = f"{kind}2" if model is _two_axes else kind
    return written(name, _DOC.format(name=name, many=f"{kind}n", package=package, **words), model, kind, HINTS)


fft: Final = _of_few_axes(_one_axis, "fft")
ifft: Final = _of_few_axes(_one_axis, "ifft")
rfft: Final = _of_few_axes(_one_axis, "rfft")
irfft: Final = _of_few_axes(_one_axis, "irfft")
fft2: Final = _of_few_axes(_two_axes, "fft")
ifft2: Final = _of_few_axes(_two_axes, "ifft")
rfft2: Final = _of_few_axes(_two_axes, "rfft")
irfft2: Final = _of_few_axes(_two_axes, "irfft")
dct: Final = _of_few_axes(_cosines_of_one, "dct")
idct: Final = _of_few_axes(_cosines_of_one, "idct")
dst: Final = _of_few_axes(_cosines_of_one, "dst")
idst: Final = _of_few_axes(_cosines_of_one, "idst")


# --- the one function -------------------------------------------------------------------------------------------------


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
    as_wire(wire, dtype)

    key = (distribution, kind, dtype, named, lengths, algorithm, where, norm, weighted, wire)

    def make() -> BoundWalk:
        check_extents(distribution.shape, named, lengths)
        if side in ("input", "output") and not named:
            raise LayoutError(f"{function.name} needs at least one axis")

        request = as_request(distribution.shape, named, kind, dtype, lengths, wire=wire)
        machine = USUAL.machine_on(comm) if algorithm == "auto" else DEFAULT
        walk = walk_of(distribution, request, algorithm, where, machine)

        bound = BoundWalk(walk, comm, scale(norm, walk.sizes, request.forward), weighted)
        bind_walks(comm, bound)
        bound.agreed.add(block.dtype)
        if not (is_text(algorithm) or gathers_are_silent()):
            warn_if_gathered(walk, request, comm, _DEPTH)
        return bound

    call = function.name, (*key, block.dtype)  # of real numbers, which are transformed as complex ones
    bound = cached(comm, "walks", key, make, _KEPT, lambda: call)
    if block.dtype not in bound.agreed:
        agree(comm, *call)
        bound.agreed.add(block.dtype)

    if records_open.get():
        list_moves(bound.walk, x, function.name)
    out = segments.empty(bound.target.local_shape(comm.rank), bound.dtypes[-1])
    bound(block.astype(dtype, copy=False), out)
    return DistTensor._wrap(out, bound.target, comm)


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

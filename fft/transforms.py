"""The table of transforms, in which one row per kind holds everything about it.

A new kind is a row here and its name in `rote.grammar.TRANSFORMS`. The cosine and sine transforms are those of FFTW and
of `scipy.fft.dct` and `dst`, types I to IV; the Hartley transform, and that to the halfcomplex order and back, are
FFTW's. Applied to a complex tensor, these transform the real and the imaginary parts separately.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from rote.errors import LayoutError
from rote.grammar.nodes import CastName, TransformName

__all__ = ["AFTER", "CASTS", "COMPLEX", "FORWARD", "FOURIER", "FUNCTIONS", "HALVING", "KINDS", "REAL_TO_REAL"]
__all__ += ["RESAMPLED", "RESTORING", "ActionKind", "Function", "Kind", "Kinds", "MaybeKind", "TransformKind"]
__all__ += ["check_kind", "complex_dtype", "goes_back", "in_order", "kinds", "real_dtype"]

Kind = TransformName
MaybeKind = Kind | Literal[""]
"""A kind; or none, where the text of a walk says it, or nothing is transformed."""

ActionKind = Kind | CastName
"""A transform of digits, or a change of dtype."""

RealSide = Literal["neither", "input", "output", "both"]

Kinds = tuple[MaybeKind, ...]
"""The kind of each axis, in NumPy's order."""


@dataclass(frozen=True, slots=True)
class TransformKind:
    """A kind of transform along one axis: a row of the table.

    Attributes:
        name: as walks write it.
        inverse: the kind that undoes it, but for a factor.
        real: the side on which numbers are real. With "both", extents and dtype stay.
        others: the kind along the other axes, where this one is along the last.
        function: NumPy's or SciPy's name of the transform along several axes.
        fftw: FFTW's name of the direction, or of the kind of a transform of real numbers.
        ducc0: the function of that library; "" where there is none.
        type: of a cosine or sine transform; else 0.
        size: (a, b), where a (n + b) is the logical length of n points: of the Fourier transform that it is a part of.
        first: the harmonic of index 0 where indices count half turns; None where they count turns, up to half the
            points and then from below.
        ortho: the places along an axis where norm="ortho" multiplies the input by √2, and those where it divides the
            output by it: what makes it orthogonal (`orthogonalize` of `scipy.fft.dct`).
        alone: whether it takes a single point.
        backward: whether it leads from spectra back to signals.
        parts: how it is made of half the spectrum of real numbers, or makes that, so that libraries do it that have no
            function for it: "difference" is the real part minus the imaginary part, of the whole spectrum; "halves" are
            the real parts, and then the imaginary parts that are not zero, from the last to the first. Else "".
    """

    name: Kind
    inverse: Kind
    real: RealSide
    others: Kind
    function: str
    fftw: str
    ducc0: str = ""
    type: int = 0
    size: tuple[int, int] = (1, 0)
    first: float | None = None
    ortho: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    alone: bool = True
    backward: bool = False
    parts: Literal["", "difference", "halves"] = ""

    @property
    def fftw_number(self) -> int:
        """FFTW's number of the direction, or of the kind of a transform of real numbers."""
        if self.real == "both":
            return _FFTW_KINDS.index(self.fftw)
        return 1 if self.backward else -1

    def taken(self, points: int) -> int:
        """The extent of the input of a transform of some points."""
        return points // 2 + 1 if self.real == "output" else points

    def given(self, points: int) -> int:
        """The extent of the output of a transform of some points.

        >>> KINDS["rfft"].given(8), KINDS["irfft"].given(8), KINDS["dct2"].given(8)
        (5, 8, 8)
        """
        return points // 2 + 1 if self.real == "input" else points

    def logical_size(self, points: int) -> int:
        """The points of the Fourier transform that it is a part of: the factor of the way there and back."""
        factor, more = self.size
        return factor * (points + more)


# fmt: off
_FFTW_KINDS = ("FFTW_R2HC", "FFTW_HC2R", "FFTW_DHT", "FFTW_REDFT00", "FFTW_REDFT01", "FFTW_REDFT10", "FFTW_REDFT11",
               "FFTW_RODFT00", "FFTW_RODFT01", "FFTW_RODFT10", "FFTW_RODFT11")  # in the order of fftw3.h

_ROWS = (
    #              name     inverse  real       others   function  fftw              ducc0  type size  first
    TransformKind("fft",   "ifft",  "neither", "fft",   "fftn",   "FFTW_FORWARD",   "c2c"),
    TransformKind("ifft",  "fft",   "neither", "ifft",  "ifftn",  "FFTW_BACKWARD",  "c2c", backward=True),
    TransformKind("rfft",  "irfft", "input",   "fft",   "rfftn",  "FFTW_FORWARD",   "r2c"),
    TransformKind("irfft", "rfft",  "output",  "ifft",  "irfftn", "FFTW_BACKWARD",  "c2r", backward=True),
    TransformKind("dct1",  "dct1",  "both",    "dct1",  "dctn",   "FFTW_REDFT00",   "dct", 1, (2, -1), 0,
                  ortho=((0, -1), (0, -1)), alone=False),
    TransformKind("dct2",  "dct3",  "both",    "dct2",  "dctn",   "FFTW_REDFT10",   "dct", 2, (2, 0), 0,
                  ortho=((), (0,))),
    TransformKind("dct3",  "dct2",  "both",    "dct3",  "dctn",   "FFTW_REDFT01",   "dct", 3, (2, 0), 0.5,
                  ortho=((0,), ())),
    TransformKind("dct4",  "dct4",  "both",    "dct4",  "dctn",   "FFTW_REDFT11",   "dct", 4, (2, 0), 0.5),
    TransformKind("dst1",  "dst1",  "both",    "dst1",  "dstn",   "FFTW_RODFT00",   "dst", 1, (2, 1), 1),
    TransformKind("dst2",  "dst3",  "both",    "dst2",  "dstn",   "FFTW_RODFT10",   "dst", 2, (2, 0), 1,
                  ortho=((), (-1,))),
    TransformKind("dst3",  "dst2",  "both",    "dst3",  "dstn",   "FFTW_RODFT01",   "dst", 3, (2, 0), 0.5,
                  ortho=((-1,), ())),
    TransformKind("dst4",  "dst4",  "both",    "dst4",  "dstn",   "FFTW_RODFT11",   "dst", 4, (2, 0), 0.5),
    TransformKind("dht",   "dht",   "both",    "dht",   "dht",    "FFTW_DHT",       "separable_fht",
                  parts="difference"),
    TransformKind("r2hc",  "hc2r",  "both",    "r2hc",  "r2hc",   "FFTW_R2HC",      parts="halves"),
    TransformKind("hc2r",  "r2hc",  "both",    "hc2r",  "hc2r",   "FFTW_HC2R",      parts="halves", backward=True),
)
# fmt: on

KINDS: dict[str, TransformKind] = {row.name: row for row in _ROWS}
"""The table: the row of each kind by its name."""

COMPLEX = tuple(row.name for row in _ROWS if row.real == "neither")
"""The kinds that are complex on both sides: those that are made of transforms of digits."""

HALVING = tuple(row.name for row in _ROWS if row.real == "input")
"""The kinds from real numbers to half a spectrum."""

RESTORING = tuple(row.name for row in _ROWS if row.real == "output")
"""The kinds from half a spectrum to real numbers."""

REAL_TO_REAL = tuple(row.name for row in _ROWS if row.real == "both")
"""The kinds that leave dtype and extents alone, and that commute with all others."""

FOURIER = (*COMPLEX, *HALVING, *RESTORING)
"""The kinds of Fourier transforms, with complex numbers on one side at least."""

RESAMPLED = tuple(row.name for row in _ROWS if row.real in ("neither", "input") and not row.backward)
"""The kinds whose spectra may be resampled: cut or padded in their middle."""

FORWARD = tuple(row.name for row in _ROWS if not row.backward)
"""The kinds that a transform may name for its axes; it goes back by what undoes them."""

AFTER: dict[str, Kind] = {
    **{KINDS[name].others: name for name in HALVING},
    **{name: KINDS[name].others for name in RESTORING},
}
"""The kinds that wait where there is a real axis, and those that they wait for: numbers are real first or last."""

CASTS: dict[str, CastName] = {"complex": "real", "real": "complex"}
"""The changes of dtype, each with the one that undoes it."""


class Function(NamedTuple):
    """A function that transforms: the kind of its (last) axis, its name, and whether it leads back to a signal."""

    kind: Kind
    name: str
    backward: bool


FUNCTIONS: dict[str, Function] = {
    **{row.name: Function(row.name, row.function, row.backward) for row in _ROWS},
    **{f"i{row.name}": Function(row.inverse, f"i{row.function}", True) for row in _ROWS if row.real == "both"},
}
"""The functions by what they do along all axes: the kinds, and the ways back of transforms of real numbers."""

kinds: Mapping[str, TransformKind] = {name: KINDS[function.kind] for name, function in FUNCTIONS.items()}
"""The row of each name of a transform along an axis; that of "idct2", the way back of "dct2", is the one of "dct3"."""


def kinds_along(function: str, count: int) -> Kinds:
    """The kinds of some axes for a key of `FUNCTIONS`, or for "".

    "rfft" and "irfft" are complex along all axes but the last.

    >>> kinds_along("rfft", 2), kinds_along("idct2", 2)
    (('fft', 'rfft'), ('dct3', 'dct3'))
    """
    unnamed: MaybeKind = ""
    if not function or not count:
        return (unnamed,) * count
    row = KINDS[FUNCTIONS[function].kind]
    return (*(row.others,) * (count - 1), row.name)


def check_kind(name: object) -> None:
    """Refuse what names no kind of transform that leads from signals to spectra."""
    if isinstance(name, list | tuple):
        raise LayoutError(f"kinds are named by axis, not in a list; write kinds={dict(enumerate(name))!r}")
    if name not in FORWARD:
        raise LayoutError(f"a kind is one of {', '.join(FORWARD)}; not {name!r}")


def in_order(kind: Mapping[int, str], real: bool) -> tuple[tuple[int, ...], Kinds]:
    """Axes in NumPy's order, a real one last, and their kinds, from the kind of each axis; `real` if the tensor is.

    Raises:
        LayoutError: a kind is unknown, or they do not fit each other, or the tensor.

    >>> in_order({0: "rfft", 1: "fft"}, True), in_order({0: "dct2", 1: "rfft"}, True)
    (((1, 0), ('fft', 'rfft')), ((0, 1), ('dct2', 'rfft')))
    """
    for name in kind.values():
        check_kind(name)
    axes = tuple(sorted(kind, key=lambda axis: kind[axis] in HALVING))
    kinds = tuple(KINDS[kind[axis]].name for axis in axes)

    halved = [name for name in kinds if name in HALVING]
    complex_kinds = [name for name in kinds if name in COMPLEX]
    if len(halved) > 1:
        raise LayoutError(f"one axis is rfft, for the others are complex then; not {len(halved)} of {axes}")
    if halved and not real:
        raise LayoutError("rfft takes real numbers; give a real dtype, or write fft")
    if complex_kinds and not halved and real:
        raise LayoutError("fft takes complex numbers; make one axis rfft, or give a complex dtype")
    return axes, kinds


def goes_back(kind: str) -> bool:
    """Whether a kind leads from spectra back to signals; "" does not."""
    return bool(kind) and KINDS[kind].backward


_COMPLEX = {"f": "F", "d": "D", "g": "G"}


def complex_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """The complex dtype that a dtype's spectrum has, as numpy.fft: single and long double stay, others are double.

    >>> complex_dtype("f4"), complex_dtype("i8")
    (dtype('complex64'), dtype('complex128'))
    """
    element = np.dtype(dtype)
    return element if element.char in _COMPLEX.values() else np.dtype(_COMPLEX.get(element.char, "D"))


def real_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """The real dtype of the same precision.

    >>> real_dtype("c8"), real_dtype("bool")
    (dtype('float32'), dtype('float64'))
    """
    return np.empty(0, complex_dtype(dtype)).real.dtype

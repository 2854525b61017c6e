"""Transforms along one axis or two, under NumPy's and SciPy's names: those of any axes, with other defaults.

>>> import numpy as np, rote
>>> x = rote.DistTensor.from_global(np.arange(6.0).reshape(2, 3), "block[(0),()]")
>>> bool(np.allclose(rote.fft.fft(x, n=4).to_global(), np.fft.fft(np.arange(6.0).reshape(2, 3), n=4)))
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from rote.layout.layout import Layout
from rote.tensor import DistTensor

from ..request.arguments import check_real, check_tensor
from .fourier import Axes, Lengths, Norming, transform
from .real import cosines

__all__ = ["dct", "dst", "fft", "fft2", "idct", "idst", "ifft", "ifft2", "irfft", "irfft2", "rfft", "rfft2"]


F = TypeVar("F", bound=Callable[..., Any])


class Along(Protocol):
    """A transform along one axis."""

    def __call__(
        self,
        x: DistTensor,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        output: Layout | str | None = None,
        algorithm: str = "auto",
        wire: str | None = None,
    ) -> DistTensor: ...


class Across(Protocol):
    """A transform along two axes."""

    def __call__(
        self,
        x: DistTensor,
        s: Lengths = None,
        axes: Axes = (-2, -1),
        norm: str | None = None,
        output: Layout | str | None = None,
        algorithm: str = "auto",
        wire: str | None = None,
    ) -> DistTensor: ...


class Waves(Protocol):
    """A cosine or sine transform along one axis."""

    def __call__(
        self,
        x: DistTensor,
        type: int = 2,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        output: Layout | str | None = None,
        algorithm: str = "auto",
        *,
        orthogonalize: bool | None = None,
    ) -> DistTensor: ...


def _along(name: str) -> Along:
    def called(
        x: DistTensor,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        output: Layout | str | None = None,
        algorithm: str = "auto",
        wire: str | None = None,
    ) -> DistTensor:
        (check_real if name == "rfft" else check_tensor)(x, name)
        return transform(name, x, None if n is None else (n,), (axis,), norm, output, algorithm, wire)

    return _named(called, name, f"`{name}n` along one axis, as `numpy.fft.{name}`", "n: its length, and axis")


def _across(name: str) -> Across:
    def called(
        x: DistTensor,
        s: Lengths = None,
        axes: Axes = (-2, -1),
        norm: str | None = None,
        output: Layout | str | None = None,
        algorithm: str = "auto",
        wire: str | None = None,
    ) -> DistTensor:
        (check_real if name == "rfft" else check_tensor)(x, f"{name}2")
        return transform(name, x, s, axes, norm, output, algorithm, wire)

    what = f"`{name}n` along two axes, by default the last ones, as `numpy.fft.{name}2`"
    return _named(called, f"{name}2", what, "s: the two lengths, and axes")


def _waves(name: str) -> Waves:
    def called(
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
        check_tensor(x, name)
        lengths = None if n is None else (n,)
        return transform(cosines(name, type), x, lengths, (axis,), Norming(norm, orthogonalize), output, algorithm)

    return _named(called, name, f"`{name}n` along one axis, as `scipy.fft.{name}`", "n: its length, and axis")


_DOC = """The transform {what}.

Args:
    {lengths}: the same as `s` and `axes` of `{many}`, which also has the other arguments, the result and the errors.

>>> import numpy as np, rote
>>> x = rote.DistTensor.from_global(np.arange(12.0).reshape(3, 4), "block[(0),()]")
>>> bool(np.allclose(rote.fft.{name}(x).to_global(), rote.fft.{many}(x, axes={axes}).to_global()))
True
"""


def _named(function: F, name: str, what: str, lengths: str) -> F:
    """The function with a name and a docstring of its own."""
    axes, many = ("(-2, -1)", f"{name[:-1]}n") if name.endswith("2") else ("(-1,)", f"{name}n")
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOC.format(name=name, what=what, lengths=lengths, many=many, axes=axes)
    return function


fft: Final[Along] = _along("fft")
ifft: Final[Along] = _along("ifft")
rfft: Final[Along] = _along("rfft")
irfft: Final[Along] = _along("irfft")
fft2: Final[Across] = _across("fft")
ifft2: Final[Across] = _across("ifft")
rfft2: Final[Across] = _across("rfft")
irfft2: Final[Across] = _across("irfft")
dct: Final[Waves] = _waves("dct")
idct: Final[Waves] = _waves("idct")
dst: Final[Waves] = _waves("dst")
idst: Final[Waves] = _waves("idst")

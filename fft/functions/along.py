"""Transforms along one axis or two, under NumPy's and SciPy's names: those of any axes, with other defaults.

>>> import numpy as np, rote
>>> x = rote.DistTensor.from_global(np.arange(6.0).reshape(2, 3), "block[(0),()]")
>>> bool(np.allclose(rote.fft.fft(x, n=4).to_global(), np.fft.fft(np.arange(6.0).reshape(2, 3), n=4)))
True
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import Signature, signature
from typing import Any, Concatenate, Final, ParamSpec

from rote.functions.rules import refuse_unfit
from rote.layout.layout import Layout
from rote.tensor import DistTensor

from .fourier import Axes, Lengths, transform
from .real import cosines

__all__ = ["dct", "dst", "fft", "fft2", "idct", "idst", "ifft", "ifft2", "irfft", "irfft2", "rfft", "rfft2"]

P = ParamSpec("P")


# Each of these is the signature of several functions. It returns the arguments of `transform`.


def _one_axis(
    name: str,
    x: DistTensor,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
    wire: str | None = None,
) -> tuple[Any, ...]:
    return name, x, None if n is None else (n,), (axis,), norm, output, algorithm, wire, None, name


def _two_axes(
    name: str,
    x: DistTensor,
    s: Lengths = None,
    axes: Axes = (-2, -1),
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
    wire: str | None = None,
) -> tuple[Any, ...]:
    return name[:-1], x, s, axes, norm, output, algorithm, wire, None, name


def _cosines(
    name: str,
    x: DistTensor,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
    *,
    orthogonalize: bool | None = None,
) -> tuple[Any, ...]:
    lengths = None if n is None else (n,)
    return cosines(name, type), x, lengths, (axis,), norm, output, algorithm, None, orthogonalize, name


_DOC = """The transform `{many}` along {count}, as `{package}.fft.{name}`.

Args:
    {lengths}: the same as `s` and `axes` of `{many}`, which also has the other arguments, the result and the errors.

>>> import numpy as np, rote
>>> x = rote.DistTensor.from_global(np.arange(12.0).reshape(3, 4), "block[(0),()]")
>>> bool(np.allclose(rote.fft.{name}(x).to_global(), rote.fft.{many}(x, axes={axes}).to_global()))
True
"""
_ONE = {"count": "one axis", "lengths": "n: its length, and axis", "axes": "(-1,)"}
_TWO = {"count": "two axes, by default the last ones", "lengths": "s: the two lengths, and axes", "axes": "(-2, -1)"}
_WORDS: dict[Callable[..., Any], dict[str, str]] = {
    _one_axis: {**_ONE, "package": "numpy"},
    _two_axes: {**_TWO, "package": "numpy"},
    _cosines: {**_ONE, "package": "scipy"},
}


def _named(arguments: Callable[Concatenate[str, P], tuple[Any, ...]], name: str) -> Callable[P, DistTensor]:
    """The function of a name, with the signature of `arguments` and a docstring of its own."""

    def called(*args: P.args, **kwargs: P.kwargs) -> DistTensor:
        try:
            given = arguments(name, *args, **kwargs)
        except TypeError:
            refuse_unfit(name, _without_name(arguments), args, kwargs)
            raise
        return transform(*given)

    called.__name__ = called.__qualname__ = name
    called.__doc__ = _DOC.format(name=name, many=f"{name.rstrip('2')}n", **_WORDS[arguments])
    vars(called)["__signature__"] = _without_name(arguments)
    return called


@cache
def _without_name(arguments: Callable[..., Any]) -> Signature:
    whole = signature(arguments)
    return whole.replace(parameters=[*whole.parameters.values()][1:], return_annotation="DistTensor")


fft: Final = _named(_one_axis, "fft")
ifft: Final = _named(_one_axis, "ifft")
rfft: Final = _named(_one_axis, "rfft")
irfft: Final = _named(_one_axis, "irfft")
fft2: Final = _named(_two_axes, "fft2")
ifft2: Final = _named(_two_axes, "ifft2")
rfft2: Final = _named(_two_axes, "rfft2")
irfft2: Final = _named(_two_axes, "irfft2")
dct: Final = _named(_cosines, "dct")
idct: Final = _named(_cosines, "idct")
dst: Final = _named(_cosines, "dst")
idst: Final = _named(_cosines, "idst")

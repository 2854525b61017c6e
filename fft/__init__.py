"""Parallel FFTs as walks through layouts: transform what is local, move digits, transform again.

>>> import numpy as np, rote
>>> x = rote.DistTensor.from_global(np.eye(4), "block[(0),()]")
>>> np.allclose(rote.fft.fftn(x).to_global(), np.fft.fftn(np.eye(4)))
True

Importing the package imports neither NumPy nor a library of transforms: each name is fetched when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if __name__ != "rote.fft":
    raise ImportError(f"this package is rote.fft, found as {__name__!r} in the checkout's root; write: import rote.fft")

if TYPE_CHECKING:
    from .families.registry import algorithms as algorithms
    from .families.resolve import compare as compare
    from .functions.convolution import convolve as convolve
    from .functions.convolution import correlate as correlate
    from .functions.fourier import fftn as fftn
    from .functions.fourier import ifftn as ifftn
    from .functions.fourier import irfftn as irfftn
    from .functions.fourier import rfftn as rfftn
    from .functions.frequencies import fftfreq as fftfreq
    from .functions.real import dctn as dctn
    from .functions.real import dht as dht
    from .functions.real import dstn as dstn
    from .functions.real import hc2r as hc2r
    from .functions.real import hfft as hfft
    from .functions.real import idctn as idctn
    from .functions.real import idstn as idstn
    from .functions.real import ihfft as ihfft
    from .functions.real import r2hc as r2hc
    from .functions.shift import fftshift as fftshift
    from .functions.shift import ifftshift as ifftshift
    from .plan import FFT as FFT
    from .transforms import kinds as kinds

# Where each public name lives; the imports above say the same to type checkers.
_HOME = {
    "FFT": "plan",
    "algorithms": "families.registry",
    "compare": "families.resolve",
    "convolve": "functions.convolution",
    "correlate": "functions.convolution",
    "dctn": "functions.real",
    "dht": "functions.real",
    "dstn": "functions.real",
    "fftfreq": "functions.frequencies",
    "fftn": "functions.fourier",
    "fftshift": "functions.shift",
    "hc2r": "functions.real",
    "hfft": "functions.real",
    "idctn": "functions.real",
    "idstn": "functions.real",
    "ifftn": "functions.fourier",
    "ifftshift": "functions.shift",
    "ihfft": "functions.real",
    "irfftn": "functions.fourier",
    "kinds": "transforms",
    "r2hc": "functions.real",
    "rfftn": "functions.fourier",
}

__all__ = sorted(_HOME)

# NumPy's and SciPy's names for one axis or two, which the functions of any axes stand for.
_ALONG = {}
for _name in ("fft", "ifft", "rfft", "irfft"):
    _ALONG[_name] = f"rote.fft.{_name}n(x, axes=(-1,))"
    _ALONG[f"{_name}2"] = f"rote.fft.{_name}n(x, axes=(-2, -1))"
for _name in ("dct", "idct", "dst", "idst"):
    _ALONG[_name] = f"rote.fft.{_name}n(x, axes=(-1,))"
del _name
_ALONG["rfftfreq"] = "rote.fft.fftfreq(f), or f.wavenumbers(L), of an FFT f"

if not TYPE_CHECKING:  # a type checker would take any misspelt name for an attribute

    def __getattr__(name):
        """Import a public name on first use, and keep it."""
        from functools import partial
        from importlib import import_module

        if name not in _HOME:
            text = f"module {__name__!r} has no attribute {name!r}"
            if cure := _ALONG.get(name):
                text += f"\nwrite {cure}"
            raise AttributeError(text)
        rules = import_module("rote.functions.rules")  # from now on numpy.fft answers, too
        rules.ENTERING["numpy.fft"] = partial(import_module, f"{__name__}.functions.dispatch")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        return value


def __dir__() -> list[str]:
    """The public names, fetched or not, and what the module already holds."""
    return sorted({*globals(), *__all__})

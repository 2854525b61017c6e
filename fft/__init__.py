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
    from .functions.along import dct as dct
    from .functions.along import dst as dst
    from .functions.along import fft as fft
    from .functions.along import fft2 as fft2
    from .functions.along import idct as idct
    from .functions.along import idst as idst
    from .functions.along import ifft as ifft
    from .functions.along import ifft2 as ifft2
    from .functions.along import irfft as irfft
    from .functions.along import irfft2 as irfft2
    from .functions.along import rfft as rfft
    from .functions.along import rfft2 as rfft2
    from .functions.convolution import convolve as convolve
    from .functions.convolution import correlate as correlate
    from .functions.fourier import fftn as fftn
    from .functions.fourier import ifftn as ifftn
    from .functions.fourier import irfftn as irfftn
    from .functions.fourier import rfftn as rfftn
    from .functions.frequencies import fftfreq as fftfreq
    from .functions.frequencies import rfftfreq as rfftfreq
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
    "dct": "functions.along",
    "dctn": "functions.real",
    "dht": "functions.real",
    "dst": "functions.along",
    "dstn": "functions.real",
    "fft": "functions.along",
    "fft2": "functions.along",
    "fftfreq": "functions.frequencies",
    "fftn": "functions.fourier",
    "fftshift": "functions.shift",
    "hc2r": "functions.real",
    "hfft": "functions.real",
    "idct": "functions.along",
    "idctn": "functions.real",
    "idst": "functions.along",
    "idstn": "functions.real",
    "ifft": "functions.along",
    "ifft2": "functions.along",
    "ifftn": "functions.fourier",
    "ifftshift": "functions.shift",
    "ihfft": "functions.real",
    "irfft": "functions.along",
    "irfft2": "functions.along",
    "irfftn": "functions.fourier",
    "kinds": "transforms",
    "r2hc": "functions.real",
    "rfft": "functions.along",
    "rfft2": "functions.along",
    "rfftfreq": "functions.frequencies",
    "rfftn": "functions.fourier",
}

__all__ = sorted(_HOME)

if not TYPE_CHECKING:  # a type checker would take any misspelt name for an attribute

    def __getattr__(name):
        """Import a public name on first use, and keep it."""
        from importlib import import_module

        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        return value


def __dir__() -> list[str]:
    """The public names, fetched or not, and what the module already holds."""
    return sorted({*globals(), *__all__})

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
    from .families.comparison import compare as compare
    from .families.registry import algorithms as algorithms
    from .functions import fftn as fftn
    from .functions import ifftn as ifftn
    from .functions import irfftn as irfftn
    from .functions import rfftn as rfftn
    from .plan import FFT as FFT
    from .real_functions import dctn as dctn
    from .real_functions import dht as dht
    from .real_functions import dstn as dstn
    from .real_functions import hc2r as hc2r
    from .real_functions import hfft as hfft
    from .real_functions import idctn as idctn
    from .real_functions import idstn as idstn
    from .real_functions import ihfft as ihfft
    from .real_functions import r2hc as r2hc
    from .spectra.convolution import convolve as convolve
    from .spectra.convolution import correlate as correlate
    from .spectra.frequencies import fftfreq as fftfreq
    from .spectra.shift import fftshift as fftshift
    from .spectra.shift import ifftshift as ifftshift
    from .transforms import kinds as kinds

# Where each public name lives; the imports above say the same to type checkers.
_HOME = {
    "FFT": "plan",
    "algorithms": "families.registry",
    "compare": "families.comparison",
    "convolve": "spectra.convolution",
    "correlate": "spectra.convolution",
    "dctn": "real_functions",
    "dht": "real_functions",
    "dstn": "real_functions",
    "fftfreq": "spectra.frequencies",
    "fftn": "functions",
    "fftshift": "spectra.shift",
    "hc2r": "real_functions",
    "hfft": "real_functions",
    "idctn": "real_functions",
    "idstn": "real_functions",
    "ifftn": "functions",
    "ifftshift": "spectra.shift",
    "ihfft": "real_functions",
    "irfftn": "functions",
    "kinds": "transforms",
    "r2hc": "real_functions",
    "rfftn": "functions",
}

__all__ = sorted(_HOME)

if not TYPE_CHECKING:  # a type checker would take any misspelt name for an attribute

    def __getattr__(name):
        """Import a public name on first use, and keep it."""
        from functools import partial
        from importlib import import_module

        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        rules = import_module("rote.functions.rules")  # from now on numpy.fft answers, too
        rules.ENTERING["numpy.fft"] = partial(import_module, f"{__name__}.dispatch")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        return value


def __dir__() -> list[str]:
    """The public names, fetched or not, and what the module already holds."""
    return sorted({*globals(), *__all__})

"""Parallel FFTs as walks through layouts: transform what is local, move digits, transform again.

>>> import numpy as np, rote
>>> x = rote.DistTensor.from_global(np.eye(4), "block[(0),()]")
>>> np.allclose(rote.fft.fftn(x).to_global(), np.fft.fftn(np.eye(4)))
True

Importing the package imports neither NumPy nor a library of transforms: each name is fetched when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rote.lazy import attach

if __name__ != "rote.fft":
    raise ImportError(f"this package is rote.fft, found as {__name__!r} in the checkout's root; write: import rote.fft")

if TYPE_CHECKING:  # what the table below says to Python, name by name
    from .families.choose import compare
    from .families.registry import algorithms
    from .functions.along import dct, dst, fft, fft2, idct, idst, ifft, ifft2, irfft, irfft2, rfft, rfft2
    from .functions.convolution import convolve, correlate
    from .functions.fourier import fftn, ifftn, irfftn, rfftn
    from .functions.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
    from .functions.real import dctn, dht, dstn, hc2r, hfft, idctn, idstn, ihfft, r2hc
    from .plan import FFT
    from .transforms import kinds
else:
    __getattr__, __dir__ = attach(
        __name__,
        {
            "families.registry": "algorithms",
            "families.choose": "compare",
            "functions.along": "dct dst fft fft2 idct idst ifft ifft2 irfft irfft2 rfft rfft2",
            "functions.convolution": "convolve correlate",
            "functions.fourier": "fftn ifftn irfftn rfftn",
            "functions.frequencies": "fftfreq fftshift ifftshift rfftfreq",
            "functions.real": "dctn dht dstn hc2r hfft idctn idstn ihfft r2hc",
            "plan": "FFT",
            "transforms": "kinds",
        },
    )

__all__ = ["FFT", "algorithms", "compare", "convolve", "correlate", "dct", "dctn", "dht", "dst", "dstn", "fft", "fft2"]
__all__ += ["fftfreq", "fftn", "fftshift", "hc2r", "hfft", "idct", "idctn", "idst", "idstn", "ifft", "ifft2", "ifftn"]
__all__ += ["ifftshift", "ihfft", "irfft", "irfft2", "irfftn", "kinds", "r2hc", "rfft", "rfft2", "rfftfreq", "rfftn"]

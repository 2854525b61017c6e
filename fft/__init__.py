"""Parallel FFTs as walks through layouts: transform what is local, move digits, transform again.

>>> import numpy as np, rote
>>> x = rote.DistTensor.from_global(np.eye(4), "block[(0),()]")
>>> np.allclose(rote.fft.fftn(x).to_global(), np.fft.fftn(np.eye(4)))
True

Importing the package imports neither NumPy nor a library of transforms: each name is fetched when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rote.lazy import attach

if __name__ != "rote.fft":
    raise ImportError(f"this package is rote.fft, found as {__name__!r} in the checkout's root; write: import rote.fft")

__ua_domain__ = "numpy.scipy.fft"


def __ua_function__(method: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Answer for a function of `scipy.fft` of a tensor, after `scipy.fft.set_backend(rote.fft)`."""
    from rote.tensor import DistTensor

    function = globals()["__getattr__"](method.__name__) if args and isinstance(args[0], DistTensor) else None
    return NotImplemented if function is None else function(*args, **options)


if TYPE_CHECKING:  # what the table below says to Python, name by name
    from .families import algorithms
    from .families.ahead import job, scaling
    from .families.choose import compare
    from .functions.fourier import (
        dct,
        dctn,
        dht,
        dst,
        dstn,
        fft,
        fft2,
        fftn,
        hc2r,
        hfft,
        idct,
        idctn,
        idst,
        idstn,
        ifft,
        ifft2,
        ifftn,
        ihfft,
        irfft,
        irfft2,
        irfftn,
        r2hc,
        rfft,
        rfft2,
        rfftn,
    )
    from .functions.shifts import convolve, correlate, fftfreq, fftshift, ifftshift, rfftfreq
    from .plan import FFT
    from .transforms import kinds
else:
    __getattr__, __dir__ = attach(
        __name__,
        {
            "families": "algorithms",
            "families.ahead": "job scaling",
            "families.choose": "compare",
            "functions.fourier": (
                "dct dctn dht dst dstn fft fft2 fftn hc2r hfft idct idctn idst idstn ifft ifft2 ifftn ihfft irfft "
                "irfft2 irfftn r2hc rfft rfft2 rfftn"
            ),
            "functions.shifts": "convolve correlate fftfreq fftshift ifftshift rfftfreq",
            "plan": "FFT",
            "transforms": "kinds",
        },
    )

__all__ = ["FFT", "algorithms", "compare", "convolve", "correlate", "dct", "dctn", "dht", "dst", "dstn", "fft", "fft2"]
__all__ += ["fftfreq", "fftn", "fftshift", "hc2r", "hfft", "idct", "idctn", "idst", "idstn", "ifft", "ifft2", "ifftn"]
__all__ += ["ifftshift", "ihfft", "irfft", "irfft2", "irfftn", "job", "kinds", "r2hc", "rfft", "rfft2", "rfftfreq"]
__all__ += ["rfftn", "scaling"]

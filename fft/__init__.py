"""Parallel FFTs as walks through layouts: transform what is local, move digits, transform again.

>>> import numpy as np, rote
>>> x = rote.DistTensor.from_global(np.eye(4), "block[(0),()]")
>>> np.allclose(rote.fft.fftn(x).to_global(), np.fft.fftn(np.eye(4)))
True
"""

from __future__ import annotations

if __name__ != "rote.fft":
    raise ImportError(f"this package is rote.fft, found as {__name__!r} in the checkout's root; write: import rote.fft")

from rote.answers import ANSWERS

from .convolution import convolve, correlate
from .dispatch import TRANSFORMS
from .families import algorithms
from .functions import dctn, dstn, fftfreq, fftn, idctn, idstn, ifftn, irfftn, rfftn
from .shift import fftshift, ifftshift
from .transform import FFT

__all__ = [
    "FFT",
    "algorithms",
    "convolve",
    "correlate",
    "dctn",
    "dstn",
    "fftfreq",
    "fftn",
    "fftshift",
    "idctn",
    "idstn",
    "ifftn",
    "ifftshift",
    "irfftn",
    "rfftn",
]

ANSWERS.update(TRANSFORMS)  # numpy.fft of tensors

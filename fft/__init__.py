"""Parallel FFTs as walks through layouts: transform what is local, move digits, transform again.

>>> import numpy as np, rote
>>> x = rote.DistTensor.from_global(np.eye(4), "block[(0),()]")
>>> np.allclose(rote.fft.fftn(x).to_global(), np.fft.fftn(np.eye(4)))
True
"""

from __future__ import annotations

if __name__ != "rote.fft":
    raise ImportError(f"this package is rote.fft, found as {__name__!r} in the checkout's root; write: import rote.fft")

from .families import algorithms
from .functions import fftn, ifftn, irfftn, rfftn
from .transform import FFT

__all__ = ["FFT", "algorithms", "fftn", "ifftn", "irfftn", "rfftn"]

"""Plans on the devices of JAX: Rote plans, proves and predicts; XLA runs.

`import rote` does not import JAX; a function here imports it when it is called. The extra `jax` installs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import attach

if TYPE_CHECKING:  # what the table below says to Python, name by name
    from .arrays import from_global, layout_of, sharding, stored_shape, to_global
    from .collectives import virtual
    from .contraction import LoweredContraction, einsum
    from .fourier import FFT, dctn, dstn, fft, fftn, idctn, idstn, ifft, ifftn, irfft, irfftn, rfft, rfftn
    from .functions import lower, redistribute
    from .halos import LoweredHalo, halo
    from .lowering import Lowered
else:
    __getattr__, __dir__ = attach(
        __name__,
        {
            "arrays": "from_global layout_of sharding stored_shape to_global",
            "collectives": "virtual",
            "contraction": "LoweredContraction einsum",
            "fourier": "FFT dctn dstn fft fftn idctn idstn ifft ifftn irfft irfftn rfft rfftn",
            "functions": "lower redistribute",
            "halos": "LoweredHalo halo",
            "lowering": "Lowered",
        },
    )

__all__ = ["FFT", "Lowered", "LoweredContraction", "LoweredHalo"]
__all__ += ["dctn", "dstn", "einsum", "fft", "fftn", "from_global", "halo", "idctn", "idstn", "ifft", "ifftn", "irfft"]
__all__ += ["irfftn", "layout_of", "lower", "redistribute", "rfft", "rfftn", "sharding", "stored_shape", "to_global"]
__all__ += ["virtual"]

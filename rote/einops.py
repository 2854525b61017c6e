"""Tensors in einops: after `import rote.einops`, its `rearrange`, `reduce` and `repeat` take them.

einops finds a library by a class that says which arrays are its own. Here is the one for tensors. Its functions are
NumPy's, which tensors answer, so their rules of layout hold; nothing is gathered.

>>> import einops, rote, rote.einops
>>> x = rote.DistTensor.from_global([[1, 2, 3, 4], [5, 6, 7, 8]], "block[(0),()]")
>>> einops.rearrange(x, "a (b c) -> c a b", b=2).shape, einops.reduce(x, "a b -> a", "sum").to_global()
((2, 2, 2), array([10, 26]))
"""

from __future__ import annotations

from typing import Any

import numpy as np
from einops._backends import NumpyBackend

from .tensor import DistTensor

__all__ = ["DistTensorBackend"]


class DistTensorBackend(NumpyBackend):  # type: ignore[misc]
    """What einops asks a library of arrays; all but the type of arrays is as for NumPy's."""

    framework_name = "rote"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, DistTensor)

    def is_float_type(self, x: DistTensor) -> bool:
        return x.dtype.kind in "fc"

    def to_numpy(self, x: DistTensor) -> np.ndarray[Any, np.dtype[Any]]:
        return x.to_global()

"""All good axes of a block in one call of a library."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .backends import prepare
from .backends.protocol import ArrayTransform
from .kernel import Kernel, view

__all__ = ["MultiAxisPass"]

Array = npt.NDArray[Any]
Scratch = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]


class MultiAxisPass:
    """All axes in one call of the library. Between calls it rests on scratch: nobody's block stays alive for it."""

    __slots__ = ("_kernel", "_parked", "_transforms")

    def __init__(self, kernel: Kernel, scratch: Scratch) -> None:
        self._kernel = kernel
        source = view(scratch[0], kernel.shape, kernel.dtype)
        self._parked = (source, view(scratch[1], kernel.out_shape, kernel.out_dtype))
        self._transforms: dict[bool, ArrayTransform] = {}

    def ready(self) -> None:
        """Make all transforms now."""
        for in_place in {False, self._kernel.in_place}:
            self._transform(in_place)

    def _transform(self, in_place: bool) -> ArrayTransform:
        if in_place not in self._transforms:
            kernel, (source, target) = self._kernel, self._parked
            ends = source, source if in_place else target
            self._transforms[in_place] = prepare(kernel, kernel.axes, *ends, kernel.config.threads)
        return self._transforms[in_place]

    def __call__(self, source: Array, target: Array) -> None:
        """Transform `source` into `target`, which may be the same if the kernel is in place."""
        self._transform(self._kernel.in_place and np.may_share_memory(source, target))(source, target)

"""Checks of the arguments and attribute names of random generators, which refuse wrong ones with a cure."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from ..compiler.step import as_dtype
from ..tensor.tensor import DistTensor

__all__ = ["by_shape", "check_numbers", "check_scale", "missing", "real_dtype"]

P = ParamSpec("P")
R = TypeVar("R")

_SAME = "rote.DistTensor.from_global(numpy.random.default_rng(seed).{}(…), layout), of the same seed on all ranks"
_NAMES = {
    "permutation": "x[numpy.argsort(rng.random(len(x)))], along mode 0",
    "shuffle": "x[...] = x[numpy.argsort(rng.random(len(x)))], along mode 0",
    "choice": "numpy.take(x, rng.integers(len(x), shape=…), axis=0), with replacement",
    "spawn": "rote.random.default_rng([seed, k]) for the k-th of several generators",
    "standard_exponential": "rng.exponential(1.0, shape)",
}


def missing(name: str) -> str:
    """The error text for an attribute that generators do not have; for one of NumPy's, with a replacement.

    >>> print(missing("standard_exponential"))
    'Generator' object has no attribute 'standard_exponential'
    write rng.exponential(1.0, shape)
    """
    cure = _NAMES.get(name, "")
    if not cure and not name.startswith("_") and hasattr(np.random.Generator, name):
        cure = _SAME.format(name)
    return f"'Generator' object has no attribute {name!r}" + (f"\nwrite {cure}" if cure else "")


def by_shape(draw: Callable[P, R]) -> Callable[P, R]:
    """Wrap a drawing method so that it refuses NumPy's `size`, and names `shape` instead."""

    @wraps(draw)
    def drawn(*args: P.args, **options: P.kwargs) -> R:
        if "size" in options:
            name, size = draw.__name__, options["size"]
            raise TypeError(f"{name} takes shape, not size\nwrite rng.{name}(…, shape={size!r})")
        return draw(*args, **options)

    return drawn


def real_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """The dtype of real random numbers.

    Raises:
        TypeError: it is neither float32 nor float64.
    """
    element = as_dtype(dtype)
    if element.kind != "f" or element.itemsize > 8:
        raise TypeError(f"random numbers are float32 or float64, not {element}; write dtype='f8', and astype then")
    return element


def check_numbers(**parameters: Any) -> None:
    """Refuse arrays and tensors: an array would broadcast to the block, so that numbers would depend on the layout."""
    for name, value in parameters.items():
        if isinstance(value, DistTensor) or np.ndim(value):
            raise TypeError(
                f"{name} is one number for all elements, not {value!r}\n"
                "write float(x) of a tensor of order 0; combine others: low + (high - low) * rng.random(shape, layout)"
            )


def check_scale(scale: float) -> None:
    """Refuse a negative scale, and NaN."""
    if not scale >= 0:
        raise ValueError(f"scale is 0 or more, not {scale}")

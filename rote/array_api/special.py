"""SciPy's special functions of tensors, element by element: `erf`, `gamma`, `j0` and more, by the names of SciPy.

With SCIPY_ARRAY_API=1 the functions of `scipy.special` look here for what a tensor needs; without it, those that are
ufuncs take tensors themselves.

>>> import rote.array_api as xp
>>> xp.special.gamma(xp.asarray([1.0, 4.0])).to_global(), xp.special.polygamma(0, xp.asarray([1.0])).dtype
(array([1., 6.]), dtype('float64'))
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import unwrap
from typing import Any

import numpy as np

from ..functions.elementwise import elementwise

__all__: list[str] = []

_PLAIN = ("multigammaln", "polygamma", "sinc", "zeta")
"""The functions that are computed for each element, and are no ufuncs."""


def __getattr__(name: str) -> Callable[..., Any]:
    import scipy.special

    # With SCIPY_ARRAY_API=1 SciPy wraps its functions, and these wrappers ask for the function here.
    function = unwrap(getattr(scipy.special, name))
    if not (isinstance(function, np.ufunc) and function.signature is None) and name not in _PLAIN:
        raise AttributeError(f"scipy.special.{name} is not computed element by element")
    return partial(_of_elements, name, function)


def _of_elements(name: str, function: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    return elementwise(name, function, operands, options)

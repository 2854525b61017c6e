"""What NumPy's functions that make arrays make with `like=x`: tensors over the ranks of x.

They have the layout of x if they have its shape, and that of `rote.config(layout=…)` otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..functions.distributed import Distributed
from ..layout.grid import tensor_shape
from ..lazy import late

__all__ = ["CREATORS", "made_like"]


def made_like(x: Distributed, function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The tensor that a call with `like=x` makes. Collective.

    >>> import numpy as np, rote
    >>> x = rote.DistTensor.zeros((2, 3), "block[(),(0)]")
    >>> print(np.ones((2, 3), like=x).layout, np.arange(6, like=x).layout)
    block[(),(0)] block[(0)]
    """
    return CREATORS[function](x, *args, **options)


def _filled(name: str) -> Callable[..., Any]:
    def made(x: Distributed, shape: Any, dtype: Any = float, order: str = "C", *, device: str | None = None) -> Any:
        return getattr(late("array_api"), name)(shape, dtype=dtype, device=device, **_where(x, shape))

    return made


def _full(
    x: Distributed, shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: str | None = None
) -> Any:
    return late("array_api").full(shape, fill_value, dtype=dtype, device=device, **_where(x, shape))


def _arange(x: Distributed, *ends: Any, dtype: Any = None, device: str | None = None, **named: Any) -> Any:
    if len(ends) == 4:
        *limits, dtype = ends
        ends = tuple(limits)
    if "start" in named:
        ends = (named.pop("start"), *ends)
    return late("array_api").arange(*ends, dtype=dtype, device=device, comm=x.comm, **named)


def _eye(
    x: Distributed,
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = float,
    order: str = "C",
    *,
    device: str | None = None,
) -> Any:
    shape = N, N if M is None else M
    return late("array_api").eye(*shape, k=k, dtype=dtype, device=device, **_where(x, shape))


def _array(x: Distributed, values: Any, dtype: Any = None, *, copy: bool | None = None, **ignored: Any) -> Any:
    return late("array_api").asarray(values, dtype=dtype, copy=copy or None, **_where(x, np.shape(values)))


def _where(x: Distributed, shape: Any) -> dict[str, Any]:
    """Where a new tensor of a shape is."""
    if tensor_shape(shape) != x.distribution.shape:
        return {"comm": x.comm}
    return {"comm": x.comm, "layout": x.distribution.layout, "grid": x.distribution.grid}


CREATORS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.zeros: _filled("zeros"),
    np.ones: _filled("ones"),
    np.empty: _filled("empty"),
    **dict.fromkeys((np.array, np.asarray), _array),
    np.full: _full,
    np.arange: _arange,
    np.eye: _eye,
    np.identity: lambda x, n, dtype=None: _eye(x, n, dtype=float if dtype is None else dtype),
}
"""The functions of NumPy that are answered with `like=x`, and what makes the tensor, with x as its first argument."""

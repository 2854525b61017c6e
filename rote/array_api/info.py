"""The array API standard's inspection of the namespace: dtypes, kinds, devices and capabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import LayoutError
from ..functions.elements.dtypes import isdtype
from ..grammar.nodes import MAX_MODES
from .creation import check_device

__all__ = ["DTYPES", "NamespaceInfo"]

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATING = ("float32", "float64", "complex64", "complex128")
DTYPES: dict[str, np.dtype[Any]] = {name: np.dtype(name) for name in ("bool", *_INTEGERS, *_FLOATING)}
"""The dtypes of the standard, by name."""

_DEFAULTS = {"real floating": "float64", "complex floating": "complex128", "integral": "int64", "indexing": "int64"}


class NamespaceInfo:
    """The answers of `rote.array_api.__array_namespace_info__()`.

    >>> NamespaceInfo().devices(), NamespaceInfo().default_dtypes()["integral"]
    (['cpu'], dtype('int64'))
    """

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """Whether masks may index, whether shapes may depend on data, and the most modes of a tensor.

        >>> NamespaceInfo().capabilities()["boolean indexing"]
        True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MAX_MODES}

    def default_device(self) -> str:
        """The device of new tensors.

        >>> NamespaceInfo().default_device()
        'cpu'
        """
        return "cpu"

    def devices(self) -> list[str]:
        """All devices.

        >>> NamespaceInfo().devices()
        ['cpu']
        """
        return ["cpu"]

    def default_dtypes(self, *, device: str | None = None) -> dict[str, np.dtype[Any]]:
        """The default dtypes of new tensors, by kind.

        Raises:
            LayoutError: there is no such device.

        >>> NamespaceInfo().default_dtypes()["real floating"]
        dtype('float64')
        """
        check_device(device)
        return {kind: DTYPES[name] for kind, name in _DEFAULTS.items()}

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype[Any]]:
        """The dtypes of a kind, or of several kinds; all if it is None.

        Raises:
            LayoutError: there is no such device, or no such kind.

        >>> [*NamespaceInfo().dtypes(kind="complex floating")]
        ['complex64', 'complex128']
        """
        check_device(device)
        try:
            return {name: dtype for name, dtype in DTYPES.items() if kind is None or isdtype(dtype, kind)}
        except (TypeError, ValueError) as error:
            raise LayoutError(f"{kind!r} is no kind of dtypes; write 'bool', 'integral', 'numeric', …") from error

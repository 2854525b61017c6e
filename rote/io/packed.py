"""Packed numbers, as netCDF and xarray have them: stored elements that stand for others by the tensor's attributes.

value = element * scale_factor + add_offset, and NaN where the element is _FillValue or missing_value
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..runtime.comm.protocol import Array

__all__ = ["Packing"]

_FLOATS = (np.dtype("f4"), np.dtype("f8"))


@dataclass(frozen=True, slots=True)
class Packing:
    """What stored elements stand for; the dtypes are those that xarray chooses.

    Attributes:
        integer: the dtype in which elements are taken: that of the file, or with `_Unsigned` the one of the other sign.
        dtype: the dtype of the values.
        fills: the elements that stand for no value.
        scale, offset: None if there is none.
    """

    integer: np.dtype[Any]
    dtype: np.dtype[Any]
    fills: tuple[Any, ...] = ()
    scale: Any = None
    offset: Any = None

    @classmethod
    def of(cls, attributes: Mapping[str, Any], dtype: np.dtype[Any]) -> Self | None:
        """The packing that the attributes of a tensor describe; None if its elements are the values themselves.

        >>> packing = Packing.of({"_FillValue": -1, "scale_factor": 0.5}, np.dtype("i2"))
        >>> packing.decode(np.array([4, -1, 5], "i2"))
        array([2. , nan, 2.5])
        """
        if dtype.kind not in "iufc":
            return None

        native = dtype.newbyteorder("=")
        kind = attributes.get("dtype")
        if native.kind in "iu" and isinstance(kind, str | bytes) and kind in ("bool", b"bool"):  # xarray's
            return cls(native, np.dtype(bool))

        integer = _with_sign(native, attributes.get("_Unsigned", ""))
        missing = [*_numbers(attributes, "missing_value"), *_numbers(attributes, "_FillValue")]
        fills = tuple({value for value in missing if value == value})
        if integer != native:
            fills = tuple([np.asarray(value).astype(native).astype(integer)[()] for value in fills])

        scale, offset = (next(iter(_numbers(attributes, name)), None) for name in ("scale_factor", "add_offset"))
        is_scaled = scale is not None or offset is not None
        if integer == native and not fills and not is_scaled:
            return None

        # Floats whose fill value is NaN stay as wide as they are, whatever scales them.
        values = integer
        if is_scaled and (fills or integer.kind in "iu" or not missing):
            values = _scaled(integer, scale, offset)
        if fills and values.kind in "iu":
            values = _FLOATS[integer.itemsize > 2]
        return cls(integer, values, fills, scale, offset)

    def decode(self, block: Array) -> Array:
        """The values of stored elements, as a new array."""
        elements = block.astype(self.integer, copy=False)
        values = elements.astype(self.dtype)
        for fill in self.fills:  # before elements are rounded to floats: 2147483647 is no f4
            values[elements == fill] = np.nan
        if self.scale is not None:
            values *= self.scale
        if self.offset is not None:
            values += self.offset
        return values


def _numbers(attributes: Mapping[str, Any], name: str) -> Array:
    """The numbers of an attribute; none if there is no such attribute, or if it is a text."""
    values = np.ravel(attributes.get(name, ()))
    return values.astype(values.dtype.newbyteorder("=")) if values.dtype.kind in "iufc" else values[:0]


def _with_sign(dtype: np.dtype[Any], unsigned: Any) -> np.dtype[Any]:
    """The dtype of integers that have a sign, or none, by an attribute that netCDF uses where it lacks the type."""
    kind = {("i", "true"): "u", ("u", "false"): "i"}.get((dtype.kind, str(np.asarray(unsigned).astype(str))))
    return np.dtype(f"{kind}{dtype.itemsize}") if kind else dtype


def _scaled(dtype: np.dtype[Any], scale: Any, offset: Any) -> np.dtype[Any]:
    """The dtype of scaled elements: that of the scale, but double where an offset could cost precision."""
    if offset is None:
        return scale.dtype  # type: ignore[no-any-return]

    is_one_type = scale is not None and scale.dtype == offset.dtype and scale.dtype in _FLOATS
    is_wide = dtype.kind in "iu" and dtype.itemsize == 4
    return scale.dtype if is_one_type and not is_wide else _FLOATS[1]

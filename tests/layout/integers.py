"""What every door that takes an integer does with what is one, and with what is equal to one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

__all__ = ["check_door"]

NO_INTEGERS = (True, np.True_, 1.0, np.float64(1), "1", b"1", 1 + 0j)
INTEGERS = (np.int64(1), np.uint8(1))


def check_door(call: Callable[[Any], object], refusal: type[Exception]) -> None:
    """A door refuses a bool, a float and a text with an error of its own; NumPy's integers are plain ones behind it."""
    for wrong in NO_INTEGERS:
        with pytest.raises(refusal) as caught:
            call(wrong)
        assert str(caught.value), wrong

    right = call(1)
    for n in INTEGERS:
        found = call(n)
        assert same(found, right) and repr(found) == repr(right), (n, found)


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal in all their parts, and the numbers in them are of the same types."""
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype) and np.array_equal(one, other)
    if isinstance(one, tuple | list):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if is_dataclass(one):
        parts = [(getattr(one, part.name), getattr(other, part.name)) for part in fields(one)]
        return type(one) is type(other) and one == other and all(same(*pair) for pair in parts)
    return type(one) is type(other) and one == other

"""A user's program in types: `.ci/types` checks that type checkers infer of tensors what they are."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np

import rote
import rote.array_api as xp
from rote import DistTensor
from rote.runtime import Comm

__all__ = ["loaded", "program", "scaled"]


def scaled(x: DistTensor) -> DistTensor:
    """A function that returns an expression, as strict checkers refuse one of no type."""
    return 2.5 * x + x.mean(axis=0)


def loaded(path: str) -> tuple[DistTensor, dict[str, Any]]:
    """A tensor of a file, and one with its attributes."""
    assert_type(rote.load(path, name="u", index={"time": 0}), DistTensor)
    return assert_type(rote.load(path, attrs=True), tuple[DistTensor, dict[str, Any]])


def program(comm: Comm) -> list[DistTensor]:
    """Values of operators, methods and indices, each of the type that is written beside it."""
    x = DistTensor.from_function(lambda i, j: i + 1j * j, (4, 6), "block[(0),()]", comm)
    x += 1
    y = assert_type(x.real, DistTensor)
    assert_type(float(y.sum(layout="[]")), float)
    return [
        *(assert_type(x + 1, DistTensor), assert_type(2.0 * x, DistTensor), assert_type(x * np.ones(6), DistTensor)),
        *(assert_type(-y, DistTensor), assert_type(abs(x), DistTensor), assert_type(y > 1, DistTensor)),
        *(assert_type(x[0], DistTensor), assert_type(y[y > 1], DistTensor), assert_type(y.T @ y, DistTensor)),
        *(assert_type(x.sum(), DistTensor), assert_type(y.max(axis=1, keepdims=True), DistTensor)),
        *(
            assert_type(x.conj(), DistTensor),
            assert_type(y.astype("f4"), DistTensor),
            assert_type(scaled(y), DistTensor),
        ),
        assert_type(y.round(1).clip(0, 2), DistTensor),
        assert_type(xp.sort(y, axis=0, descending=True), DistTensor),
    ]

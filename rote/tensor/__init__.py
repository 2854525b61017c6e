"""Tensors that are distributed over ranks, with the methods and protocols of NumPy's arrays."""

from __future__ import annotations

from .tensor import DistTensor

__all__ = ["DistTensor"]

"""Tensors that lie distributed over ranks, and what arrays can do that they do as well."""

from __future__ import annotations

from .tensor import DistTensor

__all__ = ["DistTensor"]

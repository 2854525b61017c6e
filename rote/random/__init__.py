"""Random tensors, whose numbers depend on the seed and on global indices alone."""

from __future__ import annotations

from .generator import Generator as Generator
from .generator import default_rng as default_rng

__all__ = ["Generator", "default_rng"]

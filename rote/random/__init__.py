"""Random tensors, whose numbers depend only on the seed and on global indices."""

from __future__ import annotations

from .generator import Generator as Generator
from .generator import default_rng as default_rng

__all__ = ["Generator", "default_rng"]

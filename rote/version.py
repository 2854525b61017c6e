"""Rote's version. This module imports nothing, so that every room may import it."""

from __future__ import annotations

VERSION = "0.3.0"

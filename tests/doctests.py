"""Examples of errors with notes, which Python's doctest compares by their last line alone before Python 3.11.4."""

from __future__ import annotations

import doctest
import traceback
from typing import Any

__all__ = ["compare_whole_errors"]


class _Traceback:
    """The module `traceback`, by which the text of an error is one piece, notes and all."""

    def __getattr__(self, name: str) -> Any:
        return getattr(traceback, name)

    @staticmethod
    def format_exception_only(*error: Any) -> list[str]:
        return ["".join(traceback.format_exception_only(*error))]


def compare_whole_errors() -> None:
    """Let doctest compare the whole text of an error, in this process from now on."""
    doctest.traceback = _Traceback()  # type: ignore[attr-defined]

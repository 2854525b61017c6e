"""How examples in docstrings run: errors are compared whole, and wisdom has a folder of its own in each.

Those of public names run as if a reader pasted them into a fresh Python; those of other names see their module.

Python's doctest compares errors with notes by their last line alone before Python 3.11.4.
"""

from __future__ import annotations

import doctest
import os
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

__all__ = ["compare_whole_errors", "keep_wisdom_apart", "run_pasted"]


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


def keep_wisdom_apart() -> None:
    """Let the examples of `rote.wisdom` keep decisions, each docstring's in an empty folder that goes with it.

    The other modules' examples keep none: a plan that may keep the times of a library would measure them first.
    """
    run = doctest.DocTestRunner.run

    def run_apart(self: doctest.DocTestRunner, test: doctest.DocTest, *args: Any, **options: Any) -> Any:
        if not test.name.startswith("rote.wisdom"):
            return run(self, test, *args, **options)
        with TemporaryDirectory() as folder, patch.dict(os.environ, ROTE_WISDOM=str(Path(folder, "wisdom"))):
            return run(self, test, *args, **options)

    doctest.DocTestRunner.run = run_apart  # type: ignore[method-assign]


def run_pasted(name: str, text: str) -> str:
    """Run the examples of a docstring with no names but their own; the complaint, empty when all is as they say."""
    test = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, name, None, 0)
    report: list[str] = []
    doctest.DocTestRunner().run(test, out=report.append)
    return "".join(report)

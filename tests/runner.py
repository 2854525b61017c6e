"""click's runner of command lines, as it is from click 8.2 on, also where an older click is installed."""

from __future__ import annotations

from inspect import signature
from typing import Any

from click.testing import CliRunner, Result

__all__ = ["Runner"]


class _Apart(Result):
    """A result of click 8.1, whose two streams are apart: the output is both of them, one after the other."""

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


class Runner(CliRunner):
    """A runner that keeps the standard output and the standard error apart."""

    def __init__(self, **options: Any) -> None:
        self.joins = "mix_stderr" in signature(CliRunner).parameters
        super().__init__(**options, **({"mix_stderr": False} if self.joins else {}))

    def invoke(self, *args: Any, **options: Any) -> Result:
        result = super().invoke(*args, **options)
        if self.joins:
            result.__class__ = _Apart
        return result

"""click's runner of command lines, as it is from click 8.2 on, also where an older click is installed."""

from __future__ import annotations

from inspect import signature
from typing import Any

from click.testing import CliRunner, Result

from rote.cli import main

__all__ = ["Runner", "refused", "run"]


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


def run(*args: object, **options: Any) -> Result:
    """A command line, in this process."""
    return Runner().invoke(main, [*map(str, args)], prog_name="rote", **options)


def refused(done: Result, status: int, part: str) -> None:
    """Assert that a command line that is wrong ended with its status and one text of one paragraph, which has a part.

    A wrong use, of status 2, also names the command whose help tells what is right.
    """
    assert (done.exit_code, type(done.exception)) == (status, SystemExit), done.output
    assert part in done.output or part in " ".join(done.output.split()), done.output
    assert done.stderr.startswith("Error: ") and done.output.count("Error: ") == 1 and "\n\n" not in done.output
    assert not any(word in done.output for word in ("Traceback", "Usage"))
    if status == 2:
        *_, last = done.output.splitlines()
        assert last.startswith("try: ") and last.endswith(" --help")

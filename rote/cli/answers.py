"""Answers as JSON: a command prints text for people or, with --json, nothing but its answer for programs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ..runtime.comm.protocol import Comm

__all__ = ["Answer", "give", "json_option", "print_answer", "say"]

Answer = dict[str, Any]
T = TypeVar("T")

json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the result as JSON, and nothing else; notebooks/cli.md lists the keys.",
)


def give(as_json: bool, program: Callable[[], T], answer: Callable[[T], Answer]) -> T:
    """Run a program that prints text for people, or print nothing but the answer that its result makes.

    Errors are not answers: they go to standard error and into the exit status, as without --json. `answer` makes JSON
    values of the result, under keys that are always there; the result is returned.
    """
    if not as_json:
        return program()
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        result = program()
    print_answer(answer(result))
    return result


def say(comm: Comm, *texts: str) -> None:
    """Print texts on rank 0, each on lines of its own."""
    if comm.rank == 0:
        for text in texts:
            click.echo(text)


def print_answer(answer: Answer) -> None:
    """Print an answer as JSON, one key or row on each line. JSON has no NaN and no infinity: they become null.

    >>> print_answer({"grid": (2, 2), "error": float("inf"), "ranks": [{"rank": 0}, {"rank": 1}]})
    {
      "grid": [2, 2],
      "error": null,
      "ranks": [
        {"rank": 0},
        {"rank": 1}
      ]
    }
    """
    lines = [f"  {json.dumps(key)}: {_text(_finite(value))}" for key, value in answer.items()]
    click.echo("{\n" + ",\n".join(lines) + "\n}")


def _text(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        rows = [f"    {json.dumps(row, allow_nan=False)}" for row in value]
        return "[\n" + ",\n".join(rows) + "\n  ]"
    return json.dumps(value, allow_nan=False)


def _finite(value: Any) -> Any:
    """A value with null for each number in it that is infinite or NaN."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_finite, value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value

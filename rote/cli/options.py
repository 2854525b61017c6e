"""Parameters that several commands take."""

from __future__ import annotations

import re
from collections.abc import Callable

import click

__all__ = ["integers", "threads_option"]

threads_option = click.option(
    "--threads", metavar="N", type=click.IntRange(min=1), help="Per rank, for local transforms; 1, if not given."
)

Reader = Callable[[click.Context, click.Parameter, str | None], tuple[int, ...] | None]


def integers(signed: bool = False) -> Reader:
    """A callback of click that reads a few integers, written 8x9x10 or 8,9,10.

    >>> read = integers()
    >>> option = click.Option(["--shape"], metavar="8x9x10")
    >>> read(click.Context(click.Command("show")), option, "8x9,10")
    (8, 9, 10)
    """
    integer = re.compile(("-?" if signed else "") + "[0-9]{1,18}")

    def read(context: click.Context, option: click.Parameter, text: str | None) -> tuple[int, ...] | None:
        if text is None:
            return None
        parts = [part.strip() for part in re.split("[,x]", text)]
        if not all(integer.fullmatch(part) for part in parts):
            example = option.make_metavar(context)
            raise click.BadParameter(f"{text!r} is not made of integers; write it as {example}", context, option)
        return tuple(int(part) for part in parts)

    return read

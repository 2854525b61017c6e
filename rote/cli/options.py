"""Parameters that several commands take."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ..errors import LayoutError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Bytes", "integers", "of_ffts", "threads_option"]

_AMOUNT = re.compile(
    r"(?P<number>[0-9][0-9_]*(?:\.[0-9]+)?)\s*(?:(?P<prefix>[KMGTPE])(?P<unit>iB|B)?|B)?", re.IGNORECASE
)

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


class Bytes(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """A number of bytes, as people write it; K and KiB are 1024 of them, KB is 1000.

    >>> [Bytes().convert(text, None, None) for text in ("100_000", "64K", "1.5 GiB", "2MB", "7b")]
    [100000, 65536, 1610612736, 2000000, 7]
    """

    name = "bytes"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; a usage error if the text is none."""
        if isinstance(value, int):
            return value
        amount = _AMOUNT.fullmatch(value.strip())
        if amount is None:
            self.fail(f"{value!r} is no number of bytes; write it as 100000, 64K, 1.5GiB or 2MB", param, ctx)
        base = 1000 if (amount["unit"] or "").upper() == "B" else 1024
        power = "KMGTPE".index(amount["prefix"].upper()) + 1 if amount["prefix"] else 0
        return int(float(amount["number"]) * base**power) if "." in value else int(amount["number"]) * base**power


def of_ffts(text: str) -> np.dtype[Any]:
    """The dtype of a tensor that is to be transformed.

    Raises:
        PlanError: the text is no dtype that Rote moves.
        LayoutError: it is of integers: whoever has them says in which precision they are transformed.
    """
    from ..compiler.step import as_dtype

    element = as_dtype(text)
    if element.kind not in "fc":
        raise LayoutError(f"FFTs are of real or complex numbers, not of {element}; write f4, f8, c8, c16, ...")
    return element

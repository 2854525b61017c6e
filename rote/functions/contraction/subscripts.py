"""The subscripts of contractions, as text or lists, parsed into labels for the modes of operands and result."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from ...caches import memoized
from ...errors import LayoutError

__all__ = ["Subscripts", "Term", "as_text", "read_subscripts"]

Term = tuple[int, ...]
"""One label per mode; modes of one label share an index."""

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Subscripts(NamedTuple):
    """A contraction, without sizes."""

    terms: tuple[Term, ...]  # per operand, the labels of its modes
    result: Term  # the labels of the result's modes; all others are summed over


@memoized(1024)
def read_subscripts(text: str, orders: tuple[int, ...]) -> Subscripts:
    """Read the text of `numpy.einsum`; letters are labels from 0 on, an ellipsis has those from 52 on, last mode first.

    Args:
        text: one letter per mode, with commas between terms, and the result behind `->`. Without `->` the result has
            the modes of the ellipsis, then the letters that occur once, in alphabetical order.
        orders: the orders of the operands.

    Raises:
        LayoutError: the text is invalid, or does not fit the operands.

    >>> read_subscripts("ij,jk", (2, 2))
    Subscripts(terms=((8, 9), (9, 10)), result=(8, 10))
    >>> read_subscripts("...i->...", (3,))
    Subscripts(terms=((53, 52, 8),), result=(53, 52))
    """
    given, arrow, wanted = text.replace(" ", "").partition("->")
    parts = given.split(",")
    if len(parts) != len(orders):
        raise LayoutError(f"{text!r} has subscripts for {len(parts)} operands, not {len(orders)}; part them by commas")
    terms = tuple(_labels(text, part, order) for part, order in zip(parts, orders, strict=True))
    together = [*chain(*terms)]
    loose = sorted({label for label in together if label >= len(_LETTERS)}, reverse=True)
    if not arrow:
        once = [_LETTERS.index(letter) for letter in sorted(_LETTERS) if together.count(_LETTERS.index(letter)) == 1]
        return Subscripts(terms, (*loose, *once))
    result = _labels(text, wanted, len(loose) + len(wanted.replace("...", "")))
    for n, label in enumerate(result):
        if label in result[:n] or label not in together:
            why = "comes twice" if label in result[:n] else "belongs to no operand"
            raise LayoutError(f"the letter {_LETTERS[label]!r} of the result of {text!r} {why}")
    return Subscripts(terms, result)


def _labels(text: str, part: str, order: int) -> Term:
    """The labels of one operand, or of the result."""
    before, dots, after = part.partition("...")
    if any(letter not in _LETTERS for letter in before + after):
        wrong = next(letter for letter in before + after if letter not in _LETTERS)
        raise LayoutError(
            f"{wrong!r} in the subscripts {text!r} is no letter; write one letter per mode, as 'ij,jk->ik'"
        )
    loose = order - len(before) - len(after)
    if loose < 0 or (loose and not dots):
        raise LayoutError(f"{part!r} in the subscripts {text!r} is for an operand of another order, which has {order}")
    dotted = (len(_LETTERS) + n for n in reversed(range(loose)))
    return (*map(_LETTERS.index, before), *dotted, *map(_LETTERS.index, after))


def _letter(label: Any) -> str:
    """The text of a label that is given as a number or an ellipsis."""
    return "..." if label is Ellipsis else _LETTERS[label]


def as_text(given: Sequence[Any]) -> tuple[str, list[Any]]:
    """The subscripts and operands of a call with lists of labels, `einsum(x, [0, 1], y, [1, 2], [0, 2])`.

    >>> as_text(("x", [0, 1], "y", [1, ...], [0, ...]))
    ('ab,b...->a...', ['x', 'y'])
    """
    pairs = len(given) // 2
    lists = [*given[1 : 2 * pairs : 2], *given[2 * pairs :]]
    try:
        texts = ["".join(map(_letter, labels)) for labels in lists]
    except (TypeError, IndexError):
        raise LayoutError(
            f"einsum takes text such as 'ij,jk->ik' and operands, or operands each with a list of labels from 0 to "
            f"{len(_LETTERS) - 1}, not {lists}"
        ) from None
    return "->".join([",".join(texts[:pairs]), *texts[pairs:]]), [*given[0 : 2 * pairs : 2]]

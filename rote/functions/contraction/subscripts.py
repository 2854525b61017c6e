"""Subscripts: the letters that name the modes of the operands and of the result of a contraction.

    "ik,kj->ij"     c[i, j] is the sum over k of a[i, k] · b[k, j]

Each term is a string with a letter per mode. Letters that the result lacks are summed over. Text is that of
`numpy.einsum`: an ellipsis stands for modes without letters, and without an arrow the result has the letters that occur
once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...errors import LayoutError, NotationError
from ...grammar.nodes import exact

__all__ = ["LETTERS", "Subscripts", "as_text", "read_path", "read_subscripts", "spanning"]

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

_LABELS = "".join(sorted(LETTERS))
"""The letters of the labels 0 to 51, in the order in which a result without subscripts has them."""


class Subscripts(NamedTuple):
    """The letters of a contraction, without sizes.

    Attributes:
        terms: per operand, a letter for each of its modes; a letter that comes twice takes a diagonal.
        result: the letters of the result, each once.
    """

    terms: tuple[str, ...]
    result: str

    def __str__(self) -> str:
        return f"{','.join(self.terms)}->{self.result}"

    @property
    def letters(self) -> str:
        """Every letter once, in the order of the text."""
        return "".join(dict.fromkeys("".join(self.terms)))

    def extents(self, shapes: Sequence[tuple[int, ...]], cause: str = "einsum") -> dict[str, int]:
        """The extent of each letter; modes of one element broadcast.

        Raises:
            LayoutError: one letter names modes of different extents, neither of which is 1; or of one operand.

        >>> Subscripts(("ik", "kj"), "ij").extents([(2, 3), (3, 4)])
        {'i': 2, 'k': 3, 'j': 4}
        """
        extents: dict[str, int] = {}
        start = 0  # of a term, in the text
        for term, shape in zip(self.terms, shapes, strict=True):
            for mode, (letter, n) in enumerate(zip(term, shape, strict=True)):
                # Modes of one operand take a diagonal, and do not broadcast against each other.
                first = term.index(letter)
                known = shape[first] if first < mode else extents.setdefault(letter, n)

                if n != known and (first < mode or 1 not in (n, known)):
                    every = " and ".join(map(str, shapes))
                    rule = f"{cause} takes modes of equal extents together, not {known} and {n} of {every}"
                    hint = "give each letter one extent; modes of one element broadcast against other operands"
                    raise LayoutError(str(NotationError("extents", str(self), start + mode, rule, hint)))

                if n != 1:
                    extents[letter] = n
            start += len(term) + 1
        return extents


def read_subscripts(text: str, orders: Sequence[int]) -> Subscripts:
    """Read the text of `numpy.einsum`; modes of an ellipsis take letters that the text does not use.

    Args:
        text: one letter per mode, with commas between terms, and the result after `->`. Without `->`, the result has
            the modes of the ellipsis, then the letters that occur once, in alphabetical order.
        orders: the orders of the operands.

    Raises:
        NotationError: the text is invalid.
        LayoutError: it does not fit the orders.

    >>> print(read_subscripts("ij,jk", (2, 2)), read_subscripts("...i->...", (3,)))
    ij,jk->ik yzi->yz
    """
    original, text = text, text.replace(" ", "")
    left, arrow, right = text.partition("->")
    written = left.split(",")
    if len(written) != len(orders):
        rule = f"these are subscripts for {len(written)} operands, not {len(orders)}"
        raise LayoutError(
            str(NotationError("operands", original, len(original), rule, "write one term per operand, with commas"))
        )

    # Ellipses broadcast from the right: the last mode of each has the first spare letter.
    spare = [letter for letter in reversed(LETTERS[26:] + LETTERS[:26]) if letter not in text]
    terms, start, widest = [], 0, 0
    for term, order in zip(written, orders, strict=True):
        _check_letters(text, term, start)
        missing = order - len(term.replace("...", ""))
        if missing < 0 or (missing and "..." not in term):
            rule = f"{term!r} is for an operand of another order, which has {order}"
            hint = "write a letter per mode, or ... for modes without letters"
            raise LayoutError(str(NotationError("order", text, start, rule, hint)))

        terms.append(term.replace("...", "".join(spare[:missing][::-1])))
        widest = max(widest, missing)
        start += len(term) + 1

    loose = "".join(spare[:widest][::-1])
    if not arrow:
        named = "".join(written).replace(".", "")
        return Subscripts(tuple(terms), loose + "".join(sorted(x for x in {*named} if named.count(x) == 1)))

    start = len(left) + len(arrow)
    _check_letters(text, right, start)
    for letter in right.replace(".", ""):
        at = start + right.rindex(letter)
        if right.count(letter) > 1:
            raise NotationError("repeated", text, at, f"the result names {letter!r} twice", "name each letter once")
        if letter not in left:
            rule = f"no operand has the letter {letter!r} of the result"
            raise NotationError("unknown", text, at, rule, "write only letters of the operands behind the arrow")
    return Subscripts(tuple(terms), right.replace("...", loose))


def _check_letters(text: str, term: str, start: int) -> None:
    """Refuse a term, which starts somewhere in the text, of anything but letters and one ellipsis."""
    for n, letter in enumerate(term.replace("...", LETTERS[:3], 1), start):
        if letter not in LETTERS:
            rule = f"{letter!r} is no letter; a mode is named by one letter"
            raise NotationError("no-letter", text, n, rule, "write one letter per mode, as in ij,jk->ik")


def as_text(arguments: Sequence[Any]) -> tuple[str, list[Any]]:
    """The subscripts and operands of a call with lists of labels, `einsum(x, [0, 1], y, [1, 2], [0, 2])`.

    Raises:
        LayoutError: a label is no integer from 0 to 51, and no ellipsis.

    >>> as_text(("x", [0, 1], "y", [1, ...], [0, ...]))
    ('AB,B...->A...', ['x', 'y'])
    """
    pairs = len(arguments) // 2
    lists = [*arguments[1 : 2 * pairs : 2], *arguments[2 * pairs :]]  # that of the result has no operand before it

    try:
        texts = ["".join(map(_letter, labels)) for labels in lists]
    except (TypeError, ValueError):
        raise LayoutError(
            f"einsum takes text such as 'ij,jk->ik' and operands, or operands each with a list of labels from 0 to "
            f"{len(LETTERS) - 1}, not {lists}"
        ) from None

    return "->".join([",".join(texts[:pairs]), *texts[pairs:]]), [*arguments[0 : 2 * pairs : 2]]


def _letter(label: Any) -> str:
    """The letter of a label; an ellipsis is one of text.

    Raises:
        TypeError: the label is no integer. ValueError: it is out of range.
    """
    if label is Ellipsis:
        return "..."
    number = exact(label)
    if not 0 <= number < len(_LABELS):
        raise ValueError
    return _LABELS[number]


def read_path(optimize: Any, count: int) -> tuple[tuple[int, ...], ...] | None:
    """The path that a call of einsum gives, checked for a number of operands; None to let the plan choose.

    >>> read_path(["einsum_path", (0, 1), (1, 0)], 3), read_path("greedy", 3)
    (((0, 1), (0, 1)), None)
    """
    named = optimize[0] if isinstance(optimize, tuple | list) and optimize else optimize
    if named is None or named is True or named is False or named in ("greedy", "optimal"):
        return None

    remaining, groups = count, []
    for group in optimize[1:] if named == "einsum_path" else [()]:
        numbers = {*group} if isinstance(group, tuple | list) else set()
        if not numbers or len(numbers) < len(group) or not numbers <= {*range(remaining)}:
            raise LayoutError(
                f"optimize={optimize!r} is no path of {count} operands\n"
                "write True, or a path as of numpy.einsum_path: ['einsum_path', (0, 1), (0, 1)]"
            )
        groups.append(tuple(sorted(numbers)))
        remaining -= len(numbers) - 1

    if remaining > 1:
        groups.append(tuple(range(remaining)))  # as NumPy does
    return tuple([group for group in groups if len(group) > 1]) or None


def spanning(term: str, shape: Sequence[int], extents: Mapping[str, int]) -> str:
    """The letters of a term but those along which a tensor has one element, and broadcasts."""
    return "".join([letter for letter, n in zip(term, shape, strict=True) if n == extents[letter]])

"""Valid texts are broken in known ways, thousands of times: the parser names what was broken, where it was broken."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from breakages import BREAKAGES, Broken, at_random
from grammar_texts import join, random_pieces
from marks import PARTS
from parts import REST, SOME, share

from rote.grammar import NotationError, parse_syntax

TEXTS_EACH = {SOME: 16, REST: 64}  # broken texts for every breakage


def broken_texts(name: str, part: str) -> Iterator[tuple[str, list[int], Broken]]:
    """Texts broken in the way of this name, with the position of every piece."""
    random = Random(f"{name} {part}")
    for _ in range(20 * TEXTS_EACH[part]):
        broken = at_random(BREAKAGES, name, random_pieces(random), random)
        if broken is not None:
            yield *join(broken.pieces, random), broken


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", BREAKAGES)
def test_the_mistake_is_named(name: str, part: str) -> None:
    """What was broken is what the error names, and the caret stands under it."""
    count = 0
    for text, positions, broken in broken_texts(name, part):
        with pytest.raises(NotationError) as caught:
            parse_syntax(text)
        assert caught.value.mistake == broken.mistake, text
        if broken.caret is not None:
            end = len(text.rstrip())
            assert caught.value.position == [*positions, end][broken.caret], text
        count += 1
        if count == TEXTS_EACH[part]:
            return
    pytest.fail(f"only {count} texts could be broken in this way")


@pytest.mark.parametrize("part", PARTS)
def test_unbroken_texts_are_accepted(part: str) -> None:
    """The generator itself writes only valid texts: else the test above would prove nothing."""
    for random in map(Random, share(range(2000), part, 5, of=3)):
        text, _ = join(random_pieces(random), random)
        parse_syntax(text)

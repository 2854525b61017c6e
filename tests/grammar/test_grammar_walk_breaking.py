"""Valid walks are broken in known ways, thousands of times, each in one line: the parser names what was broken, and the
line, and the place in it. What breaks a layout breaks a stage, with the same name."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from breakages import BREAKAGES, Broken, at_random
from grammar_texts import Piece, layout_pieces
from marks import PARTS
from parts import REST, SOME, share
from walk_breakages import WALK_BREAKAGES
from walk_texts import join_line, nothing, stage_pieces

from rote.grammar import NotationError, parse_walk

TEXTS_EACH = {SOME: 12, REST: 48}  # broken texts for every breakage

# Those that break an arrow, or what may stand after a layout; # begins a comment.
NOT_IN_STAGES = {"second_thought", "another_arrow", "no_arrow", "no_source", "no_target"}
OF_LAYOUTS = [name for name in BREAKAGES if name not in NOT_IN_STAGES]
ANOTHER_NAME = {"text-after-layout": "text-after-stage"}


def broken_stages(name: str, part: str) -> Iterator[Broken]:
    """Stages broken in the way of this name."""
    random = Random(f"{name} {part}")
    for _ in range(20 * TEXTS_EACH[part]):
        broken = at_random(WALK_BREAKAGES, name, stage_pieces(random), random)
        if broken is not None:
            yield broken


def stages_with_broken_layouts(name: str, part: str) -> Iterator[Broken]:
    """Stages whose layout is broken in the way of this name."""
    random = Random(f"{name} {part}")
    for _ in range(20 * TEXTS_EACH[part]):
        broken = at_random(BREAKAGES, name, layout_pieces(random, random.randint(0, 4)), random)
        if broken is None or any(piece.text == "#" for piece in broken.pieces):
            continue
        first = broken.pieces[0].text
        more = first[:1].isdigit() or first in ("*", ",")  # after a grid it is read as more of it
        grid = [] if more else random.choice(([], [Piece("on", "on"), Piece("4x256", "grid")]))
        actions = random.choice(([], [":", "twiddle"], [":", "fft", "(", "0", ",", "1", ")", ",", "twiddle"]))
        yield Broken(
            [*grid, *broken.pieces, *(Piece(text, "action") for text in actions)],
            ANOTHER_NAME.get(broken.mistake, broken.mistake),
            None if broken.caret is None else broken.caret + len(grid),
        )


def assert_named(broken: Broken, random: Random) -> None:
    """The walk that has this stage among right ones, above and below, is refused with its name, line and caret."""
    above, below = ([join_line(stage_pieces(random), random)[0] for _ in range(random.randint(0, 2))] for _ in "ab")
    line, positions = join_line(broken.pieces, random)
    before = [*nothing(random), *above, *nothing(random)]
    text = "\n".join([*before, line, *nothing(random), *below])
    with pytest.raises(NotationError) as caught:
        parse_walk(text)
    assert (caught.value.mistake, caught.value.line) == (broken.mistake, len(before) + 1), line
    assert caught.value.text == line.rstrip()
    assert str(caught.value).startswith(f"line {len(before) + 1}: ")
    assert len(str(caught.value).split("\n")) == 4
    if broken.caret is not None:
        assert caught.value.position == positions[broken.caret], line


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", [*WALK_BREAKAGES, *OF_LAYOUTS])
def test_the_mistake_is_named(name: str, part: str) -> None:
    """What was broken is what the error names, with the number of its line; the caret stands under it."""
    random, count = Random(name), 0
    for broken in (broken_stages if name in WALK_BREAKAGES else stages_with_broken_layouts)(name, part):
        assert_named(broken, random)
        count += 1
        if count == TEXTS_EACH[part]:
            return
    pytest.fail(f"only {count} texts could be broken in this way")


@pytest.mark.parametrize("part", PARTS)
def test_unbroken_walks_are_accepted(part: str) -> None:
    """The generator itself writes only valid walks: else the test above would prove nothing."""
    for random in map(Random, share(range(500), part, 5)):
        lines = [join_line(stage_pieces(random), random)[0] for _ in range(random.randint(1, 4))]
        walk = parse_walk("\n".join(line for stage in lines for line in (*nothing(random), stage)))
        assert len(walk.stages) == len(lines)

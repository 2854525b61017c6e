"""The table of places: every line of it names mistakes, and is needed by a text that the tests of mistakes print."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from test_grammar_mistakes import CHOICES, PRINTED
from test_grammar_walk_mistakes import CHOICES as WALK_CHOICES
from test_grammar_walk_mistakes import PRINTED as WALK_PRINTED

from rote.grammar import NotationError, misplaced
from rote.grammar.build import build, build_stage
from rote.grammar.diagnostics import MISTAKES, WALK_MISTAKES

LAYOUTS = [
    *(*CHOICES, *(printed.split("\n")[1].strip() for printed in PRINTED.values())),
    *(", a: [()]", "[(0,)]", "[(0:cyclic(7 0))]", "(a x=): [()()]", "block 0[(0)]"),
]
STAGES = [
    *(*WALK_CHOICES, *(printed.split("\n")[1].strip() for printed in WALK_PRINTED.values())),
    *("[()]: , twiddle", "[()]: twiddle,", "[()]: fft(0x)"),
]


class Recorded(list[list[str]]):
    """Lines of the table that remember which of them were the last to be looked at: those that fitted."""

    def __init__(self, lines: list[list[str]]) -> None:
        super().__init__(lines)
        self.last: list[str] = []

    def __iter__(self) -> Iterator[list[str]]:
        for line in super().__iter__():
            self.last = line
            yield line


def test_the_table_names_mistakes() -> None:
    """Every mistake has its text, no line is there twice, and the last one fits anything."""
    lines = [line.split() for line in misplaced._TABLE.splitlines()]
    assert {name for line in lines for name in line[4::2]} <= {*MISTAKES, *WALK_MISTAKES}
    assert all(len(line) % 2 == 1 and len(line) >= 5 for line in lines)
    assert len({tuple(line[:4]) for line in lines}) == len(lines)
    assert lines[-1] == ["*", "*", "*", "*", "unexpected-mark"]


def test_each_line_of_the_table_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each names the mistake of a text in the tests of mistakes, or of one of a few more."""
    lines = Recorded(misplaced._PLACES)
    monkeypatch.setattr(misplaced, "_PLACES", lines)
    used = set()
    for read, texts in ((build, LAYOUTS), (build_stage.__wrapped__, STAGES)):
        for text in texts:
            lines.last = []
            try:
                read(text)
            except NotationError:
                used.add(tuple(lines.last))
    assert [line for line in misplaced._PLACES if tuple(line) not in used] == []

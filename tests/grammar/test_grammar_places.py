"""The table of places: every line of it names mistakes, and is needed by a text that the tests of mistakes print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from test_grammar_mistakes import CHOICES, PRINTED
from test_grammar_walk_mistakes import CHOICES as WALK_CHOICES
from test_grammar_walk_mistakes import PRINTED as WALK_PRINTED

from rote.grammar import LayoutSyntax, NotationError, TransitionSyntax, naming
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


Row = tuple[str, str, str, dict[str, str]]


class Recorded(list[Row]):
    """Lines of the table that remember which of them were the last to be looked at: those that fitted."""

    def __init__(self, lines: Iterable[Row]) -> None:
        super().__init__(lines)
        self.last: Row | None = None

    def __iter__(self) -> Iterator[Row]:
        for line in super().__iter__():
            self.last = line
            yield line


def test_the_table_names_mistakes() -> None:
    """Every mistake has its text, no line is there twice, and the last one fits anything."""
    lines = naming._TABLE
    assert {name for *_, cases in lines for name in cases.values()} <= {*MISTAKES, *WALK_MISTAKES}
    assert len({(*place, stands) for *place, cases in lines for stands in cases}) == sum(len(line[3]) for line in lines)
    assert lines[-1] == (naming.ANY, naming.ANY, "", {naming.ANY: "unexpected-mark"})


def test_each_line_of_the_table_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each names the mistake of a text in the tests of mistakes, or of one of a few more."""
    lines = Recorded(naming._TABLE)
    monkeypatch.setattr(naming, "_TABLE", lines)
    used = []
    nodes = LayoutSyntax, TransitionSyntax
    for read, texts, classes in ((build, LAYOUTS, nodes), (build_stage.__wrapped__, STAGES, nodes[:1])):
        for text in texts:
            lines.last = None
            try:
                read(text, *classes)
            except NotationError:
                used.append(lines.last)
    assert [line for line in naming._TABLE if line not in used] == []

"""What the errors say: for every mistake the text, exactly as it is printed (mistakes.txt), and how it is shown."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import cast

import pytest

from rote.grammar import NotationError, RoteError, parse_syntax
from rote.grammar.diagnostics import MISTAKES

# name of the mistake, then the error as printed: rule, text, caret, cure
BLOCKS = Path(__file__).with_name("mistakes.txt").read_text("utf-8").strip().split("\n\n")
PRINTED = dict(block.split("\n", 1) for block in BLOCKS)
# Those that are not a matter of one short line.
OTHERWISE = {"empty-text": " \n", "text-too-long": "[()]" * 2501, "too-many-modes": "[" + "()" * 65 + "]"}


def error(text: str) -> NotationError:
    """The error that a text is answered with."""
    with pytest.raises(NotationError) as caught:
        parse_syntax(text)
    return caught.value


@pytest.mark.parametrize("name", PRINTED)
def test_printed(name: str) -> None:
    """Rule, text, caret, cure."""
    printed = PRINTED[name]
    _, text, caret, _ = printed.split("\n")
    found = error(text.strip())
    assert (found.mistake, str(found)) == (name, printed)
    assert found.position == len(caret) - len("    ^")


@pytest.mark.parametrize("name", OTHERWISE)
def test_printed_otherwise(name: str) -> None:
    """These too have their name, and their rule and cure from the table."""
    found = error(OTHERWISE[name])
    assert (found.mistake, found.rule, found.hint) == (name, *MISTAKES[name])


# Those of a text that is right, at the door for another: tests/layout prints them.
AT_ANOTHER_DOOR = ("missing-arrow", "unexpected-transition")


def test_every_mistake_is_printed() -> None:
    """The table of this test and the table of the grammar name the same mistakes."""
    assert sorted([*PRINTED, *OTHERWISE, *AT_ANOTHER_DOOR]) == sorted(MISTAKES)


CHOICES = {
    "[((0)),()]": "nested-parentheses",
    "[((0),()]": "missing-closing-parenthesis",
    "[(,(0)]": "missing-closing-parenthesis",
    "[(,0)]": "leading-comma",
    "foo": "missing-opening-bracket",
    "a: [": "missing-closing-bracket",
    "a: -> [()]": "missing-layout",
    "a b[()()]": "missing-colon",
    "a block[()()]": "missing-colon",
    "a block: [()()]": "reserved-name",
    "a blok[()]": "unknown-kind",
    "blok(4)[(0)]": "unknown-kind",
    "BLOCK[(0)]": "unknown-kind",
    "blok: [()]": "",
    "a: blok[()]": "unknown-kind",
    "(0),(1)": "missing-opening-bracket",
    "((a b) c): [()]": "nested-parentheses",
    "((a b c: [()]": "missing-closing-parenthesis",
    "[(0)] -> [(0) -> [(0)]": "two-arrows",
    "[()()] -> (a b): [()]": "",
    "[()] -> (a b): [()]": "order-mismatch",
    "(r s=4): [()()] -> [()]": "",
    "[(0:block(0,0))]": "",
    "[(0:block(0))]": "",
    "block(0)[(0)]": "",
    "[(0:cyclic(0))]": "zero-tile",
    "cyclic(0)[(0)]": "zero-tile",
    "[(0:cyclic(2,3))]": "too-many-sizes",
    "[(0:block(ceil,at=1))]": "size-of-rounded",
    "[(0:block(3,at=1))]": "at-of-block",
    "[(0:block(3 ceil))]": "missing-comma",
    "[(0:cyclic(4,floor))]": "rounded-cyclic",
    "[(0:cyclic(2 at=1))]": "missing-comma",
    "[(0:cyclic(at=1,at=1))]": "text-after-at",
    "cyclic(at)[(0)]": "missing-equals",
    "block(at=1)[(0)]": "at-of-block",
    "at ceil[()()]": "missing-colon",
    "[(0:block ceil)]": "bare-size",
    "[(0:cyclic at=2)]": "bare-size",
    "[(63)]+(62)|(61@9223372036854775807)": "",
    "[(0)]|(1)+(1)": "repeated-grid-mode",
    "[(0)] -> [(0)]": "",
    "[] []": "text-after-layout",
    "->": "missing-layout",
    "]": "missing-opening-bracket",
    "[": "missing-closing-bracket",
    "(": "missing-opening-bracket",
    "+(1)": "missing-layout",
}


@pytest.mark.parametrize("text", CHOICES)
def test_which_mistake(text: str) -> None:
    """Where one wrong token can have several reasons, the whole of the text decides which one is named."""
    if CHOICES[text]:
        assert error(text).mistake == CHOICES[text]
    else:
        parse_syntax(text)


MARKS = {
    "block([0],[])": ("mixed-brackets", "[(0),()]", 5),
    "block{(0),()}": ("mixed-brackets", "[(0),()]", 5),
    "block[{0},{}]": ("mixed-brackets", "[(0),()]", 6),
    "block[[0],[]]": ("mixed-brackets", "[(0),()]", 6),
    "block((0),())": ("mixed-brackets", "[(0),()]", 5),
    "block[(0);()]": ("unknown-character", "[(0),()]", 9),
    "block[(0)\uff0c()]": ("unknown-character", "[(0),()]", 9),
    "block[\uff080\uff09,()]": ("unknown-character", "[(0),()]", 6),
    "block\uff3b(0),()]": ("unknown-character", "[(0),()]", 5),
    "block[(\u00b2),()]": ("unknown-character", "[(2),()]", 7),
    "block[(0),()]+[1]": ("mixed-brackets", "[(0),()]+(1)", 14),
    "block[(0),()]|{1@2}": ("mixed-brackets", "[(0),()]|(1@2)", 14),
    "block[[0:cyclic[4]],()]": ("mixed-brackets", "[(0:cyclic(4)),()]", 6),
    "block[0, None]": ("unsplit-mode", "[(0),()]", 9),
    "block[(1),(0,2),*]": ("unsplit-mode", "[(1),(0,2),()]", 16),
    "block[:,(0)]": ("unsplit-mode", "[(),(0)]", 6),
    "block((0),-)": ("unsplit-mode", "[(0),()]", 10),
    "block([0],[]) -> [[],[0]]": ("mixed-brackets", "[(0),()] -> [(),(0)]", 5),
}


@pytest.mark.parametrize("text", MARKS)
def test_a_text_with_wrong_marks_is_told_the_right_text(text: str) -> None:
    """Brackets of another kind, wide characters and semicolons: the hint is the whole layout as it is to be written."""
    name, right, position = MARKS[text]
    found = error(text)
    assert (found.mistake, found.hint, found.position) == (name, f"write block{right}", position)
    parse_syntax(f"block{right}")


@pytest.mark.parametrize("text", ["block([0],[)", "block{(0)", "[(0);(1)", "{(0),(0)}", "[(0)] -> {(0),()"])
def test_no_text_is_told_that_is_wrong_too(text: str) -> None:
    """Where other marks would not make a layout, the first mistake is named as ever."""
    assert "write block" not in error(text).hint


@pytest.mark.parametrize(
    ("word", "cure"),
    [
        ("blck", "did you mean block?"),
        ("cyclick", "did you mean cyclic?"),
        (
            "rows",
            "write cyclic, cyclic(4), cyclic(4,at=2), block, block(4), block(3,5,2), block(ceil) or block(floor)",
        ),
        ("floor", "write block(floor)"),
        ("CYCLIC", "did you mean cyclic?"),
    ],
)
def test_did_you_mean(word: str, cure: str) -> None:
    """A near miss is answered with the word itself, anything else with all the words."""
    assert error(f"[(0:{word})]").hint == cure


def test_a_long_text_is_shown_through_a_window() -> None:
    """The caret stands under its character in a long text too, wherever it is."""
    text = ",".join(f"({g}:block({g + 1}))" for g in range(40))
    for wrong in (f"[{text}", f"[x{text}]", f"[{text[:200]}#{text[200:]}]"):
        found = error(wrong)
        _, line, caret, _ = str(found).split("\n")
        assert len(line) <= 80
        under = (line + " ")[len(caret) - 1]
        assert under == (wrong + " ")[found.position]
    assert str(error("[" + "()" * 40 + "x" + "()" * 40 + "]")).split("\n")[1:3] == [
        "    …" + "()" * 24 + "x" + "()" * 11 + "(…",
        " " * 53 + "^",
    ]


def test_what_does_not_print_is_escaped() -> None:
    """Four lines, printable, whatever the text holds; the caret counts the characters that are shown."""
    printed = str(error("[(0),\n\t(1),\x00]")).split("\n")
    assert printed[0] == "no text of a layout has the character \\x00"
    assert printed[1] == "    [(0),\\n\\t(1),\\x00]"
    assert printed[2] == " " * printed[1].index("\\x00") + "^"
    str(error("[\ud800]")).encode()


def test_errors_travel() -> None:
    """An error that was pickled is the same error: ranks send them to each other."""
    found = error("[(0),(),1]")
    again = pickle.loads(pickle.dumps(found))
    assert (type(again), str(again), vars(again)) == (NotationError, str(found), vars(found))
    assert isinstance(found, RoteError) and isinstance(found, ValueError)


@pytest.mark.parametrize("wrong", [None, 3, b"[()]", ["[()]"]])
def test_only_texts_are_parsed(wrong: object) -> None:
    """Anything but a str is a TypeError that says so."""
    with pytest.raises(TypeError, match=f"not as {type(wrong).__name__}"):
        parse_syntax(cast(str, wrong))

"""What the errors of walks say: for every mistake the text, exactly as it is printed (walk_mistakes.txt)."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import cast

import pytest

from rote.grammar import NotationError, parse_walk
from rote.grammar.diagnostics import MISTAKES, WALK_MISTAKES

# name of the mistake, then the error as printed: rule, line, caret, cure
BLOCKS = Path(__file__).with_name("walk_mistakes.txt").read_text("utf-8").strip().split("\n\n")
PRINTED = dict(block.split("\n", 1) for block in BLOCKS)
# Those that are not a matter of one short line.
OTHERWISE = {
    "empty-walk": "\n  # nothing\n",
    "walk-too-long": "[()]\n" * 10_001,
    "too-many-grid-modes": "on " + "x".join("1" * 65) + " []",
}


def error(text: str) -> NotationError:
    """The error that a text is answered with."""
    with pytest.raises(NotationError) as caught:
        parse_walk(text)
    return caught.value


@pytest.mark.parametrize("name", PRINTED)
def test_printed(name: str) -> None:
    """Rule, line, caret, cure."""
    printed = PRINTED[name]
    _, line, caret, _ = printed.split("\n")
    found = error(line.strip())
    assert (found.mistake, str(found)) == (name, printed)
    assert found.position == len(caret) - len("    ^")


@pytest.mark.parametrize("name", OTHERWISE)
def test_printed_otherwise(name: str) -> None:
    """These too have their name, and their rule and cure from the table."""
    found = error(OTHERWISE[name])
    assert (found.mistake, found.rule, found.hint) == (name, *WALK_MISTAKES[name])


def test_every_mistake_is_printed() -> None:
    """The table of this test and the table of the grammar name the same mistakes; no name is a layout's too."""
    assert sorted([*PRINTED, *OTHERWISE]) == sorted(WALK_MISTAKES)
    assert set(WALK_MISTAKES) & set(MISTAKES) == set()


WALK = """\
# 256 points on 4 ranks

    (t s=4): [(),(0)]: fft(t), twiddle   # alltoall

\t(b r=4) s: [(0),(),(1]: fft(s)   # natural order
"""


def test_only_the_wrong_line_is_shown() -> None:
    """With its number, as it stands in the text; the caret is under the place where it is wrong."""
    assert str(error(WALK)) == (
        "line 5: a parenthesis is not closed\n"
        "    \\t(b r=4) s: [(0),(),(1]: fft(s)   # natural order\n"
        "                           ^\n"
        "write the missing ), at the latest before ]"
    )
    found = error(WALK)
    assert (found.line, found.text) == (5, WALK.split("\n")[4])
    assert found.text[found.position] == "]"


def test_where_a_walk_as_a_whole_is_wrong() -> None:
    """An empty one in its first line, a long one where it becomes too long."""
    assert (error("").line, error("").position, error("").text) == (1, 0, "")
    assert (error("# a\n#b").line, error("# a\n#b").text) == (1, "# a")
    found = error("#" * 49_990 + "\n[()]: fft(0) # too long")
    assert (found.line, found.text, found.position) == (2, "[()]: fft(", 9)
    assert error("[" + "#" * 60_000).mistake == "walk-too-long"
    assert error("[\n" + "#" * 60_000).mistake == "missing-closing-bracket"
    found = error("[()]\n[()]" + " " * 9_996 + "]")
    assert (found.mistake, found.line, found.position) == ("text-too-long", 2, 10_000)


# Where one wrong token can have several reasons, the whole of the line decides which one is named.
CHOICES = {
    "on": "missing-grid",
    "on [(0)]": "missing-grid",
    "on block[(0)]": "missing-grid",
    "on a b: [(),()]": "missing-grid",
    "on a b: [()]": "view-mismatch",
    "on (4,2) [()]": "wrong-grid",
    "on x4 [()]": "missing-colon",
    "on 04 [()]": "leading-zero",
    "on 4x [()]": "wrong-grid",
    "on 4x2.5 [()]": "decimal-number",
    "on 4x2. [()]": "decimal-number",
    "on 4": "missing-layout",
    "on 4 -> [()]": "transition-in-walk",
    "fft(0)": "missing-layout",
    "on 2 twiddle": "missing-layout",
    ": fft(0)": "missing-layout",
    "a: fft(0)": "missing-opening-bracket",
    "fft b: ()()]": "missing-opening-bracket",
    "a: [(): fft(a)": "missing-closing-bracket",
    "a: [(0: fft(a)": "missing-closing-parenthesis",
    "[()]+(1: fft(0)": "missing-closing-parenthesis",
    "[()]|(1:2): fft(0)": "unexpected-mark",
    "[(0):block]: fft(0)": "unexpected-mark",
    "[(0:blok)]: fft(0)": "unknown-kind",
    "a: blok[(0)]: fft(a)": "unknown-kind",
    "[()]]: fft(0)": "unmatched-closing",
    "[()] on 4: fft(0)": "misplaced-grid",
    "[()]: twiddle on 4": "misplaced-grid",
    "[()] ft(0)": "text-after-stage",
    "[()]: twiddle: fft(0)": "text-after-stage",
    "[()]:": "missing-action",
    "[()]: fft[0]": "mixed-brackets",
    "[()()]: fft(0, fft(1)": "missing-closing-parenthesis",
    "[()()]: fft(0, (1)": "missing-closing-parenthesis",
    "[()()]: fft(0, (1))": "nested-parentheses",
    "[()]: fft(twiddle)": "unknown-mode",
    "[()]: twiddle fft(0)": "missing-comma",
    "a: [()]: twiddle a": "twiddle-modes",
    "a: [()]: fft(a), dct1(0)": "repeated-mode",
    "[()]: fft(0) > [()]": "unknown-character",
    "[(),,()]: fft(0)": "doubled-comma",
    "[()]: resize": "missing-extent",
    "[()]: resize()": "missing-extent",
    "[()]: resize=96": "missing-extent",
    "[()]: resize 0=96": "bare-mode",
    "[()]: resize(0)": "missing-extent",
    "[()]: resize(0=)": "missing-extent",
    "[()]: resize(0 96)": "missing-extent",
    "[()]: resize(0=twiddle)": "letter-for-size",
    "[()]: resize(0=6x4)": "letter-for-size",
    "[()]: resize(0=(96))": "nested-parentheses",
    "[()]: resize(0=(96)": "missing-closing-parenthesis",
    "[()]: resize(0=96": "missing-closing-parenthesis",
    "[()]: resize(0=96, fft(0)": "missing-closing-parenthesis",
    "[()]: resize(0=96 97)": "missing-comma",
    "[()]: resize(0=96=97)": "unexpected-mark",
    "[()]: resize(0@96)": "unexpected-mark",
    "[()]: resize(resize=96)": "unknown-mode",
    "[()]: resize(0=1), resample(0=1), resize(0=1)": "repeated-mode",
    "[()] resize(0=96)": "missing-colon-before-action",
    "resize(0=96)": "missing-layout",
}


@pytest.mark.parametrize("text", CHOICES)
def test_which_mistake(text: str) -> None:
    """One name for each."""
    assert error(text).mistake == CHOICES[text]


CURES = {
    "[()]: FFT(0)": "did you mean fft?",
    "[()]: IRFFT(0)": "did you mean irfft?",
    "[()]: twidle": "did you mean twiddle?",
    "[()]: dct(0)": "write dct1, dct2, dct3 or dct4",
    "[()]: idst(0)": "write dst1, dst2, dst3 or dst4",
    "[()]: idct2(0)": "write dct3, the inverse of dct2 but for its scale",
    "[()]: idst4(0)": "write dst4, the inverse of dst4 but for its scale",
    "[()]: zzz": (
        "write one of fft, ifft, rfft, irfft, dct1, dct2, dct3, dct4, dst1, dst2, dst3, dst4, dht, r2hc, hc2r, "
        "complex, real, resize, resample, fold, chirp, twiddle, convolve"
    ),
    "[()]: size(0=4)": "did you mean resize?",
    "[()]: pad(0=4)": "write resize, or resample for the middle of a spectrum",
    "[()]: Crop(0=4)": "write resize, or resample for the middle of a spectrum",
    "[()]: truncate(0=4)": "write resample, or resize for the end of a mode",
    "[()]: dealias(0=4)": "write resample, or resize for the end of a mode",
    "[]: fft(0)": "write no modes: this layout has none",
    "[()]: fft(1)": "write 0",
    "[()]: fft(a)": "write 0",
    "[(),()]: fft(a)": "write a number from 0 to 1",
    "b a: [(),()]: fft(x)": "write b or a",
    "b (r s=4) (c d): [()()()()]: fft(x)": "write b, r, s or 3",
    "b (c d e): [()()]: fft(d)": "write 1, the number of the mode that reads d as one with c and e",
    "i h g f e d c b a: [()()()()()()()()()]: fft(z)": "write a number from 0 to 8",
    "[()()]: fft(0,,1)": "remove one comma",
    "[(),,()]": "remove one comma, or write () for a whole mode",
    "on 4x02 []": "write 2; separate several numbers by commas",
}


@pytest.mark.parametrize("text", CURES)
def test_cures(text: str) -> None:
    """A near miss is answered with the word itself, anything else with all that could stand there."""
    assert error(text).hint == CURES[text]


def test_errors_travel() -> None:
    """An error that was pickled is the same error, line and all."""
    found = error("[()]\n[()]: fft(1)")
    again = pickle.loads(pickle.dumps(found))
    assert (type(again), str(again), vars(again)) == (NotationError, str(found), vars(found))
    assert again.line == 2


@pytest.mark.parametrize("wrong", [None, 3, b"[()]", ["[()]"]])
def test_only_texts_are_parsed(wrong: object) -> None:
    """Anything but a str is a TypeError that says so."""
    with pytest.raises(TypeError, match=f"not as {type(wrong).__name__}"):
        parse_walk(cast(str, wrong))

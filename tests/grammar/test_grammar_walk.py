"""Walks, text <-> syntax: what each text means, which of its texts is the canonical one, and that nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from itertools import product
from random import Random
from typing import Any

import pytest
from effort import calls
from grammar_texts import layouts
from hypothesis import given
from lark import Lark, Tree, UnexpectedInput
from marks import PARTS
from parts import REST, SOME, share
from recount import COUNTS, counts_are_right
from walk_texts import join_line, nothing, stage_pieces, walks

from rote.grammar import (
    RESIZES,
    TRANSFORMS,
    ActionSyntax,
    LayoutSyntax,
    NotationError,
    StageSyntax,
    WalkSyntax,
    parse_syntax,
    parse_walk,
    unparse,
    unparse_walk,
)
from rote.grammar.build import GRAMMAR

TWIDDLE = ActionSyntax("twiddle")


def fft(*modes: int) -> ActionSyntax:
    return ActionSyntax("fft", modes)


def layout(text: str) -> LayoutSyntax:
    found = parse_syntax(text)
    assert isinstance(found, LayoutSyntax)
    return found


# A line, and what it says beside its layout.
MEANINGS: dict[str, tuple[str, tuple[int, ...] | None, tuple[ActionSyntax, ...]]] = {
    "[(0),()]": ("[(0),()]", None, ()),
    "[(0),()]: fft(1)": ("[(0),()]", None, (fft(1),)),
    "block[(0),(),()]: fft(2, 1)": ("block[(0),(),()]", None, (fft(2, 1),)),
    "(t s=4): [(),(0)]: fft(t), twiddle": ("(t s=4): [(),(0)]", None, (fft(0), TWIDDLE)),
    "(b r=4) s: [(0),(),()]: fft(s)": ("(b r=4) s: [(0),(),()]", None, (fft(2),)),
    "(a b) c: block[(0),()]: fft(c)": ("(a b) c: block[(0),()]", None, (fft(1),)),
    "(a b) c: block[(0),()]: fft(0, c)": ("(a b) c: block[(0),()]", None, (fft(0, 1),)),
    "b a: [(),()]: fft(0), fft(a)": ("b a: [(),()]", None, (fft(0), fft(1))),
    "a b: [(),()]: fft(b)": ("[(),()]", None, (fft(1),)),  # a view that says nothing names modes all the same
    "on 4x256 [(0),(1)]": ("[(0),(1)]", (4, 256), ()),
    "on 16 (a b): block[(0)]": ("(a b): block[(0)]", (16,), ()),
    "[()]|(1@2)+max(3): twiddle": ("[()]+max(3)|(1@2)", None, (TWIDDLE,)),
    "[()]: twiddle, twiddle": ("[()]", None, (TWIDDLE, TWIDDLE)),
    "[]: twiddle": ("[]", None, (TWIDDLE,)),
    "block[(0),(),()]: resize(1=96, 2=96), fft(1, 2)": (
        *("block[(0),(),()]", None),
        (ActionSyntax("resize", (1, 2), (96, 96)), fft(1, 2)),
    ),
    "(t s=4): [(),(0)]: resize(t=32)": ("(t s=4): [(),(0)]", None, (ActionSyntax("resize", (0,), (32,)),)),
    "a b: [(),()]: resize(b=1), resample(1=2), fft(b)": (
        *("[(),()]", None),
        (ActionSyntax("resize", (1,), (1,)), ActionSyntax("resample", (1,), (2,)), fft(1)),
    ),
    # words that mean something else elsewhere
    "on b: [(),()]: fft(on)": ("on b: [(),()]", None, (fft(0),)),
    "on (r s=4): [(),(),()]": ("on (r s=4): [(),(),()]", None, ()),
    "on (b a): [(),()]": ("on (b a): [(),()]", None, ()),
    "on: [()]: fft(on)": ("[()]", None, (fft(0),)),
    "on 2 on b: [(),()]": ("on b: [(),()]", (2,), ()),
    "on 2 x4 b: [(),()]": ("x4 b: [(),()]", (2,), ()),
    "twiddle fft: [(),()]: fft(fft), twiddle, dct2(twiddle)": (
        *("twiddle fft: [(),()]", None),
        (fft(1), TWIDDLE, ActionSyntax("dct2", (0,))),
    ),
    "resize a: [(),()]: resize(resize=3)": ("resize a: [(),()]", None, (ActionSyntax("resize", (0,), (3,)),)),
}

CANONICAL = {
    "\n # nothing \n[ (0) () ] :fft( 1 )#last\r\n\n": "[(0),()]: fft(1)",
    "[(0:block)]: fft ( 0 ) ,twiddle": "block[(0)]: fft(0), twiddle",
    "(t s=4):[()(0)]:fft(0)": "(t s=4): [(),(0)]: fft(t)",
    "(b a) c:[()(0)]:fft(c,0)": "(b a) c: [(),(0)]: fft(c, 0)",
    "a b: [()(0)]: fft(a)": "[(),(0)]: fft(0)",
    "[()(0)]:resize( 1 =96,0\t= 4 )": "[(),(0)]: resize(1=96, 0=4)",
    "(r s=4):[()(0)]: resample(1=8)": "(r s=4): [(),(0)]: resample(s=8)",
    "on\t2x2[(0)(1)]": "on 2x2 [(0),(1)]",
    "on 4 [(0)]\non 4 [()]\non 2x2 [(1)]\n[(0)]\non 2x2 [()]\non 4 []": (
        "on 4 [(0)]\n[()]\non 2x2 [(1)]\n[(0)]\n[()]\non 4 []"
    ),
}


@pytest.mark.parametrize("text", MEANINGS)
def test_meaning(text: str) -> None:
    """Each line means exactly one node, which is hashable, and so do several lines."""
    of, grid, actions = MEANINGS[text]
    stage = StageSyntax(layout(of), grid, actions)
    assert parse_walk(text) == WalkSyntax((stage,))
    assert hash(parse_walk(text)) == hash(WalkSyntax((stage,)))
    again = StageSyntax(layout(of), None, actions)
    assert parse_walk(f"{text}\n{text}") == WalkSyntax((stage, again))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_transform(name: str) -> None:
    """Each transform is an action of one or more modes."""
    assert parse_walk(f"[(),()]: {name}(1,0)").stages[0].actions == (ActionSyntax(name, (1, 0)),)


@pytest.mark.parametrize("name", RESIZES)
def test_everything_that_resizes(name: str) -> None:
    """Each is an action of one or more modes, each with its new extent, from 1 to the largest number."""
    largest = 2**63 - 1
    assert parse_walk(f"[(),()]: {name}(1=1,0={largest})").stages[0].actions == (
        ActionSyntax(name, (1, 0), (1, largest)),
    )


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_text(text: str) -> None:
    """The canonical text is its own canonical text."""
    assert unparse_walk(parse_walk(text)) == CANONICAL[text]
    assert unparse_walk(parse_walk(CANONICAL[text])) == CANONICAL[text]


@given(walks)
def test_walks_survive(walk: WalkSyntax) -> None:
    """parse(unparse(walk)) == walk."""
    assert parse_walk(unparse_walk(walk)) == walk


@given(layouts())
def test_a_layout_is_a_walk_of_one_stage(node: LayoutSyntax) -> None:
    """Every layout can rest in a walk, and is written there as it is alone, whatever its names are."""
    assert parse_walk(unparse(node)) == WalkSyntax((StageSyntax(node),))
    assert unparse_walk(WalkSyntax((StageSyntax(node),))) == unparse(node)


@pytest.mark.parametrize("part", PARTS)
def test_white_space_comments_and_spelling_do_not_matter(part: str) -> None:
    """However a walk is spelled, equal walks have one canonical text, and it means the same."""
    for random in map(Random, share(range(300), part, 4)):
        stages = [stage_pieces(random) for _ in range(random.randint(1, 3))]
        spelled = [
            "\n".join(line for stage in stages for line in (*nothing(random), join_line(stage, random)[0]))
            for _ in range(2)
        ]
        walk = parse_walk(spelled[0])
        canonical = unparse_walk(walk)
        assert unparse_walk(parse_walk(spelled[1])) == canonical
        assert parse_walk(canonical) == walk == parse_walk(spelled[1])
        assert len(canonical.split("\n")) == len(walk.stages) == len(stages)


def test_nodes_are_canonical_at_birth() -> None:
    """Equal meaning is an equal node, however it is made; no walk is empty."""
    stage = StageSyntax(LayoutSyntax(()), grid=(4,))
    assert WalkSyntax((stage, stage)) == WalkSyntax((stage, StageSyntax(LayoutSyntax(()))))
    assert StageSyntax(LayoutSyntax(()), grid=()) == StageSyntax(LayoutSyntax(()), grid=(1,))
    with pytest.raises(ValueError, match="at least one stage"):
        WalkSyntax(())


# --- what parse_walk accepts is walk.lark and the rules on counts -----------------------------------------------------

WALK_COUNTS = {
    *COUNTS,
    *("unknown-mode", "mode-out-of-range", "repeated-mode", "too-many-grid-modes", "missing-grid", "zero-extent"),
    "missing-closing-parenthesis",  # where an unknown mode has the name of an action
    *("leading-zero", "decimal-number", "wrong-grid", "zero-grid"),  # the form of a grid and of a mode
}


@cache
def grammar() -> Lark:
    """The grammar of a stage, as trees."""
    return Lark(GRAMMAR, parser="lalr", start="stage", maybe_placeholders=True)


def tree(text: str) -> Tree[Any] | None:
    """The tree of a stage; None if the grammar refuses it."""
    try:
        return grammar().parse(text)
    except UnexpectedInput:
        return None


def plain(number: str) -> bool:
    """Whether a number is digits that do not begin with a 0 too many."""
    return number.isdigit() and (number == "0" or number[0] != "0")


def modes_are_right(stage: Tree[Any]) -> bool:
    """The modes of the actions are there, each transformed, resized, resampled once; no size is too large or 0."""
    modes: list[str | None] = []
    for item in stage.find_pred(lambda t: t.data == "view"):
        for found in item.children:
            parts = [each for each in found.iter_subtrees_topdown() if each.data == "part"]
            sized = any(part.children[1] is not None for part in parts)
            modes += [part.children[0] for part in parts] if sized else []
            modes += [None if found.data == "group" else found.children[0]] if not sized else []
    order = len(list(stage.find_data("mode")))
    grid = str(stage.children[0] or "1").split("x")
    used, sizes = [], list(grid)
    for action in stage.find_pred(lambda t: t.data in ("along", "resize")):
        name, *listed = action.children
        resizes = action.data == "resize"  # then every other one is an extent
        sizes += listed[1::2] if resizes else []
        for mode in listed[:: 1 + resizes]:
            if str(mode) not in modes and not plain(mode):
                return False
            number = int(mode) if mode.isdigit() else modes.index(str(mode))
            used.append((str(name) if resizes else "transform", number))
    small = len(grid) <= 64 and all(plain(size) and 0 < int(size) < 2**63 for size in sizes)
    return small and len(set(used)) == len(used) and all(mode < order for _, mode in used)


def agree(text: str) -> bool:
    """Whether a stage is accepted; asserts that the grammar and a recount say so, for the same reason."""
    found = tree(text)
    try:
        parse_walk(text)
    except NotationError as error:
        assert 0 <= error.position <= len(error.text), text
        assert len(str(error).split("\n")) == 4, text
        if error.mistake in WALK_COUNTS:  # the first mistake: what comes after it may be wrong too
            assert found is None or not (counts_are_right(found) and modes_are_right(found)), text
        else:
            assert found is None, text
        return False
    assert found is not None and counts_are_right(found) and modes_are_right(found), text
    return True


TOKENS = (
    "[",
    "]",
    "(",
    ")",
    ",",
    ":",
    "=",
    "+",
    "@",
    "->",
    " ",
    "0",
    "x",
    "block",
    "on ",
    "2x3",
    "fft",
    "twiddle",
    "resize",
    "dct5",
)


@pytest.mark.parametrize("part", PARTS)
def test_both_agree_on_all_short_texts(part: str) -> None:
    """Every seventh text of at most three tokens: alone, before a layout, in one, after it and in an action."""
    accepted = 0
    soups = ["".join(tokens) for length in range(4) for tokens in product(TOKENS, repeat=length)]
    for soup in share(soups, part, 11, of=7):
        accepted += agree(soup) if soup.strip(" ") else 0
        for text in (
            f"{soup}[()]",
            f"x (a b): [(){soup}()]",
            f"[()]{soup}",
            f"[()]: fft(0{soup})",
            f"[()]: resize(0{soup}1)",
        ):
            accepted += agree(text)
    assert accepted > {SOME: 5, REST: 10}[part]


@pytest.mark.parametrize("part", PARTS)
def test_both_agree_on_texts_with_a_random_change(part: str) -> None:
    """Valid stages with one or two tokens dropped, doubled, replaced or added, anywhere."""
    accepted = 0
    for random in map(
        Random, share(range(4000), part, 2, of=3)
    ):  # the more kinds and actions there are, the fewer changed texts are valid
        pieces = [piece.text for piece in stage_pieces(random)]
        for _ in range(random.randint(1, 2)):
            i = random.randrange(len(pieces) + 1)
            new = random.choice(TOKENS)
            pieces[i : i + 1] = random.choice((pieces[i : i + 1] * 2, [], [new], [new, *pieces[i : i + 1]]))
        text = " ".join(pieces)
        accepted += agree(text) if text.strip(" ") else 0
    assert accepted > {SOME: 20, REST: 25}[part]


# --- hostile texts, and what is imported ------------------------------------------------------------------------------

HOSTILE = {
    "sizes": ("[(0:block(" + "1," * 4_900 + "1))]\n") * 5 + "[(x)]",
    "names": "\n".join(" ".join(f"n{i}" for i in range(60)) + ": [" + "()" * 60 + "]" for _ in range(50)) + ": ",
    "actions": "[()]: " + "twiddle, " * 1_100,
    "a long number": f"[()]: fft({'9' * 9_000})",
    "zeros": f"[()]: fft({'0' * 9_000})",
    "a long extent": f"[()]: resize(0={'9' * 9_000})",
    "extents": "[()]: resize(0" + "=1" * 4_900 + ")",
    "a long grid": f"on {'9' * 9_000} [()]",
    "a grid of many modes": "on 2" + "x2" * 4_000 + " []",
    "a long word": f"[()]: {'fft' * 3_000}",
    "parentheses": "[()]: fft" + "(" * 9_000,
    "colons": "[()]" + ":" * 9_000,
    "open colons": "[()](" + ":" * 9_000,
    "open parentheses": "[()]" + "(:" * 4_000,
    "arrows": "[()]" + "->[]" * 2_000,
    "a long line": "[()] " + " " * 10_000 + "x",
    "a long text": "[()]\n" * 20_000,
    "comments": "#" * 10_000 + "\n[",
    "lines": "\n" * 49_999,
    "surrogate": "[()]: fft(\ud800)",
    "nul": "[()]: \0",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_answered_at_once(name: str) -> None:
    """A NotationError that prints, in a number of calls that grows with the text at most: 12 for a character."""

    def read() -> None:
        with pytest.raises(NotationError) as caught:
            parse_walk(HOSTILE[name])
        assert len(str(caught.value)) < 1000

    assert calls(read) < 12 * len(HOSTILE[name]) + 1000


def test_lark_is_imported_at_the_first_walk() -> None:
    """An empty walk and one that is too long need no lark; the first stage does."""
    program = """
import sys
import rote.grammar
for text in ("# nothing", "#" * 50_001, "[" * 10_001):
    try:
        rote.grammar.parse_walk(text)
    except ValueError:
        print("lark" in sys.modules, end=" ")
rote.grammar.parse_walk("[(0)]: fft(0)")
print("lark" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd="/", timeout=60, text=True)
    assert (done.stdout, done.stderr) == ("False False False True\n", "")

"""The door: what is accepted and refused, in which time, and what is imported for it."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib import resources
from itertools import product
from random import Random
from typing import Any

import pytest
from effort import calls
from grammar_texts import join, random_pieces
from lark import Lark, Tree, UnexpectedInput
from marks import PARTS
from parts import REST, SOME, share
from recount import COUNTS, counts_are_right

from rote.grammar import NotationError, parse_syntax

# --- what parse_syntax accepts is layout.lark and the rules on counts -----------------------------------------------


@cache
def grammar() -> Lark:
    """layout.lark alone, as trees."""
    return Lark(resources.files("rote.grammar").joinpath("layout.lark").read_text("utf-8"), parser="lalr")


def tree(text: str) -> Tree[Any] | None:
    """The tree of a text; None if the grammar refuses it."""
    try:
        return grammar().parse(text)
    except UnexpectedInput:
        return None


def agree(text: str) -> bool:
    """Whether a text is accepted; asserts that the grammar and a recount say so, for the same reason."""
    found = tree(text)
    try:
        parse_syntax(text)
    except NotationError as error:
        assert 0 <= error.position <= len(text), text
        assert len(str(error).split("\n")) == 4, text
        if error.mistake in COUNTS:  # the first mistake: what comes after it may be wrong too
            assert found is None or not counts_are_right(found), text
        else:
            assert found is None, text
        return False
    assert found is not None and counts_are_right(found), text
    return True


TOKENS = ("[", "]", "(", ")", ",", ":", "=", "+", "|", "@", "->", " ", "0", "1", "x", "block", "cyclic", "max")


@pytest.mark.parametrize("part", PARTS)
def test_both_agree_on_all_short_texts(part: str) -> None:
    """Every fifth text of at most three tokens, and each in the middle of a layout and of a view."""
    accepted = 0
    soups = ["".join(tokens) for length in range(4) for tokens in product(TOKENS, repeat=length)]
    for soup in share(soups, part, 7, of=5):
        accepted += agree(soup) + agree(f"[(0{soup})]") + agree(f"a {soup}: [()()]")
    assert accepted > {SOME: 10, REST: 10}[part]


@pytest.mark.parametrize("part", PARTS)
def test_both_agree_on_texts_with_a_random_change(part: str) -> None:
    """Valid texts with one to three tokens dropped, doubled, replaced or added, anywhere."""
    accepted = 0
    for random in map(Random, share(range(6000), part, 2, of=3)):
        pieces = [piece.text for piece in random_pieces(random)]
        for _ in range(random.randint(1, 3)):
            i = random.randrange(len(pieces) + 1)
            change = random.choice(
                (pieces[i : i + 1] * 2, [], [random.choice(TOKENS)], [random.choice(TOKENS), *pieces[i : i + 1]])
            )
            pieces[i : i + 1] = change
        accepted += agree(random.choice(("", " ")).join(pieces))
    assert accepted > {SOME: 30, REST: 40}[part]


@pytest.mark.parametrize("part", PARTS)
def test_both_agree_on_noise(part: str) -> None:
    """Random characters, of the alphabet and beyond it."""
    alphabet = "[](),:=+|@-> \n01239abcblockyi_.-#\0é²٣\ud800"
    for random in map(Random, share(range(20_000), part, 2, of=3)):
        agree("".join(random.choices(alphabet, k=random.randint(0, 12))))


# --- hostile texts ------------------------------------------------------------------------------------------------

HOSTILE = {
    "brackets": "[" * 100_000,
    "parentheses": "(" * 10_000,
    "pairs": "[" + "()" * 4_999 + "]",
    "nested": "[" * 5_000 + "]" * 5_000,
    "nul": "[(0)\0]",
    "nuls": "\0" * 10_000,
    "digits of other scripts": "[(٣)]",
    "superscript": "[(²)]",
    "full width": "[(\uff10)]",
    "a huge number": f"[({'9' * 100_000})]",
    "a long number": f"[({'9' * 9_000})]",
    "a long size": f"[(0:block({'1' * 9_900}))]",
    "a long root": f"[]|(0@{'1' * 9_900})",
    "zeros": f"[({'0' * 9_900})]",
    "a long word": "a" * 10_000,
    "a long kind": f"[(0:{'block' * 1_900})]",
    "equals": "=" * 10_000,
    "dashes": "-" * 10_000,
    "points": "[(" + "0" * 9_000 + ".)]",
    "arrows": "->" * 5_000,
    "layouts": "[]->" * 2_500,
    "commas": "[" + "," * 9_998 + "]",
    "sizes": "[(0:block(" + "1," * 4_900 + "))]",
    "names": " ".join(f"n{i}" for i in range(1_500)) + ": []",
    "groups": "(" + "a " * 4_990 + "): []",
    "late": "block(" + "1," * 4_900 + "1)[(x)]",
    "white space": " " * 10_000,
    "surrogate": "[\ud800]",
    "other spaces": "[(0)\u2003]",
    "vertical tab": "[(0)\x0b]",
    "line separator": "[(0)\u2028]",
    "minus": "[(\u22121)]",
    "bom": "\ufeff[(0)]",
}


@pytest.fixture(scope="module")
def _errors_imported() -> None:
    """What is imported with the first errors of each kind is no part of an answer."""
    for text in HOSTILE.values():
        with pytest.raises(NotationError):
            parse_syntax(text[:40])


@pytest.mark.usefixtures("_errors_imported")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_answered_at_once(name: str) -> None:
    """A NotationError that prints, in a number of calls that grows with the text at most: 12 for a character."""

    def read() -> None:
        with pytest.raises(NotationError) as caught:
            parse_syntax(HOSTILE[name])
        assert len(str(caught.value)) < 1000

    assert calls(read) < 12 * len(HOSTILE[name]) + 1000


# --- cost and imports -----------------------------------------------------------------------------------------------


def fresh(program: str, text: bytes = b"") -> str:
    """What a program prints in a fresh process, outside the checkout."""
    done = subprocess.run([sys.executable, "-c", program], input=text, capture_output=True, cwd="/", timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def test_a_cached_parse_is_a_look_up() -> None:
    """It calls nothing but the cache, and gives the same node."""
    text = "a (r s=4): block[(0),(1:cyclic(4)),()]+max(2)|(3@1)"
    first = parse_syntax(text)
    assert parse_syntax(text) is first
    assert calls(lambda: parse_syntax(text)) <= 4  # do, parse_syntax, the cache, and the end of counting


def test_lark_is_imported_at_the_first_parse() -> None:
    """Neither the import nor a text that is empty or too long needs lark."""
    program = """
import sys
import rote.grammar
for text in ("", "[" * 10_001):
    try:
        rote.grammar.parse_syntax(text)
    except ValueError:
        print("lark" in sys.modules, end=" ")
rote.grammar.parse_syntax("[(0)]")
print("lark" in sys.modules)
"""
    assert fresh(program) == "False False True"


def test_first_parse_among_threads() -> None:
    """Threads that parse first at the same time all get the same answer."""
    program = """
from concurrent.futures import ThreadPoolExecutor
from rote.grammar import parse_syntax
with ThreadPoolExecutor(8) as pool:
    print(len(set(pool.map(lambda _: parse_syntax("a (r s=4): [()(0)()]"), range(8)))))
"""
    assert fresh(program) == "1"


def test_valid_texts_of_the_longest_kind() -> None:
    """The limits themselves are accepted."""
    modes = ",".join(f"({g})" for g in range(64))
    assert parse_syntax(f"[{modes}]") is parse_syntax(f"[{modes}]")
    sizes = ",".join("1" * 4_980)
    assert parse_syntax(f"[(0:block({sizes}))]".ljust(10_000))


def test_joined_texts_parse() -> None:
    """A text does not depend on the white space around it."""
    random = Random(7)
    for _ in range(200):
        text, _ = join(random_pieces(random), random)
        assert parse_syntax(f"\n {text}\t") == parse_syntax(text)


@pytest.mark.parametrize("part", PARTS)
def test_both_agree_on_what_stands_in_a_kind(part: str) -> None:
    """Every text of at most three tokens between the parentheses of block and of cyclic, and after a first size."""
    words = (",", "=", "0", "7", "at", "ceil", "floor", "x", ")")
    accepted = 0
    soups = [tokens for length in range(4) for tokens in product(words, repeat=length)]
    for tokens in share(soups, part, 1):
        soup = " ".join(tokens)
        accepted += agree(f"[(0:block({soup}))]") + agree(f"[(0:cyclic({soup}))]")
        if len(tokens) == 3:
            accepted += agree(f"cyclic(4,{soup})[(0)]")
    assert accepted > 5

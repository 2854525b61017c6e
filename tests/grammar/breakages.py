"""The ways to break a valid layout or transition: each knows by the roles of the pieces what it did, and shares no code
with the grammar.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from grammar_texts import Piece


@dataclass(frozen=True, slots=True)
class Broken:
    """Pieces that are wrong; the name of the mistake; the index of the piece under the caret (None: not demanded)."""

    pieces: list[Piece]
    mistake: str
    caret: int | None = None


Breakage = Callable[[list[Piece], int, Random], Broken | None]
Breakages = dict[str, tuple[tuple[str, ...], Breakage]]
BREAKAGES: Breakages = {}


def breaks(*roles: str, into: Breakages = BREAKAGES) -> Callable[[Breakage], Breakage]:
    """Register how to break a text at a piece that has one of these roles."""

    def register(breakage: Breakage) -> Breakage:
        into[breakage.__name__] = (roles, breakage)
        return breakage

    return register


def at_random(breakages: Breakages, name: str, pieces: list[Piece], random: Random) -> Broken | None:
    """Pieces broken in the way of this name, at one of the places where they can be; None if there is none."""
    roles, breakage = breakages[name]
    spots = [i for i, piece in enumerate(pieces) if piece.role in roles]
    return breakage(pieces, random.choice(spots), random) if spots else None


def without(pieces: list[Piece], i: int) -> list[Piece]:
    return pieces[:i] + pieces[i + 1 :]


def changed(pieces: list[Piece], i: int, text: str) -> list[Piece]:
    return [*pieces[:i], replace(pieces[i], text=text), *pieces[i + 1 :]]


def inserted(pieces: list[Piece], i: int, text: str) -> list[Piece]:
    """With a new piece before piece i."""
    side = pieces[i].side if i < len(pieces) else pieces[-1].side
    return [*pieces[:i], Piece(text, "new", side), *pieces[i:]]


def role(pieces: list[Piece], i: int) -> str:
    return pieces[i].role if 0 <= i < len(pieces) else "end"


def same_side(pieces: list[Piece], i: int, *roles: str) -> list[int]:
    return [j for j, p in enumerate(pieces) if p.side == pieces[i].side and p.role in roles]


def misspelt(word: str, random: Random) -> str:
    """One letter dropped, doubled or swapped with the next one."""
    while True:
        j = random.randrange(len(word) - 1)
        wrong = random.choice(
            (word[:j] + word[j + 1 :], word[: j + 1] + word[j:], word[:j] + word[j + 1] + word[j] + word[j + 2 :])
        )
        if wrong != word:
            return wrong


# --- brackets and parentheses ------------------------------------------------------------------------------------


@breaks("[")
def delete_opening_bracket(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    if role(pieces, i - 1) == "dkind" and role(pieces, i + 1) == "m(":
        return None  # block(0),… : its modes are read as sizes
    return Broken(without(pieces, i), "missing-opening-bracket")


@breaks("]")
def delete_closing_bracket(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "missing-closing-bracket", i)


@breaks("m(")
def delete_mode_opening(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "bare-grid-mode" if role(pieces, i + 1) == "g" else "unmatched-closing", i)


@breaks("m)")
def delete_mode_closing(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    if role(pieces, i - 1) == "kind" and role(pieces, i + 1) == "m(":
        return None  # block(0)… : the next mode is read as sizes
    return Broken(without(pieces, i), "missing-closing-parenthesis")


@breaks("s)", "ds)")
def delete_sizes_closing(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    if role(pieces, i + 1) == "e,":
        return None  # the next entries are read as sizes
    return Broken(without(pieces, i), "missing-closing-parenthesis")


@breaks("x)")
def delete_suffix_closing(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "missing-closing-parenthesis", i)


@breaks("v)")
def delete_group_closing(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    if role(pieces, i + 1) != "view:":
        return None  # the next names are read into the group
    return Broken(without(pieces, i), "missing-closing-parenthesis", i)


@breaks("v(")
def delete_group_opening(pieces: list[Piece], i: int, random: Random) -> Broken:
    sized = "=" in [p.role for p in pieces[i : next(j for j in range(i, len(pieces)) if pieces[j].role == "v)")]]
    return Broken(without(pieces, i), "size-outside-group" if sized else "unmatched-closing")


@breaks("s(", "ds(")
def delete_sizes_opening(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    if role(pieces, i + 1) in ("drounding", "dat"):
        return None  # before the brackets it is read as a name
    return Broken(without(pieces, i), "bare-size", i)


@breaks("x(")
def delete_suffix_opening(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "bare-suffix", i)


@breaks("m)", "]", "x)")
def add_closing(pieces: list[Piece], i: int, random: Random) -> Broken:
    wrong = random.choice(")]") if pieces[i].role != "m)" else ")"
    return Broken(inserted(pieces, i + 1, wrong), "unmatched-closing", i + 1)


@breaks("m(")
def nest_parentheses(pieces: list[Piece], i: int, random: Random) -> Broken:
    end = next(j for j in range(i, len(pieces)) if pieces[j].role == "m)")
    return Broken(inserted(inserted(pieces, end, ")"), i, "("), "nested-parentheses", i + 1)


@breaks("[")
def nest_brackets(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(inserted(pieces, i, "["), "nested-brackets", i + 1)


# --- commas ------------------------------------------------------------------------------------------------------


@breaks("m,", "e,", "s,", "ds,", "x,")
def double_comma(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(inserted(pieces, i, ","), "doubled-comma", i + 1)


@breaks("]", "m)", "s)", "ds)", "x)")
def trail_comma(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    before = role(pieces, i - 1)
    if before in ("[", "m("):
        return None  # a leading one
    if before.endswith("rounding"):
        return Broken(inserted(pieces, i, ","), "size-of-rounded", i)
    if before.endswith("first"):
        return Broken(inserted(pieces, i, ","), "text-after-at", i)
    return Broken(inserted(pieces, i, ","), "trailing-comma", i + 1)


@breaks("g", "m(", "size", "tile", "dsize", "dtile", "xg", "rounding", "drounding", "at", "dat")
def lead_comma(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    if role(pieces, i - 1) not in ("[", "m(", "s(", "ds(", "x("):
        return None
    return Broken(inserted(pieces, i, ","), "leading-comma", i)


@breaks("e,", "s,", "ds,", "x,")
def delete_comma(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "bare-size" if role(pieces, i - 1) == "kind" else "missing-comma", i)


@breaks("name", "fused", "part", "free")
def comma_between_names(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    if role(pieces, i + 1) not in ("name", "fused", "part", "free", "v("):
        return None
    return Broken(inserted(pieces, i + 1, ","), "comma-in-view", i + 1)


# --- numbers -----------------------------------------------------------------------------------------------------

NUMBERS = ("g", "xg", "size", "tile", "dsize", "dtile", "psize", "root", "first", "dfirst")


@breaks(*NUMBERS)
def letter_for_digit(pieces: list[Piece], i: int, random: Random) -> Broken:
    ofs = {"g": "grid-mode", "xg": "grid-mode", "root": "root", "first": "coordinate", "dfirst": "coordinate"}
    of = ofs.get(pieces[i].role, "size")
    digits = list(pieces[i].text)
    digits[random.randrange(len(digits))] = random.choice("xyzOl")
    return Broken(changed(pieces, i, "".join(digits)), f"letter-for-{of}", i)


@breaks(*NUMBERS)
def negate(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(changed(pieces, i, "-" + pieces[i].text), "negative-number", i)


@breaks(*NUMBERS)
def add_fraction(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(changed(pieces, i, pieces[i].text + random.choice((".", ".0", ".5"))), "decimal-number", i)


@breaks(*NUMBERS)
def add_leading_zero(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(changed(pieces, i, "0" + pieces[i].text), "leading-zero", i)


@breaks(*NUMBERS)
def enlarge(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(changed(pieces, i, str(2**63 + random.choice((0, 1, 2**70)))), "number-too-large", i)


@breaks("g", "xg")
def enlarge_grid_mode(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(changed(pieces, i, str(random.choice((64, 65, 2**62)))), "grid-mode-too-large", i)


@breaks("tile", "dtile", "psize")
def zero_tile(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    if pieces[i - 2].text == "block":
        return None  # a block may hold nothing
    return Broken(changed(pieces, i, "0"), "zero-tile", i)


@breaks("g", "xg")
def repeat_grid_mode(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    others = [j for j in same_side(pieces, i, "g", "xg") if j != i]
    if not others:
        return None
    j = random.choice(others)
    return Broken(changed(pieces, i, pieces[j].text), "repeated-grid-mode", max(i, j))


# --- kinds -------------------------------------------------------------------------------------------------------


@breaks("kind", "dkind")
def misspell_kind(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    if role(pieces, i + 2) == "dat" and pieces[i + 4].text == "0":
        return None  # it is read as a view, in which the part named at is empty
    return Broken(changed(pieces, i, misspelt(pieces[i].text, random)), "unknown-kind", i)


@breaks("kind")
def delete_kind(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "missing-kind", i)


@breaks("k:")
def delete_colon_before_kind(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "kind-without-colon", i)


@breaks("g")
def delete_grid_mode(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    return Broken(without(pieces, i), "missing-grid-mode", i) if role(pieces, i + 1) == "k:" else None


@breaks("tile", "dtile", "rounding", "drounding")
def delete_size(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "missing-size" if role(pieces, i + 1).endswith(")") else "leading-comma", i)


@breaks("tile", "dtile")
def second_size_of_cyclic(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    if pieces[i - 2].text != "cyclic":
        return None
    return Broken(inserted(inserted(pieces, i + 1, "7"), i + 1, ","), "too-many-sizes", i + 2)


@breaks("rounding", "drounding")
def size_of_a_rounded_block(pieces: list[Piece], i: int, random: Random) -> Broken:
    if random.random() < 0.5:
        return Broken(inserted(inserted(pieces, i, ","), i, "4"), "size-of-rounded", i + 2)
    return Broken(inserted(inserted(pieces, i + 1, random.choice(("4", "at"))), i + 1, ","), "size-of-rounded", i + 1)


@breaks("rounding", "drounding")
def misspell_rounding(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(changed(pieces, i, misspelt(pieces[i].text, random)), "letter-for-size", i)


@breaks("tile", "dtile")
def round_cyclic(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    if pieces[i - 2].text != "cyclic":
        return None
    return Broken(changed(pieces, i, random.choice(("ceil", "floor"))), "rounded-cyclic", i)


@breaks("at", "dat")
def offset_of_a_block(pieces: list[Piece], i: int, random: Random) -> Broken:
    kind = max(j for j in range(i) if pieces[j].role in ("kind", "dkind"))
    return Broken(changed(pieces, kind, "block"), "at-of-block", i)


@breaks("at", "dat")
def another_option(pieces: list[Piece], i: int, random: Random) -> Broken:
    size = role(pieces, i - 1).endswith("s(")  # where a size may stand too, it is taken for one
    word = random.choice(("from", "root", "At", "at0"))
    return Broken(changed(pieces, i, word), "letter-for-size" if size else "unknown-option", i)


@breaks("at=", "dat=")
def delete_equals_of_at(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "missing-equals", i)


@breaks("at=", "dat=")
def another_mark_for_equals(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(changed(pieces, i, random.choice(":@")), "missing-equals", i)


@breaks("first", "dfirst")
def delete_coordinate(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "missing-coordinate", i)


@breaks("at", "dat")
def size_behind_at(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(inserted(inserted(pieces, i + 3, "7"), i + 3, ","), "text-after-at", i + 3)


@breaks("m(")
def kind_outside_mode(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(inserted(pieces, i, random.choice(("block", "cyclic"))), "misplaced-kind", i)


# --- suffixes ----------------------------------------------------------------------------------------------------


@breaks("op")
def misspell_operation(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(changed(pieces, i, misspelt(pieces[i].text, random)), "unknown-operation", i)


@breaks("x(")
def empty_suffix(pieces: list[Piece], i: int, random: Random) -> Broken:
    end = next(j for j in range(i, len(pieces)) if pieces[j].role == "x)")
    return Broken(pieces[: i + 1] + pieces[end:], "empty-suffix", i + 1)


@breaks("+", "|")
def repeat_suffix(pieces: list[Piece], i: int, random: Random) -> Broken:
    end = max(same_side(pieces, i, "]", "x)")) + 1
    more = [Piece(pieces[i].text, "new"), Piece("(", "new"), Piece("61", "new"), Piece(")", "new")]
    return Broken(pieces[:end] + more + pieces[end:], "repeated-suffix", end)


@breaks("+", "|")
def delete_suffix_mark(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "text-after-layout", i)


@breaks("root")
def delete_root(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "missing-root", i)


@breaks("@")
def delete_at(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "missing-comma", i)


# --- views -------------------------------------------------------------------------------------------------------


@breaks("view:")
def delete_colon_of_view(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "missing-colon", i)


@breaks("name", "fused", "part", "free")
def repeat_name(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    others = [j for j in same_side(pieces, i, "name", "fused", "part", "free") if j != i]
    if not others:
        return None
    j = random.choice(others)
    return Broken(changed(pieces, i, pieces[j].text), "repeated-name", max(i, j))


@breaks("name", "fused", "part", "free")
def number_for_name(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(changed(pieces, i, random.choice(("1", "7a"))), "number-for-name", i)


@breaks("name", "fused", "part", "free")
def kind_for_name(pieces: list[Piece], i: int, random: Random) -> Broken:
    # at the very start it is read as a default kind, and the mistake is what follows
    first = role(pieces, i - 1) in ("end", "->")
    if first and role(pieces, i + 1) == "v(":
        if pieces[i + 2].text in ("ceil", "floor", "at"):
            return None  # which mean something to a kind
        return Broken(changed(pieces, i, "block"), "letter-for-size")
    return Broken(changed(pieces, i, "block"), "reserved-name", i + 1 if first else i)


@breaks("name")
def lonely_group(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(inserted(inserted(pieces, i + 1, ")"), i, "("), "single-name-group", i + 2)


@breaks("psize")
def delete_size_of_part(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "missing-size" if role(pieces, i + 1) == "v)" else "letter-for-size", i)


@breaks("=")
def free_a_second_part(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    start = max(j for j in range(i) if pieces[j].role == "v(")
    end = next(j for j in range(i, len(pieces)) if pieces[j].role == "v)")
    roles = [p.role for p in pieces[start:end]]
    if roles.count("=") < 2 or "free" not in roles:
        return None
    return Broken(pieces[:i] + pieces[i + 2 :], "two-free-parts")


@breaks("]")
def add_mode(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    more = inserted(inserted(pieces, i, ")"), i, "(")
    if same_side(pieces, i, "view:"):
        return Broken(more, "view-mismatch", i + 2)
    return Broken(more, "order-mismatch") if any(p.role == "->" for p in pieces) else None


# --- the text as a whole -----------------------------------------------------------------------------------------

ANY = (
    "[",
    "]",
    "m(",
    "m)",
    "m,",
    "g",
    "k:",
    "kind",
    "size",
    "op",
    "+",
    "|",
    "xg",
    "x)",
    "name",
    "fused",
    "view:",
    "->",
)


@breaks(*ANY)
def junk(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(
        inserted(pieces, i, random.choice("#%*?!;\"'~\\/^{}<\0\x0b\u00a0é²٣π\U0001f600\ud800")), "unknown-character", i
    )


@breaks(*ANY)
def second_thought(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(
        [*pieces, Piece(random.choice(("x", "7", "[", ",", ":", "block")), "new")], "text-after-layout", len(pieces)
    )


@breaks("->")
def another_arrow(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken([*pieces, Piece("->", "new"), Piece("[", "new"), Piece("]", "new")], "two-arrows", len(pieces))


@breaks("->")
def no_arrow(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(changed(pieces, i, random.choice(("=>", ">>", "→"))), "unknown-arrow", i)


@breaks("->")
def no_source(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(pieces[i:], "missing-layout", 0)


@breaks("->")
def no_target(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(pieces[: i + 1], "missing-layout")

"""The ways to break a stage of a walk, beside those to break its layout: each knows by the roles of the pieces what it
did, and shares no code with the grammar."""

from __future__ import annotations

from random import Random

from breakages import Breakages, Broken, breaks, changed, inserted, misspelt, role, without
from grammar_texts import Piece
from walk_texts import ONCE, mode_names

from rote.grammar import RESIZES, TRANSFORMS

ACTIONS = (*TRANSFORMS, *RESIZES, "twiddle")
WALK_BREAKAGES: Breakages = {}


def first(pieces: list[Piece], *roles: str) -> int:
    """The first piece of these roles, or the end."""
    return next((i for i, piece in enumerate(pieces) if piece.role in roles), len(pieces))


def action(pieces: list[Piece], i: int) -> Piece:
    """The name of the action that piece i is in."""
    return next(piece for piece in pieces[i::-1] if piece.role in ("transform", "resize"))


def last_of_layout(pieces: list[Piece]) -> int:
    return first(pieces, "a:") - 1


# --- grids -------------------------------------------------------------------------------------------------------


@breaks("grid", into=WALK_BREAKAGES)
def delete_grid(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "missing-grid", i)


@breaks("grid", into=WALK_BREAKAGES)
def spell_grid(pieces: list[Piece], i: int, random: Random) -> Broken:
    sizes = pieces[i].text.split("x") * 2
    wrong = random.choice(("X", "*", ",", " x ", " X ", "xx", "\u00d7", " ", "by")).join(sizes)
    return Broken(
        changed(pieces, i, random.choice((wrong, f"({','.join(sizes)})", "x".join(sizes) + "x"))), "wrong-grid"
    )


@breaks("grid", into=WALK_BREAKAGES)
def wrong_size(pieces: list[Piece], i: int, random: Random) -> Broken:
    sizes = pieces[i].text.split("x")
    k = random.randrange(len(sizes))
    wrong, name = random.choice(
        [
            ("0", "zero-grid"),
            ("0" + sizes[k], "leading-zero"),
            (str(2**63), "number-too-large"),
            (f"{k}y", "wrong-grid"),
        ]
    )
    return Broken(changed(pieces, i, "x".join([*sizes[:k], wrong, *sizes[k + 1 :]])), name)


@breaks("grid", into=WALK_BREAKAGES)
def negative_grid(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(changed(pieces, i, "-" + pieces[i].text), "negative-number", i)


@breaks("grid", into=WALK_BREAKAGES)
def decimal_grid(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(changed(pieces, i, "2.5x" + pieces[i].text), "decimal-number", i)


@breaks("grid", into=WALK_BREAKAGES)
def large_grid(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(changed(pieces, i, "x".join(["1"] * 64 + [pieces[i].text])), "too-many-grid-modes", i)


@breaks("on", into=WALK_BREAKAGES)
def late_grid(pieces: list[Piece], i: int, random: Random) -> Broken:
    grid, rest = pieces[:2], pieces[2:]
    j = random.choice((last_of_layout(rest) + 1, len(rest)))
    return Broken(rest[:j] + grid + rest[j:], "misplaced-grid", j)


# --- around the layout ---------------------------------------------------------------------------------------------


@breaks("a:", into=WALK_BREAKAGES)
def delete_layout(pieces: list[Piece], i: int, random: Random) -> Broken:
    start = 2 * (pieces[0].role == "on")
    return Broken(pieces[:start] + pieces[i + random.randint(0, 1) :], "missing-layout", start)


@breaks("grid", into=WALK_BREAKAGES)
def only_a_grid(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(pieces[: i + 1], "missing-layout", i + 1)


@breaks("a:", into=WALK_BREAKAGES)
def delete_colon_of_actions(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "missing-colon-before-action", i)


@breaks("]", into=WALK_BREAKAGES)
def write_a_transition(pieces: list[Piece], i: int, random: Random) -> Broken:
    j = random.choice((last_of_layout(pieces) + 1, len(pieces)))
    arrow = [Piece(random.choice(("->", "=>", ">>", "→")), "new"), Piece("[", "new"), Piece("]", "new")]
    return Broken(pieces[:j] + arrow + pieces[j:], "transition-in-walk", j)


@breaks("]", into=WALK_BREAKAGES)
def begin_with_an_arrow(pieces: list[Piece], i: int, random: Random) -> Broken:
    start = 2 * (pieces[0].role == "on")
    return Broken(inserted(pieces, start, "->"), "transition-in-walk", start)


@breaks("]", into=WALK_BREAKAGES)
def two_stages_in_a_line(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    if role(pieces, len(pieces) - 1) == "twiddle" and pieces[2 * (pieces[0].role == "on")].role in ("v(", "name"):
        return None  # twiddle with modes
    name = "misplaced-grid" if pieces[0].role == "on" else "text-after-stage"
    return Broken([*pieces, *pieces], name, len(pieces))


@breaks("]", into=WALK_BREAKAGES)
def trailing_junk(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    rest = role(pieces, len(pieces) - 1) not in ("twiddle", "a)")
    wrong = random.choice(("[", "nosuch", "7", "@", "=", "block", *(() if rest else (":", "+"))))
    name = "twiddle-modes" if role(pieces, len(pieces) - 1) == "twiddle" and wrong == "7" else "text-after-stage"
    return Broken([*pieces, Piece(wrong, "new")], name, len(pieces))


@breaks("a:", "aa,", "am,", "transform", "resize", "a(", "mode", "a=", "extent", "a)", "twiddle", into=WALK_BREAKAGES)
def junk_in_actions(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(inserted(pieces, i, random.choice("%*?!;\"'~\\/^{}<\0\x0b\u00a0é²٣π")), "unknown-character", i)


# --- actions -------------------------------------------------------------------------------------------------------


@breaks("a:", into=WALK_BREAKAGES)
def delete_actions(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(pieces[: i + 1], "missing-action", i + 1)


@breaks("transform", "resize", into=WALK_BREAKAGES)
def delete_action(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "missing-action", i)


@breaks("transform", "resize", "twiddle", into=WALK_BREAKAGES)
def misspell_action(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    wrong = random.choice(
        (misspelt(pieces[i].text, random), pieces[i].text.upper(), "i" + pieces[i].text, "7", "block", "pad", "dealias")
    )
    return None if wrong in ACTIONS else Broken(changed(pieces, i, wrong), "unknown-action", i)


@breaks("a(", into=WALK_BREAKAGES)
def delete_opening_of_action(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "bare-mode", i)


@breaks("a)", into=WALK_BREAKAGES)
def delete_closing_of_action(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "missing-closing-parenthesis", i + 1 if i + 1 < len(pieces) else i)


@breaks("a(", into=WALK_BREAKAGES)
def delete_modes(pieces: list[Piece], i: int, random: Random) -> Broken:
    end = next(j for j in range(i, len(pieces)) if pieces[j].role == "a)")
    name = "missing-modes" if pieces[i - 1].role == "transform" else "missing-extent"
    empty, bare = Broken(pieces[: i + 1] + pieces[end:], name, i + 1), pieces[:i] + pieces[end + 1 :]
    return random.choice((empty, Broken(bare, name, i)))


@breaks("twiddle", into=WALK_BREAKAGES)
def twiddle_with_modes(pieces: list[Piece], i: int, random: Random) -> Broken:
    wrong = random.choice((["(", ")"], ["(", "0", ")"], ["0"], ["(", "t"]))
    return Broken(pieces[: i + 1] + [Piece(text, "new") for text in wrong] + pieces[i + 1 :], "twiddle-modes", i + 1)


@breaks("a)", into=WALK_BREAKAGES)
def close_action_twice(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(inserted(pieces, i + 1, random.choice(")]")), "unmatched-closing", i + 1)


@breaks("mode", into=WALK_BREAKAGES)
def nest_mode(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(inserted(inserted(pieces, i + 1, ")"), i, "("), "nested-parentheses", i)


@breaks("mode", into=WALK_BREAKAGES)
def kind_for_mode(pieces: list[Piece], i: int, random: Random) -> Broken:
    name = "unexpected-mark" if action(pieces, i).role == "transform" else "colon-for-equals"
    return Broken(inserted(inserted(pieces, i + 1, "block"), i + 1, ":"), name, i + 1)


# --- commas --------------------------------------------------------------------------------------------------------


@breaks("aa,", "am,", into=WALK_BREAKAGES)
def double_comma_of_actions(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(inserted(pieces, i, ","), "doubled-comma", i + 1)


@breaks("a:", "a(", into=WALK_BREAKAGES)
def lead_comma_of_actions(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(inserted(pieces, i + 1, ","), "leading-comma", i + 1)


@breaks("a)", "twiddle", into=WALK_BREAKAGES)
def trail_comma_of_actions(pieces: list[Piece], i: int, random: Random) -> Broken:
    if pieces[i].role == "a)" and random.random() < 0.5:
        return Broken(inserted(pieces, i, ","), "trailing-comma", i + 1)
    return Broken([*pieces, Piece(",", "new")], "trailing-comma", len(pieces) + 1)


@breaks("aa,", "am,", into=WALK_BREAKAGES)
def delete_comma_of_actions(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(without(pieces, i), "missing-comma", i)


# --- modes ---------------------------------------------------------------------------------------------------------


@breaks("mode", into=WALK_BREAKAGES)
def unknown_mode(pieces: list[Piece], i: int, random: Random) -> Broken:
    fused = [piece.text for piece in pieces if piece.role == "fused"]
    return Broken(changed(pieces, i, random.choice(("nosuch", "A", "block", "0t", *fused))), "unknown-mode", i)


@breaks("mode", into=WALK_BREAKAGES)
def mode_out_of_range(pieces: list[Piece], i: int, random: Random) -> Broken:
    order = len(mode_names(pieces))
    return Broken(changed(pieces, i, str(random.choice((order, order + 1, 64, 10**30)))), "mode-out-of-range", i)


@breaks("mode", into=WALK_BREAKAGES)
def repeat_mode(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    names = mode_names(pieces)
    once = next(names for names in ONCE if action(pieces, i).text in names)
    modes = [j for j, piece in enumerate(pieces) if piece.role == "mode" and j != i]
    others = [j for j in modes if action(pieces, j).text in once]
    if not others:
        return None
    j = random.choice(others)
    mode = names.index(pieces[j].text) if pieces[j].text in names else int(pieces[j].text)
    return Broken(changed(pieces, i, random.choice((names[mode], str(mode)))), "repeated-mode", max(i, j))


@breaks("mode", into=WALK_BREAKAGES)
def wrong_number_for_mode(pieces: list[Piece], i: int, random: Random) -> Broken:
    wrong, name = random.choice((("-1", "negative-number"), ("1.0", "decimal-number"), ("00", "leading-zero")))
    return Broken(changed(pieces, i, wrong), name, i)


# --- extents -------------------------------------------------------------------------------------------------------


@breaks("a=", into=WALK_BREAKAGES)
def delete_extent(pieces: list[Piece], i: int, random: Random) -> Broken:
    rest, after = pieces[:i], pieces[i + 2 :]  # without both, without the number, without the =
    return random.choice(
        (
            Broken(rest + after, "missing-extent", i),
            Broken(rest + pieces[i : i + 1] + after, "missing-extent", i + 1),
            Broken(rest + pieces[i + 1 :], "missing-extent", i),
        )
    )


@breaks("a=", into=WALK_BREAKAGES)
def colon_for_equals(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(changed(pieces, i, ":"), "colon-for-equals", i)


@breaks("a=", into=WALK_BREAKAGES)
def double_equals(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(inserted(pieces, i, "="), "unexpected-mark", i + 1)


@breaks("mode", into=WALK_BREAKAGES)
def extent_of_transform(pieces: list[Piece], i: int, random: Random) -> Broken | None:
    if action(pieces, i).role != "transform":
        return None
    return Broken(inserted(inserted(pieces, i + 1, "4"), i + 1, "="), "extent-of-transform", i + 1)


@breaks("extent", into=WALK_BREAKAGES)
def wrong_extent(pieces: list[Piece], i: int, random: Random) -> Broken:
    wrong, name = random.choice(
        [
            ("0", "zero-extent"),
            ("064", "leading-zero"),
            ("-64", "negative-number"),
            ("6.4", "decimal-number"),
            (str(2**63), "number-too-large"),
            (random.choice(("nosuch", "6x", "block", *ACTIONS)), "letter-for-size"),
        ]
    )
    return Broken(changed(pieces, i, wrong), name, i)


@breaks("extent", into=WALK_BREAKAGES)
def second_extent(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(inserted(pieces, i + 1, random.choice(("7", "nosuch"))), "missing-comma", i + 1)


@breaks("extent", into=WALK_BREAKAGES)
def nest_extent(pieces: list[Piece], i: int, random: Random) -> Broken:
    return Broken(inserted(inserted(pieces, i + 1, ")"), i, "("), "nested-parentheses", i)

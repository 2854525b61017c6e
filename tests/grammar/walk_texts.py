"""Random walks for the grammar tests: as syntax nodes (Hypothesis), and as texts whose every piece knows its role."""

from __future__ import annotations

from itertools import groupby
from random import Random

from grammar_texts import Piece, join, layout_pieces, layouts
from hypothesis import strategies as st

from rote.grammar import RESIZES, TRANSFORMS, TWIDDLE, ActionSyntax, StageSyntax, WalkSyntax

# Of the actions in each of these, a mode sees at most one in a stage.
ONCE = (TRANSFORMS, *((name,) for name in RESIZES))

# --- nodes ------------------------------------------------------------------------------------------------------

sizes = st.integers(1, 2**63 - 1)
grids = st.lists(sizes, max_size=4).map(tuple)


@st.composite
def stages(draw: st.DrawFn) -> StageSyntax:
    """A stage that transforms, resizes and resamples some of its modes, each one once, in any order."""
    layout = draw(layouts())
    left = {names: draw(st.permutations(range(len(layout.modes)))) for names in ONCE}
    actions = []
    for names in draw(st.lists(st.sampled_from((*ONCE, (TWIDDLE,))), max_size=6)):
        modes = left.get(names, [])
        count = draw(st.integers(1, len(modes))) if modes else 0
        if count or names not in ONCE:
            extents = draw(st.tuples(*[sizes] * count)) if names != TRANSFORMS else ()
            actions.append(ActionSyntax(draw(st.sampled_from(names)), tuple(modes[:count]), extents))
            left[names] = modes[count:]
    return StageSyntax(layout, draw(st.none() | grids), tuple(actions))


walks = st.lists(stages(), min_size=1, max_size=4).map(lambda found: WalkSyntax(tuple(found)))


# --- texts in pieces --------------------------------------------------------------------------------------------


def mode_names(pieces: list[Piece]) -> list[str]:
    """How the modes of a layout in pieces can be named: by its view, where they have a name; else by their numbers."""
    names: list[str | None] = []
    for role, found in groupby((piece for piece in pieces if piece.role != "="), lambda piece: piece.role):
        if role in ("name", "part", "free"):
            names += [piece.text for piece in found]
        elif role == "fused":
            names.append(None)
    if all(piece.role != "view:" for piece in pieces):
        names = [None for piece in pieces if piece.role == "m("]
    return [str(number) if name is None else name for number, name in enumerate(names)]


def stage_pieces(random: Random) -> list[Piece]:
    """A valid stage in pieces, by their roles: on, grid; those of its layout; then

    a: transform a( mode am, mode a) aa, resize a( mode a= extent a) aa, twiddle
    """
    layout = layout_pieces(random, random.randint(0, 4))
    sizes = [str(random.choice((1, 2, 3, 4, 16, 256))) for _ in range(random.randint(1, 3))]
    grid = [Piece("on", "on"), Piece("x".join(sizes), "grid")] if random.random() < 0.3 else []
    return [*grid, *layout, *_actions(random, mode_names(layout))]


def _actions(random: Random, names: list[str]) -> list[Piece]:
    left = {once: random.sample(range(len(names)), len(names)) for once in ONCE}
    pieces: list[Piece] = []
    for _ in range(random.randint(0, 4)):
        pieces.append(Piece(",", "aa,") if pieces else Piece(":", "a:"))
        once = random.choice((TRANSFORMS, TRANSFORMS, *ONCE))
        modes, resizes = left[once], once != TRANSFORMS
        if not modes or random.random() < 0.2:
            pieces.append(Piece("twiddle", "twiddle"))
            continue
        pieces += [Piece(random.choice(once), "resize" if resizes else "transform"), Piece("(", "a(")]
        for i in range(random.randint(1, len(modes))):
            mode = modes.pop()
            spelled = names[mode] if random.random() < 0.7 else str(mode)
            pieces += [*([Piece(",", "am,")] if i else []), Piece(spelled, "mode")]
            if resizes:
                pieces += [Piece("=", "a="), Piece(str(random.choice((1, 9, 96, 2**63 - 1))), "extent")]
        pieces.append(Piece(")", "a)"))
    return pieces


def join_line(pieces: list[Piece], random: Random) -> tuple[str, list[int]]:
    """A line, white space and a comment strewn in at random; where each piece begins in it, and where its code ends."""
    text, positions = join(pieces, random)
    text = text.replace("\n", " ")
    end = len(text.rstrip())
    return text + random.choice(("", "", " ", "  # [(0)]: fft(", "#", "\t# λ → 1 # 2")), [*positions, end]


def nothing(random: Random) -> list[str]:
    """Lines that say nothing."""
    return random.choices(("", "   ", "\t\r", "# a move", "  #: fft(0"), k=random.randint(0, 2))

"""Random layouts for the grammar tests: as syntax nodes (Hypothesis), and as texts whose every piece knows its role.

The pieces share no code with the grammar: a test that breaks one of them knows by its role what was broken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from random import Random

from hypothesis import strategies as st

from rote.grammar import BLOCK, CYCLIC, Entry, Fuse, Kind, LayoutSyntax, Name, Tile, TransitionSyntax, ViewItem
from rote.grammar.nodes import OPS

# --- nodes ------------------------------------------------------------------------------------------------------

KINDS = (
    *(CYCLIC, BLOCK, Kind("cyclic", (4,)), Kind("block", (4,)), Kind("block", (3, 5, 2)), Kind("block", (0, 0))),
    *(Kind("ceil"), Kind("floor"), Kind("cyclic", (1,), 2), Kind("cyclic", (4,), 1)),
)

sizes = st.integers(1, 2**63 - 1)
kinds = st.one_of(
    st.sampled_from(KINDS),
    sizes.map(lambda b: Kind("cyclic", (b,))),
    st.builds(lambda b, at: Kind("cyclic", (b,), at), sizes, st.integers(0, 2**63 - 1)),
    sizes.map(lambda b: Kind("block", (b,))),
    st.lists(st.integers(0, 2**63 - 1), min_size=2, max_size=5).map(lambda s: Kind("block", tuple(s))),
)
identifiers = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,6}\Z").filter(lambda name: name not in ("block", "cyclic"))


@st.composite
def views(draw: st.DrawFn) -> tuple[ViewItem, ...] | None:
    """A view of order at most 6, or None."""
    names = draw(st.lists(identifiers, max_size=6, unique=True))
    items: list[ViewItem] = []
    while names:
        group = [names.pop() for _ in range(min(len(names), draw(st.integers(1, 3))))]
        shape = draw(st.sampled_from(("fuse", "tile", "full")))
        if len(group) == 1:
            items.append(Name(group[0]))
        elif shape == "fuse":
            items.append(Fuse(tuple(group)))
        else:
            free = draw(st.integers(0, len(group) - 1)) if shape == "tile" else None
            items.append(Tile(tuple((name, None if i == free else draw(sizes)) for i, name in enumerate(group))))
    return tuple(items) or None


@st.composite
def layouts(draw: st.DrawFn) -> LayoutSyntax:
    """A layout of any order up to 6, with or without a view and suffixes."""
    view = draw(views())
    order = draw(st.integers(0, 4)) if view is None else sum(map(width, view))
    grid_modes = draw(st.lists(st.integers(0, 63), max_size=8, unique=True))
    modes: list[list[Entry]] = [[] for _ in range(order)]
    partial: list[int] = []
    rooted: list[tuple[int, int]] = []
    for g in grid_modes:
        place = draw(st.integers(-2, order - 1))
        if place == -2:
            partial.append(g)
        elif place == -1:
            rooted.append((g, draw(st.sampled_from((0, 1, 2**63 - 1)))))
        else:
            modes[place].append(Entry(g, draw(kinds)))
    op = draw(st.sampled_from(OPS))
    return LayoutSyntax(tuple(map(tuple, modes)), view, op, tuple(partial), tuple(rooted))


def width(item: ViewItem) -> int:
    """How many modes of the brackets a view item stands for."""
    return len(item.parts) if isinstance(item, Tile) else 1


def tensor_order(layout: LayoutSyntax) -> int:
    """The order of the tensor that a layout is for."""
    if layout.view is None:
        return len(layout.modes)
    return sum(len(item.names) if isinstance(item, Fuse) else 1 for item in layout.view)


@st.composite
def transitions(draw: st.DrawFn) -> TransitionSyntax:
    """Two layouts of one tensor: where their orders differ, the target is made plain."""
    source, target = draw(layouts()), draw(layouts())
    if tensor_order(source) != tensor_order(target):
        target = LayoutSyntax(((),) * tensor_order(source))
    return TransitionSyntax(source, target)


# --- texts in pieces --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """A token of a text, its role, and the side of the arrow that it is on."""

    text: str
    role: str
    side: int = 0


def join(pieces: list[Piece], random: Random) -> tuple[str, list[int]]:
    """The text, white space strewn in at random, and where each piece begins in it."""
    text, positions = random.choice(("", "", " ", "\n")), []
    for piece in pieces:
        glued = (
            bool(text)
            and (text[-1].isalnum() or text[-1] == "_")
            and (piece.text[:1].isalnum() or piece.text[:1] == "_")
        )
        text += " " if glued else random.choice(("", "", "", " ", "\t"))
        positions.append(len(text))
        text += piece.text
    return text, positions


def random_pieces(random: Random) -> list[Piece]:
    """A valid layout or transition in pieces."""
    if random.random() < 0.6:
        return layout_pieces(random, random.randint(0, 4))
    order = random.randint(0, 4)
    return [*layout_pieces(random, order), Piece("->", "->"), *layout_pieces(random, order, 1)]


def layout_pieces(random: Random, order: int, side: int = 0) -> list[Piece]:
    """A valid layout of a tensor of this order, in pieces."""
    fresh = random.sample(range(60), 20)
    view, modes = _view(random, order) if order and random.random() < 0.5 else ([], order)
    prefix = _kind(random, "d") if random.random() < 0.4 else []
    pieces = [*view, *prefix, Piece("[", "[")]
    for m in range(modes):
        if m and random.random() < 0.8:
            pieces.append(Piece(",", "m,"))
        pieces += [Piece("(", "m("), *_entries(random, fresh), Piece(")", "m)")]
    pieces.append(Piece("]", "]"))
    suffixes = [s for s in (_partial(random, fresh), _rooted(random, fresh)) if random.random() < 0.5]
    random.shuffle(suffixes)
    return [replace(piece, side=side) for piece in chain(pieces, *suffixes)]


def _listed(random: Random, members: list[list[Piece]], comma: str) -> list[Piece]:
    return [piece for i, member in enumerate(members) for piece in ([Piece(",", comma)] if i else []) + member]


def _entries(random: Random, fresh: list[int]) -> list[Piece]:
    entries = []
    for _ in range(random.choice((0, 0, 1, 1, 1, 2, 3))):
        if fresh:
            kind = [Piece(":", "k:"), *_kind(random, "")] if random.random() < 0.5 else []
            entries.append([Piece(str(fresh.pop()), "g"), *kind])
    return _listed(random, entries, "e,")


def _kind(random: Random, of: str) -> list[Piece]:
    name = random.choice(("block", "cyclic"))
    count = random.choice((0, 1)) if name == "cyclic" else random.choice((0, 1, 2, 3))
    role = of + ("size" if count > 1 else "tile")
    members = [[Piece(str(random.randint(1, 99)), role)] for _ in range(count)]
    if name == "block" and random.random() < 0.3:
        members = [[Piece(random.choice(("ceil", "floor")), of + "rounding")]]
    if name == "cyclic" and random.random() < 0.3:
        at = str(random.choice((0, 1, 7)))
        members.append([Piece("at", of + "at"), Piece("=", of + "at="), Piece(at, of + "first")])
    sizes = [Piece("(", of + "s("), *_listed(random, members, of + "s,"), Piece(")", of + "s)")] if members else []
    return [Piece(name, of + "kind"), *sizes]


def _partial(random: Random, fresh: list[int]) -> list[Piece]:
    op = random.choice(("", "sum", "max", "min", "prod"))
    members = [[Piece(str(fresh.pop()), "xg")] for _ in range(random.randint(1, 2)) if fresh]
    if not members:
        return []
    return [
        Piece("+", "+"),
        *([Piece(op, "op")] if op else []),
        *(Piece("(", "x("), *_listed(random, members, "x,"), Piece(")", "x)")),
    ]


def _rooted(random: Random, fresh: list[int]) -> list[Piece]:
    members = []
    for _ in range(random.randint(1, 2)):
        if fresh:
            at = [Piece("@", "@"), Piece(str(random.randint(0, 99)), "root")] if random.random() < 0.5 else []
            members.append([Piece(str(fresh.pop()), "xg"), *at])
    return [Piece("|", "|"), Piece("(", "x("), *_listed(random, members, "x,"), Piece(")", "x)")] if members else []


def _view(random: Random, order: int) -> tuple[list[Piece], int]:
    """A view of a tensor of this order, and how many modes it has."""
    names = random.sample(["a", "b", "c", "r", "s", "t", "x1", "Row", "_y", "max", "at", "ceil", "floor", "w", "z"], 15)
    pieces, modes = [], 0
    while order:
        fused = random.randint(2, 3)
        shape = random.choice(("name", "fuse", "tile"))
        if shape == "fuse" and fused <= order:
            pieces += [Piece("(", "v("), *(Piece(names.pop(), "fused") for _ in range(fused)), Piece(")", "v)")]
            order, modes = order - fused, modes + 1
        elif shape == "tile":
            parts, free = random.randint(2, 3), random.randint(0, 3)
            pieces.append(Piece("(", "v("))
            for i in range(parts):
                pieces.append(Piece(names.pop(), "free" if i == free else "part"))
                pieces += [] if i == free else [Piece("=", "="), Piece(str(random.randint(1, 9)), "psize")]
            pieces.append(Piece(")", "v)"))
            order, modes = order - 1, modes + parts
        else:
            pieces.append(Piece(names.pop(), "name"))
            order, modes = order - 1, modes + 1
    return [*pieces, Piece(":", "view:")], modes

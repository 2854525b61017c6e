"""Text <-> syntax: what each text means, which of its texts is the canonical one, and that nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random

import pytest
from grammar_texts import KINDS, join, layouts, random_pieces, transitions
from hypothesis import given
from marks import PARTS
from parts import share

from rote.grammar import (
    BLOCK,
    CYCLIC,
    Entry,
    Fuse,
    Kind,
    LayoutSyntax,
    Name,
    Tile,
    TransitionSyntax,
    parse_syntax,
    unparse,
)

E0, E1, B0 = Entry(0), Entry(1), Entry(0, BLOCK)

# Every text that the design prints, and what it says.
MEANINGS = {
    "[(0),(),(1)]": LayoutSyntax(((E0,), (), (E1,))),
    "[(0,1),()]": LayoutSyntax(((E0, E1), ())),
    "[(0:block),(),(1:cyclic(4))]": LayoutSyntax(((B0,), (), (Entry(1, Kind("cyclic", (4,))),))),
    "block[(0),(1),()]": LayoutSyntax(((B0,), (Entry(1, BLOCK),), ())),
    "[(0),()]|(1)": LayoutSyntax(((E0,), ()), rooted=((1, 0),)),
    "[(0),()]|(1@2)": LayoutSyntax(((E0,), ()), rooted=((1, 2),)),
    "[(0),()]+(1)": LayoutSyntax(((E0,), ()), partial=(1,)),
    "[(0),()]+max(1)": LayoutSyntax(((E0,), ()), op="max", partial=(1,)),
    "a (r s=4): [(),(0),()]": LayoutSyntax(((), (E0,), ()), (Name("a"), Tile((("r", None), ("s", 4))))),
    "(a b) c: block[(0),()]": LayoutSyntax(((B0,), ()), (Fuse(("a", "b")), Name("c"))),
    "[()(0)]": LayoutSyntax(((), (E0,))),
    "[]": LayoutSyntax(()),
    "block[(0),()] -> block[(),(0)]": TransitionSyntax(LayoutSyntax(((B0,), ())), LayoutSyntax(((), (B0,)))),
    "[(0:cyclic),(1:cyclic(1))]": LayoutSyntax(((E0,), (E1,))),
    "[(0:block(4))]": LayoutSyntax(((Entry(0, Kind("block", (4,))),),)),
    "block(3,5,2)[(0)]": LayoutSyntax(((Entry(0, Kind("block", (3, 5, 2))),),)),
    "cyclic(4)[(0:block)]": LayoutSyntax(((B0,),)),
    "[(0:block(ceil)),(1:block(floor))]": LayoutSyntax(((Entry(0, Kind("ceil")),), (Entry(1, Kind("floor")),))),
    "[(0:cyclic(4,at=2)),(1:cyclic(at=2))]": LayoutSyntax(
        ((Entry(0, Kind("cyclic", (4,), 2)),), (Entry(1, Kind("cyclic", (1,), 2)),))
    ),
    "at ceil (floor=2 max=4): [()()()()]": LayoutSyntax(
        ((),) * 4, (Name("at"), Name("ceil"), Tile((("floor", 2), ("max", 4))))
    ),
    "[]|(3@4,2)+sum(1,0)": LayoutSyntax((), partial=(0, 1), rooted=((2, 0), (3, 4))),
    "max block_: [()()]": LayoutSyntax(((), ()), (Name("max"), Name("block_"))),
    "(r=2 s=4): [()()]": LayoutSyntax(((), ()), (Tile((("r", 2), ("s", 4))),)),
}

CANONICAL = {
    " [ ( 0 ) ( )\n(1)\t] ": "[(0),(),(1)]",
    "cyclic[(0)]": "[(0)]",
    "cyclic(1)[(0:cyclic(1))]": "[(0)]",
    "cyclic(4)[()]": "[()]",
    "[(0:block)]": "block[(0)]",
    "[(0:block),(1)]": "[(0:block),(1)]",  # block[(0),(1:cyclic)] is longer
    "block[(0),(1),(2:cyclic)]": "[(0:block),(1:block),(2)]",  # equally long: without prefix
    "[(0:block),(1:block),(2:block),(3)]": "block[(0),(1),(2),(3:cyclic)]",
    "[(0:block(4)),(1:block(5))]": "block(4)[(0),(1:block(5))]",  # as long as block(5)[…], and occurs first
    "[(1:block(5)),(0:block(4))]": "block(5)[(1),(0:block(4))]",
    "[(0:cyclic( 4 , at = 0 )),(1:cyclic(1,at=3))]": "cyclic(4)[(0),(1:cyclic(at=3))]",
    "[(0:block( ceil ))]": "block(ceil)[(0)]",
    "[]|(3@4,2@0)+sum(1,0)": "[]+(0,1)|(2,3@4)",
    "b   (r  s = 4) : [()()(0)]": "b (r s=4): [(),(),(0)]",
    "a b: [()(0)]": "[(),(0)]",  # sorted plain names leave every mode where it is
    "b a: [()(0)]": "b a: [(),(0)]",
    "[()]->[(0:block)]": "[()] -> block[(0)]",
}


@pytest.mark.parametrize("text", MEANINGS)
def test_meaning(text: str) -> None:
    """Each text means exactly one node, which is hashable."""
    assert parse_syntax(text) == MEANINGS[text]
    assert hash(parse_syntax(text)) == hash(MEANINGS[text])


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_text(text: str) -> None:
    """The canonical text is the shortest, and its own canonical text."""
    assert unparse(parse_syntax(text)) == CANONICAL[text]
    assert unparse(parse_syntax(CANONICAL[text])) == CANONICAL[text]


def small_layouts() -> Iterator[LayoutSyntax]:
    """All layouts of order at most 2 over at most two grid modes, all kinds, with each pair of suffixes."""
    entries = [(), *((Entry(g, kind),) for g in (0, 1) for kind in KINDS)]
    pairs = [(Entry(g, a), Entry(1 - g, b)) for g in (0, 1) for a, b in product(KINDS, KINDS)]
    modes = [(), *((mode,) for mode in (*entries, *pairs)), *product(entries, entries), *((pair, ()) for pair in pairs)]
    suffixes = [
        LayoutSyntax(()),
        LayoutSyntax((), partial=(2,)),
        LayoutSyntax((), op="max", partial=(2, 3)),
        LayoutSyntax((), rooted=((2, 0), (3, 1))),
        LayoutSyntax((), op="min", partial=(2,), rooted=((3, 4),)),
    ]
    for of_modes, suffix in product(modes, suffixes):
        used = [entry.grid_mode for mode in of_modes for entry in mode]
        if len(used) == len(set(used)):
            yield replace(suffix, modes=of_modes)


@pytest.mark.parametrize("part", PARTS)
def test_small_layouts_survive(part: str) -> None:
    """parse(str(x)) == x, exhaustively for small layouts; and different layouts have different texts."""
    everything = list(small_layouts())
    texts = [unparse(node) for node in everything]
    assert len(set(texts)) == len(set(everything)) > 1000
    for node, text in share(zip(everything, texts, strict=True), part, 4):
        assert parse_syntax(text) == node


@given(layouts())
def test_layouts_survive(node: LayoutSyntax) -> None:
    """parse(str(x)) == x."""
    assert parse_syntax(unparse(node)) == node


@given(transitions())
def test_transitions_survive(node: TransitionSyntax) -> None:
    """parse(str(a -> b)) == a -> b."""
    assert parse_syntax(unparse(node)) == node


@given(layouts())
def test_no_default_kind_is_shorter(node: LayoutSyntax) -> None:
    """Whatever default kind one writes, the text means the same and is not shorter."""

    def spelled(kind: Kind) -> str:
        if kind.name in ("ceil", "floor"):
            return f"block({kind.name})"
        words = [*map(str, kind.sizes), f"at={kind.at}"] if kind.name == "cyclic" else [*map(str, kind.sizes)]
        return kind.name + (f"({','.join(words)})" if words else "")

    bare = LayoutSyntax(node.modes)
    for default in {entry.kind for mode in node.modes for entry in mode}:
        entries = [
            [f"{e.grid_mode}" + ("" if e.kind == default else f":{spelled(e.kind)}") for e in mode]
            for mode in node.modes
        ]
        text = f"{spelled(default)}[{','.join('(' + ','.join(mode) + ')' for mode in entries)}]"
        assert parse_syntax(text) == bare
        assert len(unparse(bare)) <= len(text)


@pytest.mark.parametrize("part", PARTS)
def test_white_space_and_spelling_do_not_matter(part: str) -> None:
    """However a layout is spelled: its canonical text means the same, and is not longer than it."""
    for random in map(Random, share(range(2000), part, 5, of=3)):
        text, _ = join(random_pieces(random), random)
        node = parse_syntax(text)
        canonical = unparse(node)
        assert parse_syntax(canonical) == node
        assert unparse(parse_syntax(canonical)) == canonical


def test_nodes_are_canonical_at_birth() -> None:
    """Equal meaning is an equal node, however it is made."""
    assert Kind("cyclic") == CYCLIC
    assert LayoutSyntax(((),), op="max") == LayoutSyntax(((),))
    assert LayoutSyntax(((), ()), view=(Name("a"), Name("b"))) == LayoutSyntax(((), ()))
    assert LayoutSyntax((), partial=(2, 1), rooted=((4, 0), (3, 1))).rooted == ((3, 1), (4, 0))
    assert LayoutSyntax((), partial=(2, 1)).partial == (1, 2)

"""lark: a text that is known to be right -> syntax nodes.

The only file that imports lark. Importing it builds the tables, once, also among threads; so parser.py imports it at
the first parse.
"""

from __future__ import annotations

from importlib import resources
from typing import Any, cast

from lark import Lark, Transformer

from .nodes import (
    BLOCK,
    CYCLIC,
    TRANSFORMS,
    ActionSyntax,
    Entry,
    Fuse,
    Kind,
    LayoutSyntax,
    Name,
    Op,
    Rounding,
    StageSyntax,
    Tile,
    TransitionSyntax,
    ViewItem,
)

# A rule's children, in order; a bracketed part of a rule that is not in the text is None.
_Items = list[Any]


class _Build(Transformer[Any, Any]):
    """One method per rule of layout.lark and of walk.lark, one line each: tokens in, nodes out."""

    def transition(self, items: _Items) -> TransitionSyntax:
        return TransitionSyntax(*items)

    def layout(self, items: _Items) -> LayoutSyntax:
        view, default, modes, suffixes = items
        kind = default or CYCLIC
        resolved = (tuple(Entry(g, own or kind) for g, own in mode) for mode in modes or ())
        return LayoutSyntax(tuple(resolved), view, **suffixes)

    def modes(self, items: _Items) -> tuple[Any, ...]:
        return tuple(items)

    def mode(self, items: _Items) -> tuple[tuple[int, Kind | None], ...]:
        return tuple(item for item in items if item is not None)

    def entry(self, items: _Items) -> tuple[int, Kind | None]:
        return items[0], items[1]

    def cyclic(self, items: _Items) -> Kind:
        size, at = items or (1, None)
        return Kind("cyclic", (size,), at or 0)

    def cyclic_at(self, items: _Items) -> Kind:
        return Kind("cyclic", (1,), items[0])

    def rounded(self, items: _Items) -> Kind:
        return Kind(items[0])

    def block(self, items: _Items) -> Kind:
        return BLOCK if items[0] is None else Kind("block", tuple(items))

    def suffixes(self, items: _Items) -> dict[str, Any]:
        return {name: value for item in items for name, value in item.items()}

    def partial(self, items: _Items) -> dict[str, Any]:
        return {"op": items[0] or "sum", "partial": tuple(items[1:])}

    def rooted(self, items: _Items) -> dict[str, Any]:
        return {"rooted": tuple(items)}

    def root(self, items: _Items) -> tuple[int, int]:
        return items[0], items[1] or 0

    def view(self, items: _Items) -> tuple[ViewItem, ...]:
        return tuple(items)

    def name(self, items: _Items) -> Name:
        return Name(items[0])

    def group(self, items: _Items) -> Fuse | Tile:
        sized = any(size is not None for _, size in items)
        return Tile(tuple(items)) if sized else Fuse(tuple(name for name, _ in items))

    def part(self, items: _Items) -> tuple[str, int | None]:
        return items[0], items[1]

    def stage(self, items: _Items) -> tuple[LayoutSyntax, tuple[int, ...] | None, _Items]:
        return items[1], items[0], items[2] or []

    def actions(self, items: _Items) -> _Items:
        return items

    def along(self, items: _Items) -> tuple[str, _Items, _Items]:
        return str(items[0]), items[1:], []

    def resize(self, items: _Items) -> tuple[str, _Items, _Items]:
        return str(items[0]), items[1::2], items[2::2]

    def twiddle(self, items: _Items) -> tuple[str, _Items, _Items]:
        return str(items[0]), [], []

    def GRID(self, token: str) -> tuple[int, ...]:
        return tuple(map(int, token.split("x")))

    def NUMBER(self, token: str) -> int:
        return int(token)

    def NAME(self, token: str) -> str:
        return str(token)

    def ROUNDING(self, token: str) -> Rounding:
        return cast(Rounding, str(token))

    def OP(self, token: str) -> Op:
        return cast(Op, str(token))


_FILES = [resources.files(__package__).joinpath(name) for name in ("layout.lark", "walk.lark")]
GRAMMAR = "\n".join(file.read_text("utf-8") for file in _FILES).replace("TRANSFORMS|", f"{'|'.join(TRANSFORMS)}|")
LARK = Lark(
    GRAMMAR,
    start=["start", "stage"],
    parser="lalr",
    transformer=_Build(),
)


def build(text: str) -> LayoutSyntax | TransitionSyntax:
    """The nodes of a text that check.py has let pass."""
    return cast(LayoutSyntax | TransitionSyntax, LARK.parse(text, start="start"))


def build_stage(text: str, modes: tuple[str | None, ...]) -> StageSyntax:
    """The node of a line of a walk that walks.py has let pass, given the names of the layout's modes."""
    layout, grid, actions = cast(Any, LARK.parse(text, start="stage"))
    numbers = {name: number for number, name in enumerate(modes)}
    resolved = (
        ActionSyntax(name, tuple(numbers.get(at, at) for at in along), tuple(extents))
        for name, along, extents in actions
    )
    return StageSyntax(layout, grid, tuple(resolved))

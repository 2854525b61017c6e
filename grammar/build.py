"""Text -> syntax nodes, by lark. Only this file imports lark; importing it builds the parser's tables, once."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable
from functools import lru_cache
from importlib import resources
from typing import Any, cast

from lark import Lark, Transformer, UnexpectedInput, v_args
from lark import Token as LarkToken
from lark.lexer import PatternStr
from lark.parsers.lalr_interactive_parser import InteractiveParser

from . import nodes
from .counts import Counts, behind
from .diagnostics import mistake
from .misplaced import Place, misplaced
from .tokens import Token, scan


def _layout(view: Any, default: nodes.Kind | None, modes: Any, suffixes: dict[str, Any]) -> nodes.LayoutSyntax:
    resolved = []
    for mode in modes:
        resolved.append(tuple([nodes.Entry(int(g), own or default or nodes.CYCLIC) for g, own in mode]))
    return nodes.LayoutSyntax(tuple(resolved), view, **suffixes)


def _cyclic(tile: str = "1", at: str | None = None) -> nodes.Kind:
    return nodes.Kind("cyclic", (int(tile),), int(at or 0))


def _block(*runs: str) -> nodes.Kind:
    """A run of sizes is one token."""
    return nodes.Kind("block", tuple([int(size) for run in runs for size in run.split(",")]))


def _group(*parts: tuple[str, int | None]) -> nodes.Fuse | nodes.Tile:
    if any(size is not None for _, size in parts):
        return nodes.Tile(parts)
    return nodes.Fuse(tuple(name for name, _ in parts))


def _listed(*items: Any) -> tuple[Any, ...]:
    return items


# The function that builds the node of each rule of layout.lark and walk.lark; an optional part that is absent is None.
_NODES: dict[str, Callable[..., Any]] = {
    "transition": nodes.TransitionSyntax,
    "layout": _layout,
    "modes": _listed,
    "mode": _listed,
    "entry": _listed,
    "cyclic": _cyclic,
    "cyclic_at": lambda at: _cyclic(at=at),
    "block": _block,
    "rounded": lambda rounding: nodes.Kind(rounding.value),
    "suffixes": lambda *suffixes: dict(ChainMap(*suffixes)),
    "partial": lambda op, *modes: {"op": op.value if op else "sum", "partial": tuple(map(int, modes))},
    "rooted": lambda *roots: {"rooted": roots},
    "root": lambda grid_mode, at: (int(grid_mode), int(at or 0)),
    "view": _listed,
    "name": lambda name: nodes.Name(name.value),
    "group": _group,
    "part": lambda name, size: (name.value, size and int(size)),
    "stage": _listed,
    "actions": _listed,
    "along": lambda action, *modes: (action.value, modes, ()),
    "resize": lambda action, *modes: (action.value, modes[::2], tuple(map(int, modes[1::2]))),
    "twiddle": lambda action: (action.value, (), ()),
}
_Nodes = type("_Nodes", (Transformer,), {name: staticmethod(node) for name, node in _NODES.items()})
_FILES = [*map(resources.files(__package__).joinpath, ("layout.lark", "walk.lark"))]
_TEXT = "\n".join(file.read_text("utf-8") for file in _FILES)
GRAMMAR = _TEXT.replace("/TRANSFORMS/", f"/{'|'.join(nodes.TRANSFORMS)}/")
LARK = Lark(
    GRAMMAR, start=["start", "stage"], parser="lalr", lexer="contextual", transformer=v_args(inline=True)(_Nodes)()
)
# The names that Counts and misplaced have for terminals: a mark is its own name.
_TYPES = {t.name: t.pattern.value if isinstance(t.pattern, PatternStr) else t.name for t in LARK.terminals}


def build(text: str) -> nodes.LayoutSyntax | nodes.TransitionSyntax:
    """Build the node of a layout or of a transition, or raise its first mistake as NotationError."""
    node: nodes.LayoutSyntax | nodes.TransitionSyntax = _read(Counts(text), "start")[0]
    if isinstance(node, nodes.TransitionSyntax) and node.source.tensor_order != node.target.tensor_order:
        hint = f"order {node.source.tensor_order} on the left, {node.target.tensor_order} on the right"
        raise mistake("order-mismatch", text, behind(text, text.index("->") + len("->")), hint=hint)
    return node


@lru_cache(maxsize=1024)  # many walks have lines in common
def build_stage(text: str) -> nodes.StageSyntax:
    """Build the node of a line of a walk, or raise its first mistake as NotationError."""
    (grid, layout, actions), counts = _read(Counts(text, stage=True), "stage")
    numbers = {names[0]: number for number, names in enumerate(counts.modes) if len(names) == 1}
    resolved = []
    for name, modes, extents in actions or ():
        chosen = tuple([numbers[mode] if mode in numbers else int(mode) for mode in modes])
        resolved.append(nodes.ActionSyntax(name, chosen, extents))
    return nodes.StageSyntax(layout, grid and tuple(map(int, grid.split("x"))), tuple(resolved))


def _read(counts: Counts, start: str) -> tuple[Any, Counts]:
    """Parse a text by the rule `start` of the grammars, and count its tokens from left to right."""
    text, cursor = counts.text, LARK.parse_interactive(counts.text, start)
    stack = cursor.parser_state.value_stack
    try:
        for token in cursor.iter_parse():
            counts = counts.take(Token(_TYPES[token.type], token.value, token.start_pos or 0), stack)
        return cursor.feed_token(LarkToken("$END", "", len(text))), counts
    except UnexpectedInput as error:
        tokens, position = scan(text), error.pos_in_stream or 0
        i = next((i for i, token in enumerate(tokens) if position < token.position + len(token.text)), len(tokens) - 1)
        last = tokens[i - 1] if i else None
        raise misplaced(text, tokens, i, _place(cursor, last), counts) from None


def _place(cursor: InteractiveParser, last: Token | None) -> Place:
    """Say what lark's parser expects after the token `last`, and which brackets on its stack are open."""
    stack = [value for value in cursor.parser_state.value_stack if isinstance(value, LarkToken)]
    opened = ""
    for token in stack:
        if token in ("(", "["):
            opened += token
        elif token in (")", "]"):
            opened = opened[:-1]
    type_ = last.type if last else ""
    if last and stack and stack[-1].start_pos == last.position:  # else it is in a node already
        type_ = _TYPES[stack[-1].type]
    return Place({_TYPES.get(name, name) for name in cast(Any, cursor).accepts()}, type_, opened)

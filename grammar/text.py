"""Syntax -> text: canonical, shortest, and parsed back to an equal node."""

from __future__ import annotations

from .nodes import BLOCK, CYCLIC, Entry, Fuse, Kind, LayoutSyntax, Name, TransitionSyntax, ViewItem


def unparse(node: LayoutSyntax | TransitionSyntax) -> str:
    """The canonical text of a layout or of a transition: ``parse_syntax(unparse(node)) == node``.

    >>> unparse(LayoutSyntax(((Entry(0, BLOCK),), (), (Entry(1, BLOCK),)), rooted=((2, 0), (3, 1))))
    'block[(0),(),(1)]|(2,3@1)'
    """
    if isinstance(node, TransitionSyntax):
        return f"{unparse(node.source)} -> {unparse(node.target)}"
    view = "" if node.view is None else " ".join(map(_item, node.view)) + ": "
    return view + _brackets(node.modes) + _partial(node) + _rooted(node.rooted)


def _brackets(modes: tuple[tuple[Entry, ...], ...]) -> str:
    """The shortest over all default kinds; of equally short ones the one without prefix, then the first that occurs."""
    kinds = dict.fromkeys([CYCLIC, *(entry.kind for mode in modes for entry in mode)])
    return min((_with_default(modes, kind) for kind in kinds), key=len)


def _with_default(modes: tuple[tuple[Entry, ...], ...], default: Kind) -> str:
    prefix = "" if default == CYCLIC else _kind(default)
    return f"{prefix}[{','.join('(' + ','.join(_entry(e, default) for e in mode) + ')' for mode in modes)}]"


def _entry(entry: Entry, default: Kind) -> str:
    return f"{entry.grid_mode}" if entry.kind == default else f"{entry.grid_mode}:{_kind(entry.kind)}"


def _kind(kind: Kind) -> str:
    return kind.name if kind in (CYCLIC, BLOCK) else f"{kind.name}({','.join(map(str, kind.sizes))})"


def _item(item: ViewItem) -> str:
    if isinstance(item, Name):
        return item.name
    if isinstance(item, Fuse):
        return f"({' '.join(item.names)})"
    return f"({' '.join(name if size is None else f'{name}={size}' for name, size in item.parts)})"


def _partial(node: LayoutSyntax) -> str:
    op = "" if node.op == "sum" else node.op
    return f"+{op}({','.join(map(str, node.partial))})" if node.partial else ""


def _rooted(rooted: tuple[tuple[int, int], ...]) -> str:
    return f"|({','.join(f'{g}@{root}' if root else f'{g}' for g, root in rooted)})" if rooted else ""

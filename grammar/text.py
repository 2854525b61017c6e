"""Syntax -> text: canonical, as short as possible, and parsed back to an equal node."""

from __future__ import annotations

from itertools import chain

from . import nodes


def unparse(node: nodes.LayoutSyntax | nodes.TransitionSyntax) -> str:
    """The canonical text of a layout or a transition: ``parse_syntax(unparse(node)) == node``.

    Examples
    --------
    >>> from rote.grammar import BLOCK, Entry, LayoutSyntax, unparse
    >>> unparse(LayoutSyntax(((Entry(0, BLOCK),), (), (Entry(1, BLOCK),)), rooted=((2, 0), (3, 1))))
    'block[(0),(),(1)]|(2,3@1)'
    """
    if isinstance(node, nodes.TransitionSyntax):
        return f"{unparse(node.source)} -> {unparse(node.target)}"

    text = _brackets(node.modes)
    if node.view is not None:
        text = f"{' '.join(map(item_text, node.view))}: {text}"
    if node.partial:
        op = "" if node.op == "sum" else node.op
        text += f"+{op}({','.join(map(str, node.partial))})"
    if node.rooted:
        roots = [f"{g}@{root}" if root else str(g) for g, root in node.rooted]
        text += f"|({','.join(roots)})"

    return text


def unparse_walk(walk: nodes.WalkSyntax) -> str:
    """The canonical text of a walk, a line for each stage: ``parse_walk(unparse_walk(walk)) == walk``.

    Actions name modes as the view does, or by their numbers if they have no name there.

    Examples
    --------
    >>> from rote.grammar import parse_walk, unparse_walk
    >>> unparse_walk(parse_walk("on 4 [(0), (), ()]: fft(1, 2), twiddle  # one stage"))
    'on 4 [(0),(),()]: fft(1, 2), twiddle'
    """
    return "\n".join(map(_stage, walk.stages))


def _stage(stage: nodes.StageSyntax[nodes.LayoutSyntax]) -> str:
    text = unparse(stage.layout)
    if stage.grid is not None:
        text = f"on {'x'.join(map(str, stage.grid))} {text}"
    if stage.actions:
        names = _mode_names(stage.layout)
        text += f": {', '.join([_action(action, names) for action in stage.actions])}"
    return text


def _action(action: nodes.ActionSyntax, names: list[str]) -> str:
    modes = [names[mode] for mode in action.modes]
    if action.extents:
        modes = [f"{mode}={extent}" for mode, extent in zip(modes, action.extents, strict=True)]
    return _with_words(action.name, modes, ", ")


def _with_words(name: str, words: list[str], mark: str) -> str:
    return f"{name}({mark.join(words)})" if words else name


def _mode_names(layout: nodes.LayoutSyntax) -> list[str]:
    if layout.view is None:
        return [*map(str, range(len(layout.modes)))]
    modes = nodes.modes_read(layout.view)
    return [names[0] if len(names) == 1 else str(number) for number, names in enumerate(modes)]


def _brackets(modes: tuple[tuple[nodes.Entry, ...], ...]) -> str:
    """Write modes with the default kind that makes the shortest text; in a tie with none, else the first to occur."""
    kinds = dict.fromkeys([entry.kind for entry in chain(*modes)])
    texts = [_with_default("", modes, nodes.CYCLIC)]
    texts += [_with_default(kind_text(kind), modes, kind) for kind in kinds if kind != nodes.CYCLIC]
    return min(texts, key=len)


def _with_default(name: str, modes: tuple[tuple[nodes.Entry, ...], ...], default: nodes.Kind) -> str:
    """Write modes in brackets after the name of the default kind, which is that of all entries without a kind."""
    lists = []
    for mode in modes:
        entries = [entry_text(entry, default) for entry in mode]
        lists.append(f"({','.join(entries)})")
    return f"{name}[{','.join(lists)}]"


def entry_text(entry: nodes.Entry, default: nodes.Kind) -> str:
    """The text of an entry: its grid mode, and its kind if that is not the default one."""
    return f"{entry.grid_mode}" if entry.kind == default else f"{entry.grid_mode}:{kind_text(entry.kind)}"


def kind_text(kind: nodes.Kind) -> str:
    """Write a kind in its shortest text.

    >>> kind_text(nodes.Kind("ceil")), kind_text(nodes.Kind("cyclic", (4,), 2)), kind_text(nodes.Kind("cyclic", at=2))
    ('block(ceil)', 'cyclic(4,at=2)', 'cyclic(at=2)')
    """
    if kind.name in nodes.ROUNDINGS:
        return f"block({kind.name})"
    words = [] if kind.name == "cyclic" and kind.sizes == (1,) else [*map(str, kind.sizes)]
    if kind.at:
        words.append(f"at={kind.at}")
    return _with_words(kind.name, words, ",")


def item_text(item: nodes.ViewItem) -> str:
    """Write an item of a view."""
    if isinstance(item, nodes.Name):
        return item.name
    if isinstance(item, nodes.Fuse):
        return f"({' '.join(item.names)})"
    words = [name if size is None else f"{name}={size}" for name, size in item.parts]
    return f"({' '.join(words)})"

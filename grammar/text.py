"""Syntax -> text: canonical, shortest, and parsed back to an equal node."""

from __future__ import annotations

from . import nodes


def unparse(node: nodes.LayoutSyntax | nodes.TransitionSyntax) -> str:
    """Write a layout or a transition in its canonical text: ``parse_syntax(unparse(node)) == node``.

    >>> block = nodes.Kind("block")
    >>> unparse(nodes.LayoutSyntax(((nodes.Entry(0, block),), (), (nodes.Entry(1, block),)), rooted=((2, 0), (3, 1))))
    'block[(0),(),(1)]|(2,3@1)'
    """
    if isinstance(node, nodes.TransitionSyntax):
        return f"{unparse(node.source)} -> {unparse(node.target)}"
    view = "" if node.view is None else " ".join(map(_item, node.view)) + ": "
    return view + _brackets(node.modes) + _partial(node) + _rooted(node.rooted)


def unparse_walk(walk: nodes.WalkSyntax) -> str:
    """Write a walk in its canonical text, a line for each stage: ``parse_walk(unparse_walk(walk)) == walk``.

    Modes go by their names in the view where they have one, else by their numbers.

    >>> layout = nodes.LayoutSyntax(((nodes.Entry(0),), (), ()))
    >>> actions = (nodes.ActionSyntax("fft", (1, 2)), nodes.ActionSyntax("twiddle"))
    >>> unparse_walk(nodes.WalkSyntax((nodes.StageSyntax(layout, (4,), actions),)))
    'on 4 [(0),(),()]: fft(1, 2), twiddle'
    """
    return "\n".join(map(_stage, walk.stages))


def _stage(stage: nodes.StageSyntax) -> str:
    grid = "" if stage.grid is None else f"on {'x'.join(map(str, stage.grid))} "
    names = _mode_names(stage.layout)
    actions = ", ".join(_action(action, names) for action in stage.actions)
    return grid + unparse(stage.layout) + (f": {actions}" if actions else "")


def _action(action: nodes.ActionSyntax, names: list[str]) -> str:
    modes = [names[mode] for mode in action.modes]
    if action.extents:
        modes = [f"{mode}={extent}" for mode, extent in zip(modes, action.extents, strict=True)]
    return action.name + (f"({', '.join(modes)})" if modes else "")


def _mode_names(layout: nodes.LayoutSyntax) -> list[str]:
    """Name each mode of a layout as an action does."""
    modes = [()] * len(layout.modes) if layout.view is None else nodes.modes_read(layout.view)
    return [names[0] if len(names) == 1 else str(number) for number, names in enumerate(modes)]


def _brackets(modes: tuple[tuple[nodes.Entry, ...], ...]) -> str:
    """Write modes with the default kind that is shortest; of equal ones with none, then with the first that occurs."""
    kinds = dict.fromkeys([nodes.CYCLIC, *(entry.kind for mode in modes for entry in mode)])
    return min((_with_default(modes, kind) for kind in kinds), key=len)


def _with_default(modes: tuple[tuple[nodes.Entry, ...], ...], default: nodes.Kind) -> str:
    prefix = "" if default == nodes.CYCLIC else kind_text(default)
    return f"{prefix}[{','.join('(' + ','.join(_entry(e, default) for e in mode) + ')' for mode in modes)}]"


def _entry(entry: nodes.Entry, default: nodes.Kind) -> str:
    return f"{entry.grid_mode}" if entry.kind == default else f"{entry.grid_mode}:{kind_text(entry.kind)}"


def kind_text(kind: nodes.Kind) -> str:
    """Write a kind in its shortest text.

    >>> kind_text(nodes.Kind("ceil")), kind_text(nodes.Kind("cyclic", (4,), 2)), kind_text(nodes.Kind("cyclic", at=2))
    ('block(ceil)', 'cyclic(4,at=2)', 'cyclic(at=2)')
    """
    if kind.name in nodes.ROUNDINGS:
        return f"block({kind.name})"
    sizes = () if kind.sizes == nodes.CYCLIC.sizes and kind.name == "cyclic" else kind.sizes
    words = [*map(str, sizes), *([f"at={kind.at}"] if kind.at else [])]
    return kind.name + (f"({','.join(words)})" if words else "")


def _item(item: nodes.ViewItem) -> str:
    if isinstance(item, nodes.Name):
        return item.name
    if isinstance(item, nodes.Fuse):
        return f"({' '.join(item.names)})"
    return f"({' '.join(name if size is None else f'{name}={size}' for name, size in item.parts)})"


def _partial(node: nodes.LayoutSyntax) -> str:
    op = "" if node.op == "sum" else node.op
    return f"+{op}({','.join(map(str, node.partial))})" if node.partial else ""


def _rooted(rooted: tuple[tuple[int, int], ...]) -> str:
    return f"|({','.join(f'{g}@{root}' if root else f'{g}' for g, root in rooted)})" if rooted else ""

"""The rules on counts and sizes, each counted after the fact on lark's tree: they are no matter of grammar."""

from __future__ import annotations

from typing import Any

from lark import Tree

# Mistakes that layout.lark does not know: they are a matter of counts and sizes.
COUNTS = {
    *("repeated-grid-mode", "repeated-name", "two-free-parts", "view-mismatch", "order-mismatch", "too-many-modes"),
    *("grid-mode-too-large", "number-too-large", "zero-tile", "text-too-long"),
}


def counts_are_right(found: Tree[Any]) -> bool:
    """The rules on counts, each counted on the tree after the fact."""
    sides = list(found.find_data("layout"))
    orders = [order(side) for side in sides]
    return len(set(orders)) == 1 and None not in orders and all(map(sizes_are_right, sides))


def order(layout: Any) -> int | None:
    """The order of the tensor of a layout; None if its view is wrong."""
    modes = len(list(layout.find_data("mode")))
    view = layout.children[0].children[0]
    if view is None:
        return modes if modes <= 64 else None
    names = [str(tree.children[0]) for tree in view.find_pred(lambda t: t.data in ("name", "part"))]
    width = height = 0
    for item in view.children:
        parts = [part.children[1] for part in item.find_data("part")] if item.data == "group" else [None]
        tile = any(size is not None for size in parts)
        if tile and parts.count(None) > 1:
            return None
        width, height = width + (len(parts) if tile else 1), height + (1 if tile else len(parts))
    return height if modes == width and len(set(names)) == len(names) <= 64 and modes <= 64 else None


def sizes_are_right(layout: Any) -> bool:
    """Grid modes are below 64 and used once, numbers below 2**63, tiles at least 1."""
    texts = layout.scan_values(lambda token: token is not None and token[0].isdigit())
    numbers = [int(size) for text in texts for size in text.split(",")]  # SIZES are several
    used = [int(found.children[0]) for found in layout.find_pred(lambda t: t.data in ("entry", "root"))]
    used += [int(g) for found in layout.find_data("partial") for g in found.children[1:]]
    tiles = [int(part.children[1]) for part in layout.find_data("part") if part.children[1] is not None]
    tiles += [int(size) for kind in layout.find_data("cyclic") for size in kind.children[:1]]
    return (
        max(numbers, default=0) < 2**63 and max(used, default=0) < 64 and len(set(used)) == len(used) and 0 not in tiles
    )

"""Text -> syntax nodes, by lark: the function of each rule builds its node, and checks what a grammar cannot say.

The grammars leave counts and names to these functions: that a grid mode is used once, that a view names as many modes
as the brackets hold, that a walk transforms a mode once. The functions get lark's tokens, which know their positions.
Only this file imports lark; importing it builds the parser's tables, once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple, cast

from lark import Lark, Transformer, UnexpectedInput, v_args
from lark import Token as LarkToken
from lark.lexer import PatternStr

from . import nodes
from .diagnostics import mistake
from .naming import ACTIONS, UNSPLIT, Token, misplaced, remarked
from .nodes import MAX_GRID_MODES, MAX_MODES, MAX_NUMBER, LayoutClass, TransitionClass

# The effect of an action on a mode. Each effect may occur at most once per mode and stage.
_EFFECTS = ("made complex", "made real", "resized", "resampled", "folded", "chirped")
_DONE = {
    **dict.fromkeys(nodes.TRANSFORMS, "transformed"),
    **dict(zip((*nodes.CASTS, *nodes.RESIZES), _EFFECTS, strict=True)),
}


class _Wrong(Exception):
    """A mistake at a token, for the reader, which knows the whole text."""

    def __init__(self, name: str, token: LarkToken, detail: str = "", shift: int = 0, in_walk: str = "") -> None:
        self.name, self.detail, self.in_walk = name, detail, in_walk or name
        self.position, self.token = (token.start_pos or 0) + shift, token.value[shift:]


_SHORT = 400  # characters of a text that is tried with other marks, and whose right form is shown

_Action = tuple[str, tuple[LarkToken, ...], tuple[LarkToken, ...]]  # its name, its modes and their new extents


class _Layout(NamedTuple):
    """A layout as written: the fields of its node, the names that each mode reads, and its tokens of grid modes."""

    fields: dict[str, Any]
    names: list[tuple[str, ...]]
    grid_modes: list[LarkToken]

    @property
    def tensor_order(self) -> int:
        view = self.fields["view"]
        return nodes.order_read(view) if view else len(self.fields["modes"])


# --- numbers ----------------------------------------------------------------------------------------------------------


def _number(token: LarkToken) -> int:
    """The number of a token, below its limit; a tile, a part and an extent are at least 1."""
    if _reaches(token, MAX_NUMBER):
        raise _Wrong("number-too-large", token)
    if token == "0" and token.type in ("TILE", "PART_SIZE", "EXTENT"):
        raise _Wrong("zero-extent" if token.type == "EXTENT" else "zero-tile", token)
    if token.type == "GRID_MODE" and int(token) >= MAX_GRID_MODES:
        raise _Wrong("grid-mode-too-large", token)
    return int(token)


def _sizes(run: LarkToken) -> Iterator[int]:
    """The numbers of a run such as `3,5,2`, which is one token because there may be thousands."""
    for size in re.finditer("[0-9]+", run):
        if _reaches(size.group(), MAX_NUMBER):
            raise _Wrong("number-too-large", run, shift=size.start())
        yield int(size.group())


def _grid(token: LarkToken) -> tuple[int, ...]:
    """The numbers of a grid such as `4x256`, which is one token, so that its mistakes are found here."""
    sizes = token.split("x")
    shift = 0  # where a size begins in the token
    for size in sizes:
        if "." in size and size.replace(".", "", 1).isdigit():
            raise _Wrong("decimal-number", token, shift=shift)
        if not size.isdigit():
            raise _Wrong("wrong-grid", token)
        if size == "0":
            raise _Wrong("zero-grid", token, shift=shift)
        if size[0] == "0":
            raise _Wrong("leading-zero", token, size.lstrip("0")[:20] or "0", shift)
        if _reaches(size, MAX_NUMBER):
            raise _Wrong("number-too-large", token, shift=shift)
        shift += len(size) + 1

    if len(sizes) > MAX_GRID_MODES:
        raise _Wrong("too-many-grid-modes", token)
    return tuple(map(int, sizes))


def _reaches(number: str, limit: int) -> bool:
    """Compare a number without leading zeros with a limit, as text: Python refuses int() of a very long text."""
    return len(number) > len(str(limit)) or int(number) >= limit


def _once(mistake: str, tokens: list[LarkToken]) -> None:
    """Refuse the first token whose text an earlier one has."""
    if len(set(tokens)) < len(tokens):
        raise _Wrong(mistake, next(token for i, token in enumerate(tokens) if token in tokens[:i]))


# --- names ------------------------------------------------------------------------------------------------------------


def _mode(token: LarkToken, numbers: dict[str, int], names: list[tuple[str, ...]]) -> int:
    """The number of the mode that an action names, by its name in the view or by its number."""
    if token in numbers:
        return numbers[token]
    if not token.isdigit():
        raise _Wrong("unknown-mode", token, _modes_to_write(token, names))
    if token[0] == "0" and token != "0":
        raise _Wrong("leading-zero", token, token.lstrip("0")[:20] or "0")
    if _reaches(token, len(names)):
        raise _Wrong("mode-out-of-range", token, _modes_to_write("", names))
    return int(token)


def _modes_to_write(name: str, modes: list[tuple[str, ...]]) -> str:
    """The hint for a mode that is not there, or whose name is one of several that a mode reads as one."""
    for number, names in enumerate(modes):
        if name in names:
            others = " and ".join(other for other in names if other != name)
            return f"write {number}, the number of the mode that reads {name} as one with {others}"

    if not modes:
        return "write no modes: this layout has none"

    *most, last = [names[0] if len(names) == 1 else str(number) for number, names in enumerate(modes)]
    if len(most) > 7 or (most and not any(modes)):
        return f"write a number from 0 to {len(most)}"
    return f"write {', '.join(most)} or {last}" if most else f"write {last}"


# --- rules ------------------------------------------------------------------------------------------------------------


@v_args(inline=True)
class _Nodes(Transformer[LarkToken, Any]):
    """A function for each rule of layout.lark and walk.lark; an optional part that is absent is None."""

    def transition(self, source: _Layout, arrow: LarkToken, target: _Layout) -> tuple[_Layout, _Layout]:
        left, right = source.tensor_order, target.tensor_order
        if left != right:
            raise _Wrong("order-mismatch", arrow, f"order {left} on the left, {right} on the right", len(arrow))
        return source, target

    def layout(self, read: _Layout, suffixes: tuple[Any, ...]) -> _Layout:
        for tokens, fields in suffixes:
            read.grid_modes.extend(tokens)
            read.fields.update(fields)
        _once("repeated-grid-mode", read.grid_modes)
        return read

    def brackets(
        self,
        view: tuple[nodes.ViewItem, ...] | None,
        default: nodes.Kind | None,
        modes: list[Any] | None,
        close: LarkToken,
    ) -> _Layout:
        grid_modes, entries = [], []
        default = default or nodes.CYCLIC
        for mode in modes or ():
            grid_modes += [token for token, _, _ in mode]
            entries.append(tuple([nodes.Entry(number, kind or default) for _, number, kind in mode]))
        _once("repeated-grid-mode", grid_modes)

        names: list[tuple[str, ...]] = nodes.modes_read(view) if view else [()] * len(entries)
        if len(names) != len(entries):
            # in a walk, a name `on` before the brackets that is one too many is meant to begin a grid
            grid = names[0] == ("on",) and len(names) == len(entries) + 1 > 1
            detail = f"{len(names)} modes, the brackets have {len(entries)}"
            raise _Wrong("view-mismatch", close, detail, in_walk="missing-grid" if grid else "")

        return _Layout({"modes": tuple(entries), "view": view}, names, grid_modes)

    def modes(self, *modes: Any) -> list[Any]:
        """The modes in brackets, one or one more: the rule calls itself, so that a list too long is refused early."""
        *before, (opening, *entries) = modes
        listed: list[Any] = before[0] if before else []
        if len(listed) == MAX_MODES:
            raise _Wrong("too-many-modes", opening)
        listed.append(entries)
        return listed

    def entry(self, grid_mode: LarkToken, kind: nodes.Kind | None) -> tuple[LarkToken, int, nodes.Kind | None]:
        return grid_mode, _number(grid_mode), kind

    def cyclic(self, tile: LarkToken | None = None, at: LarkToken | None = None) -> nodes.Kind:
        return nodes.Kind("cyclic", (_number(tile) if tile else 1,), _number(at) if at else 0)

    def block(self, *runs: LarkToken) -> nodes.Kind:
        return nodes.Kind("block", tuple([size for run in runs for size in _sizes(run)]))

    def partial(self, op: LarkToken | None, *grid_modes: LarkToken) -> tuple[tuple[LarkToken, ...], dict[str, Any]]:
        return grid_modes, {"op": op.value if op else "sum", "partial": tuple(map(_number, grid_modes))}

    def rooted(self, *roots: tuple[LarkToken, int, int]) -> tuple[tuple[LarkToken, ...], dict[str, Any]]:
        return tuple([token for token, _, _ in roots]), {"rooted": tuple([(g, at) for _, g, at in roots])}

    def root(self, grid_mode: LarkToken, at: LarkToken | None) -> tuple[LarkToken, int, int]:
        return grid_mode, _number(grid_mode), _number(at) if at else 0

    def view(self, *items: tuple[nodes.ViewItem, list[LarkToken]]) -> tuple[nodes.ViewItem, ...]:
        names = [name for _, written in items for name in written]
        _once("repeated-name", names)
        if len(names) > MAX_MODES:
            raise _Wrong("too-many-modes", names[MAX_MODES])
        return tuple([item for item, _ in items])

    def parts(self, *parts: Any) -> list[tuple[LarkToken, int | None]]:
        """The parts of a group, two or one more; as many as there may be names."""
        listed = parts[0] if isinstance(parts[0], list) else [parts[0]]
        if len(listed) == MAX_MODES:
            raise _Wrong("too-many-modes", parts[1][0])
        listed.append(parts[1])
        return cast("list[tuple[LarkToken, int | None]]", listed)

    def group(self, parts: list[tuple[LarkToken, int | None]]) -> tuple[nodes.ViewItem, list[LarkToken]]:
        names = [name for name, _ in parts]
        free = [name for name, size in parts if size is None]
        if len(free) == len(parts):
            return nodes.Fuse(tuple([name.value for name in names])), names
        if len(free) > 1:
            raise _Wrong("two-free-parts", free[1])
        return nodes.Tile(tuple([(name.value, size) for name, size in parts])), names

    def part(self, name: LarkToken, size: LarkToken | None) -> tuple[LarkToken, int | None]:
        return name, None if size is None else _number(size)

    def stage(self, grid: LarkToken | None, layout: _Layout, actions: tuple[Any, ...] | None) -> tuple[Any, ...]:
        names = layout.names
        sizes = None if grid is None else _grid(grid)
        numbers = {read[0]: number for number, read in enumerate(names) if len(read) == 1}

        resolved = []
        done: set[tuple[str, int]] = set()  # effects on modes
        for action, modes, extents in actions or ():
            chosen = []
            for i, mode in enumerate(modes):
                if i and mode in ACTIONS and mode not in numbers:  # as in `fft(0, twiddle`
                    raise _Wrong("missing-closing-parenthesis", mode)

                chosen.append(_mode(mode, numbers, names))
                use = _DONE[action], chosen[-1]
                if use in done:
                    raise _Wrong("repeated-mode", mode, use[0])
                done.add(use)

            resolved.append(nodes.ActionSyntax(action, tuple(chosen), tuple(map(_number, extents))))

        return layout, sizes, tuple(resolved)

    def listed(self, *items: Any) -> tuple[Any, ...]:
        return items

    mode = suffixes = actions = listed

    def cyclic_at(self, at: LarkToken) -> nodes.Kind:
        return self.cyclic(at=at)

    def rounded(self, rounding: LarkToken) -> nodes.Kind:
        return nodes.Kind(cast("nodes.Rounding", rounding.value))

    def name(self, name: LarkToken) -> tuple[nodes.ViewItem, list[LarkToken]]:
        return nodes.Name(name.value), [name]

    def along(self, action: LarkToken, *modes: LarkToken) -> _Action:
        return action.value, modes, ()

    def resize(self, action: LarkToken, *modes: LarkToken) -> _Action:
        return action.value, modes[::2], modes[1::2]

    twiddle = along


# --- reading ----------------------------------------------------------------------------------------------------------


_FILES = [*map(resources.files(__package__).joinpath, ("layout.lark", "walk.lark"))]
_TEXT = "\n".join(file.read_text("utf-8") for file in _FILES)
GRAMMAR = _TEXT.replace("/TRANSFORMS/", f"/{'|'.join(nodes.TRANSFORMS)}/")
LARK = Lark(GRAMMAR, start=["start", "stage"], parser="lalr", lexer="contextual", transformer=_Nodes())
# The names that naming.py has for terminals: a mark is its own name.
_TYPES = {t.name: t.pattern.value if isinstance(t.pattern, PatternStr) else t.name for t in LARK.terminals}


def build(text: str, layout: type[LayoutClass], transition: type[TransitionClass]) -> LayoutClass | TransitionClass:
    """Build a layout or a transition of these classes, or raise the first mistake of its text as NotationError."""
    read = _read(text, "start")

    if isinstance(read, _Layout):
        return layout(**read.fields)
    return transition(*[layout(**side.fields) for side in read])


@lru_cache(maxsize=1024)  # many walks have lines in common
def build_stage(text: str, layout: Callable[..., nodes.LayoutSyntax]) -> nodes.StageSyntax[Any]:
    """Build the node of a line of a walk, or raise its first mistake as NotationError."""
    read, grid, actions = _read(text, "stage")
    return nodes.StageSyntax(layout(**read.fields), grid, actions)


def _read(text: str, start: str) -> Any:
    """What the rule `start` builds of a text; tokens are fed one by one, so that a mistake knows those before it."""
    cursor, taken = LARK.parse_interactive(text, start), list[LarkToken]()
    try:
        return _fed(cursor, text, taken)

    except _Wrong as wrong:
        name = wrong.in_walk if start == "stage" else wrong.name
        position = text.index("on") + len("on") if name == "missing-grid" else wrong.position
        position = len(text) - len(text[position:].lstrip(nodes.SPACE))
        raise mistake(name, text, position, wrong.token, wrong.detail) from None

    except UnexpectedInput as error:
        if len(text) <= _SHORT:
            _refuse_marks(text, start)
        # `accepts` tries each token; what the error itself expects may lack some, since LALR merges look-aheads.
        expected = {_TYPES.get(name, name) for name in cast(Any, cursor).accepts()}
        tokens = [Token(_TYPES[token.type], token.value, token.start_pos or 0) for token in taken]
        raise misplaced(text, error.pos_in_stream or 0, tokens, expected, start == "stage") from None


def _fed(cursor: Any, text: str, taken: list[LarkToken]) -> Any:
    """What a parser builds of a text; the tokens are added to `taken`."""
    for token in cursor.iter_parse():
        taken.append(token)
    return cursor.feed_token(LarkToken("$END", "", len(text)))


def _refuse_marks(text: str, start: str) -> None:
    """Refuse a text that is right but for its marks: other brackets, wide characters, or None for a whole mode."""
    sides = []
    for side in text.split("->"):
        for candidate in remarked(side):
            with suppress(UnexpectedInput, _Wrong):
                _fed(LARK.parse_interactive(candidate, start), candidate, [])
                sides.append(candidate)
                break
        else:
            return

    right = "->".join(sides)
    if symbol := UNSPLIT.search(text):
        raise mistake("unsplit-mode", text, symbol.start(1), symbol[1], right.strip()) from None

    position = next((i for i, (mark, other) in enumerate(zip(text, right, strict=False)) if mark != other), None)
    if position is not None:
        token = text[position]
        name = "mixed-brackets" if token in "()[]{}" else "unknown-character"
        raise mistake(name, text, position, token, right.strip()) from None

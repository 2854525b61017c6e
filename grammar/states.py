"""The places in a text: what may stand there, and what each wrong thing that stands there is called.

The language nests to a fixed depth, so finitely many places describe it. A place is named after what was read last
(``entry``: a grid mode in a mode) or after what has just been opened (``mode``: after the ``(`` of a mode).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

ARROWS = ("->", "secondarrow", "wrongarrow")


class State(NamedTuple):
    """`then`: what may stand here, and the place after it. Anything else is a mistake: `wrong`, or else `default`."""

    then: Mapping[str, str]
    wrong: Mapping[str, str]
    default: str


def _kinds(value: str) -> dict[str, str]:
    return {"block": value, "cyclic": value}


def _words(value: str) -> dict[str, str]:
    return {"word": value, "mixed": value, **_kinds(value)}


_PARENTHESES = {"(": "nested-parentheses", "=": "unexpected-mark", "@": "unexpected-mark", ":": "unexpected-mark"}


def _inside(then: Mapping[str, str], wrong: Mapping[str, str]) -> State:
    """A place inside parentheses: whatever ends a larger thing says that the `)` is missing."""
    return State(then, {**_PARENTHESES, **wrong}, "missing-closing-parenthesis")


def _first(then: Mapping[str, str], word: str, empty: str) -> State:
    """Just after a `(` that something must follow."""
    return _inside(then, {",": "leading-comma", ")": empty, **_words(word)})


def _more(then: Mapping[str, str], word: str) -> State:
    """After the comma of a list in parentheses."""
    return _inside(then, {",": "doubled-comma", ")": "trailing-comma", **_words(word)})


def _with(state: State, **wrong: str) -> State:
    """The place with more names for what is wrong there."""
    return state._replace(wrong={**state.wrong, **wrong})


def _done(then: Mapping[str, str], **wrong: str) -> State:
    """After a member of a list in parentheses."""
    return _inside(then, {"number": "missing-comma", **_words("missing-comma"), **wrong})


# Words that mean something to a kind, between its parentheses only: elsewhere they may be names.
KIND_WORDS = ("ceil", "floor", "at")
_ROUNDED = dict.fromkeys(("ceil", "floor"), "size-of-rounded")
_NO_OTHER_KIND = dict.fromkeys(("ceil", "floor"), "rounded-cyclic")
_NO_COMMA = dict.fromkeys(KIND_WORDS, "missing-comma")
_NO_PARENTHESES = dict.fromkeys(("number", *KIND_WORDS), "bare-size")


def _sizes(of: str, end: str) -> dict[str, State]:
    """What stands in parentheses after ``block`` and after ``cyclic``; `of` tells that of a default kind apart."""
    sizes = _first(
        {"number": of + "size", **dict.fromkeys(("ceil", "floor"), of + "rounded")}, "letter-for-size", "missing-size"
    )
    more = _more({"number": of + "size"}, "letter-for-size")
    tile = _first({"number": of + "tile size", "at": of + "at"}, "letter-for-size", "missing-size")
    after_tile = _more({"at": of + "at"}, "unknown-option")
    return {
        of + "sizes": _with(sizes, at="at-of-block"),
        of + "size": _with(_done({",": of + "next size", ")": end}), **_NO_COMMA),
        of + "next size": _with(more, **_ROUNDED, at="at-of-block"),
        of + "rounded": _with(
            _inside({")": end}, {**_words("size-of-rounded"), ",": "size-of-rounded", "number": "size-of-rounded"}),
            **dict.fromkeys(KIND_WORDS, "size-of-rounded"),
        ),
        of + "tile": _with(tile, **_NO_OTHER_KIND),
        of + "tile size": _with(_done({",": of + "next of tile", ")": end}, number="too-many-sizes"), **_NO_COMMA),
        of + "next of tile": _with(after_tile, **_NO_OTHER_KIND, number="too-many-sizes"),
        of + "at": State({"=": of + "first"}, {}, "missing-equals"),
        of + "first": State(
            {"number": of + "at end"},
            {**_words("letter-for-coordinate"), **dict.fromkeys(KIND_WORDS, "letter-for-coordinate")},
            "missing-coordinate",
        ),
        of + "at end": _with(_done({")": end}, **{",": "text-after-at"}), **_NO_COMMA),
    }


def _outside(then: Mapping[str, str], *wrong: Mapping[str, str]) -> State:
    """A place before the brackets and outside parentheses."""
    merged = {")": "unmatched-closing", "]": "unmatched-closing"}
    for more in wrong:
        merged |= more
    return State(then, merged, "unexpected-mark")


_NO_LAYOUT = dict.fromkeys(("->", "end", "+", "|"), "missing-layout")
_NO_NAME = {"number": "number-for-name", "mixed": "number-for-name", **_kinds("reserved-name")}
_NO_KIND = dict.fromkeys(("word", "mixed", "number"), "unknown-kind")
_KIND_AS_NAME = dict.fromkeys((":", "word", "block", "cyclic"), "reserved-name")
_BARE_SIZE = {"number": "bare-size"}

# From the start to the opening bracket: the view, then the default kind.
_BEGIN = {"(": "group", "word": "view"}
_DEFAULT = {"block": "default block", "cyclic": "default cyclic", "[": "modes"}
_PART = {"word": "part", "=": "part size", ")": "view"}
_IN_GROUP = {**_NO_NAME, ",": "comma-in-view", ":": "missing-closing-parenthesis"}
_NO_SIZE = {**_words("letter-for-size"), ")": "missing-size", ":": "missing-size"}

BEFORE_BRACKETS: dict[str, State] = {
    "start": _outside({**_BEGIN, **_DEFAULT}, _NO_NAME, _NO_LAYOUT),
    "view": _outside(
        {**_BEGIN, ":": "layout"}, _NO_NAME, {",": "comma-in-view", "[": "missing-colon", "=": "size-outside-group"}
    ),
    "group": _inside({"word": "only part"}, {**_IN_GROUP, ")": "empty-group"}),
    "only part": _inside({"word": "part", "=": "only size"}, {**_IN_GROUP, ")": "single-name-group"}),
    "only size": _inside({"number": "only sized"}, _NO_SIZE),
    "only sized": _inside({"word": "part"}, {**_IN_GROUP, ")": "single-name-group"}),
    "part": _inside(_PART, _IN_GROUP),
    "part size": _inside({"number": "part sized"}, _NO_SIZE),
    "part sized": _inside({"word": "part", ")": "view"}, _IN_GROUP),
    "layout": _outside(_DEFAULT, _NO_KIND, _NO_LAYOUT),
    "default block": _outside({"(": "default sizes", "[": "modes"}, _KIND_AS_NAME, _BARE_SIZE),
    "default cyclic": _outside({"(": "default tile", "[": "modes"}, _KIND_AS_NAME, _BARE_SIZE),
    **_sizes("default ", end="bracket"),
    "bracket": _outside({"[": "modes"}, _KIND_AS_NAME),
}

# In the brackets. Whatever ends a layout says that the `]` is missing.
_BARE = {
    "number": "bare-grid-mode",
    "word": "letter-for-grid-mode",
    "mixed": "letter-for-grid-mode",
    **_kinds("misplaced-kind"),
    ")": "unmatched-closing",
    **dict.fromkeys(":=@", "unexpected-mark"),
    "[": "nested-brackets",
}
_ENTRY_ENDS = {",": "next entry", ")": "next mode"}
_NO_GRID_MODE = {":": "missing-grid-mode", **_kinds("missing-grid-mode")}
_LETTER = {"word": "letter-for-grid-mode", "mixed": "letter-for-grid-mode"}

IN_BRACKETS: dict[str, State] = {
    "modes": State({"(": "mode", "]": "after"}, {**_BARE, ",": "leading-comma"}, "missing-closing-bracket"),
    "next mode": State({"(": "mode", ",": "comma", "]": "after"}, _BARE, "missing-closing-bracket"),
    "comma": State({"(": "mode"}, {**_BARE, ",": "doubled-comma", "]": "trailing-comma"}, "missing-closing-bracket"),
    "mode": _inside({"number": "entry", ")": "next mode"}, {",": "leading-comma", **_LETTER, **_NO_GRID_MODE}),
    "entry": _done({":": "kind", **_ENTRY_ENDS}, **_kinds("kind-without-colon")),
    "next entry": _inside(
        {"number": "entry"}, {",": "doubled-comma", ")": "trailing-comma", **_LETTER, **_NO_GRID_MODE}
    ),
    "kind": State(
        {"block": "block", "cyclic": "cyclic"}, {"word": "unknown-kind", "mixed": "unknown-kind"}, "missing-kind"
    ),
    "block": _done({"(": "sizes", **_ENTRY_ENDS}, **_NO_PARENTHESES),
    "cyclic": _done({"(": "tile", **_ENTRY_ENDS}, **_NO_PARENTHESES),
    **_sizes("", end="entry end"),
    "entry end": _done(_ENTRY_ENDS),
}

# After the brackets: suffixes, the arrow, the end.
_SUFFIX_ENDS = {")": "after"}

AFTER_BRACKETS: dict[str, State] = {
    "after": State(
        {"+": "plus", "|": "bar", "->": "start", "end": "end"},
        {"]": "unmatched-closing", ")": "unmatched-closing"},
        "text-after-layout",
    ),
    "plus": State(
        {"(": "partial", "word": "op"}, {"number": "bare-suffix", **_kinds("unknown-operation")}, "empty-suffix"
    ),
    "op": State({"(": "partial"}, {"number": "bare-suffix"}, "empty-suffix"),
    "partial": _first({"number": "partial end"}, "letter-for-grid-mode", "empty-suffix"),
    "partial end": _done({",": "next partial", **_SUFFIX_ENDS}),
    "next partial": _more({"number": "partial end"}, "letter-for-grid-mode"),
    "bar": State({"(": "rooted"}, {"number": "bare-suffix"}, "empty-suffix"),
    "rooted": _first({"number": "rooted mode"}, "letter-for-grid-mode", "empty-suffix"),
    "rooted mode": _done({"@": "root", ",": "next rooted", **_SUFFIX_ENDS}),
    "root": _inside({"number": "rooted end"}, {**_words("letter-for-root"), **dict.fromkeys(",)@:=", "missing-root")}),
    "rooted end": _done({",": "next rooted", **_SUFFIX_ENDS}),
    "next rooted": _more({"number": "rooted mode"}, "letter-for-grid-mode"),
}

STATES: dict[str, State] = {**BEFORE_BRACKETS, **IN_BRACKETS, **AFTER_BRACKETS}

# In a walk: the actions of a stage, after its layout and a colon. The end is that of the line.
_ACTION = {"transform": "transform", "resize": "resize", "twiddle": "twiddle"}
_NO_ACTION = {"number": "unknown-action", **_words("unknown-action"), **dict.fromkeys(")]", "unmatched-closing")}
_ACTION_ENDS = {",": "next action", "end": "end"}
_ACTION_AFTER = {
    **dict.fromkeys(_ACTION, "missing-comma"),
    **dict.fromkeys(")]", "unmatched-closing"),
    **dict.fromkeys(ARROWS, "transition-in-walk"),
}
_NO_MODE = {**_words("unknown-mode"), **dict.fromkeys(_ACTION, "unknown-mode")}
_NO_EXTENT = dict.fromkeys(",)", "missing-extent")


def _modes(of: str, missing: str) -> dict[str, State]:
    """After the name of an action, and where a mode is due; `missing`: what it is called that there is none."""
    mode = dict.fromkeys(("number", "word"), f"mode of {of}")
    return {
        of: State({"(": f"modes of {of}"}, {"number": "bare-mode", **_words("bare-mode")}, missing),
        f"modes of {of}": _inside(mode, {",": "leading-comma", ")": missing, **_NO_MODE}),
        f"next mode of {of}": _more(mode, "unknown-mode"),
    }


ACTION_STATES: dict[str, State] = {
    "actions": State(_ACTION, {**_NO_ACTION, ",": "leading-comma"}, "missing-action"),
    "next action": State(_ACTION, {**_NO_ACTION, ",": "doubled-comma", "end": "trailing-comma"}, "missing-action"),
    **_modes("transform", missing="missing-modes"),
    "mode of transform": _done({",": "next mode of transform", ")": "action"}, **{"=": "extent-of-transform"}),
    **_modes("resize", missing="missing-extent"),
    "mode of resize": _inside(
        {"=": "extent"}, {"number": "missing-extent", **_words("missing-extent"), **_NO_EXTENT, ":": "colon-for-equals"}
    ),
    "extent": _inside({"number": "extent end"}, {**dict.fromkeys(_NO_MODE, "letter-for-size"), **_NO_EXTENT}),
    "extent end": _done({",": "next mode of resize", ")": "action"}),
    "action": State(_ACTION_ENDS, _ACTION_AFTER, "text-after-stage"),
    "twiddle": State(
        _ACTION_ENDS, {**_ACTION_AFTER, "(": "twiddle-modes", "number": "twiddle-modes"}, "text-after-stage"
    ),
}

# Where a mode of the layout was named.
MODE_STATES = frozenset({"mode of transform", "mode of resize"})

# Where a number is a grid mode; where it is a tile, hence at least 1.
GRID_MODE_STATES = frozenset({"mode", "next entry", "partial", "next partial", "rooted", "next rooted"})
TILE_STATES = frozenset({"only size", "part size", "tile", "default tile"})

# Where the words of a kind are such.
KIND_STATES = frozenset({"block", "cyclic", *_sizes("", ""), *_sizes("default ", "")})

# What is wrong wherever it stands.
NEVER: Mapping[str, str] = {
    "negative": "negative-number",
    "decimal": "decimal-number",
    "leadingzero": "leading-zero",
    "secondarrow": "two-arrows",
    "wrongarrow": "unknown-arrow",
    "junk": "unknown-character",
}

"""The names of all mistakes, each with the rule that it breaks and a hint: what to write.

`{token}` is the token under the caret; `{detail}` is a detail of the place, from build.py or naming.py.
"""

from __future__ import annotations

import re

from . import nodes
from .errors import NotationError, shown

KINDS_TO_WRITE = "cyclic, cyclic(4), cyclic(4,at=2), block, block(4), block(3,5,2), block(ceil) or block(floor)"
_LIMITS = {"LAST_GRID_MODE": nodes.MAX_GRID_MODES - 1, "KINDS_TO_WRITE": KINDS_TO_WRITE, **vars(nodes)}


def _table(block: str) -> dict[str, tuple[str, str]]:
    """Read lines ``name: rule / hint``; the hint may be on a line of its own."""
    block = re.sub("{([A-Z_]+)}", lambda limit: str(_LIMITS[limit[1]]), block.strip().replace(" /\n   ", " /"))
    table = {}
    for row in block.split("\n"):
        name, _, texts = row.partition(": ")
        rule, hint = texts.split(" / ")
        table[name] = rule, hint
    return table


MISTAKES = _table("""
empty-text: a layout is missing: the text is empty / write for example [(0),()], or [] for order 0
text-too-long: a text has at most {MAX_TEXT} characters / write a shorter layout
unknown-character: no text of a layout has the character {token} / write {detail}
unsplit-mode: a mode that is not split is written (), not {token} / write {detail}
mixed-brackets: square brackets stand around all modes together, and round ones in all other places / write {detail}
missing-layout: a layout is missing here / write for example [(0),()], or [] for order 0
text-after-layout: the layout is complete before {token} /
    write nothing after ] but a suffix such as +(1) or |(1), or an arrow -> and a second layout
two-arrows: a transition has one arrow / write A -> B, and a chain as several transitions
unknown-arrow: {token} is not an arrow / write A -> B
unexpected-transition: one layout is expected here, not a transition /
    write the layout alone; rote.parse_transition reads A -> B
missing-arrow: this is one layout, and transitions go from one layout to another /
    write A -> B; rote.parse reads one layout
order-mismatch: both sides of an arrow describe one tensor: {detail} / write as many modes on both sides
unexpected-mark: {token} cannot stand here / write {detail}
missing-opening-bracket: the modes of a layout must be in brackets / write [ before the first mode, as in [(0),()]
missing-closing-bracket: the brackets of the modes are not closed / write ] after the last mode
missing-closing-parenthesis: a parenthesis is not closed / write the missing ), at the latest before {token}
unmatched-closing: {token} closes nothing / remove it, or open it further left
nested-parentheses: parentheses do not nest here / write one pair only, as in (0,1)
nested-brackets: brackets do not nest / write each mode in parentheses, as in [(0),(1)]
leading-comma: a comma must stand between two things, not before the first / remove the comma
doubled-comma: two commas without anything between them / remove one comma{detail}
trailing-comma: a comma must stand between two things, not after the last / remove the comma
missing-comma: a comma is missing before {token} / write a comma between the two
negative-number: numbers are not negative / write a number from 0 on, in digits
decimal-number: numbers are whole / write digits only, without a point
leading-zero: a number does not begin with 0 / write {detail}; separate several numbers by commas
number-too-large: a number must be less than 2**63 / write a smaller number
zero-tile: a size must be at least 1 here; only a block may have size 0 / write 1 or more
bare-grid-mode: a mode's grid modes must be in parentheses / write (0) for one grid mode, () for none
letter-for-grid-mode: a grid mode is a number, not {token} / write its number, as in (0)
missing-grid-mode: a kind needs the grid mode that it is for / write it before the kind, as in (0:block)
grid-mode-too-large: grid modes are numbered 0 to {LAST_GRID_MODE}, {token} is none /
    write a number less than {MAX_GRID_MODES}
repeated-grid-mode: grid mode {token} is already used in this layout / write each grid mode once, or leave it out here
too-many-modes: a layout has at most {MAX_MODES} modes / write fewer modes
unknown-kind: {token} is not a kind / {detail}
missing-kind: a kind is missing after the colon / write {KINDS_TO_WRITE}
kind-without-colon: a colon must stand between a grid mode and its kind / write : before {token}
misplaced-kind: a kind stands inside a mode, after its grid mode /
    write (0:{token}), or {token}[...] for the kind of all entries
bare-size: the sizes of a kind must be in parentheses / write ({detail})
missing-size: a size is missing here / write a number
letter-for-size: a size is a number, not {token} / {detail}
too-many-sizes: cyclic has one size / write cyclic(4), or block(3,5,2) for the sizes part by part
size-of-rounded: block(ceil) and block(floor) size their parts themselves /
    write block(ceil) or block(floor) alone, or block(3,5,2) for the sizes part by part
rounded-cyclic: only blocks are rounded: cyclic deals tiles out in turn / write block({token}) or cyclic(4)
at-of-block: only the tiles of cyclic begin at another coordinate than 0 / write the block without at, or cyclic(4,at=2)
unknown-option: {token} is nothing that cyclic has / write at=2 for the coordinate of the first tile
missing-equals: an = is missing after at / write for example at=2 for the coordinate of the first tile
missing-coordinate: a coordinate is missing after at= / write that of the first tile, as in cyclic(4,at=2)
letter-for-coordinate: a coordinate is a number, not {token} / write that of the first tile, as in cyclic(4,at=2)
text-after-at: at is the last that cyclic says / write the size before it, as in cyclic(4,at=2)
unknown-operation: {token} is not an operation / {detail}
empty-suffix: a suffix needs at least one grid mode in parentheses / write for example +(1) or |(1)
bare-suffix: the grid modes of a suffix must be in parentheses / write ({token})
repeated-suffix: each suffix stands at most once in a layout / write {detail}
missing-root: a root is missing after the @ / write the coordinate that holds the data, as in |(1@2)
letter-for-root: a root is a number, not {token} / write the coordinate that holds the data, as in |(1@2)
missing-colon: a colon must stand between the view and the layout / write : before {token}
reserved-name: block and cyclic are kinds, not names / write another name; a default kind stands just before [
number-for-name: a name in a view begins with a letter or _, unlike {token} / write for example a or row_1
repeated-name: the name {token} is already used in this view / write each name once
comma-in-view: the names of a view are separated by spaces / write a space instead of the comma
empty-group: a group in a view needs names / write (a b) to read two modes as one, (r s=4) to split one
single-name-group: a group in a view has at least two names /
    write the name without parentheses, (a b) to read two modes as one, or (r s=4) to split one
size-outside-group: only the parts of a split mode have sizes / write them in a group, as in (r s=4)
two-free-parts: at most one part of a split mode may go without a size / write {token}= and a size
view-mismatch: the view has {detail} / write one mode for each name, group of names and part of a split mode
""")

# Mistakes in a walk. Mistakes in the layout of a stage are among those above.
WALK_MISTAKES = _table("""
empty-walk: a walk needs a stage: the text is empty / write for example [(0),()]: fft(1)
walk-too-long: a walk has at most {MAX_WALK} characters / write a shorter walk, or fewer comments
transition-in-walk: a stage is one layout: the moves of a walk are those between its lines /
    write the layout after the arrow on the next line, without the arrow
text-after-stage: the stage is complete before {token} /
    write a colon before the first action, a comma before each other one, the next layout on a new line
missing-grid: a grid is missing after on / write for example on 4x256
wrong-grid: a grid is written as numbers with x between them, without spaces / write for example on 4x256
zero-grid: each mode of a grid has at least one rank / write 1 or more
too-many-grid-modes: a grid has at most {MAX_GRID_MODES} modes / write fewer numbers
misplaced-grid: a grid stands before the layout of its stage / write on and the grid at the start of the line
missing-colon-before-action: a colon must stand between the layout and its actions / write : before {token}
missing-action: an action is missing here /
    write for example fft(0) or twiddle, or no colon and no comma if there is nothing more to do
unknown-action: {token} is not an action / {detail}
bare-mode: the modes of an action must be in parentheses / write ( before {token}, and ) at the end of the action
missing-modes: {detail} needs the modes that it transforms /
    write them in parentheses, as in {detail}(0) or {detail}(0, 1)
twiddle-modes: {detail} names no modes: it applies all factors that are due /
    write {detail} without parentheses and modes
missing-extent: {detail} needs the new extent of each mode /
    write = and a number after the mode, as in {detail}(0=96) or {detail}(0=96, 1=64)
extent-of-transform: {detail} names modes only: resize and resample give them new extents /
    write the mode alone, and its extent in an action of its own, as in resize(0=96)
colon-for-equals: a mode and its new extent are joined by =, not by a colon / write = instead of the colon
zero-extent: a mode must keep at least one point / write 1 or more
unknown-mode: {token} is not a mode of this stage / {detail}
mode-out-of-range: the layout has no mode {token} / {detail}
repeated-mode: mode {token} is already {detail} in this stage /
    write each mode once, and what is to be done after that on a new line
""")


def mistake(name: str, text: str, position: int, token: str = "", detail: str = "") -> NotationError:
    """Make the error for a mistake at a position of a text."""
    rule, hint = MISTAKES[name] if name in MISTAKES else WALK_MISTAKES[name]
    if len(token) > 24:
        token = token[:20] + "…"
    token = shown(token) or "the end"
    return NotationError(
        name, text, position, rule.format(token=token, detail=detail), hint.format(token=token, detail=detail)
    )

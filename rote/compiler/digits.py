"""Digits: a plan as six operations on equal blocks, which libraries of arrays on many devices have.

An index of the tensor is a number with digits, and a layout gives some digits to the rank number and the others to the
block. If both sides of a step cut all indices into the same digits, the step moves whole digits, and does so on every
rank alike:

    [(0)] -> block[(0)] of 16 on 4 ranks      index = a b c, with a=4 b=1 c=4: the rank is c before, and a after

A step is then a few of these operations, always in this order. Each is over some digits of the rank number:

    reduce    contributions are combined; digits of the block that leave it say which rank gets which part
    slice     a rank takes its part of what is replicated; no message
    exchange  an all-to-all: digits of the block leave it, and digits of the rank number of equal sizes come
    gather    digits of the rank number come into the block
    permute   digits of the rank number change places
    fill      what ranks have become contributions: along digits that come into the block, all but a rank's own part is
              neutral, and along others, all but the first replica is; no message

Digits are the same everywhere only if blocks are equal, so `digits` pads the tensor. Tiles that no padding makes fit
each other move by a table of places: as many elements for each pair of ranks as the largest message has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from math import lcm, prod
from operator import itemgetter
from string import ascii_lowercase
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import LayoutError, PlanError
from ..lattice import Lattice, Shape
from ..layout.distribution import Distribution
from ..layout.grid import divisors, row_major
from ..layout.kinds import Split
from ..layout.layout import Op
from .compile import compile
from .movement import RECEIVES, SENDS, Message, Movement, movement
from .overlaps import overlaps_below
from .plan import Plan, grids
from .step import Step

__all__ = ["DigitOperation", "Digits", "StepDigits", "Table", "digits", "longer_extents", "smallest_shapes"]
__all__ += ["step_digits", "units"]

Ints = npt.NDArray[np.int64]
State = int | Literal["*", "+"]
"""What a digit of the rank number is: a digit of the indices, or "*" for replicas, or "+" for contributions."""

OperationKind = Literal["reduce", "slice", "exchange", "gather", "permute", "fill"]
RankDigit = tuple[int, int]
"""The weight and the size of a digit of the rank number: `rank // weight % size`."""

_RANK = -1  # in the place of a mode of the block
_MOST = 1.5  # times the largest blocks: padding that needs more memory is not worth it
_TRIED = 64  # paddings, the smallest first


class _Place(NamedTuple):
    """Where a digit is on one side: in a mode of the block, or in the rank number; and its weight there."""

    mode: int
    weight: int


class _Digit(NamedTuple):
    """A digit of the indices: its size, and its places before and after."""

    size: int
    places: tuple[_Place, _Place]

    def split(self, at: int) -> tuple[_Digit, _Digit]:
        """The digit as two, the faster one of which has `at` values."""
        before, after = (_Place(mode, weight * at) for mode, weight in self.places)
        return _Digit(self.size // at, (before, after)), _Digit(at, self.places)


@dataclass(frozen=True, slots=True)
class DigitOperation:
    """An operation that all ranks do alike.

    Attributes:
        kind: "reduce", "slice", "exchange", "gather", "permute" or "fill".
        over: the digits of the rank number that it is over, slowest first, as (weight, size). Ranks that differ in
            others do not communicate.
        leaving: the digits that leave the block, one for each of `over`; or none.
        coming: the digits that come into the block, one for each of `over`; or none.
        to: for "permute", the weight that each digit of `over` gets.
    """

    kind: OperationKind
    over: tuple[RankDigit, ...]
    leaving: tuple[int, ...] = ()
    coming: tuple[int, ...] = ()
    to: tuple[int, ...] = ()

    def number(self, rank: Any) -> Any:
        """The number that the digits of `over` make up for a rank: its place among those that it communicates with.

        >>> DigitOperation("gather", ((4, 2), (1, 2))).number(5)
        3
        """
        number = 0
        for weight, size in self.over:
            number = number * size + rank // weight % size
        return number

    def receiver(self, rank: int) -> int:
        """The rank to which a rank sends its block in a "permute".

        >>> DigitOperation("permute", ((2, 2), (1, 2)), to=(1, 2)).receiver(2)
        1
        """
        values = [rank // weight % size for weight, size in self.over]
        moved = zip(values, self.over, self.to, strict=True)
        return rank + sum(value * (to - weight) for value, (weight, _), to in moved)


@dataclass(frozen=True, slots=True)
class StepDigits:
    """A step as operations on digits, which are numbered from 0, and named a, b, c, … in print.

    Attributes:
        sizes: the number of values of each digit.
        ranks: the digits of the rank number, slowest first, as (weight, size).
        before, after: the digits of each mode of the block, slowest first.
        ranks_before, ranks_after: what each of `ranks` is: a digit, "*" (replicas) or "+" (contributions).
        operations: the operations, in order.
        ops: the reductions by which contributions combine, before and after.
    """

    sizes: tuple[int, ...]
    ranks: tuple[RankDigit, ...]
    before: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]
    ranks_before: tuple[State, ...]
    ranks_after: tuple[State, ...]
    operations: tuple[DigitOperation, ...]
    ops: tuple[Op, Op]

    def __str__(self) -> str:
        sizes = " ".join(f"{_name(number)}={size}" for number, size in enumerate(self.sizes))
        before, after = _written(self.ranks_before, self.before), _written(self.ranks_after, self.after)
        operations = ", ".join(map(self._line, self.operations)) or "nothing moves"
        return f"{before}  ->  {after}" + f"   {sizes}" * bool(sizes) + f"\n{operations}"

    def _line(self, operation: DigitOperation) -> str:
        leaving, coming = ("".join(map(_name, some)) for some in (operation.leaving, operation.coming))
        into = f" into {leaving}" if operation.kind == "reduce" and leaving else ""
        what = f" {coming} for {leaving}" if leaving and coming else "" if into else f" {leaving or coming}".rstrip()
        over = ", ".join(f"{size} at {weight}" for weight, size in operation.over)
        return f"{operation.kind}{what}{into} (ranks {over})"


@dataclass(frozen=True, slots=True)
class Table:
    """A step whose tiles do not fit: each element has a place in a message for one pair of ranks.

    Blocks are in arrays of the largest block's shape, `Distribution.max_local_shape`; the rest of these is unused.

    Attributes:
        step: the step.
    """

    step: Step

    def places(self) -> tuple[tuple[Ints, ...], tuple[Ints, ...]]:
        """The places in blocks from which and to which elements go: arrays [rank, peer, element], one for each part.

        The modes of a part move together, and apart from others; the place of an element is the sum of those in the
        parts. So a message has one axis for each part, as long as the longest one needs. Beyond its end, places add up
        to 0 or more where an element is sent, which repeats some, and lead behind the block where it arrives. If
        several arrive at a place, they are contributions.

        >>> from rote.layout.layout import parse
        >>> ends = (parse(text).on(5, 2) for text in ("block[(0)]", "[(0)]"))
        >>> (sent,), (received,) = Table(Step("exchange", *ends, (0,))).places()
        >>> sent.tolist(), received.tolist()
        ([[[0, 2], [1, 0]], [[1, 0], [0, 0]]], [[[0, 1], [2, 3]], [[0, 3], [1, 3]]])
        """
        move, ranks = movement(self.step.before, self.step.after), range(self.step.before.grid.size)
        behind = prod(self.step.after.max_local_shape())

        tables = list[tuple[Ints, ...]]()
        for side, unused in ((SENDS, 0), (RECEIVES, behind)):
            messages = {(rank, message.peer): message for rank in ranks for message in move.messages(rank, side)}
            places = {pair: _places(move, message, side) for pair, message in messages.items()}
            of_parts = list[Ints]()
            for number in range(max(len(move.parts), 1)):
                longest = max([len(of_message[number]) for of_message in places.values()], default=0)
                table = np.full((len(ranks), len(ranks), longest), unused, np.int64)
                for pair, of_message in places.items():
                    table[pair][: len(of_message[number])] = of_message[number]
                of_parts.append(table)
            tables.append(tuple(of_parts))
        return tables[SENDS], tables[RECEIVES]

    def __str__(self) -> str:
        return f"{self.step.before.layout}  ->  {self.step.after.layout}\ntable"


@dataclass(frozen=True, slots=True)
class Digits:
    """A plan as operations on digits, which are the same on every rank. `Plan.digits` makes it.

    Attributes
    ----------
    shape : tuple[int, ...]
        The tensor's own shape.
    plan : Plan
        The plan that is carried out, which is for the padded tensor if there is padding.
    steps : tuple[StepDigits | Table, ...]
        For each step of this plan, its operations, or a table.

    Examples
    --------
    >>> import rote
    >>> digits = rote.compile("block[(0)] -> [()]", shape=7, grid=4).digits()
    >>> digits.padding, [operation.kind for operation in digits.steps[0].operations]
    ((1,), ['gather'])
    """

    shape: Shape
    plan: Plan
    steps: tuple[StepDigits | Table, ...]

    @property
    def padding(self) -> Shape:
        """The number of indices that padding adds at the end of each mode."""
        return tuple([padded - extent for padded, extent in zip(self.plan.source.shape, self.shape, strict=True)])

    def __str__(self) -> str:
        source, target = self.plan.source, self.plan.target
        lines = [f"{source.layout} -> {target.layout} of {self.shape} on grid {grids(source, target)}"]
        if any(self.padding):
            lines[0] += f", padded to {source.shape}"

        for number, (step, moved) in enumerate(zip(self.plan.steps, self.steps, strict=True), 1):
            first, second = str(moved).split("\n")
            lines += [f"  {number}. {step.kind}: {second}", f"     {first}"]
        return "\n".join(lines)


def digits(plan: Plan, pad: bool = True) -> Digits:
    """A plan as operations on digits, with the least padding that makes its digits fit, or with tables.

    Args:
        plan: the plan.
        pad: whether the tensor may be padded. If not, steps whose digits do not fit are tables.

    Raises:
        PlanError: a layout is rooted, so that some ranks hold nothing.
    """
    for dist in _states_of(plan):
        if dist.layout.rooted:
            raise PlanError(
                f"{dist.layout} is rooted, and operations on digits need blocks of one shape on all ranks\n"
                "write a layout without |, which replicates or splits"
            )

    shape = plan.source.shape
    for padded in _padded(plan) if pad else [plan]:
        steps = [step_digits(step.before, step.after) for step in padded.steps]
        if None not in steps:
            return Digits(shape, padded, tuple([step for step in steps if step is not None]))

    return Digits(shape, plan, tuple([step_digits(step.before, step.after) or Table(step) for step in plan.steps]))


# --- padding ---------------------------------------------------------------------------------------------------------


def _states_of(plan: Plan) -> list[Distribution]:
    return [plan.source, *[step.after for step in plan.steps]]


def _padded(plan: Plan) -> Iterator[Plan]:
    """The plan, then those of padded tensors whose digits may fit, the smallest first."""
    yield plan
    states = _states_of(plan)
    ends = states[0], states[-1]
    if any(dist.layout.view is not None for dist in states):
        return  # the extents are those of the view

    most = [_MOST * prod(dist.max_local_shape()) for dist in ends]
    for shape in _paddings(states):
        try:
            longer = [dist.layout.on(shape, dist.grid) for dist in states]
        except LayoutError:  # blocks are of given sizes
            continue

        # The same steps are tried first, because to compile takes longer.
        source, *_, target = longer
        large = any(prod(dist.max_local_shape()) > n for dist, n in zip((source, target), most, strict=True))
        if not large and None not in [step_digits(*pair) for pair in pairwise(longer)]:
            with suppress(PlanError):  # no plan is within the bound
                yield compile(source, target, plan.dtype, machine=plan.machine, max_bytes=_bound(plan, shape))


def _paddings(states: Sequence[Distribution]) -> list[Shape]:
    """Larger shapes in which the digits of some layouts may fit, the smallest first.

    An extent that is a multiple of the parts of all layouts together, times their tiles, always fits, if tiles fit each
    other. One that is a multiple for each layout alone is the least that can.
    """
    modes = zip(states[0].shape, *[dist.splits for dist in states], strict=True)
    return smallest_shapes([longer_extents(extent, splits) for extent, *splits in modes], _TRIED)


def smallest_shapes(extents: Iterable[Sequence[int]], number: int) -> list[Shape]:
    """The shapes of fewest elements that have one of some extents in each mode, the smallest first.

    >>> smallest_shapes([[4, 6], [5, 10]], 3)
    [(4, 5), (6, 5), (4, 10)]
    """
    shapes: list[Shape] = [()]
    for of_mode in extents:  # what is not among the smallest is not the beginning of one of them
        longer = [(*shape, extent) for shape in shapes for extent in of_mode]
        shapes = sorted(longer, key=lambda shape: (prod(shape), shape))[:number]
    return shapes


def longer_extents(extent: int, modes: Iterable[Sequence[Split]]) -> list[int]:
    """Extents of a mode, from its own on, with which its digits may fit if it is split in some ways.

    >>> from rote.layout.layout import parse
    >>> longer_extents(13, [parse(text).on(13, 4).splits[0] for text in ("block[(0)]", "[(0)]")])
    [16]
    """
    return sorted({-(-extent // unit) * unit for unit in units(modes)})


def units(modes: Iterable[Sequence[Split]]) -> list[int]:
    """Numbers, of one of which an extent is a multiple if digits fit that is split in some ways; the least first."""
    alone = list[int]()
    for splits in {*modes}:
        parts, tile = prod(split.parts for split in splits), lcm(*[split.kind.tile or 1 for split in splits])
        alone.append(parts * tile)

    least, together = lcm(*alone), prod(alone)
    return [least * k for k in divisors(together // least)]


def _bound(plan: Plan, shape: Shape) -> int | None:
    """The most bytes of a plan for a padded tensor: a bound grows with the tensor."""
    if "within" not in plan.optimality:
        return None
    return -(-plan.cost.peak_bytes * prod(shape) // prod(plan.source.shape))


# --- digits ----------------------------------------------------------------------------------------------------------


def step_digits(before: Distribution, after: Distribution) -> StepDigits | None:
    """One step as operations on digits; None if blocks differ between ranks, or if digits do not fit.

    >>> from rote.layout.layout import parse
    >>> print(step_digits(*(parse(text).on((8, 8), 4) for text in ("block[(0),()]", "block[(),(0)]"))))
    a | b, cd  ->  c | ab, d   a=4 b=2 c=4 d=2
    exchange a for c (ranks 4 at 1)
    """
    if before.layout.rooted or after.layout.rooted:
        return None
    common = _common(movement(before, after))
    if common is None:
        return None

    # Digits of the rank number begin and end where those of the indices do, and where grid modes do.
    bounds = {1, before.grid.size, *row_major(before.grid.shape), *row_major(after.grid.shape)}
    refined = _refined(common, bounds)
    if refined is None:
        return None
    common, weights = refined

    ranks = tuple([(low, high // low) for low, high in pairwise(weights)][::-1])
    start, goal = _states(before, common, 0, ranks), _states(after, common, 1, ranks)
    ops = before.layout.op, after.layout.op
    sizes = tuple([digit.size for digit in common])
    local = {number for number, digit in enumerate(common) if digit.places[0].mode != _RANK}
    return StepDigits(
        sizes=sizes,
        ranks=ranks,
        before=_blocks(before.order, common, 0),
        after=_blocks(after.order, common, 1),
        ranks_before=tuple(start.values()),
        ranks_after=tuple(goal.values()),
        operations=_Search(sizes, dict(ranks), dict(start), goal, local).operations(*ops),
        ops=ops,
    )


def _common(move: Movement) -> Sequence[_Digit] | None:
    """The digits that both sides of a movement have in common; None if some ranks have elements of other digits.

    They are those of the one lattice of all elements in which coordinates and local indices of both sides are linear.
    """
    strides = [row_major(dist.grid.shape) for dist in move.ends]
    blocks = [dist.max_local_shape() for dist in move.ends]
    common = list[_Digit]()

    for part in move.parts:
        lattices = overlaps_below(*part.factor.sides, 1)
        if not lattices:
            return None
        (lattice,) = lattices

        # The rows of a lattice are coordinates on both sides, then local indices on both sides.
        numbers = list[tuple[int, _Place, int]]()  # side, place, and how many values
        for side, modes in enumerate(part.over):
            grid = move.ends[side].grid.shape
            numbers += [(side, _Place(_RANK, strides[side][g]), grid[g]) for g in modes]
        for side, modes in enumerate((part.before, part.after)):
            numbers += [(side, _Place(mode, 1), blocks[side][mode]) for mode in modes]

        # Each number is made up of digits of its own if weights follow from sizes, up to its number of values.
        places: tuple[dict[int, _Place], dict[int, _Place]] = {}, {}
        for (side, place, values), (_, *steps) in zip(numbers, lattice.rows, strict=True):
            weight = 1
            for step, axis in sorted((step, axis) for axis, step in enumerate(steps) if step):
                if step != weight or axis in places[side]:
                    return None
                places[side][axis] = _Place(place.mode, place.weight * weight)
                weight *= lattice.shape[axis]
            if weight != values:
                return None

        for axis, size in enumerate(lattice.shape):
            common.append(_Digit(size, (places[0][axis], places[1][axis])))

    return common


def _refined(common: Sequence[_Digit], bounds: set[int]) -> tuple[Sequence[_Digit], list[int]] | None:
    """The digits, cut until none has a bound of the rank number inside, and all these bounds; None if they clash."""
    bounds = bounds.union(*[(at, at * size) for size, places in common for mode, at in places if mode == _RANK])
    weights = sorted(bounds)
    if any(high % low for low, high in pairwise(weights)):
        return None

    for number, digit in enumerate(common):
        for mode, weight in digit.places:
            inside = [bound // weight for bound in weights if weight < bound < weight * digit.size]
            if mode == _RANK and inside:
                return _refined([*common[:number], *digit.split(inside[0]), *common[number + 1 :]], bounds)
    return common, weights


def _states(dist: Distribution, common: Sequence[_Digit], side: int, ranks: Sequence[RankDigit]) -> dict[int, State]:
    """What each digit of the rank number is on one side, by its weight."""
    states = dict[int, State]()
    strides = row_major(dist.grid.shape)
    for weight, _ in ranks:
        partial = any(strides[g] <= weight < strides[g] * dist.grid.shape[g] for g in dist.partial)
        states[weight] = "+" if partial else "*"

    for number, digit in enumerate(common):
        mode, weight = digit.places[side]
        if mode == _RANK:
            states[weight] = number
    return states


def _blocks(order: int, common: Sequence[_Digit], side: int) -> tuple[tuple[int, ...], ...]:
    """The digits of each mode of the block on one side, slowest first."""
    modes = list[tuple[int, ...]]()
    for mode in range(order):
        inside = [number for number, digit in enumerate(common) if digit.places[side].mode == mode]
        modes.append(tuple(sorted(inside, key=lambda number: -common[number].places[side].weight)))
    return tuple(modes)


# --- operations ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Search:
    """The operations that lead from one state of the rank number's digits to another.

    A digit that leaves the block for a place in the rank number always finds one of equal size: what is there must go
    into the block, or to another such place, and so on, until a place has replicas.

    Attributes:
        sizes, ranks: the sizes of the digits of indices, and of those of the rank number, by weight.
        now, goal: what each digit of the rank number is now, and at the end, by weight.
        local: the digits in the block now.
        made: the operations so far.
    """

    sizes: Shape
    ranks: dict[int, int]
    now: dict[int, State]
    goal: dict[int, State]
    local: set[Any]
    made: list[DigitOperation] = field(default_factory=list)

    def operations(self, before: Op, after: Op) -> tuple[DigitOperation, ...]:
        """The operations, for contributions that combine by these reductions."""
        now, goal = self.now, self.goal
        stay = [w for w in now if now[w] == goal[w] == "+" and before == after]
        filled = [w for w in now if goal[w] == "+" and w not in stay]
        combined = [w for w in now if now[w] == "+" and w not in stay]

        self.add("reduce", [(w, goal[w], None) for w in combined if goal[w] in self.local])
        self.add("reduce", [(w, None, None) for w in combined if now[w] == "+"])
        self.add("slice", [(w, goal[w], None) for w in now if now[w] == "*" and goal[w] in self.local])

        # Digits are exchanged for those that take their places, as far as possible; then no permutation is needed.
        coming, leaving = [w for w in self._coming() if w not in filled], self.local & {*goal.values()}
        pairs = [(w, goal[w], now[w]) for w in coming if goal[w] in leaving]
        others = [w for w in coming if goal[w] not in leaving]
        self.add("exchange", [*pairs, *self._placed(leaving - {digit for _, digit, _ in pairs}, others)])
        self.add("gather", [(w, None, now[w]) for w in self._coming() if w not in filled])
        self.add("slice", self._placed(self.local & {*goal.values()}, [w for w in now if now[w] == "*"]))

        coming = self._coming()
        self._permute(goal | {w: now[w] if w in coming else "*" for w in filled})
        self.add("fill", [(w, None, now[w]) for w in filled if w in coming])
        self.add("fill", [(w, None, None) for w in filled if w not in coming])
        return tuple(self.made)

    def add(self, kind: OperationKind, changes: Iterable[tuple[int, Any, Any]]) -> None:
        """One operation, if there are changes: the weight of a digit of the rank number, what leaves, what comes."""
        ordered = sorted(changes, key=itemgetter(0), reverse=True)
        if not ordered:
            return

        leaving = tuple([digit for _, digit, _ in ordered if digit is not None])
        coming = tuple([digit for _, _, digit in ordered if digit not in (None, "*")])
        over = tuple([(weight, self.ranks[weight]) for weight, _, _ in ordered])
        self.made.append(DigitOperation(kind, over, leaving, coming))

        self.local = (self.local | {*coming}) - {*leaving}
        for weight, digit, _ in ordered:
            self.now[weight] = "*" if digit is None else digit

    def _coming(self) -> list[int]:
        """Where in the rank number digits are that must come into the block."""
        remain = {"*", "+", *self.goal.values()}
        return [w for w, state in self.now.items() if state not in remain]

    def _placed(self, leaving: set[Any], free: Sequence[int]) -> list[tuple[int, Any, Any]]:
        """Changes that bring digits from the block to free places of equal sizes in the rank number."""
        changes, left = list[tuple[int, Any, Any]](), sorted(leaving)
        for weight in free:
            fitting = [digit for digit in left if self.sizes[digit] == self.ranks[weight]]
            if fitting:
                changes.append((weight, fitting[0], self.now[weight]))
                left.remove(fitting[0])
        return changes

    def _permute(self, goal: dict[int, State]) -> None:
        """Bring all digits to their places in the rank number."""
        free = [w for w in self.now if self.now[w] != goal[w]]
        to = dict[int, int]()
        for weight in [*free]:
            at = next(w for w in free if self.now[w] == goal[weight] and self.ranks[w] == self.ranks[weight])
            free.remove(at)
            to[at] = weight

        if to:
            over = tuple([(weight, self.ranks[weight]) for weight in sorted(to, reverse=True)])
            self.made.append(DigitOperation("permute", over, to=tuple([to[weight] for weight, _ in over])))


# --- tables and print ------------------------------------------------------------------------------------------------


def _places(move: Movement, message: Message, side: int) -> list[Ints]:
    """For each part, the places of a message's elements in an array of the largest block's shape, in their order."""
    strides = row_major(move.ends[side].max_local_shape())
    places = list[Ints]()
    for part, group in zip(move.parts, message.groups, strict=True):
        weights = [strides[mode] for mode in (part.before, part.after)[side]]
        offsets = [Lattice(lattice.shape, (lattice.offset(weights, group.own),)) for lattice in group.lattices]
        places.append(np.concatenate([lattice.values(0) for lattice in offsets]).astype(np.int64, copy=False))
    return places or [np.zeros(1, np.int64)]  # the one element of a tensor without modes


def _name(digit: int) -> str:
    return ascii_lowercase[digit] if digit < len(ascii_lowercase) else f"({digit})"


def _written(ranks: Sequence[State], modes: Sequence[Sequence[int]]) -> str:
    """The digits of the rank number, and those of each mode of the block: `a | b, cd`."""
    number = "".join([state if isinstance(state, str) else _name(state) for state in ranks]) or "1"
    return f"{number} | {', '.join(''.join(map(_name, digits)) or '1' for digits in modes)}"

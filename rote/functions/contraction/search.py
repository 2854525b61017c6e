"""The search for the cheapest contraction: a tree of products, and an assignment for each product.

A subset of the operands can be multiplied to an intermediate tensor, which may lie in many ways. Dynamic programming
over the subsets keeps, for each of them, the layouts that cost least:

    {A}   {B}   {C}              as given
    {A,B}   {B,C}   {A,C}        from each pair, in every assignment: move both operands, multiply
    {A,B,C}                      from {A,B} and {C}, {A} and {B,C}, …; then the move of the result

An intermediate tensor may stay partial, and its contributions are multiplied and added later: so operands of several
products can lie in one assignment of all their letters.

Products are looked at in the order of lower bounds, which are computed only when they are needed. Each draft opens when
its bound is the least, and becomes drafts or products of higher bounds:

    pair of subsets         the seconds of both, and an equal part of the work for each rank
    assignment of a pair    the true work, and the bytes by which blocks of the operands grow
    product                 a lower bound of each move, by its volumes
    complete contraction    the plans of its moves

Each has a bound of the bytes received as well, and the same drafts open in the order of either. The search ends when
the least bound exceeds the best price. So for two operands no assignment is better than the one that is found. Of more,
an intermediate tensor is left out if it and the work that must follow take longer than a contraction that is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, partial
from itertools import chain, combinations, product
from math import inf, prod
from typing import Any

import numpy as np

from ...compiler.best_first import Draft, best_first
from ...compiler.cost import at_least, at_least_in_two, steps_cost
from ...compiler.movement import movement
from ...compiler.overlaps import TooManyPiecesError
from ...compiler.search import Route
from ...compiler.search import Search as Moves
from ...compiler.volumes import block_sizes, largest_block
from ...grammar.nodes import Entry, Kind
from ...layout.distribution import Distribution
from ...layout.kinds import local_extents
from ...layout.layout import Layout
from ...machines.machine import Machine
from .assignment import Assignment, all_assignments, distinct_assignments, points, refined, summed_modes
from .diagonals import diagonal_in, distinct, plain_in, repeats
from .subscripts import Subscripts, spanning
from .tree import Node, Request, UnplannedMove, unplanned

__all__ = ["Search", "flop_seconds", "flops_of"]

_LAYOUTS = 16  # of an intermediate tensor that are kept
_ALL_SPLITS = 5  # the most operands for which outer products are tried where others are possible
_EXACT = 8  # the most operands for which all trees are tried

Modes = tuple[tuple[Entry, ...], ...]


class Search:
    """The search for one request.

    Args:
        condition: only contractions with a product of which this is true are ranked; None for all.

    Attributes:
        original: the request, in which a letter may name several modes of an operand.
        request: the same for the diagonals of the operands.
        extents: per letter, its extent.
        dtype: of the products.
    """

    def __init__(self, request: Request, condition: Callable[[Node], bool] | None = None) -> None:
        self.original: Request = request
        self.request: Request = _of_diagonals(request)
        self._condition = condition
        self.extents: dict[str, int] = self.request.subscripts.extents(self.request.shapes)
        self.dtype: np.dtype[Any] = np.result_type(*self.request.dtypes)

        self._bounds: dict[_Key, float] = {}
        self._floors: dict[_Key, float] = {}
        self._words: dict[tuple[Distribution, Distribution], float] = {}
        self._routes: dict[_Key, Route] = {}
        self._dists: dict[tuple[tuple[int, ...], Modes, tuple[int, ...]], Distribution] = {}
        self._finals: dict[Distribution, Distribution] = {}
        self._kinds = self._kinds_of_ends()
        self._assignments: dict[str, list[tuple[Assignment, float]]] = {}
        self._last: list[Draft] = []

    def within(self, most: int) -> Search:
        """The search for contractions of which no rank holds more than some bytes; both share the prices of moves."""
        other = copy(self)
        other.original = self.original._replace(max_bytes=most)
        other.request = self.request._replace(max_bytes=most)
        return other

    def begin(self, most: float = inf) -> None:
        """Find the intermediate tensors, without those of which contractions take at least `most` seconds."""
        self._last = self._last_products(most)

    def fastest(self) -> Iterator[tuple[float, Node]]:
        """Complete contractions with lower bounds of their seconds, the fastest first."""
        return ((bound, node) for bound, node in best_first(self._last, Node) if self.satisfies(node))

    def sparest(self, may_be: Callable[[float, float], bool]) -> Iterator[tuple[float, Node]]:
        """Complete contractions with lower bounds of the bytes received, those that receive least first.

        Args:
            may_be: tells from lower bounds of seconds and bytes whether a contraction may be the best.
        """
        drafts = best_first(_by_bytes(self._last, may_be), Node)
        return ((received, node) for received, node in drafts if self.satisfies(node))

    def satisfies(self, node: Node) -> bool:
        """Whether a contraction has a product of which the condition is true."""
        if self._condition is None or not node.factors:
            return self._condition is None
        return self._condition(node) or any(map(self.satisfies, node.factors))

    def final(self, dist: Distribution | None) -> Distribution:
        """The distribution in which a result is handed out that the last product leaves in another one."""
        if self.request.target is not None:
            return self.request.target
        assert dist is not None  # it is the distribution of a product
        if dist not in self._finals:
            self._finals[dist] = refined(dist) if self.request.cheapest and dist.partial else self._as_operands(dist)
        return self._finals[dist]

    def _as_operands(self, dist: Distribution) -> Distribution:
        """The same without contributions, and with the entries over one coordinate that operands have."""
        terms, result = self.request.subscripts
        used = {entry.grid_mode for entry in chain(*dist.layout.modes)}
        modes = [*dist.layout.modes]
        for term, operand in zip(terms, self.request.layouts, strict=True):
            if operand is None or operand.layout.view is not None or operand.grid != dist.grid:
                continue
            for letter, n, entries in zip(term, operand.shape, operand.layout.modes, strict=True):
                mode = result.find(letter)

                # Assignments leave out grid modes of one coordinate, which split nothing; text names them.
                idle = {entry.grid_mode for entry in entries if operand.grid.shape[entry.grid_mode] == 1}
                others = tuple([entry for entry in entries if entry.grid_mode not in idle])
                if mode >= 0 and n == dist.shape[mode] and others == modes[mode] and not used & idle:
                    modes[mode] = entries
                    used |= idle
        return replace(dist, layout=replace(dist.layout, modes=tuple(modes), partial=()))

    # --- subsets of the operands -------------------------------------------------------------------------------------

    def _last_products(self, most: float) -> list[Draft]:
        """Drafts of the last products of all contractions that may take less than `most` seconds."""
        terms, result = self.request.subscripts
        number, order = len(terms), self.request.subscripts.letters
        sides = {1 << n: _Side(self, self._leaves(n)) for n in range(number)}
        if number == 1 or self.request.joint:
            return [self._draft([*sides.values()], result, True)]

        drafts: list[Draft] = []
        splits = [*self._splits(number)]
        following = {} if most == inf else self._following(splits)
        for subset, pairs in splits:  # smaller subsets come first, and all operands last
            others = result + "".join([term for n, term in enumerate(terms) if not subset >> n & 1])
            last = subset == (1 << number) - 1

            drafts = []
            for first, second in pairs:
                if first not in sides or second not in sides:  # no product of it was found
                    continue
                pair = [sides[first], sides[second]]
                letters = "".join([side.letters for side in pair])
                term = result if last else "".join([x for x in order if x in letters and x in others])
                drafts.append(self._draft(pair, term, last))

            nodes = [] if last else self._cheapest(drafts, _LAYOUTS, most - following.get(subset, 0.0))
            if nodes:
                sides[subset] = _Side(self, nodes)
        return drafts

    def _following(self, splits: Iterable[tuple[int, list[tuple[int, int]]]]) -> dict[int, float]:
        """Per subset, the least seconds of the other products of a contraction, if all ranks do equal parts of them."""
        terms, result = self.request.subscripts
        spans = [spanning(term, shape, self.extents) for term, shape in zip(terms, self.request.shapes, strict=True)]

        def letters(subset: int) -> set[str]:
            inside = "".join([span for n, span in enumerate(spans) if subset >> n & 1])
            outside = "".join([term for n, term in enumerate(terms) if not subset >> n & 1])
            return {*inside} & {*outside, *result}

        # From the operands to all of them, the least seconds of each subset; then back, the least of what follows it.
        seconds, products = {1 << n: 0.0 for n in range(len(terms))}, list[tuple[int, int, int, float]]()
        for subset, pairs in splits:
            for first, second in pairs:
                if first in seconds and second in seconds:
                    points = prod([self.extents[letter] for letter in letters(first) | letters(second)])
                    work = self.seconds_of(-(-points // self.request.grid.size))
                    products.append((subset, first, second, work))
                    seconds[subset] = min(seconds.get(subset, inf), work + seconds[first] + seconds[second])

        following = {(1 << len(terms)) - 1: 0.0}
        for subset, first, second, work in reversed(products):
            for one, other in ((first, second), (second, first)):
                after = following.get(subset, inf) + work + seconds[other]
                following[one] = min(following.get(one, inf), after)
        return following

    def _leaves(self, number: int) -> list[Node]:
        """An operand, or its sums over the letters that it alone has, which are smaller."""
        request = self.request
        terms, result = request.subscripts
        leaf = Node(terms[number], request.layouts[number], request.dtypes[number], operand=number)
        others = result + "".join([term for n, term in enumerate(terms) if n != number])
        shape = request.shapes[number]

        # So many elements become one, of the dtype of the products, which may be longer.
        summed = prod([n for letter, n in zip(leaf.term, shape, strict=True) if letter not in others])
        if len(terms) == 1 or request.joint or summed * leaf.dtype.itemsize <= self.dtype.itemsize:
            return [leaf]

        term = "".join([letter for letter in spanning(leaf.term, shape, self.extents) if letter in others])
        return self._cheapest([self._draft([_Side(self, [leaf])], term, False)]) or [leaf]

    def _splits(self, number: int) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """The subsets of the operands that are made, smaller ones first, each with the pairs that it is made of.

        Subsets are integers with a bit for each operand:

            A, B, C = 1, 2, 4       {A,B,C} = 7, made of {A} {B,C} = 1 6, {A,B} {C} = 3 4, {A,C} {B} = 5 2

        All trees of up to five operands are tried, and of up to eight those in which tensors without a common letter
        are multiplied last. For with the tensor T that is later multiplied with the product of two such tensors A and
        B, A T and (A T) B take together at most twice the products of (A B) T: all three have some of the letters of T,
        A and B. More operands are multiplied on NumPy's greedy path.
        """
        path = self.request.path
        if path is None:
            path = (tuple(range(number)),) if number <= _EXACT else _greedy_path(self.request)

        tensors = [1 << n for n in range(number)]  # that are left before each product of the path
        for numbers in path:
            members = [tensors[n] for n in numbers]
            tensors = [tensor for n, tensor in enumerate(tensors) if n not in numbers] + [sum(members)]

            for size in range(2, len(members) + 1):
                for subset in combinations(members, size):
                    whole = sum(subset)
                    # Of many operands, no outer product while a letter connects the subset to another operand.
                    if number > _ALL_SPLITS and self._share(whole, sum(members) - whole) and not self._joined(subset):
                        continue
                    yield whole, [(sum(half), whole - sum(half)) for half in _halves(subset)]

    def _joined(self, subsets: Sequence[int]) -> bool:
        """Whether common letters connect all tensors."""
        first, *rest = subsets
        while near := [subset for subset in rest if self._share(first, subset)]:
            first, rest = first + sum(near), [subset for subset in rest if subset not in near]
        return not rest

    def _share(self, *subsets: int) -> bool:
        """Whether operands of two subsets have a letter in common."""
        terms = self.request.subscripts.terms
        first, second = [{*"".join([term for n, term in enumerate(terms) if bits >> n & 1])} for bits in subsets]
        return bool(first & second)

    def _cheapest(self, drafts: Iterable[Draft], number: float = inf, below: float = inf) -> list[Node]:
        """The cheapest products of distinct layouts; of those that satisfy the condition as many again.

        Args:
            number: how many of each.
            below: the seconds from which on they take too long.
        """
        products: dict[bool, dict[Distribution | None, Node]] = {True: {}, False: {}}
        for bound, node in best_first(drafts, Node):
            if bound >= below:
                break
            by_layout = products[self.satisfies(node)]
            if len(by_layout) < number:
                by_layout.setdefault(node.dist, node)
            if len(products[True]) >= number:
                break
        return sorted([*products[True].values(), *products[False].values()], key=lambda node: node.seconds)

    # --- products ----------------------------------------------------------------------------------------------------

    def _draft(self, sides: Sequence[_Side], term: str, last: bool) -> Draft:
        """The products of some tensors, in all assignments, each tensor from the layout from which it is cheapest."""
        request, letters = self.request, distinct("".join([side.letters for side in sides]))
        shape = tuple([self.extents[letter] for letter in term])
        mean = -(-prod([self.extents[letter] for letter in letters]) // request.grid.size)

        # The draft opens to its assignments, and each of these to its products, with bounds that never fall.
        @cache  # it opens twice: for the least seconds, and for the fewest bytes
        def assigned() -> list[Draft]:
            drafts = list[Draft]()
            for assignment, work in self._worked(letters):
                entries = dict(assignment)
                modes = [side.modes(entries) for side in sides]
                used = frozenset([entry.grid_mode for entry in chain(*entries.values())])
                least = [side.least(entry, used) for side, entry in zip(sides, modes, strict=True)]
                if last and (request.target is None or not request.target.partial):
                    least.append(self.adding(summed_modes(assignment, term), prod(shape), self.dtype))
                seconds, received = map(sum, zip(*least, strict=True))
                drafts.append((work + seconds, (received,), partial(products, assignment, work, modes)))
            return drafts

        def products(assignment: Assignment, work: float, modes: Sequence[Modes]) -> Iterator[Draft]:
            entries, summed = dict(assignment), summed_modes(assignment, term)
            result = tuple([entries.get(letter, ()) for letter in term])
            for partials in _contributions(sides, {entry.grid_mode for entry in chain(*entries.values())}):
                ends = [side.nearest(entry, over) for side, entry, over in zip(sides, modes, partials, strict=True)]
                prices, factors, moved = zip(*ends, strict=True)

                dist = self.dist(shape, result, (*summed, *chain(*partials)))
                seconds = work + sum(prices)
                received = sum([self._arrived(factor, to) for factor, to in zip(factors, moved, strict=True)])
                node = Node(term, dist, self.dtype, seconds, received, -1, factors, moved, assignment)
                if last:
                    seconds, received = seconds + self._ending(node), self._arrived(node, self.final(dist))
                yield seconds, (received,), node

        seconds = self.seconds_of(mean) + sum([side.nodes[0].seconds for side in sides])
        received = sum([min([node.received for node in side.nodes]) for side in sides])
        return seconds, (received,), assigned

    def _arrived(self, node: Node, to: Distribution) -> float:
        """A lower bound on the bytes that the busiest rank receives in each move, until a tensor lies so."""
        ends = (refined(to) if node.dist is None else node.dist, to)
        if ends not in self._words:
            self._words[ends] = max(movement(*ends).lower_bound, _sent(*ends))
        return node.received + node.dtype.itemsize * self._words[ends]

    def adding(self, summed: Sequence[int], elements: int, dtype: np.dtype[Any]) -> tuple[float, float]:
        """Lower bounds on seconds and bytes in which an average rank adds contributions over grid modes."""
        # Of t contributions to an element, t - 1 are received and added, on whichever ranks.
        machine, grid = self.request.machine, self.request.grid
        received = dtype.itemsize * (prod([grid.shape[g] for g in summed]) - 1) * elements / grid.size
        if not received:
            return 0.0, 0.0
        times = machine.along(grid)
        return machine.step_time + received * (min(times.byte_time) + min(times.reduce_time)), received

    def _worked(self, letters: str) -> list[tuple[Assignment, float]]:
        """The assignments of some letters, with the seconds of the work of the busiest rank."""
        if letters not in self._assignments:
            request, grid = self.request, self.request.grid
            split = "".join([letter for letter in letters if letter not in request.whole])
            if len(request.shapes) <= 2 and request.target is None and not any(request.layouts):
                ways = distinct_assignments(split, grid)
            else:
                ways = all_assignments(split, grid, self._kinds, self.extents)

            works = [self.seconds_of(points(assignment, self.extents, letters, grid)) for assignment in ways]
            self._assignments[letters] = [*zip(ways, works, strict=True)]
        return self._assignments[letters]

    # --- prices ------------------------------------------------------------------------------------------------------

    def dist(self, shape: tuple[int, ...], modes: Modes, contributions: tuple[int, ...] = ()) -> Distribution:
        """The distribution of a tensor on the grid of the products."""
        key = (shape, modes, contributions)
        if key not in self._dists:
            self._dists[key] = Distribution(Layout(modes, partial=contributions), shape, self.request.grid)
        return self._dists[key]

    def bound(self, source: Distribution | None, target: Distribution, itemsize: int) -> float:
        """A lower bound on the seconds of a move; a free operand lies where the move is an allgather."""
        key = (refined(target) if source is None else source, target, itemsize)
        if key not in self._bounds:
            machine = self.request.machine
            try:
                self._bounds[key] = at_least(movement(*key[:2]), itemsize, machine)
                if target.partial:  # of what is not added up, `at_least` counts no bytes
                    byte_time = min(machine.at_best_along(key[0].grid, target.grid).byte_time)
                    self._bounds[key] += byte_time * itemsize * _sent(*key[:2])
            except TooManyPiecesError:  # no plan is found for such a move either
                self._bounds[key] = inf
        return self._bounds[key]

    def _ending(self, node: Node) -> float:
        """A lower bound on the seconds in which a result moves to where it is handed out, which no node counts."""
        return self.bound(node.dist, self.final(node.dist), node.dtype.itemsize)

    def route(self, key: _Key) -> Route:
        """The steps of the plan of a move."""
        self._price(key, inf)
        return self._routes[key]

    def _price(self, key: _Key, most: float = 0.0) -> float:
        """The seconds of the plan of a move, or a lower bound; if most is given, one of at least so many seconds."""
        if key not in self._floors:  # one step is cheap to price, and mostly beats any two
            direct = Moves(*key, self.request.machine).direct()
            two = at_least_in_two(movement(*key[:2]), key[2], self.request.machine)
            self._floors[key] = min(direct.seconds, two)
            if direct.seconds <= two or not direct.steps:
                self._floors[key], self._routes[key] = direct.seconds, direct

        if key not in self._routes and self._floors[key] < most:
            route = Moves(*key, self.request.machine).cheapest(most)
            self._floors[key] = min(route.seconds, most)
            if route.seconds < most:  # else the search stopped at `most`
                self._routes[key] = route
        return self._floors[key]

    def received(self, node: Node) -> tuple[int, int]:
        """The bytes that the busiest rank receives in all moves of a priced contraction, and the most that it holds.

        Tensors are counted as if they were held to the end.
        """
        received, live, peak = 0, 0, 0
        for times, key in self._moves(node):
            cost = steps_cost(*key[:2], self.route(key).steps, key[2], self.request.machine)
            received += times * cost.bytes
            peak = max(peak, live + cost.peak_bytes)
            live += largest_block(key[1]) * key[2]
        return received, peak

    def timed(self, tree: Node, cut: Node) -> Node:
        """A tree that is another one with a product cut into panels, with a lower bound on its seconds."""

        def moving(root: Node) -> float:
            return sum([times * self.bound(*key) for times, key in self._moves(root)]) - self._ending(root)

        return replace(cut, seconds=tree.seconds - moving(tree) + moving(cut))

    def floor(self, node: Node) -> float:
        """A lower bound on the seconds of a complete contraction, for which nothing is planned that takes long."""
        total = node.seconds + self._ending(node)
        return total + sum([times * (self._price(key) - self._bounds[key]) for times, key in self._moves(node)])

    def priced(self, node: Node, most: float = inf) -> float:
        """The seconds of a complete contraction by the plans of its moves, or infinity if they are `most` or more."""
        total = self.floor(node)
        for times, key in self._moves(node):
            if total >= most:
                return inf
            floor = self._price(key)
            total += times * (self._price(key, floor + (most - total) / times) - floor)
        return total if total < most else inf

    def _moves(self, node: Node) -> list[tuple[int, _Key]]:
        """The moves of a complete contraction, each with the number of times that it is made."""
        stages = [stage for _, stage in unplanned(self.request, node, self.final(node.dist))]  # but diagonals
        moves = chain(*[(stage,) if isinstance(stage, UnplannedMove) else stage.in_panels for stage in stages])
        counts = [(move.dtype.itemsize, Counter(move.ends())) for move in moves]  # most panels move alike
        return [(times, (*ends, itemsize)) for itemsize, count in counts for ends, times in count.items()]

    def seconds_of(self, products: int) -> float:
        """The seconds in which a rank multiplies and adds."""
        return flop_seconds(flops_of(products, self.dtype), self.dtype, self.request.machine)

    def _shape(self, node: Node) -> tuple[int, ...]:
        """The shape of a tensor, in which modes that broadcast have one element."""
        if node.operand >= 0:
            return self.request.shapes[node.operand]
        return tuple([self.extents[letter] for letter in node.term])

    def _kinds_of_ends(self) -> dict[tuple[str, int], list[Kind]]:
        """Per letter and grid mode, the kinds of the entries that operands and result have.

        Where a grid mode has a root, all indices of a letter may stay there: other ranks are idle.
        """
        terms, result = self.request.subscripts
        kinds: dict[tuple[str, int], list[Kind]] = {}
        for term, dist in zip((*terms, result), (*self.request.layouts, self.request.target), strict=True):
            if dist is None or dist.grid != self.request.grid:
                continue

            for digits, splits in zip(dist.digits, dist.splits, strict=True):
                if len(digits) == 1 and digits[0].size == dist.shape[digits[0].mode]:  # it is a mode of the tensor
                    for split in splits:
                        kinds.setdefault((term[digits[0].mode], split.grid_mode), []).append(split.kind)

            for g, root in dist.layout.rooted:
                for letter, n in zip(term, dist.shape, strict=True):
                    sizes = tuple([n if coordinate == root else 0 for coordinate in range(dist.grid.shape[g])])
                    kinds.setdefault((letter, g), []).append(Kind("block", sizes))
        return kinds


class _Side:
    """A tensor that a product takes: an operand or an intermediate tensor, in the layouts in which it can be made.

    Attributes:
        nodes: how it can be made, the cheapest first.
        term: its letters.
        letters: those that do not broadcast, which are the ones that an intermediate product of it may have.
        contributions: the grid modes over which it may stay partial in a product.
    """

    def __init__(self, search: Search, nodes: Sequence[Node]) -> None:
        self._search, self.nodes, self.term = search, nodes, nodes[0].term
        self._shape = search._shape(nodes[0])
        self.letters = spanning(self.term, self._shape, search.extents)
        self.contributions = sorted({(), *[node.dist.partial for node in nodes if node.dist and self._stays(node)]})
        self._partial = frozenset(chain(*[node.dist.partial for node in nodes if node.dist]))
        self._least: dict[tuple[Modes, frozenset[int]], tuple[float, float]] = {}
        self._nearest: dict[tuple[Modes, tuple[int, ...]], tuple[float, Node, Distribution]] = {}

    def _stays(self, node: Node) -> bool:
        """Whether contributions to a tensor may be multiplied before they are added.

        The sum of the products of contributions with a factor that all ranks hold is the product of their sum. But if a
        rank has no indices of a letter that was summed, its contribution is 0, and 0 times infinity is not a number. So
        are most contributions to a diagonal.
        """
        dist, search = node.dist, self._search
        terms = search.original.subscripts.terms
        if node.operand >= 0 and len(terms) > 1 and repeats(terms[node.operand]):
            return False
        if dist is None or not dist.partial or dist.grid != search.request.grid or node.dtype != search.dtype:
            return False

        for factor, to in zip(node.factors, node.moved, strict=True):
            for letter, splits, n in zip(factor.term, to.splits, to.shape, strict=True):
                if letter not in node.term and not min(local_extents(splits, n)):
                    return False
        return dist.layout.op == "sum" and dist.layout.view is None

    def modes(self, entries: dict[str, tuple[Entry, ...]]) -> Modes:
        """The entries of its modes in an assignment; a mode of one element that broadcasts is not split."""
        return tuple([entries.get(letter, ()) if letter in self.letters else () for letter in self.term])

    def least(self, modes: Modes, used: frozenset[int]) -> tuple[float, float]:
        """Lower bounds on the seconds and the bytes received until the tensor lies so, by the sizes of blocks alone.

        Args:
            used: the grid modes that split a letter of the product, over which no tensor stays partial.
        """
        key = (modes, used & self._partial)
        if key not in self._least:
            grid = self._search.request.grid
            parts = [prod([grid.shape[entry.grid_mode] for entry in entries]) for entries in modes]
            largest = prod([-(-n // number) for n, number in zip(self._shape, parts, strict=True)])

            # A free operand begins as one copy over all ranks: there the average rank bounds the busiest one.
            mean = prod(self._shape) / prod(parts)
            bounds = []
            for node in self.nodes:
                if node.dist is None:
                    seconds, received = self._growing(node, mean * prod(parts) / grid.size, mean)
                else:
                    seconds, received = self._growing(node, largest_block(node.dist), largest)
                    if node.dist.grid == grid and used & {*node.dist.partial}:
                        added = self._search.adding(node.dist.partial, prod(self._shape), node.dtype)
                        seconds, received = max(seconds, added[0]), max(received, added[1])
                bounds.append((node.seconds + seconds, node.received + received))
            self._least[key] = min([seconds for seconds, _ in bounds]), min([received for _, received in bounds])
        return self._least[key]

    def _growing(self, node: Node, before: float, after: float) -> tuple[float, float]:
        """Lower bounds on the seconds and the bytes in which a block of some elements becomes a larger one."""
        request, dist = self._search.request, node.dist
        received = node.dtype.itemsize * (after - before)
        if received <= 0:
            return 0.0, 0.0
        if len(self.contributions) > 1:  # what stays partial may lie so without all of its contributions
            received = 0.0
        if request.max_bytes is not None:  # panels may cost less
            return 0.0, received

        times = request.machine.at_best_along(request.grid if dist is None else dist.grid, request.grid)
        seconds = min(times.byte_time) * received + node.dtype.itemsize * min(times.copy_time) * after
        latency = 0.0 if dist is None else min(times.latency)
        return request.machine.step_time + latency + seconds, received

    def nearest(self, modes: Modes, contributions: tuple[int, ...]) -> tuple[float, Node, Distribution]:
        """How the tensor is made and moved so, for the least bound; if it stays partial, from contributions alone."""
        key = (modes, contributions)
        if key not in self._nearest:
            to = self._search.dist(self._shape, modes, contributions)
            best = inf, self.nodes[0]
            for node in self.nodes:
                if node.seconds >= best[0]:  # so are those of all later nodes
                    break
                if not contributions or (node.dist is not None and node.dist.partial == contributions):
                    price = node.seconds + self._search.bound(node.dist, to, node.dtype.itemsize)
                    best = min(best, (price, node), key=lambda row: row[0])
            self._nearest[key] = (*best, to)
        return self._nearest[key]


_Key = tuple[Distribution, Distribution, int]
"""A move, and the bytes of an element."""


def _sent(source: Distribution, target: Distribution) -> float:
    """A lower bound on the elements that an average rank sends if contributions move, and are not added up.

    A rank must send those that it is not to hold. If others have copies, these may do for them.
    """
    roles = {role.name for g, role in enumerate(source.roles) if source.grid.shape[g] > 1}
    if not source.partial or "replicated" in roles or source.grid != target.grid or source.partial != target.partial:
        return 0.0
    return float((block_sizes(source) - movement(source, target).kept).mean())


def _by_bytes(drafts: Iterable[Draft], may_be: Callable[[float, float], bool]) -> Iterator[Draft]:
    """The drafts, and what they open to, in the order of the bytes that are received; not those that are ruled out."""
    for seconds, (received,), draft in drafts:
        if may_be(seconds, received):
            opened = draft if isinstance(draft, Node) else partial(lambda opens: _by_bytes(opens(), may_be), draft)
            yield received, (seconds,), opened


def _contributions(sides: Sequence[_Side], used: set[int]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Per tensor, the grid modes over which it stays partial in the product, which is then partial over them too.

    Only one tensor may be partial over a grid mode, and no letter may be split over it.
    """
    for partials in product(*[side.contributions for side in sides]):
        modes = [*chain(*partials)]
        if len({*modes}) == len(modes) and not used & {*modes}:
            yield partials


def _of_diagonals(request: Request) -> Request:
    """A request in which operands with a letter that comes twice are replaced by their diagonals."""
    terms, result = request.subscripts
    if not any(map(repeats, terms)):
        return request

    layouts = [
        dist if dist is None or not repeats(term) else diagonal_in(plain_in(dist), term)
        for dist, term in zip(request.layouts, terms, strict=True)
    ]
    shapes = [
        tuple([n for mode, n in enumerate(shape) if term[mode] not in term[:mode]])
        for shape, term in zip(request.shapes, terms, strict=True)
    ]
    subscripts = Subscripts(tuple(map(distinct, terms)), result)
    return request._replace(subscripts=subscripts, shapes=tuple(shapes), layouts=tuple(layouts))


def flops_of(products: int, dtype: np.dtype[Any]) -> int:
    """The operations of a number of products and sums: two for real numbers, eight for complex ones."""
    return products * (8 if dtype.kind == "c" else 2)


def flop_seconds(flops: int, dtype: np.dtype[Any], machine: Machine) -> float:
    """The seconds of operations; those of numbers of less than 8 bytes, as the machine counts them, take less."""
    return flops * machine.flop_time * min(dtype.itemsize, 8) / 8


def _halves(members: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The first halves of all ways to part a sequence in two; each half has the first member."""
    first, *rest = members
    for bits in range((1 << len(rest)) - 1):
        yield (first, *[member for n, member in enumerate(rest) if bits >> n & 1])


def _greedy_path(request: Request) -> tuple[tuple[int, ...], ...]:
    """NumPy's greedy path, for more operands than all trees can be tried of."""
    arrays = [np.broadcast_to(np.zeros((), bool), shape) for shape in request.shapes]
    path, _ = np.einsum_path(str(request.subscripts), *arrays, optimize="greedy")
    return tuple(path[1:])

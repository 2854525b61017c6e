"""Contractions as values: moves and products of what is local, in order, with their costs and their bound.

    ik,kj->ij on grid 4x4: A block[(0),(1)] of (4096, 4096) float64, B block[(0),(1)] of (4096, 4096) float64
      1. move A: block[(0),(1)] -> block[(0),()], allgather over 1
      2. move B: block[(0),(1)] -> block[(),(1)], allgather over 0
      3. multiply 1 and 2: ik,kj->ij with i:0,j:1

Tensors are numbered: the operands are A, B, …, and each stage makes the tensor of its number. A contraction belongs to
no rank and holds no data; all ranks make the same one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from ...caches import memoized
from ...compiler.compile import compile
from ...compiler.cost import DEFAULT, Machine
from ...compiler.plan import Plan, in_bytes, in_seconds, kinds, on_machine, table
from ...compiler.step import as_dtype
from ...errors import PlanError, counted
from ...layout.distribution import Distribution
from ...layout.grid import Grid
from ...lazy import late
from .algorithms import family, reason
from .algorithms import wanted as wanted_by
from .assignment import points, refined
from .bounds import contraction_bound
from .cheapest import cheapest_of
from .diagonals import diagonal_in, distinct, plain_in, repeats, spread
from .memory import Need, bytes_of, moving, next_panels, packed, panel_bytes, peaks
from .panels import Panels, pieces
from .search import Node, Request, Search, flops_of
from .stages import (
    Move,
    Product,
    Stage,
    StageFigures,
    end_tree,
    is_split,
    plans_of,
    read_end,
    read_stage,
    stage_tree,
    uses,
)
from .subscripts import LETTERS, Subscripts, broadcasting, without

__all__ = ["Contraction", "ContractionCost", "contraction_of"]

_FORMAT = 1  # of contractions as JSON; another one is refused
_WIDTH = 120  # of a line, in characters


class ContractionCost(NamedTuple):
    """The costs of a contraction.

    Attributes:
        seconds: the model's time: its moves one after the other, and the products of the busiest rank.
        bytes, messages: the most that any one rank receives in each move, added up.
        flops: the operations of the busiest rank: two per product of real numbers, eight of complex ones.
        peak_bytes: the most that any one rank holds: operands, result, intermediate tensors and buffers.
    """

    seconds: float
    bytes: int
    messages: int
    flops: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Contraction:
    """A planned contraction. `compile_einsum` makes it.

    Attributes:
        subscripts: the letters of operands and result.
        operands, dtypes: the distributions and dtypes of the operands.
        result: the distribution of the result.
        stages: the moves and products, in order.
        machine: the machine whose seconds are counted.
        chosen: what was not given, and was chosen together with the stages: "grid", operands by name, "result".

    >>> from .compile import compile_einsum
    >>> plan = compile_einsum("ik,kj->ij", [(8, 8)] * 2, ["block[(0),()]"] * 2, grid=2)
    >>> print(plan)
    ik,kj->ij on grid 2: A block[(0),()] of (8, 8) float64, B block[(0),()] of (8, 8) float64
      1. move B: block[(0),()] -> [(),()], allgather over 0
      2. multiply A and 1: ik,kj->ij with i:0
    >>> Contraction.from_json(plan.to_json()) == plan
    True
    """

    subscripts: Subscripts
    operands: tuple[Distribution, ...]
    dtypes: tuple[np.dtype[Any], ...]
    result: Distribution
    stages: tuple[Stage, ...]
    machine: Machine = DEFAULT
    chosen: tuple[str, ...] = field(default=(), compare=False)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the products and of the result."""
        return np.result_type(*self.dtypes)

    @property
    def extents(self) -> dict[str, int]:
        """Per letter, its extent."""
        return self.subscripts.extents([dist.shape for dist in self.operands])

    @property
    def path(self) -> list[tuple[int, ...]]:
        """The operands of each product, numbered as in a path of `numpy.einsum_path`."""
        count = len(self.operands)
        left, found = [*range(count)], list[tuple[int, ...]]()
        for made, stage in enumerate(self.stages, count):
            used = uses(stage)
            if isinstance(stage, Product) and (len(used) > 1 or count == 1):
                found.append(tuple(sorted(map(left.index, used))))
                left = [*[value for value in left if value not in used], made]
            else:
                left = [made if value in used else value for value in left]
        return found

    def values(self) -> list[tuple[Distribution, np.dtype[Any]]]:
        """How each tensor lies, and its dtype.

        Returns:
            Distributions and dtypes: of the operands first, then of what each stage makes.

        >>> from .compile import compile_einsum
        >>> [str(dist.layout) for dist, _ in compile_einsum("i->", [(4,)], ["block[(0)]"], grid=2).values()]
        ['block[(0)]', '[]+(0)', '[]']
        """
        made = [*zip(self.operands, self.dtypes, strict=True)]
        for stage in self.stages:
            if isinstance(stage, Move):
                made.append((stage.plan.target, stage.plan.dtype))
            else:
                made.append((stage.result, made[stage.values[0]][1] if stage.is_diagonal else self.dtype))
        return made

    @property
    def cost(self) -> ContractionCost:
        """Seconds on the plan's machine, and bytes, messages, flops and peak bytes of the busiest rank."""
        rows = self.figures()
        seconds, received = sum([row.seconds for row in rows]), sum([row.received for row in rows])
        messages, flops = sum([row.messages for row in rows]), sum([row.flops for row in rows])
        return ContractionCost(seconds, received, messages, flops, max([row.peak for row in rows]))

    @property
    def lower_bound(self) -> int:
        """The bytes that some rank must receive in any plan with the same products.

        No other plan receives less, unless a rank computes or holds more than here: see `contraction_bound`.
        """
        return self._bound()[0]

    @property
    def bound_source(self) -> str:
        """The paper that the lower bound is from; "" if there is none."""
        return self._bound()[1]

    def _bound(self) -> tuple[int, str]:
        item = min([dtype.itemsize for dtype in (*self.dtypes, self.dtype)])
        values = [dist for dist, _ in self.values()]
        words, source = contraction_bound(self.stages, values, self.extents, self.cost.peak_bytes / item)
        return int(words * item), source if words * item >= 1 else ""

    def _peaks(self) -> list[int]:
        """The most bytes that a rank holds, at first and during each stage."""
        values, given = self.values(), [*map(bytes_of, self.operands, self.dtypes)]
        needs = []
        for stage, (made, dtype) in zip(self.stages, values[len(given) :], strict=True):
            size = bytes_of(made, dtype)
            if isinstance(stage, Move):
                buffers = _moving(stage.plan) - size - bytes_of(*values[stage.value])
                needs.append(Need((stage.value,), size, buffers))
                continue
            ends, dtypes = zip(*[values[value] for value in stage.values], strict=True)
            shapes = [
                plans[0].target.max_local_shape() if plans else dist.max_local_shape()
                for dist, plans in zip(ends, stage.plans or ((),) * len(ends), strict=False)
            ]
            if stage.is_diagonal:
                more = size
            elif stage.panels is None:
                more = sum(packed(shapes, stage.terms, stage.term, dtypes, dtype))
            else:
                kept = stage.panels.letter in stage.term
                more = panel_bytes(shapes, stage.terms, stage.term, dtypes, dtype, kept)
                more += sum([held for _, held, _ in map(_panel_memory, stage.plans[len(ends) :])])
                more += next_panels([_panel_memory(plans) for plans in stage.plans[: len(ends)] if plans])
            needs.append(Need(stage.values, size, more))
        return peaks(given, needs)

    def __repr__(self) -> str:
        shapes, dtype = ", ".join([str(dist.shape) for dist in self.operands]), self.dtype
        stages = counted(len(self.stages), "stage")
        return f"Contraction({self.subscripts} of {shapes} {dtype} on grid {self.grid}, {stages})"

    def __str__(self) -> str:
        names = self._names()
        ends = [
            f"{name} {dist.layout} of {dist.shape} {dtype}"
            for name, dist, dtype in zip(names, self.operands, self.dtypes, strict=False)
        ]
        head = f"{self.subscripts} on grid {self.grid}:"
        lines = [f"{head} {', '.join(ends)}"]
        if len(lines[0]) > _WIDTH:
            lines = [head, *[f"  {end}" for end in ends]]
        if self.chosen:
            lines.append(f"  {self._choice()}")
        lines += [f"  {number}. {self._described(stage, names)}" for number, stage in enumerate(self.stages, 1)]
        return "\n".join(lines)

    @property
    def grid(self) -> Grid:
        """The grid of the products."""
        grids = [stage.result.grid for stage in self.stages if isinstance(stage, Product)]
        return grids[-1] if grids else self.result.grid

    def _choice(self) -> str:
        """What was chosen by the planner."""
        names = self._names()
        layouts = [
            f"{name} {dist.layout}"
            for name, dist in (*zip(names, self.operands, strict=False), ("result", self.result))
            if name in self.chosen
        ]
        return f"chosen: {', '.join([f'grid {self.grid}'] * ('grid' in self.chosen) + layouts)}"

    def _names(self) -> list[str]:
        return [*_operand_names(len(self.operands)), *map(str, range(1, len(self.stages) + 1))]

    def _described(self, stage: Stage, names: Sequence[str]) -> str:
        if isinstance(stage, Move):
            plan = stage.plan
            return f"move {names[stage.value]}: {plan.source.layout} -> {plan.target.layout}, {kinds(plan.steps)}"
        tensors = " and ".join([names[value] for value in stage.values])
        return f"{stage.verb} {tensors}: {stage}"

    def explain(self) -> str:
        """A table of the stages with their costs and algorithms, and the distance from the lower bound.

        >>> from .compile import compile_einsum
        >>> ends = {"layouts": ["block[(0),(1)]"] * 2, "layout": "block[(0),(1)]"}
        >>> print(compile_einsum("ik,kj->ij", [(256, 256)] * 2, grid=(2, 2), **ends).explain())
        ik,kj->ij on grid 2x2
          A       block[(0),(1)]  (256, 256)  float64
          B       block[(0),(1)]  (256, 256)  float64
          result  block[(0),(1)]  (256, 256)  float64
          stage                                                                   received     flops    time       peak
          1      move A: block[(0),(1)] -> block[(0),()], allgather over 1       128.0 KiB             64 us  896.0 KiB
          2      move B: block[(0),(1)] -> block[(),(1)], allgather over 0       128.0 KiB             64 us    1.1 MiB
          3      multiply 1 and 2: ik,kj->ij with i:0,j:1, stationary C (SUMMA)             8.39e+06  420 us  896.0 KiB
        each rank receives at most 256.0 KiB in 2 messages, lower bound 225.6 KiB (ratio 1.13)
        bound: Al Daas et al. (2022)
        peak 1.1 MiB on a rank, 8.39e+06 flops, about 550 us on the default machine
        """
        ends = [(name, str(dist.layout), str(dist.shape), str(dtype)) for name, (dist, dtype) in self.ends().items()]
        rows = [("stage", "", "received", "flops", "time", "peak")]
        for number, row in enumerate(self.figures(), 1):
            text = f"{row.text}, {row.family}" if row.flops else row.text
            received, flops = in_bytes(row.received) if row.received else "", f"{row.flops:.3g}" if row.flops else ""
            rows.append((f"{number}", text, received, flops, in_seconds(row.seconds), in_bytes(row.peak)))
        cost, (bound, source) = self.cost, self._bound()
        ratio = f" (ratio {cost.bytes / bound:.2f})" if bound else ""
        lines = [f"{self.subscripts} on grid {self.grid}", *table(ends, ())]
        if self.chosen:
            lines.append(f"  {self._choice()}")
        lines += table(rows, {2, 3, 4, 5})
        lines.append(
            f"each rank receives at most {in_bytes(cost.bytes)} in {counted(cost.messages, 'message')}, "
            f"lower bound {in_bytes(bound)}{ratio}"
        )
        if source:
            lines.append(f"bound: {source}")
        times = f"about {in_seconds(cost.seconds)} {on_machine(self.machine)}"
        lines.append(f"peak {in_bytes(cost.peak_bytes)} on a rank, {cost.flops:.3g} flops, {times}")
        return "\n".join(lines)

    def figures(self) -> list[StageFigures]:
        """The stages in words, with their costs.

        >>> from .compile import compile_einsum
        >>> [(row.text, row.flops) for row in compile_einsum("i,i->", [(4,)] * 2, ["block[(0)]"] * 2, grid=1).figures()]
        [('multiply A and B: i,i->', 8)]
        """
        names, extents, rows, values = self._names(), self.extents, [], self.values()
        for stage, peak in zip(self.stages, self._peaks()[1:], strict=True):
            costs = [plan.cost for plan in plans_of(stage)]
            seconds, received = sum([cost.seconds for cost in costs]), sum([cost.bytes for cost in costs])
            flops, name = 0, None
            if isinstance(stage, Product):
                name = stage.family
                if not stage.is_diagonal:
                    ends = [*zip(stage.terms, [values[value][0].shape for value in stage.values], strict=True)]
                    letters = distinct("".join([without(term, broadcasting(term, n, extents)) for term, n in ends]))
                    flops = flops_of(points(stage.assignment, extents, letters, stage.result.grid), self.dtype)
                seconds += flops * self.machine.flop_time * min(self.dtype.itemsize, 8) / 8
            messages = sum([cost.messages for cost in costs])
            rows.append(StageFigures(self._described(stage, names), name, received, messages, flops, seconds, peak))
        return rows

    def ends(self) -> dict[str, tuple[Distribution, np.dtype[Any]]]:
        """The distributions and dtypes of the operands and of the result, by name.

        >>> from .compile import compile_einsum
        >>> [*compile_einsum("i,i->", [(4,)] * 2, grid=2).ends()]
        ['A', 'B', 'result']
        """
        ends = dict(zip(self._names(), zip(self.operands, self.dtypes, strict=True), strict=False))
        return {**ends, "result": (self.result, self.dtype)}

    def why_not(self, way: str) -> str:
        """The cheapest contraction with a product of some algorithm or assignment, and its additional cost.

        What the planner chose together with the plan, except the grid, is chosen anew.

        Args:
            way: the name of an algorithm, such as "SUMMA" or "stationary a"; or an assignment, such as "i:0,j:1".

        Raises:
            PlanError: there is no such algorithm, letter or grid mode.

        >>> from .compile import compile_einsum
        >>> plan = compile_einsum("ik,kj->ij", [(256, 256)] * 2, ["block[(0),(1)]"] * 2, grid=(2, 2))
        >>> print(plan.why_not("Stationary A"))
        ik,kj->ij on grid 2x2: A block[(0),(1)] of (256, 256) float64, B block[(0),(1)] of (256, 256) float64
          1. move B: block[(0),(1)] -> block[(1),()], exchange over 0,1
          2. multiply A and 1: ik,kj->ij with i:0,k:1
          3. move 2: block[(0),()]+(1) -> block[(0),(1)], reduce_scatter over 1
          about 600 us, 1.10 times as long: a rank receives 384.0 KiB (not 256.0 KiB), holds 1.0 MiB (not 1.1 MiB)
        >>> print(plan.why_not("batch"))
        no contraction on grid 2x2 has a product by batch
        it splits a letter of both operands and the result, and there is none
        """
        is_wanted = wanted_by(way, self.subscripts.letters, self.grid)
        products = [stage for stage in self.stages if isinstance(stage, Product) and not stage.is_diagonal]
        if any(is_wanted(stage.assignment, stage.family) for stage in products):
            return f"the plan has this product: {way}"

        def wanted(node: Node) -> bool:
            terms = [part.term for part in node.parts]
            return is_wanted(node.assignment, family(node.assignment, terms, node.term, self.grid))

        search = Search(self._request(), wanted)
        seconds, best = inf, None
        for bound, node in search.ranked():
            if bound >= seconds:
                break
            found = search.priced(node)
            if found < seconds:
                seconds, best = found, node
        if best is None:
            return f"no contraction on grid {self.grid} has a product by {way}{reason(way, self.subscripts, self.grid)}"
        other = _from_node(search, best)
        return f"{other}\n{fill(_versus(other.cost, self.cost), _WIDTH, initial_indent='  ', subsequent_indent='  ')}"

    def _request(self) -> Request:
        """The request that this contraction answers, on its grid."""
        shapes = tuple([dist.shape for dist in self.operands])
        ends, free = zip(self._names(), self.operands, strict=False), "result" in self.chosen
        layouts = tuple([None if name in self.chosen else dist for name, dist in ends])
        target = None if free else self.result
        return Request(self.subscripts, shapes, self.dtypes, layouts, self.grid, target, free, None, self.machine)

    def bound(self, *tensors: Any, out: Any = None) -> Any:
        """Bind the contraction to the memory of tensors, for loops. Collective.

        Args:
            tensors: the operands: tensors of the plan's distributions and dtypes.
            out: a tensor of the result's distribution and dtype to write into; a new one if None.

        Returns:
            A callable. Each call computes the result of the operands' current values and returns it, always in the
            same tensor, which is its attribute `result`.

        Raises:
            LayoutError: there are more or fewer operands than in the plan; or a tensor is of another distribution or
                dtype. The error is the same on all ranks.

        >>> import rote
        >>> plan = rote.compile_einsum("i,i->", [(4,)] * 2, ["block[(0)]"] * 2, grid=1)
        >>> x = rote.DistTensor.from_global([1.0, 2.0, 3.0, 4.0], "block[(0)]")
        >>> step = plan.bound(x, x)
        >>> step().to_global()
        array(30.)
        >>> x.local[0] = 3.0
        >>> step().to_global()
        array(38.)
        """
        return late("bound contraction")(self, tensors, out)

    def plot(self) -> Any:
        """A figure of the products: which rank multiplies which cuboid of the letters (`rote.plot.contraction`).

        >>> from .compile import compile_einsum
        >>> compile_einsum("ik,kj->ij", [(8, 8)] * 2, grid=(2, 2)).plot().savefig("contraction.png")
        """
        return late("contraction figure")(self)

    def to_html(self) -> str:
        """A page for a browser that steps through the stages and shows owners, messages and costs.

        The page is self-contained; `pathlib.Path("plan.html").write_text(page, "utf-8")` saves it.

        >>> from .compile import compile_einsum
        >>> page = compile_einsum("ik,kj->ij", [(8, 8)] * 2, grid=(2, 2)).to_html()
        >>> page[:15], "multiply" in page
        ('<!DOCTYPE html>', True)
        """
        return str(late("contraction page")(self))

    def _repr_html_(self) -> str:
        return str(late("contraction card")(self))

    def to_json(self) -> str:
        """The contraction as JSON text, for `from_json`.

        >>> from .compile import compile_einsum
        >>> compile_einsum("i->", [(4,)], ["block[(0)]"], grid=2).to_json()[:33]
        '{"format": 1, "subscripts": "i->"'
        """
        return json.dumps(
            {
                "format": _FORMAT,
                "subscripts": str(self.subscripts),
                "operands": [
                    [*end_tree(dist), dtype.str] for dist, dtype in zip(self.operands, self.dtypes, strict=True)
                ],
                "result": end_tree(self.result),
                "machine": self.machine.as_dict(),
                "chosen": self.chosen,
                "stages": [stage_tree(stage) for stage in self.stages],
            }
        )

    @staticmethod
    def from_json(text: str) -> Contraction:
        """The contraction that a JSON text holds. Reading does not prove it; `verify` does that.

        Raises:
            PlanError: the text is not a contraction, or one of another version of Rote's, or its stages do not lead
                from the operands to the result.

        >>> from .compile import compile_einsum
        >>> plan = compile_einsum("ik,kj->ij", [(4, 4)] * 2, grid=2)
        >>> Contraction.from_json(plan.to_json()) == plan
        True
        """
        try:
            return _read(json.loads(text))
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise PlanError(
                f"this text is no contraction ({type(error).__name__}: {error}); plan.to_json() writes one"
            ) from None

    def verify(self) -> None:
        """Prove that every product of elements enters exactly once, and that each element of the result is complete.

        Raises:
            PlanError: the proof fails; the text names the stage and what is wrong.

        >>> from .compile import compile_einsum
        >>> compile_einsum("ik,kj->ij", [(4, 4)] * 2, grid=2).verify()
        """
        late("contraction proof")(self)


@memoized(1024, once=True)  # ranks of one process plan the same contraction at the same time
def contraction_of(*requests: Request) -> Contraction:
    """The cheapest contraction that answers one of some requests, which may differ in the grid."""
    search, node = cheapest_of(requests)
    return _from_node(search, node, ("grid",) * (len(requests) > 1))


def _from_node(search: Search, root: Node, chosen: tuple[str, ...] = ()) -> Contraction:
    """The stages of a tree of products."""
    request = search.given
    count = len(request.shapes)
    operands = list(request.layouts)
    stages: list[Stage] = []

    def add(stage: Stage) -> int:
        stages.append(stage)
        return count + len(stages) - 1

    def moved(value: int, source: Distribution, target: Distribution, dtype: np.dtype[Any]) -> int:
        if source.meaning == target.meaning:
            return value
        return add(Move(value, compile(source, target, dtype, machine=request.machine)))

    def begun(number: int, to: Distribution) -> tuple[int, Distribution]:
        """An operand, or its diagonal if a letter names several of its modes."""
        term, dist = request.subscripts.terms[number], operands[number]
        if dist is None:
            dist = operands[number] = spread(refined(to), term, request.shapes[number])
        if not repeats(term):
            return number, dist
        plain = plain_in(dist)
        value = moved(number, dist, plain, request.dtypes[number])
        made = diagonal_in(plain, term)
        return add(Product((value,), (term,), distinct(term), made, ())), made

    def made(node: Node, to: Distribution) -> tuple[int, Distribution]:
        if node.operand >= 0:
            return begun(node.operand, to)
        assert node.dist is not None  # it is a product
        values, plans, panels = list[int](), list[tuple[Plan, ...]](), node.panels
        ends = [made(part, target) for part, target in zip(node.parts, node.moved, strict=True)]  # before any is moved
        for (value, source), part, target in zip(ends, node.parts, node.moved, strict=True):
            if panels is not None and dict(zip(part.term, target.shape, strict=True)).get(panels.letter, 1) > 1:
                plans.append(_piece_plans(source, target, part, panels, request.machine))
            else:
                value = moved(value, source, target, part.dtype)
                plans.append(())
            values.append(value)
        if panels is not None and node.left is not None:
            plans.append(_piece_plans(node.left, node.dist, node, panels, request.machine))
        terms, moves = tuple([part.term for part in node.parts]), tuple(plans if panels is not None else ())
        return add(Product(tuple(values), terms, node.term, node.dist, node.assignment, panels, moves)), node.dist

    assert root.dist is not None  # it is a product
    value, dist = made(root, root.dist)
    final = search.final(dist)
    moved(value, dist, final, search.dtype)
    chosen += tuple([name for name, lay in zip(_operand_names(count), request.layouts, strict=True) if lay is None])
    chosen += ("result",) * (request.target is None and request.cheapest)
    places = tuple([dist for dist in operands if dist is not None])  # now all
    return Contraction(request.subscripts, places, request.dtypes, final, tuple(stages), request.machine, chosen)


def _operand_names(count: int) -> list[str]:
    """A, B, C, …"""
    return list((LETTERS[26:] * (1 + count // 26))[:count])


def _piece_plans(
    source: Distribution, target: Distribution, part: Node, panels: Panels, machine: Machine
) -> tuple[Plan, ...]:
    """The plans of the pieces of an operand; one, if all are equal."""
    mode = part.term.index(panels.letter)
    ends = zip(pieces(source, mode, panels), pieces(target, mode, panels), strict=True)
    plans = [compile(*each, part.dtype, machine=machine) for each in ends]
    return tuple(plans[:1]) if all(plan == plans[0] for plan in plans) else tuple(plans)


def _moving(plan: Plan) -> int:
    return moving(plan.steps, plan.cost.peak_bytes, plan.dtype)


def _panel_memory(plans: Sequence[Plan]) -> tuple[int, int, bool]:
    """The most bytes of a panel at its target and during its move, and whether panels move."""
    distinct = [*dict.fromkeys(plans)]
    panel = max([bytes_of(plan.target, plan.dtype) for plan in distinct])
    return panel, max(map(_moving, distinct)), any(plan.steps for plan in distinct)


def _read(tree: Mapping[str, Any]) -> Contraction:
    if tree.get("format") != _FORMAT:
        raise PlanError(
            f"this contraction is of format {tree.get('format')!r}, and this version of Rote reads format {_FORMAT}\n"
            "compile it again; plan.to_json() writes one"
        )
    terms, result = tree["subscripts"].split("->")
    letters = Subscripts(tuple(terms.split(",")), result)
    operands = tuple([read_end(*end) for *end, _ in tree["operands"]])
    dtypes = tuple([as_dtype(dtype) for *_, dtype in tree["operands"]])
    machine, chosen = Machine(**tree["machine"]), tuple(map(str, tree["chosen"]))
    stages = tuple(map(read_stage, tree["stages"]))
    found = Contraction(letters, operands, dtypes, read_end(*tree["result"]), stages, machine, chosen)
    _check(found)
    return found


def _check(plan: Contraction) -> None:
    """Refuse a text whose stages do not fit each other, so that all else may rely on them."""
    extents, count = plan.extents, len(plan.operands)
    terms, values = [*plan.subscripts.terms], [*zip(plan.operands, plan.dtypes, strict=True)]
    for number, stage in enumerate(plan.stages, 1):
        fits = all(0 <= value < count + number - 1 for value in uses(stage))
        if fits and isinstance(stage, Move):
            dist, dtype = values[stage.value]
            fits = (stage.plan.source.meaning, stage.plan.dtype) == (dist.meaning, dtype)
            terms.append(terms[stage.value])
        elif fits and isinstance(stage, Product):
            shape, term = tuple([extents.get(letter, -1) for letter in stage.term]), stage.term
            if stage.is_diagonal:
                shape, term = diagonal_in(values[stage.values[0]][0], stage.terms[0]).shape, distinct(stage.terms[0])
            fits = [terms[value] for value in stage.values] == [*stage.terms] and not repeats(term)
            fits = fits and len(stage.terms) <= 2
            fits = fits and (stage.result.shape, stage.term) == (shape, term) and is_split(stage)
            if fits and stage.panels is not None:
                fits = len(stage.plans) - len(stage.values) in (0, 1) and stage.panels.letter in {*"".join(stage.terms)}
            terms.append(term)
        if not fits:
            raise PlanError(f"this text is no contraction: its stage {number} does not fit those before it")
        values = plan.values()[: count + number]
    (dist, dtype), result = values[-1], plan.result
    made = (terms[-1], dist.meaning, dtype)
    if not plan.stages or made != (plan.subscripts.result, result.meaning, plan.dtype):
        raise PlanError("this text is no contraction: its last stage does not make the result")


def _versus(cost: ContractionCost, best: ContractionCost) -> str:
    """Why a contraction of some cost was not chosen."""
    why = []
    for verb, value, least in (("receives", cost.bytes, best.bytes), ("holds", cost.peak_bytes, best.peak_bytes)):
        if value != least:
            why.append(f"{verb} {in_bytes(value)} (not {in_bytes(least)})")
    if cost.flops != best.flops:
        why.append(f"computes {cost.flops:.2g} flops (not {best.flops:.2g})")
    times = f"about {in_seconds(cost.seconds)}"
    if best.seconds:
        times += f", {cost.seconds / best.seconds:.2f} times as long"
    return f"{times}: a rank {', '.join(why)}" if why else times

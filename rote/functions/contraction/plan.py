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
from dataclasses import dataclass, field, replace
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...compiler.compile import compile
from ...compiler.plan import FORMAT, Plan, kinds, on_machine, read_json
from ...compiler.step import LOCAL, Step, as_dtype
from ...compiler.tasks import Task, Tasks, transfers
from ...errors import counted
from ...layout.distribution import Distribution
from ...layout.grid import Grid
from ...lazy import late
from ...machines.machine import DEFAULT, Machine
from ...machines.work import Work
from ...prediction import Prediction, predict
from ...units import in_bytes, in_seconds, table
from .algorithms import family, matcher, reason
from .bounds import contraction_bound
from .cheapest import cheapest_of, cheapest_within
from .memory import bytes_of, peaks, stage_needs
from .search import Search, flop_seconds, flops_of
from .stages import (
    Move,
    Product,
    Stage,
    StageFigures,
    end_tree,
    read_end,
    read_stage,
    stage_tree,
    uses,
)
from .subscripts import LETTERS, Subscripts
from .tree import MOST_OF_CHAINS, Node, Request, Unplanned, UnplannedMove, operand_dists, unplanned

__all__ = ["Contraction", "ContractionCost", "contraction_of", "from_tree", "way_of"]

_WIDTH = 120  # of a line, in characters


class ContractionCost(NamedTuple):
    """The costs of a contraction.

    Attributes
    ----------
    seconds : float
        The model's time: its moves one after the other, and the products of the busiest rank.
    bytes : int
        The most bytes that any one rank receives in each move, added up.
    messages : int
        The most messages that any one rank receives in each move, added up.
    flops : int
        The operations of the busiest rank: two per product of real numbers, eight of complex ones.
    peak_bytes : int
        The most that any one rank holds: operands, result, intermediate tensors and buffers.

    Examples
    --------
    >>> import rote
    >>> cost = rote.compile_einsum("ik,kj->ij", [(64, 64)] * 2, ["block[(0),()]"] * 2, grid=4).cost
    >>> cost.bytes, cost.messages, cost.flops, cost.peak_bytes
    (24576, 3, 131072, 90112)
    """

    seconds: float
    bytes: int
    messages: int
    flops: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Contraction:
    """A planned contraction. `compile_einsum` makes it.

    Attributes
    ----------
    subscripts : Subscripts
        The letters of operands and result.
    operands : tuple[Distribution, ...]
        The distributions of the operands.
    dtypes : tuple[numpy.dtype, ...]
        The dtypes of the operands.
    result : Distribution
        The distribution of the result.
    stages : tuple[Move | Product, ...]
        The moves and products, in order.
    machine : Machine
        The machine whose seconds are counted.
    chosen : tuple[str, ...]
        What was not given, and was chosen together with the stages: "grid", operands by name, "result"; or "splits" if
        the result keeps those of the last product.

    Examples
    --------
    >>> import rote
    >>> plan = rote.compile_einsum("ik,kj->ij", [(8, 8)] * 2, ["block[(0),()]"] * 2, grid=2)
    >>> print(plan)
    ik,kj->ij on grid 2: A block[(0),()] of (8, 8) float64, B block[(0),()] of (8, 8) float64
      1. move B: block[(0),()] -> [(),()], allgather over 0
      2. multiply A and 1: ik,kj->ij with i:0
    >>> rote.Contraction.from_json(plan.to_json()) == plan
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
        left, path = [*range(count)], list[tuple[int, ...]]()
        for made, stage in enumerate(self.stages, count):
            used = uses(stage)
            if isinstance(stage, Product) and (len(used) > 1 or count == 1):
                path.append(tuple(sorted(map(left.index, used))))
                left = [*[value for value in left if value not in used], made]
            else:  # the tensor keeps its place in the list: NumPy knows no moves, and no sums of one operand
                left = [made if value in used else value for value in left]
        return path

    def values(self) -> list[tuple[Distribution, np.dtype[Any]]]:
        """How each tensor lies, and its dtype.

        Returns
        -------
        list[tuple[Distribution, numpy.dtype]]
            Distributions and dtypes: of the operands first, then of what each stage makes.

        Examples
        --------
        >>> import rote
        >>> plan = rote.compile_einsum("i->", [(4,)], ["block[(0)]"], grid=2)
        >>> [str(dist.layout) for dist, _ in plan.values()]
        ['block[(0)]', '[]+(0)', '[]']
        """
        made = [*zip(self.operands, self.dtypes, strict=True)]
        for stage in self.stages:
            if isinstance(stage, Move):
                made.append((stage.plan.target, stage.plan.dtype))
            elif stage.is_diagonal:
                made.append((stage.result, made[stage.values[0]][1]))
            else:
                made.append((stage.result, self.dtype))
        return made

    @property
    def cost(self) -> ContractionCost:
        """Seconds on the plan's machine, and bytes, messages, flops and peak bytes of the busiest rank."""
        rows = self.figures()
        seconds, received = sum([row.seconds for row in rows]), sum([row.received for row in rows])
        messages, flops = sum([row.messages for row in rows]), sum([row.flops for row in rows])
        return ContractionCost(seconds, received, messages, flops, max([row.peak for row in rows]))

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all moves, in order; of panels, those of the first."""
        moves = [plans[0] for number in range(1, len(self.stages) + 1) for _, plans in self.moves(number)]
        return tuple([step for plan in moves for step in plan.steps])

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

    def __repr__(self) -> str:
        shapes, dtype = ", ".join([str(dist.shape) for dist in self.operands]), self.dtype
        stages = counted(len(self.stages), "stage")
        return f"Contraction({self.subscripts} of {shapes} {dtype} on grid {self.grid}, {stages})"

    def __str__(self) -> str:
        ends = [f"{name} {dist.layout} of {dist.shape} {dtype}" for name, (dist, dtype) in self.ends().items()][:-1]
        head = f"{self.subscripts} on grid {self.grid}:"
        lines = [f"{head} {', '.join(ends)}"]
        if len(lines[0]) > _WIDTH:
            lines = [head, *[f"  {end}" for end in ends]]

        lines += self._choices()
        for number in range(1, len(self.stages) + 1):
            first, *more = self._described(number)
            lines += [f"  {number}. {first}", *[f"     {line}" for line in more]]
        return "\n".join(lines)

    @property
    def grid(self) -> Grid:
        """The grid of the products."""
        grids = [stage.result.grid for stage in self.stages if isinstance(stage, Product)]
        return grids[-1] if grids else self.result.grid

    def _choices(self) -> list[str]:
        """A line of what the planner chose."""
        is_free_chain = len(self.operands) > 2 and {*self.ends()} <= {*self.chosen}
        limit = f" (best found of at most {MOST_OF_CHAINS} modes)" if is_free_chain else ""
        choices = [f"grid {self.grid}{limit}"] if "grid" in self.chosen else []
        choices += [f"{name} {dist.layout}" for name, (dist, _) in self.ends().items() if name in self.chosen]
        return [f"  chosen: {', '.join(choices)}"] if choices else []

    def _names(self) -> list[str]:
        return [*_operand_names(len(self.operands)), *map(str, range(1, len(self.stages) + 1))]

    def _described(self, number: int) -> list[str]:
        """A stage in words, and the moves of its panels."""
        names, stage = self._names(), self.stages[number - 1]
        if isinstance(stage, Move):
            return [_in_words(names[stage.value], stage.plan)]

        # The first panel, the largest, stands for all.
        tensors = " and ".join([names[value] for value in stage.values])
        moves = [(names[value], plans[0]) for value, plans in self.moves(number) if plans[0].steps]
        panels = [_in_words(f"panels of {name}", plan) for name, plan in moves]
        return [f"{stage.verb.format(tensors)}: {stage}", *panels]

    def moves(self, number: int) -> list[tuple[int, tuple[Plan, ...]]]:
        """The moves of the stage of a number, from 1: of each tensor that moves its number, and its plans in order.

        Examples
        --------
        >>> import rote
        >>> [(value, plans)] = rote.compile_einsum("i->", [(4,)], ["block[(0)]"], grid=2).moves(2)
        >>> print(value, *plans)
        1 []+(0) -> [] of () float64 on grid 2
          1. allreduce over 0: []+(0) -> []
        """
        stage, made = self.stages[number - 1], len(self.operands) + number - 1
        if isinstance(stage, Move):
            return [(stage.value, (stage.plan,))]

        count = 1 if stage.panels is None else stage.panels.count
        moves = [(value, plans) for value, plans in zip((*stage.values, made), stage.plans, strict=False) if plans]
        return [(value, plans * count if len(plans) == 1 else plans) for value, plans in moves]  # one plan is for all

    def explain(self) -> str:
        """A table of the stages with their costs and algorithms, and the distance from the lower bound.

        Examples
        --------
        >>> import rote
        >>> ends = {"layouts": ["block[(0),(1)]"] * 2, "layout": "block[(0),(1)]"}
        >>> print(rote.compile_einsum("ik,kj->ij", [(256, 256)] * 2, grid=(2, 2), **ends).explain())
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
            rows += [("", f"  {line}", "", "", "", "") for line in self._described(number)[1:]]

        lines = [f"{self.subscripts} on grid {self.grid}", *table(ends, ())]
        lines += self._choices()
        if "splits" in self.chosen:
            last = max([n for n, stage in enumerate(self.stages, 1) if isinstance(stage, Product)])
            made, _ = self.values()[len(self.operands) + last - 1]
            added = ", and its contributions are added on all ranks" if made.partial else ""
            lines.append(f"  no layout was asked for: the result is split as in stage {last}{added}")
        lines += table(rows, {2, 3, 4, 5})

        cost, (bound, source) = self.cost, self._bound()
        number = sum(isinstance(stage, Product) and not stage.is_diagonal for stage in self.stages)
        of = f", of one of {number} products" if number > 1 else ""
        why = ": on average, ranks hold at first what a product needs" if cost.bytes else ""
        ratio = f" (ratio {cost.bytes / bound:.2f})" if bound else why
        received = f"receives at most {in_bytes(cost.bytes)} in {counted(cost.messages, 'message')}"
        lines.append(
            f"each rank {received if cost.bytes else 'receives nothing'}, lower bound {in_bytes(bound)}{of}{ratio}"
        )
        if source:
            lines.append(f"bound: {source}")

        times = f"about {in_seconds(cost.seconds)} {on_machine(self.machine)}"
        lines.append(f"peak {in_bytes(cost.peak_bytes)} on a rank, {cost.flops:.3g} flops, {times}")
        lines += late("functions.contraction.compile:on_fewer_ranks")(self, lambda plan: plan.cost.seconds)
        return "\n".join(lines)

    def figures(self) -> list[StageFigures]:
        """The stages in words, with their costs.

        Examples
        --------
        >>> import rote
        >>> plan = rote.compile_einsum("i,i->", [(4,)] * 2, ["block[(0)]"] * 2, grid=1)
        >>> [(row.text, row.flops) for row in plan.figures()]
        [('multiply A and B: i,i->', 8)]
        """
        rows, sizes = [], [*map(bytes_of, self.operands, self.dtypes)]
        # The first peak is that before all stages.
        _, *during = peaks(sizes, stage_needs(self.stages, self.values()))
        for number, (stage, flops, peak) in enumerate(zip(self.stages, self._work(), during, strict=True), 1):
            text, name = self._described(number)[0], stage.family if isinstance(stage, Product) else None

            costs = [plan.cost for _, plans in self.moves(number) for plan in plans]
            seconds, received = sum([cost.seconds for cost in costs]), sum([cost.bytes for cost in costs])
            seconds += flop_seconds(flops, self.dtype, self.machine)
            messages = sum([cost.messages for cost in costs])

            if isinstance(stage, Product) and stage.is_rearrangement:
                flops = 0  # it takes time, but computes nothing
            rows.append(StageFigures(text, name, received, messages, flops, seconds, peak))
        return rows

    def _work(self) -> list[int]:
        """The operations of the busiest rank in each stage; a rearranged element takes the time of a product."""
        work, values = list[int](), self.values()
        for stage in self.stages:
            if isinstance(stage, Move) or stage.is_diagonal:
                work.append(0)
            else:
                shapes = [values[value][0].shape for value in stage.values]
                work.append(flops_of(stage.points(shapes, self.extents), self.dtype))
        return work

    def tasks(self) -> Tasks:
        """The moves and the products, as `rote.predict` sees them.

        Examples
        --------
        >>> import rote
        >>> plan = rote.compile_einsum("i,i->", [(4,)] * 2, ["block[(0)]"] * 2, grid=1)
        >>> [task.kind for task in plan.tasks().every]
        ['product']
        """
        every, item = list[Task](), min(self.dtype.itemsize, 8)  # the machine's time is of numbers of 8 bytes
        for number, flops in enumerate(self._work(), 1):
            for _, plans in self.moves(number):
                for plan in plans:
                    every += transfers(plan.steps, plan.dtype.itemsize)
            if flops:
                every.append(Work("product", 0, flops=flops * item // 8))

        name = f"{self.subscripts} of {', '.join([str(dist.shape) for dist in self.operands])} {self.dtype}"
        layouts = " ".join([str(dist.layout) for dist in self.operands]), str(self.result.layout)
        return Tasks(name, self.grid, layouts, self.machine, tuple(every), self.cost.peak_bytes)

    @property
    def prediction(self) -> Prediction:
        """The seconds by cause and range, and the memory (see `rote.predict`)."""
        return predict(self)

    def ends(self) -> dict[str, tuple[Distribution, np.dtype[Any]]]:
        """The distributions and dtypes of the operands and of the result, by name.

        Examples
        --------
        >>> import rote
        >>> [*rote.compile_einsum("i,i->", [(4,)] * 2, grid=2).ends()]
        ['A', 'B', 'result']
        """
        ends = dict(zip(self._names(), zip(self.operands, self.dtypes, strict=True), strict=False))
        return {**ends, "result": (self.result, self.dtype)}

    def why_not(self, way: str) -> str:
        """The cheapest contraction with a product of some algorithm or assignment, and its additional cost.

        What the planner chose together with the plan, except the grid, is chosen anew.

        Parameters
        ----------
        way : str
            The name of an algorithm, such as "SUMMA" or "stationary a"; or an assignment, such as "i:0,j:1".

        Raises
        ------
        PlanError
            There is no such algorithm, letter or grid mode.

        Examples
        --------
        >>> import rote
        >>> plan = rote.compile_einsum("ik,kj->ij", [(256, 256)] * 2, ["block[(0),(1)]"] * 2, grid=(2, 2))
        >>> print(*plan.why_not("Stationary A").splitlines()[2:], sep="\\n")
          2. multiply A and 1: ik,kj->ij with i:0,k:1
          3. move 2: block[(0),()]+(1) -> block[(0),(1)], reduce_scatter over 1
          about 600 us, 1.10 times as long: a rank receives 384.0 KiB (not 256.0 KiB), holds 1.0 MiB (not 1.1 MiB)
        >>> print(plan.why_not("batch"))
        no contraction on grid 2x2 has a product by batch
        it splits a letter of both operands and the result, and there is none
        """
        matches = matcher(way, self.subscripts.letters, self.grid)
        products = [stage for stage in self.stages if isinstance(stage, Product) and not stage.is_diagonal]
        if any(matches(stage.assignment, stage.family) for stage in products):
            return f"the plan has this product: {way}"

        def condition(node: Node) -> bool:
            terms = [factor.term for factor in node.factors]
            return matches(node.assignment, family(node.assignment, terms, node.term, self.grid))

        cheapest, _ = cheapest_within([Search(self._request(), condition)])
        if cheapest is None:
            return f"no contraction on grid {self.grid} has a product by {way}{reason(way, self.subscripts, self.grid)}"

        other = from_tree(*cheapest)
        return f"{other}\n{fill(_versus(other.cost, self.cost), _WIDTH, initial_indent='  ', subsequent_indent='  ')}"

    def _request(self) -> Request:
        """The request that this contraction answers, on its grid."""
        shapes = tuple([dist.shape for dist in self.operands])
        ends, free = zip(self._names(), self.operands, strict=False), "result" in self.chosen
        layouts = tuple([None if name in self.chosen else dist for name, dist in ends])
        target = None if free else self.result
        return Request(self.subscripts, shapes, self.dtypes, layouts, self.grid, target, free, None, self.machine)

    def bound(self, *tensors: Any, out: Any = None, fixed: Sequence[int] = ()) -> Any:
        """Bind the contraction to the memory of tensors, for loops. Collective.

        Parameters
        ----------
        *tensors : DistTensor
            The operands: tensors of the plan's distributions and dtypes.
        out : DistTensor, optional
            A tensor of the result's distribution and dtype to write into; a new one if None.
        fixed : Sequence[int], optional
            The numbers of operands whose values stay the same. What is moved or made of these only is kept after the
            first call, in memory beside the plan's. A product in panels keeps nothing.

        Returns
        -------
        Callable[..., DistTensor]
            A callable. Each call fills its attribute `result` from the operands' current values, and returns it. Its
            arguments, if there are any, take the place of the operands that are not fixed.

        Raises
        ------
        LayoutError
            The tensors are not those of the plan, in number, distributions or dtypes, or `out` is a fixed operand; on
            all ranks.

        Examples
        --------
        >>> import rote
        >>> plan = rote.compile_einsum("i,i->", [(4,)] * 2, ["block[(0)]"] * 2, grid=1)
        >>> x = rote.DistTensor.from_global([1.0, 2.0, 3.0, 4.0], "block[(0)]")
        >>> step = plan.bound(x, x)
        >>> step().to_global()
        array(30.)
        >>> x.local[0] = 3.0
        >>> step().to_global()
        array(38.)

        A loop over batches moves an operand that they share once:

        >>> step = plan.bound(x, x, fixed=(0,))
        >>> [step(batch).to_global().item() for batch in (x, 2 * x)]
        [38.0, 76.0]
        """
        return late("functions.contraction.run:bound_to")(self, tensors, out, fixed)

    def simulated(self, blocks: Sequence[Sequence[npt.NDArray[Any]]]) -> list[npt.NDArray[Any]]:
        """The blocks of the result on all ranks, computed in this process; see `rote.simulate.run`, which calls this.

        Parameters
        ----------
        blocks : Sequence[Sequence[NDArray[Any]]]
            For each operand a list of blocks, one per rank, in rank order.

        Raises
        ------
        LayoutError
            The blocks are not those of the plan, in number, shapes or dtypes.

        Examples
        --------
        >>> import numpy as np, rote
        >>> dot = rote.compile_einsum("i,i->", [(3,)] * 2, ["block[(0)]"] * 2, grid=2, dtype="i8")
        >>> blocks = rote.simulate.scatter([1, 2, 3], dot.operands[0])
        >>> [int(block) for block in dot.simulated([blocks, blocks])]
        [14, 14]
        """
        result: list[npt.NDArray[Any]] = late("functions.contraction.run:simulated")(self, blocks)
        return result

    def plot(self) -> Any:
        """A figure of the products: which rank multiplies which cuboid of the letters (`rote.plot.contraction`).

        Examples
        --------
        >>> import rote
        >>> rote.compile_einsum("ik,kj->ij", [(8, 8)] * 2, grid=(2, 2)).plot().savefig("contraction.png")
        """
        return late("plot.contractions:contraction")(self)

    def to_html(self) -> str:
        """A page for a browser that steps through the contraction; it is self-contained and needs no server.

        Examples
        --------
        >>> import rote
        >>> page = rote.compile_einsum("ik,kj->ij", [(8, 8)] * 2, grid=(2, 2)).to_html()
        >>> page[:15]
        '<!DOCTYPE html>'
        """
        return str(late("html.contractions:contraction_page")(self))

    def _repr_html_(self) -> str:
        return str(late("html.contractions:contraction_card")(self))

    def to_json(self) -> str:
        """The contraction as JSON text, for `from_json`.

        Examples
        --------
        >>> import rote
        >>> rote.compile_einsum("i->", [(4,)], ["block[(0)]"], grid=2).to_json()[:33]
        '{"format": 1, "subscripts": "i->"'
        """
        return json.dumps(
            {
                "format": FORMAT,
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
        """The contraction that a JSON text holds, which is proved as by `verify`.

        Raises
        ------
        PlanError
            The text is not a contraction, or one of another version of Rote's, or the proof fails.

        Examples
        --------
        >>> import rote
        >>> plan = rote.compile_einsum("ik,kj->ij", [(4, 4)] * 2, grid=2)
        >>> rote.Contraction.from_json(plan.to_json()) == plan
        True
        """
        return read_json(text, "contraction", _read)

    def verify(self) -> None:
        """Prove that every product of elements enters exactly once, and that each element of the result is complete.

        Raises
        ------
        PlanError
            The proof fails; the text names the stage and what is wrong.

        Examples
        --------
        >>> import rote
        >>> rote.compile_einsum("ik,kj->ij", [(4, 4)] * 2, grid=2).verify()
        """
        late("functions.contraction.proof:prove")(self)


@memoized(1024, once=True)  # ranks of one process plan the same contraction at the same time
def contraction_of(*requests: Request) -> Contraction:
    """The cheapest contraction that answers one of some requests, which may differ in the grid."""
    search, node = cheapest_of(requests)
    return from_tree(search, node, ("grid",) if len(requests) > 1 else ())


def from_tree(search: Search, root: Node, chosen: tuple[str, ...] = ()) -> Contraction:
    """The contraction of a tree of products."""
    request, final = search.original, search.final(root.dist)
    stages = [_planned(stage, request.machine) for _, stage in unplanned(request, root, final)]

    names = _operand_names(len(request.shapes))
    chosen += tuple([name for name, lay in zip(names, request.layouts, strict=True) if lay is None])
    if request.target is None:
        chosen += ("result" if request.cheapest else "splits",)

    operands = operand_dists(request, root)
    return Contraction(request.subscripts, operands, request.dtypes, final, tuple(stages), request.machine, chosen)


def _planned(stage: Unplanned, machine: Machine) -> Stage:
    """A stage with the plans of its moves; in panels, those of all panels, or one, if all are equal."""
    if isinstance(stage, UnplannedMove):
        return Move(stage.value, compile(stage.source, stage.target, stage.dtype, machine=machine))
    if stage.product.panels is None:
        return stage.product

    plans = list[tuple[Plan, ...]]()
    for move in (*stage.takes, *stage.leaves):
        ends = [] if move.panels is None else move.ends()  # a tensor without the letter is used as it is
        of_panels = [compile(source, target, move.dtype, machine=machine) for source, target in ends]
        plans.append(tuple(of_panels[:1] if len({*of_panels}) == 1 else of_panels))
    return replace(stage.product, plans=tuple(plans))


def _operand_names(count: int) -> list[str]:
    """A, B, C, …"""
    return list((LETTERS[26:] * (1 + count // 26))[:count])


def way_of(plan: Plan) -> str:
    """The layouts of a move, and the kinds of its steps."""
    return f"{plan.source.layout} -> {plan.target.layout}, {kinds(plan.steps)}"


def _in_words(name: str, plan: Plan) -> str:
    """The move of a tensor in a line."""
    if plan.cost.bytes or not all(step.kind in LOCAL for step in plan.steps):
        return f"move {name}: {way_of(plan)}"
    part = "part of " if any(step.kind == "slice" for step in plan.steps) else ""
    return f"keep {part}{name}: {way_of(plan)}, nothing travels"


def _read(tree: Mapping[str, Any]) -> Contraction:
    """The contraction in JSON, once it is proved."""
    terms, result = tree["subscripts"].split("->")
    letters = Subscripts(tuple(terms.split(",")), result)
    operands = tuple([read_end(*end) for *end, _ in tree["operands"]])
    dtypes = tuple([as_dtype(dtype) for *_, dtype in tree["operands"]])
    machine, chosen = Machine(**tree["machine"]), tuple(map(str, tree["chosen"]))
    stages = tuple(map(read_stage, tree["stages"]))
    contraction = Contraction(letters, operands, dtypes, read_end(*tree["result"]), stages, machine, chosen)
    contraction.verify()
    return contraction


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

"""Plans: the steps of a transition between two distributions, as a value that can be printed and sent.

A plan belongs to no rank: every rank makes the same one, and finds its own messages when it binds the plan. As text it
has one line for the transition and one for each step:

    block[(0),()] -> block[(),(0)] of (6, 4) float64 on grid 2
      1. alltoall over 0: block[(0),()] -> block[(),(0)]

If the grid changes, the first line ends in `on grid 4 to 2x2`, and the step that changes it names the new grid, as in
`1. exchange over 0 to grid 2x2: A -> B`. A step whose elements are rounded while they travel names their dtype, as in
`1. alltoall over 0 as float32: A -> B`. Layouts may be written in any way that the language allows; everything else
must be exactly as printed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ..errors import PlanError, counted
from ..layout.distribution import Distribution, distribute
from ..layout.layout import as_layout
from ..lazy import late
from ..machines.machine import DEFAULT, Machine, as_machine
from ..units import in_bytes, in_seconds, table
from .cost import Cost, duration, flow, peak, steps_cost
from .movement import movement
from .rules import rule_of
from .search import Route, Search
from .step import Step, as_dtype, as_kind, check_steps, error_of, sent_as, wire_of
from .tasks import Tasks, transfers
from .text import NOTHING, read_text
from .verify.certificate import verify

if TYPE_CHECKING:
    from .digits import Digits

__all__ = ["FORMAT", "Plan", "StepFigures", "explain", "figures", "grids", "kinds"]
__all__ += ["on_machine", "read_json", "versus"]

T = TypeVar("T")

FORMAT = 1
"""The format of plans and contractions as JSON; another one is refused."""

_LOOKED_AT = 2_000  # the most steps to try for a runner-up, so that explaining takes no longer than compiling


@dataclass(frozen=True, slots=True)
class Plan:
    """The proved steps that move a tensor from one distribution to another. `compile` makes it.

    Attributes
    ----------
    source : Distribution
        The distribution before the plan.
    target : Distribution
        The distribution after it.
    dtype : numpy.dtype
        The dtype of the elements.
    steps : tuple[Step, ...]
        The steps from the source to the target; empty if there is nothing to do.
    machine : Machine
        The machine for which the plan is the cheapest.
    optimality : str
        "optimal", or "best found" if the space was too large to search (either may be "within" a bound on memory), or
        "as given" by a text.

    Examples
    --------
    >>> import rote
    >>> plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(6, 4), grid=2, dtype="f8")
    >>> print(plan)
    block[(0),()] -> block[(),(0)] of (6, 4) float64 on grid 2
      1. alltoall over 0: block[(0),()] -> block[(),(0)]
    >>> plan.cost.bytes, plan.cost.messages, plan.lower_bound
    (48, 1, 48)
    >>> rote.Plan.from_text(str(plan)) == rote.Plan.from_json(plan.to_json()) == plan
    True
    """

    source: Distribution
    target: Distribution
    dtype: np.dtype[Any]
    steps: tuple[Step, ...]
    machine: Machine = DEFAULT
    optimality: str = field(default="as given", compare=False)

    @property
    def cost(self) -> Cost:
        """The cost on the plan's machine: seconds, and the bytes, messages and peak bytes of the busiest rank."""
        return steps_cost(self.source, self.target, self.steps, self.dtype.itemsize, self.machine)

    @property
    def lower_bound(self) -> int:
        """The bytes that some rank must receive in any plan: the most that one rank needs and does not hold.

        If the source is partial, contributions must also meet: those that an average rank must receive for that count.
        Elements count with the bytes in which they travel: half of their size if the plan sends them rounded.
        """
        wire = wire_of(self.steps)
        sent = self.dtype if wire is None else wire
        return movement(self.source, self.target).lower_bound * sent.itemsize

    def tasks(self) -> Tasks:
        """The steps, as `rote.predict` sees them.

        Examples
        --------
        >>> import rote
        >>> len(rote.compile("block[(0)] -> [()]", shape=4, grid=2).tasks().every)
        1
        """
        steps = transfers(self.steps, self.dtype.itemsize)
        name = f"{self.source.layout} -> {self.target.layout} of {self.source.shape} {self.dtype}"
        layouts = str(self.source.layout), str(self.target.layout)
        return Tasks(name, self.source.grid, layouts, self.machine, steps, self.cost.peak_bytes)

    def explain(self) -> str:
        """A table of the steps with their cost, the distance from the lower bound, and the runner-up.

        Examples
        --------
        >>> import rote
        >>> plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(64, 64), grid=4, dtype="c16")
        >>> print(plan.explain())
        block[(0),()] -> block[(),(0)]   (64, 64) complex128 on grid 4
          step  kind      over  layout         received  rounds      peak  rule
                                block[(0),()]
          1     alltoall  0     block[(),(0)]  12.0 KiB       3  56.0 KiB  move entries, pairwise
        each rank receives at most 12.0 KiB in 3 messages, lower bound 12.0 KiB (ratio 1.00)
        peak 56.0 KiB on a rank, about 20 us on the default machine; optimal
        runner-up: allgather over 0, slice over 0
          about 39 us, 1.93 times as long: a rank receives 48.0 KiB (not 12.0 KiB), holds 176.0 KiB (not 56.0 KiB)
        """
        source, target, cost, bound = self.source, self.target, self.cost, self.lower_bound
        head = f"{source.layout} -> {target.layout}   {source.shape} {self.dtype} on grid {grids(source, target)}"
        lines = explain(head, (source, target), self.steps, self.dtype.itemsize, self.machine)

        if not self.steps:
            return "\n".join(lines)

        if bound:
            ratio = f"ratio {cost.bytes / bound:.2f}"
        else:
            ratio = "contributions may lie anywhere" if cost.bytes else "nothing need move"
        lines.append(
            f"each rank receives at most {in_bytes(cost.bytes)} in {counted(cost.messages, 'message')}, "
            f"lower bound {in_bytes(bound)} ({ratio})"
        )

        times = f"about {in_seconds(cost.seconds)} {on_machine(self.machine)}"
        lines.append(f"peak {in_bytes(cost.peak_bytes)} on a rank, {times}; {self.optimality}")

        wire = wire_of(self.steps)
        if wire is not None:
            lines.append(f"sent as {wire}: relative error of an element at most {error_of(self.steps):.1e}")

        second = self._search().next_to(self.steps)
        if second is not None:
            lines.append(f"runner-up: {self._described(second)}")
        return "\n".join(lines)

    def why_not(self, kind: str) -> str:
        """The reason why the plan has no step of some kind: the cheapest plan with one, and its additional cost.

        Raises
        ------
        PlanError
            There is no such kind of step.

        Examples
        --------
        >>> import rote
        >>> plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(64, 64), grid=4)
        >>> print(plan.why_not("allgather"))
        allgather over 0, slice over 0
          about 31 us, 1.74 times as long: a rank receives 24.0 KiB (not 6.0 KiB), holds 88.0 KiB (not 28.0 KiB)
        """
        if any(step.kind == as_kind(kind) for step in self.steps):
            return f"the plan has this step: {kinds(self.steps)}"

        search = self._search()
        route = search.with_kind(kind)
        if route is None:
            looked_at = "" if search.exact else " of those that are looked at on so many ranks"
            return f"no plan from {self.source.layout} to {self.target.layout}{looked_at} has a step {kind}"
        return self._described(route)

    def _search(self) -> Search:
        wire = wire_of(self.steps)
        return Search(self.source, self.target, self.dtype.itemsize, self.machine, most=_LOOKED_AT, wire=wire)

    def _described(self, route: Route) -> str:
        """Another route, and why it was not chosen."""
        cost = replace(self, steps=route.steps).cost
        return f"{kinds(route.steps)}\n  {versus(cost, self.cost)}"

    def digits(self, pad: bool = True) -> Digits:
        """The plan as reductions, slices, exchanges, gathers and permutations of whole digits, on equal blocks.

        Parameters
        ----------
        pad : bool, default True
            Whether the tensor may be padded. If not, each step whose digits do not fit is a table.

        Returns
        -------
        Digits
            These operations for each step, which are the same on every rank; for the least padded tensor whose digits
            fit, or with a table for a step whose tiles fit no other way.

        Raises
        ------
        PlanError
            A layout is rooted.

        Examples
        --------
        >>> import rote
        >>> print(rote.compile("block[(0),()] -> block[(),(0)]", shape=(6, 6), grid=4).digits())
        block[(0),()] -> block[(),(0)] of (6, 6) on grid 4, padded to (8, 8)
          1. alltoall: exchange a for c (ranks 4 at 1)
             a | b, cd  ->  c | ab, d   a=4 b=2 c=4 d=2
        """
        moved: Digits = late("compiler.digits:digits")(self, pad)
        return moved

    def plot(self) -> Any:
        """A figure of the layouts around each step and of the bytes sent between ranks (`rote.plot.plan`).

        Examples
        --------
        >>> import rote
        >>> rote.compile("block[(0)] -> [()]", shape=4, grid=2).plot().savefig("plan.png")
        """
        return late("plot.figures:plan")(self, messages=True)

    def to_html(self) -> str:
        """A page for a browser that steps through the plan and shows owners, messages and costs.

        The page is self-contained and needs no server; `pathlib.Path("plan.html").write_text(page, "utf-8")` saves it.
        Its size does not grow with the tensors.

        Examples
        --------
        >>> import rote
        >>> page = rote.compile("block[(0),()] -> block[(),(0)]", shape=(6, 4), grid=2).to_html()
        >>> page[:15], "Step 1 of 1: alltoall" in page
        ('<!DOCTYPE html>', True)
        """
        return str(late("html.page:plan_page")(self))

    def _repr_html_(self) -> str:
        return str(late("html.page:plan_card")(self))

    def verify(self) -> None:
        """Prove from only the index sets that every needed element arrives exactly once, and that `cost` is right.

        Raises
        ------
        PlanError
            The proof fails; the text names the step, the rank and the element.

        Examples
        --------
        >>> import rote
        >>> rote.compile("[(0)] -> [()]", shape=5, grid=2).verify()
        """
        verify(self.source, self.target, self.steps, self.dtype, lambda: self.cost)

    def to_json(self) -> str:
        """The plan as JSON text, for `from_json`.

        Examples
        --------
        >>> import rote
        >>> rote.compile("block[(0)] -> [()]", shape=4, grid=2).to_json()[:30]
        '{"shape": [4], "grid": [2], "t'
        """

        tree = {
            "shape": self.source.shape,
            "grid": self.source.grid.shape,
            "target_grid": self.target.grid.shape,
            "dtype": self.dtype.str,
            "machine": self.machine.as_dict(),
            "found": self.optimality,
            "source": str(self.source.layout),
            "target": str(self.target.layout),
            "steps": [*map(_step_tree, self.steps)],
            "format": FORMAT,
        }
        return json.dumps(tree)

    @staticmethod
    def from_json(text: str) -> Plan:
        """The plan that a JSON text holds. Reading does not prove the plan; `verify` does that.

        Raises
        ------
        PlanError
            The text is not a plan, or one of another version of Rote's, or its steps do not lead from the source to the
            target.

        Examples
        --------
        >>> import rote
        >>> plan = rote.compile("block[(0)] -> [()]", shape=4, grid=2)
        >>> rote.Plan.from_json(plan.to_json()) == plan
        True
        """
        return read_json(text, "plan", _plan)

    @staticmethod
    def from_text(text: str, machine: Machine | str | None = None) -> Plan:
        """The plan in a text as `str(plan)` prints it. Reading does not prove the plan; `verify` does that.

        Parameters
        ----------
        text : str
            The text of a plan; a newline may end it.
        machine : Machine | str, optional
            The machine of the plan, which the text does not contain; the default machine if None.

        Raises
        ------
        PlanError
            The text is not that of a plan, or its steps do not lead from the source to the target.
        NotationError
            A layout in it is not in the language.
        LayoutError
            A layout in it does not fit the shape or the grid.

        Examples
        --------
        >>> import rote
        >>> lines = ("[(0)] -> [()] of (5,) float64 on grid 2", "  1. allgather over 0: [(0)] -> [()]")
        >>> rote.Plan.from_text("\\n".join(lines)).cost.bytes
        24
        """
        return Plan(*read_text(text), as_machine(machine))

    def __str__(self) -> str:
        grid = grids(self.source, self.target)
        lines = [f"{self.source.layout} -> {self.target.layout} of {self.source.shape} {self.dtype} on grid {grid}"]
        lines += [f"  {number}. {step}" for number, step in enumerate(self.steps, 1)] or [NOTHING]
        return "\n".join(lines)


def read_json(text: str, what: str, read: Callable[[Mapping[str, Any]], T]) -> T:
    """The plan or contraction that `read` makes of a JSON text.

    Raises:
        PlanError: the text is none, or one of another version of Rote's.
    """
    try:
        tree = json.loads(text)
        if tree.get("format") != FORMAT:
            raise PlanError(
                f"this {what} is of format {tree.get('format')!r}, and this version of Rote reads format {FORMAT}\n"
                "compile it again; plan.to_json() writes one"
            )
        return read(tree)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise PlanError(
            f"this text is no {what} ({type(error).__name__}: {error}); plan.to_json() writes one"
        ) from None


def _step_tree(step: Step) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "kind": step.kind,
        "before": str(step.before.layout),
        "after": str(step.after.layout),
        "grid_modes": step.grid_modes,
        "grid": step.after.grid.shape,
    }
    if step.wire is not None:
        tree["wire"] = str(step.wire)
    return tree


def _plan(tree: Mapping[str, Any]) -> Plan:
    def on(layout: str, grid: Iterable[int]) -> Distribution:
        return distribute(as_layout(layout), tree["shape"], tuple(grid))

    source, target = on(tree["source"], tree["grid"]), on(tree["target"], tree["target_grid"])
    steps: list[Step] = []
    at = tree["grid"]
    for step in tree["steps"]:
        before, at = on(step["before"], at), step["grid"]
        made = Step(step["kind"], before, on(step["after"], at), tuple(step["grid_modes"]))
        steps.append(sent_as(made, step.get("wire"), as_dtype(tree["dtype"])))

    check_steps(source, target, steps)
    machine = Machine(**tree["machine"])
    return Plan(source, target, as_dtype(tree["dtype"]), tuple(steps), machine, str(tree["found"]))


class StepFigures(NamedTuple):
    """The figures of a step.

    Attributes:
        kind, over: the kind of step, and its grid modes.
        layout: the layout after the step.
        received, peak: the bytes that the busiest rank receives, and the most that a rank holds during the step.
        rounds: the number of rounds of messages.
        seconds, algorithm: the model's time, and the fastest algorithm, which takes it.
        rule: the rule that the step follows, with the algorithm if there are several rounds.
    """

    kind: str
    over: str
    layout: str
    received: int
    rounds: int
    peak: int
    seconds: float
    algorithm: str
    rule: str


def figures(
    ends: tuple[Distribution, Distribution], steps: tuple[Step, ...], item: int, machine: Machine
) -> list[StepFigures]:
    """The figures of each step of a plan; for the arguments, see `explain`."""
    rows = []
    for number, step in enumerate(steps, 1):
        quick = duration(step, item, machine)
        rule = rule_of(step).name
        if quick.rounds > 1:
            rule += f", {quick.algorithm}"
        rows.append(
            StepFigures(
                kind=step.kind,
                over=_over(step),
                layout=str(step.after.layout),
                received=int(flow(step).elements.max()) * step.sent(item),
                rounds=quick.rounds,
                peak=peak(step, *ends, number == 1, number == len(steps)) * item,
                seconds=quick.seconds,
                algorithm=quick.algorithm,
                rule=rule,
            )
        )
    return rows


def explain(
    head: str, ends: tuple[Distribution, Distribution], steps: tuple[Step, ...], item: int, machine: Machine
) -> list[str]:
    """The steps of a plan as a table: for each, its layout, what it moves, its peak memory and its rule.

    Args:
        head: the line above the table.
        ends: the plan's source and target, which are held throughout.
        item: the size of an element in bytes.
        machine: the machine whose times decide the number of rounds.
    """
    if not steps:
        return [head, "nothing to do: every rank holds its block already"]
    rows = [
        ("step", "kind", "over", "layout", "received", "rounds", "peak", "rule"),
        ("", "", "", str(steps[0].before.layout), "", "", "", ""),
    ]

    for number, row in enumerate(figures(ends, steps, item, machine), 1):
        cells = in_bytes(row.received), str(row.rounds), in_bytes(row.peak)
        rows.append((str(number), row.kind, row.over, row.layout, *cells, row.rule))
    return [head, *table(rows, range(4, 7))]


def grids(source: Distribution, target: Distribution) -> str:
    """The grid of both ends, or the two grids if they differ."""
    return " to ".join(dict.fromkeys([str(source.grid), str(target.grid)]))


def kinds(steps: tuple[Step, ...]) -> str:
    """The kinds of some steps as one text."""
    return ", ".join(f"{step.kind} over {_over(step)}" for step in steps) or "no step"


def _over(step: Step) -> str:
    """The grid modes of a step, and the grid that it leads to if that is a different one."""
    over = ",".join(map(str, step.grid_modes)) or "-"
    return f"{over} to {step.after.grid}" if step.across else over


def versus(cost: Cost, best: Cost) -> str:
    """Why a plan of some cost was not chosen."""
    why = []
    if cost.bytes > best.bytes:
        why.append(f"receives {in_bytes(cost.bytes)} (not {in_bytes(best.bytes)})")
    if cost.peak_bytes > best.peak_bytes:
        why.append(f"holds {in_bytes(cost.peak_bytes)} (not {in_bytes(best.peak_bytes)})")
    if cost.messages > best.messages:
        why.append(f"hears from {cost.messages} (not {best.messages}) ranks")

    times = f"about {in_seconds(cost.seconds)}"

    if best.seconds:
        ratio = cost.seconds / best.seconds
        times += f", {ratio:.2f} times as long" if abs(ratio - 1) >= 0.005 else ", as long"
    return f"{times}: a rank {', '.join(why)}" if why else f"{times}: more steps or rounds of messages"


def on_machine(machine: Machine) -> str:
    """The machine that takes the times of a cost, in words: the default one, its name, or one with its latency.

    >>> on_machine(Machine()), on_machine(Machine(latency=(1e-6, 5e-6)))
    ('on the default machine', 'on a machine of latency 1.0 us, 5.0 us')
    """
    if machine == DEFAULT:
        return "on the default machine"
    if machine.name:
        return f"on the machine {machine.name}"
    latencies = machine.latency if isinstance(machine.latency, tuple) else (machine.latency,)
    return f"on a machine of latency {', '.join(map(in_seconds, latencies))}"

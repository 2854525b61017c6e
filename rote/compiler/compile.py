"""compile: a cheapest plan, with proof, between any two distributions of the same tensor on the same ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..caches import memoized
from ..errors import PlanError, counted
from ..layout.distribution import Distribution, distribution_of
from ..layout.grid import Grid, grid_shape, integer, tensor_shape
from ..layout.layout import Transition, parse_transition
from ..machines.machine import DEFAULT, Machine, as_machine
from ..units import in_bytes
from .plan import Plan
from .search import Route, Search
from .step import Step, as_dtype, as_kind, as_wire

__all__ = ["check_ends", "compile", "ends", "expect", "tradeoff"]

Shape = Iterable[int] | int | None
Ranks = Grid | Iterable[int] | int | None


def compile(
    source: Distribution | Transition | str,
    target: Distribution | None = None,
    dtype: npt.DTypeLike = "f8",
    *,
    shape: Shape = None,
    grid: Ranks = None,
    machine: Machine | str | None = None,
    max_bytes: int | None = None,
    wire: str | None = None,
) -> Plan:
    """Return a cheapest plan from one distribution to another, verified.

    Parameters
    ----------
    source : Distribution | Transition | str
        The first distribution; or a transition `"A -> B"`, with `shape` and `grid`.
    target : Distribution, optional
        The second distribution; None after a transition.
    dtype : DTypeLike, default 'f8'
        The dtype of the elements, which gives their size in bytes.
    shape : Iterable[int] | int, optional
        With a transition, the tensor's extents.
    grid : Grid | Iterable[int] | int, optional
        With a transition, the grid of ranks, or their number.
    machine : Machine | str, optional
        The times from which the cost is computed.
    max_bytes : int, optional
        The most bytes that any rank may hold at once: input, output and buffers (`plan.cost.peak_bytes`).
    wire : str, optional
        "f4" rounds elements of double precision (f8, c16) to single while they travel, which halves the bytes of
        messages; elements that stay on a rank keep all their bits (see `DistTensor.redistribute`).

    Returns
    -------
    Plan
        The plan, which is the same on every rank.

    Raises
    ------
    PlanError
        The distributions are of different tensors or numbers of ranks; every plan needs more than `max_bytes` (the text
        says how much the smallest needs); or `wire` is another value, or the dtype is not of double precision.
    LayoutError
        The shape, the grid or `max_bytes` is not made of integers, or the layouts do not fit.
    NotationError
        The text is not a transition.

    See Also
    --------
    rote.tradeoff : The plans that no other beats in both seconds and memory.
    rote.expect : Assert what a plan does.
    rote.predict : The seconds and bytes of a plan on a machine.

    Notes
    -----
    Source: the global redistribution of Dalcin et al. (2019, section 3.2, eq. 11), extended to several modes at once
    and to all kinds; the statements before and after of Popovici et al. (2019, section 3.1.3).

    Examples
    --------
    >>> import rote
    >>> rote.compile("[(0),(1)] -> [(),(0,1)]", shape=(4, 6), grid=(2, 2)).steps[0].kind
    'alltoall'
    >>> texts = ("[(0),()] -> [(),()]", "[(0),()] -> [(),()]|(0)")
    >>> [rote.compile(text, shape=(4, 6), grid=2).steps[0].kind for text in texts]
    ['allgather', 'gather']
    >>> swap = "[(0),()] -> [(),(0)]"
    >>> [rote.compile(swap, shape=(4, 6), grid=2, wire=wire).cost.bytes for wire in (None, "f4")]
    [48, 24]
    """

    pair = ends(source, target, shape, grid)
    most = None if max_bytes is None else integer(max_bytes, "max_bytes")
    element = as_dtype(dtype)
    narrower = None if wire is None else as_wire(wire, element)
    times = DEFAULT if machine is None else as_machine(machine).on(pair[0].grid.size)
    return _compile(*pair, element, times, most, narrower)


def tradeoff(
    source: Distribution | Transition | str,
    target: Distribution | None = None,
    dtype: npt.DTypeLike = "f8",
    *,
    shape: Shape = None,
    grid: Ranks = None,
    machine: Machine | str | None = None,
) -> tuple[Plan, ...]:
    """The plans that no other plan beats in both seconds and peak memory, the fastest first.

    If their `optimality` is "optimal", these are all such plans; if it is "best found", the search had to stop.
    Arguments and errors are those of `compile`.

    Parameters
    ----------
    source : Distribution | Transition | str
        As for `compile`.
    target : Distribution, optional
        As for `compile`.
    dtype : DTypeLike, default 'f8'
        As for `compile`.
    shape : Iterable[int] | int, optional
        As for `compile`.
    grid : Grid | Iterable[int] | int, optional
        As for `compile`.
    machine : Machine | str, optional
        As for `compile`.

    See Also
    --------
    rote.compile : The one plan within a limit of memory.

    Examples
    --------
    >>> import rote
    >>> plans = rote.tradeoff("[(0)]+(1) -> [()]", shape=4096, grid=(2, 2))
    >>> [[step.kind for step in plan.steps] for plan in plans]
    [['allreduce', 'allgather'], ['reduce_scatter', 'allgather']]
    """
    source, target = ends(source, target, shape, grid)
    kind, machine = as_dtype(dtype), as_machine(machine).on(source.grid.size)
    check_ends(source, target, kind, machine)
    search = Search(source, target, kind.itemsize, machine)
    return tuple(_proved(search, route, kind, within=number > 0) for number, route in enumerate(search.front()))


def ends(
    source: Distribution | Transition | str, target: Distribution | None, shape: Shape, grid: Ranks
) -> tuple[Distribution, Distribution]:
    """The two ends of a transition, which is given as two distributions, or as one transition, a shape and a grid.

    Raises:
        PlanError: the transition is given in another way.
        NotationError: a text is not a transition.
    """
    if isinstance(source, Distribution):
        if target is None or shape is not None or grid is not None:
            raise PlanError("give two distributions, or one transition 'A -> B' with shape= and grid=")
        return source, target
    if target is not None or shape is None or grid is None:
        raise PlanError("a transition is compiled for a shape and a grid; give 'A -> B' with shape=… and grid=…")
    transition = parse_transition(source) if isinstance(source, str) else source
    if not isinstance(transition, Transition):
        raise PlanError(f"{source!r} is no transition; write 'A -> B'")
    extents, ranks = tensor_shape(shape), grid_shape(grid)
    return distribution_of(transition.source, extents, ranks), distribution_of(transition.target, extents, ranks)


@memoized(4096, once=True)  # ranks in one process compile the same plan at the same time
def _compile(
    source: Distribution,
    target: Distribution,
    dtype: np.dtype[Any],
    machine: Machine,
    max_bytes: int | None,
    wire: np.dtype[Any] | None,
) -> Plan:
    check_ends(source, target, dtype, machine)
    search = Search(source, target, dtype.itemsize, machine, wire=wire)
    route = search.cheapest()
    if max_bytes is None or route.peak * dtype.itemsize <= max_bytes:
        return _proved(search, route, dtype)
    smaller = search.within(max_bytes // dtype.itemsize)
    if smaller is None:
        raise _too_large(search, route, max_bytes)
    return _proved(search, smaller, dtype, within=True)


def _too_large(search: Search, fastest: Route, max_bytes: int) -> PlanError:
    """The error if no plan stays within the bound on memory."""
    least = min(route.peak for route in search.front()) * search.item
    known = "" if search.exact else " of those that were looked at"
    return PlanError(
        f"no plan keeps within max_bytes={max_bytes}: the fastest needs {counted(fastest.peak * search.item, 'byte')} "
        f"on some rank, the least that any needs{known} is {least}\n"
        f"write max_bytes={least} or more, or take more ranks"
    )


def _proved(search: Search, route: Route, dtype: np.dtype[Any], within: bool = False) -> Plan:
    optimality = "optimal" if search.exact else "best found"
    if within:
        optimality += f" within {in_bytes(route.peak * search.item)}"
    plan = Plan(search.source, search.target, dtype, route.steps, search.machine, optimality)
    plan.verify()
    return plan


def check_ends(source: Distribution, target: Distribution, dtype: np.dtype[Any], machine: Machine = DEFAULT) -> None:
    """Refuse two ends between which there is no plan.

    Raises:
        PlanError: they are of different tensors or numbers of ranks, or complex numbers would need a max or min.
    """
    if source.shape != target.shape:
        raise PlanError(f"a tensor keeps its shape: the source has {source.shape}, the target {target.shape}")
    if source.grid.size != target.grid.size:
        raise PlanError(
            f"a plan stays on its ranks: the source is on grid {source.grid} of {source.grid.size}, "
            f"the target on grid {target.grid} of {target.grid.size}"
        )

    for dist in (source, target):
        machine.along(dist.grid)
        if dist.partial and dist.layout.op in ("max", "min") and dtype.kind == "c":
            raise PlanError(f"complex numbers have no {dist.layout.op}: {dist.layout} of {dtype}")


class Planned(Protocol):
    """What `expect` takes: a `Plan` or a `Contraction`."""

    @property
    def steps(self) -> tuple[Step, ...]: ...
    @property
    def cost(self) -> Any: ...
    def explain(self) -> str: ...


def expect(
    plan: Planned,
    *,
    steps: Sequence[str] | None = None,
    max_bytes: int | None = None,
    max_messages: int | None = None,
    max_peak_bytes: int | None = None,
) -> None:
    """Assert that a plan is as a test expects. Arguments that are left out are not checked.

    Parameters
    ----------
    plan : Planned
        The plan, or a contraction.
    steps : Sequence[str], optional
        The kinds of its steps, in order, those of all moves of a contraction; () if there is nothing to move.
    max_bytes, max_messages : int, optional
        The most that any one rank may receive.
    max_peak_bytes : int, optional
        The most that any one rank may hold at once.

    Raises
    ------
    AssertionError
        The plan differs; the text says how, and explains the plan.
    PlanError
        `steps` names a kind that does not exist.
    TypeError
        `plan` is neither a plan nor a contraction.

    See Also
    --------
    rote.compile : Make a plan.

    Examples
    --------
    >>> import rote
    >>> plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(6, 4), grid=2)
    >>> rote.expect(plan, steps=("alltoall",), max_bytes=plan.lower_bound)
    >>> rote.expect(plan, steps=("allgather", "slice"), max_messages=1, max_bytes=40)
    Traceback (most recent call last):
    AssertionError: the plan is not as expected
      steps: allgather, slice expected, but it has alltoall
      bytes: at most 40 expected, but it has 48
    <BLANKLINE>
    block[(0),()] -> block[(),(0)]   (6, 4) float64 on grid 2
      step  kind      over  layout         received  rounds   peak  rule
                            block[(0),()]
      1     alltoall  0     block[(),(0)]      48 B       1  288 B  move entries
    each rank receives at most 48 B in 1 message, lower bound 48 B (ratio 1.00)
    peak 288 B on a rank, about 12 us on the default machine; optimal
    runner-up: allgather over 0, slice over 0
      about 22 us, 1.83 times as long: a rank receives 96 B (not 48 B), holds 672 B (not 288 B)
    """
    __tracebackhide__ = True  # pytest then shows the caller's line, not this file's
    if not hasattr(plan, "steps"):
        rule = f"rote.expect takes a plan or a contraction, not {type(plan).__name__}"
        raise TypeError(f"{rule}\nwrite rote.compile(…) or rote.compile_einsum(…) for one")

    wrong = []
    if steps is not None:
        expected, kinds = _kinds(steps), tuple(step.kind for step in plan.steps)
        if expected != kinds:
            wrong.append(f"  steps: {_listed(expected)} expected, but it has {_listed(kinds)}")

    cost = plan.cost
    for name, most, has in (
        ("bytes", max_bytes, cost.bytes),
        ("messages", max_messages, cost.messages),
        ("peak bytes", max_peak_bytes, cost.peak_bytes),
    ):
        if most is not None and has > most:
            wrong.append(f"  {name}: at most {most} expected, but it has {has}")

    if wrong:
        raise AssertionError("\n".join(["the plan is not as expected", *wrong, "", plan.explain()]))


def _kinds(steps: Sequence[str]) -> tuple[str, ...]:
    if isinstance(steps, str):
        raise PlanError(f"the kinds of a plan's steps must be a sequence, not {steps!r}\nwrite steps=({steps!r},)")
    return tuple(as_kind(kind) for kind in steps)


def _listed(kinds: tuple[str, ...]) -> str:
    return ", ".join(kinds) or "none"

"""Prediction: how long a planned thing takes on a machine, by which causes, in how much memory.

The seconds are those of the cost model. The part of a cause is what the moves take less once its times are zero, one
cause after the other, so the parts add up to the whole. A machine that is read from a profile has a range for each of
its numbers: all at their fast and at their slow ends give the range of the seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from .compiler.plan import in_bytes, in_seconds, on_machine, table
from .compiler.tasks import Planned, Task, Tasks, Transfer, task_seconds
from .errors import counted
from .layout.grid import Grid
from .machines.machine import Machine, as_machine
from .machines.work import work_seconds

__all__ = ["TIE", "Prediction", "deciders", "ends", "machine_name", "placement", "predict", "predicted"]

TIE = 1.05  # times as slow: what is nearer to the fastest is as fast, for a model knows no better
_LOCAL = {"fft": "transforms", "twiddle": "twiddles", "product": "products"}
_LEVELS = {  # by the numbers of a network that are zero without it
    "network between groups": ("far_time",),
    "network between nodes": ("byte_time", "link_time"),
    "network in nodes": ("near_byte_time",),
}
_BOTTLENECKS = {"byte_time": "injection", "link_time": "the links of the torus", "far_time": "links between groups"}
_LATENCIES = ("latency", "near_latency", "far_latency", "message_time")


@dataclass(frozen=True, slots=True)
class Prediction:
    """How long ranks take, and why. It prints itself; `predict` makes it.

    Attributes:
        name: what is predicted.
        machine: the name of the machine.
        placement: where the modes of the grid lie on it.
        seconds: the model's time.
        range: the seconds if all numbers of the machine's profile are at their fast and at their slow ends; the seconds
            twice if it has no profile.
        parts: the seconds by cause, largest first: "transforms", "twiddles", "products", "copies", "sums", "latency",
            "software" and the network by level. They add up to the seconds.
        limit: what takes the most time.
        peak_bytes, node_bytes: the most memory of a rank, and of the ranks of a node.
        memory_bytes: the memory of a node; 0 if the machine does not say.

    >>> from .compiler.compile import compile
    >>> found = predict(compile("block[(0)] -> [()]", shape=4096, grid=4))
    >>> found.limit, found.fits, found.machine
    ('software', True, 'default machine')
    """

    name: str
    machine: str
    placement: str
    seconds: float
    range: tuple[float, float]
    parts: tuple[tuple[str, float], ...]
    limit: str
    peak_bytes: int
    node_bytes: int
    memory_bytes: int

    @property
    def fits(self) -> bool:
        """Whether a node has the memory, as far as the machine says."""
        return not self.memory_bytes or self.node_bytes <= self.memory_bytes

    def as_dict(self) -> dict[str, Any]:
        """The attributes by name, as values of JSON.

        >>> from .compiler.compile import compile
        >>> predict(compile("block[(0)] -> [()]", shape=4096, grid=4)).as_dict()["peak_bytes"]
        81920
        """
        return asdict(self) | {"range": [*self.range], "parts": dict(self.parts)}

    def __str__(self) -> str:
        low, high = self.range
        between = f", {in_seconds(low)} to {in_seconds(high)} within the ranges of its numbers" * (low < high)
        rows = [(name, in_seconds(part), f"{100 * part / self.seconds:.2g} %") for name, part in self.parts]
        memory = f"{in_bytes(self.peak_bytes)} on a rank"
        if self.memory_bytes:
            much = "" if self.fits else ", too much"
            memory += f", {in_bytes(self.node_bytes)} on a node of {in_bytes(self.memory_bytes)}{much}"
        lines = [f"{self.machine}, {self.placement}", f"{self.name}: about {in_seconds(self.seconds)}{between}"]
        return "\n".join([*lines, *table(rows, {1, 2}), f"memory {memory}; limited by {self.limit}"])


def predict(planned: Planned, machine: Machine | str | None = None) -> Prediction:
    """Predict how long a plan, an FFT (forward), a walk or a contraction takes, without running it.

    Args:
        planned: what `compile`, `fft.FFT` or `compile_einsum` made, or a walk of `fft.compare`.
        machine: a machine, its name (`Machine.names()`) or its file; if None, the one for which it was planned. The
            plan stays as it is: on another machine another one may be faster.

    Returns:
        The seconds by cause with their range, the memory, and what limits.

    Raises:
        TypeError: it is nothing planned.
        PlanError: there is no such machine, or it has fewer nodes.

    >>> import rote
    >>> plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(64, 64), grid=4, dtype="c16")
    >>> print(predict(plan))
    default machine, grid 4
    block[(0),()] -> block[(),(0)] of (64, 64) complex128: about 20 us
      software   10 us   50 %
      latency   6.0 us   30 %
      copies    2.9 us   14 %
      network   1.2 us  6.1 %
    memory 56.0 KiB on a rank; limited by software
    """
    if not hasattr(planned, "tasks"):
        raise TypeError(
            f"a plan, an FFT, a walk or a contraction is predicted, not {type(planned).__name__}\n"
            "write rote.compile, rote.fft.FFT or rote.compile_einsum to plan one"
        )
    tasks = planned.tasks()
    return predicted(tasks, tasks.machine if machine is None else as_machine(machine))


def predicted(tasks: Tasks, machine: Machine) -> Prediction:
    """The prediction of tasks on a machine."""
    seconds = task_seconds(tasks.every, machine)
    low, high = (task_seconds(tasks.every, end) for end in ends(machine))
    parts = _parts(tasks.every, machine)
    network = machine.network
    on_node = 1 if network is None else min(network.ranks_per_node, tasks.grid.size)
    memory = 0 if machine.profile is None else int(machine.profile["memory"].value)
    return Prediction(
        name=tasks.name,
        machine=machine_name(machine),
        placement=placement(machine, tasks.grid),
        seconds=seconds,
        range=(min(low, seconds), max(high, seconds)),
        parts=tuple(parts.items()),
        limit=_limit(parts, tasks.every, machine),
        peak_bytes=tasks.peak_bytes,
        node_bytes=tasks.peak_bytes * on_node,
        memory_bytes=memory,
    )


def machine_name(machine: Machine) -> str:
    """A machine's name, and its ranks on a node.

    >>> machine_name(Machine()), machine_name(Machine(latency=1e-6))
    ('default machine', 'machine of latency 1.0 us')
    """
    if not machine.name or machine.network is None:
        return machine.name or on_machine(machine).removeprefix("on ").removeprefix("the ").removeprefix("a ")
    network = machine.network
    ranks, threads = counted(network.ranks_per_node, "rank"), counted(network.threads, "thread")
    return f"{machine.name}, {ranks} of {threads} on a node"


def placement(machine: Machine, grid: Grid) -> str:
    """Where the modes of a grid lie on a machine, in one line."""
    on = f"grid {grid}"
    return on if machine.network is None else f"{on}: {machine.network.placement(grid).replace(chr(10), '; ')}"


def ends(machine: Machine) -> tuple[Machine, Machine]:
    """The machine with all numbers of its profile at their fast ends, and at their slow ends."""
    return machine.at("fast"), machine.at("slow")


def _parts(tasks: tuple[Task, ...], machine: Machine) -> dict[str, float]:
    """The seconds by cause, the largest first, without those that are zero."""
    parts = dict.fromkeys(_LOCAL.values(), 0.0)
    moves = [task for task in tasks if isinstance(task, Transfer)]
    for task in tasks:
        if not isinstance(task, Transfer):
            parts[_LOCAL[task.kind]] += work_seconds(task, machine)
    left = task_seconds(moves, machine)
    for name, without in _without_causes(machine):
        less = task_seconds(moves, without)
        parts[name] = left - less
        left = less
    found = sorted(parts.items(), key=lambda part: -part[1])
    return {name: seconds for name, seconds in found if seconds > 1e-9 * found[0][1]}


def _without_causes(machine: Machine) -> Iterator[tuple[str, Machine]]:
    """The causes of a move's time, each with the machine that has neither it nor those before."""
    causes: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
        "software": (("step_time",), ()),
        "latency": (("latency",), _LATENCIES),
        "copies": (("copy_time",), ()),
        "sums": (("reduce_time",), ()),
    }
    levels = {name: ((), times) for name, times in _LEVELS.items()}
    for name, times in (causes | (levels if machine.network else {"network": (("byte_time",), ())})).items():
        machine = _without(machine, *times)
        yield name, machine


def _without(machine: Machine, times: Iterable[str], of_network: Iterable[str] = ()) -> Machine:
    """A machine that does some things in no time."""
    free: dict[str, Any] = dict.fromkeys(times, 0.0)
    if machine.network is not None:
        none: dict[str, Any] = dict.fromkeys(of_network, 0.0)
        free["network"] = replace(machine.network, **none)
    return replace(machine, **free)


def _limit(parts: dict[str, float], tasks: tuple[Task, ...], machine: Machine) -> str:
    """The largest part; of the network between nodes, what it is there that takes the time."""
    largest = next(iter(parts), "nothing")
    if not largest.startswith("network between"):
        return largest
    less = {name: task_seconds(tasks, _without(machine, (), [name])) for name in _BOTTLENECKS}
    return f"{largest}: {_BOTTLENECKS[min(less, key=less.__getitem__)]}"


def deciders(rivals: Sequence[tuple[Task, ...]], machine: Machine) -> tuple[str, ...]:
    """The numbers of a machine's profile each of which, at one of its ends, makes another rival than the first win.

    Args:
        rivals: the tasks of each; the first wins on the machine.
    """
    if machine.profile is None:
        return ()
    found = []
    for name, number in machine.profile.numbers.items():
        if number.low == number.high or name in ("memory", "nodes"):
            continue
        for end in ("low", "high"):
            times = [task_seconds(tasks, machine.at({name: end})) for tasks in rivals]
            if times[0] > min(times):
                found.append(name)
                break
    return tuple(found)

"""Prediction: how long a planned thing takes on a machine, by which causes, in how much memory.

The seconds are those of the cost model. The part of a cause is what the moves take less once its times are zero, one
cause after the other, so the parts add up to the whole. A machine that is read from a profile has a range for each of
its numbers: all at their fast and at their slow ends give the range of the seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from .compiler.plan import on_machine
from .compiler.tasks import Planned, Task, Tasks, Transfer, task_seconds
from .errors import counted
from .lazy import late
from .machines.machine import Machine, as_machine
from .machines.network import Network
from .units import in_bytes, in_seconds, table

__all__ = ["TIE", "Prediction", "deciders", "machine_name", "predict"]

TIE = 1.05  # times as slow: what is nearer to the fastest is as fast, for a model knows no better
_LOCAL = {"fft": "transforms", "twiddle": "twiddles", "copy": "copies", "product": "products"}
_CAUSES = {  # of a move's time: the numbers of a machine and of its network that are zero without each
    "software": ("step_time",),
    "latency": ("latency", "near_latency", "far_latency", "message_time"),
    "copies": ("copy_time",),
    "sums": ("reduce_time",),
    "network between groups": ("far_time",),
    "network between nodes": ("byte_time", "link_time"),
    "network in nodes": ("near_byte_time",),
}
_BOTTLENECKS = {"byte_time": "injection", "link_time": "the links of the torus", "far_time": "links between groups"}


@dataclass(frozen=True, slots=True)
class Prediction:
    """How long ranks take on a machine, and why. It prints itself; `predict` makes it.

    Attributes
    ----------
    tasks : Tasks
        What ranks do; its `name`, and the `grid` and `layouts` of what is planned.
    machine : Machine
        The machine.

    Examples
    --------
    >>> import rote
    >>> prediction = rote.predict(rote.compile("block[(0)] -> [()]", shape=4096, grid=4))
    >>> prediction.limit, prediction.fits, prediction.peak_bytes
    ('software', True, 81920)
    """

    tasks: Tasks
    machine: Machine

    @property
    def placement(self) -> str:
        """Where the modes of the grid lie on the machine, in one line."""
        grid, network = self.tasks.grid, self.machine.network
        return f"grid {grid}" + ("" if network is None else f": {network.placement(grid).replace(chr(10), '; ')}")

    @property
    def seconds(self) -> float:
        """The model's time."""
        return task_seconds(self.tasks.every, self.machine)

    @property
    def range(self) -> tuple[float, float]:
        """The seconds with all numbers of the machine's profile at their fast and at their slow ends, if it has one."""
        low, high = (replace(self, machine=self.machine.at(end)).seconds for end in ("fast", "slow"))
        return min(low, self.seconds), max(high, self.seconds)

    @property
    def parts(self) -> tuple[tuple[str, float], ...]:
        """The seconds by cause, largest first: "transforms", "copies", "latency", the network by level, and others.

        They add up to the seconds.
        """
        parts, moves, machine = dict.fromkeys(_LOCAL.values(), 0.0), list[Task](), self.machine
        for task in self.tasks.every:
            if isinstance(task, Transfer):
                moves.append(task)
            else:
                parts[_LOCAL[task.kind]] += task_seconds([task], machine)

        # One cause after the other is made free, on top of those before it: so the differences add up.
        for name, times in _CAUSES.items():
            less = _without(machine, *times)
            name = name if machine.network else name.removesuffix(" between nodes")
            parts[name] = parts.get(name, 0.0) + task_seconds(moves, machine) - task_seconds(moves, less)
            machine = less

        # What is left of a difference of sums by rounding is no part.
        largest_first = sorted(parts.items(), key=lambda part: -part[1])
        return tuple([(name, seconds) for name, seconds in largest_first if seconds > 1e-9 * largest_first[0][1]])

    @property
    def limit(self) -> str:
        """The part that takes the most time; of the network between nodes, also what it is there."""
        largest = next(iter(dict(self.parts)), "nothing")
        if not largest.startswith("network between"):
            return largest

        narrowest = min(_BOTTLENECKS, key=lambda time: task_seconds(self.tasks.every, _without(self.machine, time)))
        return f"{largest}: {_BOTTLENECKS[narrowest]}"

    @property
    def peak_bytes(self) -> int:
        """The most memory of a rank."""
        return self.tasks.peak_bytes

    @property
    def node_bytes(self) -> int:
        """The most memory of the ranks of a node."""
        network = self.machine.network
        return self.peak_bytes * (1 if network is None else min(network.ranks_per_node, self.tasks.grid.size))

    @property
    def memory_bytes(self) -> int:
        """The memory of a node; 0 if the machine does not say."""
        return 0 if self.machine.profile is None else int(self.machine.profile["memory"].value)

    @property
    def fits(self) -> bool:
        """Whether a node has the memory, as far as the machine says."""
        return not self.memory_bytes or self.node_bytes <= self.memory_bytes

    @property
    def node_hours(self) -> float:
        """Hours of all nodes on which the ranks run, for one run; 0 if the machine has no nodes."""
        network = self.machine.network
        nodes = 0 if network is None else ceil(self.tasks.grid.size / network.ranks_per_node)
        return nodes * self.seconds / 3600

    @property
    def core_hours(self) -> float:
        """Hours of all cores of these nodes, for one run, used or not; 0 if the machine does not say."""
        return 0.0 if self.machine.profile is None else self.node_hours * self.machine.profile["cores"].value

    def as_dict(self) -> dict[str, Any]:
        """The figures by name, as values of JSON.

        Examples
        --------
        >>> import rote
        >>> rote.predict(rote.compile("block[(0)] -> [()]", shape=4096, grid=4)).as_dict()["peak_bytes"]
        81920
        """
        names = "placement seconds range parts limit peak_bytes node_bytes memory_bytes node_hours core_hours"

        about = {"name": self.tasks.name, "machine": machine_name(self.machine)}
        return about | {name: getattr(self, name) for name in names.split()} | {"parts": dict(self.parts)}

    def _repr_html_(self) -> str:
        return str(late("html.predictions:prediction_card")(self))

    def __repr__(self) -> str:
        return f"<Prediction of {self.tasks.name}: about {in_seconds(self.seconds)}>"

    def __str__(self) -> str:
        seconds, (low, high) = self.seconds, self.range
        between = f", {in_seconds(low)} to {in_seconds(high)} within the ranges of its numbers" * (low < high)

        rows = [(name, in_seconds(part), f"{100 * part / seconds:.2g} %") for name, part in self.parts]

        memory = f"{in_bytes(self.peak_bytes)} on a rank"
        if self.memory_bytes:
            memory += f", {in_bytes(self.node_bytes)} on a node of {in_bytes(self.memory_bytes)}"

        lines = [] if self.fits else [f"too much memory: {memory}"]
        lines += [
            f"{machine_name(self.machine)}, {self.placement}",
            f"{self.tasks.name}: about {in_seconds(seconds)}{between}",
            *self._planned_for(),
        ]
        lines += [*table(rows, {1, 2}), f"memory {memory}; limited by {self.limit}"]
        if self.core_hours:
            hours = (("node", self.node_hours), ("core", self.core_hours))
            lines.append("1000 of them: " + ", ".join([f"{float(f'{1000 * h:.3g}'):,g} {of}-hours" for of, h in hours]))
        return "\n".join(lines)

    def _planned_for(self) -> list[str]:
        """A line that names the machine for which it was planned if that is another one; else none."""
        planned, replanned = self.tasks.machine.on(self.tasks.grid.size), self.tasks.replanned
        if machine_name(planned) == machine_name(self.machine):
            return []

        line = f"planned for {machine_name(planned)}"
        if replanned is not None:
            line += f"; replanned: {in_seconds(task_seconds(replanned(self.machine).every, self.machine))}"
        return [line]


def predict(planned: Planned, machine: Machine | str | None = None) -> Prediction:
    """Predict how long a plan, an FFT (forward), a walk or a contraction takes, without running it.

    Parameters
    ----------
    planned : Planned
        What `compile`, `fft.FFT` or `compile_einsum` made, or a walk of `fft.compare`.
    machine : Machine | str, optional
        A machine, its name (`Machine.names()`) or its file; if None, the one for which it was planned. The plan stays
        as it is: on another machine another one may be faster.

    Returns
    -------
    Prediction
        The seconds by cause with their range, the memory, and what limits.

    Raises
    ------
    TypeError
        It is nothing planned.
    PlanError
        There is no such machine, or it has fewer nodes.

    See Also
    --------
    rote.fft.compare : Compare walks of an FFT.
    rote.fft.scaling : Predict an FFT on many numbers of ranks.

    Examples
    --------
    >>> import rote
    >>> plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(64, 64), grid=4, dtype="c16")
    >>> print(rote.predict(plan))
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
    on = (tasks.machine if machine is None else as_machine(machine)).on(tasks.grid.size)
    on.along(tasks.grid)  # refuses a grid for which it has no nodes
    return Prediction(tasks, on)


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


def _without(machine: Machine, *times: str) -> Machine:
    """A machine that does some things in no time, and its network too."""
    network, free = machine.network, dict.fromkeys(times, 0.0)
    if network is not None:
        network = replace(network, **_of(network, free))
    return replace(machine, network=network, **_of(machine, free))


def _of(value: Machine | Network, numbers: dict[str, float]) -> dict[str, Any]:
    """The numbers that a machine or a network has."""
    return {name: number for name, number in numbers.items() if hasattr(value, name)}


def deciders(rivals: Sequence[Prediction]) -> tuple[str, ...]:
    """The numbers of the machine's profile each of which, at one of its ends, makes another rival win than the first.

    Args:
        rivals: predictions on one machine, on which the first is the fastest.
    """
    machine, names = rivals[0].machine, list[str]()
    for name, number in machine.profile.numbers.items() if machine.profile else ():
        if number.low < number.high and name not in ("memory", "nodes"):
            for at in (machine.at({name: "low"}), machine.at({name: "high"})):
                first, *others = [replace(rival, machine=at).seconds for rival in rivals]
                if first > min(others, default=first):
                    names.append(name)
    return tuple(dict.fromkeys(names))

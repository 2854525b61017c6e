"""Tasks: what ranks do for a plan, a transform or a contraction, in order. All that is priced is priced by them.

A task is the step of a move, in which ranks exchange elements, or local work. Whoever plans hands out tasks, and
whoever prices sees nothing else, so the choice between walks and the prediction of a run never disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from ..layout.grid import Grid
from ..machines.machine import Machine
from ..machines.work import Work, work_seconds
from .cost import duration
from .step import Step

__all__ = ["Planned", "Task", "Tasks", "Transfer", "task_seconds", "transfers"]


@dataclass(frozen=True, slots=True)
class Transfer:
    """A step whose elements have `item` bytes."""

    step: Step
    item: int


Task = Transfer | Work


@dataclass(frozen=True, slots=True)
class Tasks:
    """What ranks do, in order.

    Attributes:
        name: what is planned, in a few words.
        grid: the grid on which it begins.
        layouts: those in which it begins, and ends.
        machine: the machine for which it is planned.
        every: the tasks.
        peak_bytes: the most that any one rank holds.
        replanned: gives the tasks of the same thing, planned for another machine; None if nobody replans it.
    """

    name: str
    grid: Grid
    layouts: tuple[str, str]
    machine: Machine
    every: tuple[Task, ...]
    peak_bytes: int
    replanned: Callable[[Machine], Tasks] | None = field(default=None, compare=False, repr=False)


class Planned(Protocol):
    """A plan, a walk, an FFT or a contraction."""

    def tasks(self) -> Tasks:
        """What ranks do for it."""


def transfers(steps: Iterable[Step], item: int) -> tuple[Transfer, ...]:
    """Steps as tasks."""
    return tuple([Transfer(step, item) for step in steps])


def task_seconds(tasks: Iterable[Task], machine: Machine) -> float:
    """The seconds of tasks on a machine, one after the other.

    >>> task_seconds([Work("product", 0, flops=10**9)], Machine(flop_time=1e-10))
    0.1
    """
    seconds = 0.0
    for task in tasks:
        if isinstance(task, Transfer):
            seconds += duration(task.step, task.item, machine).seconds
        else:
            seconds += work_seconds(task, machine)
    return seconds

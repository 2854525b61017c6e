"""What a solver will move, hold and take, before it runs: `rote.linalg.plan("eigh", 20_000, ranks=64)`.

Moves to tiles and back are compiled, as a run compiles them. The figures of the solver itself are those of ScaLAPACK's
users' guide: per rank C_f n³ / P operations and C_v n² / sqrt(P) words; and C_m messages for each tile along the
diagonal, or for each row where a column is factored after the other.

Source: Blackford et al. 1997, ScaLAPACK Users' Guide, table 5.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2, prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..compiler.compile import compile
from ..compiler.plan import Plan
from ..compiler.step import as_dtype
from ..errors import PlanError
from ..layout.distribution import Distribution
from ..layout.grid import Grid
from ..layout.layout import Layout, as_layout
from ..machines.machine import Machine, as_machine
from ..units import in_bytes, in_seconds
from .dense import squarest, tiles_on

__all__ = ["SolverPlan", "plan"]


class _Counts(NamedTuple):
    """The figures of a solver, for P ranks: of n³ / P operations, of n² / sqrt(P) words, and of messages.

    Attributes:
        flops: the operations.
        words: the words, and those for each doubling of P.
        messages: the messages for each tile along the diagonal, and those for each doubling of P.
        per_row: whether messages are for each row instead.
        blocks: the blocks that a rank holds beside its operand and its result.
        result: whether there is a matrix that moves back.
    """

    flops: float
    words: tuple[float, float]
    messages: tuple[float, float]
    per_row: bool = False
    blocks: float = 2
    result: bool = True


_LU = _Counts(2 / 3, (3, 0.25), (6, 1), per_row=True)
_COUNTS = {
    "cholesky": _Counts(1 / 3, (2, 0.5), (4, 1)),
    "solve": _LU._replace(result=False),
    "inv": _LU._replace(flops=2),
    "det": _LU._replace(result=False),
    "slogdet": _LU._replace(result=False),
    "eigh": _Counts(22 / 3, (0, 5), (0, 9), per_row=True, blocks=4.2),
    "eigvalsh": _Counts(4 / 3, (0, 2.5), (0, 9), per_row=True, result=False),
    "svd": _Counts(26 / 3, (0, 10), (0, 17), per_row=True, blocks=5),
    "svdvals": _Counts(8 / 3, (0, 5), (0, 17), per_row=True, result=False),
}


@dataclass(frozen=True, slots=True)
class SolverPlan:
    """The moves, memory and seconds of a solver of a square matrix. It prints itself; `plan` makes it.

    Attributes
    ----------
    name : str
        The function.
    before : Plan
        The move to tiles.
    after : Plan | None
        The move of the result back; None if there is none.
    flops : float
        The operations of all ranks.
    words : float
        The most words that a rank receives while it solves.
    messages : float
        The most messages that a rank receives while it solves.
    memory : int
        The bytes that a rank holds at most, operand and result included.
    seconds : float
        The time on a machine.

    Examples
    --------
    >>> import rote
    >>> rote.linalg.plan("cholesky", 4096, ranks=4).memory
    134217728
    """

    name: str
    before: Plan
    after: Plan | None
    flops: float
    words: float
    messages: float
    memory: int
    seconds: float

    @property
    def tiles(self) -> Distribution:
        """The layout in which the solver works."""
        return self.before.target

    def __str__(self) -> str:
        itemsize = self.before.dtype.itemsize
        lines = [f"{self.name} of {self.before.source} {self.before.dtype}", f"  move to {self.tiles}"]
        lines[1] += f": {in_bytes(self.before.cost.bytes)} to a rank"
        solving = (
            f"{self.flops:.3g} operations, {in_bytes(round(self.words * itemsize))} in {self.messages:,.0f} messages"
        )
        lines.append(f"  solve: {solving} to a rank")
        if self.after is not None:
            lines.append(f"  move back: {in_bytes(self.after.cost.bytes)} to a rank")
        return "\n".join([*lines, f"  {in_bytes(self.memory)} on a rank, {in_seconds(self.seconds)}"])


def plan(
    name: str,
    n: int,
    ranks: int,
    *,
    columns: int = 1,
    dtype: npt.DTypeLike = "f8",
    layout: Layout | str = "block[(0),()]",
    machine: Machine | str | None = None,
) -> SolverPlan:
    """The plan of a solver of an n x n matrix: what it moves, what it holds and what it takes. No rank is needed.

    Parameters
    ----------
    name : str
        "cholesky", "solve", "inv", "det", "slogdet", "eigh", "eigvalsh", "svd" or "svdvals".
    n : int
        The rows of the matrix.
    ranks : int
        The number of ranks.
    columns : int, default 1
        The right sides of "solve".
    dtype : DTypeLike, default 'f8'
        That of the elements: f4, f8, c8 or c16.
    layout : Layout | str, optional
        That of the operand, on the most balanced grid.
    machine : Machine | str, optional
        The machine, or its name, whose seconds are counted; typical ranks of one node if None.

    Returns
    -------
    SolverPlan
        The moves, operations, messages, bytes and seconds; it prints itself.

    Raises
    ------
    PlanError
        There is no such solver.
    LayoutError
        The layout does not fit.

    Examples
    --------
    >>> import rote
    >>> print(rote.linalg.plan("eigh", 4096, ranks=4))
    eigh of block[(0),()] on (4096, 4096), grid 4 float64
      move to cyclic(64)[(0),(1)] on (4096, 4096), grid 2x2: 24.0 MiB to a rank
      solve: 5.04e+11 operations, 640.0 MiB in 73,728 messages to a rank
      move back: 24.0 MiB to a rank
      198.4 MiB on a rank, 6.5 s
    """
    if name not in _COUNTS:
        raise PlanError(f"no solver is called {name!r}\nwrite one of {', '.join(_COUNTS)}")
    counts, element, lay = _COUNTS[name], as_dtype(dtype), as_layout(layout)
    shape, machine = (n, n), as_machine(machine)
    source = lay.on(shape, Grid.of(ranks, max([1, *[g + 1 for g in lay.grid_modes]])))
    tiles = Distribution(tiles_on(squarest(ranks), n), shape, squarest(ranks))
    before = compile(source, tiles, element, machine=machine)
    after = compile(tiles, source, element, machine=machine) if counts.result else None

    doublings = log2(ranks)
    width = tiles.layout.modes[0][0].kind.sizes[0]
    flops = counts.flops * n**3 + (2 * n**2 * columns if name == "solve" else 0)
    words = (counts.words[0] + counts.words[1] * doublings) * n**2 / ranks**0.5
    messages = (counts.messages[0] + counts.messages[1] * doublings) * (n if counts.per_row else n / width)
    words, messages = (words, messages) if ranks > 1 else (0.0, 0.0)

    there = machine.along(tiles.grid)
    operations = flops / ranks * machine.flop_time * (4 if element.kind == "c" else 1)
    moving = words * element.itemsize * _slowest(there.byte_time) + messages * _slowest(there.latency)
    seconds = operations + moving + before.cost.seconds + (after.cost.seconds if after else 0)

    block = prod(tiles.max_local_shape()) * element.itemsize
    memory = round((1 + counts.result + counts.blocks) * block)
    return SolverPlan(name, before, after, flops, words, messages, memory, seconds)


def _slowest(time: Any) -> float:
    """The largest of the times along the modes of a grid."""
    return float(np.max(time))

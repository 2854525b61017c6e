"""Steps: one movement of a tensor, named after the collective that does it."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..layout.distribution import Distribution
from ..layout.grid import Grid
from ..layout.refine import with_components

__all__ = ["KINDS", "LOCAL", "Step", "StepKind", "as_dtype", "as_kind"]

LocalKind = Literal["slice", "zero_fill", "relayout"]
"""A kind of steps in which no rank talks to another."""

Collective = Literal[
    "allgather",
    "alltoall",
    "permute",
    "reduce_scatter",
    "allreduce",
    "reduce",
    "broadcast",
    "scatter",
    "gather",
    "exchange",
]
"""A kind of steps in which ranks talk, by MPI's name; "exchange" is the general all-to-all."""

StepKind = LocalKind | Collective

LOCAL: tuple[LocalKind, ...] = get_args(LocalKind)

KINDS: tuple[StepKind, ...] = (*LOCAL, *get_args(Collective))
"""All kinds of steps."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan: one movement from a distribution to another.

    Attributes:
        kind: "slice", "zero_fill" or "relayout" (local), or MPI's name of a collective: "allgather", "alltoall",
            "permute", "reduce_scatter", "allreduce", "reduce", "broadcast", "scatter", "gather"; "exchange" is the
            general all-to-all.
        before, after: the distributions on both sides.
        grid_modes: the grid modes over which ranks talk, or, in a local step, which change what they do; ranks with
            other coordinates elsewhere do not meet. All of the old grid where the new one is another.

    >>> from rote.compiler.compile import compile
    >>> step = compile("block[(0),(1)] -> block[(0),()]", shape=(6, 4), grid=(2, 2)).steps[0]
    >>> step.kind, step.grid_modes, str(step.after.layout)
    ('allgather', (1,), 'block[(0),()]')
    """

    kind: StepKind
    before: Distribution
    after: Distribution
    grid_modes: tuple[int, ...]

    @property
    def across(self) -> bool:
        """Whether it leads from one grid to another over the same ranks."""
        return self.before.grid != self.after.grid

    @property
    def ranks(self) -> Grid:
        """The grid over which its ranks are counted; all in a row where it leads from one grid to another."""
        return Grid((self.before.grid.size,)) if self.across else self.before.grid

    def of_field(self, components: tuple[int, ...]) -> Step:
        """The step of all components of a field at once, which are whole modes in front.

        >>> from rote.compiler.compile import compile
        >>> step = compile("block[(0),()] -> block[(),(0)]", shape=(6, 4), grid=2).steps[0]
        >>> print(step.of_field((3,)))
        alltoall over 0: block[(),(0),()] -> block[(),(),(0)]
        """
        if not components:
            return self
        before, after = (with_components(dist, components) for dist in (self.before, self.after))
        return Step(self.kind, before, after, self.grid_modes)

    def __str__(self) -> str:
        over = f" over {','.join(map(str, self.grid_modes))}" if self.grid_modes else ""
        to = f" to grid {self.after.grid}" if self.across else ""
        return f"{self.kind}{over}{to}: {self.before.layout} -> {self.after.layout}"


def as_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """A dtype that Rote moves: bool, any integer, and real or complex numbers of single precision or more.

    Raises:
        PlanError: the dtype is another.
    """
    try:
        element = np.dtype(dtype)
    except TypeError:
        raise PlanError(f"{dtype!r} is no dtype; write 'f8', 'c16', …") from None
    if element.kind not in "biufc" or element == np.float16:
        raise PlanError(f"Rote moves bool, integers, f4, f8, longdouble and their complex kin, not {element}")
    return element.newbyteorder("=")


def as_kind(kind: str) -> StepKind:
    """The name of a kind of steps, as it is.

    Raises:
        PlanError: there is no such kind.
    """
    if kind not in KINDS:
        near = get_close_matches(str(kind), KINDS, n=1)
        cure = f"did you mean {near[0]}?" if near else f"write one of {', '.join(KINDS)}"
        raise PlanError(f"{kind!r} is no kind of step\n{cure}")
    return kind

"""Steps: one movement of a tensor, named after the collective that does it; and the precision of its messages.

An element is rounded in each step that sends it, when it leaves its rank, and widened on arrival. Elements that stay on
their rank or are read in shared memory keep all their bits. Copies of one element are equal on all ranks: an allgather
rounds a rank's own copy as well, and other steps that make copies round nothing. Steps that reduce or broadcast round
nothing either, because MPI does them without messages of Rote's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..grammar.errors import nearest
from ..grammar.nodes import exact_all
from ..layout.distribution import Distribution
from ..layout.grid import Grid
from ..layout.refine import with_components
from .movement import Movement, movement

__all__ = ["KINDS", "LOCAL", "Step", "StepKind", "as_dtype", "as_kind", "as_wire", "check_steps", "error_of"]
__all__ += ["rounded", "sent_as", "wire_of"]

LocalKind = Literal["slice", "zero_fill", "relayout"]
"""A kind of step without communication."""

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
"""A kind of step with communication, by its name in MPI; "exchange" is the general all-to-all."""

StepKind = LocalKind | Collective

LOCAL: tuple[LocalKind, ...] = get_args(LocalKind)

KINDS: tuple[StepKind, ...] = (*LOCAL, *get_args(Collective))
"""All kinds of steps."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan: one movement from a distribution to another.

    Attributes
    ----------
    kind : str
        "slice", "zero_fill" or "relayout" (local), or MPI's name of a collective: "allgather", "alltoall", "permute",
        "reduce_scatter", "allreduce", "reduce", "broadcast", "scatter", "gather"; "exchange" is the general all-to-all.
    before : Distribution
        The distribution before the step.
    after : Distribution
        The distribution after it.
    grid_modes : tuple[int, ...]
        The grid modes over which ranks communicate, or which change in a local step. Ranks that differ along other grid
        modes do not communicate. If the grid changes, these are all modes of the old grid.
    wire : numpy.dtype | None
        The dtype that elements are rounded to while they travel (`rote.compiler.step`); None if they are not.

    Raises
    ------
    PlanError
        There is no such kind, the two sides are of different tensors or numbers of ranks, or the grid modes are not
        ascending ones of the grid before.
    TypeError
        The grid modes are not integers.

    Examples
    --------
    >>> import rote
    >>> step = rote.compile("block[(0),(1)] -> block[(0),()]", shape=(6, 4), grid=(2, 2)).steps[0]
    >>> step.kind, step.grid_modes, str(step.after.layout)
    ('allgather', (1,), 'block[(0),()]')
    """

    kind: StepKind
    before: Distribution
    after: Distribution
    grid_modes: tuple[int, ...]
    wire: np.dtype[Any] | None = None

    def __post_init__(self) -> None:
        before, after = self.before, self.after
        grid, modes = before.grid, exact_all(self.grid_modes, "the grid modes of a step")

        if self.kind not in KINDS:
            as_kind(self.kind)
        if before.shape != after.shape or (grid is not after.grid and grid.size != after.grid.size):
            raise PlanError(
                f"a step keeps the shape and the ranks, and does not lead from {before} to {after}\n"
                "write two distributions of one tensor over the same number of ranks"
            )
        if list(modes) != sorted({*modes} & {*range(len(grid.shape))}):
            raise PlanError(
                f"grid {grid} has order {grid.order}, and {modes} are not ascending grid modes of it\n"
                "name grid modes below that, each once, in ascending order"
            )
        object.__setattr__(self, "grid_modes", modes)

    @property
    def movement(self) -> Movement:
        """What goes from where to where."""
        return movement(self.before, self.after)

    @property
    def across(self) -> bool:
        """Whether the step leads from one grid to another over the same ranks."""
        return self.before.grid != self.after.grid

    @property
    def ranks(self) -> Grid:
        """The grid over which ranks are counted: if the step changes the grid, one that refines both."""
        return self.before.grid.refine(self.after.grid)

    def sent(self, item: int) -> int:
        """The bytes in a message of an element that has `item` bytes.

        Examples
        --------
        >>> import rote
        >>> step = rote.compile("block[(0),()] -> block[(),(0)]", shape=(6, 4), grid=2, wire="f4").steps[0]
        >>> step.sent(8)
        4
        """
        return item if self.wire is None else self.wire.itemsize

    def of_field(self, components: tuple[int, ...]) -> Step:
        """This step for all components of a field at once, which are whole modes in front.

        Examples
        --------
        >>> import rote
        >>> step = rote.compile("block[(0),()] -> block[(),(0)]", shape=(6, 4), grid=2).steps[0]
        >>> print(step.of_field((3,)))
        alltoall over 0: block[(),(0),()] -> block[(),(),(0)]
        """
        if not components:
            return self
        before, after = (with_components(dist, components) for dist in (self.before, self.after))
        return replace(self, before=before, after=after)

    def __str__(self) -> str:
        text: str = self.kind
        if self.grid_modes:
            text += f" over {','.join(map(str, self.grid_modes))}"
        if self.across:
            text += f" to grid {self.after.grid}"
        if self.wire is not None:
            text += f" as {self.wire}"
        return f"{text}: {self.before.layout} -> {self.after.layout}"


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
        raise PlanError(
            f"Rote moves bool, integers, f4, f8, longdouble and the complex numbers of these, not {element}\n"
            f"convert to one of these first, as by x.astype('{'i8' if element.kind in 'mM' else 'f4'}')"
        )
    return element.newbyteorder("=")


def as_kind(kind: str) -> StepKind:
    """The name of a kind of step, checked.

    Raises:
        PlanError: there is no such kind.
    """
    if kind not in KINDS:
        hint = nearest(str(kind), KINDS, f"write one of {', '.join(KINDS)}")
        raise PlanError(f"{kind!r} is no kind of step\n{hint}")
    return kind


_NARROWER = {np.dtype("f8"): np.dtype("f4"), np.dtype("c16"): np.dtype("c8")}
_ENTIRE = (*LOCAL, "allreduce", "reduce", "broadcast", "reduce_scatter")


def as_wire(wire: str | None, dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """The dtype in which elements travel, from a user's `wire`: None, or "f4" for single precision.

    Raises:
        PlanError: `wire` is something else, or the elements are not of double precision.

    >>> as_wire("f4", np.dtype("c16")), as_wire(None, np.dtype("i8"))
    (dtype('complex64'), None)
    """
    if wire is None:
        return None
    if not isinstance(wire, str) or wire not in ("f4", "float32"):
        raise PlanError(
            f"wire={wire!r} is no precision that messages can have\n"
            "write wire='f4' to send double precision as single, or leave wire out to send all bits"
        )

    if dtype not in _NARROWER:
        raise PlanError(
            f"wire='f4' rounds double precision, f8 and c16, and the elements are {dtype}\n"
            "leave wire out, or convert to double precision first"
        )
    return _NARROWER[dtype]


def rounded(step: Step, wire: np.dtype[Any] | None) -> Step:
    """The step with messages of another dtype, if it is one that rounds; else the step unchanged.

    >>> from .compile import compile
    >>> step = compile("[()]+(0) -> [()]", shape=4, grid=2).steps[0]
    >>> rounded(step, np.dtype("f4")) is step
    True
    """
    if wire is None or step.kind in _ENTIRE or (step.kind != "allgather" and _copies(step)):
        return step
    return replace(step, wire=wire)


def sent_as(step: Step, wire: str | None, dtype: np.dtype[Any]) -> Step:
    """The step with the wire dtype that a text names; the step unchanged if it names none.

    Raises:
        PlanError: elements of `dtype` cannot travel in that dtype, or this step does not round.
    """
    if wire is None:
        return step

    narrower = _NARROWER.get(dtype)
    if narrower is None or wire != str(narrower):
        known = "" if narrower is None else f" as {narrower}, or"
        raise PlanError(f"elements of {dtype} do not travel as {wire!r}\nwrite the step{known} without 'as'")

    step = rounded(step, narrower)
    if step.wire is None:
        raise PlanError(f"the messages of this {step.kind} are not rounded\nwrite the step without 'as'")
    return step


def wire_of(steps: tuple[Step, ...]) -> np.dtype[Any] | None:
    """The dtype in which elements travel in steps of one plan; None if no step rounds."""
    return next((step.wire for step in steps if step.wire is not None), None)


def error_of(steps: tuple[Step, ...]) -> float:
    """The relative error of an element, to first order: 2^-24 for each step that rounds.

    >>> from .compile import compile
    >>> error_of(compile("block[(0),()] -> block[(),(0)]", shape=(6, 4), grid=2, wire="f4").steps) == 2**-24
    True
    """
    return float(sum(step.wire is not None for step in steps) * np.finfo(np.float32).eps / 2)


def check_steps(source: Distribution, target: Distribution, steps: Sequence[Step]) -> None:
    """Refuse steps that were read from a text, and do not lead from the source to the target.

    Raises:
        PlanError: a step starts elsewhere, or the last one ends elsewhere.
    """
    at = source

    for number, step in enumerate(steps, 1):
        if step.before.meaning != at.meaning:
            raise PlanError(
                f"step {number} starts from {step.before.layout}, but the tensor lies as {at.layout} by then\n"
                f"write the step from {at.layout}, or the step that is missing before it"
            )

        at = step.after

    if at.meaning != target.meaning:
        end, goal = str(at.layout), str(target.layout)
        if at.grid != target.grid:
            end, goal = f"{end} on grid {at.grid}", f"{goal} on grid {target.grid}"
        same = at.grid.size == target.grid.size
        hint = "write the steps that are missing" if same else "a plan stays on its ranks; write a target on as many"
        raise PlanError(f"the steps end in {end}, but the plan is to {goal}\n{hint}")


def _copies(step: Step) -> bool:
    """Whether ranks that communicate in a step hold copies of one element after it."""
    after = step.after
    modes = range(after.grid.order) if step.across else step.grid_modes
    return any(after.roles[g].name == "replicated" and after.grid.shape[g] > 1 for g in modes)

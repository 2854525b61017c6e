"""Walks: a parallel transform as stages and moves.

A stage is a layout and its actions; between two stages the tensor moves. A walk is a value: it has a text and an
inverse, and it does not depend on a rank. A terminal, a figure, a browser and a notebook show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from math import prod
from typing import Any

import numpy as np

from rote.caches import memoized
from rote.compiler.compile import compile
from rote.compiler.movement import SENDS, movement
from rote.compiler.plan import Plan
from rote.compiler.rules import one_step
from rote.compiler.step import LOCAL, Step, as_wire, rounded
from rote.compiler.tasks import Task, Tasks, transfers
from rote.grammar import CONVOLVE, TWIDDLE, ActionSyntax, StageSyntax, WalkSyntax, unparse_walk
from rote.grammar.nodes import ResizeName
from rote.layout.distribution import Distribution, replication
from rote.layout.grid import row_major
from rote.layout.refine import unfused_ends
from rote.lazy import late
from rote.machines.machine import DEFAULT, Machine
from rote.machines.work import Work
from rote.units import in_bytes

from .transforms import CASTS, HALVING, KINDS, RESTORING, ActionKind, MaybeKind, complex_dtype, real_dtype

__all__ = ["Action", "Convolve", "Resize", "Stage", "Transform", "Twiddle", "Walk", "describe", "dtype_after"]
__all__ += ["keeps_order", "single_step"]


@dataclass(frozen=True, slots=True)
class Transform:
    """A transform of modes that are whole on a rank, or a change of dtype for the axis of some modes.

    Attributes:
        kind: a key of `KINDS`, where a real mode is the last one, or one of `CASTS`: "complex" makes numbers complex
            from here on, and "real" keeps only their real part.
        modes: modes of the block, in NumPy's order.
        length: the real extent along the last mode of "rfft" and "irfft".
    """

    kind: ActionKind
    modes: tuple[int, ...]
    length: int = 0

    def inverse(self) -> Transform:
        """The transform that undoes this one, up to a factor."""
        if self.kind in CASTS:
            return replace(self, kind=CASTS[self.kind])
        return replace(self, kind=KINDS[self.kind].inverse)


@dataclass(frozen=True, slots=True)
class Twiddle:
    """Each element times exp(-2 pi i step a b / points), the factor that couples two digits of one axis.

    Attributes:
        mode: the mode of a digit of the spectrum; a is the index along it.
        other: the mode of a digit of the signal; b is `index // weight % size` along it.
        step, points: step / points of a turn for a = b = 1.
        back: whether the exponent has the other sign.
    """

    mode: int
    other: int
    weight: int
    size: int
    step: int
    points: int
    back: bool = False

    def inverse(self) -> Twiddle:
        """The factor that undoes it."""
        return replace(self, back=not self.back)


@dataclass(frozen=True, slots=True)
class Convolve:
    """A spectrum times that of a chirp, which transforms `n` points by a convolution on more points (Bluestein 1970).

    Attributes:
        modes: the modes of the spectrum's digits, the most significant first.
        sizes: the sizes of these digits; their product is the number of points.
        n: the points of the signal before it was padded.
        back: whether the chirp's exponent has the other sign.
    """

    modes: tuple[int, ...]
    sizes: tuple[int, ...]
    n: int
    back: bool = False

    def inverse(self) -> Convolve:
        """The convolution with the conjugate chirp."""
        return replace(self, back=not self.back)


@dataclass(frozen=True, slots=True)
class Resize:
    """A mode of another extent: cut, or padded with zeros.

    Attributes:
        kind: "resize" acts at the end of the mode. "resample" acts in the middle of a spectrum, which becomes that of
            the signal on another number of points, with half of Nyquist's term at both ends of the longer one. "fold"
            cuts a whole spectrum to the half that a real signal needs; its inverse has that half twice, and gives the
            same real part. "chirp" acts at the end of the mode, and multiplies the kept elements by a chirp.
        mode: the mode of the block.
        old, new: the number of points before and after; for half a spectrum, those of the signal.
        half: whether the mode is half a spectrum, that of a real signal.
        back: whether the chirp's exponent has the other sign.
    """

    kind: ResizeName
    mode: int
    old: int
    new: int
    half: bool = False
    back: bool = False

    def inverse(self) -> Resize:
        """The change back to the old extent."""
        return replace(self, old=self.new, new=self.old, back=self.back != (self.kind == "chirp"))

    @property
    def extents(self) -> tuple[int, int]:
        """The extents of the mode before and after."""
        return (self.old // 2 + 1, self.new // 2 + 1) if self.half else (self.old, self.new)


Action = Transform | Twiddle | Convolve | Resize


@dataclass(frozen=True, slots=True)
class Stage:
    """A layout and its actions.

    Attributes
    ----------
    before : Distribution
        The distribution before the actions.
    after : Distribution
        The distribution after the actions. Blocks are equal, except for extents that change on every rank. Digits that
        the view of `before` reads are modes of the tensor of `after`.
    done : tuple[Transform | Twiddle | Convolve | Resize, ...]
        The actions, in order; may be empty.

    Examples
    --------
    >>> import rote
    >>> stage = rote.fft.compare((64, 64, 64), ranks=4)[0].walk.stages[0]
    >>> print(stage)
    block[(0),(),()]: fft(1, 2)
    >>> stage.text, stage.acted_modes
    ('fft(1, 2)', (1, 2))
    """

    before: Distribution
    after: Distribution
    done: tuple[Action, ...] = ()

    @property
    def actions(self) -> tuple[ActionSyntax, ...]:
        """The actions as in the walk's text, which writes equal actions in a row once."""
        actions: list[ActionSyntax] = []
        for action in self.done:
            last = actions[-1] if actions else None
            if isinstance(action, Transform):
                actions.append(ActionSyntax(action.kind, action.modes))
            elif isinstance(action, Resize) and last and last.name == action.kind and action.mode not in last.modes:
                actions[-1] = replace(last, modes=(*last.modes, action.mode), extents=(*last.extents, action.new))
            elif isinstance(action, Resize):
                actions.append(ActionSyntax(action.kind, (action.mode,), (action.new,)))
            elif isinstance(action, Convolve):
                actions.append(ActionSyntax(CONVOLVE))
            elif last is None or last.name != TWIDDLE:
                actions.append(ActionSyntax(TWIDDLE))
        return tuple(actions)

    @property
    def acted_modes(self) -> tuple[int, ...]:
        """The modes that its actions name, one after the other."""
        return tuple(chain(*(action.modes for action in self.actions)))

    @property
    def text(self) -> str:
        """The actions as in the walk's text, for people."""
        return str(self).removeprefix(str(self.before.layout)).removeprefix(":").strip() or "nothing"

    def inverse(self) -> Stage:
        """The stage that undoes this one, up to a factor."""
        return Stage(self.after, self.before, tuple(action.inverse() for action in reversed(self.done)))

    def __str__(self) -> str:
        return unparse_walk(WalkSyntax((StageSyntax(self.before.layout, None, self.actions),)))


@dataclass(frozen=True, slots=True)
class Walk:
    """A sequence of stages, and the moves between them.

    Attributes
    ----------
    source : Distribution
        The distribution of the tensor, as a tensor of the axes. Its blocks are those before the first stage.
    target : Distribution
        The distribution of the spectrum, as a tensor of the axes. Its blocks are those after the last stage.
    stages : tuple[Stage, ...]
        In order; the tensor moves from `after` of each stage to `before` of the next.
    dtype : numpy.dtype
        The dtype of the input.
    kinds : tuple[MaybeKind, ...]
        Per axis, the kind of its transform; "" if it has none.
    sizes : tuple[int, ...]
        Per axis, the logical size of its transform, by which forward and backward together multiply; or 1.
    points : tuple[int, ...]
        Per axis, the number of points of the spectrum; for half a spectrum, those of the signal.
    wire : str | None
        "f4" if elements are rounded to single precision while they travel.
    machine : Machine
        The machine for which its moves are compiled.

    Examples
    --------
    >>> import rote
    >>> def program(comm):
    ...     return rote.fft.FFT((8, 6), "block[(0),()]", comm=comm).walk
    >>> walk = rote.run(program, ranks=2)[0]
    >>> print(walk)
      block[(0),()]: fft(1)
        # alltoall over 0
      block[(),(0)]: fft(0)
    >>> walk.kind, [plan.cost.bytes for plan in walk.moves]
    ('fft', [192])
    """

    source: Distribution
    target: Distribution
    stages: tuple[Stage, ...]
    dtype: np.dtype[Any]
    kinds: tuple[MaybeKind, ...]
    sizes: tuple[int, ...]
    points: tuple[int, ...]
    wire: str | None = None
    machine: Machine = field(default=DEFAULT, compare=False)

    @property
    def kind(self) -> str:
        """The kind of the whole transform: "fft", "ifft", "rfft", "irfft", "dct2", ...; if mixed, all kinds."""
        kinds = [kind for kind in self.kinds if kind]
        if len({KINDS[kind].others for kind in kinds}) > 1:
            return " x ".join(kinds)
        return max(kinds, key=lambda kind: kind in (*HALVING, *RESTORING), default="fft")

    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The dtype at the start and after every stage."""
        dtypes = [self.dtype]
        for stage in self.stages:
            dtypes.append(dtypes[-1])

            for action in stage.done:
                if isinstance(action, Transform):
                    dtypes[-1] = dtype_after(action.kind, dtypes[-1])
        return tuple(dtypes)

    @property
    def ends(self) -> tuple[tuple[Distribution, Distribution, np.dtype[Any]], ...]:
        """The two ends of each transition from a stage to the next, and the dtype."""
        ends = []
        for (stage, following), dtype in zip(pairwise(self.stages), self.dtypes()[1:], strict=False):
            ends.append((*unfused_ends(stage.after, following.before), dtype))
        return tuple(ends)

    @property
    def transitions(self) -> tuple[Plan, ...]:
        """The plans from each stage to the next, including those that move nothing."""
        return tuple(compile(*ends, wire=self.wire, machine=self.machine) for ends in self.ends)

    @property
    def moves(self) -> tuple[Plan, ...]:
        """The plans in which ranks communicate, in order."""
        return tuple(filter(_messages, self.transitions))

    def tasks(self, compiled: bool = True) -> Tasks:
        """The moves and the local work, as `rote.predict` sees them.

        Parameters
        ----------
        compiled : bool, default True
            Whether moves are the steps of their plans. If not, each is one step, which costs as much or more, and
            nothing is compiled: so walks are compared.

        Examples
        --------
        >>> from rote.fft import FFT
        >>> [work.kind for work in FFT((8, 8), "block[(0),()]").walk.tasks().every]
        ['fft', 'fft']
        """
        if compiled:
            moves = [plan.steps if _messages(plan) else () for plan in self.transitions]
        else:
            moves = []
            for before, after, dtype in self.ends:
                wire = as_wire(self.wire, dtype)
                moves.append(tuple([rounded(step, wire) for step in single_step(before, after)]))

        every: list[Task] = [*_work(self.stages[0], self.dtype)]
        for stage, steps, (before, after, dtype) in zip(self.stages[1:], moves, self.ends, strict=True):
            if steps or keeps_order(before, after, 0):
                every += transfers(steps, dtype.itemsize)
            else:
                every.append(Work("copy", prod(before.max_local_shape()) * dtype.itemsize))
            every += _work(stage, dtype)

        name = f"{self.kind} of {self.source.shape} {self.dtype}"
        layouts = str(self.source.layout), str(self.target.layout)
        return Tasks(name, self.source.grid, layouts, self.machine, tuple(every), self.peak_bytes, self._replanned)

    def _replanned(self, machine: Machine) -> Tasks:
        """The tasks of the same stages, with moves whose plans are for another machine."""
        return replace(self, machine=machine).tasks()

    @property
    def peak_bytes(self) -> int:
        """About how many bytes a run takes on a rank: tensor, spectrum, and twice the largest block between stages.

        Elements that a stage makes and cuts off again, as in resampling real numbers, do not count.
        """
        blocks = [prod(self.source.max_local_shape()) * self.dtype.itemsize]
        for stage, dtype in zip(self.stages, self.dtypes()[1:], strict=True):
            blocks.append(prod(stage.after.max_local_shape()) * dtype.itemsize)
        return blocks[0] + blocks[-1] + 2 * max(blocks)

    def inverse(self) -> Walk:
        """The inverse walk: the inverse stages and moves, in reversed order."""
        back = tuple(stage.inverse() for stage in reversed(self.stages))
        kinds = tuple(KINDS[kind].inverse if kind else kind for kind in self.kinds)
        return replace(self, source=self.target, target=self.source, stages=back, dtype=self.dtypes()[-1], kinds=kinds)

    def plot(self) -> Any:
        """A figure of the walk's layouts and their transforms, with arrows for the moves between them.

        Stages without transforms are left out, except the first and the last. Of more than three modes, at most three
        that are split or transformed are shown; the others are at index 0.

        Examples
        --------
        >>> from rote.fft import FFT
        >>> FFT((8, 8, 8), "block[(0),(),()]").walk.plot().savefig("slab.png")
        """
        last = len(self.stages) - 1
        shown = [n for n, stage in enumerate(self.stages) if stage.done or n in (0, last)]

        arrows = []
        for start, stop in pairwise(shown):
            steps = chain(*map(_messages, self.transitions[start:stop]))
            arrows.append(_arrow([str(step).partition(":")[0] for step in steps]))

        drawn = [self.stages[n] for n in shown]
        captions = [str(stage).partition("]: ")[2] for stage in drawn]
        distributions, modes = [stage.before for stage in drawn], [_shown_modes(stage) for stage in drawn]
        return late("plot.figures:stages")(distributions, arrows, captions, modes)

    def _repr_html_(self) -> str:
        axes = tuple([axis for axis, kind in enumerate(self.kinds) if kind])
        return str(late("html.walks:walk_card")(self, axes, "Walk"))

    def __str__(self) -> str:
        lines: list[str] = []
        grid, moves = self.source.grid, self.transitions
        for number, stage in enumerate(self.stages):
            if number:
                lines += [f"    # {str(step).split(':', 1)[0]}" for step in _messages(moves[number - 1])]

            on = "" if stage.before.grid == grid else f"on {stage.before.grid} "
            grid = stage.before.grid
            lines.append(f"  {on}{stage}")
        return "\n".join(lines)


def describe(walk: Walk, axes: tuple[int, ...]) -> str:
    """A walk as text, after a line about its transforms and before one about its moves."""
    moved, times = sum(plan.cost.bytes for plan in walk.moves), len(walk.moves)
    source = walk.source
    rounded = "" if walk.wire is None else f", sent in single precision: error at most {times * 2**-24:.1e} in 2-norm"
    copies = replication(source)
    return (
        f"{walk.kind} of {source.shape} {walk.dtype} on grid {source.grid}, axes {axes}\n{walk}\n"
        + f"  the input is {copies}\n" * bool(copies)
        + f"  each rank receives {in_bytes(moved)} in {times} move{'s' * (times != 1)}{rounded}"
    )


@memoized(4096)
def single_step(before: Distribution, after: Distribution) -> tuple[Step, ...]:
    """The one step in which ranks go from a stage to the next, or none if nothing is sent."""
    step = one_step(before, after)
    return () if step is None or step.kind in LOCAL else (step,)


@memoized(4096)
def keeps_order(source: Distribution, target: Distribution, rank: int) -> bool:
    """Whether a move without messages leaves a rank's block in memory as it is, so that only its shape changes."""
    shapes = source.local_shape(rank), target.local_shape(rank)
    move = movement(source, target)
    to_itself = move.messages(rank, SENDS, rank)
    if prod(shapes[0]) != prod(shapes[1]) or sum([message.size for message in to_itself]) != prod(shapes[0]):
        return False

    # Element for element: the place in the block before is the place in the block after.
    before, after = map(row_major, shapes)
    for message in to_itself:
        for part, group in zip(move.parts, message.groups, strict=True):
            if not group.keeps_offsets([before[m] for m in part.before], [after[m] for m in part.after]):
                return False
    return True


def _work(stage: Stage, dtype: np.dtype[Any]) -> list[Work]:
    """The work of a stage on its largest block: a transform of one mode after the other, and factors.

    Half a spectrum has about as many bytes as the real numbers of which it is made.
    """
    block = stage.before.max_local_shape()
    nbytes, work = prod(block) * dtype.itemsize, list[Work]()
    for action in stage.done:
        if isinstance(action, Twiddle | Convolve):
            work.append(Work("twiddle", nbytes))
        elif isinstance(action, Transform) and action.kind not in CASTS:
            for mode in reversed(action.modes):
                work.append(Work("fft", nbytes, block[mode], prod(block[mode + 1 :]) * dtype.itemsize))
    return work


def _messages(plan: Plan) -> list[Step]:
    """The steps of a plan in which ranks communicate."""
    return [step for step in plan.steps if step.kind not in LOCAL]


def _arrow(steps: Sequence[str]) -> tuple[str, str]:
    """The words above and below the arrow between two stages, for the steps between them."""
    if not steps:
        return "nothing", "moves"
    kind, _, over = steps[0].partition(" ")
    return (kind, over) if len(steps) == 1 else ("; ".join(steps), "")


def _shown_modes(stage: Stage) -> tuple[int, ...]:
    """The modes that a stage's picture shows: at most three, split modes before transformed ones."""
    dist = stage.before
    every = range(len(dist.view_shape))
    acted = {*stage.acted_modes}
    ranked = sorted(every, key=lambda m: (not dist.splits[m], m not in acted, m))
    return tuple(sorted(ranked[:3]))


def dtype_after(kind: ActionKind, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that a kind of transform makes of another."""
    if kind in ("complex", *HALVING):
        return complex_dtype(dtype)
    return real_dtype(dtype) if kind in ("real", *RESTORING) else dtype

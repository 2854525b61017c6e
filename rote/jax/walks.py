"""Walks as functions of arrays of JAX: transforms of blocks, and the moves between them, which `lowering` makes.

Between two stages the tensor is padded so that the digits of the move fit. A stage in which a mode is whole cuts the
padding off before it transforms, and pads anew; so each mode has one padded extent for as long as it stays split:

    8 x 6 x 5 on a mesh 2 x 2      block[(0),(1),()]     8 x 6 x 5    fft(2)
      move                         block[(0),(),(1)]     8 x 6 x 6    fft(1)
      move                         block[(),(0),(1)]     8 x 6 x 6    fft(0)

Walks that read modes through views have the extents of their digits, and are not padded. Where digits of a move do not
fit, it goes by a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise, product
from math import prod
from typing import Any

import numpy as np

from ..compiler.compile import compile
from ..compiler.digits import units
from ..errors import LayoutError, PlanError
from ..fft.request import Norm, scale
from ..fft.walk import Action, Convolve, Resize, Stage, Transform, Twiddle, Walk
from ..layout.distribution import Distribution
from ..layout.refine import unfused_ends
from .arrays import has_equal_blocks, sharding
from .lowering import Lowered, applied, check_block, has_tables
from .meshes import check_dtype, library
from .positions import indices_of
from .transforms import check_kind, multiplied, roots, transformed

__all__ = ["LoweredWalk", "lowered_walks"]

_MOST = 2  # times the largest block: padding that needs more memory is not worth it
_TRIED = 64  # paddings, the smallest first
_EACH = 8  # multiples that are tried for one mode
_POINTS = 1 << 29  # of which twiddles are found in integers of 32 bits

Operation = Callable[[Any], Any]
"""A function of a block."""

Ends = tuple[tuple[Distribution, Distribution], ...]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)  # `jit` finds a function by its identity
class LoweredWalk:
    """A walk as a function of arrays of JAX, for use in `jit`.

    Attributes:
        walk: the walk of the tensor as it is, without padding.
        norm: the norm.
        forward: whether the walk leads to a spectrum, for the norm.
        source, target: the padded distributions of the argument and of the result.
        stages: the padded distributions before and after the actions of each stage.
        moves: what moves the tensor from each stage to the next.
        mesh: the mesh.
        turned: the order of the modes of the spectrum's block, in which nothing is transposed after the last transform;
            empty for its own order.
    """

    walk: Walk
    norm: Norm
    forward: bool
    source: Distribution
    target: Distribution
    stages: Ends
    moves: tuple[Lowered, ...]
    mesh: Any
    turned: tuple[int, ...] = ()

    def __call__(self, x: Any) -> Any:
        """The array in the stored order of the target, from one in the stored order of the source.

        Raises:
            PlanError: the array has another shape, dtype or sharding than the source.
        """
        return applied(self, [(x, self.source, self.walk.dtype)], self.target)

    def local(self, block: Any) -> Any:
        """The block of a rank in the target, from its block in the source, where a `shard_map` calls it."""
        check_block(block, self.source)
        if self.turned and not self.forward:
            block = block.transpose(np.argsort(self.turned))
        block = _run(self._operations(self.norm == "ortho"), block)
        if self.turned and self.forward:
            block = block.transpose(self.turned)

        block = block.reshape(self.target.max_local_shape())
        factor = float(scale(self.norm, self.walk.sizes, self.forward)) * prod(map(_divided, self.walk.stages))
        return block if factor == 1 else block * factor

    def _operations(self, ortho: bool) -> list[Operation]:
        """The functions of a block, in order."""
        mesh, operations = self.mesh, list[Operation]()
        chirp = list[Operation]()  # what makes the last one
        start = 0  # of what is done after it

        for number, (stage, (before, after)) in enumerate(zip(self.walk.stages, self.stages, strict=True)):
            operations.append(partial(_begun, stage=stage, shape=before.max_local_shape()))
            for action in stage.done:
                if isinstance(action, Transform):
                    operations.append(partial(transformed, action=action, ortho=ortho))
                elif isinstance(action, Twiddle):
                    operations.append(partial(_twiddled, action=action, dist=before, mesh=mesh))
                elif isinstance(action, Resize):
                    operations.append(partial(_resized, action=action, dist=after, mesh=mesh))
                    if action.kind == "chirp" and action.new > action.old:
                        chirp = [partial(_chirped, action=action, dist=after, mesh=mesh)]
                        start = len(operations)
                else:
                    spectrum = [*chirp, *operations[start:]]
                    operations.append(partial(_convolved, action=action, spectrum=spectrum))

            operations.append(partial(_fitted, shape=after.max_local_shape()))
            if number < len(self.moves):
                operations.append(partial(_moved, move=self.moves[number]))

        return operations


def lowered_walks(walk: Walk, mesh: Any, norm: Norm, forward: bool, tables: bool) -> Iterator[LoweredWalk]:
    """A walk as functions of arrays: those with the paddings in which the digits of all moves fit, the least first.

    Args:
        walk: the walk, whose grid is the mesh.
        mesh: a `jax.sharding.Mesh`.
        norm: the norm.
        forward: whether the walk leads to a spectrum, for the norm.
        tables: whether moves may go by tables; then there is one function, without padding.

    Raises:
        PlanError: the mesh is not the grid; JAX would change a dtype; or something is not done here: an end that is
            partial or rooted, some kinds of transforms, resampling.
    """
    for end in (walk.source, walk.target):
        sharding(end, mesh)
    for dtype in {walk.dtype, *walk.dtypes()}:
        check_dtype(dtype)
    for stage in walk.stages:
        for action in stage.done:
            _check(action)

    own = [(stage.before, stage.after) for stage in walk.stages]
    views = any(dist.layout.view is not None for pair in own for dist in pair)
    for stages in [own] if views or tables else _padded(own):
        if any(has_equal_blocks(d) and d != p for d, p in ((own[0][0], stages[0][0]), (own[-1][1], stages[-1][1]))):
            continue  # arrays that have a sharding as they are

        dtypes = walk.dtypes()[1:]
        ends = [unfused_ends(a, b) for (_, a), (b, _) in pairwise(stages)]
        plans = [compile(*pair, dtype, machine=walk.machine) for pair, dtype in zip(ends, dtypes, strict=False)]
        moves = tuple([Lowered(plan.digits(pad=False), mesh) for plan in plans])

        source, target = (walk.source, walk.target) if views else (stages[0][0], stages[-1][1])
        if tables or not has_tables(moves):
            yield LoweredWalk(walk, norm, forward, source, target, tuple(stages), moves, mesh)


def _check(action: Action) -> None:
    """Refuse an action that has no function here."""
    points = 1
    if isinstance(action, Transform):
        check_kind(action.kind)
    elif isinstance(action, Twiddle):
        points = action.points
    elif isinstance(action, Resize):
        points = 2 * max(action.extents)
        if action.kind == "resample":
            raise PlanError("rote.jax does not resample\ntransform, and cut or pad the spectrum")

    if points > _POINTS:
        raise PlanError(f"an axis of {points} points has factors of more than 32 bits\nmake it two axes, or shorter")


# --- padding ---------------------------------------------------------------------------------------------------------


def _padded(own: Sequence[tuple[Distribution, Distribution]]) -> Iterator[list[tuple[Distribution, Distribution]]]:
    """The stages of a walk without views on padded extents, in which all moves' digits may fit, the smallest first."""
    # A segment of a mode is where it stays split, and has one padded extent. They are numbered by the stages before
    # in which the mode is whole; such a stage ends one segment and begins the next.
    segments = list[tuple[list[int], list[int]]]()
    passed = [0] * own[0][0].order
    for dist, _ in own:
        ended = [number + (not splits) for number, splits in zip(passed, dist.splits, strict=True)]
        segments.append((passed, ended))
        passed = ended

    splits = dict[tuple[int, int], set[Any]]()
    for pair, numbers in zip(own, segments, strict=True):
        for dist, along in zip(pair, numbers, strict=True):
            for mode, number in enumerate(along):
                splits.setdefault((mode, number), set()).add(dist.splits[mode])

    of_segments = [units(of_segment)[:_EACH] for of_segment in splits.values()]
    for multiples in sorted(product(*of_segments), key=prod)[:_TRIED]:
        unit = dict(zip(splits, multiples, strict=True))
        stages = []
        for pair, numbers in zip(own, segments, strict=True):
            start, end = [_on(d, [unit[at] for at in enumerate(ns)]) for d, ns in zip(pair, numbers, strict=True)]
            if start is None or end is None:
                break
            stages.append((start, end))
        else:
            yield stages


def _on(dist: Distribution, units: Sequence[int]) -> Distribution | None:
    """The distribution on extents that are multiples of some numbers; None if it has sizes of its own, or too large."""
    shape = tuple([-(-extent // unit) * unit for extent, unit in zip(dist.shape, units, strict=True)])
    try:
        padded = dist.layout.on(shape, dist.grid)
    except LayoutError:
        return None
    return padded if prod(padded.max_local_shape()) <= _MOST * prod(dist.max_local_shape()) else None


# --- operations ------------------------------------------------------------------------------------------------------


def _run(operations: Sequence[Operation], block: Any) -> Any:
    return reduce(lambda block, operation: operation(block), operations, block)


def _divided(stage: Stage) -> int:
    """The number by which XLA divides the transforms of a stage: the points of those that go backward."""
    extents, number = [*stage.before.view_shape], 1
    for action in stage.done:
        if isinstance(action, Resize):
            extents[action.mode] = action.extents[1]
        elif isinstance(action, Transform) and action.kind in ("ifft", "irfft"):
            *others, last = [extents[mode] for mode in action.modes]
            number *= prod(others) * (action.length or last)
    return number


def _begun(block: Any, stage: Stage, shape: Sequence[int]) -> Any:
    """A block at the begin of a stage: if something is done, without the padding of whole modes."""
    block = block.reshape(shape)
    if not stage.done:
        return block
    before = stage.before
    extents = zip(shape, before.view_shape, before.splits, strict=True)
    return block[tuple([slice(padded if splits else own) for padded, own, splits in extents])]


def _moved(block: Any, move: Lowered) -> Any:
    return move.local(block.reshape(move.source.max_local_shape()))


def _fitted(block: Any, shape: Sequence[int]) -> Any:
    """A block of another shape: cut at the end of its modes, or with zeros there."""
    block = block[tuple(map(slice, shape))]
    ends = [(0, new - old) for old, new in zip(block.shape, shape, strict=True)]
    return library().numpy.pad(block, ends) if ends else block


def _twiddled(block: Any, action: Twiddle, dist: Distribution, mesh: Any) -> Any:
    digit = indices_of(dist, action.mode, mesh)
    other = indices_of(dist, action.other, mesh) // action.weight % action.size
    turns = multiplied(multiplied(digit, action.step % action.points, action.points), other, action.points)
    factors = roots(turns, action.points, block.dtype)
    return block * (factors.conj() if action.back else factors)


def _resized(block: Any, action: Resize, dist: Distribution, mesh: Any) -> Any:
    """A block in which a mode has another extent; `dist` is that after the stage."""
    jnp, mode, (old, new) = library().numpy, action.mode, action.extents
    if dist.splits[mode]:
        index = indices_of(dist, mode, mesh)
    else:
        index = jnp.arange(new, dtype=np.uint32).reshape([new if m == mode else 1 for m in range(block.ndim)])
    block = _fitted(block, [index.shape[m] if m == mode else extent for m, extent in enumerate(block.shape)])

    # Where the mode is split, there may be padding; it is no zero.
    weights = jnp.where(index < min(old, new), 1, 0).astype(block.dtype)
    if action.kind == "fold" and new > old:
        weights = jnp.where((index == 0) | (2 * index == new), weights, 2 * weights)  # for the other half as well
    if action.kind == "chirp":
        weights = weights * _chirp(index, min(old, new), block.dtype, action.back)
    return block * weights


# --- chirps ----------------------------------------------------------------------------------------------------------


def _chirp(index: Any, points: int, dtype: np.dtype[Any], back: bool) -> Any:
    """exp(-pi i k² / points) for indices k."""
    values = roots(multiplied(index, index, 2 * points), 2 * points, dtype)
    return values.conj() if back else values


def _chirped(block: Any, action: Resize, dist: Distribution, mesh: Any) -> Any:
    """The chirp exp(pi i k² / n) for -n < k < n around a circle, in place of a block whose mode was made longer."""
    jnp, (points, longer) = library().numpy, action.extents
    index = indices_of(dist, action.mode, mesh)
    distance = jnp.minimum(index, longer - index)
    values = _chirp(distance, points, block.dtype, True) / longer
    return jnp.broadcast_to(jnp.where(distance < points, values, 0), dist.max_local_shape()).astype(block.dtype)


def _convolved(block: Any, action: Convolve, spectrum: Sequence[Operation]) -> Any:
    """A block of a spectrum times that of the chirp, which goes the same way to the same digits."""
    factors = _run(spectrum, block)
    return block * (factors.conj() if action.back else factors)

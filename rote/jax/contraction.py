"""Contractions as functions of arrays of JAX: moves of blocks, and `jax.numpy.einsum` of what is local.

A letter whose extent does not divide is padded at the end, in all tensors alike. What lies there does not matter: where
a product sums over the letter, its factors are zero there, so sums are those without padding; along other letters the
result has padding, too. Where no padding fits, moves go by tables, blocks are in arrays of the largest block's shape,
and what lies behind a block is cleared in the same way.

    ik,kj->ij, k of 5 in blocks on 2 ranks        A  a a a | a a 0        B  b b b | b b 0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from ..caches import memoized
from ..compiler.digits import longer_extents, smallest_shapes
from ..errors import LayoutError, PlanError, counted
from ..functions.contraction.plan import Contraction, contraction_of
from ..functions.contraction.stages import Move, Product
from ..functions.contraction.subscripts import Subscripts, as_text, read_path, read_subscripts
from ..functions.contraction.tree import Request
from ..layout.distribution import Distribution
from ..layout.grid import Grid
from ..layout.kinds import Split
from ..layout.layout import Layout
from ..machines.machine import DEFAULT
from .arrays import check_equal_blocks, cropped, distribution_of, on_mesh, padded, sharding, stored_shape
from .collectives import rank_of
from .lowering import Lowered, applied, check_block, has_tables
from .meshes import as_planned, check_dtype, check_mesh, library
from .positions import Positions, indices_of

__all__ = ["LoweredContraction", "einsum", "lower_contraction"]

Moves = tuple[tuple[Lowered, ...], ...]
"""For each tensor that moves in a stage, the moves of its panels; one if all are equal, none if it stays."""

_MOST = 1.5  # times the largest blocks: padding that needs more memory is not worth it
_TRIED = 8  # paddings, the smallest first, because each is planned anew


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class LoweredContraction:
    """A contraction as a function of arrays of JAX, for use in `jit`. `lower` makes it.

    Arrays are in the stored order of `operands` and `result`. `pad` makes them of arrays of the operands' shapes, and
    `crop` goes back.

    Attributes
    ----------
    contraction : Contraction
        The one that was lowered.
    plan : Contraction
        The one that runs, of longer operands if there is padding.
    mesh : jax.sharding.Mesh
        The mesh.
    moves : tuple[tuple[tuple[Lowered, ...], ...], ...]
        For each stage, the moves of its tensors.

    Examples
    --------
    >>> import jax, numpy as np, rote
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> plan = rote.compile_einsum("ik,kj->ij", [(2, 3), (3, 2)], grid=(1,), dtype="f4")
    >>> product = rote.jax.lower(plan, mesh)
    >>> ones = [rote.jax.from_global(np.ones(dist.shape, "f4"), dist, mesh) for dist in product.operands]
    >>> product(*ones).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """

    contraction: Contraction
    plan: Contraction
    mesh: Any
    moves: tuple[Moves, ...]

    @property
    def operands(self) -> tuple[Distribution, ...]:
        """The distributions of the arguments."""
        return self.plan.operands

    @property
    def result(self) -> Distribution:
        """The distribution of the result."""
        return self.plan.result

    @property
    def has_tables(self) -> bool:
        """Whether a move goes by a table of places, because its digits do not fit."""
        return has_tables([move for of_stage in self.moves for of_tensor in of_stage for move in of_tensor])

    def __call__(self, *arrays: Any) -> Any:
        """The array in the stored order of the result, from one for each operand in its stored order.

        Raises:
            LayoutError: there is not one array for each operand.
            PlanError: an array has another shape, dtype or sharding than its operand; or an end has no sharding.
        """
        self._check_count(arrays)
        return applied(self, zip(arrays, self.operands, self.plan.dtypes, strict=True), self.result)

    def local(self, *blocks: Any) -> Any:
        """A rank's block of the result, from its blocks of the operands, where a `shard_map` over the mesh calls it.

        Parameters
        ----------
        *blocks : jax.Array
            A block of each operand.

        Examples
        --------
        >>> import jax, numpy as np, rote
        >>> layouts = ["block[(0),()]", "[(),()]"]
        >>> plan = rote.compile_einsum("ik,kj->ij", [(2, 3), (3, 2)], layouts=layouts, grid=(2,), dtype="f4")
        >>> product = rote.jax.lower(plan, jax.sharding.AbstractMesh((2,), ("x",)))
        >>> rote.jax.virtual(product)(np.ones((2, 1, 3), "f4"), np.ones((2, 3, 2), "f4")).tolist()
        [[[3.0, 3.0]], [[3.0, 3.0]]]
        """
        self._check_count(blocks)
        for block, dist in zip(blocks, self.operands, strict=True):
            check_block(block, dist)

        jnp, extents, dtype = library().numpy, self.contraction.extents, self.plan.dtype
        if as_planned(blocks[0].dtype) == dtype:
            dtype = blocks[0].dtype
        if 0 in extents.values():  # every sum is empty
            return jnp.zeros(self.result.max_local_shape(), dtype)

        values, dists = [*blocks], [dist for dist, _ in self.plan.values()]
        for stage, moves in zip(self.plan.stages, self.moves, strict=True):
            if isinstance(stage, Move):
                values.append(moves[0][0].local(values[stage.value]))
                continue

            ends = [dists[value] for value in stage.values]
            factors = [values[value] for value in stage.values]
            if stage.is_diagonal:
                values.append(_diagonal(factors[0], ends[0], stage.terms[0], self.mesh))
                continue

            # What lies behind the ends of letters that are summed is no part of the sums.
            for number, term in enumerate(stage.terms):
                summed = {letter: extents[letter] for letter in term if letter not in stage.term}
                factors[number] = _cleared(factors[number], ends[number], term, summed, self.mesh)
            if stage.panels is None:
                product = _product(stage, factors, dtype)
                values.append(jnp.broadcast_to(product, stage.result.max_local_shape()))
            else:
                values.append(_in_panels(stage, factors, ends, moves, dtype, self.mesh))
        return values[-1]

    def pad(self, *arrays: Any) -> tuple[Any, ...]:
        """The arguments from arrays of the operands' shapes: padded with zeros, in stored order, and sharded.

        XLA moves elements where blocks grow.

        Parameters
        ----------
        *arrays : jax.Array
            For each operand an array.

        Returns
        -------
        tuple[jax.Array, ...]
            The arguments.

        Examples
        --------
        >>> import jax, rote
        >>> plan = rote.compile_einsum("ij,j->i", [(3, 5), (5,)], ["block[(0),()]", "[(0)]"], grid=1, dtype="f4")
        >>> product = rote.jax.lower(plan, jax.make_mesh((1,), ("x",)))
        >>> product.crop(product(*product.pad(jax.numpy.ones((3, 5), "f4"), jax.numpy.ones(5, "f4"))))
        Array([5., 5., 5.], dtype=float32)
        """
        self._check_count(arrays)
        return tuple([padded(x, dist, self.mesh) for x, dist in zip(arrays, self.operands, strict=True)])

    def crop(self, x: Any) -> Any:
        """The array without padding from a result. Modes that do not divide into equal blocks are whole.

        Parameters
        ----------
        x : jax.Array
            The result.

        Returns
        -------
        jax.Array
            The array.

        Examples
        --------
        >>> import jax, rote
        >>> plan = rote.compile_einsum("ij->i", [(3, 5)], ["block[(0),()]"], grid=1, dtype="f4")
        >>> product = rote.jax.lower(plan, jax.make_mesh((1,), ("x",)))
        >>> product.crop(product(*product.pad(jax.numpy.ones((3, 5), "f4")))).shape
        (3,)
        """
        return cropped(x, self.result, self.contraction.result.shape, self.mesh)

    def _check_count(self, arrays: Sequence[Any]) -> None:
        """Refuse arrays that are not as many as operands."""
        if len(arrays) != len(self.operands):
            counts = f"{counted(len(self.operands), 'operand')}, not {len(arrays)}"
            raise LayoutError(f"{self.plan.subscripts} has {counts}\nwrite one array for each")

    def __str__(self) -> str:
        return str(self.plan)


def lower_contraction(contraction: Contraction, mesh: Any, pad: bool = True) -> LoweredContraction:
    """A contraction as a function of arrays of JAX; see `lower`.

    Args:
        pad: whether operands may be longer than they are; if not, moves whose digits do not fit go by tables.
    """
    for dist, dtype in contraction.values():
        check_mesh(mesh, dist.grid)
        check_dtype(dtype)
        if dist.layout.rooted:
            raise PlanError(f"{dist.layout} is rooted, and devices hold blocks of one shape\nwrite a layout without |")

    if 0 in contraction.extents.values():  # nothing moves
        return LoweredContraction(contraction, contraction, mesh, ())

    for plan in _padded(contraction) if pad else ():
        lowered = LoweredContraction(contraction, plan, mesh, _moves(plan, mesh))
        if not lowered.has_tables:
            return lowered
    return LoweredContraction(contraction, contraction, mesh, _moves(contraction, mesh))


def _moves(plan: Contraction, mesh: Any) -> tuple[Moves, ...]:
    """For each stage, the moves of its tensors."""
    moves = list[Moves]()
    for stage in plan.stages:
        of_tensors = ((stage.plan,),) if isinstance(stage, Move) else stage.plans
        moves.append(
            tuple([tuple([Lowered(move.digits(pad=False), mesh) for move in of_panels]) for of_panels in of_tensors])
        )
    return tuple(moves)


# --- padding ---------------------------------------------------------------------------------------------------------


def _padded(plan: Contraction) -> Iterator[Contraction]:
    """The contraction, then those of longer operands whose digits may fit, the smallest first."""
    yield plan
    values, extents = plan.values(), plan.extents
    if any(dist.layout.view is not None for dist, _ in values):
        return  # the extents are those of the view

    # A letter is as long in all tensors, but where one element broadcasts.
    splits: dict[str, list[tuple[Split, ...]]] = {letter: [()] for letter in extents}
    for term, (dist, _) in zip(_terms(plan), values, strict=True):
        for letter, extent, of_mode in zip(term, dist.shape, dist.splits, strict=True):
            if extent == extents[letter]:
                splits[letter].append(of_mode)
    longer = [longer_extents(extent, splits[letter]) for letter, extent in extents.items()]

    for lengths in smallest_shapes(longer, _TRIED):
        padded = dict(zip(extents, lengths, strict=True))
        with suppress(LayoutError, PlanError):  # blocks are of given sizes, or no plan is within the bound
            yield _replanned(plan, padded)


def _terms(plan: Contraction) -> list[str]:
    """The letters of each tensor."""
    terms = [*plan.subscripts.terms]
    for stage in plan.stages:
        terms.append(terms[stage.value] if isinstance(stage, Move) else stage.term)
    return terms


def _replanned(plan: Contraction, extents: Mapping[str, int]) -> Contraction:
    """The contraction of longer operands, in memory that grows as they do."""
    text = plan.subscripts
    before, after, growth = (*plan.operands, plan.result), list[Distribution](), 1.0
    for term, dist in zip((*text.terms, text.result), before, strict=True):
        shape = [
            extents[letter] if n == plan.extents[letter] else n for letter, n in zip(term, dist.shape, strict=True)
        ]
        after.append(dist.layout.on(tuple(shape), dist.grid))
        growth = max(growth, prod(after[-1].max_local_shape()) / prod(dist.max_local_shape()))

    if growth > _MOST:
        raise PlanError(f"{text} needs {growth:.2f} times the memory with padding")
    shapes, most = tuple([dist.shape for dist in after[:-1]]), int(plan.cost.peak_bytes * growth)
    *operands, result = after
    return contraction_of(
        Request(text, shapes, plan.dtypes, tuple(operands), plan.grid, result, False, most, plan.machine)
    )


# --- products --------------------------------------------------------------------------------------------------------


def _product(stage: Product, factors: Sequence[Any], dtype: np.dtype[Any]) -> Any:
    """The product of blocks, with one element along the letters of which all factors have one."""
    jnp = library().numpy
    return jnp.einsum(f"{','.join(stage.terms)}->{stage.term}", *[factor.astype(dtype) for factor in factors])


def _in_panels(
    stage: Product, factors: Sequence[Any], ends: Sequence[Distribution], moves: Moves, dtype: np.dtype[Any], mesh: Any
) -> Any:
    """The product of blocks whose panels move, are multiplied, and are added or put in their place, one by one."""
    jax, rank = library(), rank_of(mesh)
    lax, jnp = jax.lax, jax.numpy
    panels = stage.panels
    assert panels is not None

    def positions(dist: Distribution, mode: int) -> list[Positions]:
        rows = [dist.indices(rank)[mode] for rank in range(dist.grid.size)]
        return [Positions([panels.among(row, panel) for row in rows]) for panel in range(panels.count)]

    # Each factor that moves: its number, the mode of the letter, where its panels are, and their moves.
    moving = list[tuple[int, int, list[Positions], tuple[Lowered, ...]]]()
    for number, (dist, term, of_factor) in enumerate(zip(ends, stage.terms, moves, strict=False)):
        if of_factor:
            mode = term.index(panels.letter)
            moving.append((number, mode, positions(dist, mode), of_factor))

    # One list of moves more than factors is that of the product, whose panels move before they are in the result.
    away, along = [*chain(*moves[len(factors) :])], stage.term.find(panels.letter)
    into = positions(stage.result, along) if along >= 0 else []
    total = jnp.zeros(stage.result.max_local_shape(), dtype)

    for panel in range(panels.count):
        # No panel begins before the last one is in the total, where XLA keeps barriers: for CPUs it does not.
        total, *blocks = lax.optimization_barrier((total, *factors))
        for number, mode, places, of_factor in moving:
            taken = places[panel].taken(blocks[number], mode, rank)
            blocks[number] = of_factor[panel % len(of_factor)].local(taken)  # one move is for all panels

        made = _product(stage, blocks, dtype)
        if away:
            move = away[panel % len(away)]
            made = move.local(jnp.broadcast_to(made, move.source.max_local_shape()))
        total = into[panel].put(total, along, rank, made) if into else total + made
    return total


def _diagonal(block: Any, dist: Distribution, term: str, mesh: Any) -> Any:
    """The elements whose indices along the modes of each letter are equal; zero where other ranks have them."""
    jnp = library().numpy
    add, modes = jnp.any if block.dtype == bool else jnp.sum, range(len(term))
    repeated = tuple([mode for mode in modes if term[mode] in term[:mode]])
    for mode in repeated:
        equal = indices_of(dist, term.index(term[mode]), mesh) == indices_of(dist, mode, mesh)
        block = jnp.where(equal, block, jnp.zeros((), block.dtype))
    return add(block, axis=repeated).astype(block.dtype)


def _cleared(block: Any, dist: Distribution, term: str, extents: Mapping[str, int], mesh: Any) -> Any:
    """A block with zeros behind the ends of some letters, whose extents are given."""
    jnp = library().numpy
    for mode, letter in enumerate(term):
        if letter not in extents:
            continue
        lengths = {len(dist.indices(rank)[mode]) for rank in range(dist.grid.size)}
        if len(lengths) > 1 or dist.shape[mode] > extents[letter]:
            inside = indices_of(dist, mode, mesh) < min(extents[letter], dist.shape[mode])
            block = jnp.where(inside, block, jnp.zeros((), block.dtype))
    return block


# --- calls -----------------------------------------------------------------------------------------------------------


def einsum(
    subscripts: Any,
    *operands: Any,
    layout: Any = None,
    layouts: Sequence[Any] | None = None,
    mesh: Any = None,
    optimize: Any = True,
    max_bytes: int | None = None,
) -> Any:
    """The sum of products that the subscripts describe, of sharded arrays of JAX, as `numpy.einsum`.

    Parameters
    ----------
    subscripts : str
        Such as "ij,jk->ik" or "...ii->..."; or operands, each followed by a list of labels, integers from 0 to 51.
    *operands : jax.Array
        Arrays of JAX, or what stands for them under `jit`; arrays of NumPy are the same on all devices.
    layout : Layout | str | PartitionSpec, optional
        The layout, or the PartitionSpec, of the result. If None, its letters are split as in the last product, as far
        as parts are equal.
    layouts : Sequence[Any], optional
        For each operand its layout, its PartitionSpec, or None, where JAX does not know it: under `jit` if axes of the
        mesh are Auto, and if an operand is in the stored order of a layout that is not in blocks.
    mesh : jax.sharding.Mesh, optional
        The mesh of the operands, where JAX does not know it.
    optimize : bool | str | Sequence, default True
        A path, such as ["einsum_path", (0, 1), (0, 1)], says which operands are multiplied. All other values that NumPy
        takes let the plan choose.
    max_bytes : int, optional
        The most bytes that a device may hold by the plan. XLA may hold more, if it computes panels together.

    Raises
    ------
    NotationError
        The subscripts are invalid.
    LayoutError
        Subscripts, path, layouts and operands do not fit each other.
    PlanError
        The sharding of an operand is not known, or meshes differ; JAX would change a dtype; blocks of the result are
        not equal; or no plan is within `max_bytes`.

    Examples
    --------
    >>> import jax, rote
    >>> mesh, P = jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec
    >>> x = jax.device_put(jax.numpy.ones((2, 3), "f4"), jax.sharding.NamedSharding(mesh, P("x", None)))
    >>> rote.jax.einsum("ij,ij->i", x, x).tolist()
    [3.0, 3.0]
    """
    if not isinstance(subscripts, str):
        subscripts, arguments = as_text((subscripts, *operands))
        operands = tuple(arguments)
    operands = tuple([np.asarray(x) if isinstance(x, list | tuple) else x for x in operands])
    letters = read_subscripts(subscripts, [*map(np.ndim, operands)])
    if layouts is not None and len(layouts) != len(operands):
        counts = f"{counted(len(layouts), 'layout')} for {counted(len(operands), 'operand')}"
        raise LayoutError(f"{counts}\nwrite one for each, or None where JAX knows it")

    jax, dists = library(), dict[int, Distribution]()
    for number, (x, known) in enumerate(zip(operands, layouts or [None] * len(operands), strict=True)):
        if isinstance(x, jax.Array):
            dists[number], mesh = distribution_of(x, known, mesh)
        elif isinstance(x, np.ndarray):
            check_dtype(x.dtype)
    if not dists:
        raise PlanError("no operand is an array of JAX\nwrite rote.jax.from_global(array, dist, mesh), or numpy.einsum")

    arrays = [jax.numpy.asarray(x, jax.numpy.result_type(*operands)) for x in operands]
    for number, x in enumerate(arrays):
        if number not in dists:  # an array of NumPy is the same on all devices
            dists[number] = on_mesh(Layout(((),) * x.ndim), x.shape, mesh)
            arrays[number] = jax.device_put(x, sharding(dists[number], mesh))
    ends = tuple([dists[number] for number in range(len(arrays))])

    target = None
    if layout is not None:
        extents = letters.extents([end.shape for end in ends])
        target = on_mesh(layout, [extents[letter] for letter in letters.result], mesh)
        instead = "product = rote.jax.lower(rote.compile_einsum(…), mesh), and product.crop(product(*product.pad(…)))"
        check_equal_blocks(target, mesh, instead)
    path = read_path(optimize, len(arrays))
    return _program(letters, ends, as_planned(arrays[0].dtype), target, max_bytes, path, mesh)(*arrays)


@memoized(256)
def _program(
    letters: Subscripts,
    ends: tuple[Distribution, ...],
    dtype: np.dtype[Any],
    target: Distribution | None,
    most: int | None,
    path: tuple[tuple[int, ...], ...] | None,
    mesh: Any,
) -> LoweredContraction:
    """The contraction of arrays as they are, without padding."""

    def planned(result: Distribution | None) -> Contraction:
        shapes, dtypes = tuple([end.shape for end in ends]), (dtype,) * len(ends)
        grid = Grid(mesh.axis_sizes)
        return contraction_of(Request(letters, shapes, dtypes, ends, grid, result, False, most, DEFAULT, path))

    plan = planned(target)
    result = plan.result
    if stored_shape(result) != result.shape:  # modes of unequal parts are whole
        pairs = zip(stored_shape(result), result.shape, result.layout.modes, strict=True)
        modes = tuple([entries if stored == extent else () for stored, extent, entries in pairs])
        plan = planned(Layout(modes).on(result.shape, result.grid))
    return lower_contraction(plan, mesh, pad=False)

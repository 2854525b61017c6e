"""DistTensor: a tensor distributed over ranks.

It wraps this rank's block, a plain NumPy array, and the distribution that says which part of the tensor this is. All
constructors, and all methods that move data, are collective: every rank calls them from one thread, or, if there is
only one rank, from any thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from ..compiler.compile import compile
from ..compiler.plan import Plan
from ..compiler.step import refuse_mask
from ..errors import LayoutError
from ..functions.distributed import Array, Distributed
from ..functions.moves import announce, because, implicit_cause, records_open, refuse_copies
from ..functions.sharing import changed, check_out, has_block
from ..layout.grid import grid_shape
from ..layout.layout import Distribution, Layout, as_layout, distribute
from ..runtime.comm import segments
from ..runtime.comm.cache import cached, refuse_others
from ..runtime.comm.collective_errors import collective_errors, floating_errors, floating_errors_raise
from ..runtime.comm.protocol import Comm, Path
from ..runtime.comm.resolve import as_comm
from ..runtime.executor.aliasing import bound_apart, meet, run_apart
from ..runtime.placement import GridLike
from ..runtime.program import BoundPlan, bind
from ..runtime.tuning.limits import Tune
from ..runtime.tuning.methods import tuned
from .bound_move import BoundMove
from .constructors import Constructors
from .halo import Halos
from .methods import ArrayMethods, fixed
from .protocols import ArrayProtocols
from .rearranging import Rearranging
from .subsets import Subsets

__all__ = ["DistTensor"]

_KEPT = 64  # redistributions that one communicator keeps


class DistTensor(Constructors, Rearranging, ArrayMethods, ArrayProtocols, Halos, Subsets):
    """A tensor distributed over the ranks of a communicator.

    Operators and NumPy's element-wise functions combine tensors with each other and with scalars. If the operands have
    different layouts, one of them is moved; `rote.config` allows or forbids this. `np.array_equal` and `np.allclose`
    are collective and give the same on all ranks. No operation gathers the whole array unless you ask: `np.asarray(x)`
    is refused, `x.to_global()` does it.

    Use the constructors `from_function`, `from_global`, `from_local`, `from_slices`, `zeros`, `empty` and `load`.

    >>> import numpy as np
    >>> x = DistTensor.from_global(np.arange(6.0).reshape(2, 3), "block[(0),()]")
    >>> x
    DistTensor((2, 3), float64, 'block[(0),()]', grid=(1,), rank=0, local=(2, 3))
    >>> (2 * x + 1).redistribute("[(),(0)]").to_global()[1]
    array([ 7.,  9., 11.])
    """

    __slots__ = ("__weakref__", "_comm", "_distribution")

    def __init__(self, local: Array, distribution: Distribution, comm: object | None = None) -> None:
        """Wrap this rank's block without a copy, and without asking other ranks; `from_local` also checks those.

        Raises:
            LayoutError: the block has another shape than the distribution gives this rank; raised on this rank only.
            TypeError: `distribution` is not a distribution, or the block has a mask; raised on this rank only.
        """
        self._comm = as_comm(comm)
        self._distribution = distribution
        self._local = local
        self._sharing = None
        if not isinstance(distribution, Distribution):
            raise TypeError("DistTensor(block, dist) takes a Distribution\nwrite DistTensor.from_global(array, layout)")
        if type(local) is not np.ndarray:
            refuse_mask(type(local))
        if local.shape != (wanted := distribution.local_shape(self._comm.rank)):
            text = f"rank {self._comm.rank} holds a block of {wanted} in {distribution}, not {local.shape}"
            if local.shape == distribution.shape:
                text += "\nwrite DistTensor.from_global(array, layout) for an array that every rank has whole"
            raise LayoutError(text)

    def save(self, path: Path) -> None:
        """Write one file, with `.npy`, `.zarr`, `.h5` or `.xdmf` as its suffix; every rank writes its own part.

        For names, attributes and steps use `rote.save`, which has the details.

        Raises:
            OSError, RoteError, LayoutError: as `rote.save`.

        >>> import numpy as np
        >>> DistTensor.zeros((2, 3), "[(0),()]").save("zeros.npy")
        >>> np.load("zeros.npy").shape
        (2, 3)
        """
        from .files import save

        save(path, self)

    @property
    def local(self) -> Array:
        """This rank's block, of shape `distribution.local_shape(rank)`; write into it freely.

        It is read-only in a part of a tensor whose elements are copies, such as `x[2:]` along a split mode.
        """
        return self._local

    if not TYPE_CHECKING:
        local = fixed(local, "x.local[...] = block")

    @property
    def distribution(self) -> Distribution:
        """The layout on the tensor's shape and grid: which rank holds which elements."""
        return self._distribution

    @property
    def comm(self) -> Comm:
        """The communicator of the tensor's ranks."""
        return self._comm

    def slices(self) -> tuple[slice, ...]:
        """Per mode, the slice of the whole tensor that this rank's block holds: `whole[x.slices()]` equals `x.local`.

        Raises: LayoutError if the block is not a slice: with a view, with contributions, or with several tiles.

        >>> DistTensor.zeros((4, 6), "block[(0),()]").slices()
        (slice(0, 4, None), slice(0, 6, None))
        """
        from ..layout.slices import as_slices

        return as_slices(self.distribution, self._comm.rank)

    def redistribute(
        self,
        layout: Layout | str,
        out: DistTensor | None = None,
        grid: GridLike = None,
        method: str = "auto",
        tune: Tune = "model",
        wire: str | None = None,
    ) -> DistTensor:
        """The tensor in another layout, moved by the compiled plan: `out`, or a new tensor. Collective.

        Args:
            layout: the new layout.
            out: a tensor of that layout, shape and dtype to write into, which may share this one's memory; new if None.
            grid: the grid of the new layout, over the same ranks, as in `from_global`; the old one if None.
            method: how messages travel, one of `rote.methods`; with "auto", ranks that share memory read each other's
                blocks. The result is the same, bit for bit, but for sums of floats between nodes, and for `wire`.
            tune: "model" takes the default method for "auto"; "measure" and "patient" time the methods at the first
                call, take the fastest, and keep the choice (see `rote.wisdom`).
            wire: "f4" rounds f8 and c16 to single precision in messages, which halves their bytes (see `rote.compile`).

        Raises:
            LayoutError: the layout does not fit, or `out` has another layout or is read-only.
            PlanError, CommError: the grid has another number of ranks; these ranks have no such method, or no such
                `wire`.
            TypeError: `out` is not a tensor.

        >>> x = DistTensor.zeros((4, 6), "block[(0),()]")
        >>> print(x.redistribute("block[(),(0)]").layout)
        block[(),(0)]
        """
        program = self._program_to(layout, grid, method, tune, wire, "no out" if out is None else "an out")
        if implicit_cause.get() or records_open.get():
            announce(self, program.plan.cost.bytes, lambda: str(program.plan))
        if out is None:
            return DistTensor._wrap(program(self._local), program.plan.target, self._comm)
        _move_into(self, out, program)
        if out._sharing is not None:
            changed(out)
        return out

    def move_to(
        self,
        layout: Layout | str,
        out: DistTensor | None = None,
        grid: GridLike = None,
        method: str = "auto",
        tune: Tune = "model",
        wire: str | None = None,
    ) -> BoundMove[DistTensor]:
        """Bind the move of this tensor to another layout, to be called again and again. Collective.

        Binding moves nothing. Each call fills the result with the current values of this tensor, as
        `x.redistribute(layout, out=result)` does, at a fraction of its cost if blocks are small. The move keeps the
        memory of both tensors.

        Args:
            out: the tensor to fill, which may share this one's memory; a new one if None.
            layout, grid, method, tune, wire: as in `redistribute`.

        Returns:
            A `BoundMove`, whose `result` is `out` or a new tensor that is not set yet.

        Raises:
            LayoutError: the layout does not fit, or `out` has another layout or is read-only.
            PlanError, CommError: the grid has another number of ranks; these ranks have no such method.
            TypeError: `out` is not a tensor.

        >>> x = DistTensor.from_function(lambda i, j: 10 * i + j, (2, 3), "[(0),()]")
        >>> move = x.move_to("[(),(0)]")
        >>> move().to_global().tolist()
        [[0, 1, 2], [10, 11, 12]]
        """
        program = self._program_to(layout, grid, method, tune, wire)
        target = program.plan.target
        if out is None:
            out = self._on(segments.empty(target.local_shape(self.comm.rank), program.plan.dtype, lasting=True), target)
        with collective_errors(self.comm):
            _check_out(out, program.plan)
        return BoundMove(self, out, program)

    def _program_to(
        self, layout: Layout | str, grid: GridLike, method: str, tune: Tune, wire: str | None, into: str = ""
    ) -> BoundPlan:
        """The program that moves this tensor's blocks to another layout, and into what, in words. Collective."""
        source, dtype, comm, layout = self._distribution, self._local.dtype, self._comm, as_layout(layout)
        key = (source, dtype, layout, method, tune, wire, into)

        def make() -> BoundPlan:
            on = source.grid if grid is None else grid_shape(grid, comm.size)
            plan = compile(source, distribute(layout, source.shape, on), dtype, wire=wire)
            methods = method if method != "auto" or tune == "model" else tuned(plan, comm, tune)
            return bind(plan, comm, methods)

        call = "redistribute", (*key, grid)
        if grid is not None:
            refuse_others(comm, *call)
            return make()
        return cached(comm, "redistributions", key, make, _KEPT, call)

    def to_global(self) -> Array:
        """The whole array, of shape `x.shape`, on every rank. Collective.

        Raises:
            LayoutError: the copies of the ranks of some node would take more than half of its memory, and
                `rote.config(gather="allow")` is not set; on all ranks.

        >>> DistTensor.from_function(lambda i: i**2, 4, "[(0)]").to_global()
        array([0, 1, 4, 9])
        """
        whole = Layout(((),) * self.ndim)
        refuse_copies(self, whole, None, "to_global")
        with because("to_global"):
            return self.redistribute(whole).local

    def _with(self, block: Array) -> Self:
        return self._wrap(block, self._distribution, self._comm)

    def _on(self, block: Array, distribution: Distribution) -> Self:
        return self._wrap(block, distribution, self._comm)

    @classmethod
    def _wrap(cls, block: Array, distribution: Distribution, comm: Comm) -> Self:
        x = cls.__new__(cls)  # unchecked: the caller made the block in the shape of the distribution
        x._local, x._distribution, x._comm, x._sharing = block, distribution, comm, None
        return x

    def __repr__(self) -> str:
        if not has_block(self):
            return f"DistTensor({self.shape}, {str(self.layout)!r}, outdated: the tensor of this part has changed)"
        block = self.local
        held = f"local={block.shape}"
        if not block.shape:  # of order 0: what this rank has, for no rank asks others here
            held = f"{'contribution' if self.layout.partial else 'value'}={block.item()}"
        return (
            f"DistTensor({self.shape}, {block.dtype}, {str(self.layout)!r}, grid={self.grid.shape}, "
            f"rank={self._comm.rank}, {held})"
        )


def _move_into(x: Distributed, out: Distributed, program: BoundPlan) -> None:
    """Move a tensor into another; for small ones, the calls are kept for the next time. Collective.

    Raises:
        LayoutError: `out` does not have the program's target distribution and dtype, or is read-only.
    """
    if not program.is_small:
        with collective_errors(x.comm):
            _check_out(out, program.plan)
        run_apart(x.comm, program, x.local, out.local)
        return
    key, prepared = (id(x), id(out)), program.prepared
    number, calls = prepared.runs.get(key, (0, []))
    if not number:  # perhaps on this rank alone, so that it asks nobody
        _check_out(out, program.plan)
    meeting = meet(x.comm, x.local, out.local, number)
    if not meeting.agreed:
        calls = bound_apart(x.comm, program.bound, x.local, out.local, meeting.overlaps)
        if meeting.together and all(x.comm.share_reference(calls[:1] == [x.comm.barrier]) or ()):
            calls = calls[1:]  # `meet` was a barrier already; but a rank that first copies its block must be waited for
        x.comm.cache["prepared"] = last = x.comm.cache.get("prepared", 0) + 1  # no other run has this number
        prepared.keep(key, x, out, (last, calls))
    if program.computes and floating_errors_raise():
        with floating_errors(x.comm, "a move"):
            for call in calls:
                call()
        return
    for call in calls:
        call()


def _check_out(out: Distributed, plan: Plan) -> None:
    """Refuse an `out` that is not a tensor, has not the plan's target distribution and dtype, or is read-only."""
    if not isinstance(out, Distributed):
        raise TypeError(f"out is a DistTensor, not {type(out).__name__}\nwrite out=DistTensor.empty(shape, layout)")
    if (out.distribution, out.local.dtype) != (plan.target, plan.dtype):
        raise LayoutError(f"out is {out.distribution} {out.local.dtype}, but {plan.target} {plan.dtype} is asked for")
    check_out(out)

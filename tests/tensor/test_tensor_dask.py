"""`rote.from_dask` and `x.to_dask`: each rank computes its part, each chunk is computed once, nothing else is taken."""

from __future__ import annotations

from collections import Counter
from typing import Any

import dask
import dask.array
import numpy as np
import pytest

import rote
from rote.runtime import Comm, run
from rote.runtime.regions import cut
from rote.tensor.dask import _of_whole_chunks

FIELD = np.arange(10 * 12.0).reshape(10, 12)
CHUNKS = [((2, 3, 5), (6, 6)), ((10,), (12,)), ((1,) * 10, (12,)), ((4, 4, 2), (1,) * 12), ((5, 5), (3, 9))]
LAYOUTS = [
    "block[(0),()]",
    "[(),(0)]",
    "block[(0),(1)]",
    "b a: [(0),()]",
    "[(0),()]+(1)",
    "block[(),()]|(0@0)",
    "[(),()]",
]


def counted(chunks: Any, calls: Counter[tuple[int, ...]]) -> dask.array.Array:
    """The field as a Dask array that counts how often each chunk is computed, by its place."""

    def note(part: Any, block_info: Any = None) -> Any:
        calls[block_info[0]["chunk-location"]] += 1
        return part

    d = dask.array.from_array(FIELD, chunks=chunks)
    return d.map_blocks(note, dtype="f8", meta=np.empty((0, 0)))


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
def test_each_chunk_is_computed_once(ranks: int, chunks: Any) -> None:
    """In any layout on any ranks, the tensor is the array, and no chunk is computed twice."""
    for layout in LAYOUTS:
        calls: Counter[tuple[int, ...]] = Counter()
        d = counted(chunks, calls)

        def program(comm: Comm) -> None:
            with rote.config(implicit="error"):
                x = rote.from_dask(d, layout, comm)  # noqa: B023
            if not x.distribution.partial:
                np.testing.assert_array_equal(x.local, cut(FIELD, x.distribution, comm.rank))
            np.testing.assert_array_equal(x.redistribute("[(),()]").local, FIELD)

        run(program, ranks)
        assert calls == Counter(list(np.ndindex(d.numblocks))), (layout, chunks)


def test_work_is_even() -> None:
    """Chunks go to as many ranks as there are chunks along any mode, in equal parts where the chunks allow it."""
    cases = [((2,) * 8, (6,), 4), ((8,), (1,) * 6, 3), ((3,) * 4, (3,) * 4, 8), ((2,) * 4, (2,) * 2, 8)]
    for *chunks, ranks in cases:
        dist = _of_whole_chunks(tuple(chunks), ranks)
        sizes = {np.prod(dist.local_shape(rank)) for rank in range(ranks)}
        assert len(sizes) == 1, (chunks, ranks, str(dist))


@pytest.mark.parametrize("array", [np.float32(3), np.zeros(0), np.zeros((0, 4)), np.arange(5, dtype="c16")])
def test_small_arrays(array: Any) -> None:
    """Order 0, which one rank computes, arrays without elements, and fewer chunks than ranks."""
    array = np.asarray(array)
    layout = f"block[{','.join(['(0)', '()'][: array.ndim])}]"

    def program(comm: Comm) -> None:
        x = rote.from_dask(dask.array.from_array(array), layout, comm)
        assert x.dtype == array.dtype
        np.testing.assert_array_equal(x.to_global(), array)

    run(program, 3)


def test_chunk_by_chunk_and_back() -> None:
    """What Dask does chunk by chunk, each rank does for its block; another rank's block is an error."""

    def program(comm: Comm) -> None:
        for layout in ("block[(0),()]", "[(),(0)]", "block(7)[(0),()]", "cyclic(3)[(0),()]", "block[(),(0)]"):
            x = rote.DistTensor.from_global(FIELD, layout, comm)
            d = x.to_dask()
            assert (d.shape, d.dtype, d.chunks) == (FIELD.shape, FIELD.dtype, x.distribution.to_chunks())
            if "3" in layout:  # a rank has several tiles
                first = d[3 * comm.rank : 3 * comm.rank + 3].compute()
                np.testing.assert_array_equal(first, x.local[:3])
            else:
                np.testing.assert_array_equal(d[x.slices()].compute(), x.local)
            y = rote.from_dask(np.sqrt(d) * 2, x.layout, comm)
            np.testing.assert_array_equal(y.to_global(), np.sqrt(FIELD) * 2)
            with pytest.raises(rote.LayoutError, match=r"does not have .*\ncompute d\[x.slices\(\)\]"):
                d.sum().compute()

        with pytest.raises(rote.LayoutError, match="to_dask is element-wise"):
            rote.DistTensor.zeros((4, 6), "[(),()]+(0)", comm).to_dask()
        with pytest.raises(rote.LayoutError):
            rote.DistTensor.zeros((8, 6), "b a: [(0),()]", comm).to_dask()
        assert float(rote.DistTensor.zeros((), "[]", comm).to_dask().compute()) == 0

    run(program, 2)


@pytest.mark.parametrize("grid", [(1, 4), (2, 2), (4, 1)])
@pytest.mark.parametrize(
    "layout", ["block[(1),()]", "block[(),(0)]", "cyclic(3)[(0),(1)]", "cyclic(5)[(0,1),()]", "[(),()]"]
)
def test_replicas_and_tiles_go_there_and_back(layout: str, grid: tuple[int, ...]) -> None:
    """Law: in a layout that replicates, or that has several tiles on a rank, ranks compute chunks that they have."""

    def program(comm: Comm) -> None:
        x = rote.DistTensor.from_global(FIELD, layout, comm, grid)
        y = rote.from_dask(x.to_dask() + 1, x.layout, comm, x.grid)
        assert y.distribution == x.distribution
        np.testing.assert_array_equal(y.local, x.local + 1)

    run(program, 4)


def test_what_is_refused() -> None:
    """No Dask array, unknown chunks, another dtype, other arrays on some ranks, a failing chunk: one error on all."""
    d = dask.array.from_array(FIELD, chunks=5)

    def fails(part: Any) -> Any:
        raise ArithmeticError("in a chunk")

    def program(comm: Comm) -> None:
        def refused(array: Any, kind: type[Exception], text: str, layout: str = "block[(0),()]") -> None:
            with pytest.raises(kind, match=text):
                rote.from_dask(array, layout, comm)

        refused(FIELD, TypeError, "takes a Dask array, not ndarray\nwrite DistTensor.from_global")
        refused(d[d[:, 0] > 3], rote.RoteError, r"unknown size.*\ncall d.compute_chunk_sizes\(\)")
        refused(d.astype("U3"), rote.PlanError, "not <U3")
        refused(d, rote.LayoutError, "mode", "[(0)]")
        refused(d.rechunk(5 - comm.rank), rote.LayoutError, "one thing on all ranks", "[(),(0)]")
        refused(d.map_blocks(fails, dtype="f8", meta=np.empty((0, 0))), ArithmeticError, "in a chunk")
        assert rote.from_dask(d[d[:, 0] > 3].compute_chunk_sizes(), "[(0),()]", comm).shape == (9, 12)

    run(program, 2)

"""Arrays of other libraries beside tensors: as good as NumPy's in every place, or refused by one text on all ranks."""

from __future__ import annotations

import operator
from collections import Counter
from pathlib import Path
from typing import Any

import dask.array
import foreign
import foreign_arrays
import numpy as np
import pytest
from foreign_arrays import CALLS, FIELD, LAYOUTS, OTHER, REFUSED, ROW, compare, into, made

import rote
import rote.array_api as xp
from rote import DistTensor


@pytest.mark.filterwarnings("ignore::rote.errors.MoveWarning")
@pytest.mark.parametrize("ranks", (1, 3, 4))
@pytest.mark.parametrize("kind", foreign.KINDS)
def test_arrays_of_other_libraries_are_as_good_as_numpys(kind, ranks):
    """Law: in every place of an array, one of another library gives NumPy's result, in any layout, on any ranks."""
    of = foreign.KINDS[kind]

    def program(comm):
        for layout in LAYOUTS:
            for name, call in CALLS.items():
                x = DistTensor.from_global(FIELD, layout, comm)
                compare(call(x, of), call(FIELD, np.asarray), name, layout, kind)
            want = made(comm, np.asarray, layout)
            for name, got in made(comm, of, layout).items():
                compare(got, want[name], name, layout, kind)

    rote.run(program, ranks)


@pytest.mark.parametrize("ranks", (1, 4))
@pytest.mark.parametrize("dtype", ("i8", "f8", "i2"))
def test_ranges_and_buffers_are_arrays(ranks, dtype):
    """Law: so are ranges and `array.array`, which have one mode: as operands, indices, values and new tensors."""
    calls: dict[str, Any] = {
        "multiply": lambda x, of: x * of(np.arange(4, dtype=dtype)),
        "equal": lambda x, of: of(np.arange(4, dtype=dtype)) == x,
        "where": lambda x, of: np.where(x > 2, of(np.arange(4, dtype=dtype)), x),
        "array_equal": lambda x, of: [np.array_equal(x, of(np.arange(n, dtype=dtype))) for n in (4, 5)],
        "average": lambda x, of: np.average(x, weights=of(np.arange(4, dtype=dtype))),
        "index": lambda x, of: x[of(np.arange(3, dtype="i8"))],
        "assign": lambda x, of: into(x, lambda y: operator.setitem(y, of(np.arange(2, dtype="i8")), of(ROW[:2]))),
        "concatenate": lambda x, of: np.concatenate([x, of(np.arange(4, dtype=dtype))]),
    }

    def program(comm):
        line = np.arange(4)
        x = DistTensor.from_global(foreign.line_of(line), "block[(0)]", comm)
        compare(x, line)
        for name, call in calls.items():
            compare(call(x, foreign.line_of), call(line, lambda y: np.asarray(foreign.line_of(y))), name)

    rote.run(program, ranks)


@pytest.mark.filterwarnings("ignore::rote.errors.MoveWarning")
@pytest.mark.parametrize("kind", REFUSED)
def test_arrays_that_are_elsewhere_are_refused(kind):
    """Law: an array on another device, or one of Dask, is refused by one text on all ranks in every place; no tensor
    has changed, and the text says what to write."""
    text, of = REFUSED[kind]

    def program(comm):
        x = DistTensor.from_global(FIELD, LAYOUTS[0], comm)
        texts = []
        for call in CALLS.values():
            with pytest.raises(TypeError, match=text) as refused:
                call(x, of)
            texts.append(str(refused.value))
        for call in (
            lambda: DistTensor.from_global(of(FIELD), LAYOUTS[0], comm),
            lambda: DistTensor.from_local(of(x.local), LAYOUTS[0], (4, 3), comm),
            lambda: xp.asarray(of(FIELD), comm=comm),
            lambda: xp.full(3, of(np.array(1.0)), comm=comm),
            lambda: rote.fft.convolve(x, of(OTHER)),
            lambda: rote.testing.assert_equal(x, of(FIELD)),
        ):
            with pytest.raises(TypeError, match=text) as refused:
                call()
            texts.append(str(refused.value))
        assert comm.allgather_object(texts) == [texts] * comm.size
        np.testing.assert_array_equal(x.to_global(), FIELD)

    rote.run(program, 2)


def test_how_each_library_copies_to_the_host():
    """Law: the error names the call of the array's own library, also where that has NumPy's protocols, as CuPy has."""
    copies = {
        "cupy": r"y\.get\(\)",
        "torch": r"y\.detach\(\)\.cpu\(\)",
        "jaxlib": r"jax\.device_get",
        "other": "asarray",
    }
    x = DistTensor.zeros(3, "block[(0)]")
    for library, copy in copies.items():
        protocols = {"__array_ufunc__": lambda *args, **options: NotImplemented}
        protocols["__array_function__"] = protocols["__array_ufunc__"]
        for names in ({}, protocols):
            y = type("Array", (foreign.OnDevice,), {"__module__": f"{library}.core", **names})(np.ones(3))
            for call in (lambda: x + y, lambda: y * x, lambda: np.where(y, x, 0), lambda: np.stack([y, x])):  # noqa: B023
                with pytest.raises(TypeError, match=f"^{library}'s Array y is not in the memory of the host\n.*{copy}"):
                    call()


@pytest.mark.parametrize("ranks", (1, 2, 3))
def test_each_rank_computes_its_part_of_a_dask_array(ranks):
    """Law: the line that the error says gives the tensor, and each chunk is computed once."""
    computed: Counter[Any] = Counter()

    def chunk(block: Any, block_info: Any = None) -> Any:
        computed[block_info[None]["chunk-location"]] += 1
        return block + 1

    values = np.arange(48.0).reshape(12, 4)
    d = dask.array.from_array(values, chunks=(2, 2)).map_blocks(chunk, dtype="f8", meta=np.empty((0, 0)))

    def program(comm):
        with pytest.raises(TypeError) as refused:
            DistTensor.from_global(d, "block[(0),()]", comm)
        lines = str(refused.value).splitlines()[2:]
        names = {"rote": rote, "d": d}
        exec("\n".join(lines), names)
        np.testing.assert_array_equal(names["x"].to_global(), values + 1)

    rote.run(program, ranks)
    assert computed == Counter(dict.fromkeys(np.ndindex(6, 2), 1))


@pytest.mark.mpi
@pytest.mark.parametrize("job", (3,), indirect=True)
def test_under_mpi(job):
    """So on ranks of MPI, where no rank waits for one that was refused."""
    done = job.run(Path(foreign_arrays.__file__))
    assert done.stdout == "as NumPy's\n", done.stderr

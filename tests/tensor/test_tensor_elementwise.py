"""Element-wise functions, reductions and the array namespace: laws against NumPy in any layout, on any ranks."""

from __future__ import annotations

import math
import operator
import warnings
from fractions import Fraction
from itertools import product
from pathlib import Path

import elementwise
import numpy as np
import pytest
from elementwise import CHECKS

import rote
import rote.array_api as xp
from rote import DistTensor
from rote.errors import LayoutError, MoveWarning

PROGRAM = Path(elementwise.__file__)


def run(check, ranks, seed):
    with warnings.catch_warnings(), np.errstate(all="ignore"), rote.config(implicit="allow"):
        warnings.simplefilter("ignore")
        rote.run(check, ranks, (seed,))


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_in_process(check, ranks):
    """Each law on in-process ranks, for a few tensors."""
    run(check, ranks, ranks)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_in_process_all(check, ranks):
    """Each law on in-process ranks, for many tensors, on each number of ranks others."""
    for seed in range(100 + ranks, 112, 3):
        run(check, ranks, seed)


@pytest.mark.mpi
@pytest.mark.parametrize("job", (3,), indirect=True)
def test_under_mpi(job):
    """All laws on ranks of MPI, NaNs among them: MPI's own maximum may lose those."""
    done = job.run(PROGRAM)
    assert done.stdout == f"{len(CHECKS)} checks on 3 ranks\n", done.stderr


def test_a_line_is_warned_of_once():
    """An implicit move warns once per line of the program, with the function, plan and bytes; on rank 0 alone."""

    def program(comm):
        x = DistTensor.from_global(np.ones((4, 6)), "block[(0),()]", comm)
        y = x.redistribute("block[(),(0)]")
        for _ in range(3):
            x + y
        return x + y

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        rote.run(program, 2)
    texts = [str(each.message) for each in said if each.category is MoveWarning]
    assert len(texts) == 2 and all("add moves up to 48 bytes to each" in text for text in texts)
    assert all("alltoall over 0" in text for text in texts)
    assert len({text.partition(": ")[0] for text in texts}) == 2 and "test_tensor_elementwise.py" in texts[0]


def test_operands_go_where_it_costs_least():
    """Of two layouts the one is chosen to which the other is cheapest to bring; the larger tensor stays."""

    def program(comm):
        x = DistTensor.from_global(np.ones((8, 6)), "block[(0),()]", comm)
        single = DistTensor.from_global(np.ones((8, 6), "f4"), "block[(),(0)]", comm)
        column = DistTensor.from_global(np.ones((8, 1)), "[(),()]", comm)
        everywhere = DistTensor.from_global(np.ones((8, 6)), "[(),()]", comm)
        with rote.config(implicit="allow"), rote.trace() as moves:
            layouts = [str(z.layout) for z in (x + single, single + x, x + column, x + everywhere, everywhere * x)]
        return layouts, [move.nbytes for move in moves]

    blocks = "block[(0),()]"
    assert rote.run(program, 2)[0] == ([blocks] * 5, [48, 48])


def test_partial_sums_stay_partial_if_that_is_asked_for():
    """`layout=` may name contributions, reduce-scatter or another split; a reduction of contributions moves once."""

    def program(comm):
        x = DistTensor.from_global(np.arange(24.0).reshape(4, 6), "block[(0),()]", comm)
        with rote.trace() as moves:
            partial = x.sum(axis=0, layout="[()]+(0)")
            assert not moves and partial.distribution.partial == (0,)
            total, scattered = partial.sum(), x.sum(axis=0, layout="block[(0)]")
        assert float(total) == 276 and scattered.to_global().tolist() == partial.to_global().tolist()
        return [move.plan.splitlines()[1].split()[1] for move in moves]

    assert rote.run(program, 2)[0] == ["allreduce", "reduce_scatter"]


def test_the_order_of_sums_is_that_of_nobody():
    """An exact sum has the same bits in all layouts, where a plain one has not."""
    array = np.random.default_rng(0).standard_normal(1000) * 10.0 ** np.random.default_rng(1).integers(-8, 8, 1000)

    def program(comm, exact):
        layouts = ("block[(0)]", "[(0)]", "[(0:cyclic(7))]", "[()]")
        return [float(DistTensor.from_global(array, text, comm).sum(exact=exact)) for text in layouts]

    exact = {value for ranks in (1, 2, 3) for value in rote.run(program, ranks, (True,))[0]}
    assert exact == {math.fsum(array)}
    assert len({value for ranks in (1, 2, 3) for value in rote.run(program, ranks, (False,))[0]}) > 1


def test_the_namespace_says_what_it_is():
    """Dtypes, limits, devices and kinds by the standard's names; new tensors of NumPy's values in any layout."""
    info = xp.__array_namespace_info__()
    assert info.devices() == [info.default_device()] == ["cpu"] and info.dtypes(kind="bool") == {"bool": xp.bool}
    assert set(info.dtypes(kind=("integral", "real floating"))) == {
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
    }
    with pytest.raises(LayoutError, match="kind of dtypes"):
        info.dtypes(kind="imaginary")
    x = xp.ones(3)
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ValueError, match=r"not 1999\.1"):
        x.__array_namespace__(api_version="1999.1")
    assert x.device == "cpu" and x.to_device("cpu") is x
    for call in (x.to_device, lambda gpu: xp.zeros(3, device=gpu), lambda gpu: xp.ones_like(x, device=gpu)):
        with pytest.raises(LayoutError, match="write 'cpu'"):
            call("gpu")
    with pytest.raises(LayoutError, match="full takes one value"):
        xp.full(3, [1, 2, 3])
    with pytest.raises(LayoutError, match=r"diagonal is an integer, not 0\.5"):
        xp.eye(3, k=0.5)

    def program(comm):
        for text in ("block[(0)]", "[(0:cyclic(2))]", "[()]"):
            for arguments in ((5,), (2, 9, 2), (0.1, 2, 0.3), (5, -5, -3), (3, 3), (1, 0)):
                np.testing.assert_array_equal(
                    xp.arange(*arguments, layout=text, comm=comm).to_global(), np.arange(*arguments)
                )
            for arguments in ((0, 1, 7), (1, -2, 5), (3, 3, 4), (0, 1, 1), (0, 1, 0), (0, 1j, 3)):
                for end in (True, False):
                    got = xp.linspace(*arguments, endpoint=end, layout=text, comm=comm)
                    np.testing.assert_array_equal(got.to_global(), np.linspace(*arguments, endpoint=end))
            for k in (-7, -1, 0, 2, 9):
                got = xp.eye(4, 6, k=k, layout="block[(),(0)]", comm=comm)
                np.testing.assert_array_equal(got.to_global(), np.eye(4, 6, k))
                np.testing.assert_array_equal(xp.tril(got + 1, k=1).to_global(), np.tril(np.eye(4, 6, k) + 1, 1))
                np.testing.assert_array_equal(np.triu(got + 1, k).to_global(), np.triu(np.eye(4, 6, k) + 1, k))
        vectors = [np.arange(n) for n in (3, 4, 2)]
        with rote.config(implicit="allow"):
            tensors = [xp.asarray(v, layout="block[(0)]", comm=comm) for v in vectors]
            for indexing in ("xy", "ij"):
                meshes = xp.meshgrid(*tensors, indexing=indexing)
                assert type(meshes) is list  # so the standard of this version
                for got, want in zip(meshes, np.meshgrid(*vectors, indexing=indexing), strict=True):
                    np.testing.assert_array_equal(got.to_global(), want)
            meshes = xp.broadcast_arrays(tensors[0], tensors[0][:1])
            assert type(meshes) is list and type(np.broadcast_arrays(*meshes, subok=True)) is tuple
            np.testing.assert_array_equal(meshes[1].to_global(), [0, 0, 0])
        for text in ("block[(0)]", "[(0)]", "[()]"):
            x = xp.asarray([1, 2, 3], dtype="f4", layout=text, comm=comm)
            rows = xp.asarray([[x[i] * x[j] for j in range(3)] for i in range(2)], layout="block[(),(0)]", comm=comm)
            assert rows.dtype == "f4" and rows.to_global().tolist() == [[1, 2, 3], [2, 4, 6]]
            total = DistTensor.from_local(np.float64(comm.rank + 1), "[]+(0)", (), comm=comm)
            assert xp.asarray((total, x[2], 7), comm=comm).to_global().tolist() == [3, 3, 7]
            with pytest.raises(LayoutError, match="a tensor is not gathered silently"):
                xp.asarray([x, x], comm=comm)
        whole = xp.asarray([1.5, 2.5], layout="[()]", comm=comm)
        np.testing.assert_array_equal(np.from_dlpack(whole), [1.5, 2.5])
        assert np.shares_memory(np.from_dlpack(whole), whole.local)
        with pytest.raises(LayoutError, match=r"x\.redistribute\('\[\(\)\]'\) first"):
            np.from_dlpack(xp.ones(4, layout="block[(0)]", comm=comm))
        np.testing.assert_allclose(
            xp.fft.fft(xp.ones(4, comm=comm), norm="ortho").to_global(), [2, 0, 0, 0], atol=1e-15
        )
        np.testing.assert_array_equal(xp.fft.fftfreq(5, d=0.5, comm=comm).to_global(), np.fft.fftfreq(5, 0.5))
        np.testing.assert_array_equal(xp.fft.rfftfreq(6, comm=comm).to_global(), np.fft.rfftfreq(6))

    rote.run(program, 2)


@pytest.mark.parametrize("ranks", (1, 3))
def test_equality_with_what_is_no_number(ranks):
    """Law: `==`, `!=` and `in` answer for text, dates, objects and lists of these as in NumPy; what the ufuncs and the
    other comparisons refuse there, all ranks refuse."""
    values = ["a", b"a", None, ["a", "b"], [["a", "b"], ["c", "d"], ["e", "1"]], np.array("a"), np.datetime64("2020")]
    values += [np.timedelta64(1), object(), {}, {1}, [None, 1.0], (1, "a"), Fraction(1), ..., int, np.zeros(2, "i4,f4")]
    calls = [operator.eq, operator.ne, lambda x, y: y in x, np.equal, np.less, operator.lt, operator.ge]

    def outcome(call, *args):
        try:
            result = call(*args)
        except Exception as error:
            return type(error)
        return result

    def program(comm):
        for array, layout in ((np.arange(6.0).reshape(3, 2), "block[(0),()]"), (np.array(True), "[]")):
            x = DistTensor.from_global(array, layout, comm)
            for call, value in product(calls, values):
                got, want = outcome(call, x, value), outcome(call, array, value)
                if isinstance(got, DistTensor):
                    np.testing.assert_array_equal(got.to_global(), want)
                    assert got.dtype == np.asarray(want).dtype
                else:
                    assert got is want, (call, value)
        with pytest.raises(ValueError, match=r"equal of shapes \(3, 2\) and \(3,\): they do not broadcast"):
            DistTensor.zeros((3, 2), "[(0),()]", comm) == ["a", "b", "c"]  # noqa: B015

    rote.run(program, ranks)


def test_dtypes_cast_as_numpy_casts_them():
    """Law: a dtype, or a tensor of it, can be cast to another exactly as in NumPy, by the name of either."""
    for source, target in product(xp.__array_namespace_info__().dtypes().values(), repeat=2):
        want = np.can_cast(source, target)
        assert xp.can_cast(source, target) is xp.can_cast(xp.ones((2, 2), dtype=source), target) is want
        assert xp.can_cast(source.name, target.name) is want
    with pytest.raises(TypeError, match="did not understand"):
        xp.can_cast("nonsense", "f4")


def test_operands_whose_blocks_broadcast_stay_where_they_are():
    """Law: rooted operands give a rooted result, and a field in a view takes a tensor in that view: nothing moves."""

    def program(comm):
        field = np.arange(2.0 * 4 * 6 * 5).reshape(2, 4, 6, 5)
        rows = DistTensor.from_global(field[0], "(a b) c: block[(0),()]", comm, (4,))
        x = DistTensor.from_global(field, "a (b c) d: block[(),(0),()]", comm, (4,))
        one = DistTensor.from_global(field[0, :, :1, 0], "block[(0),()]|(1)", comm, (2, 2))
        two = DistTensor.from_global(field[0, :1, :, 0], "[(),()]|(1)", comm, (2, 2))
        with rote.trace() as moves:
            product, total = x * rows, one + two
            x += rows
        assert not moves and product.distribution == x.distribution and str(total.layout) == "block[(0),()]|(1)"
        np.testing.assert_array_equal(product.to_global(), field * field[0])
        np.testing.assert_array_equal(x.to_global(), field + field[0])
        np.testing.assert_array_equal(total.to_global(), field[0, :, :1, 0] + field[0, :1, :, 0])

    rote.run(program, 4)

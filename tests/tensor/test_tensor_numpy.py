"""NumPy's functions and Python's protocols on tensors: each answers as on the whole array, or is refused."""

from __future__ import annotations

import operator
import os
import re
import subprocess
import sys
import warnings
from functools import partial
from itertools import product

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import distributions
from tensor import typed

import rote
import rote.array_api
import rote.fft.functions.dispatch
import rote.tensor.protocols
from rote import DistTensor
from rote import functions as front
from rote.errors import LayoutError, RoteError
from rote.functions import rules
from rote.functions.rules import ANSWERS
from rote.runtime.regions import cut
from rote.tensor.protocols import answer

ROOMS = (
    *(np, np.linalg, np.fft, np.lib, np.lib.scimath, np.lib.stride_tricks, np.lib.array_utils, np.lib.npyio),
    *(np.random, np.ma, np.testing, np.char, np.strings, np.rec, np.polynomial, np.emath),
)
CURES = ("x.to_global()", "rote.fft.", "from_global", ".redistribute", "x.save", "DistTensor.zeros", "x.local")
CURES += ("reshape(-1)", "Rote moves bool, integers")  # and so the dtypes to choose from
CURES += ("write numpy.", "write s = numpy.", "write u = numpy.", "x.halo(")
CURES += ("write x ", "write (x.reshape", "write 10.0 ** (x", "refused with")  # lines that are tried apart
CURES += ("write x.dtype", "write x.real", "write x[", "write rote.array_api.")  # what is answered, and gives the same


# Functions that are answered, though of none of the calls below: other tests try them.
NO_CALL_SUITS = {
    "unravel_index",
    *("astype", "can_cast", "reshape", "broadcast_to", "take_along_axis", "dsplit", "searchsorted", "digitize"),
    *("bincount", "cumulative_prod", "cumulative_sum", "inv", "solve", "cholesky", "outer", "einsum", "multi_dot"),
    *("einsum_path", "convolve", "correlate", "compress", "interp"),
    *("polyval", "put_along_axis", "select"),
}
DEPRECATED = pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")  # yet answered
UNCERTAIN = (np.empty_like, np.shares_memory, np.may_share_memory)  # equal values are not what they promise
UNCERTAIN += (np.intersect1d, np.setxor1d)  # nor the numbers of elements that are said to be unique, and are not
WRITING = (np.fill_diagonal, np.place, np.put_along_axis, np.putmask)  # into the array of the next calls: tried apart
UNCERTAIN += (np.linalg.slogdet,)  # nor that of a singular matrix, where all is rounding


def dispatching():
    """All public functions of NumPy that ask their arguments what to do (NEP 18), by name."""
    found = {}
    for room in ROOMS:
        for name in dir(room):
            with warnings.catch_warnings():  # a name that is going to be removed warns as it is read
                warnings.simplefilter("ignore", DeprecationWarning)
                function = getattr(room, name, None)
            if not name.startswith("_") and hasattr(function, "_implementation"):
                found.setdefault(function, f"{room.__name__}.{name}")
    return found


def calls(x):
    """Arguments to try, of which some suit a function and others do not."""
    yield from ((x,), (x, x), (x, x, x), (x, 1), (1, x), (x, 0, 1), ([x, x],), ([x], x), (x, [x]), ("f", x), (x > 2, x))
    yield from (
        (x, 2, x),
        ("a", x, x),
        (x, x, 1, 1),
        ("i,i", x, x),
        (np.negative, 0, x),
        ((3, 3), 0, x),
        (x, [x], [x]),
        ([x], [x]),
    )


def as_global(value):
    """What a tensor, or several, are as arrays."""
    if isinstance(value, DistTensor):
        return value.to_global()
    if hasattr(value, "_fields"):
        return type(value)(*map(as_global, value))
    return type(value)(map(as_global, value)) if isinstance(value, list | tuple) else value


def accepts(function, args, kwargs):
    """Whether NumPy has an answer for the whole arrays; then what a tensor is refused with says a cure."""
    try:
        function(*as_global(args), **kwargs)
    except TypeError:
        return False
    return True


def same(got, want):
    """Whether two answers are equal, dtype and all; memory that is shared by chance does not count.

    In the place of NumPy's scalars, which are nobody's array, there are tensors of order 0.
    """
    if isinstance(got, DistTensor) and isinstance(want, np.generic | int):
        want = np.asarray(want)
    got, want = as_global(got), as_global(want)
    if isinstance(want, tuple | list):
        return isinstance(got, tuple | list) and len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, np.ndarray):
        close = np.array_equal if want.dtype.kind not in "fc" else partial(np.allclose, equal_nan=True)
        return got.dtype == want.dtype and got.shape == want.shape and close(got, want)
    return type(got) is type(want) and got == want


@DEPRECATED
@pytest.mark.parametrize("name", ["f8", *(pytest.param(name, marks=pytest.mark.slow) for name in ("i8", "c16"))])
def test_every_function_answers_or_refuses(name, monkeypatch):
    """No function of NumPy takes a block for the tensor, or says what nobody understands.

    Law: a call of any function that dispatches gives what it gives for the whole arrays, or it raises a TypeError or
    RoteError that says what to write; and each function has a call that reaches the tensor.
    """
    reached, right, wrong = set(), set(), []

    def recorded(function, args, kwargs):
        reached.add(function)
        try:
            return answer(function, args, kwargs)
        except (TypeError, RoteError) as error:
            if not any(cure in str(error) for cure in CURES) and accepts(function, args, kwargs):
                wrong.append(f"{functions[function]}: {error!r}")
            raise

    monkeypatch.setattr(rote.tensor.protocols, "answer", recorded)
    functions = dispatching()
    assert len(functions) > 250

    def program(comm):
        x = DistTensor.from_global(np.arange(9).reshape(3, 3).astype(name), "block[(0),()]", comm)
        for function, where in functions.items():
            if function in WRITING:
                continue
            for args in calls(x):
                whole = as_global(args)  # before a call writes into one
                try:
                    got = function(*args)
                except (TypeError, RoteError, ValueError, AttributeError, IndexError, OSError, ZeroDivisionError):
                    continue  # ours are looked at above; NumPy's are its own, of what no tensor takes part in
                if not any(isinstance(arg, DistTensor) for arg in args):
                    continue  # numpy.array_equal([x], [x]) asks no tensor, and takes every error for False
                try:
                    want = function(*whole)
                except TypeError:
                    continue  # a tensor in the place of a dtype, which it has and an array is not taken for
                if function not in UNCERTAIN and not same(got, want):
                    wrong.append(f"{where}{args} is {got}")
                right.add(function)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rote.run(program, 2)
    assert wrong == []
    assert [where for function, where in functions.items() if function not in (*reached, *WRITING)] == []
    answered = {
        function.__name__ for function in ANSWERS if function in functions and function not in (*right, *WRITING)
    }
    assert name != "f8" or answered <= NO_CALL_SUITS


def test_like_makes_no_tensor_by_chance():
    """A constructor that has no tensor to make with `like=x` is refused."""
    x = DistTensor.zeros((3, 4), "[(0),()]")
    for call in (partial(np.tri, 3), partial(np.fromiter, [1], float), partial(np.fromfunction, np.add, (2, 2))):
        with pytest.raises(TypeError, match="DistTensor"):
            call(like=x)


# Of tensors x, y that lie alike, a scalar s and a function that lays out anew (which for arrays does nothing).
ANSWERED = {
    "equal": lambda x, y: np.array_equal(x, y),
    "equal to itself": lambda x, y: np.array_equal(x, x.copy()),
    "equal nan": lambda x, y: np.array_equal(x / 0, x / 0, equal_nan=True),
    "unequal nan": lambda x, y: np.array_equal(x / 0, x / 0),
    "equiv": lambda x, y: (
        np.array_equiv(x, y),
        np.array_equiv(x, x),
        np.array_equiv(x, 3),
        np.array_equiv(3, x * 0 + 3),
    ),
    "equal to a number": lambda x, y: np.array_equal(x, 3),
    "close": lambda x, y: (np.allclose(x, y), np.allclose(x, x + 1e-12), np.allclose(x, y, 0, 1e9), np.allclose(x, 3)),
    "close nan": lambda x, y: (np.allclose(x / 0, x / 0, equal_nan=True), np.allclose(x / 0, x / 0)),
    "each close": lambda x, y: (np.isclose(x, y), np.isclose(x, 3, rtol=0.5)),
    "facts": lambda x, y: (np.shape(x), np.ndim(x), np.size(x), x.shape, x.ndim, x.size),
    "extent": lambda x, y: tuple(np.size(x, axis) for axis in range(x.ndim)),
    "dtypes": lambda x, y: (np.result_type(x, y, 1j), np.result_type(x, "f4"), np.can_cast(x.dtype, "c16")),
    "real or complex": lambda x, y: (np.iscomplexobj(x), np.isrealobj(x), np.iscomplexobj(y), np.isrealobj(y)),
    "each real": lambda x, y: (np.isreal(x), np.iscomplex(y)),
    "parts": lambda x, y: (np.real(x), np.imag(x), np.real(y), np.imag(y), np.conj(y), np.angle(y), np.angle(y, True)),
    "zeros": lambda x, y: (np.zeros_like(x), np.zeros_like(x, "i4"), np.zeros_like(x, shape=x.shape), np.zeros_like(y)),
    "ones": lambda x, y: (np.ones_like(x), np.ones_like(y, dtype="f4"), np.full_like(x, 7), np.full_like(x, 2, "c8")),
    "empty": lambda x, y: (np.empty_like(x).shape, np.empty_like(y, "f4").dtype),
    "copies": lambda x, y: (np.copy(x), np.astype(x, "c8"), np.copy(y)),
    "where": lambda x, y: (np.where(x > 3, x, y), np.where(x > 3, 1, 0), np.where(x == y, x, -1.0)),
    "rounded": lambda x, y: (np.round(x / 7, 2), np.around(x / 7), np.fix(x / 7), np.clip(x, 2, 9), np.sinc(x)),
    "clipped": lambda x, y: np.clip(x, None, 4, out=x.copy()),
    "numbers": lambda x, y: (
        np.nan_to_num(x / 0),
        np.nan_to_num(x / 0, nan=5.0),
        np.isposinf(x / 0),
        np.isneginf(-x / 0),
    ),
    "memory": lambda x, y: (np.shares_memory(x, x), np.may_share_memory(x, x)) if x.size else (),
    "no memory": lambda x, y: (np.shares_memory(x, y), np.may_share_memory(x, x.copy())),
}


@DEPRECATED
@settings(max_examples=12)
@given(distributions(), st.sampled_from(["i8", "f8"]))
def test_answers_are_those_of_the_whole_array(dist, dtype):
    """What is answered of tensors is the answer of the arrays, and the same on all ranks.

    In any layout, on any grid, also where ranks hold nothing or nothing is there. The result lies as the tensors do;
    the contributions of a partial one are brought together first.
    """
    first = np.arange(np.prod(dist.shape, dtype=int)).reshape(dist.shape).astype(dtype)
    second = np.where(first == 3, -1, first)
    if not dist.partial:
        second = second * (1 + 1j)
    with np.errstate(all="ignore"):
        wants = {name: row(first, second) for name, row in ANSWERED.items()}

    def program(comm):
        x, y = (DistTensor.from_global(a, dist.layout, comm, dist.grid) for a in (first, second))
        for name, row in ANSWERED.items():
            got, want = row(x, y), wants[name]
            parts = zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]
            for one, whole in parts:
                if isinstance(one, DistTensor):
                    assert dist.partial or one.distribution.meaning == dist.meaning
                    is_view = np.shares_memory(whole, first)
                    assert dist.partial or is_view or not np.shares_memory(one.local, x.local)
                    one, whole = (one, whole) if dist.partial else (one.local, cut(whole, dist, comm.rank))
                assert same(one, whole), (dist, name, one, whole)

    with np.errstate(all="ignore"), rote.config(implicit="allow"):
        rote.run(program, dist.grid.size)


def test_the_rest_of_the_answers():
    """`common_type`, `i0` and `copyto` are as for arrays; a copy into an array is refused."""

    def program(comm):
        a = np.arange(6.0).reshape(3, 2)
        x = DistTensor.from_global(a, "block[(0),()]", comm)
        y = np.zeros_like(x)
        assert np.copyto(y, x) is None
        np.testing.assert_array_equal(y.to_global(), a)
        np.copyto(y, 7, where=x > 2)
        np.testing.assert_array_equal(y.to_global(), np.where(a > 2, 7, a))
        assert np.common_type(x, x.astype("c8")) is np.common_type(a, a.astype("c8"))
        np.testing.assert_array_equal(np.i0(x).to_global(), np.i0(a))
        with pytest.raises(TypeError, match=r"x.to_global\(\)"):
            np.copyto(np.zeros((3, 2)), x)
        z = np.empty_like(x)
        assert np.clip(x, 1, 2, out=z) is z
        np.testing.assert_array_equal(z.to_global(), a.clip(1, 2))

    rote.run(program, 2)


def test_one_rank_that_differs_is_told_to_all():
    """A comparison is the same on all ranks, also where only one block differs, or shares memory."""

    def program(comm):
        x = DistTensor.from_global(np.arange(8.0), "block[(0)]", comm)
        y = x.copy()
        y.local[...] += comm.rank == 2
        z = DistTensor(x.local if comm.rank == 1 else x.local.copy(), x.distribution, comm)
        return (
            np.array_equal(x, y),
            np.allclose(x, y),
            np.array_equiv(x, y),
            np.shares_memory(x, z),
            np.array_equal(x, z),
        )

    assert rote.run(program, 4) == [(False, False, False, True, True)] * 4


def test_comparisons_bring_tensors_together():
    """Tensors of other layouts, and arrays, are compared as wholes; a move for it can be refused, on all ranks."""

    def program(comm):
        a = np.arange(12.0).reshape(3, 4)
        x = DistTensor.from_global(a, "[(0),()]", comm)
        y = DistTensor.from_global(a, "[(),(0)]", comm)
        assert not np.array_equal(x, DistTensor.zeros((4, 3), "[(0),()]", comm)) and not np.array_equal(x, np.zeros(3))
        assert not np.array_equiv(x, DistTensor.zeros((4, 3), "[(0),()]", comm)) and np.array_equal(x, x)
        for compare in (np.array_equal, np.allclose, np.array_equiv, lambda x, y: np.isclose(x, y).all()):
            assert compare(x, a) and compare(a, x) and not compare(x, a + 1)
            with rote.config(implicit="allow"):
                assert compare(x, y) and not compare(x, y + 1)
            with (
                rote.config(implicit="error"),
                pytest.raises(LayoutError, match=r"by x\.redistribute\('"),
            ):
                compare(x, y)
        for compare in (np.isclose, np.allclose):
            with pytest.raises(LayoutError, match="they do not broadcast"):
                compare(x, np.zeros(3))
        with pytest.raises(LayoutError, match="has its shape"):
            np.zeros_like(x, shape=(4, 3))
        with pytest.raises(LayoutError, match="one value"):
            np.full_like(x, np.zeros((3, 4)))

    rote.run(program, 2)


def test_values_are_of_the_types_that_type_checkers_infer():
    """Law: what `.ci/types` proves of a user's program holds when it runs."""
    with rote.config(implicit="allow"):
        results = rote.run(typed.program, 2)
    for values in results:
        assert all(type(value) is DistTensor for value in values)


def test_the_cures_of_refusals_are_right():
    """Law: what a refusal says to write gives what the refused function gives for the whole arrays."""
    array = np.random.default_rng(2).integers(0, 9, (6, 4))
    mask, other = np.array([True, False, True, True, False, False]), np.array([1, 3, 8])

    def program(comm):
        x = DistTensor.from_global(array, "block[(0),()]", comm)
        line = x[:, 0]
        different = np.unique(line)
        best = x.reshape(3, 2, 4).reshape(3, -1).argmax(-1)
        return [
            (x[mask], np.compress(mask, array, axis=0)),
            (different[np.isin(different, other)], np.intersect1d(array[:, 0], other)),
            (different[~np.isin(different, other)], np.setdiff1d(array[:, 0], other)),
            (np.unique(np.concatenate([line, other])), np.union1d(array[:, 0], other)),
            (line[:, None] * np.eye(6), np.diag(array[:, 0])),
            (x[np.delete(np.arange(6), [1, 4])], np.delete(array, [1, 4], 0)),
            (np.concatenate([x[:2], x[:1], x[2:]]), np.insert(array, 2, array[0], 0)),
            (np.sum(0.5 * 2.0 * (x[1:] + x[:-1]), axis=0), np.trapezoid(array, dx=2.0, axis=0)),
            (best, array.reshape(3, 8).argmax(1)),
        ]

    with rote.config(implicit="allow"):
        for pairs in rote.run(lambda comm: [(got.to_global(), want) for got, want in program(comm)], 3):
            assert all(got.shape == want.shape and np.allclose(got, want) for got, want in pairs)


def test_refusals_say_what_to_do():
    """Functions, methods of ufuncs and attributes that are not answered name the whole array; transforms Rote's."""
    x = DistTensor.zeros((3, 4), "[(0),()]")
    with pytest.raises(TypeError, match=r"write numpy\.roots\(x\.to_global\(\)\)"):
        np.roots(x)
    for call, cure in {
        lambda: np.choose(x > 0, [x, x]): "numpy.where(condition, x, y)",
        lambda: np.partition(x, 2): "write numpy.sort(x)",
        lambda: np.argmax(x, axis=(0, 1)): "write numpy.argmax(x.reshape(…, -1), -1)",
    }.items():
        with pytest.raises(TypeError, match=re.escape(cure)):
            call()
    with pytest.raises(AttributeError, match=r"x.save\('x.npy'\), or x.local.tobytes\(\)"):
        x.tobytes()
    for name, cure in {
        "compress": r"numpy\.compress\(mask, x, axis\)",
        "unsqueeze": r"x\[None\]",
        "full_tensor": r"x\.to_global\(\)",
        "cuda": r"torch\.as_tensor\(x\.local\)\.cuda\(\), or cupy\.asarray\(x\.local\)",
        "to": r"x\.astype\(dtype\), or torch\.as_tensor\(x\.local\)\.to\(device\)",
        **dict.fromkeys(("get", "compute", "numpy", "asnumpy", "to_numpy"), r"x\.to_global\(\)"),
        **dict.fromkeys(("cpu", "detach", "persist"), "x, which is computed, and on the host"),
        "map_blocks": r"DistTensor\.from_local\(function\(x\.local\)",
        "exp": r"numpy\.exp\(x\)$",
        "matmul": r"numpy\.matmul\(x, …\)",
        "unique": r"numpy\.unique\(x, …\)",
        "einsum": r"numpy\.einsum\(subscripts, x\)",
    }.items():
        with pytest.raises(AttributeError, match=rf"has no attribute '{name}'\nwrite {cure}"):
            getattr(x, name)
    with pytest.raises(TypeError, match=r"takes an array and a Distribution\nwrite DistTensor\.from_global"):
        DistTensor(x.local, "[(0),()]")
    with pytest.raises(AttributeError, match=r"^'DistTensor' object has no attribute 'sun'$"):
        x.sun  # noqa: B018
    with pytest.raises(TypeError, match=r"numpy\.fmod\.reduce\(x\.to_global\(\)\)"):
        np.fmod.reduce(x)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'mean' for a DistTensor\s+write numpy\.sum"):
        answer(np.sum, (x,), {"mean": 3})
    with pytest.raises(TypeError, match=r"write max\(abs\(x\)\)"):
        np.max(x.astype("c8"))
    with pytest.raises(ValueError, match=r"rote\.fft\.convolve"):
        np.convolve(x, x)
    with pytest.raises(TypeError, match=r"x\.save"):
        np.save("x.npy", x)
    assert not hasattr(x, "__array_interface__")


@pytest.mark.parametrize("lies", ["[(),()]", "block[(0),()]", "[(),(0)]"])
def test_counts_are_reductions(lies):
    """Law: what ranks have counted is added up as a sum is: asked for, so that no setting warns of it or refuses it."""
    whole = np.arange(12).reshape(3, 4) % 5

    def program(comm):
        x = DistTensor.from_global(whole, lies, comm)
        flat = DistTensor.from_global(whole.ravel(), "block[(0)]", comm)
        with rote.config(implicit="error"), rote.trace() as moves:
            got = [np.histogram(x, 5)[0], np.histogram(x, 5, weights=x)[0], np.bincount(flat)]
        with pytest.raises(ValueError, match=r"order 1\nwrite bincount\(x\.ravel\(\)\)"):
            np.bincount(x)
        return [each.to_global().tolist() for each in got], {move.implicit for move in moves}

    want = [np.histogram(whole, 5)[0], np.histogram(whole, 5, weights=whole)[0], np.bincount(whole.ravel())]
    for got, implicit in rote.run(program, 2):
        assert got == [each.tolist() for each in want]
        assert implicit == {False}


@pytest.mark.parametrize("lies", ["[(0),()]", "[(),()]"])
def test_numbers_are_formatted(lies):
    """Law: a tensor of order 0 is written as its number, on every rank; one with modes has no format of numbers."""

    def program(comm):
        x = DistTensor.from_global(np.arange(6.0).reshape(2, 3), lies, comm)
        with pytest.raises(TypeError, match=r"order 0, and x has shape \(2, 3\)"):
            f"{x:.3f}"
        assert f"{x}" == str(x)
        return f"{x.sum():.3f}", f"{x.max():>6g}"

    assert rote.run(program, 2) == [("15.000", "     5")] * 2


FIRST = """
import numpy as np, sys, rote
x = rote.DistTensor.from_global(np.arange(12.0).reshape(3, 4), "block[(0),()]")
assert "rote.fft" not in sys.modules
got = {call}
assert np.allclose(got.to_global(), {whole})
"""


@pytest.mark.parametrize("name", ["fft", "irfft2", "hfft", "fftshift"])
def test_transforms_are_answered_whatever_was_called_before(name):
    """Law: in a process that has not named `rote.fft`, `numpy.fft` of a tensor is that of the array."""
    whole = f"np.fft.{name}(np.arange(12.0).reshape(3, 4))"
    program = FIRST.format(call=f"np.fft.{name}(x)", whole=whole)
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_scipy_transforms_by_the_array_api_whatever_was_called_before():
    """Law: with SCIPY_ARRAY_API=1 `scipy.fft` of a tensor is answered as first call, too."""
    program = FIRST.format(
        call="__import__('scipy.fft').fft.rfft(x)", whole="np.fft.rfft(np.arange(12.0).reshape(3, 4))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, env={**os.environ, "SCIPY_ARRAY_API": "1"})


ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
MANY = ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"]
OPTIONS = [
    *product(ONE, [{"n": 6}, {"axis": 0, "norm": "ortho"}, {"norm": "forward"}]),
    *product(MANY, [{}, {"s": (4, 6), "axes": (0, 1), "norm": "ortho"}]),
    *product(["fftshift", "ifftshift"], [{}, {"axes": 1}, {"axes": (0, 2)}]),
]


def test_numpy_transforms_are_those_of_rote():
    """`numpy.fft` of a tensor is `numpy.fft` of the array, for all its functions and all their arguments."""
    rng = np.random.default_rng(0)
    real = rng.standard_normal((5, 4, 6))
    assert {name for name, _ in OPTIONS} == {f.__name__ for f in dispatching() if f.__module__ == "numpy.fft"}

    def program(comm):
        for name, options in OPTIONS:
            function = getattr(np.fft, name)
            array = real if name in ("rfft", "rfftn", "rfft2", "ihfft") else real + 1j * real[::-1]
            got = function(DistTensor.from_global(array, "block[(0),(),()]", comm), **options)
            want = function(array, **options)
            assert isinstance(got, DistTensor) and got.dtype == want.dtype, name
            np.testing.assert_allclose(got.to_global(), want, rtol=1e-12, atol=1e-12, err_msg=f"{name} {options}")
        with pytest.raises(LayoutError, match="no out"):
            np.fft.fft(DistTensor.zeros(4, "[(0)]", comm), out=np.zeros(4, complex))

    rote.run(program, 2)


@pytest.mark.parametrize("name", ["local", "real", "imag"])
def test_an_attribute_is_not_assigned(name):
    """Law: a value given to an attribute is refused with the assignment that writes into the block, which does so."""
    x = DistTensor.from_global(np.array([1 + 2j, 3]), "[(0)]")
    with pytest.raises(
        AttributeError, match=rf"'{name}' of a tensor is not assigned\nwrite x\..*\[\.\.\.\] = "
    ) as error:
        setattr(x, name, 7)
    exec(re.search(r"write (.*?)(,|$)", str(error.value))[1], {"x": x, "values": 7, "block": 7})
    assert x.to_global().tolist() == {"local": [7, 7], "real": [7 + 2j, 7], "imag": [1 + 7j, 3 + 7j]}[name]


def test_numpys_assertions_name_those_of_tensors():
    """Law: where an assertion of numpy.testing asks for the whole array, the refusal names what compares tensors."""
    x = DistTensor.zeros((3, 4), "[(0),()]")
    for check in (np.testing.assert_allclose, np.testing.assert_array_equal, np.testing.assert_equal):
        for pair in ((x, np.zeros((3, 4))), (np.zeros((3, 4)), x)):
            with pytest.raises(LayoutError, match=r"write rote\.testing\.assert_equal\(x, array"):
                check(*pair)
    rote.testing.assert_equal(x, np.zeros((3, 4)), rtol=1e-7, atol=0)


def test_what_python_asks_is_answered_or_refused():
    """Conversions, iteration, indices, truth and numbers: of the whole tensor, or refused with a cure."""
    x = DistTensor.zeros((3, 4), "[(0),()]")
    whole = r"x.to_global\(\)"
    for gather in (
        np.asarray,
        np.array,
        np.asanyarray,
        np.ascontiguousarray,
        np.float64,
        np.random.permutation,
    ):
        with pytest.raises(LayoutError, match=whole):
            gather(x)
        with pytest.raises((LayoutError, TypeError)):
            gather([x, x])
    assert [row.shape for row in x] == [(4,)] * 3 and sum(x).shape == (4,)
    assert 0 in x and 3 not in x
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    for number in (float, int, complex):
        with pytest.raises(TypeError, match=r"order 0"):
            number(x)
    with pytest.raises(ValueError, match=r"x\.any\(\) or x\.all\(\).*array_equal"):
        bool(x)
    with pytest.raises(TypeError):
        memoryview(x)
    for wrong in (x, DistTensor.zeros((), "[]")):
        with pytest.raises(TypeError, match="integer tensor of order 0"):
            operator.index(wrong)
    assert operator.index(DistTensor.from_global(2, "[]")) == 2
    assert len(x) == 3 and np.iterable(x) and not np.isscalar(x)


@pytest.mark.parametrize("text", ["[]", "[]|(0@1)", "[]+(0)", "[]+max(0)"])
def test_a_tensor_of_order_0_is_a_number(text):
    """float, int, complex and bool of a tensor of order 0 are its value, on all ranks, in any layout."""

    def program(comm):
        x = DistTensor.from_global(2.5, text, comm, 3)
        zero = DistTensor.from_global(0, text, comm, 3)
        return float(x), int(x), complex(x), bool(x), bool(zero), float(zero)

    assert rote.run(program, 3) == [(2.5, 2, 2.5 + 0j, True, False, 0.0)] * 3
    with pytest.raises(TypeError, match="complex"):
        float(DistTensor.from_global(1j, "[]"))
    with pytest.raises(TypeError, match="no length"):
        len(DistTensor.from_global(1.0, "[]"))


class Foreign:
    """An array of somebody else's, who has an answer."""

    __array_ufunc__ = __array_function__ = lambda self, *args, **kwargs: "answered"


def test_others_may_answer():
    """A type that is neither array nor tensor is asked in its turn."""
    x = DistTensor.zeros(3, "[(0)]")
    assert np.add(x, Foreign()) == np.array_equal(x, Foreign()) == x + Foreign() == "answered"


class NoTensor:
    """Something that has nothing of a tensor."""


def test_an_array_in_place_of_a_tensor_is_named() -> None:
    """Law: a function that is given none says so; attributes that other objects lack stay what they are."""
    with pytest.raises(TypeError, match=r"sort takes a tensor, not ndarray\nmake one of an array"):
        rote.array_api.sort(np.zeros(3))

    def failing(x: DistTensor) -> object:
        return NoTensor().local

    called = rules.of_tensors("failing", failing)
    with pytest.raises(AttributeError, match="'NoTensor' object has no attribute 'local'"):
        called(DistTensor.zeros(3, "[()]"))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (float, TypeError, "of order 0, and x has shape (4, 6)\nwrite float(x[0, 0]) for one of its elements"),
        (lambda x: x.flatten("F"), ValueError, "write reshape(x.T"),
        (lambda x: x.reshape(24, order="F"), ValueError, "write reshape(x.T"),
        (lambda x: x.sum(axis=1.0), TypeError, "sum takes integers as axis=, not 1.0\nwrite axis=0"),
        (lambda x: x.std(axis=(0, 1.0)), TypeError, "std takes integers as axis=, not 1.0\nwrite axis=0"),
        (lambda x: np.sort(x, 0.5), TypeError, "sort takes integers as axis=, not 0.5\nwrite axis=0"),
        (lambda x: np.swapaxes(x, 0, 1.0), TypeError, "swapaxes takes integers as axis2=, not 1.0\nwrite axis2=0"),
        (lambda x: x + np.zeros(5), LayoutError, "aligned at the last mode"),
        (lambda x: np.broadcast_to(x, (4, 5)), ValueError, "does not broadcast to (4, 5)\naligned at the last mode"),
        (lambda x: np.broadcast_arrays(x, x[:, :5]), ValueError, "(4, 6) and (4, 5) do not broadcast\naligned"),
        (lambda x: x.__setitem__(slice(1, 3), np.zeros((4, 6))), ValueError, "shape (2, 6) of the key\naligned"),
        (
            lambda x: DistTensor.from_function(lambda i, j: np.zeros((4, 6)), (4, 6), x.layout, x.comm),
            ValueError,
            "gives an array of shape (4, 6) for a block of shape (2, 6)\ncompute it with the arrays of indices",
        ),
        (
            lambda x: DistTensor.from_local(np.zeros((4, 6)), x.layout, (4, 6), x.comm),
            LayoutError,
            "not (4, 6)\nwrite DistTensor.from_global(array, layout)",
        ),
    ],
)
def test_a_mistaken_call_says_what_to_write(call, error, text):
    """Law: arguments that do not fit raise one error on all ranks, with what to write instead."""

    def program(comm):
        with rote.config(implicit="allow"), pytest.raises(error) as caught:
            call(DistTensor.zeros((4, 6), "block[(0),()]", comm))
        return str(caught.value)

    first, second = rote.run(program, 2)
    assert text in first and first == second


@pytest.mark.slow  # SciPy starts anew, with SCIPY_ARRAY_API
def test_a_program_that_adds_to_slices_is_right(tmp_path):
    """Law: SciPy's overlap-add, which binds slices to names and adds to these, gives what it gives of arrays."""
    program = """
import numpy as np, rote, scipy.signal
a, b = np.sin(np.arange(200.0)).reshape(100, 2), np.cos(np.arange(14.0)).reshape(7, 2)
def program(comm, layout, mode):
    x, y = (rote.DistTensor.from_global(array, layout, comm) for array in (a, b))
    return scipy.signal.oaconvolve(x, y, mode=mode, axes=0).to_global()
with rote.config(implicit="allow"):
    for layout, mode in (("block[(0),()]", "full"), ("block[(),(0)]", "same"), ("[(0),()]", "valid")):
        for got in (got for ranks in (1, 2, 4) for got in rote.run(program, ranks, args=(layout, mode))):
            assert np.allclose(got, scipy.signal.oaconvolve(a, b, mode=mode, axes=0), rtol=0, atol=1e-12)
"""
    env = {**os.environ, "SCIPY_ARRAY_API": "1", "ROTE_WISDOM": ""}
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path, env=env)


SPECIAL = """
import os, numpy as np, rote, rote.array_api as xp, scipy.special
array = np.linspace(0.1, 2.9, 35).reshape(7, 5)
one = "erf erfc gamma gammaln expit logit ndtr log_ndtr i0 i0e j0 j1 k0 y1 digamma psi entr exp10 cbrt zeta".split()
two = "xlogy xlog1py rel_entr kl_div gammainc betaln jv boxcox binom poch chdtr".split()
calls = {name: (1,) for name in one} | {name: (1, 1) for name in two}
calls |= {"betainc": (1, 1, 0.5), "polygamma": (2, 1), "erf out": (1,)}
def program(comm, layout, home):
    x = rote.DistTensor.from_global(array, layout, comm)
    for name, operands in calls.items():
        function = getattr(home, name.split()[0])
        options = {"out": rote.DistTensor.from_global(0 * array, layout, comm)} if "out" in name else {}
        got = function(*[x if type(part) is int and part == 1 else part for part in operands], **options)
        assert isinstance(got, rote.DistTensor) and (not options or got is options["out"]), name
        want = getattr(scipy.special, name.split()[0])(*[array if part == 1 else part for part in operands])
        assert got.layout == x.layout, name
        np.testing.assert_allclose(got.to_global(), want, rtol=1e-13, atol=1e-15, err_msg=name)
    if home is scipy.special:
        for function in (scipy.special.logsumexp, scipy.special.softmax):
            np.testing.assert_allclose(function(x, axis=0).to_global(), function(array, axis=0), rtol=1e-13)
with rote.config(implicit="allow"):
    for ranks in (1, 2, 3, 4):
        for layout in ("block[(0),()]", "[(),(0:cyclic(2))]", "[(),()]"):
            for home in (xp.special,) + ((scipy.special,) if os.environ.get("SCIPY_ARRAY_API") else ()):
                rote.run(program, ranks, args=(layout, home))
"""


def test_special_functions():
    """Law: functions of `scipy.special` that are computed element by element give tensors in the operand's layout."""
    exec(compile(SPECIAL, "special", "exec"), {})


@pytest.mark.slow  # SciPy starts anew, with SCIPY_ARRAY_API
def test_special_functions_by_the_array_api():
    """Law: with SCIPY_ARRAY_API=1 SciPy finds them, and computes others by the array API."""
    if tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 17):
        pytest.skip("expected: an older SciPy looks for no special functions in a namespace")
    subprocess.run([sys.executable, "-c", SPECIAL], check=True, timeout=60, env={**os.environ, "SCIPY_ARRAY_API": "1"})


def test_what_is_no_special_function_of_elements():
    """What combines elements is no function of `special`; what SciPy gathers is refused with the replacement."""
    with pytest.raises(AttributeError, match="logsumexp is not computed element by element"):
        _ = rote.array_api.special.logsumexp
    if not os.environ.get("SCIPY_ARRAY_API"):
        with pytest.raises(LayoutError, match=r"SCIPY_ARRAY_API=1, or write rote\.array_api\.special\.polygamma"):
            scipy.special.polygamma(1, DistTensor.zeros(3, "[(0)]"))


def test_a_tensor_of_order_0_shows_its_value():
    """Law: its representation has the value that the rank knows without a message, and says what that is."""

    def program(comm):
        x = DistTensor.from_global(np.arange(4.0), "block[(0)]", comm)
        return [repr(each).partition(", rank=")[2][3:-1] for each in (x.sum(), x.sum(layout="[]+(0)"), x[3] * 2j)]

    with rote.config(implicit="allow"):
        assert rote.run(program, 2) == [["value=6.0", f"contribution={part}", "value=6j"] for part in (1.0, 5.0)]


def test_one_function_imports_one_module_and_what_that_needs(tmp_path):
    """Law: each function of NumPy that is answered is found by the module that the table names, and alone.

    Of a function that is not in the table, all modules are imported, so that it is found too.
    """
    front.load()
    for function, found in ANSWERS.items():
        home = front.ANSWERING.get(function.__name__, "")
        wrapped = getattr(found, "func", found)
        where = wrapped.__module__ if wrapped.__module__.startswith("rote.") else f"rote.functions.{home}"
        assert getattr(function, "__module__", "") == "numpy.fft" or where == f"rote.functions.{home}", function
    assert {method for _, method in rules.UFUNC_METHODS} == {"reduce", "accumulate"}
    program = (
        "import sys, numpy as np, rote\nx = rote.DistTensor.zeros((3, 3), 'block[(0),()]')\n"
        "np.einsum('ij->i', x), np.matmul(x, x), np.add.reduce(x)\n"
        "print(len([name for name in sys.modules if name.startswith('rote.functions.')]))\n"
        "assert np.where(x).__len__() == 2 and not np.sort(x).local.any()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert int(done.stdout) < 27

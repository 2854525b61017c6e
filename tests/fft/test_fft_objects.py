"""Transforms as Python objects: wrong arguments, repr, copies and pickles; and pickles of what plans are made of."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from layout.integers import check_door

import rote
from rote import DistTensor
from rote.errors import LayoutError, RoteError
from rote.fft import FFT


def test_arrays_are_refused_with_a_cure():
    """A plain array does not say where it lies: every transform says so, and what to write."""
    f = FFT((4, 6), "block[(0),()]")
    x, array = DistTensor.zeros((4, 6), "block[(0),()]", dtype="c16"), np.zeros((4, 6), complex)
    names = ("fftn", "ifftn", "rfftn", "irfftn", "dctn", "idctn", "dstn", "idstn", "fftshift", "ifftshift")
    calls = {name: getattr(rote.fft, name) for name in names}
    calls |= {"forward": f.forward, "backward": f.backward, "forward's out": lambda array: f.forward(x, array)}
    calls |= {name: lambda array, name=name: getattr(rote.fft, name)(array, x) for name in ("convolve", "correlate")}
    for name, call in calls.items():
        for wrong in (array, [[1.0]]):
            with pytest.raises(
                TypeError, match=f"^{name} takes a DistTensor, not {type(wrong).__name__}(?s:.*)from_global"
            ):
                call(wrong)
    with pytest.raises(LayoutError, match="the transform takes"):
        f.forward(DistTensor.zeros((4, 6), "block[(),(0)]", dtype="c16"))


def test_tensors_of_another_kind_are_refused_with_a_cure():
    """Numbers that lie otherwise, or are real where the transform is complex: the error says what to write."""
    f = FFT((4, 6), "block[(0),()]")
    for wrong, cure in (
        (DistTensor.zeros((4, 6), "block[(),(0)]", dtype="c16"), "\nwrite redistribute('block[(0),()]')"),
        (DistTensor.zeros((4, 6), "block[(0),()]"), "\nwrite astype('complex128'), or make the FFT for the dtype of"),
    ):
        with pytest.raises(LayoutError) as caught:
            f.forward(wrong)
        assert cure in str(caught.value)
    with pytest.raises(LayoutError, match=r"grid 1 complex128$"):  # no move leads to another shape
        f.forward(DistTensor.zeros((4, 8), "block[(0),()]", dtype="c16"))


@pytest.mark.parametrize("kinds", ("foo", "ifft", "", 2))
def test_kinds_that_are_none_are_refused(kinds):
    """One kind for all axes is a name as those of single axes are: what is none is refused by its name."""
    with pytest.raises(LayoutError, match=r"^a kind is one of fft, rfft, .*; not ") as caught:
        FFT((4, 6), "block[(0),()]", kinds=kinds)
    assert str(caught.value).endswith(repr(kinds))


def test_frequencies_are_of_points_or_of_transforms():
    """`fftfreq(n, d)` is NumPy's, a transform gives those of its spectrum, and a tensor is told what to write."""
    for name in ("fftfreq", "rfftfreq"):
        for n, d in product((1, 2, 7, 8), (1.0, 0.25)):
            got = getattr(rote.fft, name)(n, d=d)
            np.testing.assert_array_equal(got, getattr(np.fft, name)(n, d))
            assert got.tobytes() == getattr(rote.fft, name)(np.int32(n), d, device="cpu").tobytes()
        with pytest.raises(ValueError, match="Device not understood"):
            getattr(rote.fft, name)(4, device="gpu")
    X = rote.fft.fftn(DistTensor.zeros((4, 6), "block[(0),()]"))
    with pytest.raises(TypeError, match=r"not DistTensor(?s:.*)fftfreq\(f\)"):
        rote.fft.fftfreq(X)
    with pytest.raises(TypeError, match=r"rfftfreq takes a number of points, not FFT(?s:.*)fftfreq\(f\)"):
        rote.fft.rfftfreq(FFT(4))


MADE = [
    {"shape": (6, 5), "layout": "block[(0),()]"},
    {"shape": (6, 5, 4), "dtype": "f4", "norm": "ortho"},
    {"shape": 16, "layout": "[(0)]", "algorithm": "cyclic"},
    {"shape": (6, 5), "dtype": "f8", "axes": 0},
    {"shape": (6, 5), "kinds": {0: "dct2", 1: "fft"}, "output": "block[(0),()]"},
    {"shape": (6, 4), "s": (8, -1), "resample": (-1, 3), "norm": "forward"},
    {"shape": (4, 4), "dtype": "g"},
]


@pytest.mark.parametrize("options", MADE, ids=lambda options: "-".join(options))
def test_repr_makes_the_transform_again(options):
    """Law: `repr(f)` is code of a transform that leads between the same ends, and gives the same numbers."""

    def program(comm):
        f = FFT(**options)
        g = eval(repr(f), {"FFT": FFT})
        same = ("shape", "axes", "input_layout", "output_layout", "grid")
        assert [getattr(f, name) for name in same] == [getattr(g, name) for name in same], (repr(f), repr(g))
        assert repr(f) == repr(g) and repr(f).startswith("FFT((")
        dtype = f.walk.dtype
        x = DistTensor.from_function(lambda i, *_: np.cos(i), f.shape, f.input_layout, grid=f.grid, dtype=dtype)
        np.testing.assert_allclose(f.forward(x).to_global(), g.forward(x).to_global(), rtol=1e-5, atol=1e-5)
        return repr(f)

    assert len(set(rote.run(program, 2))) == 1


def test_copies_of_a_transform_are_itself():
    """What is planned never changes: copies are the same object, also inside of others; pickles are refused."""
    f = FFT((4, 6))
    assert copy.copy(f) is f and copy.deepcopy({"f": [f]})["f"][0] is f
    with pytest.raises(TypeError, match=r"communicator(?s:.*)FFT\(\(4, 6\)"):
        pickle.dumps(f)


def test_copies_of_a_tensor_are_its_own():
    """`copy.copy` and `copy.deepcopy` have a block of their own and the same ranks; `pickle` says what to do."""

    def program(comm):
        x = DistTensor.from_global(np.arange(12.0).reshape(4, 3), "block[(0),()]", comm)
        y, z = copy.copy(x), copy.deepcopy([x, x])
        assert z[0] is z[1]
        for twin in (y, z[0]):
            assert twin.distribution == x.distribution and twin.comm is comm
            assert np.array_equal(twin, x) and not np.shares_memory(twin.local, x.local)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(TypeError, match=r"x\.save(?s:.*)DistTensor\(\*pair, comm\)"):
                pickle.dumps(x, protocol)
        pair = pickle.loads(pickle.dumps((x.local, x.distribution)))
        assert np.array_equal(DistTensor(*pair, comm), x)

    rote.run(program, 2)


VALUES = """
import rote
values = [
    rote.parse("a (r s=4): [(),(0:block),(1:cyclic(2))]|(2@1)"), rote.parse_transition("[(0),()]+max(1) -> [(),(0)]"),
    rote.parse("block[(0),()]").on((8, 9), (2,)), rote.Grid((2, 3)), rote.Machine(latency=1e-6),
    rote.compile("block[(0),(1),()] -> block[(),(0),(1)]", shape=(8, 9, 10), grid=(2, 3), dtype="c16"),
]
"""


def test_communicators_and_bound_moves_are_copied_as_themselves():
    """Law: a copy of an object that holds some has the very same, so that its tensors still meet; `pickle` refuses."""

    def program(comm):
        move = rote.DistTensor.zeros(4, "block[(0)]", comm).move_to("[()]")
        for alone in (comm, comm.split(0, comm.rank), move, rote.fft.FFT(4, comm=comm)):
            assert copy.copy(alone) is alone or copy.copy(alone) == alone
            assert copy.deepcopy({"held": [alone]}) == {"held": [alone]}
        for alone in (comm, move):
            with pytest.raises(TypeError, match="lives in this run only"):
                pickle.dumps(alone)
        return True

    assert rote.run(program, 2) == [True] * 2


@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
def test_values_are_pickled(protocol, tmp_path):
    """Layouts, transitions, distributions, grids, machines and plans survive pickle, also from another process.

    They are equal, hash alike and are found in dictionaries there; deepcopy gives equal ones.
    """
    names: dict[str, list[object]] = {}
    exec(VALUES, names)
    values = names["values"]
    for value in values:
        twins = pickle.loads(pickle.dumps(value, protocol)), copy.deepcopy(value), copy.copy(value)
        for twin in twins:
            assert twin == value and hash(twin) == hash(value) and str(twin) == str(value) and {value: 1}[twin] == 1
    path = tmp_path / "values"
    code = f"{VALUES}\nimport pickle\nwith open({str(path)!r}, 'wb') as file: pickle.dump(values, file, {protocol})"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    for twin, value in zip(pickle.loads(path.read_bytes()), values, strict=True):
        assert twin == value and hash(twin) == hash(value) and {value: 1}[twin] == 1


DOORS = {
    "FFT": lambda n: str(FFT((4, n)).walk),
    "FFT's grid": lambda n: str(FFT((4, 6), grid=n).walk),
    "FFT's axes": lambda n: str(FFT((4, 6), axes=n).walk),
    "FFT's lengths": lambda n: str(FFT((4, 6), s=(4, n)).walk),
    "FFT's threads": lambda n: str(FFT((4, 6), threads=n).walk),
}


@pytest.mark.parametrize("door", DOORS)
def test_only_integers_are_taken(door):
    """A bool, a float, a text is refused by every argument; NumPy's integers are plain ones from there on."""
    check_door(DOORS[door], RoteError)

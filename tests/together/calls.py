"""Every public function that takes tensors or makes them, with right arguments and with others for one rank.

The functions are those of the product's own lists, and their arguments follow from the names of their parameters. So
a new function is tried as soon as it exists; a parameter of a new name fails a test until `RIGHT` or `OTHERS` has it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

import dask.array
import numpy as np

import rote
import rote.array_api as xp
from rote import DistTensor, functions
from rote.fft import FFT
from rote.functions.rules import ANSWERS
from rote.lazy import late

MATRIX = np.arange(36.0).reshape(6, 6) % 7
MATRIX = MATRIX + MATRIX.T + 80 * np.eye(6)
ROWS, COLUMNS = "block[(0),()]", "block[(),(0)]"
Arguments = dict[str, Any]


class Function(NamedTuple):
    """A public function, and the parameters of the function of this package that answers for it."""

    name: str
    call: Callable[..., Any]
    parameters: dict[str, inspect.Parameter]


# Names that take no tensors and ask no other rank.
ALONE = "run config trace compile tradeoff relabel expect parse parse_transition L block cyclic partial root methods"
ALONE += " compile_einsum einsum_scaling predict cache_info clear_caches fft.compare fft.scaling fft.job fft.algorithms"
ALONE += " fft.kinds fft.fftfreq fft.rfftfreq"
# Functions with tests of their own, because a right call needs more than the names of parameters say.
APART = {"DistTensor.from_roots", "DistTensor.on_roots", "DistTensor.item", "numpy.where", "numpy.compress"}
APART |= {"numpy.convolve", "numpy.correlate", "numpy.select", "numpy.put_along_axis"}  # of vectors and lists
APART |= {"numpy.linalg.matmul"}  # which is numpy.matmul, but for `out`

TENSORS = (
    *("x", "a", "a1", "a2", "ar", "arr", "ary", "array", "m", "X", "element", "condition", "x1", "x2", "b", "values"),
    *("y", "dst", "src", "test_elements", "obj", "self", "ar1", "ar2", "mask"),
)
LISTS = ("tensors", "arrays", "tup", "operands", "arrays_and_dtypes")

# The right value of each parameter that must be given.
RIGHT: Arguments = {
    "shape": (6, 6),
    "n": 2,
    "axis1": 0,
    "axis2": 1,
    "source": 0,
    "destination": 1,
    "pad_width": 1,
    "q": 0.5,
    "shift": 1,
    "low": 3,
    "bins": np.array([1.0, 3.0]),
    "fill_value": 2.0,
    "value": 2.0,
    "val": 2.0,
    "vals": np.array([2.0]),
    "p": np.array([1.0, 2.0]),
    "xp": np.array([0.0, 5.0]),
    "fp": np.array([1.0, 2.0]),
    "indices": np.array([1, 0]),
    "width": 1,
    "repetitions": 2,
    "repeats": 2,
    "subscripts": "ij,jk->ik",
    "indices_or_sections": 2,
    "layout": COLUMNS,
    "from_": "f4",
    "to": "f8",
    "dtype": "f4",
    "kind": "integral",
    "n_rows": 6,
    "start": 0,
    "stop": 5,
    "num": 6,
    "path": "matrix.npy",
    "device": "cpu",
    "axes": (1, 0),
    "grid_modes": (0,),
    "type": "f8",
    "v": np.array([1.0]),
    "function": lambda i, j: i + 10.0 * j,
}


def _fails(*indices: Any) -> Any:
    raise ZeroDivisionError("the function of one rank fails")


# What one rank gives instead, by the name of the parameter; for names that are not here, GENERAL.
OTHERS: dict[str, list[Any]] = {
    "axis": [7, "a", 1.5, (0,), 0, 1, None, -1],
    "axes": [(0,), (0, 1), (9,), "a", None],
    "keepdims": [True, "y"],
    "dtype": ["f4", "i8", "S3", "nonsense", object],
    "layout": [COLUMNS, ROWS, "[(0)]", "[(),()]", "nonsense(", 7],
    "grid": [(3, 1), (1, 3), (2,), "a"],
    "norm": ["ortho", "bad"],
    "s": [(4, 4), (0, 0), "a"],
    "n": [4, 0, "a"],
    "algorithm": ["slab", "cyclic", "bad"],
    "output": ["[(),(0)]", "bad"],
    "wire": ["f4", "bad"],
    "tune": ["bad"],
    "initial": [5, "a", 1j],
    "mode": ["edge", "bad", "r", "wrap"],
    "ord": [1, "bad", np.inf],
    "where": [False, "a"],
    "method": ["sendrecv", "bad", "nearest"],
    "subscripts": ["ij,jk->ki", "ij,kl->", "a b"],
    "path": ["none.npy", "none/x.npy", 7],
    "function": [_fails, lambda i, j: np.zeros(7), lambda i, j: "a", lambda i, j: (i + j).astype("f4"), None],
    "shape": [(6, 5), (36,), "a", (9, 4)],
    "repeats": [3, "a", -1],
    "bins": [3, "a", np.array([3.0, 1.0])],
    "indices": [np.array([9]), np.array([0]), "a"],
    "width": [2, "a", -1, 9],
    "q": [0.25, 2, [0.1, 0.2]],
    "pad_width": [2, "a", -1],
    "comm": [7, "a"],
}
GENERAL: list[Any] = ["text", 1, None, (0,), True]
SILENT = ("device", "stream", "options", "subok", "optimize", "args", "kwargs")  # parameters that nothing is tried for

# Tensors that one rank gives instead.
KINDS = (
    *("f4", "c16", "i8", "columns", "cyclic", "replicated", "partial", "longer", "vector", "array", "none", "text"),
    "read-only",
)
INTO = ("f4", "read-only", "columns", "longer", "array", "none", "text")


def every_function() -> Iterator[Function]:
    """Each public function and method, by the lists that the product keeps."""
    functions.load()
    for module in ("linalg", "fft"):
        import_module(f"rote.array_api.{module}")
    late("fft.functions.dispatch")
    for asked, answer in ANSWERS.items():
        yield _function(f"{getattr(asked, '__module__', 'numpy')}.{asked.__name__}", asked, answer)
    homes = {"rote": rote, "rote.fft": rote.fft, "xp": xp, "xp.linalg": xp.linalg, "xp.fft": xp.fft}
    for home, module in homes.items():
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name)
            own = inspect.isfunction(value) and value.__module__.startswith("rote") and not name.startswith("_")
            if own and f"{home}.{name}".removeprefix("rote.") not in ALONE.split():
                yield _function(f"{home}.{name}", value, value)
    for owner in (DistTensor, FFT, type(rote.random.default_rng(0))):
        for name in dir(owner):
            value = getattr(owner, name)
            if callable(value) and not name.startswith("_"):
                yield _function(f"{owner.__name__}.{name}", value, value)


def _function(name: str, call: Callable[..., Any], answer: Callable[..., Any]) -> Function:
    return Function(name, call, dict(inspect.signature(answer).parameters))


def tensor(comm: Any, array: Any = MATRIX, layout: str = ROWS, dtype: str | None = None) -> DistTensor:
    """A tensor on the ranks."""
    return DistTensor.from_global(np.asarray(array, dtype), layout, comm)


def right_arguments(comm: Any, function: Function) -> Arguments:
    """Arguments of a call that is right, by parameter. Collective."""
    owner, _, last = function.name.rpartition(".")
    given: Arguments = {}
    for name, parameter in function.parameters.items():
        if name in LISTS:
            given[name] = [tensor(comm), tensor(comm)]
        elif name == "self" and owner != "DistTensor":
            given[name] = FFT((6, 6), ROWS, comm=comm, output=ROWS) if owner == "FFT" else rote.random.default_rng(1)
        elif parameter.default is parameter.empty and name in TENSORS:
            given[name] = tensor(comm)
        elif parameter.default is parameter.empty and name in RIGHT:
            given[name] = RIGHT[name]
        elif name == "comm":
            given[name] = comm
    if "args" in given or "args" in function.parameters:
        given["args"] = {"isclose": [tensor(comm)] * 2, "clip": [tensor(comm), 0, 5]}.get(last, [tensor(comm)])
        if len(function.parameters) > 2:  # some are named
            given["args"] = []
    given.update(_special(comm, function.name, last, given))
    return given


def _special(comm: Any, name: str, last: str, given: Arguments) -> Arguments:
    """What a function needs beside what the names of its parameters say."""
    first = next((each for each in given if each in TENSORS), "")
    complex_matrix = tensor(comm, dtype="c16")
    for words, arguments in {
        ("bincount",): {first: tensor(comm, np.array([0, 1, 1, 2, 3, 3]), "block[(0)]")},
        ("take_along_axis",): {"indices": np.zeros((6, 6), int), "axis": 0},
        ("take", "expand_dims", "concat", "concatenate", "unstack"): {"axis": 0},
        ("cumulative_sum", "cumulative_prod"): {"axis": 0},
        ("searchsorted",): {first: tensor(comm, np.arange(6.0), "block[(0)]")},
        ("outer", "meshgrid"): {each: _vectors(comm, given[each]) for each in ("x1", "x2", "arrays") if each in given},
        ("squeeze",): {first: tensor(comm, MATRIX[:1], COLUMNS), "axes" if "axes" in given else "axis": 0},
        ("gradient",): {"f": tensor(comm)},
        ("sliding_window_view",): {"x": tensor(comm), "window_shape": 2, "axis": 0},
        ("unravel_index",): {"indices": tensor(comm, np.array([0, 1, 1, 2, 3, 3]), "block[(0)]"), "shape": (2, 3)},
        ("dsplit",): {first: tensor(comm, MATRIX.reshape(3, 3, 4), "block[(0),(),()]")},
        ("cross",): {"x1": tensor(comm, MATRIX[:, :3]), "x2": tensor(comm, MATRIX[:, :3])},
        ("isdtype",): {"dtype": np.dtype("f4")},
        ("iinfo",): {"type": "i4"},
        ("ifft", "ifft2", "ifftn", "irfft", "irfft2", "irfftn", "hfft"): {first: complex_matrix},
        ("forward", "backward"): {"x" if last == "forward" else "X": complex_matrix},
        ("from_global",): {"array": MATRIX},
        ("from_dask",): {"array": dask.array.from_array(MATRIX, chunks=3)},
        ("from_local",): {"local": tensor(comm).local, "layout": ROWS, "shape": (6, 6)},
        ("from_slices",): {"local": tensor(comm).local, "slices": tensor(comm).slices()},
        ("accumulate_halo",): {"halo": tensor(comm).halo(1) if last == "accumulate_halo" else None},
        ("save",): {"path": "written.npy"},
        ("load",): {"layout": ROWS},
    }.items():
        if last in words:
            return arguments
    if last.startswith(("bitwise", "logical")):
        kind = "i8" if last.startswith("bitwise") else "?"
        return {each: tensor(comm, dtype=kind) for each in given}
    return {}


def _vectors(comm: Any, given: Any) -> Any:
    """A vector in place of each tensor."""
    vector = tensor(comm, MATRIX[0], "block[(0)]")
    return [vector] * len(given) if isinstance(given, list) else vector


def other_tensor(comm: Any, kind: str, like: DistTensor | None = None) -> Any:
    """What one rank gives in place of a tensor, of its distribution if `like` is given. Not collective."""
    if kind in ("none", "text", "array"):
        return {"none": None, "text": "text", "array": MATRIX.copy()}[kind]
    array, layout, dtype = MATRIX, ROWS, kind if kind in ("f4", "c16", "i8") else "f8"
    layouts = {"columns": COLUMNS, "cyclic": "[(0),()]", "replicated": "[(),()]", "partial": "[(),()]+(0)"}
    layout = layouts.get(kind, "block[(0)]" if kind == "vector" else layout)
    array = {"longer": np.ones((6, 9)), "vector": np.ones(5)}.get(kind, array)
    dist = rote.parse(layout).on(array.shape, comm.size)
    block = np.array(rote.simulate.scatter(array.astype(dtype), dist)[comm.rank])
    if like is not None and kind in ("f4", "read-only"):
        dist, block = like.distribution, like.local.astype("f4" if kind == "f4" else like.dtype)
    block.flags.writeable = kind != "read-only"
    return DistTensor(block, dist, comm)


def called(function: Function, given: Arguments) -> Any:
    """The result of the function, each argument given as its parameter takes it."""
    args: list[Any] = []
    options: Arguments = {}
    in_turn = True
    for name, parameter in function.parameters.items():
        if name not in given:
            in_turn = in_turn and parameter.kind is parameter.VAR_POSITIONAL
        elif parameter.kind is parameter.VAR_POSITIONAL:
            args += given[name]
        elif in_turn and parameter.kind is not parameter.KEYWORD_ONLY:
            args.append(given[name])
        else:
            options[name] = given[name]
    return function.call(*args, **options)

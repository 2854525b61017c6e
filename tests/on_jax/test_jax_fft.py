"""FFTs of arrays of JAX equal those of NumPy and SciPy, undo each other, and send what their moves say."""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial
from math import log2, prod
from pathlib import Path

import jax
import numpy as np
import pytest
import scipy.fft
from devices import NAMES, collectives, compiled, mesh_of
from jax import numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec
from marks import examples

sys.path.append(str(Path(__file__).parents[1] / "fft"))

from families import pick_case

import rote
from rote.jax import FFT, from_global, to_global
from rote.jax.lowering import has_tables

MESHES = [(1,), (2,), (3,), (4,), (8,), (2, 2), (2, 4), (4, 2), (2, 3), (2, 2, 2)]
EXTENTS = [4, 5, 6, 7, 8, 9, 12, 13, 16, 18, 24, 32]
REAL_KINDS = ["dct2", "dct3", "dst2", "dst3"]
NORMS = ["backward", "ortho", "forward"]


@dataclass(frozen=True)
class Case:
    """A transform of random numbers: what `FFT` takes, and its kinds by axis."""

    mesh: tuple[int, ...]
    shape: tuple[int, ...]
    layout: PartitionSpec | str
    kinds: dict[int, str]
    dtype: str
    order: str
    norm: str
    algorithm: str = "auto"

    @property
    def fft(self):
        return FFT(
            self.shape, self.layout, mesh_of(self.mesh), self.dtype, kinds=self.kinds, order=self.order, norm=self.norm
        )


def usual_case(pick):
    """A case with at least one axis that may be whole at some time; a batch is of modes that no kind names."""
    mesh = pick(MESHES)
    order = pick([2, 2, 3, 3, 3, 4])
    shape = tuple(pick(EXTENTS[: 12 if order < 3 else 9 if order < 4 else 5]) for _ in range(order))

    spec = [[] for _ in shape]
    for name in NAMES[: len(mesh)]:
        spec[pick(range(order - 1))].append(name)
    turn = pick(range(order))
    spec = [tuple(names) or None for names in spec[turn:] + spec[:turn]]

    axes = sorted(pick([range(order), range(1, order), [pick(range(order))]]), key=lambda _: pick([0, 1]))
    dtype = pick(["f4", "f8", "c8", "c16"])
    kinds = dict.fromkeys(axes, "fft")
    if dtype[0] == "f":
        kinds[axes[-1]] = "rfft"
    return Case(
        mesh,
        shape,
        PartitionSpec(*spec),
        kinds,
        dtype,
        pick(["natural", "any"]),
        pick(["backward", "ortho", "forward"]),
    )


def family_case(pick):
    """A case of each family, and of six steps, in layouts of all kinds."""
    family = pick(["slab", "pencil", "rows", "volumetric", "cyclic", "ragged", "auto"])
    case = pick_case(pick, pick([1, 2, 3, 4, 6, 8]), "auto" if family == "ragged" else family)
    while len(case.grid) > 3:
        case = pick_case(pick, pick([1, 2, 3, 4, 6, 8]), case.family)
    dtype = pick(["f4", "f8", "c8", "c16"] if case.real else ["c8", "c16"])
    kinds = dict.fromkeys(case.axes, "fft")
    if dtype[0] == "f":
        kinds[case.axes[-1]] = "rfft"
    return Case(case.grid, case.shape, case.layout, kinds, dtype, pick(["any", "any", "natural"]), pick(NORMS), family)


def expected(array, kinds, norm):
    """The transform by NumPy and SciPy, in double precision: real kinds first, then half spectra, then complex ones."""
    wide = array.astype(np.result_type(array, np.float64))
    for axis, kind in sorted(kinds.items(), key=lambda item: (item[1] == "fft", item[1] == "rfft")):
        if kind in ("fft", "rfft"):
            wide = getattr(np.fft, kind)(wide, axis=axis, norm=norm)
        else:
            wide = getattr(scipy.fft, kind[:3])(wide, int(kind[3:]), axis=axis, norm=norm)
    return wide


def numbers(shape, dtype, seed):
    """Random numbers of a dtype."""
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1] if dtype[0] == "c" else parts[0]).astype(dtype)


def check(case, seed):
    """Law: forward equals NumPy, backward undoes it, and the program has the collectives of the moves."""
    fft, array = case.fft, numbers(case.shape, case.dtype, seed)
    wanted = expected(array, case.kinds, case.norm)
    near = 4 * np.finfo(case.dtype).eps * log2(max(2, prod(case.shape[axis] for axis in case.kinds)))

    x = from_global(array, fft.source, fft.mesh)
    spectrum = fft.forward(x)
    result = to_global(spectrum, fft.target, wanted.shape)
    assert result.dtype == (case.dtype if wanted.dtype == "f8" else np.result_type(case.dtype, np.complex64))
    assert abs(result - wanted).max() <= near * abs(wanted).max()
    back = to_global(fft.backward(spectrum), fft.source, case.shape)
    assert back.dtype == array.dtype and abs(back - array).max() <= near * abs(array).max()

    if case.order == "natural" and isinstance(case.layout, PartitionSpec):
        assert fft.target.layout == fft.source.layout
    lowered = fft.lowered[0]
    tables = has_tables(lowered.moves)
    if not tables:
        moved = sum([collectives(move.digits) for move in lowered.moves], Counter())
        assert compiled(jax.jit(fft.forward), x) == moved
    return tables


def single(x, case, back=False):
    """The transform, or its inverse, of a whole array on one device: by JAX's own functions, and by matrices."""
    order = sorted(case.kinds.items(), key=lambda item: (item[1] == "fft", item[1] == "rfft"), reverse=back)
    for axis, kind in order:
        n = case.shape[axis]
        if kind in REAL_KINDS:
            matrix = expected(np.eye(n), {0: kind}, case.norm)
            matrix = np.linalg.inv(matrix) if back else matrix
            x = jnp.moveaxis(jnp.tensordot(matrix.astype(x.real.dtype), x, (1, axis)), 0, axis)
        elif back:
            x = getattr(jnp.fft, f"i{kind}")(x, n, axis=axis, norm=case.norm)
        else:
            x = getattr(jnp.fft, kind)(x, axis=axis, norm=case.norm)
    return x


def check_gradient(case, seed):
    """Law: the gradient through a transform, a product and the way back equals that on one device."""
    fft = case.fft
    real = np.finfo(case.dtype).dtype.str[1:]
    x, w = numbers(case.shape, case.dtype, seed), numbers(case.shape, real, 2)
    v = numbers(fft.walk.target.shape, real, 1)

    def energy(x, forward, backward, v, w):
        return (w * abs(backward(v * forward(x))) ** 2).sum()

    whole = partial(single, case=case), partial(single, case=case, back=True)
    wanted = np.asarray(jax.grad(energy)(jnp.asarray(x), *whole, v, w))
    ends = (fft.source, fft.target, fft.source)
    x, v, w = (from_global(array, end, fft.mesh) for array, end in zip((x, v, w), ends, strict=True))
    gradient = jax.jit(jax.grad(partial(energy, forward=fft.forward, backward=fft.backward, v=v, w=w)))(x)
    result = to_global(gradient, fft.source, case.shape)
    near = 16 * np.finfo(case.dtype).eps * log2(max(4, prod(case.shape[axis] for axis in case.kinds)))
    assert result.dtype == wanted.dtype and abs(result - wanted).max() <= near * abs(wanted).max()


def check_many(check, make, seeds):
    for seed in seeds:
        case = make(random.Random(seed).choice)
        try:
            check(case, seed)
        except Exception as error:
            raise AssertionError(f"{case}, seed {seed}") from error


@pytest.mark.parametrize("make", [usual_case, family_case])
def test_transforms_equal_numpy(make):
    """Law: `check`, of whole axes that are transposed, and of digits of axes."""
    check_many(check, make, range(6))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6))
@pytest.mark.parametrize("make", [usual_case, family_case])
def test_more_transforms_equal_numpy(make, part):
    """Law: `check`, of whole axes that are transposed, and of digits of axes."""
    first = 6 + 50 * part
    check_many(check, make, range(first, first + examples(50)))


@pytest.mark.parametrize("make", [usual_case, family_case])
def test_gradients_are_those_of_one_device(make):
    """Law: `check_gradient`."""
    check_many(check_gradient, make, range(1))


@pytest.mark.slow
@pytest.mark.parametrize("make", [usual_case, family_case])
def test_more_gradients_are_those_of_one_device(make):
    """Law: `check_gradient`."""
    check_many(check_gradient, make, range(1, 1 + examples(50)))


# --- functions ------------------------------------------------------------------------------------------------------


@pytest.fixture
def mesh():
    return mesh_of((2, 4))


def same(x, wanted, where):
    """Values of NumPy or SciPy, sharded as the argument was."""
    assert x.shape == wanted.shape and x.sharding.is_equivalent_to(where, x.ndim)
    assert abs(np.asarray(x) - wanted).max() <= 1e-14 * abs(wanted).max()


def test_functions_are_those_of_numpy(mesh):
    """Functions take NumPy's and SciPy's arguments, and their results are sharded as their arguments."""
    where = NamedSharding(mesh, PartitionSpec("x", "y", None))
    array = numbers((8, 12, 5), "f8", 0)
    x = jax.device_put(array, where)

    lengths = {"s": (16, 7), "axes": (0, 2), "norm": "ortho"}
    for name in ("fftn", "ifftn", "rfftn"):
        same(getattr(rote.jax, name)(x, **lengths), getattr(np.fft, name)(array, **lengths), where)
    for name in ("fft", "ifft", "rfft", "irfft"):
        same(getattr(rote.jax, name)(x), getattr(np.fft, name)(array), where)
    same(rote.jax.fft(x, 4, 0, "forward"), np.fft.fft(array, 4, 0, "forward"), where)
    same(rote.jax.irfftn(rote.jax.rfftn(x), array.shape), array, where)
    for narrow in ("f2", jnp.bfloat16):
        spectrum = rote.jax.fftn(x.astype(narrow))
        assert spectrum.dtype == "c8"
        np.testing.assert_allclose(spectrum, np.fft.fftn(array.astype(narrow).astype("f4")), atol=1e-4)
    point = jax.device_put(np.ones(()), NamedSharding(mesh, PartitionSpec()))
    same(rote.jax.fftn(point), np.ones((), "c16"), point.sharding)

    for name, type in (("dctn", 2), ("idctn", 3), ("dstn", 3), ("idstn", 2)):
        wanted = getattr(scipy.fft, name)(array, type, axes=(0, 1), norm="ortho")
        same(getattr(rote.jax, name)(x, type, axes=(0, 1), norm="ortho"), wanted, where)


def test_functions_know_shardings(mesh):
    """Within `jit` the sharding is given, or JAX knows it, where axes are explicit."""
    array, spec = numbers((8, 8), "c16", 0), PartitionSpec("x", "y")
    wanted = np.fft.fftn(array)

    x = jax.device_put(array, NamedSharding(mesh, spec))
    same(jax.jit(partial(rote.jax.fftn, layout=spec, mesh=mesh))(x), wanted, x.sharding)

    explicit = mesh_of((2, 4), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    x = jax.device_put(array, NamedSharding(explicit, spec))
    same(jax.jit(rote.jax.fftn)(x), wanted, x.sharding)


def test_a_function_says_what_it_does_not_take(mesh):
    """Bad arguments are refused before anything runs, and errors say what to write."""
    x = jax.device_put(numbers((8, 12, 6), "f8", 0), NamedSharding(mesh, PartitionSpec("x", "y")))
    bad = {
        "an extent does not divide": lambda: rote.jax.rfftn(x, axes=(1, 0)),
        "pass mesh= and layout=": lambda: jax.jit(rote.jax.fftn)(x),
        "no array of JAX": lambda: rote.jax.fftn(np.ones((4, 4))),
        "names no axes of a mesh": lambda: rote.jax.fftn(jnp.ones((4, 4))),
        "has no dct1": lambda: rote.jax.dctn(x, 1),
        "name an axis twice": lambda: rote.jax.fftn(x, axes=(0, 0)),
        "norm is one of": lambda: rote.jax.fftn(x, norm="none"),
        "n is an integer": lambda: rote.jax.fft(x, (8, 8)),
        "axes are integers": lambda: rote.jax.fft(x, axis=(0, 1)),
        "needs at least one axis": lambda: rote.jax.rfftn(x, axes=()),
        "rfft transforms real numbers": lambda: rote.jax.rfftn(x + 0j),
    }
    for words, call in bad.items():
        with pytest.raises(rote.RoteError, match=words):
            call()


# --- FFT -------------------------------------------------------------------------------------------------------------


def test_derivatives_by_wavenumbers(mesh):
    """Law: a product with 1j times wavenumbers is a derivative; they are sharded, broadcast, and padded."""
    shape, spacing = (8, 12, 9), (0.5, 0.25, 1)
    fft = FFT(shape, PartitionSpec("x", "y"), mesh, "f8")
    phases = [2 * np.pi / n * np.arange(n) for n in shape]
    wave = np.sin(phases[0])[:, None, None] * np.cos(2 * phases[1])[:, None] * np.sin(3 * phases[2])
    spectrum = fft.forward(from_global(wave, fft.source, mesh))

    rows = fft.wavenumbers(d=spacing, nyquist="zero")
    assert [row.shape for row in rows] == [(8, 1, 1), (1, 12, 1), (1, 1, 5)]
    result = to_global(fft.backward(1j * rows[1] * spectrum), fft.source, shape)
    turn = 2 * 2 * np.pi / (12 * 0.25)
    wanted = -turn * np.sin(phases[0])[:, None, None] * np.sin(2 * phases[1])[:, None] * np.sin(3 * phases[2])
    np.testing.assert_allclose(result, wanted, atol=1e-13)

    same_rows = fft.wavenumbers(L=[n * d for n, d in zip(shape, spacing, strict=True)], nyquist="zero")
    for row, other in zip(rows, same_rows, strict=True):
        np.testing.assert_allclose(row, other, rtol=1e-15)


@pytest.mark.parametrize("points", [13, 16, 20, 64])
def test_a_single_axis_is_not_gathered(mesh, points):
    """One axis that is split, of many factors or prime, stays split: no device holds much more than its part."""
    fft = FFT(points, PartitionSpec("y"), mesh)
    longer = 2 if points == 13 else 1  # a chirp is of twice as many points
    most = max(prod(stage.before.max_local_shape()) for stage in fft.walk.stages)
    assert most <= longer * 2 * -(-points // 4)
    check(Case((2, 4), (points,), PartitionSpec("y"), {0: "fft"}, "c16", "natural", "ortho"), points)


@pytest.mark.parametrize("spec", [PartitionSpec(("x", "y")), PartitionSpec("x", "y")])
def test_any_order_ends_with_a_transform(mesh, spec):
    """Law: in any order, a compiled program does nothing after its last transform, and the way back nothing before."""
    fft = FFT((16, 16, 16), spec, mesh, order="any")
    assert str(fft.target.layout) == ("b c a: block[(0,1),(),()]" if len(spec) == 1 else "b c a: block[(0),(1),()]")
    x = from_global(numbers(fft.source.shape, "c16", 0), fft.source, mesh)
    for run, array, end in ((fft.forward, x, -1), (fft.backward, fft.forward(x), 0)):
        program = jax.jit(run).lower(array).compile().as_text().partition("ENTRY")[2]
        assert not re.search(r" (fusion|transpose|copy)\(", re.split(r" fft\(", program)[end])


def test_a_transform_says_what_it_does_not_take(mesh):
    """Bad arguments are refused before anything runs, and errors say what to write."""
    spec = PartitionSpec("x", "y")
    fft = FFT((8, 8), spec, mesh)
    other = mesh_of((4, 2))
    bad = {
        "order is": lambda: FFT((8, 8), spec, mesh, order="some"),
        "the mesh has axes": lambda: FFT((8, 8), PartitionSpec("a"), mesh),
        "has no dct4": lambda: FFT((8, 8), spec, mesh, kinds="dct4"),
        "has shape": lambda: fft.forward(jnp.ones((4, 4), "c16")),
        "of float32": lambda: fft.forward(jax.device_put(np.ones((8, 8), "f4"), NamedSharding(mesh, spec))),
        "sharded as": lambda: fft.forward(jax.device_put(np.ones((8, 8), "c16"), NamedSharding(other, spec))),
        "the same": lambda: fft.wavenumbers(L=1, d=1),
        "None is no mesh": lambda: FFT((8, 8), spec, None),
        "is partial": lambda: FFT((8, 8), "[(0),()]+(1)", mesh),
    }
    for words, call in bad.items():
        with pytest.raises(rote.RoteError, match=words):
            call()


def test_wide_elements_are_asked_for(mesh):
    """Where JAX would make complex64 of complex128, it is refused."""
    jax.config.update("jax_enable_x64", False)
    try:
        assert FFT(8, PartitionSpec("x"), mesh).walk.dtype == "c8"
        with pytest.raises(rote.PlanError, match="jax_enable_x64"):
            FFT(8, PartitionSpec("x"), mesh, "c16")
    finally:
        jax.config.update("jax_enable_x64", True)

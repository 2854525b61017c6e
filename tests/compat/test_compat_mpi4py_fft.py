"""The names of mpi4py-fft: their laws on in-process ranks and under MPI, plans, files, and what cannot be had."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as xml
from collections.abc import Callable
from pathlib import Path
from typing import Any

import compat_laws
import h5py
import numpy as np
import pytest
from launch import Job
from scipy import fft as scipy_fft

import rote
from rote.compat import mpi4py_fft
from rote.compat.mpi4py_fft import PFFT, HDF5File, NCFile, fftw, generate_xdmf, libfft, newDistArray
from rote.compat.mpi4py_fft.pencil import Pencil, Subcomm, Transfer

FOLDER = Path(mpi4py_fft.__file__).parent


@pytest.mark.parametrize(
    "ranks", [1, 3, pytest.param(2, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("check", compat_laws.CHECKS)
def test_laws(check: Callable[[Any], None], ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every law of `compat_laws` holds on in-process ranks."""
    monkeypatch.chdir(tmp_path)
    rote.run(check, ranks=ranks)


@pytest.mark.mpi
@pytest.mark.parametrize("job", [2, pytest.param(4, marks=pytest.mark.slow)], indirect=True)
def test_laws_under_mpi(job: Job) -> None:
    """Every law holds on the communicators of mpi4py, whose parts are mpi4py's own."""
    done = job.run(Path(compat_laws.__file__), "done")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{len(compat_laws.CHECKS)} checks done\n")


def test_the_old_name_of_fields_warns() -> None:
    """A program of before has its field, and hears the new name."""
    with pytest.warns(FutureWarning, match="the old name of newDistArray"):
        assert mpi4py_fft.Function(PFFT(rote.runtime.world(), (6, 8)), False, tensor=True).rank == 1


# --- FFTW's plans --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("char", ["f", "d", "g"])
@pytest.mark.parametrize(("shape", "axes"), [((7,), (0,)), ((8,), (-1,)), ((4, 5), (1, 0)), ((3, 4, 5), (0, 2))])
def test_fourier_plans_are_numpys(shape: tuple[int, ...], axes: tuple[int, ...], char: str) -> None:
    """Plans transform as NumPy without a factor, both ways; `normalize` undoes what was done before."""
    array = np.random.default_rng(0).random(shape).astype(char)
    close = {"rtol": 1e-5 if char == "f" else 1e-12, "atol": 1e-5 if char == "f" else 1e-12}
    complex_array = fftw.aligned_like(array.astype(char.upper()))
    plan = fftw.fftn(complex_array, None, axes, 1, (fftw.FFTW_ESTIMATE,))
    complex_array[...] = array
    assert np.allclose(plan(), np.fft.fftn(array, axes=axes), **close)
    assert plan() is plan.output_array
    back = fftw.ifftn(plan.output_array, axes=axes, output_array=complex_array)
    assert np.allclose(
        back(),
        array * array.size / np.prod([n for a, n in enumerate(shape) if a not in {b % len(shape) for b in axes}]),
        **close,
    )
    real = fftw.rfftn(array, axes=axes)
    spectrum = real().copy()
    assert spectrum.dtype == char.upper()
    assert np.allclose(spectrum, np.fft.rfftn(array, axes=axes), **close)
    again = fftw.irfftn(spectrum, s=[shape[a] for a in axes], axes=axes)
    assert np.allclose(again(normalize=True), array, **close)
    assert np.isclose(again.get_normalization(), real.get_normalization())
    for name in ("hfftn", "ihfftn"):
        assert fftw.inverse[fftw.inverse[getattr(fftw, name)]] is getattr(fftw, name)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["dct", "dst"])
def test_real_plans_are_scipys(name: str, number: int) -> None:
    """Cosine and sine plans are SciPy's without a factor; the inverse of a kind, with both factors, is the identity."""
    array = np.random.default_rng(number).random((4, 5, 6))
    there, back = (getattr(fftw, f"{prefix}{name}n") for prefix in ("", "i"))
    plan = there(array, axes=(0, 2), type=number)
    wanted = getattr(scipy_fft, f"{name}n")(array, axes=(0, 2), type=number)
    assert np.allclose(plan(), wanted)
    assert np.allclose(back(wanted, None, (0, 2), number)(normalize=True), array)
    kind = getattr(fftw, f"{name}_type")[number]
    mixed = fftw.get_planned_FFT(array, np.empty_like(array), (0, 2), [kind, fftw.FFTW_REDFT10])
    undone = fftw.get_planned_FFT(mixed(), np.empty_like(array), (0, 2), [fftw.inverse[kind], fftw.FFTW_REDFT01])
    assert np.allclose(undone() * fftw.get_normalization([kind, fftw.FFTW_REDFT10], array.shape, (0, 2)), array)


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_halfcomplex_plans_are_numpys(n: int) -> None:
    """R2HC gives the real parts of NumPy's spectrum and then, backwards, the imaginary ones; HC2R undoes it times n."""
    array = np.random.default_rng(n).random((3, n))
    spectrum = fftw.get_planned_FFT(array, np.empty_like(array), (1,), fftw.FFTW_R2HC)()
    wanted = np.fft.rfft(array)
    assert np.allclose(spectrum, np.hstack([wanted.real, wanted.imag[:, 1 : (n + 1) // 2][:, ::-1]]))
    undone = fftw.get_planned_FFT(spectrum, np.empty_like(array), (1,), fftw.inverse[fftw.FFTW_R2HC])()
    assert np.allclose(undone / n, array)


def test_plans_keep_their_arrays() -> None:
    """An explicit call goes through the kept output, an implicit one leaves it alone; the input keeps its values."""
    array, target = np.arange(6.0), np.zeros(4, complex)
    plan = fftw.rfftn(np.zeros(6))
    assert plan(array, target) is target
    assert np.allclose(target, np.fft.rfft(array))
    assert not np.allclose(plan.output_array, target)
    plan(array, target, implicit=False)
    assert np.allclose(plan.output_array, target)
    assert array.tolist() == [0, 1, 2, 3, 4, 5]
    tripled = fftw.FFT(array, target, normalization=3.0)
    assert np.allclose(tripled(normalize=True), 3 * np.fft.rfft(array))
    other = np.ones(6)
    tripled.update_arrays(other, target)
    assert np.allclose(tripled(), np.fft.rfft(other))


def test_arrays_are_aligned() -> None:
    """New arrays lie where they are asked to, and are of the shape, dtype and values asked for."""
    for n in (1, 8, 32):
        array = fftw.aligned((3, 0, 2) if n == 1 else (3, 5), n, "f", fill=2)
        assert (array.ctypes.data % n, array.dtype) == (0, np.dtype("f"))
        assert (array == 2).all()
        assert fftw.get_alignment(array) >= n
        assert fftw.aligned_like(array).shape == array.shape


def test_serial_transforms_are_padded() -> None:
    """A padded transform of one rank cuts the spectrum of its last axis, and pads it on the way back."""
    fft = libfft.FFT((4, 9), axes=1, padding=1.5)
    assert fft.forward.output_array.shape == (4, 4)
    spectrum = fft.forward(np.random.default_rng(3).random((4, 9))).copy()
    assert np.allclose(fft.forward(fft.backward(spectrum)), spectrum)


def test_wisdom_and_limits_are_taken(tmp_path: Path) -> None:
    """What FFTW offers beside plans may be called, and changes no transform."""
    fftw.export_wisdom(tmp_path / "wisdom")
    fftw.import_wisdom(tmp_path / "wisdom")
    fftw.forget_wisdom()
    fftw.set_timelimit(0.01)
    fftw.cleanup()
    assert (fftw.get_fftw_lib("d"), fftw.get_fftw_lib("i")) == (fftw, None)
    assert importlib.import_module("rote.compat.mpi4py_fft.fftw.xfftn").dctn is fftw.dctn


UTILITIES = """
    C2C_BACKWARD C2C_FORWARD C2R FFTW_BACKWARD FFTW_CONSERVE_MEMORY FFTW_DESTROY_INPUT FFTW_DHT FFTW_ESTIMATE
    FFTW_EXHAUSTIVE FFTW_FORWARD FFTW_HC2R FFTW_MEASURE FFTW_PATIENT FFTW_PRESERVE_INPUT FFTW_R2HC FFTW_REDFT00
    FFTW_REDFT01 FFTW_REDFT10 FFTW_REDFT11 FFTW_RODFT00 FFTW_RODFT01 FFTW_RODFT10 FFTW_RODFT11 FFTW_UNALIGNED
    FFTW_WISDOM_ONLY R2C aligned aligned_like get_alignment
"""
"""The names of mpi4py-fft's module fftw.utilities, version 2.0.6."""

PLACES = {
    "by all names that are loaded": """
        for name in [name for name in sys.modules if name.startswith("rote.compat.mpi4py_fft")]:
            sys.modules[name.removeprefix("rote.compat.")] = sys.modules[name]
    """,
    "by the names of its modules": """
        package = sys.modules["mpi4py_fft"] = rote.compat.mpi4py_fft
        for each in pkgutil.iter_modules(package.__path__):
            name = f"{package.__name__}.{each.name}"
            sys.modules[f"mpi4py_fft.{each.name}"] = importlib.import_module(name)
    """,
    "by one name": "sys.modules['mpi4py_fft'] = rote.compat.mpi4py_fft",
}


@pytest.mark.parametrize("place", PLACES)
def test_modules_of_mpi4py_fft_are_there(place: str) -> None:
    """Law: in place of mpi4py_fft, by whatever names, all its modules of plans can be imported, with their names."""
    program = f"""if True:
        import importlib, pkgutil, sys
        import rote.compat.mpi4py_fft
        {textwrap.indent(textwrap.dedent(PLACES[place]).strip(), " " * 8).strip()}
        import mpi4py_fft.fftw.xfftn, mpi4py_fft.fftw.factory, mpi4py_fft.libfft
        from mpi4py_fft.fftw import utilities, fftlib
        from mpi4py_fft.fftw.utilities import {", ".join(UTILITIES.split())}
        assert utilities.aligned is aligned and utilities.FFTW_MEASURE == mpi4py_fft.fftw.FFTW_MEASURE == 0
        ones = aligned(4, dtype="D", fill=1)
        for plan in (mpi4py_fft.fftw.xfftn.fftn(ones), mpi4py_fft.fftw.fftn(ones), mpi4py_fft.libfft.FFT(4).forward):
            assert plan(ones.real.copy())[0] in (1, 4)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# --- files -----------------------------------------------------------------------------------------------------------


def test_viewers_find_fields_and_coordinates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The XDMF of fields names every dataset with its extents, and has the coordinates of each axis, the last first."""
    monkeypatch.chdir(tmp_path)
    u = newDistArray(PFFT(rote.runtime.world(), (4, 5, 6)), False, val=3)
    lines = [np.arange(4.0), np.arange(5.0) / 5, np.arange(6.0) / 6]
    u.write("mesh.h5", "u", 0, domain=lines)
    u.write("mesh.h5", "u", 0, [slice(None), 2, slice(None)], domain=lines)
    u.write("box.h5", "u", 2, domain=[(0, 4), (0, 1), (1, 3)])
    generate_xdmf("mesh.h5")
    generate_xdmf("box.h5", periodic=(True, True, False))
    for name, extents, path, last in (
        ("mesh.xdmf", "4 5 6", "mesh.h5:/u/3D/0", lines[2]),
        ("mesh_slice_2_slice.xdmf", "4 1 6", "mesh.h5:/u/2D/slice_2_slice/0", lines[2]),
        ("box.xdmf", "4 5 6", "box.h5:/u/3D/2", np.linspace(1, 4, 6)),
    ):
        (grid,) = xml.parse(name).getroot().iterfind("Domain/Grid/Grid")
        first, *_ = grid.iterfind("Geometry/DataItem")
        assert np.allclose([float(word) for word in (first.text or "").split()], last)
        assert {item.text for item in grid.iterfind("Attribute/DataItem")} == {path}
        assert [each.get("Dimensions") for each in grid.iterfind("Topology")] == [extents]
    with h5py.File("mesh.h5") as file:
        assert (file["u"].attrs["rank"], file["u"].attrs["shape"].tolist()) == (0, [4, 5, 6])
        assert np.array_equal(file["u/mesh/x1"], lines[1])
    other = newDistArray(PFFT(rote.runtime.world(), (4, 6)), False)
    with pytest.raises(rote.LayoutError, match="of shape"):
        other.write("mesh.h5", "u", 1)
    newDistArray(PFFT(rote.runtime.world(), (4, 6))).write("complex.h5", "u", 1)
    with pytest.raises(rote.RoteError, match="complex"):
        generate_xdmf("complex.h5")


# --- what cannot be had ----------------------------------------------------------------------------------------------


def refusals(comm: Any) -> list[tuple[Callable[[], object], type[Exception], str]]:
    """Calls that are refused, with the error and words of it."""
    split = mpi4py_fft.mpifft.Subcomm(comm, [0, 1])
    dct2 = functools.partial(fftw.dctn, type=2)
    return [
        (lambda: NCFile("x.nc"), rote.RoteError, "HDF5File"),
        (lambda: fftw.get_planned_FFT(np.zeros(4), np.zeros(4), kind=fftw.FFTW_FORWARD), rote.PlanError, "R2HC"),
        (
            lambda: fftw.FFT(*np.zeros((2, 4, 4)), (0, 1), (fftw.FFTW_HC2R, fftw.FFTW_DHT)),
            rote.PlanError,
            "by themselves",
        ),
        (lambda: fftw.FFT(np.zeros(4), np.zeros(4, complex)), rote.LayoutError, "spectrum is"),
        (lambda: fftw.dctn(np.zeros(4), type=7), rote.PlanError, "give a type from 1 to 4"),
        (lambda: PFFT(split, (4, 6), axes=(1, 0)), rote.LayoutError, "transformed first"),
        (lambda: PFFT(comm, (4, 6), transforms={(1,): (np.sin, np.cos)}), rote.PlanError, "give one of fftw"),
        (lambda: PFFT(comm, (4, 6), transforms={(1,): (dct2, dct2)}), rote.PlanError, "does not undo"),
        (lambda: mpi4py_fft.distarray.Pencil(split, (4, 6), 0), rote.LayoutError, "align"),
        (lambda: mpi4py_fft.distarray.Pencil(list(split), (4, 6)), rote.LayoutError, "write Subcomm"),
        (
            lambda: mpi4py_fft.DistArray((4, 6), subcomm=comm),
            rote.LayoutError,
            r"write subcomm=Subcomm\(comm, \[0, 1\]\)",
        ),
        (lambda: mpi4py_fft.DistArray((4, 6, 5), subcomm=list(split)), rote.LayoutError, "write Subcomm"),
        (lambda: mpi4py_fft.DistArray((4, 6), mpi4py_fft.mpifft.Subcomm(comm, [2])), rote.LayoutError, "write 1 for"),
        (lambda: HDF5File("no/such/folder.h5", mode="w"), OSError, "folder"),
        (lambda: PFFT(comm), rote.LayoutError, r"write PFFT\(comm, shape\)"),
        (lambda: PFFT(comm, (4, 6), axes=()), rote.LayoutError, r"write axes=\(0, 1\)"),
        (lambda: PFFT(comm, (4, 6), padding=(1.5,) * 3), rote.LayoutError, "one for each of 2 axes"),
        (lambda: libfft.FFT((4, 6), padding=(1.5,) * 3), rote.LayoutError, "one for each of 2 axes"),
        (lambda: fftw.fftn(np.zeros((4, 6), complex), axes=()), rote.LayoutError, "one axis or more"),
    ]


OUT_OF_RANGE: dict[str, Callable[[Any, Any], object]] = {
    "PFFT": lambda comm, axis: PFFT(comm, (4, 6), axes=axis),
    "PFFT of groups": lambda comm, axis: PFFT(comm, (4, 6), axes=((0,), (axis,))),
    "PFFT of a slab": lambda comm, axis: PFFT(comm, (4, 6), slab=axis),
    "libfft.FFT": lambda comm, axis: libfft.FFT((4, 6), axes=axis),
    "Pencil": lambda comm, axis: Pencil(Subcomm(comm, [0, 1]), (4, 6), axis),
    "Pencil.pencil": lambda comm, axis: Pencil(Subcomm(comm, [0, 1]), (4, 6)).pencil(axis),
    "Transfer": lambda comm, axis: Transfer(comm, (4, 6), float, (4, 6), axis, (4, 6), 0),
    "DistArray": lambda comm, axis: mpi4py_fft.DistArray((4, 6), alignment=axis),
    "DistArray of a Subcomm": lambda comm, axis: mpi4py_fft.DistArray((4, 6), Subcomm(comm, [0, 1]), alignment=axis),
    "redistribute": lambda comm, axis: mpi4py_fft.DistArray((4, 6)).redistribute(axis),
    "get_pencil_and_transfer": lambda comm, axis: mpi4py_fft.DistArray((4, 6)).get_pencil_and_transfer(axis),
    "fftw.FFT": lambda comm, axis: fftw.FFT(np.zeros((4, 6)), np.zeros((4, 4), complex), (axis,)),
    "fftw.get_normalization": lambda comm, axis: fftw.get_normalization(0, (4, 6), (axis,)),
    **{
        f"fftw.{name}": lambda comm, axis, name=name: getattr(fftw, name)(np.zeros((4, 6), "D"), axes=(axis,))
        for name in ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn", "dctn", "idctn", "dstn", "idstn")
    },
}


@pytest.mark.parametrize("axis", [2, -3, "a", 1.5])
@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_axes_that_are_none_are_refused(name: str, axis: Any) -> None:
    """Law: whatever takes axes refuses one that there is not, by its name, with those that there are."""
    with pytest.raises(rote.LayoutError, match=r"are not all axes of a tensor of order 2\nwrite integers from -2 to 1"):
        OUT_OF_RANGE[name](rote.runtime.world(), axis)


def test_refusals_say_the_way_around() -> None:
    """What cannot be had is refused on all ranks, with what to write instead; a matched pair of transforms is not."""

    def program(comm: Any) -> None:
        for call, error, words in refusals(comm):
            with pytest.raises(error, match=words):
                call()

    rote.run(program, ranks=2)
    pair = (functools.partial(fftw.dctn, type=2), functools.partial(fftw.dctn, type=3))
    assert PFFT(rote.runtime.world(), (4, 6), axes=1, transforms={(1,): pair}).dtype(True) == "d"


def uses(source: ast.Module) -> set[str]:
    """The names of Rote that a file uses, with their modules."""
    names = (ast.unparse(node) for node in ast.walk(source) if isinstance(node, ast.Attribute))
    return {name for name in names if re.fullmatch(r"rote\.\w+(\.\w+)?", name)}


def test_only_public_names_are_used() -> None:
    """All that the adapter takes of Rote is listed as a name of `rote`, `rote.fft`, `rote.runtime` or `rote.wisdom`."""
    for path in FOLDER.rglob("*.py"):
        source = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(source):
            if isinstance(node, ast.ImportFrom):
                assert node.level <= len(path.relative_to(FOLDER).parts), path
        for name in uses(source):
            _, first, *more = name.split(".")
            assert first in rote.__all__, name
            if more and first in ("fft", "runtime", "wisdom"):
                assert more[0] in getattr(rote, first).__all__, name
    assert uses(ast.parse("rote.fft.FFT(x).y, rote.L")) == {"rote.fft", "rote.fft.FFT", "rote.L"}

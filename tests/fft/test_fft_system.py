"""The FFTW of the machine: found, named, refused where it is none; its plans are made once, by one thread at a time.

That in pyfftw's wheel stands for it, so that nothing must be installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.fft
from marks import PARTS
from parts import REST, SOME, share
from test_fft_libraries import CONFIGS, exact, numbers, runs, transforms

import rote
from rote.cli import doctor
from rote.fft.kernels import choose
from rote.fft.kernels.backends import interface, library
from rote.fft.kernels.backends.library import KernelConfig
from rote.fft.kernels.kernel import Kernel
from rote.fft.kernels.passes import prepare
from rote.fft.transforms import KINDS, real_dtype
from rote.runtime.comm.protocol import Comm

FOUND = sorted(
    path for place in sys.path for path in Path(place).glob("pyfftw*/**/libfftw3*") if "omp" not in path.name
)
FILES = {"fftw": "libfftw3-", "fftwf": "libfftw3f-"}
pytestmark = pytest.mark.skipif(not FOUND, reason="expected: this pyfftw brings no library of its own")


def wheel(precision: str) -> Path:
    """The library in one precision that pyfftw's wheel carries."""
    stems = FILES[precision], FILES[precision].replace("-", ".")
    return next(path for path in FOUND if path.name.startswith(stems))


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user names the folder of the wheel's libraries."""
    if FOUND:
        monkeypatch.setenv("ROTE_FFTW", str(FOUND[0].parent))


@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
@pytest.mark.parametrize("part", PARTS)
def test_transforms_are_those_of_numpy_and_scipy(part: str, config: KernelConfig) -> None:
    """Law: every kind, complex, real and real-to-real, in both precisions, along any axes, in place or not."""
    number, kinds = CONFIGS.index(config), set[str]()
    world = share([case for case in transforms() if case[2] in "fdFD"], SOME, 2, number)
    for shape, kind, char, axes in share(world, part, 4, number):
        length = 2 * shape[axes[-1]] - 1 if kind == "irfft" else 0
        block, want = numbers(shape, char), exact(kind, shape, char, axes, length)
        kernel = Kernel(kind, axes, shape, want.shape, block.dtype, replace(config, library="fftw3"))
        tolerance = 40 * float(np.finfo(real_dtype(char)).eps) * np.abs(want).max()
        for result in runs(kernel, block):
            assert np.abs(result - want).max() <= tolerance, kernel
        kinds.add(kind)
    assert len(kinds) == 12 if part == REST else kinds


@pytest.mark.parametrize("kind, points", [("dht", 12), ("r2hc", 12), ("hc2r", 12), ("r2hc", 7), ("hc2r", 7)])
@pytest.mark.parametrize("code", "fd")
def test_real_kinds_have_functions_of_their_own(kind: str, points: int, code: str) -> None:
    """Law: Hartley and half-complex transforms are FFTW's own, and are what the Fourier transform says."""
    block = np.random.default_rng(points).random((3, points, 5)).astype(code)
    spectrum = np.fft.fft(block, axis=1)
    half, count = np.fft.rfft(block, axis=1), (points - 1) // 2
    parts = np.concatenate([half.real, half.imag[:, 1 : count + 1][:, ::-1]], axis=1)
    source, want = {
        "dht": (block, spectrum.real - spectrum.imag),
        "r2hc": (block, parts),
        "hc2r": (parts.astype(code), points * block),
    }[kind]

    assert library("fftw3").does(kind, block.dtype)
    kernel, result = (
        Kernel(kind, (1,), block.shape, block.shape, block.dtype, KernelConfig("fftw3")),
        np.empty_like(block),
    )
    prepare(kernel, (1,), block.copy(), result, 1)(source, result)()
    np.testing.assert_allclose(result, want, atol=200 * np.finfo(code).eps)


def test_long_double_is_left_to_others() -> None:
    """Law: the library has double and single precision, and says so."""
    assert [library("fftw3").does("fft", np.dtype(code)) for code in "FDG"] == [True, True, False]


@pytest.mark.parametrize("code", "FD")
@pytest.mark.parametrize("offset", [0, 1])
def test_one_plan_repeats_along_all_modes(code: str, offset: int) -> None:
    """Law: a strided batch is one call, whatever modes it repeats along; arrays may begin anywhere."""
    memory = np.random.default_rng(1).random((4, 6, 10, 9, 2)).astype(code.lower()).view(code)[..., 0]
    source, target = np.zeros((2, memory.size * memory.itemsize + 64), np.uint8)
    begin = -source.ctypes.data % 64 + offset * memory.itemsize // 2  # a number that is not aligned
    source = source[begin : begin + memory.nbytes].view(code).reshape(memory.shape)
    source[...] = memory
    target = target[: memory.nbytes].view(code).reshape(memory.shape)

    cut = np.s_[:, ::2, ::3, 1:8]
    row = KINDS["fft"]
    plan = library("fftw3").prepare(row, (2,), (source[cut], target[cut]), KernelConfig("fftw3"))
    assert isinstance(plan, interface._Plan) and len(plan._starts) == 1
    plan(source[cut], target[cut])()
    np.testing.assert_allclose(target[cut], np.fft.fft(memory[cut], axis=2), atol=1e-5 if code == "F" else 1e-13)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_it_is_taken_where_its_sample_is_faster(ranks: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: by the times of samples alone, on in-process ranks; there and back are NumPy's and the input."""
    monkeypatch.setattr(choose, "keeps", lambda comm: True)
    monkeypatch.setattr(choose, "_timed", lambda sample, names, comm: speeds(sample, names))
    monkeypatch.setattr(choose, "recalled", lambda comm, key, read: None)
    monkeypatch.setattr(choose, "remembered", lambda comm, key, decision: True)

    def speeds(sample: choose.Sample, names: list[str]) -> dict[str, choose.Speed]:
        assert "fftw3" in names
        return {name: (0.1 if name == "fftw3" else 1.0,) * len(sample.ways(name)) for name in names}

    shape = (32, 48, 40)
    block = np.random.default_rng(1).random(shape).astype(dtype)
    transform = np.fft.fftn if np.dtype(dtype).kind == "c" else np.fft.rfftn

    def program(comm: Comm) -> tuple[str, ...]:
        plan = rote.fft.FFT(shape, "block[(0),(),()]", comm=comm, dtype=dtype)
        x = rote.DistTensor.from_global(block, plan.input_layout, comm)
        y = plan.forward(x)
        tolerance = 1e-5 if y.dtype == np.complex64 else 1e-12
        np.testing.assert_allclose(y.to_global(), transform(block), rtol=0, atol=tolerance * block.size)
        np.testing.assert_allclose(plan.backward(y).to_global(), block, rtol=0, atol=tolerance)
        cosines = rote.fft.dctn(x, 2).to_global()
        np.testing.assert_allclose(cosines, scipy.fft.dctn(block, 2), rtol=0, atol=8 * tolerance * block.size)
        return plan.libraries

    assert rote.run(program, ranks) == [("fftw3",)] * ranks


def test_threads_plan_and_drop_plans_one_at_a_time() -> None:
    """Law: threads that plan, transform and drop plans at once disturb neither each other nor pyfftw's plans."""
    wrong: list[str] = []

    def program(seed: int) -> None:
        name = ("fftw3", "pyfftw")[seed % 2]
        for points in range(2, 60):
            block = np.random.default_rng(seed).random((points, 5)).astype("D")
            kernel, result = (
                Kernel("fft", (0,), block.shape, block.shape, block.dtype, KernelConfig(name)),
                block.copy(),
            )
            prepare(kernel, (0,), block, result, 1)(block, result)()
            if not np.allclose(result, np.fft.fft(block, axis=0)):
                wrong.append(f"{name} {points}")

    threads = [threading.Thread(target=program, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_a_plan_is_destroyed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: a plan is made once for all arrays, and destroyed, while no other thread plans, with its last reference."""
    destroyed, functions = list[int](), interface._functions

    def noted(*args: object) -> tuple[object, object, Callable[[int], None]]:
        plan, execute, destroy = functions(*args)

        def told(handle: int) -> None:
            assert interface.PLANNING._is_owned()
            destroyed.append(handle)
            destroy(handle)

        return plan, execute, told

    monkeypatch.setattr(interface, "_functions", noted)
    block = np.random.default_rng(1).random((4, 6)).astype("D")
    kernel = Kernel("fft", (1,), block.shape, block.shape, block.dtype, KernelConfig("fftw3"))
    transform = prepare(kernel, (1,), block.copy(), np.empty_like(block), 1)
    for _ in range(3):
        result = np.empty_like(block)
        call = transform(block, result)
        call()
        np.testing.assert_allclose(result, np.fft.fft(block), atol=1e-13)
    assert not destroyed
    del transform
    assert not destroyed, "the call needs it"
    del call
    assert len(destroyed) == 1


# --- which library ----------------------------------------------------------------------------------------------------


def test_a_file_or_a_folder_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Law: ROTE_FFTW names the library in double precision, or its folder; that in single lies beside it."""
    versions = {library("fftw3").version()}
    monkeypatch.setenv("ROTE_FFTW", str(wheel("fftw")))
    versions.add(library("fftw3").version())
    (version,) = versions
    assert version.startswith("3.3.") and version.endswith(" double, single")

    alone = tmp_path / "alone" / "libfftw3.so.3"
    alone.parent.mkdir()
    shutil.copy(wheel("fftw"), alone)
    for path in (alone, alone.parent):
        monkeypatch.setenv("ROTE_FFTW", str(path))
        assert library("fftw3").version().endswith(" double")
        assert [library("fftw3").does("fft", np.dtype(code)) for code in "FD"] == [False, True], "others do the rest"


def no_fftw(folder: Path, what: str) -> tuple[str, str]:
    """A path that names no FFTW, and what the error says."""
    text = folder / "libfftw3.so.3"
    text.write_text("no library")
    other = folder / "empty"
    other.mkdir()
    half = folder / "half"
    half.mkdir()
    shutil.copy(wheel("fftw"), half / "libfftw3.so.3")
    (half / "libfftw3f.so.3").write_text("no library")
    return {
        "text": (str(text), "libfftw3.so.3"),
        "missing": (str(folder / "nowhere.so"), "nowhere.so"),
        "empty": (str(other), "no shared library libfftw3 is in this folder"),
        "another": (np._core._multiarray_umath.__file__, "has no fftw_version"),
        "single": (str(wheel("fftwf")), "has no fftw_version"),
        "half": (str(half), "libfftw3f.so.3"),
    }[what]


@pytest.mark.parametrize("what", ["text", "missing", "empty", "another", "single", "half"])
def test_what_is_no_fftw_is_one_error_on_all_ranks(what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Law: the error says what ROTE_FFTW names, why that is none, and what to write, before anything is transformed."""
    path, why = no_fftw(tmp_path, what)
    monkeypatch.setenv("ROTE_FFTW", path)

    def program(comm: Comm) -> str:
        plan = rote.fft.FFT((16, 16), comm=comm)
        x = plan.empty_input()
        with pytest.raises(rote.RoteError) as error:
            plan.forward(x)
        return str(error.value)

    (message,) = {*rote.run(program, 3)}
    first, second = message.splitlines()
    assert first.startswith(f"ROTE_FFTW={path} is no FFTW: ") and why in first
    assert second == "name a file libfftw3.so.3 or its folder, or unset ROTE_FFTW"

    (finding,) = (finding for finding in doctor.findings() if finding.subject == "FFTW")
    assert (finding.state, finding.hint) == ("broken", second) and finding.result == first


def test_one_rank_with_a_wrong_name_stops_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: where one rank alone names what is no FFTW, all ranks raise its error, and none waits."""
    monkeypatch.setattr(choose, "fault", lambda: "ROTE_FFTW=x" if threading.current_thread() in wrong else "")
    wrong: list[threading.Thread] = []

    def program(comm: Comm) -> str:
        if comm.rank == 1:
            wrong.append(threading.current_thread())
        comm.barrier()
        plan = rote.fft.FFT((16, 16), comm=comm)
        x = plan.empty_input()
        with pytest.raises(rote.RoteError) as error:
            plan.forward(x)
        return str(error.value)

    assert rote.run(program, 3) == ["ROTE_FFTW=x"] * 3


def test_what_was_not_asked_for_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Law: an environment's or a system's library that is no FFTW is none, without an error."""
    (tmp_path / "lib").mkdir()
    for stem in ("libfftw3", "libfftw3f"):
        (tmp_path / "lib" / f"{stem}.so.3").write_text("no library")
    monkeypatch.delenv("ROTE_FFTW")
    program = """if True:
        import sys
        sys.prefix = sys.argv[1]
        import rote, numpy as np
        from rote.fft.kernels.backends import fault, library
        from rote.fft.kernels.backends import system
        system._SUFFIX = ".so.3"
        names = []
        dlopen, system.dlopen = system.dlopen, lambda path, flags: names.append(path) or dlopen(
            path if path.startswith(sys.argv[1]) else sys.argv[1] + "/nowhere.so", flags)
        assert (library("fftw3").version(), library("fftw3").loads, fault()) == ("", False, "")
        assert names == [sys.argv[1] + "/lib/libfftw3.so.3", "libfftw3.so.3"], names
        x = rote.DistTensor.from_function(lambda i, j: i + 1j * j, (64, 64), "[(),()]")
        assert np.allclose(rote.fft.fftn(x).to_global(), np.fft.fftn(x.local))
        print("transformed")
    """
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "transformed\n"), done.stderr


def test_doctor_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: `rote doctor` says version, instruction sets, precisions and file; nothing where there is none."""
    (finding,) = (finding for finding in doctor.findings() if finding.subject == "FFTW")
    assert finding.state == "ok" and "3.3." in finding.result and "double, single" in finding.result
    assert str(wheel("fftw")) in finding.result

    monkeypatch.setattr("rote.fft.kernels.backends.system._opened", lambda named: "not installed")
    monkeypatch.delenv("ROTE_FFTW")
    assert not [finding for finding in doctor.findings() if finding.subject == "FFTW"]


@pytest.mark.skipif(sys.platform != "linux", reason="expected: MKL is loaded on Linux only")
@pytest.mark.parametrize("first", ["fftw3", "mkl"])
def test_symbols_do_not_clash(first: str) -> None:
    """Law: beside MKL, opened for the whole process first or last, the functions are the library's own, and work."""
    program = """if True:
        import ctypes, os, sys
        import numpy as np
        from rote.host import dlopen, mkl_files
        from rote.fft.kernels.backends import library
        from rote.fft.kernels.backends.library import KernelConfig
        from rote.fft.transforms import KINDS

        def whole():
            if library("mkl").installed():
                for name in ("core", "sequential", "intel_lp64"):
                    dlopen(mkl_files()[name], os.RTLD_GLOBAL)

        opens = [lambda: library("fftw3").load(), whole]
        for call in opens if sys.argv[1] == "fftw3" else opens[::-1]:
            call()

        class Symbol(ctypes.Structure):
            _fields_ = [("file", ctypes.c_char_p), *((name, ctypes.c_void_p) for name in ("base", "name", "start"))]

        for precision, opened in library("fftw3").load().items():
            for name in ("plan_guru64_dft", "plan_guru64_r2r", "execute_dft", "destroy_plan", "version"):
                symbol, address = Symbol(), ctypes.cast(getattr(opened, f"{precision}_{name}"), ctypes.c_void_p)
                assert ctypes.CDLL(None).dladdr(address, ctypes.byref(symbol))
                assert b"libfftw3" in symbol.file, symbol.file
        for name in ("fftw3", "mkl", "fftw3"):
            for code in "FD":
                if library(name).does("fft", np.dtype(code)):
                    x = np.random.default_rng(1).random((8, 12)).astype(code)
                    y = np.empty_like(x)
                    library(name).prepare(KINDS["fft"], (0, 1), (x.copy(), y), KernelConfig(name))(x, y)()
                    assert np.allclose(y, np.fft.fftn(x), atol=1e-5)
        assert not hasattr(ctypes.CDLL(None), "fftw_plan_guru64_r2r") or library("mkl").installed()
        print("well")
    """
    done = subprocess.run([sys.executable, "-c", program, first], capture_output=True, text=True, env=os.environ)
    assert (done.returncode, done.stdout) == (0, "well\n"), done.stderr

"""Libraries of local transforms: each gives what numpy.fft and scipy.fft give, whatever the config."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from itertools import combinations, product

import numpy as np
import pytest
import scipy.fft
from marks import PARTS
from parts import REST, SOME, share

from rote import RoteError, host
from rote.fft.kernels import backends, gather, threads
from rote.fft.kernels import kernel as kernels
from rote.fft.kernels.backends import NAMES, library, mkl, system, usual_library
from rote.fft.kernels.backends.library import WHOLE, KernelConfig
from rote.fft.kernels.gather import Gather, gathers, whole
from rote.fft.kernels.kernel import ALIGNMENT, Kernel, plain
from rote.fft.kernels.passes import prepare
from rote.fft.kernels.threads import helpers, parallel_for
from rote.fft.transforms import KINDS, real_dtype
from rote.runtime.comm.segments import at_line
from rote.runtime.comm.threads import alone

TRIGONOMETRIC = [row.name for row in KINDS.values() if row.type]
SHAPES = [(7,), (5, 6), (6, 1), (3, 4, 5), (2, 41, 3), (4, 9, 1, 11)]  # FFTW transforms 41 points in lines
CONFIGS = [
    KernelConfig(),
    KernelConfig(part=WHOLE, tiled=False),
    KernelConfig(part=1, tile=1),
    KernelConfig(tile=200, part=900, threads=2),
    KernelConfig(tile=300, threads=3),
]
HERE = [name for name in NAMES if library(name).version()]


def raises(error: type[Exception], *args: object) -> None:
    """Raise an error."""
    raise error(*args)


def transforms() -> list[tuple[tuple[int, ...], str, str, tuple[int, ...]]]:
    """Shape, kind, dtype and axes: every kind and dtype that it takes, along three sets of each number of axes."""
    kinds = ("fft", "ifft", "rfft", "irfft", *TRIGONOMETRIC)
    return [
        (shape, kind, char, axes)
        for shape, kind, char in product(SHAPES, kinds, "fdgFDG")
        if kind in TRIGONOMETRIC or (char in "fdg") == (kind == "rfft")
        if kind != "dct1" or 1 not in shape
        for count in range(1, len(shape) + 1)
        for axes in list(combinations(range(len(shape)), count))[:3]
    ]


@cache
def numbers(shape: tuple[int, ...], char: str) -> np.ndarray:
    """The same numbers for every library; nobody may write into them."""
    block = np.random.default_rng([*shape, ord(char)]).standard_normal(shape).astype(char)
    block = block + block.dtype.type(1j) * block[::-1] if char in "FDG" else block
    block.flags.writeable = False
    return block


@cache
def exact(kind: str, shape: tuple[int, ...], char: str, axes: tuple[int, ...], length: int) -> np.ndarray:
    """The un-normalised transform, in long double."""
    block = numbers(shape, char)
    wide = block.astype("G" if block.dtype.kind == "c" else "g")
    if kind in TRIGONOMETRIC:
        return getattr(scipy.fft, f"{kind[:3]}n")(wide, int(kind[3]), axes=axes)
    s = [block.shape[a] for a in axes[:-1]] + [length or block.shape[axes[-1]]]
    norm = "forward" if kind.startswith("i") else "backward"
    return getattr(np.fft, f"{kind}n")(wide, s=s, axes=axes, norm=norm)


def runs(kernel: Kernel, block: np.ndarray, scale: float = 1) -> list[np.ndarray]:
    """The results of a kernel: of blocks of their own, in place, called and prepared; and gathered, without a scale."""
    size = max(block.nbytes, int(np.prod(kernel.out_shape)) * kernel.out_dtype.itemsize)
    scratch = at_line(size), at_line(size)
    pool = helpers(alone(), kernel.config.threads)
    bound = threads.bind_kernel(kernel, scratch, False, scale, pool)
    found = []
    for in_place, prepared in product((False, True) if kernel.in_place else (False,), (False, True)):
        source = plain(block.copy())
        target = source if in_place else plain(np.empty(kernel.out_shape, kernel.out_dtype))
        for call in bound.bound(source, target) if prepared else [partial(bound, source, target)]:
            call()
        found.append(target)
    if scale == 1 and gathers(kernel, ortho=False):
        found.append(np.empty(kernel.out_shape, kernel.out_dtype))
        run = Gather(kernel, whole(kernel.shape), (), scratch, pool)
        run(run.reads([block.reshape(-1)]), found[-1])
    return found


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
@pytest.mark.parametrize(
    "kind, axes", [("fft", (1, 2)), ("fft", (0,)), ("rfft", (0, 1)), ("irfft", (1, 2)), ("dct2", (0,))]
)
def test_a_scale_multiplies_the_result(kind: str, axes: tuple[int, ...], config: KernelConfig) -> None:
    """Law: exactly, if it is a power of two, also where threads share the rows or the columns, or a copy applies it."""
    shape = out_shape = (12, 6, 20)
    if kind == "rfft":
        out_shape = (12, 4, 20)
    elif kind == "irfft":
        out_shape = (12, 6, 39)
    block = numbers(shape, "F" if KINDS[kind].real in ("neither", "output") else "f")
    names = [name for name in HERE if library(name).does(kind, block.dtype)]
    assert names
    for name in names:
        kernel = Kernel(kind, axes, shape, out_shape, block.dtype, replace(config, library=name))
        for scaled, usual in zip(runs(kernel, block, 0.25), runs(kernel, block), strict=False):
            np.testing.assert_array_equal(4 * scaled, usual)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few elements are large: the usual config has parts and tiles of them."""
    monkeypatch.setattr(kernels, "CHUNK", 1000)
    monkeypatch.setattr(threads, "SHARED", 500)
    monkeypatch.setattr(gather, "NEAR", 300)
    small = {"CACHED": 700, "_LONG": 900, "_FAR": 160, "_LARGE": 400}
    for name, number in {**small, "_ALIASED": 16, "_FEW": 3, "_SMALL": 4, "_MANY": 3}.items():
        monkeypatch.setattr(kernels, name, number)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("part", PARTS)
def test_a_library_is_numpy_and_scipy_fft(part: str, name: str, config: KernelConfig) -> None:
    """Law: what a library says it can do is exact: every kind and dtype, along any axes, in place or not, gathered."""
    number, checked = CONFIGS.index(config), 0
    world = share(transforms(), SOME, 2, number)  # every other one; all by each two configs that follow each other
    for shape, kind, char, axes in share(world, part, 4, number):
        length = 2 * shape[axes[-1]] - 1 if kind == "irfft" else 0
        block, want = numbers(shape, char), exact(kind, shape, char, axes, length)
        kernel = Kernel(kind, axes, shape, want.shape, block.dtype, replace(config, library=name))
        if not library(name).does(kind, kernel.of_parts().dtype):
            continue
        tolerance = 40 * float(np.finfo(real_dtype(char)).eps)
        for found in runs(kernel, block):
            assert np.abs(found - want).max() <= tolerance * np.abs(want).max(), (kernel, shape)
            checked += 1
    assert checked > (60 if part == REST else 4)  # MKL does half as much as others


def test_what_is_not_installed_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is not installed has no version, and is none of those that are here."""
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(host, "find_spec", lambda package: None)
    for module in (mkl, system):
        monkeypatch.setattr(module, "_opened", lambda *named: "not installed")
    host.installed.cache_clear()
    try:
        assert [name for name in NAMES if library(name).version()] == ["numpy"]
        with pytest.raises(RoteError, match="no installed library has fft of complex128\npip install pyfftw"):
            usual_library("fft", np.dtype("D"))
    finally:
        host.installed.cache_clear()


@pytest.mark.parametrize("processor", ["Intel(R) Xeon(R) Processor", "AMD EPYC", "0x41 0xd0c", ""])
def test_mkl_is_taken_where_it_is(monkeypatch: pytest.MonkeyPatch, processor: str) -> None:
    """Without timing, MKL transforms all that it can where it is installed, on Intel's processors; FFTW the rest."""
    monkeypatch.setattr(backends, "processor", lambda: processor)
    taken = "mkl" if "mkl" in HERE and "Intel" in processor else "pyfftw"
    assert [usual_library(kind, np.dtype(code)) for kind in ("fft", "irfft") for code in "FD"] == [taken] * 4
    assert usual_library("dct2", np.dtype("d")) == usual_library("fft", np.dtype("G")) == "pyfftw"


def test_no_bit_depends_on_where_a_block_lies() -> None:
    """Law: of blocks that begin elsewhere in a line of the cache, the library that is taken makes the same bits."""
    shape, name = (3, 60, 7), usual_library("fft", np.dtype("D"))
    values = np.random.default_rng(1).random((*shape, 2)).view("D")[..., 0]
    for axes in ((1,), (1, 2)):
        kernel, results = Kernel("fft", axes, shape, shape, values.dtype, KernelConfig(name)), []
        for offset in range(0, 64, ALIGNMENT):
            source, target = (
                at_line(values.nbytes + 64)[offset : offset + values.nbytes].view("D").reshape(shape) for _ in range(2)
            )
            source[...] = values
            prepare(kernel, axes, source, target, 1)(source, target)()
            prepare(kernel, axes, source, source, 1)(source, source)()
            results.append((target.tobytes(), source.tobytes()))
        assert len({*results}) == 1


def test_fftw_stays_fftw() -> None:
    """Whatever libraries are loaded, what is imported after them and wants FFTW's functions gets those of FFTW."""
    code = (
        "from rote.fft.kernels.backends import NAMES, library\n"
        "loaded = [library(name).loads for name in NAMES]; import pyfftw\n"
        "pyfftw.FFTW(pyfftw.empty_aligned(64, 'D'), pyfftw.empty_aligned(64, 'D'), flags=('FFTW_MEASURE',))\n"
        "print(str(pyfftw.export_wisdom()[0], 'ascii')[:6])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "(fftw-\n"


def test_fftw_is_fftw_after_others() -> None:
    """Law: FFTW's functions are FFTW's even if MKL, where it is, was opened for the whole process before."""
    code = (
        "import ctypes, glob, site, sys; import numpy as np\n"
        "for place in (sys.prefix, site.getuserbase()):\n"
        "    for file in glob.glob(f'{place}/lib/libmkl_rt.so*'): ctypes.CDLL(file, ctypes.RTLD_GLOBAL)\n"
        "from rote.fft.kernels.backends.fftw import fftw_core\n"
        "x = np.zeros((8, 4, 12), complex)[..., :8]\n"  # MKL has no plan for it, along its first axis and in place
        "fftw_core().FFTW(x, x, (0,))\n"
        "print(str(fftw_core().export_wisdom()[0], 'ascii')[:6])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "(fftw-\n"


def test_threads_belong_to_a_communicator():
    """Law: nothing is started by an import; a communicator keeps the threads that were asked for, one alone none."""
    assert not [name for name, value in vars(threads).items() if isinstance(value, ThreadPoolExecutor)]
    first, second = alone(), alone()
    assert helpers(first, 1) is None
    pool = helpers(first, 3)
    assert pool is helpers(first, 3) is not helpers(second, 3)
    seen = set()
    parallel_for(pool, lambda worker, item: seen.add((worker, item)), ["a", "b", "c"], range(7))
    assert seen == {("abc"[n % 3], n) for n in range(7)}


def test_the_model_imports_no_other_library():
    """Without timing no package of transforms is imported but pyfftw, or its compiled part alone."""
    code = (
        "import sys, rote; from rote.fft import FFT; f = FFT((4, 6), dtype='f8')\n"
        "f.forward(rote.DistTensor.zeros((4, 6), f.input_layout))\n"
        "print({'ducc0', 'mkl_fft', 'scipy'} & {*sys.modules})"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"

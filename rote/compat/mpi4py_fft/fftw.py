"""Plans of FFTW, by its names: transforms of Rote on arrays of this rank, which are planned at once, by a model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from math import isclose, prod
from types import ModuleType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import rote

from .pencil import ALONE, Array

FFTW_FORWARD, FFTW_R2HC, FFTW_BACKWARD, FFTW_HC2R, FFTW_DHT = -1, 0, 1, 1, 2
FFTW_REDFT00, FFTW_REDFT01, FFTW_REDFT10, FFTW_REDFT11 = 3, 4, 5, 6
FFTW_RODFT00, FFTW_RODFT01, FFTW_RODFT10, FFTW_RODFT11 = 7, 8, 9, 10
FFTW_MEASURE, FFTW_DESTROY_INPUT, FFTW_UNALIGNED, FFTW_CONSERVE_MEMORY, FFTW_EXHAUSTIVE = 0, 1, 2, 4, 8
FFTW_PRESERVE_INPUT, FFTW_PATIENT, FFTW_ESTIMATE, FFTW_WISDOM_ONLY = 16, 32, 64, 1 << 21
C2C_FORWARD, C2C_BACKWARD, R2C, C2R = -1, 1, -2, 2
flag_dict: dict[str, Any] = {name: flag for name, flag in globals().items() if name.startswith("FFTW_")}
_REAL = {2: "dht", 3: "dct1", 4: "dct3", 5: "dct2", 6: "dct4", 7: "dst1", 8: "dst3", 9: "dst2", 10: "dst4"}
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}  # of a type of cosine or sine transforms
dct_type, dst_type = {1: 3, 2: 5, 3: 4, 4: 6}, {1: 7, 2: 9, 3: 8, 4: 10}
idct_type, idst_type = ({n: types[_INVERSE[n]] for n in types} for types in (dct_type, dst_type))


def get_normalization(kind: Any, shape: Sequence[int], axes: Sequence[int]) -> float:
    """The factor of a transform and its inverse together: 1 over the product of logical lengths, as FFTW has them."""
    kinds, more = np.broadcast_to(kind, len(axes)).tolist(), {FFTW_REDFT00: -1, FFTW_RODFT00: 1}
    return 1 / prod((2 if k > FFTW_DHT else 1) * (shape[a] + more.get(k, 0)) for k, a in zip(kinds, axes, strict=True))


def get_alignment(array: Array) -> int:
    """The largest power of two, up to 32, that divides the address."""
    return next(n for n in (32, 16, 8, 4, 2, 1) if array.ctypes.data % n == 0)


def aligned(shape: Any, n: int = 32, dtype: npt.DTypeLike = "d", fill: float | None = None) -> Array:
    """A new array at an address that n divides; filled, or empty."""
    extents, element = np.atleast_1d(shape).astype(int).tolist(), np.dtype(dtype)
    memory = np.empty(prod(extents) * element.itemsize + n, np.uint8)
    start = -memory.ctypes.data % n
    array = memory[start : start + len(memory) - n].view(element).reshape(extents)
    array[...] = 0 if fill is None else fill
    return array


def aligned_like(z: Array, fill: float | None = None) -> Array:
    """A new array of the shape, dtype and alignment of another."""
    return aligned(z.shape, get_alignment(z), z.dtype, fill)


class ArrayPlan:
    """A direction of a transform of Rote, between two arrays that it keeps.

    `defaults` are those of calls: whether they have a factor, and whether they leave the kept output alone if they are
    given another. The factor is Rote's, in the same sweep, where there is no `factor` of its own.
    """

    transform: rote.fft.FFT
    input_array: Array
    output_array: Array

    factor: float | None = None

    def __init__(self, transform: rote.fft.FFT, back: bool, x: Array, y: Array, defaults: tuple[bool, bool]) -> None:
        self.transform, self.input_array, self.output_array, self._defaults = transform, x, y, defaults
        self._run: Callable[..., Any] = transform.backward if back else transform.forward
        self._norms = ("forward", "backward") if back else ("backward", "forward")
        ends = (transform.input_distribution, transform.output_distribution)
        self._ends = [(dist, transform.comm) for dist in (ends[::-1] if back else ends)]

    def __call__(self, input_array: Array | None = None, output_array: Array | None = None,
                 implicit: bool | None = None, normalize: bool | None = None, **kw: object) -> Array:  # fmt: skip
        """Transform the given array, which keeps its values, or the kept one."""
        source, target, (scaled, direct) = self.input_array, self.output_array, self._defaults
        scaled = scaled if normalize is None else normalize
        if input_array is not None and (input_array.shape, input_array.dtype) == (source.shape, source.dtype):
            source = input_array
        elif input_array is not None:
            source[...] = input_array
        if output_array is not None and (direct if implicit is None else implicit):
            target = output_array
        x, y = (rote.DistTensor(np.asarray(a), *end) for a, end in zip((source, target), self._ends, strict=True))
        self._run(x, out=y, norm=self._norms[scaled and self.factor is None])
        if scaled and self.factor is not None:
            target *= self.factor
        if output_array is not None and target is not output_array:
            output_array[...] = target
        return target if output_array is None else output_array


class FFT(ArrayPlan):
    """A plan as FFTW makes it. The arrays say by their dtypes whether numbers are real on one side or both.

    `kind` is the direction, or, between real arrays, the kind along all axes or each; `normalization` is the factor of
    calls that ask for one by `normalize`.
    """

    input_array: Array
    output_array: Array

    def __init__(self, input_array: Array, output_array: Array, axes: Sequence[int] = (-1,), kind: Any = FFTW_FORWARD,
                 threads: int = 1, flags: Any = FFTW_MEASURE, normalization: float = 1.0) -> None:  # fmt: skip
        named, sides = [range(input_array.ndim)[axis] for axis in axes], (input_array, output_array)
        kinds: list[int] = np.broadcast_to(kind, len(named)).tolist()
        real = {side.dtype.kind for side in sides} == {"f"}
        back = not real and kinds[0] > 0
        signal, other = sides[::-1] if back else sides
        if real and not {*kinds} <= {*_REAL}:
            raise rote.PlanError(
                "halfcomplex spectra cannot be had\nwrite rfftn, whose spectrum is complex, or FFTW_DHT"
            )
        each = {axis: _REAL[n] for axis, n in zip(named, kinds, strict=True)} if real else None
        f = rote.fft.FFT(
            signal.shape, None, 1, ALONE, signal.dtype, None if real else named, kinds=each, threads=threads
        )
        if (f.output_shape, f.output_dtype) != (other.shape, other.dtype):
            raise rote.LayoutError(
                f"the spectrum is {f.output_shape} {f.output_dtype}, not {other.shape} {other.dtype}"
            )
        super().__init__(f, back, input_array, output_array, (False, True))
        usual, self._normalization = get_normalization(kinds, signal.shape, named), normalization
        self.factor = None if isclose(normalization, usual) else normalization

    def get_normalization(self) -> float:
        """The factor of `normalize`."""
        return self._normalization

    def update_arrays(self, input_array: Array, output_array: Array) -> None:
        """Keep other arrays."""
        self.input_array, self.output_array = input_array, output_array

    def destroy(self) -> None:
        """Free nothing: memory goes with the plan."""


get_planned_FFT = FFT


def _planner(name: str, kind: int = 0, types: dict[int, int] | None = None) -> Callable[..., FFT]:
    """A function that plans a kind of transforms, or that of the `type` which it takes after `axes`."""
    words = ("threads", "flags", "output_array") if types is None else ("type", "threads", "flags", "output_array")

    def plan(input_array: Array, s: Any = None, axes: Sequence[int] = (-1,), *more: Any, **kw: Any) -> FFT:
        options, shape = dict(zip(words, more, strict=False)) | kw, list(input_array.shape)
        char: Any = input_array.dtype.char
        wanted = kind if types is None else types[options.pop("type", 2)]
        if wanted == R2C:
            shape[axes[-1]], char = shape[axes[-1]] // 2 + 1, char.upper()
        elif wanted == C2R:
            shape[axes[-1]], char = 2 * shape[axes[-1]] - 2, char.lower()
            for axis, n in zip(axes, () if s is None else s, strict=False):
                shape[axis] = int(n)
        target = options.pop("output_array", None)
        target = aligned(shape, get_alignment(input_array), char) if target is None else target
        factor = get_normalization(wanted, shape if wanted == C2R else input_array.shape, axes)
        return FFT(input_array, target, axes, wanted, normalization=factor, **options)

    plan.__name__ = plan.__qualname__ = name
    return plan


_FOURIER = {"fftn": -1, "ifftn": 1, "rfftn": R2C, "irfftn": C2R, "ihfftn": R2C, "hfftn": C2R}
fftn, ifftn, rfftn, irfftn, ihfftn, hfftn = (_planner(name, kind) for name, kind in _FOURIER.items())
dctn, idctn = _planner("dctn", types=dct_type), _planner("idctn", types=idct_type)
dstn, idstn = _planner("dstn", types=dst_type), _planner("idstn", types=idst_type)
_PAIRS = ((fftn, ifftn), (rfftn, irfftn), (hfftn, ihfftn), (dctn, idctn), (dstn, idstn), (4, 5), (8, 9))
inverse: dict[Any, Any] = {kind: kind for kind in (3, 6, 7, 10)} | dict(_PAIRS) | {b: a for a, b in _PAIRS}


def kind_of(plan: Callable[..., Any]) -> str:
    """Rote's kind of a function that plans, or of another library's of that name; `partial` may say its `type`.

    >>> kind_of(np.fft.rfftn), kind_of(partial(idctn, type=3))
    ('rfft', 'dct2')
    """
    number = 2
    while isinstance(plan, partial):
        number, plan = plan.keywords.get("type", number), plan.func
    name = getattr(plan, "__name__", "")
    if name in ("dctn", "dstn", "idctn", "idstn"):
        return f"{name[-4:-1]}{_INVERSE[number] if name[0] == 'i' else number}"
    if name in _FOURIER:
        return {-1: "fft", 1: "ifft", R2C: "rfft", C2R: "irfft"}[_FOURIER[name]]
    raise rote.PlanError(
        f"{plan!r} is no transform that Rote knows\ngive one of fftw, as functools.partial(dctn, type=3)"
    )


def get_fftw_lib(dtype: npt.DTypeLike) -> Any:
    """This module, for every precision of which there are complex numbers; else None."""
    return fftlib.get(np.dtype(dtype).char.upper())


def forget_wisdom() -> None:
    """Forget nothing: plans are made by a model. `rote.wisdom.forget` forgets what was measured, for all programs."""


def set_timelimit(limit: float) -> None:
    """Limit nothing: plans are made at once."""


export_wisdom: Final = rote.wisdom.export
import_wisdom: Final = rote.wisdom.include
cleanup: Final = forget_wisdom
utilities = xfftn = factory = sys.modules[__name__]  # programs import from these, too
sys.modules |= dict.fromkeys([f"{__name__}.{part}" for part in ("utilities", "xfftn", "factory")], utilities)
fftlib: dict[str, ModuleType] = dict.fromkeys("FDG", utilities)

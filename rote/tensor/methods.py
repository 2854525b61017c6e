"""Methods of tensors with the names of NumPy and the array API standard, from the functions of these names."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar

import numpy as np
import numpy.typing as npt

from .. import functions
from ..errors import LayoutError
from ..functions.distributed import Distributed
from ..late import late

__all__ = ["ArrayMethods", "fixed"]

if TYPE_CHECKING:
    P = ParamSpec("P")
    X = TypeVar("X")

    def _method(function: Callable[Concatenate[Any, P], Any]) -> Callable[Concatenate[X, P], X]:
        """A function as type checkers see it as a method: it returns a tensor of its tensor's type."""
        return function


VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""The releases of the standard whose names `rote.array_api` has."""


def fixed(attribute: property, cure: str) -> property:
    """The property with a setter that refuses assignment and says what to write instead."""

    def refuse(x: object, value: object) -> None:
        name = attribute.fget.__name__ if attribute.fget else ""
        raise AttributeError(f"the attribute {name!r} of a tensor is not assigned\nwrite {cure}", name=name, obj=x)

    return attribute.setter(refuse)


class _Late:
    """A method that is a function of a module; the module is imported at first access."""

    __slots__ = ("_attribute", "_module", "_name", "_owner")

    def __init__(self, module: str, name: str = "") -> None:
        self._module, self._name = module, name

    def __set_name__(self, owner: type, attribute: str) -> None:
        self._owner, self._attribute = owner, attribute

    def __get__(self, x: object, kind: type | None = None) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(getattr(functions, self._module), self._name or self._attribute)
        setattr(self._owner, self._attribute, function)  # replaces this descriptor
        return function if x is None else MethodType(function, x)


class ArrayMethods(Distributed):
    """The methods of tensors that arrays have as well.

    >>> from rote import DistTensor
    >>> x = DistTensor.from_global([[1 + 2j, 3, 4j]], "block[(),(0)]")
    >>> x.shape, x.ndim, x.size, x.dtype, x.grid.shape, x.comm.size, x.device
    ((1, 3), 2, 3, dtype('complex128'), (1,), 1, 'cpu')
    >>> x.layout == x.distribution.layout, x.local.shape, x.real.to_global(), x.imag.dtype
    (True, (1, 3), array([[1., 3., 0.]]), dtype('float64'))
    """

    __slots__ = ()

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """The functions of the array API standard for such tensors, `rote.array_api`.

        Raises:
            ValueError: `rote.array_api` does not have that release of the standard.
        """
        if api_version is not None and api_version not in VERSIONS:
            raise ValueError(
                f"rote.array_api has the releases {', '.join(VERSIONS)} of the standard, not {api_version}"
            )
        namespace: ModuleType = late("array namespace")
        return namespace

    @property
    def device(self) -> str:
        """The device of the blocks, always "cpu", for they are in the memory of the host."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: object | None = None) -> Self:
        """The tensor itself, because "cpu" is the only device.

        Raises:
            LayoutError: another device, or a stream, is asked for.

        >>> from rote import DistTensor
        >>> x = DistTensor.zeros(3, "block[(0)]")
        >>> x.to_device("cpu") is x
        True
        """
        if device != "cpu" or stream is not None:
            raise LayoutError(f"blocks lie in the memory of the host; write 'cpu' and no stream, not {device!r}")
        return self

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """This rank's block for other libraries, without a copy, if it is the whole tensor.

        Raises:
            LayoutError: this rank holds only a part.
        """
        dist = self.distribution
        if dist.layout.view is not None or dist.partial or any(dist.splits) or dist.layout.rooted:
            raise LayoutError(
                f"the block of a rank is no whole tensor in {dist.layout}\n"
                f"write x.redistribute('[{','.join(['()'] * len(dist.shape))}]') first, or x.local for the block alone"
            )
        return self.local.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[Any, int]:
        """The number of the block's device in DLPack: that of the host."""
        return self.local.__dlpack_device__()

    def __index__(self) -> int:
        """The value of an integer tensor of order 0, the same on all ranks. Collective."""
        if self.distribution.shape or self.local.dtype.kind not in "iu":
            raise TypeError(
                f"an index is an integer tensor of order 0, not one of {self.local.dtype} of shape "
                f"{self.distribution.shape}\nwrite int(x) of one number, or x.to_global()"
            )
        return operator.index(self.to_global().item())

    def __contains__(self, value: Any) -> bool:
        """Whether any element equals a value, the same answer on all ranks. Collective."""
        return bool(functions.reductions.any(functions.elementwise.equal(self, value)))

    def conj(self) -> Self:
        """The complex conjugate, as a new tensor.

        >>> from rote import DistTensor
        >>> DistTensor.from_global([1 + 2j, 3], "block[(0)]").conj().to_global()
        array([1.-2.j, 3.-0.j])
        """
        if self.local.dtype.kind != "c":
            return self.copy()
        values: Self = functions.elementwise.conj(self)
        return values

    conjugate = conj

    @property
    def real(self) -> Self:
        """The real parts, as a tensor of the real dtype: a view, as in NumPy."""
        values: Self = functions.elementwise.real(self)
        return values

    @property
    def imag(self) -> Self:
        """The imaginary parts, as a tensor of the real dtype: a view, as in NumPy; of real numbers, read-only zeros."""
        values: Self = functions.elementwise.imag(self)
        return values

    def round(self, decimals: int = 0, out: Distributed | None = None) -> Self:
        """The tensor with each element rounded to so many decimals, half to even.

        Raises:
            TypeError: `decimals` is not an integer.

        >>> from rote import DistTensor
        >>> DistTensor.from_global([0.126, 1.5], "block[(0)]").round(2).to_global()
        array([0.13, 1.5 ])
        """
        values: Self = functions.blockwise.elementwise("round", np.round, (self, decimals), {"out": out})
        return values

    def clip(self, min: Any = None, max: Any = None, out: Distributed | None = None) -> Self:
        """The tensor with each element limited to the bounds.

        Raises:
            LayoutError: the bounds do not broadcast to the tensor.

        >>> from rote import DistTensor
        >>> DistTensor.from_global([1, 5, 9], "block[(0)]").clip(2, 8).to_global()
        array([2, 5, 8])
        """
        values: Self = functions.blockwise.elementwise("clip", np.clip, (self, min, max), {"out": out})
        return values

    def copy(self, order: str = "K") -> Self:
        """A tensor of the same values with a block of its own; any order in memory is accepted, and ignored.

        >>> from rote import DistTensor
        >>> x = DistTensor.zeros(3, "block[(0)]")
        >>> y = x.copy()
        >>> y.local[...] = 1
        >>> x.to_global()
        array([0., 0., 0.])
        """
        return self._with(self.local.copy())

    def astype(self, dtype: npt.DTypeLike, copy: bool = True) -> Self:
        """The tensor in another dtype; the tensor itself if it has that dtype and `copy` is false.

        Raises:
            PlanError: Rote does not move elements of this dtype.

        >>> from rote import DistTensor
        >>> DistTensor.zeros(3, "block[(0)]").astype("c8").dtype
        dtype('complex64')
        """
        values: Self = functions.likes.astype(self, dtype, copy=copy)
        return values

    if TYPE_CHECKING:
        sum: Final = _method(functions.reductions.sum)
        prod: Final = _method(functions.reductions.prod)
        max: Final = _method(functions.reductions.max)
        min: Final = _method(functions.reductions.min)
        any: Final = _method(functions.reductions.any)
        all: Final = _method(functions.reductions.all)
        mean: Final = _method(functions.statistics.mean)
        var: Final = _method(functions.statistics.var)
        std: Final = _method(functions.statistics.std)
        argmax: Final = _method(functions.extrema.argmax)
        argmin: Final = _method(functions.extrema.argmin)
        dot: Final = _method(functions.products.dot)
        trace: Final = _method(functions.matrices.numpy_trace)
        diagonal: Final = _method(functions.matrices.numpy_diagonal)
        swapaxes: Final = _method(functions.reshaping.swapaxes)
        ravel: Final = _method(functions.reshaping.ravel)
        squeeze: Final = _method(functions.reshaping.squeeze)
        repeat: Final = _method(functions.placing.repeat)
        argsort: Final = _method(functions.sorting.argsort)
        take: Final = _method(functions.sorting.take)
        cumsum: Final = _method(functions.scans.cumsum)
        cumprod: Final = _method(functions.scans.cumprod)
    else:
        real = fixed(real, "x.real[...] = values")
        imag = fixed(imag, "x.imag[...] = values")
        sum, prod, max, min, any, all = (_Late("reductions") for _ in range(6))
        mean, var, std = (_Late("statistics") for _ in range(3))
        argmax, argmin = _Late("extrema"), _Late("extrema")
        swapaxes, ravel, squeeze = _Late("reshaping"), _Late("reshaping"), _Late("reshaping")
        argsort, take, cumsum, cumprod = _Late("sorting"), _Late("sorting"), _Late("scans"), _Late("scans")
        dot, repeat = _Late("products"), _Late("placing")
        trace, diagonal = _Late("matrices", "numpy_trace"), _Late("matrices", "numpy_diagonal")

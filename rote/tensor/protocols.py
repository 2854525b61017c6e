"""The protocols by which Python, NumPy and xarray treat a tensor as an array: operators, numbers, functions, labels.

Each is answered correctly or refused with a cure. Code such as `np.asarray(x)`, `for row in x` or `pickle.dumps(x)`
never silently gathers a tensor, and never takes a rank's block for the whole.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from .. import functions
from ..compiler.step import refuse_mask
from ..errors import LayoutError, RoteError, counted
from ..functions.distributed import Distributed
from ..functions.sharing import OUTDATED, has_block
from ..late import late
from ..layout.grid import Grid
from ..layout.layout import Layout
from ..runtime.placement import check_values
from .answers import answer, answering, answering_method, method_cure, name_cure, refusal

__all__ = ["ArrayProtocols"]

Array = npt.NDArray[Any]

_EQUALITIES = (np.equal, np.not_equal)  # these accept any object
_POWERS = {(int, 2): np.square, (int, -1): np.reciprocal, (float, 0.5): np.sqrt}
"""The functions that NumPy's `**` calls for some exponents: for 2 with any dtype, for others with inexact ones."""

_PLAIN = (np.ones(1, "f4") ** np.float64(2)).dtype == np.float32
"""Whether the NumPy that is installed, an older one, takes exponents that are its own numbers for Python's."""


class AbsentError(LayoutError, AttributeError):
    """A tensor has not an attribute that others have: `hasattr` is false, and `getattr` says why."""


class ArrayProtocols(np.lib.mixins.NDArrayOperatorsMixin, Distributed):
    """The protocols of NumPy's arrays and of Python's objects, for tensors."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole tensor."""
        return self.distribution.shape

    @property
    def layout(self) -> Layout:
        """The layout, which says which grid modes split which modes, and how."""
        return self.distribution.layout

    @property
    def grid(self) -> Grid:
        """The process grid."""
        return self.distribution.grid

    @property
    def ndim(self) -> int:
        """The order of the tensor, by NumPy's name."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.local.dtype

    @property
    def size(self) -> int:
        """The number of elements of the whole tensor."""
        return prod(self.shape)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        own = type(self)
        types = [type(x) for x in (*inputs, *kwargs.get("out", ())) if type(x) is not own]
        if types and _foreign([each for each in types if hasattr(each, "__array_ufunc__")]):
            return NotImplemented
        if type(None) in types and ufunc not in _EQUALITIES and any(x is None for x in inputs):
            raise TypeError(f"numpy.{ufunc.__name__} takes tensors, arrays and numbers, not None")
        if method == "__call__":
            if ufunc.signature is None:
                return functions.blockwise.elementwise(ufunc.__name__, ufunc, inputs, kwargs)
            if answering(ufunc) is not None:
                return answer(ufunc, inputs, kwargs)
            raise TypeError(refusal(f"numpy.{ufunc.__name__}({{}})"))
        function = answering_method(ufunc, method)
        if function is None:
            raise TypeError(refusal(f"numpy.{ufunc.__name__}.{method}({{}})", method_cure(ufunc, method)))
        (out,) = kwargs.pop("out", (None,))
        return function(*inputs, **{"axis": 0, **kwargs}, **({} if out is None else {"out": out}))

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        own = type(self)
        if _foreign([each for each in types if each is not own]):
            return NotImplemented
        return answer(function, args, kwargs)

    def __pow__(self, power: Any, /) -> Self:
        quick = _quick_power(self.local.dtype, power)
        result: Self = super().__pow__(power) if quick is None else quick(self)
        return result

    def __ipow__(self, power: Any, /) -> Self:
        quick = _quick_power(self.local.dtype, power)
        result: Self = super().__ipow__(power) if quick is None else quick(self, out=self)
        return result

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        number = "" if self.distribution.shape else " float(x) or"
        cure = f"write{number} x.to_global(), or x.local for this rank's block"
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.startswith("numpy.ma."):
            cure = "a tensor has no mask: write array.filled(value) in place of the masked array"
        if caller.startswith("scipy.fft."):
            cure = "write the function of rote.fft, which has the same name"
        if caller.startswith("numpy.testing."):
            cure = "write rote.testing.assert_equal(x, array, rtol=…, atol=…), or numpy.allclose(x, y) of tensors"
        raise LayoutError(f"a tensor is not gathered silently; {cure}")

    def __bool__(self) -> bool:
        if self.distribution.shape:
            raise ValueError(
                "the truth of a tensor is ambiguous; write x.any() or x.all(), or numpy.array_equal(x, y): all ranks "
                "agree on them"
            )
        return bool(self._number("bool"))

    def __int__(self) -> int:
        return int(self._number("int"))

    def __float__(self) -> float:
        return float(self._number("float"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def __format__(self, spec: str) -> str:
        """Format a tensor of order 0 as a number; collective, as `float(x)` is. Other tensors take no format spec."""
        return format(self._number("format"), spec) if spec else str(self)

    def _number(self, name: str) -> Any:
        """The value of a tensor of order 0, the same on all ranks. Collective."""
        shape = self.distribution.shape
        if shape:
            raise TypeError(
                f"{name}(x) takes a tensor of order 0, and x has shape {shape}\n"
                f"write {name}(x[{', '.join(['0'] * len(shape))}]) for one of its elements"
            )
        lay = self.distribution.layout
        return (self.to_global() if lay.partial or lay.rooted else self.local).item()

    def __len__(self) -> int:
        if not self.distribution.shape:
            raise TypeError("a tensor of order 0 has no length")
        return self.distribution.shape[0]

    def __copy__(self) -> Distributed:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Distributed:
        return self.copy()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a tensor is not pickled, for its communicator lives in this run only\n"
            "write x.save(path), or pickle (x.local, x.distribution), of which DistTensor(*pair, comm) is one again"
        )

    def to_xarray(
        self,
        dims: Sequence[Hashable] | None = None,
        coords: Mapping[Any, npt.ArrayLike] | None = None,
        name: Hashable | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> Any:
        """An `xarray.DataArray` of this tensor: its data is the tensor itself, and nothing is moved or copied.

        xarray's operations work if NumPy's functions work for a tensor, and the data of the result is a tensor again
        (`a.data`). Operations that need the whole array, such as `a.values`, are refused.

        Args:
            dims: the names of the modes; "dim_0" and so on if None.
            coords: by name, the coordinates along a mode: a plain array of the mode's whole extent, the same on all
                ranks.
            name, attrs: as for `xarray.DataArray`.

        Raises:
            LayoutError: the tensor is partial. RoteError: xarray is not installed.
            ValueError: names or coordinates do not fit the shape; raised by xarray.

        >>> import numpy as np, rote
        >>> x = rote.DistTensor.zeros((2, 3), "block[(0),()]")
        >>> a = x.to_xarray(("t", "y"), {"y": np.linspace(0, 1, 3)}, name="u")
        >>> a.data is x, (a + 1).dims, type((a + 1).data).__name__, a.y.values.tolist()
        (True, ('t', 'y'), 'DistTensor', [0.0, 0.5, 1.0])
        """
        check_values("to_xarray", self.distribution)
        try:
            import xarray
        except ImportError:
            raise RoteError("labelled arrays need xarray\npip install xarray") from None
        return xarray.DataArray(self, coords=coords, dims=dims, name=name, attrs=attrs)

    def _repr_html_(self) -> str:
        dist = self.distribution
        facts = [
            ("shape", f"{dist.shape} {self.local.dtype}"),
            ("grid", f"{dist.grid}, {counted(dist.grid.size, 'rank')}"),
            (f"rank {self.comm.rank} holds", f"{self.local.shape}, {self.local.nbytes:,} bytes"),
        ]
        return str(late("card")("DistTensor", str(dist.layout), facts, [("", dist)]))

    if TYPE_CHECKING:  # for type checkers, to which NumPy's operators have no result type

        def __neg__(self) -> Self: ...
        def __pos__(self) -> Self: ...
        def __abs__(self) -> Self: ...
        def __invert__(self) -> Self: ...
        def __add__(self, other: Any, /) -> Self: ...
        def __sub__(self, other: Any, /) -> Self: ...
        def __mul__(self, other: Any, /) -> Self: ...
        def __matmul__(self, other: Any, /) -> Self: ...
        def __truediv__(self, other: Any, /) -> Self: ...
        def __floordiv__(self, other: Any, /) -> Self: ...
        def __mod__(self, other: Any, /) -> Self: ...
        def __and__(self, other: Any, /) -> Self: ...
        def __or__(self, other: Any, /) -> Self: ...
        def __xor__(self, other: Any, /) -> Self: ...
        def __lshift__(self, other: Any, /) -> Self: ...
        def __rshift__(self, other: Any, /) -> Self: ...
        def __radd__(self, other: Any, /) -> Self: ...
        def __rsub__(self, other: Any, /) -> Self: ...
        def __rmul__(self, other: Any, /) -> Self: ...
        def __rmatmul__(self, other: Any, /) -> Self: ...
        def __rtruediv__(self, other: Any, /) -> Self: ...
        def __rfloordiv__(self, other: Any, /) -> Self: ...
        def __rmod__(self, other: Any, /) -> Self: ...
        def __rpow__(self, other: Any, /) -> Self: ...
        def __rand__(self, other: Any, /) -> Self: ...
        def __ror__(self, other: Any, /) -> Self: ...
        def __rxor__(self, other: Any, /) -> Self: ...
        def __rlshift__(self, other: Any, /) -> Self: ...
        def __rrshift__(self, other: Any, /) -> Self: ...
        def __iadd__(self, other: Any, /) -> Self: ...
        def __isub__(self, other: Any, /) -> Self: ...
        def __imul__(self, other: Any, /) -> Self: ...
        def __imatmul__(self, other: Any, /) -> Self: ...
        def __itruediv__(self, other: Any, /) -> Self: ...
        def __ifloordiv__(self, other: Any, /) -> Self: ...
        def __imod__(self, other: Any, /) -> Self: ...
        def __iand__(self, other: Any, /) -> Self: ...
        def __ior__(self, other: Any, /) -> Self: ...
        def __ixor__(self, other: Any, /) -> Self: ...
        def __ilshift__(self, other: Any, /) -> Self: ...
        def __irshift__(self, other: Any, /) -> Self: ...
        def __lt__(self, other: Any, /) -> Self: ...
        def __le__(self, other: Any, /) -> Self: ...
        def __gt__(self, other: Any, /) -> Self: ...
        def __ge__(self, other: Any, /) -> Self: ...

    if not TYPE_CHECKING:  # with it, type checkers would accept any misspelt attribute

        def __getattr__(self, name):
            """Refuse an attribute that tensors do not have; if arrays have it, say what to write instead."""
            if name == "_local" or not has_block(self):
                raise AbsentError(OUTDATED)
            if name == "mT":
                raise AbsentError(f"matrices have order 2 or more, not {self.ndim}")
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            if cure := name_cure(name):
                text += f"\nwrite {cure}"
            elif not name.startswith("_") and hasattr(np.ndarray, name):
                call = "()" if callable(getattr(np.ndarray, name)) else ""
                text += "; " + refusal(f"{{}}.{name}{call}")
            raise AttributeError(text, name=name, obj=self)


def _quick_power(dtype: np.dtype[Any], power: Any) -> np.ufunc | None:
    """The function that computes this power for this dtype, with its own dtype and rounding; None if there is none."""
    if _PLAIN and (isinstance(power, np.generic) or dtype.kind == "b"):
        power = np.asarray(power).item()
        power = 2 if power == 2 and not (dtype.kind in "iu" and type(power) is float) else power
    if type(power) not in (int, float) or (dtype.kind not in "fc" and power != 2):
        return None
    return _POWERS.get((type(power), power))


def _foreign(types: Any) -> bool:
    """Whether one of the types is neither an array nor a tensor, so that its own protocol may answer.

    Raises:
        TypeError: one is a type of masked arrays.
    """
    for each in types:
        refuse_mask(each)
    return any(not issubclass(each, np.ndarray | np.generic | Distributed) for each in types)

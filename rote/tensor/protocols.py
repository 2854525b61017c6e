"""The protocols by which Python and NumPy treat a tensor as an array: operators, functions, numbers, rows.

Each is answered correctly, or refused with a hint. Code such as `np.asarray(x)`, `for row in x` or `pickle.dumps(x)`
never silently gathers a tensor, and never takes a rank's block for the whole.

NumPy passes every call of its functions with a tensor among the arguments to the tensor (`__array_function__`, NEP 18).
The functions that answer, and their tables, are in `rote.functions`; those for `numpy.fft` in `rote.fft`.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache
from inspect import signature
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, Never, NoReturn, Self

import numpy as np
import numpy.typing as npt

from .. import functions
from ..caches import memoized
from ..errors import LayoutError, RoteError, counted
from ..functions.distributed import OUTDATED, Array, Distributed, refuse_assignment
from ..functions.moves import attributed_to
from ..functions.rules import ANSWERS, UFUNC_METHODS, Function, fits, values_in
from ..layout.layout import Layout, shortened
from ..lazy import late
from ..runtime.arrays import refuse_mask, refuse_remote
from ..runtime.placement import check_values
from .creators import CREATORS, made_like
from .hints import HINTS, name_hint, refusal

__all__ = ["ArrayProtocols", "answer"]

_EQUALITIES = (np.equal, np.not_equal)  # these accept any object
_WRITERS = (np.save, np.savez, np.savez_compressed, np.savetxt)
"""Functions that write files, which all ranks would write at once."""

_POWERS = {(int, 2): np.square, (int, -1): np.reciprocal, (float, 0.5): np.sqrt}
"""The functions that NumPy's `**` calls for some exponents: for 2 with any dtype, for others with inexact ones."""

_PLAIN = (np.ones(1, "f4") ** np.float64(2)).dtype == np.float32
"""Whether the NumPy that is installed, an older one, takes exponents that are its own numbers for Python's."""

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""The releases of the standard whose names `rote.array_api` has."""


class AbsentError(LayoutError, AttributeError):
    """A tensor has not an attribute that others have: `hasattr` is false, and `getattr` says why."""


class ArrayProtocols(np.lib.mixins.NDArrayOperatorsMixin, Distributed):
    """The protocols of NumPy's arrays and of Python's objects, for tensors."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        # Most calls have tensors of this type alone, and look no further.
        tensor = type(self)
        others = [type(x) for x in (*inputs, *kwargs.get("out", ())) if type(x) is not tensor]
        into_array = "out" in kwargs and not any(isinstance(out, Distributed) for out in kwargs["out"])
        if into_array or (np.ndarray in others and not self.distribution.shape and _in_numpy(sys._getframe(1))):
            numbers = _as_numbers(inputs, kwargs)
            if numbers is not None:  # `array *= x.sum()`, `numpy.histogram(array, range=(0, x.max()))`
                return getattr(ufunc, method)(*numbers[0], **numbers[1])
        if others and _foreign([kind for kind in others if hasattr(kind, "__array_ufunc__")], (inputs, kwargs)):
            return NotImplemented
        if type(None) in others and ufunc not in _EQUALITIES and any(x is None for x in inputs):
            raise TypeError(f"numpy.{ufunc.__name__} takes tensors, arrays and numbers, not None")

        if method == "__call__":
            if ufunc.signature is None:
                return functions.elementwise.elementwise(ufunc.__name__, ufunc, inputs, kwargs)
            if answering(ufunc) is not None:
                return answer(ufunc, inputs, kwargs)
            raise TypeError(refusal(f"numpy.{ufunc.__name__}({{}})"))

        function = answering(ufunc, method)
        if function is None:
            numbers = _as_numbers(inputs, kwargs)
            if numbers is not None:
                return getattr(ufunc, method)(*numbers[0], **numbers[1])
            if method == "outer":
                return functions.elementwise.outer(ufunc, *inputs, **kwargs)
            if method == "at":
                return functions.masks.add_at(ufunc, *inputs)
            raise TypeError(refusal(f"numpy.{ufunc.__name__}.{method}({{}})", HINTS.get((ufunc, method), "")))

        # NumPy gives `out` as a tuple, and no axis where the user gives none, which means mode 0.
        (out,) = kwargs.pop("out", (None,))
        return function(*inputs, **{"axis": 0, **kwargs}, **({} if out is None else {"out": out}))

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if (len(types) > 1 or type(self) not in types) and _foreign(types, (args, kwargs)):
            return NotImplemented
        if function in CREATORS:
            return made_like(self, function, args, kwargs)
        if answering(function) is None and not any(
            isinstance(x, Distributed) for x in values_in([*args, *kwargs.values()])
        ):
            raise TypeError(
                f"{_name(function)}(…, like=x) makes no DistTensor\n"
                f"write rote.DistTensor.from_global({_name(function)}(…), layout)"
            )
        return answer(function, args, kwargs)

    def __eq__(self, other: Any, /) -> Self:  # type: ignore[override]  # elements are compared, as in NumPy
        """NumPy's `==`, which also answers for what `numpy.equal` refuses: no number equals text."""
        if _answers_itself(type(other)):
            result: Self = super().__eq__(other)
        else:
            result = functions.elementwise.elementwise("equal", operator.eq, (self, other), {})
        return result

    def __ne__(self, other: Any, /) -> Self:  # type: ignore[override]
        if _answers_itself(type(other)):
            result: Self = super().__ne__(other)
        else:
            result = functions.elementwise.elementwise("not_equal", operator.ne, (self, other), {})
        return result

    def __pow__(self, power: Any, /) -> Self:
        quick = _quick_power(self.local.dtype, power)
        result: Self = super().__pow__(power) if quick is None else quick(self)
        return result

    def __ipow__(self, power: Any, /) -> Self:
        quick = _quick_power(self.local.dtype, power)
        result: Self = super().__ipow__(power) if quick is None else quick(self, out=self)
        return result

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """The value of a tensor of order 0, as NumPy reads it where it takes a number. Collective, as `float(x)` is."""
        if not self.distribution.shape:
            if copy is False:
                raise ValueError("the number of a tensor of order 0 is always a copy; write copy=None")
            return np.array(self._value("asarray"), dtype)

        hint = "write x.to_global(), or x.local for this rank's block"

        # Some libraries make arrays of what users give them; a user knows the library, and not that it does.
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.startswith("numpy.ma."):
            hint = "a tensor has no mask: write array.filled(value) in place of the masked array"
        if caller.startswith("scipy.fft."):
            hint = "write the function of rote.fft, which has the same name, or scipy.fft.set_backend(rote.fft)"
        if caller.startswith("scipy.special."):
            hint = "start Python with SCIPY_ARRAY_API=1, or write rote.array_api.special.polygamma(n, x) and the like"
        if caller.startswith("numpy.testing."):
            hint = "write rote.testing.assert_equal(x, array, rtol=…, atol=…), or numpy.allclose(x, y) of tensors"
        raise LayoutError(f"a tensor is not gathered silently; {hint}")

    def __bool__(self) -> bool:
        if self.distribution.shape:
            raise ValueError(
                "the truth of a tensor is ambiguous; write x.any() or x.all(), or numpy.array_equal(x, y): all ranks "
                "agree on them"
            )
        return bool(self._number("bool"))

    def __int__(self) -> int:
        return int(self._number("int"))

    __trunc__ = __int__

    def __float__(self) -> float:
        return float(self._number("float"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def __format__(self, spec: str) -> str:
        """Format a tensor of order 0 as a number; collective, as `float(x)` is. Other tensors take no format spec."""
        return format(self._number("format"), spec) if spec else str(self)

    def __round__(self, digits: int | None = None) -> Any:
        """The rounded value of a tensor of order 0, as of a number; collective, as `float(x)` is."""
        return round(self._scalar("round"), digits)

    def _number(self, name: str) -> Any:
        """The value of a tensor of order 0 as a number of Python, the same on all ranks. Collective."""
        return self._scalar(name).item()

    def _scalar(self, name: str) -> Any:
        """The value of a tensor of order 0 as a scalar of NumPy, the same on all ranks. Collective."""
        shape = self.distribution.shape
        if shape:
            raise TypeError(
                f"{name}(x) takes a tensor of order 0, and x has shape {shape}\n"
                f"write {name}(x[{', '.join(['0'] * len(shape))}]) for one of its elements"
                f"{', x.round(digits) for all' * (name == 'round')}"
            )
        return self._value(name)[()]

    def _value(self, name: str) -> Array:
        """The value of a tensor of order 0, as an array. Collective if not every rank has it."""
        lay = self.distribution.layout
        if not lay.partial and not lay.rooted:
            return self.local
        with attributed_to(name):
            return self.redistribute(Layout(())).local

    def item(self, *key: Any) -> Any:
        """One element as a number of Python, the same on all ranks: the only one, or that at a key. Collective.

        Parameters
        ----------
        *key : int | tuple[int, ...]
            Indices, one for each mode; or one index into the elements in row-major order.

        Raises
        ------
        ValueError
            No key is given, and the tensor has several elements, or none.
        IndexError
            There is no such element.

        Examples
        --------
        >>> from rote import DistTensor
        >>> x = DistTensor.from_global([[1, 2], [3, 4]], "block[(0),()]")
        >>> x.item(1, 0), x.item(-1), x.max().item()
        (3, 4, 4)
        """
        shape = self.distribution.shape
        if not key and self.size != 1:
            raise ValueError(f"item() takes a tensor of one element, and x has shape {shape}\nwrite x.item(i, j)")

        place = key[0] if len(key) == 1 and isinstance(key[0], tuple) else key
        if len(place) == 1 and len(shape) != 1:
            place = tuple([int(index) for index in np.unravel_index(range(self.size)[place[0]], shape)])
        return self[place or (0,) * len(shape)]._number("item")

    def tolist(self) -> Any:
        """All elements in nested lists, as those of `to_global`, on every rank. Collective.

        Raises
        ------
        LayoutError
            The whole array is too large to be on every rank; see `to_global`.

        Examples
        --------
        >>> from rote import DistTensor
        >>> DistTensor.from_global([[1, 2], [3, 4]], "block[(0),()]").tolist()
        [[1, 2], [3, 4]]
        """
        return self.to_global().tolist()

    def fill(self, value: Any) -> None:
        """Write one value to all elements, as `x[...] = value`.

        Raises
        ------
        LayoutError
            There are several values.

        Examples
        --------
        >>> from rote import DistTensor
        >>> x = DistTensor.zeros(2, "block[(0)]")
        >>> x.fill(7)
        >>> x.tolist()
        [7.0, 7.0]
        """
        functions.creation.check_value("fill", value)
        self[...] = value

    def __len__(self) -> int:
        if not self.distribution.shape:
            raise TypeError("a tensor of order 0 has no length")
        return self.distribution.shape[0]

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """The functions of the array API standard for such tensors, `rote.array_api`.

        Raises:
            ValueError: `rote.array_api` does not have that release of the standard.
        """
        if api_version is not None and api_version not in _VERSIONS:
            raise ValueError(
                f"rote.array_api has the releases {', '.join(_VERSIONS)} of the standard, not {api_version}"
            )
        namespace: ModuleType = late("array_api")
        return namespace

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
        return bool(functions.reductions.any(self == value))

    def __iter__(self) -> Iterator[Self]:
        """The tensors at each index of mode 0, which is made whole once for all.

        Raises:
            TypeError: the tensor is of order 0.
        """
        if not self.distribution.shape:
            raise TypeError("a tensor of order 0 is not iterated")
        return functions.rearranging.rows(self)

    def __getitem__(self, key: Any) -> Self:
        """The tensor of the elements at a key: integers, slices, `...`, `None`, arrays, masks, or tensors of these.

        Sliced modes keep their splits; nothing moves if all split modes are taken whole.

        Raises:
            IndexError: an index is out of range, or is not one; raised on all ranks.

        >>> from rote import DistTensor
        >>> x = DistTensor.from_global([[0, 1, 2], [3, 4, 5]], "block[(),(0)]")
        >>> x[1, ::-2].to_global(), x[x > 3].to_global()
        (array([5, 3]), array([4, 5]))
        """
        return functions.indexing.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write a scalar, an array that all ranks have, or a tensor to the elements at a key; it is broadcast.

        Raises:
            IndexError: an index is out of range, or is not one. ValueError: the value does not broadcast.
            LayoutError: only some elements of a partial tensor are written. All are raised on all ranks.

        >>> from rote import DistTensor
        >>> x = DistTensor.zeros((2, 3), "block[(),(0)]", dtype="i8")
        >>> x[:, 1:] = [4, 5]
        >>> x.to_global().tolist()
        [[0, 4, 5], [0, 4, 5]]
        """
        functions.indexing.setitem(self, key, value)

    def _store(self, axes: Sequence[Any] | None, part: Distributed) -> None:
        functions.indexing.store(self, axes, part)

    @property
    def real(self) -> Self:
        """The real parts, as a tensor of the real dtype: a view, as in NumPy."""
        return functions.elementwise.real(self)

    @real.setter
    def real(self, value: Never) -> None:
        refuse_assignment("real", "x.real[...] = values", self)

    @property
    def imag(self) -> Self:
        """The imaginary parts, as a tensor of the real dtype: a view, as in NumPy; of real numbers, read-only zeros."""
        return functions.elementwise.imag(self)

    @imag.setter
    def imag(self, value: Never) -> None:
        refuse_assignment("imag", "x.imag[...] = values", self)

    @property
    def device(self) -> str:
        """The device of the blocks, always "cpu", for they are in the memory of the host."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: object | None = None) -> Self:
        """The tensor itself, because "cpu" is the only device.

        Raises
        ------
        LayoutError
            Another device, or a stream, is asked for.

        Examples
        --------
        >>> from rote import DistTensor
        >>> x = DistTensor.zeros(3, "block[(0)]")
        >>> x.to_device("cpu") is x
        True
        """
        if device != "cpu" or stream is not None:
            raise LayoutError(f"blocks are in the memory of the host; write 'cpu' and no stream, not {device!r}")
        return self

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

        Parameters
        ----------
        dims : Sequence[Hashable], optional
            The names of the modes; "dim_0" and so on if None.
        coords : Mapping[Any, ArrayLike], optional
            By name, the coordinates along a mode: a plain array of the mode's whole extent, the same on all ranks.
        name : Hashable, optional
            As for `xarray.DataArray`.
        attrs : Mapping[str, Any], optional
            As for `xarray.DataArray`.

        Raises
        ------
        LayoutError
            The tensor is partial.
        RoteError
            Xarray is not installed.
        ValueError
            Names or coordinates do not fit the shape; raised by xarray.

        Examples
        --------
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

    def to_dask(self) -> Any:
        """A Dask array of this tensor with a chunk for each rank's block, or tile of it; nothing is moved.

        Each rank has its own chunks, so it computes what needs no other: `d[x.slices()]`, and element by element all of
        `rote.from_dask(d, x.layout, grid=x.grid)`. A chunk of another rank is an error when it is computed.

        Raises
        ------
        LayoutError
            The tensor is partial, or has a view; or its blocks are no chunks, as in nested layouts.

        Examples
        --------
        >>> import rote
        >>> x = rote.DistTensor.zeros((4, 6), "block[(0),()]")
        >>> rote.from_dask(x.to_dask() + 1, x.layout).to_global()[0].tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
        """
        check_values("to_dask", self.distribution)
        import dask.array

        map_blocks: Any = dask.array.map_blocks  # which has no types
        places = [indices.to_array() for indices in self.distribution.index_sets(self.comm.rank)]

        def block_at(block_info: Any) -> Any:
            bounds = block_info[None]["array-location"]
            parts = [slice(*np.searchsorted(indices, ends)) for indices, ends in zip(places, bounds, strict=True)]
            if any(part.stop - part.start != stop - start for part, (start, stop) in zip(parts, bounds, strict=True)):
                raise LayoutError(
                    f"rank {self.comm.rank} does not have {bounds} of {self.distribution}\n"
                    "compute d[x.slices()], or rote.from_dask(d, x.layout, grid=x.grid) of an array with the same "
                    "chunks; redistribute x first if the layout replicates it"
                )
            return self.local[tuple(parts)]

        nothing = np.empty([0] * len(places), self.local.dtype)
        name = f"rote-{os.urandom(8).hex()}"  # without it, Dask would pickle the tensor for a name
        chunks = self.distribution.to_chunks()
        return map_blocks(block_at, chunks=chunks, dtype=nothing.dtype, meta=nothing, name=name)

    def __repr__(self) -> str:
        if not hasattr(self, "_local"):
            return f"DistTensor({self.shape}, {str(self.layout)!r}, outdated: the tensor of this part has changed)"

        block = self.local
        content = f"local={block.shape}"
        if not block.shape:  # of order 0: what this rank has, for no rank asks others here
            content = f"{'contribution' if self.layout.partial else 'value'}={block.item()}"
        return (
            f"DistTensor({self.shape}, {block.dtype}, {str(self.layout)!r}, grid={self.grid.shape}, "
            f"rank={self._comm.rank}, {content})"
        )

    def __str__(self) -> str:
        """The text of `repr`, in which many sizes of blocks are shortened."""
        return shortened(repr(self))

    def _repr_html_(self) -> str:
        dist = self.distribution
        facts = [
            ("shape", f"{dist.shape} {self.local.dtype}"),
            ("grid", f"{dist.grid}, {counted(dist.grid.size, 'rank')}"),
            (f"rank {self.comm.rank} holds", f"{self.local.shape}, {self.local.nbytes:,} bytes"),
        ]
        return str(late("html.page:card")("DistTensor", str(dist.layout), facts, [("", dist)]))

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
        def __divmod__(self, other: Any, /) -> tuple[Self, Self]: ...
        def __rdivmod__(self, other: Any, /) -> tuple[Self, Self]: ...
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
            if name == "_local" or not hasattr(self, "_local"):
                raise AbsentError(OUTDATED)
            if name == "mT":
                raise AbsentError(f"matrices have order 2 or more, not {self.ndim}")

            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            if hint := name_hint(name):
                text += f"\nwrite {hint}"
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


def _in_numpy(frame: FrameType) -> bool:
    """Whether a function of NumPy computes, which takes a tensor for a number: it has not passed the call on."""
    name: str = frame.f_globals.get("__name__", "")
    return name.startswith("numpy.") and name != "numpy.lib.mixins"  # which has the operators of tensors


@memoized(1024)
def _answers_itself(kind: type) -> bool:
    """Whether a type of operands, which is neither one of arrays nor one of tensors, has NumPy's protocol of ufuncs."""
    return hasattr(kind, "__array_ufunc__") and not issubclass(kind, np.ndarray | np.generic | Distributed)


def _foreign(types: Any, arguments: tuple[Sequence[Any], Mapping[str, Any]]) -> bool:
    """Whether one of the types is neither an array nor a tensor, so that its own protocol may answer.

    Raises:
        TypeError: one is a type of masked arrays; or an argument is a Dask array, or is on another device.
    """
    for kind in types:
        refuse_mask(kind)
    if all(issubclass(kind, np.ndarray | np.generic | Distributed) for kind in types):
        return False

    positional, named = arguments
    refuse_remote([*positional, *named.values()])
    return True


@cache
def answering(function: Function, method: str = "") -> Function | None:
    """The function that answers for one of NumPy, or for a method of a ufunc; only one module is imported for it.

    Another thread may be importing the module, whose first functions are in the table before its last ones are defined.
    So the import comes first, which waits for that thread.
    """
    table: Mapping[Any, Function] = UFUNC_METHODS if method else ANSWERS
    key = (function, method) if method else function
    module = functions.ANSWERING.get(f"ufunc.{method}" if method else function.__name__)
    if getattr(function, "__module__", "") == "numpy.fft":
        late("fft.functions.dispatch")
    elif module or key not in table:
        functions.load(module)
    return table.get(key)


def answer(function: Function, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """Call a function of NumPy on tensors.

    Raises:
        TypeError: the function is not answered; the text says what to write instead.
        LayoutError: the tensors do not have the layouts that the function needs.
    """
    method = answering(function)
    if method is None:
        numbers = _as_numbers(args, options)
        if numbers is None or function in _WRITERS:
            raise TypeError(refusal(f"{_name(function)}({{}})", HINTS.get(function, "")))
        return function(*numbers[0], **numbers[1])
    if options:  # of which NumPy's `_NoValue` means: not given
        options = {name: value for name, value in options.items() if value is not np._NoValue}

    # The call comes first and the comparison of its arguments with the signature only if it fails: most calls fit.
    try:
        return method(*args, **options)
    except TypeError as error:
        if args and not isinstance(args[0], Distributed):  # `numpy.tile(array, x.sum())`
            numbers = _as_numbers(args, options)
            if numbers is not None:
                return function(*numbers[0], **numbers[1])
        if fits(method, args, options):
            raise
        unfit = error

    args, options = _by_position(function, args, options)
    if fits(method, args, options):
        return method(*args, **options)
    raise TypeError(f"{unfit} for a DistTensor\nwrite {_name(function)}(x.to_global(), …)") from unfit


def _as_numbers(args: Sequence[Any], options: Mapping[str, Any]) -> tuple[Sequence[Any], dict[str, Any]] | None:
    """The arguments with numbers in the place of tensors, if all of these are of order 0; else None. Collective."""
    tensors = [x for x in values_in([*args, *options.values()]) if isinstance(x, Distributed)]
    if not tensors or any(x.distribution.shape for x in tensors):
        return None

    def read(value: Any) -> Any:
        if isinstance(value, ArrayProtocols):
            return value._value("numpy")[()]
        return type(value)(map(read, value)) if type(value) in (list, tuple) else value

    return tuple(map(read, args)), {name: read(value) for name, value in options.items()}


def _by_position(
    function: Function, args: Sequence[Any], options: Mapping[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The arguments of a function of NumPy, with operands that have its names, such as `a=x`, by position.

    >>> _by_position(np.searchsorted, (), {"v": 3, "a": [1, 2], "side": "left"})
    (([1, 2], 3), {'side': 'left'})
    """
    try:
        parameters = [*signature(function).parameters.values()]
    except ValueError:  # of a function in C of an older NumPy
        return args, dict(options)

    operands, others = [*args], dict(options)
    for parameter in parameters[len(args) :]:
        if parameter.default is not parameter.empty or parameter.name not in others:
            break
        operands.append(others.pop(parameter.name))
    return tuple(operands), others


def _name(function: Function) -> str:
    return f"{function.__module__}.{function.__name__}"

"""An array namespace for one thread that is run by several ranks in step: what the conformance suite is given.

The suite calls functions of a module and looks at arrays, in one thread. Here every call is made by all ranks, each on
its own tensors; what comes back is a `Tensors`, one for all ranks, or a plain value, which must be equal on all.
The environment says which module is run, on how many ranks, and how new tensors lie.
"""

from __future__ import annotations

import functools
import importlib
import math
import operator
import os
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from team import Disagreement, Team

import rote

__all__ = ["LAYOUTS", "Tensors", "drive", "settings"]

_UNARY = ["neg", "pos", "abs", "invert", "index"]
_CASTS = {"__bool__": bool, "__int__": int, "__float__": float, "__complex__": complex, "__len__": len}
_BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"]
_COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
_SHOWN = 32  # elements up to which an error message shows a tensor's values


def _modes(order: int, *grid_modes: str) -> str:
    return ",".join([*grid_modes, *["()"] * order][:order])


def _cyclic(shape: tuple[int, ...]) -> str:
    return f"cyclic[{','.join([*['()'] * (len(shape) - 1), '(0)'][: len(shape)])}]"


LAYOUTS: dict[str, Callable[[tuple[int, ...]], str]] = {
    "block": lambda shape: f"block[{_modes(len(shape), '(0)')}]",
    "cyclic": _cyclic,
    "grid": lambda shape: f"block[{_modes(len(shape), '(0)', *['(1)'] * (len(shape) > 1))}]",
}
"""How new tensors lie: the first mode in blocks, the last cyclically, the first two in blocks over a grid."""


class Tensors:
    """One object for those that the ranks hold of one thing; all that it is asked is asked of each."""

    __slots__ = ("held",)

    def __init__(self, held: list[Any]) -> None:
        self.held = held

    def __getattr__(self, name: str) -> Any:
        if name == "__array_namespace__":
            return _namespace_of(self)
        return drive(lambda each: getattr(each, name), self)

    def __repr__(self) -> str:
        return drive(_described, self)


def _described(each: Any) -> str:
    """A text that is the same on all ranks: `repr` of a tensor names the rank, and that of an object its address."""
    if not isinstance(each, rote.DistTensor):
        return type(each).__name__
    values = each.to_global().tolist() if each.size <= _SHOWN else f"{each.shape}"
    return f"{values} {each.dtype} {each.layout}"


def _namespace_of(tensors: Tensors) -> Callable[..., ModuleType]:
    """The method that gives this module, if the module itself is what the ranks' tensors say."""

    @functools.wraps(tensors.held[0].__array_namespace__)
    def __array_namespace__(*args: Any, **kwargs: Any) -> Any:
        answer = drive(lambda each: each.__array_namespace__(*args, **kwargs) is _MODULE, tensors)
        return importlib.import_module(__name__) if answer else answer

    return __array_namespace__


@functools.cache
def _kind(type_: type) -> type[Tensors]:
    """The `Tensors` of one type of the ranks' objects: it has those of Python's special methods that the type has."""
    methods: dict[str, Any] = {"__slots__": ()}
    for name in _UNARY:
        methods[f"__{name}__"] = _unary(getattr(operator, name))
    for name in _BINARY:
        function = getattr(operator, f"{name}_" if name in ("and", "or") else name)
        in_place = getattr(operator, f"i{name}")
        methods[f"__{name}__"] = _binary(function)
        methods[f"__r{name}__"] = _reflected(function)
        methods[f"__i{name}__"] = _in_place(in_place)
    for name in _COMPARISONS:
        methods[f"__{name}__"] = _binary(getattr(operator, name))
    for name, cast in _CASTS.items():
        methods[name] = _unary(cast)
    methods["__getitem__"], methods["__setitem__"] = _getitem, _setitem
    return type(f"Tensors of {type_.__name__}", (Tensors,), {k: v for k, v in methods.items() if _has(type_, k)})


def _has(type_: type, name: str) -> bool:
    """Whether a type does it; `x += y` is Python's own where it has no method for it, `!=` is object's too."""
    return name == "__slots__" or (getattr(type_, name, None) not in (None, getattr(object, name, None)))


def _unary(function: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda self: drive(function, self)


def _binary(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def method(self: Any, other: Any, /) -> Any:
        return drive(function, self, other)

    return method


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def method(self: Any, other: Any, /) -> Any:
        return drive(function, other, self)

    return method


def _in_place(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def method(self: Any, other: Any, /) -> Any:
        result = drive(function, self, other)
        same = all(new is old for new, old in zip(result.held, self.held, strict=True))
        return self if same else result

    return method


def _getitem(self: Any, key: Any, /) -> Any:
    return drive(operator.getitem, self, key)


def _setitem(self: Any, key: Any, value: Any, /) -> None:
    drive(operator.setitem, self, key, value)


def drive(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Have all ranks call a function, each with its own of what is in the arguments; what they answer, as one."""
    return _joined(_TEAM.call(lambda rank: function(*_of_rank(args, rank), **_of_rank(kwargs, rank))))


def _of_rank(value: Any, rank: int) -> Any:
    if isinstance(value, Tensors):
        return value.held[rank]
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)(_of_rank(each, rank) for each in value)
    if isinstance(value, dict):
        return {key: _of_rank(each, rank) for key, each in value.items()}
    if isinstance(value, slice):
        return slice(*(_of_rank(each, rank) for each in (value.start, value.stop, value.step)))
    return value


def _joined(answers: list[Any]) -> Any:
    """One value of those of the ranks: plain values are equal on all ranks, or it is an error."""
    first = answers[0]
    if any(type(each) is not type(first) for each in answers):
        raise Disagreement(f"ranks give values of different types: {answers}")
    if isinstance(first, tuple):
        _check(len({len(each) for each in answers}) == 1, answers)
        parts = [_joined([each[i] for each in answers]) for i in range(len(first))]
        return tuple(parts) if type(first) is tuple else type(first)(*parts)
    if isinstance(first, list):
        _check(len({len(each) for each in answers}) == 1, answers)
        return [_joined([each[i] for each in answers]) for i in range(len(first))]
    if isinstance(first, dict):
        _check(all(list(each) == list(first) for each in answers), answers)
        return {key: _joined([each[key] for each in answers]) for key in first}
    if isinstance(first, (FunctionType, BuiltinFunctionType, MethodType, np.ufunc)):
        return _function(answers)
    if isinstance(first, (float, complex, np.inexact)):
        _check(all(_same_number(each, first) for each in answers), answers)
        return first
    if isinstance(first, np.ndarray):
        _check(all(np.array_equal(each, first, equal_nan=each.dtype.kind in "fc") for each in answers), answers)
        return first
    if first is None or isinstance(first, (int, str, bytes, np.dtype, np.generic, type, ModuleType, slice)):
        _check(all(each == first for each in answers), answers)
        return first
    array = isinstance(first, rote.DistTensor) or hasattr(first, "__array_namespace__")
    if not array and all(each == first for each in answers):
        return first  # as dtypes of the standard are, which need no hash
    return _kind(type(first))(answers)


def _same_number(value: complex, other: complex) -> bool:
    parts = [(value.real, other.real), (value.imag, other.imag)]
    return all((a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b) for a, b in parts)


def _check(equal: bool, answers: list[Any]) -> None:
    if not equal:
        raise Disagreement(f"a value is not the same on all ranks: {answers}")


def _function(held: list[Any]) -> Callable[..., Any]:
    """A function that every rank has: all call theirs. It keeps its signature, which the suite reads."""

    mine = Tensors(held)

    def call(*args: Any, **kwargs: Any) -> Any:
        return drive(lambda function, *a, **k: function(*a, **k), mine, *args, **kwargs)

    return functools.wraps(held[0])(call)


class _Namespace:
    """A module of which every function is called by all ranks."""

    def __init__(self, module: ModuleType) -> None:
        self.__module = module
        self.__name__ = module.__name__

    def __getattr__(self, name: str) -> Any:
        return _attribute(self.__module, name)


def _attribute(module: ModuleType, name: str) -> Any:
    value = getattr(module, name)
    if isinstance(value, ModuleType):
        return _Namespace(value)
    return value if isinstance(value, type) else _joined([value] * _TEAM.ranks)


def settings() -> tuple[str, int, str]:
    """Module, number of ranks and layout that the environment asks for."""
    environment = os.environ.get
    return (
        environment("ROTE_CONFORMANCE_MODULE", "rote.array_api"),
        int(environment("ROTE_CONFORMANCE_RANKS", "2")),
        environment("ROTE_CONFORMANCE_LAYOUT", "block"),
    )


_name, _ranks, _layout = settings()
rote.config(implicit="allow", layout=LAYOUTS[_layout])
_MODULE = importlib.import_module(_name)
_TEAM = Team(_ranks)


def __getattr__(name: str) -> Any:
    return _attribute(_MODULE, name)

"""Names that are imported when they are first used, so that programs pay for what they use alone.

- A package that only collects names, such as `rote` itself, calls `attach`: it gives the functions `__getattr__` and
  `__dir__` of the module (PEP 562). Type checkers do not see them. For them the package imports the same names under
  `TYPE_CHECKING`, and a test compares the two.
- A class calls `method` for a method that is a function of another module.
- A value calls `late` for what is made of it in higher packages: pages, figures, the array API namespace. So its own
  package does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from sys import modules
from types import MethodType
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

__all__ = ["attach", "late", "method"]


def attach(
    package: str, homes: Mapping[str, str], hints: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package that imports its names on first use, and keeps them.

    Args:
        package: its `__name__`.
        homes: by module, relative to the package, the names that it has, separated by spaces; by "", modules.
        hints: by a name that the package does not have, what to write instead.
    """
    where = {name: home for home, names in homes.items() for name in names.split()}

    def fetch(name: str) -> Any:
        if name not in where:
            hint = f"\nwrite {hints[name]}" if hints and name in hints else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")

        home = where[name]
        value = getattr(_module(f"{package}.{home}"), name) if home else _module(f"{package}.{name}")
        setattr(modules[package], name, value)  # so that it is asked for once
        return value

    def names() -> list[str]:
        present = vars(modules[package])
        return sorted({*present["__all__"], *where, *(name for name in present if name.startswith("__"))})

    return fetch, names


def _module(name: str) -> Any:
    __import__(name)
    return modules[name]


@cache
def late(path: str) -> Any:
    """A function or a module of a higher package, imported now; `"html.page:plan_page"` is a function of a module.

    `tests/house/test_house_walls.py` reads these paths off the calls, and holds that they are there.

    >>> from rote import parse
    >>> late("html.page:layout_card")(parse("[(0),()]"))[:4]
    '<div'
    """
    module, _, function = path.partition(":")
    home = _module(f"rote.{module}")

    return getattr(home, function) if function else home


P = ParamSpec("P")
X = TypeVar("X")


class _LateMethod:
    """A method that is a function of another module; at first access the function replaces it."""

    __slots__ = ("_attribute", "_import", "_owner")

    def __init__(self, function: Callable[[], Callable[..., Any]]) -> None:
        self._import = function

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._attribute = owner, name

    def __get__(self, x: object, kind: type | None = None) -> Callable[..., Any]:
        function = self._import()
        setattr(self._owner, self._attribute, function)

        return function if x is None else MethodType(function, x)


def method(function: Callable[[], Callable[Concatenate[Any, P], Any]]) -> Callable[Concatenate[X, P], X]:
    """A method that is a function, which `function` imports; to type checkers, it returns a value of its object's type.

    >>> class Text(str):
    ...     wrapped = method(lambda: __import__("textwrap").shorten)
    >>> Text("a long text").wrapped(10)
    'a [...]'
    """
    descriptor: Any = _LateMethod(function)
    return cast(Callable[Concatenate[X, P], X], descriptor)

"""Names that are imported when they are first used, so that programs pay for what they use alone.

- A package that only collects names, such as `rote` itself, calls `attach`: it gives the functions `__getattr__` and
  `__dir__` of the module (PEP 562). Type checkers do not see them. For them the package imports the same names under
  `TYPE_CHECKING`, and a test compares the two. `attach_methods` does the same for the methods of a class.
- A value calls `late` for what is made of it in higher packages: pages, figures, the array API namespace. So its own
  package does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from sys import modules
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

__all__ = ["HOMES", "attach", "attach_methods", "late"]


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
        setattr(modules[package], name, value)
        return value

    def names() -> list[str]:
        own = vars(modules[package])
        return sorted({*own["__all__"], *where, *(name for name in own if name.startswith("__"))})

    return fetch, names


def _module(name: str) -> Any:
    __import__(name)
    return modules[name]


HOMES: dict[str, tuple[str, str]] = {
    "array namespace": ("array_api", ""),
    "bound contraction": ("functions.contraction.run", "bound_to"),
    "card": ("html.page", "card"),
    "contraction card": ("html.contractions", "contraction_card"),
    "contraction figure": ("plot.contractions", "contraction"),
    "contraction page": ("html.contractions", "contraction_page"),
    "contraction proof": ("functions.contraction.proof", "prove"),
    "distribution card": ("html.page", "distribution_card"),
    "distribution": ("layout.distribution", "distribute"),
    "layout card": ("html.page", "layout_card"),
    "numpy.fft": ("fft.functions.dispatch", ""),  # enters the answers for its functions
    "plan card": ("html.page", "plan_card"),
    "plan figure": ("plot.figures", "plan"),
    "plan page": ("html.page", "plan_page"),
    "scaling figure": ("plot.scaling", "scaling"),
    "walk figure": ("plot.figures", "stages"),
}
"""Per name, the module of Rote and the function in it; if there is no function, the module itself is meant."""


@cache
def late(name: str) -> Any:
    """The function or module of a higher package that a name stands for.

    >>> from rote import parse
    >>> late("layout card")(parse("[(0),()]"))[:4]
    '<div'
    """
    module, function = HOMES[name]
    home = _module(f"rote.{module}")
    return getattr(home, function) if function else home


class _LateMethod:
    """A method that is a function of a module in a package; at first access the function replaces it."""

    __slots__ = ("_attribute", "_module", "_name", "_owner", "_package")

    def __init__(self, owner: type, attribute: str, package: ModuleType, module: str, name: str) -> None:
        self._owner, self._attribute, self._package, self._module, self._name = owner, attribute, package, module, name

    def __get__(self, x: object, kind: type | None = None) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(getattr(self._package, self._module), self._name)
        setattr(self._owner, self._attribute, function)
        return function if x is None else MethodType(function, x)


def attach_methods(owner: type, package: ModuleType, homes: Mapping[str, str]) -> None:
    """Give a class methods that are functions of the modules of a package, which are imported on first use.

    Args:
        homes: by module the names of the functions; a method's name is without the prefix `numpy_`, if it has that.
    """
    for module, names in homes.items():
        for name in names.split():
            attribute = name.removeprefix("numpy_")
            setattr(owner, attribute, _LateMethod(owner, attribute, package, module, name))


if TYPE_CHECKING:
    P = ParamSpec("P")
    X = TypeVar("X")

    def method(function: Callable[Concatenate[Any, P], Any]) -> Callable[Concatenate[X, P], X]:
        """A function as type checkers see it as a method: it returns a tensor of its tensor's type."""
        return function

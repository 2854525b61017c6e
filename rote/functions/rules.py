"""The rule of each function: the layout of its result, and what moves.

The table has one row per rule, and each function takes its rule by a decorator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Literal, NamedTuple, TypeVar, cast

from ..runtime.comm.collective_errors import floating_errors, floating_errors_raise
from ..runtime.comm.protocol import Comm
from .distributed import Distributed
from .moves import call_under_way

__all__ = ["ANSWERS", "ENTERING", "FUNCTIONS", "RULES", "UFUNC_METHODS", "Function", "LayoutRule", "RuleName"]
__all__ += ["comm_of", "failing_together", "fails_together", "follows"]

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


class LayoutRule(NamedTuple):
    """How the functions of a class treat layouts."""

    result: str  # the layout of the result
    moves: str  # what moves, and when


RuleName = Literal[
    "created",
    "fact",
    "elementwise",
    "reduction",
    "along",
    "sorted",
    "indexed",
    "relabelled",
    "joined",
    "contracted",
    "data-dependent",
    "agreed",
]

RULES: dict[RuleName, LayoutRule] = {
    "created": LayoutRule(
        "`layout=`, else the default of `rote.config(layout=…)`", "nothing: each rank makes its block"
    ),
    "fact": LayoutRule("a plain value, the same on all ranks", "nothing: all ranks know shape and dtype"),
    "elementwise": LayoutRule(
        "that of the operand of the result's shape to which moving the others costs least",
        "operands in other layouts, by the cheapest certified plan; an operand that is broadcast and replicated stays",
    ),
    "reduction": LayoutRule(
        "`layout=`, else that of the operand without the reduced modes, replicated over the grid modes that split them",
        "partial results over those grid modes, by all-reduce, reduce-scatter, or whatever costs least for that layout",
    ),
    "along": LayoutRule(
        "that of the operand; if the mode was split, with that mode whole",
        "the operand, if the mode is split, by the cheapest certified plan that makes it whole",
    ),
    "sorted": LayoutRule(
        "that of the operand; if the mode was split and there are many lines, with that mode whole",
        "nothing if the mode is whole; the operand, to make lines whole, if another mode can be split instead; "
        "otherwise elements, by a sample sort, after which no rank has all, and an indexed move back",
    ),
    "indexed": LayoutRule(
        "that of the operand, with kinds balanced anew if extents change",
        "elements whose place in the result is on another rank, by an indexed move",
    ),
    "relabelled": LayoutRule(
        "that of the operand, with its modes renamed", "nothing: blocks are views of the operand's"
    ),
    "joined": LayoutRule(
        "that of the first operand", "elements of each operand whose place is on another rank, by an indexed move"
    ),
    "contracted": LayoutRule(
        "free modes are split as in the operands; replicated over the grid modes that split the others",
        "operands, until contracted modes have equal layouts; then partial results, as in a reduction",
    ),
    "data-dependent": LayoutRule(
        "blocks whose sizes depend on the data",
        "the operand, to blocks in the order of its elements; then the size of each rank's result, and for `unique` "
        "the unique elements of each rank, by a sample sort",
    ),
    "agreed": LayoutRule("a plain value, the same on all ranks", "one value per rank"),
}
"""The rules, by name."""

FUNCTIONS: dict[str, RuleName] = {}
"""The rule of each function of the array namespace, by the function's name."""

ANSWERS: dict[Function, Function] = {}
"""The function that answers for each function of NumPy if it is called with tensors."""

ENTERING: dict[str, Callable[[], object]] = {}
"""By the name of a module of NumPy: enters the answers for its functions, when the first of them is called."""

UFUNC_METHODS: dict[tuple[Function, str], Function] = {}
"""The function that answers for a method of a ufunc, such as `numpy.add.reduce`, with tensors; it takes `axis=`."""


def follows(rule: RuleName, *answers: Function, name: str = "") -> Callable[[F], F]:
    """Enter a function into the table of rules, under `name` or its own; it answers for these functions of NumPy."""

    def enter(function: F) -> F:
        own = name or function.__name__
        FUNCTIONS[own] = rule
        if rule in _MOVING:
            function = _entered(own, function, rule in _COMPUTING)
        ANSWERS.update(dict.fromkeys(answers, function))
        return function

    return enter


_COMPUTING: tuple[RuleName, ...] = ("reduction", "along", "sorted", "contracted", "data-dependent", "agreed")
"""The rules of functions that compute in several steps; `elementwise` agrees on floating-point errors itself."""

_MOVING: tuple[RuleName, ...] = (*_COMPUTING, "indexed", "joined", "relabelled")
"""The rules of functions that may send messages; `elementwise` only moves tensors, which agrees by itself."""


def comm_of(args: Sequence[Any], options: Mapping[str, Any]) -> Comm | None:
    """The communicator of the first tensor among arguments, or in a list of them; None if there is none."""
    given = [*args, *options.values()]
    given += [each for several in given if isinstance(several, list | tuple) for each in several]
    return next((each.comm for each in given if isinstance(each, Distributed)), None)


def failing_together(name: str, function: Function, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Call a function, and raise its floating-point errors on all ranks of the first tensor among its arguments."""
    comm = comm_of(args, options)
    if comm is None:
        return function(*args, **options)
    with floating_errors(comm, name):
        return function(*args, **options)


def _entered(name: str, function: F, computes: bool) -> F:
    """The function, whose outermost call is noted for its ranks to agree on, if it sends messages.

    Args:
        computes: whether all ranks raise its floating-point errors together.
    """

    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        if call_under_way.get() is not None:
            return function(*args, **options)
        token = call_under_way.set([(name, args, options)])
        try:
            if computes and floating_errors_raise():
                return failing_together(name, function, args, options)
            return function(*args, **options)
        except AttributeError as error:
            mistaken = comm_of(args, options) is None or any(error.obj is value for value in args)
            if error.name not in ("comm", "distribution", "local") or not mistaken:
                raise  # of a function that the user passed, say
            kind = type(error.obj).__name__
            cure = "make one of an array by DistTensor.from_global(array, layout)"
            raise TypeError(f"{name} takes a tensor, not {kind}\n{cure}") from None
        finally:
            call_under_way.reset(token)

    return cast(F, called)


def fails_together(name: str) -> Callable[[F], F]:
    """Decorate a function: all ranks raise its floating-point errors together, if NumPy is set to raise any."""

    def agreeing(function: F) -> F:
        @wraps(function)
        def called(*args: Any, **options: Any) -> Any:
            if floating_errors_raise():
                return failing_together(name, function, args, options)
            return function(*args, **options)

        return cast(F, called)

    return agreeing

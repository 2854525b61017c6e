"""The rule of each function: the layout of its result, and what moves.

The table has one row per rule, and each function takes its rule by a decorator. `notebooks/array-functions.md` says in
full what the rules are, for users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from inspect import Signature, signature
from types import MappingProxyType
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np

from ..errors import LayoutError
from ..grammar.nodes import Op
from ..runtime.arrays import as_array
from ..runtime.comm.agreement import floating_errors, floating_errors_raise
from .distributed import Distributed, T, comm_of, is_foreign, owned
from .moves import Attribution, attribution, warn_of_copies

__all__ = ["ANSWERS", "FUNCTIONS", "NAN_WITH_WARNING", "RULES", "UFUNC_METHODS", "Function", "LayoutRule", "Member"]
__all__ += ["OfOne", "OfTwo", "call_collectively", "family", "fits", "follows", "numpy_arguments", "of_one"]
__all__ += ["of_tensors", "of_two", "refuse_unfit", "values_in", "without_nans", "written"]

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
P = ParamSpec("P")
R = TypeVar("R")
Hints = Mapping[str, str]


class OfOne(Protocol[P]):
    """A function of a tensor whose result is a tensor, of the same class."""

    def __call__(self, x: T, /, *args: P.args, **options: P.kwargs) -> T: ...


class OfTwo(Protocol[P]):
    """A function of two operands, of which one at least is a tensor, and so is the result."""

    @overload
    def __call__(self, x1: T, x2: Any, /, *args: P.args, **options: P.kwargs) -> T: ...
    @overload
    def __call__(self, x1: Any, x2: T, /, *args: P.args, **options: P.kwargs) -> T: ...


def of_one(function: Callable[Concatenate[Any, P], Any]) -> OfOne[P]:
    """The function itself, of which type checkers know that the result is what the first argument is."""
    return cast(OfOne[P], function)


def of_two(function: Callable[Concatenate[Any, Any, P], Any]) -> OfTwo[P]:
    """The function itself, of which type checkers know that the result is a tensor, as one of two operands is."""
    return cast(OfTwo[P], function)


class LayoutRule(NamedTuple):
    """How the functions of a class are called; `notebooks/array-functions.md` says what their results look like."""

    sends: bool = True  # whether functions send messages of their own, beside moves of operands
    computes: bool = True  # whether they compute in several steps, so that ranks agree on floating-point errors


# The layout of the result, for each:
RULES: dict[str, LayoutRule] = {
    "created": LayoutRule(sends=False),  # that of the call, or the default
    "fact": LayoutRule(sends=False),  # none: a plain value, which all ranks know
    "elementwise": LayoutRule(sends=False),  # that of an operand of the result's shape, to which the others move
    "reduction": LayoutRule(),  # the operand's, without the reduced modes
    "along": LayoutRule(),  # the operand's, with the mode whole if it was split
    "sorted": LayoutRule(),  # as along, if there are many lines; else the operand's
    "selected": LayoutRule(),  # the operand's, without the modes
    "indexed": LayoutRule(computes=False),  # the operand's, with kinds balanced anew
    "relabelled": LayoutRule(computes=False),  # the operand's, with its modes renamed; nothing moves
    "joined": LayoutRule(computes=False),  # the first operand's
    "contracted": LayoutRule(),  # free modes as in the operands
    "data-dependent": LayoutRule(),  # blocks whose sizes depend on the data
    "agreed": LayoutRule(),  # none: a plain value, of one value per rank
}
"""The rules, by name."""

FUNCTIONS: dict[str, str] = {}
"""The rule of each function of the array namespace, by the function's name."""

ANSWERS: dict[Function, Function] = {}
"""The function that answers for each function of NumPy if it is called with tensors."""

UFUNC_METHODS: dict[tuple[Function, str], Function] = {}
"""The function that answers for a method of a ufunc, such as `numpy.add.reduce`, with tensors; it takes `axis=`."""


def follows(rule: str, *answers: Function, name: str = "", views: bool = False) -> Callable[[F], F]:
    """Enter a function into the table of rules, under `name` or its own; it answers for these functions of NumPy.

    Args:
        views: whether results are parts of the argument, as NumPy's are views; see `sharing`.
    """

    def enter(function: F) -> F:
        key = name or function.__name__
        FUNCTIONS[key] = rule
        if RULES[rule].sends:
            function = _entered(key, function, rule, views or rule == "relabelled")
        elif rule != "fact" and (rule != "created" or answers):  # those that answer for none make the first tensors
            function = of_tensors(key, function)
        ANSWERS.update(dict.fromkeys(answers, function))
        return function

    return enter


class Member(NamedTuple):
    """What tells a function of a family from the others, all of which call one model with it as first argument."""

    name: str
    skips_nan: bool = False  # whether it leaves NaNs out
    op: Op = "sum"  # how elements are combined
    root: bool = False  # whether it takes the square root of the result


Model = Callable[Concatenate[Any, Any, P], Any]
"""The function of a family: its first argument tells its members from each other, the second is a tensor."""


def written(
    name: str, doc: str | None, model: Callable[Concatenate[Any, P], R], first: Any, hints: Hints = MappingProxyType({})
) -> Callable[P, R]:
    """Make a function from its name and its docstring: it calls a model with the arguments of a call behind `first`.

    The signature is that of the model without its first parameter, for people, `inspect` and type checkers alike.

    Args:
        hints: what to write in place of arguments that the function does not have.
    """

    def called(*args: P.args, **options: P.kwargs) -> R:
        try:
            return model(first, *args, **options)
        except TypeError:
            refuse_unfit(name, signature(called), args, options, hints)
            raise

    called.__name__ = called.__qualname__ = name
    called.__module__, called.__doc__ = model.__module__, doc
    called.__wrapped__ = model  # type: ignore[attr-defined]  # whose source is to be read

    hidden, *shown = signature(model).parameters.values()
    called.__signature__ = signature(model).replace(parameters=shown)  # type: ignore[attr-defined]
    called.__annotations__ = {key: kind for key, kind in model.__annotations__.items() if key != hidden.name}
    return called


def family(rule: str, model: Model[P], first: Any, *answers: Function) -> Callable[[Callable[[], None]], OfOne[P]]:
    """Make a member of a family from its name and docstring, as `written` does, which follows a rule.

    Args:
        model: the function that all members call.
        first: what tells this one from the others.
    """
    return lambda shown: of_one(follows(rule, *answers)(written(shown.__name__, shown.__doc__, model, first)))


NAN_WITH_WARNING = "NaN, with a warning, if there is none"
"""What happens in many functions `without_nans` if all elements are NaN."""

_WITHOUT_NANS = """The `{plain}` of the elements that are not NaN{beyond}. Arguments and errors as for `{plain}`.

Examples
--------
>>> import numpy as np, rote.array_api as xp
>>> xp.{name}(xp.asarray([1.0, np.nan, 3.0]){more}).to_global().tolist()
{value}
"""


def without_nans(rule: str, model: Model[P], member: Member, value: Any, beyond: str = "", more: str = "") -> OfOne[P]:
    """The member of a family that leaves NaNs out, and answers for NumPy's function of its name.

    Args:
        value: the result of the example, for 1, NaN and 3 and for `more` arguments.
        beyond: what happens if all elements are NaN, or in the place of NaNs.
    """
    name = member.name
    plain, beyond = name.removeprefix("nan"), beyond and f"; {beyond}"
    doc = _WITHOUT_NANS.format(plain=plain, name=name, beyond=beyond, more=more, value=value)
    return of_one(follows(rule, getattr(np, name))(written(name, doc, model, member._replace(skips_nan=True))))


def values_in(values: Iterable[Any]) -> Iterator[Any]:
    """The values, and what is in lists of them, however deep.

    >>> [*values_in([1, [2, (3,)]])]
    [1, [2, (3,)], 2, (3,), 3]
    """
    for value in values:
        yield value
        if isinstance(value, list | tuple):
            yield from values_in(value)


def of_tensors(name: str, function: F) -> F:
    """The function, which names a value that it is given in place of a tensor.

    Raises:
        TypeError: no argument is a tensor, or one that has to be a tensor is none.
    """

    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        if True in map(is_foreign, map(type, (*args, *options.values()) if options else args)):
            args, options = numpy_arguments(args, options)
        try:
            return function(*args, **options)
        except Exception as error:
            _explain(error, name, function, args, options)
            raise

    return cast(F, called)


def numpy_arguments(args: Sequence[Any], options: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, with arrays of other libraries as NumPy's.

    Raises:
        TypeError: an array is a Dask array, or is on another device.
    """

    def read(value: Any) -> Any:
        return as_array(value) if is_foreign(type(value)) else value

    return tuple(map(read, args)), {name: read(value) for name, value in options.items()}


def _explain(error: Exception, name: str, function: Function, args: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Raise another error in the place of one that a value caused which is no tensor, or no integer."""
    values = [*values_in([*args, *options.values()])]
    if not any(isinstance(value, Distributed) for value in values):
        if not values or (isinstance(error, TypeError) and not fits(function, args, options)):
            return
        value = next((value for value in values if not isinstance(value, str)), values[0])  # subscripts
        if isinstance(value, list | tuple) and value and isinstance(value[0], np.ndarray):
            value = value[0]
    elif (  # an array, or another object, where a function reads an attribute of tensors
        isinstance(error, AttributeError)
        and not isinstance(error, LayoutError)  # of a part that is outdated
        and error.name in ("comm", "distribution", "local", "_local")
        and any(error.obj is value for value in values)
    ):
        value = error.obj
    else:
        if isinstance(error, TypeError) and attribution.get().call is None:  # steps leave it to the outermost call
            _refuse_axes(name, function, args, options)
        return

    raise TypeError(
        f"{name} takes a tensor, not {type(value).__name__}\n"
        "make one of an array by DistTensor.from_global(array, layout)"
    ) from None


def refuse_unfit(
    name: str, expected: Signature, args: Sequence[Any], options: Mapping[str, Any], hints: Hints = MappingProxyType({})
) -> None:
    """Refuse arguments that do not fit a signature, under the name of the called function and not of its model.

    Args:
        hints: what to write in place of some arguments.

    Raises:
        TypeError: they do not fit.
    """
    try:
        expected.bind(*args, **options)
    except TypeError as error:
        hint = "".join([f"\n{hints[option]}" for option in options if option in hints][:1])
        raise TypeError(f"{name}() {error}{hint}") from None


def fits(function: Function, args: Sequence[Any], options: Mapping[str, Any]) -> bool:
    """Whether the arguments fit the signature of a function; their values are not checked."""
    try:
        signature(function).bind(*args, **options)
    except TypeError:
        return False
    return True


def call_collectively(name: str, function: Function, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Call a function. If NumPy is set to raise floating-point errors, all ranks of its first tensor raise them."""
    comm = comm_of(name, (*args, *options.values())) if floating_errors_raise() else None
    if comm is None:
        return function(*args, **options)
    with floating_errors(comm, name):
        return function(*args, **options)


def _entered(name: str, function: F, rule: str, views: bool) -> F:
    """The function of tensors, whose outermost call is noted for its ranks to agree on, if it sends messages.

    If its results are no `views`, they are tensors of their own.
    """
    computes, joins = RULES[rule].computes, rule == "joined"
    short = name.removeprefix("numpy.")

    # Read arrays of other libraries, find the tensors' ranks, note the call for them to compare, compute, and wrap: all
    # calls go this way.
    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        if True in map(is_foreign, map(type, (*args, *options.values()) if options else args)):
            args, options = numpy_arguments(args, options)
        outer = attribution.get()
        try:
            if outer.call is not None:  # this is a step of another function
                return function(*args, **options)

            values = (*args, *options.values()) if options else args
            comm_of(short, values)
            token = attribution.set(Attribution(outer.name or short, outer.of_result, [(name, args, options)]))
            try:
                result = call_collectively(name, function, args, options) if computes else function(*args, **options)
                if not views:
                    result = owned(result, values)
            finally:
                attribution.reset(token)
        except Exception as error:
            _explain(error, name, function, args, options)
            raise

        if not options or (options.get("out") is None and options.get("layout") is None):
            match result:  # which costs no call
                case list() | tuple():
                    warn_of_copies(short, values, result, joins)
                case _:
                    warn_of_copies(short, values, (result,), joins)
        return result

    return cast(F, called)


def _refuse_axes(name: str, function: Function, args: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Refuse modes that are not integers; other arguments are not checked.

    Raises:
        TypeError: a mode is another value.
    """
    try:
        arguments = signature(function).bind(*args, **options).arguments
    except TypeError:  # another mistake
        return
    for word in ("axis", "axes", "axis1", "axis2", "source", "destination"):
        value = arguments.get(word)
        for axis in value if isinstance(value, list | tuple) else (value,):
            if axis is not None and not hasattr(type(axis), "__index__"):
                raise TypeError(
                    f"{name} takes integers as {word}=, not {axis!r}\nwrite {word}=0 for mode 0, -1 for the last mode"
                ) from None

"""The docstrings of what users hold: every public name shows an example and says what comes back."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from doctests import compare_whole_errors

import rote
import rote.array_api
import rote.array_api.fft
import rote.array_api.linalg
import rote.testing

Named = tuple[str, object]

# Public name -> why it shows no example. Everything else must.
UNSHOWN = {
    "rote.fft.algorithms": "a tuple of names",
    "rote.fft.kinds": "a table",
    "rote.methods": "a tuple of names",
    "rote.grammar.CASTS": "a tuple of names",
    "rote.grammar.RESIZES": "a tuple of names",
    "rote.grammar.TRANSFORMS": "a tuple of names",
    "rote.grammar.TWIDDLE": "a name",
    "rote.grammar.CONVOLVE": "a name",
    "rote.grammar.BLOCK": "shown by Kind",
    "rote.grammar.CYCLIC": "shown by Kind",
    "rote.grammar.ViewItem": "a union of Name, Fuse and Tile",
}

# The modules that users import by themselves, beside those that the door gives.
DOORS = (rote.array_api, rote.array_api.fft, rote.array_api.linalg, rote.testing)

# With these a first sentence is a noun phrase: what comes back. One that opens with a verb wants a `Returns:`.
NOUN_PHRASE = {
    *("A", "All", "Along", "An", "Each", "Every", "Memory", "One", "Per", "The", "This", "Whether", "Why"),
    *("Eigenvalues", "Evenly", "Grids", "Layouts", "Orthogonal", "Powers", "Shapes", "Signs", "Singular", "Tensors"),
}

# A first sentence that leans on another one, or says how something is thought of, does not stand alone.
LEANS = ("What ", "The same ", "As ")


def names_of(module: ModuleType) -> list[str]:
    """The public names of a module; without `__all__`, those that it holds and that are no modules."""
    held = (name for name, value in vars(module).items() if not isinstance(value, ModuleType))
    return sorted(getattr(module, "__all__", held))


def of_the_house(value: object) -> bool:
    """Whether a function or class is written here, and no other package's."""
    return callable(value) and getattr(inspect.unwrap(value), "__module__", "").startswith("rote")


@cache
def public() -> tuple[Named, ...]:
    """Every name that the doors give, and those that the modules of the first give, each with what it stands for."""
    held = [(f"rote.{name}", getattr(rote, name)) for name in rote.__all__]
    modules = [(name, value) for name, value in held if isinstance(value, ModuleType)]
    named = [*held]
    for name, module in modules:
        inner = (n for n in names_of(module) if not n.startswith("_") and n != "annotations")
        named += [(f"{name}.{n}", getattr(module, n)) for n in inner]
    for door in DOORS:  # of which some hold constants and dtypes of NumPy's, as the array API wants
        values = ((n, getattr(door, n)) for n in names_of(door) if not n.startswith("_"))
        named += [(f"{door.__name__}.{n}", value) for n, value in values if of_the_house(value)]
    return tuple((name, value) for name, value in named if not isinstance(value, ModuleType))


def methods_of(kind: type) -> Iterator[Named]:
    """The public methods and properties that a class has of the house."""
    for name in dir(kind):
        owner = next((base for base in kind.__mro__ if name in vars(base)), None)
        if owner is None or name.startswith("_") or not owner.__module__.startswith("rote"):
            continue
        getattr(kind, name)  # a method that is imported late is in its place from now on
        value = inspect.getattr_static(kind, name)
        value = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        if isinstance(value, property) or (callable(value) and inspect.isfunction(inspect.unwrap(value))):
            yield name, value


@cache
def described() -> dict[str, object]:
    """Every public name, and every public method and property of the classes among them."""
    things: dict[str, object] = {}
    for name, value in public():
        things[name] = value
        if inspect.isclass(value):
            things |= {f"{name}.{method}": function for method, function in methods_of(value)}
    return things


def complaint(name: str, value: object) -> str:
    """What the docstring of a public name lacks; empty when nothing does."""
    text = inspect.getdoc(value) or ""
    first = text.partition("\n")[0]
    if not first or first.startswith(LEANS):
        return f"{name}: the first sentence does not stand on its own: {first!r}"
    if not isinstance(value, property) and ">>>" not in text:
        return f"{name}: shows no example"
    function = inspect.unwrap(value) if callable(value) else value
    gives = inspect.isfunction(function) and function.__annotations__.get("return") != "None"
    if gives and "Returns:" not in text and first.split()[0] not in NOUN_PHRASE:
        return f"{name}: says nowhere what comes back"
    return ""


def test_public_names_show_and_tell() -> None:
    """Each name and each method has a first sentence of its own and an example, and says what comes back.

    A property has no example of its own: its class shows it.
    """
    complaints = [complaint(name, value) for name, value in described().items() if name not in UNSHOWN]
    assert [text for text in complaints if text] == []


@pytest.mark.parametrize("name", sorted(set(rote.errors.__all__) - {"counted", "deprecated"}))
def test_examples_of_errors_print_what_they_say(name: str) -> None:
    """Errors are named after the door, where doctest's own search does not find them: their examples are run here."""
    error = getattr(rote.errors, name)
    homes = (importlib.import_module(home) for home in ("rote.grammar.errors", "rote.errors"))
    home = next(home for home in homes if name in vars(home))
    tests = doctest.DocTestFinder().find(error, name, module=False, globs=dict(vars(home)))
    compare_whole_errors()
    report: list[str] = []
    for test in tests:
        doctest.DocTestRunner().run(test, out=report.append)
    assert sum(len(test.examples) for test in tests) > 0
    assert not report, "".join(report)


# --- errors -----------------------------------------------------------------------------------------------------------


def named_errors(name: str, owner: type | None = None) -> str:
    """The part of a docstring that says what is raised, with those that it refers to: errors as `fftn`."""
    text = inspect.getdoc(described()[name]) or ""
    room = name.rpartition(".")[0]
    parts = [text.partition("Raises")[2], *re.findall(r"\braises? \w+", text)]
    for reference in re.findall(r"errors(?: [\w ]+)? (?:as|are those)(?: for| of)? `([\w.]+)`", text):
        parts += [named_errors(each) for each in (f"{room}.{reference}", reference) if each in described()]
    if owner is not None:
        parts.append((inspect.getdoc(owner) or "").partition("Raises")[2])
        parts += re.findall(r"Every method .* raises \w+", inspect.getdoc(owner) or "")
    return "\n".join(parts)


def raised(function: object, seen: frozenset[object] = frozenset()) -> Iterator[str]:
    """The errors that a function raises, by itself or in what its module alone calls: names with an underscore."""
    plain = inspect.unwrap(function.fget if isinstance(function, property) else function)  # type: ignore[arg-type]
    if not inspect.isfunction(plain) or plain in seen:
        return
    if not Path(plain.__code__.co_filename).is_file():  # what dataclasses and named tuples write
        return
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(plain)))):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield ast.unparse(node.exc.func).rpartition(".")[2]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith("_"):
            called = plain.__globals__.get(node.func.id)
            if getattr(called, "__module__", None) == plain.__module__:
                yield from raised(called, seen | {plain})


def unnamed(name: str, value: object) -> set[str]:
    """The errors that a public function raises and does not name."""
    if inspect.isclass(value) or not (callable(value) or isinstance(value, property)):
        return set()
    owner = described().get(name.rpartition(".")[0])
    said = named_errors(name, owner if inspect.isclass(owner) else None)
    return {each for each in raised(value) if each.endswith("Error") and not re.search(rf"\b{each}\b", said)}


def test_functions_name_what_they_raise() -> None:
    """What the body of a public function raises stands in its docstring, or in the one to which that refers."""
    silent = {name: errors for name, value in described().items() if (errors := unnamed(name, value))}
    assert silent == {}

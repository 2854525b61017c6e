"""The docstrings of what users hold: every public name shows an example and says what comes back."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType

import pytest
from doctests import compare_whole_errors, keep_wisdom_apart, run_pasted
from house import ROOT

import rote
import rote.array_api
import rote.array_api.fft
import rote.array_api.linalg
import rote.compat.mpi4py_fft
import rote.einops
import rote.jax
import rote.testing

Named = tuple[str, object]

# The pages that name what is public: entries of one are names by which users reach a thing, or classes of results.
REFERENCE = "\n".join((ROOT / "notebooks" / name).read_text("utf-8") for name in ("reference.md", "array-api.md"))

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
DOORS = (rote.array_api, rote.array_api.fft, rote.array_api.linalg, rote.jax, rote.testing)


# With these a first sentence is a noun phrase: what comes back. One that opens with a verb wants a section `Returns`.
NOUN_PHRASE = {
    *("A", "All", "Along", "An", "Each", "Every", "Half", "Memory", "One", "Per", "The", "This", "Whether", "Why"),
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


def listed(text: str) -> Iterator[str]:
    """The full names that the directives of a page make entries of: summaries, data, and members of a module."""
    for fence in re.findall(r"^```\{eval-rst\}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        module = ""
        for directive in re.split(r"^\.\. ", fence, flags=re.MULTILINE):
            kind, _, rest = directive.partition("::")
            lines = rest.splitlines() or [""]
            named = re.search(r"^   :members: (.*(?:\n {6}.*)*)", rest, re.MULTILINE)
            match kind:
                case "currentmodule" | "automodule":
                    module = lines[0].strip()
                    yield from (f"{module}.{name}" for name in re.findall(r"\w+", named[1] if named else ""))
                case "autosummary":
                    yield from (f"{module}.{line.strip()}" for line in lines if re.fullmatch(r" {3}\w[\w.]*", line))
                case "py:data":
                    yield f"{module}.{lines[0].strip()}"


@cache
def listed_only() -> dict[str, object]:
    """What the reference lists and no door gives: the classes of results, and names of mpi4py-fft."""
    values = {id(value) for _, value in public()}
    entries = {name: resolve_name(name) for name in listed(REFERENCE) if name not in described()}
    return {name: value for name, value in entries.items() if callable(value) and id(value) not in values}


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
    if gives and "Returns\n---" not in text and first.split()[0] not in NOUN_PHRASE:
        return f"{name}: says nowhere what comes back"
    return ""


def test_public_names_show_and_tell() -> None:
    """Each name and each method has a first sentence of its own and an example, and says what comes back.

    A property has no example of its own: its class shows it. So does a class that no door gives with its methods.
    """
    things = described() | listed_only()
    complaints = [complaint(name, value) for name, value in things.items() if name not in UNSHOWN]
    assert [text for text in complaints if text] == []


# --- examples ---------------------------------------------------------------------------------------------------------


def modules() -> dict[str, ModuleType]:
    """The modules that users import, by name."""
    inner = (value for name in rote.__all__ if isinstance(value := getattr(rote, name), ModuleType))
    doors = (rote, *inner, *DOORS, rote.compat.mpi4py_fft, rote.einops)
    return {door.__name__: door for door in doors}


@cache
def examples() -> dict[str, str]:
    """Every docstring with examples of what users see, with its first name: of modules, and of what they hold."""
    texts: dict[str, str] = {}
    for name, value in {**modules(), **described(), **listed_only()}.items():
        text = inspect.getdoc(value) or ""
        if ">>>" in text:
            texts.setdefault(text, name)
    return texts


def imports_of(text: str) -> set[str]:
    """The modules of Rote that the examples of a docstring import, or import names from."""
    lines = "".join(example.source for example in doctest.DocTestParser().get_examples(text))
    names: set[str] = set()
    for node in ast.walk(ast.parse(lines)):
        if isinstance(node, ast.ImportFrom):
            names.add("." * node.level + (node.module or ""))
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name for name in names if name.startswith((".", "rote"))}


def test_examples_run_when_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples of a public docstring need no name that they do not import, and print what they say."""
    monkeypatch.chdir(tmp_path)
    compare_whole_errors()
    keep_wisdom_apart()
    # tests/on_jax runs those of JAX, where it is installed.
    others = {text: name for text, name in examples().items() if not name.startswith("rote.jax")}
    reports = {name: run_pasted(name, text) for text, name in others.items()}
    assert len(reports) > 450
    assert {name: report for name, report in reports.items() if report} == {}


def test_examples_import_public_modules() -> None:
    """What an example imports, a user may import."""
    private = {name: imports_of(text) - modules().keys() for text, name in examples().items()}
    assert {name: names for name, names in private.items() if names} == {}


# --- parameters -------------------------------------------------------------------------------------------------------

# The sections of numpydoc, in its order.
SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "See Also", "Notes", "Examples")


def sections_of(text: str) -> list[str]:
    """The titles of the sections of a docstring: lines that are underlined, or that end in a colon as Google's do."""
    return re.findall(
        r"^(\w[\w ]*(?=\n-{3,}$)|(?:Args|Attributes|Returns|Raises|Yields|Warns|Examples):)", text, re.MULTILINE
    )


def references_of(name: str, text: str) -> Iterator[object]:
    """What a docstring names in backquotes: functions of its room, public ones, and NumPy's and SciPy's."""
    room = name.rpartition(".")[0]
    for reference in re.findall(r"`([a-z][\w.]*|[A-Z]\w*(?:\.\w+)*)`", text):
        for full in (f"{room}.{reference}", reference, f"rote.{reference}"):
            if full in described():
                yield full, described()[full]
        if reference.startswith(("numpy.", "scipy.")):
            yield reference, resolve_name(reference)


def descriptions(name: str, value: object, seen: frozenset[str] = frozenset()) -> str:
    """The docstring of a name without its examples, and those to which it refers."""
    text = (inspect.getdoc(value) or "").partition("\nExamples\n---")[0]
    others = [(full, other) for full, other in references_of(name, text) if full not in seen]
    if not name.startswith(("numpy.", "scipy.")):
        text += "".join(descriptions(full, other, seen | {name}) for full, other in others)
    return text


def parameters_of(value: object) -> list[str]:
    """The names of a callable's parameters; those of an exception, or of a protocol, are no user's to give."""
    uncalled = getattr(value, "_is_protocol", False) or (inspect.isclass(value) and issubclass(value, Exception))
    if isinstance(value, property) or not callable(value) or uncalled:
        return []
    return [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]


def undescribed(name: str, value: object) -> list[str]:
    """The parameters of a public callable that stand in no docstring."""
    text = descriptions(name, value)
    return [word for word in parameters_of(value) if not re.search(rf"\b{word}\b", text)]


def test_every_parameter_is_described() -> None:
    """Each parameter of a public callable stands in its docstring, or in one to which that refers by its name.

    Classes of results are made by calls, and names of mpi4py-fft have its arguments.
    """
    assert {name: words for name, value in described().items() if (words := undescribed(name, value))} == {}


def test_sections_are_those_of_numpydoc() -> None:
    """Sections have numpydoc's titles and stand in its order; examples stand in one."""
    wrong: dict[str, list[str]] = {}
    for name, value in (described() | listed_only()).items():
        text = inspect.getdoc(value) or ""
        titles = sections_of(text)
        if titles != [title for title in SECTIONS if title in titles] or (">>>" in text and "Examples" not in titles):
            wrong[name] = titles
    assert wrong == {}


def entries_of(value: object, title: str) -> list[str]:
    """The names in a section of a docstring, a string for each line that begins an entry."""
    section = re.search(rf"^{title}\n-+\n(.*?)(?=\n\n|\Z)", inspect.getdoc(value) or "", re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^\S.*", section[1], re.MULTILINE) if section else []
    return [line.partition(" : ")[0] for line in lines]


def test_each_attribute_has_an_entry() -> None:
    """Two names on one line are no attributes to the book, which takes the first for the type of the second."""
    things = described() | listed_only()
    assert [name for name, value in things.items() if "," in "".join(entries_of(value, "Attributes"))] == []


def test_parameters_stand_in_the_order_of_the_signature() -> None:
    """A section describes parameters that there are, in their order."""
    wrong = {}
    for name, value in described().items():
        words = re.findall(r"\w+", " ".join(entries_of(value, "Parameters")))
        if words and words != [word for word in inspect.signature(value).parameters if word in words]:  # type: ignore[arg-type]
            wrong[name] = words
    assert wrong == {}


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

"""The errors of what users hold: each method names those that it raises, and raises those that it names."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from test_house_examples import described, methods_of

import rote
from rote.fft import FFT

CLASSES = {
    "DistTensor": rote.DistTensor,
    "Layout": rote.Layout,
    "Plan": rote.Plan,
    "Distribution": rote.Distribution,
    "FFT": FFT,
}

# A wrong call of each method of the classes that users hold. Below are those of which there is none.
WRONG = {
    "DistTensor": (
        *("x.accumulate_halo(x, -1)", "x.all(axis=5)", "x.any(axis=5)", "x.argmax(axis=5)", "x.argmin(axis=5)"),
        *("x.argsort(axis=5)", "x.astype('S3')", "x.clip(np.zeros(7), 1)", "x.cumprod(axis=5)", "x.cumsum(axis=5)"),
        *("DistTensor.empty((2, 3), '[(0)]')", "DistTensor.from_function(lambda i: np.zeros(7), 3, '[(0)]')"),
        *("DistTensor.from_global(np.zeros(3), '[(0),()]')", "DistTensor.from_local(np.zeros(7), '[(0)]', 3)"),
        *("DistTensor.from_roots(np.zeros(3), '[(0),()]', 3)", "DistTensor.from_slices(np.zeros(3), 'all', 3)"),
        *("x.grid_comm((7,))", "x.halo(-1)", "x.halo_plan(-1)", "DistTensor.load('none.npy', '[(0)]')"),
        *("x.max(axis=5)", "x.mean(axis=5)", "x.min(axis=5)", "x.move_to(7)", "DistTensor.zeros((), '[]').nonzero()"),
        *("x.on_roots()", "x.prod(axis=(0, 0))", "x.redistribute('[(0)]')", "x.repeat(-1)", "x.reshape(7)"),
        *("x.round(1.5)", "x.save('none/x.npy')", "x.searchsorted([1])", "x.sort(axis=5)", "x.squeeze(0)"),
        *("x.std(where=False)", "x.sum(axis=0, out=x)", "x.swapaxes(0, 5)", "x.take([9], axis=0)"),
        *("x.to_device('gpu')", "x.to_xarray(['a'])", "x.transpose(0, 0)", "x.var(where=False)"),
        *("x.diagonal(axis1=5)", "x.dot(np.zeros(7))", "x.trace(axis1=5)"),
        *("DistTensor.zeros((2, 3), '[(0)]')", "DistTensor.zeros(4, '(r s=2): [(0),()]').slices()"),
    ),
    "Layout": ("a.drop(7)", "a.move(7, to=0)", "a.on((5,), 2)", "a.split(9, 1)", "a.whole(9)"),
    "Plan": ("Plan.from_json('x')", "Plan.from_text('x')", "wrong.verify()", "plan.why_not('none')"),
    "Distribution": (
        *("d.contributes(9)", "d.holds(9)", "d.index_sets(9)", "d.indices(9)", "d.local_shape(9)"),
        *("d.locate(9, np.array([0]))", "d.owners((9, 9))", "d.tensor_indices(9)"),
    ),
    "FFT": (
        "f.backward(x)",
        "f.empty_input((-1,))",
        "f.empty_output((-1,))",
        "f.forward(x)",
        "f.local_wavenumbers(L=0)",
        "f.shell_sums(x)",
        "f.wavenumbers(nyquist='half')",
    ),
}

# Method -> why no call of it that fits its types is wrong by itself.
HARMLESS = {
    "DistTensor.conj": "no arguments",
    "DistTensor.conjugate": "no arguments",
    "DistTensor.copy": "no arguments",
    "DistTensor.flatten": "no arguments",
    "DistTensor.ravel": "no arguments",
    "DistTensor.to_global": "no arguments",
    "Layout.is_prefix_of": "any two layouts compare",
    "Plan.explain": "no arguments",
    "Plan.plot": "no arguments",
    "Plan.to_html": "no arguments",
    "Plan.to_json": "no arguments",
    "FFT.to_html": "no arguments",
    "Distribution.max_local_shape": "no arguments",
}


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test works in an empty folder."""
    monkeypatch.chdir(tmp_path)


@cache
def things() -> dict[str, object]:
    """The objects that the wrong calls are of."""
    a = rote.parse("block[(0),()]")
    plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(6, 4), grid=2)
    return {
        **CLASSES,
        "np": np,
        "x": rote.DistTensor.from_global(np.arange(6.0).reshape(2, 3), "block[(0),()]"),
        "a": a,
        "d": a.on((5, 4), 2),
        "plan": plan,
        "wrong": replace(plan, steps=()),
        "f": FFT(4, "block[(0)]", dtype="f8"),
    }


def method_of(call: str) -> str:
    """The name of the method that a call ends with."""
    return re.findall(r"\.(\w+)\(", re.sub(r"\(.*\)\.", ".", call))[-1 if ")." in call else 0]


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


def public_name(kind: str, method: str) -> str:
    """Where the name stands that users write."""
    return f"rote.{'fft.' * (kind == 'FFT')}{kind}.{method}"


@pytest.mark.parametrize(("kind", "call"), [(kind, call) for kind, calls in WRONG.items() for call in calls])
def test_errors_are_those_that_are_named(kind: str, call: str) -> None:
    """A wrong call raises an error that the docstring of its method names, or one of that kind."""
    names = {**things()}
    with pytest.raises(Exception) as caught:
        eval(call, names)
    kinds = {each.__name__ for each in type(caught.value).__mro__} - {"Exception", "BaseException", "object"}
    said = named_errors(public_name(kind, method_of(call)), CLASSES[kind])
    assert any(re.search(rf"\b{each}\b", said) for each in kinds), (kinds, said)


def test_every_method_has_a_wrong_call_or_none_can_be() -> None:
    """The tables name every public method of the classes that users hold, and nothing else; foreign layouts have
    tests of their own."""
    foreign = re.compile(r"(from|to)_(chunks|pencil|ranges|scalapack|sharding|torch)")
    for kind, owner in CLASSES.items():
        methods = {name for name, value in methods_of(owner) if not isinstance(value, property)}
        tried = {method_of(call) for call in WRONG[kind]}
        harmless = {name.partition(".")[2] for name in HARMLESS if name.startswith(f"{kind}.")}
        assert not tried & harmless
        assert {name for name in methods if not foreign.fullmatch(name)} == {
            name for name in tried | harmless if not foreign.fullmatch(name)
        }


# --- what a function raises by itself ---------------------------------------------------------------------------------


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


def test_properties_are_shown() -> None:
    """A property is used in an example of its own or of its class, or of a class that this one is made of."""
    hidden = []
    for name, value in described().items():
        owner = described().get(name.rpartition(".")[0])
        if isinstance(value, property) and inspect.isclass(owner):
            homes = [value, *(each for each in owner.__mro__ if each.__module__.startswith("rote"))]
            texts = "\n".join(inspect.getdoc(each) or "" for each in homes)
            lines = [line for line in texts.splitlines() if line.startswith((">>>", "..."))]
            if not any(re.search(rf"\.{name.rpartition('.')[2]}\b", line) for line in lines):
                hidden.append(name)
    assert hidden == []

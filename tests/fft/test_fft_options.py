"""What tunes a transform is one frozen value, and what asks for one is data."""

from __future__ import annotations

import ast
from dataclasses import FrozenInstanceError, fields
from inspect import signature
from pathlib import Path

import pytest

import rote
from rote.fft import FFT
from rote.fft.request import Options

FILES = sorted((Path(__file__).resolve().parents[2] / "fft").rglob("*.py"))
MOST = 8  # parameters that travel together without being a value


def _long(tree: ast.AST) -> list[str]:
    """The functions with many parameters."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    given = {
        f: [a.arg for a in f.args.posonlyargs + f.args.args + f.args.kwonlyargs if a.arg != "self"] for f in functions
    }
    return [f.name for f, names in given.items() if len(names) > MOST]


def test_the_door_takes_what_tunes_by_keyword():
    """Each option is a keyword of FFT, with the same default, and none of them is passed on by itself."""
    keywords = signature(FFT).parameters
    for option in fields(Options):
        assert keywords[option.name].default == option.default


def test_options_are_frozen_and_checked():
    """A value: equal ones are equal, none changes, and one that is wrong is never made."""
    assert Options("measure", 2) == Options(tune="measure", threads=2)
    with pytest.raises(FrozenInstanceError):
        Options().threads = 2  # type: ignore[misc]
    for wrong in ({"tune": "quick"}, {"threads": 0}, {"method": "pigeon"}):
        with pytest.raises(rote.RoteError):
            Options(**wrong)
        with pytest.raises(rote.RoteError):
            FFT((4, 4), **wrong)


@pytest.mark.parametrize("algorithm", [None, 3, b"slab"])
def test_an_algorithm_is_a_name_or_a_text(algorithm):
    """Anything else is refused by name, by the class and by the functions."""
    for call in (
        lambda: FFT((4, 4), algorithm=algorithm),
        lambda: rote.fft.fftn(rote.DistTensor.zeros((4, 4), "[(),()]"), algorithm=algorithm),
    ):
        with pytest.raises(rote.LayoutError, match=r"algorithm is one of auto, slab, .*, or the text of a walk; not "):
            call()


def test_nothing_inside_passes_many_things_on():
    """Only the doors take more than a few parameters: the functions, FFT itself and the comparison of such."""
    inside = [path for path in FILES if path.parent.name != "functions"]
    long = {path.name: names for path in inside if (names := _long(ast.parse(path.read_text("utf-8"))))}
    assert long == {"plan.py": ["__init__"], "choose.py": ["compare"]}
    assert _long(ast.parse("def f(a, b, c, d, e, f, g, h, i): pass")) == ["f"]

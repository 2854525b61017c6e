"""A compile that has been done before takes no time to speak of, whatever form its arguments have; a new one little."""

from __future__ import annotations

import pkgutil
import time
import timeit
from importlib import import_module
from itertools import permutations

import numpy as np
import pytest
from effort import calls

import rote
import rote.compiler
import rote.layout

TEXT = "[(0),()] -> [(),(0)]"
SHAPE, GRID = (64, 64), (4,)

FORMS = {
    "tuples": (SHAPE, GRID),
    "lists": ([64, 64], [4]),
    "a number": (SHAPE, 4),
    "a grid": (SHAPE, rote.Grid(GRID)),
    "NumPy's integers": (np.array(SHAPE), np.int64(4)),
    "a range": (SHAPE, range(4, 5)),
}


def microseconds(call, number=50, repeat=60):
    """What a call takes of this process's time."""
    return min(timeit.repeat(call, timer=time.process_time, number=number, repeat=repeat)) / number * 1e6


@pytest.mark.parametrize("shape, grid", FORMS.values(), ids=FORMS)
def test_a_compile_from_text_is_remembered(shape, grid):
    """Again it takes a few microseconds; to parse the text, or to search and prove the plan, would take hundreds."""
    first = rote.compile(TEXT, shape=SHAPE, grid=GRID)
    assert rote.compile(TEXT, shape=shape, grid=grid) is first
    assert microseconds(lambda: rote.compile(TEXT, shape=shape, grid=grid)) < 50


def test_a_compile_between_distributions_is_remembered():
    """Distributions are looked up by a hash that they keep: they find the very plan that the text found."""
    plan = rote.compile(TEXT, shape=SHAPE, grid=GRID)
    assert rote.compile(plan.source, plan.target) is plan
    assert microseconds(lambda: rote.compile(plan.source, plan.target)) < 50


NO_INTEGERS = {
    "shape of floats": ((64.0, 64), GRID),
    "shape of a bool": ((True, 64), GRID),
    "shape that is a bool": (True, GRID),
    "grid of a float": (SHAPE, (4.0,)),
    "grid of a bool": (SHAPE, (True,)),
    "float": (SHAPE, 4.0),
    "bool": (SHAPE, True),
}


@pytest.mark.parametrize("shape, grid", NO_INTEGERS.values(), ids=NO_INTEGERS)
def test_what_only_equals_an_integer_is_refused(shape, grid):
    """4.0 equals 4, and True equals 1: they do not find what is remembered of the integers."""
    shapes, grids = (tuple(map(int, x)) if isinstance(x, tuple) else int(x) for x in (shape, grid))
    text = "[()] -> [(0)]" if shape is True else TEXT
    rote.compile(text, shape=shapes, grid=grids)
    with pytest.raises(rote.LayoutError, match=r"a shape is made of integers|a grid has at least one process"):
        rote.compile(text, shape=shape, grid=grid)


def test_what_is_remembered_is_bounded():
    """No cache of layouts or of the compiler grows without end."""
    caches = 0
    for package in (rote.layout, rote.compiler):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for name, value in vars(import_module(found.name)).items():
                if hasattr(value, "cache_parameters") and value.__module__ == found.name:
                    caches += 1
                    assert value.cache_parameters()["maxsize"] is not None, f"{found.name}.{name}"
    assert caches > 10


# Transitions of three modes on two grid modes, each on a shape that no other test has, and the calls they may make.
COLD = {
    "even blocks": ("block[(0),(1),()] -> block[(0),(),(1)]", (1062, 1054, 1048), 5_600),
    "ragged blocks": ("block[(0),(1),()] -> block[(0),(),(1)]", (1061, 1055, 1047), 6_300),
    "cyclic to block": ("[(0),(1),()] -> block[(0),(),(1)]", (1064, 1056, 1050), 6_400),
}


@pytest.mark.parametrize("text, shape, most", COLD.values(), ids=COLD)
def test_a_new_transition_makes_few_calls(text, shape, most):
    """Law: to search, price and prove a plan of extents that are all new takes some thousand calls, no more."""
    transition = rote.parse_transition(text)
    rote.compile(transition, shape=(8, 6, 4), grid=(2, 2))
    assert 1_000 < calls(lambda: rote.compile(transition, shape=shape, grid=(2, 2))) < most


def test_a_new_transition_of_a_known_shape_makes_fewer_calls():
    """Law: where other transitions of the shape are known, fewer than half as many: what they had in common is kept."""
    layouts = [f"block[{modes}]" for modes in ("(0),(1),()", "(0),(),(1)", "(),(0),(1)", "(1),(0),()")]
    dists = [rote.parse(text).on((1066, 1058, 1052), (2, 2)) for text in layouts]
    *known, new = permutations(dists, 2)
    for ends in known:
        rote.compile(*ends)
    assert 500 < calls(lambda: rote.compile(*new)) < 2_350

"""What is written of `rote.jax` holds: its page, its examples, and what is said where JAX is missing or too old."""

from __future__ import annotations

import doctest
import importlib
import sys
from pkgutil import iter_modules

import jax
import pytest
import test_house_docs
from doctests import compare_whole_errors, run_pasted
from test_house_docstrings import examples

import rote
from rote.jax.meshes import library

MODULES = ["rote.jax", *(f"rote.jax.{module.name}" for module in iter_modules(rote.jax.__path__))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_and_names(name):
    """Every example prints what it says, and `__all__` names what each module has, once each."""
    module = importlib.import_module(name)
    assert len({*module.__all__}) == len(module.__all__)
    assert all(hasattr(module, public) for public in module.__all__)
    compare_whole_errors()
    assert doctest.testmod(module).failed == 0


def test_examples_run_when_pasted(tmp_path, monkeypatch):
    """The examples of a public docstring need no name that they do not import."""
    monkeypatch.chdir(tmp_path)
    compare_whole_errors()
    reports = {name: run_pasted(name, text) for text, name in examples().items() if name.startswith("rote.jax")}
    assert len(reports) > 8
    assert {name: report for name, report in reports.items() if report} == {}


@pytest.mark.parametrize("name", test_house_docs.OF_JAX)
def test_a_page_does_what_it_says(name, tmp_path, monkeypatch):
    """All blocks of a page of JAX, in order, in one session and one folder."""
    page = next(page for page in test_house_docs.PAGES if page.name == name)
    test_house_docs.test_a_page_does_what_it_says(page, tmp_path, monkeypatch)


def test_a_missing_or_old_library_is_named(monkeypatch):
    """Where JAX is missing or too old, an error says what to install."""
    monkeypatch.setattr(jax, "__version_info__", (0, 6, 2))
    with pytest.raises(rote.RoteError, match=r"0\.7 or later is needed\npip install --upgrade jax"):
        library()
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(rote.RoteError, match=r'needs JAX\npip install "jax>=0\.7"'):
        library()

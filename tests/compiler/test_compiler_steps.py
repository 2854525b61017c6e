"""What plans are made of: the kinds of steps, their text and JSON, their certificate, and refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from layout import definition
from marks import PARTS
from parts import REST, SOME, share

import rote
from rote.errors import LayoutError, PlanError

# On a grid of 2x3 and a tensor of 6x4: what happens to which grid modes, and its name.
KINDS = [
    ("[(0),()] -> [(0),()]", None, ()),
    ("block[(0),()] -> block(3)[(0),()]", "", ()),  # equal blocks by another name
    ("[(),()] -> [(0),()]", "slice", (0,)),
    ("[(),()] -> [(0),(1)]", "slice", (0, 1)),
    ("[(0),()] -> [(0,1),()]", "slice", (1,)),
    ("[(),()] -> [(),()]|(1)", "slice", (1,)),
    ("[(0),()] -> [(),()]+(0)", "zero_fill", (0,)),
    ("[(),()] -> [(),()]+(0)", "zero_fill", (0,)),
    ("[(),()]|(0) -> [(),()]+(0)", "zero_fill", (0,)),
    ("[(),(0)] -> [(1),()]+(0)", "relayout", (0, 1)),
    ("[(),()] -> b a: [(),()]", "relayout", ()),
    ("[(0),()] -> [(),()]", "allgather", (0,)),
    ("[(0),(1)] -> [(),()]", "allgather", (0, 1)),
    ("[(0,1),()] -> [(0),()]", "allgather", (1,)),
    ("[(0),()] -> [(),(0)]", "alltoall", (0,)),
    ("[(0),(1)] -> [(1),(0)]", "alltoall", (0, 1)),
    ("[(0),()] -> block[(0),()]", "alltoall", (0,)),
    ("[(0,1),()] -> [(1,0),()]", "alltoall", (0, 1)),
    ("[(),()]|(1) -> [(),()]|(1@2)", "permute", (1,)),
    ("[(0),()]+(1) -> [(0),()]", "allreduce", (1,)),
    ("[(),()]+max(0,1) -> [(),()]", "allreduce", (0, 1)),
    ("[(0),()]+(1) -> [(0),(1)]", "reduce_scatter", (1,)),
    ("[(0),()]+(1) -> [(0),()]|(1@2)", "reduce", (1,)),
    ("[(0),()]|(1@2) -> [(0),()]", "broadcast", (1,)),
    ("[(),()]|(0,1@2) -> [(),()]", "broadcast", (0, 1)),
    ("[(),()]|(1) -> [(1),()]", "scatter", (1,)),
    ("[(0),(1)] -> [(0),()]|(1@1)", "gather", (1,)),
    ("[(0),(1)] -> [(1),()]", "exchange", (0, 1)),
    ("[(0),()] -> (a b): [(0)]", "exchange", (0,)),
    ("[(),()]+(0) -> [(),()]+max(0)", "exchange", (0,)),
    ("[(),()]+(1) -> b a: [(),()]", "exchange", (1,)),
    ("[(0),()]+(1) -> [(1),()]|(0)", "exchange", (0, 1)),
]


@pytest.mark.parametrize("text, kind, over", KINDS, ids=[text for text, *_ in KINDS])
def test_kinds(text, kind, over):
    """Each transition is one step with the name of its collective over the grid modes that change, or none."""
    plan = rote.compile(text, shape=(6, 4), grid=(2, 3))
    assert [(s.kind, s.grid_modes) for s in plan.steps] == ([(kind, over)] if kind else [])
    ends = rote.parse_transition(text)
    assert (plan.source, plan.target) == tuple(layout.on((6, 4), (2, 3)) for layout in (ends.source, ends.target))
    for step in plan.steps:
        assert (step.before, step.after) == (plan.source, plan.target)
    plan.verify()


def test_every_kind_of_step_occurs():
    """The table above shows all kinds that there are."""
    from rote.compiler.rules import RULES

    assert {kind for _, kind, _ in KINDS if kind} == {rule.kind for rule in RULES}


def tiles(text, shape, grid):
    """The blocks of a layout, as sets of elements."""
    return {frozenset(each.reshape(-1).tolist()) for each in definition.block_indices(rote.parse(text), shape, grid)}


@pytest.mark.parametrize("part", PARTS)
def test_permute_only_if_tiles_are_equal(part):
    """A permute says that blocks move whole. On grid 2x3x2 nested blocks of equal sizes need not be equal tiles."""
    grid, shape = (2, 3, 2), (7, 5)
    texts = []
    for kind, order in product(("", "block"), ("0,1", "1,0", "0,2", "2,0", "1,2", "2,1", "0,1,2", "2,1,0", "1,0,2")):
        texts += [f"{kind}[({order}),()]", f"{kind}[(),({order})]"]
    texts += [f"{kind}[({a}),({b})]" for kind in ("", "block") for a, b in ("01", "10", "02", "20", "12", "21")]
    dists = {text: rote.parse(text).on(shape, grid) for text in texts}
    sizes = {text: sorted(np.prod(dist.local_shape(rank)) for rank in range(12)) for text, dist in dists.items()}
    blocks = {text: tiles(text, shape, grid) for text in texts}
    permutes = wrongly = 0
    for a, b in share(product(texts, repeat=2), part, 29, of=5):
        plan = rote.compile(dists[a], dists[b])
        equal = blocks[b] <= blocks[a]
        if "permute" in [step.kind for step in plan.steps]:
            assert equal, (a, b)
            permutes += 1
        elif not equal and sizes[a] == sizes[b]:
            wrongly += 1
    assert permutes >= {SOME: 1, REST: 2}[part], "no permute at all proves nothing"
    assert wrongly >= {SOME: 1, REST: 2}[part], "some pairs must have blocks of equal sizes that are not equal tiles"


def test_text_and_json():
    """A plan prints its steps; its JSON parses back to an equal plan, that prints and costs the same."""
    for text, _, _ in KINDS:
        plan = rote.compile(text, shape=(6, 4), grid=(2, 3), dtype="i4", machine=rote.Machine(latency=1e-3))
        again = rote.Plan.from_json(plan.to_json())
        assert again == plan and hash(again) == hash(plan) and again.to_json() == plan.to_json()
        assert str(again) == str(plan) and again.explain() == plan.explain() and again.cost == plan.cost
        assert text.split(" -> ")[0] in str(plan) and "(6, 4) int32 on grid 2x3" in str(plan)
        assert json.loads(plan.to_json())["shape"] == [6, 4]
    assert "nothing to do" in str(rote.compile("[()] -> [()]", shape=3, grid=2))
    assert "nothing to do" in rote.compile("[()] -> [()]", shape=3, grid=2).explain()


PRINT = """
import rote
for text in {texts!r}:
    plan = rote.compile(text, shape=(6, 4), grid=(2, 3))
    print(plan, plan.cost, plan.lower_bound, plan.to_json(), plan.explain())
"""


@pytest.mark.slow
def test_the_same_in_every_process():
    """Plans do not depend on hashing: text, cost and JSON are the same here and under every PYTHONHASHSEED."""
    code, here = PRINT.format(texts=[text for text, *_ in KINDS]), StringIO()
    with redirect_stdout(here):
        exec(code, {})
    outs = {here.getvalue()} | {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "4242")
    }
    assert len(outs) == 1 and outs.pop().count("->") > len(KINDS)


def test_the_same_on_every_rank():
    """Every rank compiles the same plan by itself."""

    def program(comm):
        return [rote.compile(text, shape=(6, 4), grid=(2, 3)).to_json() for text, *_ in KINDS]

    assert len({tuple(found) for found in rote.run(program, ranks=6)}) == 1


def compiled(source="[(0)]", target="[()]", shapes=((4,), (4,)), grids=(2, 2), **more):
    ends = zip((source, target), shapes, grids, strict=True)
    return rote.compile(*(rote.parse(text).on(shape, grid) for text, shape, grid in ends), **more)


PLAN = compiled().to_json()


def broken(**changes):
    return json.dumps(json.loads(PLAN) | changes)


def changed_json(change):
    """Read a plan whose JSON has one other step."""
    tree = json.loads(compiled().to_json())
    change(tree["steps"][0])
    return rote.Plan.from_json(json.dumps(tree))


ERRORS = {
    "shapes": (lambda: compiled(shapes=((4,), (5,))), "its shape: the source has (4,), the target (5,)"),
    "grids": (
        lambda: compiled(grids=(2, 3)),
        "stays on its ranks: the source is on grid 2 of 2, the target on grid 3 of 3",
    ),
    "complex max": (
        lambda: compiled("[()]+max(0)", dtype="c16"),
        "have no max: [()]+max(0) of complex128",
    ),
    "complex min": (lambda: compiled("[()]", "[()]+min(0)", dtype="c8"), "complex numbers have no min"),
    "float16": (lambda: compiled(dtype="f2"), "not float16"),
    "text": (lambda: compiled(dtype="U3"), "not <U3"),
    "object": (lambda: compiled(dtype=object), "not object"),
    "no dtype": (lambda: compiled(dtype="double trouble"), "'double trouble' is no dtype; write 'f8', 'c16'"),
    "memory": (
        lambda: compiled(max_bytes=47),
        "max_bytes=47: the fastest needs 96 bytes on some rank, the least that any needs is 96",
    ),
    "no target": (lambda: rote.compile(rote.parse("[()]").on(3, 2)), "give two distributions, or one transition"),
    "no shape": (lambda: rote.compile("[()] -> [()]", grid=2), "compiled for a shape and a grid"),
    "no transition": (lambda: rote.compile(rote.L(()), shape=3, grid=2), "is no transition; write 'A -> B'"),
    "deep JSON": (lambda: rote.Plan.from_json("[" * 100_000), "this text is no plan"),
    "unknown grid mode": (
        lambda: changed_json(lambda step: step.update(grid_modes=[5])),
        "grid 2 has order 1, and (5,) are not ascending grid modes of it",
    ),
    "negative grid mode": (lambda: changed_json(lambda step: step.update(grid_modes=[-1])), "(-1,) are not"),
    "no grid modes": (lambda: changed_json(lambda step: step.update(grid_modes=["0"])), "this text is no plan"),
    "other start": (
        lambda: changed_json(lambda step: step.update(before="block[(0)]")),
        "step 1 starts from block[(0)]",
    ),
    "other end": (lambda: changed_json(lambda step: step.update(after="block[(0)]")), "the steps end in block[(0)]"),
    "no JSON": (lambda: rote.Plan.from_json("{"), "this text is no plan"),
    "other JSON": (lambda: rote.Plan.from_json("[1]"), "this text is no plan"),
    "missing": (
        lambda: rote.Plan.from_json('{"format": 1}'),
        "(KeyError: 'source'); plan.to_json() writes one",
    ),
    "bad layout": (lambda: rote.Plan.from_json(broken(source="[(0)")), "this text is no plan (NotationError"),
    "bad grid": (lambda: rote.Plan.from_json(broken(grid=[0])), "this text is no plan (LayoutError"),
    "bad shape": (lambda: rote.Plan.from_json(broken(shape="x")), "this text is no plan"),
    "bad dtype": (lambda: rote.Plan.from_json(broken(dtype="f2")), "not float16"),
    "bad machine": (lambda: rote.Plan.from_json(broken(machine={"speed": 1})), "this text is no plan (TypeError"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_is_wrong(case):
    """Each rule refuses with its own text."""
    call, text = ERRORS[case]
    with pytest.raises(PlanError) as caught:
        call()
    assert text in str(caught.value), str(caught.value)


def test_blocks_that_do_not_fit_are_refused():
    """simulate.run refuses blocks of another number or shape than its source's."""
    plan = compiled()
    for blocks in ([np.zeros(2)], [np.zeros(2), np.zeros(3)]):
        with pytest.raises(LayoutError):
            rote.simulate.run(plan, blocks)


def test_a_plan_that_just_fits_is_made():
    """max_bytes bounds the peak, both ends included."""
    peak = compiled().cost.peak_bytes
    assert compiled(max_bytes=peak) == compiled()


def test_the_book_shows_the_rules():
    """The table of rules in README or the book is the compiler's own."""
    from rote.compiler.rules import table

    root = Path(__file__).parents[2]
    pages = [root / "README.md", *(root / "notebooks").glob("*.md")]
    assert any(table() in page.read_text(encoding="utf-8") for page in pages)

"""Pages and cards of contractions: a scene per operand, step and product, which say what `explain` says."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from markup_tree import read
from test_pages_plans import facts, scenes

import rote
from rote.functions.contraction.stages import Move
from rote.units import in_bytes

TILES = "block[(0),(1)]"
PLANS: list[dict[str, Any]] = [
    {"subscripts": "ik,kj->ij", "shapes": [(8, 8)] * 2, "layouts": [TILES] * 2, "layout": TILES},
    {"subscripts": "ik,kj->ij", "shapes": [(40, 40)] * 2, "layouts": [TILES] * 2, "layout": TILES, "max_bytes": 17_000},
    {"subscripts": "iij,j->i", "shapes": [(4, 4, 5), (5,)], "layouts": ["block[(0),(1),()]", "[(0)]"]},
    {"subscripts": "ij->ji", "shapes": [(3, 0)]},
    {"subscripts": ",->", "shapes": [(), ()]},
]


@pytest.mark.parametrize("request_", PLANS, ids=str)
def test_a_page_has_a_scene_for_each_stage(request_: dict[str, Any]) -> None:
    """The operands, the steps of moves and the products, in order, with their layouts and bytes."""
    plan = rote.compile_einsum(**request_, grid=(2, 2))
    page = plan.to_html()
    found = scenes(page)
    count = len(plan.operands)
    steps = [len(stage.plan.steps) if isinstance(stage, Move) else 1 for stage in plan.stages]
    assert len(found) == count + sum(steps)
    for scene, (name, (dist, _)) in zip(found[:count], plan.ends().items(), strict=False):
        assert scene.the("h2").text == f"Operand {name}" and facts(scene)["Layout"] == str(dist.layout)
    at = count
    for number, (stage, many) in enumerate(zip(plan.stages, steps, strict=True), 1):
        of_stage, at = found[at : at + many], at + many
        assert all(scene.the("h2").text.startswith(f"Stage {number}: ") for scene in of_stage)
        if isinstance(stage, Move):
            assert facts(of_stage[-1])["To"] == str(stage.plan.target.layout)
        else:
            assert facts(of_stage[0])["Product"] == str(stage) and facts(of_stage[0])["Algorithm"] == stage.family
            assert ("Moves" in facts(of_stage[0])) == (stage.panels is not None)
    assert f"at most {in_bytes(plan.cost.bytes)}" in page and read(page).the("pre").text == plan.explain()


def test_a_page_does_not_grow_with_the_tensor() -> None:
    """Nor much with the ranks."""
    sizes = []
    for n, grid in ((64, (4, 4)), (65_536, (4, 4)), (65_536, (32, 32))):
        plan = rote.compile_einsum("ik,kj->ij", [(n, n)] * 2, [TILES] * 2, grid, layout=TILES)
        sizes.append(len(plan.to_html()))
    assert all(after < 4 * before for before, after in pairwise(sizes)) and sizes[-1] < 150_000


def test_the_card_shows_operands_and_result() -> None:
    """Notebooks show the figures and a map of each."""
    plan = rote.compile_einsum(**PLANS[0], grid=(2, 2))
    card = plan._repr_html_()
    assert "Contraction" in card and str(plan.subscripts) in card.replace("&gt;", ">")
    assert all(f"{name}: {dist.layout}" in card for name, (dist, _) in plan.ends().items())

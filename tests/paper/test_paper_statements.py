"""Three papers' statements about time, and what machines of documented numbers say of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from priced import PAIRS, TIE, ratio, seconds
from statements import CHECKS, DRAWS, ENOUGH, PRICED, STATEMENTS, K, draw, holds, limit, p1, p20, share

from rote.machines.machine import Machine

VERDICTS = {"exact", "D", "D*", "F", "check", "rule", "no"}


def test_every_statement_has_a_source_a_verdict_and_what_decides():
    assert len(STATEMENTS) == 37
    for name, row in STATEMENTS.items():
        assert set(row) == {"source", "text", "ranks", "families", "verdict", "decides"}, name
        assert all(row[key] for key in row if key != "families"), name
        assert row["verdict"] in VERDICTS, name
        assert (name in CHECKS) == (row["verdict"] in {"exact", "D", "D*", "F", "check"} and name != "O1")


@pytest.mark.parametrize("name", [name for name, row in STATEMENTS.items() if row["verdict"] in ("D", "D*", "check")])
def test_documented_numbers_agree(name):
    found = CHECKS[name]()
    assert found.agrees, found.figures


@pytest.mark.parametrize("name", PRICED)
def test_a_verdict_has_its_share_of_the_draws(name):
    """Law: D holds in at least 95 % of the draws of each kind, and F in fewer: a coin toss is no demonstration."""
    shares = share(name), share(name, every=True)
    assert holds(name) == (STATEMENTS[name]["verdict"] != "F"), f"{name} holds in {shares}: mend its verdict"


def test_draws_are_the_same_for_the_same_seed():
    """Law: a draw has each number within its range, counts whole, what is documented as documented; seeds differ."""
    for name in ("k-computer", "fx10", "cray-xc40"):
        machine = Machine.load(name)
        first, again, other, every = draw(1)(machine), draw(1)(machine), draw(2)(machine), draw(1, True)(machine)
        assert first == again != other and every != first

    assert draw(1)(K).byte_time == K.byte_time > draw(1, True)(K).byte_time  # injection is documented, twice


def test_what_says_nothing_of_the_network_is_told():
    """Law: a row that holds without a network says so: it compares sweeps, and no network is tested by it."""
    said = {name for name, row in STATEMENTS.items() if "holds without a network too" in row["decides"]}
    assert said == {"P2", "P10", "P15", "D2", "D4", "D7"}
    assert all(CHECKS[name](without_network).agrees for name in said)
    assert not CHECKS["P16"](without_network).agrees

    sweeps = [pair for pair in PAIRS if ratio(pair, without_network(K)) > 1]
    assert len(sweeps) == 15 and all(better == "slab" for _, _, better, _ in sweeps)


def without_network(machine):
    """The machine as one node without an end."""
    return replace(machine, network=None)


def test_a_machine_on_which_slabs_never_meet_pencils_has_a_verdict():
    """Law: where one time never passes another, the check says so, and raises nothing."""
    found = CHECKS["P12"](lambda machine: machine.at({"exchange": "high"}))
    assert not found.agrees and "nowhere" in found.figures


def test_the_nine_limits_and_the_grids_of_table_1():
    assert p1().agrees and p20().agrees
    limits = [limit(points, family) for points in (64, 256, 1024) for family in ("slab", "pencil", "volumetric")]
    assert limits == [8, 64, 512, 16, 256, 4096, 32, 1024, 32768]


def right(machine):
    """How many of the 20 pairs are in the order of the paper, however small the gap is."""
    return sum(ratio(pair, machine) > 1 for pair in PAIRS)


def test_twenty_pairs_of_families():
    assert len(set(PAIRS)) == 20
    assert right(K) >= 18
    wrong = {pair for pair in PAIRS if ratio(pair, K) < 1 / TIE}
    assert wrong <= {(1024, 64, "volumetric", "pencil")}


def test_pairs_do_not_depend_on_unknown_numbers():
    assert sum(right(draw(seed)(K)) >= 18 for seed in range(DRAWS)) >= ENOUGH * DRAWS


def test_pairs_depend_on_the_network():
    """Without a torus, and on a network of one node, pencils come before the volumetric transform beyond 32."""
    beyond = [pair for pair in PAIRS if pair[2:] == ("volumetric", "pencil")]
    assert all(ratio(pair, without_network(K)) < 1 for pair in beyond)
    assert sum(ratio(pair, K) > 1 / TIE for pair in beyond) >= 4


@pytest.mark.parametrize("pick", ["fast", "slow"])
def test_both_ends_of_all_ranges_keep_the_pairs(pick):
    assert right(K.at(pick)) >= 18


def test_the_range_of_a_profile_encloses_its_value():
    for nodes in (8, 64, 512):
        fast, value, slow = (seconds(1024, "volumetric", nodes, K.at(pick)) for pick in ("fast", "value", "slow"))
        assert fast < value < slow

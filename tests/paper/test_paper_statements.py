"""Three papers' statements about time, and what machines of documented numbers say of them."""

from __future__ import annotations

from math import exp, log
from random import Random

import pytest
from priced import PAIRS, TIE, ratio, seconds
from statements import CHECKS, STATEMENTS, K, limit, p1, p20

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


@pytest.mark.parametrize("name", [name for name, row in STATEMENTS.items() if row["verdict"] == "F"])
def test_what_needs_an_unknown_number_is_not_met_by_setting_it(name):
    found = CHECKS[name]()
    assert not found.agrees, found.figures


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
    profile, random = K.profile, Random(42)
    enough = 0
    for _ in range(200):
        drawn = {name: exp(random.uniform(log(profile[name].low), log(profile[name].high))) for name in profile.unknown}
        enough += right(K.at(drawn)) >= 18
    assert enough >= 190


def test_pairs_depend_on_the_network():
    """Without a torus, and on a network of one node, pencils come before the volumetric transform beyond 32."""
    flat = Machine(K.latency, K.byte_time, K.copy_time, K.reduce_time, K.step_time, K.flop_time, K.fft_time)
    beyond = [pair for pair in PAIRS if pair[2:] == ("volumetric", "pencil")]
    assert all(ratio(pair, flat) < 1 for pair in beyond)
    assert sum(ratio(pair, K) > 1 for pair in beyond) >= 4


@pytest.mark.parametrize("pick", ["fast", "slow"])
def test_both_ends_of_all_ranges_keep_the_pairs(pick):
    assert right(K.at(pick)) >= 18


def test_the_range_of_a_profile_encloses_its_value():
    for nodes in (8, 64, 512):
        fast, value, slow = (seconds(1024, "volumetric", nodes, K.at(pick)) for pick in ("fast", "value", "slow"))
        assert fast < value < slow

"""What a storm does comes from its seed alone, and a short one has something of everything."""

import os
import subprocess
import sys
from itertools import pairwise

import pytest

from tests.crash.storm import blows_broker, blows_servers, blows_workers
from tests.crash.storm.clients import layers
from tests.crash.storm.orders import DOORS, FAMILY, KINDS
from tests.crash.storm.people import ON_ONE, PAUSED
from tests.crash.storm.plan import DEEDS, LOSES, LOSING, PROFILES, SPAN, plan
from tests.kit.processes import PROJECT

SAID = "from tests.crash.storm.plan import plan; print(plan(7, 60, 'cluster'))"
A_SECOND = 5.0
BLOWS = blows_workers.BLOWS | blows_servers.BLOWS | blows_broker.BLOWS


@pytest.fixture(scope="module", params=["embedded", "cluster"])
def long(request):
    return plan(5, 1800, request.param, A_SECOND)


def test_the_same_seed_is_the_same_storm_in_every_process():
    env = os.environ | {"PYTHONHASHSEED": "12345"}
    told = subprocess.run(
        [sys.executable, "-c", SAID], cwd=PROJECT, env=env, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == str(plan(7, 60, "cluster"))


def test_another_seed_is_another_storm():
    one, other = plan(1, 60, "embedded"), plan(2, 60, "embedded")
    assert one.errands != other.errands
    assert one.blows != other.blows
    assert one.deeds != other.deeds


def test_a_long_storm_has_something_of_everything(long):
    assert {blow.name for blow in long.blows} == set(PROFILES[long.profile])
    assert {deed.name for deed in long.deeds} == set(DEEDS)
    assert {errand.kind for errand in long.errands} == {*KINDS, FAMILY}
    assert {errand.door for errand in long.errands} == set(DOORS)
    assert {blow.place for blow in long.blows} == {0, 1, 2}


def test_a_storm_has_about_as_many_jobs_as_were_asked_for(long):
    jobs = sum(len(errand.orders) for errand in long.errands)
    assert 0.9 < jobs / (long.seconds * A_SECOND) < 1.1


def test_every_part_is_in_the_order_of_its_instants_and_within_its_time(long):
    for part in (long.errands, long.deeds, long.blows):
        assert all(one.at <= other.at for one, other in pairwise(part))
        assert 0 <= part[0].at <= part[-1].at < long.seconds
    assert all(blow.at + blow.lasts <= long.seconds for blow in long.blows)


def test_a_server_is_not_struck_again_before_it_is_back(long):
    faults = PROFILES[long.profile]
    for server in {fault.at for fault in faults.values()} - {""}:
        struck = [blow for blow in long.blows if faults[blow.name].at == server]
        assert all(one.at + one.lasts + faults[one.name].rest <= other.at for one, other in pairwise(struck))


def test_what_loses_messages_comes_when_they_can_still_be_looked_for(long):
    assert all(blow.at % SPAN <= LOSING for blow in long.blows if blow.name in LOSES)


def test_parents_are_asked_for_before_their_children(long):
    families = [errand.orders for errand in long.errands if errand.kind == FAMILY]
    for orders in families[:50]:
        placed = []
        for layer in layers(orders):
            assert all(set(order.parents) <= set(placed) for order in layer)
            placed += [order.name for order in layer]
        assert placed == [order.name for order in orders]


def test_every_fault_and_every_deed_can_be_done():
    assert set(BLOWS) == set(PROFILES["cluster"])
    assert set(PROFILES["embedded"]) < set(PROFILES["cluster"])
    assert set(DEEDS) == {*ON_ONE, *PAUSED}

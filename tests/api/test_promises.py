"""GET /api/promises: how the three promises stand, by the leader's last look."""

import pytest

from jobs import invariants
from jobs.invariants import INVARIANTS, Checked, Finding, Promise
from tests.transitions.rows import execute

pytestmark = pytest.mark.django_db


def looked(*names, **besides):
    found = tuple(Finding(n, Promise.LOST, 1, ("01a2",), "It holds.", "Do it.") for n in names)
    usual = {"unanswered": (), "attended": True, "unsure": False, "seconds": 0.1}
    invariants.keep(Checked(found, **usual | besides))


def statements(found):
    return {one["name"]: one for promise in found["promises"] for one in promise["statements"]}


def test_before_the_first_look_nothing_is_known(api):
    found = api.get("/api/promises").json

    assert (found["standing"], found["look"], found["old"], found["storm"]) == ("unknown", None, False, None)
    assert [promise["name"] for promise in found["promises"]] == ["nothing_lost", "nothing_twice", "truth"]
    assert {one["standing"] for one in statements(found).values()} == {"unknown"}
    assert statements(found).keys() == {one.name for one in INVARIANTS if not one.broker}


def test_a_good_look_keeps_all_three(api):
    looked()
    found = api.get("/api/promises").json

    assert (found["standing"], found["look"]["attended"]) == ("kept", True)
    assert found["look"]["at"].endswith("Z")
    assert {one["standing"] for one in statements(found).values()} == {"kept"}


def test_what_is_broken_stands_first_with_its_ids_and_what_to_do(api):
    looked("due_is_enqueued", unanswered=("fired_once",))
    found = api.get("/api/promises").json

    lost, twice, truth = found["promises"]
    assert [promise["standing"] for promise in (lost, twice, truth)] == ["broken", "unknown", "kept"]
    first = lost["statements"][0]
    assert (first["name"], first["count"], first["examples"]) == ("due_is_enqueued", 1, ["01a2"])
    assert first["since"] == found["look"]["at"]
    assert first["advice"].startswith("A rotina que enfileira")
    assert statements(found)["fired_once"]["standing"] == "unknown"
    assert found["look"]["kept_for"] is None


def test_an_old_look_says_nothing_of_now_but_what_was_broken(api):
    looked("due_is_enqueued")
    execute("UPDATE turno.promise_checks SET at = at - interval '1 hour'")
    found = api.get("/api/promises").json

    assert found["old"]
    assert found["look"]["age"] > 3000
    assert [promise["standing"] for promise in found["promises"]] == ["broken", "unknown", "unknown"]


def test_where_nobody_led_what_is_soon_true_is_not_known(api):
    looked(attended=False)
    found = statements(api.get("/api/promises").json)

    soon = {one.name for one in INVARIANTS if one.soon and not one.broker}
    assert {name for name, one in found.items() if one["standing"] == "unknown"} == soon
    assert found["has_an_owner"]["standing"] == "kept"


def test_the_last_storm_is_told(api):
    invariants.keep_storm(place="cluster", seed=3, seconds=90.0, jobs=4000, faults={"kill_worker": 12, "freeze": 3})
    storm = api.get("/api/promises").json["storm"]

    assert (storm["place"], storm["seed"], storm["seconds"], storm["jobs"]) == ("cluster", 3, 90.0, 4000)
    assert (storm["faults"], storm["broken"]) == ({"kill_worker": 12, "freeze": 3}, [])


def test_it_speaks_the_language_that_is_asked_for(api):
    english = api.get("/api/promises", Accept_Language="en").json["promises"][0]["says"]
    assert english == "No accepted job is lost."

"""The check that `waiting_for` is true: it finds each kind of lie, and nothing else."""

import pytest

from tests.kit import gatecheck
from tests.transitions import rows
from tests.transitions.rows import ago

pytestmark = pytest.mark.django_db
KEYED = {"concurrency_key": "k", "concurrency_limit": 1}


def park(waiting_for, gate=None, **columns):
    return rows.make_job("Scheduled", waiting_for=waiting_for, gate=gate, **columns)


def hold(value, made, kind="key", slot=1):
    rows.execute("INSERT INTO turno.concurrency_keys (kind, value) VALUES (%s, %s) ON CONFLICT DO NOTHING", kind, value)
    rows.execute(
        "INSERT INTO turno.concurrency_slots (key_id, slot, job_id, dispatch_id) SELECT id, %s, %s, %s"
        " FROM turno.concurrency_keys WHERE kind = %s AND value = %s",
        slot, made.id, made.token, kind, value,
    )  # fmt: skip


def pause(scope, value, until="NULL"):
    rows.execute(f"INSERT INTO turno.pauses (scope, value, until) VALUES (%s, %s, {until})", scope, value)


def found():
    return {lie.id for lie in gatecheck.lies()}


def test_a_quiet_house_tells_the_truth():
    rows.make_job()
    rows.make_job("Scheduled")
    assert gatecheck.waits_truly()


def test_a_key_is_closed_while_its_slots_are_taken_or_about_to_be():
    made = park("concurrency_key", "k", **KEYED)
    assert found() == {made.id}
    hold("k", rows.make_job("Processing", **KEYED))
    assert found() == set()
    wider = park("concurrency_key", "k", concurrency_key="k", concurrency_limit=2)
    assert found() == {wider.id}
    rows.make_job(**KEYED, enqueued_at=ago(3))
    assert found() == set()
    assert gatecheck.waits_truly()
    other = park("concurrency_key", "another", **KEYED)
    assert found() == {other.id}


def test_a_job_that_has_waited_long_for_a_worker_keeps_its_place_before_those_behind_it_in_its_queue():
    rows.make_job(**KEYED, enqueued_at=ago(60))
    park("concurrency_key", "k", **KEYED)
    assert found() == set()


def test_a_job_that_has_waited_long_for_a_worker_keeps_no_place_before_others():
    rows.make_job(**KEYED, enqueued_at=ago(60), queue="elsewhere")
    made = park("concurrency_key", "k", **KEYED)
    assert found() == {made.id}


def test_a_types_limit_is_closed_while_as_many_run():
    made = park("type_limit", "crm", type="crm")
    assert found() == {made.id}
    rows.execute("INSERT INTO turno.job_types (name, max_running) VALUES ('crm', 1)")
    assert found() == {made.id}
    hold("crm", rows.make_job("Processing", type="crm"), kind="type")
    assert found() == set()


def test_a_rate_is_closed_while_it_is_spent():
    made = park("rate", "crm", type="crm")
    assert found() == {made.id}
    rows.execute(
        "INSERT INTO turno.rates (type, allowed, \"window\", spent) SELECT 'crm', 2, 50,"
        " jsonb_build_array(jsonb_build_array(floor(extract(epoch FROM now()))::int, 1))"
    )
    assert found() == {made.id}
    rows.make_job(type="crm")  # it asks when it is claimed: until then nobody has the other start
    assert found() == {made.id}
    rows.execute("UPDATE turno.jobs SET admitted = dispatch_id WHERE state = 'Enqueued'")  # it was woken for it
    assert found() == set()


@pytest.mark.parametrize("scope", ["type", "tag", "key"])
def test_a_pause_closes_what_belongs_to_it_while_it_is_in_force(scope):
    made = park("pause", f"{scope}:k", type="k", tags=["k"], **KEYED)
    stranger = park("pause", f"{scope}:k")
    assert found() == {made.id, stranger.id}
    pause(scope, "k")
    assert found() == {stranger.id}
    rows.execute("UPDATE turno.pauses SET until = now() - interval '1 second'")
    assert found() == {made.id, stranger.id}


def test_a_breaker_is_closed_to_jobs_while_it_is_not_closed():
    made = park("circuit", "crm", type="crm")
    assert found() == {made.id}
    rows.execute("INSERT INTO turno.circuits (type, state, opened_at, retry_at) VALUES ('crm', 'open', now(), now())")
    assert found() == set()


def test_a_type_is_unknown_while_no_live_worker_of_the_queue_has_it():
    made = park("unknown_type", "crm", type="crm")
    rows.make_worker(queues={"default": 1}, types=["other"])
    rows.make_worker(queues={"elsewhere": 1}, types=["crm"])
    rows.make_worker(queues={"default": 1}, types=["crm"], state="Draining")
    assert found() == set()
    rows.make_worker(queues={"default": 1}, types=["crm"])
    assert found() == {made.id}
    pause("queue", "default")
    assert found() == set()


def test_a_child_waits_while_a_parent_has_not_ended():
    made = park("parents")
    assert found() == {made.id}
    parent = rows.make_job("Processing")
    rows.execute("INSERT INTO turno.job_dependencies (child_id, parent_id) VALUES (%s, %s)", made.id, parent.id)
    assert found() == set()


def test_slots_of_no_execution_and_crowded_keys_are_found():
    hold("k", rows.make_job("Processing", **KEYED))
    assert gatecheck.waits_truly()
    hold("k", rows.make_job("Processing", **KEYED), slot=2)
    assert gatecheck.crowded() == ["k"]
    ended = rows.make_job("Succeeded")
    hold("e", ended)
    assert gatecheck.strays() == [ended.id]
    assert not gatecheck.waits_truly()

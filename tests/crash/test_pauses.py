"""Pauses and the settings of queues in a house of real workers, with PostgreSQL alone and with a broker."""

import pytest

import tests.kit.handlers  # noqa: F401  (declares the types)
from jobs import flow, transitions
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import Job, Worker
from tests.kit.look import job, started, steps, wait_state
from tests.kit.processes import eventually
from tests.transitions.rows import execute, select

pytestmark = pytest.mark.crash
TYPE, OTHER = "probe.async", "probe.thread"


def keys(word, count):
    return [f"{word}-{n}" for n in range(count)]


def many(word, count, type_=TYPE, **more):
    return [made.id for made in enqueue_many([JobRequest(type_, {"key": key, **more}) for key in keys(word, count)])]


def what_is_paused_waits_and_the_rest_flows_until_it_is_resumed(fleet):
    flow.pause("queue", "critical", reason="deploy")
    flow.pause("type", TYPE)
    flow.pause("tag", "nightly")
    queued = enqueue(OTHER, {"key": "queued"}, queue="critical").id
    held = many("held", 20)
    tagged = enqueue(OTHER, {"key": "tagged"}, tags=["nightly"]).id
    wait_state(enqueue(OTHER, {"key": "free"}).id, "Succeeded")
    parked = Job.objects.filter(state="Scheduled", waiting_for="pause")
    eventually(lambda: parked.count() == 21, "what is paused is parked")
    assert job(queued).state == "Enqueued"
    assert set(parked.values_list("gate", flat=True)) == {f"type:{TYPE}", "tag:nightly"}
    for scope, value in (("queue", "critical"), ("type", TYPE), ("tag", "nightly")):
        flow.resume(scope, value)
    for id_ in (queued, tagged, *held):
        wait_state(id_, "Succeeded")
    assert steps(held[0])[1:3] == [("Enqueued", "Scheduled", "parked"), ("Scheduled", "Enqueued", "gate_opened")]
    assert all(len(fleet.starts(key)) == 1 for key in ("queued", "tagged", "free", *keys("held", 20)))


def what_runs_out_is_lifted_by_whoever_leads():
    flow.pause("type", TYPE)
    made = many("late", 3)
    eventually(lambda: Job.objects.filter(waiting_for="pause").count() == 3, "they are parked")
    execute("UPDATE turno.pauses SET until = now()")
    for id_ in made:
        wait_state(id_, "Succeeded")
    eventually(lambda: not select("SELECT 1 FROM turno.pauses"), "its row is gone")


def a_worker_follows_the_slots_that_somebody_sets(fleet):
    flow.set_queue("default", slots=4)
    eventually(lambda: Worker.objects.filter(queues__default=4).exists(), "it has four slots")
    wide = many("wide", 4, hold=3600)
    for key in keys("wide", 4):
        started(fleet, key)  # all at once: none of them ends
    flow.set_queue("default", slots=0)
    eventually(lambda: Worker.objects.filter(queues__default=0).exists(), "it has none")
    last = enqueue(TYPE, {"key": "last"}).id
    transitions.cancel(wide)
    eventually(lambda: not Job.objects.filter(state="Processing").exists(), "what ran has ended")
    assert job(last).state == "Enqueued"
    flow.set_queue("default", slots=None)
    wait_state(last, "Succeeded")


@pytest.mark.both
def test_a_house_keeps_its_pauses_their_ends_and_the_slots_that_are_set(fleet):
    """One house for all: that its workers start takes longer than what is looked at."""
    fleet.start("a", "default:2,critical:2").wait_ready()
    what_is_paused_waits_and_the_rest_flows_until_it_is_resumed(fleet)
    what_runs_out_is_lifted_by_whoever_leads()
    a_worker_follows_the_slots_that_somebody_sets(fleet)

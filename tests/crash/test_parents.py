"""Continuations with real workers: each child runs once, after its parents, whoever dies in between."""

import signal

import pytest

import tests.kit.handlers  # noqa: F401
from jobs.enqueue import enqueue
from jobs.models import Job
from tests.kit.look import job, started, steps, wait_state
from tests.kit.processes import eventually

pytestmark = pytest.mark.crash


def child(key, *parents, **options):
    return enqueue("probe.async", {"key": key}, after=parents, **options).id


def test_a_family_runs_in_its_order_whose_middle_one_lost_its_worker(fleet):
    worker = fleet.start("a").wait_ready()
    top = enqueue("probe.async", {"key": "top"}).id
    left, right = child("left", top), enqueue("probe.process", {"key": "right", "hold": 2.0}, after=[top]).id
    bottom = child("bottom", left, right)
    last = child("last", bottom)
    started(fleet, "right")
    worker.kill_worker()
    for id_ in (top, left, right, bottom, last):
        wait_state(id_, "Succeeded")
    assert job(right).lost_count == 1
    order = list(dict.fromkeys(parts[1] for parts in fleet.starts()))
    assert (order[0], set(order[1:3]), order[3:]) == ("top", {"left", "right"}, ["bottom", "last"])
    for key in ("top", "bottom", "last"):
        assert len(fleet.starts(key)) == 1
    assert [reason for *_, reason in steps(bottom)] == ["created", "gate_opened", "claimed", "succeeded"]


def test_what_fails_takes_its_children_with_it_and_lets_those_run_that_said_so(fleet):
    fleet.start("a").wait_ready()
    top = enqueue("probe.timeout", {"key": "top", "hold": 30.0}).id
    fallen = child("fallen", top)
    grandchild, brave = child("grandchild", fallen), child("brave", fallen, on_parent_failure="run")
    wait_state(top, "Failed")
    wait_state(brave, "Succeeded")
    assert {job(id_).state for id_ in (fallen, grandchild)} == {"Cancelled"}
    assert not fleet.starts("fallen")
    late = child("late", top, on_parent_failure="run")  # when its parent has long ended
    wait_state(late, "Succeeded")
    wait_state(child("too-late", top), "Cancelled")


def test_children_that_were_committed_while_nobody_listened_are_found(fleet):
    """As after a crash between the COMMIT and the look that it asks for."""
    worker = fleet.start("a").wait_ready()
    top = enqueue("probe.async", {"key": "top"}).id
    wait_state(top, "Succeeded")
    worker.signal(signal.SIGKILL)
    worker.process.wait(30)
    ids = [child(f"child-{n}", top) for n in range(3)]
    fleet.start("b").wait_ready()
    for n, id_ in enumerate(ids):
        wait_state(id_, "Succeeded")
        assert len(fleet.starts(f"child-{n}")) == 1
    eventually(lambda: not Job.objects.filter(waiting_for="parents").exists(), "nobody waits")
